/* sender.h -- transfers on their way out over one connection: source to staging to records
 *
 *   idle > staging > [opening > [checking]] > sending > idle
 *
 * staging: memory for the segments is being made and registered, which stays for the connection's
 * next transfers; opening: BEGIN is out, BEGIN-OK shall tell what the target has already; checking:
 * that is read here too, and compared; sending: segments are read ahead and go out in order, each
 * as payload and record. A transfer is sent when END (or ONE) is out, and the next may follow:
 * RESULT is the connection's business.
 */

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/records.h"
#include "core/staging.h"

struct transfer;

enum sender_state { SENDER_IDLE, SENDER_STAGING, SENDER_OPENING, SENDER_CHECKING, SENDER_SENDING };

struct sender {
	enum sender_state state;
	/* All of the transfer is out; idle again. */
	void (*sent_all)(struct sender *s);
	struct records records;
	struct staging staging;

	struct transfer *transfer; /* NULL while idle */
	struct source *source;
	uint64_t zeros;  /* up to there the source has no data */
	uint64_t resume; /* what the target had of it, */
	uint32_t resume_crc;
};

void sender_init(struct sender *s, struct channel *ch, const struct rwp_grant *grant,
    void (*sent_all)(struct sender *s));
/* All jobs and registrations are gone (the channel's owner.gone). */
void sender_done(struct sender *s);

/* Its segments suit a transfer of this length (UINT64_MAX: unknown), and it is idle as well. */
bool sender_suits(const struct sender *s, uint64_t length);
bool sender_fits(const struct sender *s, uint64_t length);
/* The transfer that is being sent is a short one: whoever waits for it does not wait long. */
bool sender_is_brief(const struct sender *s);

/* Begins: transfer_fail(), perhaps from inside this call, or transfer_sending() ... in later
 * turns. */
void sender_start(struct sender *s, struct transfer *t, struct source *source);
/* Something may have become possible: sources free, credits, reads done. */
void sender_pump(struct sender *s);
/* BEGIN-OK: so much of the transfer is there already. 0, or -EPROTO: it was not asked. */
int sender_opened(struct sender *s, uint64_t offset, uint32_t crc);
/* The transfer is given up: ABORT goes out if the target knows of it and waits for the rest. */
void sender_abort(struct sender *s, bool discard);
/* The target has done with it, or is lost: no callback into the transfer any more. */
void sender_finish(struct sender *s);
