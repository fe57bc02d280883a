/* test_blob.c -- blobs: fixed bytes, round trips, shrunken and hostile ones */

#include "config.h"

#include <errno.h>

#include "unit/hex.h"
#include "wire/rwp.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define HELLO_HEX                                          \
	"01 00 00 00 80 00 00 00 08 07 06 05 04 03 02 01 " \
	"01 00 05 00 61 6c 70 68 61 00 00 00 00 00 00 00 " \
	"02 00 05 00 62 c3 a9 74 61 00 00 00 00 00 00 00 " \
	"03 00 07 00 64 65 66 61 75 6c 74 00 00 00 00 00 " \
	"04 00 08 00 18 17 16 15 14 13 12 11 00 00 00 00 " \
	"05 00 08 00 28 27 26 25 24 23 22 21 00 00 00 00 " \
	"06 00 08 00 38 37 36 35 34 33 32 31 00 00 00 00 " \
	"07 00 0c 00 41 42 43 44 45 46 47 48 54 53 52 51"
#define GRANT_HEX                                          \
	"41 00 00 00 90 00 00 00 01 00 00 00 00 00 00 00 " \
	"10 00 08 00 00 f0 05 04 03 02 01 7f 00 00 00 00 " \
	"11 00 04 00 44 33 22 11 04 00 08 00 00 00 00 04 " \
	"00 00 00 00 00 00 00 00 12 00 04 00 07 00 00 00 " \
	"13 00 04 00 01 00 00 00 14 00 04 00 00 00 10 00 " \
	"15 00 08 00 00 00 80 00 00 00 00 00 00 00 00 00 " \
	"16 00 04 00 c8 00 00 00 17 00 04 00 d0 07 00 00 " \
	"18 00 08 00 61 00 00 00 00 00 00 00 00 00 00 00 " \
	"19 00 04 00 03 00 00 00 1a 00 04 00 62 65 74 61"
#define DENY_HEX                                           \
	"42 00 00 00 70 00 00 00 02 00 00 00 00 00 00 00 " \
	"20 00 04 00 16 00 00 00 21 00 09 00 74 6f 6f 20 " \
	"6c 61 72 67 65 00 00 00 22 00 0d 00 6d 61 78 2d " \
	"73 69 7a 65 20 3d 20 32 47 00 00 00 00 00 00 00 " \
	"04 00 08 00 00 00 00 80 00 00 00 00 00 00 00 00 " \
	"23 00 08 00 00 00 00 40 00 00 00 00 00 00 00 00 " \
	"24 00 04 00 dc 05 00 00 1a 00 01 00 62 00 00 00"
#define BEGIN_HEX                                          \
	"02 00 00 00 60 00 00 00 03 00 00 00 00 00 00 00 " \
	"30 00 09 00 6d 6f 64 65 6c 2e 62 69 6e 00 00 00 " \
	"31 00 08 00 00 00 00 28 00 00 00 00 00 00 00 00 " \
	"32 00 04 00 a4 01 00 00 33 00 08 00 00 d1 97 a6 " \
	"ff ff ff ff 00 00 00 00 34 00 10 00 e0 e1 e2 e3 " \
	"e4 e5 e6 e7 e8 e9 ea eb ec ed ee ef 00 00 00 00"
#define ONE_HEX                                            \
	"06 00 00 00 38 00 00 00 02 00 00 00 00 00 00 00 " \
	"30 00 09 00 68 65 6c 6c 6f 2e 74 78 74 00 00 00 " \
	"31 00 08 00 11 00 00 00 00 00 00 00 00 00 00 00 " \
	"3f 00 04 00 67 f6 a4 a4"

static const struct rwp_hello HELLO = {
    .writer = "alpha",
    .target = "b\xc3\xa9ta",
    .region = "default",
    .size = 0x1112131415161718,
    .offered = 0x2122232425262728,
    .required = 0x3132333435363738,
    .boot_id = "ABCDEFGH",
    .generation = 0x51525354,
};

