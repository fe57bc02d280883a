/* resolve.h -- a peer's host name and the addresses behind it
 *
 * Numeric addresses are known at once. Names are looked up on threads of their own (getaddrinfo
 * blocks for as long as the name servers let it), known for a minute, and looked up again by
 * themselves only while somebody keeps them: an allow line that names the peer.
 */

#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/limits.h"
#include "loop/work.h"

#define RESOLVE_MAX 8 /* addresses */

struct core;
struct loop_timer;
struct resolve;

struct resolve_job { /* owns what the thread touches */
	struct job job;
	char host[LIMIT_NAME * 4];
	uint16_t port;
	struct sockaddr_storage found[RESOLVE_MAX];
	unsigned n;
	int error; /* of getaddrinfo(3) */
};

struct resolve { /* embedded in its owner */
	struct core *core;
	char host[LIMIT_NAME * 4];
	uint16_t port;
	struct sockaddr_storage addresses[RESOLVE_MAX];
	unsigned n;
	uint64_t at; /* loop_now(); 0: never, or not for this host */
	bool keep, running;
	struct loop_timer *timer;
	struct resolve_job job;
	/* A look-up has ended; error: NULL or why there is none. */
	void (*done)(struct resolve *r, const char *error);
};

/* 0 or -ENOMEM. */
int resolve_init(
    struct resolve *r, struct core *core, void (*done)(struct resolve *, const char *));
/* No look-up may be running. */
void resolve_done(struct resolve *r);
/* Forgets what is known if this is another host or port. */
void resolve_set(struct resolve *r, const char *host, uint16_t port);
/* Keeps the addresses fresh from now on, or not. Starts a look-up if there is need. */
void resolve_keep(struct resolve *r, bool keep);
/* True: the addresses are known and fresh. Else done() follows. */
bool resolve_ready(struct resolve *r);
bool resolve_has(const struct resolve *r, const struct sockaddr *address);
