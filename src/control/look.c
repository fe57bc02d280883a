/* look.c -- the methods of io.rwriter that only look */

#include "config.h"

#include <stdio.h>
#include <string.h>

#include "control/events.h"
#include "control/look.h"
#include "control/report.h"
#include "core/core.h"

/* Adds item, which is taken over; without memory for it there is no list any more. */
static void
collect(json_t **list, json_t *item)
{
	if (json_array_append_new(*list, item) == 0)
		return;
	json_decref(*list);
	*list = NULL;
}

struct region_list {
	const struct events *events;
	json_t *list;
};

static void
add_region(void *arg, const struct region_view *v)
{
	struct region_list *regions = arg;

	collect(&regions->list, report_region(v, events_last_hook(regions->events, v->id)));
}

void
look_regions(const struct control_env *env, struct varlink_call *call)
{
	struct region_list regions = {env->events, json_array()};

	core_each_region(env->core, add_region, &regions);
	varlink_reply(call, json_pack("{s:o}", "regions", regions.list));
}

static void
add_transfer(void *arg, const struct transfer_view *v)
{
	collect(arg, report_transfer(v));
}

void
look_transfers(const struct control_env *env, struct varlink_call *call)
{
	json_t *list = json_array();

	core_each_transfer(env->core, add_transfer, &list);
	varlink_reply(call, json_pack("{s:o}", "transfers", list));
}

static void
add_name(void *arg, const char *peer)
{
	collect(arg, json_string(peer));
}

void
look_expand(const struct control_env *env, struct varlink_call *call)
{
	json_t *list = json_array();
	char error[LIMIT_TEXT];

	if (core_each_named(env->core, varlink_text(call, "peers"), add_name, &list, error,
		sizeof(error)) == 0) {
		varlink_reply(call, json_pack("{s:o}", "peers", list));
		return;
	}
	json_decref(list);
	varlink_fail(call, "io.rwriter.NoSuchPeers", "%s", error);
}

struct flight_list {
	const char *id; /* NULL: all */
	json_t *list;
};

static void
add_flight(void *arg, const struct flight_record *r)
{
	struct flight_list *flights = arg;
	json_t *flight = report_flight(r);
	const char *id = json_string_value(json_object_get(flight, "id"));

	if (flight == NULL || flights->id == NULL || strcmp(flights->id, id) == 0)
		collect(&flights->list, flight);
	else
		json_decref(flight);
}

void
look_explain(const struct control_env *env, struct varlink_call *call)
{
	struct flight_list flights = {varlink_text(call, "id"), json_array()};

	core_each_flight(env->core, add_flight, &flights);
	if (flights.id != NULL && flights.list != NULL && json_array_size(flights.list) == 0) {
		json_decref(flights.list);
		varlink_fail(call, "io.rwriter.NoSuchTransfer",
		    "%s: no transfer or arrival of this number is known (any more)", flights.id);
		return;
	}
	varlink_reply(call, json_pack("{s:o}", "flights", flights.list));
}

void
look_events(const struct control_env *env, struct varlink_call *call)
{
	if (!call->more)
		varlink_error(call, "org.varlink.service.ExpectedMore", json_object());
	else if (!events_read(env->events, call))
		varlink_error(call, "org.varlink.service.InvalidParameter",
		    json_pack("{s:s}", "parameter", "since"));
}

static void
add_peer(void *arg, const struct peer_view *v)
{
	collect(arg, report_peer(v));
}

void
look_peers(const struct control_env *env, struct varlink_call *call)
{
	json_t *list = json_array();

	core_each_peer(env->core, add_peer, &list);
	varlink_reply(call, json_pack("{s:o}", "peers", list));
}

struct listen_lists {
	const char *conf_file;
	json_t *listeners, *notes;
	char noted[LIMIT_NAME + 1]; /* the listen section that has its note */
};

static void
add_listener(void *arg, const struct listen_view *v)
{
	struct listen_lists *lists = arg;
	char note[LIMIT_TEXT];

	collect(&lists->listeners, report_listener(v));
	if (!v->host_only || strcmp(v->name, lists->noted) == 0)
		return;
	snprintf(note, sizeof(note),
	    "no other machine may write here yet: add \"allow = ADDRESS\" to [listen %s] in %s",
	    v->name, lists->conf_file);
	collect(&lists->notes, report_text(note));
	snprintf(lists->noted, sizeof(lists->noted), "%s", v->name);
}

void
look_status(const struct control_env *env, struct varlink_call *call)
{
	struct listen_lists lists = {env->conf_file, json_array(), json_array(), ""};
	char cursor[EVENTS_CURSOR_MAX];
	struct status_view status;

	core_status(env->core, &status);
	core_each_listen(env->core, add_listener, &lists);
	varlink_reply(call, report_status(&status, env->version, events_cursor(env->events, cursor),
				lists.listeners, lists.notes));
}
