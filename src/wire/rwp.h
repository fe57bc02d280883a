/* rwp.h -- RWP version 1, the rwriter protocol: the bytes of rwriter-protocol(7)
 *
 * Pure codec: no I/O, no log, no allocation. Each struct is the wire layout: a decoder copies the
 * foreign bytes first, checks the copy, and turns it into host order; an encoder does the reverse.
 * All fields are little-endian on the wire and naturally aligned.
 *
 * Decoders return 0, -EBADMSG (malformed: what is wrong is the caller's to say), -EPROTONOSUPPORT (no
 * common version) or -EAGAIN (record, line: not there whole yet), and touch *ret only on 0.
 */

#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/limits.h"

#define RWP_MAGIC   0x31505752u /* "RWP1" read as little-endian */
#define RWP_VERSION 1
#define RWP_PORT    7471

/* ---- areas: memory in which one side's records land, written by the other side ---- */

#define RWP_MAILBOX_SIZE      4096 /* the writer's */
#define RWP_MAILBOX_RING_LOG2 4
#define RWP_TAIL_MIN_SIZE     8192 /* the target's */
#define RWP_RING_LOG2_MIN     2
#define RWP_RING_LOG2_MAX     12
#define RWP_LINE_OFFSET       0
#define RWP_RING_OFFSET       128
#define RWP_RECORD_SIZE       64

/* Where the blob ring starts in an area, and how long it is there. */
static inline uint32_t
rwp_blob_offset(unsigned ring_log2)
{
	return RWP_RING_OFFSET + (RWP_RECORD_SIZE << ring_log2);
}

/* ---- private data of the connection set-up ---- */

enum rwp_fabric { RWP_FABRIC_VERBS = 1, RWP_FABRIC_VERBS_IWARP = 2, RWP_FABRIC_IWARP = 3 };

enum rwp_flags { RWP_KEYED = 1, RWP_SEAL = 2, RWP_DOORBELL = 4, RWP_JOIN = 8 };

struct rwp_request {
	uint32_t magic;
	uint8_t version_min, version_max;
	uint8_t length; /* of this struct: only so many bytes count, what follows is padding */
	uint8_t fabric; /* enum rwp_fabric of the sender */
	uint32_t flags;
	uint32_t mailbox_rkey;
	uint64_t mailbox_addr;
	uint8_t key_id[8];
	uint8_t nonce[16];
	uint8_t gate[8];
};

struct rwp_reply {
	uint32_t magic;
	uint8_t version;
	uint8_t ring_log2; /* records in the tail area's ring */
	uint8_t length;
	uint8_t fabric;
	uint32_t flags;
	uint32_t tail_rkey;
	uint64_t tail_addr;
	uint32_t tail_len;
	uint32_t generation; /* of this connection; HELLO echoes it */
	uint8_t boot_id[8];  /* of this start of the daemon; HELLO echoes it */
	uint8_t nonce[16];
};

struct rwp_reject {
	uint32_t magic;
	uint8_t version_min, version_max;
	uint8_t length;
	uint8_t fabric;
	uint16_t reason; /* enum rwp_code */
	uint16_t text_len;
	uint32_t retry_after_ms;
	char text[LIMIT_REASON]; /* UTF-8, not NUL-terminated */
};

/* ---- records ---- */

enum rwp_type {
	RWP_HELLO = 1,
	RWP_BEGIN = 2,
	RWP_DATA = 3,
	RWP_HOLE = 4,
	RWP_END = 5,
	RWP_ONE = 6,
	RWP_ABORT = 7,
	RWP_GROW = 8,
	RWP_BYE = 9,
	RWP_GRANT = 65,
	RWP_DENY = 66,
	RWP_BEGIN_OK = 67,
	RWP_RESULT = 68,
	RWP_NOTICE = 69,
};

#define RWP_MUST_UNDERSTAND 0x80 /* record flag */

struct rwp_record {
	uint8_t type;
	uint8_t flags;
	uint16_t blob_len; /* 0: no blob */
	uint32_t transfer;
	uint64_t stream_off; /* END, RESULT: whole length */
	uint64_t region_off; /* RESULT: bytes durable */
	uint32_t length;     /* DATA, ONE: payload bytes; RESULT: status */
	uint32_t data_crc;   /* of the payload (DATA, ONE), the whole stream (END, RESULT without blob) or the blob */
	uint32_t grant;
	uint32_t blob_off; /* from the start of the blob ring */
	uint8_t tag[16];
	uint64_t seq; /* the flag: 1, 2, 3, ... */
};

