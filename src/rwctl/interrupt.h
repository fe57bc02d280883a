/* interrupt.h -- Ctrl-C: the first asks for an orderly end, the second kills */

#pragma once

#include <poll.h>
#include <stdbool.h>

void interrupt_setup(void);
/* Ctrl-C has been pressed. A blocking system call under way has failed with EINTR. */
bool interrupted(void);
/* poll(2) that cannot miss Ctrl-C: -EINTR when it has been pressed, else what poll returns or a
 * negative errno. timeout_ms: -1 is for ever. */
int interrupt_poll(struct pollfd *fds, nfds_t n, int timeout_ms);
