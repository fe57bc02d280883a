/* input.c -- what is written: a regular file, or anything else through a pump */

#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rwctl/input.h"
#include "rwctl/interrupt.h"
#include "rwctl/pump.h"
#include "rwctl/rwctl.h"

const char *
input_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash != NULL ? slash + 1 : path;
}

/* The daemon reads a regular file itself, from its start. What is elsewhere in its file, or is
 * not as long as it says (files in /proc and /sys), is pumped. */
static bool
travels_itself(int fd, const struct stat *st)
{
	char byte;

	if (!S_ISREG(st->st_mode) || lseek(fd, 0, SEEK_CUR) != 0)
		return false;
	if (st->st_size == 0)
		return pread(fd, &byte, 1, 0) == 0;
	return pread(fd, &byte, 1, st->st_size - 1) == 1;
}

int
input_open(struct input *in, const char *file, const char *name)
{
	bool standard = strcmp(file, "-") == 0;
	struct stat st;
	int r = 0;

	*in = (struct input){.fd = STDIN_FILENO, .far_end = -1};
	in->name = name != NULL ? name : standard ? "stdin" : input_base_name(file);
	if (!standard)
		in->fd = open(file, O_RDONLY | O_CLOEXEC);
	if (in->fd < 0 || fstat(in->fd, &st) < 0)
		r = -errno;
	else if (S_ISDIR(st.st_mode))
		r = -EISDIR;
	else if (!travels_itself(in->fd, &st))
		r = pump_new(in->fd, &in->pump, &in->far_end);
	if (r == 0)
		return STATUS_DONE;
	if (r == -EINTR)
		return interrupt_explain();
	complain("%s: %s", standard ? "standard input" : file, strerror(-r));
	return STATUS_FAILED;
}

int
input_open_regular(const char *file)
{
	/* Not to wait for the writer of a pipe; it means nothing to a file. */
	int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK), r = 0;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		r = -errno;
	else if (S_ISDIR(st.st_mode))
		r = -EISDIR;
	else if (!travels_itself(fd, &st))
		r = -EINVAL;
	if (r == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return r;
}

void
input_close(struct input *in)
{
	pump_free(in->pump);
	if (in->far_end >= 0)
		close(in->far_end);
	if (in->fd > STDIN_FILENO)
		close(in->fd);
}
