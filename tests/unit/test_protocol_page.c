/* test_protocol_page.c -- rwriter-protocol(7) shows what the codec makes: its example, its tables
 */

#include "config.h"

#include <ctype.h>
#include <stdio.h>

#include "base/crc32c.h"
#include "unit/hex.h"
#include "wire/auth.h"
#include "wire/rwp.h"

#define PAYLOAD      "Hello RDMA Write!"
#define PAYLOAD_SIZE (sizeof(PAYLOAD) - 1)
#define PAYLOAD_CRC  0x24ca7934

static char page[128 << 10];

static int
read_page(void **state)
{
	FILE *f = fopen(PROTOCOL_PAGE, "r");
	size_t n;

	(void)state;
	if (!f)
		return -1;
	n = fread(page, 1, sizeof(page) - 1, f);
	fclose(f);
	return n > 0 && n < sizeof(page) - 1 ? 0 : -1;
}

/* The first literal text under a heading; valid until the next call. */
static char *
literal_under(const char *macro, const char *heading)
{
	static char text[8192];
	char title[64];
	const char *start, *end;

	snprintf(title, sizeof(title), "\n%s %s\n", macro, heading);
	start = strstr(page, title);
	if (!start)
		fail_msg("the page has no \"%s\"", heading);
	start = strstr(start, "\n.Bd -literal\n");
	assert_non_null(start);
	start += strlen("\n.Bd -literal\n");
	end = strstr(start, ".Ed\n");
	assert_true(end && (size_t)(end - start) < sizeof(text));
	memcpy(text, start, (size_t)(end - start));
	text[end - start] = '\0';
	return text;
}

/* One line of a dump is "OFFSET  BYTE BYTE ...  what they are"; returns how many bytes it has. */
static size_t
dump_line(const char *line, size_t offset, uint8_t *out, size_t size)
{
	unsigned at, byte;
	size_t n = 0;

	assert_int_equal(sscanf(line, "%2x  ", &at), 1);
	assert_int_equal(at, offset);
	line += 4;
	for (; isxdigit((unsigned char)line[0]); line += 3) {
		assert_int_equal(sscanf(line, "%2x", &byte), 1);
		assert_true(n < size);
		out[n++] = (uint8_t)byte;
		if (!line[2] || line[3] == ' ')
			break;
	}
	return n;
}

static size_t
dump_under(const char *heading, uint8_t *out, size_t size)
{
	char *text = literal_under(".Ss", heading), *line;
	size_t n = 0;

	while ((line = strsep(&text, "\n")) && *line)
		n += dump_line(line, n, out + n, size - n);
	return n;
}

static void
assert_dump(const char *heading, const void *bytes, size_t len)
{
	uint8_t dump[256];
	size_t n = dump_under(heading, dump, sizeof(dump));

	if (n != len || memcmp(dump, bytes, len))
		fail_msg(
		    "\"%s\" of the page: %zu bytes, the encoder makes %zu others", heading, n, len);
}

/* ---- the session of EXAMPLES ---- */

#define BOOT_ID                                                \
	{                                                      \
		0x5f, 0x0c, 0x9a, 0x3b, 0xe1, 0x77, 0x4d, 0x28 \
	}

static const struct rwp_request REQUEST = {
    .magic = RWP_MAGIC,
    .version_min = 1,
    .version_max = 1,
    .length = sizeof(REQUEST),
    .fabric = RWP_FABRIC_VERBS,
    .mailbox_rkey = 0x1c2a,
    .mailbox_addr = 0x700000001000,
};

static const struct rwp_reply REPLY = {
    .magic = RWP_MAGIC,
    .version = 1,
    .ring_log2 = 5,
    .length = sizeof(REPLY),
    .fabric = RWP_FABRIC_VERBS,
    .tail_rkey = 0x2b01,
    .tail_addr = 0x600000020000,
    .tail_len = 8192,
    .generation = 7,
    .boot_id = BOOT_ID,
};

