/* cmd_region.c -- rwctl regions, release */

#include "config.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/text.h"
#include "rwctl/age.h"
#include "rwctl/call.h"
#include "rwctl/listing.h"

static const struct column COLUMNS[] = {
    {"ID", COLUMN_NUMBER},
    {"PEER", COLUMN_TEXT},
    {"KEY", COLUMN_TEXT},
    {"FABRIC", COLUMN_TEXT},
    {"DEVICE", COLUMN_TEXT},
    {"SIZE", COLUMN_NUMBER},
    {"ARRIVALS", COLUMN_NUMBER},
    {"BYTES", COLUMN_NUMBER},
    {"LAST", COLUMN_LONG},
    {"AGE", COLUMN_NUMBER},
    {"STATE", COLUMN_TEXT},
    {"WHY THIS FABRIC", COLUMN_NOTE},
};

#define N_COLUMNS (sizeof(COLUMNS) / sizeof(COLUMNS[0]))

static void
add_region(struct table *table, const json_t *r)
{
	const json_t *last = json_object_get(r, "lastArrival");
	char id[24], size[TEXT_SIZE_MAX], arrivals[24], bytes[TEXT_SIZE_MAX], age[AGE_MAX];

	snprintf(id, sizeof(id), "%" PRIu64, number_at(r, "id"));
	snprintf(arrivals, sizeof(arrivals), "%" PRIu64, number_at(r, "arrivals"));
	text_human_size(size, number_at(r, "size"));
	text_human_size(bytes, number_at(r, "bytes"));
	table_row(table, (const char *[N_COLUMNS]){id, text_at(r, "peer"), yes_no_at(r, "keyed"),
			     text_at(r, "fabric"), text_at(r, "device"), size, arrivals, bytes,
			     text_at(last, "name"), age_since(age, text_at(last, "time")),
			     text_at(r, "state"), text_at(r, "fabricWhy")});
}

static const struct listing REGIONS = {
    .method = "io.rwriter.ListRegions",
    .key = "regions",
    .columns = COLUMNS,
    .n_columns = N_COLUMNS,
    .add = add_region,
};

int
cmd_regions(const struct options *o, char **args)
{
	(void)args;
	return listing_show(&REGIONS, o);
}

int
cmd_release(const struct options *o, char **args)
{
	struct answer answer;
	uint64_t id;
	int r;

	if (text_parse_uint(args[0], UINT32_MAX, &id) < 0) {
		complain("%s: not a region's number (rwctl regions shows them)", args[0]);
		return STATUS_USAGE;
	}
	r = call_once(o, "io.rwriter.Release", json_pack("{s:I}", "id", (json_int_t)id), &answer);
	if (r != STATUS_DONE)
		return r;
	if (!o->json)
		printf("region %" PRIu64 ": released\n", id);
	answer_done(&answer);
	return STATUS_DONE;
}
