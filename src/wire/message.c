/* message.c -- the blobs as structs: one table per struct drives both directions */

#include "config.h"

#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "wire/blob.h"
#include "wire/message.h"
#include "wire/rwp.h"

enum kind { TEXT, U32, U64, BYTES };

/* A member and the TLV that carries it. A required one is always sent, others only when they differ
 * from what they are when the TLV is absent: zeros, empty, or `absent`. */
struct field {
	uint16_t type; /* enum rwp_tlv */
	uint8_t kind;
	bool required, must; /* be there; be understood */
	uint16_t offset, size;
	uint64_t absent; /* of a U64 */
};

struct layout {
	const struct field *fields;
	unsigned n;
	size_t size;
};

#define FIELD(struct_name, member, tlv, how)                                                \
	.type = RWP_TLV_##tlv, .kind = how, .offset = offsetof(struct struct_name, member), \
	.size = sizeof(((struct struct_name *)0)->member)
#define LAYOUT(struct_name, table)                                        \
	{                                                                 \
		.fields = table, .n = sizeof(table) / sizeof((table)[0]), \
		.size = sizeof(struct struct_name)                        \
	}

/* ECHO is two members side by side, carried as the bytes they are: see the two hello functions. */
#define ECHO_SIZE (sizeof(((struct rwp_hello *)0)->boot_id) + sizeof(uint32_t))

static_assert(offsetof(struct rwp_hello, generation) == offsetof(struct rwp_hello, boot_id) + 8,
    "ECHO: generation follows boot_id");

static const struct field HELLO_FIELDS[] = {
    {FIELD(rwp_hello, writer, WRITER, TEXT), .required = true},
    {FIELD(rwp_hello, target, TARGET, TEXT)},
    {FIELD(rwp_hello, region, REGION, TEXT)},
    {FIELD(rwp_hello, size, SIZE, U64), .required = true},
    {FIELD(rwp_hello, offered, OFFERED, U64)},
    {FIELD(rwp_hello, required, REQUIRED, U64)},
    {RWP_TLV_ECHO, BYTES, true, false, offsetof(struct rwp_hello, boot_id), ECHO_SIZE, 0},
};

static const struct field GRANT_FIELDS[] = {
    {FIELD(rwp_grant, address, ADDRESS, U64), .required = true},
    {FIELD(rwp_grant, rkey, RKEY, U32), .required = true},
    {FIELD(rwp_grant, size, SIZE, U64), .required = true},
    {FIELD(rwp_grant, generation, GENERATION, U32), .required = true},
    {FIELD(rwp_grant, sink, SINK, U32), .required = true},
    {FIELD(rwp_grant, segment, SEGMENT, U32), .required = true},
    {FIELD(rwp_grant, in_flight, IN_FLIGHT, U64), .required = true},
    {FIELD(rwp_grant, beat_ms, BEAT, U32), .required = true},
    {FIELD(rwp_grant, dead_ms, DEAD, U32), .required = true},
    {FIELD(rwp_grant, chosen, CHOSEN, U64)},
    {FIELD(rwp_grant, region_id, REGION_ID, U32)},
    {FIELD(rwp_grant, host, HOST, TEXT)},
    {FIELD(rwp_grant, buffers, BUFFERS, U32), .must = true},
};

static const struct field DENY_FIELDS[] = {
    {FIELD(rwp_deny, code, CODE, U32), .required = true},
    {FIELD(rwp_deny, text, TEXT, TEXT)},
    {FIELD(rwp_deny, fix, FIX, TEXT)},
    {FIELD(rwp_deny, size, SIZE, U64)},
    {FIELD(rwp_deny, limit, LIMIT, U64)},
    {FIELD(rwp_deny, retry_ms, RETRY, U32)},
    {FIELD(rwp_deny, host, HOST, TEXT)},
};

static const struct field BEGIN_FIELDS[] = {
    {FIELD(rwp_begin, name, NAME, TEXT)},
    {FIELD(rwp_begin, length, LENGTH, U64), .absent = UINT64_MAX},
    {FIELD(rwp_begin, mode, MODE, U32)},
    {FIELD(rwp_begin, mtime_ns, MTIME, U64)},
    {FIELD(rwp_begin, id, ID, BYTES)},
};

static const struct layout HELLO = LAYOUT(rwp_hello, HELLO_FIELDS);
static const struct layout GRANT = LAYOUT(rwp_grant, GRANT_FIELDS);
static const struct layout DENY = LAYOUT(rwp_deny, DENY_FIELDS);
static const struct layout BEGIN = LAYOUT(rwp_begin, BEGIN_FIELDS);

union message {
	struct rwp_hello hello;
	struct rwp_grant grant;
	struct rwp_deny deny;
	struct rwp_begin begin;
};

/* ---- encode ---- */

static bool
is_absent(const struct field *f, const void *member)
{
	static const uint8_t zeros[sizeof(union message)];
	const void *absent = f->absent ? (const void *)&f->absent : zeros;

	return !memcmp(member, absent, f->kind == TEXT ? 1 : f->size);
}

static void
put_field(struct rwp_builder *b, const struct field *f, const void *member)
{
	unsigned type = f->must ? f->type | RWP_TLV_MUST : f->type;

	if (!f->required && is_absent(f, member))
		return;
	switch ((enum kind)f->kind) {
	case TEXT:
		rwp_put(b, type, member, strnlen(member, f->size));
		break;
	case U32:
		rwp_put_u32(b, type, *(const uint32_t *)member);
		break;
	case U64:
		rwp_put_u64(b, type, *(const uint64_t *)member);
		break;
	case BYTES:
		rwp_put(b, type, member, f->size);
		break;
	}
}

