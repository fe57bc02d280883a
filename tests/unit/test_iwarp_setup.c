/* test_iwarp_setup.c -- how iwarp connections begin, against a peer that speaks raw bytes */

#include "config.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/limits.h"
#include "raw_peer.h"

static void
accept_with(struct raw *r, const char *data)
{
	RAW_AWAIT(r, r->requested);
	assert_int_equal(fabric_iwarp.accept(r->conn, data, strlen(data)), 0);
	RAW_AWAIT(r, r->established);
}

static void
assert_data(const struct raw *r, const char *data)
{
	assert_int_equal(r->data_len, strlen(data));
	assert_memory_equal(r->data, data, strlen(data));
}

/* ---- the answering side ---- */

static void
revision_1_is_answered_in_revision_1(void **state)
{
	struct raw *r = *state;

	raw_dial(r);
	raw_say(r, RAW_REQUEST "00 01 00 05 68 65 6c 6c 6f");
	RAW_AWAIT(r, r->requested);
	assert_data(r, "hello");
	accept_with(r, "hi");
	raw_hear(r, RAW_REPLY "40 01 00 02 68 69");
}

static void
revision_2_is_answered_with_depths_of_zero(void **state)
{
	struct raw *r = *state;

	raw_dial(r);
	raw_say(r, RAW_REQUEST "1f 02 00 09 00 10 00 10 68 65 6c 6c 6f");
	RAW_AWAIT(r, r->requested);
	assert_data(r, "hello");
	accept_with(r, "hi");
	raw_hear(r, RAW_REPLY "50 02 00 06 00 00 00 00 68 69");
	raw_hear_nothing(r);
}

static void
revision_2_need_not_be_enhanced(void **state)
{
	struct raw *r = *state;

	raw_dial(r);
	raw_say(r, RAW_REQUEST "40 02 00 00");
	accept_with(r, "hi");
	raw_hear(r, RAW_REPLY "40 02 00 02 68 69");
}

static void
depths_may_be_left_to_the_programs(void **state)
{
	struct raw *r = *state;

	raw_dial(r);
	raw_say(r, RAW_REQUEST "10 02 00 04 3f ff 3f ff");
	accept_with(r, "");
	raw_hear(r, RAW_REPLY "50 02 00 04 3f ff 3f ff");
}

static void
a_request_may_come_octet_by_octet(void **state)
{
	struct raw *r = *state;
	uint8_t bytes[64];
	size_t len =
	    unhex(RAW_REQUEST "50 02 00 09 00 01 00 01 68 65 6c 6c 6f", bytes, sizeof(bytes));

	raw_dial(r);
	for (size_t i = 0; i < len; i++) {
		assert_false(r->requested);
		raw_say_bytes(r, bytes + i, 1);
		loop_turn(r->loop, NSEC_PER_MSEC);
	}
	RAW_AWAIT(r, r->requested);
	assert_data(r, "hello");
}

static void
an_initiator_may_be_ready_by_a_write(void **state)
{
	struct raw *r = *state;

	raw_dial(r);
	raw_say(r, RAW_REQUEST "50 02 00 04 c0 01 c0 01");
	accept_with(r, "");
	raw_hear(r, RAW_REPLY "50 02 00 04 80 00 80 00");
	raw_say(r, "00 0e c1 40 00 00 00 01 00 00 00 00 00 00 00 00 eb d3 4c 5f");
	raw_hear_nothing(r);
	assert_false(r->closed);
	assert_int_equal(r->arrived, 0);
}

/* A read of no bytes from nowhere. */
static void
an_initiator_may_be_ready_by_a_read(void **state)
{
	struct raw *r = *state;

	raw_dial(r);
	raw_say(r, RAW_REQUEST "50 02 00 04 80 01 40 01");
	accept_with(r, "");
	raw_hear(r, RAW_REPLY "50 02 00 04 80 01 40 00");
	raw_say(r,
	    "00 2e 41 41 00 00 00 00 00 00 00 01 00 00 00 01 00 00 00 00 00 00 00 01 00 00 00 00 "
	    "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 6f 0d e9 13");
	raw_hear(r, "00 0e c1 42 00 00 00 01 00 00 00 00 00 00 00 00 21 a3 e8 3e");
	assert_false(r->closed);
}

static void
a_reject_carries_data(void **state)
{
	struct raw *r = *state;

	raw_dial(r);
	raw_say(r, RAW_ASK);
	RAW_AWAIT(r, r->requested);
	fabric_iwarp.reject(r->conn, "no", 2);
	raw_hear(r, RAW_REPLY "70 02 00 06 00 00 00 00 6e 6f");
	raw_hear_end(r);
	RAW_AWAIT(r, r->closed);
	assert_int_equal(r->cause, FABRIC_CAUSE_LOCAL);
}

