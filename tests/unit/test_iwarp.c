/* test_iwarp.c -- an iwarp connection against a peer that speaks raw bytes: what is placed, what is
 * refused and how, what goes out */

#include "config.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fabric/rdmap.h"
#include "raw_peer.h"

#define TERMINATE(length) "00 " length " 41 47 00 00 00 00 00 00 00 02 00 00 00 01 00 00 00 00 "

/* A whole FPDU comes; returns how long its ULPDU is. */
static size_t
hear_fpdu(struct raw *r, uint8_t *fpdu)
{
	size_t ulpdu;

	raw_hear_bytes(r, fpdu, MPA_LENGTH_SIZE);
	ulpdu = (size_t)fpdu[0] << 8 | fpdu[1];
	raw_hear_bytes(r, fpdu + MPA_LENGTH_SIZE, mpa_fpdu_size(ulpdu) - MPA_LENGTH_SIZE);
	return ulpdu;
}

/* The peer is told this, and no more; our side has ended. */
static void
assert_terminated(struct raw *r, enum rdmap_error error)
{
	uint8_t fpdu[MPA_FPDU_MAX];
	struct rdmap_terminate terminate;
	struct ddp_segment s;
	size_t ulpdu = hear_fpdu(r, fpdu);

	assert_true(mpa_crc_matches(fpdu, ulpdu, NULL));
	ddp_decode(fpdu, &s);
	assert_int_equal(rdmap_operation(&s), RDMAP_TERMINATE);
	rdmap_terminate_decode(fpdu + DDP_HEADER_MAX, false, &terminate);
	assert_int_equal(terminate.error, error);
	raw_hear_end(r);
	RAW_AWAIT(r, r->closed);
	assert_int_equal(r->cause, FABRIC_CAUSE_PROTOCOL);
}

static void
assert_untouched(const struct raw *r)
{
	for (size_t i = 0; i < RAW_MEMORY; i++)
		assert_int_equal(r->memory[i], 0);
}

/* ---- writes that come ---- */

static void
a_write_is_placed_and_announced(void **state)
{
	struct raw *r = *state;

	raw_open(r);
	raw_write(r, 5, "Hello RDMA Write!");
	RAW_AWAIT(r, r->arrived > 0);
	assert_memory_equal(r->memory, "\0\0\0\0\0Hello RDMA Write!\0", 23);
	raw_write(r, RAW_MEMORY - 3, "end");
	RAW_AWAIT(r, r->arrived > 1);
	assert_memory_equal(r->memory + RAW_MEMORY - 3, "end", 3);
	assert_false(r->closed);
}

static void
writes_may_come_octet_by_octet(void **state)
{
	struct raw *r = *state;
	uint8_t fpdus[256];
	size_t len;

	raw_open(r);
	len = raw_segment(r, fpdus, 0, "one ", false);
	len += raw_segment(r, fpdus + len, 4, "message", true);
	len += raw_segment(r, fpdus + len, 100, "", true);
	len += raw_segment(r, fpdus + len, 20, "another", true);
	for (size_t i = 0; i < len; i++) {
		raw_say_bytes(r, fpdus + i, 1);
		loop_turn(r->loop, NSEC_PER_MSEC);
	}
	RAW_AWAIT(r, r->memory[26] == 'r');
	assert_memory_equal(r->memory, "one message\0\0\0\0\0\0\0\0\0another", 28);
	assert_false(r->closed);
}

/* Many in one segment of TCP: one hint a turn. */
static void
hints_are_one_a_turn(void **state)
{
	struct raw *r = *state;
	uint8_t fpdus[4096];
	size_t len = 0;

	raw_open(r);
	for (size_t i = 0; i < 64; i++)
		len += raw_segment(r, fpdus + len, i, "x", true);
	raw_say_bytes(r, fpdus, len);
	RAW_AWAIT(r, r->memory[63] == 'x');
	assert_int_equal(r->arrived, 1);
}

