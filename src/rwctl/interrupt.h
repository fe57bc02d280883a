/* interrupt.h -- Ctrl-C and its like: the first asks for an orderly end, the second kills */

#pragma once

#include <poll.h>

void interrupt_setup(void);
/* The signal that came (SIGINT, SIGTERM, SIGHUP), or 0. A blocking system call under way has failed
 * with EINTR. */
int interrupted(void);
/* Says that it was so; the exit status, 128 and the signal. */
int interrupt_explain(void);
/* poll(2) that cannot miss the signal: -EINTR when it has come, else what poll returns or a
 * negative errno. timeout_ms: -1 is for ever. */
int interrupt_poll(struct pollfd *fds, nfds_t n, int timeout_ms);
