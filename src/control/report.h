/* report.h -- views as JSON: the types of io.rwriter.varlink
 *
 * Each returns a new object, or NULL when memory was short.
 */

#pragma once

#include <jansson.h>

#include "core/flight.h"
#include "core/view.h"

json_t *report_text(const char *s); /* "": null; what is no UTF-8 is made so */
json_t *report_flight(const struct flight_record *r);
/* last_hook: what its last program did, "" for nothing. */
json_t *report_region(const struct region_view *v, const char *last_hook);
json_t *report_peer(const struct peer_view *v);
json_t *report_listener(const struct listen_view *v);
json_t *report_transfer(const struct transfer_view *v);
/* cursor: where the next event will be. */
json_t *report_event(const struct event_view *v, const char *cursor);
/* lists: arrays that are taken over. */
json_t *report_status(const struct status_view *v, const char *version, const char *cursor,
    json_t *listeners, json_t *notes);
