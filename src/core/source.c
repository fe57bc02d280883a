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
#include "core/file.h"
#include "core/share.h"
#include "core/source.h"
#include "core/stream.h"
#include "wire/auth.h"

struct source {
	struct source_env env;
	uid_t uid;
	unsigned holds;    /* the owner's, and one for each read under way */
	struct file *file; /* or NULL: a stream */
	int fd;            /* of the stream, */
	struct stream *stream;
	struct source_read *pending; /* which waits for bytes */
};

static void on_stream_ready(void *arg);

static void
release(struct source *source)
{
	if (--source->holds > 0)
		return;
	stream_free(source->stream);
	if (source->fd >= 0)
		close(source->fd);
	file_release(source->file);
	share_leave(source->env.share, source->uid);
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
open_source(struct source *source, int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (S_ISREG(st.st_mode))
		return file_hold(source->env.files, source->uid, fd, &st, &source->file);
	if (!is_stream_socket(fd, &st))
		return -EINVAL;
	source->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (source->fd < 0)
		return -errno;
	return stream_new(source->env.loop, source->fd, on_stream_ready, source, &source->stream);
}

int
source_new(const struct source_env *env, uid_t uid, int fd, struct source **ret)
{
	struct source *source = calloc(1, sizeof(*source));
	int error;

	if (source == NULL)
		return -ENOMEM;
	source->env = *env;
	source->uid = uid;
	source->fd = -1;
	source->holds = 1;
	error = share_join(env->share, uid);
	if (error < 0) {
		free(source);
		return error;
	}
	error = open_source(source, fd);
	if (error < 0) {
		release(source);
		return error;
	}
	*ret = source;
	return 0;
}

bool
source_is_stream(const struct source *source)
{
	return source->file == NULL;
}

uint64_t
source_length(const struct source *source)
{
	return source_is_stream(source) ? UINT64_MAX : (uint64_t)file_stat(source->file)->st_size;
}

int64_t
source_mtime(const struct source *source)
{
	const struct timespec *ts;

	if (source_is_stream(source))
		return 0;
	ts = &file_stat(source->file)->st_mtim;
	return (int64_t)ts->tv_sec * 1000000000 + ts->tv_nsec;
}

uint32_t
source_mode(const struct source *source)
{
	return source_is_stream(source) ? 0 : file_stat(source->file)->st_mode & 07777;
}

int
source_id(
    const struct source *source, const char *region, const char *name, uint8_t ret[SOURCE_ID_SIZE])
{
	const struct stat *st;

	if (source_is_stream(source)) {
		random_bytes(ret, SOURCE_ID_SIZE);
		return 0;
	}
	st = file_stat(source->file);
	return auth_file_id(region, name,
	    (const uint64_t[]){st->st_dev, st->st_ino, st->st_size, source_mtime(source)},
	    4 * sizeof(uint64_t), ret);
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
	share_submit(source->env.share, source->uid, &read->job);
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

	share_ended(source->env.share, source->uid);
	if (source->file != NULL)
		file_read_done(source->file, read);
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
	read->job.done = done;
	source->holds++;
	if (source->file != NULL) {
		file_read(source->file, read);
		return;
	}
	read->job.run = run_stream;
	source->pending = read;
	stream_await(source->stream, read->offset + read->size);
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
