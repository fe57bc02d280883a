/* random.h -- unpredictable bytes from the kernel */

#pragma once

#include <stddef.h>

/* Cannot fail: aborts if the kernel has no random bytes to give, rather than go on with guessable
 * ones. */
void random_bytes(void *buf, size_t len);
