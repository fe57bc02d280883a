/* pump.c -- brings any input (pipe, terminal, device) to the daemon through a socket pair */

#include "config.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rwctl/pump.h"

#define DROP_WAIT_MS 1000

struct pump {
	int in, out;
	bool done;         /* all is through, or nobody wants it any more */
	int error;         /* of in */
	size_t start, end; /* of what is in buf */
	char buf[256 << 10];
};

int
pump_new(int in, struct pump **ret, int *ret_far_end)
{
	struct pump *pump = malloc(sizeof(*pump));
	int ends[2];

	if (pump == NULL)
		return -ENOMEM;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) {
		free(pump);
		return -errno;
	}
	pump->in = in;
	pump->out = ends[0];
	pump->done = false;
	pump->error = 0;
	pump->start = pump->end = 0;
	*ret = pump;
	*ret_far_end = ends[1];
	return 0;
}

struct pump *
pump_free(struct pump *pump)
{
	if (pump == NULL)
		return NULL;
	close(pump->out);
	free(pump);
	return NULL;
}

void
pump_prepare(const struct pump *pump, struct pollfd *pollfd)
{
	bool empty = pump->start == pump->end;

	*pollfd = (struct pollfd){.fd = -1};
	if (!pump->done)
		*pollfd =
		    (struct pollfd){empty ? pump->in : pump->out, empty ? POLLIN : POLLOUT, 0};
}

static int
fill(struct pump *pump)
{
	ssize_t n = read(pump->in, pump->buf, sizeof(pump->buf));

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return 0;
	if (n < 0) {
		pump->error = -errno;
		return pump->error;
	}
	if (n == 0) {
		shutdown(pump->out, SHUT_WR);
		pump->done = true;
	}
	pump->start = 0;
	pump->end = n;
	return 0;
}

static void
drain(struct pump *pump)
{
	ssize_t n = send(pump->out, pump->buf + pump->start, pump->end - pump->start,
	    MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n >= 0)
		pump->start += n;
	else if (errno != EINTR && errno != EAGAIN)
		pump->done = true; /* the daemon has dropped its end: its answer says why */
}

int
pump_step(struct pump *pump, short events)
{
	if (events == 0 || pump->done)
		return 0;
	if (pump->start == pump->end)
		return fill(pump);
	drain(pump);
	return 0;
}

int
pump_error(const struct pump *pump)
{
	return pump->error;
}

void
pump_await_drop(struct pump *pump)
{
	struct pollfd pollfd = {pump->out, 0, 0}; /* POLLHUP needs no asking */

	poll(&pollfd, 1, DROP_WAIT_MS);
}
