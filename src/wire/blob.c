/* blob.c -- blobs: a header, then TLVs */

#include "config.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/text.h"
#include "wire/auth.h"
#include "wire/blob.h"

struct tlv {
	uint16_t type, len;
};

/* What a TLV takes with its header and its zeros. */
static size_t
tlv_size(size_t value_len)
{
	return (sizeof(struct tlv) + value_len + 7) & ~(size_t)7;
}

#define CHECK_SIZE 8  /* tlv_size(4) */
#define MAC_SIZE   24 /* tlv_size(AUTH_MAC_SIZE) */

/* ---- building ---- */

/* Room for len bytes more, zeroed, or NULL for this and all that follows. */
static uint8_t *
extend(struct rwp_builder *b, size_t len)
{
	size_t end = b->size < RWP_BLOB_MAX ? b->size : RWP_BLOB_MAX;

	if (b->overflow || len > end - b->len) {
		b->overflow = true;
		return NULL;
	}
	b->len += len;
	return memset(b->buf + b->len - len, 0, len);
}

/* len: what the header says, of a blob that may not have grown to it yet. */
static void
set_length(struct rwp_builder *b, size_t len)
{
	uint32_t w = htole32((uint32_t)len);

	memcpy(b->buf + offsetof(struct rwp_blob_header, length), &w, sizeof(w));
}

void
rwp_blob_start(struct rwp_builder *b, void *buf, size_t size, unsigned kind, uint64_t seq)
{
	struct rwp_blob_header h = {.kind = htole16((uint16_t)kind), .seq = htole64(seq)};
	uint8_t *p;

	*b = (struct rwp_builder){.buf = buf, .size = size};
	p = extend(b, sizeof(h));
	if (p)
		memcpy(p, &h, sizeof(h));
}

void
rwp_put(struct rwp_builder *b, unsigned type, const void *value, size_t len)
{
	struct tlv t = {htole16((uint16_t)type), htole16((uint16_t)len)};
	uint8_t *p = extend(b, len <= RWP_BLOB_MAX ? tlv_size(len) : RWP_BLOB_MAX + 1);

	if (!p)
		return;
	memcpy(p, &t, sizeof(t));
	if (len)
		memcpy(p + sizeof(t), value, len);
}

void
rwp_put_u32(struct rwp_builder *b, unsigned type, uint32_t value)
{
	uint32_t w = htole32(value);

	rwp_put(b, type, &w, sizeof(w));
}

void
rwp_put_u64(struct rwp_builder *b, unsigned type, uint64_t value)
{
	uint64_t w = htole64(value);

	rwp_put(b, type, &w, sizeof(w));
}

void
rwp_put_text(struct rwp_builder *b, unsigned type, const char *text)
{
	if (text && *text)
		rwp_put(b, type, text, strlen(text));
}

/* The header counts among what is checked, so its length must be final first. */
void
rwp_put_check(struct rwp_builder *b)
{
	if (b->overflow)
		return;
	set_length(b, b->len + CHECK_SIZE);
	rwp_put_u32(b, RWP_TLV_CHECK, crc32c(0, b->buf, b->len));
}

int
rwp_blob_finish(struct rwp_builder *b)
{
	if (b->overflow)
		return -EMSGSIZE;
	set_length(b, b->len);
	return (int)b->len;
}

uint8_t *
rwp_blob_add_mac(void *blob, size_t size, int *len)
{
	static const uint8_t zeros[AUTH_MAC_SIZE];
	struct rwp_builder b = {.buf = blob, .size = size, .len = (size_t)*len};
	uint8_t *value = b.buf + b.len + sizeof(struct tlv);

	rwp_put(&b, RWP_TLV_MAC, zeros, sizeof(zeros));
	if (b.overflow)
		return NULL;
	*len = rwp_blob_finish(&b);
	return value;
}

/* ---- reading ---- */

int
rwp_blob_open(struct rwp_reader *r, const void *blob, size_t len, unsigned kind, uint64_t seq)
{
	struct rwp_blob_header h;

	if (len < sizeof(h) || len > RWP_BLOB_MAX || len % 8)
		return -EBADMSG;
	memcpy(&h, blob, sizeof(h));
	if (le32toh(h.length) != len || le16toh(h.kind) != kind || le64toh(h.seq) != seq)
		return -EBADMSG;
	if (h.flags)
		return -EPROTONOSUPPORT;
	*r = (struct rwp_reader){.buf = blob, .len = len, .pos = sizeof(h)};
	return 0;
}

static bool
all_zero(const uint8_t *p, size_t len)
{
	while (len && !*p)
		p++, len--;
	return !len;
}

int
rwp_blob_next(struct rwp_reader *r, struct rwp_item *ret)
{
	const uint8_t *p = r->buf + r->pos;
	size_t left = r->len - r->pos, used;
	struct tlv t;

	if (!left)
		return 0;
	memcpy(&t, p, sizeof(t)); /* pos and len are multiples of 8: at least 8 bytes are left */
	t.type = le16toh(t.type);
	t.len = le16toh(t.len);
	used = sizeof(t) + t.len;
	if (!(t.type & ~RWP_TLV_MUST) || tlv_size(t.len) > left ||
	    !all_zero(p + used, tlv_size(t.len) - used))
		return -EBADMSG;
	*ret = (struct rwp_item){
	    .type = t.type & ~RWP_TLV_MUST,
	    .must = t.type & RWP_TLV_MUST,
	    .value = p + sizeof(t),
	    .len = t.len,
	};
	r->pos += tlv_size(t.len);
	return 1;
}

int
rwp_blob_check(struct rwp_reader *r)
{
	struct rwp_reader last = {.buf = r->buf, .len = r->len, .pos = r->len - CHECK_SIZE};
	struct rwp_item item;
	uint32_t crc;

	if (r->len - r->pos < CHECK_SIZE || rwp_blob_next(&last, &item) != 1)
		return -EBADMSG;
	if (item.type != RWP_TLV_CHECK || rwp_item_u32(&item, &crc) < 0 ||
	    crc != crc32c(0, r->buf, r->len - CHECK_SIZE))
		return -EBADMSG;
	r->len -= CHECK_SIZE;
	return 0;
}

const uint8_t *
rwp_blob_find_mac(const void *blob, size_t len, size_t *ret_before)
{
	struct rwp_reader last = {.buf = blob, .len = len, .pos = len - MAC_SIZE};
	struct rwp_item item;

	if (len < sizeof(struct rwp_blob_header) + MAC_SIZE || rwp_blob_next(&last, &item) != 1 ||
	    item.type != RWP_TLV_MAC || item.len != AUTH_MAC_SIZE)
		return NULL;
	*ret_before = len - MAC_SIZE;
	return item.value;
}

int
rwp_item_u32(const struct rwp_item *i, uint32_t *ret)
{
	uint32_t w;

	if (i->len != sizeof(w))
		return -EBADMSG;
	memcpy(&w, i->value, sizeof(w));
	*ret = le32toh(w);
	return 0;
}

int
rwp_item_u64(const struct rwp_item *i, uint64_t *ret)
{
	uint64_t w;

	if (i->len != sizeof(w))
		return -EBADMSG;
	memcpy(&w, i->value, sizeof(w));
	*ret = le64toh(w);
	return 0;
}

int
rwp_item_text(const struct rwp_item *i, char *buf, size_t size)
{
	if (i->len >= size || !text_is_clean(i->value, i->len))
		return -EBADMSG;
	memcpy(buf, i->value, i->len);
	buf[i->len] = '\0';
	return 0;
}
