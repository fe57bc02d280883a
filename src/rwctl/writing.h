/* writing.h -- what writing one file and writing many have in common */

#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "rwctl/call.h"
#include "rwctl/comeback.h"
#include "rwctl/deadline.h"
#include "rwctl/fleet.h"

struct progress;

struct writing {
	const struct options *o;
	struct fleet fleet;
	struct call *call;
	struct progress *progress;
	struct deadline deadline;
	struct comeback comeback;
	bool again; /* the daemon has gone meanwhile, and come back */
};

/* The parameters of Write and WriteBatch that are the same. */
json_t *writing_parameters(const struct writing *w);
/* The next answer, while pump (or NULL) runs: see call_receive(). Those on the way are shown. */
int writing_receive(struct writing *w, struct pump *pump, struct answer *ret);
/* Shows how far a transfer to a member is: a line on a terminal, else only that the connection was
 * lost. */
void writing_show(struct writing *w, struct member *member, const json_t *transfer);
/* The daemon has gone: waits until it is back. STATUS_DONE, or what has been said. */
int writing_await_daemon(struct writing *w);
/* One line with the result, good or bad, on standard output. */
void writing_print(const json_t *transfer);

/* The files of args, or of --files-from, to all of w->fleet: the status. */
int write_many(struct writing *w, char **files);
