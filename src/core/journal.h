/* journal.h -- what a spool directory remembers of a file that comes about, and of one that is
 * whole
 *
 * The journal of a transfer with an ID is a small file beside its partial one, with two slots that
 * are written in turn: a writing that is torn by a crash leaves the one before. Pure: bytes to
 * struct and back.
 */

#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/limits.h"
#include "base/text.h"

#define JOURNAL_SLOT   512  /* bytes of one writing */
#define JOURNAL_STRIDE 4096 /* from slot to slot: no disk writes both at once */
#define JOURNAL_SIZE   (JOURNAL_STRIDE + JOURNAL_SLOT)

enum journal_state {
	JOURNAL_PARTIAL = 1, /* offset bytes of it are durable */
	JOURNAL_NAMED = 2,   /* all of it is; it is about to get its name, or has got it */
};

struct journal {
	enum journal_state state;
	uint64_t number; /* of the writing; the highest counts */
	uint64_t offset; /* durable bytes */
	uint32_t crc;    /* of them */
	uint64_t length; /* announced; UINT64_MAX: not known */
	uint64_t inode;
	uint32_t mode;
	int64_t mtime_ns; /* 0: none is wanted */
	char name[LIMIT_FILE_NAME + 1];
	char peer[TEXT_ADDRESS_MAX];
};

void journal_encode(const struct journal *j, uint8_t out[JOURNAL_SLOT]);
/* Where in the file a writing of this number goes. */
uint64_t journal_place(uint64_t number);
/* The newest of a file's two slots, of which len bytes could be read. 0, or -EBADMSG: neither is
 * whole. */
int journal_decode(const uint8_t *file, size_t len, struct journal *ret);
