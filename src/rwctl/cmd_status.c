/* cmd_status.c -- rwctl status, reload */

#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "rwctl/call.h"

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
	for (size_t i = 0; i < json_array_size(list);) {
		const json_t *first = json_array_get(list, i), *next;
		bool host_only = json_is_true(json_object_get(first, "hostOnly"));

		printf("  listen %s  %s  ", text_at(first, "name"), text_at(first, "address"));
		print_fabric(first);
		while ((next = json_array_get(list, ++i)) != NULL && same_listener(first, next)) {
			printf(", ");
			print_fabric(next);
		}
		printf("   accepts: %s\n", host_only ? "this host only" : "its allow lines");
	}
}

/* Only when there is something to wonder about; what was wrong about keys is in --json. */
static void
print_refused(const json_t *s)
{
	uint64_t address = number_at(s, "refusedAddress"), busy = number_at(s, "refusedBusy");
	uint64_t other = number_at(s, "refusedOther");
	uint64_t key = number_at(s, "refusedKeyUnknown") + number_at(s, "refusedKeyWrong") +
		       number_at(s, "refusedKeyNames") + number_at(s, "refusedKeyMissing");

	if (address + busy + key + other > 0)
		printf("  refused by address %" PRIu64 "   by key %" PRIu64 "   busy %" PRIu64
		       "   other %" PRIu64 "\n",
		    address, key, busy, other);
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
	print_refused(s);
	json_array_foreach (json_object_get(s, "notes"), i, note) {
		printf("  note   %s\n", json_string_value(note));
	}
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
