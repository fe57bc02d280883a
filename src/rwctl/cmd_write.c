/* cmd_write.c -- rwctl write PEER FILE|-: have the daemon write a file into a peer's region */

#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/text.h"
#include "rwctl/call.h"
#include "rwctl/interrupt.h"
#include "rwctl/progress.h"
#include "rwctl/pump.h"

#define NSEC_PER_MSEC    UINT64_C(1000000)
#define RATE_FROM        (UINT64_C(64) << 10) /* bytes from which on a rate means something */
#define TIMEOUT_GRACE_MS 2000 /* the daemon keeps the deadline; we only see to it that it does */

/* Where the bytes come from. */
struct input {
	int fd; /* the file, or what the pump reads */
	const char *name;
	struct pump *pump; /* NULL: fd itself travels */
	int far_end;       /* of the pump, travels */
};

static const char *
base_name(const char *path)
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

static int
input_open(struct input *in, const char *file, const struct options *o)
{
	bool standard = strcmp(file, "-") == 0;
	struct stat st;
	int r = 0;

	*in = (struct input){.fd = STDIN_FILENO, .far_end = -1};
	in->name = o->name != NULL ? o->name : standard ? "stdin" : base_name(file);
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

static void
input_close(struct input *in)
{
	pump_free(in->pump);
	if (in->far_end >= 0)
		close(in->far_end);
	if (in->fd > STDIN_FILENO)
		close(in->fd);
}

static void
send_call(struct call *call, const char *peer, struct input *in, const struct options *o, bool more)
{
	json_t *parameters =
	    json_pack("{s:o, s:o}", "peer", call_text(peer), "name", call_text(in->name));

	if (o->region != NULL)
		json_object_set_new(parameters, "region", call_text(o->region));
	if (o->size != 0)
		json_object_set_new(parameters, "size", json_integer(o->size));
	if (o->timeout_ns != 0)
		json_object_set_new(parameters, "timeoutMs",
		    json_integer((o->timeout_ns + NSEC_PER_MSEC - 1) / NSEC_PER_MSEC));
	call_send(
	    call, "io.rwriter.Write", parameters, more, in->pump != NULL ? in->far_end : in->fd);
	if (in->far_end >= 0)
		close(in->far_end);
	in->far_end = -1;
}

static void
print_result(const json_t *t)
{
	uint64_t bytes = number_at(t, "length"), ns = number_at(t, "sendingNs");
	char took[TEXT_TIME_MAX], rate[TEXT_SIZE_MAX];
	const char *device = text_at(t, "device"), *why = text_at(t, "fabricWhy");

	if (ns == 0)
		ns = number_at(t, "durationNs");
	printf("%s -> %s: %s, %" PRIu64 " byte%s in %s", text_at(t, "name"), text_at(t, "peer"),
	    text_at(t, "state"), bytes, bytes == 1 ? "" : "s", text_human_time(took, ns));
	if (bytes >= RATE_FROM && ns > 0)
		printf(" (%s/s)", text_human_size(rate, (uint64_t)(bytes * 1e9 / ns)));
	if (number_at(t, "regionId") != 0)
		printf(", region %" PRIu64, number_at(t, "regionId"));
	printf(", %s%s%s", text_at(t, "fabric"), device[0] != '\0' ? " " : "", device);
	if (why[0] != '\0')
		printf(" (%s)", why);
	printf(", crc32c %s\n", text_at(t, "crc32c"));
}

/* Shows progress until there is a result. */
static int
await_result(
    struct call *call, struct input *in, const struct options *o, struct progress *progress)
{
	uint64_t timeout_ms = o->timeout_ns / NSEC_PER_MSEC + TIMEOUT_GRACE_MS;
	struct answer answer;
	int r, status = STATUS_DONE;

	for (;;) {
		r = call_receive(call, in->pump,
		    o->timeout_ns == 0 || timeout_ms > INT32_MAX ? -1 : (int)timeout_ms, &answer);
		if (r < 0 || !answer.continues)
			break;
		progress_draw(progress, json_object_get(answer.parameters, "transfer"));
		answer_done(&answer);
	}
	progress_free(progress);
	if (r < 0 && in->pump != NULL && pump_error(in->pump) < 0) {
		complain("%s: cannot be read: %s", in->name, strerror(-pump_error(in->pump)));
		return STATUS_FAILED;
	}
	if (r < 0)
		return call_explain(call, r);
	if (answer.error != NULL)
		status = answer_failed(&answer, o);
	else if (o->json)
		answer_print(&answer);
	else
		print_result(json_object_get(answer.parameters, "transfer"));
	answer_done(&answer);
	return status;
}

int
cmd_write(const struct options *o, char **args)
{
	struct progress *progress = NULL;
	struct call *call = NULL;
	struct input in;
	int status = input_open(&in, args[1], o);

	if (status == STATUS_DONE)
		status = call_open(o, &call);
	if (status == STATUS_DONE) {
		if (!o->quiet && !o->json)
			progress = progress_new();
		send_call(call, args[0], &in, o, progress != NULL);
		status = await_result(call, &in, o, progress);
	}
	call_close(call);
	if (in.pump != NULL && status != STATUS_DONE)
		pump_await_drop(in.pump);
	input_close(&in);
	return status;
}
