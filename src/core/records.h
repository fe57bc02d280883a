/* records.h -- the records of the transfers that one connection sends, and where their bytes go
 *
 *   ONE, or BEGIN > DATA, HOLE ... > END          given up: ABORT
 *
 * In a memory region each transfer begins at the front, of the next buffer if there are two. In a
 * ring a record's bytes go behind the last ones, in one piece, as far as the target has given back
 * what was taken.
 *
 * What returns an int has pushed its record (0), or has done nothing yet: -EAGAIN, there is no slot
 * or no room. Two slots are left for the last words, ABORT and BYE.
 */

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "wire/rwp.h"

struct channel;
struct fabric_mem;
struct rwp_begin;
struct source_read;

struct records {
	struct channel *channel;
	const struct rwp_grant *grant;

	uint32_t number; /* of the transfer on this connection, or of the last one */
	bool begun;      /* the target knows of it */
	uint64_t done;   /* bytes of the stream that are sent, or that the target had, */
	uint32_t crc;    /* and their sum */

	uint64_t position; /* of the ring: bytes used since the grant, */
	uint64_t released; /* and those that were given back */
	uint32_t arrivals; /* ARRIVED results so far: which buffer is next */
};

void records_init(struct records *r, struct channel *ch, const struct rwp_grant *grant);
/* The region is a ring: any length goes through, and transfers may follow each other closely. */
bool records_is_ring(const struct records *r);
/* The target's line: so many bytes of the ring are free again. -EPROTO: that cannot be. */
int records_released(struct records *r, uint64_t released);

/* Another transfer, of which nothing is said yet. */
void records_start(struct records *r);
/* It goes on from there, behind what the target has, of this sum. */
void records_go_on(struct records *r, uint64_t offset, uint32_t crc);
/* The target has this as well: the hole up to it, and its bytes. */
void records_add(struct records *r, const struct source_read *read);

/* The whole transfer, as it was read into mem; *ret_seq is the record's. */
int records_one(struct records *r, const struct rwp_begin *what, const struct source_read *read,
    struct fabric_mem *mem, uint64_t *ret_seq);
int records_begin(struct records *r, const struct rwp_begin *what);
int records_data(
    struct records *r, const struct source_read *read, struct fabric_mem *mem, uint64_t *ret_seq);
/* Nothing but zeros up to there, or as far as one record reaches. */
int records_hole(struct records *r, uint64_t end);
int records_end(struct records *r);
/* No more of it comes; discard: what the target has of it is to go. */
void records_abort(struct records *r, bool discard);
