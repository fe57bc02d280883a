/* verbs_mem.c -- registered memory: what a connection's peer may write to, and what its writes read
 *
 * Registering pins every page and deregistering lets them go, so large memory goes to a worker.
 * Small memory is done at once, and reported at the end of the turn.
 */

#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>

#include "base/log.h"
#include "base/text.h"
#include "fabric/verbs.h"

#define INLINE_MAX  (UINT64_C(1) << 20) /* bytes registered on the loop: about 0.1 ms */
#define SMALL_PAGE  UINT64_C(4096)
#define HUGE_PAGE   (UINT64_C(2) << 20)
#define REMOTE_BITS 46 /* of the random addresses that peers see */

enum mem_state { MEM_REGISTERING, MEM_READY, MEM_LEAVING };

struct verbs_mem {
	struct fabric_mem base;
	enum mem_state state;
	int access; /* of ibv_reg_mr */
	struct ibv_pd *pd;
	struct ibv_mr *mr; /* the job's while there is one */
	int error;         /* why it could not be registered */
	char detail[VERBS_DETAIL];
	struct job job;        /* registers or deregisters, large memory */
	struct loop_task done; /* the same, small memory */
	struct loop_task grave;
};

static void settle(struct verbs_mem *m);

static struct verbs_conn *
conn_of(const struct verbs_mem *m)
{
	return (struct verbs_conn *)m->base.conn;
}

uint32_t
mem_lkey(const struct fabric_mem *base)
{
	return ((const struct verbs_mem *)base)->mr->lkey;
}

/* ---- the work, on the loop or on a worker ---- */

/* A base that nobody can guess; its low bits are those of the memory, so that the device can still
 * map huge pages as such. */
static uint64_t
random_base(const struct fabric_mem *m)
{
	uint64_t page = m->len >= HUGE_PAGE ? HUGE_PAGE : SMALL_PAGE;
	uint64_t base;

	if (getrandom(&base, sizeof(base), 0) != sizeof(base))
		return (uintptr_t)m->addr;
	base &= (UINT64_C(1) << REMOTE_BITS) - 1;
	return (base & ~(page - 1)) + HUGE_PAGE + ((uintptr_t)m->addr & (page - 1));
}

/* siw takes the given base and goes on to use the virtual address; which iWARP devices do better is
 * not known, so they all get the virtual address. */
static void
do_register(struct verbs_mem *m)
{
	uint64_t base = (uintptr_t)m->base.addr;

	if (m->access & IBV_ACCESS_REMOTE_WRITE && !verbs_is_iwarp(m->pd->context))
		base = random_base(&m->base);
	m->mr = ibv_reg_mr_iova(m->pd, m->base.addr, m->base.len, base, m->access);
	if (m->mr == NULL) {
		m->error = -errno;
		return;
	}
	m->base.remote_addr = base;
	m->base.rkey = m->mr->rkey;
}

static void
do_deregister(struct verbs_mem *m)
{
	if (m->mr != NULL)
		ibv_dereg_mr(m->mr);
	m->mr = NULL;
}

static void
run(struct job *job)
{
	struct verbs_mem *m = container_of(job, struct verbs_mem, job);

	if (m->state == MEM_REGISTERING)
		do_register(m);
	else
		do_deregister(m);
}

static void
on_job_done(struct job *job)
{
	settle(container_of(job, struct verbs_mem, job));
}

static void
on_done(struct loop_task *task)
{
	settle(container_of(task, struct verbs_mem, done));
}

/* Does what the state asks for; settle() follows later. */
static void
begin(struct verbs_mem *m)
{
	const struct fabric_env *env = &conn_of(m)->verbs->base.env;

	if (m->base.len > INLINE_MAX) {
		work_submit(env->work, &m->job);
	} else {
		run(&m->job);
		loop_defer(env->loop, &m->done);
	}
}

/* ---- the outcome ---- */

static void
explain(struct verbs_mem *m)
{
	char wanted[TEXT_SIZE_MAX], limit[TEXT_SIZE_MAX];
	struct rlimit memlock;

	text_human_size(wanted, m->base.len);
	if ((m->error == -ENOMEM || m->error == -EAGAIN) &&
	    getrlimit(RLIMIT_MEMLOCK, &memlock) == 0 && memlock.rlim_cur != RLIM_INFINITY)
		snprintf(m->detail, sizeof(m->detail),
		    "cannot pin %s: this process may lock %s in all (RLIMIT_MEMLOCK); set "
		    "LimitMEMLOCK=infinity in rwriter.service, or `ulimit -l` (siw before "
		    "Linux 6.8 asks that of root too)",
		    wanted, text_human_size(limit, memlock.rlim_cur));
	else
		snprintf(m->detail, sizeof(m->detail), "%s cannot register %s: %s",
		    conn_of(m)->info.device, wanted, strerror(-m->error));
}

static void
on_grave(struct loop_task *task)
{
	free(container_of(task, struct verbs_mem, grave));
}

static void
emit(struct verbs_mem *m, enum fabric_event_type type)
{
	struct fabric_event event = {
	    .type = type,
	    .conn = m->base.conn,
	    .mem = &m->base,
	    .error = m->error,
	    .detail = m->error < 0 ? m->detail : NULL,
	};

	verbs_emit(conn_of(m)->verbs, &event);
}

/* The owner may free the connection inside the call. */
static void
say_goodbye(struct verbs_mem *m)
{
	struct verbs_conn *c = conn_of(m);

	c->n_mems--;
	verbs_conn_release(c);
	verbs_bury(c->verbs, &m->grave);
	emit(m, m->error < 0 ? FABRIC_MEM_READY : FABRIC_MEM_GONE);
}

static void
settle_registered(struct verbs_mem *m)
{
	if (m->error == 0 && conn_of(m)->state == CONN_CLOSED) {
		m->error = -ENOTCONN;
		snprintf(m->detail, sizeof(m->detail), "the connection is closed");
		m->state = MEM_LEAVING;
		begin(m);
	} else if (m->error == 0) {
		m->state = MEM_READY;
		emit(m, FABRIC_MEM_READY);
	} else {
		if (m->detail[0] == '\0')
			explain(m);
		say_goodbye(m);
	}
}

static void
settle(struct verbs_mem *m)
{
	if (m->state == MEM_REGISTERING)
		settle_registered(m);
	else
		say_goodbye(m);
}

/* ---- operations ---- */

int
verbs_mem_add(struct fabric_conn *base, void *addr, size_t len, unsigned access, void *owner,
    struct fabric_mem **ret)
{
	struct verbs_conn *c = (struct verbs_conn *)base;
	struct verbs_mem *m = calloc(1, sizeof(*m));

	if (m == NULL)
		return -ENOMEM;
	m->base = (struct fabric_mem){.conn = base, .owner = owner, .addr = addr, .len = len};
	m->access =
	    access & FABRIC_REMOTE_WRITE ? IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE : 0;
	m->job = (struct job){.run = run, .done = on_job_done};
	loop_task_init(&m->done, on_done);
	loop_task_init(&m->grave, on_grave);
	m->error = verbs_conn_prepare(c);
	m->pd = c->pd;
	c->n_mems++;
	if (m->error == 0) {
		begin(m);
	} else {
		snprintf(m->detail, sizeof(m->detail), "%s",
		    c->detail[0] != '\0' ? c->detail : "the connection has no device");
		verbs_defer(c->verbs, &m->done);
	}
	*ret = &m->base;
	return 0;
}

void
verbs_mem_drop(struct fabric_mem *base)
{
	struct verbs_mem *m = (struct verbs_mem *)base;

	m->state = MEM_LEAVING;
	begin(m);
}
