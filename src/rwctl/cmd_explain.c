/* cmd_explain.c -- rwctl explain: where the time of a transfer or of an arrival went
 *
 *	7: model.bin -> b, arrived, 671088640 bytes in 134 ms
 *	  connect     1.0 ms  ###.................................
 */

#include "config.h"

#include <inttypes.h>
#include <langinfo.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "rwctl/call.h"
#include "rwctl/listing.h"

#define BAR 48

static uint64_t
whole_time(const json_t *flight)
{
	const json_t *phase;
	uint64_t whole = 0;
	size_t i;

	json_array_foreach (json_object_get(flight, "phases"), i, phase) {
		uint64_t at = number_at(phase, "atNs");

		whole = at > whole ? at : whole;
	}
	return whole;
}

/* ---- one picture ---- */

/* The part of the whole that lies between two times; what is short still shows. */
static void
print_bar(uint64_t from, uint64_t to, uint64_t whole)
{
	bool utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
	int begin = (int)((double)from / whole * BAR), end = (int)((double)to / whole * BAR);

	begin = begin >= BAR ? BAR - 1 : begin;
	end = end <= begin ? begin + 1 : end;
	for (int i = 0; i < BAR; i++)
		fputs(i < begin || i >= end ? (utf8 ? "·" : ".") : (utf8 ? "█" : "#"), stdout);
}

static void
print_phase(const json_t *phase, uint64_t whole)
{
	uint64_t at = number_at(phase, "atNs"), took = number_at(phase, "tookNs");
	char time[TEXT_TIME_MAX];

	printf("  %-10s  %8s  ", text_at(phase, "phase"), text_human_time(time, took));
	print_bar(at - took, at, whole);
	putchar('\n');
}

static void
print_flight(const json_t *f)
{
	bool in = strcmp(text_at(f, "direction"), "in") == 0;
	uint64_t whole = whole_time(f);
	char time[TEXT_TIME_MAX];
	const json_t *item;
	size_t i;

	printf("%s: %s %s %s, %s, %" PRIu64 " bytes in %s\n", text_at(f, "id"), text_at(f, "name"),
	    in ? "from" : "->", text_at(f, "peer"), text_at(f, "state"), number_at(f, "length"),
	    text_human_time(time, whole));
	json_array_foreach (json_object_get(f, "phases"), i, item) {
		print_phase(item, whole > 0 ? whole : 1);
	}
	json_array_foreach (json_object_get(f, "waits"), i, item) {
		if (number_at(item, "ns") > 0)
			printf("  waited %s for the %s\n",
			    text_human_time(time, number_at(item, "ns")), text_at(item, "for"));
	}
}

static int
show_one(const struct options *o, const char *id)
{
	struct answer answer;
	int r =
	    call_once(o, "io.rwriter.Explain", json_pack("{s:o}", "id", call_text(id)), &answer);

	if (r != STATUS_DONE)
		return r;
	if (!o->json)
		print_flight(json_array_get(json_object_get(answer.parameters, "flights"), 0));
	answer_done(&answer);
	return STATUS_DONE;
}

/* ---- all that are known ---- */

static const struct column COLUMNS[] = {
    {"ID", COLUMN_NUMBER},
    {"WAY", COLUMN_TEXT},
    {"PEER", COLUMN_TEXT},
    {"NAME", COLUMN_LONG},
    {"STATE", COLUMN_TEXT},
    {"SIZE", COLUMN_NUMBER},
    {"TIME", COLUMN_NUMBER},
};

#define N_COLUMNS (sizeof(COLUMNS) / sizeof(COLUMNS[0]))

static void
add_flight(struct table *table, const json_t *f)
{
	char size[TEXT_SIZE_MAX], time[TEXT_TIME_MAX];

	table_row(table, (const char *[N_COLUMNS]){text_at(f, "id"), text_at(f, "direction"),
			     text_at(f, "peer"), text_at(f, "name"), text_at(f, "state"),
			     text_human_size(size, number_at(f, "length")),
			     text_human_time(time, whole_time(f))});
}

static const struct listing FLIGHTS = {
    .method = "io.rwriter.Explain",
    .key = "flights",
    .columns = COLUMNS,
    .n_columns = N_COLUMNS,
    .add = add_flight,
};

int
cmd_explain(const struct options *o, char **args)
{
	return args[0] != NULL ? show_one(o, args[0]) : listing_show(&FLIGHTS, o);
}
