/* arrival.h -- incoming transfers of one connection: records to verified bytes to the sink
 *
 *            beginning            BEGIN or ONE, until the sink has made its bed
 *             |   ^ restart
 *             v   |
 *   none >    open  > ending > none       END or ONE; RESULT is sent when the sink has done
 *              ^v
 *            storing              each DATA, HOLE, and ONE
 *
 *   any > dropping > none, or failed until END or ABORT: RESULT is sent when what is there has gone
 *                    (or stays, to be resumed); records of a failed transfer are skipped
 *
 * Storing includes the checksum of the bytes (intake.h). While it is under way, or anything else
 * that waits for a disk, the owner takes no further records (arrival_busy).
 *
 * Where the region is a ring, `ring` counts its bytes that have been used since the grant, skipped
 * ones too. Records are taken one by one, so whenever one has been, so has all before it, and is
 * given back.
 */

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/intake.h"
#include "core/view.h"
#include "wire/rwp.h"

struct channel;
struct region;
struct sink;

enum arrival_state {
	ARRIVAL_NONE,
	ARRIVAL_BEGINNING,
	ARRIVAL_OPEN,
	ARRIVAL_STORING,
	ARRIVAL_ENDING,
	ARRIVAL_DROPPING,
	ARRIVAL_FAILED
};

struct arrival {
	enum arrival_state state;
	struct channel *channel;
	struct region *region;
	const struct sink *sink;
	void *sink_data; /* the sink's own, of the open transfer */
	/* What kept it busy has ended: the owner may take records again. */
	void (*idle)(struct arrival *a);

	uint32_t transfer; /* of the transfer that is open, or was the last */
	struct arrival_view view;
	uint64_t announced; /* whole length; UINT64_MAX: not known */
	uint64_t received;  /* bytes verified */
	uint32_t crc;       /* of them */
	bool has_id;
	bool resumes;             /* BEGIN-OK was the last word: the next record says from where */
	struct rwp_record record; /* being worked on */
	uint64_t ring;            /* position in the ring */
	struct intake intake;     /* of its bytes */
	uint64_t progress;  /* grows with all that a transfer needs: beginnings, verified bytes,
			       results */
	unsigned fail_code; /* while dropping: 0 when nobody is to be told */
	struct rwp_deny fail_why;
};

int arrival_init(struct arrival *a, struct channel *ch, struct region *region,
    const struct sink *sink, void (*idle)(struct arrival *a));
/* No job may be running: the channel's holds see to that. */
void arrival_done(struct arrival *a);

/* BEGIN, DATA, HOLE, END, ONE or ABORT. 0, or -EPROTO with *text (static): the connection must end.
 */
int arrival_record(
    struct arrival *a, const struct rwp_record *r, const uint8_t *blob, const char **text);
/* No record may be given now. */
bool arrival_busy(const struct arrival *a);
/* A transfer has begun and not ended. */
bool arrival_open(const struct arrival *a);
/* ... whose length was not announced. */
bool arrival_is_stream(const struct arrival *a);
/* The writer has taken all our records up to this one. */
void arrival_heard(struct arrival *a, uint64_t seq);
/* The connection is over: an open transfer is lost, but for what a sink keeps of it. */
void arrival_abandon(struct arrival *a);

/* ---- answers of a sink that said SINK_LATER ---- */

/* 0: it goes on with the byte at offset, behind others of this checksum; or a code, and why. */
void arrival_begun(
    struct arrival *a, unsigned code, const struct rwp_deny *why, uint64_t offset, uint32_t crc);
/* What has been stored fails after all (a checkpoint did). */
void arrival_broke(struct arrival *a, unsigned code, const struct rwp_deny *why);
void arrival_ended(struct arrival *a, unsigned status, const struct rwp_deny *why);
void arrival_dropped(struct arrival *a);
