/* test_part.c -- files that come about in a spool directory: journals, names, and each call to the
 * disk failing in turn
 */

#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/crc32c.h"
#include "core/part.h"

#define KEY  "00112233445566778899aabbccddeeff"
#define SIZE 700000 /* several pieces */

/* ---- calls that fail ---- */

static unsigned calls, fail_at;

static bool
fails(void)
{
	if (++calls != fail_at)
		return false;
	errno = EIO;
	return true;
}

#define WRAP(call, parameters, arguments)       \
	int __real_##call parameters;           \
	int __wrap_##call parameters;           \
	int __wrap_##call parameters            \
	{                                       \
		if (fails())                    \
			return -1;              \
		return __real_##call arguments; \
	}

WRAP(fsync, (int fd), (fd))
WRAP(fdatasync, (int fd), (fd))
WRAP(ftruncate, (int fd, off_t length), (fd, length))
WRAP(fchmod, (int fd, mode_t mode), (fd, mode))
WRAP(futimens, (int fd, const struct timespec *times), (fd, times))
WRAP(renameat2, (int d, const char *from, int e, const char *to, unsigned flags),
    (d, from, e, to, flags))

ssize_t __real_pwrite(int fd, const void *buf, size_t len, off_t offset);
ssize_t __wrap_pwrite(int fd, const void *buf, size_t len, off_t offset);

/* Short writes are no failures. */
ssize_t
__wrap_pwrite(int fd, const void *buf, size_t len, off_t offset)
{
	return fails() ? -1 : __real_pwrite(fd, buf, len > 100000 ? 100000 : len, offset);
}

/* ---- a directory ---- */

static char path[] = "/tmp/rwriter-part-XXXXXX";
static int dir = -1;
static uint8_t data[SIZE];

static int
setup(void **state)
{
	(void)state;
	strcpy(path, "/tmp/rwriter-part-XXXXXX");
	for (size_t i = 0; i < SIZE; i++)
		data[i] = i * 7 + (i >> 9);
	calls = fail_at = 0;
	if (mkdtemp(path) == NULL)
		return -1;
	return part_open_dir(path, &dir);
}

static void
clear(void)
{
	static const char *const NAMES[] = {
	    "file", "file.1", "file.2", ".rwriter-" KEY ".part", ".rwriter-" KEY ".journal"};

	for (size_t i = 0; i < sizeof(NAMES) / sizeof(NAMES[0]); i++)
		unlinkat(dir, NAMES[i], 0);
}

static int
teardown(void **state)
{
	(void)state;
	clear();
	close(dir);
	return rmdir(path); /* nothing else is there */
}

static bool
exists(const char *name)
{
	return faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static bool
is_whole(const char *name)
{
	static uint8_t found[SIZE + 1];
	int fd = openat(dir, name, O_RDONLY);
	ssize_t len = fd >= 0 ? pread(fd, found, sizeof(found), 0) : -1;

	close(fd);
	return len == SIZE && memcmp(found, data, SIZE) == 0;
}

static struct part
planned(bool resumable, enum conf_conflict conflict)
{
	struct part p = {.plan = {.dir = dir,
			     .key = KEY,
			     .resumable = resumable,
			     .name = "file",
			     .length = SIZE,
			     .mode = 0640,
			     .uid = -1,
			     .gid = -1,
			     .mtime_ns = 1000000000000000001,
			     .conflict = conflict}};

	return p;
}

/* From where it is to its end; false: something failed, and the file is kept for later. */
static bool
go_on(struct part *p)
{
	uint32_t crc = 0, half, whole = crc32c(0, data, SIZE);
	bool good;

	if (part_open(p).error != 0)
		return false;
	assert_int_equal(p->crc, crc32c(0, data, p->offset));
	half = p->offset + (SIZE - p->offset) / 2;
	good = p->complete ||
	       (part_write(p, p->offset, data + p->offset, half - p->offset, &crc).error == 0 &&
		   part_checkpoint(p, half, crc32c(0, data, half)).error == 0 &&
		   part_write(p, half, data + half, SIZE - half, &crc).error == 0 &&
		   part_finish(p, SIZE, whole).error == 0);
	if (good)
		assert_int_equal(p->done.crc, whole);
	part_close(p, true, 0, 0);
	return good;
}

/* ---- */

static void
journals(void **state)
{
	struct journal j = {.state = JOURNAL_NAMED,
	    .number = 7,
	    .offset = 1ULL << 40,
	    .crc = 0x12345678,
	    .length = UINT64_MAX,
	    .inode = 99,
	    .mode = 0640,
	    .mtime_ns = -5,
	    .name = "a name",
	    .peer = "10.0.0.1"};
	uint8_t file[JOURNAL_SIZE] = {0};
	struct journal found;

	(void)state;
	assert_int_equal(journal_decode(file, sizeof(file), &found), -EBADMSG);
	assert_int_equal(journal_decode(file, 0, &found), -EBADMSG);
	journal_encode(&j, file + journal_place(7));
	assert_int_equal(journal_decode(file, sizeof(file), &found), 0);
	assert_memory_equal(&found, &j, sizeof(j));
	j.number = 8;
	j.offset++;
	journal_encode(&j, file + journal_place(8));
	assert_int_equal(journal_decode(file, sizeof(file), &found), 0);
	assert_memory_equal(&found, &j, sizeof(j));
	file[journal_place(8) + 100] ^= 1; /* torn: the one before counts */
	assert_int_equal(journal_decode(file, sizeof(file), &found), 0);
	assert_int_equal(found.number, 7);
	for (size_t at = 0; at < JOURNAL_SLOT; at++) { /* each byte of it is covered */
		file[journal_place(7) + at] ^= 1;
		assert_int_equal(journal_decode(file, sizeof(file), &found), -EBADMSG);
		file[journal_place(7) + at] ^= 1;
	}
}

static void
names(void **state)
{
	static const struct {
		const char *foreign, *name;
	} CASES[] = {{"plain", "plain"}, {"a/b", "b"}, {"/", ""}, {"", ""}, {".", "_"},
	    {"..", "_."}, {"../x", "x"}, {".x", "_x"}, {"a\nb", "a?b"}};
	char name[SPOOL_NAME_MAX], key[SPOOL_KEY_SIZE + 1], own[SPOOL_OWN_NAME];

	(void)state;
	for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
		assert_int_equal(spool_name_make(CASES[i].foreign, name), CASES[i].name[0] != '\0');
		assert_string_equal(name, CASES[i].name);
	}
	spool_name_version("x", 0, name);
	assert_string_equal(name, "x");
	spool_name_version("x", SPOOL_VERSIONS, name);
	assert_string_equal(name, "x.9999");
	spool_name_own(KEY, SPOOL_PART, own);
	assert_true(spool_name_key(own, SPOOL_PART, key));
	assert_string_equal(key, KEY);
	assert_false(spool_name_key(own, SPOOL_JOURNAL, key));
	assert_false(spool_name_key(".rwriter-0123.part", SPOOL_PART, key));
}

