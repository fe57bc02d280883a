/* outbound.h -- the writer's side of a connection
 *
 *   resolving > preparing > connecting > greeting > open > ending > closed > (gone)
 *                    any failure, deadline, DENY, NOTICE > ending
 *
 * Until it is established it is an attempt of a dial; then it has a transfer. resolving: the fabric
 * looks for a device; preparing: the mailbox is being registered; connecting: the request is out
 * (then the image of the tail area is registered); greeting: HELLO is out, GRANT is to come; open:
 * one transfer after the other; into a ring (spool, discard) the next one goes when all of the last
 * is out, and they await their results together. A connection without a transfer is closed after
 * [limits] idle.
 */

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "core/channel.h"
#include "core/failure.h"
#include "core/flight.h"
#include "core/sender.h"
#include "core/source.h"
#include "fabric/fabric.h"
#include "loop/loop.h"
#include "wire/auth.h"
#include "wire/rwp.h"

struct core;
struct core_fabric;
struct dial;
struct peer;
struct peer_view;
struct transfer;

enum outbound_state {
	OUTBOUND_RESOLVING,
	OUTBOUND_PREPARING,
	OUTBOUND_CONNECTING,
	OUTBOUND_GREETING,
	OUTBOUND_OPEN,
	OUTBOUND_ENDING,
	OUTBOUND_CLOSED,
};

struct outbound {
	struct list node; /* peer->outbounds */
	struct core *core;
	struct peer *peer;
	struct channel channel;
	enum outbound_state state;
	struct loop_timer *deadline; /* of the set-up, or idle */
	struct loop_task grave;

	struct sockaddr_storage address;
	struct fabric_info info;
	char fabric_why[LIMIT_TEXT + 1];
	char region[LIMIT_NAME + 1];
	uint64_t wanted;
	struct flight flight; /* of its set-up */
	uint64_t setup_ns;
	struct rwp_reply reply;
	struct auth auth; /* with a peer that has a key */
	struct rwp_grant grant;
	struct dial *dial;         /* until it is established */
	struct transfer *transfer; /* from then on: being greeted for, or sent */
	struct list awaiting;      /* struct transfer: all is sent, by number; RESULT is to come */
	uint32_t results;          /* number of the last transfer that got its RESULT */
	uint64_t news_at;          /* loop_now() of the target's last word about any of them */
	struct sender sender;
	struct { /* the last transfer that the target was told to drop */
		uint32_t number;
		uint8_t id[SOURCE_ID_SIZE];
	} discard;
	bool last;              /* the target's line says that it takes no further transfer */
	uint64_t since;         /* CLOCK_REALTIME */
	uint32_t transfers;     /* that arrived */
	struct failure failure; /* why it ends; state 0: no failure */
};

/* Connects, with room for this transfer; dial_won() or dial_lost() follows, within setup_ns. 0 or
 * -ENOMEM. */
int outbound_new(struct peer *peer, struct core_fabric *fabric, const struct sockaddr *address,
    const struct transfer *t, struct dial *dial, uint64_t setup_ns, struct outbound **ret);
/* Its dial needs it no more. */
void outbound_hang_up(struct outbound *ob);
/* Established, before the dial's others. why: what spoke against other fabrics. */
void outbound_won(struct outbound *ob, const char *why);
/* The transfer is its own until it ends one way or the other. */
void outbound_take(struct outbound *ob, struct transfer *t);
/* Open, free to send, grants the region, and the transfer's size fits. */
bool outbound_fits(const struct outbound *ob, const struct transfer *t);
/* It does not now, but will soon: short files follow each other into a ring. */
bool outbound_will_fit(const struct outbound *ob, const struct transfer *t);
/* The target may not yet have dropped what it has of this transfer, given up here before: over
 * another connection it would go on from there. */
bool outbound_discards(const struct outbound *ob, const struct transfer *t);
/* Open without a transfer. */
bool outbound_is_idle(const struct outbound *ob);
void outbound_run(struct outbound *ob, struct transfer *t);
/* A transfer of its own goes away before its result: the target hears what to do with what it has,
 * if it is not all of it. */
void outbound_detach(struct outbound *ob, struct transfer *t, bool discard);
/* BYE, and the end. Idempotent. */
void outbound_end(struct outbound *ob, unsigned code, const char *text);

void outbound_describe(struct outbound *ob, struct fabric_info *ret);
void outbound_view(struct outbound *ob, struct peer_view *ret);
