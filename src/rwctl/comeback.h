/* comeback.h -- a daemon that goes while a call is under way, and comes back */

#pragma once

#include <stdbool.h>

#include "rwctl/call.h"
#include "rwctl/deadline.h"

struct comeback { /* zeros: the daemon is there */
	struct deadline give_up;
};

/* call_receive() says: the daemon has gone. */
bool comeback_needed(int error);
/* A transfer has failed because a daemon stops, this one or the peer's. */
bool comeback_likely(const json_t *transfer);
/* After that, and the last answer: waits whether it is this one, which then goes. */
bool comeback_follows(struct call *call);
/* Waits until the daemon is back and call is connected to it: STATUS_DONE; or until the deadline
 * (without one, for half a minute) or an interrupt, and says so. Nothing that was called is under
 * way any more. */
int comeback_await(struct comeback *c, struct call *call, struct deadline deadline);
/* The daemon has answered. */
void comeback_over(struct comeback *c);
