/* events.h -- io.rwriter.Events: what happens, kept for a while and read by many
 *
 * The newest LIMIT_EVENTS are kept. Every reader goes through them at his own pace; one who is too
 * slow loses the oldest and is told how many. Nobody waits for a reader. A cursor says where a
 * reader is, so that he can go on from there with another call.
 */

#pragma once

#include <stdbool.h>

#include "control/varlink.h"
#include "core/view.h"

#define EVENTS_CURSOR_MAX 40

struct core;
struct events;

int events_new(const struct core *core, struct events **ret); /* 0 or -ENOMEM */
/* After the clients have gone. Accepts NULL, returns NULL. */
struct events *events_free(struct events *events);

void events_add(struct events *events, const struct event_view *v);
/* Where the next event will be. */
const char *events_cursor(const struct events *events, char buf[EVENTS_CURSOR_MAX]);
/* What the last program that ran for the region did, as far as that is known; else "". */
const char *events_last_hook(const struct events *events, uint32_t region_id);

/* Answers the call, which has `more`, with every event from its cursor on, for ever. False: its
 * cursor is none. */
bool events_read(struct events *events, struct varlink_call *call);