static const struct rwp_grant GRANT = {
    .address = 0x7f0102030405f000,
    .size = 64 << 20,
    .in_flight = 8 << 20,
    .chosen = 0x61,
    .rkey = 0x11223344,
    .generation = 7,
    .sink = RWP_SINK_MEMORY,
    .segment = 1 << 20,
    .beat_ms = 200,
    .dead_ms = 2000,
    .region_id = 3,
    .host = "beta",
};

static const struct rwp_deny DENY = {
    .code = RWP_E_SIZE,
    .retry_ms = 1500,
    .size = UINT64_C(2) << 30,
    .limit = 1 << 30,
    .host = "b",
    .text = "too large",
    .fix = "max-size = 2G",
};

static const struct rwp_begin BEGIN = {
    .name = "model.bin",
    .length = 671088640,
    .mode = 0644,
    .mtime_ns = -1500000000,
    .id = {0xe0, 0xe1, 0xe2, 0xe3, 0xe4, 0xe5, 0xe6, 0xe7, 0xe8, 0xe9, 0xea, 0xeb, 0xec, 0xed, 0xee,
	0xef},
};

static const struct rwp_begin ONE = {.name = "hello.txt", .length = 17};

union message {
	struct rwp_hello hello;
	struct rwp_grant grant;
	struct rwp_deny deny;
	struct rwp_begin begin;
};

/* ---- the four codecs behind one face ---- */

static int
encode(unsigned kind, const void *m, uint64_t seq, void *buf, size_t size)
{
	switch (kind) {
	case RWP_HELLO:
		return rwp_hello_encode(m, seq, buf, size);
	case RWP_GRANT:
		return rwp_grant_encode(m, seq, buf, size);
	case RWP_BEGIN:
	case RWP_ONE:
		return rwp_begin_encode(m, kind, seq, buf, size);
	default:
		return rwp_deny_encode(m, kind, seq, buf, size);
	}
}

static int
decode_into(unsigned kind, const void *blob, size_t len, uint64_t seq, union message *ret)
{
	switch (kind) {
	case RWP_HELLO:
		return rwp_hello_decode(blob, len, seq, &ret->hello);
	case RWP_GRANT:
		return rwp_grant_decode(blob, len, seq, &ret->grant);
	case RWP_BEGIN:
	case RWP_ONE:
		return rwp_begin_decode(blob, len, kind, seq, &ret->begin);
	default:
		return rwp_deny_decode(blob, len, kind, seq, &ret->deny);
	}
}

/* Decodes; on failure the output must be as it was. */
static int
decode(unsigned kind, const void *blob, size_t len, uint64_t seq, union message *ret)
{
	void *copy = exact_copy(blob, len);
	union message untouched;
	int r;

	memset(ret, 0x5a, sizeof(*ret));
	memset(&untouched, 0x5a, sizeof(untouched));
	r = decode_into(kind, copy, len, seq, ret);
	if (r < 0)
		assert_memory_equal(ret, &untouched, sizeof(untouched));
	free(copy);
	return r;
}

static const struct {
	unsigned kind;
	uint64_t seq;
	const char *hex;
	const void *value;
	size_t size;
} MESSAGES[] = {
    {RWP_HELLO, 0x0102030405060708, HELLO_HEX, &HELLO, sizeof(HELLO)},
    {RWP_GRANT, 1, GRANT_HEX, &GRANT, sizeof(GRANT)},
    {RWP_DENY, 2, DENY_HEX, &DENY, sizeof(DENY)},
    {RWP_BEGIN, 3, BEGIN_HEX, &BEGIN, sizeof(BEGIN)},
    {RWP_ONE, 2, ONE_HEX, &ONE, sizeof(ONE)},
};

