/* spool.c -- the directories that arrivals are stored in, and who is at work in them */

#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "core/priv.h"
#include "core/spool.h"

#define SWEEP_NS (3600 * NSEC_PER_SEC)

static const char *const STATES[] = {
    [SPOOL_OPENING] = "opening",
    [SPOOL_READY] = "ready",
    [SPOOL_SWEEPING] = "sweeping",
    [SPOOL_DOWN] = "down",
};

static void
set_state(struct spool *spool, enum spool_state state)
{
	log_debug("[region %s]: %s is %s", spool->conf.name, spool->conf.directory, STATES[state]);
	spool->state = state;
	if (state == SPOOL_READY)
		loop_timer_set(spool->timer, SWEEP_NS);
	loop_defer(spool->core->env.loop, &spool->kick);
	core_changed(spool->core);
}

/* ---- life ---- */

static void
bury(struct loop_task *task)
{
	free(container_of(task, struct spool, grave));
}

static void
put(struct spool *spool)
{
	if (--spool->refs > 0)
		return;
	loop_timer_free(spool->timer);
	loop_undefer(&spool->kick);
	if (spool->dir >= 0)
		close(spool->dir); /* and with it the lock */
	core_changed(spool->core);
	loop_bury(spool->core->env.loop, &spool->grave);
}

/* ---- opening and sweeping ---- */

static void
run_open(struct job *job)
{
	struct spool *spool = container_of(job, struct spool, job);

	spool->error = spool->dir < 0 ? part_open_dir(spool->path, &spool->dir) : 0;
	spool->sweep.dir = spool->dir;
	if (spool->error == 0)
		spool->error = part_sweep(&spool->sweep);
}

static void
went_down(struct spool *spool)
{
	const char *why = spool->error == -EBUSY
			      ? "another rwriterd, or another region, has this directory"
			      : strerror(-spool->error);

	snprintf(spool->detail, sizeof(spool->detail), "%s: %s", spool->conf.directory, why);
	log_error("[region %s]: %s", spool->conf.name, spool->detail);
	set_state(spool, SPOOL_DOWN);
}

/* core_stop() waits for it. */
static void
job_ended(struct core *core)
{
	core->spool_jobs--;
	core_changed(core);
}

static void
opened(struct job *job)
{
	struct spool *spool = container_of(job, struct spool, job);
	const struct part_sweep *s = &spool->sweep;

	free(s->active);
	job_ended(spool->core);
	if (spool->error < 0)
		went_down(spool);
	else
		set_state(spool, SPOOL_READY);
	if (s->kept + s->named + s->removed > 0)
		log_info("[region %s]: %s: %u files can be resumed, %u got their names, %u were "
			 "removed",
		    spool->conf.name, spool->conf.directory, s->kept, s->named, s->removed);
	put(spool);
}

static void
list_active(struct spool *spool)
{
	struct spool_user *user;

	list_for_each (user, &spool->users, struct spool_user, node)
		memcpy(spool->sweep.active[spool->sweep.n_active++], user->key, sizeof(user->key));
}

static void
open_and_sweep(struct spool *spool)
{
	unsigned users = list_length(&spool->users);

	spool->sweep = (struct part_sweep){
	    .conflict = spool->conf.conflict,
	    .keep_ns = spool->conf.keep_partial_ns,
	    .active = calloc(users + 1, sizeof(spool->sweep.active[0])),
	};
	if (spool->sweep.active == NULL) {
		spool->error = -ENOMEM;
		went_down(spool);
		return;
	}
	list_active(spool);
	memcpy(spool->path, spool->conf.directory, sizeof(spool->path));
	set_state(spool, spool->dir < 0 ? SPOOL_OPENING : SPOOL_SWEEPING);
	spool->refs++;
	spool->core->spool_jobs++;
	spool->job = (struct job){.run = run_open, .done = opened};
	work_submit(spool->core->env.spool, &spool->job);
}

static void
on_timer(void *arg)
{
	struct spool *spool = arg;

	if (spool->state == SPOOL_READY)
		open_and_sweep(spool);
}

/* ---- who is at work ---- */

static bool
is_first_of_key(const struct spool_user *user)
{
	struct spool_user *other;

	list_for_each (other, &user->spool->users, struct spool_user, node) {
		if (other == user)
			return true;
		if (strcmp(other->key, user->key) == 0)
			return false;
	}
	return false;
}

/* go() may not remove others: what leaves does so in its own time. */
static void
kick(struct loop_task *task)
{
	struct spool *spool = container_of(task, struct spool, kick);
	struct spool_user *user;

	list_for_each (user, &spool->users, struct spool_user, node) {
		if (spool->state == SPOOL_OPENING || spool->state == SPOOL_SWEEPING)
			return;
		if (user->running || !is_first_of_key(user))
			continue;
		user->running = true;
		user->go(user);
	}
}

void
spool_enter(struct spool *spool, struct spool_user *user)
{
	struct spool_user *other;

	spool->refs++;
	user->spool = spool;
	user->running = false;
	list_for_each (other, &spool->users, struct spool_user, node)
		if (strcmp(other->key, user->key) == 0)
			other->yield(other);
	list_add_tail(&spool->users, &user->node);
	if (spool->state == SPOOL_DOWN)
		open_and_sweep(spool);
	loop_defer(spool->core->env.loop, &spool->kick);
}

void
spool_leave(struct spool_user *user)
{
	struct spool *spool = user->spool;

	list_del(&user->node);
	loop_defer(spool->core->env.loop, &spool->kick);
	put(spool);
}

/* ---- the configuration ---- */

