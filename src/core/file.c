/* file.c -- regular files that are sent, each read once for all transfers that are abreast */

#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/limits.h"
#include "base/list.h"
#include "core/file.h"
#include "core/share.h"
#include "core/source.h"

struct files {
	struct share *share;
	struct list list; /* struct file */
	uint64_t kept;    /* bytes of all segments */
};

struct file {
	struct list node;
	struct files *files;
	uid_t uid;
	int fd;
	struct stat st;
	unsigned holds;
	struct list segments; /* in the order in which they were read */
	unsigned n_segments;
};

/* What one read has got, for others that ask for the same. */
struct segment {
	struct list node;
	struct list waiting; /* struct source_read, while it is being read */
	bool there;
	unsigned users; /* reads that fill it, wait for it or copy it: it stays as it is */
	/* asked */
	uint64_t offset;
	size_t size;
	bool holes;
	/* got */
	size_t len;
	uint64_t next;
	uint32_t crc;
	bool end;
	int error;
	size_t room;
	uint8_t bytes[];
};

int
files_new(struct share *share, struct files **ret)
{
	struct files *files = calloc(1, sizeof(*files));

	if (files == NULL)
		return -ENOMEM;
	files->share = share;
	list_init(&files->list);
	*ret = files;
	return 0;
}

struct files *
files_free(struct files *files)
{
	free(files);
	return NULL;
}

uint64_t
files_kept(const struct files *files)
{
	return files->kept;
}

/* ---- holding ---- */

static bool
same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

/* The file, and what is in it. */
static bool
same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       same_time(&a->st_mtim, &b->st_mtim) && same_time(&a->st_ctim, &b->st_ctim);
}

static struct file *
find(struct files *files, uid_t uid, const struct stat *st)
{
	struct file *file;

	list_for_each (file, &files->list, struct file, node)
		if (file->uid == uid && same(&file->st, st))
			return file;
	return NULL;
}

/* One that is only written, or not even opened, must not be read by way of another's. */
static bool
is_readable(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags >= 0 && (flags & O_PATH) == 0 && (flags & O_ACCMODE) != O_WRONLY;
}

static int
open_file(struct files *files, uid_t uid, int fd, const struct stat *st, struct file **ret)
{
	struct file *file = calloc(1, sizeof(*file));

	if (file == NULL)
		return -ENOMEM;
	file->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (file->fd < 0) {
		int error = -errno;

		free(file);
		return error;
	}
	file->files = files;
	file->uid = uid;
	file->st = *st;
	list_init(&file->segments);
	list_add_tail(&files->list, &file->node);
	*ret = file;
	return 0;
}

int
file_hold(struct files *files, uid_t uid, int fd, const struct stat *st, struct file **ret)
{
	struct file *file = find(files, uid, st);
	int error = is_readable(fd) ? 0 : -EBADF;

	if (error == 0 && file == NULL)
		error = open_file(files, uid, fd, st, &file);
	if (error < 0)
		return error;
	file->holds++;
	*ret = file;
	return 0;
}

static void
drop(struct file *file, struct segment *s)
{
	list_del(&s->node);
	file->n_segments--;
	file->files->kept -= s->room;
	free(s);
}

struct file *
file_release(struct file *file)
{
	if (file == NULL || --file->holds > 0)
		return NULL;
	while (!list_empty(&file->segments))
		drop(file, list_first(&file->segments, struct segment, node));
	list_del(&file->node);
	close(file->fd);
	free(file);
	return NULL;
}

const struct stat *
file_stat(const struct file *file)
{
	return &file->st;
}

/* ---- segments ---- */

static struct segment *
find_segment(const struct file *file, const struct source_read *read)
{
	struct segment *s;

	list_for_each (s, &file->segments, struct segment, node)
		if (s->offset == read->offset && s->size == read->size && s->holes == read->holes &&
		    s->error == 0)
			return s;
	return NULL;
}

static size_t
left(const struct file *file, const struct source_read *read)
{
	uint64_t left = file->st.st_size - read->offset;

	return left < read->size ? left : read->size;
}

/* The oldest of so many bytes: all read on and on, so it is the one that is needed least. */
static struct segment *
find_idle(const struct file *file, size_t room)
{
	struct segment *s;

	list_for_each (s, &file->segments, struct segment, node)
		if (s->users == 0 && s->room >= room)
			return s;
	return NULL;
}

