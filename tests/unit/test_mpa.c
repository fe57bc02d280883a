/* test_mpa.c -- MPA frames and FPDU framing, held to fixed bytes */

#include "config.h"

#include <errno.h>

#include "base/crc32c.h"
#include "fabric/mpa.h"
#include "hex.h"

#define REQUEST_KEY "4d 50 41 20 49 44 20 52 65 71 20 46 72 61 6d 65 "
#define REPLY_KEY   "4d 50 41 20 49 44 20 52 65 70 20 46 72 61 6d 65 "

static const uint8_t DATA[] = {0xde, 0xad, 0xbe, 0xef};

static int
decode(enum mpa_frame_type type, const char *hex, struct mpa_frame *ret, size_t *ret_size)
{
	static uint8_t bytes[MPA_FRAME_MAX + 64];

	return mpa_frame_decode(type, bytes, unhex(hex, bytes, sizeof(bytes)), ret, ret_size);
}

static void
assert_encodes(enum mpa_frame_type type, const struct mpa_frame *frame, const char *hex)
{
	uint8_t expected[MPA_FRAME_MAX], out[MPA_FRAME_MAX];
	size_t size = unhex(hex, expected, sizeof(expected));

	assert_int_equal(mpa_frame_encode(type, frame, out), size);
	assert_memory_equal(out, expected, size);
}

static void
revision_1(void **state)
{
	static const char *const hex = REQUEST_KEY "40 01 00 04 de ad be ef";
	struct mpa_frame frame;
	size_t size;

	(void)state;
	assert_int_equal(decode(MPA_REQUEST, hex, &frame, &size), 0);
	assert_int_equal(size, 24);
	assert_true(frame.crc && !frame.markers && !frame.rejected && !frame.enhanced);
	assert_int_equal(frame.revision, 1);
	assert_int_equal(frame.len, 4);
	assert_memory_equal(frame.data, DATA, 4);
	assert_encodes(MPA_REQUEST, &frame, hex);
	assert_encodes(MPA_REPLY, &frame, REPLY_KEY "40 01 00 04 de ad be ef");
}

static void
revision_2(void **state)
{
	static const char *const hex = REQUEST_KEY "50 02 00 08 00 01 00 01 de ad be ef";
	struct mpa_frame frame;
	size_t size;

	(void)state;
	assert_int_equal(decode(MPA_REQUEST, hex, &frame, &size), 0);
	assert_int_equal(size, 28);
	assert_true(frame.crc && frame.enhanced && !frame.peer_to_peer);
	assert_int_equal(frame.ird, 1);
	assert_int_equal(frame.ord, 1);
	assert_int_equal(frame.len, 4);
	assert_memory_equal(frame.data, DATA, 4);
	assert_encodes(MPA_REQUEST, &frame, hex);
}

static void
peer_to_peer(void **state)
{
	static const char *const hex = REQUEST_KEY "50 02 00 04 80 01 c0 01";
	struct mpa_frame frame;
	size_t size;

	(void)state;
	assert_int_equal(decode(MPA_REQUEST, hex, &frame, &size), 0);
	assert_true(frame.peer_to_peer);
	assert_int_equal(frame.ready, MPA_READY_WRITE | MPA_READY_READ);
	assert_int_equal(frame.ird, 1);
	assert_int_equal(frame.ord, 1);
	assert_int_equal(frame.len, 0);
	assert_encodes(MPA_REQUEST, &frame, hex);

	/* Without A, what B, C and D say does not count. */
	assert_int_equal(
	    decode(MPA_REQUEST, REQUEST_KEY "10 02 00 04 40 00 c0 00", &frame, &size), 0);
	assert_false(frame.peer_to_peer);
	assert_int_equal(frame.ready, 0);
}

