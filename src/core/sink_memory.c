/* sink_memory.c -- the bytes stay in the region, from the start of a buffer, contiguous */

#include "config.h"

#include <stdio.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/text.h"
#include "core/arrival.h"
#include "core/region.h"
#include "core/sink.h"

static unsigned
too_large(const struct arrival *a, uint64_t length, struct rwp_deny *why)
{
	char asked[TEXT_SIZE_MAX], granted[TEXT_SIZE_MAX];

	why->size = length;
	why->limit = a->region->size;
	snprintf(why->text, sizeof(why->text), "refused %s: the region granted is %s",
	    text_human_size(asked, length), text_human_size(granted, a->region->size));
	return RWP_E_SIZE;
}

static unsigned
memory_begin(struct arrival *a, const struct rwp_begin *begin, struct rwp_deny *why)
{
	if (begin->length == UINT64_MAX || begin->length <= a->region->size)
		return 0;
	return too_large(a, begin->length, why);
}

static unsigned
memory_place(const struct arrival *a, const struct rwp_record *r, struct rwp_deny *why)
{
	uint64_t base = region_base(a->region);

	if (r->length > a->region->size - a->received)
		return too_large(a, a->received + r->length, why);
	if (r->type == RWP_HOLE || r->region_off == base + r->stream_off)
		return 0;
	snprintf(why->text, sizeof(why->text),
	    "payload for offset %llu at region offset %llu; a memory region is filled in order, "
	    "here from %llu",
	    (unsigned long long)r->stream_off, (unsigned long long)r->region_off,
	    (unsigned long long)base);
	return RWP_E_PROTOCOL;
}

/* Zeros are laid out here, since an earlier transfer may have left something else. */
static int
memory_store(struct arrival *a, const uint8_t *bytes, uint32_t *ret_crc)
{
	uint32_t len = a->record.length;

	if (bytes == NULL)
		memset(
		    a->region->memory->pages.addr + region_base(a->region) + a->received, 0, len);
	*ret_crc = bytes != NULL ? crc32c(0, bytes, len) : crc32c_zeros(len);
	return 0;
}

static unsigned
memory_end(struct arrival *a, struct rwp_deny *why)
{
	(void)a;
	(void)why;
	return RWP_ARRIVED;
}

const struct sink sink_memory = {
    .name = "memory",
    .kind = RWP_SINK_MEMORY,
    .sums = true,
    .begin = memory_begin,
    .place = memory_place,
    .store = memory_store,
    .end = memory_end,
};
