/* verbs_cm.c -- one connection: its states, its CM events, its end
 *
 *   active:  RESOLVING > ROUTING > RESOLVED > CONNECTING \
 *                                                          > ESTABLISHED > ENDING > CLOSED
 *   passive:                      REQUESTED > ACCEPTING  /
 *
 * Every state before ENDING may go to ENDING. What can happen in a state is in the table of CM
 * events.
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

#define RESOLVE_TIMEOUT_MS 2000
/* How long the end waits for an event that explains it, or for the peer's answer to ours. It may
 * never come: the peer may be dead, and iWARP devices do not always send one. */
#define GOODBYE_NS  (100 * NSEC_PER_MSEC)
#define CANCEL_NS   (10 * NSEC_PER_MSEC) /* between two attempts to interrupt rdma_connect */
#define RETRY_COUNT 7                    /* the most there is: the core has deadlines of its own */

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

static void
set_state(struct verbs_conn *c, enum conn_state state)
{
	char peer[TEXT_ADDRESS_MAX];

	log_debug("verbs %s: %s > %s",
	    text_address_port(peer, (const struct sockaddr *)&c->info.remote), STATES[c->state],
	    STATES[state]);
	c->state = state;
}

/* ---- the end ---- */

static void
begin_end(struct verbs_conn *c, enum fabric_cause cause)
{
	c->cause = cause;
	set_state(c, CONN_ENDING);
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
conn_end(struct verbs_conn *c, enum fabric_cause cause, const char *fmt, ...)
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
conn_end_errno(struct verbs_conn *c, const char *what, int error)
{
	conn_end(c, errno_cause(error), "%s: %s", what, strerror(-error));
}

void
conn_end_unexplained(struct verbs_conn *c, const char *detail)
{
	if (!may_end(c, FABRIC_CAUSE_UNKNOWN))
		return;
	snprintf(c->detail, sizeof(c->detail), "%s", detail);
	begin_end(c, FABRIC_CAUSE_UNKNOWN);
	loop_timer_set(c->timer, GOODBYE_NS);
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
conn_release(struct verbs_conn *c)
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
conn_finish(struct verbs_conn *c)
{
	c->shaking = false;
	loop_undefer(&c->closing);
	list_del(&c->lingering);
	hang_up(c);
	queue_close(c);
	conn_release(c);
	if (c->freed)
		verbs_bury(c->verbs, &c->grave);
}

/* While an iWARP device shakes hands, destroying the queue pair or the id blocks until the peer
 * answers or 5 s have passed. Then the queue pair is disabled, which is as good for both sides, and
 * the rest is done when the CM says that the handshake is over; conn_free() may have come by then.
 */
static void
close_conn(struct verbs_conn *c)
{
	if (c->state != CONN_ENDING)
		return;
	if (!join_cancel(c)) {
		loop_timer_set(c->timer, CANCEL_NS);
		return;
	}
	loop_timer_clear(c->timer);
	set_state(c, CONN_CLOSED);
	if (c->shaking)
		queue_disable(c);
	else
		conn_finish(c);
	emit_closed(c);
}

static void
on_closing(struct loop_task *task)
{
	struct verbs_conn *c = container_of(task, struct verbs_conn, closing);

	if (c->state == CONN_CLOSED)
		conn_finish(c);
	else
		close_conn(c);
}

static void
on_timer(void *arg)
{
	close_conn(arg);
}

void
verbs_stop(struct fabric_conn *base)
{
	struct verbs_conn *c = (struct verbs_conn *)base;

	if (c->state == CONN_ESTABLISHED) {
		snprintf(c->detail, sizeof(c->detail), "stopped");
		begin_end(c, FABRIC_CAUSE_LOCAL);
		hang_up(c);
		loop_timer_set(c->timer, GOODBYE_NS);
		return;
	}
	if (c->state == CONN_REQUESTED)
		rdma_reject(c->id, NULL, 0);
	if (c->state == CONN_ENDING)
		verbs_defer(c->verbs, &c->closing);
	else
		conn_end(c, FABRIC_CAUSE_LOCAL, "stopped");
}

/* ---- life ---- */

static void
on_grave(struct loop_task *task)
{
	struct verbs_conn *c = container_of(task, struct verbs_conn, grave);

	loop_timer_free(c->timer);
	free(c);
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
		conn_finish(c);
}

static struct verbs_conn *
conn_new(struct verbs *v, enum conn_state state, void *owner)
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

/* What the id has learnt about both ends. */
static void
note_ends(struct verbs_conn *c)
{
	const struct sockaddr *local = rdma_get_local_addr(c->id);
	const struct sockaddr *remote = rdma_get_peer_addr(c->id);

	memcpy(&c->info.local, local, sizeof(c->id->route.addr.src_storage));
	memcpy(&c->info.remote, remote, sizeof(c->id->route.addr.dst_storage));
	snprintf(c->info.device, sizeof(c->info.device), "%s",
	    ibv_get_device_name(c->id->verbs->device));
	c->info.kind = verbs_is_iwarp(c->id->verbs) ? RWP_FABRIC_VERBS_IWARP : RWP_FABRIC_VERBS;
}

struct verbs_conn *
conn_new_passive(struct verbs *v, struct rdma_cm_id *id)
{
	struct verbs_conn *c = conn_new(v, CONN_REQUESTED, NULL);

	if (c == NULL)
		return NULL;
	c->id = id;
	id->context = c;
	note_ends(c);
	return c;
}

static void
on_channel(void *arg, unsigned events)
{
	struct verbs_conn *c = arg;

	(void)events;
	verbs_channel_drain(c->verbs, c->channel);
}

static int
start_resolving(struct verbs_conn *c, const struct sockaddr *to)
{
	int r = verbs_channel_new(c->verbs, on_channel, c, &c->channel, &c->io);

	if (r < 0)
		return r;
	if (rdma_create_id(c->channel, &c->id, c, RDMA_PS_TCP) != 0)
		return -errno;
	if (rdma_resolve_addr(c->id, NULL, (struct sockaddr *)to, RESOLVE_TIMEOUT_MS) != 0)
		return -errno;
	return 0;
}

static void
end_unresolved(struct verbs_conn *c, int error)
{
	char ip[TEXT_ADDRESS_MAX], devices[128];

	text_address(ip, (const struct sockaddr *)&c->info.remote);
	device_names(devices, sizeof(devices));
	if (error == -ENODEV || error == -EADDRNOTAVAIL)
		conn_end(c, FABRIC_CAUSE_DEVICE,
		    "no RDMA device leads to %s (RDMA devices here: %s); a machine reaches itself "
		    "by the "
		    "address of its device, not by 127.0.0.1",
		    ip, devices);
	else
		conn_end_errno(c, ip, error);
}

int
verbs_connect(struct fabric *f, const struct sockaddr *to, void *owner, struct fabric_conn **ret)
{
	struct verbs_conn *c = conn_new((struct verbs *)f, CONN_RESOLVING, owner);
	int r;

	if (c == NULL)
		return -ENOMEM;
	memcpy(&c->info.remote, to,
	    to->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in));
	c->active = true;
	r = start_resolving(c, to);
	if (r < 0)
		end_unresolved(c, r);
	*ret = &c->base;
	return 0;
}

void
verbs_describe(struct fabric_conn *base, struct fabric_info *ret)
{
	struct verbs_conn *c = (struct verbs_conn *)base;

	c->info.receive_completions += queue_count_receives(c);
	*ret = c->info;
}

/* ---- set-up ---- */

int
conn_prepare(struct verbs_conn *c)
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
		conn_end(c, FABRIC_CAUSE_DEVICE, "%s: cannot set up a protection domain: %s",
		    c->info.device, strerror(-r));
	return r;
}

