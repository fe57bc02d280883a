/* base64.c -- bytes as text and back */

#include "config.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "base/base64.h"

static const char DIGITS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* Up to three bytes as the highest of 24 bits. */
static uint32_t
gather(const uint8_t *p, size_t n)
{
	return (uint32_t)p[0] << 16 | (n > 1 ? p[1] << 8 : 0) | (n > 2 ? p[2] : 0);
}

char *
base64_encode(char *buf, const void *bytes, size_t len)
{
	const uint8_t *p = bytes;
	char *out = buf;

	for (size_t left = len; left > 0; left -= left < 3 ? left : 3, p += 3) {
		uint32_t bits = gather(p, left);

		*out++ = DIGITS[bits >> 18];
		*out++ = DIGITS[bits >> 12 & 63];
		*out++ = left > 1 ? DIGITS[bits >> 6 & 63] : '=';
		*out++ = left > 2 ? DIGITS[bits & 63] : '=';
	}
	*out = '\0';
	return buf;
}

/* The bytes of as many digits as fit; text is what encode makes of them, or it is no base64. */
int
base64_decode(const char *text, size_t len, void *out, size_t size)
{
	uint8_t bytes[BASE64_BYTES_MAX + 2] = {0};
	char again[BASE64_SIZE(BASE64_BYTES_MAX)];
	size_t n = 0;
	int r = -EINVAL;

	if (size > BASE64_BYTES_MAX || len != BASE64_SIZE(size) - 1)
		return -EINVAL;
	for (size_t i = 0; i < len; i += 4) {
		uint32_t bits = 0;

		for (size_t j = i; j < i + 4; j++) {
			const char *digit = text[j] != '\0' ? strchr(DIGITS, text[j]) : NULL;

			bits = bits << 6 | (digit != NULL ? (uint32_t)(digit - DIGITS) : 0);
		}
		bytes[n++] = (uint8_t)(bits >> 16);
		bytes[n++] = (uint8_t)(bits >> 8);
		bytes[n++] = (uint8_t)bits;
	}
	if (memcmp(base64_encode(again, bytes, size), text, len) == 0) {
		memcpy(out, bytes, size);
		r = 0;
	}
	explicit_bzero(bytes, sizeof(bytes));
	explicit_bzero(again, sizeof(again));
	return r;
}
