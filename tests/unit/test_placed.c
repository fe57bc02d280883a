/* test_placed.c -- checksums of writes follow from those of their frames */

#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/crc32c.h"
#include "fabric/placed.h"

#define KIB    ((size_t)1 << 10)
#define MEMORY (512 * KIB)
#define PREFIX 16

static uint8_t memory[MEMORY];
static struct placed placed;

static int
setup(void **state)
{
	(void)state;
	placed = (struct placed){0};
	for (size_t i = 0; i < MEMORY; i++)
		memory[i] = rand();
	return 0;
}

/* As if a frame had brought what is in memory there. */
static void
frame(size_t at, size_t len, bool goes_on)
{
	struct placed_frame f = {.goes_on = goes_on};
	uint8_t prefix[PREFIX];

	for (int i = 0; i < PREFIX; i++)
		prefix[i] = rand();
	f.before = crc32c(0, prefix, PREFIX);
	f.whole = crc32c(f.before, memory + at, len);
	placed_add(&placed, memory + at, len, &f);
}

static void
written(size_t at, size_t len, size_t piece)
{
	for (size_t done = 0; done < len; done += piece)
		frame(at + done, len - done < piece ? len - done : piece, done > 0);
}

static bool
known(size_t at, size_t len)
{
	uint32_t crc;

	if (!placed_take(&placed, memory + at, len, &crc))
		return false;
	assert_int_equal(crc, crc32c(0, memory + at, len));
	assert_false(placed_take(&placed, memory + at, len, &crc));
	return true;
}

static void
sums_of_writes(void **state)
{
	static const size_t PIECES[] = {16 * KIB, 65518, 65535, 100000};
	static const size_t SIZES[] = {16 * KIB, 16 * KIB + 1, 65518, 65519, 200001, 256 * KIB};

	(void)state;
	for (size_t i = 0; i < sizeof(PIECES) / sizeof(PIECES[0]); i++)
		for (size_t j = 0; j < sizeof(SIZES) / sizeof(SIZES[0]); j++) {
			written(j * 100, SIZES[j], PIECES[i]);
			assert_true(known(j * 100, SIZES[j]));
		}
}

static void
short_ones_are_not_worth_it(void **state)
{
	(void)state;
	written(0, 1000, 65518);
	assert_false(known(0, 1000));
	written(0, 100 * KIB, 1448);
	assert_false(known(0, 100 * KIB));
}

static void
several_at_once(void **state)
{
	(void)state;
	for (size_t i = 0; i < PLACED_RUNS + 1; i++)
		written(i * 20 * KIB, 20 * KIB, 16 * KIB);
	assert_false(known(0, 20 * KIB)); /* the oldest had to go */
	for (size_t i = PLACED_RUNS; i > 0; i--)
		assert_true(known(i * 20 * KIB, 20 * KIB));
}

static void
only_whole_writes(void **state)
{
	(void)state;
	written(0, 64 * KIB, 32 * KIB);
	written(64 * KIB, 64 * KIB, 32 * KIB);
	assert_false(known(0, 128 * KIB)); /* and is forgotten by that */
	assert_false(known(0, 64 * KIB));
	assert_false(known(64 * KIB, 64 * KIB));

	written(0, 64 * KIB, 32 * KIB);
	assert_false(known(1, 64 * KIB - 1));
	assert_false(known(0, 64 * KIB));

	written(0, 64 * KIB, 32 * KIB);
	assert_false(known(0, 0));
	assert_true(known(0, 64 * KIB));
}

/* By one octet, at its start, in it, or at its end. */
static void
overwritten(void **state)
{
	static const size_t AT[] = {100, 100 + 40 * KIB, 100 + 64 * KIB - 1};

	(void)state;
	for (size_t i = 0; i < sizeof(AT) / sizeof(AT[0]); i++) {
		written(100, 64 * KIB, 32 * KIB);
		memory[AT[i]] ^= 1;
		frame(AT[i], 1, false);
		assert_false(known(100, 64 * KIB));
	}
	written(100, 64 * KIB, 32 * KIB);
	frame(99, 1, false);
	frame(100 + 64 * KIB, 1, false);
	assert_true(known(100, 64 * KIB));
}

/* While its rest is still to come: what goes on is not taken for the whole. */
static void
overwritten_in_the_middle(void **state)
{
	uint32_t crc;

	(void)state;
	frame(0, 32 * KIB, false);
	assert_false(placed_take(&placed, memory, 1, &crc));
	frame(32 * KIB, 32 * KIB, true);
	assert_false(known(0, 64 * KIB));
	assert_false(known(32 * KIB, 32 * KIB));
	frame(64 * KIB, 32 * KIB, false);
	assert_true(known(64 * KIB, 32 * KIB));
}

#define TEST(name) cmocka_unit_test_setup(name, setup)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(sums_of_writes),
	    TEST(short_ones_are_not_worth_it),
	    TEST(several_at_once),
	    TEST(only_whole_writes),
	    TEST(overwritten),
	    TEST(overwritten_in_the_middle),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
