/* peer.h -- another daemon that we write to: its addresses, its connections, what waits for it
 *
 * Configured ([peer NAME]) or made up from host[:port]; the latter goes when nothing needs it.
 * Transfers take a connection that is free and fits, or open one more, up to LIMIT_PEER_CONNECTIONS
 * (an idle one that does not fit is closed for it); beyond that they wait. Short ones that can go
 * into a ring behind each other wait for their turn there.
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "conf/conf.h"

struct core;
struct core_fabric;
struct failure;
struct outbound;
struct peer;
struct peer_view;
struct transfer;

/* Takes over the configuration's peers. -ENOMEM: some are missing. */
int peer_sync(struct core *core);
/* Keeps the addresses of those fresh that an allow line names. */
void peer_resolve_allowed(struct core *core);
/* All connections and transfers are gone. */
void peer_free_all(struct core *core);

/* A configured name, or host[:port]. -EINVAL (error says why) or -ENOMEM. */
int peer_get(struct core *core, const char *word, struct peer **ret, char *error, size_t size);
void peer_submit(struct peer *peer, struct transfer *t);
/* It waits for a connection, again. */
void peer_queue(struct peer *peer, struct transfer *t);
/* Looks, when this turn's callbacks are done, what the waiting transfers can have. */
void peer_schedule(struct peer *peer);

/* why: how it ended. */
void peer_outbound_gone(struct peer *peer, const struct failure *why);
void peer_transfer_gone(struct peer *peer, struct transfer *t);

/* ---- for dial.c and outbound.c ---- */

/* The nth address, or NULL. */
const struct sockaddr *peer_address(const struct peer *peer, unsigned n);
enum conf_fabric peer_conf_fabric(const struct peer *peer);
/* The fabric that won lately, or NULL. */
const struct core_fabric *peer_fabric(const struct peer *peer);
void peer_remember_fabric(struct peer *peer, const struct core_fabric *fabric);
void peer_add(struct peer *peer, struct outbound *ob);

const char *peer_name(const struct peer *peer); /* TEXT_ADDRESS_MAX bytes */
struct core *peer_core(const struct peer *peer);
/* The configured peer of that name is known to have this address. */
bool peer_has_address(const struct core *core, const char *name, const struct sockaddr *address);
/* Ends all connections of peers that `who` names (or whose address it is); their number. */
unsigned peer_disconnect(struct core *core, const char *who);
void peer_end_all(struct core *core);
/* One view for each connection, or one for a configured peer without any. */
void peer_each(struct core *core, void (*fn)(void *arg, const struct peer_view *v), void *arg);
