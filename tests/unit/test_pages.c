/* test_pages.c -- memory for regions is zeroed, there, sealed, and of huge pages where there are
 * any */

#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/pages.h"

#define MIB      ((size_t)1 << 20)
#define COLLAPSE 25 /* MADV_COLLAPSE */
#define SEALS    (F_SEAL_FUTURE_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

static bool old_kernel;

/* In the place of the C library's: a kernel may not know MADV_COLLAPSE. */
int
madvise(void *addr, size_t len, int advice)
{
	if (advice == COLLAPSE && old_kernel) {
		errno = EINVAL;
		return -1;
	}
	return syscall(SYS_madvise, addr, len, advice);
}

static int
setup(void **state)
{
	(void)state;
	old_kernel = false;
	return 0;
}

/* Bytes behind addr that the kernel has mapped by huge pages. */
static size_t
mapped_huge(const void *addr)
{
	FILE *f = fopen("/proc/self/smaps", "re");
	unsigned long from, to;
	size_t kib, ret = 0;
	bool here = false;
	char line[512];

	assert_non_null(f);
	while (fgets(line, sizeof(line), f) != NULL) {
		if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
			here = from == (uintptr_t)addr;
		else if (here && sscanf(line, "ShmemPmdMapped: %zu kB", &kib) == 1)
			ret = kib << 10;
	}
	fclose(f);
	return ret;
}

/* Blocks that a file has, so that nothing is left to be found when a byte is written. */
static void
assert_reserved(const struct pages *p)
{
	struct stat st;

	assert_int_equal(fstat(p->fd, &st), 0);
	assert_int_equal(st.st_size, p->size);
	assert_true((size_t)st.st_blocks * 512 >= p->size);
	assert_int_equal(st.st_mode & 0777, 0400);
}

static void
assert_sealed(const struct pages *p)
{
	assert_int_equal(fcntl(p->fd, F_GET_SEALS), SEALS);
	assert_int_equal(ftruncate(p->fd, 0), -1);
	assert_int_equal(pwrite(p->fd, "x", 1, 0), -1);
	assert_true(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, p->fd, 0) == MAP_FAILED);
}

static void
assert_zero_and_writable(const struct pages *p)
{
	uint8_t byte;

	for (size_t i = 0; i < p->size; i++)
		assert_int_equal(p->addr[i], 0);
	memset(p->addr, 0x5a, p->size);
	for (size_t i = 0; i < p->size; i += 4096) {
		assert_int_equal(pread(p->fd, &byte, 1, i), 1);
		assert_int_equal(byte, 0x5a);
	}
}

static void
make(size_t size, struct pages *ret)
{
	assert_int_equal(pages_open(size, ret), 0);
	for (size_t at = 0; at < ret->size; at += 8 * MIB)
		assert_int_equal(
		    pages_reserve(ret, at, ret->size - at < 8 * MIB ? ret->size - at : 8 * MIB), 0);
	assert_int_equal(pages_seal(ret), 0);
}

static const size_t SIZES[] = {
    1, 4096, 4097, 2 * MIB - 4096, 2 * MIB, 2 * MIB + 4096, 5 * MIB + 123, 64 * MIB};

static void
check(size_t size)
{
	struct pages p;

	make(size, &p);
	assert_true(p.size >= size && p.size % 4096 == 0);
	assert_reserved(&p);
	assert_sealed(&p);
	assert_zero_and_writable(&p);
	pages_drop(&p);
	assert_null(p.addr);
	assert_int_equal(p.fd, -1);
	pages_drop(&p);
}

static void
all_sizes(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(SIZES) / sizeof(SIZES[0]); i++)
		check(SIZES[i]);
}

static void
without_collapse(void **state)
{
	(void)state;
	old_kernel = true;
	all_sizes(NULL);
}

/* The test asks the kernel itself whether it would. */
static bool
kernel_collapses(void)
{
	int fd = memfd_create("test", MFD_CLOEXEC);
	uint8_t *space = mmap(NULL, 4 * MIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *at = space + (-(uintptr_t)space & (2 * MIB - 1));
	bool ret;

	assert_int_equal(ftruncate(fd, 2 * MIB), 0);
	at = mmap(at, 2 * MIB, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
	*at = 1;
	ret = madvise(at, 2 * MIB, COLLAPSE) == 0;
	munmap(space, 4 * MIB);
	close(fd);
	return ret;
}

static void
huge_pages_are_mapped(void **state)
{
	struct pages p;

	(void)state;
	if (!kernel_collapses())
		skip();
	make(16 * MIB + 4096, &p);
	assert_int_equal(p.size, 16 * MIB + 4096);
	assert_int_equal(mapped_huge(p.addr), 16 * MIB);
	pages_drop(&p);

	old_kernel = true;
	make(16 * MIB, &p);
	assert_int_equal(mapped_huge(p.addr), 0);
	pages_drop(&p);
}

static void
too_much(void **state)
{
	struct pages p = {.size = 7, .fd = -7};

	(void)state;
	assert_true(pages_open((size_t)1 << 60, &p) < 0);
	assert_int_equal(p.size, 7);
	assert_int_equal(p.fd, -7);
}

#define TEST(name) cmocka_unit_test_setup(name, setup)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(all_sizes),
	    TEST(without_collapse),
	    TEST(huge_pages_are_mapped),
	    TEST(too_much),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
