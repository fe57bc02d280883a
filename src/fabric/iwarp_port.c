/* iwarp_port.c -- listening: addresses, and the TCP connections that come in */

#include "config.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/text.h"
#include "fabric/iwarp.h"

#define PAUSE                                                                              \
	(100 * NSEC_PER_MSEC) /* when there are no descriptors or no memory to accept with \
			       */

/* ---- up or down, and why ---- */

static void
stop_listening(struct iwarp_port *p)
{
	p->io = loop_io_free(p->io);
	p->pause = loop_timer_free(p->pause);
	if (p->fd >= 0)
		close(p->fd);
	p->fd = -1;
}

static void
on_news(struct loop_task *task)
{
	struct iwarp_port *p = container_of(task, struct iwarp_port, news);
	struct fabric_event event = {
	    .type = p->error == 0 ? FABRIC_PORT_UP : FABRIC_PORT_DOWN,
	    .port = &p->base,
	    .error = p->error,
	    .detail = p->detail,
	};

	if (p->error != 0)
		stop_listening(p);
	iwarp_emit((struct iwarp *)p->base.fabric, &event);
}

static void
explain(struct iwarp_port *p, const struct sockaddr *address, const char *device, const char *call)
{
	char ip[TEXT_ADDRESS_MAX], full[TEXT_ADDRESS_MAX];

	text_address(ip, address);
	text_address_port(full, address);
	switch (p->error) {
	case -EADDRNOTAVAIL:
		snprintf(p->detail, sizeof(p->detail), "%s is not an address of this machine", ip);
		break;
	case -EADDRINUSE:
		snprintf(p->detail, sizeof(p->detail),
		    "%s is taken by another listener; a kernel iWARP device (siw, an adapter) that "
		    "listens there owns the TCP port too",
		    full);
		break;
	case -EACCES:
		snprintf(p->detail, sizeof(p->detail),
		    "%s: ports below 1024 need CAP_NET_BIND_SERVICE", full);
		break;
	case -ENODEV:
		snprintf(p->detail, sizeof(p->detail),
		    "there is no network interface %s (iwarp takes interfaces for devices)",
		    device);
		break;
	case -EPERM:
		snprintf(p->detail, sizeof(p->detail),
		    "this kernel wants CAP_NET_RAW to listen on the interface %s alone", device);
		break;
	default:
		snprintf(
		    p->detail, sizeof(p->detail), "%s: %s: %s", full, call, strerror(-p->error));
	}
}

/* ---- connections ---- */

/* Those that came before have had the longest to say what they want: the oldest makes room. */
static void
make_room(struct iwarp *w)
{
	if (list_length(&w->greeting) >= LIMIT_HALF_OPEN)
		iwarp_end(list_first(&w->greeting, struct iwarp_conn, node), FABRIC_CAUSE_TIMEOUT,
		    "too many half-open connections");
}

/* 0, or -ENOMEM and the socket is still the caller's. */
static int
welcome(struct iwarp_port *p, int fd)
{
	struct iwarp *w = (struct iwarp *)p->base.fabric;
	struct iwarp_conn *c = iwarp_conn_new(w, CONN_GREETING, NULL);

	if (c == NULL)
		return -ENOMEM;
	if (iwarp_attach(c, fd, LOOP_READ) < 0) {
		iwarp_conn_dispose(c);
		return -ENOMEM;
	}
	make_room(w);
	list_add_tail(&w->greeting, &c->node);
	c->port = p;
	iwarp_tune(w, fd);
	iwarp_note_ends(c);
	return 0;
}

