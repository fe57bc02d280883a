/* admission.h -- who may connect: decided before the core allocates anything for the connection */

#pragma once

#include <stdbool.h>

#include "fabric/fabric.h"
#include "wire/rwp.h"

struct conf_peer;
struct core;
struct listener;
struct refusal;

/* True, *request, and the peer that has the key which its gate proves (the first of several; NULL:
 * no key is spoken of); or false and *refusal, for refusal_reject(). */
bool admission_check(struct core *core, struct listener *listener, const struct fabric_info *info,
    const struct fabric_event *event, struct rwp_request *request, const struct conf_peer **ret,
    struct refusal *refusal);

/* One connection more is within [limits] connections; else *refusal. */
bool admission_has_room(const struct core *core, struct refusal *refusal);

/* The listen section of that name admits this peer, which has proved its key: a line names it, or
 * admits its address. */
bool admission_allows(const struct core *core, const char *listen, const struct sockaddr *address,
    const struct conf_peer *peer);
