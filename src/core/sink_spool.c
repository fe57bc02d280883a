/* sink_spool.c -- the bytes become files of a directory, durable before they are acknowledged
 *
 *   waiting > opening > open <> restarting
 *                       open > finishing > (gone)        STORED, or what failed: then dropped
 *   any > dropping > (gone)
 *
 * Beside the storing of what comes, a second job makes it durable from time to time and writes the
 * journal: the checkpoint. What must not meet it waits for its end.
 */

#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/random.h"
#include "base/text.h"
#include "core/arrival.h"
#include "core/inbound.h"
#include "core/part.h"
#include "core/priv.h"
#include "core/region.h"
#include "core/sink.h"
#include "core/spool.h"
#include "wire/auth.h"

#define CHECKPOINT_NS (LIMIT_CHECKPOINT_TIME * NSEC_PER_SEC)

struct spooled { /* a file that comes about: a->sink_data */
	struct spool_user user;
	struct arrival *a;
	struct part part;
	bool keep; /* when dropped */

	struct job job; /* all but the checkpoint */
	struct part_fault fault, store_fault;

	struct job checkpoint;
	bool checking;
	uint64_t check_offset, durable;
	uint32_t check_crc;
	struct part_fault check_fault;
	struct loop_timer *timer;        /* the next checkpoint ... */
	bool timed;                      /* ... is set */
	void (*then)(struct spooled *s); /* waits for the checkpoint's end */
};

/* ---- words ---- */

static const struct {
	int error;
	const char *fix;
} FIXES[] = {
    {ENOSPC, "free space there"},
    {EDQUOT, "raise the quota, or free space there"},
    {EROFS, "mount it for writing"},
    {EACCES, "let the daemon's user write there"},
    {EPERM, "let the daemon's user write there"},
    {EIO, "look at the kernel's log: the disk may be failing"},
    {EFBIG, "raise the limit of file sizes there"},
};

static unsigned
no_room(const struct spool *spool, const struct part *part, uint64_t room, struct rwp_deny *why)
{
	char is_free[TEXT_SIZE_MAX], stays[TEXT_SIZE_MAX], wanted[TEXT_SIZE_MAX] = "it";

	if (part->plan.length != UINT64_MAX)
		text_human_size(wanted, part->plan.length - part->offset);
	snprintf(why->text, sizeof(why->text),
	    "no room for %s in %s: %s are free, of which %s must stay free", wanted,
	    spool->conf.directory, text_human_size(is_free, room),
	    text_human_size(stays, spool->conf.free));
	snprintf(why->fix, sizeof(why->fix), "free space there, or lower free in [region %s]",
	    spool->conf.name);
	if (part->plan.length != UINT64_MAX)
		why->size = part->plan.length - part->offset;
	why->limit = room > spool->conf.free ? room - spool->conf.free : 0;
	return RWP_E_STORAGE;
}

static unsigned
name_taken(const struct spool *spool, const char *name, struct rwp_deny *why)
{
	snprintf(why->text, sizeof(why->text), "%s is in %s already", name, spool->conf.directory);
	snprintf(why->fix, sizeof(why->fix),
	    "conflict = replace, or version, in [region %s]; or write it under another name",
	    spool->conf.name);
	return RWP_E_STORAGE;
}

static unsigned
explain(const struct spooled *s, const struct part_fault *fault, struct rwp_deny *why)
{
	const struct spool *spool = s->user.spool;

	if (fault->room > 0)
		return no_room(spool, &s->part, fault->room, why);
	if (fault->error == EEXIST)
		return name_taken(spool, s->part.plan.name, why);
	snprintf(why->text, sizeof(why->text), "could not %s in %s: %s", fault->doing,
	    spool->conf.directory, strerror(fault->error));
	for (size_t i = 0; i < sizeof(FIXES) / sizeof(FIXES[0]); i++)
		if (FIXES[i].error == fault->error)
			snprintf(why->fix, sizeof(why->fix), "%s", FIXES[i].fix);
	return RWP_E_STORAGE;
}