static void
a_reject_is_a_reply(void **state)
{
	static const char *const hex = REPLY_KEY "30 02 00 05 00 00 00 00 6e";
	struct mpa_frame frame;
	size_t size;

	(void)state;
	assert_int_equal(decode(MPA_REPLY, hex, &frame, &size), 0);
	assert_true(frame.rejected && !frame.crc);
	assert_int_equal(frame.len, 1);
	assert_encodes(MPA_REPLY, &frame, hex);
	assert_int_equal(
	    decode(MPA_REQUEST, REQUEST_KEY "30 02 00 04 00 00 00 00", &frame, &size), 0);
	assert_false(frame.rejected);
}

static void
markers_are_seen(void **state)
{
	struct mpa_frame frame;
	size_t size;

	(void)state;
	assert_int_equal(decode(MPA_REQUEST, REQUEST_KEY "80 01 00 00", &frame, &size), 0);
	assert_true(frame.markers);
}

static void
reserved_bits_and_what_follows_do_not_matter(void **state)
{
	struct mpa_frame frame;
	size_t size;

	(void)state;
	assert_int_equal(
	    decode(MPA_REPLY, REPLY_KEY "1f 02 00 04 00 00 00 00 00 1f c1 40", &frame, &size), 0);
	assert_int_equal(size, 24);
	assert_int_equal(frame.len, 0);
}

static void
frames_come_in_pieces(void **state)
{
	uint8_t bytes[64];
	size_t len = unhex(REQUEST_KEY "50 02 00 08 00 01 00 01 de ad be ef", bytes, sizeof(bytes));
	struct mpa_frame frame;
	size_t size;

	(void)state;
	for (size_t i = 0; i < len; i++) {
		void *piece = exact_copy(bytes, i);

		assert_int_equal(mpa_frame_decode(MPA_REQUEST, piece, i, &frame, &size), -EAGAIN);
		free(piece);
	}
	assert_int_equal(mpa_frame_decode(MPA_REQUEST, bytes, len, &frame, &size), 0);
}

static void
what_is_no_frame_is_refused(void **state)
{
	static const struct {
		enum mpa_frame_type type;
		const char *hex;
		int error;
	} cases[] = {
	    {MPA_REQUEST, "47", -EBADMSG}, /* GET: known by its first octet */
	    {MPA_REQUEST, REPLY_KEY "40 01 00 00", -EBADMSG},
	    {MPA_REPLY, REQUEST_KEY "40 01 00 00", -EBADMSG},
	    {MPA_REQUEST, REQUEST_KEY "40 00 00 00", -EPROTONOSUPPORT},
	    {MPA_REQUEST, REQUEST_KEY "40 03 00 00", -EPROTONOSUPPORT},
	    {MPA_REQUEST, REQUEST_KEY "40 01 02 01", -EMSGSIZE},
	    {MPA_REQUEST, REQUEST_KEY "40 01 02 00", -EAGAIN},
	    {MPA_REQUEST, REQUEST_KEY "50 02 00 03 00 00 00", -EMSGSIZE},
	    {MPA_REQUEST, REQUEST_KEY "50 02 00 00", -EMSGSIZE},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct mpa_frame frame;
		size_t size;

		assert_int_equal(
		    decode(cases[i].type, cases[i].hex, &frame, &size), cases[i].error);
	}
}

/* ---- FPDUs ---- */

