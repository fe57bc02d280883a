/* staging.h -- registered memory of an outbound connection, into which its sources are read ahead
 *
 *   free > reading > full > (taken) sent > free
 *
 * A ring of chunks, filled by jobs that run at the same time and taken in order. The memory stays
 * for the connection's next transfers.
 */

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/limits.h"
#include "core/channel.h"
#include "core/pool.h"
#include "core/source.h"

enum chunk_state { CHUNK_FREE, CHUNK_READING, CHUNK_FULL, CHUNK_SENT };

struct chunk {
	enum chunk_state state;
	struct staging *staging;
	struct source_read read;
	bool stale;   /* CHUNK_READING: nobody waits for it any more */
	uint64_t seq; /* CHUNK_SENT: of its record */
};

struct staging {
	struct channel *channel;
	/* The memory is registered, or not to be had. */
	void (*ready)(struct staging *st, int error, const char *detail);
	/* A chunk is full. */
	void (*filled)(struct staging *st);

	struct memory *memory;
	struct memory_request request;
	struct registration reg;
	bool asked; /* ready() has come, or will */
	int error;  /* and what it said */
	uint32_t chunk_size;
	unsigned n_chunks;
	struct chunk chunks[LIMIT_STAGING_CHUNKS];
	uint64_t reads, takes; /* chunks given out to be read, taken: chunk = count % n_chunks */

	struct source *source; /* NULL: nothing is read */
	uint64_t next;         /* of the source: to be read next */
	uint64_t border;       /* that no read crosses */
	bool holes;            /* are worth to be known */
	bool end;              /* nothing is left to be read */
};

void staging_init(struct staging *st, struct channel *ch,
    void (*ready)(struct staging *st, int error, const char *detail),
    void (*filled)(struct staging *st));
/* All jobs and registrations are gone (the channel's owner.gone). */
void staging_done(struct staging *st);

/* Asks for memory, once. 0 and ready() follows, or -ENOBUFS (beyond the budget), -ENOMEM. */
int staging_get(struct staging *st, uint32_t chunk_size, unsigned n_chunks);
/* It is registered. */
bool staging_is_ready(const struct staging *st);
/* A read that nobody waits for has not come back. */
bool staging_is_stuck(const struct staging *st);

/* Reads the source from there. What was read before and not taken is forgotten. */
void staging_start(
    struct staging *st, struct source *source, uint64_t offset, uint64_t border, bool holes);
void staging_stop(struct staging *st);
/* Reads on, into chunks that are free by now. */
void staging_ahead(struct staging *st);
/* The next chunk in order if it is full, else NULL. */
struct chunk *staging_head(struct staging *st);
/* It is done with when the record seq is written; 0: at once. */
void staging_take(struct staging *st, uint64_t seq);
/* Nothing is being read, since all chunks are on their way. */
bool staging_is_sent(const struct staging *st);
/* The source is read and taken to its end. */
bool staging_is_over(const struct staging *st);
