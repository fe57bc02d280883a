/* test_file.c -- files that several transfers send are read once */

#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/crc32c.h"
#include "base/limits.h"
#include "core/file.h"
#include "core/share.h"
#include "core/source.h"
#include "loop/loop.h"
#include "loop/work.h"

#define SEGMENT  (64 << 10)
#define SEGMENTS 40
#define LENGTH   (SEGMENT * SEGMENTS - 100)
#define READERS  3

static struct loop *loop;
static struct work *work;
static struct source_env env;
static atomic_size_t bytes_read;
static uint8_t whole[LENGTH];

/* In the place of the C library's, to see who reads how much. */
ssize_t
pread(int fd, void *buf, size_t size, off_t offset)
{
	ssize_t n = syscall(SYS_pread64, fd, buf, size, offset);

	if (n > 0)
		bytes_read += n;
	return n;
}

struct reader {
	struct source *source;
	struct source_read read;
	uint8_t buf[SEGMENT];
	bool done;
};

static void
on_done(struct source_read *read)
{
	container_of(read, struct reader, read)->done = true;
}

static void
ask(struct reader *r, uint64_t offset)
{
	r->done = false;
	r->read = (struct source_read){
	    .buf = r->buf, .size = SEGMENT, .offset = offset, .holes = true, .done = on_done};
	source_read(r->source, &r->read);
}

static void
await(struct reader *r)
{
	while (!r->done)
		loop_turn(loop, 100 * NSEC_PER_MSEC);
}

static void
is_right(struct reader *r)
{
	uint64_t left = LENGTH - r->read.offset;

	await(r);
	assert_int_equal(r->read.error, 0);
	assert_int_equal(r->read.len, left < SEGMENT ? left : SEGMENT);
	assert_memory_equal(r->buf, whole + r->read.offset, r->read.len);
	assert_int_equal(r->read.crc, crc32c(0, r->buf, r->read.len));
	assert_int_equal(r->read.next, r->read.offset + r->read.len);
	assert_int_equal(r->read.end, r->read.next == LENGTH);
}

static int
some_file(void)
{
	int fd = memfd_create("file", MFD_CLOEXEC);

	for (size_t i = 0; i < LENGTH; i++)
		whole[i] = (i * 2654435761U) >> 13;
	assert_int_equal(write(fd, whole, LENGTH), LENGTH);
	return fd;
}

static void
begin(struct reader *r, uid_t uid, int fd)
{
	assert_int_equal(source_new(&env, uid, fd, &r->source), 0);
}

static void
end(struct reader *readers, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		readers[i].source = source_free(readers[i].source);
	assert_int_equal(files_kept(env.files), 0);
}

static int
setup(void **state)
{
	(void)state;
	assert_int_equal(loop_new(&loop), 0);
	assert_int_equal(work_new(loop, "test", 4, &work), 0);
	env.loop = loop;
	assert_int_equal(share_new(work, &env.share), 0);
	assert_int_equal(files_new(env.share, &env.files), 0);
	bytes_read = 0;
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	work_free(work);
	files_free(env.files);
	share_free(env.share);
	loop_free(loop);
	return 0;
}

/* ---- tests ---- */

static void
nothing_is_kept_for_one(void **state)
{
	static struct reader r;
	int fd = some_file();

	(void)state;
	begin(&r, 1, fd);
	for (unsigned i = 0; i < SEGMENTS; i++) {
		ask(&r, i * SEGMENT);
		is_right(&r);
		assert_int_equal(files_kept(env.files), 0);
	}
	assert_int_equal(bytes_read, LENGTH);
	end(&r, 1);
	close(fd);
}

static void
abreast(void **state)
{
	static struct reader r[READERS];
	int fd = some_file();

	(void)state;
	for (unsigned i = 0; i < READERS; i++)
		begin(&r[i], 1, fd);
	close(fd);
	for (unsigned at = 0; at < SEGMENTS; at++) {
		for (unsigned i = 0; i < READERS; i++)
			ask(&r[(i + at) % READERS], at * SEGMENT);
		for (unsigned i = 0; i < READERS; i++)
			is_right(&r[i]);
		assert_true(files_kept(env.files) <= LIMIT_SHARED);
	}
	assert_int_equal(bytes_read, LENGTH);
	end(r, READERS);
}

