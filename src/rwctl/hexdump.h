/* hexdump.h -- bytes for people, as hexdump -C shows them */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HEXDUMP_ROW 16

struct hexdump {
	uint64_t offset;
	uint8_t before[HEXDUMP_ROW]; /* the row above; equal ones show as one "*" */
	bool repeating;
};

/* Prints len bytes that follow those before; only the last call may have a len that is no multiple
 * of a row. */
void hexdump_put(struct hexdump *h, const void *bytes, size_t len);
/* Prints the offset of the end. */
void hexdump_end(const struct hexdump *h);
