/* admission.h -- who may connect: decided before the core allocates anything for the connection */

#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "fabric/fabric.h"
#include "wire/rwp.h"

struct conf_listen;
struct core;
struct listener;

/* True and *request, or false and *reject (reason, text, retry). */
bool admission_check(struct core *core, struct listener *listener, const struct fabric_info *info,
    const void *data, size_t len, struct rwp_request *request, struct rwp_reject *reject);

/* Logs and rejects; the connection is freed when its CLOSED comes (core.c). */
void admission_reject(struct core *core, struct fabric_conn *conn, const struct fabric_info *info,
    struct rwp_reject *reject);

/* The listen section admits this address. */
bool admission_allows(
    const struct core *core, const struct conf_listen *listen, const struct sockaddr *address);
