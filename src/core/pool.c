/* pool.c -- memory for regions and staging: reserved, zeroed, sealed, warm, within a budget */

#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/page.h"
#include "core/pool.h"
#include "loop/loop.h"

#define WARM_NS (60 * NSEC_PER_SEC)
/* Long work goes in slices, between which the jobs of others have their turn. */
#define SLICE (UINT64_C(8) << 20)
#define SEALS (F_SEAL_FUTURE_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

struct pool {
	struct loop *loop;
	struct work *work;
	uint64_t limit;
	uint64_t used;         /* handed out or being made */
	uint64_t warm;         /* in the warm list, or on the way there or to munmap */
	unsigned busy;         /* jobs under way */
	struct list warm_list; /* oldest first */
	struct loop_timer *cool;
	void (*quiet)(void *arg);
	void *arg;
};

static void cool_down(void *arg);

int
pool_new(struct loop *loop, struct work *work, uint64_t limit, void (*quiet)(void *arg), void *arg,
    struct pool **ret)
{
	struct pool *pool = calloc(1, sizeof(*pool));

	if (pool == NULL)
		return -ENOMEM;
	if (loop_timer_new(loop, cool_down, pool, &pool->cool) < 0) {
		free(pool);
		return -ENOMEM;
	}
	pool->loop = loop;
	pool->work = work;
	pool->limit = limit;
	pool->quiet = quiet;
	pool->arg = arg;
	list_init(&pool->warm_list);
	*ret = pool;
	return 0;
}

void
pool_set_limit(struct pool *pool, uint64_t limit)
{
	pool->limit = limit;
}

uint64_t
pool_limit(const struct pool *pool)
{
	return pool->limit;
}

uint64_t
pool_used(const struct pool *pool)
{
	return pool->used;
}

uint64_t
pool_room(const struct pool *pool)
{
	return pool->limit > pool->used ? pool->limit - pool->used : 0;
}

bool
pool_quiet(const struct pool *pool)
{
	return pool->busy == 0;
}

static void
job_ended(struct pool *pool)
{
	if (--pool->busy == 0)
		pool->quiet(pool->arg);
}

/* ---- making ---- */

static void
release_pages(struct memory *m)
{
	if (m->addr != NULL)
		munmap(m->addr, m->mapped);
	if (m->fd >= 0)
		close(m->fd);
	m->addr = NULL;
	m->fd = -1;
}

/* Of a file of huge pages the last is taken whole; false when not even the first would be filled.
 */
static bool
whole_huge_pages(struct memory *m)
{
	struct stat st;
	size_t page;

	if (fstat(m->fd, &st) < 0)
		return false;
	page = (size_t)st.st_blksize;
	m->mapped = (m->mapped + page - 1) / page * page;
	return m->size >= page;
}

/* Mapping sets huge pages aside, so a want of them shows before the long work. Reserving the pages
 * (they are zero) reports a shortage here; later it would be a SIGBUS. */
static int
make_pages_of(struct memory *m, unsigned huge)
{
	void *addr;

	m->fd = memfd_create("rwriter", MFD_CLOEXEC | MFD_ALLOW_SEALING | huge);
	if (m->fd < 0)
		return -errno;
	m->mapped = m->size + (m->behind > 0 ? page_round(m->behind) : 0);
	if (huge && !whole_huge_pages(m))
		return -EINVAL;
	if (ftruncate(m->fd, m->mapped) < 0)
		return -errno;
	addr = mmap(NULL, m->mapped, PROT_READ | PROT_WRITE, MAP_SHARED, m->fd, 0);
	if (addr == MAP_FAILED)
		return -errno;
	m->addr = addr;
	return fallocate(m->fd, 0, 0, m->mapped) < 0 ? -errno : 0;
}

static int
make_pages(struct memory *m)
{
	int error = make_pages_of(m, MFD_HUGETLB);

	if (error < 0) {
		release_pages(m);
		error = make_pages_of(m, 0);
	}
	if (error < 0)
		return error;
	/* The writable mapping stays; nobody else can make one, or change the size. */
	if (fchmod(m->fd, 0400) < 0 || fcntl(m->fd, F_ADD_SEALS, SEALS) < 0)
		return -errno;
	return 0;
}

static void
run_make(struct job *job)
{
	struct memory *m = container_of(job, struct memory, job);

	m->error = make_pages(m);
	if (m->error < 0)
		release_pages(m);
}

static void
done_make(struct job *job)
{
	struct memory *m = container_of(job, struct memory, job);
	struct memory_request *request = m->request;
	int error = m->error;

	job_ended(m->pool);
	if (error < 0) {
		m->pool->used -= m->size;
		free(m);
		m = NULL;
	}
	request->fn(request, m, error);
}

static void
run_nothing(struct job *job)
{
	(void)job; /* warm memory is ready; the job only moves fn to a later turn */
}

static struct memory *
take_warm(struct pool *pool, uint64_t size, size_t behind)
{
	struct memory *m;

	list_for_each (m, &pool->warm_list, struct memory, node)
		if (m->size == size && m->behind == behind) {
			list_del(&m->node);
			pool->warm -= size;
			return m;
		}
	return NULL;
}