/* Whatever fails, the file is absent or whole; and what is kept leads to it at the next attempt. */
static void
each_call_fails(bool resumable)
{
	struct part p;
	bool good = false;

	for (unsigned nth = 1; !good; nth++) {
		clear();
		calls = 0;
		fail_at = nth;
		p = planned(resumable, CONF_CONFLICT_KEEP);
		good = go_on(&p);
		assert_true(!exists("file") || is_whole("file"));
		fail_at = 0;
		if (good || !resumable)
			continue;
		p = planned(resumable, CONF_CONFLICT_KEEP);
		assert_true(go_on(&p));
		assert_true(is_whole("file"));
		assert_false(exists(".rwriter-" KEY ".part"));
	}
	assert_true(calls > 8);
	assert_true(is_whole("file"));
}

static void
calls_fail(void **state)
{
	(void)state;
	each_call_fails(false);
	each_call_fails(true);
}

/* The same, but between the attempts there is a crash: what it left is swept. */
static void
calls_fail_and_all_is_swept(void **state)
{
	struct part p;
	bool good = false;

	(void)state;
	for (unsigned nth = 1; !good; nth++) {
		struct part_sweep sweep = {.keep_ns = UINT64_MAX, .dir = dir};

		clear();
		calls = 0;
		fail_at = nth;
		p = planned(true, CONF_CONFLICT_KEEP);
		good = go_on(&p);
		fail_at = 0;
		assert_int_equal(part_sweep(&sweep), 0);
		assert_true(!exists("file") || is_whole("file"));
		p = planned(true, CONF_CONFLICT_KEEP);
		assert_true(go_on(&p));
		assert_true(is_whole("file"));
	}
}

static void
conflicts(void **state)
{
	struct part p = planned(false, CONF_CONFLICT_KEEP);

	(void)state;
	assert_true(go_on(&p));
	p = planned(false, CONF_CONFLICT_KEEP);
	assert_false(go_on(&p));
	p = planned(false, CONF_CONFLICT_REPLACE);
	assert_true(go_on(&p));
	assert_false(exists("file.1"));
	p = planned(false, CONF_CONFLICT_VERSION);
	assert_true(go_on(&p));
	p = planned(true, CONF_CONFLICT_VERSION);
	assert_true(go_on(&p));
	assert_true(is_whole("file.1") && is_whole("file.2"));
}

/* An old journal beside another file is not believed. */
static void
journal_of_another_file(void **state)
{
	struct part p = planned(true, CONF_CONFLICT_KEEP);
	uint32_t crc;
	int fd;

	(void)state;
	assert_int_equal(part_open(&p).error, 0);
	assert_int_equal(part_write(&p, 0, data, 1000, &crc).error, 0);
	part_close(&p, true, 1000, crc);
	unlinkat(dir, "file", 0);
	renameat(dir, ".rwriter-" KEY ".part", dir, "file.1");
	fd = openat(dir, ".rwriter-" KEY ".part", O_CREAT | O_WRONLY, 0600);
	assert_int_equal(ftruncate(fd, 5000), 0);
	close(fd);
	p = planned(true, CONF_CONFLICT_KEEP);
	assert_int_equal(part_open(&p).error, 0);
	assert_int_equal(p.offset, 0);
	part_close(&p, false, 0, 0);
}

static void
directory_is_taken(void **state)
{
	int second = -1;

	(void)state;
	assert_int_equal(part_open_dir(path, &second), -EBUSY);
	assert_int_equal(part_open_dir("/does/not/exist", &second), -ENOENT);
	assert_int_equal(second, -1);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(journals),
	    cmocka_unit_test(names),
	    TEST(calls_fail),
	    TEST(calls_fail_and_all_is_swept),
	    TEST(conflicts),
	    TEST(journal_of_another_file),
	    TEST(directory_is_taken),
	};

	crc32c_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
