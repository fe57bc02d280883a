/* reconnect.c -- whether and when a transfer that has lost its connection gets another */

#include "config.h"

#include "base/random.h"
#include "base/text.h"
#include "core/failure.h"
#include "core/reconnect.h"
#include "loop/loop.h"

#define PAUSE_MIN (100 * NSEC_PER_MSEC)
#define PAUSE_MAX (5 * NSEC_PER_SEC)

int
reconnect_init(struct reconnect *r, struct loop *loop, void (*again)(void *arg), void *arg)
{
	return loop_timer_new(loop, again, arg, &r->timer);
}

void
reconnect_done(struct reconnect *r)
{
	r->timer = loop_timer_free(r->timer);
}

void
reconnect_granted(struct reconnect *r)
{
	r->granted = true;
}

void
reconnect_got_on(struct reconnect *r)
{
	r->lost_at = 0;
}

/* At least half of it, so that those who lost the same target do not all come back at once. */
static uint64_t
jitter(uint64_t pause_ns)
{
	uint32_t random;

	random_bytes(&random, sizeof(random));
	return pause_ns / 2 + pause_ns / 2 * random / UINT32_MAX;
}

static void
say_how_long(const struct reconnect *r, struct failure *why)
{
	char time[TEXT_TIME_MAX];

	failure_add(why, "; tried for %s to get on, %u times",
	    text_human_time(time, loop_now() - r->lost_at), r->tries);
}

bool
reconnect_lost(struct reconnect *r, uint64_t limit_ns, struct failure *why)
{
	if (!r->granted || limit_ns == 0 || !failure_is_passing(why))
		return false;
	if (r->lost_at == 0) {
		r->lost_at = loop_now();
		r->pause_ns = PAUSE_MIN;
		r->tries = 0;
	}
	if (loop_now() - r->lost_at >= limit_ns) {
		say_how_long(r, why);
		return false;
	}
	loop_timer_set(r->timer, jitter(r->pause_ns));
	r->pause_ns = r->pause_ns * 2 < PAUSE_MAX ? r->pause_ns * 2 : PAUSE_MAX;
	r->tries++;
	return true;
}