static int
spool_new(struct core *core, const struct conf_region *conf)
{
	struct spool *spool = calloc(1, sizeof(*spool));

	if (spool == NULL)
		return -ENOMEM;
	if (loop_timer_new(core->env.loop, on_timer, spool, &spool->timer) < 0) {
		free(spool);
		return -ENOMEM;
	}
	spool->core = core;
	spool->refs = 1;
	spool->conf = *conf;
	spool->dir = -1;
	list_init(&spool->users);
	loop_task_init(&spool->kick, kick);
	loop_task_init(&spool->grave, bury);
	list_add_tail(&core->spools, &spool->node);
	open_and_sweep(spool);
	return 0;
}

static bool
still_wanted(const struct spool *spool)
{
	const struct conf_region *conf = conf_find_region(spool->core->conf, spool->conf.name);

	if (conf == NULL || conf->sink != CONF_SINK_SPOOL ||
	    strcmp(conf->directory, spool->conf.directory) != 0)
		return false;
	return spool->state != SPOOL_READY || part_is_dir_of(conf->directory, spool->dir);
}

static void
retire(struct spool *spool)
{
	list_del(&spool->node);
	put(spool);
}

int
spool_sync(struct core *core)
{
	const struct conf_region *conf;
	struct spool *spool;
	int error = 0;

	list_for_each (spool, &core->spools, struct spool, node)
		if (!still_wanted(spool))
			retire(spool);
	list_for_each (conf, &core->conf->regions, struct conf_region, node) {
		if (conf->sink != CONF_SINK_SPOOL)
			continue;
		spool = spool_find(core, conf->name);
		if (spool != NULL)
			spool->conf = *conf;
		else if (spool_new(core, conf) < 0)
			error = -ENOMEM;
	}
	return error;
}

struct spool *
spool_find(struct core *core, const char *region)
{
	struct spool *spool;

	list_for_each (spool, &core->spools, struct spool, node)
		if (strcmp(spool->conf.name, region) == 0)
			return spool;
	return NULL;
}

bool
spool_quiet(const struct core *core)
{
	return core->spool_jobs == 0;
}

/* ---- what has ended ---- */

struct finished {
	struct list node; /* of core->finished, the latest last */
	char key[SPOOL_KEY_SIZE + 1];
	struct part_done done;
	uint32_t region_id; /* whose writer has not taken the RESULT yet; 0: it has */
	uint64_t seq;
};

static struct finished *
find_finished(struct core *core, const char *key)
{
	struct finished *f;

	list_for_each (f, &core->finished, struct finished, node)
		if (strcmp(f->key, key) == 0)
			return f;
	return NULL;
}

static void
drop_finished(struct core *core, struct finished *f)
{
	list_del(&f->node);
	core->n_finished--;
	free(f);
}

void
spool_remember(struct spool *spool, const char *key, const struct part_done *done,
    uint32_t region_id, uint64_t seq)
{
	struct core *core = spool->core;
	struct finished *f = find_finished(core, key);

	if (f != NULL)
		drop_finished(core, f);
	if (core->n_finished >= LIMIT_FINISHED)
		drop_finished(core, list_first(&core->finished, struct finished, node));
	f = calloc(1, sizeof(*f));
	if (f == NULL)
		return; /* its journal remembers it, for an hour */
	memcpy(f->key, key, sizeof(f->key));
	f->done = *done;
	f->region_id = region_id;
	f->seq = seq;
	list_add_tail(&core->finished, &f->node);
	core->n_finished++;
}

bool
spool_recall(struct core *core, const char *key, struct part_done *ret)
{
	const struct finished *f = find_finished(core, key);

	if (f != NULL)
		*ret = f->done;
	return f != NULL;
}

/* Removes a journal; at work like a transfer, so that none of the same key meets it half-way. */
struct forget {
	struct job job;
	struct spool_user user;
};

static void
run_forget(struct job *job)
{
	struct forget *f = container_of(job, struct forget, job);

	part_forget(f->user.spool->dir, f->user.key);
}

static void
forgotten(struct job *job)
{
	struct forget *f = container_of(job, struct forget, job);

	job_ended(f->user.spool->core);
	spool_leave(&f->user);
	free(f);
}

static void
go_forget(struct spool_user *user)
{
	struct forget *f = container_of(user, struct forget, user);

	work_submit(user->spool->core->env.spool, &f->job);
}

static void
yield_nothing(struct spool_user *user)
{
	(void)user; /* it is short */
}

static bool
is_at_work(const struct spool *spool, const char *key)
{
	struct spool_user *user;

	list_for_each (user, &spool->users, struct spool_user, node)
		if (strcmp(user->key, key) == 0)
			return true;
	return false;
}

static void
forget(struct spool *spool, const char *key)
{
	struct forget *f = is_at_work(spool, key) ? NULL : calloc(1, sizeof(*f));

	if (f == NULL)
		return; /* the journal goes when somebody sweeps */
	f->job = (struct job){.run = run_forget, .done = forgotten};
	f->user.go = go_forget;
	f->user.yield = yield_nothing;
	memcpy(f->user.key, key, sizeof(f->user.key));
	spool->core->spool_jobs++;
	spool_enter(spool, &f->user);
}

void
spool_heard(struct spool *spool, uint32_t region_id, uint64_t seq)
{
	struct finished *f;

	list_for_each (f, &spool->core->finished, struct finished, node) {
		if (f->region_id != region_id || f->seq > seq)
			continue;
		f->region_id = 0;
		forget(spool, f->key);
	}
}

/* ---- the end ---- */

void
spool_free_all(struct core *core)
{
	struct finished *f;
	struct spool *spool;

	list_for_each (spool, &core->spools, struct spool, node)
		retire(spool);
	list_for_each (f, &core->finished, struct finished, node)
		drop_finished(core, f);
}