static const struct rwp_hello HELLO = {
    .writer = "alpha",
    .target = "beta",
    .size = PAYLOAD_SIZE,
    .boot_id = BOOT_ID,
    .generation = 7,
};

static const struct rwp_grant GRANT = {
    .address = 0x610000000000,
    .rkey = 0x2b02,
    .size = 65536,
    .generation = 1,
    .sink = RWP_SINK_MEMORY,
    .segment = 1 << 20,
    .in_flight = 8 << 20,
    .beat_ms = 500,
    .dead_ms = 5000,
    .region_id = 3,
    .host = "beta",
};

static const struct rwp_begin ONE = {.name = "hello.txt", .length = PAYLOAD_SIZE};

static const struct rwp_record ONE_RECORD = {.type = RWP_ONE,
    .transfer = 1,
    .length = PAYLOAD_SIZE,
    .data_crc = PAYLOAD_CRC,
    .grant = 1,
    .seq = 2};

static const struct rwp_record RESULT_RECORD = {.type = RWP_RESULT,
    .transfer = 1,
    .stream_off = PAYLOAD_SIZE,
    .length = RWP_ARRIVED,
    .data_crc = PAYLOAD_CRC,
    .grant = 1,
    .seq = 2};

static const struct rwp_line TARGET_LINE = {
    .state = RWP_LINE_OPEN,
    .grant = 1,
    .consumed = 2,
    .arrived = PAYLOAD_SIZE,
    .transfer = 1,
    .beat = 4,
};

static const struct rwp_line WRITER_LINE = {
    .state = RWP_LINE_OPEN, .grant = 1, .consumed = 2, .beat = 3};

static void
test_private_data(void **state)
{
	uint8_t out[64], dump[64];
	struct rwp_request request;
	struct rwp_reply reply;

	(void)state;
	rwp_request_encode(&REQUEST, out);
	assert_dump("The request", out, sizeof(REQUEST));
	dump_under("The request", dump, sizeof(dump));
	assert_int_equal(rwp_request_decode(dump, sizeof(REQUEST), &request), 0);
	assert_memory_equal(&request, &REQUEST, sizeof(request));

	rwp_reply_encode(&REPLY, out);
	assert_dump("The reply", out, sizeof(REPLY));
	dump_under("The reply", dump, sizeof(dump));
	assert_int_equal(rwp_reply_decode(dump, sizeof(REPLY), &reply), 0);
	assert_memory_equal(&reply, &REPLY, sizeof(reply));
}

static void
check_record(const char *heading, const struct rwp_record *r)
{
	uint8_t out[RWP_RECORD_SIZE], dump[RWP_RECORD_SIZE];
	struct rwp_record decoded;

	rwp_record_encode(r, out);
	assert_dump(heading, out, sizeof(out));
	dump_under(heading, dump, sizeof(dump));
	assert_int_equal(rwp_record_decode(dump, r->seq, &decoded), 0);
	memcpy(decoded.tag, r->tag, sizeof(decoded.tag));
	assert_memory_equal(&decoded, r, sizeof(decoded));
}

static void
check_line(const char *heading, const struct rwp_line *l)
{
	uint8_t out[64], dump[64];
	struct rwp_line decoded;

	rwp_line_encode(l, out);
	assert_dump(heading, out, sizeof(out));
	dump_under(heading, dump, sizeof(dump));
	assert_int_equal(rwp_line_decode(dump, l->beat - 1, &decoded), 0);
	memcpy(decoded.tag, l->tag, sizeof(decoded.tag));
	assert_memory_equal(&decoded, l, sizeof(decoded));
}

/* Returns the length, and the CRC that the record carries. */
static uint16_t
check_blob(const char *heading, const void *out, int len, uint32_t *ret_crc)
{
	assert_true(len > 0);
	assert_dump(heading, out, (size_t)len);
	*ret_crc = crc32c(0, out, (size_t)len);
	return (uint16_t)len;
}

