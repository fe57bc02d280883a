/* stranger_talk.c -- the stranger's words: blobs, records and lines, and reading those of the
 * target */

#include <endian.h>
#include <err.h>
#include <string.h>
#include <time.h>

#include "stranger.h"

enum { T_WRITER = 1, T_SIZE = 4, T_ECHO = 7, T_ADDRESS = 16, T_RKEY = 17, T_GENERATION = 18 };
enum { T_NAME = 48, T_LENGTH = 49, T_CHECK = 63 };

const char *const FIELD_NAMES[FIELDS] = {"type", "flags", "blob_len", "transfer", "stream_off",
    "region_off", "length", "data_crc", "grant", "blob_off", "tag", "seq"};

static const struct {
	uint8_t at, size;
} PLACES[FIELDS] = {{0, 1}, {1, 1}, {2, 2}, {4, 4}, {8, 8}, {16, 8}, {24, 4}, {28, 4}, {32, 4},
    {36, 4}, {40, 4}, {56, 8}};

uint32_t
stranger_crc32c(uint32_t crc, const void *data, size_t len)
{
	const uint8_t *p = data;

	crc = ~crc;
	while (len--) {
		crc ^= *p++;
		for (int bit = 0; bit < 8; bit++)
			crc = (crc >> 1) ^ (crc & 1 ? 0x82f63b78u : 0);
	}
	return ~crc;
}

static void
put(uint8_t *p, uint64_t value, size_t size)
{
	value = htole64(value);
	memcpy(p, &value, size);
}

static uint64_t
get(const uint8_t *p, size_t size)
{
	uint64_t value = 0;

	memcpy(&value, p, size);
	return le64toh(value);
}

uint32_t
stranger_get32(const uint8_t *p)
{
	return (uint32_t)get(p, 4);
}

/* ---- blobs ---- */

static size_t
blob_start(uint8_t *blob, unsigned kind, uint64_t seq)
{
	memset(blob, 0, 16);
	put(blob, kind, 2);
	put(blob + 8, seq, 8);
	return 16;
}

static size_t
blob_put(uint8_t *blob, size_t at, unsigned type, const void *value, size_t len)
{
	size_t padded = (4 + len + 7) / 8 * 8;

	memset(blob + at, 0, padded);
	put(blob + at, type, 2);
	put(blob + at + 2, len, 2);
	memcpy(blob + at + 4, value, len);
	put(blob + 4, at + padded, 4);
	return at + padded;
}

static size_t
blob_put64(uint8_t *blob, size_t at, unsigned type, uint64_t value)
{
	uint8_t v[8];

	put(v, value, 8);
	return blob_put(blob, at, type, v, sizeof(v));
}

const uint8_t *
stranger_tlv(const uint8_t *record, const uint8_t *blob, unsigned type, size_t *len)
{
	size_t size = get(record + 2, 2), end = get(blob + 4, 4);

	for (size_t at = 16; at + 4 <= end && end <= size;) {
		size_t found = get(blob + at + 2, 2);

		if ((get(blob + at, 2) & 0x7fff) == type && at + 4 + found <= end) {
			*len = found;
			return blob + at + 4;
		}
		at += (4 + found + 7) / 8 * 8;
	}
	errx(1, "TLV %u is missing", type);
}

static uint64_t
need(const uint8_t *record, const uint8_t *blob, unsigned type, size_t len)
{
	size_t found;
	const uint8_t *value = stranger_tlv(record, blob, type, &found);

	if (found != len)
		errx(1, "TLV %u has not %zu bytes", type, len);
	return get(value, len);
}

/* ---- records ---- */

static bool
write_tail(struct stranger *s, uint64_t offset, const void *from, size_t len)
{
	return stranger_write(s, s->tail_rkey, s->tail_addr + offset, from, len) == SUCCESS;
}

static void
encode(const struct record *r, uint8_t out[RECORD])
{
	memset(out, 0, RECORD);
	for (unsigned f = 0; f < FIELDS; f++)
		put(out + PLACES[f].at, r->value[f], PLACES[f].size);
	if (!r->set[TAG])
		put(out + 40, stranger_crc32c(stranger_crc32c(0, out, 40), out + 56, 8), 4);
}

/* The blob first, then the record whose last word is the flag. */
bool
stranger_record(struct stranger *s, const struct record *wanted)
{
	uint64_t blobs = RING + (uint64_t)RECORD * s->ring,
		 slot = RING + RECORD * (s->seq % s->ring);
	uint8_t *out = s->source + sizeof(s->source) - RECORD;
	struct record r = *wanted;
	size_t blob_len = r.set[BLOB_LEN] ? 0 : r.value[BLOB_LEN];

	s->seq++;
	if (!r.set[GRANT_NUMBER])
		r.value[GRANT_NUMBER] = s->grant;
	if (!r.set[BLOB_OFF])
		r.value[BLOB_OFF] = s->blob_used;
	if (!r.set[SEQ])
		r.value[SEQ] = s->seq;
	if (blob_len > 0 && !write_tail(s, blobs + s->blob_used, s->source, blob_len))
		return false;
	s->blob_used += (uint32_t)blob_len;
	encode(&r, out);
	return write_tail(s, slot, out, RECORD);
}

