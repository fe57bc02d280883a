/* rwp.c -- private data, records and lines */

#include "config.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#include "base/crc32c.h"
#include "wire/auth.h"
#include "wire/barrier.h"
#include "wire/rwp.h"

#define HEAD_SIZE 8 /* magic, versions, length: the same in all private data of all versions */

/* ---- private data ---- */

/* Copies what has come of a struct, the rest stays zero, and checks the magic. */
static int
head_take(void *copy, size_t size, const void *buf, size_t len)
{
	uint32_t magic;

	if (len < HEAD_SIZE)
		return -EBADMSG;
	memcpy(copy, buf, len < size ? len : size);
	memcpy(&magic, copy, sizeof(magic));
	return le32toh(magic) == RWP_MAGIC ? 0 : -EBADMSG;
}

/* The xxx_swap() functions turn wire order into host order and back: both are the same swap. */
static void
request_swap(struct rwp_request *r)
{
	r->magic = le32toh(r->magic);
	r->flags = le32toh(r->flags);
	r->mailbox_rkey = le32toh(r->mailbox_rkey);
	r->mailbox_addr = le64toh(r->mailbox_addr);
}

int
rwp_request_decode(const void *buf, size_t len, struct rwp_request *ret)
{
	struct rwp_request r = {0};

	if (head_take(&r, sizeof(r), buf, len) < 0)
		return -EBADMSG;
	if (r.version_min > RWP_VERSION || r.version_max < RWP_VERSION)
		return -EPROTONOSUPPORT;
	if (r.length < sizeof(r) || r.length > len)
		return -EBADMSG;
	request_swap(&r);
	if (r.mailbox_addr % RWP_RECORD_SIZE)
		return -EBADMSG;
	*ret = r;
	return 0;
}

void
rwp_request_encode(const struct rwp_request *r, void *out)
{
	struct rwp_request w = *r;

	w.magic = RWP_MAGIC;
	w.length = sizeof(w);
	request_swap(&w);
	memcpy(out, &w, sizeof(w));
}

static void
reply_swap(struct rwp_reply *r)
{
	r->magic = le32toh(r->magic);
	r->flags = le32toh(r->flags);
	r->tail_rkey = le32toh(r->tail_rkey);
	r->tail_addr = le64toh(r->tail_addr);
	r->tail_len = le32toh(r->tail_len);
	r->generation = le32toh(r->generation);
}

/* Both rings must lie inside the area, and the blob ring must take any blob. */
static bool
tail_fits(const struct rwp_reply *r)
{
	return r->ring_log2 >= RWP_RING_LOG2_MIN && r->ring_log2 <= RWP_RING_LOG2_MAX &&
	       r->tail_len >= RWP_TAIL_MIN_SIZE &&
	       r->tail_len >= rwp_blob_offset(r->ring_log2) + RWP_BLOB_MAX &&
	       r->tail_len % RWP_RECORD_SIZE == 0 && r->tail_addr % RWP_RECORD_SIZE == 0;
}

int
rwp_reply_decode(const void *buf, size_t len, struct rwp_reply *ret)
{
	struct rwp_reply r = {0};

	if (head_take(&r, sizeof(r), buf, len) < 0)
		return -EBADMSG;
	if (r.version != RWP_VERSION)
		return -EPROTONOSUPPORT;
	if (r.length < sizeof(r) || r.length > len)
		return -EBADMSG;
	reply_swap(&r);
	if (!tail_fits(&r))
		return -EBADMSG;
	*ret = r;
	return 0;
}

void
rwp_reply_encode(const struct rwp_reply *r, void *out)
{
	struct rwp_reply w = *r;

	w.magic = RWP_MAGIC;
	w.length = sizeof(w);
	reply_swap(&w);
	memcpy(out, &w, sizeof(w));
}

static void
reject_swap(struct rwp_reject *r)
{
	r->magic = le32toh(r->magic);
	r->reason = le16toh(r->reason);
	r->text_len = le16toh(r->text_len);
	r->retry_after_ms = le32toh(r->retry_after_ms);
}

/* No look at the versions: that they do not meet may be the very reason. */
int
rwp_reject_decode(const void *buf, size_t len, struct rwp_reject *ret)
{
	struct rwp_reject r = {0};

	if (head_take(&r, sizeof(r), buf, len) < 0)
		return -EBADMSG;
	if (r.length < offsetof(struct rwp_reject, text) || r.length > len)
		return -EBADMSG;
	reject_swap(&r);
	if (r.text_len > sizeof(r.text) ||
	    offsetof(struct rwp_reject, text) + r.text_len > r.length)
		return -EBADMSG;
	*ret = r;
	return 0;
}