static void
a_wrong_crc_places_nothing(void **state)
{
	struct raw *r = *state;
	uint8_t fpdu[64];
	size_t len;

	raw_open(r);
	len = raw_segment(r, fpdu, 0, "Hello", true);
	fpdu[len - 1] ^= 1;
	raw_say_bytes(r, fpdu, len);
	raw_hear(r, TERMINATE("16") "20 02 00 00 7f e4 25 85");
	raw_hear_end(r);
	RAW_AWAIT(r, r->closed);
	assert_int_equal(r->cause, FABRIC_CAUSE_PROTOCOL);
	assert_untouched(r);
}

static void
a_terminate_quotes_the_write(void **state)
{
	struct raw *r = *state;
	uint8_t fpdu[64], answer[64];

	raw_open(r);
	raw_say_bytes(r, fpdu, raw_segment(r, fpdu, RAW_MEMORY - 2, "Hello", true));
	assert_int_equal(hear_fpdu(r, answer), 38);
	assert_memory_equal(answer + DDP_HEADER_MAX, ((uint8_t[]){0x11, 0x01, 0xc0, 0}), 4);
	assert_memory_equal(answer + 24, fpdu, DDP_PREFIX_SIZE);
	raw_hear_end(r);
	RAW_AWAIT(r, r->closed);
	assert_untouched(r);
}

static void
without_the_right_nothing_is_placed(void **state)
{
	struct raw *r = *state;

	raw_dial(r);
	raw_say(r, RAW_ASK);
	RAW_AWAIT(r, r->requested);
	raw_add_memory(r, 0);
	assert_int_equal(fabric_iwarp.accept(r->conn, NULL, 0), 0);
	raw_hear(r, RAW_ACCEPT);
	raw_write(r, 0, "Hello");
	assert_terminated(r, RDMAP_E_ACCESS);
	assert_untouched(r);
}

static void
tagged_messages_do_not_mix(void **state)
{
	struct raw *r = *state;
	uint8_t fpdus[128];
	size_t len;

	raw_open(r);
	len = raw_segment(r, fpdus, 0, "one ", false);
	len += raw_segment(r, fpdus + len, 5, "message", true);
	raw_say_bytes(r, fpdus, len);
	assert_terminated(r, DDP_E_BOUNDS);
	assert_memory_equal(r->memory, "one \0\0", 6);
}

static void
lengths_that_hold_no_header_are_refused(void **state)
{
	struct raw *r = *state;

	raw_open(r);
	raw_say(r, "00 0d");
	assert_terminated(r, MPA_E_LENGTH);
}

static void
a_send_is_counted_and_refused(void **state)
{
	struct raw *r = *state;
	struct fabric_info info;

	raw_open(r);
	raw_say(r, "00 17 41 43 00 00 00 00 00 00 00 00 00 00 00 01 00 00 00 00 48 65 6c 6c 6f 00 "
		   "00 00 20 "
		   "f5 b1 01");
	assert_terminated(r, DDP_E_NO_BUFFER);
	fabric_iwarp.describe(r->conn, &info);
	assert_int_equal(info.receive_completions, 1);
}

static void
a_read_is_refused(void **state)
{
	struct raw *r = *state;

	raw_open(r);
	raw_say(r, "00 2e 41 41 00 00 00 00 00 00 00 01 00 00 00 01 00 00 00 00 00 00 02 00 00 00 "
		   "00 00 00 "
		   "00 20 00 00 00 00 11 00 00 01 00 00 00 00 00 00 00 10 00 7f 52 1a 49");
	raw_hear(r,
	    TERMINATE("2a") "02 07 c0 00 00 2e 41 41 00 00 00 00 00 00 00 01 00 00 00 01 00 00 00 "
			    "00 19 dc 7d b5");
	raw_hear_end(r);
}

/* ---- without CRCs ---- */

