/* placed.h -- checksums of what has been placed, out of those of its frames
 *
 * Each frame has been summed before its payload is placed. From these sums that of a whole write
 * follows without a look at its bytes. Kept for the last few long writes of one connection, as long
 * as nothing else is placed over them, and told once.
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLACED_RUNS 16

struct placed_run {
	const uint8_t *at;
	size_t len; /* 0: none */
	uint32_t crc;
};

struct placed { /* zeroed */
	struct placed_run runs[PLACED_RUNS];
	unsigned newest;
	size_t factor_len; /* of the last frame, and most */
	uint32_t factor;
};

struct placed_frame {
	uint32_t before; /* CRC32C of the octets before the payload */
	uint32_t whole;  /* ... and of both */
	bool goes_on;    /* the write that the frame before it belongs to */
};

/* len octets of a frame are at `at` now. */
void placed_add(struct placed *p, const void *at, size_t len, const struct placed_frame *frame);
/* What is known of these octets counts no more. True: just they were a write, of *ret_crc. */
bool placed_take(struct placed *p, const void *at, size_t len, uint32_t *ret_crc);