static void
test_hello(void **state)
{
	struct rwp_record record = {.type = RWP_HELLO, .seq = 1};
	struct rwp_hello hello;
	uint8_t blob[256];
	int len = rwp_hello_encode(&HELLO, 1, blob, sizeof(blob));

	(void)state;
	record.blob_len = check_blob("HELLO: the blob", blob, len, &record.data_crc);
	check_record("HELLO: the record", &record);
	dump_under("HELLO: the blob", blob, sizeof(blob));
	assert_int_equal(rwp_hello_decode(blob, record.blob_len, 1, &hello), 0);
	assert_memory_equal(&hello, &HELLO, sizeof(hello));
}

static void
test_grant(void **state)
{
	struct rwp_record record = {.type = RWP_GRANT, .grant = 1, .seq = 1};
	struct rwp_grant grant;
	uint8_t blob[256];
	int len = rwp_grant_encode(&GRANT, 1, blob, sizeof(blob));

	(void)state;
	record.blob_len = check_blob("GRANT: the blob", blob, len, &record.data_crc);
	check_record("GRANT: the record", &record);
	dump_under("GRANT: the blob", blob, sizeof(blob));
	assert_int_equal(rwp_grant_decode(blob, record.blob_len, 1, &grant), 0);
	assert_memory_equal(&grant, &GRANT, sizeof(grant));
}

static void
test_one(void **state)
{
	struct rwp_record record = ONE_RECORD;
	struct rwp_begin one;
	uint8_t blob[256];
	int len = rwp_begin_encode(&ONE, RWP_ONE, 2, blob, sizeof(blob));

	(void)state;
	assert_dump("The payload", PAYLOAD, PAYLOAD_SIZE);
	record.blob_len = check_blob("ONE: the blob", blob, len, &record.data_crc);
	record.data_crc = PAYLOAD_CRC;
	record.blob_off = (uint32_t)dump_under("HELLO: the blob", blob, sizeof(blob));
	check_record("ONE: the record", &record);
	dump_under("ONE: the blob", blob, sizeof(blob));
	assert_int_equal(rwp_begin_decode(blob, record.blob_len, RWP_ONE, 2, &one), 0);
	assert_memory_equal(&one, &ONE, sizeof(one));
}

static void
test_result_and_bye(void **state)
{
	struct rwp_record result = RESULT_RECORD;
	struct rwp_record bye = {.type = RWP_BYE, .seq = 3};

	(void)state;
	check_record("RESULT: the record", &result);
	check_record("BYE: the record", &bye);
}

static void
test_lines(void **state)
{
	(void)state;
	check_line("The target's line", &TARGET_LINE);
	check_line("The writer's line", &WRITER_LINE);
}

/* ---- the same session with a key ---- */

static uint8_t key[AUTH_KEY_SIZE];

static void
count(uint8_t *bytes, size_t n, unsigned from)
{
	for (size_t i = 0; i < n; i++)
		bytes[i] = (uint8_t)(from + i);
}

/* Request and reply, as the page shows them, begin the handshake. */
static void
begin_keyed(struct auth *auth)
{
	struct rwp_request request = REQUEST;
	struct rwp_reply reply = REPLY;
	uint8_t out[64];

	memset(auth, 0, sizeof(*auth));
	count(key, sizeof(key), 0);
	request.flags = reply.flags = RWP_KEYED;
	count(request.nonce, sizeof(request.nonce), 0x20);
	count(reply.nonce, sizeof(reply.nonce), 0x30);
	assert_int_equal(auth_key_id(key, request.key_id), 0);
	rwp_request_encode(&request, out);
	assert_int_equal(auth_gate(key, out, out + offsetof(struct rwp_request, gate)), 0);
	assert_dump("Keyed: the request", out, sizeof(request));
	auth_start(auth, key, out, sizeof(request));
	rwp_reply_encode(&reply, out);
	assert_dump("Keyed: the reply", out, sizeof(reply));
	auth_reply(auth, out, sizeof(reply));
}

