/* stream.c -- an input that can be read only once, and the last of it that is kept */

#include "config.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/crc32c.h"
#include "core/stream.h"
#include "loop/loop.h"

/* Forgotten at once, when room is needed. */
#define FORGET (UINT64_C(1) << 20)

struct stream {
	int fd;
	struct loop_io *io;
	void (*ready)(void *arg);
	void *arg;
	uint64_t awaited; /* up to there; 0: nothing is */
	uint64_t start, end;
	uint64_t forgettable; /* what is before it */
	uint32_t crc;         /* of all before start */
	int over;
	uint8_t ring[STREAM_KEEP]; /* byte n of the stream is at n % STREAM_KEEP */
};

static void on_readable(void *arg, unsigned events);

int
stream_new(struct loop *loop, int fd, void (*ready)(void *arg), void *arg, struct stream **ret)
{
	struct stream *stream = malloc(sizeof(*stream)); /* not calloc: the ring is long */
	int error;

	if (stream == NULL)
		return -ENOMEM;
	memset(stream, 0, offsetof(struct stream, ring));
	stream->fd = fd;
	stream->ready = ready;
	stream->arg = arg;
	error = loop_io_new(loop, fd, 0, on_readable, stream, &stream->io);
	if (error < 0) {
		free(stream);
		return error;
	}
	*ret = stream;
	return 0;
}

struct stream *
stream_free(struct stream *stream)
{
	if (stream == NULL)
		return NULL;
	loop_io_free(stream->io);
	free(stream);
	return NULL;
}

/* ---- the ring ---- */

static size_t
up_to_edge(uint64_t offset, uint64_t len)
{
	uint64_t edge = STREAM_KEEP - offset % STREAM_KEEP;

	return len < edge ? len : edge;
}

void
stream_copy(const struct stream *stream, uint64_t offset, void *buf, size_t len)
{
	size_t first = up_to_edge(offset, len);

	memcpy(buf, stream->ring + offset % STREAM_KEEP, first);
	memcpy((uint8_t *)buf + first, stream->ring, len - first);
}

bool
stream_crc(const struct stream *stream, uint64_t offset, uint32_t *ret)
{
	size_t len = offset - stream->start, first = up_to_edge(stream->start, len);
	uint32_t crc;

	if (offset < stream->start || offset > stream->end)
		return false;
	crc = crc32c(stream->crc, stream->ring + stream->start % STREAM_KEEP, first);
	*ret = crc32c(crc, stream->ring, len - first);
	return true;
}

/* Room behind the end, in one piece. */
static size_t
make_room(struct stream *stream)
{
	uint64_t old = stream->forgettable - stream->start;

	if (stream->end - stream->start == STREAM_KEEP && old > 0) {
		uint64_t offset = stream->start + (old < FORGET ? old : FORGET);

		stream_crc(stream, offset, &stream->crc);
		stream->start = offset;
	}
	return up_to_edge(stream->end, STREAM_KEEP - (stream->end - stream->start));
}

/* ---- receiving ---- */

/* A stream is at its end when the other side says so by shutdown(2); one that is closed was cut
 * off. */
static int
how_it_ended(const struct stream *stream)
{
	struct pollfd fd = {.fd = stream->fd};

	return poll(&fd, 1, 0) > 0 && fd.revents & POLLHUP ? -EPIPE : 1;
}

static void
look(struct stream *stream)
{
	bool enough = stream->end >= stream->awaited || stream->over != 0;

	loop_io_set(stream->io, enough || make_room(stream) == 0 ? 0 : LOOP_READ);
	if (enough && stream->awaited > 0) {
		stream->awaited = 0;
		stream->ready(stream->arg);
	}
}

static void
on_readable(void *arg, unsigned events)
{
	struct stream *stream = arg;
	size_t room = make_room(stream);
	uint64_t want = stream->awaited - stream->end;
	ssize_t n = recv(stream->fd, stream->ring + stream->end % STREAM_KEEP,
	    want < room ? want : room, MSG_DONTWAIT);

	(void)events;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0)
		stream->end += n;
	else
		stream->over = n == 0 ? how_it_ended(stream) : -errno;
	look(stream);
}

void
stream_await(struct stream *stream, uint64_t end)
{
	stream->awaited = end;
	look(stream);
}

void
stream_await_nothing(struct stream *stream)
{
	stream->awaited = 0;
	look(stream);
}

void
stream_forget(struct stream *stream, uint64_t offset)
{
	if (offset <= stream->forgettable || offset > stream->end)
		return;
	stream->forgettable = offset;
	if (stream->awaited > 0)
		look(stream);
}

uint64_t
stream_start(const struct stream *stream)
{
	return stream->start;
}

uint64_t
stream_end(const struct stream *stream)
{
	return stream->end;
}

int
stream_over(const struct stream *stream)
{
	return stream->over;
}