static void
open_without_crc(struct raw *r)
{
	raw_dial(r);
	raw_say(r, RAW_REQUEST "10 02 00 04 00 00 00 00");
	RAW_AWAIT(r, r->requested);
	raw_add_memory(r, FABRIC_REMOTE_WRITE);
	assert_int_equal(fabric_iwarp.accept(r->conn, NULL, 0), 0);
	RAW_AWAIT(r, r->established);
	raw_hear(r, RAW_REPLY "10 02 00 04 00 00 00 00");
}

static void
without_crc_a_write_is_placed_as_it_comes(void **state)
{
	struct raw *r = *state;
	uint8_t fpdus[256];
	size_t len;

	open_without_crc(r);
	len = raw_segment(r, fpdus, 0, "as it comes", true);
	len += raw_segment(r, fpdus + len, 20, "another", true);
	fpdus[len - 1] ^= 1; /* that is not looked at */
	for (size_t i = 0; i < len; i++) {
		raw_say_bytes(r, fpdus + i, 1);
		loop_turn(r->loop, NSEC_PER_MSEC);
	}
	RAW_AWAIT(r, r->memory[26] == 'r');
	assert_memory_equal(r->memory, "as it comes\0\0\0\0\0\0\0\0\0another", 28);
	assert_false(r->closed);
}

/* Half of an FPDU has come and been placed; then the memory is dropped. */
static void
dropped_memory_is_out_of_reach_at_once(void **state)
{
	struct raw *r = *state;
	uint8_t fpdu[64];
	size_t len;

	open_without_crc(r);
	len = raw_segment(r, fpdu, 0, "Hello RDMA Write!", true);
	raw_say_bytes(r, fpdu, DDP_PREFIX_SIZE + 5);
	RAW_AWAIT(r, r->memory[4] == 'o');
	fabric_iwarp.mem_drop(r->mem);
	raw_say_bytes(r, fpdu + DDP_PREFIX_SIZE + 5, len - DDP_PREFIX_SIZE - 5);
	RAW_AWAIT(r, r->mem_gone && r->closed);
	assert_int_equal(r->cause, FABRIC_CAUSE_PROTOCOL);
	raw_hear_bytes(r, fpdu, 44);
	assert_memory_equal(fpdu + DDP_HEADER_MAX, ((uint8_t[]){0x11, 0x00, 0xc0, 0}), 4);
	assert_memory_equal(r->memory, "Hello\0\0", 7);
}

/* ---- how it ends ---- */

static void
a_terminate_is_understood(void **state)
{
	struct raw *r = *state;

	raw_open(r);
	raw_say(
	    r, TERMINATE(
		   "26") "11 00 03 00 00 11 c1 40 00 00 01 00 00 00 00 00 00 00 10 00 1d 2b 17 76");
	RAW_AWAIT(r, r->closed);
	assert_int_equal(r->cause, FABRIC_CAUSE_REMOTE_ACCESS);
	assert_non_null(strstr(r->detail, "DDP: invalid STag"));
	raw_hear_end(r);
}

/* siw has no CRC ready when our set-up frame displeases it. */
static void
an_early_terminate_needs_no_crc(void **state)
{
	struct raw *r = *state;

	raw_open(r);
	raw_say(r, TERMINATE("16") "02 04 00 00 00 00 00 00");
	RAW_AWAIT(r, r->closed);
	assert_int_equal(r->cause, FABRIC_CAUSE_PROTOCOL);
	assert_non_null(strstr(r->detail, "MPA: bad set-up frame"));
}

static void
the_end_of_the_stream_is_the_peers(void **state)
{
	struct raw *r = *state;

	raw_open(r);
	raw_write(r, 0, "last");
	shutdown(r->fd, SHUT_WR);
	RAW_AWAIT(r, r->closed);
	assert_int_equal(r->cause, FABRIC_CAUSE_PEER);
	assert_null(strstr(r->detail, "in the middle"));
	assert_int_equal(r->arrived, 1);
	assert_memory_equal(r->memory, "last", 4);
}

