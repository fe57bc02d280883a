/* intake.c -- takes the bytes of one record into the sink */

#include "config.h"

#include "core/arrival.h"
#include "core/intake.h"
#include "core/priv.h"
#include "core/region.h"
#include "core/sink.h"

#define SUSPECT_NS (50 * NSEC_PER_MSEC)
#define AGAIN_NS   NSEC_PER_MSEC

static void take(void *arg);
static void run_store(struct job *job);
static void done_store(struct job *job);

int
intake_init(struct intake *in, struct arrival *a, void (*fn)(struct intake *in, int result))
{
	struct channel *ch = a->channel;
	struct fabric_info info;

	ch->conn->fabric->ops->describe(ch->conn, &info);
	in->inline_max = info.polled ? LIMIT_INLINE_VERIFY : LIMIT_SEGMENT;
	in->arrival = a;
	in->fn = fn;
	in->job = (struct job){.run = run_store, .done = done_store};
	return loop_timer_new(ch->core->env.loop, take, in, &in->again);
}

void
intake_done(struct intake *in)
{
	in->again = loop_timer_free(in->again);
}

static const uint8_t *
payload(const struct arrival *a)
{
	const uint8_t *region = a->region->memory->pages.addr;

	return a->record.type != RWP_HOLE ? region + a->record.region_off : NULL;
}

/* True: look again soon. */
static bool
suspect(struct intake *in)
{
	uint64_t now = loop_now();

	if (in->suspect_since == 0)
		in->suspect_since = now;
	if (now - in->suspect_since >= SUSPECT_NS || in->arrival->channel->phase == CHANNEL_CLOSED)
		return false;
	loop_timer_set(in->again, AGAIN_NS);
	in->waiting = true;
	return true;
}

static void
taken(struct intake *in)
{
	const struct arrival *a = in->arrival;
	struct channel *ch = a->channel;
	int result = in->error;

	if (result == 0 && a->record.type != RWP_HOLE && in->crc != a->record.data_crc)
		result = INTAKE_DAMAGED;
	if (result != INTAKE_DAMAGED || !suspect(in)) {
		in->suspect_since = 0;
		in->fn(in, result);
	}
	channel_release(ch);
}

static void
run_store(struct job *job)
{
	struct intake *in = container_of(job, struct intake, job);
	struct arrival *a = in->arrival;

	in->error = a->sink->store(a, payload(a), &in->crc);
}

static void
done_store(struct job *job)
{
	taken(container_of(job, struct intake, job));
}

/* Zeros of a hole are laid over what was placed there, so no sum of that may stay. */
static bool
fabric_has_sum(struct intake *in)
{
	const struct arrival *a = in->arrival;
	const struct memory *m = a->region->memory;
	const struct registration *reg = &a->region->reg;
	uint32_t ignored;

	if (a->record.type != RWP_HOLE)
		return a->sink->sums &&
		       registration_crc(reg, payload(a), a->record.length, &in->crc);
	registration_crc(reg, m->pages.addr, m->size, &ignored);
	return false;
}

static void
take(void *arg)
{
	struct intake *in = arg;
	const struct arrival *a = in->arrival;
	const struct core_env *env = &a->channel->core->env;

	in->waiting = false;
	in->error = 0;
	channel_hold(a->channel);
	if (fabric_has_sum(in)) {
		taken(in);
	} else if (a->sink->blocks) {
		work_submit(env->spool, &in->job);
	} else if (a->record.length > in->inline_max) {
		work_submit(env->store, &in->job);
	} else {
		run_store(&in->job);
		taken(in);
	}
}

void
intake_begin(struct intake *in)
{
	take(in);
}

bool
intake_waits(const struct intake *in)
{
	return in->waiting;
}

void
intake_cancel(struct intake *in)
{
	loop_timer_clear(in->again);
	in->waiting = false;
	in->suspect_since = 0;
}
