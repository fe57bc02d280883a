/* verbs_join.c -- rdma_connect where it blocks: a job that a signal interrupts
 *
 * On iWARP devices rdma_connect opens a TCP connection inside the call, which takes minutes towards
 * an address that drops SYN. So it runs on a worker, on an event channel that the loop leaves alone
 * meanwhile. To end it early a signal is sent to that worker for as long as the call lasts: one
 * that arrives just before the call is lost, hence the repetition.
 *
 * The first attempt only waits. A TCP connection that is closed before the peer's siw has accepted
 * it makes that siw close its listener, and later crash (Linux 6.1: sockets that wait to be
 * accepted carry the listener's callbacks). A call that can end by itself soon is better left to do
 * so.
 */

#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/verbs.h"

/* Sent to workers only, which block it but around the call; its handler does nothing. */
#define INTERRUPT SIGRTMIN

struct verbs_join {
	struct job job;
	struct verbs_conn *conn; /* NULL: cancelled before it began; the loop's thread only */
	bool waited;             /* the first attempt to cancel was made; the loop's thread only */
	struct rdma_cm_id *id;
	struct rdma_conn_param param;
	uint8_t data[UINT8_MAX];
	int error;

	pthread_mutex_t lock; /* guards all below */
	pthread_t thread;     /* valid while inside */
	bool inside, cancelled;
};

static void
on_interrupt(int signo)
{
	(void)signo;
}

int
join_init(void)
{
	struct sigaction action = {.sa_handler = on_interrupt}; /* no SA_RESTART */

	return sigaction(INTERRUPT, &action, NULL) == 0 ? 0 : -errno;
}

static bool
enter(struct verbs_join *join)
{
	pthread_mutex_lock(&join->lock);
	join->inside = !join->cancelled;
	join->thread = pthread_self();
	pthread_mutex_unlock(&join->lock);
	return join->inside;
}

static void
leave(struct verbs_join *join)
{
	pthread_mutex_lock(&join->lock);
	join->inside = false;
	pthread_mutex_unlock(&join->lock);
}

static void
run(struct job *job)
{
	struct verbs_join *join = container_of(job, struct verbs_join, job);
	sigset_t interrupt;

	if (!enter(join))
		return;
	sigemptyset(&interrupt);
	sigaddset(&interrupt, INTERRUPT);
	pthread_sigmask(SIG_UNBLOCK, &interrupt, NULL);
	join->error = rdma_connect(join->id, &join->param) == 0 ? 0 : -errno;
	pthread_sigmask(SIG_BLOCK, &interrupt, NULL);
	leave(join);
}

static void
done(struct job *job)
{
	struct verbs_join *join = container_of(job, struct verbs_join, job);
	struct verbs_conn *c = join->conn;
	int error = join->error;

	pthread_mutex_destroy(&join->lock);
	free(join);
	if (c == NULL)
		return;
	c->join = NULL;
	verbs_conn_join_done(c, error);
}

int
join_start(struct verbs_conn *c, const struct rdma_conn_param *param)
{
	struct verbs_join *join = calloc(1, sizeof(*join));

	if (join == NULL)
		return -ENOMEM;
	join->job = (struct job){.run = run, .done = done};
	join->conn = c;
	join->id = c->id;
	join->param = *param;
	if (param->private_data_len > 0)
		memcpy(join->data, param->private_data, param->private_data_len);
	join->param.private_data = join->data;
	pthread_mutex_init(&join->lock, NULL);
	c->join = join;
	loop_io_set(c->io, 0);
	work_submit(c->verbs->base.env.work, &join->job);
	return 0;
}

bool
join_cancel(struct verbs_conn *c)
{
	struct verbs_join *join = c->join;
	bool inside;

	if (join == NULL)
		return true;
	pthread_mutex_lock(&join->lock);
	join->cancelled = true;
	inside = join->inside;
	if (inside && join->waited)
		pthread_kill(join->thread, INTERRUPT);
	pthread_mutex_unlock(&join->lock);
	join->waited = true;
	if (inside)
		return false;
	join->conn = NULL; /* done() frees it */
	c->join = NULL;
	return true;
}
