/* cmd_dump.c -- rwctl dump-region [ID|PEER]: the bytes of the newest arrival
 *
 * The daemon hands out the region's memory, and its peer may write into it again at any time. So
 * the bytes are whole only if their checksum says so: it is taken of what has been copied, not of
 * the region. The label behind the bytes tells earlier of what the daemon knows to be overwritten.
 */

#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rwriter/region.h>

#include "base/crc32c.h"
#include "base/text.h"
#include "rwctl/call.h"
#include "rwctl/hexdump.h"
#include "rwctl/interrupt.h"

#define CHUNK       (1U << 20)
#define SHOWN       256 /* bytes on a terminal without --all */
#define TRIES       5
#define TRY_WAIT_MS 100 /* longer with each try */

struct arrival {
	struct answer answer;
	const json_t *region, *last; /* parts of answer */
	uint64_t offset, length;
	uint32_t crc;
	struct rwriter_label label; /* as it was then; only what tells of overwriting */
};

/* What becomes of the bytes; a negative errno ends the copying. */
typedef int sink_fn(void *arg, const void *bytes, size_t len);

/* ---- the arrival ---- */

static int
open_arrival(struct call *call, const struct options *o, const char *which, struct arrival *ret)
{
	json_t *parameters =
	    which != NULL ? json_pack("{s:o}", "which", call_text(which)) : json_object();
	int r = call_simple(call, o, "io.rwriter.OpenRegion", parameters, &ret->answer);

	if (r != STATUS_DONE)
		return r;
	ret->region = json_object_get(ret->answer.parameters, "region");
	ret->last = json_object_get(ret->region, "lastArrival");
	ret->offset = number_at(ret->last, "offset");
	ret->length = number_at(ret->last, "length");
	ret->label.generation = number_at(ret->region, "generation");
	ret->label.buffers = number_at(ret->region, "buffers");
	ret->crc = strtoul(text_at(ret->last, "crc32c"), NULL, 16);
	if (ret->answer.fd >= 0)
		return STATUS_DONE;
	complain("rwriterd has sent no descriptor of the region");
	answer_done(&ret->answer);
	return STATUS_FAILED;
}

/* Known to be: it saves copying in vain. */
static bool
overwritten(const struct arrival *a)
{
	struct rwriter_label now;
	struct stat st;

	return fstat(a->answer.fd, &st) == 0 &&
	       pread(a->answer.fd, &now, sizeof(now), st.st_size - RWRITER_LABEL_SIZE) ==
		   sizeof(now) &&
	       rwriter_label_overwritten(&now, &a->label);
}

/* 0 when the bytes that went to the sink were the arrival, -ESTALE when they were not, or another
 * negative errno. */
static int
copy(const struct arrival *a, sink_fn *sink, void *arg)
{
	char *buf = malloc(CHUNK);
	uint64_t offset = 0;
	uint32_t crc = 0;
	int r = buf == NULL ? -ENOMEM : 0;

	while (r == 0 && offset < a->length) {
		size_t want = a->length - offset < CHUNK ? a->length - offset : CHUNK;
		ssize_t n = pread(a->answer.fd, buf, want, a->offset + offset);

		if (n <= 0 || overwritten(a))
			r = n < 0 ? -errno : -ESTALE;
		else if (interrupted())
			r = -EINTR;
		else {
			crc = crc32c(crc, buf, n);
			r = sink(arg, buf, n);
			offset += n;
		}
	}
	free(buf);
	return r == 0 && crc != a->crc ? -ESTALE : r;
}

static int
sink_nothing(void *arg, const void *bytes, size_t len)
{
	(void)arg, (void)bytes, (void)len;
	return 0;
}

/* For a sink that takes nothing back: looks first, so that a region in motion is seen (and tried
 * again) before the first byte is out. -EBADMSG: it began to move after that. */
static int
copy_once(const struct arrival *a, sink_fn *sink, void *arg)
{
	int r = copy(a, sink_nothing, NULL);

	if (r < 0)
		return r;
	r = copy(a, sink, arg);
	return r == -ESTALE ? -EBADMSG : r;
}

static int
sink_write(void *arg, const void *bytes, size_t len)
{
	const int *fd = arg;

	while (len > 0) {
		ssize_t n = write(*fd, bytes, len);

		if (n < 0 && errno == EAGAIN)
			interrupt_poll(&(struct pollfd){*fd, POLLOUT, 0}, 1, -1);
		else if (n < 0 && errno != EINTR)
			return -errno;
		if (n < 0 && interrupted())
			return -EINTR;
		if (n > 0) {
			bytes = (const char *)bytes + n;
			len -= n;
		}
	}
	return 0;
}

/* ---- where to ---- */

static int
to_stdout(const struct arrival *a)
{
	int fd = STDOUT_FILENO;

	return copy_once(a, sink_write, &fd);
}

