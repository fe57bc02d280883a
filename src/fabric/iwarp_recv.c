/* iwarp_recv.c -- FPDUs that come in
 *
 * With CRCs, large receives go into the fabric's buffer, which stays in the processor's cache; an
 * FPDU that is there whole and intact is placed from there. Without, its header is enough: payload
 * that is there is placed from the buffer, and the rest of it is received straight into the memory
 * that it is meant for, in one call with the header that follows.
 *
 * Before anything is placed the whole FPDU is checked, and what comes later is checked again when
 * it comes: the memory may have been taken away meanwhile.
 */

#include "config.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/crc32c.h"
#include "base/text.h"
#include "fabric/iwarp.h"

#define TURN_BYTES ((size_t)1 << 20)  /* of one connection, before others get a turn */
#define BULK       ((size_t)16 << 10) /* payload that is worth a call of its own */
#define AHEAD      ((size_t)512)      /* read behind bulk payload: the next header, a record */
#define BULK_LASTS 16                 /* so many small writes in a row, and no bulk is expected */

/* ---- the stream ---- */

void
recv_keep(struct iwarp_conn *c, const uint8_t *bytes, size_t len)
{
	struct iwarp_recv *r = &c->recv;

	free(r->kept);
	r->kept = NULL;
	r->n_kept = 0;
	if (len == 0)
		return;
	r->kept = malloc(len);
	if (r->kept == NULL) {
		iwarp_end(c, FABRIC_CAUSE_DEVICE, "no memory to receive");
		return;
	}
	memcpy(r->kept, bytes, len);
	r->n_kept = len;
}

/* Moves what was kept to the start of the buffer. */
static size_t
take_kept(struct iwarp_conn *c)
{
	size_t n = c->recv.n_kept;

	if (n > 0)
		memcpy(c->iwarp->buffer, c->recv.kept, n);
	return n;
}

static bool
in_the_middle(const struct iwarp_recv *r, size_t have)
{
	return have > 0 || r->left > 0 || r->skip > 0;
}

/* have: bytes of an FPDU whose rest did not come. */
static void
end_of_stream(struct iwarp_conn *c, size_t have)
{
	char peer[TEXT_ADDRESS_MAX];

	c->eof = true;
	iwarp_end(c, FABRIC_CAUSE_PEER, "%s ended the connection%s", iwarp_peer(c, peer),
	    in_the_middle(&c->recv, have) ? " in the middle of a frame" : "");
}

/* Returns what came, > 0; else 0: nothing did, or the connection has ended. */
static size_t
receive(struct iwarp_conn *c, struct iovec *iov, size_t n, size_t have)
{
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = n};
	ssize_t got = recvmsg(c->fd, &msg, 0);
	char peer[TEXT_ADDRESS_MAX];

	if (got > 0)
		return (size_t)got;
	if (got == 0)
		end_of_stream(c, have);
	else if (errno != EAGAIN && errno != EINTR)
		iwarp_end_errno(c, iwarp_peer(c, peer), -errno);
	return 0;
}

size_t
recv_gather(struct iwarp_conn *c, size_t size)
{
	size_t have = take_kept(c);
	struct iovec iov = {c->iwarp->buffer + have, size - have};
	size_t got = receive(c, &iov, 1, have);

	return got > 0 ? have + got : 0;
}

/* ---- operations: n bytes of an FPDU are there; each returns how many it took ---- */

static void
deny(struct iwarp_conn *c, int error, const uint8_t *fpdu)
{
	struct ddp_segment s;

	ddp_decode(fpdu, &s);
	iwarp_terminate(c, error, fpdu, "the peer wrote %zu bytes to STag %08x where it may not",
	    (size_t)s.ulpdu - DDP_TAGGED_SIZE, s.stag);
}

/* The segments of a message follow one another; no other tagged message may come in between. */
static int
check_order(const struct iwarp_recv *r, const struct ddp_segment *s)
{
	if (!r->open)
		return 0;
	if (s->stag != r->open_stag)
		return DDP_E_STAG;
	return s->to == r->open_to ? 0 : DDP_E_BOUNDS;
}

/* Nothing is asked of an STag that nothing is written to. */
static int
check_write(struct iwarp_conn *c, const struct ddp_segment *s, size_t len, uint8_t **ret)
{
	int error = check_order(&c->recv, s);

	if (error != 0 || len == 0)
		return error;
	return stag_check(c->iwarp->stags, c, s->stag, s->to, len, ret);
}

static void
place(struct iwarp_conn *c, uint8_t *to, const uint8_t *fpdu, size_t len)
{
	struct placed_frame frame = {.whole = c->recv.crc, .goes_on = c->recv.open};

	memcpy(to, fpdu + DDP_PREFIX_SIZE, len);
	c->recv.arrived = true;
	if (!c->crc)
		return;
	frame.before = crc32c(0, fpdu, DDP_PREFIX_SIZE);
	placed_add(&c->recv.placed, to, len, &frame);
}

