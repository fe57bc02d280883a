/* part.c -- a file that comes about in a spool directory */

#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "core/part.h"
#include "wire/barrier.h"

/* Bytes are copied in pieces that stay in the cache, so summed and written from there. */
#define PIECE (256U << 10)

#define FINE ((struct part_fault){0})

static struct part_fault
failed(const char *doing)
{
	return (struct part_fault){.error = errno, .doing = doing};
}

static void
close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static int
open_own(const struct part *p, const char *suffix, int flags)
{
	char name[SPOOL_OWN_NAME];

	spool_name_own(p->plan.key, suffix, name);
	return openat(p->plan.dir, name, flags | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600);
}

static void
unlink_own(int dir, const char *key, const char *suffix)
{
	char name[SPOOL_OWN_NAME];

	spool_name_own(key, suffix, name);
	unlinkat(dir, name, 0);
}

static int
write_all(int fd, const void *bytes, size_t len, uint64_t offset)
{
	const uint8_t *at = bytes;

	while (len > 0) {
		ssize_t n = pwrite(fd, at, len, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			errno = n < 0 ? errno : EIO;
			return -1;
		}
		at += n;
		offset += n;
		len -= n;
	}
	return 0;
}

/* ---- the journal ---- */

int
part_read_journal(int fd, struct journal *ret)
{
	uint8_t file[JOURNAL_SIZE];
	ssize_t len = pread(fd, file, sizeof(file), 0);

	return len < 0 ? -errno : journal_decode(file, len, ret);
}

static int
make_journal(struct part *p)
{
	p->journal_fd = open_own(p, SPOOL_JOURNAL, O_CREAT | O_TRUNC);
	return p->journal_fd;
}

/* What it says of the file has been made durable before. */
static struct part_fault
save_journal(struct part *p, enum journal_state state, uint64_t offset, uint32_t crc)
{
	bool is_new = p->journal_fd < 0;
	struct journal j = p->journal;
	uint8_t slot[JOURNAL_SLOT];

	j.state = state;
	j.number++;
	j.offset = offset;
	j.crc = crc;
	journal_encode(&j, slot);
	if (is_new && make_journal(p) < 0)
		return failed("make its journal");
	if (write_all(p->journal_fd, slot, sizeof(slot), journal_place(j.number)) < 0 ||
	    fdatasync(p->journal_fd) < 0)
		return failed("write to its journal");
	if (is_new && fsync(p->plan.dir) < 0) /* else both may be gone after a crash */
		return failed("sync the directory");
	p->journal = j;
	return FINE;
}

/* ---- opening ---- */

