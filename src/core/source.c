/* source.c -- where the bytes of a transfer come from */

#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/random.h"
#include "core/share.h"
#include "core/source.h"
#include "core/stream.h"
#include "wire/auth.h"

struct source {
	struct share *share;
	uid_t uid;
	int fd;
	unsigned holds; /* the owner's, and one for each read under way */
	struct stat st;
	struct stream *stream;       /* or NULL: a regular file */
	struct source_read *pending; /* of the stream: waits for bytes */
};

static void on_stream_ready(void *arg);

static void
release(struct source *source)
{
	if (--source->holds > 0)
		return;
	share_leave(source->share, source->uid);
	stream_free(source->stream);
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
	return stream_new(loop, source->fd, on_stream_ready, source, &source->stream);
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
		stream_free(source->stream);
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
	return source->stream != NULL;
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

int
source_id(
    const struct source *source, const char *region, const char *name, uint8_t ret[SOURCE_ID_SIZE])
{
	const uint64_t numbers[] = {
	    source->st.st_dev, source->st.st_ino, source->st.st_size, source_mtime(source)};

	if (source_is_stream(source)) {
		random_bytes(ret, SOURCE_ID_SIZE);
		return 0;
	}
	return auth_file_id(region, name, numbers, sizeof(numbers), ret);
}

/* ---- regular files: jobs ---- */

static bool
same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

/* The file is what it was when the transfer began. */
static bool
unchanged(const struct source *source)
{
	struct stat now;

	return fstat(source->fd, &now) == 0 && now.st_size == source->st.st_size &&
	       same_time(&now.st_mtim, &source->st.st_mtim) &&
	       same_time(&now.st_ctim, &source->st.st_ctim);
}

/* Where the file has data again, at `offset` or behind it; a file system may not know. */
static uint64_t
next_data(const struct source *source, uint64_t offset)
{
	off_t data = lseek(source->fd, offset, SEEK_DATA);

	if (data < 0)
		return errno == ENXIO ? (uint64_t)source->st.st_size : offset;
	return data;
}

static int
read_bytes(const struct source *source, struct source_read *read, size_t want)
{
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
	read->next = read->offset + read->len;
	return 0;
}

static int
read_file(struct source_read *read)
{
	const struct source *source = read->source;
	uint64_t size = source->st.st_size, left = size - read->offset;
	size_t want = left < read->size ? left : read->size;
	uint64_t data = read->holes ? next_data(source, read->offset) : read->offset;
	int error = 0;

	if (data - read->offset < want)
		error = read_bytes(source, read, want);
	else
		read->next = data;
	read->end = read->next >= size;
	return error == 0 && !unchanged(source) ? -ESTALE : error;
}

static void
run_file(struct job *job)
{
	struct source_read *read = container_of(job, struct source_read, job);

	read->error = read_file(read);
	read->crc = crc32c(0, read->buf, read->len);
}

/* ---- streams ---- */

static void
run_stream(struct job *job)
{
	struct source_read *read = container_of(job, struct source_read, job);

	stream_copy(read->source->stream, read->offset, read->buf, read->len);
	read->crc = crc32c(0, read->buf, read->len);
}

/* Those that wait for the stream are ready, or will not be. */
static void
stream_complete(struct source *source, int error)
{
	struct source_read *read = source->pending;

	source->pending = NULL;
	read->error = error;
	share_submit(source->share, source->uid, &read->job);
}

static void
on_stream_ready(void *arg)
{
	struct source *source = arg;
	struct source_read *read = source->pending;
	uint64_t there = stream_end(source->stream) - read->offset;
	int over = stream_over(source->stream);

	read->len = there < read->size ? there : read->size;
	read->next = read->offset + read->len;
	read->end = over != 0 && read->len == there && read->len < read->size;
	stream_complete(source, read->end && over < 0 ? over : 0);
}

void
source_cancel(struct source *source)
{
	if (source->pending == NULL)
		return;
	stream_await_nothing(source->stream);
	stream_complete(source, -ECANCELED);
}

uint64_t
source_start(const struct source *source)
{
	return source_is_stream(source) ? stream_start(source->stream) : 0;
}

void
source_forget(struct source *source, uint64_t offset)
{
	if (source_is_stream(source))
		stream_forget(source->stream, offset);
}

bool
source_crc(const struct source *source, uint64_t offset, uint32_t *ret)
{
	return stream_crc(source->stream, offset, ret);
}

/* ---- reads ---- */

static void
done(struct job *job)
{
	struct source_read *read = container_of(job, struct source_read, job);
	struct source *source = read->source;

	share_ended(source->share, source->uid);
	read->done(read);
	release(source);
}

void
source_read(struct source *source, struct source_read *read)
{
	read->source = source;
	read->len = 0;
	read->next = read->offset;
	read->crc = 0;
	read->end = false;
	read->error = 0;
	read->job =
	    (struct job){.run = source_is_stream(source) ? run_stream : run_file, .done = done};
	source->holds++;
	if (source_is_stream(source)) {
		source->pending = read;
		stream_await(source->stream, read->offset + read->size);
	} else {
		share_submit(source->share, source->uid, &read->job);
	}
}

struct source *
source_free(struct source *source)
{
	if (source == NULL)
		return NULL;
	source_cancel(source);
	release(source);
	return NULL;
}
