/* outbound.h -- the writer's side of a connection
 *
 *   resolving > preparing > connecting > greeting > open > ending > closed > (gone)
 *                    any failure, deadline, DENY, NOTICE > ending
 *
 * Until it is established it is an attempt of a dial; then it has a transfer. resolving: the fabric
 * looks for a device; preparing: the mailbox is being registered; connecting: the request is out
 * (then the image of the tail area is registered); greeting: HELLO is out, GRANT is to come; open:
 * one transfer after the other (outbound_open.h).
 */

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "core/channel.h"
#include "core/failure.h"
#include "core/flight.h"
#include "core/outbound_open.h"
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
	struct outbound_open open; /* from then on: its transfers */
	uint64_t since;            /* CLOCK_REALTIME */
	struct failure failure;    /* why it ends; state 0: no failure */
};

/* Connects, with room for this transfer; dial_won() or dial_lost() follows, within setup_ns. 0 or
 * -ENOMEM. */
int outbound_new(struct peer *peer, struct core_fabric *fabric, const struct sockaddr *address,
    const struct transfer *t, struct dial *dial, uint64_t setup_ns, struct outbound **ret);
/* Its dial needs it no more. */
void outbound_hang_up(struct outbound *ob);
/* Established, before the dial's others. why: what spoke against other fabrics. */
void outbound_won(struct outbound *ob, const char *why);
/* A transfer of its own goes away before its result. */
void outbound_detach(struct outbound *ob, struct transfer *t, bool discard);
/* BYE, and the end. Idempotent. */
void outbound_end(struct outbound *ob, unsigned code, const char *text);

void outbound_describe(struct outbound *ob, struct fabric_info *ret);
void outbound_view(struct outbound *ob, struct peer_view *ret);
