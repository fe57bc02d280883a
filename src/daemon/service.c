/* service.c -- what the daemon tells the service manager */

#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>

#include "base/log.h"
#include "base/text.h"
#include "daemon/service.h"
#include "loop/loop.h"

/* What the end of connections and threads may take beyond that of transfers. */
#define STOP_SLACK (10 * NSEC_PER_SEC)

/* ---- the watchdog ---- */

struct service {
	struct loop_timer *timer; /* NULL: no watchdog */
	uint64_t interval_ns;
};

static void
feed(void *arg)
{
	struct service *service = arg;

	sd_notify(0, "WATCHDOG=1");
	loop_timer_set(service->timer, service->interval_ns);
}

int
service_new(struct loop *loop, struct service **ret)
{
	struct service *service = calloc(1, sizeof(*service));
	uint64_t usec;

	if (service == NULL)
		return -ENOMEM;
	if (sd_watchdog_enabled(0, &usec) > 0) {
		if (loop_timer_new(loop, feed, service, &service->timer) < 0) {
			free(service);
			return -ENOMEM;
		}
		service->interval_ns = usec * NSEC_PER_USEC / 3;
		feed(service);
	}
	*ret = service;
	return 0;
}

struct service *
service_free(struct service *service)
{
	if (service == NULL)
		return NULL;
	loop_timer_free(service->timer);
	free(service);
	return NULL;
}

/* ---- socket activation ---- */

static int
option(int fd, int name)
{
	int value = 0;
	socklen_t len = sizeof(value);

	return getsockopt(fd, SOL_SOCKET, name, &value, &len) < 0 ? -errno : value;
}

/* "a stream socket that listens on 127.0.0.1:80" */
static const char *
what_it_is(int fd, char *buf, size_t size)
{
	struct sockaddr_storage ss = {0};
	const struct sockaddr_un *sun = (const struct sockaddr_un *)&ss;
	socklen_t len = sizeof(ss) - 1; /* ended by a zero */
	char address[TEXT_ADDRESS_MAX];
	int type = option(fd, SO_TYPE);

	if (getsockname(fd, (struct sockaddr *)&ss, &len) < 0)
		return "no socket";
	snprintf(buf, size, "a %s socket that %s %s",
	    type == SOCK_STREAM  ? "stream"
	    : type == SOCK_DGRAM ? "datagram"
				 : "packet",
	    option(fd, SO_ACCEPTCONN) > 0 ? "listens on" : "does not listen, of",
	    ss.ss_family == AF_UNIX ? sun->sun_path
				    : text_address_port(address, (const struct sockaddr *)&ss));
	return buf;
}

static int
refuse(int n, char *const *names, const char *path)
{
	char buf[256];

	for (int i = 0; i < n; i++) {
		int fd = SD_LISTEN_FDS_START + i;

		log_error("the service manager passed descriptor %d, \"%s\": %s", fd, names[i],
		    what_it_is(fd, buf, sizeof(buf)));
	}
	log_error("control socket %s: what is passed must be one stream socket that listens there: "
		  "see ListenStream= in rwriter.socket, and control in [rwriter]",
	    path);
	return -EINVAL;
}

int
service_control_socket(const char *path, int *ret_fd)
{
	int fd = SD_LISTEN_FDS_START, r = 0;
	char **names = NULL;
	int n = sd_listen_fds_with_names(1, &names);

	if (n < 0) {
		log_error("what the service manager passed cannot be taken: %s", strerror(-n));
		return n;
	}
	if (n == 0)
		fd = -1;
	else if (n > 1 || sd_is_socket_unix(fd, SOCK_STREAM, 1, path, 0) <= 0)
		r = refuse(n, names, path);
	else if (fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
		r = -errno;
	for (int i = 0; i < n; i++)
		free(names[i]);
	free(names);
	if (r == 0)
		*ret_fd = fd;
	return r;
}

/* ---- its life ---- */

void
service_ready(void)
{
	sd_notify(0, "READY=1");
}

void
service_reloading(void)
{
	sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64, loop_now() / NSEC_PER_USEC);
}

void
service_stopping(uint64_t may_take_ns)
{
	sd_notifyf(0, "STOPPING=1\nEXTEND_TIMEOUT_USEC=%" PRIu64,
	    (may_take_ns + STOP_SLACK) / NSEC_PER_USEC);
}

void
service_status(const char *text)
{
	sd_notifyf(0, "STATUS=%s", text);
}
