/* inbound.h -- the target's side of a connection
 *
 *   REQUEST > preparing > accepting > greeting > granting > open > ending > closed > (gone)
 *                            |  HELLO refused: DENY  |       |
 *                            any failure, deadline, NOTICE, BYE > ending
 *
 * preparing: tail area and mailbox image are registered; accepting: accepted, ESTABLISHED or the
 * writer's first record is to come; greeting: HELLO is to come; granting: the region is being made;
 * open: transfers; ending: the last word leaves; closed: jobs and registrations end.
 */

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/text.h"
#include "core/arrival.h"
#include "core/channel.h"
#include "fabric/fabric.h"
#include "loop/loop.h"
#include "wire/auth.h"
#include "wire/rwp.h"

struct core;
struct region;
struct listener;
struct peer_view;

enum inbound_state {
	INBOUND_PREPARING,
	INBOUND_ACCEPTING,
	INBOUND_GREETING,
	INBOUND_GRANTING,
	INBOUND_OPEN,
	INBOUND_ENDING,
	INBOUND_CLOSED,
};

struct inbound {
	struct list node;
	struct core *core;
	struct channel channel;
	enum inbound_state state;
	struct loop_timer *deadline; /* of the state: set-up, idle, stall */
	struct loop_task grave;

	char peer[TEXT_ADDRESS_MAX];
	char listen[LIMIT_NAME + 1];
	struct fabric_info info; /* as last described */
	char fabric_why[LIMIT_TEXT + 1];
	struct rwp_hello hello;
	bool proven;      /* HELLO was valid: no stranger any more */
	struct auth auth; /* of a writer with a key */
	uint32_t generation;
	uint64_t since; /* CLOCK_REALTIME */
	struct region *region;
	struct arrival arrival;
	uint64_t progress; /* of the arrival, when the deadline was set */
	uint32_t transfers;
};

/* A connection request: rejects it, or makes an inbound of it. */
void inbound_request(
    struct core *core, struct listener *listener, const struct fabric_event *event);

/* Ends the connection with a NOTICE of why (code, text) where the peer can get one. Idempotent. */
void inbound_end(struct inbound *in, unsigned code, const char *text);

/* ---- for region.c ---- */

/* The region can be granted (error 0), or not: detail says why, when the system did. */
void inbound_region_ready(struct inbound *in, int error, const char *detail);
void inbound_describe(struct inbound *in, struct fabric_info *ret);

/* ---- for inbounds.c ---- */

const char *inbound_state_name(const struct inbound *in);

/* ---- for core.c, in inbounds.c ---- */

void inbound_each(struct core *core, void (*fn)(void *arg, const struct peer_view *v), void *arg);
/* Ends those of this peer (name, claimed name or address); their number. */
unsigned inbound_disconnect(struct core *core, const char *who);
void inbound_end_all(struct core *core, unsigned code, const char *text);
/* The lines say that no further transfer is taken (arrival.c refuses them). */
void inbound_take_no_more(struct core *core);
/* A transfer is arriving somewhere. */
bool inbound_any_open(const struct core *core);
