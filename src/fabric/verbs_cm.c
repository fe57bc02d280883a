/* verbs_cm.c -- how a connection comes about, and what the connection manager says about it
 *
 * The states are in verbs_conn.c. What can happen in which state is in the table at the end.
 */

#include "config.h"

#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "fabric/verbs.h"
#include "wire/rwp.h"

#define RESOLVE_TIMEOUT_MS 2000
#define RETRY_COUNT        7 /* the most there is: the core has deadlines of its own */

/* ---- the way to the peer ---- */

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
		verbs_conn_end(c, FABRIC_CAUSE_DEVICE,
		    "no RDMA device leads to %s (RDMA devices here: %s); a machine reaches itself "
		    "by the address of its device, not by 127.0.0.1",
		    ip, devices);
	else
		verbs_conn_end_errno(c, ip, error);
}

int
verbs_connect(struct fabric *f, const struct sockaddr *to, void *owner, struct fabric_conn **ret)
{
	struct verbs_conn *c = verbs_conn_new((struct verbs *)f, CONN_RESOLVING, owner);
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

/* ---- the handshake ---- */

struct verbs_conn *
verbs_conn_new_passive(struct verbs *v, struct rdma_cm_id *id)
{
	struct verbs_conn *c = verbs_conn_new(v, CONN_REQUESTED, NULL);

	if (c == NULL)
		return NULL;
	c->id = id;
	id->context = c;
	verbs_conn_note_ends(c);
	return c;
}

/* We never read and nobody may read from us, but iWARP devices may shake hands with a read. */
static struct rdma_conn_param
conn_param(const struct verbs_conn *c, const void *data, size_t len)
{
	const struct ibv_device_attr *attr = &c->device->attr;

	return (struct rdma_conn_param){
	    .private_data = data,
	    .private_data_len = (uint8_t)len,
	    .responder_resources = c->device->iwarp && attr->max_qp_rd_atom > 0,
	    .initiator_depth = c->device->iwarp && attr->max_qp_init_rd_atom > 0,
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
	verbs_conn_set_state(c, CONN_CONNECTING);
	if (c->device->iwarp)
		r = join_start(c, &param);
	else
		r = rdma_connect(c->id, &param) == 0 ? 0 : -errno;
	if (r < 0)
		verbs_conn_end_errno(c, "rdma_connect", r);
	return r;
}

void
verbs_conn_join_done(struct verbs_conn *c, int error)
{
	char peer[TEXT_ADDRESS_MAX];

	loop_io_set(c->io, LOOP_READ);
	c->shaking = error == 0;
	if (error < 0)
		verbs_conn_end_errno(
		    c, text_address_port(peer, (const struct sockaddr *)&c->info.remote), error);
	verbs_conn_end_wait(c);
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
	verbs_conn_set_state(c, CONN_ACCEPTING);
	if (rdma_accept(c->id, &param) == 0) {
		c->shaking = true;
		return 0;
	}
	r = -errno;
	if (r == -EINVAL || r == -ENOTCONN || r == -ECONNRESET)
		verbs_conn_end(c, FABRIC_CAUSE_PEER, "the peer gave up before it was accepted");
	else
		verbs_conn_end_errno(c, "rdma_accept", r);
	return r;
}

void
verbs_reject(struct fabric_conn *base, const void *data, size_t len)
{
	struct verbs_conn *c = (struct verbs_conn *)base;

	if (c->state == CONN_REQUESTED)
		rdma_reject(c->id, data, (uint8_t)len);
	verbs_conn_end(c, FABRIC_CAUSE_LOCAL, "rejected");
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
	if (c->id->verbs == NULL) {
		end_unresolved(c, -ENODEV);
		return;
	}
	verbs_conn_set_state(c, CONN_ROUTING);
	verbs_conn_note_ends(c);
	if (rdma_resolve_route(c->id, RESOLVE_TIMEOUT_MS) != 0)
		end_unresolved(c, -errno);
}

static void
on_route(struct verbs_conn *c, const struct cm_event *e)
{
	verbs_conn_set_state(c, CONN_RESOLVED);
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
	verbs_conn_set_state(c, CONN_ESTABLISHED);
	verbs_conn_note_ends(c);
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
		verbs_conn_end(
		    c, FABRIC_CAUSE_PEER, "the peer took its request back (%d)", e->status);
	} else if (has_word(c, e)) {
		memcpy(c->word, e->data, e->data_len);
		c->word_len = e->data_len;
		verbs_conn_end(c, FABRIC_CAUSE_REFUSED, "%s refused", peer);
	} else if (e->status == 8 || e->status == -ECONNREFUSED) {
		verbs_conn_end(c, FABRIC_CAUSE_REFUSED, "%s refused: nobody listens there", peer);
	} else {
		verbs_conn_end(c, FABRIC_CAUSE_REFUSED,
		    "%s refused (reason %d of its connection manager)", peer, e->status);
	}
}

/* An iWARP device says so when it does not understand the peer's answer. */
static void
on_failed(struct verbs_conn *c, const struct cm_event *e)
{
	bool iwarp = c->info.kind == RWP_FABRIC_VERBS_IWARP;
	char peer[TEXT_ADDRESS_MAX];

	text_address_port(peer, (const struct sockaddr *)&c->info.remote);
	verbs_conn_end(c, iwarp ? FABRIC_CAUSE_PROTOCOL : FABRIC_CAUSE_DEVICE,
	    "%s: the handshake with %s failed (%d)", c->info.device, peer, e->status);
}

/* In an established connection: kernels from 6.0 on report that the neighbour changed. */
static void
on_unreachable(struct verbs_conn *c, const struct cm_event *e)
{
	char ip[TEXT_ADDRESS_MAX];

	(void)e;
	text_address(ip, (const struct sockaddr *)&c->info.remote);
	if (c->state == CONN_ESTABLISHED)
		verbs_conn_end(c, FABRIC_CAUSE_TIMEOUT, "the path to %s was lost", ip);
	else
		verbs_conn_end(c, FABRIC_CAUSE_TIMEOUT, "%s does not answer", ip);
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
		verbs_conn_end(c, FABRIC_CAUSE_UNKNOWN,
		    "the peer ended the connection, or refused a write (iWARP does not say which)");
	else
		verbs_conn_end(c, FABRIC_CAUSE_PEER, "the peer ended the connection");
	verbs_conn_end_wait(c);
}

static void
on_device_removal(struct verbs_conn *c, const struct cm_event *e)
{
	(void)e;
	verbs_conn_end(c, FABRIC_CAUSE_DEVICE, "the RDMA device %s is gone", c->info.device);
}

static void
on_address_change(struct verbs_conn *c, const struct cm_event *e)
{
	(void)e;
	verbs_conn_end(
	    c, FABRIC_CAUSE_DEVICE, "%s: the address moved to another device", c->info.device);
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
verbs_conn_event(struct verbs_conn *c, const struct cm_event *e)
{
	log_debug("verbs: %s (%d) while %s", rdma_event_str(e->type), e->status,
	    verbs_conn_state_name(c));
	if (e->type < sizeof(RULES) / sizeof(RULES[0]) && RULES[e->type].states & IN(c->state))
		RULES[e->type].act(c, e);
	if (ends_handshake(e))
		verbs_conn_end_handshake(c);
}
