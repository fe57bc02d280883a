/* call.c -- Varlink client: calls to rwriterd, with descriptors both ways */

#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/text.h"
#include "rwctl/call.h"
#include "rwctl/deadline.h"
#include "rwctl/interrupt.h"
#include "rwctl/pump.h"

#define SYSTEM_SOCKET RUNSTATEDIR "/rwriter/io.rwriter"
#define USER_SOCKET   "rwriter/io.rwriter" /* under $XDG_RUNTIME_DIR */

#define ANSWER_TIMEOUT_MS 30000 /* of calls that the daemon answers at once */

struct call {
	int socket;
	int send_error; /* of the last call: told when no answer comes */
	int fd;         /* came with the answer that is being received, or -1 */
	char *in;
	size_t len, size;
	char path[]; /* of the daemon's socket */
};

union descriptors {
	char buf[CMSG_SPACE(LIMIT_BATCH * sizeof(int))];
	struct cmsghdr align;
};

union descriptor {
	char buf[CMSG_SPACE(sizeof(int))];
	struct cmsghdr align;
};

/* ---- connecting ---- */

static const char *
find_socket(char *buf, size_t size)
{
	const char *dir = getenv("XDG_RUNTIME_DIR"), *path = getenv("RWCTL_SOCKET");

	if (path != NULL && path[0] != '\0')
		return path;
	if (access(SYSTEM_SOCKET, F_OK) == 0 || dir == NULL)
		return SYSTEM_SOCKET;
	snprintf(buf, size, "%s/" USER_SOCKET, dir);
	return access(buf, F_OK) == 0 ? buf : SYSTEM_SOCKET;
}

static void
explain_unreachable(const char *path, int error)
{
	if (error == ENOENT || error == ECONNREFUSED) {
		complain("rwriterd does not run here: %s: %s", path,
		    error == ENOENT ? "no such socket" : "nobody listens");
		advise("start it: sudo systemctl start rwriter");
	} else if (error == EACCES) {
		complain("%s: %s", path, strerror(error));
		advise("use sudo, or join the group: sudo usermod -aG rwriter $USER, then log in "
		       "again");
	} else {
		complain("%s: %s", path, strerror(error));
	}
}

static int
connect_to(const char *path)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	int fd;

	if (strlen(path) >= sizeof(sun.sun_path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	strcpy(sun.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&sun, sizeof(sun)) < 0) {
		int error = errno;

		close(fd);
		errno = error;
		return -1;
	}
	return fd;
}

int
call_open(const struct options *o, struct call **ret)
{
	char buf[sizeof(((struct sockaddr_un *)0)->sun_path)];
	const char *path = o->socket != NULL ? o->socket : find_socket(buf, sizeof(buf));
	struct call *call = calloc(1, sizeof(*call) + strlen(path) + 1);
	int fd = connect_to(path);

	if (fd < 0 || call == NULL) {
		explain_unreachable(path, fd < 0 ? errno : ENOMEM);
		free(call);
		return STATUS_UNREACHABLE;
	}
	call->socket = fd;
	call->fd = -1;
	strcpy(call->path, path);
	*ret = call;
	return STATUS_DONE;
}

int
call_reopen(struct call *call)
{
	int fd = connect_to(call->path);

	if (fd < 0)
		return -errno;
	close(call->socket);
	call->socket = fd;
	call->len = 0;
	return 0;
}

struct call *
call_close(struct call *call)
{
	if (call == NULL)
		return NULL;
	close(call->socket);
	if (call->fd >= 0)
		close(call->fd);
	free(call->in);
	free(call);
	return NULL;
}

/* ---- sending ---- */

