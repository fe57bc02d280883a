/* arrival.h -- incoming transfers of one connection: records to verified bytes to the sink
 *
 *   none > open > none          RESULT is sent when it ends
 *           ^v
 *        verifying              each DATA, and ONE
 *   open > failed > none        RESULT is sent at once; until END or ABORT records are skipped
 *
 * Checksums of bulk are jobs; while one runs the owner takes no further records (arrival_busy). But
 * what this process has placed itself is still in the cache of the processor that the loop is on:
 * there it takes less time than fetching it into another's, so that is checked at once.
 */

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/view.h"
#include "loop/work.h"
#include "wire/rwp.h"

struct channel;
struct region;
struct sink;

enum arrival_state { ARRIVAL_NONE, ARRIVAL_OPEN, ARRIVAL_VERIFYING, ARRIVAL_FAILED };

struct arrival {
	enum arrival_state state;
	struct channel *channel;
	struct region *region;
	const struct sink *sink;
	/* A verification has ended: the owner may take records again. */
	void (*idle)(struct arrival *a);

	uint32_t transfer; /* of the transfer that is open, or was the last */
	struct arrival_view view;
	uint64_t announced;       /* whole length; UINT64_MAX: not known */
	uint64_t received;        /* bytes verified */
	uint32_t crc;             /* of them */
	struct rwp_record record; /* being verified */
	uint64_t inline_max;      /* bytes checksummed on the loop; else a job */
	struct job job;
	uint32_t job_crc;
	uint64_t progress; /* grows with all that a transfer needs: beginnings, verified bytes,
			      results */
	uint64_t suspect_since;
	struct loop_timer *again; /* reads once more what did not match */
	uint64_t damaged;         /* payloads that never matched */
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
/* The connection is over: an open transfer is lost. */
void arrival_abandon(struct arrival *a);
