/* connect.c -- the contract of listening, connecting, accepting, rejecting */

#include "config.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/text.h"
#include "contract/bench.h"
#include "contract/contract.h"
#include "loop/loop.h"
#include "wire/rwp.h"

static bool
starts_with(const struct end *end, const void *data, size_t len)
{
	return end->data_len >= len && memcmp(end->data, data, len) == 0;
}

/* ---- ports ---- */

static void
listens_and_listens_again(void **state)
{
	struct bench *b = *state;

	bench_listen(b);
	bench_unlisten(b, &b->port);
	bench_settle(b);
	bench_listen(b);
}

static void
a_taken_address_gives_port_down(void **state)
{
	struct bench *b = *state;

	bench_listen(b);
	assert_true(bench_listen_on(b, "", &b->second_word, &b->second) < 0);
	bench_unlisten(b, &b->second);
	assert_int_equal(b->port_word, 1);
	bench_release_pair(bench_pair(b, PAGE));
}

static void
an_unknown_device_gives_port_down(void **state)
{
	struct bench *b = *state;

	assert_true(bench_listen_on(b, "nosuchdevice", &b->port_word, &b->port) < 0);
}

/* ---- set-up ---- */

static void
private_data_travels_both_ways(void **state)
{
	static const size_t lengths[] = {0, 1, 55, 56};
	struct bench *b = *state;
	uint8_t question[56], answer[56];

	memset(question, 'q', sizeof(question));
	memset(answer, 'a', sizeof(answer));
	bench_listen(b);
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		struct pair p = {.active = bench_dial(b)};

		p.passive = bench_request(p.active, question, lengths[i]);
		assert_true(starts_with(p.passive, question, lengths[i]));
		bench_assert_zeros(p.passive->data + lengths[i], p.passive->data_len - lengths[i]);
		bench_accept(p.passive, answer, lengths[i]);
		AWAIT_OPEN(p.active, p.active->established && p.passive->established,
		    "ESTABLISHED on both sides");
		assert_true(starts_with(p.active, answer, lengths[i]));
		bench_assert_zeros(p.active->data + lengths[i], p.active->data_len - lengths[i]);
		bench_release_pair(p);
	}
}

static void
describe_tells_the_truth(void **state)
{
	struct bench *b = *state;
	struct pair pair = bench_pair(b, PAGE);
	struct fabric_info active, passive;

	bench_assert_works(pair);
	b->ops->describe(pair.active->conn, &active);
	b->ops->describe(pair.passive->conn, &passive);
	assert_in_range(active.kind, RWP_FABRIC_VERBS, RWP_FABRIC_IWARP);
	assert_int_equal(active.kind, passive.kind);
	assert_string_equal(active.fabric, b->ops->name);
	assert_true(active.device[0] != '\0' && passive.device[0] != '\0');
	assert_true(active.message_max > 0);
	assert_int_equal(active.receive_completions, 0);
	assert_int_equal(passive.receive_completions, 0);
	assert_true(text_address_equal((void *)&active.remote, (void *)&b->address));
	assert_true(text_address_equal((void *)&passive.local, (void *)&b->address));
	assert_true(text_address_equal((void *)&passive.remote, (void *)&active.local));
}

static void
a_reject_delivers_its_data(void **state)
{
	struct bench *b = *state;
	struct end *active, *passive;
	uint8_t why[128];

	memset(why, 'w', sizeof(why));
	bench_listen(b);
	active = bench_dial(b);
	passive = bench_request(active, "?", 1);
	DO(b, b->ops->reject(passive->conn, why, sizeof(why)));
	bench_await_closed(passive, CAUSE(LOCAL));
	bench_await_closed(active, CAUSE(REFUSED));
	assert_true(starts_with(active, why, sizeof(why)));
	bench_assert_zeros(active->data + sizeof(why), active->data_len - sizeof(why));
}