static int
send_all(int socket, const char *text, size_t len, const int *fds, unsigned n_fds)
{
	union descriptors control = {0};
	struct iovec iov = {(char *)text, len};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

	if (n_fds > 0) {
		msg.msg_control = control.buf;
		msg.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
		*CMSG_FIRSTHDR(&msg) = (struct cmsghdr){
		    .cmsg_len = CMSG_LEN(n_fds * sizeof(int)),
		    .cmsg_level = SOL_SOCKET,
		    .cmsg_type = SCM_RIGHTS,
		};
		memcpy(CMSG_DATA(CMSG_FIRSTHDR(&msg)), fds, n_fds * sizeof(int));
	}
	while (iov.iov_len > 0) {
		ssize_t n = sendmsg(socket, &msg, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR && !interrupted())
			continue;
		if (n < 0)
			return errno;
		iov.iov_base = (char *)iov.iov_base + n;
		iov.iov_len -= n;
		msg.msg_control = NULL; /* it has gone with the first byte */
		msg.msg_controllen = 0;
	}
	return 0;
}

void
call_send(struct call *call, const char *method, json_t *parameters, bool more, const int *fds,
    unsigned n_fds)
{
	json_t *message =
	    json_pack("{s:s, s:o, s:b}", "method", method, "parameters", parameters, "more", more);
	char *text = message != NULL ? json_dumps(message, JSON_COMPACT) : NULL;

	call->send_error =
	    text != NULL ? send_all(call->socket, text, strlen(text) + 1, fds, n_fds) : ENOMEM;
	free(text);
	json_decref(message);
}

/* ---- receiving ---- */

/* Takes what the socket has; 0, or a negative errno (-EPIPE: the daemon has closed it). */
static int
read_some(struct call *call)
{
	union descriptor control;
	struct iovec iov;
	struct msghdr msg = {.msg_iov = &iov,
	    .msg_iovlen = 1,
	    .msg_control = control.buf,
	    .msg_controllen = sizeof(control.buf)};
	struct cmsghdr *h;
	ssize_t n;

	if (call->len == call->size) {
		char *in = call->size < LIMIT_CONTROL_OUTPUT
			       ? realloc(call->in, call->size * 2 + 4096)
			       : NULL;

		if (in == NULL)
			return -ENOBUFS;
		call->in = in;
		call->size = call->size * 2 + 4096;
	}
	iov = (struct iovec){call->in + call->len, call->size - call->len};
	n = recvmsg(call->socket, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n <= 0)
		return n == 0 ? -EPIPE : errno == EAGAIN || errno == EINTR ? 0 : -errno;
	h = CMSG_FIRSTHDR(&msg);
	if (h != NULL && h->cmsg_type == SCM_RIGHTS && call->fd < 0)
		memcpy(&call->fd, CMSG_DATA(h), sizeof(int));
	call->len += n;
	return 0;
}

/* Text made safe for a terminal. Only one of several lines keeps its line ends. */
static json_t *
clean_string(const char *text, size_t len, bool lines)
{
	char *clean = malloc(len + 1);
	json_t *result;

	if (clean == NULL)
		return NULL;
	text_clean(clean, len + 1, text, len);
	for (size_t i = 0; lines && clean[i] != '\0'; i++)
		if (text[i] == '\n')
			clean[i] = '\n';
	result = json_string(clean);
	free(clean);
	return result;
}

json_t *
call_text(const char *text)
{
	return clean_string(text, strlen(text), false);
}

static json_t *
clean_value(const json_t *string, bool lines)
{
	return clean_string(json_string_value(string), json_string_length(string), lines);
}

/* Whatever the daemon says, and peers through it, is made safe to print here and nowhere else. */
static void
clean_strings(json_t *value)
{
	const char *key;
	json_t *item;
	size_t i;

	json_object_foreach (value, key, item) {
		if (json_is_string(item))
			json_object_set_new(
			    value, key, clean_value(item, strcmp(key, "errors") == 0));
		else
			clean_strings(item);
	}
	json_array_foreach (value, i, item) {
		if (json_is_string(item))
			json_array_set_new(value, i, clean_value(item, false));
		else
			clean_strings(item);
	}
}

