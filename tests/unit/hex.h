/* hex.h -- bytes written as "52 57 50 31", for vectors that owe nothing to the encoder */

#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Returns how many bytes there were. */
static inline size_t
unhex(const char *hex, void *out, size_t size)
{
	size_t n = 0;
	char *end;

	for (;; hex = end) {
		unsigned long byte = strtoul(hex, &end, 16);

		if (end == hex)
			break;
		assert_true(n < size && byte < 256);
		((uint8_t *)out)[n++] = (uint8_t)byte;
	}
	assert_int_equal(hex[strspn(hex, " ")], '\0');
	return n;
}

/* A copy in memory of exactly its size: the address sanitizer sees one byte too many read. */
static inline void *
exact_copy(const void *bytes, size_t len)
{
	void *copy = malloc(len);

	assert_true(copy || !len);
	return len ? memcpy(copy, bytes, len) : copy;
}
