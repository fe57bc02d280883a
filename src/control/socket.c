/* socket.c -- the control socket's place in the file system */

#include "config.h"

#include <errno.h>
#include <grp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/log.h"
#include "control/socket.h"

#define GROUP "rwriter"

static int
failed(const char *path, const char *what, int error)
{
	log_error("control socket %s: %s: %s", path, what, strerror(error));
	return -error;
}

/* Only our own directory, /run/rwriter or $XDG_RUNTIME_DIR/rwriter, and only its last component. */
static int
make_directory(const char *path)
{
	char dir[sizeof(((struct sockaddr_un *)0)->sun_path)];
	char *slash, *name;

	strcpy(dir, path);
	slash = strrchr(dir, '/');
	if (slash == NULL || slash == dir)
		return 0;
	*slash = '\0';
	if (access(dir, F_OK) == 0)
		return 0;
	name = strrchr(dir, '/');
	if (name == NULL || strcmp(name, "/rwriter") != 0)
		return failed(
		    path, "no such directory; make it, or set control in [rwriter]", ENOENT);
	if (mkdir(dir, 0755) < 0 && errno != EEXIST)
		return failed(path, "the directory is missing and cannot be made", errno);
	return 0;
}

/* A socket on which nobody listens was left by a daemon that died. Nothing else is ever removed. */
static int
remove_stale(const struct sockaddr_un *sun)
{
	const char *path = sun->sun_path;
	struct stat st;
	int fd, r;

	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0 : failed(path, "cannot be looked at", errno);
	if (!S_ISSOCK(st.st_mode))
		return failed(path, "something that is no socket is in the way", EEXIST);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return failed(path, "no socket to try it with", errno);
	r = connect(fd, (const struct sockaddr *)sun, sizeof(*sun)) < 0 ? errno : 0;
	close(fd);
	if (r == 0 || r == EAGAIN)
		return failed(path,
		    "another rwriterd listens there; stop it, or set control in [rwriter]",
		    EADDRINUSE);
	if (r != ECONNREFUSED)
		return failed(path, "cannot be tried", r);
	if (unlink(path) < 0 && errno != ENOENT)
		return failed(path, "the stale socket cannot be removed", errno);
	return 0;
}

/* Born closed to all but our own user, and opened only to the one group that is meant. */
static int
bind_closed(int fd, const struct sockaddr_un *sun)
{
	mode_t mask = umask(0177);
	int r = bind(fd, (const struct sockaddr *)sun, sizeof(*sun)) < 0 ? errno : 0;

	umask(mask);
	return r != 0 ? failed(sun->sun_path, "cannot be made", r) : 0;
}

static int
open_to_group(const char *path)
{
	const struct group *group;
	struct stat st;

	/* cppcheck-suppress getgrnamCalled -- nobody else asks for groups */
	group = getgrnam(GROUP);
	if (group == NULL)
		return 0;
	/* As a service it has the group already, and chown() is a system call that is not allowed.
	 */
	if (stat(path, &st) < 0)
		return failed(path, "cannot be looked at", errno);
	if (st.st_gid != group->gr_gid && chown(path, -1, group->gr_gid) < 0) {
		if (errno == EPERM) /* we are neither root nor a member */
			return 0;
		return failed(path, "cannot be given to group " GROUP, errno);
	}
	if (chmod(path, 0660) < 0)
		return failed(path, "cannot be opened to group " GROUP, errno);
	return 0;
}

static int
bind_and_listen(int fd, const struct sockaddr_un *sun)
{
	int r = bind_closed(fd, sun);

	if (r < 0)
		return r;
	r = open_to_group(sun->sun_path);
	if (r == 0 && listen(fd, LIMIT_CONTROL_CLIENTS) < 0)
		r = failed(sun->sun_path, "listen", errno);
	if (r < 0)
		unlink(sun->sun_path);
	return r;
}

int
control_socket_listen(const char *path, int *ret_fd)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	int fd, r;

	if (strlen(path) >= sizeof(sun.sun_path)) {
		log_error(
		    "control socket %s: the path has %zu bytes, the system takes at most %zu: "
		    "set a shorter control in [rwriter]",
		    path, strlen(path), sizeof(sun.sun_path) - 1);
		return -ENAMETOOLONG;
	}
	strcpy(sun.sun_path, path);
	r = make_directory(path);
	if (r == 0)
		r = remove_stale(&sun);
	if (r < 0)
		return r;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return failed(path, "no socket", errno);
	r = bind_and_listen(fd, &sun);
	if (r < 0) {
		close(fd);
		return r;
	}
	*ret_fd = fd;
	return 0;
}