/* Turns the first message of the buffer, whose NUL is at end, into an answer. */
static int
take_answer(struct call *call, const char *end, struct answer *ret)
{
	json_t *message = json_loads(call->in, 0, NULL);
	json_t *parameters;

	call->len -= end + 1 - call->in;
	memmove(call->in, end + 1, call->len);
	if (!json_is_object(message)) {
		json_decref(message);
		return -EBADMSG;
	}
	if (!json_is_object(json_object_get(message, "parameters")))
		json_object_set_new(message, "parameters", json_object());
	parameters = json_object_get(message, "parameters");
	clean_strings(message);
	*ret = (struct answer){
	    .message = message,
	    .parameters = parameters,
	    .error = json_string_value(json_object_get(message, "error")),
	    .continues = json_is_true(json_object_get(message, "continues")),
	    .fd = call->fd,
	};
	call->fd = -1;
	return 0;
}

/* Waits for something to happen on the connection or the pump; a negative errno. */
static int
wait_and_pump(struct call *call, struct pump *pump, int timeout_ms)
{
	struct pollfd fds[2] = {{call->socket, POLLIN, 0}, {.fd = -1}};
	int r;

	if (pump != NULL)
		pump_prepare(pump, &fds[1]);
	r = interrupt_poll(fds, 2, timeout_ms);
	if (r <= 0)
		return r < 0 ? r : -ETIME;
	if (fds[0].revents != 0) {
		r = read_some(call);
		return r < 0 ? r : 0;
	}
	return pump != NULL ? pump_step(pump, fds[1].revents) : 0;
}

int
call_receive(struct call *call, struct pump *pump, int timeout_ms, struct answer *ret)
{
	struct deadline deadline =
	    deadline_in(timeout_ms < 0 ? 0 : timeout_ms * UINT64_C(1000000) + 1);
	const char *end;
	int r = 0;

	while ((end = memchr(call->in != NULL ? call->in : "", '\0', call->len)) == NULL && r == 0)
		r = wait_and_pump(call, pump, deadline_left_ms(deadline));
	return r == 0 ? take_answer(call, end, ret) : r;
}

int
call_explain(const struct call *call, int error)
{
	switch (-error) {
	case EINTR:
		return interrupt_explain();
	case ETIME:
		complain("rwriterd does not answer in time");
		return STATUS_DEADLINE;
	case EBADMSG:
		complain("what answers is not rwriterd");
		return STATUS_UNREACHABLE;
	default:
		complain("rwriterd has closed the connection without an answer%s%s",
		    call->send_error != 0 ? ": " : "",
		    call->send_error != 0 ? strerror(call->send_error) : "");
		advise("it says why in its log: journalctl -u rwriter");
		return STATUS_UNREACHABLE;
	}
}

/* ---- whole calls ---- */

/* No longer than --timeout allows. */
static int
patience_ms(const struct options *o)
{
	int left = deadline_left_ms(deadline_in(o->timeout_ns));

	return left >= 0 && left < ANSWER_TIMEOUT_MS ? left : ANSWER_TIMEOUT_MS;
}

int
call_simple(struct call *call, const struct options *o, const char *method, json_t *parameters,
    struct answer *ret)
{
	struct answer answer;
	int r;

	call_send(call, method, parameters, false, NULL, 0);
	r = call_receive(call, NULL, patience_ms(o), &answer);
	if (r < 0)
		return call_explain(call, r);
	if (answer.error != NULL) {
		r = answer_failed(&answer, o);
		answer_done(&answer);
		return r;
	}
	*ret = answer;
	return STATUS_DONE;
}

int
call_once(const struct options *o, const char *method, json_t *parameters, struct answer *ret)
{
	struct call *call;
	int r = call_open(o, &call);

	if (r != STATUS_DONE) {
		json_decref(parameters);
		return r;
	}
	r = call_simple(call, o, method, parameters, ret);
	call_close(call);
	if (r == STATUS_DONE && o->json)
		answer_print(ret);
	return r;
}
