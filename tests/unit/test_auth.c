/* test_auth.c -- keys, transcripts, MACs and keyed tags against vectors made with Python's hashlib
 * and hmac; keys as text
 */

#include "config.h"

#include <errno.h>

#include "base/base64.h"
#include "unit/hex.h"
#include "wire/auth.h"
#include "wire/rwp.h"

/* What the vectors are made from: bytes that count, in steps. */
struct input {
	uint8_t key[32], request[56], reply[60], hello[72], grant[128], blob[16];
};

static void
count(uint8_t *bytes, size_t n, unsigned from, unsigned step)
{
	for (size_t i = 0; i < n; i++)
		bytes[i] = (uint8_t)(from + i * step);
}

static struct input
make_input(void)
{
	struct input in = {0};

	count(in.key, sizeof(in.key), 0, 1);
	count(in.request, sizeof(in.request), 100, 1);
	count(in.reply, sizeof(in.reply), 10, 1);
	count(in.hello, sizeof(in.hello), 0, 7);
	count(in.grant, sizeof(in.grant), 0, 11);
	count(in.blob, sizeof(in.blob), 200, 1);
	return in;
}

static void
assert_hex(const void *bytes, size_t len, const char *hex)
{
	uint8_t expected[64];

	assert_int_equal(unhex(hex, expected, sizeof(expected)), len);
	assert_memory_equal(bytes, expected, len);
}

static void
test_request(void **state)
{
	struct input in = make_input();
	uint8_t out[AUTH_ID_SIZE];

	(void)state;
	assert_int_equal(auth_key_id(in.key, out), 0);
	assert_hex(out, sizeof(out), "e0 02 ab 7e 5e b8 d9 c5");
	assert_int_equal(auth_gate(in.key, in.request, out), 0);
	assert_hex(out, sizeof(out), "a7 12 ae 97 df 82 78 eb");
	in.request[48] ^= 1; /* the gate itself is in no gate */
	assert_int_equal(auth_gate(in.key, in.request, out), 0);
	assert_hex(out, sizeof(out), "a7 12 ae 97 df 82 78 eb");
}

static void
run_handshake(struct auth *a, const struct input *in, uint8_t hello[16], uint8_t grant[16])
{
	memset(a, 0, sizeof(*a));
	auth_start(a, in->key, in->request, sizeof(in->request));
	auth_reply(a, in->reply, sizeof(in->reply));
	assert_int_equal(auth_hello(a, in->hello, sizeof(in->hello), hello), 0);
	assert_int_equal(auth_grant(a, in->grant, sizeof(in->grant), grant), 0);
}

static void
test_handshake(void **state)
{
	static const struct auth NOTHING;
	struct input in = make_input();
	uint8_t hello[16], grant[16];
	struct auth a;

	(void)state;
	run_handshake(&a, &in, hello, grant);
	assert_hex(hello, 16, "b9 c8 92 c3 d6 6e b9 62 1c 5e 2f ca 63 75 8e c9");
	assert_hex(grant, 16, "41 15 d9 f2 91 ac e1 4d fd 51 07 07 c7 25 69 c3");
	assert_hex(a.writer_key, 32,
	    "09 68 f1 9c 0e 60 7c 0c 96 73 54 5f 35 6c d6 b2 "
	    "57 77 39 af 59 a2 c6 3a b3 71 2f 80 05 d8 a2 27");
	assert_hex(a.target_key, 32,
	    "25 22 93 83 1c ab 32 22 bd 92 41 81 97 99 14 7b "
	    "e5 b2 40 c3 6a 80 1b 3d 07 d9 6b 64 51 e6 cf cf");
	auth_done(&a);
	assert_memory_equal(&a, &NOTHING, sizeof(a));
}

/* Whatever differs, the later MACs and the session keys do too. */
static void
test_handshake_binds(void **state)
{
	struct input in = make_input(), other;
	uint8_t *const ALTERED[] = {
	    other.key, other.request + 55, other.reply + 59, other.hello + 71, other.grant + 127};
	uint8_t hello[16], grant[16], hello2[16], grant2[16];
	struct auth a, b;

	(void)state;
	run_handshake(&a, &in, hello, grant);
	for (unsigned i = 0; i < 5; i++) {
		other = in;
		*ALTERED[i] ^= 1;
		run_handshake(&b, &other, hello2, grant2);
		if (i < 4)
			assert_memory_not_equal(hello, hello2, 16);
		assert_memory_not_equal(grant, grant2, 16);
		assert_memory_not_equal(a.writer_key, b.writer_key, 32);
		assert_memory_not_equal(a.target_key, b.target_key, 32);
	}
}

static const struct rwp_record RECORD = {
    .type = RWP_DATA,
    .flags = RWP_MUST_UNDERSTAND,
    .blob_len = 16,
    .transfer = 0x06050403,
    .stream_off = 0x0e0d0c0b0a090807,
    .region_off = 0x161514131211100f,
    .length = 0x1a191817,
    .data_crc = 0x1e1d1c1b,
    .grant = 0x2221201f,
    .blob_off = 0x26252423,
    .seq = 0x2e2d2c2b2a292827,
};

static const struct rwp_line LINE = {
    .state = 0x04030201,
    .grant = 0x08070605,
    .consumed = 0x100f0e0d0c0b0a09,
    .released = 0x1817161514131211,
    .arrived = 0x201f1e1d1c1b1a19,
    .durable = 0x2827262524232221,
    .transfer = 0x2c2b2a29,
    .beat = 0x34333231302f2e2d,
};

static bool
is_signed(const void *wire, const void *blob, const uint8_t *key)
{
	struct rwp_record r;

	return rwp_record_load(wire, RECORD.seq, &r) == 0 && rwp_record_is_signed(&r, blob, key);
}

