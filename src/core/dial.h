/* dial.h -- getting a connection for a transfer: the peer's addresses and this machine's fabrics,
 * tried in turn
 *
 * The candidates are each address by each fabric that the configuration admits. The first is
 * started at once; the next when one has failed, or 300 ms later if it is another fabric's (fabric
 * = auto). The first connection that is established wins and gets the transfer; the others end. A
 * refusal in the target's own words is final. A fabric that has won is tried first for ten minutes.
 */

#pragma once

#include <stddef.h>

struct dial;
struct failure;
struct outbound;
struct peer;
struct transfer;

/* Sets t->dial; dial_won() or the transfer's failure follow, the latter perhaps at once. -ENOMEM,
 * or -ENODEV (no fabric here can), and *why. */
int dial_new(struct peer *peer, struct transfer *t, struct failure *why);
/* The transfer is gone: all attempts end. */
void dial_cancel(struct dial *dial);

/* ---- from outbound.c ---- */

/* Established; the transfer is the outbound's on return. */
void dial_won(struct dial *dial, struct outbound *ob);
/* The attempt failed. */
void dial_lost(struct dial *dial, struct outbound *ob, const struct failure *why);
