/* sink.h -- what a target does with the bytes of a transfer
 *
 * A sink is a table of functions over an arrival. All refuse by a code from enum rwp_code (0 is
 * fine) and, if they can say more, by text and fix in *why.
 */

#pragma once

#include "wire/rwp.h"

struct arrival;

struct sink {
	const char *name; /* as in the configuration */
	enum rwp_sink kind;
	/* A transfer begins. */
	unsigned (*begin)(struct arrival *a, const struct rwp_begin *begin, struct rwp_deny *why);
	/* Is the payload of this DATA or ONE where the sink wants it? Bounds have been checked. */
	unsigned (*place)(
	    const struct arrival *a, const struct rwp_record *r, struct rwp_deny *why);
	/* All bytes are verified. Returns RWP_ARRIVED, RWP_STORED or what failed. */
	unsigned (*end)(struct arrival *a, struct rwp_deny *why);
};

extern const struct sink sink_memory; /* the bytes stay in the region, contiguous */
