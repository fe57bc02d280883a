/* sink.h -- what a target does with the bytes of a transfer
 *
 * A sink is a table of functions over an arrival. Those that refuse do it by a code from enum
 * rwp_code (0 is fine) and, if they can say more, by text and fix in *why. A sink that has to wait
 * for a disk says SINK_LATER, and the arrival takes no record until its answer has come
 * (arrival_begun and so on): so at most one of these functions is under way for an arrival. What
 * may be NULL says so.
 */

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "conf/conf.h"
#include "wire/rwp.h"

#define SINK_LATER UINT32_MAX /* as a code: the answer comes by a call */

struct arrival;

struct sink {
	const char *name; /* as in the configuration */
	enum rwp_sink kind;
	bool ring;   /* the region is a ring, given back as its bytes are taken */
	bool sums;   /* store does nothing with payload but sum it */
	bool blocks; /* store waits for a disk: never on the loop, nor in the pool of the others */

	/* A transfer begins; a->length is what was announced. Later: arrival_begun(). */
	unsigned (*begin)(struct arrival *a, const struct rwp_begin *begin, struct rwp_deny *why);
	/* The writer goes on from 0, though more is there. Later: arrival_begun(). NULL: a sink
	 * that resumes nothing. */
	unsigned (*restart)(struct arrival *a, struct rwp_deny *why);
	/* Is the payload of this DATA or ONE where the sink wants it, and is there room for it or
	 * for this HOLE? NULL: always (a ring sees to the place). */
	unsigned (*place)(
	    const struct arrival *a, const struct rwp_record *r, struct rwp_deny *why);
	/* In a job: takes a->record's bytes at offset a->received; bytes NULL: so many zeros.
	 * Returns what went wrong (a negative errno) or 0 and the checksum of just those bytes that
	 * were taken, whatever the peer does to them meanwhile. Not called where
	 * a sink only sums, and the fabric has the sum. */
	int (*store)(struct arrival *a, const uint8_t *bytes, uint32_t *ret_crc);
	/* ... and they were right: a->received and a->crc include them. May be NULL. */
	void (*stored)(struct arrival *a);
	/* All bytes are verified: RWP_ARRIVED, RWP_STORED or what failed. Later: arrival_ended().
	 */
	unsigned (*end)(struct arrival *a, struct rwp_deny *why);
	/* The transfer has failed: what is there goes, or with keep stays for a BEGIN of the same
	 * ID. 0, or SINK_LATER: arrival_dropped(). NULL: nothing is there. */
	unsigned (*drop)(struct arrival *a, bool keep);
	/* Words for what store returned. NULL: it never fails. */
	unsigned (*explain)(const struct arrival *a, int error, struct rwp_deny *why);
	/* The writer has taken all records up to this seq: RESULTs too. May be NULL. */
	void (*heard)(struct arrival *a, uint64_t seq);
};

/* That of [region NAME] sink. */
const struct sink *sink_of(enum conf_sink sink);

extern const struct sink sink_memory;  /* the bytes stay in the region, contiguous */
extern const struct sink sink_spool;   /* they become files of a directory */
extern const struct sink sink_discard; /* they are verified, and that is all */