/* 0: one more; -EAGAIN: no more; any other: not now. */
static int
accept_one(struct iwarp_port *p)
{
	int fd = accept4(p->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	int r;

	if (fd < 0)
		return errno == ECONNABORTED || errno == EINTR ? 0 : -errno;
	r = welcome(p, fd);
	if (r < 0)
		close(fd);
	return r;
}

/* What is waiting stays ready: without a pause the loop would spin. */
static void
on_io(void *arg, unsigned events)
{
	struct iwarp_port *p = arg;
	int r = 0;

	(void)events;
	for (unsigned n = 0; n < LIMIT_LISTEN_BACKLOG && r == 0; n++)
		r = accept_one(p);
	if (r == 0 || r == -EAGAIN)
		return;
	log_warning("iwarp: cannot accept a connection: %s", strerror(-r));
	loop_io_set(p->io, 0);
	loop_timer_set(p->pause, PAUSE);
}

static void
on_pause_over(void *arg)
{
	struct iwarp_port *p = arg;

	loop_io_set(p->io, LOOP_READ);
}

/* ---- operations ---- */

/* An IPv6 wildcard leaves IPv4 to a listener of its own. */
static int
bind_and_listen(
    struct iwarp_port *p, const struct sockaddr *address, const char *device, const char **call)
{
	int one = 1;

	*call = "socket";
	p->fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (p->fd < 0)
		return -errno;
	*call = "IPV6_V6ONLY";
	if (address->sa_family == AF_INET6 &&
	    setsockopt(p->fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one)) < 0)
		return -errno;
	*call = "SO_REUSEADDR";
	if (setsockopt(p->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0)
		return -errno;
	*call = "SO_BINDTODEVICE";
	if (device[0] != '\0' && setsockopt(p->fd, SOL_SOCKET, SO_BINDTODEVICE, device,
				     (socklen_t)strlen(device) + 1) < 0)
		return -errno;
	*call = "bind";
	if (bind(p->fd, address, iwarp_address_size(address)) < 0)
		return -errno;
	*call = "listen";
	if (listen(p->fd, LIMIT_LISTEN_BACKLOG) < 0)
		return -errno;
	return 0;
}

static int
start(struct iwarp_port *p, const struct sockaddr *address, const char *device, const char **call)
{
	struct loop *loop = p->base.fabric->env.loop;
	int r = bind_and_listen(p, address, device, call);

	if (r < 0)
		return r;
	*call = "watching it";
	r = loop_timer_new(loop, on_pause_over, p, &p->pause);
	if (r == 0)
		r = loop_io_new(loop, p->fd, LOOP_READ, on_io, p, &p->io);
	return r;
}

static void
on_grave(struct loop_task *task)
{
	free(container_of(task, struct iwarp_port, grave));
}

int
iwarp_listen(struct fabric *f, const struct sockaddr *address, const char *device, void *owner,
    struct fabric_port **ret)
{
	struct iwarp *w = (struct iwarp *)f;
	struct iwarp_port *p = calloc(1, sizeof(*p));
	const char *interface = device == NULL || strcmp(device, "tcp") == 0 ? "" : device;
	const char *call;

	if (p == NULL)
		return -ENOMEM;
	p->base = (struct fabric_port){.fabric = f, .owner = owner};
	p->fd = -1;
	loop_task_init(&p->news, on_news);
	loop_task_init(&p->grave, on_grave);
	list_add_tail(&w->ports, &p->node);
	p->error = start(p, address, interface, &call);
	if (p->error < 0)
		explain(p, address, interface, call);
	else
		snprintf(p->detail, sizeof(p->detail), "iwarp %s",
		    interface[0] != '\0' ? interface : "tcp");
	iwarp_defer(w, &p->news);
	*ret = &p->base;
	return 0;
}

/* A connection that has not asked for anything yet goes with its port. */
void
iwarp_unlisten(struct fabric_port *base)
{
	struct iwarp_port *p = (struct iwarp_port *)base;
	struct iwarp *w = (struct iwarp *)base->fabric;
	struct iwarp_conn *c;

	stop_listening(p);
	list_for_each (c, &w->greeting, struct iwarp_conn, node)
		if (c->port == p)
			iwarp_end(c, FABRIC_CAUSE_LOCAL, "its port is closed");
	list_del(&p->node);
	loop_undefer(&p->news);
	iwarp_bury(w, &p->grave);
}
