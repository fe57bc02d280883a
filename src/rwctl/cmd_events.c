/* cmd_events.c -- rwctl events, wait-arrival */

#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "rwctl/call.h"
#include "rwctl/deadline.h"

/* What to do with an event; lost: that were left out before it. True: that was the last. */
typedef bool event_fn(const struct options *o, json_t *event, uint64_t lost);

static int
take(struct answer *answer, const struct options *o, event_fn *fn, bool *ret_last)
{
	int status = STATUS_DONE;

	if (answer->error != NULL)
		status = answer_failed(answer, o);
	else
		*ret_last = fn(o, json_object_get(answer->parameters, "event"),
		    number_at(answer->parameters, "lost"));
	answer_done(answer);
	return status;
}

static int
explain(const struct call *call, const struct options *o, int error)
{
	char time[TEXT_TIME_MAX];

	if (error != -ETIME)
		return call_explain(call, error);
	complain("nothing arrived within %s", text_human_time(time, o->timeout_ns));
	return STATUS_DEADLINE;
}

/* Events from --since on, or from now on, until fn has had enough or --timeout is up. */
static int
follow(const struct options *o, event_fn *fn)
{
	struct deadline deadline = deadline_in(o->timeout_ns);
	json_t *parameters = json_object();
	struct call *call;
	bool last = false;
	int status = call_open(o, &call);

	if (status != STATUS_DONE) {
		json_decref(parameters);
		return status;
	}
	if (o->since != NULL)
		json_object_set_new(parameters, "since", call_text(o->since));
	call_send(call, "io.rwriter.Events", parameters, true, NULL, 0);
	while (status == STATUS_DONE && !last) {
		struct answer answer;
		int left = deadline_left_ms(deadline);
		int r = left == 0 ? -ETIME : call_receive(call, NULL, left, &answer);

		status = r < 0 ? explain(call, o, r) : take(&answer, o, fn, &last);
	}
	call_close(call);
	return status;
}

/* ---- events ---- */

static void
print_line(const json_t *value)
{
	json_dumpf(value, stdout, JSON_COMPACT);
	putchar('\n');
	fflush(stdout);
}

static bool
print_event(const struct options *o, json_t *event, uint64_t lost)
{
	(void)o;
	if (lost > 0) {
		json_t *gap = json_pack("{s:s, s:I}", "event", "lost", "count", (json_int_t)lost);

		print_line(gap);
		json_decref(gap);
	}
	print_line(event);
	return ferror(stdout) != 0;
}

int
cmd_events(const struct options *o, char **args)
{
	(void)args;
	return follow(o, print_event);
}

/* ---- wait-arrival ---- */

static bool
is_wanted(const struct options *o, const json_t *event)
{
	const char *kind = text_at(event, "event");

	if (strcmp(kind, "arrival") != 0 && strcmp(kind, "stored") != 0)
		return false;
	return strcmp(text_at(event, "direction"), "in") == 0 &&
	       (o->region == NULL || strcmp(text_at(event, "region"), o->region) == 0) &&
	       (o->name == NULL || strcmp(text_at(event, "name"), o->name) == 0);
}

static void
print_arrival(const json_t *event)
{
	const char *path = text_at(event, "path");
	bool stored = strcmp(text_at(event, "event"), "stored") == 0;

	printf("%s from %s: %s, %" PRIu64 " bytes, region %" PRIu64 " (%s), crc32c %s",
	    text_at(event, "name"), text_at(event, "peer"), stored ? "stored durably" : "arrived",
	    number_at(event, "length"), number_at(event, "regionId"), text_at(event, "region"),
	    text_at(event, "crc32c"));
	printf("%s%s\n", path[0] != '\0' ? ", " : "", path);
}

static bool
await_arrival(const struct options *o, json_t *event, uint64_t lost)
{
	if (lost > 0)
		complain(
		    "%" PRIu64 " events are forgotten: an arrival may have been among them", lost);
	if (!is_wanted(o, event))
		return false;
	if (o->json)
		print_line(event);
	else
		print_arrival(event);
	return true;
}

int
cmd_wait_arrival(const struct options *o, char **args)
{
	(void)args;
	return follow(o, await_arrival);
}
