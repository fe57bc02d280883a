/* channel.h -- one connection's plumbing, the same for both directions: areas, records, lines,
 * beats
 *
 * The owner (inbound, outbound) holds the state machine; the channel moves records and lines
 * between the areas and the fabric, watches the peer's beat, and takes the connection down in the
 * right order:
 *
 *   channel_end > [last record out, at most 100 ms] > fabric stop > CLOSED > owner.closed
 *     > registrations dropped, jobs ended (holds) > fabric conn freed > owner.gone
 *
 * Nothing of the owner is freed before owner.gone.
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/area.h"
#include "core/poller.h"
#include "fabric/fabric.h"
#include "loop/loop.h"
#include "wire/rwp.h"

struct channel;
struct core;

/* Memory registered for the channel's connection. Embedded in its owner; holds the channel. */
struct registration {
	struct channel *channel;
	struct fabric_mem *mem; /* NULL unless added */
	bool ready, dropping;
	/* Registered (error 0), or not: then it is as before registration_add(). */
	void (*on_ready)(struct registration *r, int error, const char *detail);
	/* Out of reach of everybody: the memory may go. NULL: nobody minds. */
	void (*on_gone)(struct registration *r);
};

/* What the owner is told: the first three only before channel_end(); record, line and room only
 * while the channel is up. At CLOSED the area is looked at once more, so the last word of the peer
 * comes before closed. closed and gone come once each, in this order. */
struct channel_ops {
	void (*resolved)(struct channel *ch);
	void (*ready)(
	    struct channel *ch, int error, const char *detail); /* areas registered, or not */
	void (*established)(struct channel *ch, const void *data, size_t len);
	void (*record)(struct channel *ch, const struct rwp_record *r, const uint8_t *blob);
	void (*line)(struct channel *ch, const struct rwp_line *line); /* may be NULL */
	void (*room)(
	    struct channel *ch); /* slots, credits or sources have become free; may be NULL */
	/* Something broke that the channel found: the owner decides, usually channel_end(). */
	void (*broken)(struct channel *ch, enum rwp_code code, const char *text);
	void (*closed)(struct channel *ch, const struct fabric_event *event);
	void (*gone)(struct channel *ch);
};

enum channel_phase {
	CHANNEL_OPENING,
	CHANNEL_UP,
	CHANNEL_ENDING,
	CHANNEL_STOPPING,
	CHANNEL_CLOSED
};

struct channel {
	struct core *core;
	const struct channel_ops *ops;
	struct fabric_conn *conn;
	enum channel_phase phase;
	unsigned holds;

	uint8_t *in_map, *out_map;
	size_t in_size, out_size;
	struct registration in_reg, out_reg;
	unsigned areas_pending;
	int areas_error;
	struct area_in in;
	struct area_out out;
	uint64_t remote_area; /* the peer's area */
	uint32_t remote_rkey;

	struct rwp_line line; /* ours, as it will be sent next */
	bool line_dirty;
	bool paused; /* the owner takes no records for now */
	bool down;   /* CLOSED has come */

	uint64_t beat_ns, dead_ns;
	uint64_t heard_at; /* loop_now() of the peer's last beat or record */
	uint64_t arrived;  /* as its last line said */
	struct loop_timer *beat_timer, *end_timer, *again_timer;
	struct poll_entry poll;
	struct loop_task flush_task, gone_task;
	uint8_t blob[RWP_BLOB_MAX];
};

/* conn may be NULL (active side: channel_connect). 0 or -ENOMEM: then nothing is held. */
int channel_init(
    struct channel *ch, struct core *core, const struct channel_ops *ops, struct fabric_conn *conn);
/* Only before there is a connection, or from owner.gone on. */
void channel_done(struct channel *ch);
int channel_connect(struct channel *ch, const struct fabric_ops *ops, struct fabric *fabric,
    const struct sockaddr *to);

/* Maps the incoming area and registers it; ops.ready follows. A passive side maps the outgoing
 * image as well; an active one knows its size only from the reply: channel_map_out(), and ops.ready
 * again. */
int channel_map_in(struct channel *ch, size_t size, unsigned ring_log2);
int channel_map_out(struct channel *ch, size_t size, unsigned ring_log2);
/* Where the peer's area is, from its private data. */
void channel_set_remote(struct channel *ch, uint64_t addr, uint32_t rkey);
/* Session keys (borrowed) of the tags of all that comes, and of all that is pushed, from now on. */
void channel_key(struct channel *ch, const uint8_t *in, const uint8_t *out);
/* Looks for records from now on. */
void channel_listen(struct channel *ch);
/* Beats from now on, and expects them. */
void channel_beat(struct channel *ch, uint64_t beat_ns, uint64_t dead_ns);

/* Lays out a record, which goes out when this turn's callbacks are done or later, when the fabric
 * has room. -EAGAIN: no room, ops.room will come; -ENOTCONN: it is ending, or not that far. */
int channel_push(struct channel *ch, struct rwp_record *r, const void *blob, uint32_t blob_len,
    const struct area_payload *payload);
/* ch->line has changed: goes out when this turn's callbacks are done. */
void channel_line(struct channel *ch);
/* Takes no records, or takes them again. */
void channel_pause(struct channel *ch, bool paused);

/* Ends the connection: whatever has been pushed still gets 100 ms, then it is stopped. Idempotent.
 */
void channel_end(struct channel *ch);

/* A job or an object that must be gone before the channel may go. */
void channel_hold(struct channel *ch);
void channel_release(struct channel *ch);

/* Registers memory: on_ready follows. 0, -ENOTCONN (closed) or -ENOMEM. */
int registration_add(
    struct registration *r, struct channel *ch, void *addr, size_t len, unsigned access);
/* From any state, also twice; on_gone follows if it was added. */
void registration_drop(struct registration *r);
/* CRC32C of what the peer has written there, if the fabric knows it: fabric.h, placed_crc. */
bool registration_crc(
    const struct registration *r, const void *addr, size_t len, uint32_t *ret_crc);

/* The fabric's events, from core.c. */
void channel_event(struct channel *ch, const struct fabric_event *event);
void registration_event(struct registration *r, const struct fabric_event *event);
