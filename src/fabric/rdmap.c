/* rdmap.c -- RDMAP: operations, and the Terminate message that ends a stream */

#include "config.h"

#include <assert.h>
#include <endian.h>
#include <string.h>

#include "base/crc32c.h"
#include "fabric/rdmap.h"

#define RDMAP_VERSION 1

/* ---- operations ---- */

#define READ_REQUEST_SIZE (DDP_UNTAGGED_SIZE + RDMAP_READ_SIZE)
#define TERMINATE_SIZE    (DDP_UNTAGGED_SIZE + 4)
#define A_SEND            false, RDMAP_QUEUE_SEND, DDP_UNTAGGED_SIZE

static const struct rdmap_rule RULES[RDMAP_OPERATIONS] = {
    [RDMAP_WRITE] = {"Write", true, 0, DDP_TAGGED_SIZE, 0},
    [RDMAP_READ_REQUEST] = {"Read Request", false, RDMAP_QUEUE_READ, READ_REQUEST_SIZE, 0},
    [RDMAP_READ_RESPONSE] = {"Read Response", true, 0, DDP_TAGGED_SIZE, RDMAP_E_OPERATION},
    [RDMAP_SEND] = {"Send", A_SEND, DDP_E_NO_BUFFER},
    [RDMAP_SEND_INVALIDATE] = {"Send with Invalidate", A_SEND, DDP_E_NO_BUFFER},
    [RDMAP_SEND_EVENT] = {"Send with Solicited Event", A_SEND, DDP_E_NO_BUFFER},
    [RDMAP_SEND_EVENT_INVALIDATE] = {"Send with Solicited Event and Invalidate", A_SEND,
	DDP_E_NO_BUFFER},
    [RDMAP_TERMINATE] = {"Terminate", false, RDMAP_QUEUE_TERMINATE, TERMINATE_SIZE, 0},
    [RDMAP_IMMEDIATE] = {"Immediate Data", A_SEND, RDMAP_E_OPERATION},
    [RDMAP_IMMEDIATE_EVENT] = {"Immediate Data with Solicited Event", A_SEND, RDMAP_E_OPERATION},
    [RDMAP_ATOMIC_REQUEST] = {"Atomic Request", false, RDMAP_QUEUE_READ, DDP_UNTAGGED_SIZE,
	RDMAP_E_OPERATION},
    [RDMAP_ATOMIC_RESPONSE] = {"Atomic Response", false, 3, DDP_UNTAGGED_SIZE, RDMAP_E_OPERATION},
};

int
rdmap_check(const struct ddp_segment *segment, const struct rdmap_rule **ret)
{
	unsigned operation = rdmap_operation(segment);
	const struct rdmap_rule *rule;

	if (segment->ulpdu < ddp_header_size(segment->tagged))
		return MPA_E_LENGTH;
	if (segment->version != DDP_VERSION)
		return segment->tagged ? DDP_E_TAGGED_VERSION : DDP_E_UNTAGGED_VERSION;
	if (segment->control >> 6 != RDMAP_VERSION)
		return RDMAP_E_VERSION;
	if (operation >= RDMAP_OPERATIONS || RULES[operation].tagged != segment->tagged)
		return RDMAP_E_OPERATION;
	rule = &RULES[operation];
	if (segment->ulpdu < rule->ulpdu_min)
		return MPA_E_LENGTH;
	if (!rule->tagged && segment->queue != rule->queue)
		return DDP_E_QUEUE;
	*ret = rule;
	return 0;
}

/* ---- read requests ---- */

struct read_wire {
	uint32_t sink_stag;
	uint32_t sink_to[2];
	uint32_t size;
	uint32_t source_stag;
	uint32_t source_to[2];
};

static_assert(sizeof(struct read_wire) == RDMAP_READ_SIZE, "read request");
static_assert(offsetof(struct read_wire, size) == 12, "read request");
static_assert(offsetof(struct read_wire, source_to) == 20, "read request");

