/* pump.h -- brings any input (pipe, terminal, device) to the daemon through a socket pair
 *
 * The daemon gets the far end with the call. The end of the input is a shutdown of the near end,
 * which stays open until the answer has come: a hang-up alone says that rwctl has died.
 */

#pragma once

#include <poll.h>

struct pump;

/* in is borrowed. *ret_far_end is to be sent, and closed then. 0 or a negative errno. */
int pump_new(int in, struct pump **ret, int *ret_far_end);
/* After an answer, or after pump_await_drop(). Accepts NULL, returns NULL. */
struct pump *pump_free(struct pump *pump);

/* What to wait for, and what to do when it has happened: 0, or a negative errno when the input
 * cannot be read. */
void pump_prepare(const struct pump *pump, struct pollfd *pollfd);
int pump_step(struct pump *pump, short events);
/* The negative errno of that, or 0. */
int pump_error(const struct pump *pump);

/* The call's connection has been closed to cancel it. Waits a moment until the daemon has noticed
 * and dropped its end: were ours closed first, it could take that for the end of the input. */
void pump_await_drop(struct pump *pump);