/* ---- jobs ---- */

static void
submit(struct spooled *s, void (*run)(struct job *), void (*done)(struct job *))
{
	s->job = (struct job){.run = run, .done = done};
	work_submit(s->a->channel->core->env.spool, &s->job);
}

static struct spooled *
of_job(struct job *job)
{
	return container_of(job, struct spooled, job);
}

/* Now, or when the checkpoint that runs has ended. */
static void
when_unchecked(struct spooled *s, void (*fn)(struct spooled *s))
{
	loop_timer_clear(s->timer);
	s->timed = false;
	if (s->checking)
		s->then = fn;
	else
		fn(s);
}

static void
leave(struct spooled *s)
{
	s->a->sink_data = NULL;
	spool_leave(&s->user);
	loop_timer_free(s->timer);
	free(s);
}

/* ---- the checkpoint ---- */

static void
tell_durable(struct spooled *s, uint64_t offset)
{
	struct rwp_line *line = &s->a->channel->line;

	s->durable = offset;
	line->transfer = s->a->transfer;
	line->durable = offset;
	channel_line(s->a->channel);
}

static void
run_checkpoint(struct job *job)
{
	struct spooled *s = container_of(job, struct spooled, checkpoint);

	s->check_fault = part_checkpoint(&s->part, s->check_offset, s->check_crc);
}

static void check_if_due(struct spooled *s, bool now);

static void
tell_broken(struct spooled *s)
{
	struct rwp_deny why = {0};

	arrival_broke(s->a, explain(s, &s->check_fault, &why), &why);
}

/* What failed is said as soon as no record is being stored. */
static void
checkpoint_done(struct job *job)
{
	struct spooled *s = container_of(job, struct spooled, checkpoint);
	struct channel *ch = s->a->channel;

	s->checking = false;
	if (s->check_fault.error == 0)
		tell_durable(s, s->check_offset);
	if (s->then != NULL)
		s->then(s);
	else if (s->check_fault.error == 0)
		check_if_due(s, false);
	else if (s->a->state == ARRIVAL_OPEN)
		tell_broken(s);
	channel_release(ch);
}

static void
check_if_due(struct spooled *s, bool now)
{
	uint64_t more = s->a->received - s->durable;

	if (s->checking || more == 0 || s->part.complete)
		return;
	if (!now && more < LIMIT_CHECKPOINT) {
		if (!s->timed)
			loop_timer_set(s->timer, CHECKPOINT_NS);
		s->timed = true;
		return;
	}
	loop_timer_clear(s->timer);
	s->timed = false;
	s->checking = true;
	s->check_offset = s->a->received;
	s->check_crc = s->a->crc;
	channel_hold(s->a->channel);
	s->checkpoint = (struct job){.run = run_checkpoint, .done = checkpoint_done};
	work_submit(s->a->channel->core->env.spool, &s->checkpoint);
}

static void
on_timer(void *arg)
{
	struct spooled *s = arg;

	s->timed = false;
	check_if_due(s, true);
}

/* ---- the beginning ---- */

static void
run_open(struct job *job)
{
	struct spooled *s = of_job(job);

	s->fault = part_open(&s->part);
}

static void
run_restart(struct job *job)
{
	struct spooled *s = of_job(job);

	s->fault = part_restart(&s->part);
}

static void
opened(struct job *job)
{
	struct spooled *s = of_job(job);
	struct rwp_deny why = {0};
	unsigned code = s->fault.error != 0 ? explain(s, &s->fault, &why) : 0;

	if (code == 0) {
		s->a->channel->line.arrived = s->part.offset;
		tell_durable(s, s->part.offset);
	}
	arrival_begun(s->a, code, &why, s->part.offset, s->part.crc);
}

