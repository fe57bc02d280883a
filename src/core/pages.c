/* pages.c -- a file of memory, of huge pages if they can be had */

#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/page.h"
#include "core/pages.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* Linux 6.1 */
#endif

#define SEALS (F_SEAL_FUTURE_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

void
pages_drop(struct pages *p)
{
	if (p->addr != NULL)
		munmap(p->addr, p->size);
	if (p->fd >= 0)
		close(p->fd);
	*p = (struct pages){.fd = -1};
}

/* ---- huge pages set aside ---- */

/* The last is taken whole; false when not even the first would be filled. */
static bool
round_to_huge(struct pages *p)
{
	struct stat st;
	size_t page, size = p->size;

	if (fstat(p->fd, &st) < 0)
		return false;
	page = (size_t)st.st_blksize;
	p->size = (size + page - 1) / page * page;
	return size >= page;
}

/* Mapping sets huge pages aside, so a want of them shows before the long work. Reserving the pages
 * (they are zero) reports a shortage here; later it would be a SIGBUS. */
static int
open_set_aside(struct pages *p)
{
	void *addr;

	p->fd = memfd_create("rwriter", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB);
	if (p->fd < 0)
		return -errno;
	if (!round_to_huge(p))
		return -EINVAL;
	if (ftruncate(p->fd, p->size) < 0)
		return -errno;
	addr = mmap(NULL, p->size, PROT_READ | PROT_WRITE, MAP_SHARED, p->fd, 0);
	if (addr == MAP_FAILED)
		return -errno;
	p->addr = addr;
	p->reserved = true;
	return fallocate(p->fd, 0, 0, p->size) < 0 ? -errno : 0;
}

/* ---- other pages ---- */

/* 0: this kernel has none. */
static size_t
transparent_size(void)
{
	FILE *f = fopen("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", "re");
	size_t size = 0;

	if (f == NULL)
		return 0;
	if (fscanf(f, "%zu", &size) != 1)
		size = 0;
	fclose(f);
	return size;
}

/* At a multiple of align, for else no huge page fits in. */
static int
map_aligned(struct pages *p, size_t align)
{
	size_t space = p->size + align, before;
	uint8_t *all = mmap(NULL, space, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *addr;
	int error;

	if (all == MAP_FAILED)
		return -errno;
	before = -(uintptr_t)all % align;
	addr =
	    mmap(all + before, p->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, p->fd, 0);
	if (addr == MAP_FAILED) {
		error = -errno;
		munmap(all, space);
		return error;
	}
	if (before > 0)
		munmap(all, before);
	if (before < align)
		munmap(all + before + p->size, align - before);
	p->addr = addr;
	return 0;
}

static int
open_others(struct pages *p)
{
	p->fd = memfd_create("rwriter", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (p->fd < 0 || ftruncate(p->fd, p->size) < 0)
		return -errno;
	p->huge = transparent_size();
	if (p->size < p->huge)
		p->huge = 0;
	return map_aligned(p, p->huge > 0 ? p->huge : page_round(1));
}

/* One small page of each is enough to have the kernel put a whole one in its place, and map it,
 * whatever transparent_hugepage/shmem_enabled says, but for "deny". What does not succeed is left
 * to what follows. */
static void
collapse(const struct pages *p, size_t at, size_t len)
{
	len = len / p->huge * p->huge;
	for (size_t i = 0; i < len; i += p->huge)
		if (fallocate(p->fd, 0, at + i, 1) < 0)
			return;
	if (len > 0)
		madvise(p->addr + at, len, MADV_COLLAPSE);
}

/* ---- all ---- */

int
pages_open(size_t size, struct pages *ret)
{
	struct pages p = {.size = page_round(size), .fd = -1};
	int error = open_set_aside(&p);

	if (error < 0) {
		pages_drop(&p);
		p.size = page_round(size);
		error = open_others(&p);
	}
	if (error < 0) {
		pages_drop(&p);
		return error;
	}
	*ret = p;
	return 0;
}

int
pages_reserve(const struct pages *p, size_t at, size_t len)
{
	if (p->reserved)
		return 0;
	if (p->huge > 0)
		collapse(p, at, len);
	return fallocate(p->fd, 0, at, len) < 0 ? -errno : 0;
}

int
pages_seal(const struct pages *p)
{
	return fchmod(p->fd, 0400) < 0 || fcntl(p->fd, F_ADD_SEALS, SEALS) < 0 ? -errno : 0;
}
