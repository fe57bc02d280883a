/* test_rdmap.c -- DDP headers and RDMAP, held to fixed bytes */

#include "config.h"

#include "base/crc32c.h"
#include "fabric/rdmap.h"
#include "hex.h"

/* A write of "Hello RDMA Write!", STag 100, offset 1000; a Send; a Read Request. */
#define WRITE "00 1f c1 40 00 00 01 00 00 00 00 00 00 00 10 00 "
#define SEND  "00 17 41 43 00 00 00 00 00 00 00 00 00 00 00 01 00 00 00 00 "
#define READ                                                                                      \
	"00 2e 41 41 00 00 00 00 00 00 00 01 00 00 00 01 00 00 00 00 00 00 02 00 00 00 00 00 00 " \
	"00 20 00 00 00 00 11 00 00 01 00 00 00 00 00 00 00 10 00 "
#define TERMINATE(length) "00 " length " 41 47 00 00 00 00 00 00 00 02 00 00 00 01 00 00 00 00 "
#define WRITE_HEADER      "c1 40 00 00 01 00 00 00 00 00 00 00 10 00 "

static struct ddp_segment
decode(const char *hex)
{
	uint8_t bytes[RDMAP_TERMINATE_MAX];
	size_t size = unhex(hex, bytes, sizeof(bytes));
	uint8_t *copy = exact_copy(bytes, size);
	struct ddp_segment segment;

	ddp_decode(copy, &segment);
	free(copy);
	return segment;
}

static void
assert_header(const char *hex, const struct ddp_segment *segment)
{
	uint8_t expected[DDP_HEADER_MAX], out[DDP_HEADER_MAX];
	size_t size = unhex(hex, expected, sizeof(expected));

	assert_int_equal(ddp_encode(segment, out), size);
	assert_memory_equal(out, expected, size);
}

/* ---- headers ---- */

static void
tagged_headers(void **state)
{
	struct ddp_segment write = decode(WRITE), part;

	(void)state;
	assert_true(write.tagged && write.last);
	assert_int_equal(write.version, DDP_VERSION);
	assert_int_equal(write.control, rdmap_control(RDMAP_WRITE));
	assert_int_equal(write.ulpdu, 31);
	assert_int_equal(write.stag, 0x100);
	assert_int_equal(write.to, 0x1000);
	assert_header(WRITE, &write);

	part = decode("05 a2 81 40 ab cd ef 01 12 34 56 78 9a bc de f0");
	assert_true(part.tagged && !part.last);
	assert_int_equal(part.stag, 0xabcdef01);
	assert_int_equal(part.to, 0x123456789abcdef0);
	assert_header("05 a2 81 40 ab cd ef 01 12 34 56 78 9a bc de f0", &part);
}

static void
untagged_headers(void **state)
{
	static const char *const hex =
	    "00 12 01 44 11 22 33 44 00 00 00 01 00 00 00 02 00 00 00 03";
	struct ddp_segment send = decode(hex);

	(void)state;
	assert_true(!send.tagged && !send.last);
	assert_int_equal(rdmap_operation(&send), RDMAP_SEND_INVALIDATE);
	assert_int_equal(send.word, 0x11223344);
	assert_int_equal(send.queue, 1);
	assert_int_equal(send.msn, 2);
	assert_int_equal(send.mo, 3);
	assert_header(hex, &send);
}

static void
read_requests(void **state)
{
	uint8_t bytes[64];
	struct rdmap_read read;

	(void)state;
	unhex(READ, bytes, sizeof(bytes));
	rdmap_read_decode(bytes + ddp_payload_offset(false), &read);
	assert_int_equal(read.sink_stag, 0x200);
	assert_int_equal(read.sink_to, 0x2000);
	assert_int_equal(read.size, 17);
	assert_int_equal(read.source_stag, 0x100);
	assert_int_equal(read.source_to, 0x1000);
}

/* ---- the rules ---- */