/* Overwritten in place; cumulative counters only. */
struct rwp_line {
	uint32_t state; /* enum rwp_line_state */
	uint32_t grant;
	uint64_t consumed; /* seq of the last record taken from the other side's ring */
	uint64_t released;
	uint64_t arrived; /* bytes verified of `transfer` */
	uint64_t durable;
	uint32_t transfer;
	uint8_t tag[12];
	uint64_t beat; /* the flag: grows by one with every writing */
};

enum rwp_line_state { RWP_LINE_OPEN = 1, RWP_LINE_ENDING = 2 };

struct rwp_blob_header {
	uint16_t kind; /* type of the record it belongs to */
	uint16_t flags;
	uint32_t length; /* whole blob, this header included */
	uint64_t seq;    /* of the record it belongs to */
};

static_assert(sizeof(struct rwp_request) == 56, "request");
static_assert(offsetof(struct rwp_request, mailbox_addr) == 16, "request");
static_assert(offsetof(struct rwp_request, key_id) == 24, "request");
static_assert(offsetof(struct rwp_request, nonce) == 32, "request");
static_assert(offsetof(struct rwp_request, gate) == 48, "request");
static_assert(sizeof(struct rwp_reply) == 56, "reply");
static_assert(offsetof(struct rwp_reply, tail_addr) == 16, "reply");
static_assert(offsetof(struct rwp_reply, boot_id) == 32, "reply");
static_assert(offsetof(struct rwp_reply, nonce) == 40, "reply");
static_assert(sizeof(struct rwp_reject) == 128, "reject");
static_assert(offsetof(struct rwp_reject, reason) == 8, "reject");
static_assert(offsetof(struct rwp_reject, text) == 16, "reject");
static_assert(sizeof(struct rwp_record) == RWP_RECORD_SIZE, "record");
static_assert(offsetof(struct rwp_record, stream_off) == 8, "record");
static_assert(offsetof(struct rwp_record, length) == 24, "record");
static_assert(offsetof(struct rwp_record, tag) == 40, "record");
static_assert(offsetof(struct rwp_record, seq) == 56, "record");
static_assert(sizeof(struct rwp_line) == 64, "line");
static_assert(offsetof(struct rwp_line, consumed) == 8, "line");
static_assert(offsetof(struct rwp_line, tag) == 44, "line");
static_assert(offsetof(struct rwp_line, beat) == 56, "line");
static_assert(sizeof(struct rwp_blob_header) == 16, "blob");

/* ---- codes: why something was refused or ended (reject, DENY, NOTICE, RESULT) ---- */

enum rwp_code {
	RWP_ARRIVED = 0, /* RESULT: verified in the target's memory */
	RWP_STORED = 1,  /* RESULT: durable */
	RWP_E_VERSION = 16,
	RWP_E_ADDRESS,     /* no allow line admits this address */
	RWP_E_BUSY,        /* a limit of connections is reached */
	RWP_E_KEY,         /* key needed, unknown or wrong */
	RWP_E_STALE,       /* boot id or generation is not this daemon's */
	RWP_E_REGION,      /* no such region */
	RWP_E_SIZE,        /* more than the region grants */
	RWP_E_MEMORY,      /* memory budget or memory is short */
	RWP_E_UNSUPPORTED, /* flag, feature or record not known here */
	RWP_E_PROTOCOL,    /* the peer broke the protocol */
	RWP_E_CHECKSUM,    /* payload does not match its CRC */
	RWP_E_TIMEOUT,     /* a deadline passed */
	RWP_E_SHUTDOWN,    /* the daemon stops */
	RWP_E_RELEASED,    /* an operator released the region or disconnected */
	RWP_E_IDLE,        /* nothing happened for the idle time */
	RWP_E_STORAGE,     /* the sink could not store */
	RWP_E_ABORTED,     /* the writer gave up */
	RWP_E_INTERNAL,
};

