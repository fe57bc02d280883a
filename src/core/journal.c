/* journal.c -- what a spool directory remembers of a file that comes about */

#include "config.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/crc32c.h"
#include "core/journal.h"

#define MAGIC 0x314a5752u /* "RWJ1" read as little-endian */

struct image { /* of a slot; little-endian */
	uint32_t magic, state;
	uint64_t number, offset, length, inode, mtime_ns;
	uint32_t crc, mode;
	char name[LIMIT_FILE_NAME + 1];
	char peer[TEXT_ADDRESS_MAX];
	uint8_t zeros[JOURNAL_SLOT - 396];
	uint32_t check; /* CRC32C of all before */
};

static_assert(sizeof(struct image) == JOURNAL_SLOT, "journal");
static_assert(offsetof(struct image, name) == 56, "journal");
static_assert(offsetof(struct image, check) == JOURNAL_SLOT - 4, "journal");

void
journal_encode(const struct journal *j, uint8_t out[JOURNAL_SLOT])
{
	struct image i = {
	    .magic = htole32(MAGIC),
	    .state = htole32(j->state),
	    .number = htole64(j->number),
	    .offset = htole64(j->offset),
	    .length = htole64(j->length),
	    .inode = htole64(j->inode),
	    .mtime_ns = htole64((uint64_t)j->mtime_ns),
	    .crc = htole32(j->crc),
	    .mode = htole32(j->mode),
	};

	snprintf(i.name, sizeof(i.name), "%s", j->name);
	snprintf(i.peer, sizeof(i.peer), "%s", j->peer);
	i.check = htole32(crc32c(0, &i, offsetof(struct image, check)));
	memcpy(out, &i, sizeof(i));
}

uint64_t
journal_place(uint64_t number)
{
	return number % 2 * JOURNAL_STRIDE;
}

static int
decode_slot(const uint8_t *slot, struct journal *ret)
{
	struct image i;

	memcpy(&i, slot, sizeof(i));
	if (le32toh(i.magic) != MAGIC ||
	    le32toh(i.check) != crc32c(0, &i, offsetof(struct image, check)))
		return -EBADMSG;
	*ret = (struct journal){
	    .state = le32toh(i.state),
	    .number = le64toh(i.number),
	    .offset = le64toh(i.offset),
	    .crc = le32toh(i.crc),
	    .length = le64toh(i.length),
	    .inode = le64toh(i.inode),
	    .mode = le32toh(i.mode),
	    .mtime_ns = (int64_t)le64toh(i.mtime_ns),
	};
	memcpy(ret->name, i.name, sizeof(ret->name) - 1);
	memcpy(ret->peer, i.peer, sizeof(ret->peer) - 1);
	return 0;
}

int
journal_decode(const uint8_t *file, size_t len, struct journal *ret)
{
	struct journal slots[2];
	bool whole[2];

	for (unsigned i = 0; i < 2; i++)
		whole[i] = len >= i * JOURNAL_STRIDE + JOURNAL_SLOT &&
			   decode_slot(file + i * JOURNAL_STRIDE, &slots[i]) == 0;
	if (!whole[0] && !whole[1])
		return -EBADMSG;
	*ret = !whole[1] || (whole[0] && slots[0].number > slots[1].number) ? slots[0] : slots[1];
	return 0;
}