static uint64_t
join(const uint32_t halves[2])
{
	return (uint64_t)be32toh(halves[0]) << 32 | be32toh(halves[1]);
}

void
rdmap_read_decode(const uint8_t *payload, struct rdmap_read *ret)
{
	struct read_wire wire;

	memcpy(&wire, payload, sizeof(wire));
	*ret = (struct rdmap_read){
	    .sink_stag = be32toh(wire.sink_stag),
	    .sink_to = join(wire.sink_to),
	    .size = be32toh(wire.size),
	    .source_stag = be32toh(wire.source_stag),
	    .source_to = join(wire.source_to),
	};
}

/* ---- errors ---- */

/* How much of the culprit a Terminate quotes. */
enum quote { NOTHING, DDP_HEADER, READ_HEADER };

static const struct {
	enum rdmap_error error;
	enum quote quote;
	const char *text;
} ERRORS[] = {
    {RDMAP_E_LOCAL, NOTHING, "RDMAP: local catastrophic error"},
    {RDMAP_E_READ_STAG, READ_HEADER, "RDMAP: invalid STag"},
    {RDMAP_E_READ_BOUNDS, READ_HEADER, "RDMAP: base or bounds violation"},
    {RDMAP_E_ACCESS, READ_HEADER, "RDMAP: access rights violation"},
    {RDMAP_E_READ_SCOPE, READ_HEADER, "RDMAP: STag not of this stream"},
    {RDMAP_E_READ_WRAP, READ_HEADER, "RDMAP: offset wraps around"},
    {RDMAP_E_INVALIDATE, DDP_HEADER, "RDMAP: STag cannot be invalidated"},
    {RDMAP_E_VERSION, NOTHING, "RDMAP: invalid version"},
    {RDMAP_E_OPERATION, DDP_HEADER, "RDMAP: unexpected operation"},
    {RDMAP_E_STREAM, DDP_HEADER, "RDMAP: catastrophic error of the stream"},
    {DDP_E_LOCAL, NOTHING, "DDP: local catastrophic error"},
    {DDP_E_STAG, DDP_HEADER, "DDP: invalid STag"},
    {DDP_E_BOUNDS, DDP_HEADER, "DDP: base or bounds violation"},
    {DDP_E_SCOPE, DDP_HEADER, "DDP: STag not of this stream"},
    {DDP_E_WRAP, DDP_HEADER, "DDP: offset wraps around"},
    {DDP_E_TAGGED_VERSION, NOTHING, "DDP: invalid version (tagged)"},
    {DDP_E_QUEUE, DDP_HEADER, "DDP: invalid queue"},
    {DDP_E_NO_BUFFER, DDP_HEADER, "DDP: no receive was posted"},
    {DDP_E_MSN, DDP_HEADER, "DDP: message number out of range"},
    {DDP_E_OFFSET, DDP_HEADER, "DDP: invalid message offset"},
    {DDP_E_TOO_LONG, DDP_HEADER, "DDP: message too long for its buffer"},
    {DDP_E_UNTAGGED_VERSION, NOTHING, "DDP: invalid version (untagged)"},
    {MPA_E_CRC, NOTHING, "MPA: CRC error"},
    {MPA_E_LENGTH, NOTHING, "MPA: markers and length do not agree"},
    {MPA_E_FRAME, NOTHING, "MPA: bad set-up frame"},
    {MPA_E_LOCAL, NOTHING, "MPA: local catastrophic error"},
    {MPA_E_IRD, NOTHING, "MPA: not enough resources for reads"},
    {MPA_E_READY, NOTHING, "MPA: no common ready-to-receive message"},
};

const char *
rdmap_error_text(unsigned error)
{
	for (size_t i = 0; i < sizeof(ERRORS) / sizeof(ERRORS[0]); i++)
		if (ERRORS[i].error == error)
			return ERRORS[i].text;
	return "unknown error";
}