/* A few words ("address not allowed"); "code N" style text for unknown ones is the caller's. NULL: unknown. */
const char *rwp_code_text(unsigned code);
/* "HELLO", "DATA", ...; NULL: unknown. */
const char *rwp_type_name(unsigned type);

/* ---- TLVs in blobs: {type u16, length u16, value, zeros to 8}; 0x8000 in type: must understand ---- */

#define RWP_TLV_MUST 0x8000

enum rwp_tlv {
	RWP_TLV_WRITER = 1,      /* HELLO: writer's name */
	RWP_TLV_TARGET = 2,      /* HELLO: the name the target is expected to have (may be absent) */
	RWP_TLV_REGION = 3,      /* HELLO: region name ("default" when absent) */
	RWP_TLV_SIZE = 4,        /* u64: wanted (HELLO), granted (GRANT) or asked (DENY) bytes */
	RWP_TLV_OFFERED = 5,     /* HELLO: u64 feature bits */
	RWP_TLV_REQUIRED = 6,    /* HELLO: u64 feature bits */
	RWP_TLV_ECHO = 7,        /* HELLO: boot_id[8], generation u32 */
	RWP_TLV_MAC = 8,         /* HELLO, GRANT: 16 bytes, last */
	RWP_TLV_ADDRESS = 16,    /* GRANT: u64 */
	RWP_TLV_RKEY = 17,       /* GRANT: u32 */
	RWP_TLV_GENERATION = 18, /* GRANT: u32, the grant number that records name */
	RWP_TLV_SINK = 19,       /* GRANT: u32 enum rwp_sink */
	RWP_TLV_SEGMENT = 20,    /* GRANT: u32, most payload bytes of one DATA */
	RWP_TLV_IN_FLIGHT = 21,  /* GRANT: u64, most bytes sent and not yet in `arrived` */
	RWP_TLV_BEAT = 22,       /* GRANT: u32 milliseconds between beats, both ways */
	RWP_TLV_DEAD = 23,       /* GRANT: u32 milliseconds without a beat that end the connection */
	RWP_TLV_CHOSEN = 24,     /* GRANT: u64 feature bits */
	RWP_TLV_REGION_ID = 25,  /* GRANT: u32, the region's number on the target */
	RWP_TLV_HOST = 26,       /* GRANT, DENY: the target's name */
	RWP_TLV_CODE = 32,       /* DENY, NOTICE: u32 enum rwp_code */
	RWP_TLV_TEXT = 33,       /* DENY, NOTICE, RESULT: what is wrong */
	RWP_TLV_FIX = 34,        /* DENY: what to change on the target */
	RWP_TLV_LIMIT = 35,      /* DENY: u64, the limit that SIZE exceeds */
	RWP_TLV_RETRY = 36,      /* DENY: u32 milliseconds */
	RWP_TLV_NAME = 48,       /* BEGIN, ONE: file name */
	RWP_TLV_LENGTH = 49,     /* BEGIN, ONE: u64, when known */
	RWP_TLV_MODE = 50,       /* BEGIN, ONE: u32 */
	RWP_TLV_MTIME = 51,      /* BEGIN, ONE: i64 nanoseconds since 1970 */
	RWP_TLV_ID = 52,         /* BEGIN, ONE: 16 bytes */
	RWP_TLV_CHECK = 63,      /* ONE, last: u32 CRC32C of the blob before this TLV (data_crc is the payload's) */
};

enum rwp_sink { RWP_SINK_MEMORY = 1, RWP_SINK_SPOOL = 2, RWP_SINK_DISCARD = 3 };

#define RWP_BLOB_MAX 2944 /* fits the mailbox's blob ring */

/* ---- codec ---- */

/* What was sent before the padding. len: bytes received, padding included. */
int rwp_request_decode(const void *buf, size_t len, struct rwp_request *ret);
int rwp_reply_decode(const void *buf, size_t len, struct rwp_reply *ret);
int rwp_reject_decode(const void *buf, size_t len, struct rwp_reject *ret);
/* Fill in magic and length; out must hold sizeof the struct. */
void rwp_request_encode(const struct rwp_request *r, void *out);
void rwp_reply_encode(const struct rwp_reply *r, void *out);
void rwp_reject_encode(const struct rwp_reject *r, void *out);

