/* test_private.c -- private data: fixed bytes, shrunken, altered and grown ones */

#include "config.h"

#include <errno.h>

#include "unit/hex.h"
#include "wire/rwp.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define REQUEST_HEX                                        \
	"52 57 50 31 01 03 38 02 05 00 00 80 d4 c3 b2 a1 " \
	"40 f0 06 05 04 03 02 01 a0 a1 a2 a3 a4 a5 a6 a7 " \
	"b0 b1 b2 b3 b4 b5 b6 b7 b8 b9 ba bb bc bd be bf " \
	"c0 c1 c2 c3 c4 c5 c6 c7"
#define REPLY_HEX                                          \
	"52 57 50 31 01 05 38 01 01 00 00 40 d4 c3 b2 a1 " \
	"80 f0 06 05 04 03 02 01 00 40 00 00 34 12 cd ab " \
	"a0 a1 a2 a3 a4 a5 a6 a7 b0 b1 b2 b3 b4 b5 b6 b7 " \
	"b8 b9 ba bb bc bd be bf"
#define REJECT_HEX                                                                             \
	"52 57 50 31 01 02 80 03 11 00 04 00 d0 07 00 00 6e 6f 70 65 00 00 00 00 00 00 00 00 " \
	"00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 " \
	"00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 " \
	"00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 " \
	"00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00"

static const struct rwp_request REQUEST = {
    .magic = RWP_MAGIC,
    .version_min = 1,
    .version_max = 3,
    .length = 56,
    .fabric = RWP_FABRIC_VERBS_IWARP,
    .flags = RWP_KEYED | RWP_DOORBELL | 0x80000000,
    .mailbox_rkey = 0xa1b2c3d4,
    .mailbox_addr = 0x010203040506f040,
    .key_id = {0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7},
    .nonce = {0xb0, 0xb1, 0xb2, 0xb3, 0xb4, 0xb5, 0xb6, 0xb7, 0xb8, 0xb9, 0xba, 0xbb, 0xbc, 0xbd,
	0xbe, 0xbf},
    .gate = {0xc0, 0xc1, 0xc2, 0xc3, 0xc4, 0xc5, 0xc6, 0xc7},
};

static const struct rwp_reply REPLY = {
    .magic = RWP_MAGIC,
    .version = 1,
    .ring_log2 = 5,
    .length = 56,
    .fabric = RWP_FABRIC_VERBS,
    .flags = RWP_KEYED | 0x40000000,
    .tail_rkey = 0xa1b2c3d4,
    .tail_addr = 0x010203040506f080,
    .tail_len = 16384,
    .generation = 0xabcd1234,
    .boot_id = {0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7},
    .nonce = {0xb0, 0xb1, 0xb2, 0xb3, 0xb4, 0xb5, 0xb6, 0xb7, 0xb8, 0xb9, 0xba, 0xbb, 0xbc, 0xbd,
	0xbe, 0xbf},
};

static const struct rwp_reject REJECT = {
    .magic = RWP_MAGIC,
    .version_min = 1,
    .version_max = 2,
    .length = 128,
    .fabric = RWP_FABRIC_IWARP,
    .reason = RWP_E_ADDRESS,
    .text_len = 4,
    .retry_after_ms = 2000,
    .text = "nope",
};

union private
{
	struct rwp_request request;
	struct rwp_reply reply;
	struct rwp_reject reject;
};

static int
request_decode(const void *buf, size_t len, union private *ret)
{
	return rwp_request_decode(buf, len, &ret->request);
}

static int
reply_decode(const void *buf, size_t len, union private *ret)
{
	return rwp_reply_decode(buf, len, &ret->reply);
}

static int
reject_decode(const void *buf, size_t len, union private *ret)
{
	return rwp_reject_decode(buf, len, &ret->reject);
}

static void
request_encode(const void *r, void *out)
{
	rwp_request_encode(r, out);
}

