/* blob.h -- blobs: what accompanies a record and may grow: a header, then TLVs
 *
 * A TLV is {type u16, length u16, value, zeros to a multiple of 8}. Whoever does not know a type
 * skips it, unless its bit RWP_TLV_MUST is set. Pure, like all of src/wire.
 */

#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RWP_BLOB_MAX 2944 /* fits the mailbox's blob ring */

struct rwp_blob_header {
	uint16_t kind;   /* type of the record it belongs to */
	uint16_t flags;  /* none exist: 0 */
	uint32_t length; /* whole blob, this header included */
	uint64_t seq;    /* of the record it belongs to */
};

static_assert(sizeof(struct rwp_blob_header) == 16, "blob");

#define RWP_TLV_MUST 0x8000

enum rwp_tlv {
	RWP_TLV_WRITER = 1,   /* HELLO: writer's name */
	RWP_TLV_TARGET = 2,   /* HELLO: the name the target is expected to have (may be absent) */
	RWP_TLV_REGION = 3,   /* HELLO: region name ("default" when absent) */
	RWP_TLV_SIZE = 4,     /* u64: wanted (HELLO), granted (GRANT) or asked (DENY) bytes */
	RWP_TLV_OFFERED = 5,  /* HELLO: u64 feature bits */
	RWP_TLV_REQUIRED = 6, /* HELLO: u64 feature bits */
	RWP_TLV_ECHO = 7,     /* HELLO: boot_id[8], generation u32 */
	RWP_TLV_MAC = 8,      /* HELLO, GRANT: 16 bytes, last */
	RWP_TLV_ADDRESS = 16, /* GRANT: u64 */
	RWP_TLV_RKEY = 17,    /* GRANT: u32 */
	RWP_TLV_GENERATION = 18, /* GRANT: u32, the grant number that records name */
	RWP_TLV_SINK = 19,       /* GRANT: u32 enum rwp_sink */
	RWP_TLV_SEGMENT = 20,    /* GRANT: u32, most payload bytes of one DATA or ONE */
	RWP_TLV_IN_FLIGHT = 21,  /* GRANT: u64, most payload bytes of records not consumed */
	RWP_TLV_BEAT = 22,       /* GRANT: u32 milliseconds between beats, both ways */
	RWP_TLV_DEAD = 23,      /* GRANT: u32 milliseconds without a beat that end the connection */
	RWP_TLV_CHOSEN = 24,    /* GRANT: u64 feature bits */
	RWP_TLV_REGION_ID = 25, /* GRANT: u32, the region's number on the target */
	RWP_TLV_HOST = 26,      /* GRANT, DENY: the target's name */
	RWP_TLV_BUFFERS = 27,   /* GRANT, must be understood: u32, buffers of SIZE bytes each */
	RWP_TLV_CODE = 32,      /* DENY, NOTICE, RESULT: u32 enum rwp_code */
	RWP_TLV_TEXT = 33,      /* DENY, NOTICE, RESULT: what is wrong */
	RWP_TLV_FIX = 34,       /* DENY, NOTICE, RESULT: what to change on the target */
	RWP_TLV_LIMIT = 35,     /* DENY: u64, the limit that SIZE exceeds */
	RWP_TLV_RETRY = 36,     /* DENY: u32 milliseconds */
	RWP_TLV_NAME = 48,      /* BEGIN, ONE: file name */
	RWP_TLV_LENGTH = 49,    /* BEGIN, ONE: u64, when known */
	RWP_TLV_MODE = 50,      /* BEGIN, ONE: u32, permission bits that the file shall have */
	RWP_TLV_MTIME = 51,     /* BEGIN, ONE: i64 nanoseconds since 1970, as its time shall be */
	RWP_TLV_ID = 52,        /* BEGIN, ONE: 16 bytes */
	RWP_TLV_CHECK = 63, /* ONE, last: u32 CRC32C of the blob before this TLV, since data_crc is
			     * the payload's */
};

/* Building a blob: start, put ..., finish. Errors stick: finish returns -EMSGSIZE once something
 * did not fit, else the blob's length (a multiple of 8). */
struct rwp_builder {
	uint8_t *buf;
	size_t size, len;
	bool overflow;
};

void rwp_blob_start(struct rwp_builder *b, void *buf, size_t size, unsigned kind, uint64_t seq);
void rwp_put(struct rwp_builder *b, unsigned type, const void *value, size_t len);
void rwp_put_u32(struct rwp_builder *b, unsigned type, uint32_t value);
void rwp_put_u64(struct rwp_builder *b, unsigned type, uint64_t value);
/* NULL or "": nothing. */
void rwp_put_text(struct rwp_builder *b, unsigned type, const char *text);
/* A CHECK over all before it; only finish may follow. */
void rwp_put_check(struct rwp_builder *b);
int rwp_blob_finish(struct rwp_builder *b);

/* Reading a blob (already copied out of foreign memory; len is its record's blob_len): open checks
 * the header, next walks. next returns 1 and the TLV, whose value points into the blob, 0 at the
 * end, or -EBADMSG. */
struct rwp_reader {
	const uint8_t *buf;
	size_t len, pos;
};

struct rwp_item {
	unsigned type; /* without RWP_TLV_MUST */
	bool must;
	const uint8_t *value;
	size_t len;
};

int rwp_blob_open(struct rwp_reader *r, const void *blob, size_t len, unsigned kind, uint64_t seq);
int rwp_blob_next(struct rwp_reader *r, struct rwp_item *ret);
/* Straight after open: verifies the CHECK at the blob's end and takes it off, so that next does not
 * meet it. */
int rwp_blob_check(struct rwp_reader *r);

/* HELLO and GRANT of a keyed connection end in a MAC over all before it (wire/auth.h). add makes
 * room for one behind a finished blob of *len bytes: where its value belongs, *len as it is then,
 * and the header says so too; NULL when it does not fit. find looks at a foreign one: its value,
 * *ret_before the bytes that it is over; NULL when the last TLV is none. */
uint8_t *rwp_blob_add_mac(void *blob, size_t size, int *len);
const uint8_t *rwp_blob_find_mac(const void *blob, size_t len, size_t *ret_before);

/* Little-endian numbers; -EBADMSG unless the value has exactly that size. */
int rwp_item_u32(const struct rwp_item *i, uint32_t *ret);
int rwp_item_u64(const struct rwp_item *i, uint64_t *ret);
/* Clean text with a NUL; -EBADMSG when longer than size - 1 or not clean UTF-8. */
int rwp_item_text(const struct rwp_item *i, char *buf, size_t size);