/* Whoever falls a little behind still copies, and whoever is far behind reads again. */
static void
behind(void **state)
{
	static struct reader r[2];
	unsigned little = LIMIT_SHARED_SEGMENTS - 1;
	int fd = some_file();

	(void)state;
	begin(&r[0], 1, fd);
	begin(&r[1], 1, fd);
	close(fd);
	for (unsigned at = 0; at < SEGMENTS; at++) {
		ask(&r[0], at * SEGMENT);
		is_right(&r[0]);
		if (at < little)
			continue;
		ask(&r[1], (at - little) * SEGMENT);
		is_right(&r[1]);
	}
	assert_int_equal(bytes_read, LENGTH);
	ask(&r[1], 0);
	is_right(&r[1]);
	assert_int_equal(bytes_read, LENGTH + SEGMENT);
	end(r, 2);
}

/* One that goes while the others wait for what it reads. */
static void
first_one_goes(void **state)
{
	static struct reader r[READERS];
	int fd = some_file();

	(void)state;
	for (unsigned i = 0; i < READERS; i++)
		begin(&r[i], 1, fd);
	close(fd);
	for (unsigned i = 0; i < READERS; i++)
		ask(&r[i], 0);
	for (unsigned i = 0; i < READERS; i++)
		r[i].source = source_free(r[i].source);
	for (unsigned i = 0; i < READERS; i++)
		is_right(&r[i]);
	assert_int_equal(bytes_read, SEGMENT);
	assert_int_equal(files_kept(env.files), 0);
}

static void
all_see_the_change(void **state)
{
	static struct reader r[READERS];
	int fd = some_file();

	(void)state;
	begin(&r[0], 1, fd);
	begin(&r[1], 1, fd);
	assert_int_equal(pwrite(fd, "changed", 7, 0), 7);
	begin(&r[2], 1, fd);
	for (unsigned i = 0; i < READERS; i++)
		ask(&r[i], 0);
	for (unsigned i = 0; i < READERS; i++)
		await(&r[i]);
	assert_int_equal(r[0].read.error, -ESTALE);
	assert_int_equal(r[1].read.error, -ESTALE);
	assert_int_equal(r[2].read.error, 0);
	assert_memory_equal(r[2].buf, "changed", 7);
	end(r, READERS);
	close(fd);
}

static void
others_do_not_share(void **state)
{
	static struct reader r[2];
	int fd = some_file();

	(void)state;
	begin(&r[0], 1, fd);
	begin(&r[1], 2, fd);
	close(fd);
	for (unsigned i = 0; i < 2; i++) {
		ask(&r[i], 0);
		is_right(&r[i]);
	}
	assert_int_equal(bytes_read, 2 * SEGMENT);
	end(r, 2);
}

/* The right to write to a file is not the right to read it, even where someone else may. */
static void
must_be_readable(void **state)
{
	static struct reader r;
	struct source *source;
	int fd = some_file(), blind;
	char path[64];

	(void)state;
	begin(&r, 1, fd);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	blind = open(path, O_WRONLY);
	assert_int_equal(source_new(&env, 1, blind, &source), -EBADF);
	close(blind);
	blind = open(path, O_PATH);
	assert_int_equal(source_new(&env, 1, blind, &source), -EBADF);
	close(blind);
	end(&r, 1);
	close(fd);
}

static void
holes_are_shared(void **state)
{
	static struct reader r[2];
	int fd = memfd_create("hole", MFD_CLOEXEC);

	(void)state;
	assert_int_equal(ftruncate(fd, 10 * SEGMENT), 0);
	assert_int_equal(pwrite(fd, "x", 1, 8 * SEGMENT), 1);
	begin(&r[0], 1, fd);
	begin(&r[1], 1, fd);
	for (unsigned i = 0; i < 2; i++) {
		ask(&r[i], SEGMENT);
		await(&r[i]);
		assert_int_equal(r[i].read.error, 0);
		assert_int_equal(r[i].read.len, 0);
		assert_int_equal(r[i].read.next, 8 * SEGMENT);
	}
	end(r, 2);
	close(fd);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(nothing_is_kept_for_one),
	    TEST(abreast),
	    TEST(behind),
	    TEST(first_one_goes),
	    TEST(all_see_the_change),
	    TEST(others_do_not_share),
	    TEST(must_be_readable),
	    TEST(holes_are_shared),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