static enum quote
quote_of(enum rdmap_error error, const struct ddp_segment *culprit)
{
	enum quote quote = NOTHING;

	for (size_t i = 0; i < sizeof(ERRORS) / sizeof(ERRORS[0]); i++)
		if (ERRORS[i].error == error)
			quote = ERRORS[i].quote;
	if (quote == READ_HEADER && culprit->tagged)
		return DDP_HEADER;
	return quote;
}

bool
rdmap_error_is_access(unsigned error)
{
	return (error >= RDMAP_E_READ_STAG && error <= RDMAP_E_READ_WRAP) ||
	       (error >= DDP_E_STAG && error <= DDP_E_WRAP);
}

/* ---- Terminate ---- */

struct terminate_wire {
	uint8_t layer_type;
	uint8_t code;
	uint8_t flags;
	uint8_t reserved;
};

static_assert(sizeof(struct terminate_wire) == 4, "Terminate");

enum { LENGTH_VALID = 0x80, WITH_DDP = 0x40, WITH_READ = 0x20 };
/* The same flags as siw has them: C bit-fields of a little-endian machine. */
enum { SWAPPED_FLAGS = 0x07, RFC_FLAGS = LENGTH_VALID | WITH_DDP | WITH_READ };

/* The length field of the quoted segment and the headers follow one another, as in the segment
 * itself. Returns how many bytes were put. */
static size_t
put_quote(enum quote quote, const uint8_t *culprit, struct terminate_wire *wire, uint8_t *out)
{
	size_t size = ddp_payload_offset(ddp_is_tagged(culprit));

	wire->flags = LENGTH_VALID | WITH_DDP;
	if (quote == READ_HEADER) {
		wire->flags |= WITH_READ;
		size += RDMAP_READ_SIZE;
	}
	memcpy(out, culprit, size);
	return size;
}

size_t
rdmap_terminate_encode(enum rdmap_error error, const uint8_t *culprit, bool crc, uint8_t *out)
{
	struct terminate_wire wire = {.layer_type = error >> 8, .code = error & 0xff};
	struct ddp_segment header = {
	    .last = true,
	    .control = rdmap_control(RDMAP_TERMINATE),
	    .queue = RDMAP_QUEUE_TERMINATE,
	    .msn = 1,
	};
	struct ddp_segment quoted = {0};
	size_t size = DDP_HEADER_MAX + sizeof(wire);
	uint32_t sum;

	if (culprit != NULL)
		ddp_decode(culprit, &quoted);
	if (culprit != NULL && quote_of(error, &quoted) != NOTHING)
		size += put_quote(quote_of(error, &quoted), culprit, &wire, out + size);
	header.ulpdu = (uint16_t)(size - MPA_LENGTH_SIZE);
	ddp_encode(&header, out);
	memcpy(out + DDP_HEADER_MAX, &wire, sizeof(wire));
	sum = crc32c(0, out, size);
	return size + mpa_trailer(out + size, header.ulpdu, crc ? &sum : NULL);
}

/* siw swaps layer and type, and its flags have other bits. Where no flag is set, some values could
 * be of either kind: then what can have happened on this stream decides. */
static bool
is_swapped(const struct terminate_wire *wire, bool starting)
{
	if (wire->flags & RFC_FLAGS)
		return false;
	if (wire->flags & SWAPPED_FLAGS)
		return true;
	if (wire->layer_type == 0x20 && wire->code >= 5 && wire->code <= 7)
		return !starting;
	return wire->layer_type == 0x02 && wire->code < 5;
}

void
rdmap_terminate_decode(const uint8_t *payload, bool starting, struct rdmap_terminate *ret)
{
	struct terminate_wire wire;
	uint8_t layer_type;

	memcpy(&wire, payload, sizeof(wire));
	layer_type = wire.layer_type;
	if (is_swapped(&wire, starting))
		layer_type = (uint8_t)(layer_type << 4 | layer_type >> 4);
	ret->error = (unsigned)layer_type << 8 | wire.code;
	memcpy(ret->raw, payload, sizeof(ret->raw));
}
