/* sink_discard.c -- the bytes are verified, and that is all: for measuring and dry runs */

#include "config.h"

#include "base/crc32c.h"
#include "core/arrival.h"
#include "core/sink.h"

static unsigned
discard_begin(struct arrival *a, const struct rwp_begin *begin, struct rwp_deny *why)
{
	(void)a;
	(void)begin;
	(void)why;
	return 0;
}

static int
discard_store(struct arrival *a, const uint8_t *bytes, uint32_t *ret_crc)
{
	uint32_t len = a->record.length;

	*ret_crc = bytes != NULL ? crc32c(0, bytes, len) : crc32c_zeros(len);
	return 0;
}

static unsigned
discard_end(struct arrival *a, struct rwp_deny *why)
{
	(void)a;
	(void)why;
	return RWP_ARRIVED;
}

const struct sink sink_discard = {
    .name = "discard",
    .kind = RWP_SINK_DISCARD,
    .ring = true,
    .sums = true,
    .begin = discard_begin,
    .store = discard_store,
    .end = discard_end,
};
