/* records.c -- the records of the transfers that one connection sends, and where their bytes go */

#include "config.h"

#include <errno.h>
#include <string.h>

#include "base/crc32c.h"
#include "core/channel.h"
#include "core/records.h"
#include "core/source.h"
#include "wire/message.h"

/* Slots of the target's ring that are left for last words: ABORT and BYE. */
#define SPARE_SLOTS 2

void
records_init(struct records *r, struct channel *ch, const struct rwp_grant *grant)
{
	*r = (struct records){.channel = ch, .grant = grant};
}

bool
records_is_ring(const struct records *r)
{
	return r->grant->sink != RWP_SINK_MEMORY;
}

int
records_released(struct records *r, uint64_t released)
{
	if (released < r->released || released > r->position)
		return -EPROTO;
	r->released = released;
	return 0;
}

/* ---- how far it is ---- */

void
records_start(struct records *r)
{
	r->begun = false;
	records_go_on(r, 0, 0);
}

void
records_go_on(struct records *r, uint64_t offset, uint32_t crc)
{
	r->done = offset;
	r->crc = crc;
}

static void
add_hole(struct records *r, uint64_t len)
{
	r->crc = crc32c_combine(r->crc, crc32c_zeros(len), len);
	r->done += len;
}

static void
add_bytes(struct records *r, const struct source_read *read)
{
	r->crc = crc32c_combine(r->crc, read->crc, read->len);
	r->done += read->len;
}

void
records_add(struct records *r, const struct source_read *read)
{
	add_hole(r, read->next - r->done - read->len); /* before them, or in their place */
	add_bytes(r, read);
}

/* ---- pushing ---- */

static int
push(struct records *r, struct rwp_record *record, const uint8_t *blob, int blob_len,
    const struct area_payload *payload)
{
	if (area_out_slots(&r->channel->out) <= SPARE_SLOTS)
		return -EAGAIN;
	record->transfer = r->number;
	record->grant = r->grant->generation;
	return channel_push(r->channel, record, blob, blob_len, payload);
}

static int
describe(struct records *r, unsigned type, struct rwp_begin what, uint8_t blob[RWP_BLOB_MAX])
{
	if (r->grant->sink != RWP_SINK_SPOOL)
		memset(what.id, 0, sizeof(what.id));
	return rwp_begin_encode(&what, type, area_out_seq(&r->channel->out), blob, RWP_BLOB_MAX);
}

/* ONE and BEGIN make the transfer known. */
static int
push_first(struct records *r, struct rwp_record *record, const struct rwp_begin *what,
    const struct area_payload *payload)
{
	uint8_t blob[RWP_BLOB_MAX];
	int len = describe(r, record->type, *what, blob), error;

	r->number++;
	error = push(r, record, blob, len, payload);
	if (error < 0)
		r->number--;
	r->begun = error == 0;
	return error;
}

/* Where the next bytes go: in a ring behind the last ones, in one piece. *ret_used: bytes of the
 * ring that they take. -EAGAIN: there is no room yet. */
static int
place(const struct records *r, uint32_t len, uint64_t *ret, uint64_t *ret_used)
{
	uint64_t size = r->grant->size, at = r->position % size;
	uint64_t skip = at + len > size ? size - at : 0;

	if (r->channel->out.unconsumed + len > r->grant->in_flight)
		return -EAGAIN;
	*ret_used = 0;
	if (!records_is_ring(r)) {
		*ret =
		    r->arrivals % (r->grant->buffers > 1 ? r->grant->buffers : 1) * size + r->done;
		return 0;
	}
	if (r->position + skip + len - r->released > size)
		return -EAGAIN;
	*ret = (at + skip) % size;
	*ret_used = skip + len;
	return 0;
}

/* what: ONE; NULL: DATA. */
static int
push_payload(struct records *r, const struct rwp_begin *what, const struct source_read *read,
    struct fabric_mem *mem, uint64_t *ret_seq)
{
	struct rwp_record record = {.type = what != NULL ? RWP_ONE : RWP_DATA,
	    .stream_off = r->done,
	    .length = read->len,
	    .data_crc = read->crc};
	struct area_payload payload;
	uint64_t used;
	int error = place(r, read->len, &record.region_off, &used);

	if (error < 0)
		return error;
	payload = (struct area_payload){
	    .mem = read->len > 0 ? mem : NULL,
	    .addr = read->buf,
	    .len = read->len,
	    .remote_addr = r->grant->address + record.region_off,
	    .rkey = r->grant->rkey,
	};
	error = what != NULL ? push_first(r, &record, what, &payload)
			     : push(r, &record, NULL, 0, &payload);
	if (error < 0)
		return error;
	r->position += used;
	add_bytes(r, read);
	*ret_seq = record.seq;
	return 0;
}

int
records_one(struct records *r, const struct rwp_begin *what, const struct source_read *read,
    struct fabric_mem *mem, uint64_t *ret_seq)
{
	return push_payload(r, what, read, mem, ret_seq);
}

int
records_begin(struct records *r, const struct rwp_begin *what)
{
	struct rwp_record record = {.type = RWP_BEGIN};

	return push_first(r, &record, what, NULL);
}

int
records_data(
    struct records *r, const struct source_read *read, struct fabric_mem *mem, uint64_t *ret_seq)
{
	return push_payload(r, NULL, read, mem, ret_seq);
}

int
records_hole(struct records *r, uint64_t end)
{
	uint64_t len = end - r->done < UINT32_MAX ? end - r->done : UINT32_MAX;
	struct rwp_record record = {.type = RWP_HOLE, .stream_off = r->done, .length = len};
	int error = push(r, &record, NULL, 0, NULL);

	if (error < 0)
		return error;
	add_hole(r, len);
	return 0;
}

int
records_end(struct records *r)
{
	struct rwp_record record = {.type = RWP_END, .stream_off = r->done, .data_crc = r->crc};

	return push(r, &record, NULL, 0, NULL);
}

void
records_abort(struct records *r, bool discard)
{
	struct rwp_record record = {.type = RWP_ABORT,
	    .transfer = r->number,
	    .grant = r->grant->generation,
	    .length = discard ? 0 : 1};

	channel_push(r->channel, &record, NULL, 0, NULL);
}
