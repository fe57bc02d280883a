/* reconnect.h -- whether and when a transfer that has lost its connection gets another
 *
 * A transfer that has once had a region, or is an earlier one begun again, is given connections
 * again and again, at growing intervals, until [limits] reconnect is over since it last got on.
 * What fails before is told at once: nobody listens there, say.
 */

#pragma once

#include <stdbool.h>
#include <stdint.h>

struct failure;
struct loop;
struct loop_timer;

struct reconnect {
	struct loop_timer *timer;
	bool granted;      /* it has had a region, perhaps in an earlier life */
	uint64_t lost_at;  /* loop_now() of the first loss since it got on; 0: none */
	uint64_t pause_ns; /* before the next try */
	unsigned tries;    /* since lost_at */
};

/* again: another connection is to be asked for. 0 or -ENOMEM. */
int reconnect_init(struct reconnect *r, struct loop *loop, void (*again)(void *arg), void *arg);
void reconnect_done(struct reconnect *r);
/* A region is there. */
void reconnect_granted(struct reconnect *r);
/* The transfer is further than it ever was. */
void reconnect_got_on(struct reconnect *r);
/* The connection is lost, or could not be had: again() follows. False: that is the end, and *why
 * says after how long; limit_ns: [limits] reconnect. */
bool reconnect_lost(struct reconnect *r, uint64_t limit_ns, struct failure *why);