static void
where_nobody_listens_connecting_ends(void **state)
{
	struct bench *b = *state;
	struct end *end = bench_connect(b);
	int r = 0;

	AWAIT(b, end->resolved || end->closed, "RESOLVED or CLOSED");
	if (!end->closed)
		DO(b, r = b->ops->request(end->conn, "?", 1));
	assert_int_equal(r, 0);
	bench_await_closed(end, CAUSE(REFUSED) | CAUSE(TIMEOUT) | CAUSE(UNKNOWN));
	assert_int_equal(end->data_len, 0);
	assert_false(end->established);
}

static void
nothing_is_written_before_established(void **state)
{
	struct bench *b = *state;
	struct pair p;
	struct fabric_write w;

	bench_listen(b);
	p.active = bench_dial(b);
	bench_mem_ready(p.active, SOURCE, PAGE, 0);
	bench_mem_ready(p.active, TARGET, PAGE, FABRIC_REMOTE_WRITE);
	p.passive = bench_request(p.active, "?", 1);
	bench_mem_ready(p.passive, SOURCE, PAGE, 0);
	bench_mem_ready(p.passive, TARGET, PAGE, FABRIC_REMOTE_WRITE);
	w = bench_write_to(p.active, 0, 8, &p.passive->chunks[TARGET], 0);
	assert_int_equal(bench_post(p.active, &w, 1), -ENOTCONN);
	w = bench_write_to(p.passive, 0, 8, &p.active->chunks[TARGET], 0);
	assert_int_equal(bench_post(p.passive, &w, 1), -ENOTCONN);
}

static void
many_connect_at_once(void **state)
{
	enum { N = 24 };
	struct bench *b = *state;
	struct pair pairs[N];
	struct end *end;
	unsigned ready = 0;
	int r;

	bench_listen(b);
	for (uint8_t i = 0; i < N; i++)
		pairs[i].active = bench_connect(b);
	for (uint8_t i = 0; i < N; i++)
		AWAIT_OPEN(
		    pairs[i].active, pairs[i].active->resolved, "RESOLVED of every connection");
	for (uint8_t i = 0; i < N; i++)
		memset(bench_mem_ready(pairs[i].active, SOURCE, PAGE, 0)->addr, i + 1, PAGE);
	for (uint8_t i = 0; i < N; i++) {
		DO(b, r = b->ops->request(pairs[i].active->conn, &i, 1));
		assert_int_equal(r, 0);
	}
	AWAIT(b, b->requests == N, "REQUEST of every connection");
	list_for_each (end, &b->ends, struct end, node)
		if (!end->resolved && end->data_len > 0 && end->data[0] < N)
			pairs[end->data[0]].passive = end;
	for (unsigned i = 0; i < N; i++) {
		bench_mem_ready(pairs[i].passive, TARGET, PAGE, FABRIC_REMOTE_WRITE);
		bench_accept(pairs[i].passive, NULL, 0);
	}
	for (unsigned i = 0; i < N; i++) {
		AWAIT_OPEN(pairs[i].active,
		    pairs[i].active->established && pairs[i].passive->established,
		    "ESTABLISHED of every connection");
		bench_put(pairs[i].active, 0, PAGE, &pairs[i].passive->chunks[TARGET], 0);
	}
	for (unsigned i = 0; i < N; i++) {
		const volatile uint8_t *landed = pairs[i].passive->chunks[TARGET].addr;

		AWAIT_OPEN(pairs[i].active, landed[0] == i + 1 && landed[PAGE - 1] == i + 1,
		    "the bytes of each");
		ready++;
	}
	assert_int_equal(ready, N);
}

int
contract_connect(const char *title)
{
	static const struct CMUnitTest tests[] = {
	    BENCH_TEST(listens_and_listens_again),
	    BENCH_TEST(a_taken_address_gives_port_down),
	    BENCH_TEST(an_unknown_device_gives_port_down),
	    BENCH_TEST(private_data_travels_both_ways),
	    BENCH_TEST(describe_tells_the_truth),
	    BENCH_TEST(a_reject_delivers_its_data),
	    BENCH_TEST(where_nobody_listens_connecting_ends),
	    BENCH_TEST(nothing_is_written_before_established),
	    BENCH_TEST(many_connect_at_once),
	};

	return cmocka_run_group_tests_name(title, tests, NULL, NULL);
}