void
rwp_reject_encode(const struct rwp_reject *r, void *out)
{
	struct rwp_reject w = *r;

	w.magic = RWP_MAGIC;
	w.length = sizeof(w);
	reject_swap(&w);
	memcpy(out, &w, sizeof(w));
}

/* ---- records and lines: 64 bytes, the tag inside, the flag last ---- */

/* The keyless tag of 64 bytes in wire order: CRC32C over what is before and after the tag, as wire
 * order. */
static uint32_t
tag_of(const void *bytes, size_t tag_start)
{
	const uint8_t *p = bytes;
	const size_t flag_start = RWP_RECORD_SIZE - sizeof(uint64_t);

	return htole32(crc32c(crc32c(0, p, tag_start), p + flag_start, sizeof(uint64_t)));
}

static void
tag_put(void *bytes, uint8_t *tag, size_t size)
{
	uint32_t crc = tag_of(bytes, (size_t)(tag - (uint8_t *)bytes));

	memset(tag, 0, size);
	memcpy(tag, &crc, sizeof(crc));
}

static bool
tag_matches(const void *bytes, const uint8_t *tag, size_t size)
{
	static const uint8_t zeros[sizeof(((struct rwp_record *)0)->tag)];
	uint32_t crc = tag_of(bytes, (size_t)(tag - (const uint8_t *)bytes));

	return !memcmp(tag, &crc, sizeof(crc)) &&
	       !memcmp(tag + sizeof(crc), zeros, size - sizeof(crc));
}

/* The keyed tag is over the same bytes, as one run, and the blob: a record's run and a line's
 * differ in length, so that neither passes for the other. */
static bool
mac_of(const void *bytes, size_t tag_start, const void *blob, size_t blob_len, const uint8_t *key,
    void *ret, size_t size)
{
	const uint8_t *p = bytes;
	uint8_t run[RWP_RECORD_SIZE];

	memcpy(run, p, tag_start);
	memcpy(run + tag_start, p + RWP_RECORD_SIZE - sizeof(uint64_t), sizeof(uint64_t));
	return auth_tag(key, run, tag_start + sizeof(uint64_t), blob, blob_len, ret, size);
}

static void
record_swap(struct rwp_record *r)
{
	r->blob_len = le16toh(r->blob_len);
	r->transfer = le32toh(r->transfer);
	r->stream_off = le64toh(r->stream_off);
	r->region_off = le64toh(r->region_off);
	r->length = le32toh(r->length);
	r->data_crc = le32toh(r->data_crc);
	r->grant = le32toh(r->grant);
	r->blob_off = le32toh(r->blob_off);
	r->seq = le64toh(r->seq);
}

int
rwp_record_load(const void *slot, uint64_t expected_seq, struct rwp_record *ret)
{
	struct rwp_record r;

	foreign_copy(&r, slot, sizeof(r));
	record_swap(&r);
	if (r.seq != expected_seq)
		return -EAGAIN;
	*ret = r;
	return 0;
}

int
rwp_record_decode(const void *slot, uint64_t expected_seq, struct rwp_record *ret)
{
	struct rwp_record r, wire;

	if (rwp_record_load(slot, expected_seq, &r) < 0)
		return -EAGAIN;
	wire = r;
	record_swap(&wire);
	if (!tag_matches(&wire, wire.tag, sizeof(wire.tag)))
		return -EBADMSG;
	*ret = r;
	return 0;
}

void
rwp_record_encode(const struct rwp_record *r, void *out)
{
	struct rwp_record w = *r;

	record_swap(&w);
	tag_put(&w, w.tag, sizeof(w.tag));
	memcpy(out, &w, sizeof(w));
}

static bool
record_mac(
    const struct rwp_record *wire, const void *blob, const uint8_t *key, uint8_t ret[AUTH_MAC_SIZE])
{
	return mac_of(wire, offsetof(struct rwp_record, tag), blob, le16toh(wire->blob_len), key,
	    ret, AUTH_MAC_SIZE);
}

void
rwp_record_sign(void *encoded, const void *blob, const uint8_t *key)
{
	struct rwp_record *wire = encoded;

	record_mac(wire, blob, key, wire->tag);
}

