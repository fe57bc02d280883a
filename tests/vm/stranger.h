/* stranger.h -- a client of the rwriter protocol that shares no code with rwriter: it is written
 * from rwriter-protocol(7) alone, over librdmacm's blocking calls
 *
 * What cannot happen to it ends the program; what the target may do to it is returned.
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

enum { HELLO = 1, BEGIN = 2, ONE = 6, BYE = 9, GRANT = 65, DENY = 66, RESULT = 68, NOTICE = 69 };
enum { RING = 128, RECORD = 64, MAILBOX_BLOBS = 1152 };

struct stranger {
	struct rdma_cm_id *id;
	struct ibv_mr *mailbox_mr, *source_mr;
	uint8_t mailbox[4096] __attribute__((aligned(4096)));
	uint8_t source[65536] __attribute__((aligned(4096)));
	bool gone; /* the target has ended the connection */
	/* from the reply */
	uint8_t boot_id[8];
	uint32_t connection_generation, tail_rkey, ring;
	uint64_t tail_addr;
	/* from the GRANT */
	uint64_t region_addr, region_size;
	uint32_t region_rkey, grant;

	uint64_t seq, mailbox_seq, beat;
	uint32_t blob_used, transfer;
};

/* ---- stranger_conn.c: the connection ---- */

/* False: the target rejected it. */
bool stranger_connect(struct stranger *s, const char *address, const char *port);
void stranger_disconnect(struct stranger *s);
/* Looks whether the target has ended the connection; sets and returns s->gone. */
bool stranger_gone(struct stranger *s);

/* Posts one write of bytes that lie in s->source, or one message without bytes, and waits: what its
 * completion says, or why there is none. */
const char *stranger_write(
    struct stranger *s, uint32_t rkey, uint64_t addr, const void *from, size_t len);
const char *stranger_message(struct stranger *s);
extern const char SUCCESS[];

/* ---- stranger_talk.c: records ---- */

enum field {
	TYPE,
	FLAGS,
	BLOB_LEN,
	TRANSFER,
	STREAM_OFF,
	REGION_OFF,
	LENGTH,
	DATA_CRC,
	GRANT_NUMBER,
	BLOB_OFF,
	TAG,
	SEQ,
	FIELDS
};
extern const char *const FIELD_NAMES[FIELDS];

struct record {
	uint64_t value[FIELDS];
	bool set[FIELDS]; /* of blob_off, grant, tag and seq: do not work it out */
};

uint32_t stranger_crc32c(uint32_t crc, const void *data, size_t len);

/* Each writes what it says and does not wait for an answer. */
void stranger_hello(struct stranger *s, uint64_t wanted);
void stranger_one(struct stranger *s, const char *text);
void stranger_begin(struct stranger *s);
/* Its blob, of blob_len bytes, lies at the start of s->source. False: the connection is gone. */
bool stranger_record(struct stranger *s, const struct record *r);

/* Waits for the target's next record, and beats meanwhile. False: the connection has ended first.
 */
bool stranger_read(struct stranger *s, const uint8_t **ret_record, const uint8_t **ret_blob);
/* The value of a TLV, len bytes long, that must be there. */
const uint8_t *stranger_tlv(
    const uint8_t *record, const uint8_t *blob, unsigned type, size_t *ret_len);
/* Takes a GRANT's values over. */
void stranger_take_grant(struct stranger *s, const uint8_t *record, const uint8_t *blob);
uint32_t stranger_get32(const uint8_t *p);
