/* write.h -- io.rwriter.Write: a transfer of the core and the call that waits for it */

#pragma once

#include "control/varlink.h"

struct core;

/* Starts the transfer of call->fd with the call's parameters; the answers follow. */
void write_start(struct core *core, struct varlink_call *call);
