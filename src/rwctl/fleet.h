/* fleet.h -- the peers that a write goes to, and how it did with each */

#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "rwctl/rwctl.h"

struct member {
	char *name;
	size_t bad; /* files that were not written to it */
	bool lost;  /* it has been said that the connection to it is */
	bool stuck; /* it could not be reached: the others go first */
	size_t had; /* files, from the first on, that had their turn with it */
};

struct fleet {
	size_t n;
	struct member *members; /* each once, in the order in which they were named */
};

/* word: a peer, or a,b or @group or @all or several of these, which the daemon knows. STATUS_DONE,
 * or the status when it has been said what is wrong; fleet_done() in both cases. */
int fleet_get(struct fleet *f, const struct options *o, const char *word);
void fleet_done(struct fleet *f);

/* For people: the one, or "8 peers". */
#define FLEET_NAME_MAX 600
char *fleet_name(char buf[FLEET_NAME_MAX], const struct fleet *f);
/* One line that names those to which a file was not written; nothing where there is none, or where
 * there is but one peer. */
void fleet_print_bad(const struct fleet *f, size_t files);
