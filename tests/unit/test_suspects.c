/* test_suspects.c -- who is remembered, for how long, and how he is slowed and logged */

#include "config.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "core/suspects.h"
#include "loop/loop.h"

#define MINUTE (60 * NSEC_PER_SEC)

static struct suspects table;

static int
empty(void **state)
{
	(void)state;
	memset(&table, 0, sizeof(table));
	return 0;
}

static struct suspect *
find(const char *address, uint64_t now)
{
	struct sockaddr_storage sa;

	assert_int_equal(text_parse_address(address, 1 + (uint16_t)now, &sa), 0);
	return suspects_find(&table, (struct sockaddr *)&sa, now);
}

static void
test_slower_and_slower(void **state)
{
	static const unsigned MS[] = {0, 0, 0, 100, 200, 400, 800, 1600, 3200, 5000, 5000};

	(void)state;
	for (unsigned i = 0; i < sizeof(MS) / sizeof(MS[0]); i++)
		assert_int_equal(suspect_failed(find("10.0.0.1", i + 1)), MS[i] * NSEC_PER_MSEC);
	assert_int_equal(suspect_failed(find("10.0.0.2", 20)), 0);
	for (unsigned i = 0; i < 1000; i++) /* nothing overflows */
		assert_int_equal(suspect_failed(find("10.0.0.1", 21)), 5 * NSEC_PER_SEC);
	/* Ten minutes without a failure are forgiven. */
	suspect_failed(find("10.0.0.1", 21 + 11 * MINUTE));
	assert_int_equal(find("10.0.0.1", 21 + 11 * MINUTE)->failures, 1);
}

static void
test_same_address(void **state)
{
	struct suspect *a = find("10.0.0.1", 1);

	(void)state;
	assert_ptr_equal(find("10.0.0.1", 2), a); /* from another port */
	assert_ptr_not_equal(find("10.0.0.2", 3), a);
	assert_ptr_equal(find("2001:db8:0:1::1", 4), find("2001:db8:0:1:ffff::2", 5));
	assert_ptr_not_equal(find("2001:db8:0:1::1", 6), find("2001:db8:0:2::1", 7));
}

static void
test_full_table(void **state)
{
	char address[32];
	struct suspect *first = find("10.1.0.0", 1), *second = NULL;

	(void)state;
	first->failures = 7;
	for (unsigned i = 1; i < LIMIT_SUSPECTS; i++) {
		snprintf(address, sizeof(address), "10.1.%u.%u", i >> 8, i & 255);
		find(address, 1 + i)->failures = i;
		if (i == 1)
			second = find(address, 1 + i);
	}
	assert_int_equal(find("10.1.0.0", 1000)->failures, 7);
	/* One more: the one longest unheard of goes. */
	assert_ptr_equal(find("10.2.0.0", 1001), second);
	assert_int_equal(second->failures, 0);
	assert_int_equal(find("10.1.0.0", 1002)->failures, 7);
}

static void
test_logged_once_a_minute(void **state)
{
	unsigned unlogged = 99;

	(void)state;
	assert_true(suspect_may_log(find("10.0.0.1", 1), 1, &unlogged));
	assert_int_equal(unlogged, 0);
	for (unsigned i = 1; i < 50; i++)
		assert_false(suspect_may_log(
		    find("10.0.0.1", i * NSEC_PER_SEC), i * NSEC_PER_SEC, &unlogged));
	assert_true(suspect_may_log(find("10.0.0.2", MINUTE), MINUTE, &unlogged));
	assert_true(suspect_may_log(find("10.0.0.1", MINUTE + 1), MINUTE + 1, &unlogged));
	assert_int_equal(unlogged, 49);
	assert_false(suspect_may_log(find("10.0.0.1", MINUTE + 2), MINUTE + 2, &unlogged));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(test_slower_and_slower, empty),
	    cmocka_unit_test_setup(test_same_address, empty),
	    cmocka_unit_test_setup(test_full_table, empty),
	    cmocka_unit_test_setup(test_logged_once_a_minute, empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
