/* deadline.h -- a point in time by which something has to be done, or none */

#pragma once

#include <stdbool.h>
#include <stdint.h>

struct deadline {
	uint64_t at_ms; /* 0: none */
};

struct deadline deadline_in(uint64_t ns); /* 0: none */
/* What is left, for poll(2): -1 without a deadline, 0 when it has passed. */
int deadline_left_ms(struct deadline d);
