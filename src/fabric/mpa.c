/* mpa.c -- MPA: set-up frames and the framing of FPDUs on a TCP stream */

#include "config.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "base/crc32c.h"
#include "fabric/mpa.h"

#define KEY_SIZE  16
#define ULPDU_MIN 128 /* of a sender, however small the segments are (RFC 5044, 4.5) */

enum { FLAG_MARKERS = 0x80, FLAG_CRC = 0x40, FLAG_REJECTED = 0x20, FLAG_ENHANCED = 0x10 };

/* Bits that share their words with IRD and ORD. */
enum { IRD_PEER_TO_PEER = 0x8000, IRD_READY_SEND = 0x4000 };
enum { ORD_READY_WRITE = 0x8000, ORD_READY_READ = 0x4000 };
#define DEPTH_MASK 0x3fff

struct frame_wire {
	char key[KEY_SIZE];
	uint8_t flags;
	uint8_t revision;
	uint16_t len;
};

struct enhanced_wire {
	uint16_t ird, ord;
};

static_assert(sizeof(struct frame_wire) == MPA_FRAME_HEADER, "set-up frame");
static_assert(offsetof(struct frame_wire, flags) == 16, "set-up frame");
static_assert(offsetof(struct frame_wire, len) == 18, "set-up frame");
static_assert(sizeof(struct enhanced_wire) == 4, "enhanced set-up");

static const char KEYS[][KEY_SIZE + 1] = {
    [MPA_REQUEST] = "MPA ID Req Frame",
    [MPA_REPLY] = "MPA ID Rep Frame",
};

/* ---- set-up frames ---- */

static int
check_header(enum mpa_frame_type type, const struct frame_wire *wire, size_t len)
{
	size_t data_len;

	if (memcmp(wire->key, KEYS[type], len < KEY_SIZE ? len : KEY_SIZE) != 0)
		return -EBADMSG;
	if (len < sizeof(*wire))
		return -EAGAIN;
	if (wire->revision < 1 || wire->revision > MPA_REVISION)
		return -EPROTONOSUPPORT;
	data_len = be16toh(wire->len);
	if (data_len > MPA_PRIVATE_MAX)
		return -EMSGSIZE;
	return len < sizeof(*wire) + data_len ? -EAGAIN : 0;
}

static void
take_enhanced(struct mpa_frame *frame)
{
	struct enhanced_wire wire;
	uint16_t ird, ord;

	memcpy(&wire, frame->data, sizeof(wire));
	ird = be16toh(wire.ird);
	ord = be16toh(wire.ord);
	frame->ird = ird & DEPTH_MASK;
	frame->ord = ord & DEPTH_MASK;
	frame->peer_to_peer = ird & IRD_PEER_TO_PEER;
	if (frame->peer_to_peer)
		frame->ready = (ird & IRD_READY_SEND ? MPA_READY_SEND : 0) |
			       (ord & ORD_READY_WRITE ? MPA_READY_WRITE : 0) |
			       (ord & ORD_READY_READ ? MPA_READY_READ : 0);
	frame->data += sizeof(wire);
	frame->len -= sizeof(wire);
}

int
mpa_frame_decode(
    enum mpa_frame_type type, const void *buf, size_t len, struct mpa_frame *ret, size_t *ret_size)
{
	struct frame_wire wire = {0};
	struct mpa_frame frame;
	int r;

	memcpy(&wire, buf, len < sizeof(wire) ? len : sizeof(wire));
	r = check_header(type, &wire, len);
	if (r < 0)
		return r;
	frame = (struct mpa_frame){
	    .markers = wire.flags & FLAG_MARKERS,
	    .crc = wire.flags & FLAG_CRC,
	    .rejected = type == MPA_REPLY && wire.flags & FLAG_REJECTED,
	    .revision = wire.revision,
	    .enhanced = wire.revision >= 2 && wire.flags & FLAG_ENHANCED,
	    .data = (const uint8_t *)buf + sizeof(wire),
	    .len = be16toh(wire.len),
	};
	*ret_size = sizeof(wire) + frame.len;
	if (frame.enhanced && frame.len < sizeof(struct enhanced_wire))
		return -EMSGSIZE;
	if (frame.enhanced)
		take_enhanced(&frame);
	*ret = frame;
	return 0;
}

