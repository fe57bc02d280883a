/* end.c -- the contract of ending: from every state, once, and for good */

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

/* How an end may hear that the other has gone while they were being connected: to rdma_cm some of
 * that looks like an error of its own. */
#define NOT_CONNECTED (GONE | CAUSE(REFUSED) | CAUSE(TIMEOUT) | CAUSE(PROTOCOL) | CAUSE(DEVICE))

static void
stop_before_resolved(void **state)
{
	struct end *end = bench_connect(*state);

	bench_stop(end);
	bench_await_closed(end, CAUSE(LOCAL));
	assert_false(end->resolved);
}

static void
stop_when_resolved(void **state)
{
	struct end *end = bench_dial(*state);

	bench_stop(end);
	bench_stop(end);
	bench_await_closed(end, CAUSE(LOCAL));
	bench_stop(end);
	bench_settle(*state);
}

static void
stop_when_requested(void **state)
{
	struct bench *b = *state;
	struct end *end;
	int r;

	bench_listen(b);
	end = bench_dial(b);
	DO(b, r = b->ops->request(end->conn, "?", 1));
	assert_int_equal(r, 0);
	bench_stop(end);
	bench_await_closed(end, CAUSE(LOCAL));
	bench_settle(b);
	if (b->incoming != NULL && !b->incoming->closed) {
		DO(b, b->ops->reject(b->incoming->conn, "no", 2));
		bench_await_closed(b->incoming, CAUSE(LOCAL) | GONE);
	}
	bench_release_pair(bench_pair(b, PAGE));
}

static void
stop_instead_of_accept(void **state)
{
	struct bench *b = *state;
	struct end *active, *passive;

	bench_listen(b);
	active = bench_dial(b);
	passive = bench_request(active, "?", 1);
	bench_stop(passive);
	bench_await_closed(passive, CAUSE(LOCAL));
	bench_await_closed(active, NOT_CONNECTED);
}

static void
stop_right_after_accept(void **state)
{
	struct bench *b = *state;
	struct end *active, *passive;

	bench_listen(b);
	active = bench_dial(b);
	passive = bench_request(active, "?", 1);
	bench_accept(passive, "!", 1);
	bench_stop(passive);
	bench_await_closed(passive, CAUSE(LOCAL));
	bench_await_closed(active, NOT_CONNECTED);
}

static void
accepting_one_that_has_gone_ends(void **state)
{
	struct bench *b = *state;
	struct end *active, *passive;
	int r = -ENOTCONN;

	bench_listen(b);
	active = bench_dial(b);
	passive = bench_request(active, "?", 1);
	bench_release(active);
	bench_settle(b);
	if (!passive->closed)
		DO(b, r = b->ops->accept(passive->conn, "!", 1));
	if (r < 0 && !passive->closed)
		bench_stop(passive);
	bench_await_closed(passive, NOT_CONNECTED | CAUSE(LOCAL));
}

static void
stop_reaches_the_other_side(void **state)
{
	struct bench *b = *state;
	struct pair one = bench_pair(b, PAGE), two = bench_pair(b, PAGE);

	bench_assert_works(one);
	bench_assert_works(two);
	bench_stop(one.active);
	bench_stop(two.passive);
	bench_await_closed(one.active, CAUSE(LOCAL));
	bench_await_closed(two.passive, CAUSE(LOCAL));
	bench_await_closed(one.passive, GONE);
	bench_await_closed(two.active, GONE);
}

static void
both_may_stop_at_once(void **state)
{
	struct pair pair = bench_pair(*state, PAGE);

	bench_assert_works(pair);
	bench_stop(pair.active);
	bench_stop(pair.passive);
	bench_await_closed(pair.active, CAUSE(LOCAL) | GONE);
	bench_await_closed(pair.passive, CAUSE(LOCAL) | GONE);
}

/* After CLOSED no source is read and no target is written: ASan and the guard of munmap would tell.
 */
static void
stop_in_the_middle_of_writes(void **state)
{
	struct bench *b = *state;
	struct pair pair = bench_pair(b, 8 * MIB);
	uint8_t *landed = pair.passive->chunks[TARGET].addr;

	for (size_t at = 0; at < 4; at++)
		bench_put(pair.active, at * MIB, 2 * MIB, &pair.passive->chunks[TARGET], at * MIB);
	bench_stop(pair.active);
	bench_await_closed(pair.active, CAUSE(LOCAL));
	bench_release(pair.active);
	bench_await_closed(pair.passive, GONE);
	memset(landed, 0, 8 * MIB);
	bench_settle(b);
	bench_assert_zeros(landed, 8 * MIB);
}

/* The end of the port is not the end of its connections. */
static void
connections_outlive_their_port(void **state)
{
	struct bench *b = *state;
	struct pair pair = bench_pair(b, PAGE);

	bench_unlisten(b, &b->port);
	bench_settle(b);
	bench_assert_works(pair);
}

int
contract_end(const char *title)
{
	static const struct CMUnitTest tests[] = {
	    BENCH_TEST(stop_before_resolved),
	    BENCH_TEST(stop_when_resolved),
	    BENCH_TEST(stop_when_requested),
	    BENCH_TEST(stop_instead_of_accept),
	    BENCH_TEST(stop_right_after_accept),
	    BENCH_TEST(accepting_one_that_has_gone_ends),
	    BENCH_TEST(stop_reaches_the_other_side),
	    BENCH_TEST(both_may_stop_at_once),
	    BENCH_TEST(stop_in_the_middle_of_writes),
	    BENCH_TEST(connections_outlive_their_port),
	};

	return cmocka_run_group_tests_name(title, tests, NULL, NULL);
}
