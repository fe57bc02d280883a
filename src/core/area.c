/* area.c -- lines and records over an area */

#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "core/area.h"
#include "loop/loop.h"
#include "wire/barrier.h"

/* A flag of which a part has come, payload or blob overtaken by it: read again for so long
 * (protocol rule 2). */
#define SUSPECT_NS (50 * NSEC_PER_MSEC)

/* ---- in ---- */

void
area_in_init(struct area_in *in, const void *base, size_t size, unsigned ring_log2)
{
	*in = (struct area_in){
	    .base = base,
	    .ring_log2 = ring_log2,
	    .blob_len = size - rwp_blob_offset(ring_log2),
	    .next_seq = 1,
	};
}

static const uint8_t *
in_slot(const struct area_in *in)
{
	uint64_t index = (in->next_seq - 1) & ((UINT64_C(1) << in->ring_log2) - 1);

	return in->base + RWP_RING_OFFSET + index * RWP_RECORD_SIZE;
}

/* 0: the flag of the next record is up; -EAGAIN: not yet; -EPROTO: neither the old nor the next
 * value (yet: a soft device writes it byte by byte, as its processor's string moves do). */
static int
in_flag(const struct area_in *in)
{
	uint64_t ring = UINT64_C(1) << in->ring_log2;
	uint64_t old = in->next_seq > ring ? in->next_seq - ring : 0;
	uint64_t seq = flag_load(in_slot(in) + offsetof(struct rwp_record, seq));

	if (seq != in->next_seq)
		return seq == old ? -EAGAIN : -EPROTO;
	device_read_barrier();
	return 0;
}

static int
copy_blob(const struct area_in *in, const struct rwp_record *r, uint8_t blob[RWP_BLOB_MAX])
{
	if (r->blob_len == 0)
		return 0;
	if (r->blob_len > RWP_BLOB_MAX || r->blob_off > in->blob_len ||
	    r->blob_len > in->blob_len - r->blob_off)
		return -EPROTO;
	foreign_copy(blob, in->base + rwp_blob_offset(in->ring_log2) + r->blob_off, r->blob_len);
	return 0;
}

static bool
blob_is_whole(const struct rwp_record *r, const uint8_t blob[RWP_BLOB_MAX])
{
	struct rwp_reader reader;

	if (r->blob_len == 0)
		return true;
	if (rwp_type_name(r->type) ==
	    NULL) /* of later versions: what its data_crc covers is theirs */
		return true;
	if (r->type == RWP_ONE) /* data_crc is the payload's: the blob carries its own */
		return rwp_blob_open(&reader, blob, r->blob_len, r->type, r->seq) == 0 &&
		       rwp_blob_check(&reader) == 0;
	return crc32c(0, blob, r->blob_len) == r->data_crc;
}

static int
take_keyless(const struct area_in *in, struct rwp_record *r, uint8_t blob[RWP_BLOB_MAX])
{
	int error = rwp_record_decode(in_slot(in), in->next_seq, r);

	if (error == 0)
		error = copy_blob(in, r, blob);
	if (error == 0 && !blob_is_whole(r, blob))
		error = -EBADMSG;
	return error;
}

/* The tag speaks of the blob too, so its place is looked at before anything is proved. */
static int
take_keyed(const struct area_in *in, struct rwp_record *r, uint8_t blob[RWP_BLOB_MAX])
{
	int error = rwp_record_load(in_slot(in), in->next_seq, r);

	if (error == 0 && (copy_blob(in, r, blob) < 0 || !rwp_record_is_signed(r, blob, in->key)))
		error = -EBADMSG;
	return error;
}

/* It may become right yet. */
static int
suspect(struct area_in *in, uint64_t now, int error)
{
	if (in->suspect_since == 0)
		in->suspect_since = now;
	return now - in->suspect_since < SUSPECT_NS ? -EAGAIN : error;
}

int
area_in_record(struct area_in *in, uint64_t now, struct rwp_record *ret, uint8_t blob[RWP_BLOB_MAX])
{
	struct rwp_record r;
	int error;

	error = in_flag(in);
	if (error == -EPROTO)
		return suspect(in, now, error);
	if (error < 0)
		return error;
	error = in->key == NULL ? take_keyless(in, &r, blob) : take_keyed(in, &r, blob);
	if (error == -EBADMSG)
		return suspect(in, now, error);
	if (error < 0)
		return error;
	in->suspect_since = 0;
	in->next_seq++;
	*ret = r;
	return 0;
}

int
area_in_line(struct area_in *in, struct rwp_line *ret)
{
	struct rwp_line line;

	if (flag_load(in->base + RWP_LINE_OFFSET + offsetof(struct rwp_line, beat)) == in->beat)
		return -EAGAIN;
	device_read_barrier();
	if (rwp_line_decode_signed(in->base, in->beat, in->key, &line) < 0)
		return -EAGAIN;
	in->beat = line.beat;
	*ret = line;
	return 0;
}

