/* test_crc32c.c -- both implementations against a bit-by-bit one, and combining */

#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/crc32c.h"

static unsigned char bytes[4096];

static int
fill(void **state)
{
	uint32_t x = 1;

	(void)state;
	for (size_t i = 0; i < sizeof(bytes); i++) {
		x = x * 1664525 + 1013904223;
		bytes[i] = x >> 24;
	}
	return 0;
}

/* The definition, as slow as it gets. */
static uint32_t
by_bits(const unsigned char *p, size_t len)
{
	uint32_t crc = ~0U;

	for (; len > 0; p++, len--) {
		crc ^= *p;
		for (int bit = 0; bit < 8; bit++)
			crc = crc & 1 ? crc >> 1 ^ 0x82f63b78 : crc >> 1;
	}
	return ~crc;
}

static void
check_all(void)
{
	static const unsigned char ascending[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14,
	    15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31};

	assert_int_equal(crc32c(0, "123456789", 9), 0xe3069283);
	assert_int_equal(crc32c(0, ascending, sizeof(ascending)), 0x46dd794e); /* RFC 3720 B.4 */
	assert_int_equal(crc32c(0, NULL, 0), 0);
	for (size_t offset = 0; offset < 9; offset++)
		for (size_t len = 0; len < 300; len++)
			assert_int_equal(
			    crc32c(0, bytes + offset, len), by_bits(bytes + offset, len));
	for (size_t cut = 0; cut <= 100; cut++)
		assert_int_equal(
		    crc32c(crc32c(0, bytes, cut), bytes + cut, 100 - cut), by_bits(bytes, 100));
}

static void
test_slice_by_8(void **state)
{
	(void)state;
	assert_string_equal(crc32c_name(), "slice-by-8");
	check_all();
}

static void
test_after_init(void **state)
{
	(void)state;
	assert_int_equal(crc32c_init(), 0);
	print_message("using %s\n", crc32c_name());
#ifdef HAVE_ISAL
	assert_true(
	    strcmp(crc32c_name(), "isa-l") == 0 || strcmp(crc32c_name(), "slice-by-8") == 0);
#else
	assert_string_equal(crc32c_name(), "slice-by-8");
#endif
	check_all();
}

static void
test_combine(void **state)
{
	(void)state;
	for (size_t cut = 0; cut <= sizeof(bytes); cut += cut < 20 ? 1 : 97) {
		uint32_t a = crc32c(0, bytes, cut), b = crc32c(0, bytes + cut, sizeof(bytes) - cut);

		assert_int_equal(
		    crc32c_combine(a, b, sizeof(bytes) - cut), by_bits(bytes, sizeof(bytes)));
	}
	assert_int_equal(crc32c_combine(0, 0x12345678, 4), 0x12345678);
	assert_int_equal(crc32c_combine(0x12345678, 0, 0), 0x12345678);
}

static void
test_zeros(void **state)
{
	static const uint8_t zeros[1000];

	(void)state;
	for (size_t len = 0; len < sizeof(zeros); len += 37)
		assert_int_equal(crc32c_zeros(len), by_bits(zeros, len));
	assert_int_equal(crc32c_zeros(UINT64_C(10) << 30),
	    crc32c_combine(crc32c_zeros(UINT64_C(4) << 30), crc32c_zeros(UINT64_C(6) << 30),
		UINT64_C(6) << 30));
}

/* Lengths that no test can hold in memory: A B B ... doubled by combining is associative. */
static void
test_combine_long(void **state)
{
	uint32_t unit = crc32c(0, bytes, sizeof(bytes)), left = unit, right;
	uint64_t len = sizeof(bytes);

	(void)state;
	for (; len < UINT64_C(1) << 62; len *= 2)
		left = crc32c_combine(left, left, len);
	right = crc32c_combine(unit, left, len);
	left = crc32c_combine(left, unit, sizeof(bytes));
	assert_int_equal(left, right); /* the same bytes, repeated: 1 + n is n + 1 */
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_slice_by_8), /* first: nothing has called crc32c_init() yet */
	    cmocka_unit_test(test_after_init),
	    cmocka_unit_test(test_combine),
	    cmocka_unit_test(test_combine_long),
	    cmocka_unit_test(test_zeros),
	};

	return cmocka_run_group_tests(tests, fill, NULL);
}
