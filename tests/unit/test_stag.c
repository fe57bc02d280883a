/* test_stag.c -- which memory a peer may write to */

#include "config.h"

#include <stdio.h>

#include "fabric/rdmap.h"
#include "fabric/stag.h"
#include "hex.h"

static int scope, other_scope;

static int
setup(void **state)
{
	return stag_table_new((struct stag_table **)state);
}

static int
teardown(void **state)
{
	stag_table_free(*state);
	return 0;
}

static struct stag
of_scope(const void *owner, void *addr, size_t len, bool remote_write)
{
	return (struct stag){
	    .scope = owner, .addr = addr, .len = len, .remote_write = remote_write};
}

static void
the_whole_and_nothing_else(void **state)
{
	static const uint64_t LEN = 8192;
	static uint8_t memory[8192];
	struct stag s = of_scope(&scope, memory, sizeof(memory), true);
	uint8_t *at = NULL;
	static const struct {
		int64_t offset;
		uint64_t len;
		int error;
	} cases[] = {
	    {0, 8192, 0},
	    {0, 1, 0},
	    {8191, 1, 0},
	    {8192, 0, 0},
	    {8192, 1, DDP_E_BOUNDS},
	    {8191, 2, DDP_E_BOUNDS},
	    {0, 8193, DDP_E_BOUNDS},
	    {-1, 1, DDP_E_BOUNDS},
	    {-1, 8192, DDP_E_BOUNDS},
	    {0, UINT64_C(1) << 62, DDP_E_BOUNDS},
	};

	stag_register(*state, &s);
	assert_int_equal(s.base % 4096, 0);
	assert_true(s.base != 0 && s.base + LEN > s.base);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t to = s.base + (uint64_t)cases[i].offset;

		assert_int_equal(
		    stag_check(*state, &scope, s.number, to, cases[i].len, &at), cases[i].error);
		if (cases[i].error == 0)
			assert_ptr_equal(at, memory + cases[i].offset);
	}
	assert_int_equal(stag_check(*state, &scope, s.number, UINT64_MAX - 1, 3, &at), DDP_E_WRAP);
	assert_int_equal(stag_check(*state, &scope, s.number, s.base, UINT64_MAX, &at), DDP_E_WRAP);
	stag_revoke(*state, &s);
}

static void
only_with_index_and_key(void **state)
{
	static uint8_t memory[4096];
	struct stag s = of_scope(&scope, memory, sizeof(memory), true);
	uint8_t *at;

	stag_register(*state, &s);
	for (unsigned bit = 0; bit < 32; bit++)
		assert_int_equal(
		    stag_check(*state, &scope, s.number ^ 1u << bit, s.base, 1, &at), DDP_E_STAG);
	assert_int_equal(stag_check(*state, &scope, 0, s.base, 1, &at), DDP_E_STAG);
	stag_revoke(*state, &s);
}

static void
not_by_others_and_not_without_the_right(void **state)
{
	static uint8_t memory[4096];
	struct stag mine = of_scope(&scope, memory, sizeof(memory), true);
	struct stag source = of_scope(&scope, memory, sizeof(memory), false);
	uint8_t *at;

	stag_register(*state, &mine);
	stag_register(*state, &source);
	assert_int_equal(
	    stag_check(*state, &other_scope, mine.number, mine.base, 1, &at), DDP_E_SCOPE);
	assert_int_equal(
	    stag_check(*state, &scope, source.number, source.base, 1, &at), RDMAP_E_ACCESS);
	stag_revoke(*state, &mine);
	stag_revoke(*state, &source);
}

static void
revoked_is_revoked(void **state)
{
	static uint8_t memory[4096];
	struct stag s = of_scope(&scope, memory, sizeof(memory), true);
	uint32_t old;
	uint8_t *at;

	stag_register(*state, &s);
	old = s.number;
	stag_revoke(*state, &s);
	assert_int_equal(stag_check(*state, &scope, old, s.base, 1, &at), DDP_E_STAG);
	stag_register(*state, &s);
	assert_int_equal(stag_check(*state, &scope, old, s.base, 1, &at), DDP_E_STAG);
	assert_int_equal(stag_check(*state, &scope, s.number, s.base, 1, &at), 0);
	stag_revoke(*state, &s);
}

static int
by_value(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* An index comes back only long after its end, and none looks like its neighbour. */
static void
numbers_do_not_come_back(void **state)
{
	enum { N = 1000 };
	static uint32_t seen[N];
	static uint8_t memory[4096];
	unsigned low_bits = 0;

	for (unsigned i = 0; i < N; i++) {
		struct stag s = of_scope(&scope, memory, sizeof(memory), true);

		stag_register(*state, &s);
		assert_int_not_equal(s.number >> 8, 0);
		seen[i] = s.number >> 8;
		low_bits |= s.number & 0xff;
		stag_revoke(*state, &s);
	}
	assert_int_equal(low_bits, 0xff);
	qsort(seen, N, sizeof(seen[0]), by_value);
	for (unsigned i = 1; i < N; i++)
		assert_int_not_equal(seen[i], seen[i - 1]);
}

static void
many_at_once(void **state)
{
	enum { N = 5000 };
	static uint8_t memory[4096];
	struct stag *all = calloc(N, sizeof(all[0]));
	uint8_t *at;

	assert_non_null(all);
	for (unsigned i = 0; i < N; i++) {
		all[i] = of_scope(&scope, memory + i % 4096, 1, true);
		stag_register(*state, &all[i]);
	}
	for (unsigned i = 0; i < N; i++) {
		assert_int_equal(stag_check(*state, &scope, all[i].number, all[i].base, 1, &at), 0);
		assert_ptr_equal(at, memory + i % 4096);
	}
	for (unsigned i = 0; i < N; i++)
		stag_revoke(*state, &all[i]);
	free(all);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(the_whole_and_nothing_else, setup, teardown),
	    cmocka_unit_test_setup_teardown(only_with_index_and_key, setup, teardown),
	    cmocka_unit_test_setup_teardown(
		not_by_others_and_not_without_the_right, setup, teardown),
	    cmocka_unit_test_setup_teardown(revoked_is_revoked, setup, teardown),
	    cmocka_unit_test_setup_teardown(numbers_do_not_come_back, setup, teardown),
	    cmocka_unit_test_setup_teardown(many_at_once, setup, teardown),
	};

	return cmocka_run_group_tests_name("stag", tests, NULL, NULL);
}