static size_t
put_enhanced(const struct mpa_frame *frame, uint8_t *out)
{
	struct enhanced_wire wire = {
	    .ird = htobe16(frame->ird | (frame->peer_to_peer ? IRD_PEER_TO_PEER : 0) |
			   (frame->ready & MPA_READY_SEND ? IRD_READY_SEND : 0)),
	    .ord = htobe16(frame->ord | (frame->ready & MPA_READY_WRITE ? ORD_READY_WRITE : 0) |
			   (frame->ready & MPA_READY_READ ? ORD_READY_READ : 0)),
	};

	if (!frame->enhanced)
		return 0;
	memcpy(out, &wire, sizeof(wire));
	return sizeof(wire);
}

size_t
mpa_frame_encode(enum mpa_frame_type type, const struct mpa_frame *frame, void *out)
{
	uint8_t *data = (uint8_t *)out + sizeof(struct frame_wire);
	size_t len = put_enhanced(frame, data);
	struct frame_wire wire = {
	    .flags = (frame->markers ? FLAG_MARKERS : 0) | (frame->crc ? FLAG_CRC : 0) |
		     (frame->rejected ? FLAG_REJECTED : 0) | (frame->enhanced ? FLAG_ENHANCED : 0),
	    .revision = frame->revision,
	};

	assert(len + frame->len <= MPA_PRIVATE_MAX);
	if (frame->len > 0)
		memcpy(data + len, frame->data, frame->len);
	len += frame->len;
	memcpy(wire.key, KEYS[type], KEY_SIZE);
	wire.len = htobe16((uint16_t)len);
	memcpy(out, &wire, sizeof(wire));
	return sizeof(wire) + len;
}

/* ---- FPDUs ---- */

size_t
mpa_ulpdu_max(size_t emss)
{
	size_t around = MPA_LENGTH_SIZE + MPA_CRC_SIZE + emss % 4;
	size_t ulpdu = emss > around ? emss - around : 0;

	if (ulpdu < ULPDU_MIN)
		return ULPDU_MIN;
	return ulpdu < MPA_ULPDU_MAX ? ulpdu : MPA_ULPDU_MAX;
}

size_t
mpa_trailer(uint8_t out[MPA_TRAILER_MAX], size_t ulpdu, const uint32_t *crc)
{
	size_t size = mpa_trailer_size(ulpdu), pad = size - MPA_CRC_SIZE;
	uint32_t sum;

	memset(out, 0, size);
	if (crc != NULL) {
		sum = htole32(crc32c(*crc, out, pad));
		memcpy(out + pad, &sum, sizeof(sum));
	}
	return size;
}

static uint32_t
received_crc(const uint8_t *fpdu, size_t ulpdu)
{
	uint32_t sum;

	memcpy(&sum, fpdu + mpa_fpdu_size(ulpdu) - MPA_CRC_SIZE, sizeof(sum));
	return le32toh(sum);
}

bool
mpa_crc_matches(const uint8_t *fpdu, size_t ulpdu, uint32_t *ret_crc)
{
	size_t len = MPA_LENGTH_SIZE + ulpdu, pad = mpa_trailer_size(ulpdu) - MPA_CRC_SIZE;
	uint32_t crc = crc32c(0, fpdu, len);

	if (ret_crc != NULL)
		*ret_crc = crc;
	return crc32c(crc, fpdu + len, pad) == received_crc(fpdu, ulpdu);
}

bool
mpa_crc_is_zero(const uint8_t *fpdu, size_t ulpdu)
{
	return received_crc(fpdu, ulpdu) == 0;
}