static bool
is_there(const struct part *p, const struct part_done *done)
{
	struct stat st;

	return done->name[0] != '\0' &&
	       fstatat(p->plan.dir, done->name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       S_ISREG(st.st_mode) && st.st_ino == done->inode &&
	       (uint64_t)st.st_size == done->length;
}

static void
set_complete(struct part *p)
{
	p->complete = true;
	p->offset = p->done.length;
	p->crc = p->done.crc;
}

/* The partial file as its journal knows it. */
static struct part_fault
take_up(struct part *p)
{
	struct stat st;

	p->fd = open_own(p, SPOOL_PART, 0);
	if (p->fd < 0)
		return errno == ENOENT ? FINE : failed("open what is there of it");
	if (fstat(p->fd, &st) < 0 || st.st_ino != p->journal.inode ||
	    (uint64_t)st.st_size < p->journal.offset) {
		close_fd(&p->fd); /* the journal is of another */
		return FINE;
	}
	if (ftruncate(p->fd, (off_t)p->journal.offset) < 0)
		return failed("cut back what is there of it");
	p->offset = p->journal.offset;
	p->crc = p->journal.crc;
	return FINE;
}

static struct part_fault
find(struct part *p)
{
	const struct journal *j = &p->journal;

	if (is_there(p, &p->done)) {
		set_complete(p);
		return FINE;
	}
	p->journal_fd = open_own(p, SPOOL_JOURNAL, 0);
	if (p->journal_fd < 0)
		return errno == ENOENT ? FINE : failed("open its journal");
	if (part_read_journal(p->journal_fd, &p->journal) < 0) {
		memset(&p->journal, 0, sizeof(p->journal));
		close_fd(&p->journal_fd);
		return FINE;
	}
	p->done = (struct part_done){.inode = j->inode, .length = j->offset, .crc = j->crc};
	memcpy(p->done.name, j->name, sizeof(j->name));
	if (j->state == JOURNAL_NAMED && is_there(p, &p->done)) {
		set_complete(p);
		return fsync(p->plan.dir) < 0 ? failed("sync the directory") : FINE;
	}
	return take_up(p);
}

/* The disk keeps as much free as it shall, also when the rest of the file has come. */
static struct part_fault
check_room(const struct part *p, uint64_t offset)
{
	uint64_t more =
	    p->plan.length != UINT64_MAX && p->plan.length > offset ? p->plan.length - offset : 0;
	struct statvfs v;
	uint64_t room;

	if (fstatvfs(p->plan.dir, &v) < 0)
		return failed("ask for free space");
	room = (uint64_t)v.f_bavail * v.f_frsize;
	if (room >= p->plan.free && room - p->plan.free >= more)
		return FINE;
	return (struct part_fault){.error = ENOSPC, .doing = "find room", .room = room};
}

static struct part_fault
check_name(const struct part *p)
{
	struct stat st;

	if (fstatat(p->plan.dir, p->plan.name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		errno = errno == ENOENT ? 0 : errno;
	} else if (p->plan.conflict == CONF_CONFLICT_KEEP) {
		errno = EEXIST;
	} else if (p->plan.conflict == CONF_CONFLICT_REPLACE && S_ISDIR(st.st_mode)) {
		errno = EISDIR;
	} else {
		errno = 0;
	}
	return failed("give it its name");
}

static void
describe(struct part *p, uint64_t inode)
{
	struct journal *j = &p->journal;

	j->length = p->plan.length;
	j->inode = inode;
	j->mode = p->plan.mode;
	j->mtime_ns = p->plan.mtime_ns;
	snprintf(j->name, sizeof(j->name), "%s", p->plan.name);
	memcpy(j->peer, p->plan.peer, sizeof(j->peer));
}

static struct part_fault
create(struct part *p)
{
	struct stat st;

	p->offset = 0;
	p->crc = 0;
	p->complete = false;
	p->fd = open_own(p, SPOOL_PART, O_CREAT | O_TRUNC);
	if (p->fd < 0 || fstat(p->fd, &st) < 0)
		return failed("make a file");
	describe(p, st.st_ino);
	/* What an old journal says must not be taken for the new file's. */
	return p->journal_fd >= 0 ? save_journal(p, JOURNAL_PARTIAL, 0, 0) : FINE;
}

static struct part_fault
check(const struct part *p)
{
	struct part_fault fault = check_room(p, p->offset);

	return fault.error == 0 ? check_name(p) : fault;
}

struct part_fault
part_open(struct part *p)
{
	struct part_fault fault = FINE;

	p->fd = p->journal_fd = -1;
	if (p->plan.resumable)
		fault = find(p);
	if (fault.error == 0 && !p->complete)
		fault = check(p);
	if (fault.error == 0 && !p->complete && p->fd < 0)
		fault = create(p);
	if (fault.error != 0) {
		close_fd(&p->fd);
		close_fd(&p->journal_fd);
	}
	return fault;
}

struct part_fault
part_restart(struct part *p)
{
	struct part_fault fault;

	if (p->fd < 0) { /* it was complete */
		p->offset = 0;
		fault = check(p);
		return fault.error == 0 ? create(p) : fault;
	}
	if (p->journal_fd >= 0) {
		fault = save_journal(p, JOURNAL_PARTIAL, 0, 0);
		if (fault.error != 0)
			return fault;
	}
	p->offset = 0;
	p->crc = 0;
	return ftruncate(p->fd, 0) < 0 ? failed("cut back what is there of it") : FINE;
}

/* ---- while it comes ---- */

struct part_fault
part_write(struct part *p, uint64_t offset, const uint8_t *bytes, uint32_t len, uint32_t *ret_crc)
{
	uint8_t piece[PIECE];
	uint32_t crc = 0;

	for (uint32_t done = 0, n; done < len; done += n) {
		n = len - done < PIECE ? len - done : PIECE;
		foreign_copy(piece, bytes + done, n);
		crc = crc32c(crc, piece, n);
		if (write_all(p->fd, piece, n, offset + done) < 0)
			return failed("write to the file");
	}
	*ret_crc = crc;
	return FINE;
}

struct part_fault
part_checkpoint(struct part *p, uint64_t offset, uint32_t crc)
{
	struct part_fault fault = check_room(p, UINT64_MAX);

	if (fault.error != 0)
		return fault;
	if (fdatasync(p->fd) < 0)
		return failed("sync the file");
	return p->plan.resumable ? save_journal(p, JOURNAL_PARTIAL, offset, crc) : FINE;
}

/* ---- its end ---- */

int
part_rename(int dir, const char *from, const char *to, enum conf_conflict conflict)
{
	unsigned flags = conflict == CONF_CONFLICT_REPLACE ? 0 : RENAME_NOREPLACE;

	if (renameat2(dir, from, dir, to, flags) == 0)
		return 0;
	if (errno != EINVAL || flags == 0)
		return -errno;
	/* A file system that does not know the flag, such as NFS; a link does not replace either.
	 */
	if (linkat(dir, from, dir, to, 0) < 0)
		return -errno;
	unlinkat(dir, from, 0);
	return 0;
}

static struct part_fault
dress(struct part *p, uint64_t length)
{
	struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_nsec = UTIME_OMIT}};

	if (p->plan.mtime_ns != 0) {
		times[1].tv_sec = p->plan.mtime_ns / 1000000000;
		times[1].tv_nsec = p->plan.mtime_ns % 1000000000;
		if (times[1].tv_nsec < 0) { /* before 1970 */
			times[1].tv_sec--;
			times[1].tv_nsec += 1000000000;
		}
	}
	if (ftruncate(p->fd, (off_t)length) < 0) /* it may end in a hole */
		return failed("give the file its length");
	if (p->plan.uid != (uid_t)-1 && fchown(p->fd, p->plan.uid, p->plan.gid) < 0)
		return failed("give the file its owner");
	if (fchmod(p->fd, p->plan.mode) < 0)
		return failed("give the file its mode");
	if (p->plan.mtime_ns != 0 && futimens(p->fd, times) < 0)
		return failed("give the file its time");
	return fsync(p->fd) < 0 ? failed("sync the file") : FINE;
}

