/* write.h -- io.rwriter.Write: a transfer of the core and the call that waits for it */

#pragma once

#include "control/varlink.h"
#include "core/core.h"

/* What Write and WriteBatch ask for alike; the texts are the call's. */
struct write_request write_asked(const struct varlink_call *call);
/* Starts the transfer of call->fd with the call's parameters; the answers follow. */
void write_start(struct core *core, struct varlink_call *call);
