/* fuzz.h -- what all fuzz targets share
 *
 * A target is a program around LLVMFuzzerTestOneInput(). With --enable-fuzzers an engine feeds it;
 * else replay.c gives it the inputs of tests/fuzz/corpus, as a part of `make check`.
 */

#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* As assert(), and there in every build. */
#define CHECK(what)                                                                          \
	do {                                                                                 \
		if (!(what)) {                                                               \
			fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #what); \
			abort();                                                             \
		}                                                                            \
	} while (0)

/* The first bytes of an input say what becomes of the rest. */
static inline uint8_t
fuzz_take_byte(const uint8_t **data, size_t *size)
{
	if (*size == 0)
		return 0;
	--*size;
	return *(*data)++;
}