static void
go(struct spool_user *user)
{
	struct spooled *s = container_of(user, struct spooled, user);
	struct rwp_deny why = {0};

	if (user->spool->state == SPOOL_DOWN) {
		memcpy(why.text, user->spool->detail, sizeof(why.text));
		arrival_begun(s->a, RWP_E_STORAGE, &why, 0, 0);
		return;
	}
	s->part.plan.dir = user->spool->dir;
	spool_recall(user->spool->core, user->key, &s->part.done);
	submit(s, run_open, opened);
}

static void
yield(struct spool_user *user)
{
	struct channel *ch = container_of(user, struct spooled, user)->a->channel;

	if (ch->phase == CHANNEL_UP)
		ch->ops->broken(
		    ch, RWP_E_STALE, "the same transfer has begun on another connection");
}

/* Who writes, where, and which of his files: by the proved key, or else by address and name. */
static bool
make_key(const struct arrival *a, const uint8_t *id, char key[SPOOL_KEY_SIZE + 1])
{
	static const uint8_t NOBODY[AUTH_KEY_SIZE];
	const struct region *r = a->region;
	char who[512];
	uint8_t hash[SPOOL_KEY_SIZE / 2];

	snprintf(
	    who, sizeof(who), "%s/%s/%s", r->section, r->keyed ? "" : r->address, r->claimed_name);
	if (!a->has_id)
		random_bytes(hash, sizeof(hash));
	else if (!auth_tag(NOBODY, who, strlen(who) + 1, id, 16, hash, sizeof(hash)))
		return false;
	for (unsigned i = 0; i < sizeof(hash); i++)
		snprintf(key + 2 * i, 3, "%02x", hash[i]);
	return true;
}

static void
make_plan(struct part_plan *plan, const struct arrival *a, const struct spool *spool,
    const struct rwp_begin *b)
{
	plan->resumable = a->has_id;
	plan->length = a->announced;
	plan->mode = b->mode != 0 ? b->mode & 0777 : spool->conf.mode;
	plan->mtime_ns = b->mtime_ns;
	plan->uid = spool->conf.owner.uid;
	plan->gid = spool->conf.owner.gid;
	plan->conflict = spool->conf.conflict;
	plan->free = spool->conf.free;
	memcpy(plan->peer, a->region->peer, sizeof(plan->peer));
}

static unsigned
spool_begin(struct arrival *a, const struct rwp_begin *b, struct rwp_deny *why)
{
	struct core *core = a->channel->core;
	struct spool *spool = spool_find(core, a->region->section);
	char name[SPOOL_NAME_MAX];
	struct spooled *s;

	if (spool == NULL) {
		snprintf(why->text, sizeof(why->text), "there is no region \"%s\" any more",
		    a->region->section);
		return RWP_E_REGION;
	}
	if (!spool_name_make(b->name, name)) {
		snprintf(why->text, sizeof(why->text), "a file needs a name to be stored");
		return RWP_E_STORAGE;
	}
	s = calloc(1, sizeof(*s));
	if (s == NULL || loop_timer_new(core->env.loop, on_timer, s, &s->timer) < 0 ||
	    !make_key(a, b->id, s->user.key)) {
		if (s != NULL)
			loop_timer_free(s->timer);
		free(s);
		return RWP_E_MEMORY;
	}
	s->a = a;
	s->part.fd = s->part.journal_fd = -1;
	s->user.go = go;
	s->user.yield = yield;
	make_plan(&s->part.plan, a, spool, b);
	memcpy(s->part.plan.name, name, sizeof(name));
	memcpy(s->part.plan.key, s->user.key, sizeof(s->user.key));
	a->sink_data = s;
	spool_enter(spool, &s->user);
	return SINK_LATER;
}

static void
start_again(struct spooled *s)
{
	s->then = NULL;
	submit(s, run_restart, opened);
}

static unsigned
spool_restart(struct arrival *a, struct rwp_deny *why)
{
	(void)why;
	when_unchecked(a->sink_data, start_again);
	return SINK_LATER;
}

