/* test_fake.c -- the knobs of the fake: what tests of the core rely on */

#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/text.h"
#include "contract/bench.h"
#include "fake/fake.h"
#include "loop/loop.h"

#define WRITE(pair, from, len, to) \
	bench_put((pair).active, from, len, &(pair).passive->chunks[TARGET], to)

static int
setup(void **state)
{
	struct sockaddr_storage sa;

	fake = FAKE_DEFAULTS;
	assert_int_equal(text_parse_address("127.0.0.1", 0, &sa), 0);
	bench_use(&fabric_fake, &sa);
	return bench_setup(state);
}

static int
teardown(void **state)
{
	fake = FAKE_DEFAULTS;
	return bench_teardown(state);
}

static void
fail_next(bool later)
{
	fake.fail_at = fake.ops + 1;
	fake.fail_later = later;
}

static void
listen_fails_at_once_or_later(void **state)
{
	struct bench *b = *state;

	fail_next(false);
	assert_int_equal(
	    b->ops->listen(b->fabric, (void *)&b->address, NULL, &b->port_word, &b->port), -ENOMEM);
	fail_next(true);
	assert_true(bench_listen_on(b, NULL, &b->port_word, &b->port) < 0);
	bench_unlisten(b, &b->port);
	bench_listen(b);
}

static void
connect_fails_at_once_or_later(void **state)
{
	struct bench *b = *state;
	struct fabric_conn *conn;
	struct end *end;

	fail_next(false);
	assert_int_equal(b->ops->connect(b->fabric, (void *)&b->address, NULL, &conn), -ENOMEM);
	fail_next(true);
	end = bench_connect(b);
	bench_await_closed(end, CAUSE(TIMEOUT));
	assert_false(end->resolved);
}

static void
request_and_accept_fail_at_once_or_later(void **state)
{
	struct bench *b = *state;
	struct end *active, *passive;

	bench_listen(b);
	active = bench_dial(b);
	fail_next(false);
	assert_true(b->ops->request(active->conn, "?", 1) < 0);
	passive = bench_request(active, "?", 1);
	fail_next(false);
	assert_true(b->ops->accept(passive->conn, "!", 1) < 0);
	fail_next(true);
	bench_accept(passive, "!", 1);
	bench_await_closed(passive, CAUSE(DEVICE));
	bench_await_closed(active, CAUSE(PEER));

	active = bench_dial(b);
	fail_next(true);
	assert_int_equal(b->ops->request(active->conn, "?", 1), 0);
	bench_await_closed(active, CAUSE(TIMEOUT));
}

static void
mem_add_fails_at_once_or_later(void **state)
{
	struct bench *b = *state;
	struct end *end = bench_dial(b);
	struct fabric_mem *mem;
	static _Alignas(4096) uint8_t page[PAGE];

	fail_next(false);
	assert_int_equal(b->ops->mem_add(end->conn, page, PAGE, 0, NULL, &mem), -ENOMEM);
	fail_next(true);
	bench_mem(end, SOURCE, PAGE, 0);
	AWAIT(b, end->chunks[SOURCE].error != 0, "MEM_READY with an error");
	assert_null(end->chunks[SOURCE].mem);
	bench_mem_ready(end, EXTRA, PAGE, 0);
}

static void
write_fails_at_once_or_later(void **state)
{
	for (int later = 0; later < 2; later++) {
		struct pair pair = bench_pair(*state, PAGE);
		struct fabric_write w =
		    bench_write_to(pair.active, 0, 8, &pair.passive->chunks[TARGET], 0);

		fail_next(later);
		assert_int_equal(bench_post(pair.active, &w, 1), later ? 0 : -ENOTCONN);
		bench_await_closed(pair.active, CAUSE(DEVICE));
		bench_await_closed(pair.passive, CAUSE(PEER));
		bench_assert_zeros(pair.passive->chunks[TARGET].addr, PAGE);
	}
}

