/* clock.h -- the time of day; durations are measured with loop_now() */

#pragma once

#include <stdint.h>
#include <time.h>

/* Nanoseconds since 1970 (CLOCK_REALTIME). */
static inline uint64_t
clock_realtime(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}