bool
rwp_record_is_signed(const struct rwp_record *r, const void *blob, const uint8_t *key)
{
	struct rwp_record wire = *r;
	uint8_t mac[AUTH_MAC_SIZE];

	record_swap(&wire);
	return record_mac(&wire, blob, key, mac) && auth_equal(mac, r->tag, sizeof(mac));
}

static void
line_swap(struct rwp_line *l)
{
	l->state = le32toh(l->state);
	l->grant = le32toh(l->grant);
	l->consumed = le64toh(l->consumed);
	l->released = le64toh(l->released);
	l->arrived = le64toh(l->arrived);
	l->durable = le64toh(l->durable);
	l->transfer = le32toh(l->transfer);
	l->beat = le64toh(l->beat);
}

/* key: NULL for the keyless tag. */
static bool
line_tag_matches(const struct rwp_line *wire, const uint8_t *key)
{
	uint8_t mac[sizeof(wire->tag)];

	if (key == NULL)
		return tag_matches(wire, wire->tag, sizeof(wire->tag));
	return mac_of(wire, offsetof(struct rwp_line, tag), NULL, 0, key, mac, sizeof(mac)) &&
	       auth_equal(mac, wire->tag, sizeof(mac));
}

int
rwp_line_decode_signed(const void *area, uint64_t seen, const uint8_t *key, struct rwp_line *ret)
{
	struct rwp_line l;

	foreign_copy(&l, (const uint8_t *)area + RWP_LINE_OFFSET, sizeof(l));
	if ((int64_t)(le64toh(l.beat) - seen) <= 0) /* seen, or older and put back by somebody */
		return -EAGAIN;
	if (!line_tag_matches(&l, key))
		return -EBADMSG;
	line_swap(&l);
	*ret = l;
	return 0;
}

int
rwp_line_decode(const void *area, uint64_t seen, struct rwp_line *ret)
{
	return rwp_line_decode_signed(area, seen, NULL, ret);
}

void
rwp_line_encode(const struct rwp_line *l, void *out)
{
	struct rwp_line w = *l;

	line_swap(&w);
	tag_put(&w, w.tag, sizeof(w.tag));
	memcpy(out, &w, sizeof(w));
}

void
rwp_line_sign(void *encoded, const uint8_t *key)
{
	struct rwp_line *wire = encoded;

	mac_of(wire, offsetof(struct rwp_line, tag), NULL, 0, key, wire->tag, sizeof(wire->tag));
}

/* ---- names ---- */

static const char *const CODES[] = {
    [RWP_ARRIVED] = "arrived",
    [RWP_STORED] = "stored",
    [RWP_E_VERSION] = "no common protocol version",
    [RWP_E_ADDRESS] = "address not allowed",
    [RWP_E_BUSY] = "too many connections",
    [RWP_E_KEY] = "key needed, unknown or wrong",
    [RWP_E_STALE] = "meant for another daemon, start or connection",
    [RWP_E_REGION] = "no such region",
    [RWP_E_SIZE] = "larger than the region grants",
    [RWP_E_MEMORY] = "memory is short",
    [RWP_E_UNSUPPORTED] = "not supported",
    [RWP_E_PROTOCOL] = "protocol broken",
    [RWP_E_CHECKSUM] = "checksum does not match",
    [RWP_E_TIMEOUT] = "deadline passed",
    [RWP_E_SHUTDOWN] = "shutting down",
    [RWP_E_RELEASED] = "released by an operator",
    [RWP_E_IDLE] = "idle for too long",
    [RWP_E_STORAGE] = "could not be stored",
    [RWP_E_ABORTED] = "aborted by the writer",
    [RWP_E_INTERNAL] = "internal error",
};

static const char *const TYPES[] = {
    [RWP_HELLO] = "HELLO",
    [RWP_BEGIN] = "BEGIN",
    [RWP_DATA] = "DATA",
    [RWP_HOLE] = "HOLE",
    [RWP_END] = "END",
    [RWP_ONE] = "ONE",
    [RWP_ABORT] = "ABORT",
    [RWP_GROW] = "GROW",
    [RWP_BYE] = "BYE",
    [RWP_GRANT] = "GRANT",
    [RWP_DENY] = "DENY",
    [RWP_BEGIN_OK] = "BEGIN-OK",
    [RWP_RESULT] = "RESULT",
    [RWP_NOTICE] = "NOTICE",
};

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

const char *
rwp_code_text(unsigned code)
{
	return code < COUNT(CODES) ? CODES[code] : NULL;
}

const char *
rwp_type_name(unsigned type)
{
	return type < COUNT(TYPES) ? TYPES[type] : NULL;
}