static void
markers_are_refused(void **state)
{
	struct raw *r = *state;

	raw_dial(r);
	raw_say(r, RAW_REQUEST "d0 02 00 04 00 00 00 00");
	raw_hear(r, RAW_REPLY "70 02 00 04 00 00 00 00");
	raw_hear_end(r);
	assert_false(r->requested);
}

static void
what_is_no_request_is_hung_up_on(void **state)
{
	static const char *const cases[] = {
	    "47 45 54 20 2f",          /* a browser */
	    RAW_REPLY "40 01 00 00",   /* somebody like us, who dials too */
	    RAW_REQUEST "40 00 00 00", /* from before the standard */
	    RAW_REQUEST "40 03 00 00", RAW_REQUEST "40 01 02 01", /* data too long */
	    RAW_REQUEST "50 02 00 00",                            /* depths are missing */
	    RAW_ASK " 00",                                        /* more than a request */
	};
	struct raw *r = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		raw_dial(r);
		raw_say(r, cases[i]);
		raw_hear_end(r);
		assert_false(r->requested);
		close(r->fd);
		r->fd = -1;
	}
}

static void
silence_is_hung_up_on_at_every_octet(void **state)
{
	struct raw *r = *state;
	uint8_t bytes[64];
	size_t len = unhex(RAW_ASK, bytes, sizeof(bytes));
	uint64_t start = loop_now();
	int fds[64];

	for (size_t i = 0; i < len; i++) {
		fds[i] = raw_dial(r);
		assert_int_equal(send(fds[i], bytes, i, 0), i);
	}
	for (size_t i = 0; i < len; i++) {
		r->fd = fds[i];
		raw_hear_end(r);
		close(fds[i]);
	}
	r->fd = -1;
	assert_true(loop_now() - start >= RAW_HASTE_MS * NSEC_PER_MSEC);
	assert_false(r->requested);
}

static void
the_oldest_half_open_one_makes_room(void **state)
{
	struct raw *r = *state;
	int fds[LIMIT_HALF_OPEN + 1];

	for (unsigned i = 0; i < LIMIT_HALF_OPEN; i++) {
		fds[i] = raw_dial(r);
		loop_turn(r->loop, NSEC_PER_MSEC);
	}
	raw_hear_nothing(r);
	fds[LIMIT_HALF_OPEN] = raw_dial(r);
	raw_hear_end(r);
	r->fd = fds[LIMIT_HALF_OPEN];
	raw_say(r, RAW_ASK);
	RAW_AWAIT(r, r->requested);
	for (unsigned i = 0; i < LIMIT_HALF_OPEN; i++)
		close(fds[i]);
}

static void
nothing_may_come_before_the_reply(void **state)
{
	struct raw *r = *state;

	raw_dial(r);
	raw_say(r, RAW_ASK);
	RAW_AWAIT(r, r->requested);
	raw_say(r, "00");
	RAW_AWAIT(r, r->closed);
	assert_int_equal(r->cause, FABRIC_CAUSE_PROTOCOL);
	raw_hear_end(r);
}

static void
a_request_may_be_taken_back(void **state)
{
	struct raw *r = *state;

	raw_dial(r);
	raw_say(r, RAW_ASK);
	RAW_AWAIT(r, r->requested);
	shutdown(r->fd, SHUT_WR);
	RAW_AWAIT(r, r->closed);
	assert_int_equal(r->cause, FABRIC_CAUSE_PEER);
	assert_int_equal(fabric_iwarp.accept(r->conn, NULL, 0), -ENOTCONN);
}

/* ---- the asking side ---- */

static void
the_request_is_of_revision_2(void **state)
{
	struct raw *r = *state;

	raw_answer(r, "hello");
	raw_hear(r, RAW_REQUEST "50 02 00 09 00 00 00 00 68 65 6c 6c 6f");
	raw_hear_nothing(r);
	raw_say(r, RAW_REPLY "50 02 00 06 00 00 00 00 68 69");
	RAW_AWAIT(r, r->established);
	assert_data(r, "hi");
}

static void
the_reply_may_be_of_revision_1(void **state)
{
	struct raw *r = *state;

	raw_answer(r, "");
	raw_say(r, RAW_REPLY "00 01 00 02 68 69");
	RAW_AWAIT(r, r->established);
	assert_data(r, "hi");
}

static void
a_reply_may_come_octet_by_octet(void **state)
{
	struct raw *r = *state;
	uint8_t bytes[64];
	size_t len = unhex(RAW_REPLY "50 02 00 06 80 00 80 00 68 69", bytes, sizeof(bytes));

	raw_answer(r, "");
	for (size_t i = 0; i < len; i++) {
		assert_false(r->established);
		raw_say_bytes(r, bytes + i, 1);
		loop_turn(r->loop, NSEC_PER_MSEC);
	}
	RAW_AWAIT(r, r->established);
	assert_data(r, "hi");
}

