/* hexdump.c -- bytes for people, as hexdump -C shows them */

#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "rwctl/hexdump.h"

static void
print_row(uint64_t offset, const uint8_t *bytes, size_t len)
{
	printf("%08" PRIx64 " ", offset);
	for (size_t i = 0; i < HEXDUMP_ROW; i++) {
		printf(i == HEXDUMP_ROW / 2 ? "  " : " ");
		if (i < len)
			printf("%02x", bytes[i]);
		else
			printf("  ");
	}
	printf("  |");
	for (size_t i = 0; i < len; i++)
		putchar(bytes[i] >= 0x20 && bytes[i] < 0x7f ? bytes[i] : '.');
	printf("|\n");
}

void
hexdump_put(struct hexdump *h, const void *bytes, size_t len)
{
	const uint8_t *row = bytes;

	for (size_t n; len > 0; row += n, len -= n) {
		n = len < HEXDUMP_ROW ? len : HEXDUMP_ROW;
		if (h->offset > 0 && n == HEXDUMP_ROW && memcmp(row, h->before, n) == 0) {
			if (!h->repeating)
				puts("*");
			h->repeating = true;
		} else {
			print_row(h->offset, row, n);
			h->repeating = false;
		}
		memcpy(h->before, row, n);
		h->offset += n;
	}
}

void
hexdump_end(const struct hexdump *h)
{
	printf("%08" PRIx64 "\n", h->offset);
}
