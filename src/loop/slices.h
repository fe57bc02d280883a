/* slices.h -- long work on a range of bytes, as jobs of a few MiB each: others' jobs have their
 * turn between them, and several run abreast
 *
 * Used on the loop's thread only, but for run().
 */

#pragma once

#include <stddef.h>

#include "loop/work.h"

#define SLICE_SIZE     ((size_t)8 << 20)
#define SLICES_ABREAST 4

struct slices;

struct slice {
	struct job job;
	struct slices *slices;
	size_t at, len;
	int error;
};

struct slices { /* embedded in what is worked on; lives until over() */
	/* On a worker thread: bytes at .. at + len. 0, or an error, and no further slice is begun.
	 */
	int (*run)(struct slices *s, size_t at, size_t len);
	/* On the loop's thread, when all that was begun has ended. error: the first. May free s. */
	void (*over)(struct slices *s, int error);
	struct work *work;
	size_t next, end;
	unsigned under_way;
	int error;
	struct slice each[SLICES_ABREAST];
};

/* From byte from (< end) on; run and over are set. abreast: 1 to SLICES_ABREAST. */
void slices_start(struct slices *s, struct work *work, size_t from, size_t end, unsigned abreast);
/* No further slice is begun; over() comes all the same. */
void slices_cut(struct slices *s);