static size_t
take_write(struct iwarp_conn *c, const struct ddp_segment *s, const uint8_t *fpdu, size_t n)
{
	struct iwarp_recv *r = &c->recv;
	size_t len = s->ulpdu - DDP_TAGGED_SIZE;
	size_t here = n - DDP_PREFIX_SIZE < len ? n - DDP_PREFIX_SIZE : len;
	uint8_t *to = NULL;
	int error = check_write(c, s, len, &to);

	if (error != 0) {
		deny(c, error, fpdu);
		return 0;
	}
	if (here > 0)
		place(c, to, fpdu, here);
	memcpy(r->header, fpdu, DDP_PREFIX_SIZE);
	r->stag = s->stag;
	r->to = s->to + here;
	r->left = len - here;
	r->skip = mpa_trailer_size(s->ulpdu);
	if (len >= BULK)
		r->bulk = BULK_LASTS;
	else if (r->bulk > 0)
		r->bulk--;
	r->open = !s->last;
	r->open_stag = s->stag;
	r->open_to = s->to + len;
	return DDP_PREFIX_SIZE + here;
}

static int
check_read(struct iwarp_conn *c, const struct ddp_segment *s, const struct rdmap_read *read)
{
	if (s->ulpdu > DDP_UNTAGGED_SIZE + RDMAP_READ_SIZE)
		return DDP_E_TOO_LONG;
	if (s->msn != c->recv.read_msn)
		return DDP_E_MSN;
	if (s->mo != 0)
		return DDP_E_OFFSET;
	if (read->size > 0)
		return c->reads ? RDMAP_E_ACCESS : RDMAP_E_STREAM;
	return send_response(c, read->sink_stag, read->sink_to) ? 0 : RDMAP_E_STREAM;
}

static size_t
take_read_request(struct iwarp_conn *c, const struct ddp_segment *s, const uint8_t *fpdu, size_t n)
{
	struct rdmap_read read;
	int error;

	(void)n;
	rdmap_read_decode(fpdu + DDP_HEADER_MAX, &read);
	error = check_read(c, s, &read);
	if (error != 0) {
		iwarp_terminate(c, error, fpdu, "the peer asked to read %u bytes", read.size);
		return 0;
	}
	c->recv.read_msn++;
	return mpa_fpdu_size(s->ulpdu);
}

/* The peer has given up; a catastrophe of its own is not a thing that we did. */
static size_t
take_terminate(struct iwarp_conn *c, const struct ddp_segment *s, const uint8_t *fpdu, size_t n)
{
	enum fabric_cause cause = FABRIC_CAUSE_PROTOCOL;
	struct rdmap_terminate t;

	(void)s;
	(void)n;
	rdmap_terminate_decode(fpdu + DDP_HEADER_MAX, !c->recv.heard, &t);
	if (rdmap_error_is_access(t.error))
		cause = FABRIC_CAUSE_REMOTE_ACCESS;
	else if (t.error == RDMAP_E_LOCAL || t.error == DDP_E_LOCAL || t.error == MPA_E_LOCAL)
		cause = FABRIC_CAUSE_PEER;
	iwarp_end(c, cause, "the peer ended the connection: %s (%02x %02x %02x %02x)",
	    rdmap_error_text(t.error), t.raw[0], t.raw[1], t.raw[2], t.raw[3]);
	return 0;
}

static size_t (*const HANDLERS[RDMAP_OPERATIONS])(
    struct iwarp_conn *c, const struct ddp_segment *s, const uint8_t *fpdu, size_t n) = {
    [RDMAP_WRITE] = take_write,
    [RDMAP_READ_REQUEST] = take_read_request,
    [RDMAP_TERMINATE] = take_terminate,
};

/* ---- FPDUs ---- */

/* Some kernels cannot compute a CRC yet when they refuse our set-up. */
static bool
is_intact(struct iwarp_conn *c, const uint8_t *fpdu, const struct ddp_segment *s)
{
	if (!c->crc || mpa_crc_matches(fpdu, s->ulpdu, &c->recv.crc))
		return true;
	return !c->recv.heard && !s->tagged && rdmap_operation(s) == RDMAP_TERMINATE &&
	       mpa_crc_is_zero(fpdu, s->ulpdu);
}