static void
sizes(void **state)
{
	static const struct {
		size_t emss, ulpdu;
	} limits[] = {
	    {1448, 1442},
	    {1460, 1454},
	    {1398, 1390},
	    {8949, 8942},
	    {0, 128},
	    {65483, 65474},
	    {SIZE_MAX, MPA_ULPDU_MAX},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
		assert_int_equal(mpa_ulpdu_max(limits[i].emss), limits[i].ulpdu);
	assert_int_equal(mpa_fpdu_size(14), 20);
	assert_int_equal(mpa_fpdu_size(31), 40);
	assert_int_equal(mpa_trailer_size(31), 7);
	assert_int_equal(mpa_fpdu_size(1442), 1448);
	for (size_t ulpdu = 0; ulpdu <= MPA_ULPDU_MAX; ulpdu++) {
		assert_int_equal(mpa_fpdu_size(ulpdu) % 4, 0);
		assert_in_range(mpa_trailer_size(ulpdu), MPA_CRC_SIZE, MPA_TRAILER_MAX);
	}
}

static void
assert_trailer(const char *hex, size_t ulpdu)
{
	uint8_t fpdu[128], trailer[MPA_TRAILER_MAX];
	size_t size = unhex(hex, fpdu, sizeof(fpdu));
	uint32_t crc = crc32c(0, fpdu, MPA_LENGTH_SIZE + ulpdu);

	assert_int_equal(size, mpa_fpdu_size(ulpdu));
	assert_int_equal(mpa_trailer(trailer, ulpdu, &crc), mpa_trailer_size(ulpdu));
	assert_memory_equal(trailer, fpdu + MPA_LENGTH_SIZE + ulpdu, mpa_trailer_size(ulpdu));
	assert_true(mpa_crc_matches(fpdu, ulpdu, NULL));
	assert_false(mpa_crc_is_zero(fpdu, ulpdu));
	for (size_t i = 0; i < size; i++) {
		fpdu[i] ^= 0x10;
		assert_false(mpa_crc_matches(fpdu, ulpdu, NULL));
		fpdu[i] ^= 0x10;
	}
}

/* A write of "Hello RDMA Write!", one without content, a Send of "Hello". */
static void
crcs(void **state)
{
	(void)state;
	assert_trailer(
	    "00 1f c1 40 00 00 01 00 00 00 00 00 00 00 10 00 48 65 6c 6c 6f 20 52 44 4d 41 "
	    "20 57 72 69 74 65 21 00 00 00 eb 06 46 47",
	    31);
	assert_trailer("00 0e c1 40 00 00 00 01 00 00 00 00 00 00 00 00 eb d3 4c 5f", 14);
	assert_trailer(
	    "00 17 41 43 00 00 00 00 00 00 00 00 00 00 00 01 00 00 00 00 48 65 6c 6c 6f 00 "
	    "00 00 20 f5 b1 01",
	    23);
}

/* RFC 5044, figure 5: an FPDU behind a marker, which the CRC covers. */
static void
crc_of_the_rfc(void **state)
{
	uint8_t bytes[64] = {0}, trailer[MPA_TRAILER_MAX], expected[4];
	uint32_t crc;

	(void)state;
	unhex("00 00 00 00 00 2a 41 43 00 00 00 00 00 00 00 00 00 00 00 01", bytes, sizeof(bytes));
	unhex("52 23 99 83", expected, sizeof(expected));
	crc = crc32c(0, bytes, 4 + MPA_LENGTH_SIZE + 42);
	assert_int_equal(mpa_trailer(trailer, 42, &crc), 4);
	assert_memory_equal(trailer, expected, 4);
}

static void
without_crc_the_field_is_zero(void **state)
{
	static const uint8_t zeros[MPA_TRAILER_MAX];
	uint8_t trailer[MPA_TRAILER_MAX];

	(void)state;
	memset(trailer, 0xff, sizeof(trailer));
	assert_int_equal(mpa_trailer(trailer, 31, NULL), 7);
	assert_memory_equal(trailer, zeros, 7);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(revision_1),
	    cmocka_unit_test(revision_2),
	    cmocka_unit_test(peer_to_peer),
	    cmocka_unit_test(a_reject_is_a_reply),
	    cmocka_unit_test(markers_are_seen),
	    cmocka_unit_test(reserved_bits_and_what_follows_do_not_matter),
	    cmocka_unit_test(frames_come_in_pieces),
	    cmocka_unit_test(what_is_no_frame_is_refused),
	    cmocka_unit_test(sizes),
	    cmocka_unit_test(crcs),
	    cmocka_unit_test(crc_of_the_rfc),
	    cmocka_unit_test(without_crc_the_field_is_zero),
	};

	return cmocka_run_group_tests_name("mpa", tests, NULL, NULL);
}