static void
glued_to_the_reply_a_write_is_placed(void **state)
{
	struct raw *r = *state;
	uint8_t bytes[128];
	size_t len = unhex(RAW_REPLY "50 02 00 06 00 00 00 00 68 69", bytes, sizeof(bytes));

	raw_answer(r, "");
	raw_add_memory(r, FABRIC_REMOTE_WRITE);
	len += raw_segment(r, bytes + len, 0, "glued", true);
	raw_say_bytes(r, bytes, len);
	RAW_AWAIT(r, r->arrived > 0);
	assert_true(r->established);
	assert_data(r, "hi");
	assert_memory_equal(r->memory, "glued\0", 6);
}

static void
a_reject_arrives(void **state)
{
	struct raw *r = *state;

	raw_answer(r, "");
	raw_say(r, RAW_REPLY "30 02 00 06 00 00 00 00 6e 6f");
	RAW_AWAIT(r, r->closed);
	assert_int_equal(r->cause, FABRIC_CAUSE_REFUSED);
	assert_data(r, "no");
	assert_false(r->established);
}

static void
assert_reply_ends(struct raw *r, const char *hex, enum fabric_cause cause)
{
	raw_answer(r, "");
	raw_say(r, hex);
	RAW_AWAIT(r, r->closed);
	assert_int_equal(r->cause, cause);
	assert_false(r->established);
}

static void
a_reply_that_demands_markers_ends_it(void **state)
{
	assert_reply_ends(*state, RAW_REPLY "80 02 00 04 00 00 00 00", FABRIC_CAUSE_PROTOCOL);
}

static void
our_own_request_is_no_reply(void **state)
{
	assert_reply_ends(*state, RAW_ASK, FABRIC_CAUSE_PROTOCOL);
}

static void
a_reply_of_the_future_ends_it(void **state)
{
	assert_reply_ends(*state, RAW_REPLY "50 03 00 04 00 00 00 00", FABRIC_CAUSE_PROTOCOL);
}

static void
without_a_reply_time_is_up(void **state)
{
	struct raw *r = *state;

	raw_answer(r, "");
	raw_say(r, RAW_REPLY "50 02 00 04 00 00");
	RAW_AWAIT(r, r->closed);
	assert_int_equal(r->cause, FABRIC_CAUSE_TIMEOUT);
}

static void
a_hang_up_instead_of_a_reply_is_the_peers(void **state)
{
	struct raw *r = *state;

	raw_answer(r, "");
	shutdown(r->fd, SHUT_WR);
	RAW_AWAIT(r, r->closed);
	assert_int_equal(r->cause, FABRIC_CAUSE_PEER);
}

#define RAW_TEST(name)   cmocka_unit_test_setup_teardown(name, raw_setup, raw_teardown)
#define HASTY_TEST(name) cmocka_unit_test_setup_teardown(name, raw_setup_hasty, raw_teardown)

int
main(void)
{
	static const struct CMUnitTest tests[] = {
	    RAW_TEST(revision_1_is_answered_in_revision_1),
	    RAW_TEST(revision_2_is_answered_with_depths_of_zero),
	    RAW_TEST(revision_2_need_not_be_enhanced),
	    RAW_TEST(depths_may_be_left_to_the_programs),
	    RAW_TEST(a_request_may_come_octet_by_octet),
	    RAW_TEST(an_initiator_may_be_ready_by_a_write),
	    RAW_TEST(an_initiator_may_be_ready_by_a_read),
	    RAW_TEST(a_reject_carries_data),
	    RAW_TEST(markers_are_refused),
	    RAW_TEST(what_is_no_request_is_hung_up_on),
	    HASTY_TEST(silence_is_hung_up_on_at_every_octet),
	    RAW_TEST(the_oldest_half_open_one_makes_room),
	    RAW_TEST(nothing_may_come_before_the_reply),
	    RAW_TEST(a_request_may_be_taken_back),
	    RAW_TEST(the_request_is_of_revision_2),
	    RAW_TEST(the_reply_may_be_of_revision_1),
	    RAW_TEST(a_reply_may_come_octet_by_octet),
	    RAW_TEST(glued_to_the_reply_a_write_is_placed),
	    RAW_TEST(a_reject_arrives),
	    RAW_TEST(a_reply_that_demands_markers_ends_it),
	    RAW_TEST(our_own_request_is_no_reply),
	    RAW_TEST(a_reply_of_the_future_ends_it),
	    HASTY_TEST(without_a_reply_time_is_up),
	    RAW_TEST(a_hang_up_instead_of_a_reply_is_the_peers),
	};

	return cmocka_run_group_tests_name("iwarp: set-up", tests, NULL, NULL);
}