static void
half_a_frame_is_not_placed(void **state)
{
	struct raw *r = *state;
	uint8_t fpdu[64];

	raw_open(r);
	raw_say_bytes(r, fpdu, raw_segment(r, fpdu, 0, "Hello", true) - 1);
	shutdown(r->fd, SHUT_WR);
	RAW_AWAIT(r, r->closed);
	assert_int_equal(r->cause, FABRIC_CAUSE_PEER);
	assert_non_null(strstr(r->detail, "in the middle"));
	assert_untouched(r);
}

static void
a_reset_is_the_peers(void **state)
{
	struct linger at_once = {.l_onoff = 1};
	struct raw *r = *state;

	raw_open(r);
	setsockopt(r->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
	close(r->fd);
	r->fd = -1;
	RAW_AWAIT(r, r->closed);
	assert_int_equal(r->cause, FABRIC_CAUSE_PEER);
}

/* ---- writes that go ---- */

static int
write_back(struct raw *r, size_t len)
{
	struct fabric_write w = {.mem = r->mem,
	    .addr = r->memory,
	    .len = len,
	    .remote_addr = 0x1000,
	    .rkey = 0x100,
	    .cookie = 1};

	return fabric_iwarp.write(r->conn, &w, 1);
}

static void
the_passive_side_waits_for_the_first_frame(void **state)
{
	struct raw *r = *state;

	raw_open(r);
	memcpy(r->memory, "Hello RDMA Write!", 17);
	assert_int_equal(write_back(r, 17), 0);
	raw_hear_nothing(r);
	assert_int_equal(r->written, 0);
	raw_say(r, "00 0e c1 40 00 00 00 01 00 00 00 00 00 00 00 00 eb d3 4c 5f");
	raw_hear(r,
	    "00 1f c1 40 00 00 01 00 00 00 00 00 00 00 10 00 48 65 6c 6c 6f 20 52 44 4d 41 20 57 "
	    "72 69 74 65 21 00 00 00 eb 06 46 47");
	RAW_AWAIT(r, r->written == 1);
}

static void
the_active_side_speaks_at_once(void **state)
{
	struct raw *r = *state;

	raw_answer(r, "");
	raw_add_memory(r, 0);
	raw_hear(r, RAW_REQUEST "10 02 00 04 00 00 00 00");
	raw_say(r, RAW_REPLY "10 02 00 04 00 00 00 00");
	RAW_AWAIT(r, r->established);
	assert_int_equal(write_back(r, 0), 0);
	memcpy(r->memory, "Hello RDMA Write!", 17);
	assert_int_equal(write_back(r, 17), 0);
	raw_hear(r, "00 0e c1 40 00 00 01 00 00 00 00 00 00 00 10 00 00 00 00 00");
	raw_hear(r,
	    "00 1f c1 40 00 00 01 00 00 00 00 00 00 00 10 00 48 65 6c 6c 6f 20 52 44 4d 41 20 57 "
	    "72 69 74 65 21 00 00 00 00 00 00 00");
}

/* We do not demand CRCs, the peer does. */
static void
crcs_are_used_if_one_side_wants_them(void **state)
{
	struct raw *r = *state;

	raw_answer(r, "");
	raw_add_memory(r, 0);
	raw_hear(r, RAW_REQUEST "10 02 00 04 00 00 00 00");
	raw_say(r, RAW_ACCEPT);
	RAW_AWAIT(r, r->established);
	memcpy(r->memory, "Hello RDMA Write!", 17);
	assert_int_equal(write_back(r, 17), 0);
	raw_hear(r,
	    "00 1f c1 40 00 00 01 00 00 00 00 00 00 00 10 00 48 65 6c 6c 6f 20 52 44 4d 41 20 57 "
	    "72 69 74 65 21 00 00 00 eb 06 46 47");
}

/* A stranger gets FPDUs that fit into TCP's segments, and all segments of the write follow one
 * another. */
static void
a_long_write_is_cut(void **state)
{
	static uint8_t fpdu[MPA_FPDU_MAX];
	struct raw *r = *state;
	uint64_t at = 0x1000;
	struct ddp_segment s;

	raw_open(r);
	raw_write(r, 0, "go");
	for (size_t i = 0; i < RAW_MEMORY; i++)
		r->memory[i] = (uint8_t)(i * 7 >> 3);
	assert_int_equal(write_back(r, RAW_MEMORY), 0);
	do {
		size_t ulpdu = hear_fpdu(r, fpdu), len = ulpdu - DDP_TAGGED_SIZE;

		assert_true(mpa_crc_matches(fpdu, ulpdu, NULL));
		ddp_decode(fpdu, &s);
		assert_int_equal(s.to, at);
		assert_memory_equal(fpdu + DDP_PREFIX_SIZE, r->memory + at - 0x1000, len);
		at += len;
	} while (!s.last);
	assert_int_equal(at, 0x1000 + RAW_MEMORY);
	RAW_AWAIT(r, r->written == 1);
}

/* The peer reads nothing until TCP takes no more, and then breaks the rules: the frame that is half
 * sent is ended before it is told. */
static void
a_terminate_does_not_cut_into_a_frame(void **state)
{
	static uint8_t fpdu[MPA_FPDU_MAX];
	struct raw *r = *state;
	struct ddp_segment s;
	int frames = 0;

	raw_open(r);
	raw_write(r, 0, "go");
	while (write_back(r, RAW_MEMORY) == 0)
		raw_settle(r);
	raw_say(r, "00 00");
	RAW_AWAIT(r, r->closed);
	do {
		assert_true(mpa_crc_matches(fpdu, hear_fpdu(r, fpdu), NULL));
		ddp_decode(fpdu, &s);
		frames++;
	} while (rdmap_operation(&s) == RDMAP_WRITE);
	assert_int_equal(rdmap_operation(&s), RDMAP_TERMINATE);
	assert_true(frames > 2);
	raw_hear_end(r);
}

#define RAW_TEST(name)    cmocka_unit_test_setup_teardown(name, raw_setup, raw_teardown)
#define NO_CRC_TEST(name) cmocka_unit_test_setup_teardown(name, raw_setup_no_crc, raw_teardown)

int
main(void)
{
	static const struct CMUnitTest tests[] = {
	    RAW_TEST(a_write_is_placed_and_announced),
	    RAW_TEST(writes_may_come_octet_by_octet),
	    RAW_TEST(hints_are_one_a_turn),
	    RAW_TEST(a_wrong_crc_places_nothing),
	    RAW_TEST(a_terminate_quotes_the_write),
	    RAW_TEST(without_the_right_nothing_is_placed),
	    RAW_TEST(tagged_messages_do_not_mix),
	    RAW_TEST(lengths_that_hold_no_header_are_refused),
	    RAW_TEST(a_send_is_counted_and_refused),
	    RAW_TEST(a_read_is_refused),
	    NO_CRC_TEST(without_crc_a_write_is_placed_as_it_comes),
	    NO_CRC_TEST(dropped_memory_is_out_of_reach_at_once),
	    RAW_TEST(a_terminate_is_understood),
	    RAW_TEST(an_early_terminate_needs_no_crc),
	    RAW_TEST(the_end_of_the_stream_is_the_peers),
	    RAW_TEST(half_a_frame_is_not_placed),
	    RAW_TEST(a_reset_is_the_peers),
	    RAW_TEST(the_passive_side_waits_for_the_first_frame),
	    NO_CRC_TEST(the_active_side_speaks_at_once),
	    NO_CRC_TEST(crcs_are_used_if_one_side_wants_them),
	    RAW_TEST(a_long_write_is_cut),
	    RAW_TEST(a_terminate_does_not_cut_into_a_frame),
	};

	return cmocka_run_group_tests_name("iwarp", tests, NULL, NULL);
}
