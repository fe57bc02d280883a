/* refusal.h -- saying no to a stranger: what he is told, what the log is told, how soon and how
 * often
 *
 * Whatever is wrong with a key looks alike to the peer: code KEY and one text, by reject or DENY.
 * The log and the counters of status tell the cases apart. An address that fails again and again is
 * answered later and later; the log hears of it at most once a minute.
 */

#pragma once

#include <stdint.h>

#include "base/limits.h"
#include "core/view.h"
#include "wire/rwp.h"

struct core;
struct fabric_conn;
struct fabric_info;
struct refusals;

struct refusal {
	enum refused cause;
	unsigned code; /* enum rwp_code */
	uint32_t retry_ms;
	char text[LIMIT_REASON + 1]; /* what the peer is told */
	char log[LIMIT_TEXT + 1];    /* what the log is told instead; "": the same */
};

/* REFUSED_OTHER unless the code has a cause of its own. */
void refusal_set(struct refusal *r, unsigned code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Something about the key; what is for the log alone. */
void refusal_set_key(struct refusal *r, enum refused cause, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

int refusals_new(struct core *core, struct refusals **ret); /* 0 or -ENOMEM */
/* Nothing is held back any more. Accepts NULL, returns NULL. */
struct refusals *refusals_free(struct refusals *all);

/* Counts and logs a refusal that is told in other ways than by reject. */
void refusal_note(struct core *core, const struct sockaddr *from, const struct refusal *r);
/* Counts, logs and rejects, perhaps later. The connection is freed when its CLOSED comes (core.c),
 * which calls refusal_closed(). */
void refusal_reject(struct core *core, struct fabric_conn *conn, const struct fabric_info *info,
    const struct refusal *r);
void refusal_closed(struct core *core, const struct fabric_conn *conn);
/* What is held back is rejected now. */
void refusal_flush(struct core *core);

/* One more of a cause that is logged by others. */
void refusal_tally(struct core *core, enum refused cause);
uint64_t refusal_count(const struct core *core, enum refused cause);
