/* verbs_qp.c -- queue pairs, writes, completions
 *
 * A write is cut into work requests of at most message_max bytes. Not every one is signalled: the
 * last of each call, and one in so many that the queue never fills with unsignalled ones. iWARP
 * devices may read the source of an unsignalled request after a later one has completed (siw hands
 * out the pages themselves), so there each request of a page or more is signalled too.
 */

#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/verbs.h"
#include "wire/rwp.h"

#define DEPTH     128 /* work requests in flight, device permitting */
#define BATCH     16  /* work requests per doorbell, completions per poll */
#define ZERO_COPY 4096

static const struct {
	enum ibv_wc_status status;
	enum fabric_cause cause;
} CAUSES[] = {
    {IBV_WC_REM_ACCESS_ERR, FABRIC_CAUSE_REMOTE_ACCESS},
    {IBV_WC_REM_INV_REQ_ERR, FABRIC_CAUSE_PROTOCOL},
    {IBV_WC_REM_OP_ERR, FABRIC_CAUSE_PEER},
    {IBV_WC_REM_ABORT_ERR, FABRIC_CAUSE_PEER},
    {IBV_WC_RETRY_EXC_ERR, FABRIC_CAUSE_TIMEOUT},
    {IBV_WC_RESP_TIMEOUT_ERR, FABRIC_CAUSE_TIMEOUT},
    {IBV_WC_RNR_RETRY_EXC_ERR, FABRIC_CAUSE_PROTOCOL},
    {IBV_WC_WR_FLUSH_ERR, FABRIC_CAUSE_UNKNOWN},
};

/* What has no row is a local error. siw has one too when the connection is lost under a write. */
static enum fabric_cause
status_cause(const struct verbs_conn *c, enum ibv_wc_status status)
{
	if (c->device->iwarp && status == IBV_WC_LOC_QP_OP_ERR)
		return FABRIC_CAUSE_UNKNOWN;
	for (size_t i = 0; i < sizeof(CAUSES) / sizeof(CAUSES[0]); i++)
		if (CAUSES[i].status == status)
			return CAUSES[i].cause;
	return FABRIC_CAUSE_DEVICE;
}

/* ---- opening ---- */

/* A device says EINVAL for what it does not take: inline_max is halved until it does, and
 * max_recv_wr 0 becomes 1 (siw insists; nothing is ever posted there). What the device took last is
 * tried first. */
static int
create_qp(struct verbs_conn *c)
{
	struct verbs_device *d = c->device;
	struct verbs_queue *q = &c->queue;

	for (;;) {
		struct ibv_qp_init_attr attr = {
		    .qp_context = c,
		    .send_cq = q->cq,
		    .recv_cq = q->recv_cq,
		    .cap = {.max_send_wr = q->depth,
			.max_recv_wr = d->max_recv_wr,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.max_inline_data = d->inline_max},
		    .qp_type = IBV_QPT_RC,
		};

		if (rdma_create_qp(c->id, c->pd, &attr) == 0) {
			q->inline_max = attr.cap.max_inline_data;
			return 0;
		}
		if (errno != EINVAL || (d->max_recv_wr == 1 && d->inline_max == 0))
			return -errno;
		if (d->max_recv_wr == 0) {
			d->max_recv_wr = 1;
		} else {
			d->max_recv_wr = 0;
			d->inline_max /= 2;
		}
	}
}

static uint64_t
message_max(const struct verbs_conn *c)
{
	struct ibv_port_attr port;

	if (ibv_query_port(c->id->verbs, c->id->port_num, &port) != 0 || port.max_msg_sz == 0)
		return LIMIT_SEGMENT;
	return port.max_msg_sz < LIMIT_WRITE ? port.max_msg_sz : LIMIT_WRITE;
}

static int
create_queues(struct verbs_conn *c)
{
	struct verbs_queue *q = &c->queue;
	struct ibv_context *context = c->id->verbs;

	q->depth = c->device->attr.max_qp_wr < DEPTH ? (uint32_t)c->device->attr.max_qp_wr : DEPTH;
	q->message_max = message_max(c);
	q->cookies = calloc(q->depth, sizeof(q->cookies[0]));
	if (q->cookies == NULL)
		return -ENOMEM;
	q->cq = ibv_create_cq(context, (int)q->depth + 1, c, c->device->channel, 0);
	if (q->cq == NULL)
		return -errno;
	q->recv_cq = ibv_create_cq(context, 1, NULL, NULL, 0);
	if (q->recv_cq == NULL)
		return -errno;
	ibv_req_notify_cq(q->cq, 0);
	return create_qp(c);
}