static void
open_fails(void **state)
{
	struct bench *b = *state;
	struct fabric *f = NULL;
	const char *detail = NULL;

	fail_next(true);
	assert_int_equal(b->ops->open(&b->fabric->env, &f, &detail), -ENODEV);
	assert_non_null(detail);
	assert_null(f);
	b->ops->close(NULL);
}

/* The link is cut: writes seem to succeed, and nobody hears that the other has ended. */
static void
a_cut_link_is_silent(void **state)
{
	struct bench *b = *state;
	struct pair pair = bench_pair(b, PAGE);
	struct end *end;

	bench_assert_works(pair);
	memset(pair.passive->chunks[TARGET].addr, 0, PAGE);
	fake.cut = true;
	WRITE(pair, 0, 64, 0);
	bench_await_written(pair.active);
	bench_assert_zeros(pair.passive->chunks[TARGET].addr, PAGE);
	bench_release(pair.passive);
	end = bench_dial(b);
	assert_int_equal(b->ops->request(end->conn, "?", 1), 0);
	bench_settle(b);
	assert_false(pair.active->closed || end->closed);
	fake.cut = false;
	bench_settle(b);
	assert_false(pair.active->closed || end->closed);
	fake_break(pair.active->conn, FABRIC_CAUSE_TIMEOUT);
	bench_await_closed(pair.active, CAUSE(TIMEOUT));
}

static void
breaking_tells_both_sides(void **state)
{
	struct pair pair = bench_pair(*state, PAGE);

	assert_ptr_equal(fake_conn(0, 0), pair.active->conn);
	assert_ptr_equal(fake_conn(0, 1), pair.passive->conn);
	assert_null(fake_conn(0, 2));
	assert_null(fake_conn(1, 0));
	fake_break(pair.passive->conn, FABRIC_CAUSE_DEVICE);
	fake_break(pair.passive->conn, FABRIC_CAUSE_TIMEOUT);
	bench_await_closed(pair.passive, CAUSE(DEVICE));
	bench_await_closed(pair.active, CAUSE(PEER));
}

static void
remote_write_is_dropped_once(void **state)
{
	struct bench *b = *state;
	struct pair pair;

	bench_listen(b);
	pair.active = bench_dial(b);
	bench_mem_ready(pair.active, SOURCE, PAGE, 0);
	fake.drop_remote_write = true;
	pair.passive = bench_request(pair.active, "?", 1);
	bench_mem_ready(pair.passive, TARGET, PAGE, FABRIC_REMOTE_WRITE);
	assert_false(fake.drop_remote_write);
	bench_accept(pair.passive, "!", 1);
	AWAIT(b, pair.active->established, "ESTABLISHED");
	WRITE(pair, 0, 8, 0);
	bench_await_closed(pair.active, CAUSE(REMOTE_ACCESS));
	bench_assert_works(bench_pair(b, PAGE));
}

static void
late_payload_is_overtaken_by_so_many_turns(void **state)
{
	struct bench *b = *state;
	struct pair pair = bench_pair(b, PAGE);
	const volatile uint8_t *landed = pair.passive->chunks[TARGET].addr;
	unsigned turns = 0;

	bench_assert_works(pair);
	bench_await_written(pair.active);
	memset(pair.passive->chunks[TARGET].addr, 0, PAGE);
	fake.late_payload = 3;
	memset(pair.active->chunks[SOURCE].addr, 1, PAGE);
	WRITE(pair, 0, 65, 0);
	WRITE(pair, 0, 64, 1024);
	AWAIT(b, landed[1024] == 1, "the record");
	assert_int_equal(landed[0], 0);
	for (; landed[0] == 0 && turns < 100; turns++)
		loop_turn(b->loop, 0);
	assert_int_equal(turns, 3);
	bench_await_written(pair.active);
}

