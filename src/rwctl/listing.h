/* listing.h -- a list of the daemon as a table, or as JSON */

#pragma once

#include <jansson.h>
#include <stddef.h>

#include "rwctl/rwctl.h"
#include "rwctl/table.h"

struct listing {
	const char *method; /* without parameters */
	const char *key;    /* of the answer's array; "no KEY" is shown when it is empty */
	const struct column *columns;
	size_t n_columns;
	void (*add)(struct table *table, const json_t *item);
};

/* A status. */
int listing_show(const struct listing *listing, const struct options *o);