/* We never read and nobody may read from us, but iWARP devices may shake hands with a read. */
static struct rdma_conn_param
conn_param(const struct verbs_conn *c, const void *data, size_t len)
{
	const struct ibv_device_attr *attr = &c->device->attr;

	return (struct rdma_conn_param){
	    .private_data = data,
	    .private_data_len = (uint8_t)len,
	    .responder_resources = attr->max_qp_rd_atom > 0,
	    .initiator_depth = attr->max_qp_init_rd_atom > 0,
	    .retry_count = RETRY_COUNT,
	};
}

int
verbs_request(struct fabric_conn *base, const void *data, size_t len)
{
	struct verbs_conn *c = (struct verbs_conn *)base;
	struct rdma_conn_param param;
	int r;

	if (c->state != CONN_RESOLVED)
		return -ENOTCONN;
	r = queue_open(c);
	if (r < 0)
		return r;
	param = conn_param(c, data, len);
	set_state(c, CONN_CONNECTING);
	if (c->device->iwarp)
		r = join_start(c, &param);
	else
		r = rdma_connect(c->id, &param) == 0 ? 0 : -errno;
	if (r < 0)
		conn_end_errno(c, "rdma_connect", r);
	return r;
}

void
conn_join_done(struct verbs_conn *c, int error)
{
	char peer[TEXT_ADDRESS_MAX];

	loop_io_set(c->io, LOOP_READ);
	c->shaking = error == 0;
	if (error < 0)
		conn_end_errno(
		    c, text_address_port(peer, (const struct sockaddr *)&c->info.remote), error);
	if (c->state == CONN_ENDING)
		verbs_defer(c->verbs, &c->closing);
}

