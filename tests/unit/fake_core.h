/* fake_core.h -- tests: the functions of core.h over scripted data
 *
 * What becomes of a write depends on the peer's name: see fake_core.c. Regions, peers and listeners
 * are what the test puts in.
 */

#pragma once

#include "core/core.h"

#define FAKE_MAX 8

struct fake_region {
	struct region_view view;
	const void *bytes; /* that the descriptor shows */
	size_t size;
	unsigned
	    torn; /* so many times more it is opened with bytes that do not match the checksum */
};

struct core {
	struct loop *loop;
	struct status_view status;
	struct fake_region regions[FAKE_MAX];
	struct peer_view peers[FAKE_MAX];
	struct listen_view listens[FAKE_MAX];
	unsigned n_regions, n_peers, n_listens;

	/* what was asked of it */
	char peer[64], region[64], name[256];
	uint64_t size, timeout_ns;
	uid_t uid;
	bool preserve;
	bool full; /* set by the test: it takes no write */
	unsigned writes, cancelled, discarded;
};

/* An arrival of these bytes, which must stay. */
void fake_region_add(
    struct core *core, const char *peer, const char *name, const void *bytes, size_t size);
/* Data as in the examples of the documents: regions, peers, listeners. */
void fake_core_fill(struct core *core);
