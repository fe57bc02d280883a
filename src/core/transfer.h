/* transfer.h -- one `rwctl write`: from the queue of its peer to its final state
 *
 *   queued > connecting > [checking] > sending > confirming > arrived or stored
 *                ^            (any connection lost)     |         any failure: refused, failed,
 *                `------------ reconnecting <-----------'         deadline
 *
 * Owned by the core; core_write() makes it, the final update ends it. A transfer belongs to its
 * peer's queue, to one outbound connection, or waits to be made again (reconnect.h).
 */

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "core/core.h"
#include "core/flight.h"
#include "core/reconnect.h"
#include "core/source.h"
#include "core/view.h"
#include "loop/loop.h"

struct dial;
struct failure;
struct outbound;
struct peer;
struct rwp_begin;
struct rwp_record;

struct transfer {
	struct list node;       /* core->transfers */
	struct list queue_node; /* peer->waiting, or outbound->awaiting */
	struct core *core;
	struct peer *peer;
	struct dial *dial;         /* while a connection is being made for it */
	struct outbound *outbound; /* while it has one */
	struct source *source;
	uint8_t id[SOURCE_ID_SIZE];
	struct {
		uint32_t number, crc;
		uint64_t length;
	} sent;          /* on that connection, once all is */
	uint64_t wanted; /* bytes to ask of the target */
	char region[LIMIT_NAME + 1];
	bool preserve; /* the file's mode and mtime travel too */
	struct reconnect reconnect;
	struct flight flight;
	bool to_spool;                    /* which may go on where another connection was lost */
	uint64_t sent_most, arrived_most; /* over all connections */
	uint64_t started, sending_since;  /* loop_now() */
	struct transfer_view view;
	bool view_dirty;
	struct loop_timer *deadline, *stall, *updates;
	void (*update)(void *arg, const struct transfer_view *view);
	void *arg;
	struct loop *loop;
	struct loop_task tell_task, grave;
};

/* ---- from request ---- */

/* Nobody knows it yet: source, peer and what to tell whom are the caller's to fill in. 0 or
 * -ENOMEM. */
int transfer_new(struct core *core, struct transfer **ret);
/* As long as nobody knows it. Accepts NULL, returns NULL. */
struct transfer *transfer_free(struct transfer *t);

/* ---- from all who have it ---- */

/* Any failure that no other connection can mend: final. */
void transfer_fail(struct transfer *t, const struct failure *why);

/* ---- from peer and outbound ---- */

/* A dial is under way; then a connection is its own. */
void transfer_connecting(struct transfer *t);
void transfer_attach(struct transfer *t, struct outbound *ob);
/* Its connection has lost it, or has done with it. */
void transfer_released(struct transfer *t);
/* The connection begins with it: from now on it must get on. */
void transfer_running(struct transfer *t, bool to_spool);
/* Its connection is lost, or none could be had: it is made again where that is right, else it
 * fails. */
void transfer_broke(struct transfer *t, const struct failure *why);
/* RESULT of the target. */
void transfer_result(struct transfer *t, const struct rwp_record *r, const uint8_t *blob);
/* The target has verified so many bytes, and stored so many. True if that is news. */
bool transfer_progress(struct transfer *t, uint64_t arrived, uint64_t durable);
/* All is sent, under this number. */
void transfer_confirming(struct transfer *t, uint32_t number, uint64_t length, uint32_t crc);

/* The course of those that have not ended. */
void transfer_each_flight(
    struct core *core, void (*fn)(void *arg, const struct flight_record *r), void *arg);

/* ---- from sender ---- */

const char *transfer_name(const struct transfer *t);
/* What a BEGIN says of it. */
void transfer_describe(const struct transfer *t, struct rwp_begin *ret);
/* So much of what the target has is the same here; then all of it is: it goes on from there. */
void transfer_checking(struct transfer *t, uint64_t checked);
void transfer_resumed(struct transfer *t, uint64_t resumed);
/* So far it is sent, with so many bytes of payload just now. */
void transfer_sending(struct transfer *t, uint64_t sent, uint32_t payload);
