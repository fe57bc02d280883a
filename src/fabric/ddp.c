/* ddp.c -- DDP: the header of a segment */

#include "config.h"

#include <assert.h>
#include <endian.h>
#include <string.h>

#include "fabric/ddp.h"

enum { TAGGED = 0x80, LAST = 0x40, VERSION_MASK = 0x03 };

struct common_wire {
	uint16_t ulpdu;
	uint8_t flags;
	uint8_t control;
};

struct tagged_wire {
	struct common_wire common;
	uint32_t stag;
	uint64_t to;
};

struct untagged_wire {
	struct common_wire common;
	uint32_t word;
	uint32_t queue;
	uint32_t msn;
	uint32_t mo;
};

static_assert(sizeof(struct common_wire) == 4, "segment");
static_assert(sizeof(struct tagged_wire) == 2 + DDP_TAGGED_SIZE, "tagged segment");
static_assert(offsetof(struct tagged_wire, stag) == 4, "tagged segment");
static_assert(offsetof(struct tagged_wire, to) == 8, "tagged segment");
static_assert(sizeof(struct untagged_wire) == 2 + DDP_UNTAGGED_SIZE, "untagged segment");
static_assert(offsetof(struct untagged_wire, queue) == 8, "untagged segment");
static_assert(offsetof(struct untagged_wire, mo) == 16, "untagged segment");

bool
ddp_is_tagged(const uint8_t *fpdu)
{
	return fpdu[offsetof(struct common_wire, flags)] & TAGGED;
}

static void
decode_tagged(const uint8_t *fpdu, struct ddp_segment *ret)
{
	struct tagged_wire wire;

	memcpy(&wire, fpdu, sizeof(wire));
	ret->stag = be32toh(wire.stag);
	ret->to = be64toh(wire.to);
}

static void
decode_untagged(const uint8_t *fpdu, struct ddp_segment *ret)
{
	struct untagged_wire wire;

	memcpy(&wire, fpdu, sizeof(wire));
	ret->word = be32toh(wire.word);
	ret->queue = be32toh(wire.queue);
	ret->msn = be32toh(wire.msn);
	ret->mo = be32toh(wire.mo);
}

void
ddp_decode(const uint8_t *fpdu, struct ddp_segment *ret)
{
	struct common_wire wire;

	memcpy(&wire, fpdu, sizeof(wire));
	*ret = (struct ddp_segment){
	    .ulpdu = be16toh(wire.ulpdu),
	    .tagged = wire.flags & TAGGED,
	    .last = wire.flags & LAST,
	    .version = wire.flags & VERSION_MASK,
	    .control = wire.control,
	};
	if (ret->tagged)
		decode_tagged(fpdu, ret);
	else
		decode_untagged(fpdu, ret);
}

size_t
ddp_encode(const struct ddp_segment *segment, void *out)
{
	struct common_wire common = {
	    .ulpdu = htobe16(segment->ulpdu),
	    .flags = (segment->tagged ? TAGGED : 0) | (segment->last ? LAST : 0) | DDP_VERSION,
	    .control = segment->control,
	};
	struct tagged_wire tagged = {
	    .common = common, .stag = htobe32(segment->stag), .to = htobe64(segment->to)};
	struct untagged_wire untagged = {
	    .common = common,
	    .word = htobe32(segment->word),
	    .queue = htobe32(segment->queue),
	    .msn = htobe32(segment->msn),
	    .mo = htobe32(segment->mo),
	};

	if (segment->tagged)
		memcpy(out, &tagged, sizeof(tagged));
	else
		memcpy(out, &untagged, sizeof(untagged));
	return ddp_payload_offset(segment->tagged);
}
