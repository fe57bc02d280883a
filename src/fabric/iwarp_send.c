/* iwarp_send.c -- writes that go out
 *
 * Posted writes wait in a ring. They are cut into FPDUs a batch at a time, and one system call
 * takes the batch: headers and trailers from the batch, payload from where it lies. What TCP does
 * not take is tried again when the socket is writable. A write is WRITTEN when TCP has all of it:
 * that is what iWARP promises, and no more.
 *
 * Between two of us FPDUs are as large as they may be. Kernel devices want each of them in a TCP
 * segment of its own: adapters may insist, and siw computes a wrong CRC when the end of an FPDU is
 * torn apart. MSG_EOR keeps TCP from joining what is behind an FPDU to it. Of a peer that is not
 * known the same is assumed.
 *
 * The passive side sends nothing before it has heard the peer: an initiator may take what comes
 * with the reply for a part of it.
 */

#include "config.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include "base/crc32c.h"
#include "base/text.h"
#include "fabric/iwarp.h"
#include "wire/rwp.h"

#define TURN_BYTES  ((size_t)4 << 20)   /* of one connection, before others get a turn */
#define BATCH_BYTES ((size_t)256 << 10) /* summed up and sent while the cache has them */
#define LARGE_FPDU  ((size_t)64 << 10)

/* ---- making FPDUs ---- */

static bool
is_bounded(const struct iwarp_conn *c)
{
	return c->peer_kind != RWP_FABRIC_IWARP;
}

/* The segment size may change as the path does. */
static size_t
payload_max(const struct iwarp_conn *c)
{
	socklen_t size = sizeof(int);
	int emss = 0;

	if (!is_bounded(c))
		return LARGE_FPDU - DDP_PREFIX_SIZE - MPA_CRC_SIZE;
	(void)getsockopt(c->fd, IPPROTO_TCP, TCP_MAXSEG, &emss, &size);
	return mpa_ulpdu_max((size_t)emss) - DDP_TAGGED_SIZE;
}

static void
seal(const struct iwarp_conn *c, struct iwarp_frame *frame, struct ddp_segment *s)
{
	uint32_t crc = 0;

	s->tagged = true;
	s->ulpdu = (uint16_t)(DDP_TAGGED_SIZE + frame->len);
	ddp_encode(s, frame->header);
	if (c->crc)
		crc = crc32c(crc32c(0, frame->header, DDP_PREFIX_SIZE), frame->payload, frame->len);
	frame->n_trailer = (uint8_t)mpa_trailer(frame->trailer, s->ulpdu, c->crc ? &crc : NULL);
}

static void
make_response(struct iwarp_conn *c, struct iwarp_frame *frame)
{
	struct ddp_segment s = {
	    .last = true,
	    .control = rdmap_control(RDMAP_READ_RESPONSE),
	    .stag = c->send.response_stag,
	    .to = c->send.response_to,
	};

	*frame = (struct iwarp_frame){0};
	seal(c, frame, &s);
	c->send.response = false;
}

static void
make_write(struct iwarp_conn *c, struct iwarp_frame *frame, size_t max)
{
	struct iwarp_send *q = &c->send;
	const struct fabric_write *w = &q->writes[(q->head + q->framed) % IWARP_DEPTH];
	size_t left = w->len - q->offset;
	bool ends = left <= max;
	struct ddp_segment s = {
	    .last = ends,
	    .control = rdmap_control(RDMAP_WRITE),
	    .stag = w->rkey,
	    .to = w->remote_addr + q->offset,
	};

	*frame = (struct iwarp_frame){
	    .ends = ends,
	    .payload = (const uint8_t *)w->addr + q->offset,
	    .len = ends ? left : max,
	};
	seal(c, frame, &s);
	q->offset = ends ? 0 : q->offset + max;
	q->framed += ends;
}

