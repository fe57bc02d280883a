/* fuzz_control.c -- the control socket: framing, descriptors, JSON, methods, over the fake core
 *
 * Input: what travels with the first byte (0 nothing, 1 a file, 2 a socket, 3 two files) |
 *        bytes sent at a time, 0: all | what a client sends
 */

#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/log.h"
#include "control/control.h"
#include "fuzz/fuzz.h"
#include "loop/loop.h"
#include "unit/fake_core.h"

#define TURNS  4 /* are enough for a call to be answered, or a client to be forgotten */
#define ANSWER (1 << 20)

static struct core core, filled;
static struct control *control;
static char directory[] = "/tmp/fuzz_control.XXXXXX";
static struct sockaddr_un address = {.sun_family = AF_UNIX};

static int
on_reload(void *arg, char *errors, size_t size)
{
	(void)arg;
	snprintf(errors, size, "rwriter.conf:1: no\n");
	return -EINVAL;
}

static void
on_log(enum log_level level, const char *line)
{
	(void)level;
	(void)line;
}

static void
clean_up(void)
{
	control_free(control);
	loop_free(core.loop);
	rmdir(directory);
}

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	struct control_env env = {
	    .core = &core,
	    .path = address.sun_path,
	    .version = "0.1.0",
	    .conf_file = "/etc/rwriter/rwriter.conf",
	    .reload = on_reload,
	};

	(void)argc;
	(void)argv;
	log_set_sink(on_log);
	CHECK(crc32c_init() == 0 && loop_new(&core.loop) == 0 && mkdtemp(directory) != NULL);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/socket", directory);
	fake_core_fill(&core);
	filled = core;
	env.loop = core.loop;
	CHECK(control_new(&env, -1, &control) == 0);
	return atexit(clean_up);
}

/* ---- sending ---- */

static unsigned
open_descriptors(unsigned what, int fds[2])
{
	static const char TEXT[] = "Hello RDMA Write!";
	unsigned n = what == 3 ? 2 : what != 0;

	for (unsigned i = 0; i < n; i++) {
		fds[i] = what == 2 ? socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)
				   : memfd_create("file", MFD_CLOEXEC);
		CHECK(fds[i] >= 0);
		if (what != 2)
			CHECK(write(fds[i], TEXT, sizeof(TEXT)) == sizeof(TEXT));
	}
	return n;
}

static ssize_t
send_piece(int client, const uint8_t *data, size_t len, const int *fds, unsigned n)
{
	union {
		char buf[CMSG_SPACE(2 * sizeof(int))];
		struct cmsghdr align;
	} ancillary = {0};
	struct iovec iov = {(void *)data, len};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

	if (n > 0) {
		msg.msg_control = ancillary.buf;
		msg.msg_controllen = CMSG_SPACE(n * sizeof(int));
		*CMSG_FIRSTHDR(&msg) = (struct cmsghdr){.cmsg_len = CMSG_LEN(n * sizeof(int)),
		    .cmsg_level = SOL_SOCKET,
		    .cmsg_type = SCM_RIGHTS};
		memcpy(CMSG_DATA(CMSG_FIRSTHDR(&msg)), fds, n * sizeof(int));
	}
	return sendmsg(client, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void
turn(unsigned times)
{
	while (times-- > 0)
		CHECK(loop_turn(core.loop, 0) == 0);
}

/* Until all is sent, or the daemon has had enough. */
static void
send_all(int client, unsigned what, size_t piece, const uint8_t *data, size_t size)
{
	int fds[2];
	unsigned n = open_descriptors(what, fds), to_send = n;
	size_t at = 0;

	while (at < size) {
		size_t len = piece > 0 && piece < size - at ? piece : size - at;
		ssize_t sent = send_piece(client, data + at, len, fds, to_send);

		if (sent <= 0)
			break;
		at += (size_t)sent;
		to_send = 0;
		turn(1);
	}
	for (unsigned i = 0; i < n; i++)
		close(fds[i]);
}

/* ---- answers ---- */

static void
check_answer(const char *text)
{
	json_t *answer = json_loads(text, JSON_REJECT_DUPLICATES, NULL);

	CHECK(json_is_object(answer));
	CHECK(json_object_get(answer, "error") == NULL ||
	      json_is_string(json_object_get(answer, "error")));
	json_decref(answer);
}

/* Also the last is whole, whatever the client did. */
static void
check_answers(int client)
{
	static char answers[ANSWER];
	size_t size = 0;
	ssize_t n;

	while ((n = recv(client, answers + size, sizeof(answers) - size, MSG_DONTWAIT)) > 0) {
		size += (size_t)n;
		turn(1);
	}
	CHECK(size == 0 || answers[size - 1] == '\0');
	for (size_t at = 0; at < size; at += strlen(answers + at) + 1)
		check_answer(answers + at);
}

static unsigned
count_descriptors(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < 64; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	unsigned what = fuzz_take_byte(&data, &size) % 4, before = count_descriptors();
	size_t piece = fuzz_take_byte(&data, &size);
	int client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct loop *loop = core.loop;

	core = filled;
	core.loop = loop;
	CHECK(client >= 0 && connect(client, (struct sockaddr *)&address, sizeof(address)) == 0);
	turn(1);
	send_all(client, what, piece, data, size);
	turn(TURNS);
	check_answers(client);
	close(client);
	turn(TURNS);
	CHECK(count_descriptors() == before);
	return 0;
}