static struct segment *
get_room(struct file *file, size_t room)
{
	struct segment *s = NULL;

	if (file->n_segments < LIMIT_SHARED_SEGMENTS && file->files->kept + room <= LIMIT_SHARED)
		s = malloc(sizeof(*s) + room);
	if (s == NULL)
		return find_idle(file, room);
	s->room = room;
	list_init(&s->node);
	file->files->kept += room;
	file->n_segments++;
	return s;
}

/* For what nobody has read, as far as is known; NULL: it cannot be kept. */
static struct segment *
add_segment(struct file *file, const struct source_read *read)
{
	struct segment *s = get_room(file, left(file, read));

	if (s == NULL)
		return NULL;
	list_del(&s->node);
	list_add_tail(&file->segments, &s->node);
	list_init(&s->waiting);
	s->there = false;
	s->users = 0;
	s->offset = read->offset;
	s->size = read->size;
	s->holes = read->holes;
	s->error = 0;
	return s;
}

/* ---- jobs ---- */

/* The file is what it was when the transfer began. */
static bool
unchanged(const struct file *file)
{
	struct stat now;

	return fstat(file->fd, &now) == 0 && same(&now, &file->st);
}

/* Where the file has data again, at `offset` or behind it; a file system may not know. */
static uint64_t
next_data(const struct file *file, uint64_t offset)
{
	off_t data = lseek(file->fd, offset, SEEK_DATA);

	if (data < 0)
		return errno == ENXIO ? (uint64_t)file->st.st_size : offset;
	return data;
}

static int
read_bytes(const struct file *file, struct source_read *read, size_t want)
{
	while (read->len < want) {
		ssize_t n = pread(
		    file->fd, read->buf + read->len, want - read->len, read->offset + read->len);

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
read_file(const struct file *file, struct source_read *read)
{
	size_t want = left(file, read);
	uint64_t data = read->holes ? next_data(file, read->offset) : read->offset;
	int error = 0;

	if (data - read->offset < want)
		error = read_bytes(file, read, want);
	else
		read->next = data;
	read->end = read->next >= (uint64_t)file->st.st_size;
	return error == 0 && !unchanged(file) ? -ESTALE : error;
}

static void
run_read(struct job *job)
{
	struct source_read *read = container_of(job, struct source_read, job);

	read->error = read_file(read->file, read);
	read->crc = crc32c(0, read->buf, read->len);
}

/* The first one reads for itself, and for others. */
static void
run_first(struct job *job)
{
	struct source_read *read = container_of(job, struct source_read, job);
	struct segment *s = read->segment;

	run_read(job);
	memcpy(s->bytes, read->buf, read->len);
}

static void
run_copy(struct job *job)
{
	struct source_read *read = container_of(job, struct source_read, job);
	const struct segment *s = read->segment;

	memcpy(read->buf, s->bytes, s->len);
	read->len = s->len;
	read->next = s->next;
	read->crc = s->crc;
	read->end = s->end;
	read->error = s->error;
}

/* ---- reading ---- */

static void
submit(struct file *file, struct source_read *read, void (*run)(struct job *job))
{
	read->job.run = run;
	share_submit(file->files->share, file->uid, &read->job);
}

void
file_read(struct file *file, struct source_read *read)
{
	struct segment *s = find_segment(file, read);
	bool first = s == NULL;

	if (first && file->holds > 1)
		s = add_segment(file, read);
	read->file = file;
	read->segment = s;
	if (s != NULL)
		s->users++;
	if (s == NULL)
		submit(file, read, run_read);
	else if (first)
		submit(file, read, run_first);
	else if (s->there)
		submit(file, read, run_copy);
	else
		list_add_tail(&s->waiting, &read->job.node);
}

/* What the first one has got is there for the others. */
static void
fill(struct file *file, struct segment *s, const struct source_read *read)
{
	s->there = true;
	s->len = read->len;
	s->next = read->next;
	s->crc = read->crc;
	s->end = read->end;
	s->error = read->error;
	while (!list_empty(&s->waiting)) {
		struct job *job = list_first(&s->waiting, struct job, node);

		list_del(&job->node);
		submit(file, container_of(job, struct source_read, job), run_copy);
	}
}

void
file_read_done(struct file *file, struct source_read *read)
{
	struct segment *s = read->segment;

	if (s == NULL)
		return;
	s->users--;
	if (!s->there)
		fill(file, s, read);
}
