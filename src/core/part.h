/* part.h -- a file that comes about in a spool directory: its bytes, its journal, its name
 *
 * While it comes about it is ".rwriter-KEY.part"; a reader never sees half a file under its name.
 * The order is what counts: bytes are made durable before the journal speaks of them, the journal
 * before the writer hears of them; the whole file, then the journal that says which name it gets,
 * then the name, then the directory, before it is called stored.
 *
 * All of this waits for the disk: it is called in jobs, by one at a time, but for part_write() and
 * part_checkpoint(), which may run beside each other. Nothing here knows the core, or logs.
 */

#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "conf/conf.h"
#include "core/journal.h"
#include "core/spool_name.h"

struct part_fault {        /* what went wrong */
	int error;         /* an errno, positive; 0: nothing */
	const char *doing; /* "write to the file", ... */
	uint64_t room;     /* of ENOSPC where it is our own limit: what the disk has */
};

struct part_plan { /* what the file shall become */
	int dir;
	char key[SPOOL_KEY_SIZE + 1];
	bool resumable; /* it has an ID, and so a journal */
	char name[SPOOL_NAME_MAX];
	char peer[TEXT_ADDRESS_MAX];
	uint64_t length; /* UINT64_MAX: not known */
	uint32_t mode;
	uid_t uid; /* -1: as it comes about */
	gid_t gid;
	int64_t mtime_ns; /* 0: as it comes about */
	enum conf_conflict conflict;
	uint64_t free; /* bytes of the disk that stay free */
};

struct part_done { /* a whole file, under its name */
	char name[SPOOL_NAME_MAX];
	uint64_t inode, length;
	uint32_t crc;
};

struct part {
	struct part_plan plan;
	int fd, journal_fd; /* -1: not open */
	struct journal journal;
	uint64_t offset; /* from where part_open() goes on */
	uint32_t crc;    /* of what is before */
	bool complete;   /* it is there already: done says where */
	struct part_done done;
};

/* part->plan is filled in, all else zero; done, too, when the same transfer is known to have ended
 * so. Finds what is there of it, or makes it. */
struct part_fault part_open(struct part *part);
/* From 0, though more is there. */
struct part_fault part_restart(struct part *part);
/* Takes a copy of the bytes, writes it, and returns its checksum. */
struct part_fault part_write(
    struct part *part, uint64_t offset, const uint8_t *bytes, uint32_t len, uint32_t *ret_crc);
/* What is before offset becomes durable, with its checksum. */
struct part_fault part_checkpoint(struct part *part, uint64_t offset, uint32_t crc);
/* All is written: it gets its name, and is durable under it. Sets done. */
struct part_fault part_finish(struct part *part, uint64_t length, uint32_t crc);
/* No more comes. keep: what is before offset stays, if it is resumable; else nothing does. With
 * offset 0 what the last checkpoint has said stays. */
void part_close(struct part *part, bool keep, uint64_t offset, uint32_t crc);
/* The journal of what is complete is not needed any more. */
void part_forget(int dir, const char *key);

/* ---- part_sweep.c: the directory as a whole ---- */

/* Opens it, for this process alone. -errno: *ret_dir is untouched; -EBUSY: somebody else has it. */
int part_open_dir(const char *path, int *ret_dir);
/* The path still leads to it: it was not moved away, nor another mounted over it. */
bool part_is_dir_of(const char *path, int dir);

struct part_sweep {
	int dir;
	enum conf_conflict conflict;
	uint64_t keep_ns;                   /* partial files older than that go */
	char (*active)[SPOOL_KEY_SIZE + 1]; /* not to be touched */
	unsigned n_active;
	unsigned kept, named, removed; /* results */
};

/* What a crash has left: partial files are cut back to what their journals know, whole ones get
 * their names, what is of no use goes. -errno: the directory cannot be read. */
int part_sweep(struct part_sweep *sweep);

/* ---- for part_sweep.c ---- */

int part_read_journal(int fd, struct journal *ret);
/* Gives a whole file its name. 0 or -errno (-EEXIST: it is taken). */
int part_rename(int dir, const char *from, const char *to, enum conf_conflict conflict);