/* ---- out ---- */

int
area_out_init(struct area_out *out, void *image, size_t size, unsigned ring_log2)
{
	struct area_slot *slots = calloc(UINT64_C(1) << ring_log2, sizeof(*slots));

	if (slots == NULL)
		return -ENOMEM;
	*out = (struct area_out){
	    .image = image,
	    .ring_log2 = ring_log2,
	    .blob_len = size - rwp_blob_offset(ring_log2),
	    .slots = slots,
	};
	return 0;
}

void
area_out_done(struct area_out *out)
{
	free(out->slots);
	out->slots = NULL;
}

struct area_slot *
area_out_slot(const struct area_out *out, uint64_t seq)
{
	return &out->slots[(seq - 1) & ((UINT64_C(1) << out->ring_log2) - 1)];
}

uint32_t
area_out_offset(const struct area_out *out, uint64_t seq)
{
	return RWP_RING_OFFSET +
	       ((seq - 1) & ((UINT64_C(1) << out->ring_log2) - 1)) * RWP_RECORD_SIZE;
}

uint64_t
area_out_seq(const struct area_out *out)
{
	return out->pushed + 1;
}

/* Bytes of the blob ring that a blob takes: it never wraps, so the rest up to the end may be
 * skipped. */
static uint32_t
blob_cost(const struct area_out *out, uint32_t blob_len, uint32_t *ret_off)
{
	uint32_t left = out->blob_len - out->blob_head;

	*ret_off = left < blob_len ? 0 : out->blob_head;
	return left < blob_len ? left + blob_len : blob_len;
}

uint32_t
area_out_slots(const struct area_out *out)
{
	return out->slots == NULL ? 0
				  : (UINT32_C(1) << out->ring_log2) - (out->pushed - out->freed);
}

bool
area_out_room(const struct area_out *out, uint32_t blob_len)
{
	uint32_t off;

	if (area_out_slots(out) == 0)
		return false;
	return out->blob_used + blob_cost(out, blob_len, &off) <= out->blob_len;
}

static void
push_blob(struct area_out *out, struct rwp_record *r, const void *blob, uint32_t blob_len,
    struct area_slot *slot)
{
	slot->blob_used = blob_cost(out, blob_len, &slot->blob_off);
	slot->blob_len = blob_len;
	memcpy(out->image + rwp_blob_offset(out->ring_log2) + slot->blob_off, blob, blob_len);
	out->blob_used += slot->blob_used;
	out->blob_head = slot->blob_off + blob_len;
	r->blob_off = slot->blob_off;
	r->blob_len = blob_len;
	if (r->type != RWP_ONE)
		r->data_crc = crc32c(0, blob, blob_len);
}

int
area_out_push(struct area_out *out, struct rwp_record *r, const void *blob, uint32_t blob_len,
    const struct area_payload *payload)
{
	struct area_slot *slot;
	uint8_t *image;

	if (!area_out_room(out, blob_len))
		return -EAGAIN;
	r->seq = area_out_seq(out);
	slot = area_out_slot(out, r->seq);
	*slot = (struct area_slot){0};
	if (payload != NULL)
		slot->payload = *payload;
	out->unconsumed += slot->payload.len;
	if (blob_len > 0)
		push_blob(out, r, blob, blob_len, slot);
	image = out->image + area_out_offset(out, r->seq);
	rwp_record_encode(r, image);
	if (out->key != NULL)
		rwp_record_sign(image, blob, out->key);
	out->pushed++;
	return 0;
}

void
area_out_line(struct area_out *out, const struct rwp_line *line)
{
	rwp_line_encode(line, out->image + RWP_LINE_OFFSET);
	if (out->key != NULL)
		rwp_line_sign(out->image + RWP_LINE_OFFSET, out->key);
}

static void
out_reclaim(struct area_out *out)
{
	uint64_t upto = out->written < out->consumed ? out->written : out->consumed;

	for (; out->freed < upto; out->freed++)
		out->blob_used -= area_out_slot(out, out->freed + 1)->blob_used;
}

int
area_out_consumed(struct area_out *out, uint64_t seq)
{
	if (seq > out->posted || seq < out->consumed)
		return -EPROTO;
	while (out->consumed < seq)
		out->unconsumed -= area_out_slot(out, ++out->consumed)->payload.len;
	out_reclaim(out);
	return 0;
}

void
area_out_written(struct area_out *out, uint64_t seq)
{
	if (seq > out->written)
		out->written = seq;
	out_reclaim(out);
}
