/* look.h -- the methods of io.rwriter that only look */

#pragma once

#include "control/control.h"
#include "control/varlink.h"

void look_regions(const struct control_env *env, struct varlink_call *call);
void look_peers(const struct control_env *env, struct varlink_call *call);
void look_transfers(const struct control_env *env, struct varlink_call *call);
void look_explain(const struct control_env *env, struct varlink_call *call);
void look_events(const struct control_env *env, struct varlink_call *call);
void look_expand(const struct control_env *env, struct varlink_call *call);
void look_status(const struct control_env *env, struct varlink_call *call);
