/* cmd_status.c -- rwctl status, peers, disconnect, reload */

#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "rwctl/age.h"
#include "rwctl/call.h"
#include "rwctl/table.h"

/* ---- status ---- */

static bool
same_listener(const json_t *a, const json_t *b)
{
	return strcmp(text_at(a, "name"), text_at(b, "name")) == 0 &&
	       strcmp(text_at(a, "address"), text_at(b, "address")) == 0;
}

/* "verbs mlx5_0", or "verbs (down: no device has this address)". */
static void
print_fabric(const json_t *listener)
{
	const char *fabric = text_at(listener, "fabric"), *detail = text_at(listener, "detail");
	bool named = strncmp(detail, fabric, strlen(fabric)) == 0; /* the detail begins with it */

	if (!json_is_true(json_object_get(listener, "up")))
		printf("%s (down%s%s)", fabric, detail[0] != '\0' ? ": " : "", detail);
	else if (named || detail[0] == '\0')
		printf("%s", named ? detail : fabric);
	else
		printf("%s %s", fabric, detail);
}

/* A line for each section and address, with all its fabrics. */
static void
print_listeners(const json_t *list)
{
	const json_t *before = NULL, *listener;
	size_t i;

	json_array_foreach(list, i, listener)
	{
		if (before != NULL && same_listener(before, listener)) {
			printf(", ");
		} else {
			if (before != NULL)
				putchar('\n');
			printf("  listen %s  %s  ", text_at(listener, "name"),
			    text_at(listener, "address"));
		}
		print_fabric(listener);
		before = listener;
		if (i + 1 == json_array_size(list) ||
		    !same_listener(listener, json_array_get(list, i + 1)))
			printf("   accepts: %s", json_is_true(json_object_get(listener, "hostOnly"))
						     ? "this host only"
						     : "its allow lines");
	}
	if (before != NULL)
		putchar('\n');
}

static void
print_status(const json_t *s)
{
	char up[TEXT_TIME_MAX], used[TEXT_SIZE_MAX], limit[TEXT_SIZE_MAX];
	const json_t *note;
	size_t i;

	printf("rwriterd %s on %s: %s, up %s\n", text_at(s, "version"), text_at(s, "name"),
	    text_at(s, "state"), text_human_time(up, number_at(s, "upNs")));
	print_listeners(json_object_get(s, "listeners"));
	printf("  memory %s of %s   regions %" PRIu64 "   connections %" PRIu64
	       "   transfers %" PRIu64 "\n",
	    text_human_size(used, number_at(s, "memoryUsed")),
	    text_human_size(limit, number_at(s, "memoryLimit")), number_at(s, "regions"),
	    number_at(s, "connections"), number_at(s, "transfers"));
	json_array_foreach(json_object_get(s, "notes"), i, note)
	    printf("  note   %s\n", json_string_value(note));
}

int
cmd_status(const struct options *o, char **args)
{
	struct answer answer;
	int r = call_once(o, "io.rwriter.GetStatus", json_object(), &answer);

	(void)args;
	if (r != STATUS_DONE)
		return r;
	if (!o->json)
		print_status(answer.parameters);
	answer_done(&answer);
	return STATUS_DONE;
}

/* ---- peers ---- */

static const struct column PEER_COLUMNS[] = {
    {"PEER", false},
    {"NAME", false},
    {"ADDRESS", false},
    {"WAY", false},
    {"STATE", false},
    {"FABRIC", false},
    {"DEVICE", false},
    {"AGE", true},
    {"DONE", true},
    {"QUEUED", true},
    {"LAST ERROR", false},
};

#define N_PEER_COLUMNS (sizeof(PEER_COLUMNS) / sizeof(PEER_COLUMNS[0]))

static void
add_peer(struct table *table, const json_t *p)
{
	char age[AGE_MAX], done[24], queued[24];

	snprintf(done, sizeof(done), "%" PRIu64, number_at(p, "transfers"));
	snprintf(queued, sizeof(queued), "%" PRIu64, number_at(p, "queued"));
	table_row(
	    table, (const char *[N_PEER_COLUMNS]){text_at(p, "name"), text_at(p, "claimedName"),
		       text_at(p, "address"), text_at(p, "direction"), text_at(p, "state"),
		       text_at(p, "fabric"), text_at(p, "device"),
		       age_since(age, text_at(p, "since")), done, queued, text_at(p, "lastError")});
}

int
cmd_peers(const struct options *o, char **args)
{
	struct answer answer;
	struct table *table;
	const json_t *list, *peer;
	size_t i;
	int r = call_once(o, "io.rwriter.ListPeers", json_object(), &answer);

	(void)args;
	if (r != STATUS_DONE)
		return r;
	list = json_object_get(answer.parameters, "peers");
	if (!o->json && json_array_size(list) == 0)
		puts("no peers");
	else if (!o->json) {
		table = table_new(PEER_COLUMNS, N_PEER_COLUMNS);
		json_array_foreach(list, i, peer) add_peer(table, peer);
		r = table_print(table) ? STATUS_DONE : STATUS_FAILED;
	}
	answer_done(&answer);
	return r;
}

/* ---- disconnect, reload ---- */

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

int
cmd_reload(const struct options *o, char **args)
{
	struct answer answer;
	int r = call_once(o, "io.rwriter.Reload", json_object(), &answer);

	(void)args;
	if (r != STATUS_DONE)
		return r;
	if (!o->json)
		puts("reloaded");
	answer_done(&answer);
	return STATUS_DONE;
}
