/* crc32c.h -- CRC32C (Castagnoli; RFC 3720 appendix B.4, check value e3069283 of "123456789")
 *
 * The fence around isa-l. Two implementations: isa-l, and slice-by-8 for builds without it and for
 * machines where it is slower (emulated ones).
 */

#pragma once

#include <stddef.h>
#include <stdint.h>

/* Tests both implementations against known values and keeps the faster; slice-by-8 holds until
 * then. Call once before threads. -EIO: a check value is wrong (broken machine or build). */
int crc32c_init(void);
/* "isa-l" or "slice-by-8". */
const char *crc32c_name(void);

/* The CRC of what crc covered followed by these bytes; start with 0. Thread-safe. */
uint32_t crc32c(uint32_t crc, const void *data, size_t len);

/* The CRC of A followed by B, from the CRCs of both and the length of B, in O(log len_b). */
uint32_t crc32c_combine(uint32_t crc_a, uint32_t crc_b, uint64_t len_b);
/* The same for many B of one length, in O(1) each: factor_b is crc32c_factor(len_b). */
uint32_t crc32c_factor(uint64_t len_b);
uint32_t crc32c_join(uint32_t crc_a, uint32_t crc_b, uint32_t factor_b);

/* The CRC of len zeros, in O(log len). */
uint32_t crc32c_zeros(uint64_t len);