int
queue_open(struct verbs_conn *c)
{
	int r = verbs_conn_prepare(c);

	if (r < 0)
		return r;
	r = create_queues(c);
	if (r < 0) {
		verbs_conn_end(c, FABRIC_CAUSE_DEVICE,
		    "%s: cannot create a queue pair of %u writes: %s (the device has %d; this "
		    "process "
		    "uses one per connection, so lower connections in [limits] if that is too "
		    "many)",
		    c->info.device, c->queue.depth, strerror(-r), c->device->attr.max_qp);
		return r;
	}
	c->info.inline_max = c->queue.inline_max;
	c->info.message_max = c->queue.message_max;
	return 0;
}

void
queue_disable(struct verbs_conn *c)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	if (c->id != NULL && c->id->qp != NULL)
		ibv_modify_qp(c->id->qp, &attr, IBV_QP_STATE);
}

void
queue_close(struct verbs_conn *c)
{
	struct verbs_queue *q = &c->queue;

	c->info.receive_completions += queue_count_receives(c);
	if (c->id != NULL && c->id->qp != NULL)
		rdma_destroy_qp(c->id);
	if (q->recv_cq != NULL)
		ibv_destroy_cq(q->recv_cq);
	if (q->cq != NULL)
		ibv_destroy_cq(q->cq);
	free(q->cookies);
	q->cq = q->recv_cq = NULL;
	q->cookies = NULL;
}

uint64_t
queue_count_receives(struct verbs_conn *c)
{
	struct ibv_wc wc[BATCH];
	uint64_t count = 0;
	int n;

	if (c->queue.recv_cq == NULL)
		return 0;
	while ((n = ibv_poll_cq(c->queue.recv_cq, BATCH, wc)) > 0)
		count += (uint64_t)n;
	return count;
}

/* ---- writing ---- */

static uint64_t
room(const struct verbs_queue *q)
{
	return q->depth - (q->posted - q->completed);
}

static uint64_t
count_requests(const struct verbs_queue *q, const struct fabric_write *w, unsigned n)
{
	uint64_t count = 0;

	for (unsigned i = 0; i < n; i++)
		count += w[i].len == 0 ? 1 : (w[i].len - 1) / q->message_max + 1;
	return count;
}

static bool
must_signal(const struct verbs_conn *c, uint64_t index, size_t len, bool last)
{
	return last || index - c->queue.signalled >= c->queue.depth / 4 ||
	       (c->device->iwarp && len >= ZERO_COPY);
}

/* The next work request starts behind these bytes of the call that is held. */
static void
advance(struct verbs_queue *q, size_t len)
{
	const struct fabric_write *w = &q->held[q->at];

	q->offset += len;
	if (q->offset < w->len)
		return;
	if (w->cookie != 0)
		q->cookie = w->cookie;
	q->at++;
	q->offset = 0;
}

/* wr_id: the request's number, from 1. */
static void
next_request(struct verbs_conn *c, struct ibv_send_wr *wr, struct ibv_sge *sge)
{
	struct verbs_queue *q = &c->queue;
	const struct fabric_write *w = &q->held[q->at];
	size_t left = w->len - q->offset;
	size_t len = left < q->message_max ? left : q->message_max;

	*sge = (struct ibv_sge){
	    .addr = (uintptr_t)w->addr + q->offset,
	    .length = (uint32_t)len,
	    .lkey = mem_lkey(w->mem),
	};
	*wr = (struct ibv_send_wr){
	    .wr_id = ++q->posted,
	    .sg_list = sge,
	    .num_sge = len > 0 ? 1 : 0,
	    .opcode = IBV_WR_RDMA_WRITE,
	    .send_flags = len > 0 && len <= q->inline_max ? IBV_SEND_INLINE : 0,
	    .wr.rdma = {.remote_addr = w->remote_addr + q->offset, .rkey = w->rkey},
	};
	advance(q, len);
	q->cookies[q->posted % q->depth] = q->cookie;
	if (must_signal(c, q->posted, len, q->at == q->n_held)) {
		wr->send_flags |= IBV_SEND_SIGNALED;
		q->signalled = q->posted;
	}
}

