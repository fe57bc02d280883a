/* refusal.c -- saying no to a stranger */

#include "config.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "core/event.h"
#include "core/priv.h"
#include "core/refusal.h"
#include "core/suspects.h"

/* The one text for all that can be wrong about a key. */
#define KEY_TEXT "the key is missing, unknown, wrong, or not for this: the log there says which"

struct held {                     /* a reject that leaves later */
	struct fabric_conn *conn; /* NULL: free */
	uint64_t due;             /* loop_now() */
	uint8_t data[sizeof(struct rwp_reject)];
};

struct refusals {
	struct suspects suspects;
	struct held held[LIMIT_HELD_REJECTS];
	struct loop_timer *timer; /* the earliest of them */
	uint64_t counts[REFUSED_CAUSES];
};

/* ---- making ---- */

static enum refused
cause_of(unsigned code)
{
	switch (code) {
	case RWP_E_ADDRESS:
		return REFUSED_ADDRESS;
	case RWP_E_BUSY:
		return REFUSED_BUSY;
	default:
		return REFUSED_OTHER;
	}
}

void
refusal_set(struct refusal *r, unsigned code, const char *fmt, ...)
{
	va_list ap;

	r->code = code;
	r->cause = cause_of(code);
	va_start(ap, fmt);
	vsnprintf(r->text, sizeof(r->text), fmt, ap);
	va_end(ap);
}

void
refusal_set_key(struct refusal *r, enum refused cause, const char *fmt, ...)
{
	va_list ap;

	refusal_set(r, RWP_E_KEY, KEY_TEXT);
	r->cause = cause;
	va_start(ap, fmt);
	vsnprintf(r->log, sizeof(r->log), fmt, ap);
	va_end(ap);
}

/* ---- counting and logging ---- */

/* A stranger's mistake, rather than our own lack of room. */
static bool
is_suspicious(const struct refusal *r)
{
	return r->code == RWP_E_ADDRESS || r->code == RWP_E_KEY;
}

static void
log_refusal(struct suspect *suspect, const struct sockaddr *from, const struct refusal *r)
{
	char address[TEXT_ADDRESS_MAX], more[64] = "";
	unsigned unlogged;

	if (!suspect_may_log(suspect, loop_now(), &unlogged))
		return;
	if (unlogged > 0)
		snprintf(more, sizeof(more), " (and %u refusals more since the last such line)",
		    unlogged);
	log_warning("%s: refused: %s%s", text_address(address, from),
	    r->log[0] != '\0' ? r->log : r->text, more);
}

/* Returns by how long an answer is to be late. */
static uint64_t
note(struct refusals *all, const struct sockaddr *from, const struct refusal *r)
{
	struct suspect *suspect = suspects_find(&all->suspects, from, loop_now());

	all->counts[r->cause]++;
	log_refusal(suspect, from, r);
	return is_suspicious(r) ? suspect_failed(suspect) : 0;
}

void
refusal_note(struct core *core, const struct sockaddr *from, const struct refusal *r)
{
	note(core->refusals, from, r);
	event_refused(core, from, r->code, r->log[0] != '\0' ? r->log : r->text);
}

void
refusal_tally(struct core *core, enum refused cause)
{
	core->refusals->counts[cause]++;
}

uint64_t
refusal_count(const struct core *core, enum refused cause)
{
	return core->refusals->counts[cause];
}

/* ---- rejecting ---- */

static void
send_reject(struct fabric_conn *conn, const uint8_t data[sizeof(struct rwp_reject)])
{
	conn->fabric->ops->reject(conn, data, sizeof(struct rwp_reject));
}

/* Those that are due leave, and the timer is set for the next. */
static void
on_timer(void *arg)
{
	struct refusals *all = arg;
	uint64_t now = loop_now(), next = UINT64_MAX;

	for (struct held *h = all->held; h < all->held + LIMIT_HELD_REJECTS; h++) {
		struct fabric_conn *conn = h->conn;

		if (conn != NULL && h->due <= now) {
			h->conn = NULL;
			send_reject(conn, h->data);
		} else if (conn != NULL && h->due < next) {
			next = h->due;
		}
	}
	if (next != UINT64_MAX)
		loop_timer_set(all->timer, next - now);
}

static struct held *
find_held(struct refusals *all, const struct fabric_conn *conn)
{
	for (struct held *h = all->held; h < all->held + LIMIT_HELD_REJECTS; h++)
		if (h->conn == conn)
			return h;
	return NULL;
}

static void
reject_later(struct refusals *all, struct fabric_conn *conn,
    const uint8_t data[sizeof(struct rwp_reject)], uint64_t wait)
{
	struct held *h = wait > 0 ? find_held(all, NULL) : NULL;

	if (h == NULL) { /* also when too many are held: memory counts for more than manners */
		send_reject(conn, data);
		return;
	}
	h->conn = conn;
	h->due = loop_now() + wait;
	memcpy(h->data, data, sizeof(h->data));
	on_timer(all);
}

void
refusal_reject(struct core *core, struct fabric_conn *conn, const struct fabric_info *info,
    const struct refusal *r)
{
	struct rwp_reject reject = {
	    .version_min = RWP_VERSION,
	    .version_max = RWP_VERSION,
	    .fabric = info->kind,
	    .reason = r->code,
	    .text_len = strlen(r->text),
	    .retry_after_ms = r->retry_ms,
	};
	uint64_t wait = note(core->refusals, (const struct sockaddr *)&info->remote, r);
	uint8_t data[sizeof(reject)];

	event_refused(core, (const struct sockaddr *)&info->remote, r->code,
	    r->log[0] != '\0' ? r->log : r->text);
	memcpy(reject.text, r->text, reject.text_len);
	rwp_reject_encode(&reject, data);
	core->orphans++;
	conn->owner = NULL;
	reject_later(core->refusals, conn, data, core->stopping ? 0 : wait);
}

void
refusal_closed(struct core *core, const struct fabric_conn *conn)
{
	struct held *h = find_held(core->refusals, conn);

	if (h != NULL)
		h->conn = NULL;
}

void
refusal_flush(struct core *core)
{
	for (unsigned i = 0; i < LIMIT_HELD_REJECTS; i++)
		core->refusals->held[i].due = 0;
	on_timer(core->refusals);
}

/* ---- life ---- */

int
refusals_new(struct core *core, struct refusals **ret)
{
	struct refusals *all = calloc(1, sizeof(*all));

	if (all == NULL || loop_timer_new(core->env.loop, on_timer, all, &all->timer) < 0) {
		free(all);
		return -ENOMEM;
	}
	*ret = all;
	return 0;
}

struct refusals *
refusals_free(struct refusals *all)
{
	if (all == NULL)
		return NULL;
	loop_timer_free(all->timer);
	free(all);
	return NULL;
}
