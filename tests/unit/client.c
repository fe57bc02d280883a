/* client.c -- tests: a raw Varlink client of a server that runs in the same loop */

#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "unit/client.h"

#define TURNS 200 /* of at most 5 ms: what has not come by then does not come */

uid_t client_uid = -1;

int __real_getsockopt(int fd, int level, int name, void *value, socklen_t *len);
int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *len);

int
__wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	int r = __real_getsockopt(fd, level, name, value, len);

	if (r == 0 && level == SOL_SOCKET && name == SO_PEERCRED && client_uid != (uid_t)-1)
		((struct ucred *)value)->uid = client_uid;
	return r;
}

int
open_fds(void)
{
	int n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

int
client_connect(const char *path)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	strncpy(sun.sun_path, path, sizeof(sun.sun_path) - 1);
	assert_int_equal(connect(fd, (struct sockaddr *)&sun, sizeof(sun)), 0);
	return fd;
}

struct test_client *
client_new(struct loop *loop, const char *path)
{
	struct test_client *c = calloc(1, sizeof(*c));

	assert_non_null(c);
	c->loop = loop;
	c->got_fd = -1;
	c->fd = client_connect(path);
	return c;
}

void
client_free(struct test_client *c)
{
	if (c->fd >= 0)
		close(c->fd);
	if (c->got_fd >= 0)
		close(c->got_fd);
	free(c);
}

void
client_send_raw(
    struct test_client *c, const void *bytes, size_t len, const int *fds, unsigned n_fds)
{
	union {
		char buf[CMSG_SPACE(253 * sizeof(int))]; /* more the kernel does not take */
		struct cmsghdr align;
	} control = {0};
	struct iovec iov = {(void *)bytes, len};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

	if (n_fds > 0) {
		msg.msg_control = control.buf;
		msg.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
		CMSG_FIRSTHDR(&msg)->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
		CMSG_FIRSTHDR(&msg)->cmsg_level = SOL_SOCKET;
		CMSG_FIRSTHDR(&msg)->cmsg_type = SCM_RIGHTS;
		memcpy(CMSG_DATA(CMSG_FIRSTHDR(&msg)), fds, n_fds * sizeof(int));
	}
	assert_int_equal(sendmsg(c->fd, &msg, MSG_NOSIGNAL), len);
}

void
client_send(struct test_client *c, const char *json)
{
	client_send_raw(c, json, strlen(json) + 1, NULL, 0);
}

static void
client_take_fd(struct test_client *c, struct msghdr *msg)
{
	struct cmsghdr *h = CMSG_FIRSTHDR(msg);

	if (h == NULL)
		return;
	if (c->got_fd >= 0)
		close(c->got_fd);
	memcpy(&c->got_fd, CMSG_DATA(h), sizeof(int));
}

ssize_t
client_read(struct test_client *c)
{
	for (int i = 0; i < TURNS; i++) {
		char control[CMSG_SPACE(sizeof(int))];
		struct iovec iov = {c->buf + c->len, sizeof(c->buf) - c->len};
		struct msghdr msg = {.msg_iov = &iov,
		    .msg_iovlen = 1,
		    .msg_control = control,
		    .msg_controllen = sizeof(control)};
		ssize_t n = recvmsg(c->fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

		if (n >= 0) {
			client_take_fd(c, &msg);
			c->len += n;
			return n;
		}
		if (errno == ECONNRESET)
			return 0;
		assert_int_equal(errno, EAGAIN);
		assert_int_equal(loop_turn(c->loop, 5 * NSEC_PER_MSEC), 0);
	}
	return -1;
}

json_t *
client_receive(struct test_client *c)
{
	json_t *message;
	char *end;

	while ((end = memchr(c->buf, '\0', c->len)) == NULL) {
		ssize_t n = client_read(c);

		assert_int_not_equal(n, -1);
		if (n == 0)
			return NULL;
	}
	message = json_loads(c->buf, 0, NULL);
	assert_non_null(message);
	c->len -= end + 1 - c->buf;
	memmove(c->buf, end + 1, c->len);
	return message;
}

json_t *
client_call(struct test_client *c, const char *json)
{
	client_send(c, json);
	return client_receive(c);
}

void
assert_answer(json_t *answer, const char *error, const char *parameter, const char *part)
{
	json_t *value = json_object_get(json_object_get(answer, "parameters"), parameter);
	const char *got = json_string_value(json_object_get(answer, "error"));

	assert_non_null(answer);
	assert_string_equal(got != NULL ? got : "", error);
	if (parameter[0] != '\0') {
		assert_non_null(json_string_value(value));
		assert_non_null(strstr(json_string_value(value), part));
	}
	json_decref(answer);
}
