/* scarce.c -- what the linker puts in place of malloc() and its like (--wrap) */

#include "config.h"

#include <stddef.h>

#include "unit/scarce.h"

static unsigned fail_at, count;

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
char *__wrap_strdup(const char *s);
void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
char *__real_strdup(const char *s);

void
scarce_begin(unsigned nth)
{
	count = 0;
	fail_at = nth;
}

bool
scarce_end(void)
{
	bool failed = fail_at > 0 && count >= fail_at;

	fail_at = 0;
	return failed;
}

static bool
may_allocate(void)
{
	return fail_at == 0 || __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED) != fail_at;
}

void *
__wrap_malloc(size_t size)
{
	return may_allocate() ? __real_malloc(size) : NULL;
}

void *
__wrap_calloc(size_t n, size_t size)
{
	return may_allocate() ? __real_calloc(n, size) : NULL;
}

char *
__wrap_strdup(const char *s)
{
	return may_allocate() ? __real_strdup(s) : NULL;
}
