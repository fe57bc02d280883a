/* region.h -- what a reader finds in the memory of a region: the bytes, and behind them the label
 *
 * rwriter-region(7) explains it. The memory is a file whose descriptor comes from the method
 * OpenRegion of the control socket, or from who has got it there. Its last RWRITER_LABEL_SIZE
 * bytes are the label; rwriterd alone writes it, and no peer reaches it. Numbers are as this
 * machine has them. For C and C++ with gcc or clang; there is nothing to link with.
 */

#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define RWRITER_LABEL_SIZE    4096
#define RWRITER_LABEL_MAGIC   "RWLABEL"
#define RWRITER_LABEL_VERSION 1

struct rwriter_label {
	char magic[8]; /* with its terminating zero */
	uint32_t version;
	uint32_t size; /* of this struct; a later one may be longer, and begins as this one */

	/* Odd: nothing in the region is whole, or this label is being written. Even: twice the
	 * number of arrivals, and the last of them is what the label says. */
	uint64_t generation;

	uint64_t capacity; /* bytes of one buffer */
	uint32_t buffers;  /* 1 or 2; n lies at n * capacity */
	uint32_t region;   /* number of the region, as in `rwctl regions` */
	uint64_t ended;    /* not 0: the connection is over, and nothing more will arrive here */

	/* The last arrival. */
	uint64_t offset, length; /* where its bytes are in the file */
	uint64_t time_ns;        /* since 1970 */
	uint32_t crc32c;         /* of its bytes */
	uint32_t reserved;
	char name[256]; /* UTF-8 without control characters, as the next */
	char peer[80];
};

/* The label is read and written in words of this type. */
typedef uint64_t __attribute__((__may_alias__)) rwriter_word;

/* The label of a region that is mapped at memory, all size bytes of its file; NULL: there is none,
 * or of another version. */
static inline const struct rwriter_label *
rwriter_label_find(const void *memory, size_t size)
{
	const char *at = (const char *)memory + size - RWRITER_LABEL_SIZE;
	const struct rwriter_label *label = (const struct rwriter_label *)(const void *)at;

	if (size < RWRITER_LABEL_SIZE ||
	    memcmp(label->magic, RWRITER_LABEL_MAGIC, sizeof(label->magic)) != 0 ||
	    label->version != RWRITER_LABEL_VERSION)
		return NULL;
	return label;
}

/* True, and *copy is the label as it was at one moment, at which the arrival was whole as far as
 * rwriterd knew. Else there is nothing to read now. Each word is loaded with acquire, so that
 * what was loaded before the second look at the generation was written before what changed it. */
static inline int
rwriter_label_read(const struct rwriter_label *label, struct rwriter_label *copy)
{
	uint64_t generation = __atomic_load_n(&label->generation, __ATOMIC_ACQUIRE);
	const rwriter_word *from = (const rwriter_word *)(const void *)label;
	rwriter_word *to = (rwriter_word *)(void *)copy;

	for (size_t i = 0; i < sizeof(*label) / sizeof(*from); i++)
		to[i] = __atomic_load_n(&from[i], __ATOMIC_ACQUIRE);
	copy->generation = generation;
	return generation % 2 == 0 &&
	       __atomic_load_n(&label->generation, __ATOMIC_RELAXED) == generation;
}

/* The quick check, after the bytes were copied: true when what *copy speaks of is known to be
 * overwritten. False proves nothing: a peer's bytes land before rwriterd knows of them. The proof
 * is the CRC32C of what was copied. */
static inline int
rwriter_label_overwritten(const struct rwriter_label *label, const struct rwriter_label *copy)
{
	uint64_t now = __atomic_load_n(&label->generation, __ATOMIC_ACQUIRE);

	return now - copy->generation > 2 * ((uint64_t)copy->buffers - 1);
}

/* True when nothing more will arrive in this region. */
static inline int
rwriter_label_ended(const struct rwriter_label *label)
{
	return __atomic_load_n(&label->ended, __ATOMIC_ACQUIRE) != 0;
}
