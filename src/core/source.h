/* source.h -- where the bytes of a transfer come from: a regular file, or a stream the caller pumps
 * into
 *
 * Regular files are read with pread (never mapped) by jobs that also make the checksum; several
 * reads may be under way. A stream (a socket) is read on the loop without blocking, one read at a
 * time. Readers hold the source: it goes when the last of them is done.
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "loop/work.h"

struct loop;
struct share;
struct source;

struct source_read { /* embedded in its owner, untouched until done */
	uint8_t *buf;
	size_t size;     /* asked */
	uint64_t offset; /* regular file */
	size_t len;      /* got: less than size only at the end */
	uint32_t crc;    /* CRC32C of them */
	bool end;        /* there is nothing behind */
	int error; /* 0, -ESTALE: the file changed while it was read, -EPIPE: the stream was cut
		    * off (closed, not shut down), or another negative errno */
	void (*done)(struct source_read *read);

	struct source *source; /* the rest is the source's */
	struct job job;
};

/* Duplicates fd; uid: whose it is. -EINVAL: neither a regular file nor a stream socket; -ENOMEM, or
 * what the system said. */
int source_new(struct loop *loop, struct share *share, uid_t uid, int fd, struct source **ret);
/* The owner's hold ends: a stream's pending read is done with -ECANCELED. Accepts NULL, returns
 * NULL. */
struct source *source_free(struct source *source);

/* UINT64_MAX for a stream. */
uint64_t source_length(const struct source *source);
bool source_is_stream(const struct source *source);
/* Nanoseconds since 1970 and permission bits of a regular file, else 0. */
int64_t source_mtime(const struct source *source);
uint32_t source_mode(const struct source *source);

/* done follows in a later turn. A stream must have no other read under way. */
void source_read(struct source *source, struct source_read *read);