int
verbs_accept(struct fabric_conn *base, const void *data, size_t len)
{
	struct verbs_conn *c = (struct verbs_conn *)base;
	struct rdma_conn_param param;
	int r;

	if (c->state != CONN_REQUESTED)
		return -ENOTCONN;
	r = queue_open(c);
	if (r < 0)
		return r;
	param = conn_param(c, data, len);
	set_state(c, CONN_ACCEPTING);
	if (rdma_accept(c->id, &param) == 0) {
		c->shaking = c->device->iwarp;
		return 0;
	}
	r = -errno;
	if (r == -EINVAL || r == -ENOTCONN || r == -ECONNRESET)
		conn_end(c, FABRIC_CAUSE_PEER, "the peer gave up before it was accepted");
	else
		conn_end_errno(c, "rdma_accept", r);
	return r;
}

void
verbs_reject(struct fabric_conn *base, const void *data, size_t len)
{
	struct verbs_conn *c = (struct verbs_conn *)base;

	if (c->state == CONN_REQUESTED)
		rdma_reject(c->id, data, (uint8_t)len);
	conn_end(c, FABRIC_CAUSE_LOCAL, "rejected");
}

/* ---- CM events ---- */

static void
emit(struct verbs_conn *c, enum fabric_event_type type, const struct cm_event *e)
{
	struct fabric_event event = {.type = type, .conn = &c->base};

	if (c->active && e->data_len > 0) {
		event.data = e->data;
		event.data_len = e->data_len;
	}
	verbs_emit(c->verbs, &event);
}

static void
on_address(struct verbs_conn *c, const struct cm_event *e)
{
	(void)e;
	set_state(c, CONN_ROUTING);
	note_ends(c);
	if (rdma_resolve_route(c->id, RESOLVE_TIMEOUT_MS) != 0)
		end_unresolved(c, -errno);
}

static void
on_route(struct verbs_conn *c, const struct cm_event *e)
{
	set_state(c, CONN_RESOLVED);
	emit(c, FABRIC_RESOLVED, e);
}

static void
on_unresolved(struct verbs_conn *c, const struct cm_event *e)
{
	end_unresolved(c, e->status < 0 ? e->status : -EHOSTUNREACH);
}

static void
on_established(struct verbs_conn *c, const struct cm_event *e)
{
	set_state(c, CONN_ESTABLISHED);
	note_ends(c);
	emit(c, FABRIC_ESTABLISHED, e);
}

/* InfiniBand gives a reason of its CM (positive; 28: the peer's program, 8: no such service) and
 * pads, iWARP an errno. The private data are the peer's word only where its program rejected. */
static bool
has_word(const struct verbs_conn *c, const struct cm_event *e)
{
	return e->data_len > 0 && (c->info.kind == RWP_FABRIC_VERBS_IWARP || e->status == 28);
}

static void
on_rejected(struct verbs_conn *c, const struct cm_event *e)
{
	char peer[TEXT_ADDRESS_MAX];

	text_address_port(peer, (const struct sockaddr *)&c->info.remote);
	if (!c->active) {
		conn_end(c, FABRIC_CAUSE_PEER, "the peer took its request back (%d)", e->status);
	} else if (has_word(c, e)) {
		memcpy(c->word, e->data, e->data_len);
		c->word_len = e->data_len;
		conn_end(c, FABRIC_CAUSE_REFUSED, "%s refused", peer);
	} else if (e->status == 8 || e->status == -ECONNREFUSED) {
		conn_end(c, FABRIC_CAUSE_REFUSED, "%s refused: nobody listens there", peer);
	} else {
		conn_end(c, FABRIC_CAUSE_REFUSED,
		    "%s refused (reason %d of its connection manager)", peer, e->status);
	}
}

static void
on_failed(struct verbs_conn *c, const struct cm_event *e)
{
	conn_end_errno(c, rdma_event_str(e->type), e->status < 0 ? e->status : -EPROTO);
}

/* In an established connection: kernels from 6.0 on report that the neighbour changed. */
static void
on_unreachable(struct verbs_conn *c, const struct cm_event *e)
{
	char ip[TEXT_ADDRESS_MAX];

	(void)e;
	text_address(ip, (const struct sockaddr *)&c->info.remote);
	if (c->state == CONN_ESTABLISHED)
		conn_end(c, FABRIC_CAUSE_TIMEOUT, "the path to %s was lost", ip);
	else
		conn_end(c, FABRIC_CAUSE_TIMEOUT, "%s does not answer", ip);
}