static void
test_vectors(void **state)
{
	uint8_t bytes[RWP_BLOB_MAX], out[RWP_BLOB_MAX];
	union message m;

	(void)state;
	for (unsigned i = 0; i < COUNT(MESSAGES); i++) {
		size_t len = unhex(MESSAGES[i].hex, bytes, sizeof(bytes));

		assert_int_equal(decode(MESSAGES[i].kind, bytes, len, MESSAGES[i].seq, &m), 0);
		assert_memory_equal(&m, MESSAGES[i].value, MESSAGES[i].size);
		assert_int_equal(
		    encode(MESSAGES[i].kind, MESSAGES[i].value, MESSAGES[i].seq, out, sizeof(out)),
		    len);
		assert_memory_equal(out, bytes, len);
	}
}

/* The blob of a DENY, a NOTICE and a RESULT is the same but for its kind. */
static void
test_kinds(void **state)
{
	static const unsigned kinds[] = {RWP_DENY, RWP_NOTICE, RWP_RESULT};
	uint8_t buf[RWP_BLOB_MAX];
	union message m;

	(void)state;
	for (unsigned i = 0; i < COUNT(kinds); i++) {
		int len = rwp_deny_encode(&DENY, kinds[i], 9, buf, sizeof(buf));

		assert_int_equal(buf[0], kinds[i]);
		for (unsigned j = 0; j < COUNT(kinds); j++)
			assert_int_equal(
			    decode(kinds[j], buf, (size_t)len, 9, &m), i == j ? 0 : -EBADMSG);
	}
}

/* ---- what is absent ---- */

static void
check_empty(unsigned kind, const union message *empty, size_t size, int expected_len)
{
	uint8_t buf[RWP_BLOB_MAX];
	union message m;
	int len = encode(kind, empty, 1, buf, sizeof(buf));

	assert_int_equal(len, expected_len);
	assert_int_equal(decode(kind, buf, (size_t)len, 1, &m), 0);
	assert_memory_equal(&m, empty, size);
}

/* Only what is required travels when all is zero or empty. */
static void
test_empty(void **state)
{
	union message empty;

	(void)state;
	memset(&empty, 0, sizeof(empty));
	check_empty(RWP_HELLO, &empty, sizeof(HELLO), 16 + 8 + 16 + 16);
	check_empty(RWP_GRANT, &empty, sizeof(GRANT), 16 + 3 * 16 + 6 * 8);
	check_empty(RWP_DENY, &empty, sizeof(DENY), 16 + 8);
	check_empty(RWP_BEGIN, &empty, sizeof(BEGIN), 16 + 16); /* a length of 0 is a length */
	empty.begin.length = UINT64_MAX;
	check_empty(RWP_BEGIN, &empty, sizeof(BEGIN), 16);
	check_empty(RWP_ONE, &empty, sizeof(BEGIN), 16 + 8);
}

/* Takes the TLV of that number out of a blob; returns the new length. */
static size_t
without(const uint8_t *blob, size_t len, unsigned kind, uint64_t seq, unsigned number, uint8_t *out)
{
	struct rwp_builder b;
	struct rwp_reader r;
	struct rwp_item item;

	assert_int_equal(rwp_blob_open(&r, blob, len, kind, seq), 0);
	rwp_blob_start(&b, out, RWP_BLOB_MAX, kind, seq);
	for (unsigned i = 0; rwp_blob_next(&r, &item) == 1; i++)
		if (i != number)
			rwp_put(&b, item.type, item.value, item.len);
	return (size_t)rwp_blob_finish(&b);
}

static void
test_required(void **state)
{
	/* One letter for each TLV in the order of the vector: required or optional. */
	static const char *const rules[] = {"ROOROOR", "RRRRRRRRROOO", "ROOOOOO", "OOOOO"};
	uint8_t bytes[RWP_BLOB_MAX], less[RWP_BLOB_MAX];
	union message m;

	(void)state;
	for (unsigned i = 0; i < COUNT(rules); i++) {
		size_t len = unhex(MESSAGES[i].hex, bytes, sizeof(bytes));

		for (unsigned n = 0; rules[i][n]; n++) {
			size_t rest =
			    without(bytes, len, MESSAGES[i].kind, MESSAGES[i].seq, n, less);

			assert_true(rest < len);
			assert_int_equal(decode(MESSAGES[i].kind, less, rest, MESSAGES[i].seq, &m),
			    rules[i][n] == 'R' ? -EBADMSG : 0);
		}
	}
}

