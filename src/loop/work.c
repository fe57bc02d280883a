/* work.c -- job pools: threads that take from one queue, and an eventfd that brings the jobs back
 */

#include "config.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "loop/loop.h"
#include "loop/work.h"

struct work {
	struct loop_io *io;
	int fd;           /* an eventfd: readable while jobs are in done */
	unsigned pending; /* the loop's thread only, like all above */

	pthread_mutex_t lock; /* guards all below */
	pthread_cond_t more;
	struct list queue, done;
	bool ending;

	unsigned n_threads; /* the loop's thread only */
	pthread_t threads[];
};

/* The next job, or NULL when the pool ends. */
static struct job *
take(struct work *work)
{
	struct job *job;

	pthread_mutex_lock(&work->lock);
	while (list_empty(&work->queue) && !work->ending)
		pthread_cond_wait(&work->more, &work->lock);
	job = list_first(&work->queue, struct job, node);
	if (job != NULL)
		list_del(&job->node);
	pthread_mutex_unlock(&work->lock);
	return job;
}

static void
give_back(struct work *work, struct job *job)
{
	pthread_mutex_lock(&work->lock);
	if (list_empty(&work->done))
		eventfd_write(work->fd, 1);
	list_add_tail(&work->done, &job->node);
	pthread_mutex_unlock(&work->lock);
}

static void *
worker(void *arg)
{
	struct work *work = arg;
	struct job *job;

	while ((job = take(work)) != NULL) {
		job->run(job);
		give_back(work, job);
	}
	return NULL;
}

/* One round: what done() submits waits for the next, so a chain of jobs does not starve the loop.
 */
static void
call_done(struct work *work)
{
	struct list done = LIST_INIT(done);
	eventfd_t count;

	pthread_mutex_lock(&work->lock);
	eventfd_read(work->fd, &count);
	list_splice_tail(&done, &work->done);
	pthread_mutex_unlock(&work->lock);

	while (!list_empty(&done)) {
		struct job *job = list_first(&done, struct job, node);

		list_del(&job->node);
		work->pending--;
		job->done(job);
	}
}

static void
on_done(void *arg, unsigned events)
{
	(void)events;
	call_done(arg);
}

/* Signals belong to the loop's thread: workers block them all. */
static int
start_threads(struct work *work, const char *name, unsigned threads)
{
	sigset_t all, before;
	int r = 0;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	while (r == 0 && work->n_threads < threads) {
		r = -pthread_create(&work->threads[work->n_threads], NULL, worker, work);
		if (r == 0)
			pthread_setname_np(work->threads[work->n_threads++], name);
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return r;
}

int
work_new(struct loop *loop, const char *name, unsigned threads, struct work **ret)
{
	struct work *work = calloc(1, sizeof(*work) + threads * sizeof(work->threads[0]));
	int r;

	if (work == NULL)
		return -ENOMEM;
	list_init(&work->queue);
	list_init(&work->done);
	pthread_mutex_init(&work->lock, NULL);
	pthread_cond_init(&work->more, NULL);
	work->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (work->fd < 0) {
		r = -errno;
		goto fail;
	}
	r = loop_io_new(loop, work->fd, LOOP_READ, on_done, work, &work->io);
	if (r < 0)
		goto fail;
	r = start_threads(work, name, threads);
	if (r < 0)
		goto fail;
	*ret = work;
	return 0;
fail:
	work_free(work);
	return r;
}

void
work_submit(struct work *work, struct job *job)
{
	work->pending++;
	pthread_mutex_lock(&work->lock);
	list_add_tail(&work->queue, &job->node);
	pthread_cond_signal(&work->more);
	pthread_mutex_unlock(&work->lock);
}

unsigned
work_threads(const struct work *work)
{
	return work->n_threads;
}

unsigned
work_pending(const struct work *work)
{
	return work->pending;
}

static void
finish_jobs(struct work *work)
{
	struct pollfd readable = {.fd = work->fd, .events = POLLIN};

	while (work->pending > 0) {
		poll(&readable, 1, -1);
		call_done(work);
	}
}

static void
end_threads(struct work *work)
{
	pthread_mutex_lock(&work->lock);
	work->ending = true;
	pthread_cond_broadcast(&work->more);
	pthread_mutex_unlock(&work->lock);
	while (work->n_threads > 0)
		pthread_join(work->threads[--work->n_threads], NULL);
}

struct work *
work_free(struct work *work)
{
	if (work == NULL)
		return NULL;
	finish_jobs(work);
	end_threads(work);
	loop_io_free(work->io);
	if (work->fd >= 0)
		close(work->fd);
	pthread_cond_destroy(&work->more);
	pthread_mutex_destroy(&work->lock);
	free(work);
	return NULL;
}
