/* methods.h -- io.rwriter: what may be called, by whom, with which parameters */

#pragma once

#include "control/control.h"
#include "control/varlink.h"

/* A varlink_fn; arg is the const struct control_env. */
void methods_call(void *arg, struct varlink_call *call);
