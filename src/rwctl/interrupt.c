/* interrupt.c -- Ctrl-C: the first asks for an orderly end, the second kills */

#include "config.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <time.h>

#include "rwctl/interrupt.h"

static volatile sig_atomic_t pressed;

static void
on_signal(int signo)
{
	(void)signo;
	pressed = 1;
}

void
interrupt_setup(void)
{
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESETHAND};

	sigemptyset(&action.sa_mask);
	sigaction(SIGINT, &action, NULL);
}

bool
interrupted(void)
{
	return pressed;
}

int
interrupt_poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
	struct timespec timeout = {timeout_ms / 1000, timeout_ms % 1000 * 1000000L};
	sigset_t block, old;
	int r = -EINTR;

	/* Ctrl-C can come only inside ppoll(), or is seen before. */
	sigemptyset(&block);
	sigaddset(&block, SIGINT);
	sigprocmask(SIG_BLOCK, &block, &old);
	if (!pressed)
		r = ppoll(fds, n, timeout_ms < 0 ? NULL : &timeout, &old);
	if (r == -1)
		r = -errno;
	sigprocmask(SIG_SETMASK, &old, NULL);
	return r;
}
