/* test_area.c -- records that are looked at while they come */

#include "config.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/area.h"
#include "loop/loop.h"
#include "wire/rwp.h"

#define RING_LOG2 4
#define LIMIT_NS  (50 * NSEC_PER_MSEC)

static _Alignas(64) uint8_t memory[4096];
static struct area_in in;
static struct rwp_record got;
static uint8_t blob[RWP_BLOB_MAX];

static int
setup(void **state)
{
	(void)state;
	memset(memory, 0, sizeof(memory));
	area_in_init(&in, memory, sizeof(memory), RING_LOG2);
	return 0;
}

/* Record seq as it lies in the ring. */
static uint8_t *
encode(uint64_t seq, uint8_t record[RWP_RECORD_SIZE])
{
	const struct rwp_record r = {.type = RWP_BYE, .seq = seq};

	rwp_record_encode(&r, record);
	return memory + RWP_RING_OFFSET + ((seq - 1) & ((1 << RING_LOG2) - 1)) * RWP_RECORD_SIZE;
}

static void
take_all_before(uint64_t seq)
{
	uint8_t record[RWP_RECORD_SIZE];

	for (uint64_t s = 1; s < seq; s++) {
		memcpy(encode(s, record), record, sizeof(record));
		assert_int_equal(area_in_record(&in, 1, &got, blob), 0);
		assert_int_equal(got.seq, s);
	}
}

/* Whatever has come of it, in whichever order: not yet; when all is there, it is the record. */
static void
byte_by_byte(void **state)
{
	const uint64_t seq = 531; /* two bytes of its flag differ from those of one round before */
	uint8_t record[RWP_RECORD_SIZE], *slot;

	(void)state;
	take_all_before(seq);
	slot = encode(seq, record);
	for (size_t i = 0; memcmp(slot, record, sizeof(record)) != 0; i++) {
		assert_int_equal(area_in_record(&in, 1, &got, blob), -EAGAIN);
		slot[i] = record[i];
	}
	assert_int_equal(area_in_record(&in, 1 + LIMIT_NS, &got, blob), 0);
	assert_int_equal(got.seq, seq);
	slot = encode(seq + 1, record);
	for (size_t i = sizeof(record); memcmp(slot, record, sizeof(record)) != 0; i--) {
		assert_int_equal(area_in_record(&in, 2 * LIMIT_NS, &got, blob), -EAGAIN);
		slot[i - 1] = record[i - 1];
	}
	assert_int_equal(area_in_record(&in, 2 * LIMIT_NS, &got, blob), 0);
}

/* What stays wrong is wrong. */
static void
out_of_sequence(void **state)
{
	uint8_t record[RWP_RECORD_SIZE];

	(void)state;
	encode(3, record);
	memcpy(memory + RWP_RING_OFFSET, record, sizeof(record));
	assert_int_equal(area_in_record(&in, 100, &got, blob), -EAGAIN);
	assert_int_equal(area_in_record(&in, 99 + LIMIT_NS, &got, blob), -EAGAIN);
	assert_int_equal(area_in_record(&in, 100 + LIMIT_NS, &got, blob), -EPROTO);
}

#define TEST(name) cmocka_unit_test_setup(name, setup)

int
main(void)
{
	const struct CMUnitTest tests[] = {TEST(byte_by_byte), TEST(out_of_sequence)};

	return cmocka_run_group_tests_name("area", tests, NULL, NULL);
}