static void
sources_are_read_when_their_bytes_land(void **state)
{
	struct bench *b = *state;
	struct pair pair = bench_pair(b, PAGE);
	const volatile uint8_t *landed = pair.passive->chunks[TARGET].addr;

	memset(pair.active->chunks[SOURCE].addr, 1, PAGE);
	WRITE(pair, 0, 64, 0);
	memset(pair.active->chunks[SOURCE].addr, 2, PAGE); /* too early: WRITTEN has not come */
	AWAIT(b, landed[0] != 0, "the bytes");
	assert_int_equal(landed[0], 2);
}

static void
passive_established_may_be_later_than_the_first_bytes(void **state)
{
	struct bench *b = *state;
	struct pair pair;
	const volatile uint8_t *landed;

	fake.late_established = 5;
	bench_listen(b);
	pair.active = bench_dial(b);
	memset(bench_mem_ready(pair.active, SOURCE, PAGE, 0)->addr, 1, PAGE);
	pair.passive = bench_request(pair.active, "?", 1);
	landed = bench_mem_ready(pair.passive, TARGET, PAGE, FABRIC_REMOTE_WRITE)->addr;
	bench_accept(pair.passive, "!", 1);
	AWAIT(b, pair.active->established, "ESTABLISHED");
	WRITE(pair, 0, 8, 0);
	AWAIT(b, landed[0] == 1, "the bytes");
	assert_false(pair.passive->established);
	AWAIT(b, pair.passive->established, "ESTABLISHED on the passive side");
}

static void
like_siw_a_passive_side_must_not_write_first(void **state)
{
	struct pair pair;

	fake.iwarp = true;
	pair = bench_pair(*state, PAGE);
	bench_put(pair.passive, 0, 8, &pair.active->chunks[TARGET], 0);
	bench_await_closed(pair.passive, CAUSE(UNKNOWN));
	bench_await_closed(pair.active, CAUSE(UNKNOWN));
}

static void
ports_go_down(void **state)
{
	struct bench *b = *state;

	bench_listen(b);
	fake_ports_down(0, -ENODEV);
	AWAIT(b, b->port_word == -ENODEV, "PORT_DOWN");
	bench_unlisten(b, &b->port);
	bench_listen(b);
	bench_assert_works(bench_pair(b, PAGE));
}

static void
connections_come_from_where_they_are_told(void **state)
{
	struct bench *b = *state;
	struct sockaddr_storage from;
	struct fabric_info info;
	struct pair pair;

	assert_int_equal(text_parse_address("192.0.2.7", 0, &from), 0);
	fake.from = (void *)&from;
	pair = bench_pair(b, PAGE);
	b->ops->describe(pair.passive->conn, &info);
	assert_true(text_address_equal((void *)&info.remote, (void *)&from));
	assert_true(info.polled);
	fake.hints = true;
	b->ops->describe(pair.passive->conn, &info);
	assert_false(info.polled);
}

#define FAKE_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    FAKE_TEST(open_fails),
	    FAKE_TEST(listen_fails_at_once_or_later),
	    FAKE_TEST(connect_fails_at_once_or_later),
	    FAKE_TEST(request_and_accept_fail_at_once_or_later),
	    FAKE_TEST(mem_add_fails_at_once_or_later),
	    FAKE_TEST(write_fails_at_once_or_later),
	    FAKE_TEST(a_cut_link_is_silent),
	    FAKE_TEST(breaking_tells_both_sides),
	    FAKE_TEST(remote_write_is_dropped_once),
	    FAKE_TEST(late_payload_is_overtaken_by_so_many_turns),
	    FAKE_TEST(sources_are_read_when_their_bytes_land),
	    FAKE_TEST(passive_established_may_be_later_than_the_first_bytes),
	    FAKE_TEST(like_siw_a_passive_side_must_not_write_first),
	    FAKE_TEST(ports_go_down),
	    FAKE_TEST(connections_come_from_where_they_are_told),
	};

	return cmocka_run_group_tests_name("fake", tests, NULL, NULL);
}
