/* frame.c -- NUL-terminated messages and the descriptors that travel with them, on a stream socket
 */

#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control/frame.h"

/* One message on its way out. */
struct chunk {
	struct list node;
	char *text;
	size_t len, sent; /* NUL included */
	int fd;           /* travels with the first byte; -1: none, or gone already */
};

/* Of what comes in; what is beyond the kernel does not even install. */
union descriptors {
	char buf[CMSG_SPACE(LIMIT_BATCH * sizeof(int))];
	struct cmsghdr align;
};

union descriptor {
	char buf[CMSG_SPACE(sizeof(int))];
	struct cmsghdr align;
};

/* ---- in ---- */

void
inbox_init(struct inbox *in)
{
	in->n_fds = 0;
	in->len = 0;
}

void
inbox_clear(struct inbox *in)
{
	while (in->n_fds > 0)
		close(in->fds[--in->n_fds]);
	inbox_init(in);
}

/* Keeps as many as may come; false when there are more, which are closed. */
static bool
take_descriptors(struct inbox *in, struct msghdr *msg)
{
	bool surplus = msg->msg_flags & MSG_CTRUNC;

	for (struct cmsghdr *h = CMSG_FIRSTHDR(msg); h != NULL; h = CMSG_NXTHDR(msg, h)) {
		if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < (h->cmsg_len - CMSG_LEN(0)) / sizeof(int); i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(h) + i * sizeof(int), sizeof(int));
			if (in->n_fds < LIMIT_BATCH) {
				in->fds[in->n_fds++] = fd;
			} else {
				close(fd);
				surplus = true;
			}
		}
	}
	return !surplus;
}

/* Takes at most len bytes, which have been peeked at, and the descriptors that come with them. */
static ssize_t
take(struct inbox *in, int socket, size_t len)
{
	union descriptors control;
	struct iovec iov = {in->text + in->len, len};
	struct msghdr msg = {
	    .msg_iov = &iov,
	    .msg_iovlen = 1,
	    .msg_control = control.buf,
	    .msg_controllen = sizeof(control.buf),
	};
	ssize_t n = recvmsg(socket, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	if (n < 0)
		return -errno;
	in->len += n;
	return take_descriptors(in, &msg) ? n : -EMFILE;
}

/* Peeks for the end of the message first: were bytes of the next one read along, nobody could tell
 * to which of the two a descriptor belongs. */
int
inbox_receive(struct inbox *in, int socket)
{
	while (in->len < sizeof(in->text)) {
		char *start = in->text + in->len, *nul;
		ssize_t n =
		    recv(socket, start, sizeof(in->text) - in->len, MSG_PEEK | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN ? 0 : -errno;
		if (n == 0)
			return -EPIPE;
		nul = memchr(start, '\0', n);
		n = take(in, socket, nul != NULL ? nul - start + 1 : n);
		if (n < 0)
			return n;
		if (nul != NULL && start + n == nul + 1)
			return 1;
	}
	return -EMSGSIZE;
}

/* ---- out ---- */

void
outbox_init(struct outbox *out)
{
	list_init(&out->chunks);
	out->len = 0;
}

bool
outbox_empty(const struct outbox *out)
{
	return list_empty(&out->chunks);
}

int
outbox_put(struct outbox *out, char *text, int fd)
{
	size_t len = strlen(text) + 1;
	struct chunk *chunk = NULL;
	int r = -ENOBUFS;

	if (out->len + len > LIMIT_CONTROL_OUTPUT)
		goto fail;
	chunk = malloc(sizeof(*chunk));
	r = -ENOMEM;
	if (chunk == NULL)
		goto fail;
	*chunk = (struct chunk){.text = text, .len = len, .fd = fd};
	out->len += len;
	list_add_tail(&out->chunks, &chunk->node);
	return 0;
fail:
	free(text);
	if (fd >= 0)
		close(fd);
	return r;
}

static void
free_chunk(struct outbox *out, struct chunk *chunk)
{
	list_del(&chunk->node);
	out->len -= chunk->len;
	if (chunk->fd >= 0)
		close(chunk->fd);
	free(chunk->text);
	free(chunk);
}

void
outbox_clear(struct outbox *out)
{
	struct chunk *chunk;

	while ((chunk = list_first(&out->chunks, struct chunk, node)) != NULL)
		free_chunk(out, chunk);
}

static ssize_t
send_chunk(const struct chunk *chunk, int socket)
{
	union descriptor control = {0};
	struct iovec iov = {chunk->text + chunk->sent, chunk->len - chunk->sent};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

	if (chunk->fd >= 0) {
		msg.msg_control = control.buf;
		msg.msg_controllen = CMSG_SPACE(sizeof(int));
		*CMSG_FIRSTHDR(&msg) = (struct cmsghdr){
		    .cmsg_len = CMSG_LEN(sizeof(int)),
		    .cmsg_level = SOL_SOCKET,
		    .cmsg_type = SCM_RIGHTS,
		};
		memcpy(CMSG_DATA(CMSG_FIRSTHDR(&msg)), &chunk->fd, sizeof(int));
	}
	return sendmsg(socket, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
}

int
outbox_flush(struct outbox *out, int socket)
{
	struct chunk *chunk;

	while ((chunk = list_first(&out->chunks, struct chunk, node)) != NULL) {
		ssize_t n = send_chunk(chunk, socket);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN ? 0 : -errno;
		if (chunk->fd >= 0) {
			close(chunk->fd);
			chunk->fd = -1;
		}
		chunk->sent += n;
		if (chunk->sent == chunk->len)
			free_chunk(out, chunk);
	}
	return 0;
}
