/* test_flight.c -- phases, waits, and the log of those that have ended */

#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/flight.h"

static void
phases_take_the_time_since_the_one_before(void **state)
{
	struct flight f;

	(void)state;
	flight_begin(&f, 100);
	flight_mark(&f, FLIGHT_GRANT, 150);
	flight_mark(&f, FLIGHT_REGISTER, 130); /* the order of the table is not that of the time */
	flight_mark(&f, FLIGHT_RESULT, 150);
	flight_mark(&f, FLIGHT_GRANT, 190); /* the first time counts */
	assert_int_equal(flight_took(&f, FLIGHT_REGISTER), 30);
	assert_int_equal(flight_took(&f, FLIGHT_GRANT), 20);
	assert_int_equal(flight_took(&f, FLIGHT_RESULT), 0);
	assert_int_equal(flight_took(&f, FLIGHT_FSYNC), 0);
}

static void
a_connection_counts_from_the_beginning_on(void **state)
{
	struct flight connection = {0}, f;

	(void)state;
	flight_mark(&connection, FLIGHT_RESOLVE, 90);
	flight_mark(&connection, FLIGHT_CONNECT, 110);
	flight_begin(&f, 100);
	flight_join(&f, &connection);
	assert_int_equal(f.at[FLIGHT_RESOLVE], 0);
	assert_int_equal(f.at[FLIGHT_CONNECT], 110);
	assert_int_equal(f.at[FLIGHT_HELLO], 0);
}

static void
waits_add_up(void **state)
{
	struct flight f;

	(void)state;
	flight_begin(&f, 100);
	flight_wait(&f, FLIGHT_SOURCE, 110);
	flight_wait(&f, FLIGHT_SOURCE, 115);
	flight_wait(&f, FLIGHT_WINDOW, 120);
	flight_wait(&f, FLIGHT_NOTHING, 125);
	flight_wait(&f, FLIGHT_SOURCE, 130);
	flight_wait(&f, FLIGHT_NOTHING, 131);
	assert_int_equal(f.waited[FLIGHT_SOURCE], 11);
	assert_int_equal(f.waited[FLIGHT_WINDOW], 5);
}

static void
count(void *arg, const struct flight_record *r)
{
	uint32_t *next = arg;

	assert_int_equal(r->id, (*next)++);
}

static void
the_log_keeps_the_last(void **state)
{
	struct flight_log *log = calloc(1, sizeof(*log));
	uint32_t next = 1;

	(void)state;
	assert_non_null(log);
	for (uint32_t id = 1; id <= 3; id++)
		flight_log_add(log)->id = id;
	flight_log_each(log, count, &next);
	assert_int_equal(next, 4);
	for (uint32_t id = 4; id <= LIMIT_FLIGHTS + 7; id++)
		flight_log_add(log)->id = id;
	next = 8;
	flight_log_each(log, count, &next);
	assert_int_equal(next, LIMIT_FLIGHTS + 8);
	free(log);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(phases_take_the_time_since_the_one_before),
	    cmocka_unit_test(a_connection_counts_from_the_beginning_on),
	    cmocka_unit_test(waits_add_up),
	    cmocka_unit_test(the_log_keeps_the_last),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
