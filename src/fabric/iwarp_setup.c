/* iwarp_setup.c -- how a connection begins: TCP, then MPA's request and reply
 *
 * We ask in revision 2 without the peer-to-peer mode: our side always speaks first, so it is not
 * needed, and some kernels mishandle it. As the answering side we take revisions 1 and 2, and that
 * mode, which adapters use. We never read, and nobody reads from us: the depths are 0, but for the
 * read of no bytes that such an adapter may begin with.
 */

#include "config.h"

#include <endian.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/text.h"
#include "fabric/iwarp.h"
#include "wire/rwp.h"

static_assert(offsetof(struct rwp_request, fabric) == offsetof(struct rwp_reply, fabric) &&
		  offsetof(struct rwp_request, fabric) == offsetof(struct rwp_reject, fabric),
    "where private data names the sender's fabric");

/* Which fabric the peer is on, if it is an rwriter. */
static uint8_t
kind_of(const uint8_t *data, size_t len)
{
	uint32_t magic;

	if (len <= offsetof(struct rwp_request, fabric))
		return 0;
	memcpy(&magic, data, sizeof(magic));
	return le32toh(magic) == RWP_MAGIC ? data[offsetof(struct rwp_request, fabric)] : 0;
}

/* A socket whose connection is new takes a frame whole. 0, or a negative errno. */
static int
send_frame(const struct iwarp_conn *c, const uint8_t *frame, size_t size)
{
	ssize_t n = send(c->fd, frame, size, MSG_NOSIGNAL);

	if (n < 0)
		return -errno;
	return (size_t)n == size ? 0 : -ENOBUFS;
}

/* ---- active ---- */

int
iwarp_connect(struct fabric *f, const struct sockaddr *to, void *owner, struct fabric_conn **ret)
{
	struct iwarp *w = (struct iwarp *)f;
	struct iwarp_conn *c = iwarp_conn_new(w, CONN_NEW, owner);

	if (c == NULL)
		return -ENOMEM;
	c->active = true;
	memcpy(&c->info.remote, to, iwarp_address_size(to));
	iwarp_defer(w, &c->news);
	*ret = &c->base;
	return 0;
}

static int
open_socket(struct iwarp_conn *c)
{
	int fd = socket(c->info.remote.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int r;

	if (fd < 0)
		return -errno;
	iwarp_tune(c->iwarp, fd);
	r = iwarp_attach(c, fd, LOOP_WRITE);
	if (r < 0)
		close(fd);
	return r;
}

int
iwarp_request(struct fabric_conn *base, const void *data, size_t len)
{
	struct iwarp_conn *c = (struct iwarp_conn *)base;
	const struct sockaddr *to = (const struct sockaddr *)&c->info.remote;
	struct mpa_frame frame = {
	    .crc = c->iwarp->options.mpa_crc,
	    .revision = MPA_REVISION,
	    .enhanced = true,
	    .data = data,
	    .len = len,
	};
	char peer[TEXT_ADDRESS_MAX];
	int r;

	if (c->state != CONN_RESOLVED)
		return -ENOTCONN;
	r = open_socket(c);
	if (r < 0)
		return r;
	c->request_size = mpa_frame_encode(MPA_REQUEST, &frame, c->request);
	iwarp_set_state(c, CONN_CONNECTING);
	if (connect(c->fd, to, iwarp_address_size(to)) < 0 && errno != EINPROGRESS)
		iwarp_end_errno(c, iwarp_peer(c, peer), -errno);
	return 0;
}

void
setup_connected(struct iwarp_conn *c)
{
	char peer[TEXT_ADDRESS_MAX];
	socklen_t size = sizeof(int);
	int error = 0, r;

	(void)getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &size);
	r = error != 0 ? -error : send_frame(c, c->request, c->request_size);
	if (r < 0) {
		iwarp_end_errno(c, iwarp_peer(c, peer), r);
		return;
	}
	iwarp_note_ends(c);
	iwarp_set_state(c, CONN_ASKING);
	loop_io_set(c->io, LOOP_READ);
}

static void
take_reject(struct iwarp_conn *c, const struct mpa_frame *reply)
{
	char peer[TEXT_ADDRESS_MAX];

	c->word_len = reply->len < sizeof(c->word) ? reply->len : sizeof(c->word);
	memcpy(c->word, reply->data, c->word_len);
	iwarp_end(c, FABRIC_CAUSE_REFUSED, "%s refused", iwarp_peer(c, peer));
}

static const char *
frame_error_text(int error)
{
	switch (error) {
	case -EPROTONOSUPPORT:
		return "it speaks another revision of MPA";
	case -EMSGSIZE:
		return "its private data have an impossible length";
	default:
		return "what it sends is not MPA; is it an iWARP port?";
	}
}

/* Of what follows the reply the peer's first FPDU may be a part: it is kept for recv_run(). The
 * event comes in between, because its data are in the buffer. */
static void
take_reply(struct iwarp_conn *c, const struct mpa_frame *reply, size_t size, size_t n)
{
	struct iwarp *w = c->iwarp;
	char peer[TEXT_ADDRESS_MAX];

	if (reply->rejected) {
		take_reject(c, reply);
		return;
	}
	if (reply->markers) {
		iwarp_end(c, FABRIC_CAUSE_PROTOCOL, "%s demands MPA markers, which we do not make",
		    iwarp_peer(c, peer));
		return;
	}
	c->crc = w->options.mpa_crc || reply->crc;
	c->peer_kind = kind_of(reply->data, reply->len);
	recv_keep(c, w->buffer + size, n - size);
	if (c->state != CONN_ASKING)
		return;
	iwarp_set_state(c, CONN_ESTABLISHED);
	iwarp_conn_emit(c, FABRIC_ESTABLISHED, reply->data, reply->len);
	if (c->state == CONN_ESTABLISHED && c->recv.n_kept > 0)
		recv_run(c);
}

