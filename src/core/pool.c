/* pool.c -- memory for regions and staging: reserved, zeroed, sealed, warm, within a budget */

#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/page.h"
#include "core/pool.h"
#include "loop/loop.h"

#define WARM_NS (60 * NSEC_PER_SEC)
/* Long work goes in slices, between which the jobs of others have their turn. */
#define SLICE (UINT64_C(8) << 20)

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

static void
submit(struct memory *m, void (*run)(struct job *), void (*done)(struct job *))
{
	m->pool->busy++;
	m->job = (struct job){.run = run, .done = done};
	work_submit(m->pool->work, &m->job);
}

static void
submit_slices(struct memory *m, int (*run)(struct slices *s, size_t at, size_t len),
    void (*over)(struct slices *s, int error), size_t size, unsigned abreast)
{
	m->pool->busy++;
	m->slices.run = run;
	m->slices.over = over;
	slices_start(&m->slices, m->pool->work, 0, size, abreast);
}

static void
run_drop(struct job *job)
{
	pages_drop(&container_of(job, struct memory, job)->pages);
}

/* ---- making ---- */

static void
hand_over(struct memory *m)
{
	job_ended(m->pool);
	m->request->fn(m->request, m, 0);
}

/* What was made of it has gone. */
static void
done_failed(struct job *job)
{
	struct memory *m = container_of(job, struct memory, job);
	struct memory_request *request = m->request;
	int error = m->error;

	m->pool->used -= m->size;
	job_ended(m->pool);
	free(m);
	request->fn(request, NULL, error);
}

static void
on_reserved(struct slices *s, int error)
{
	struct memory *m = container_of(s, struct memory, slices);

	m->error = error < 0 ? error : pages_seal(&m->pages);
	if (m->error == 0) {
		hand_over(m);
	} else {
		submit(m, run_drop, done_failed);
		job_ended(m->pool);
	}
}

static int
run_reserve(struct slices *s, size_t at, size_t len)
{
	return pages_reserve(&container_of(s, struct memory, slices)->pages, at, len);
}

/* Of one slice: it is reserved by the same job. */
static bool
is_short(const struct memory *m)
{
	return m->pages.size <= SLICE_SIZE;
}

static void
run_open(struct job *job)
{
	struct memory *m = container_of(job, struct memory, job);

	m->error = pages_open(m->size + m->behind, &m->pages);
	if (m->error == 0 && is_short(m))
		m->error = pages_reserve(&m->pages, 0, m->pages.size);
}

static void
done_open(struct job *job)
{
	struct memory *m = container_of(job, struct memory, job);

	if (m->error < 0 || is_short(m)) {
		on_reserved(&m->slices, m->error);
	} else {
		submit_slices(m, run_reserve, on_reserved, m->pages.size, SLICES_ABREAST);
		job_ended(m->pool);
	}
}

static void
run_nothing(struct job *job)
{
	(void)job; /* warm memory is ready; the job only moves fn to a later turn */
}

static void
done_nothing(struct job *job)
{
	hand_over(container_of(job, struct memory, job));
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
	m->pages.fd = -1;
	return m;
}

/* ---- unmaking ---- */

static void
done_drop(struct job *job)
{
	struct memory *m = container_of(job, struct memory, job);

	job_ended(m->pool);
	m->pool->warm -= m->size;
	free(m);
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

static int
run_zero(struct slices *s, size_t at, size_t len)
{
	memset(container_of(s, struct memory, slices)->pages.addr + at, 0, len);
	return 0;
}

static void
on_zeroed(struct slices *s, int error)
{
	struct memory *m = container_of(s, struct memory, slices);
	struct pool *pool = m->pool;

	(void)error;
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
	if (m->exported || m->pool->used + m->pool->warm > m->pool->limit)
		submit(m, run_drop, done_drop);
	else
		submit_slices(m, run_zero, on_zeroed, m->pages.size, 1);
}

/* ---- touching ---- */

/* From the end. Only a help: what is not mapped now is when it is used. */
static int
run_touch(struct slices *s, size_t at, size_t len)
{
	const struct memory *m = container_of(s, struct memory, slices);

	return madvise(m->pages.addr + m->size - at - len, len, MADV_POPULATE_WRITE);
}

static void
on_touched(struct slices *s, int error)
{
	struct memory *m = container_of(s, struct memory, slices);

	(void)error;
	m->touching = false;
	if (m->put)
		dispose(m);
	job_ended(m->pool);
}

void
memory_touch(struct memory *m)
{
	if (m->touching)
		return;
	m->touching = true;
	submit_slices(m, run_touch, on_touched, m->size, 1);
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
	if (m == NULL) {
		m = new_memory(pool, size, request->behind);
		if (m == NULL)
			return -ENOMEM;
		make_room(pool, size);
	}
	m->request = request;
	pool->used += size;
	if (m->pages.addr != NULL)
		submit(m, run_nothing, done_nothing);
	else
		submit(m, run_open, done_open);
	return 0;
}

void *
memory_behind(const struct memory *m)
{
	return m->pages.addr + m->pages.size - m->behind;
}

void
memory_put(struct memory *m)
{
	if (m == NULL)
		return;
	m->pool->used -= m->size;
	m->pool->warm += m->size;
	m->put = m->touching;
	if (m->touching)
		slices_cut(&m->slices); /* on_touched() disposes of it */
	else
		dispose(m);
}

int
memory_export(struct memory *m)
{
	char path[40];
	int fd;

	/* A second open of the file, not a duplicate of the descriptor: that one may write. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", m->pages.fd);
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
		pages_drop(&m->pages);
		free(m);
	}
	loop_timer_free(pool->cool);
	free(pool);
	return NULL;
}