static void
reply_encode(const void *r, void *out)
{
	rwp_reply_encode(r, out);
}

static void
reject_encode(const void *r, void *out)
{
	rwp_reject_encode(r, out);
}

enum { REQ, REP, REJ };

static const struct {
	const char *hex;
	const void *value;
	size_t size;
	int (*decode)(const void *buf, size_t len, union private *ret);
	void (*encode)(const void *r, void *out);
} PRIVATE[] = {
    [REQ] = {REQUEST_HEX, &REQUEST, sizeof(REQUEST), request_decode, request_encode},
    [REP] = {REPLY_HEX, &REPLY, sizeof(REPLY), reply_decode, reply_encode},
    [REJ] = {REJECT_HEX, &REJECT, sizeof(REJECT), reject_decode, reject_encode},
};

/* Decodes; on failure the output must be as it was. */
static int
decode_private(unsigned which, const uint8_t *bytes, size_t len, union private *ret)
{
	void *copy = exact_copy(bytes, len);
	union private untouched;
	int r;

	memset(ret, 0x5a, sizeof(*ret));
	memset(&untouched, 0x5a, sizeof(untouched));
	r = PRIVATE[which].decode(copy, len, ret);
	if (r < 0)
		assert_memory_equal(ret, &untouched, sizeof(untouched));
	free(copy);
	return r;
}

static void
test_private_vectors(void **state)
{
	uint8_t bytes[256] = {0}, out[256];
	union private value;

	(void)state;
	for (unsigned i = 0; i < COUNT(PRIVATE); i++) {
		assert_int_equal(unhex(PRIVATE[i].hex, bytes, sizeof(bytes)), PRIVATE[i].size);
		for (size_t padding = 0; padding < 100; padding += 20) {
			size_t len = PRIVATE[i].size + padding;

			assert_int_equal(decode_private(i, bytes, len, &value), 0);
			assert_memory_equal(&value, PRIVATE[i].value, PRIVATE[i].size);
		}
		PRIVATE[i].encode(PRIVATE[i].value, out);
		assert_memory_equal(out, bytes, PRIVATE[i].size);
	}
}

static void
test_private_encode_fills_in(void **state)
{
	struct rwp_request request = REQUEST;
	uint8_t bytes[56], out[56];

	(void)state;
	request.magic = request.length = 0;
	rwp_request_encode(&request, out);
	unhex(REQUEST_HEX, bytes, sizeof(bytes));
	assert_memory_equal(out, bytes, sizeof(bytes));
}

static void
test_private_short(void **state)
{
	uint8_t bytes[128];
	union private value;

	(void)state;
	for (unsigned i = 0; i < COUNT(PRIVATE); i++) {
		size_t size = unhex(PRIVATE[i].hex, bytes, sizeof(bytes));

		for (size_t len = 0; len < size; len++)
			assert_int_equal(decode_private(i, bytes, len, &value), -EBADMSG);
	}
}

