/* source.c -- where the bytes of a transfer come from */

#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "core/share.h"
#include "core/source.h"
#include "loop/loop.h"

struct source {
	struct share *share;
	uid_t uid;
	int fd;
	unsigned holds; /* the owner's, and one for each read under way */
	struct stat st;
	struct loop_io *io;          /* stream */
	struct source_read *pending; /* stream: waits for bytes */
};

static void on_readable(void *arg, unsigned events);

static void
release(struct source *source)
{
	if (--source->holds > 0)
		return;
	share_leave(source->share, source->uid);
	loop_io_free(source->io);
	close(source->fd);
	free(source);
}

static bool
is_stream_socket(int fd, const struct stat *st)
{
	int type;
	socklen_t len = sizeof(type);

	return S_ISSOCK(st->st_mode) && getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0 &&
	       type == SOCK_STREAM;
}

static int
open_source(struct source *source, struct loop *loop, int fd)
{
	if (fstat(fd, &source->st) < 0)
		return -errno;
	if (!S_ISREG(source->st.st_mode) && !is_stream_socket(fd, &source->st))
		return -EINVAL;
	source->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (source->fd < 0)
		return -errno;
	if (S_ISREG(source->st.st_mode))
		return 0;
	return loop_io_new(loop, source->fd, 0, on_readable, source, &source->io);
}

int
source_new(struct loop *loop, struct share *share, uid_t uid, int fd, struct source **ret)
{
	struct source *source = calloc(1, sizeof(*source));
	int error;

	if (source == NULL)
		return -ENOMEM;
	source->share = share;
	source->uid = uid;
	source->fd = -1;
	source->holds = 1;
	error = open_source(source, loop, fd);
	if (error == 0)
		error = share_join(share, uid);
	if (error < 0) {
		loop_io_free(source->io);
		if (source->fd >= 0)
			close(source->fd);
		free(source);
		return error;
	}
	*ret = source;
	return 0;
}

bool
source_is_stream(const struct source *source)
{
	return source->io != NULL;
}

uint64_t
source_length(const struct source *source)
{
	return source_is_stream(source) ? UINT64_MAX : (uint64_t)source->st.st_size;
}

int64_t
source_mtime(const struct source *source)
{
	const struct timespec *ts = &source->st.st_mtim;

	return source_is_stream(source) ? 0 : (int64_t)ts->tv_sec * 1000000000 + ts->tv_nsec;
}

uint32_t
source_mode(const struct source *source)
{
	return source_is_stream(source) ? 0 : source->st.st_mode & 07777;
}

/* ---- reads ---- */

/* The file is what it was when the transfer began. */
static bool
unchanged(const struct source *source)
{
	struct stat now;

	return fstat(source->fd, &now) == 0 && now.st_size == source->st.st_size &&
	       now.st_mtim.tv_sec == source->st.st_mtim.tv_sec &&
	       now.st_mtim.tv_nsec == source->st.st_mtim.tv_nsec;
}

static int
read_file(struct source_read *read)
{
	const struct source *source = read->source;
	uint64_t left = source->st.st_size - read->offset;
	size_t want = left < read->size ? left : read->size;

	while (read->len < want) {
		ssize_t n = pread(
		    source->fd, read->buf + read->len, want - read->len, read->offset + read->len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -ESTALE;
		read->len += n;
	}
	read->end = read->offset + read->len == (uint64_t)source->st.st_size;
	return read->end && !unchanged(source) ? -ESTALE : 0;
}

static void
run_file(struct job *job)
{
	struct source_read *read = container_of(job, struct source_read, job);

	read->error = read_file(read);
	read->crc = crc32c(0, read->buf, read->len);
}

static void
run_stream(struct job *job)
{
	struct source_read *read = container_of(job, struct source_read, job);

	read->crc = crc32c(0, read->buf, read->len);
}

static void
done(struct job *job)
{
	struct source_read *read = container_of(job, struct source_read, job);
	struct source *source = read->source;

	share_ended(source->share, source->uid);
	read->done(read);
	release(source);
}

static void
stream_complete(struct source *source)
{
	struct source_read *read = source->pending;

	source->pending = NULL;
	loop_io_set(source->io, 0);
	share_submit(source->share, source->uid, &read->job);
}

/* A stream is at its end when the other side says so by shutdown(2); one that is closed was cut
 * off. */
static int
end_of_stream(const struct source *source)
{
	struct pollfd fd = {.fd = source->fd};

	return poll(&fd, 1, 0) > 0 && fd.revents & POLLHUP ? -EPIPE : 0;
}

static void
on_readable(void *arg, unsigned events)
{
	struct source *source = arg;
	struct source_read *read = source->pending;
	ssize_t n = recv(source->fd, read->buf + read->len, read->size - read->len, MSG_DONTWAIT);

	(void)events;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0)
		read->len += n;
	else
		read->error = n == 0 ? end_of_stream(source) : -errno;
	read->end = n == 0;
	if (n <= 0 || read->len == read->size)
		stream_complete(source);
}

void
source_read(struct source *source, struct source_read *read)
{
	read->source = source;
	read->len = 0;
	read->crc = 0;
	read->end = false;
	read->error = 0;
	read->job =
	    (struct job){.run = source_is_stream(source) ? run_stream : run_file, .done = done};
	source->holds++;
	if (source_is_stream(source)) {
		source->pending = read;
		loop_io_set(source->io, LOOP_READ);
	} else {
		share_submit(source->share, source->uid, &read->job);
	}
}

struct source *
source_free(struct source *source)
{
	if (source == NULL)
		return NULL;
	if (source->pending != NULL) {
		source->pending->error = -ECANCELED;
		stream_complete(source);
	}
	release(source);
	return NULL;
}