static struct memory *
new_memory(struct pool *pool, uint64_t size, size_t behind)
{
	struct memory *m = calloc(1, sizeof(*m));

	if (m == NULL)
		return NULL;
	list_init(&m->node);
	m->pool = pool;
	m->size = size;
	m->behind = behind;
	m->fd = -1;
	m->job.run = run_make;
	return m;
}

/* ---- unmaking ---- */

static void
run_drop(struct job *job)
{
	release_pages(container_of(job, struct memory, job));
}

static void
done_drop(struct job *job)
{
	struct memory *m = container_of(job, struct memory, job);

	job_ended(m->pool);
	m->pool->warm -= m->size;
	free(m);
}

static void
submit(struct memory *m, void (*run)(struct job *), void (*done)(struct job *))
{
	m->pool->busy++;
	m->job = (struct job){.run = run, .done = done};
	work_submit(m->pool->work, &m->job);
}

/* Drops warm memory, oldest first, until used and warm together leave room for size more bytes. */
static void
make_room(struct pool *pool, uint64_t size)
{
	struct memory *m;
	uint64_t warm = pool->warm;

	list_for_each (m, &pool->warm_list, struct memory, node) {
		if (pool->used + warm + size <= pool->limit)
			return;
		list_del(&m->node);
		warm -= m->size;
		submit(m, run_drop, done_drop);
	}
}

static void
cool_down(void *arg)
{
	struct pool *pool = arg;
	struct memory *m;
	uint64_t now = loop_now();

	list_for_each (m, &pool->warm_list, struct memory, node) {
		if (m->warm_since + WARM_NS > now) {
			loop_timer_set(pool->cool, m->warm_since + WARM_NS - now);
			return;
		}
		list_del(&m->node);
		submit(m, run_drop, done_drop);
	}
}

static void
run_zero(struct job *job)
{
	struct memory *m = container_of(job, struct memory, job);
	size_t left = m->mapped - m->zeroed, len = left < SLICE ? left : SLICE;

	memset(m->addr + m->zeroed, 0, len);
	m->zeroed += len;
}

static void
done_zero(struct job *job)
{
	struct memory *m = container_of(job, struct memory, job);
	struct pool *pool = m->pool;

	if (m->zeroed < m->mapped) {
		work_submit(pool->work, &m->job);
		return;
	}
	job_ended(pool);
	m->warm_since = loop_now();
	if (list_empty(&pool->warm_list))
		loop_timer_set(pool->cool, WARM_NS);
	list_add_tail(&pool->warm_list, &m->node);
	make_room(pool, 0);
}

static void
dispose(struct memory *m)
{
	m->put = false;
	if (m->exported || m->pool->used + m->pool->warm > m->pool->limit) {
		submit(m, run_drop, done_drop);
		return;
	}
	m->zeroed = 0;
	submit(m, run_zero, done_zero);
}

/* ---- touching ---- */

static void
run_touch(struct job *job)
{
	struct memory *m = container_of(job, struct memory, touch);
	size_t len = m->untouched < SLICE ? m->untouched : SLICE;

	m->untouched -= len;
	/* Only a help: what is not mapped now is when it is used. */
	if (madvise(m->addr + m->untouched, len, MADV_POPULATE_WRITE) < 0)
		m->untouched = 0;
}

static void
done_touch(struct job *job)
{
	struct memory *m = container_of(job, struct memory, touch);
	struct pool *pool = m->pool;

	if (!m->put && m->untouched > 0) {
		work_submit(pool->work, &m->touch);
		return;
	}
	m->touching = false;
	if (m->put)
		dispose(m);
	job_ended(pool);
}

void
memory_touch(struct memory *m)
{
	if (m->touching)
		return;
	m->touching = true;
	m->untouched = m->size;
	m->touch = (struct job){.run = run_touch, .done = done_touch};
	m->pool->busy++;
	work_submit(m->pool->work, &m->touch);
}

/* ---- in and out ---- */

int
pool_get(struct pool *pool, uint64_t size, struct memory_request *request)
{
	struct memory *m;

	size = page_round(size);
	if (size > pool_room(pool))
		return -ENOBUFS;
	m = take_warm(pool, size, request->behind);
	if (m != NULL) {
		m->error = 0;
	} else {
		m = new_memory(pool, size, request->behind);
		if (m == NULL)
			return -ENOMEM;
		make_room(pool, size);
	}
	m->request = request;
	pool->used += size;
	submit(m, m->addr != NULL ? run_nothing : run_make, done_make);
	return 0;
}

void *
memory_behind(const struct memory *m)
{
	return m->addr + m->mapped - m->behind;
}

void
memory_put(struct memory *m)
{
	if (m == NULL)
		return;
	m->pool->used -= m->size;
	m->pool->warm += m->size;
	m->put = m->touching;
	if (m->touching) /* its job sees that, and disposes of the memory */
		return;
	dispose(m);
}

int
memory_export(struct memory *m)
{
	char path[40];
	int fd;

	/* A second open of the file, not a duplicate of the descriptor: that one may write. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", m->fd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	m->exported = true;
	return fd;
}

struct pool *
pool_free(struct pool *pool)
{
	struct memory *m;

	if (pool == NULL)
		return NULL;
	list_for_each (m, &pool->warm_list, struct memory, node) {
		release_pages(m);
		free(m);
	}
	loop_timer_free(pool->cool);
	free(pool);
	return NULL;
}