/* ---- limits ---- */

static void
test_longest(void **state)
{
	struct rwp_deny longest = DENY;
	uint8_t buf[RWP_BLOB_MAX];
	union message m;
	int len;

	(void)state;
	memset(longest.host, 'h', LIMIT_NAME);
	memset(longest.text, 't', LIMIT_TEXT);
	memset(longest.fix, 'f', LIMIT_TEXT);
	len = rwp_deny_encode(&longest, RWP_NOTICE, 1, buf, sizeof(buf));
	assert_true(len > 2 * LIMIT_TEXT);
	assert_int_equal(decode(RWP_NOTICE, buf, (size_t)len, 1, &m), 0);
	assert_memory_equal(&m, &longest, sizeof(longest));
}

static void
check_name_of(size_t len, int expected)
{
	char name[LIMIT_FILE_NAME + 2];
	uint8_t buf[RWP_BLOB_MAX];
	struct rwp_builder b;
	union message m;

	memset(name, 'n', sizeof(name));
	rwp_blob_start(&b, buf, sizeof(buf), RWP_BEGIN, 1);
	rwp_put(&b, RWP_TLV_NAME, name, len);
	assert_int_equal(decode(RWP_BEGIN, buf, (size_t)rwp_blob_finish(&b), 1, &m), expected);
}

static void
test_text_limit(void **state)
{
	(void)state;
	check_name_of(0, 0);
	check_name_of(LIMIT_FILE_NAME, 0);
	check_name_of(LIMIT_FILE_NAME + 1, -EBADMSG);
}

static void
test_builder_overflow(void **state)
{
	static const uint8_t value[RWP_BLOB_MAX];
	uint8_t bytes[RWP_BLOB_MAX + 64];
	struct rwp_builder b;

	(void)state;
	for (unsigned i = 0; i < COUNT(MESSAGES); i++) {
		size_t len = unhex(MESSAGES[i].hex, bytes, sizeof(bytes));

		for (size_t size = 0; size < len; size++) {
			void *small = exact_copy(bytes, size);

			assert_int_equal(
			    encode(MESSAGES[i].kind, MESSAGES[i].value, 1, small, size), -EMSGSIZE);
			free(small);
		}
	}
	rwp_blob_start(&b, bytes, sizeof(bytes), RWP_DENY, 1);
	rwp_put(&b, 99, value, RWP_BLOB_MAX - 20);
	assert_int_equal(rwp_blob_finish(&b), RWP_BLOB_MAX);
	rwp_put(&b, 99, NULL, 0); /* fits the buffer, but not a blob */
	assert_int_equal(rwp_blob_finish(&b), -EMSGSIZE);
	rwp_blob_start(&b, bytes, sizeof(bytes), RWP_DENY, 1);
	rwp_put(&b, 99, value, SIZE_MAX);
	rwp_put_u32(&b, RWP_TLV_CODE, 1);
	assert_int_equal(rwp_blob_finish(&b), -EMSGSIZE);
}

/* ---- hostile ones ---- */

/* Cut anywhere, with the header as it was and with one that admits the cut: only a cut between TLVs
 * that takes nothing required away may pass, so as many as there are optional TLVs at the end. */
static void
test_shrunken(void **state)
{
	static const unsigned optional_at_end[] = {0, 3, 6, 5, 0};
	uint8_t bytes[RWP_BLOB_MAX];
	union message m;

	(void)state;
	for (unsigned i = 0; i < COUNT(MESSAGES); i++) {
		size_t whole = unhex(MESSAGES[i].hex, bytes, sizeof(bytes));
		unsigned passed = 0;

		for (size_t len = 0; len < whole; len++) {
			unsigned kind = MESSAGES[i].kind;
			int r;

			bytes[4] = (uint8_t)whole;
			assert_int_equal(decode(kind, bytes, len, MESSAGES[i].seq, &m), -EBADMSG);
			bytes[4] = (uint8_t)len;
			r = decode(kind, bytes, len, MESSAGES[i].seq, &m);
			assert_true(r == 0 || r == -EBADMSG);
			passed += r == 0;
		}
		assert_int_equal(passed, optional_at_end[i]);
	}
}

