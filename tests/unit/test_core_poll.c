/* test_core_poll.c -- memory that peers write is looked at fairly, and never for ever */

#include "config.h"

#include "base/limits.h"
#include "core/channel.h"
#include "core/poller.h"
#include "fake/fake.h"
#include "unit/world.h"
#include "wire/rwp.h"

/* ---- entries of a poller ---- */

static unsigned looks;

static bool
nothing_there(struct poll_entry *entry)
{
	(void)entry;
	return false;
}

static bool
look(struct poll_entry *entry)
{
	(void)entry;
	looks++;
	return false;
}

/* Kicks of one do not put off the others for ever. */
static void
kicks_are_fair(void **state)
{
	struct world *w = *state;
	struct poll_entry kicked, other;
	struct conf conf = *w->conf_a;
	struct poller *poller;
	uint64_t began;

	conf.spin_ns = 0;
	conf.interval_min_ns = conf.interval_max_ns = 20 * NSEC_PER_MSEC;
	assert_int_equal(poller_new(w->loop, &conf, &poller), 0);
	poll_entry_init(&kicked, poller, nothing_there);
	poll_entry_init(&other, poller, look);
	poll_entry_start(&kicked);
	poll_entry_start(&other);
	loop_turn(w->loop, 0);
	looks = 0;
	for (began = loop_now(); loop_now() - began < 500 * NSEC_PER_MSEC;) {
		poll_entry_kick(&kicked);
		loop_turn(w->loop, NSEC_PER_MSEC);
	}
	poll_entry_stop(&kicked);
	poll_entry_stop(&other);
	poller_free(poller);
	assert_true(looks > 5); /* of 25 */
}

/* ---- a writer without end ---- */

static struct {
	struct channel_ops ops; /* the target's, with feed_next for record */
	const struct channel_ops *real_ops;
	unsigned fed, most;
} feeder;

static void
put_record(struct channel *ch)
{
	uint64_t seq = ch->in.next_seq;
	struct rwp_record r = {.type = 200, .seq = seq};
	uint64_t ring = UINT64_C(1) << ch->in.ring_log2;

	rwp_record_encode(&r, ch->in_map + RWP_RING_OFFSET + (seq - 1) % ring * RWP_RECORD_SIZE);
}

/* As an adapter might do it: whenever a record is taken the next is there. */
static void
feed_next(struct channel *ch, const struct rwp_record *r, const uint8_t *blob)
{
	feeder.real_ops->record(ch, r, blob);
	if (++feeder.fed < feeder.most)
		put_record(ch);
}

static void
set_again(void *arg)
{
	struct loop_timer **timer = arg;

	looks++;
	loop_timer_set(*timer, 0);
}

/* It does not keep the loop from its timers. */
static void
records_without_end(void **state)
{
	struct world *w = *state;
	struct loop_timer *timer;
	struct channel *target;
	struct outcome o;

	world_write(w, &o, "b", 10);
	target = fake_conn(1, 0)->owner;
	feeder.real_ops = target->ops;
	feeder.ops = *target->ops;
	feeder.ops.record = feed_next;
	feeder.fed = 0;
	feeder.most = 100 * LIMIT_RECORDS_PER_POLL;
	target->ops = &feeder.ops;
	fake.cut = true; /* the real writer shall not wonder */
	assert_int_equal(loop_timer_new(w->loop, set_again, &timer, &timer), 0);
	looks = 0;
	loop_timer_set(timer, 0);
	put_record(target);
	WORLD_UNTIL(w, feeder.fed == feeder.most);
	loop_timer_free(timer);
	target->ops = feeder.real_ops;
	assert_true(looks >= 50); /* about once for each share of records */
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(kicks_are_fair),
	    TEST(records_without_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