/* Copies the 64 bytes at slot and checks the tag. -EAGAIN: seq is not the expected one (see *seq, may be
 * NULL); -EBADMSG: seq matches, the tag does not. The caller has done the ordering (wire/barrier.h). */
int rwp_record_decode(const void *slot, uint64_t expected_seq, struct rwp_record *ret);
/* Computes the keyless tag and writes host order out as wire order. */
void rwp_record_encode(const struct rwp_record *r, void *out);

/* -EAGAIN: beat is `seen` still; -EBADMSG: torn (read it again). */
int rwp_line_decode(const void *area, uint64_t seen, struct rwp_line *ret);
void rwp_line_encode(const struct rwp_line *l, void *out);

/* Building a blob: start, put ..., finish. Errors stick: finish returns -EMSGSIZE once something did
 * not fit, else the blob's length (a multiple of 8). */
struct rwp_builder {
	uint8_t *buf;
	size_t size, len;
	bool overflow;
};

void rwp_blob_start(struct rwp_builder *b, void *buf, size_t size, unsigned kind, uint64_t seq);
void rwp_put(struct rwp_builder *b, unsigned type, const void *value, size_t len);
void rwp_put_u32(struct rwp_builder *b, unsigned type, uint32_t value);
void rwp_put_u64(struct rwp_builder *b, unsigned type, uint64_t value);
void rwp_put_text(struct rwp_builder *b, unsigned type, const char *text); /* NULL or "": nothing */
void rwp_put_check(struct rwp_builder *b);
int rwp_blob_finish(struct rwp_builder *b);

/* Reading a blob (already copied out of foreign memory): open checks the header, next walks; next
 * returns 1 and the TLV, 0 at the end, -EBADMSG. value points into the blob. */
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
/* Little-endian numbers; -EBADMSG unless the value has exactly that size. */
int rwp_item_u32(const struct rwp_item *i, uint32_t *ret);
int rwp_item_u64(const struct rwp_item *i, uint64_t *ret);
/* Clean text with a NUL; -EBADMSG when longer than size - 1 or not clean UTF-8. */
int rwp_item_text(const struct rwp_item *i, char *buf, size_t size);

/* ---- the blobs as structs; decoders skip unknown TLVs, but -EPROTONOSUPPORT for an unknown must ---- */

struct rwp_hello {
	char writer[LIMIT_NAME + 1], target[LIMIT_NAME + 1], region[LIMIT_NAME + 1];
	uint64_t size, offered, required;
	uint8_t boot_id[8];
	uint32_t generation;
};

struct rwp_grant {
	uint64_t address, size, in_flight, chosen;
	uint32_t rkey, generation, sink, segment, beat_ms, dead_ms, region_id;
	char host[LIMIT_NAME + 1];
};

struct rwp_deny { /* DENY, NOTICE, and RESULT of a transfer that failed */
	uint32_t code, retry_ms;
	uint64_t size, limit;
	char host[LIMIT_NAME + 1], text[LIMIT_TEXT + 1], fix[LIMIT_TEXT + 1];
};

struct rwp_begin { /* BEGIN and ONE */
	char name[LIMIT_FILE_NAME + 1];
	uint64_t length; /* UINT64_MAX: not known */
	uint32_t mode;
	int64_t mtime_ns;
	uint8_t id[16];
};

/* Encoders return the blob's length or -EMSGSIZE; kind is the record type. Absent optional fields: zero
 * or empty. */
int rwp_hello_encode(const struct rwp_hello *h, uint64_t seq, void *buf, size_t size);
int rwp_hello_decode(const void *blob, size_t len, uint64_t seq, struct rwp_hello *ret);
int rwp_grant_encode(const struct rwp_grant *g, uint64_t seq, void *buf, size_t size);
int rwp_grant_decode(const void *blob, size_t len, uint64_t seq, struct rwp_grant *ret);
int rwp_deny_encode(const struct rwp_deny *d, unsigned kind, uint64_t seq, void *buf, size_t size);
int rwp_deny_decode(const void *blob, size_t len, unsigned kind, uint64_t seq, struct rwp_deny *ret);
int rwp_begin_encode(const struct rwp_begin *b, unsigned kind, uint64_t seq, void *buf, size_t size);
int rwp_begin_decode(const void *blob, size_t len, unsigned kind, uint64_t seq, struct rwp_begin *ret);
