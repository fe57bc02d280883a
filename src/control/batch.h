/* batch.h -- io.rwriter.WriteBatch: many files, or many peers, in one call */

#pragma once

#include "control/varlink.h"

struct core;

/* Starts the transfers of call->fds under the call's names, some at a time; each has its answers.
 */
void batch_start(struct core *core, struct varlink_call *call);
