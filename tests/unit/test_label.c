/* test_label.c -- the label behind a region: what is written, and readers who look meanwhile */

#include "config.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/label.h"
#include "core/view.h"

#define ROUNDS 50000

static union {
	struct rwriter_label label;
	char bytes[RWRITER_LABEL_SIZE];
} page;

static int
setup(void **state)
{
	(void)state;
	memset(&page, 0, sizeof(page));
	label_init(&page.label, 7, 8192, 1);
	return 0;
}

/* Everything about an arrival follows from its number. */
static void
arrive(uint64_t number)
{
	struct arrival_view a = {
	    .offset = number * 3,
	    .length = number * 5,
	    .crc32c = (uint32_t)number * 7,
	    .at = number * 11,
	};
	char peer[24];

	snprintf(
	    a.name, sizeof(a.name), "%0*llu", (int)(number % 200 + 20), (unsigned long long)number);
	snprintf(peer, sizeof(peer), "peer%llu", (unsigned long long)number);
	label_arrived(&page.label, &a, peer);
}

static bool
is_of_one_piece(const struct rwriter_label *l)
{
	uint64_t number = l->generation / 2;

	return l->offset == number * 3 && l->length == number * 5 &&
	       l->crc32c == (uint32_t)number * 7 && l->time_ns == number * 11 &&
	       strlen(l->name) == number % 200 + 20 && strtoull(l->name, NULL, 10) == number &&
	       atoll(l->peer + 4) == (long long)number;
}

static void
what_is_written(void **state)
{
	struct rwriter_label copy;

	(void)state;
	assert_null(rwriter_label_find(&page, sizeof(page) - 1));
	assert_ptr_equal(rwriter_label_find(&page, sizeof(page)), &page.label);
	assert_false(rwriter_label_read(&page.label, &copy));
	assert_int_equal(copy.capacity, 8192);
	assert_int_equal(copy.buffers, 1);
	assert_int_equal(copy.region, 7);
	arrive(1);
	assert_true(rwriter_label_read(&page.label, &copy));
	assert_int_equal(copy.generation, 2);
	assert_true(is_of_one_piece(&copy));
	page.label.version++;
	assert_null(rwriter_label_find(&page, sizeof(page)));
}

/* With one buffer from the next beginning on; a failed transfer leaves it so. */
static void
one_buffer(void **state)
{
	struct rwriter_label copy, none;

	(void)state;
	arrive(1);
	assert_true(rwriter_label_read(&page.label, &copy));
	assert_false(rwriter_label_overwritten(&page.label, &copy));
	for (int i = 0; i < 2; i++) {
		label_overwritten(&page.label);
		assert_int_equal(page.label.generation, 3);
		assert_true(rwriter_label_overwritten(&page.label, &copy));
		assert_false(rwriter_label_read(&page.label, &none));
	}
	arrive(2);
	assert_int_equal(page.label.generation, 4);
	assert_true(rwriter_label_overwritten(&page.label, &copy));
}

/* With two when what comes after the next has come. */
static void
two_buffers(void **state)
{
	struct rwriter_label copy;

	(void)state;
	label_init(&page.label, 7, 8192, 2);
	arrive(1);
	assert_true(rwriter_label_read(&page.label, &copy));
	arrive(2);
	assert_false(rwriter_label_overwritten(&page.label, &copy));
	arrive(3);
	assert_true(rwriter_label_overwritten(&page.label, &copy));
}

static void
the_end(void **state)
{
	struct rwriter_label copy;

	(void)state;
	arrive(1);
	assert_false(rwriter_label_ended(&page.label));
	label_ended(&page.label);
	assert_true(rwriter_label_ended(&page.label));
	assert_true(rwriter_label_read(&page.label, &copy)); /* what is whole stays so */
}

static void *
read_always(void *arg)
{
	struct rwriter_label copy;
	uint64_t last = 0, *torn = arg;

	while (!rwriter_label_ended(&page.label)) {
		if (!rwriter_label_read(&page.label, &copy))
			continue;
		if (!is_of_one_piece(&copy) || copy.generation < last)
			++*torn;
		last = copy.generation;
	}
	return NULL;
}

static void
readers_meanwhile(void **state)
{
	uint64_t torn[2] = {0};
	pthread_t readers[2];

	(void)state;
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&readers[i], NULL, read_always, &torn[i]), 0);
	for (uint64_t number = 1; number <= ROUNDS; number++) {
		if (number % 3 == 0)
			label_overwritten(&page.label);
		arrive(number);
	}
	label_ended(&page.label);
	for (int i = 0; i < 2; i++) {
		pthread_join(readers[i], NULL);
		assert_int_equal(torn[i], 0);
	}
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(what_is_written, setup),
	    cmocka_unit_test_setup(one_buffer, setup),
	    cmocka_unit_test_setup(two_buffers, setup),
	    cmocka_unit_test_setup(the_end, setup),
	    cmocka_unit_test_setup(readers_meanwhile, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