/* Fills a chain that one doorbell posts, as far as there is room. */
static unsigned
fill(struct verbs_conn *c, struct ibv_send_wr wr[BATCH], struct ibv_sge sge[BATCH])
{
	struct verbs_queue *q = &c->queue;
	unsigned n = 0;

	for (; n < BATCH && q->at < q->n_held && room(q) > 0; n++) {
		next_request(c, &wr[n], &sge[n]);
		if (n > 0)
			wr[n - 1].next = &wr[n];
	}
	return n;
}

/* Posts as much of the call that is held as there is room for. */
static void
pump(struct verbs_conn *c)
{
	struct ibv_send_wr wr[BATCH], *bad;
	struct ibv_sge sge[BATCH];

	/* The queue has room, so what a failure is about is the queue pair: why is on its way. */
	while (c->state == CONN_ESTABLISHED && fill(c, wr, sge) > 0)
		if (ibv_post_send(c->id->qp, wr, &bad) != 0)
			verbs_conn_end_unexplained(c, "the queue pair takes no more writes");
}

int
verbs_write(struct fabric_conn *base, const struct fabric_write *w, unsigned n)
{
	struct verbs_conn *c = (struct verbs_conn *)base;
	struct verbs_queue *q = &c->queue;
	uint64_t count;

	if (c->state != CONN_ESTABLISHED)
		return -ENOTCONN;
	count = count_requests(q, w, n);
	/* What can never fit is begun at once and goes on as completions make room. */
	if (q->at < q->n_held || room(q) == 0 || (count > room(q) && count <= q->depth)) {
		q->starved = true;
		return -EAGAIN;
	}
	memcpy(q->held, w, n * sizeof(w[0]));
	q->n_held = n;
	q->at = 0;
	q->offset = 0;
	pump(c);
	return 0;
}

/* ---- completions ---- */

static void
fail(struct verbs_conn *c, const struct ibv_wc *wc)
{
	enum fabric_cause cause = status_cause(c, wc->status);

	if (cause == FABRIC_CAUSE_UNKNOWN)
		verbs_conn_end_unexplained(c, "the connection was lost with writes in flight");
	else
		verbs_conn_end(c, cause, "%s: a write failed: %s", c->info.device,
		    ibv_wc_status_str(wc->status));
}

/* -EAGAIN promised a WRITTEN: one comes even if no write in flight had a cookie. */
static void
report(struct verbs_conn *c, uint64_t cookie)
{
	struct verbs_queue *q = &c->queue;
	struct fabric_event event = {.type = FABRIC_WRITTEN, .conn = &c->base, .cookie = cookie};

	if (cookie == q->reported && !q->starved)
		return;
	q->reported = cookie;
	q->starved = false;
	verbs_emit(c->verbs, &event);
}

/* A completion stands for all requests before it. */
static void
take(struct verbs_conn *c, const struct ibv_wc *wc, int n)
{
	struct verbs_queue *q = &c->queue;
	uint64_t cookie = q->reported;
	int i;

	for (i = 0; i < n && wc[i].status == IBV_WC_SUCCESS; i++) {
		q->completed = wc[i].wr_id;
		cookie = q->cookies[q->completed % q->depth];
	}
	if (i < n)
		fail(c, &wc[i]);
	else
		pump(c);
	if (i > 0)
		report(c, cookie);
}

void
queue_poll(struct verbs_conn *c)
{
	struct ibv_wc wc[BATCH];
	int n;

	if (c->queue.cq == NULL || c->state == CONN_CLOSED)
		return;
	while ((n = ibv_poll_cq(c->queue.cq, BATCH, wc)) > 0)
		take(c, wc, n);
	if (n < 0)
		verbs_conn_end(
		    c, FABRIC_CAUSE_DEVICE, "%s: completions cannot be read", c->info.device);
}
