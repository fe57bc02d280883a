/* shim.c -- LD_PRELOAD between a daemon and its disk and clock
 *
 * FAULTS_CONTROL names a file with a struct control, which a test changes while the daemon runs:
 * calls fail, the clock jumps. FAULTS_LOG names a file to which everything is written that changes
 * files below FAULTS_BELOW, in the order of the calls' returns: what a power loss may take away is
 * made of it. Each entry is a line "CALL ERRNO OFFSET LENGTH PATH[<TAB>PATH]", behind it LENGTH
 * bytes of data.
 */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct control {
	int64_t clock_ns;      /* added to the time of day */
	_Atomic int64_t skip;  /* matching calls that go well first */
	_Atomic int64_t times; /* then so many fail */
	int32_t error;
	char call[20]; /* "" none */
	char path[64]; /* part of the path */
};

static struct control none, *control = &none;
static int log_fd = -1;
static const char *below = "";
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

__attribute__((constructor)) static void
start(void)
{
	const char *file = getenv("FAULTS_CONTROL"), *log = getenv("FAULTS_LOG");
	int fd = file != NULL ? open(file, O_RDWR | O_CLOEXEC) : -1;

	if (fd >= 0) {
		control = mmap(NULL, sizeof(*control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (control == MAP_FAILED)
			abort();
		close(fd);
	}
	if (log != NULL)
		log_fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (getenv("FAULTS_BELOW") != NULL)
		below = getenv("FAULTS_BELOW");
}

static void
path_of(int fd, char path[PATH_MAX])
{
	char link[64];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, PATH_MAX - 1);
	path[n > 0 ? n : 0] = '\0';
}

static void
path_at(int dir, const char *leaf, char path[PATH_MAX])
{
	size_t n;

	path[0] = '\0';
	if (leaf[0] != '/' && dir != AT_FDCWD)
		path_of(dir, path);
	n = strlen(path);
	snprintf(path + n, PATH_MAX - n, "%s%s", n > 0 ? "/" : "", leaf);
}

/* The call shall fail: errno is set. */
static bool
fails(const char *call, const char *path)
{
	if (control->call[0] == '\0' || strcmp(call, control->call) != 0 ||
	    strstr(path, control->path) == NULL)
		return false;
	if (control->skip > 0 && control->skip-- > 0)
		return false;
	if (control->times <= 0 || control->times-- <= 0)
		return false;
	errno = control->error;
	return true;
}

static void
note(const char *call, long result, int64_t offset, const void *data, size_t len, const char *path,
    const char *other)
{
	static __typeof__(&write) real_write;
	char line[2 * PATH_MAX + 64];
	int saved = errno, n;

	if (log_fd < 0 || strncmp(path, below, strlen(below)) != 0)
		return;
	if (real_write == NULL)
		real_write = REAL(write);
	n = snprintf(line, sizeof(line), "%s %d %lld %zu %s%s%s\n", call, result < 0 ? errno : 0,
	    (long long)offset, len, path, other != NULL ? "\t" : "", other != NULL ? other : "");
	pthread_mutex_lock(&lock);
	if (real_write(log_fd, line, n) != n ||
	    (len > 0 && real_write(log_fd, data, len) != (ssize_t)len))
		abort();
	pthread_mutex_unlock(&lock);
	errno = saved;
}

/* ---- calls on descriptors ---- */

#define PWRITE(name)                                                               \
	ssize_t name(int fd, const void *buf, size_t n, off_t offset)              \
	{                                                                          \
		char path[PATH_MAX];                                               \
		ssize_t r = -1;                                                    \
                                                                                   \
		path_of(fd, path);                                                 \
		if (!fails("pwrite", path))                                        \
			r = REAL(name)(fd, buf, n, offset);                        \
		note("pwrite", r, offset, buf, r > 0 ? (size_t)r : 0, path, NULL); \
		return r;                                                          \
	}

#define PREAD(name)                                             \
	ssize_t name(int fd, void *buf, size_t n, off_t offset) \
	{                                                       \
		char path[PATH_MAX];                            \
                                                                \
		path_of(fd, path);                              \
		if (fails("pread", path))                       \
			return -1;                              \
		return REAL(name)(fd, buf, n, offset);          \
	}

#define FTRUNCATE(name)                                          \
	int name(int fd, off_t size)                             \
	{                                                        \
		char path[PATH_MAX];                             \
		int r = -1;                                      \
                                                                 \
		path_of(fd, path);                               \
		if (!fails("ftruncate", path))                   \
			r = REAL(name)(fd, size);                \
		note("ftruncate", r, size, NULL, 0, path, NULL); \
		return r;                                        \
	}

#define SYNC(name)                                      \
	int name(int fd)                                \
	{                                               \
		char path[PATH_MAX];                    \
		int r = -1;                             \
                                                        \
		path_of(fd, path);                      \
		if (!fails(#name, path))                \
			r = REAL(name)(fd);             \
		note(#name, r, 0, NULL, 0, path, NULL); \
		return r;                               \
	}

PWRITE(pwrite)
PWRITE(pwrite64)
PREAD(pread)
PREAD(pread64)
FTRUNCATE(ftruncate)
FTRUNCATE(ftruncate64)
SYNC(fsync)
SYNC(fdatasync)

/* ---- calls on names ---- */

#define OPENAT(name)                                               \
	int name(int dir, const char *leaf, int flags, ...)        \
	{                                                          \
		char path[PATH_MAX];                               \
		mode_t mode = 0;                                   \
		va_list ap;                                        \
		int r = -1;                                        \
                                                                   \
		if (flags & (O_CREAT | O_TMPFILE)) {               \
			va_start(ap, flags);                       \
			mode = va_arg(ap, mode_t);                 \
			va_end(ap);                                \
		}                                                  \
		path_at(dir, leaf, path);                          \
		if (!fails("openat", path))                        \
			r = REAL(name)(dir, leaf, flags, mode);    \
		if (flags & O_CREAT)                               \
			note("openat", r, 0, NULL, 0, path, NULL); \
		return r;                                          \
	}

OPENAT(openat)
OPENAT(openat64)

int
renameat2(int from, const char *old, int to, const char *new, unsigned flags)
{
	char path[PATH_MAX], other[PATH_MAX];
	int r = -1;

	path_at(from, old, path);
	path_at(to, new, other);
	if (!fails("rename", path))
		r = REAL(renameat2)(from, old, to, new, flags);
	note("rename", r, 0, NULL, 0, path, other);
	return r;
}

int
renameat(int from, const char *old, int to, const char *new)
{
	return renameat2(from, old, to, new, 0);
}

int
unlinkat(int dir, const char *leaf, int flags)
{
	char path[PATH_MAX];
	int r = -1;

	path_at(dir, leaf, path);
	if (!fails("unlink", path))
		r = REAL(unlinkat)(dir, leaf, flags);
	note("unlink", r, 0, NULL, 0, path, NULL);
	return r;
}

/* ---- the clock ---- */

int
clock_gettime(clockid_t id, struct timespec *ts)
{
	int r = REAL(clock_gettime)(id, ts);
	int64_t ns;

	if (r < 0 || id != CLOCK_REALTIME || control->clock_ns == 0)
		return r;
	ns = ts->tv_sec * INT64_C(1000000000) + ts->tv_nsec + control->clock_ns;
	ts->tv_sec = ns / 1000000000;
	ts->tv_nsec = ns % 1000000000;
	return r;
}