static size_t
take_segment(struct iwarp_conn *c, const struct ddp_segment *s, const uint8_t *fpdu, size_t n)
{
	const struct rdmap_rule *rule;
	int error = rdmap_check(s, &rule);
	size_t taken;

	if (error != 0) {
		iwarp_terminate(c, error, error == MPA_E_LENGTH ? NULL : fpdu,
		    "the peer sent a frame that it may not");
		return 0;
	}
	if (!rule->tagged && rule->queue == RDMAP_QUEUE_SEND)
		c->info.receive_completions++;
	if (rule->refusal != 0) {
		iwarp_terminate(c, rule->refusal, fpdu, "the peer sent a %s", rule->name);
		return 0;
	}
	taken = HANDLERS[rdmap_operation(s)](c, s, fpdu, n);
	if (taken > 0 && !c->recv.heard) {
		c->recv.heard = true;
		send_kick(c);
	}
	return taken;
}

/* Without CRCs the header of a tagged segment is enough; else all of the FPDU must be there. */
static size_t
take_fpdu(struct iwarp_conn *c, const uint8_t *fpdu, size_t n)
{
	struct ddp_segment s;
	size_t ulpdu;

	if (n < MPA_LENGTH_SIZE)
		return 0;
	ulpdu = (size_t)fpdu[0] << 8 | fpdu[1];
	if (ulpdu < DDP_TAGGED_SIZE) {
		iwarp_terminate(c, MPA_E_LENGTH, NULL, "the peer sent a frame without a header");
		return 0;
	}
	if (n < DDP_HEADER_MAX || (n < mpa_fpdu_size(ulpdu) && (c->crc || !ddp_is_tagged(fpdu))))
		return 0;
	ddp_decode(fpdu, &s);
	if (!is_intact(c, fpdu, &s)) {
		iwarp_terminate(c, MPA_E_CRC, NULL, "the peer sent a frame with a wrong CRC");
		return 0;
	}
	return take_segment(c, &s, fpdu, n);
}

static size_t
skip_trailer(struct iwarp_recv *r, size_t n)
{
	size_t skipped = r->skip < n ? r->skip : n;

	r->skip -= skipped;
	return skipped;
}

/* Returns how many of the n bytes were taken; the rest is the start of an FPDU. */
static size_t
digest(struct iwarp_conn *c, const uint8_t *bytes, size_t n)
{
	size_t at = 0, taken;

	do {
		at += skip_trailer(&c->recv, n - at);
		taken = take_fpdu(c, bytes + at, n - at);
		at += taken;
	} while (taken > 0 && c->recv.left == 0);
	return at;
}

/* ---- turns ---- */

/* Where the rest of a write goes; false: not any more. */
static bool
aim(struct iwarp_conn *c, struct iovec *iov)
{
	struct iwarp_recv *r = &c->recv;
	uint8_t *to;
	int error = stag_check(c->iwarp->stags, c, r->stag, r->to, r->left, &to);

	if (error != 0) {
		deny(c, error, r->header);
		return false;
	}
	*iov = (struct iovec){to, r->left};
	return true;
}

/* Takes what it can of the *have bytes in the buffer; the rest moves to its start. */
static void
digest_buffer(struct iwarp_conn *c, size_t *have)
{
	uint8_t *buffer = c->iwarp->buffer;
	size_t taken = digest(c, buffer, *have);

	*have -= taken;
	memmove(buffer, buffer + taken, *have);
}

/* How much to read into the buffer. Without CRCs, bulk payload is not to land there: where it is
 * expected, only its header is. */
static size_t
room(const struct iwarp_conn *c, size_t have)
{
	const struct iwarp_recv *r = &c->recv;

	return !c->crc && (r->left >= BULK || r->bulk > 0) ? AHEAD : IWARP_BUFFER - have;
}

/* One call. Returns how many bytes it brought, and in *more whether it brought all that was asked
 * for. */
static size_t
receive_some(struct iwarp_conn *c, size_t *have, bool *more)
{
	struct iwarp_recv *r = &c->recv;
	size_t direct = r->left, ahead = room(c, *have), got, placed;
	struct iovec iov[2] = {{NULL, 0}, {c->iwarp->buffer + *have, ahead}};

	*more = false;
	if (direct > 0 && !aim(c, &iov[0]))
		return 0;
	got = receive(c, iov, 2, *have);
	placed = got < direct ? got : direct;
	r->left -= placed;
	r->to += placed;
	r->arrived |= placed > 0;
	*have += got - placed;
	*more = got == direct + ahead;
	return got;
}

/* What was placed is told also when the connection has ended since: it may be the last word. */
void
recv_run(struct iwarp_conn *c)
{
	size_t have = take_kept(c), bytes = 0;
	bool more = true;

	digest_buffer(c, &have);
	while (more && bytes < TURN_BYTES && c->state == CONN_ESTABLISHED) {
		bytes += receive_some(c, &have, &more);
		if (c->recv.left == 0)
			digest_buffer(c, &have);
	}
	if (c->state == CONN_ESTABLISHED)
		recv_keep(c, c->iwarp->buffer, have);
	if (!c->recv.arrived)
		return;
	c->recv.arrived = false;
	iwarp_conn_emit(c, FABRIC_ARRIVED, NULL, 0);
}
