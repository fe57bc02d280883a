/* area.h -- lines and records over an area: taking what the peer wrote, laying out what goes to it
 *
 * Protocol: rwriter-protocol(7). Both directions have the same form: a line, a ring of records, a
 * ring of blobs. Pure memory work: no fabric, no log.
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/rwp.h"

struct fabric_mem;

/* ---- in: an area of ours that the peer writes ---- */

struct area_in {
	const uint8_t *base;
	unsigned ring_log2;
	uint32_t blob_len;
	uint64_t next_seq;      /* expected */
	uint64_t beat;          /* of the last line taken */
	uint64_t suspect_since; /* something is there that does not fit yet; 0: no */
	const uint8_t *key;     /* session key of the tags, borrowed; NULL: they are keyless */
};

void area_in_init(struct area_in *in, const void *base, size_t size, unsigned ring_log2);

/* The next record and a copy of its blob (not NUL-terminated). -EAGAIN: nothing there (yet);
 * -EBADMSG: damaged, or not tagged under the key, for 50 ms; -EPROTO: out of sequence for as long,
 * or bad blob place. now: loop_now(). */
int area_in_record(
    struct area_in *in, uint64_t now, struct rwp_record *ret, uint8_t blob[RWP_BLOB_MAX]);

/* The peer's line if it has beaten since: 0; else -EAGAIN (a torn one too: it is read again). */
int area_in_line(struct area_in *in, struct rwp_line *ret);

/* ---- out: the image of an area of the peer's ---- */

struct area_payload { /* bytes that go before their record */
	struct fabric_mem *mem;
	const void *addr;
	size_t len;
	uint64_t remote_addr;
	uint32_t rkey;
};

struct area_slot {
	uint32_t blob_off, blob_len;
	uint32_t blob_used; /* bytes of the blob ring, skipped ones included */
	struct area_payload payload;
};

struct area_out {
	uint8_t *image;
	unsigned ring_log2;
	uint32_t blob_len;
	struct area_slot *slots; /* one for each record of the ring */
	uint64_t pushed;         /* seq of the last record laid out */
	uint64_t posted;         /* ... handed to the fabric */
	uint64_t written;        /* ... whose sources are free again */
	uint64_t consumed;       /* ... that the peer has taken */
	uint64_t freed;      /* ... whose slot and blob are free again: min(written, consumed) */
	uint64_t unconsumed; /* payload bytes of the records between consumed and pushed */
	uint32_t blob_head, blob_used;
	const uint8_t *key; /* as in area_in, for what is laid out from then on */
};

/* image: zeroed, borrowed; size: at most what the peer advertised, for what lies beyond is not
 * used. 0 or -ENOMEM. */
int area_out_init(struct area_out *out, void *image, size_t size, unsigned ring_log2);
void area_out_done(struct area_out *out);

/* The seq that the next record will have: blobs carry it. */
uint64_t area_out_seq(const struct area_out *out);
/* Records that could be laid out, as far as only their slots count. */
uint32_t area_out_slots(const struct area_out *out);
/* Room for one more record with a blob of blob_len bytes. */
bool area_out_room(const struct area_out *out, uint32_t blob_len);
/* Lays the record out; seq, tag, blob place and, with a blob and no payload, data_crc are filled
 * in. -EAGAIN: no room. */
int area_out_push(struct area_out *out, struct rwp_record *record, const void *blob,
    uint32_t blob_len, const struct area_payload *payload);
/* The slot of a record that is laid out, and the record's offset in the area. */
struct area_slot *area_out_slot(const struct area_out *out, uint64_t seq);
uint32_t area_out_offset(const struct area_out *out, uint64_t seq);
void area_out_line(struct area_out *out, const struct rwp_line *line);
/* What the peer (consumed) or the fabric (written) said; -EPROTO: more than was sent. */
int area_out_consumed(struct area_out *out, uint64_t seq);
void area_out_written(struct area_out *out, uint64_t seq);
