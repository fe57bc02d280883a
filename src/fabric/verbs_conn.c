/* verbs_conn.c -- one connection: its states, its life and its end
 *
 *   active:  RESOLVING > ROUTING > RESOLVED > CONNECTING \
 *                                                          > ESTABLISHED > ENDING > CLOSED
 *   passive:                      REQUESTED > ACCEPTING  /
 *
 * Every state before ENDING may go to ENDING. verbs_cm.c moves a connection forward.
 */

#include "config.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "fabric/verbs.h"
#include "wire/rwp.h"

/* How long the end waits for what may never come: an event that explains it, the peer's answer to
 * ours, the return of rdma_connect before it is interrupted (again). */
#define GOODBYE_NS (100 * NSEC_PER_MSEC)

static const char *const STATES[] = {
    [CONN_RESOLVING] = "resolving",
    [CONN_ROUTING] = "routing",
    [CONN_RESOLVED] = "resolved",
    [CONN_CONNECTING] = "connecting",
    [CONN_REQUESTED] = "requested",
    [CONN_ACCEPTING] = "accepting",
    [CONN_ESTABLISHED] = "established",
    [CONN_ENDING] = "ending",
    [CONN_CLOSED] = "closed",
};

void
verbs_conn_set_state(struct verbs_conn *c, enum conn_state state)
{
	char peer[TEXT_ADDRESS_MAX];

	log_debug("verbs %s: %s > %s",
	    text_address_port(peer, (const struct sockaddr *)&c->info.remote), STATES[c->state],
	    STATES[state]);
	c->state = state;
}

const char *
verbs_conn_state_name(const struct verbs_conn *c)
{
	return STATES[c->state];
}

/* ---- the end ---- */

static void
begin_end(struct verbs_conn *c, enum fabric_cause cause)
{
	c->cause = cause;
	verbs_conn_set_state(c, CONN_ENDING);
}

/* A second cause counts only where the first is a guess. */
static bool
may_end(const struct verbs_conn *c, enum fabric_cause cause)
{
	if (c->state == CONN_ENDING)
		return c->cause == FABRIC_CAUSE_UNKNOWN && cause != FABRIC_CAUSE_UNKNOWN;
	return c->state != CONN_CLOSED;
}

void
verbs_conn_end(struct verbs_conn *c, enum fabric_cause cause, const char *fmt, ...)
{
	va_list ap;

	if (!may_end(c, cause))
		return;
	va_start(ap, fmt);
	vsnprintf(c->detail, sizeof(c->detail), fmt, ap);
	va_end(ap);
	begin_end(c, cause);
	verbs_defer(c->verbs, &c->closing);
}

static enum fabric_cause
errno_cause(int error)
{
	switch (error) {
	case -ECONNREFUSED:
		return FABRIC_CAUSE_REFUSED;
	case -ETIMEDOUT:
	case -EHOSTUNREACH:
	case -ENETUNREACH:
		return FABRIC_CAUSE_TIMEOUT;
	case -ECONNRESET:
	case -ENOTCONN:
		return FABRIC_CAUSE_PEER;
	case -EPROTO:
		return FABRIC_CAUSE_PROTOCOL;
	default:
		return FABRIC_CAUSE_DEVICE;
	}
}

void
verbs_conn_end_errno(struct verbs_conn *c, const char *what, int error)
{
	verbs_conn_end(c, errno_cause(error), "%s: %s", what, strerror(-error));
}

void
verbs_conn_end_unexplained(struct verbs_conn *c, const char *detail)
{
	if (!may_end(c, FABRIC_CAUSE_UNKNOWN))
		return;
	snprintf(c->detail, sizeof(c->detail), "%s", detail);
	begin_end(c, FABRIC_CAUSE_UNKNOWN);
	loop_timer_set(c->timer, GOODBYE_NS);
}

void
verbs_conn_end_wait(struct verbs_conn *c)
{
	if (c->state == CONN_ENDING)
		verbs_defer(c->verbs, &c->closing);
}

/* Both sides say goodbye; that the connection is already closing (EINVAL) is fine. */
static void
hang_up(struct verbs_conn *c)
{
	if (c->id == NULL || c->id->qp == NULL || c->hung_up)
		return;
	c->hung_up = true;
	rdma_disconnect(c->id);
}

void
verbs_conn_release(struct verbs_conn *c)
{
	if (c->state != CONN_CLOSED || c->n_mems > 0 || c->shaking)
		return;
	if (c->pd != NULL)
		ibv_dealloc_pd(c->pd);
	c->pd = NULL;
	device_put(c);
	if (c->id != NULL)
		rdma_destroy_id(c->id);
	c->id = NULL;
	c->io = loop_io_free(c->io);
	if (c->channel != NULL)
		rdma_destroy_event_channel(c->channel);
	c->channel = NULL;
}

static void
emit_closed(struct verbs_conn *c)
{
	struct fabric_event event = {
	    .type = FABRIC_CLOSED,
	    .conn = &c->base,
	    .cause = c->cause,
	    .detail = c->detail,
	    .data = c->word_len > 0 ? c->word : NULL,
	    .data_len = c->word_len,
	};

	verbs_emit(c->verbs, &event);
}

