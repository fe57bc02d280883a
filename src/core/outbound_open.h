/* outbound_open.h -- what a connection to a target carries: its transfers, from GRANT to the end
 *
 *   (taken) run > sent > awaiting > RESULT        given up: drop; the connection ends: give_back
 *
 * One transfer is sent at a time. Into a memory region the next goes when the last has its RESULT;
 * into a ring (spool, discard) when all of the last is out, and they await their results together,
 * which come by number. A connection without any rests, and ends after [limits] idle.
 *
 * Before GRANT there is at most the transfer that the connection is made for, and it only waits.
 * Where something returns false, the target has broken the protocol: *why says how, and the
 * connection is the caller's to end.
 */

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "core/sender.h"
#include "core/source.h"

struct failure;
struct outbound;
struct rwp_line;
struct rwp_record;
struct transfer;

struct outbound_open {
	struct transfer *transfer; /* being greeted for, or sent; else NULL */
	struct sender sender;      /* from GRANT on */
	struct list awaiting;      /* struct transfer: all is sent, by number; RESULT is to come */
	uint32_t results;          /* number of the last transfer that got its RESULT */
	uint64_t news_at;          /* loop_now() of the target's last word about any of them */
	uint32_t transfers;        /* that arrived */
	struct {                   /* the last transfer that the target was told to drop */
		uint32_t number;
		uint8_t id[SOURCE_ID_SIZE];
	} discard;
	bool last; /* the target's line says that it takes no further transfer */
};

/* ---- from peer and transfer: of a connection in any state ---- */

/* Open without a transfer. */
bool outbound_open_is_idle(const struct outbound *ob);
/* Open, free to send, grants the region, and the transfer's size fits. */
bool outbound_open_fits(const struct outbound *ob, const struct transfer *t);
/* It does not now, but will soon: short files follow each other into a ring. */
bool outbound_open_will_fit(const struct outbound *ob, const struct transfer *t);
/* The target may not yet have dropped what it has of this transfer, given up here before: over
 * another connection it would go on from there. */
bool outbound_open_discards(const struct outbound *ob, const struct transfer *t);
/* The transfer is its own until it ends one way or the other. */
void outbound_open_take(struct outbound *ob, struct transfer *t);
/* The transfer that it has taken begins. */
void outbound_open_run(struct outbound *ob);

/* ---- from outbound ---- */

/* Nothing yet. */
void outbound_open_init(struct outbound_open *open);
/* All jobs and registrations are gone (the channel's owner.gone). */
void outbound_open_done(struct outbound_open *open);
/* GRANT is there, and the connection is open: begins with what was taken, or rests. */
void outbound_open_begin(struct outbound *ob);
/* A record that is no NOTICE, once it is open; a line, in any state; slots, credits or sources are
 * free. */
bool outbound_open_record(
    struct outbound *ob, const struct rwp_record *r, const uint8_t *blob, struct failure *why);
bool outbound_open_line(struct outbound *ob, const struct rwp_line *line, struct failure *why);
void outbound_open_room(struct outbound *ob);
/* A transfer of its own goes away before its result: the target hears what to do with what it has,
 * if it is not all of it. */
void outbound_open_drop(struct outbound *ob, struct transfer *t, bool discard);
/* The connection ends: its transfers get the failure or another try. */
void outbound_open_give_back(struct outbound *ob, const struct failure *why);
/* How many transfers it has. */
unsigned outbound_open_count(const struct outbound *ob);
