/* mpa.h -- MPA: set-up frames and the framing of FPDUs on a TCP stream (RFC 5044, RFC 6581)
 *
 * A connection begins with one request and one reply:
 *
 *   key 16 | flags 1 | revision 1 | length of what follows 2 | private data
 *
 * With flag S (RFC 6581) the private data begin with 4 bytes of our own layer: IRD and ORD, the
 * depths of inbound and outbound reads, and what peer-to-peer set-up needs. After that there are
 * only FPDUs:
 *
 *   length of the ULPDU 2 | ULPDU | zeros up to a multiple of 4 | CRC32C 4, least octet first
 *
 * The CRC covers all before it. The field is there also where CRCs are not used. Markers are not
 * implemented: who demands them is refused.
 *
 * Pure codec: no I/O, no log, no allocation.
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- set-up frames ---- */

#define MPA_REVISION     2
#define MPA_FRAME_HEADER 20
#define MPA_PRIVATE_MAX  512
#define MPA_FRAME_MAX    (MPA_FRAME_HEADER + MPA_PRIVATE_MAX)
#define MPA_DEPTH_MANUAL 0x3fff /* as IRD or ORD: the programs agree on it themselves */

enum mpa_frame_type { MPA_REQUEST, MPA_REPLY };

/* How a peer-to-peer initiator says that it is ready: a first FPDU without content. */
enum mpa_ready { MPA_READY_SEND = 1, MPA_READY_WRITE = 2, MPA_READY_READ = 4 };

struct mpa_frame {
	bool markers;  /* demanded in what the other side sends */
	bool crc;      /* demanded, in both directions */
	bool rejected; /* reply */
	uint8_t revision;
	bool enhanced; /* what follows up to data is there */
	bool peer_to_peer;
	unsigned ready;      /* MPA_READY_... */
	uint16_t ird, ord;   /* of the sender of this frame */
	const uint8_t *data; /* private data, within the frame */
	size_t len;
};

/* Looks at the first len bytes of a stream. 0: *ret, and in *ret_size how long the frame is.
 * -EAGAIN: it is not there whole yet; -EBADMSG: it is no such frame; -EMSGSIZE: more private data
 * than there may be, or too little for flag S; -EPROTONOSUPPORT: a revision other than 1 and 2. */
int mpa_frame_decode(
    enum mpa_frame_type type, const void *buf, size_t len, struct mpa_frame *ret, size_t *ret_size);
/* Returns the size; out must hold MPA_FRAME_MAX. At most MPA_PRIVATE_MAX - 4 bytes of data. */
size_t mpa_frame_encode(enum mpa_frame_type type, const struct mpa_frame *frame, void *out);

/* ---- FPDUs ---- */

#define MPA_LENGTH_SIZE 2
#define MPA_CRC_SIZE    4
#define MPA_TRAILER_MAX (3 + MPA_CRC_SIZE)
#define MPA_ULPDU_MAX   65535
#define MPA_FPDU_MAX    (MPA_LENGTH_SIZE + MPA_ULPDU_MAX + MPA_TRAILER_MAX)

/* Zeros and CRC. */
static inline size_t
mpa_trailer_size(size_t ulpdu)
{
	return (-(MPA_LENGTH_SIZE + ulpdu) & 3) + MPA_CRC_SIZE;
}

static inline size_t
mpa_fpdu_size(size_t ulpdu)
{
	return MPA_LENGTH_SIZE + ulpdu + mpa_trailer_size(ulpdu);
}

/* The largest ULPDU whose FPDU fits into a TCP segment of emss bytes. */
size_t mpa_ulpdu_max(size_t emss);

/* Fills in the trailer; returns its size. crc: of the length field and the ULPDU, or NULL where
 * CRCs are not used. */
size_t mpa_trailer(uint8_t out[MPA_TRAILER_MAX], size_t ulpdu, const uint32_t *crc);
/* fpdu: a whole one. *ret_crc: of its length field and ULPDU, right or not; may be NULL. */
bool mpa_crc_matches(const uint8_t *fpdu, size_t ulpdu, uint32_t *ret_crc);
bool mpa_crc_is_zero(const uint8_t *fpdu, size_t ulpdu);