/* A response is a message of its own: it waits for the end of a write. */
static bool
make_frame(struct iwarp_conn *c, struct iwarp_frame *frame, size_t max)
{
	struct iwarp_send *q = &c->send;

	if (!c->active && !c->recv.heard)
		return false;
	if (q->response && q->offset == 0)
		make_response(c, frame);
	else if (q->framed < q->used)
		make_write(c, frame, max);
	else
		return false;
	return true;
}

static size_t
frame_size(const struct iwarp_frame *frame)
{
	return DDP_PREFIX_SIZE + frame->len + frame->n_trailer;
}

static void
make_batch(struct iwarp_conn *c)
{
	struct iwarp_send *q = &c->send;
	size_t max = payload_max(c), bytes = 0;

	q->n_frames = q->at = 0;
	while (q->n_frames < IWARP_FRAMES && bytes < BATCH_BYTES &&
	       make_frame(c, &q->frames[q->n_frames], max))
		bytes += frame_size(&q->frames[q->n_frames++]);
}

/* ---- sending them ---- */

/* What of a frame TCP does not have; returns the number of pieces. */
static size_t
pieces(const struct iwarp_frame *frame, size_t sent, struct iovec iov[3])
{
	const struct iovec all[] = {
	    {(void *)frame->header, DDP_PREFIX_SIZE},
	    {(void *)frame->payload, frame->len},
	    {(void *)frame->trailer, frame->n_trailer},
	};
	size_t n = 0;

	for (size_t i = 0; i < 3; i++) {
		size_t skip = sent < all[i].iov_len ? sent : all[i].iov_len;

		sent -= skip;
		if (skip < all[i].iov_len)
			iov[n++] = (struct iovec){
			    (uint8_t *)all[i].iov_base + skip, all[i].iov_len - skip};
	}
	return n;
}

/* One message with all pieces, or one for each FPDU. Returns the number of messages. */
static unsigned
make_messages(const struct iwarp_conn *c, struct iovec *iov, struct mmsghdr *messages)
{
	const struct iwarp_send *q = &c->send;
	unsigned n = 0;

	for (unsigned i = q->at; i < q->n_frames; i++) {
		size_t count = pieces(&q->frames[i], i == q->at ? q->sent : 0, iov);

		if (n == 0 || is_bounded(c))
			messages[n++] = (struct mmsghdr){.msg_hdr = {.msg_iov = iov}};
		messages[n - 1].msg_hdr.msg_iovlen += count;
		iov += count;
	}
	return n;
}

static void
finish_write(struct iwarp_send *q)
{
	const struct fabric_write *w = &q->writes[q->head];

	if (w->cookie != 0)
		q->cookie = w->cookie;
	q->head = (q->head + 1) % IWARP_DEPTH;
	q->used--;
	q->framed--;
}

static void
advance(struct iwarp_send *q, size_t bytes)
{
	q->sent += bytes;
	while (q->at < q->n_frames && q->sent >= frame_size(&q->frames[q->at])) {
		q->sent -= frame_size(&q->frames[q->at]);
		if (q->frames[q->at++].ends)
			finish_write(q);
	}
}

/* Bytes that TCP took of the batch, or a negative errno. */
static ssize_t
transmit(struct iwarp_conn *c)
{
	struct mmsghdr messages[IWARP_FRAMES];
	struct iovec iov[3 * IWARP_FRAMES];
	unsigned n = make_messages(c, iov, messages);
	int done = sendmmsg(c->fd, messages, n, MSG_NOSIGNAL | (is_bounded(c) ? MSG_EOR : 0));
	ssize_t bytes = 0;

	if (done < 0)
		return -errno;
	for (int i = 0; i < done; i++)
		bytes += messages[i].msg_len;
	return bytes;
}

/* 0: all is sent, or this turn's share; -EAGAIN: TCP takes no more now; else the connection is
 * broken. */