/* The vectors with up to two bytes changed. */
static const struct {
	unsigned which;
	uint8_t at, value, at2, value2;
	int result;
} ALTERED[] = {
    {REQ, 0, 'r', 0, 'r', -EBADMSG},
    {REQ, 3, '2', 3, '2', -EBADMSG},
    {REQ, 4, 2, 4, 2, -EPROTONOSUPPORT},
    {REQ, 4, 2, 6, 8,
	-EPROTONOSUPPORT}, /* what another version's length may be is not ours to say */
    {REQ, 4, 0, 5, 0, -EPROTONOSUPPORT},
    {REQ, 4, 3, 5, 0, -EPROTONOSUPPORT},
    {REQ, 4, 0, 5, 255, 0},
    {REQ, 6, 55, 6, 55, -EBADMSG},
    {REQ, 6, 57, 6, 57, -EBADMSG},
    {REQ, 6, 0, 6, 0, -EBADMSG},
    {REQ, 6, 255, 6, 255, -EBADMSG},
    {REQ, 16, 0x41, 16, 0x41, -EBADMSG}, /* a mailbox not at a multiple of 64 */
    {REQ, 7, 99, 11, 0xff, 0},           /* fabrics and flags are the caller's to judge */
    {REP, 0, 0, 0, 0, -EBADMSG},
    {REP, 4, 0, 4, 0, -EPROTONOSUPPORT},
    {REP, 4, 2, 4, 2, -EPROTONOSUPPORT},
    {REP, 6, 55, 6, 55, -EBADMSG},
    {REP, 6, 57, 6, 57, -EBADMSG},
    {REP, 5, 1, 5, 1, -EBADMSG},
    {REP, 5, 2, 5, 2, 0},
    {REP, 5, 7, 5, 7, 0},
    {REP, 5, 8, 5, 8, -EBADMSG}, /* the ring alone is as large as the area */
    {REP, 5, 13, 27, 0x10, -EBADMSG},
    {REP, 5, 12, 27, 0x10, 0},
    {REP, 5, 255, 5, 255, -EBADMSG},
    {REP, 16, 0x88, 16, 0x88, -EBADMSG},
    {REP, 24, 0x08, 24, 0x08, -EBADMSG},
    {REP, 25, 0x20, 25, 0x20, 0},        /* 8192 bytes, 32 records */
    {REP, 25, 0x1f, 24, 0xc0, -EBADMSG}, /* 64 bytes less */
    {REP, 25, 0x20, 5, 7, -EBADMSG},     /* 8192 bytes, 128 records: no room for blobs */
    {REJ, 1, 0, 1, 0, -EBADMSG},
    {REJ, 4, 7, 5, 9, 0}, /* no common version may be its reason */
    {REJ, 6, 129, 6, 129, -EBADMSG},
    {REJ, 6, 20, 6, 20, 0},
    {REJ, 6, 19, 6, 19, -EBADMSG}, /* the text ends after the struct */
    {REJ, 6, 16, 10, 0, 0},
    {REJ, 6, 15, 10, 0, -EBADMSG},
    {REJ, 10, 112, 10, 112, 0},
    {REJ, 10, 113, 10, 113, -EBADMSG},
    {REJ, 11, 0xff, 11, 0xff, -EBADMSG},
    {REJ, 9, 0xff, 8, 0xff, 0},
};

static void
test_private_altered(void **state)
{
	union private value;
	uint8_t bytes[128];

	(void)state;
	for (unsigned i = 0; i < COUNT(ALTERED); i++) {
		size_t len = unhex(PRIVATE[ALTERED[i].which].hex, bytes, sizeof(bytes));
		int r;

		bytes[ALTERED[i].at] = ALTERED[i].value;
		bytes[ALTERED[i].at2] = ALTERED[i].value2;
		r = decode_private(ALTERED[i].which, bytes, len, &value);
		if (r != ALTERED[i].result)
			fail_msg("row %u: %d", i, r);
	}
}

/* A later version 1 may have grown: more bytes, of which we know the first. */
static void
test_private_grown(void **state)
{
	uint8_t bytes[200];
	union private value;

	(void)state;
	memset(bytes, 0xee, sizeof(bytes));
	unhex(REPLY_HEX, bytes, sizeof(bytes));
	bytes[6] = 196;
	assert_int_equal(decode_private(REP, bytes, 196, &value), 0);
	assert_int_equal(value.reply.generation, REPLY.generation);
	assert_int_equal(decode_private(REP, bytes, 195, &value), -EBADMSG);
	unhex(REJECT_HEX, bytes, sizeof(bytes));
	bytes[6] = 148;
	bytes[10] = 113;
	assert_int_equal(decode_private(REJ, bytes, 148, &value), -EBADMSG);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_private_vectors),
	    cmocka_unit_test(test_private_encode_fills_in),
	    cmocka_unit_test(test_private_short),
	    cmocka_unit_test(test_private_altered),
	    cmocka_unit_test(test_private_grown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
