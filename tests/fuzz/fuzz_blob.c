/* fuzz_blob.c -- RWP's blobs
 *
 * Input: which message, with bit 7: header and CHECK are made right | the blob
 */

#include "config.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#include "base/crc32c.h"
#include "fuzz/fuzz.h"
#include "wire/rwp.h"

#define REPAIR     0x80
#define CHECK_SIZE 8

union message {
	struct rwp_hello hello;
	struct rwp_grant grant;
	struct rwp_deny deny;
	struct rwp_begin begin;
};

/* ---- one shape for all ---- */

static int
hello(const void *blob, size_t len, unsigned kind, uint64_t seq, union message *ret)
{
	(void)kind;
	return rwp_hello_decode(blob, len, seq, &ret->hello);
}

static int
hello_again(const union message *m, unsigned kind, uint64_t seq, void *out)
{
	(void)kind;
	return rwp_hello_encode(&m->hello, seq, out, RWP_BLOB_MAX);
}

static int
grant(const void *blob, size_t len, unsigned kind, uint64_t seq, union message *ret)
{
	(void)kind;
	return rwp_grant_decode(blob, len, seq, &ret->grant);
}

static int
grant_again(const union message *m, unsigned kind, uint64_t seq, void *out)
{
	(void)kind;
	return rwp_grant_encode(&m->grant, seq, out, RWP_BLOB_MAX);
}

static int
deny(const void *blob, size_t len, unsigned kind, uint64_t seq, union message *ret)
{
	return rwp_deny_decode(blob, len, kind, seq, &ret->deny);
}

static int
deny_again(const union message *m, unsigned kind, uint64_t seq, void *out)
{
	return rwp_deny_encode(&m->deny, kind, seq, out, RWP_BLOB_MAX);
}

static int
begin(const void *blob, size_t len, unsigned kind, uint64_t seq, union message *ret)
{
	return rwp_begin_decode(blob, len, kind, seq, &ret->begin);
}

static int
begin_again(const union message *m, unsigned kind, uint64_t seq, void *out)
{
	return rwp_begin_encode(&m->begin, kind, seq, out, RWP_BLOB_MAX);
}

static const struct kind {
	unsigned type;
	int (*decode)(
	    const void *blob, size_t len, unsigned kind, uint64_t seq, union message *ret);
	int (*encode)(const union message *m, unsigned kind, uint64_t seq, void *out);
} KINDS[] = {
    {RWP_HELLO, hello, hello_again},
    {RWP_GRANT, grant, grant_again},
    {RWP_DENY, deny, deny_again},
    {RWP_NOTICE, deny, deny_again},
    {RWP_RESULT, deny, deny_again},
    {RWP_BEGIN, begin, begin_again},
    {RWP_ONE, begin, begin_again},
};
#define N_KINDS (sizeof(KINDS) / sizeof(KINDS[0]))

/* ---- */

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	return crc32c_init();
}

/* So that an engine gets to the TLVs. */
static void
repair(uint8_t *blob, size_t len, unsigned type)
{
	struct rwp_blob_header *h = (struct rwp_blob_header *)blob;
	uint32_t crc;

	h->kind = htole16((uint16_t)type);
	h->flags = 0;
	h->length = htole32((uint32_t)len);
	if (type != RWP_ONE || len < sizeof(*h) + CHECK_SIZE)
		return;
	memcpy(blob + len - CHECK_SIZE, &(uint16_t[]){htole16(RWP_TLV_CHECK), htole16(4)}, 4);
	crc = htole32(crc32c(0, blob, len - CHECK_SIZE));
	memcpy(blob + len - sizeof(crc), &crc, sizeof(crc));
}

/* What was understood can be said again, and means the same. */
static void
check_again(const struct kind *k, const union message *m, uint64_t seq)
{
	union message same = {0};
	uint8_t blob[RWP_BLOB_MAX];
	int len = k->encode(m, k->type, seq, blob);

	CHECK(len > 0 && k->decode(blob, (size_t)len, k->type, seq, &same) == 0);
	CHECK(k->encode(&same, k->type, seq, blob) == len);
}

static void
check(const struct kind *k, const uint8_t *blob, size_t len)
{
	const struct rwp_blob_header *h = (const struct rwp_blob_header *)blob;
	uint64_t seq = len >= sizeof(*h) ? le64toh(h->seq) : 0;
	union message m = {0};
	int r;

	CHECK(k->decode(blob, len, k->type, seq + 1, &m) < 0);
	r = k->decode(blob, len, k->type, seq, &m);
	CHECK(r == 0 || r == -EBADMSG || r == -EPROTONOSUPPORT);
	if (r == 0)
		check_again(k, &m, seq);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t how = fuzz_take_byte(&data, &size);
	const struct kind *k = &KINDS[(how & ~REPAIR) % N_KINDS];
	uint8_t *blob = malloc(size); /* aligned, as the daemon's copies are */

	if (size > 0)
		memcpy(blob, data, size);
	if (how & REPAIR && size >= sizeof(struct rwp_blob_header))
		repair(blob, size, k->type);
	check(k, blob, size);
	free(blob);
	return 0;
}