/* What is known better is still in the queues. iWARP does not say whether the peer closed the
 * connection or its device terminated it because of something that we wrote. */
static void
on_disconnected(struct verbs_conn *c, const struct cm_event *e)
{
	(void)e;
	if (c->device != NULL) {
		queue_poll(c);
		device_poll_async(c->device);
	}
	if (c->info.kind == RWP_FABRIC_VERBS_IWARP && c->queue.posted > 0)
		conn_end(c, FABRIC_CAUSE_UNKNOWN,
		    "the peer ended the connection, or refused a write (iWARP does not say which)");
	else
		conn_end(c, FABRIC_CAUSE_PEER, "the peer ended the connection");
	if (c->state == CONN_ENDING)
		verbs_defer(c->verbs, &c->closing);
}

static void
on_device_removal(struct verbs_conn *c, const struct cm_event *e)
{
	(void)e;
	conn_end(c, FABRIC_CAUSE_DEVICE, "the RDMA device %s is gone", c->info.device);
}

static void
on_address_change(struct verbs_conn *c, const struct cm_event *e)
{
	(void)e;
	conn_end(c, FABRIC_CAUSE_DEVICE, "%s: the address moved to another device", c->info.device);
}

#define IN(state)   (1U << (state))
#define ALIVE       (IN(CONN_ENDING) - 1)
#define IN_SHAKE    (IN(CONN_CONNECTING) | IN(CONN_REQUESTED) | IN(CONN_ACCEPTING))
#define IN_RESOLVE  (IN(CONN_RESOLVING) | IN(CONN_ROUTING))
#define IN_BE_ENDED (IN_SHAKE | IN(CONN_ESTABLISHED) | IN(CONN_ENDING))

/* Every event there is. In other states than those of its row it is late and changes nothing;
 * TIMEWAIT_EXIT is never waited for; multicast does not concern connections; CONNECT_REQUEST
 * belongs to listeners and CONNECT_RESPONSE to ids whose queue pair librdmacm does not know. */
static const struct {
	unsigned states;
	void (*act)(struct verbs_conn *c, const struct cm_event *e);
} RULES[] = {
    [RDMA_CM_EVENT_ADDR_RESOLVED] = {IN(CONN_RESOLVING), on_address},
    [RDMA_CM_EVENT_ADDR_ERROR] = {IN_RESOLVE, on_unresolved},
    [RDMA_CM_EVENT_ROUTE_RESOLVED] = {IN(CONN_ROUTING), on_route},
    [RDMA_CM_EVENT_ROUTE_ERROR] = {IN_RESOLVE, on_unresolved},
    [RDMA_CM_EVENT_CONNECT_REQUEST] = {0, NULL},
    [RDMA_CM_EVENT_CONNECT_RESPONSE] = {0, NULL},
    [RDMA_CM_EVENT_CONNECT_ERROR] = {ALIVE, on_failed},
    [RDMA_CM_EVENT_UNREACHABLE] = {ALIVE, on_unreachable},
    [RDMA_CM_EVENT_REJECTED] = {IN_SHAKE, on_rejected},
    [RDMA_CM_EVENT_ESTABLISHED] = {IN(CONN_CONNECTING) | IN(CONN_ACCEPTING), on_established},
    [RDMA_CM_EVENT_DISCONNECTED] = {IN_BE_ENDED, on_disconnected},
    [RDMA_CM_EVENT_DEVICE_REMOVAL] = {ALIVE, on_device_removal},
    [RDMA_CM_EVENT_MULTICAST_JOIN] = {0, NULL},
    [RDMA_CM_EVENT_MULTICAST_ERROR] = {0, NULL},
    [RDMA_CM_EVENT_ADDR_CHANGE] = {ALIVE, on_address_change},
    [RDMA_CM_EVENT_TIMEWAIT_EXIT] = {0, NULL},
};

/* Any event but these ends a handshake. */
static bool
ends_handshake(const struct cm_event *e)
{
	return e->type != RDMA_CM_EVENT_ADDR_CHANGE && e->type != RDMA_CM_EVENT_DEVICE_REMOVAL;
}

void
conn_event(struct verbs_conn *c, const struct cm_event *e)
{
	log_debug("verbs: %s (%d) while %s", rdma_event_str(e->type), e->status, STATES[c->state]);
	if (e->type < sizeof(RULES) / sizeof(RULES[0]) && RULES[e->type].states & IN(c->state))
		RULES[e->type].act(c, e);
	if (!c->shaking || !ends_handshake(e))
		return;
	c->shaking = false;
	if (c->state == CONN_CLOSED)
		verbs_defer(c->verbs, &c->closing);
}
