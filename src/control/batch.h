/* batch.h -- io.rwriter.WriteBatch: many files, or many peers, in one call */

#pragma once

#include "control/varlink.h"

struct control_env;

/* Starts the transfers of call->fds under the call's names, some at a time; each has its answers.
 */
void batch_start(const struct control_env *env, struct varlink_call *call);
