/* sink_memory.c -- the bytes stay in the region, from its start, contiguous */

#include "config.h"

#include <stdio.h>

#include "base/text.h"
#include "core/arrival.h"
#include "core/region.h"
#include "core/sink.h"

static unsigned
memory_begin(struct arrival *a, const struct rwp_begin *begin, struct rwp_deny *why)
{
	char asked[TEXT_SIZE_MAX], granted[TEXT_SIZE_MAX];

	if (begin->length == UINT64_MAX || begin->length <= a->region->size)
		return 0;
	why->size = begin->length;
	why->limit = a->region->size;
	snprintf(why->text, sizeof(why->text), "refused %s: the region granted is %s",
	    text_human_size(asked, begin->length), text_human_size(granted, a->region->size));
	return RWP_E_SIZE;
}

static unsigned
memory_place(const struct arrival *a, const struct rwp_record *r, struct rwp_deny *why)
{
	if (r->stream_off == a->received && r->region_off == r->stream_off)
		return 0;
	snprintf(why->text, sizeof(why->text),
	    "payload for offset %llu at region offset %llu; a memory region is filled in order",
	    (unsigned long long)r->stream_off, (unsigned long long)r->region_off);
	return RWP_E_PROTOCOL;
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
    .begin = memory_begin,
    .place = memory_place,
    .end = memory_end,
};