struct shown {
	struct hexdump hexdump;
	uint64_t left;
};

static int
sink_show(void *arg, const void *bytes, size_t len)
{
	struct shown *s = arg;
	size_t n = len < s->left ? len : s->left;

	hexdump_put(&s->hexdump, bytes, n);
	s->left -= n;
	return ferror(stdout) ? -EIO : 0;
}

static void
print_summary(const struct arrival *a)
{
	uint64_t receives = number_at(a->region, "receiveCompletions");

	printf("region %" PRIu64 " from %s, %s, %" PRIu64 " byte%s, crc32c %s, %" PRIu64
	       " receive completion%s\n",
	    number_at(a->region, "id"), text_at(a->region, "peer"), text_at(a->last, "name"),
	    a->length, a->length == 1 ? "" : "s", text_at(a->last, "crc32c"), receives,
	    receives == 1 ? "" : "s");
}

static int
to_terminal(const struct arrival *a, bool all)
{
	struct shown shown = {.left = all ? a->length : SHOWN};
	int r = copy(a, sink_nothing, NULL);

	if (r < 0)
		return r;
	print_summary(a);
	r = copy_once(a, sink_show, &shown);
	if (shown.hexdump.offset < a->length)
		printf("... %" PRIu64 " more bytes (--all shows them)\n",
		    a->length - shown.hexdump.offset);
	else if (a->length > 0)
		hexdump_end(&shown.hexdump);
	return r;
}

/* A device or a pipe is written to; anything else is replaced whole, by renaming. */
static bool
is_special(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && !S_ISREG(st.st_mode);
}

static int
to_special(const struct arrival *a, const char *path)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), r;

	if (fd < 0)
		return -errno;
	r = copy_once(a, sink_write, &fd);
	if (close(fd) < 0 && r == 0)
		r = -errno;
	return r;
}

/* The mode that open(2) would give. */
static mode_t
new_file_mode(void)
{
	mode_t mask = umask(0);

	umask(mask);
	return 0666 & ~mask;
}

static int
fill_and_rename(const struct arrival *a, int fd, const char *temporary, const char *path)
{
	int r = copy(a, sink_write, &fd);

	if (r == 0 &&
	    (fchmod(fd, new_file_mode()) < 0 || fsync(fd) < 0 || rename(temporary, path) < 0))
		r = -errno;
	return r;
}

static int
to_file(const struct arrival *a, const char *path)
{
	char temporary[PATH_MAX];
	int fd, r;

	if (is_special(path))
		return to_special(a, path);
	if (snprintf(temporary, sizeof(temporary), "%s.XXXXXX", path) >= (int)sizeof(temporary))
		return -ENAMETOOLONG;
	fd = mkostemp(temporary, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	r = fill_and_rename(a, fd, temporary, path);
	close(fd);
	if (r < 0)
		unlink(temporary);
	return r;
}

/* ---- the command ---- */

static int
put_arrival(const struct arrival *a, const struct options *o)
{
	if (o->output != NULL)
		return to_file(a, o->output);
	if (o->json)
		return copy(a, sink_nothing, NULL);
	return isatty(STDOUT_FILENO) ? to_terminal(a, o->all) : to_stdout(a);
}

static void
explain_moving(const struct arrival *a, bool out)
{
	complain("region %" PRIu64 ": %s is writing into it again: %s", number_at(a->region, "id"),
	    text_at(a->region, "peer"),
	    out ? "what was put out is not whole" : "there is nothing whole in it");
	advise("try again when that has arrived");
}

static int
explain(const struct arrival *a, const struct options *o, int error)
{
	if (error == -EINTR)
		return interrupt_explain();
	if (error == -ESTALE || error == -EBADMSG)
		explain_moving(a, error == -EBADMSG);
	else
		complain(
		    "%s: %s", o->output != NULL ? o->output : "standard output", strerror(-error));
	return STATUS_FAILED;
}

static int
dump(struct call *call, const struct options *o, const char *which)
{
	struct arrival a;
	int status, r;

	for (int try = 1;; try++) {
		status = open_arrival(call, o, which, &a);
		if (status != STATUS_DONE)
			return status;
		r = put_arrival(&a, o);
		if (r != -ESTALE || try == TRIES)
			break;
		answer_done(&a.answer);
		interrupt_poll(NULL, 0, TRY_WAIT_MS * try);
	}
	if (r < 0)
		status = explain(&a, o, r);
	else if (o->json)
		answer_print(&a.answer);
	else if (o->output != NULL)
		print_summary(&a);
	answer_done(&a.answer);
	return status;
}

int
cmd_dump_region(const struct options *o, char **args)
{
	struct call *call;
	int status = call_open(o, &call);

	if (status != STATUS_DONE)
		return status;
	crc32c_init();
	status = dump(call, o, args[0]);
	call_close(call);
	return status;
}
