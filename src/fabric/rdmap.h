/* rdmap.h -- RDMAP: operations, and the Terminate message that ends a stream (RFC 5040)
 *
 * We write, and are written to. Of what else a peer may send there is a row in the table of
 * operations that says with which error it is refused.
 *
 * Pure codec: no I/O, no log, no allocation.
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fabric/ddp.h"
#include "fabric/mpa.h"

enum rdmap_operation {
	RDMAP_WRITE,
	RDMAP_READ_REQUEST,
	RDMAP_READ_RESPONSE,
	RDMAP_SEND,
	RDMAP_SEND_INVALIDATE,
	RDMAP_SEND_EVENT,
	RDMAP_SEND_EVENT_INVALIDATE,
	RDMAP_TERMINATE,
	RDMAP_IMMEDIATE, /* from here on: RFC 7306 */
	RDMAP_IMMEDIATE_EVENT,
	RDMAP_ATOMIC_REQUEST,
	RDMAP_ATOMIC_RESPONSE,
	RDMAP_OPERATIONS
};

enum rdmap_queue { RDMAP_QUEUE_SEND, RDMAP_QUEUE_READ, RDMAP_QUEUE_TERMINATE, RDMAP_QUEUES };

/* What a Terminate says: layer << 12 | type << 8 | code. */
enum rdmap_error {
	RDMAP_E_LOCAL = 0x0000,
	RDMAP_E_READ_STAG = 0x0100,
	RDMAP_E_READ_BOUNDS = 0x0101,
	RDMAP_E_ACCESS = 0x0102,
	RDMAP_E_READ_SCOPE = 0x0103,
	RDMAP_E_READ_WRAP = 0x0104,
	RDMAP_E_INVALIDATE = 0x0109,
	RDMAP_E_VERSION = 0x0205,
	RDMAP_E_OPERATION = 0x0206,
	RDMAP_E_STREAM = 0x0207,
	DDP_E_LOCAL = 0x1000,
	DDP_E_STAG = 0x1100,
	DDP_E_BOUNDS = 0x1101,
	DDP_E_SCOPE = 0x1102,
	DDP_E_WRAP = 0x1103,
	DDP_E_TAGGED_VERSION = 0x1104,
	DDP_E_QUEUE = 0x1201,
	DDP_E_NO_BUFFER = 0x1202,
	DDP_E_MSN = 0x1203,
	DDP_E_OFFSET = 0x1204,
	DDP_E_TOO_LONG = 0x1205,
	DDP_E_UNTAGGED_VERSION = 0x1206,
	MPA_E_CRC = 0x2002,
	MPA_E_LENGTH = 0x2003,
	MPA_E_FRAME = 0x2004,
	MPA_E_LOCAL = 0x2005,
	MPA_E_IRD = 0x2006,
	MPA_E_READY = 0x2007,
};

/* "base or bounds violation", ...; "unknown error" for what is none of these. */
const char *rdmap_error_text(unsigned error);
/* The peer says that it does not let us at the memory that we wrote to. */
bool rdmap_error_is_access(unsigned error);

/* ---- operations ---- */

struct rdmap_rule {
	const char *name;
	bool tagged;
	enum rdmap_queue queue;   /* untagged */
	uint16_t ulpdu_min;       /* all its headers */
	enum rdmap_error refusal; /* 0: it is taken */
};

static inline unsigned
rdmap_operation(const struct ddp_segment *segment)
{
	return segment->control & 0x0f;
}

static inline uint8_t
rdmap_control(enum rdmap_operation operation)
{
	return 0x40 | operation; /* version 1 */
}

/* What belongs together in a segment does: versions, operation, length, queue. 0: *ret is its
 * rule; else an enum rdmap_error. */
int rdmap_check(const struct ddp_segment *segment, const struct rdmap_rule **ret);

/* ---- read requests ---- */

#define RDMAP_READ_SIZE 28 /* after the DDP header */

struct rdmap_read {
	uint32_t sink_stag;
	uint64_t sink_to;
	uint32_t size;
	uint32_t source_stag;
	uint64_t source_to;
};

void rdmap_read_decode(const uint8_t *payload, struct rdmap_read *ret);

/* ---- Terminate ---- */

#define RDMAP_TERMINATE_MAX 76 /* an FPDU with all headers that one may quote */

struct rdmap_terminate {
	unsigned error; /* enum rdmap_error, or a value that is none of them */
	uint8_t raw[4];
};

/* A whole FPDU. culprit: the FPDU that it is about, with its headers there whole; NULL: none, or
 * not to be trusted. Returns the size; out must hold RDMAP_TERMINATE_MAX. */
size_t rdmap_terminate_encode(
    enum rdmap_error error, const uint8_t *culprit, bool crc, uint8_t *out);
/* payload: what follows the DDP header, at least 4 bytes. starting: no other FPDU has come on this
 * stream. Understands the layout of Linux siw, which swaps halves of octets. */
void rdmap_terminate_decode(const uint8_t *payload, bool starting, struct rdmap_terminate *ret);