static void
write_line(struct stranger *s)
{
	uint8_t *out = s->source + sizeof(s->source) - RECORD;

	memset(out, 0, RECORD);
	put(out, 1, 4);
	put(out + 4, s->grant, 4);
	put(out + 8, s->mailbox_seq, 8);
	put(out + 56, ++s->beat, 8);
	put(out + 44, stranger_crc32c(stranger_crc32c(0, out, 44), out + 56, 8), 4);
	write_tail(s, 0, out, RECORD);
}

bool
stranger_read(struct stranger *s, const uint8_t **ret_record, const uint8_t **ret_blob)
{
	const uint8_t *slot = s->mailbox + RING + RECORD * (s->mailbox_seq % 16);
	struct timespec pause = {.tv_nsec = 1000000};

	for (int ms = 1; ms < 20000; ms++) {
		bool last = stranger_gone(s); /* what it wrote before that is there */
		uint64_t flag = __atomic_load_n((const uint64_t *)(slot + 56), __ATOMIC_ACQUIRE);

		if (le64toh(flag) == s->mailbox_seq + 1) {
			if (get(slot + 40, 4) !=
			    stranger_crc32c(stranger_crc32c(0, slot, 40), slot + 56, 8))
				errx(1, "the target's record has a wrong tag");
			*ret_record = slot;
			*ret_blob = s->mailbox + MAILBOX_BLOBS + get(slot + 36, 4);
			s->mailbox_seq++;
			return true;
		}
		if (last)
			return false;
		/* siw may look at the first word only when the next one comes. */
		if (ms % 100 == 0 && s->seq > 0)
			write_line(s);
		nanosleep(&pause, NULL);
	}
	errx(1, "the target neither says anything nor ends the connection");
}

/* ---- what a writer says ---- */

void
stranger_hello(struct stranger *s, uint64_t wanted)
{
	struct record hello = {.value[TYPE] = HELLO};
	size_t at = blob_start(s->source, HELLO, s->seq + 1);
	uint8_t echo[12];

	memcpy(echo, s->boot_id, 8);
	put(echo + 8, s->connection_generation, 4);
	at = blob_put(s->source, at, T_WRITER, "stranger", 8);
	at = blob_put64(s->source, at, T_SIZE, wanted);
	at = blob_put(s->source, at, T_ECHO, echo, sizeof(echo));
	hello.value[BLOB_LEN] = at;
	hello.value[DATA_CRC] = stranger_crc32c(0, s->source, at);
	stranger_record(s, &hello);
}

void
stranger_take_grant(struct stranger *s, const uint8_t *record, const uint8_t *blob)
{
	s->region_addr = need(record, blob, T_ADDRESS, 8);
	s->region_rkey = (uint32_t)need(record, blob, T_RKEY, 4);
	s->region_size = need(record, blob, T_SIZE, 8);
	s->grant = (uint32_t)need(record, blob, T_GENERATION, 4);
}

void
stranger_one(struct stranger *s, const char *text)
{
	size_t length = strlen(text), at = blob_start(s->source, ONE, s->seq + 1);
	struct record one = {
	    .value = {[TYPE] = ONE, [TRANSFER] = ++s->transfer, [LENGTH] = length}};
	uint8_t *payload = s->source + 4096, check[4];

	memcpy(payload, text, length);
	one.value[DATA_CRC] = stranger_crc32c(0, payload, length);
	stranger_write(s, s->region_rkey, s->region_addr, payload, length);

	at = blob_put(s->source, at, T_NAME, "from-a-stranger", 15);
	at = blob_put64(s->source, at, T_LENGTH, length);
	put(s->source + 4, at + 8, 4); /* the check covers the final length too */
	put(check, stranger_crc32c(0, s->source, at), 4);
	one.value[BLOB_LEN] = blob_put(s->source, at, T_CHECK, check, sizeof(check));
	stranger_record(s, &one);
}

void
stranger_begin(struct stranger *s)
{
	struct record begin = {.value = {[TYPE] = BEGIN, [TRANSFER] = ++s->transfer}};
	size_t at = blob_start(s->source, BEGIN, s->seq + 1);

	at = blob_put(s->source, at, T_NAME, "from-a-stranger", 15);
	begin.value[BLOB_LEN] = at;
	begin.value[DATA_CRC] = stranger_crc32c(0, s->source, at);
	stranger_record(s, &begin);
}
