/* test_pool.c -- memory comes zeroed, goes warm, stays within the budget, and fails whole */

#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/pool.h"
#include "loop/loop.h"
#include "loop/work.h"

#define MIB    ((size_t)1 << 20)
#define LARGE  (40 * MIB + 12288) /* several slices, and a last one that is not whole */
#define BEHIND 4096
#define LIMIT  (100 * MIB)

static struct loop *loop;
static struct work *work;
static struct pool *pool;
static unsigned quiet;
static atomic_llong fails_from; /* no memory from this byte of a file on; 0: there is */

/* In the place of the C library's. */
int
fallocate(int fd, int mode, off_t offset, off_t len)
{
	off_t from = fails_from;

	if (from > 0 && offset + len > from) {
		errno = ENOMEM;
		return -1;
	}
	return syscall(SYS_fallocate, fd, mode, offset, len);
}

struct asked {
	struct memory_request request;
	struct memory *memory;
	int error;
	bool done;
};

static void
on_quiet(void *arg)
{
	(void)arg;
	quiet++;
}

static void
on_memory(struct memory_request *request, struct memory *memory, int error)
{
	struct asked *asked = container_of(request, struct asked, request);

	assert_false(asked->done);
	asked->memory = memory;
	asked->error = error;
	asked->done = true;
}

static int
setup(void **state)
{
	(void)state;
	fails_from = 0;
	quiet = 0;
	assert_int_equal(loop_new(&loop), 0);
	assert_int_equal(work_new(loop, "test", 4, &work), 0);
	assert_int_equal(pool_new(loop, work, LIMIT, on_quiet, NULL, &pool), 0);
	return 0;
}

static void
until_quiet(void)
{
	uint64_t until = loop_now() + 20 * NSEC_PER_SEC;

	while (!pool_quiet(pool)) {
		loop_turn(loop, NSEC_PER_MSEC);
		assert_true(loop_now() < until);
	}
}

static int
teardown(void **state)
{
	(void)state;
	until_quiet();
	assert_int_equal(pool_used(pool), 0);
	work_free(work);
	pool_free(pool);
	loop_free(loop);
	return 0;
}

static struct asked
get(size_t size)
{
	struct asked asked = {.request = {.fn = on_memory, .behind = BEHIND}};

	assert_int_equal(pool_get(pool, size, &asked.request), 0);
	assert_false(asked.done);
	until_quiet();
	assert_true(asked.done);
	return asked;
}

static void
assert_zero(const struct memory *m, size_t size)
{
	for (size_t i = 0; i < size; i++)
		assert_int_equal(m->pages.addr[i], 0);
	assert_ptr_equal((uint8_t *)memory_behind(m) + BEHIND, m->pages.addr + m->pages.size);
	assert_true((uint8_t *)memory_behind(m) >= m->pages.addr + size);
}

static const size_t SIZES[] = {1, 2 * MIB, 8 * MIB - BEHIND, 8 * MIB, LARGE};

static void
zeroed_again(void **state)
{
	struct asked asked;
	const uint8_t *first;

	(void)state;
	for (size_t i = 0; i < sizeof(SIZES) / sizeof(SIZES[0]); i++) {
		asked = get(SIZES[i]);
		assert_int_equal(asked.error, 0);
		assert_zero(asked.memory, SIZES[i]);
		first = asked.memory->pages.addr;
		memset(asked.memory->pages.addr, 0x5a, asked.memory->pages.size);
		memory_put(asked.memory);
		until_quiet();

		asked = get(SIZES[i]);
		assert_ptr_equal(asked.memory->pages.addr, first);
		assert_zero(asked.memory, SIZES[i]);
		memory_put(asked.memory);
	}
}

static void
put_while_it_is_touched(void **state)
{
	struct asked asked = get(LARGE);

	(void)state;
	memory_touch(asked.memory);
	memory_touch(asked.memory);
	memory_put(asked.memory);
	assert_int_equal(pool_used(pool), 0);
	assert_false(pool_quiet(pool));
	until_quiet();
	asked = get(LARGE);
	assert_zero(asked.memory, LARGE);
	memory_put(asked.memory);
}

static void
given_out(void **state)
{
	struct asked asked = get(LARGE);
	char before[16], after[16];
	int fd = memory_export(asked.memory);

	(void)state;
	assert_true(fd >= 0);
	memcpy(asked.memory->pages.addr, "what was here   ", 16);
	assert_int_equal(pread(fd, before, 16, 0), 16);
	memory_put(asked.memory);
	until_quiet();
	asked = get(LARGE);
	memset(asked.memory->pages.addr, 0x5a, LARGE);
	assert_int_equal(pread(fd, after, 16, 0), 16);
	assert_memory_equal(before, after, 16);
	memory_put(asked.memory);
	close(fd);
}

static void
within_the_budget(void **state)
{
	struct asked first = get(LARGE), second = get(LARGE),
		     third = {.request = {.fn = on_memory}};

	(void)state;
	assert_int_equal(pool_get(pool, LARGE, &third.request), -ENOBUFS);
	memory_put(first.memory);
	until_quiet();
	first = get(50 * MIB); /* what is warm goes for it */
	assert_int_equal(pool_room(pool), LIMIT - LARGE - 50 * MIB);
	memory_put(first.memory);
	memory_put(second.memory);
}

/* In the first slice, a later one, or the last. */
static void
not_enough(void **state)
{
	static const size_t FROM[] = {1, 20 * MIB, LARGE};
	struct asked asked;

	(void)state;
	for (size_t i = 0; i < sizeof(FROM) / sizeof(FROM[0]); i++) {
		fails_from = FROM[i];
		asked = get(LARGE);
		assert_int_equal(asked.error, -ENOMEM);
		assert_null(asked.memory);
		assert_int_equal(pool_used(pool), 0);
		fails_from = 0;
		asked = get(LARGE);
		assert_int_equal(asked.error, 0);
		memory_put(asked.memory);
		pool_set_limit(pool, 0);
		until_quiet();
		pool_set_limit(pool, LIMIT);
	}
	assert_true(quiet > 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(zeroed_again),
	    TEST(put_while_it_is_touched),
	    TEST(given_out),
	    TEST(within_the_budget),
	    TEST(not_enough),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
