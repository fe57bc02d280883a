/* crc32c.c -- CRC32C by isa-l or by slice-by-8, whichever is faster here */

#include "config.h"

#include <endian.h>
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <time.h>

#ifdef HAVE_ISAL
#include <isa-l/crc.h>
#endif

#include "base/crc32c.h"

#define POLYNOMIAL 0x82f63b78U /* bit-reflected: bit 31 is x^0, bit 0 is x^31; x^32 is implied */
#define ONE        0x80000000U /* x^0 */
#define X_8        0x00800000U /* x^8: what one more byte multiplies by */

/* table[k][b] is the effect of byte b with k more bytes to follow. */
static uint32_t table[8][256];

/* Before main(), so that crc32c() needs neither a call first nor a lock. */
__attribute__((constructor)) static void
make_table(void)
{
	for (unsigned b = 0; b < 256; b++) {
		uint32_t crc = b;

		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? POLYNOMIAL : 0);
		table[0][b] = crc;
	}
	for (int k = 1; k < 8; k++)
		for (unsigned b = 0; b < 256; b++)
			table[k][b] = table[k - 1][b] >> 8 ^ table[0][table[k - 1][b] & 0xff];
}

static uint32_t
slice_by_8(uint32_t crc, const void *data, size_t len)
{
	const unsigned char *p = data;

	crc = ~crc;
	for (; len >= 8; p += 8, len -= 8) {
		uint64_t word;

		memcpy(&word, p, 8);
		word = le64toh(word) ^ crc;
		crc = 0;
		for (int k = 7; k >= 0; k--, word >>= 8)
			crc ^= table[k][word & 0xff];
	}
	for (; len > 0; p++, len--)
		crc = crc >> 8 ^ table[0][(crc ^ *p) & 0xff];
	return ~crc;
}

#ifdef HAVE_ISAL
/* isa-l leaves both inversions to the caller, and counts bytes in an int. */
static uint32_t
isal(uint32_t crc, const void *data, size_t len)
{
	/* Not const in isa-l's prototype; it only reads. */
	unsigned char *p = (unsigned char *)(uintptr_t)data;

	crc = ~crc;
	while (len > 0) {
		int piece = len < INT_MAX ? (int)len : INT_MAX;

		crc = crc32_iscsi(p, piece, crc);
		p += piece;
		len -= (size_t)piece;
	}
	return ~crc;
}
#endif

struct method {
	const char *name;
	uint32_t (*run)(uint32_t crc, const void *data, size_t len);
};

static const struct method METHODS[] = {
    {"slice-by-8", slice_by_8},
#ifdef HAVE_ISAL
    {"isa-l", isal},
#endif
};

static const struct method *method = &METHODS[0];

/* The check value, and RFC 3720 B.4: 32 zero bytes, 32 bytes of ff. */
static int
check(const struct method *m)
{
	unsigned char bytes[32] = {0};

	if (m->run(0, "123456789", 9) != 0xe3069283 || m->run(0, bytes, 32) != 0x8a9136aa)
		return -EIO;
	memset(bytes, 0xff, sizeof(bytes));
	return m->run(0, bytes, 32) == 0x62a8ab43 ? 0 : -EIO;
}

/* Nanoseconds for 16 KiB, the best of several tries: others may be using the core. */
static int64_t
measure(const struct method *m)
{
	static const unsigned char BYTES[16384];
	int64_t best = INT64_MAX;

	for (int try = 0; try < 8; try++) {
		struct timespec from, to;
		int64_t ns;

		clock_gettime(CLOCK_MONOTONIC, &from);
		m->run(0, BYTES, sizeof(BYTES));
		clock_gettime(CLOCK_MONOTONIC, &to);
		ns = (to.tv_sec - from.tv_sec) * INT64_C(1000000000) + to.tv_nsec - from.tv_nsec;
		best = ns < best ? ns : best;
	}
	return best;
}

int
crc32c_init(void)
{
	const struct method *fastest = NULL;
	int64_t best = INT64_MAX;

	for (size_t i = 0; i < sizeof(METHODS) / sizeof(METHODS[0]); i++) {
		int64_t ns;

		if (check(&METHODS[i]) < 0)
			return -EIO;
		ns = measure(&METHODS[i]);
		if (fastest == NULL || ns < best) {
			fastest = &METHODS[i];
			best = ns;
		}
	}
	method = fastest;
	return 0;
}

const char *
crc32c_name(void)
{
	return method->name;
}

uint32_t
crc32c(uint32_t crc, const void *data, size_t len)
{
	return method->run(crc, data, len);
}

/* The product of two polynomials over GF(2), modulo the CRC's. */
static uint32_t
multiply(uint32_t a, uint32_t b)
{
	uint32_t product = 0;

	for (uint32_t bit = ONE; bit != 0; bit >>= 1) {
		if (a & bit)
			product ^= b;
		b = b >> 1 ^ (b & 1 ? POLYNOMIAL : 0); /* b times x */
	}
	return product;
}

/* x^(8 len): what len more bytes multiply a remainder by. */
uint32_t
crc32c_factor(uint64_t len)
{
	uint32_t product = ONE, square = X_8;

	for (; len > 0; len >>= 1) {
		if (len & 1)
			product = multiply(product, square);
		square = multiply(square, square);
	}
	return product;
}

/* The inversions of both CRCs cancel out. */
uint32_t
crc32c_join(uint32_t crc_a, uint32_t crc_b, uint32_t factor_b)
{
	return multiply(crc_a, factor_b) ^ crc_b;
}

uint32_t
crc32c_combine(uint32_t crc_a, uint32_t crc_b, uint64_t len_b)
{
	return crc32c_join(crc_a, crc_b, crc32c_factor(len_b));
}

uint32_t
crc32c_zeros(uint64_t len)
{
	return ~multiply(~UINT32_C(0), crc32c_factor(len));
}
