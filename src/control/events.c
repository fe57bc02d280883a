/* events.c -- io.rwriter.Events: what happens, kept for a while and read by many */

#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/list.h"
#include "base/text.h"
#include "control/events.h"
#include "control/report.h"
#include "core/core.h"

#define FIRST 1 /* the number of the first event */

struct events {
	char boot[17];
	uint64_t next;              /* the number of the next event */
	json_t *kept[LIMIT_EVENTS]; /* number n at n modulo LIMIT_EVENTS; NULL: no memory for it */
	struct list readers;
};

struct reader {
	struct list node;
	struct events *events;
	struct varlink_call *call; /* owns this, through cancelled */
	uint64_t at;               /* the number that it gets next */
	uint64_t lost;             /* since the last that it got */
};

/* ---- numbers and cursors ---- */

static uint64_t
oldest(const struct events *e)
{
	return e->next > LIMIT_EVENTS ? e->next - LIMIT_EVENTS : FIRST;
}

static const char *
print_cursor(const struct events *e, uint64_t number, char buf[EVENTS_CURSOR_MAX])
{
	snprintf(buf, EVENTS_CURSOR_MAX, "%s-%" PRIu64, e->boot, number);
	return buf;
}

const char *
events_cursor(const struct events *e, char buf[EVENTS_CURSOR_MAX])
{
	return print_cursor(e, e->next, buf);
}

/* Of another life of the daemon: all of this one is news. */
static int
parse_cursor(const struct events *e, const char *cursor, uint64_t *ret)
{
	const char *dash = strchr(cursor, '-');
	uint64_t number;

	if (strcmp(cursor, "start") == 0) {
		*ret = FIRST;
		return 0;
	}
	if (dash == NULL || dash - cursor != (ptrdiff_t)strlen(e->boot) ||
	    text_parse_uint(dash + 1, UINT64_MAX, &number) < 0)
		return -EINVAL;
	if (strncmp(cursor, e->boot, dash - cursor) != 0)
		number = FIRST;
	*ret = number < FIRST ? FIRST : number > e->next ? e->next : number;
	return 0;
}

/* ---- reading ---- */

static void
feed(struct reader *r)
{
	struct events *e = r->events;

	while (r->at < e->next && !varlink_congested(r->call)) {
		json_t *event;

		if (r->at < oldest(e)) {
			r->lost += oldest(e) - r->at;
			r->at = oldest(e);
		}
		event = e->kept[r->at++ % LIMIT_EVENTS];
		if (event == NULL) {
			r->lost++;
			continue;
		}
		varlink_continue(
		    r->call, json_pack("{s:O, s:I}", "event", event, "lost", (json_int_t)r->lost));
		r->lost = 0;
	}
}

static void
reader_drained(void *arg)
{
	feed(arg);
}

static void
reader_cancelled(void *arg)
{
	struct reader *r = arg;

	list_del(&r->node);
	free(r);
}

bool
events_read(struct events *e, struct varlink_call *call)
{
	const char *cursor = varlink_text(call, "since");
	uint64_t at = e->next;
	struct reader *r;

	if (cursor != NULL && parse_cursor(e, cursor, &at) < 0)
		return false;
	r = malloc(sizeof(*r));
	if (r == NULL) {
		varlink_reply(call, NULL);
		return true;
	}
	*r = (struct reader){.events = e, .call = call, .at = at};
	list_add_tail(&e->readers, &r->node);
	call->cancelled = reader_cancelled;
	call->drained = reader_drained;
	call->arg = r;
	feed(r);
	return true;
}

/* ---- keeping ---- */

void
events_add(struct events *e, const struct event_view *v)
{
	json_t **place = &e->kept[e->next % LIMIT_EVENTS];
	char cursor[EVENTS_CURSOR_MAX];
	struct reader *r;

	json_decref(*place);
	*place = report_event(v, print_cursor(e, e->next + 1, cursor));
	e->next++;
	list_for_each (r, &e->readers, struct reader, node)
		feed(r);
}

const char *
events_last_hook(const struct events *e, uint32_t region_id)
{
	for (uint64_t n = e->next; n-- > oldest(e);) {
		const json_t *event = e->kept[n % LIMIT_EVENTS];
		const char *kind = json_string_value(json_object_get(event, "event"));

		if (kind != NULL && strcmp(kind, "hook") == 0 &&
		    json_integer_value(json_object_get(event, "regionId")) == region_id)
			return json_string_value(json_object_get(event, "text"));
	}
	return "";
}

int
events_new(const struct core *core, struct events **ret)
{
	struct events *e = calloc(1, sizeof(*e));
	struct status_view status;

	if (e == NULL)
		return -ENOMEM;
	core_status(core, &status);
	for (int i = 0; i < 8; i++)
		snprintf(e->boot + 2 * i, 3, "%02x", status.boot_id[i]);
	e->next = FIRST;
	list_init(&e->readers);
	*ret = e;
	return 0;
}

struct events *
events_free(struct events *e)
{
	if (e == NULL)
		return NULL;
	for (unsigned i = 0; i < LIMIT_EVENTS; i++)
		json_decref(e->kept[i]);
	free(e);
	return NULL;
}