static void
test_record(void **state)
{
	struct input in = make_input();
	uint8_t wire[64], *const PLACES[] = {wire, wire + 39, wire + 40, wire + 55, in.blob,
			      in.blob + 15, in.key, in.key + 31};

	(void)state;
	rwp_record_encode(&RECORD, wire);
	assert_false(is_signed(wire, in.blob, in.key));
	rwp_record_sign(wire, in.blob, in.key);
	assert_hex(wire + 40, 16, "92 2d 20 43 b0 d7 69 3e 51 3a ea 08 d8 7e 8b 0b");
	assert_true(is_signed(wire, in.blob, in.key));
	for (unsigned i = 0; i < sizeof(PLACES) / sizeof(PLACES[0]); i++) {
		*PLACES[i] ^= 0x10;
		assert_false(is_signed(wire, in.blob, in.key));
		*PLACES[i] ^= 0x10;
	}
	assert_true(is_signed(wire, in.blob, in.key));
}

static void
test_line(void **state)
{
	struct input in = make_input();
	uint8_t wire[64];
	struct rwp_line l;

	(void)state;
	rwp_line_encode(&LINE, wire);
	assert_int_equal(rwp_line_decode_signed(wire, LINE.beat - 1, in.key, &l), -EBADMSG);
	rwp_line_sign(wire, in.key);
	assert_hex(wire + 44, 12, "ca f9 d4 4c 67 0b d2 ea 05 59 2e e1");
	assert_int_equal(rwp_line_decode_signed(wire, LINE.beat - 1, in.key, &l), 0);
	assert_int_equal(l.consumed, LINE.consumed);
	/* Once seen, or older than what was seen: not news. */
	assert_int_equal(rwp_line_decode_signed(wire, LINE.beat, in.key, &l), -EAGAIN);
	assert_int_equal(rwp_line_decode_signed(wire, LINE.beat + 1, in.key, &l), -EAGAIN);
	for (unsigned at = 0; at < 56; at++) {
		wire[at] ^= 0x10;
		assert_int_equal(rwp_line_decode_signed(wire, LINE.beat - 1, in.key, &l), -EBADMSG);
		wire[at] ^= 0x10;
	}
	assert_int_equal(rwp_line_decode(wire, LINE.beat - 1, &l), -EBADMSG);
}

static void
test_blob_mac(void **state)
{
	struct rwp_hello hello = {.writer = "alpha", .generation = 7}, again;
	uint8_t blob[256], *mac;
	int bare = rwp_hello_encode(&hello, 1, blob, sizeof(blob)), len = bare;
	const uint8_t *found;
	size_t before;

	(void)state;
	assert_null(rwp_blob_find_mac(blob, (size_t)len, &before));
	assert_null(rwp_blob_add_mac(blob, (size_t)bare + 23, &len));
	assert_int_equal(len, bare);
	mac = rwp_blob_add_mac(blob, (size_t)bare + 24, &len);
	assert_non_null(mac);
	assert_int_equal(len, bare + 24);
	assert_ptr_equal(mac, blob + bare + 4);
	count(mac, AUTH_MAC_SIZE, 1, 1);
	assert_int_equal(rwp_hello_decode(blob, (size_t)len, 1, &again), 0);
	found = rwp_blob_find_mac(blob, (size_t)len, &before);
	assert_ptr_equal(found, mac);
	assert_int_equal(before, bare);
	blob[len - 1] = 1; /* padding */
	assert_null(rwp_blob_find_mac(blob, (size_t)len, &before));
	for (size_t n = 0; n < 40; n++)
		assert_null(rwp_blob_find_mac(blob, n, &before));
}

static void
test_base64(void **state)
{
	static const struct {
		const char *bytes, *text;
	} VECTORS[] = {/* RFC 4648 */
	    {"", ""}, {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"}, {"foob", "Zm9vYg=="},
	    {"fooba", "Zm9vYmE="}, {"foobar", "Zm9vYmFy"}};
	static const char *const BAD[] = {
	    "Zg", "Zg=", "Zh==", "Zg=a", "====", "Zg==Zg==", "Z-==", " Zg=", "Zg\n="};
	char text[16];
	uint8_t bytes[8], bytes2[3] = {0xff, 0xfe, 0xfd};

	(void)state;
	for (unsigned i = 0; i < sizeof(VECTORS) / sizeof(VECTORS[0]); i++) {
		size_t n = strlen(VECTORS[i].bytes), len = strlen(VECTORS[i].text);

		assert_string_equal(base64_encode(text, VECTORS[i].bytes, n), VECTORS[i].text);
		assert_int_equal(base64_decode(VECTORS[i].text, len, bytes, n), 0);
		assert_memory_equal(bytes, VECTORS[i].bytes, n);
	}
	for (unsigned i = 0; i < sizeof(BAD) / sizeof(BAD[0]); i++)
		assert_int_equal(base64_decode(BAD[i], strlen(BAD[i]), bytes, 1), -EINVAL);
	assert_int_equal(base64_decode("Z\0==", 4, bytes, 1), -EINVAL);
	assert_string_equal(base64_encode(text, bytes2, 3), "//79");
	assert_int_equal(base64_decode("//79", 4, bytes, 3), 0);
	assert_memory_equal(bytes, bytes2, 3);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_request),
	    cmocka_unit_test(test_handshake),
	    cmocka_unit_test(test_handshake_binds),
	    cmocka_unit_test(test_record),
	    cmocka_unit_test(test_line),
	    cmocka_unit_test(test_blob_mac),
	    cmocka_unit_test(test_base64),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