void
setup_read_reply(struct iwarp_conn *c)
{
	size_t n = recv_gather(c, IWARP_BUFFER), size;
	char peer[TEXT_ADDRESS_MAX];
	struct mpa_frame reply;
	int r;

	if (n == 0)
		return;
	r = mpa_frame_decode(MPA_REPLY, c->iwarp->buffer, n, &reply, &size);
	if (r == 0)
		take_reply(c, &reply, size, n);
	else if (r == -EAGAIN)
		recv_keep(c, c->iwarp->buffer, n);
	else
		iwarp_end(
		    c, FABRIC_CAUSE_PROTOCOL, "%s: %s", iwarp_peer(c, peer), frame_error_text(r));
}

/* ---- passive ---- */

/* Both sides' depths, and the mode: what the peer asked decides what can be answered. Whoever wants
 * to agree on the depths by itself gets that mark back. */
static struct mpa_frame
make_reply(struct iwarp_conn *c, const void *data, size_t len)
{
	const struct mpa_frame *asked = &c->asked;
	struct mpa_frame reply = {
	    .crc = c->iwarp->options.mpa_crc || asked->crc,
	    .revision = asked->revision,
	    .enhanced = asked->enhanced,
	    .peer_to_peer = asked->peer_to_peer,
	    .ird = asked->ord == MPA_DEPTH_MANUAL ? MPA_DEPTH_MANUAL : 0,
	    .ord = asked->ird == MPA_DEPTH_MANUAL ? MPA_DEPTH_MANUAL : 0,
	    .data = data,
	    .len = len,
	};

	if (!asked->peer_to_peer)
		return reply;
	reply.ready = MPA_READY_WRITE;
	if (!(asked->ready & MPA_READY_WRITE) && asked->ready & MPA_READY_READ) {
		reply.ready = MPA_READY_READ;
		reply.ird = reply.ird != 0 ? reply.ird : 1;
	}
	return reply;
}

static int
send_reply(struct iwarp_conn *c, const struct mpa_frame *reply)
{
	uint8_t frame[MPA_FRAME_MAX];

	return send_frame(c, frame, mpa_frame_encode(MPA_REPLY, reply, frame));
}

void
setup_refuse(struct iwarp_conn *c, const void *data, size_t len)
{
	struct mpa_frame reply = make_reply(c, data, len);

	reply.rejected = true;
	(void)send_reply(c, &reply);
}

static void
take_request(struct iwarp_conn *c, const struct mpa_frame *request)
{
	struct fabric_event event = {
	    .type = FABRIC_REQUEST,
	    .port = &c->port->base,
	    .conn = &c->base,
	    .data = request->len > 0 ? request->data : NULL,
	    .data_len = request->len,
	};

	c->asked = *request;
	c->asked.data = NULL;
	if (request->markers) {
		setup_refuse(c, NULL, 0);
		iwarp_end(c, FABRIC_CAUSE_PROTOCOL, "the peer demands MPA markers");
		return;
	}
	c->peer_kind = kind_of(request->data, request->len);
	recv_keep(c, NULL, 0);
	list_del(&c->node);
	c->port = NULL;
	iwarp_set_state(c, CONN_REQUESTED);
	iwarp_emit(c->iwarp, &event);
}

void
setup_read_request(struct iwarp_conn *c)
{
	size_t n = recv_gather(c, MPA_FRAME_MAX), size;
	struct mpa_frame request;
	int r;

	if (n == 0)
		return;
	r = mpa_frame_decode(MPA_REQUEST, c->iwarp->buffer, n, &request, &size);
	if (r == -EAGAIN)
		recv_keep(c, c->iwarp->buffer, n);
	else if (r < 0)
		iwarp_end(c, FABRIC_CAUSE_PROTOCOL, "%s", frame_error_text(r));
	else if (size < n)
		iwarp_end(c, FABRIC_CAUSE_PROTOCOL, "more came than a request");
	else
		take_request(c, &request);
}

void
setup_read_early(struct iwarp_conn *c)
{
	if (recv_gather(c, MPA_FRAME_MAX) > 0)
		iwarp_end(c, FABRIC_CAUSE_PROTOCOL, "the peer went on before it was accepted");
}

int
iwarp_accept(struct fabric_conn *base, const void *data, size_t len)
{
	struct iwarp_conn *c = (struct iwarp_conn *)base;
	struct mpa_frame reply;
	int r;

	if (c->state != CONN_REQUESTED)
		return -ENOTCONN;
	reply = make_reply(c, data, len);
	r = send_reply(c, &reply);
	if (r < 0) {
		iwarp_end_errno(c, "the peer gave up before it was accepted", r);
		return r;
	}
	c->crc = reply.crc;
	c->reads = reply.ird > 0;
	iwarp_set_state(c, CONN_ACCEPTING);
	iwarp_defer(c->iwarp, &c->news);
	return 0;
}

void
iwarp_reject(struct fabric_conn *base, const void *data, size_t len)
{
	struct iwarp_conn *c = (struct iwarp_conn *)base;

	if (c->state == CONN_REQUESTED)
		setup_refuse(c, data, len);
	iwarp_end(c, FABRIC_CAUSE_LOCAL, "rejected");
}
