/* suspects.h -- addresses that were refused lately: how often, and what the log has heard of it
 *
 * A table of fixed size: whoever has failed longest ago makes room. An IPv6 address counts with all
 * others of its /64, of which one host can have any. Pure: no log, no clock of its own.
 */

#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/limits.h"

struct suspect {
	struct sockaddr_storage address;
	unsigned failures, unlogged;
	uint64_t refused_at, logged_at; /* loop_now(); 0: never */
};

struct suspects {
	struct suspect all[LIMIT_SUSPECTS];
};

/* The entry of this address, which is refused now (loop_now()); a new one if it has none. */
struct suspect *suspects_find(struct suspects *s, const struct sockaddr *address, uint64_t now);
/* One more failure: by how long its answer is to be late. The first few cost nothing. */
uint64_t suspect_failed(struct suspect *suspect);
/* Something to be logged: true at most once a minute; *ret_unlogged: how many were kept from the
 * log since the last time. */
bool suspect_may_log(struct suspect *suspect, uint64_t now, unsigned *ret_unlogged);