static bool
is_taken(const struct part *p, const char *name)
{
	struct stat st;

	return fstatat(p->plan.dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* The first free version, or the one name that it may have. */
static struct part_fault
give_name(struct part *p, uint64_t length, uint32_t crc)
{
	unsigned last = p->plan.conflict == CONF_CONFLICT_VERSION ? SPOOL_VERSIONS : 0;
	struct part_fault fault = {.error = EEXIST, .doing = "give it its name"};
	char own[SPOOL_OWN_NAME];

	spool_name_own(p->plan.key, SPOOL_PART, own);
	for (unsigned n = 0; n <= last && fault.error == EEXIST; n++) {
		spool_name_version(p->plan.name, n, p->done.name);
		if (last > 0 && is_taken(p, p->done.name))
			continue;
		fault = FINE;
		memcpy(p->journal.name, p->done.name, sizeof(p->journal.name));
		if (p->plan.resumable)
			fault = save_journal(p, JOURNAL_NAMED, length, crc);
		if (fault.error != 0)
			return fault;
		errno = -part_rename(p->plan.dir, own, p->done.name, p->plan.conflict);
		fault = failed("give it its name");
	}
	return fault;
}

struct part_fault
part_finish(struct part *p, uint64_t length, uint32_t crc)
{
	struct part_fault fault = dress(p, length);

	if (fault.error == 0)
		fault = give_name(p, length, crc);
	if (fault.error != 0)
		return fault;
	if (fsync(p->plan.dir) < 0)
		return failed("sync the directory");
	p->done.inode = p->journal.inode;
	p->done.length = length;
	p->done.crc = crc;
	p->complete = true;
	return FINE;
}

void
part_close(struct part *p, bool keep, uint64_t offset, uint32_t crc)
{
	bool stays = p->complete;

	if (!stays && keep && p->plan.resumable) {
		if (offset > p->journal.offset && fdatasync(p->fd) == 0)
			save_journal(p, JOURNAL_PARTIAL, offset, crc);
		stays = p->journal.offset > 0;
	}
	if (!stays && p->fd >= 0) {
		unlink_own(p->plan.dir, p->plan.key, SPOOL_PART);
		unlink_own(p->plan.dir, p->plan.key, SPOOL_JOURNAL);
	}
	close_fd(&p->fd);
	close_fd(&p->journal_fd);
}

void
part_forget(int dir, const char *key)
{
	unlink_own(dir, key, SPOOL_JOURNAL);
}
