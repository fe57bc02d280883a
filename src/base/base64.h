/* base64.h -- bytes as text and back (RFC 4648, section 4), for keys in files */

#pragma once

#include <stddef.h>

/* Bytes that n bytes take as text, with the NUL. */
#define BASE64_SIZE(n) (((n) + 2) / 3 * 4 + 1)

/* buf: BASE64_SIZE(len). Returns buf. */
char *base64_encode(char *buf, const void *bytes, size_t len);
/* 0, or -EINVAL unless the text is base64 of exactly size bytes; out is untouched then. At most
 * BASE64_BYTES_MAX bytes. */
#define BASE64_BYTES_MAX 64
int base64_decode(const char *text, size_t len, void *out, size_t size);
