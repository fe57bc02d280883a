/* event.h -- what happens, told to the observer: one line where it happens */

#pragma once

#include "core/view.h"

struct arrival;
struct core;
struct inbound;
struct outbound;
struct region;
struct sockaddr;
struct transfer;

/* code: enum rwp_code, or 0. What a stranger does before he is known is no connection to tell of.
 */
void event_inbound(struct inbound *in, enum event_kind kind, unsigned code, const char *text);
void event_outbound(struct outbound *ob, enum event_kind kind, unsigned code, const char *text);
void event_refused(struct core *core, const struct sockaddr *from, unsigned code, const char *text);
/* A verified arrival, or one that failed. */
void event_arrived(struct region *region);
void event_arrival_failed(struct arrival *a);
/* A transfer's end. */
void event_transfer(struct transfer *t);
