/* write.c -- the contract of memory and writes */

#include "config.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "contract/bench.h"
#include "contract/contract.h"
#include "loop/loop.h"
#include "wire/rwp.h"

/* ---- writes ---- */

static void
writes_of_every_size_land(void **state)
{
	static const size_t sizes[] = {0, 1, 63, 64, 65, 4095, 4096, 4097, MIB, 8 * MIB};
	enum { FROM = 3, TO = 5 };
	struct bench *b = *state;
	struct pair pair = bench_pair(b, 8 * MIB + PAGE);
	const uint8_t *source = pair.active->chunks[SOURCE].addr;
	struct chunk *to = &pair.passive->chunks[TARGET];

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		size_t len = sizes[i];

		memset(to->addr, 0, to->len);
		bench_put(pair.active, FROM, len, to, TO);
		bench_flush(pair.active, pair.passive, to);
		bench_await_written(pair.active);
		bench_assert_zeros(to->addr, TO);
		assert_memory_equal(to->addr + TO, source + FROM, len);
		bench_assert_zeros(to->addr + TO + len, PAGE - TO - FROM);
	}
}

/* Slot by slot {payload, record}: where the record is there, so is all of its payload. */
static void
a_record_never_overtakes_its_payload(void **state)
{
	enum { PAYLOAD = 64 * 1024, RECORD = 64, SLOT = PAYLOAD + RECORD, SLOTS = 8, ROUNDS = 20 };
	struct bench *b = *state;
	struct pair pair = bench_pair(b, SLOTS * SLOT + PAGE);
	const struct chunk *to = &pair.passive->chunks[TARGET];
	uint8_t *source = pair.active->chunks[SOURCE].addr;

	for (uint8_t round = 1; round <= ROUNDS; round++) {
		memset(source, round, SLOTS * SLOT);
		for (size_t at = 0; at < SLOTS * SLOT; at += SLOT) {
			struct fabric_write w[2] = {
			    bench_write_to(pair.active, at, PAYLOAD, to, at),
			    bench_write_to(pair.active, at + PAYLOAD, RECORD, to, at + PAYLOAD)};
			int r;

			w[0].cookie = 0;
			AWAIT_OPEN(
			    pair.active, (r = bench_post(pair.active, w, 2)) != -EAGAIN, "room");
			assert_int_equal(r, 0);
		}
		for (size_t at = 0; at < SLOTS * SLOT; at += SLOT) {
			const uint8_t *flag = to->addr + at + SLOT - 1;

			AWAIT_OPEN(pair.active, __atomic_load_n(flag, __ATOMIC_ACQUIRE) == round,
			    "a record");
			assert_memory_equal(to->addr + at, source + at, PAYLOAD);
		}
		bench_await_written(pair.active);
	}
}

enum { PARTS = 4, PART = 256 * 1024 };

/* The first PARTS cookies of the connection are the parts. */
static void
spoil_written_parts(struct end *end)
{
	size_t parts = end->written < PARTS ? end->written : PARTS;

	memset(end->chunks[SOURCE].addr, 0xee, parts * PART);
}

static void
after_written_a_source_may_be_reused(void **state)
{
	struct bench *b = *state;
	struct pair pair = bench_pair(b, PARTS * PART + PAGE);
	struct chunk *to = &pair.passive->chunks[TARGET], *copy;

	copy = bench_mem_ready(pair.active, EXTRA, PARTS * PART, 0);
	memcpy(copy->addr, pair.active->chunks[SOURCE].addr, PARTS * PART);
	pair.active->on_written = spoil_written_parts;
	for (size_t at = 0; at < PARTS * PART; at += PART)
		bench_put(pair.active, at, PART, to, at);
	bench_await_written(pair.active);
	assert_int_equal(pair.active->chunks[SOURCE].addr[PARTS * PART - 1], 0xee);
	bench_flush(pair.active, pair.passive, to);
	assert_memory_equal(to->addr, copy->addr, PARTS * PART);
}

/* Posts three words at a time until there is no room; returns how many times there was. */
static unsigned
fill_queue(struct pair pair, bool with_cookies)
{
	enum { WORD = 8, TOO_MANY = 40000 };
	unsigned n = 0;
	int r = 0;

	while (r == 0 && n < TOO_MANY) {
		struct fabric_write w[3];

		for (unsigned i = 0; i < 3; i++) {
			size_t at = WORD * (3 * n + i);

			w[i] = bench_write_to(
			    pair.active, at, WORD, &pair.passive->chunks[TARGET], at);
			w[i].cookie = with_cookies ? w[i].cookie + i : 0;
		}
		r = bench_post(pair.active, w, 3);
		n += r == 0;
	}
	assert_int_equal(r, -EAGAIN);
	return n;
}