static void
put_fields(struct rwp_builder *b, const struct layout *l, const void *message)
{
	for (unsigned i = 0; i < l->n; i++)
		put_field(b, &l->fields[i], (const uint8_t *)message + l->fields[i].offset);
}

static int
encode(const struct layout *l, const void *message, unsigned kind, uint64_t seq, void *buf,
    size_t size)
{
	struct rwp_builder b;

	rwp_blob_start(&b, buf, size, kind, seq);
	put_fields(&b, l, message);
	if (kind == RWP_ONE)
		rwp_put_check(&b);
	return rwp_blob_finish(&b);
}

/* ---- decode ---- */

static int
get_field(const struct field *f, const struct rwp_item *item, void *member)
{
	switch ((enum kind)f->kind) {
	case TEXT:
		return rwp_item_text(item, member, f->size);
	case U32:
		return rwp_item_u32(item, member);
	case U64:
		return rwp_item_u64(item, member);
	case BYTES:
		if (item->len != f->size)
			return -EBADMSG;
		memcpy(member, item->value, f->size);
		return 0;
	}
	return -EBADMSG;
}

static int
find_field(const struct layout *l, unsigned type)
{
	for (unsigned i = 0; i < l->n; i++)
		if (l->fields[i].type == type)
			return (int)i;
	return -1;
}

/* Takes one TLV into message; *seen has a bit for each field that has come. */
static int
get_item(const struct layout *l, const struct rwp_item *item, uint32_t *seen, void *message)
{
	int i = find_field(l, item->type);

	if (i < 0)
		return item->must ? -EPROTONOSUPPORT : 0;
	if (*seen & UINT32_C(1) << i)
		return -EBADMSG;
	*seen |= UINT32_C(1) << i;
	return get_field(&l->fields[i], item, (uint8_t *)message + l->fields[i].offset);
}

static int
check_required(const struct layout *l, uint32_t seen)
{
	for (unsigned i = 0; i < l->n; i++)
		if (l->fields[i].required && !(seen & UINT32_C(1) << i))
			return -EBADMSG;
	return 0;
}

static void
set_absent(const struct layout *l, void *message)
{
	memset(message, 0, l->size);
	for (unsigned i = 0; i < l->n; i++)
		if (l->fields[i].absent)
			memcpy((uint8_t *)message + l->fields[i].offset, &l->fields[i].absent,
			    l->fields[i].size);
}

static int
get_fields(struct rwp_reader *r, const struct layout *l, void *message)
{
	struct rwp_item item;
	uint32_t seen = 0;
	int e;

	set_absent(l, message);
	while ((e = rwp_blob_next(r, &item)) > 0) {
		e = get_item(l, &item, &seen, message);
		if (e < 0)
			return e;
	}
	return e < 0 ? e : check_required(l, seen);
}

static int
decode(const struct layout *l, const void *blob, size_t len, unsigned kind, uint64_t seq, void *ret)
{
	union message message;
	struct rwp_reader r;
	int e = rwp_blob_open(&r, blob, len, kind, seq);

	if (e == 0 && kind == RWP_ONE)
		e = rwp_blob_check(&r);
	if (e == 0)
		e = get_fields(&r, l, &message);
	if (e == 0)
		memcpy(ret, &message, l->size);
	return e;
}

/* ---- the four structs ---- */

int
rwp_hello_encode(const struct rwp_hello *h, uint64_t seq, void *buf, size_t size)
{
	struct rwp_hello wire = *h;

	wire.generation = htole32(h->generation);
	return encode(&HELLO, &wire, RWP_HELLO, seq, buf, size);
}

int
rwp_hello_decode(const void *blob, size_t len, uint64_t seq, struct rwp_hello *ret)
{
	int e = decode(&HELLO, blob, len, RWP_HELLO, seq, ret);

	if (e == 0)
		ret->generation = le32toh(ret->generation);
	return e;
}

int
rwp_grant_encode(const struct rwp_grant *g, uint64_t seq, void *buf, size_t size)
{
	return encode(&GRANT, g, RWP_GRANT, seq, buf, size);
}

int
rwp_grant_decode(const void *blob, size_t len, uint64_t seq, struct rwp_grant *ret)
{
	return decode(&GRANT, blob, len, RWP_GRANT, seq, ret);
}

int
rwp_deny_encode(const struct rwp_deny *d, unsigned kind, uint64_t seq, void *buf, size_t size)
{
	return encode(&DENY, d, kind, seq, buf, size);
}

int
rwp_deny_decode(const void *blob, size_t len, unsigned kind, uint64_t seq, struct rwp_deny *ret)
{
	return decode(&DENY, blob, len, kind, seq, ret);
}

int
rwp_begin_encode(const struct rwp_begin *b, unsigned kind, uint64_t seq, void *buf, size_t size)
{
	return encode(&BEGIN, b, kind, seq, buf, size);
}

int
rwp_begin_decode(const void *blob, size_t len, unsigned kind, uint64_t seq, struct rwp_begin *ret)
{
	return decode(&BEGIN, blob, len, kind, seq, ret);
}
