/* test_rwp.c -- records and lines: fixed bytes, altered and torn ones; areas and names */

#include "config.h"

#include <errno.h>
#include <limits.h>

#include "unit/hex.h"
#include "wire/barrier.h"
#include "wire/rwp.h"

/* ---- records ---- */

#define RECORD_HEX                                         \
	"03 80 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e " \
	"0f 10 11 12 13 14 15 16 17 18 19 1a 1b 1c 1d 1e " \
	"1f 20 21 22 23 24 25 26 b9 0a 80 cc 00 00 00 00 " \
	"00 00 00 00 00 00 00 00 27 28 29 2a 2b 2c 2d 2e"

static const struct rwp_record RECORD = {
    .type = RWP_DATA,
    .flags = RWP_MUST_UNDERSTAND,
    .blob_len = 0x0201,
    .transfer = 0x06050403,
    .stream_off = 0x0e0d0c0b0a090807,
    .region_off = 0x161514131211100f,
    .length = 0x1a191817,
    .data_crc = 0x1e1d1c1b,
    .grant = 0x2221201f,
    .blob_off = 0x26252423,
    .tag = {0xb9, 0x0a, 0x80, 0xcc},
    .seq = 0x2e2d2c2b2a292827,
};

static int
decode_record(const uint8_t *slot, uint64_t seq)
{
	struct rwp_record ret, untouched;
	int r;

	memset(&ret, 0x5a, sizeof(ret));
	memset(&untouched, 0x5a, sizeof(untouched));
	r = rwp_record_decode(slot, seq, &ret);
	if (r < 0)
		assert_memory_equal(&ret, &untouched, sizeof(ret));
	return r;
}

static void
test_record_vector(void **state)
{
	uint8_t bytes[64], out[64];
	struct rwp_record r = {0};

	(void)state;
	assert_int_equal(unhex(RECORD_HEX, bytes, sizeof(bytes)), 64);
	assert_int_equal(rwp_record_decode(bytes, RECORD.seq, &r), 0);
	assert_memory_equal(&r, &RECORD, sizeof(r));
	memset(r.tag, 0xff, sizeof(r.tag));
	rwp_record_encode(&r, out);
	assert_memory_equal(out, bytes, sizeof(out));
}

static void
test_record_other_seq(void **state)
{
	static const uint8_t empty[64];
	uint8_t bytes[64];

	(void)state;
	unhex(RECORD_HEX, bytes, sizeof(bytes));
	assert_int_equal(decode_record(bytes, RECORD.seq - 1), -EAGAIN);
	assert_int_equal(decode_record(bytes, RECORD.seq + 1), -EAGAIN);
	assert_int_equal(decode_record(empty, 1), -EAGAIN);
}

/* Whatever byte differs, in whatever bits, it is noticed. */
static void
test_record_corrupt(void **state)
{
	uint8_t bytes[64];

	(void)state;
	unhex(RECORD_HEX, bytes, sizeof(bytes));
	for (unsigned at = 0; at < 64; at++) {
		for (unsigned bits = 1; bits < 256; bits++) {
			bytes[at] ^= bits;
			assert_int_equal(
			    decode_record(bytes, RECORD.seq), at < 56 ? -EBADMSG : -EAGAIN);
			bytes[at] ^= bits;
		}
	}
	assert_int_equal(decode_record(bytes, RECORD.seq), 0);
}

/* A slot in which words of the new record are mixed with those of the one before: every mix but the
 * whole new record is refused, with -EAGAIN as long as the flag is old. */
static void
test_record_torn(void **state)
{
	struct rwp_record before = RECORD, after = RECORD;
	uint8_t old[64], new[64], slot[64];

	(void)state;
	before.seq = 5;
	before.type = RWP_BEGIN;
	after.seq = 21;
	for (unsigned i = 0; i < sizeof(before); i += 8) /* all words but tag and seq differ */
		if (i < 40)
			((uint8_t *)&before)[i + 1] ^= 0x40;
	rwp_record_encode(&before, old);
	rwp_record_encode(&after, new);
	for (unsigned mix = 0; mix < 256; mix++) {
		for (unsigned word = 0; word < 8; word++)
			memcpy(slot + 8 * word, (mix & 1 << word ? new : old) + 8 * word, 8);
		if (!(mix & 0x80))
			assert_int_equal(decode_record(slot, 21), -EAGAIN);
		else if (memcmp(slot, new, 64))
			assert_int_equal(decode_record(slot, 21), -EBADMSG);
		else
			assert_int_equal(decode_record(slot, 21), 0);
	}
}

/* ---- lines ---- */

#define LINE_HEX                                           \
	"01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f 10 " \
	"11 12 13 14 15 16 17 18 19 1a 1b 1c 1d 1e 1f 20 " \
	"21 22 23 24 25 26 27 28 29 2a 2b 2c f3 9c 3f 45 " \
	"00 00 00 00 00 00 00 00 2d 2e 2f 30 31 32 33 34"

