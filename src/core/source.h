/* source.h -- where the bytes of a transfer come from: a regular file, or a stream the caller pumps
 * into
 *
 * Regular files are read with pread (never mapped) by jobs that also make the checksum; several
 * reads may be under way, and each looks whether the file is still what it was; transfers that
 * send the same file read it together (file.h). A stream (a socket)
 * is read on the loop without blocking, one read at a time, and its last bytes are kept (stream.h).
 * Readers hold the source: it goes when the last of them is done.
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "loop/work.h"

#define SOURCE_ID_SIZE 16

struct file;
struct files;
struct loop;
struct segment;
struct share;
struct source;

struct source_read { /* embedded in its owner, untouched until done */
	uint8_t *buf;
	size_t size;     /* asked */
	uint64_t offset; /* a stream's: from its kept bytes up to the end of those */
	bool holes;      /* asked: where the file has no data, next says so instead of zeros */
	size_t len;      /* got: less than size only at the end; 0: a hole, or nothing is left */
	uint64_t next;   /* what is behind the bytes, or behind the hole */
	uint32_t crc;    /* CRC32C of the bytes */
	bool end;        /* nothing is behind next */
	int error;       /* 0, -ESTALE: the file is not what it was, -EPIPE: the stream was cut off
			  * (closed, not shut down), -ECANCELED, or another negative errno */
	void (*done)(struct source_read *read);

	struct source *source; /* the rest is the source's */
	struct file *file;
	struct segment *segment;
	struct job job;
};

struct source_env { /* what all sources of a core have in common */
	struct loop *loop;
	struct share *share;
	struct files *files;
};

/* Duplicates fd, whose position is of no use to anybody else from then on; uid: whose it is.
 * -EINVAL: neither a regular file nor a stream socket; -EBADF: not open for reading; -ENOMEM, or
 * what the system said. env is copied. */
int source_new(const struct source_env *env, uid_t uid, int fd, struct source **ret);
/* The owner's hold ends: a stream's pending read is done with -ECANCELED. Accepts NULL, returns
 * NULL. */
struct source *source_free(struct source *source);

/* UINT64_MAX for a stream. */
uint64_t source_length(const struct source *source);
bool source_is_stream(const struct source *source);
/* Nanoseconds since 1970 and permission bits of a regular file, else 0. */
int64_t source_mtime(const struct source *source);
uint32_t source_mode(const struct source *source);
/* The same for the same file under this name to this region, as long as it does not change; for a
 * stream random. 0 or -ENOMEM. */
int source_id(
    const struct source *source, const char *region, const char *name, uint8_t ret[SOURCE_ID_SIZE]);

/* done() follows, in a later turn. */
void source_read(struct source *source, struct source_read *read);
/* The pending read of a stream, if any, is done with -ECANCELED; its bytes are kept. */
void source_cancel(struct source *source);

/* From here on it can be read again: 0 for a file, and for a stream that is kept whole. */
uint64_t source_start(const struct source *source);
/* The bytes before `offset` will hardly be read again. */
void source_forget(struct source *source, uint64_t offset);
/* CRC32C of the first bytes of a stream. False: it is not kept from there. */
bool source_crc(const struct source *source, uint64_t offset, uint32_t *ret);