static void
a_full_queue_says_so_and_takes_all_or_none(void **state)
{
	struct bench *b = *state;
	struct pair pair = bench_pair(b, MIB + PAGE);
	const uint8_t *source = pair.active->chunks[SOURCE].addr;
	struct chunk *to = &pair.passive->chunks[TARGET];
	unsigned n = fill_queue(pair, true);

	assert_true(n > 0);
	AWAIT_OPEN(pair.active, pair.active->written > 0, "WRITTEN after -EAGAIN");
	bench_flush(pair.active, pair.passive, to);
	bench_await_written(pair.active);
	assert_memory_equal(to->addr, source, 24 * n);
	bench_assert_zeros(to->addr + 24 * n, 24);
}

static void
written_follows_eagain_even_without_cookies(void **state)
{
	struct bench *b = *state;
	struct pair pair = bench_pair(b, MIB + PAGE);

	fill_queue(pair, false);
	AWAIT_OPEN(pair.active, pair.active->written_events > 0, "WRITTEN after -EAGAIN");
	bench_assert_works(pair);
}

static void
who_is_not_polled_is_told_of_arrivals(void **state)
{
	struct bench *b = *state;
	struct pair pair = bench_pair(b, PAGE);
	struct fabric_info info;

	b->ops->describe(pair.passive->conn, &info);
	bench_put(pair.active, 0, 64, &pair.passive->chunks[TARGET], 0);
	if (!info.polled)
		AWAIT(b, pair.passive->arrived_events > 0, "ARRIVED");
	bench_assert_works(pair);
	if (info.polled)
		assert_int_equal(pair.passive->arrived_events, 0);
}

static void
the_passive_side_writes_back(void **state)
{
	struct bench *b = *state;
	struct pair pair = bench_pair(b, 2 * PAGE);

	bench_assert_works(pair);
	memset(pair.passive->chunks[SOURCE].addr, 0x5a, PAGE);
	bench_put(pair.passive, 0, PAGE, &pair.active->chunks[TARGET], 0);
	bench_flush(pair.passive, pair.active, &pair.active->chunks[TARGET]);
	assert_memory_equal(
	    pair.active->chunks[TARGET].addr, pair.passive->chunks[SOURCE].addr, PAGE);
	bench_assert_works(pair);
}

/* ---- what may not be written ---- */

/* Posts a write that the target does not allow: it ends the connection on both sides. */
static void
assert_denied(struct pair pair, struct fabric_write w)
{
	struct fabric_info info;
	unsigned causes = CAUSE(REMOTE_ACCESS);

	pair.active->bench->ops->describe(pair.active->conn, &info);
	if (info.kind != RWP_FABRIC_VERBS)
		causes |= GONE;
	assert_int_equal(bench_post(pair.active, &w, 1), 0);
	bench_await_closed(pair.active, causes);
	bench_await_closed(pair.passive, GONE | CAUSE(PROTOCOL));
	assert_int_equal(bench_post(pair.active, &w, 1), -ENOTCONN);
}

static void
a_write_beyond_the_memory_is_denied(void **state)
{
	struct pair pair = bench_pair(*state, PAGE);
	struct chunk *to = &pair.passive->chunks[TARGET];

	bench_assert_works(pair);
	memset(to->addr, 0, PAGE);
	assert_denied(pair, bench_write_to(pair.active, 0, 64, to, PAGE - 63));
	bench_assert_zeros(to->addr, PAGE);
}

static void
a_write_before_the_memory_is_denied(void **state)
{
	struct pair pair = bench_pair(*state, PAGE);
	struct chunk *to = &pair.passive->chunks[TARGET];
	struct fabric_write w = bench_write_to(pair.active, 0, 64, to, 0);

	w.remote_addr--;
	assert_denied(pair, w);
	bench_assert_zeros(to->addr, PAGE);
}

static void
a_write_with_a_wrong_rkey_is_denied(void **state)
{
	struct pair pair = bench_pair(*state, PAGE);
	struct chunk *to = &pair.passive->chunks[TARGET];
	struct fabric_write w = bench_write_to(pair.active, 0, 64, to, 0);

	w.rkey ^= 0x80;
	assert_denied(pair, w);
	bench_assert_zeros(to->addr, PAGE);
}

