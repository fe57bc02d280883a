/* arrival_check.c -- whether what a record of a transfer says can be */

#include "config.h"

#include <stdarg.h>
#include <stdio.h>

#include "core/arrival.h"
#include "core/arrival_check.h"
#include "core/priv.h"
#include "core/region.h"
#include "core/sink.h"

bool
arrival_check_ring(const struct arrival *a, const struct rwp_record *r, uint64_t *ret_ring)
{
	uint64_t size = a->region->size, at = a->ring % size;

	if (r->length > LIMIT_SEGMENT || r->region_off > size || r->length > size - r->region_off ||
	    (r->region_off != at && r->region_off != 0))
		return false;
	*ret_ring = a->ring + r->length + (r->region_off != at ? size - at : 0);
	return true;
}

static unsigned __attribute__((format(printf, 2, 3)))
broken(struct rwp_deny *why, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why->text, sizeof(why->text), fmt, ap);
	va_end(ap);
	return RWP_E_PROTOCOL;
}

unsigned
arrival_check_begin(const struct arrival *a, const struct rwp_begin *b, struct rwp_deny *why)
{
	const struct rwp_record *r = &a->record;

	if (a->channel->core->stopping)
		return RWP_E_SHUTDOWN;
	if (r->type == RWP_ONE && b->length != UINT64_MAX && b->length != r->length)
		return broken(why, "a ONE of %u bytes that says to be of %llu", r->length,
		    (unsigned long long)b->length);
	return 0;
}

unsigned
arrival_check_bytes(const struct arrival *a, struct rwp_deny *why)
{
	const struct rwp_record *r = &a->record;
	uint64_t size = region_bytes(a->region);

	if (r->type != RWP_ONE && r->length == 0)
		return broken(why, "a %s of no bytes", rwp_type_name(r->type));
	if (r->type != RWP_HOLE &&
	    (r->length > LIMIT_SEGMENT || r->region_off > size || r->length > size - r->region_off))
		return broken(why,
		    "%u bytes at %llu: a segment is at most %llu bytes and ends within %llu",
		    r->length, (unsigned long long)r->region_off, (unsigned long long)LIMIT_SEGMENT,
		    (unsigned long long)size);
	if (r->stream_off != a->received)
		return broken(why, "bytes for offset %llu, where %llu is next",
		    (unsigned long long)r->stream_off, (unsigned long long)a->received);
	if (r->length > a->announced - a->received)
		return broken(
		    why, "more bytes than the %llu announced", (unsigned long long)a->announced);
	return a->sink->place != NULL ? a->sink->place(a, r, why) : 0;
}

unsigned
arrival_check_end(const struct arrival *a, struct rwp_deny *why)
{
	const struct rwp_record *r = &a->record;

	if (r->stream_off == a->received && r->data_crc == a->crc &&
	    (a->announced == UINT64_MAX || a->announced == a->received))
		return 0;
	broken(why, "the end says %llu bytes with CRC32C %08x; %llu bytes with %08x arrived",
	    (unsigned long long)r->stream_off, r->data_crc, (unsigned long long)a->received,
	    a->crc);
	return RWP_E_CHECKSUM;
}