void
verbs_conn_finish(struct verbs_conn *c)
{
	c->shaking = false;
	loop_undefer(&c->closing);
	loop_timer_clear(c->timer);
	list_del(&c->lingering);
	hang_up(c);
	queue_close(c);
	verbs_conn_release(c);
	if (c->freed)
		verbs_bury(c->verbs, &c->grave);
}

/* A handshake that is on is left to end by itself, with the queue pair disabled, which is as good
 * for both sides: on an iWARP device, destroying the queue pair or the id blocks until the peer
 * answers or 10 s have passed; on others, an acceptance taken back crosses the peer's last word,
 * and the peer would believe in the connection for ever. The rest is done when the CM says that the
 * handshake is over; conn_free() may have come by then. */
static void
close_conn(struct verbs_conn *c)
{
	if (c->state != CONN_ENDING)
		return;
	if (!join_cancel(c)) {
		loop_timer_set(c->timer, GOODBYE_NS);
		return;
	}
	verbs_conn_set_state(c, CONN_CLOSED);
	loop_timer_clear(c->timer);
	if (c->shaking)
		queue_disable(c);
	else
		verbs_conn_finish(c);
	if (c->shaking && !c->device->iwarp)
		loop_timer_set(c->timer, GOODBYE_NS);
	emit_closed(c);
}

static void
end_or_finish(struct verbs_conn *c)
{
	if (c->state == CONN_CLOSED)
		verbs_conn_finish(c);
	else
		close_conn(c);
}

static void
on_closing(struct loop_task *task)
{
	end_or_finish(container_of(task, struct verbs_conn, closing));
}

static void
on_timer(void *arg)
{
	end_or_finish(arg);
}

void
verbs_conn_end_handshake(struct verbs_conn *c)
{
	if (c->shaking && c->state == CONN_CLOSED)
		verbs_defer(c->verbs, &c->closing);
	c->shaking = false;
}

void
verbs_stop(struct fabric_conn *base)
{
	struct verbs_conn *c = (struct verbs_conn *)base;

	if (c->state == CONN_ENDING) {
		verbs_conn_end_wait(c);
	} else if (c->state == CONN_ESTABLISHED) {
		snprintf(c->detail, sizeof(c->detail), "stopped");
		begin_end(c, FABRIC_CAUSE_LOCAL);
		hang_up(c);
		loop_timer_set(c->timer, GOODBYE_NS);
	} else {
		if (c->state == CONN_REQUESTED)
			rdma_reject(c->id, NULL, 0);
		verbs_conn_end(c, FABRIC_CAUSE_LOCAL, "stopped");
	}
}

/* ---- life ---- */

static void
on_grave(struct loop_task *task)
{
	struct verbs_conn *c = container_of(task, struct verbs_conn, grave);

	loop_timer_free(c->timer);
	free(c);
}

struct verbs_conn *
verbs_conn_new(struct verbs *v, enum conn_state state, void *owner)
{
	struct verbs_conn *c = calloc(1, sizeof(*c));

	if (c == NULL)
		return NULL;
	c->base = (struct fabric_conn){.fabric = &v->base, .owner = owner};
	c->verbs = v;
	c->state = state;
	c->info.fabric = "verbs";
	c->info.kind = RWP_FABRIC_VERBS;
	c->info.polled = true;
	list_init(&c->node);
	list_init(&c->lingering);
	loop_task_init(&c->closing, on_closing);
	loop_task_init(&c->grave, on_grave);
	if (loop_timer_new(v->base.env.loop, on_timer, c, &c->timer) < 0) {
		free(c);
		return NULL;
	}
	v->n_conns++;
	return c;
}

void
verbs_conn_note_ends(struct verbs_conn *c)
{
	c->info.local = c->id->route.addr.src_storage;
	c->info.remote = c->id->route.addr.dst_storage;
	snprintf(c->info.device, sizeof(c->info.device), "%s",
	    ibv_get_device_name(c->id->verbs->device));
	c->info.kind = verbs_is_iwarp(c->id->verbs) ? RWP_FABRIC_VERBS_IWARP : RWP_FABRIC_VERBS;
}

int
verbs_conn_prepare(struct verbs_conn *c)
{
	int r = 0;

	if (c->id == NULL || c->id->verbs == NULL || c->state >= CONN_ENDING)
		return -ENOTCONN;
	if (c->pd != NULL)
		return 0;
	if (c->device == NULL)
		r = device_get(c->verbs, c);
	if (r == 0) {
		c->pd = ibv_alloc_pd(c->id->verbs);
		r = c->pd != NULL ? 0 : -errno;
	}
	if (r < 0)
		verbs_conn_end(c, FABRIC_CAUSE_DEVICE, "%s: cannot set up a protection domain: %s",
		    c->info.device, strerror(-r));
	return r;
}

void
verbs_describe(struct fabric_conn *base, struct fabric_info *ret)
{
	struct verbs_conn *c = (struct verbs_conn *)base;

	c->info.receive_completions += queue_count_receives(c);
	*ret = c->info;
}

void
verbs_conn_free(struct fabric_conn *base)
{
	struct verbs_conn *c = (struct verbs_conn *)base;

	assert(c->state == CONN_CLOSED && c->n_mems == 0);
	c->verbs->n_conns--;
	c->freed = true;
	if (c->shaking)
		list_add_tail(&c->verbs->lingering, &c->lingering);
	else
		verbs_conn_finish(c);
}
