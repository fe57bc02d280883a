/* fake.h -- a fabric in memory, for tests: both ends in one process, on one loop
 *
 * All fake fabrics that are open at the same time share one network: an address that one listens on
 * can be connected to from all. Set-up events come as deferred tasks. Bytes land, memory gets ready
 * and goes in later turns; a source is read when its bytes land, never before. Private data arrives
 * padded as on RoCE.
 *
 * A use that fabric.h does not allow ends the program with an assertion: memory that is not whole
 * pages, a cookie that does not grow, a source in memory that the peer may write, conn_free before
 * CLOSED, close with objects left. A source that is not there when it is read closes with DEVICE.
 */

#pragma once

#include "fabric/fabric.h"

extern const struct fabric_ops fabric_fake;

struct fake_knobs {
	/* The Nth of open, listen, connect, request, accept, mem_add and write fails: at once, as
	 * far as fabric.h allows (the connection of a write is closed), or by the event that
	 * follows. 0: none. A scenario has seen all its failures when it ends with ops < fail_at.
	 */
	unsigned fail_at;
	bool fail_later;
	unsigned ops; /* counted so far; set to 0 with fail_at */

	/* Nothing gets through: writes vanish but are WRITTEN, requests vanish, and no side hears
	 * that the other has ended, not even when the cut is mended. */
	bool cut;
	/* The next mem_add that asks for REMOTE_WRITE does not get it; used up by that. */
	bool drop_remote_write;
	/* Like siw: ends are UNKNOWN, and a passive side that writes first breaks the connection.
	 */
	bool iwarp;
	/* ARRIVED comes, and describe() says that it is not polled. */
	bool hints;

	/* Turns by which these are late: writes of more than 64 bytes (those after them overtake),
	 * the passive ESTABLISHED (writes land before), MEM_READY and MEM_GONE. */
	unsigned late_payload, late_established, late_mem;

	/* Writes of one connection that are posted and not WRITTEN; counts from connect on. */
	unsigned depth;
	/* So many writes share a WRITTEN, or all there are. */
	unsigned batch;
	/* What lands per turn and connection: a long write takes many turns. */
	size_t turn_bytes;

	/* What describe() says. */
	uint64_t receive_completions;
	/* Source of the next connections; NULL: the address that they go to. */
	const struct sockaddr *from;

	/* Somebody on the network, who sees everything and may alter it: private data before it is
	 * told with that event, and bytes that have landed at this offset of a memory. NULL:
	 * nobody. */
	void (*private_data)(enum fabric_event_type type, uint8_t *data, size_t len);
	void (*landed)(bool by_target, size_t offset, uint8_t *bytes, size_t len);
};

#define FAKE_DEFAULTS                                             \
	(struct fake_knobs)                                       \
	{                                                         \
		.depth = 16, .batch = 4, .turn_bytes = 256 * 1024 \
	}

/* For all fake fabrics; `fake = FAKE_DEFAULTS` undoes everything. */
extern struct fake_knobs fake;

/* The nth connection, oldest first, of the fabric that was opened as the fabric-th of those open;
 * NULL. */
struct fabric_conn *fake_conn(unsigned fabric, unsigned nth);
/* CLOSED(cause) for this side, and PEER for the other unless the link is cut. Nothing if closed
 * already. */
void fake_break(struct fabric_conn *c, enum fabric_cause cause);
/* PORT_DOWN(error) for every port of that fabric. */
void fake_ports_down(unsigned fabric, int error);