/* ---- bytes ---- */

static int
spool_store(struct arrival *a, const uint8_t *bytes, uint32_t *ret_crc)
{
	struct spooled *s = a->sink_data;
	uint32_t len = a->record.length;

	if (s->part.complete && len > 0) /* an empty file has a record, too */
		s->store_fault = (struct part_fault){.error = EEXIST};
	else if (bytes != NULL)
		s->store_fault = part_write(&s->part, a->received, bytes, len, ret_crc);
	else
		*ret_crc = crc32c_zeros(len); /* what is not written reads as zeros */
	return -s->store_fault.error;
}

static void
spool_stored(struct arrival *a)
{
	struct spooled *s = a->sink_data;

	if (s->check_fault.error != 0)
		tell_broken(s);
	else
		check_if_due(s, false);
}

static unsigned
spool_explain(const struct arrival *a, int error, struct rwp_deny *why)
{
	const struct spooled *s = a->sink_data;

	(void)error;
	return explain(s, &s->store_fault, why);
}

/* ---- the end ---- */

static void
run_finish(struct job *job)
{
	struct spooled *s = of_job(job);

	s->fault = s->check_fault;
	if (s->fault.error == 0 && !s->part.complete)
		s->fault = part_finish(&s->part, s->a->received, s->a->crc);
	if (s->fault.error == 0)
		part_close(&s->part, true, 0, 0);
}

static void
finished(struct job *job)
{
	struct spooled *s = of_job(job);
	const struct spool *spool = s->user.spool;
	struct arrival *a = s->a;
	struct rwp_deny why = {0};

	if (s->fault.error != 0) {
		arrival_ended(a, explain(s, &s->fault, &why), &why);
		return;
	}
	snprintf(
	    a->view.path, sizeof(a->view.path), "%s/%s", spool->conf.directory, s->part.done.name);
	if (s->part.plan.resumable)
		spool_remember(s->user.spool, s->user.key, &s->part.done, a->region->id,
		    area_out_seq(&a->channel->out));
	tell_durable(s, a->received);
	leave(s);
	arrival_ended(a, RWP_STORED, NULL);
}

static void
finish(struct spooled *s)
{
	submit(s, run_finish, finished);
}

static unsigned
spool_end(struct arrival *a, struct rwp_deny *why)
{
	(void)why;
	when_unchecked(a->sink_data, finish);
	return SINK_LATER;
}

/* What a failed checkpoint may have lost is not spoken of: the last good one counts. */
static void
run_close(struct job *job)
{
	struct spooled *s = of_job(job);
	bool sound = s->check_fault.error == 0 && s->fault.error == 0;

	part_close(&s->part, s->keep, sound ? s->a->received : 0, s->a->crc);
}

static void
closed(struct job *job)
{
	struct spooled *s = of_job(job);
	struct arrival *a = s->a;

	leave(s);
	arrival_dropped(a);
}

static void
close_part(struct spooled *s)
{
	submit(s, run_close, closed);
}

static unsigned
spool_drop(struct arrival *a, bool keep)
{
	struct spooled *s = a->sink_data;

	if (s == NULL) /* it was refused before there was anything */
		return 0;
	s->keep = keep;
	when_unchecked(s, close_part);
	return SINK_LATER;
}

static void
spool_heard_result(struct arrival *a, uint64_t seq)
{
	struct spool *spool = spool_find(a->channel->core, a->region->section);

	if (spool != NULL)
		spool_heard(spool, a->region->id, seq);
}

const struct sink sink_spool = {
    .name = "spool",
    .kind = RWP_SINK_SPOOL,
    .ring = true,
    .blocks = true,
    .begin = spool_begin,
    .restart = spool_restart,
    .store = spool_store,
    .stored = spool_stored,
    .end = spool_end,
    .drop = spool_drop,
    .explain = spool_explain,
    .heard = spool_heard_result,
};
