/* steps.c -- a clock for tests whose other side lives in the same loop: time passes in small steps
 *
 * A machine that is busy, or a test that reckons for a while, stops both sides at once; the clock
 * would go on, and each would find the other dead, or late. So what a single step takes too long is
 * not counted, for us and for libevent, which finds this function before the C library's.
 */

#include "config.h"

#include <pthread.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define STEP UINT64_C(2000000) /* nanoseconds; a turn of a world waits for half of that */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static uint64_t
steps_to(uint64_t real)
{
	static uint64_t last, now;
	uint64_t ret;

	pthread_mutex_lock(&mutex);
	if (real > last) { /* else another thread looked later, and came first */
		now += last == 0 || real - last < STEP ? real - last : STEP;
		last = real;
	}
	ret = now;
	pthread_mutex_unlock(&mutex);
	return ret;
}

int
clock_gettime(clockid_t clock, struct timespec *ret)
{
	uint64_t now;

	if (syscall(SYS_clock_gettime, clock, ret) < 0)
		return -1;
	if (clock != CLOCK_MONOTONIC)
		return 0;
	now = steps_to((uint64_t)ret->tv_sec * 1000000000 + (uint64_t)ret->tv_nsec);
	ret->tv_sec = (time_t)(now / 1000000000);
	ret->tv_nsec = (long)(now % 1000000000);
	return 0;
}
