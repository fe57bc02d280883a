/* test_core_poll.c -- memory that peers write is looked at fairly, and never for ever */

#include "config.h"

#include <pthread.h>
#include <string.h>

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
	assert_int_equal(poller_new(w->loop, &conf, &poller), 0);
	poll_entry_init(&kicked, poller, nothing_there);
	poll_entry_init(&other, poller, look);
	poll_entry_start(&kicked);
	poll_entry_start(&other);
	loop_turn(w->loop, 0);
	looks = 0;
	for (began = loop_now(); loop_now() - began < 500 * NSEC_PER_MSEC;) {
		poll_entry_kick(&kicked);
		loop_turn(w->loop, 50 * NSEC_PER_USEC);
	}
	poll_entry_stop(&kicked);
	poll_entry_stop(&other);
	poller_free(poller);
	assert_true(looks > 10); /* of 5000 that would be possible */
}

/* ---- a writer without end ---- */

static struct feeder {
	pthread_t thread;
	struct area_in *in; /* the target's */
	uint8_t *ring;
	uint64_t seq, until;
	bool stop;
} feeder;

/* As an adapter does it: whenever there is credit the next record is there. */
static void *
feed(void *arg)
{
	struct feeder *f = arg;
	uint8_t record[RWP_RECORD_SIZE], *slot;

	while (!__atomic_load_n(&f->stop, __ATOMIC_RELAXED) && loop_now() < f->until) {
		if (f->seq >= __atomic_load_n(&f->in->next_seq, __ATOMIC_RELAXED) + 63)
			continue;
		rwp_record_encode(&(struct rwp_record){.type = 200, .seq = f->seq}, record);
		slot = f->ring + (f->seq - 1) % 64 * RWP_RECORD_SIZE;
		memcpy(slot, record, offsetof(struct rwp_record, seq));
		__atomic_store_n((uint64_t *)(slot + offsetof(struct rwp_record, seq)), f->seq,
		    __ATOMIC_RELEASE);
		f->seq++;
	}
	return NULL;
}

static void
count_and_set_again(void *arg)
{
	struct loop_timer **timer = arg;

	looks++;
	loop_timer_set(*timer, NSEC_PER_MSEC);
}

/* ... does not keep the loop from its timers. */
static void
records_without_end(void **state)
{
	struct world *w = *state;
	struct loop_timer *timer;
	struct channel *target;
	struct outcome o;
	uint64_t first, began;

	world_write(w, &o, "b", 10);
	target = fake_conn(1, 0)->owner;
	fake.cut = true; /* the real writer shall not wonder */
	feeder = (struct feeder){
	    .in = &target->in,
	    .ring = target->in_map + RWP_RING_OFFSET,
	    .seq = target->in.next_seq,
	    .until = loop_now() + 5 * NSEC_PER_SEC, /* so that a failure ends */
	};
	first = feeder.seq;
	assert_int_equal(loop_timer_new(w->loop, count_and_set_again, &timer, &timer), 0);
	loop_timer_set(timer, 0);
	looks = 0;
	began = loop_now();
	assert_int_equal(pthread_create(&feeder.thread, NULL, feed, &feeder), 0);
	while (loop_now() - began < 500 * NSEC_PER_MSEC)
		loop_turn(w->loop, NSEC_PER_MSEC);
	__atomic_store_n(&feeder.stop, true, __ATOMIC_RELAXED);
	pthread_join(feeder.thread, NULL);
	loop_timer_free(timer);
	assert_true(loop_now() - began < 4 * NSEC_PER_SEC);
	assert_true(looks > 10);
	assert_true(feeder.seq - first > 200); /* it was really fed */
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
