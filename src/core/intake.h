/* intake.h -- takes the bytes of one record into the sink, and sees whether they are those that the
 * record speaks of
 *
 * Summing them is a job, as is all that waits for a disk. But what this process has placed itself
 * is still in the cache of the processor that the loop is on: there a checksum alone takes less
 * time than fetching the bytes into another's, so that is done at once. Often the fabric has it,
 * too (fabric.h, placed_crc).
 *
 * Bytes that do not match are read again for a while: their record may have overtaken them
 * (protocol rule 2).
 */

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "loop/work.h"

struct arrival;

enum { INTAKE_DAMAGED = 1 }; /* the bytes are not those that the record speaks of */

struct intake {
	struct arrival *arrival; /* its owner, whose record is taken */
	uint32_t crc;            /* of the bytes taken, when fn is called */
	/* 0, INTAKE_DAMAGED, or the negative errno that the sink said. Called once, in
	 * intake_begin() or later; the channel is held meanwhile. */
	void (*fn)(struct intake *in, int result);

	struct job job;
	int error;
	uint64_t inline_max; /* bytes summed by the loop itself; else by a job */
	uint64_t suspect_since;
	struct loop_timer *again;
	bool waiting; /* to look again: no job is under way */
};

/* 0 or -ENOMEM. */
int intake_init(struct intake *in, struct arrival *a, void (*fn)(struct intake *in, int result));
/* No job may be running. */
void intake_done(struct intake *in);

/* Takes the bytes of arrival->record. The channel is held while a job runs. */
void intake_begin(struct intake *in);
/* It waits to look again: then intake_cancel() ends that, and fn is not called. */
bool intake_waits(const struct intake *in);
void intake_cancel(struct intake *in);
