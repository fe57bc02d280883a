/* deadline.c -- a point in time by which something has to be done, or none */

#include "config.h"

#include <time.h>

#include "rwctl/deadline.h"

#define NSEC_PER_MSEC UINT64_C(1000000)

static uint64_t
now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * UINT64_C(1000) + ts.tv_nsec / NSEC_PER_MSEC;
}

struct deadline
deadline_in(uint64_t ns)
{
	uint64_t ms = ns / NSEC_PER_MSEC + (ns % NSEC_PER_MSEC != 0);

	return (struct deadline){ns == 0 ? 0 : now_ms() + ms};
}

int
deadline_left_ms(struct deadline d)
{
	uint64_t now = now_ms();

	if (d.at_ms == 0)
		return -1;
	if (d.at_ms <= now)
		return 0;
	return d.at_ms - now > INT32_MAX ? INT32_MAX : (int)(d.at_ms - now);
}
