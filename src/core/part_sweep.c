/* part_sweep.c -- a spool directory as a whole: whose it is, and what a crash has left in it */

#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "core/part.h"

/* Who repeats a transfer that is complete finds its result for so long. */
#define NAMED_NS (UINT64_C(3600) * 1000000000)

int
part_open_dir(const char *path, int *ret_dir)
{
	int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int error;

	if (dir < 0)
		return -errno;
	if (flock(dir, LOCK_EX | LOCK_NB) == 0) {
		*ret_dir = dir;
		return 0;
	}
	error = errno == EWOULDBLOCK ? -EBUSY : -errno;
	close(dir);
	return error;
}

bool
part_is_dir_of(const char *path, int dir)
{
	struct stat there, ours;

	return stat(path, &there) == 0 && fstat(dir, &ours) == 0 && there.st_dev == ours.st_dev &&
	       there.st_ino == ours.st_ino;
}

/* One file with all that belongs to it. */
struct relic {
	struct part_sweep *sweep;
	char key[SPOOL_KEY_SIZE + 1];
	char part[SPOOL_OWN_NAME], journal[SPOOL_OWN_NAME];
	struct journal j;
	uint64_t age_ns; /* of the journal */
};

static bool
is_active(const struct part_sweep *sweep, const char *key)
{
	for (unsigned i = 0; i < sweep->n_active; i++)
		if (strcmp(sweep->active[i], key) == 0)
			return true;
	return false;
}

static void
remove_relic(struct relic *r)
{
	unlinkat(r->sweep->dir, r->part, 0);
	unlinkat(r->sweep->dir, r->journal, 0);
	r->sweep->removed++;
}

/* The journal's file under this name, with at least its bytes? */
static bool
is_its_file(const struct relic *r, const char *name, struct stat *st)
{
	return fstatat(r->sweep->dir, name, st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st->st_mode) &&
	       st->st_ino == r->j.inode && (uint64_t)st->st_size >= r->j.offset;
}

static int
cut_back(const struct relic *r)
{
	int fd = openat(r->sweep->dir, r->part, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
	int error;

	if (fd < 0)
		return -errno;
	error = ftruncate(fd, (off_t)r->j.offset) < 0 ? -errno : 0;
	close(fd);
	return error;
}

/* It was about to get its name: true if it has it now. */
static bool
has_name(struct relic *r)
{
	struct stat st;

	if (is_its_file(r, r->j.name, &st)) {
		if (is_its_file(r, r->part, &st)) /* the second half of a rename by link */
			unlinkat(r->sweep->dir, r->part, 0);
		return true;
	}
	if (!is_its_file(r, r->part, &st) || cut_back(r) < 0 ||
	    part_rename(r->sweep->dir, r->part, r->j.name, r->sweep->conflict) < 0)
		return false;
	r->sweep->named++;
	return true;
}

static void
look_after(struct relic *r)
{
	struct stat st;

	if (r->j.state == JOURNAL_NAMED && has_name(r)) {
		fsync(r->sweep->dir);
		if (r->age_ns > NAMED_NS)
			unlinkat(r->sweep->dir, r->journal, 0);
		return;
	}
	if (r->age_ns > r->sweep->keep_ns || r->j.offset == 0 || !is_its_file(r, r->part, &st) ||
	    cut_back(r) < 0)
		remove_relic(r);
	else
		r->sweep->kept++;
}

/* False: there is no journal that can be read. */
static bool
read_relic(struct relic *r)
{
	int fd = openat(r->sweep->dir, r->journal, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	struct stat st;
	bool good;

	if (fd < 0)
		return false;
	good = fstat(fd, &st) == 0 && part_read_journal(fd, &r->j) == 0;
	close(fd);
	if (good) {
		uint64_t now = clock_realtime();
		uint64_t then = (uint64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;

		r->age_ns = now > then ? now - then : 0;
	}
	return good;
}

static void
sweep_name(struct part_sweep *sweep, const char *name)
{
	struct relic r = {.sweep = sweep};
	bool is_part = spool_name_key(name, SPOOL_PART, r.key);

	if ((!is_part && !spool_name_key(name, SPOOL_JOURNAL, r.key)) || is_active(sweep, r.key))
		return;
	spool_name_own(r.key, SPOOL_PART, r.part);
	spool_name_own(r.key, SPOOL_JOURNAL, r.journal);
	if (!read_relic(&r))
		remove_relic(&r);
	else if (!is_part) /* once for both files */
		look_after(&r);
}

int
part_sweep(struct part_sweep *sweep)
{
	int fd = openat(sweep->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct dirent *entry;
	DIR *d;

	if (fd < 0)
		return -errno;
	d = fdopendir(fd);
	if (d == NULL) {
		int error = -errno;

		close(fd);
		return error;
	}
	while ((entry = readdir(d)) != NULL)
		sweep_name(sweep, entry->d_name);
	closedir(d);
	return 0;
}
