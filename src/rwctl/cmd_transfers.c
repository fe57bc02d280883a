/* cmd_transfers.c -- rwctl transfers */

#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/text.h"
#include "rwctl/call.h"
#include "rwctl/interrupt.h"
#include "rwctl/listing.h"

#define PAUSE_MS 1000

static const struct column COLUMNS[] = {
    {"ID", COLUMN_NUMBER},
    {"PEER", COLUMN_TEXT},
    {"NAME", COLUMN_LONG},
    {"STATE", COLUMN_TEXT},
    {"SENT", COLUMN_NUMBER},
    {"OF", COLUMN_NUMBER},
    {"TIME", COLUMN_NUMBER},
    {"LOST", COLUMN_NUMBER},
    {"FABRIC", COLUMN_TEXT},
    {"DEVICE", COLUMN_TEXT},
    {"WHY", COLUMN_NOTE},
};

#define N_COLUMNS (sizeof(COLUMNS) / sizeof(COLUMNS[0]))

static void
add_transfer(struct table *table, const json_t *t)
{
	char id[24], sent[TEXT_SIZE_MAX], of[TEXT_SIZE_MAX] = "", time[TEXT_TIME_MAX], lost[24];

	snprintf(id, sizeof(id), "%" PRIu64, number_at(t, "id"));
	snprintf(lost, sizeof(lost), "%" PRIu64, number_at(t, "reconnects"));
	if (json_is_integer(json_object_get(t, "length")))
		text_human_size(of, number_at(t, "length"));
	table_row(table, (const char *[N_COLUMNS]){id, text_at(t, "peer"), text_at(t, "name"),
			     text_at(t, "state"), text_human_size(sent, number_at(t, "sent")), of,
			     text_human_time(time, number_at(t, "durationNs")), lost,
			     text_at(t, "fabric"), text_at(t, "device"), text_at(t, "text")});
}

static const struct listing TRANSFERS = {
    .method = "io.rwriter.ListTransfers",
    .key = "transfers",
    .columns = COLUMNS,
    .n_columns = N_COLUMNS,
    .add = add_transfer,
};

/* Over and over, until it is interrupted, which is no failure. */
static int
watch(const struct options *o)
{
	int status;

	do {
		fputs("\033[H\033[2J", stdout);
		status = listing_show(&TRANSFERS, o);
		fflush(stdout);
	} while (status == STATUS_DONE && interrupt_poll(NULL, 0, PAUSE_MS) != -EINTR);
	return status;
}

int
cmd_transfers(const struct options *o, char **args)
{
	(void)args;
	return isatty(STDOUT_FILENO) && !o->json ? watch(o) : listing_show(&TRANSFERS, o);
}
