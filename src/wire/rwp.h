/* rwp.h -- RWP version 1, the rwriter protocol: the bytes of rwriter-protocol(7)
 *
 * Here is what has a fixed layout: private data, areas, records, lines. What grows is in blobs:
 * wire/blob.h cuts them into TLVs, wire/message.h makes structs of them. Including this header is
 * enough.
 *
 * Pure codec: no I/O, no log, no allocation. Each struct is the wire layout: a decoder copies the
 * foreign bytes first, checks the copy, and turns it into host order; an encoder does the reverse.
 * All fields are little-endian on the wire and naturally aligned.
 *
 * Decoders return 0, -EBADMSG (malformed: what is wrong is the caller's to say), -EPROTONOSUPPORT
 * (no common version) or -EAGAIN (record, line: not there whole yet), and touch *ret only on 0.
 */

#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/limits.h"
#include "wire/blob.h"
#include "wire/message.h"

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

/* Where the blob ring starts in an area; it goes on to the area's end. */
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

enum rwp_abort { RWP_ABORT_DISCARD, RWP_ABORT_KEEP }; /* length of an ABORT */

struct rwp_record {
	uint8_t type;
	uint8_t flags;
	uint16_t blob_len; /* 0: no blob */
	uint32_t transfer;
	uint64_t stream_off; /* END, RESULT: whole length; BEGIN-OK: go on from there */
	uint64_t region_off; /* RESULT: bytes durable */
	uint32_t length;     /* DATA, ONE: payload bytes; HOLE: zeros; RESULT: status */
	uint32_t data_crc;   /* DATA, ONE: of the payload; END, RESULT: of the whole stream;
			      * BEGIN-OK: of the bytes before stream_off; with any other blob: of
			      * the blob (so in a RESULT that failed) */
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
	uint64_t released; /* bytes of the ring given back, all transfers together */
	uint64_t arrived;  /* bytes verified of `transfer` */
	uint64_t durable;  /* ... on stable storage */
	uint32_t transfer;
	uint8_t tag[12];
	uint64_t beat; /* the flag: grows by one with every writing */
};

enum rwp_line_state { RWP_LINE_OPEN = 1, RWP_LINE_ENDING = 2 };

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

/* ---- codes: why something was refused or ended (reject, DENY, NOTICE, RESULT) ---- */

enum rwp_code {
	RWP_ARRIVED = 0, /* RESULT: verified in the target's memory */
	RWP_STORED = 1,  /* RESULT: durable */
	RWP_E_VERSION = 16,
	RWP_E_ADDRESS,     /* no allow line admits this address */
	RWP_E_BUSY,        /* a limit of connections is reached */
	RWP_E_KEY,         /* key needed, unknown or wrong */
	RWP_E_STALE,       /* name, boot id or generation is not this daemon's */
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

/* A few words ("address not allowed"); NULL: unknown, "code N" is the caller's to say. */
const char *rwp_code_text(unsigned code);
/* "HELLO", "DATA", ...; NULL: unknown. */
const char *rwp_type_name(unsigned type);

/* ---- codec ---- */

/* len: bytes received, padding included. Flags that are not known, and codes, are the caller's to
 * judge; a reject's text is foreign: text_clean() it. A reject is decoded whatever versions its
 * sender speaks. */
int rwp_request_decode(const void *buf, size_t len, struct rwp_request *ret);
int rwp_reply_decode(const void *buf, size_t len, struct rwp_reply *ret);
int rwp_reject_decode(const void *buf, size_t len, struct rwp_reject *ret);
/* Fill in magic and length (not the versions); out must hold sizeof the struct. */
void rwp_request_encode(const struct rwp_request *r, void *out);
void rwp_reply_encode(const struct rwp_reply *r, void *out);
void rwp_reject_encode(const struct rwp_reject *r, void *out);

/* Copies the 64 bytes at slot and checks the tag. -EAGAIN: seq is not the expected one; -EBADMSG:
 * seq matches, the tag does not. The caller has done the ordering (wire/barrier.h). */
int rwp_record_decode(const void *slot, uint64_t expected_seq, struct rwp_record *ret);
/* Computes the keyless tag (r->tag is not looked at) and writes 64 bytes. */
void rwp_record_encode(const struct rwp_record *r, void *out);

/* The line at the start of area. -EAGAIN: beat is not above `seen`; -EBADMSG: torn (read it again).
 */
int rwp_line_decode(const void *area, uint64_t seen, struct rwp_line *ret);
void rwp_line_encode(const struct rwp_line *l, void *out);

/* Keyed tags, which take the place of those above once a connection has session keys
 * (wire/auth.h): MACs under the key of the direction; a record's covers its blob too (NULL if it
 * has none). sign puts the tag into 64 encoded bytes. load is decode that does not look at the tag:
 * is_signed does, when the blob has been copied. */
void rwp_record_sign(void *encoded, const void *blob, const uint8_t *key);
int rwp_record_load(const void *slot, uint64_t expected_seq, struct rwp_record *ret);
bool rwp_record_is_signed(const struct rwp_record *r, const void *blob, const uint8_t *key);
void rwp_line_sign(void *encoded, const uint8_t *key);
int rwp_line_decode_signed(
    const void *area, uint64_t seen, const uint8_t *key, struct rwp_line *ret);