/* The MAC of a blob of len bytes, which is put behind it, as the page shows it. */
static int
check_mac(const char *heading, struct auth *auth, uint8_t *blob, size_t size, int len,
    int (*fn)(struct auth *, const void *, size_t, uint8_t *))
{
	int before = len;
	uint8_t *mac = rwp_blob_add_mac(blob, size, &len);

	assert_non_null(mac);
	assert_int_equal(fn(auth, blob, (size_t)before, mac), 0);
	assert_dump(heading, blob + before, (size_t)(len - before));
	return len;
}

static void
check_tag(const char *heading, const struct rwp_record *r, const void *blob, const uint8_t *with)
{
	uint8_t out[RWP_RECORD_SIZE];

	rwp_record_encode(r, out);
	rwp_record_sign(out, blob, with);
	assert_dump(heading, out + offsetof(struct rwp_record, tag), AUTH_MAC_SIZE);
}

static void
test_keyed(void **state)
{
	struct rwp_record one = ONE_RECORD, result = RESULT_RECORD;
	uint8_t blob[256], keys[2 * AUTH_KEY_SIZE], line[64];
	struct auth auth;
	int hello_len, len;

	(void)state;
	begin_keyed(&auth);
	hello_len = check_mac("Keyed: the end of HELLO", &auth, blob, sizeof(blob),
	    rwp_hello_encode(&HELLO, 1, blob, sizeof(blob)), auth_hello);
	check_mac("Keyed: the end of GRANT", &auth, blob, sizeof(blob),
	    rwp_grant_encode(&GRANT, 1, blob, sizeof(blob)), auth_grant);
	memcpy(keys, auth.writer_key, AUTH_KEY_SIZE);
	memcpy(keys + AUTH_KEY_SIZE, auth.target_key, AUTH_KEY_SIZE);
	assert_dump("Keyed: the session keys", keys, sizeof(keys));

	len = rwp_begin_encode(&ONE, RWP_ONE, 2, blob, sizeof(blob));
	one.blob_len = (uint16_t)len;
	one.blob_off = (uint32_t)hello_len;
	check_tag("Keyed: the tag of ONE", &one, blob, auth.writer_key);
	check_tag("Keyed: the tag of RESULT", &result, NULL, auth.target_key);
	rwp_line_encode(&WRITER_LINE, line);
	rwp_line_sign(line, auth.writer_key);
	assert_dump("Keyed: the tag of the writer's line", line + offsetof(struct rwp_line, tag),
	    sizeof(WRITER_LINE.tag));
}

/* ---- the tables ---- */

static void
test_codes(void **state)
{
	char *text = literal_under(".Sh", "CODES"), *line, word[32];
	unsigned code, codes = 0, rows = 0;
	int words;

	(void)state;
	for (unsigned i = 0; i < 256; i++)
		codes += !!rwp_code_text(i);
	for (; (line = strsep(&text, "\n")) && *line; rows++) {
		assert_int_equal(sscanf(line, "%u %31s %n", &code, word, &words), 2);
		assert_non_null(rwp_code_text(code));
		assert_memory_equal(line + words, rwp_code_text(code), strlen(rwp_code_text(code)));
	}
	assert_int_equal(rows, codes);
}

static void
test_record_types(void **state)
{
	(void)state;
	for (unsigned type = 0; type < 256; type++) {
		char row[32];

		if (!rwp_type_name(type))
			continue;
		snprintf(row, sizeof(row), "\n %-3u %s ", type, rwp_type_name(type));
		if (!strstr(page, row))
			fail_msg("the page has no record \"%s\"", row + 1);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_private_data),
	    cmocka_unit_test(test_hello),
	    cmocka_unit_test(test_grant),
	    cmocka_unit_test(test_one),
	    cmocka_unit_test(test_result_and_bye),
	    cmocka_unit_test(test_lines),
	    cmocka_unit_test(test_keyed),
	    cmocka_unit_test(test_codes),
	    cmocka_unit_test(test_record_types),
	};

	return cmocka_run_group_tests(tests, read_page, NULL);
}