static void
every_operation_has_its_rule(void **state)
{
	static const struct {
		const char *hex;
		int error;
		enum rdmap_error refusal;
	} cases[] = {
	    {WRITE, 0, 0},
	    {READ, 0, 0},
	    {TERMINATE("16") "11 00 00 00", 0, 0},
	    {"00 0e c1 42 00 00 00 01 00 00 00 00 00 00 00 00", 0, RDMAP_E_OPERATION},
	    {SEND, 0, DDP_E_NO_BUFFER},
	    {"00 12 41 44 00 00 00 00 00 00 00 00 00 00 00 01 00 00 00 00", 0, DDP_E_NO_BUFFER},
	    {"00 12 41 45 00 00 00 00 00 00 00 00 00 00 00 01 00 00 00 00", 0, DDP_E_NO_BUFFER},
	    {"00 12 41 46 00 00 00 00 00 00 00 00 00 00 00 01 00 00 00 00", 0, DDP_E_NO_BUFFER},
	    {"00 1a 41 48 00 00 00 00 00 00 00 00 00 00 00 01 00 00 00 00", 0, RDMAP_E_OPERATION},
	    {"00 46 41 4a 00 00 00 00 00 00 00 01 00 00 00 01 00 00 00 00", 0, RDMAP_E_OPERATION},
	    {"00 12 41 4c 00 00 00 00 00 00 00 00 00 00 00 01 00 00 00 00", RDMAP_E_OPERATION, 0},
	    {"00 12 41 4f 00 00 00 00 00 00 00 00 00 00 00 01 00 00 00 00", RDMAP_E_OPERATION, 0},
	    /* tagged and untagged the wrong way round */
	    {"00 1f 41 40 00 00 01 00 00 00 00 00 00 00 10 00 00 00 00 00", RDMAP_E_OPERATION, 0},
	    {"00 1f c1 43 00 00 01 00 00 00 00 00 00 00 10 00", RDMAP_E_OPERATION, 0},
	    /* versions */
	    {"00 1f c0 40 00 00 01 00 00 00 00 00 00 00 10 00", DDP_E_TAGGED_VERSION, 0},
	    {"00 1f c2 40 00 00 01 00 00 00 00 00 00 00 10 00", DDP_E_TAGGED_VERSION, 0},
	    {"00 12 40 43 00 00 00 00 00 00 00 00 00 00 00 01 00 00 00 00", DDP_E_UNTAGGED_VERSION,
		0},
	    {"00 1f c1 00 00 00 01 00 00 00 00 00 00 00 10 00", RDMAP_E_VERSION, 0},
	    {"00 1f c1 80 00 00 01 00 00 00 00 00 00 00 10 00", RDMAP_E_VERSION, 0},
	    /* shorter than their headers */
	    {"00 0d c1 40 00 00 01 00 00 00 00 00 00 00 10 00", MPA_E_LENGTH, 0},
	    {"00 0e c1 40 00 00 01 00 00 00 00 00 00 00 10 00", 0, 0},
	    {"00 11 41 43 00 00 00 00 00 00 00 00 00 00 00 01 00 00 00 00", MPA_E_LENGTH, 0},
	    {"00 2d 41 41 00 00 00 00 00 00 00 01 00 00 00 01 00 00 00 00", MPA_E_LENGTH, 0},
	    {"00 15 41 47 00 00 00 00 00 00 00 02 00 00 00 01 00 00 00 00", MPA_E_LENGTH, 0},
	    /* queues of others */
	    {"00 2e 41 41 00 00 00 00 00 00 00 00 00 00 00 01 00 00 00 00", DDP_E_QUEUE, 0},
	    {"00 16 41 47 00 00 00 00 00 00 00 03 00 00 00 01 00 00 00 00", DDP_E_QUEUE, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ddp_segment segment = decode(cases[i].hex);
		const struct rdmap_rule *rule = NULL;

		assert_int_equal(rdmap_check(&segment, &rule), cases[i].error);
		if (cases[i].error == 0)
			assert_int_equal(rule->refusal, cases[i].refusal);
		else
			assert_null(rule);
	}
}

/* ---- Terminate ---- */

static void
assert_terminate(enum rdmap_error error, const char *culprit, bool crc, const char *hex)
{
	uint8_t expected[RDMAP_TERMINATE_MAX], out[RDMAP_TERMINATE_MAX], bytes[64];
	size_t size = unhex(hex, expected, sizeof(expected));

	if (culprit != NULL)
		unhex(culprit, bytes, sizeof(bytes));
	assert_int_equal(
	    rdmap_terminate_encode(error, culprit != NULL ? bytes : NULL, crc, out), size);
	assert_memory_equal(out, expected, size);
}

static void
terminates_we_send(void **state)
{
	(void)state;
	assert_terminate(DDP_E_STAG, WRITE, true,
	    TERMINATE("26") "11 00 c0 00 00 1f " WRITE_HEADER "08 62 55 78");
	assert_terminate(DDP_E_STAG, NULL, true, TERMINATE("16") "11 00 00 00 7c b9 4e 29");
	assert_terminate(DDP_E_BOUNDS, WRITE, true,
	    TERMINATE("26") "11 01 c0 00 00 1f " WRITE_HEADER "ef 2e 6e c1");
	assert_terminate(MPA_E_CRC, WRITE, true, TERMINATE("16") "20 02 00 00 7f e4 25 85");
	assert_terminate(RDMAP_E_STREAM, READ, true,
	    TERMINATE("2a") "02 07 c0 00 00 2e 41 41 00 00 00 00 00 00 00 01 00 00 00 01 00 00 00 "
			    "00 19 dc 7d b5");
	assert_terminate(DDP_E_STAG, WRITE, false,
	    TERMINATE("26") "11 00 c0 00 00 1f " WRITE_HEADER "00 00 00 00");
}

/* Access rights are quoted with the read's own header, where there is one. */
static void
a_terminate_quotes_what_it_is_about(void **state)
{
	uint8_t out[RDMAP_TERMINATE_MAX], culprit[64];

	(void)state;
	unhex(READ, culprit, sizeof(culprit));
	assert_int_equal(
	    rdmap_terminate_encode(RDMAP_E_ACCESS, culprit, true, out), RDMAP_TERMINATE_MAX);
	assert_int_equal(out[22], 0xe0);
	assert_memory_equal(out + 24, culprit, 48);
	assert_true(mpa_crc_matches(out, 70, NULL));

	unhex(WRITE, culprit, sizeof(culprit));
	assert_int_equal(rdmap_terminate_encode(RDMAP_E_ACCESS, culprit, true, out), 44);
	assert_int_equal(out[22], 0xc0);
}

static unsigned
read_terminate(const char *hex, bool starting)
{
	uint8_t bytes[RDMAP_TERMINATE_MAX];
	struct rdmap_terminate terminate;

	unhex(hex, bytes, sizeof(bytes));
	rdmap_terminate_decode(bytes, starting, &terminate);
	assert_memory_equal(terminate.raw, bytes, 4);
	return terminate.error;
}

/* As RFC 5040 lays it out, and as siw on a little-endian machine does. */
static void
terminates_we_get(void **state)
{
	static const struct {
		const char *rfc, *siw;
		enum rdmap_error error;
	} cases[] = {
	    {"11 00 c0 00", "11 00 03 00", DDP_E_STAG},
	    {"11 01 c0 00", "11 01 03 00", DDP_E_BOUNDS},
	    {"11 04 00 00", "11 04 00 00", DDP_E_TAGGED_VERSION},
	    {"20 02 00 00", "02 02 00 00", MPA_E_CRC},
	    {"20 03 00 00", "02 03 00 00", MPA_E_LENGTH},
	    {"02 05 00 00", "20 05 00 00", RDMAP_E_VERSION},
	    {"02 06 00 00", "20 06 00 00", RDMAP_E_OPERATION},
	    {"12 02 c0 00", "21 02 03 00", DDP_E_NO_BUFFER},
	    {"02 07 c0 00", "20 07 03 00", RDMAP_E_STREAM},
	    {"10 00 c0 00", "01 00 03 00", DDP_E_LOCAL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(read_terminate(cases[i].rfc, false), cases[i].error);
		assert_int_equal(read_terminate(cases[i].siw, false), cases[i].error);
	}
	assert_int_equal(read_terminate("20 06 00 00", true), MPA_E_IRD);
	assert_int_equal(read_terminate("02 04 00 00", true), MPA_E_FRAME);
	assert_int_equal(read_terminate("02 06 00 00", true), RDMAP_E_OPERATION);
}

static void
errors_have_words(void **state)
{
	(void)state;
	assert_string_equal(rdmap_error_text(DDP_E_BOUNDS), "DDP: base or bounds violation");
	assert_string_equal(rdmap_error_text(MPA_E_CRC), "MPA: CRC error");
	assert_string_equal(rdmap_error_text(0xffff), "unknown error");
	assert_true(rdmap_error_is_access(DDP_E_STAG) && rdmap_error_is_access(DDP_E_WRAP) &&
		    rdmap_error_is_access(RDMAP_E_ACCESS));
	assert_false(rdmap_error_is_access(DDP_E_TAGGED_VERSION) ||
		     rdmap_error_is_access(MPA_E_CRC) || rdmap_error_is_access(DDP_E_NO_BUFFER));
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(tagged_headers),
	    cmocka_unit_test(untagged_headers),
	    cmocka_unit_test(read_requests),
	    cmocka_unit_test(every_operation_has_its_rule),
	    cmocka_unit_test(terminates_we_send),
	    cmocka_unit_test(a_terminate_quotes_what_it_is_about),
	    cmocka_unit_test(terminates_we_get),
	    cmocka_unit_test(errors_have_words),
	};

	return cmocka_run_group_tests_name("rdmap", tests, NULL, NULL);
}