static const struct {
	unsigned at;
	uint8_t value;
	int result;
} HEADERS[] = {
    {0, 0x41, -EBADMSG},         /* another kind */
    {1, 0x01, -EBADMSG},         /* another kind */
    {2, 0x01, -EPROTONOSUPPORT}, /* flags */
    {3, 0x80, -EPROTONOSUPPORT}, /* flags */
    {4, 0x68, -EBADMSG},         /* shorter than blob_len */
    {4, 0x78, -EBADMSG},         /* longer */
    {4, 0x00, -EBADMSG},
    {5, 0x01, -EBADMSG},
    {7, 0xff, -EBADMSG},
    {8, 0x03, -EBADMSG}, /* the blob of another record */
    {15, 0x01, -EBADMSG},
};

static void
test_hostile_headers(void **state)
{
	uint8_t bytes[RWP_BLOB_MAX + 8] = {0};
	union message m;

	(void)state;
	for (unsigned i = 0; i < COUNT(HEADERS); i++) {
		size_t len = unhex(DENY_HEX, bytes, sizeof(bytes));

		bytes[HEADERS[i].at] = HEADERS[i].value;
		assert_int_equal(decode(RWP_DENY, bytes, len, 2, &m), HEADERS[i].result);
	}
	unhex(DENY_HEX, bytes, sizeof(bytes));
	bytes[4] = 0x88, bytes[5] = 0x0b; /* RWP_BLOB_MAX + 8 */
	assert_int_equal(decode(RWP_DENY, bytes, RWP_BLOB_MAX + 8, 2, &m), -EBADMSG);
}

#define CODE "20 00 04 00 10 00 00 00 "

/* What follows the header of a DENY. */
static const struct {
	const char *hex;
	int result;
} BODIES[] = {
    {CODE, 0}, {"20 80 04 00 10 00 00 00", 0},                   /* known, must */
    {CODE "77 00 03 00 01 02 03 00", 0},                         /* unknown */
    {"ff 7f 00 00 00 00 00 00 " CODE, 0},                        /* unknown and empty */
    {CODE "77 00 03 00 01 02 03 00 77 00 03 00 01 02 03 00", 0}, /* unknown, twice */
    {CODE "77 80 03 00 01 02 03 00", -EPROTONOSUPPORT},          /* unknown, must */
    {CODE "10 80 08 00 01 02 03 04 05 06 07 08 00 00 00 00", -EPROTONOSUPPORT}, /* a GRANT's */
    {CODE CODE, -EBADMSG},                                                      /* twice */
    {CODE "20 80 04 00 10 00 00 00", -EBADMSG}, /* twice, in two forms */
    {"", -EBADMSG},                             /* required */
    {"21 00 01 00 61 00 00 00", -EBADMSG},      /* required */
    {CODE "00 00 00 00 00 00 00 00", -EBADMSG}, /* type 0 */
    {CODE "00 80 00 00 00 00 00 00", -EBADMSG}, /* type 0 */
    {CODE "77 00 05 00 01 02 03 04", -EBADMSG}, /* beyond the end */
    {CODE "77 00 ff ff 01 02 03 04", -EBADMSG}, /* far beyond */
    {CODE "77 00 fc ff 01 02 03 04", -EBADMSG}, {"20 00 0c 00 10 00 00 00", -EBADMSG},
    {CODE "77 00 03 00 01 02 03 01", -EBADMSG},                         /* padding */
    {CODE "77 00 00 00 00 00 00 80", -EBADMSG},                         /* padding */
    {CODE "04 00 08 00 01 02 03 04 05 06 07 08 00 01 00 00", -EBADMSG}, /* padding */
    {"20 00 00 00 00 00 00 00", -EBADMSG},                              /* u32 of no bytes */
    {"20 00 03 00 10 00 00 00", -EBADMSG},                              /* u32 of 3 bytes */
    {"20 00 08 00 10 00 00 00 00 00 00 00 00 00 00 00", -EBADMSG},      /* u32 of 8 bytes */
    {CODE "04 00 04 00 01 02 03 04", -EBADMSG},                         /* u64 of 4 bytes */
    {CODE "04 00 09 00 01 02 03 04 05 06 07 08 09 00 00 00", -EBADMSG},
    {CODE "21 00 00 00 00 00 00 00", 0},        /* empty text */
    {CODE "21 00 03 00 e2 82 ac 00", 0},        /* a euro sign */
    {CODE "21 00 02 00 e2 82 00 00", -EBADMSG}, /* two thirds of it */
    {CODE "21 00 02 00 c0 80 00 00", -EBADMSG}, /* overlong NUL */
    {CODE "21 00 03 00 61 00 62 00", -EBADMSG}, /* NUL inside */
    {CODE "21 00 03 00 61 1b 62 00", -EBADMSG}, /* escape */
    {CODE "21 00 01 00 0a 00 00 00", -EBADMSG}, /* line feed */
};