static const struct rwp_line LINE = {
    .state = 0x04030201,
    .grant = 0x08070605,
    .consumed = 0x100f0e0d0c0b0a09,
    .released = 0x1817161514131211,
    .arrived = 0x201f1e1d1c1b1a19,
    .durable = 0x2827262524232221,
    .transfer = 0x2c2b2a29,
    .tag = {0xf3, 0x9c, 0x3f, 0x45},
    .beat = 0x34333231302f2e2d,
};

static int
decode_line(const uint8_t *area, uint64_t seen)
{
	struct rwp_line ret, untouched;
	int r;

	memset(&ret, 0x5a, sizeof(ret));
	memset(&untouched, 0x5a, sizeof(untouched));
	r = rwp_line_decode(area, seen, &ret);
	if (r < 0)
		assert_memory_equal(&ret, &untouched, sizeof(ret));
	return r;
}

static void
test_line_vector(void **state)
{
	uint8_t bytes[64], out[64];
	struct rwp_line l = {0};

	(void)state;
	assert_int_equal(unhex(LINE_HEX, bytes, sizeof(bytes)), 64);
	assert_int_equal(rwp_line_decode(bytes, LINE.beat - 1, &l), 0);
	assert_memory_equal(&l, &LINE, sizeof(l));
	memset(l.tag, 0xff, sizeof(l.tag));
	rwp_line_encode(&l, out);
	assert_memory_equal(out, bytes, sizeof(out));
	assert_int_equal(decode_line(bytes, LINE.beat), -EAGAIN);
	memset(bytes, 0, sizeof(bytes));
	assert_int_equal(decode_line(bytes, 0), -EAGAIN); /* never written */
}

static void
test_line_corrupt(void **state)
{
	uint8_t bytes[64];

	(void)state;
	unhex(LINE_HEX, bytes, sizeof(bytes));
	for (unsigned at = 0; at < 64; at++) {
		for (unsigned bits = 1; bits < 256; bits++) {
			bool past = at == 63 && bits & 0x80; /* the beat seems older than 0 */

			bytes[at] ^= bits;
			assert_int_equal(decode_line(bytes, 0), past ? -EAGAIN : -EBADMSG);
			bytes[at] ^= bits;
		}
	}
}

static void
test_line_torn(void **state)
{
	struct rwp_line before = LINE, after = LINE;
	uint8_t old[64], new[64], area[64];

	(void)state;
	before.beat = 7;
	after.beat = 8;
	after.consumed++;
	after.arrived += 4096;
	after.transfer++;
	rwp_line_encode(&before, old);
	rwp_line_encode(&after, new);
	for (unsigned mix = 0; mix < 256; mix++) {
		for (unsigned word = 0; word < 8; word++)
			memcpy(area + 8 * word, (mix & 1 << word ? new : old) + 8 * word, 8);
		if (!(mix & 0x80))
			assert_int_equal(decode_line(area, 7), -EAGAIN);
		else
			assert_int_equal(
			    decode_line(area, 7), memcmp(area, new, 64) ? -EBADMSG : 0);
	}
}

/* ---- the rest ---- */

static void
test_flag_load(void **state)
{
	_Alignas(8) static const uint8_t flag[] = {1, 2, 3, 4, 5, 6, 7, 8};

	(void)state;
	assert_int_equal(flag_load(flag), 0x0807060504030201);
	device_read_barrier();
}

static void
test_areas(void **state)
{
	(void)state;
	assert_int_equal(rwp_blob_offset(RWP_MAILBOX_RING_LOG2), 1152);
	assert_int_equal(rwp_blob_offset(RWP_MAILBOX_RING_LOG2) + RWP_BLOB_MAX, RWP_MAILBOX_SIZE);
	assert_int_equal(rwp_blob_offset(RWP_RING_LOG2_MAX), 128 + 64 * 4096);
}

static void
test_names(void **state)
{
	unsigned codes = 0, types = 0;

	(void)state;
	assert_string_equal(rwp_code_text(RWP_ARRIVED), "arrived");
	assert_string_equal(rwp_code_text(RWP_E_ADDRESS), "address not allowed");
	assert_string_equal(rwp_code_text(33), "internal error");
	assert_string_equal(rwp_type_name(1), "HELLO");
	assert_string_equal(rwp_type_name(67), "BEGIN-OK");
	for (unsigned i = 0; i < 70000; i++) {
		codes += !!rwp_code_text(i);
		types += !!rwp_type_name(i);
	}
	assert_int_equal(codes, 2 + RWP_E_INTERNAL - RWP_E_VERSION + 1);
	assert_int_equal(types, 9 + 5);
	assert_null(rwp_code_text(UINT_MAX));
	assert_null(rwp_type_name(UINT_MAX));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_record_vector),
	    cmocka_unit_test(test_record_other_seq),
	    cmocka_unit_test(test_record_corrupt),
	    cmocka_unit_test(test_record_torn),
	    cmocka_unit_test(test_line_vector),
	    cmocka_unit_test(test_line_corrupt),
	    cmocka_unit_test(test_line_torn),
	    cmocka_unit_test(test_flag_load),
	    cmocka_unit_test(test_areas),
	    cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
