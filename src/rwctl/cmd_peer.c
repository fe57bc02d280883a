/* cmd_peer.c -- rwctl peers, disconnect */

#include "config.h"

#include <inttypes.h>
#include <stdio.h>

#include "rwctl/age.h"
#include "rwctl/call.h"
#include "rwctl/listing.h"

static const struct column COLUMNS[] = {
    {"PEER", COLUMN_TEXT},
    {"NAME", COLUMN_TEXT},
    {"KEY", COLUMN_TEXT},
    {"ADDRESS", COLUMN_TEXT},
    {"WAY", COLUMN_TEXT},
    {"STATE", COLUMN_TEXT},
    {"FABRIC", COLUMN_TEXT},
    {"DEVICE", COLUMN_TEXT},
    {"AGE", COLUMN_NUMBER},
    {"DONE", COLUMN_NUMBER},
    {"QUEUED", COLUMN_NUMBER},
    {"LAST ERROR", COLUMN_LONG},
    {"WHY THIS FABRIC", COLUMN_NOTE},
};

#define N_COLUMNS (sizeof(COLUMNS) / sizeof(COLUMNS[0]))

static void
add_peer(struct table *table, const json_t *p)
{
	const char *key = text_at(p, "direction")[0] == '\0' ? "" : yes_no_at(p, "keyed");
	char age[AGE_MAX], done[24], queued[24];

	snprintf(done, sizeof(done), "%" PRIu64, number_at(p, "transfers"));
	snprintf(queued, sizeof(queued), "%" PRIu64, number_at(p, "queued"));
	table_row(table,
	    (const char *[N_COLUMNS]){text_at(p, "name"), text_at(p, "claimedName"), key,
		text_at(p, "address"), text_at(p, "direction"), text_at(p, "state"),
		text_at(p, "fabric"), text_at(p, "device"), age_since(age, text_at(p, "since")),
		done, queued, text_at(p, "lastError"), text_at(p, "fabricWhy")});
}

static const struct listing PEERS = {
    .method = "io.rwriter.ListPeers",
    .key = "peers",
    .columns = COLUMNS,
    .n_columns = N_COLUMNS,
    .add = add_peer,
};

int
cmd_peers(const struct options *o, char **args)
{
	(void)args;
	return listing_show(&PEERS, o);
}

int
cmd_disconnect(const struct options *o, char **args)
{
	struct answer answer;
	uint64_t n;
	int r = call_once(
	    o, "io.rwriter.Disconnect", json_pack("{s:o}", "peer", call_text(args[0])), &answer);

	if (r != STATUS_DONE)
		return r;
	n = number_at(answer.parameters, "connections");
	if (!o->json)
		printf("%s: disconnected, %" PRIu64 " connection%s ended\n", args[0], n,
		    n == 1 ? "" : "s");
	answer_done(&answer);
	return STATUS_DONE;
}
