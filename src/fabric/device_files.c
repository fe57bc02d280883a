/* device_files.c -- the files of this machine's RDMA devices: word of those that come and go */

#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "fabric/device_files.h"
#include "loop/loop.h"

struct device_files {
	const char *dir;
	char *parent;
	device_files_fn *fn;
	void *arg;
	int fd;
	int watch;      /* of dir, or of its parent: */
	bool is_parent; /* dir is not there */
	struct loop_io *io;
};

static int
watch_dir(struct device_files *files)
{
	files->watch = inotify_add_watch(files->fd, files->dir, IN_CREATE | IN_DELETE | IN_ONLYDIR);
	return files->watch < 0 ? -errno : 0;
}

/* The parent's watch comes before the second look: what is made in between is seen by one of them.
 */
static int
watch(struct device_files *files)
{
	int parent, r = watch_dir(files);

	files->is_parent = false;
	if (r != -ENOENT)
		return r;
	parent = inotify_add_watch(files->fd, files->parent, IN_CREATE | IN_MOVED_TO | IN_ONLYDIR);
	if (parent < 0)
		return -errno;
	if (watch_dir(files) == 0) {
		inotify_rm_watch(files->fd, parent);
		return 0;
	}
	files->watch = parent;
	files->is_parent = true;
	return 0;
}

struct news {
	bool come, gone;
};

/* The first file may be older than the watch of the directory that it came with. */
static void
on_parent(struct device_files *files, const struct inotify_event *e, struct news *news)
{
	int old = files->watch;

	if (e->len == 0 || strcmp(e->name, strrchr(files->dir, '/') + 1) != 0)
		return;
	if (watch_dir(files) < 0) {
		files->watch = old;
		return;
	}
	files->is_parent = false;
	inotify_rm_watch(files->fd, old);
	news->come = true;
}

static void
on_event(struct device_files *files, const struct inotify_event *e, struct news *news)
{
	if (e->mask & IN_Q_OVERFLOW)
		news->come = news->gone = true;
	else if (e->wd != files->watch)
		return; /* of one that has been left */
	else if (files->is_parent)
		on_parent(files, e, news);
	else if (e->mask & IN_IGNORED) /* the directory has gone; if it is back, files have come */
		news->come = watch(files) == 0 && !files->is_parent;
	else if (e->mask & IN_CREATE)
		news->come = true;
	else
		news->gone = true;
}

void
device_files_poll(struct device_files *files)
{
	_Alignas(struct inotify_event) char buf[4096];
	const struct inotify_event *e;
	struct news news = {0};
	ssize_t n;

	if (files == NULL)
		return;
	while ((n = read(files->fd, buf, sizeof(buf))) > 0)
		for (const char *at = buf; at < buf + n; at += sizeof(*e) + e->len) {
			e = (const struct inotify_event *)at;
			on_event(files, e, &news);
		}
	if (news.gone)
		files->fn(files->arg, false);
	if (news.come)
		files->fn(files->arg, true);
}

static void
on_readable(void *arg, unsigned events)
{
	(void)events;
	device_files_poll(arg);
}

int
device_files_watch(
    struct loop *loop, const char *dir, device_files_fn *fn, void *arg, struct device_files **ret)
{
	struct device_files *files = calloc(1, sizeof(*files));
	int r;

	if (files == NULL)
		return -ENOMEM;
	*files = (struct device_files){.dir = dir, .fn = fn, .arg = arg, .fd = -1};
	files->parent = strndup(dir, (size_t)(strrchr(dir, '/') - dir));
	files->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (files->fd < 0)
		r = -errno;
	else
		r = files->parent == NULL ? -ENOMEM : watch(files);
	if (r == 0)
		r = loop_io_new(loop, files->fd, LOOP_READ, on_readable, files, &files->io);
	if (r < 0) {
		device_files_free(files);
		return r;
	}
	*ret = files;
	return 0;
}

struct device_files *
device_files_free(struct device_files *files)
{
	if (files == NULL)
		return NULL;
	loop_io_free(files->io);
	if (files->fd >= 0)
		close(files->fd);
	free(files->parent);
	free(files);
	return NULL;
}
