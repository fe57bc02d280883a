/* addresses.h -- the addresses of this machine: which are here, and word of those that come and go
 */

#pragma once

#include <stdbool.h>
#include <sys/socket.h>

struct addresses;
struct loop;

/* An address (without a port) has come, or has gone. NULL: any may have come, word of it was lost.
 */
typedef void addresses_fn(void *arg, const struct sockaddr *address, bool here);

/* One of this machine's own addresses; a port does not matter. */
bool addresses_has(const struct sockaddr *address);

/* 0 or a negative errno. Free accepts NULL and returns NULL. */
int addresses_new(struct loop *loop, addresses_fn *fn, void *arg, struct addresses **ret);
struct addresses *addresses_free(struct addresses *a);