static void
a_write_into_memory_without_remote_write_is_denied(void **state)
{
	struct pair pair = bench_pair(*state, PAGE);
	struct chunk *to = bench_mem_ready(pair.passive, EXTRA, PAGE, 0);

	bench_assert_works(pair);
	assert_denied(pair, bench_write_to(pair.active, 0, 64, to, 0));
	bench_assert_zeros(to->addr, PAGE);
}

static void
a_write_into_dropped_memory_is_denied(void **state)
{
	struct pair pair = bench_pair(*state, PAGE);
	struct chunk *to = bench_mem_ready(pair.passive, EXTRA, PAGE, FABRIC_REMOTE_WRITE);
	struct fabric_write w = bench_write_to(pair.active, 0, 64, to, 0);

	bench_put(pair.active, 0, 64, to, 0);
	bench_assert_works(pair);
	bench_mem_drop(pair.passive, to);
	memset(to->addr, 0, PAGE);
	bench_assert_works(pair);
	w.cookie = pair.active->posted + 1;
	assert_denied(pair, w);
	bench_assert_zeros(to->addr, PAGE);
}

static void
a_connection_cannot_use_the_rkey_of_another(void **state)
{
	struct pair thief = bench_pair(*state, PAGE), owner = bench_pair(*state, PAGE);
	struct chunk *to = &owner.passive->chunks[TARGET];

	bench_assert_works(thief);
	assert_denied(thief, bench_write_to(thief.active, 0, 64, to, 0));
	bench_assert_zeros(to->addr, PAGE);
	bench_assert_works(owner);
}

static void
failures_leave_room_for_new_connections(void **state)
{
	for (int i = 0; i < 8; i++) {
		struct pair pair = bench_pair(*state, PAGE);

		bench_assert_works(pair);
		assert_denied(
		    pair, bench_write_to(pair.active, 0, 64, &pair.passive->chunks[TARGET], PAGE));
		bench_release_pair(pair);
	}
	bench_assert_works(bench_pair(*state, PAGE));
}

/* ---- memory ---- */

static void
memory_comes_and_goes_on_a_living_connection(void **state)
{
	struct pair pair = bench_pair(*state, PAGE);

	for (unsigned i = EXTRA; i <= EXTRA2; i++)
		bench_mem(pair.passive, i, i * MIB, FABRIC_REMOTE_WRITE);
	for (unsigned i = EXTRA; i <= EXTRA2; i++) {
		struct chunk *chunk = &pair.passive->chunks[i];

		AWAIT_OPEN(pair.passive, chunk->ready, "MEM_READY");
		bench_put(pair.active, 0, PAGE, chunk, chunk->len - PAGE);
		bench_assert_works(pair);
		assert_memory_equal(
		    chunk->addr + chunk->len - PAGE, pair.active->chunks[SOURCE].addr, PAGE - 1);
		bench_mem_drop(pair.passive, chunk);
	}
	bench_assert_works(pair);
}

static void
memory_on_its_way_is_answered_after_stop(void **state)
{
	struct bench *b = *state;
	struct end *end;

	bench_listen(b);
	end = bench_dial(b);
	bench_mem(end, TARGET, 4 * MIB, FABRIC_REMOTE_WRITE);
	bench_stop(end);
	bench_await_closed(end, CAUSE(LOCAL));
	bench_release(end); /* awaits MEM_READY, and MEM_GONE where it was ready */
}

int
contract_write(const char *title)
{
	static const struct CMUnitTest tests[] = {
	    BENCH_TEST(writes_of_every_size_land),
	    BENCH_TEST(a_record_never_overtakes_its_payload),
	    BENCH_TEST(after_written_a_source_may_be_reused),
	    BENCH_TEST(a_full_queue_says_so_and_takes_all_or_none),
	    BENCH_TEST(written_follows_eagain_even_without_cookies),
	    BENCH_TEST(who_is_not_polled_is_told_of_arrivals),
	    BENCH_TEST(the_passive_side_writes_back),
	    BENCH_TEST(a_write_beyond_the_memory_is_denied),
	    BENCH_TEST(a_write_before_the_memory_is_denied),
	    BENCH_TEST(a_write_with_a_wrong_rkey_is_denied),
	    BENCH_TEST(a_write_into_memory_without_remote_write_is_denied),
	    BENCH_TEST(a_write_into_dropped_memory_is_denied),
	    BENCH_TEST(a_connection_cannot_use_the_rkey_of_another),
	    BENCH_TEST(failures_leave_room_for_new_connections),
	    BENCH_TEST(memory_comes_and_goes_on_a_living_connection),
	    BENCH_TEST(memory_on_its_way_is_answered_after_stop),
	};

	return cmocka_run_group_tests_name(title, tests, NULL, NULL);
}
