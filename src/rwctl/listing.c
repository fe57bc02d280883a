/* listing.c -- a list of the daemon as a table, or as JSON */

#include "config.h"

#include <stdio.h>

#include "rwctl/call.h"
#include "rwctl/listing.h"

static int
show(const struct listing *listing, const json_t *list)
{
	struct table *table;
	const json_t *item;
	size_t i;

	if (json_array_size(list) == 0) {
		printf("no %s\n", listing->key);
		return STATUS_DONE;
	}
	table = table_new(listing->columns, listing->n_columns);
	json_array_foreach (list, i, item) {
		listing->add(table, item);
	}
	if (table_print(table))
		return STATUS_DONE;
	complain("memory is short");
	return STATUS_FAILED;
}

int
listing_show(const struct listing *listing, const struct options *o)
{
	struct answer answer;
	int status = call_once(o, listing->method, json_object(), &answer);

	if (status != STATUS_DONE)
		return status;
	if (!o->json)
		status = show(listing, json_object_get(answer.parameters, listing->key));
	answer_done(&answer);
	return status;
}
