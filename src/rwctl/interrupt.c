/* interrupt.c -- Ctrl-C and its like: the first asks for an orderly end, the second kills */

#include "config.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <time.h>

#include "rwctl/interrupt.h"
#include "rwctl/rwctl.h"

static const int SIGNALS[] = {SIGINT, SIGTERM, SIGHUP};

#define N_SIGNALS (sizeof(SIGNALS) / sizeof(SIGNALS[0]))

static volatile sig_atomic_t caught;

static void
on_signal(int signo)
{
	caught = signo;
}

void
interrupt_setup(void)
{
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESETHAND}, old;

	sigemptyset(&action.sa_mask);
	for (size_t i = 0; i < N_SIGNALS; i++) {
		sigaction(SIGNALS[i], &action, &old);
		if (old.sa_handler == SIG_IGN) /* by nohup, or a shell's background */
			sigaction(SIGNALS[i], &old, NULL);
	}
}

int
interrupted(void)
{
	return caught;
}

int
interrupt_explain(void)
{
	complain("cancelled");
	return STATUS_SIGNAL + caught;
}

int
interrupt_poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
	struct timespec timeout = {timeout_ms / 1000, timeout_ms % 1000 * 1000000L};
	sigset_t block, old;
	int r = 0;

	/* A signal can come only inside ppoll(), or is seen before. */
	sigemptyset(&block);
	for (size_t i = 0; i < N_SIGNALS; i++)
		sigaddset(&block, SIGNALS[i]);
	sigprocmask(SIG_BLOCK, &block, &old);
	if (caught == 0)
		r = ppoll(fds, n, timeout_ms < 0 ? NULL : &timeout, &old);
	if (r == -1)
		r = -errno;
	/* One that comes together with something else is delivered only here. */
	sigprocmask(SIG_SETMASK, &old, NULL);
	return caught != 0 ? -EINTR : r;
}
