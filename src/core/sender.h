/* sender.h -- one transfer's way out: source to staging to records, over one connection
 *
 *   idle > staging > sending > confirming > idle
 *
 * staging: memory for the segments is being made and registered, which stays for the connection's
 * next transfers: those go straight to sending; sending: segments are read ahead and go out in
 * order, each as payload and record; confirming: END (or ONE) is out, RESULT is to come.
 */

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/channel.h"
#include "core/pool.h"
#include "core/source.h"

struct transfer;

enum sender_state { SENDER_IDLE, SENDER_STAGING, SENDER_SENDING, SENDER_CONFIRMING };

enum chunk_state { CHUNK_FREE, CHUNK_READING, CHUNK_FULL, CHUNK_SENT };

struct chunk { /* one segment of the staging memory */
	enum chunk_state state;
	struct sender *sender;
	struct source_read read;
	uint64_t seq; /* CHUNK_SENT: of its record */
};

struct sender {
	enum sender_state state;
	struct channel *channel;
	const struct rwp_grant *grant;
	struct transfer *transfer; /* NULL while idle */
	struct source *source;
	uint32_t number; /* of the transfer on this connection */

	struct memory *memory;
	struct memory_request request;
	struct registration reg;
	uint32_t chunk_size;
	unsigned n_chunks;
	struct chunk chunks[LIMIT_STAGING_CHUNKS];
	uint64_t reads, sends; /* chunks given out to be read, sent: chunk = count % n_chunks */

	uint64_t read_off; /* of the stream: next to be read */
	bool read_end;     /* nothing is left to be read */
	uint64_t sent, arrived;
	uint32_t crc; /* of what is sent */
	bool begun;
};

void sender_init(struct sender *s, struct channel *ch, const struct rwp_grant *grant);
/* All jobs and registrations are gone (the channel's owner.gone). */
void sender_done(struct sender *s);

/* Idle, and its segments suit a transfer of this length (UINT64_MAX: unknown). */
bool sender_fits(const struct sender *s, uint64_t length);
/* Begins: transfer_failed(), perhaps from inside this call, or transfer_sending() ... in later
 * turns. */
void sender_start(struct sender *s, struct transfer *t, struct source *source, uint32_t number);
/* Something may have become possible: sources free, credits, reads done. */
void sender_pump(struct sender *s);
/* The target has verified so many bytes. */
void sender_arrived(struct sender *s, uint64_t bytes);
/* The transfer is given up: ABORT goes out if the target knows of it and still waits for the rest.
 */
void sender_abort(struct sender *s, bool discard);
/* RESULT has come, or the transfer was given up: no callback into it any more. */
void sender_finish(struct sender *s);