static void
test_hostile_bodies(void **state)
{
	union message m;

	(void)state;
	for (unsigned i = 0; i < COUNT(BODIES); i++) {
		uint8_t bytes[256] = {RWP_DENY, [8] = 2};
		size_t len = 16 + unhex(BODIES[i].hex, bytes + 16, sizeof(bytes) - 16);
		int r;

		bytes[4] = (uint8_t)len;
		r = decode(RWP_DENY, bytes, len, 2, &m);
		if (r != BODIES[i].result)
			fail_msg("\"%s\": %d", BODIES[i].hex, r);
	}
}

/* No byte of a ONE's blob can change unnoticed. */
static void
test_check_covers(void **state)
{
	uint8_t bytes[RWP_BLOB_MAX];
	size_t len = unhex(ONE_HEX, bytes, sizeof(bytes));
	union message m;

	(void)state;
	for (size_t at = 0; at < len; at++) {
		for (unsigned bits = 1; bits < 256; bits++) {
			int r;

			bytes[at] ^= bits;
			r = decode(RWP_ONE, bytes, len, 2, &m);
			/* A CHECK that says it must be understood is still one. */
			if (r == 0 && !(at == len - 7 && bits == 0x80))
				fail_msg("byte %zu ^ %02x", at, bits);
			bytes[at] ^= bits;
		}
	}
}

static void
test_check_place(void **state)
{
	struct rwp_builder b;
	uint8_t buf[RWP_BLOB_MAX];
	union message m;

	(void)state;
	rwp_blob_start(&b, buf, sizeof(buf), RWP_ONE, 1);
	assert_int_equal(decode(RWP_ONE, buf, (size_t)rwp_blob_finish(&b), 1, &m), -EBADMSG);
	rwp_put_text(&b, RWP_TLV_NAME, "x");
	assert_int_equal(decode(RWP_ONE, buf, (size_t)rwp_blob_finish(&b), 1, &m), -EBADMSG);
	rwp_put_check(&b);
	assert_int_equal(decode(RWP_ONE, buf, (size_t)rwp_blob_finish(&b), 1, &m), 0);
	assert_string_equal(m.begin.name, "x");
	rwp_put_u32(&b, RWP_TLV_MODE, 0600); /* no longer last */
	assert_int_equal(decode(RWP_ONE, buf, (size_t)rwp_blob_finish(&b), 1, &m), -EBADMSG);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_vectors),
	    cmocka_unit_test(test_kinds),
	    cmocka_unit_test(test_empty),
	    cmocka_unit_test(test_required),
	    cmocka_unit_test(test_longest),
	    cmocka_unit_test(test_text_limit),
	    cmocka_unit_test(test_builder_overflow),
	    cmocka_unit_test(test_shrunken),
	    cmocka_unit_test(test_hostile_headers),
	    cmocka_unit_test(test_hostile_bodies),
	    cmocka_unit_test(test_check_covers),
	    cmocka_unit_test(test_check_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
