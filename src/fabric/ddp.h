/* ddp.h -- DDP: the header of a segment (RFC 5041)
 *
 *   tagged:   length 2 | control 1 | RDMAP's control 1 | STag 4 | TO 8
 *   untagged: length 2 | control 1 | RDMAP's control 1 | word of RDMAP's 4 | QN 4 | MSN 4 | MO 4
 *
 * The length is MPA's: together with it the fields are naturally aligned, so it is part of the
 * structs here. A tagged segment names the memory that its payload goes to; an untagged one is a
 * piece of a message for a queue: number MSN (from 1 on), from offset MO on. Big-endian.
 *
 * Pure codec: no I/O, no log, no allocation.
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DDP_VERSION       1
#define DDP_TAGGED_SIZE   14 /* without the length field, as the length field counts */
#define DDP_UNTAGGED_SIZE 18
#define DDP_PREFIX_SIZE   (2 + DDP_TAGGED_SIZE) /* so much there is of any segment */
#define DDP_HEADER_MAX    (2 + DDP_UNTAGGED_SIZE)

struct ddp_segment {
	uint16_t ulpdu; /* length of header and payload */
	bool tagged;
	bool last;       /* of its message */
	uint8_t version; /* encoded: always DDP_VERSION */
	uint8_t control; /* RDMAP's */

	uint32_t stag; /* tagged */
	uint64_t to;

	uint32_t word; /* untagged */
	uint32_t queue, msn, mo;
};

static inline size_t
ddp_header_size(bool tagged)
{
	return tagged ? DDP_TAGGED_SIZE : DDP_UNTAGGED_SIZE;
}

/* Bytes from the MPA length field to the payload. */
static inline size_t
ddp_payload_offset(bool tagged)
{
	return 2 + ddp_header_size(tagged);
}

/* From the first three bytes of an FPDU. */
bool ddp_is_tagged(const uint8_t *fpdu);
/* fpdu: all of the header is there. */
void ddp_decode(const uint8_t *fpdu, struct ddp_segment *ret);
/* Returns the size, length field included; out must hold DDP_HEADER_MAX. */
size_t ddp_encode(const struct ddp_segment *segment, void *out);
