/* fuzz_mpa.c -- MPA's set-up frames
 *
 * Input: 0 request or 1 reply | what came on the stream
 */

#include "config.h"

#include <errno.h>
#include <string.h>

#include "fabric/mpa.h"
#include "fuzz/fuzz.h"

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	return 0;
}

static void
check_same(const struct mpa_frame *a, const struct mpa_frame *b)
{
	CHECK(a->markers == b->markers && a->crc == b->crc && a->rejected == b->rejected);
	CHECK(a->revision == b->revision && a->enhanced == b->enhanced);
	CHECK(a->peer_to_peer == b->peer_to_peer && a->ready == b->ready);
	CHECK(a->ird == b->ird && a->ord == b->ord);
	CHECK(a->len == b->len && memcmp(a->data, b->data, a->len) == 0);
}

/* What was understood can be said again, and means the same. */
static void
check_frame(enum mpa_frame_type type, const struct mpa_frame *frame)
{
	uint8_t again[MPA_FRAME_MAX];
	struct mpa_frame same;
	size_t size, same_size;

	size = mpa_frame_encode(type, frame, again);
	CHECK(mpa_frame_decode(type, again, size, &same, &same_size) == 0);
	CHECK(same_size == size);
	check_same(frame, &same);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum mpa_frame_type type = fuzz_take_byte(&data, &size) & 1 ? MPA_REPLY : MPA_REQUEST;
	struct mpa_frame frame;
	size_t frame_size;
	int r = mpa_frame_decode(type, data, size, &frame, &frame_size);

	CHECK(r == 0 || r == -EAGAIN || r == -EBADMSG || r == -EMSGSIZE || r == -EPROTONOSUPPORT);
	if (r == -EAGAIN)
		CHECK(size < MPA_FRAME_MAX);
	if (r < 0)
		return 0;
	CHECK(frame_size <= size && frame_size <= MPA_FRAME_MAX);
	CHECK(frame.data + frame.len == data + frame_size);
	check_frame(type, &frame);
	return 0;
}