static int
pump(struct iwarp_conn *c)
{
	struct iwarp_send *q = &c->send;
	size_t bytes = 0;

	while (bytes < TURN_BYTES) {
		ssize_t n;

		if (q->at == q->n_frames)
			make_batch(c);
		if (q->at == q->n_frames)
			return 0;
		n = transmit(c);
		if (n < 0)
			return (int)n;
		advance(q, (size_t)n);
		bytes += (size_t)n;
	}
	return 0;
}

/* ---- when, and what is told ---- */

static bool
has_more(const struct iwarp_conn *c)
{
	const struct iwarp_send *q = &c->send;

	return q->at < q->n_frames ||
	       ((c->active || c->recv.heard) && (q->framed < q->used || q->response));
}

/* -EAGAIN promised a WRITTEN: one comes even if nothing newer has a cookie. */
static void
report(struct iwarp_conn *c)
{
	struct iwarp_send *q = &c->send;
	struct fabric_event event = {.type = FABRIC_WRITTEN, .conn = &c->base, .cookie = q->cookie};

	if (q->cookie == q->reported && !(q->starved && q->used < IWARP_DEPTH))
		return;
	q->reported = q->cookie;
	q->starved = false;
	iwarp_emit(c->iwarp, &event);
}

/* Why it broke may be in what came before: a Terminate. */
static void
break_off(struct iwarp_conn *c, int error)
{
	char peer[TEXT_ADDRESS_MAX];

	recv_run(c);
	iwarp_end_errno(c, iwarp_peer(c, peer), error);
}

/* What the owner posts while it is told goes out in the next turn, so that a fast peer cannot keep
 * the loop here. */
void
send_run(struct iwarp_conn *c)
{
	int r;

	if (c->state != CONN_ESTABLISHED)
		return;
	c->send.running = true;
	r = pump(c);
	report(c);
	if (r < 0 && r != -EAGAIN && r != -EINTR && c->state == CONN_ESTABLISHED)
		break_off(c, r);
	c->send.running = false;
	if (c->state == CONN_ESTABLISHED)
		loop_io_set(c->io, LOOP_READ | (has_more(c) ? LOOP_WRITE : 0));
}

void
send_last(struct iwarp_conn *c)
{
	(void)pump(c);
}

void
send_kick(struct iwarp_conn *c)
{
	if (!c->send.running && has_more(c))
		iwarp_defer(c->iwarp, &c->push);
}

bool
send_response(struct iwarp_conn *c, uint32_t stag, uint64_t to)
{
	struct iwarp_send *q = &c->send;

	if (q->response)
		return false;
	q->response = true;
	q->response_stag = stag;
	q->response_to = to;
	send_kick(c);
	return true;
}

size_t
send_copy_rest(const struct iwarp_conn *c, uint8_t *out)
{
	const struct iwarp_send *q = &c->send;
	struct iovec iov[3];
	size_t n, len = 0;

	if (q->at == q->n_frames || q->sent == 0)
		return 0;
	n = pieces(&q->frames[q->at], q->sent, iov);
	for (size_t i = 0; i < n; i++) {
		memcpy(out + len, iov[i].iov_base, iov[i].iov_len);
		len += iov[i].iov_len;
	}
	return len;
}

bool
send_uses(const struct iwarp_conn *c, const struct fabric_mem *mem)
{
	const struct iwarp_send *q = &c->send;

	for (unsigned i = 0; i < q->used; i++)
		if (q->writes[(q->head + i) % IWARP_DEPTH].mem == mem)
			return true;
	return false;
}

int
iwarp_write(struct fabric_conn *base, const struct fabric_write *w, unsigned n)
{
	struct iwarp_conn *c = (struct iwarp_conn *)base;
	struct iwarp_send *q = &c->send;

	if (c->state != CONN_ESTABLISHED)
		return -ENOTCONN;
	if (n > IWARP_DEPTH - q->used) {
		q->starved = true;
		return -EAGAIN;
	}
	for (unsigned i = 0; i < n; i++)
		q->writes[(q->head + q->used++) % IWARP_DEPTH] = w[i];
	send_kick(c);
	return 0;
}
