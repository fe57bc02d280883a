/* verbs_port.c -- listening: addresses and devices, and the requests that come in */

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
#include "fabric/verbs.h"

static const char *
device_name(const struct rdma_cm_id *id)
{
	return id->verbs != NULL ? ibv_get_device_name(id->verbs->device) : "";
}

/* ---- up or down, and why ---- */

static void
stop_listening(struct verbs_port *p)
{
	p->bound = device_release(p->bound);
	if (p->id != NULL)
		rdma_destroy_id(p->id);
	p->id = NULL;
}

static void
on_news(struct loop_task *task)
{
	struct verbs_port *p = container_of(task, struct verbs_port, news);
	struct fabric_event event = {
	    .type = p->error == 0 ? FABRIC_PORT_UP : FABRIC_PORT_DOWN,
	    .port = &p->base,
	    .error = p->error,
	    .detail = p->detail,
	};

	/* The kernel waits for this before it lets a removed device go. */
	if (p->error != 0)
		stop_listening(p);
	verbs_emit((struct verbs *)p->base.fabric, &event);
}

/* The CM says EADDRNOTAVAIL also where a wildcard and an address want the same port. */
static bool
is_local(const struct sockaddr *address)
{
	struct sockaddr_storage any_port = {.ss_family = address->sa_family};
	socklen_t len = sizeof(struct sockaddr_in);
	int fd = socket(address->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool local;

	if (fd < 0)
		return false;
	if (address->sa_family == AF_INET6)
		len = sizeof(struct sockaddr_in6);
	memcpy(&any_port, address, len);
	((struct sockaddr_in *)&any_port)->sin_port = 0; /* where sin6_port is, too */
	local = bind(fd, (const struct sockaddr *)&any_port, len) == 0;
	close(fd);
	return local;
}

static void
explain(struct verbs_port *p, const struct sockaddr *address, const char *call)
{
	char ip[TEXT_ADDRESS_MAX], full[TEXT_ADDRESS_MAX], devices[128];

	text_address(ip, address);
	text_address_port(full, address);
	device_names(devices, sizeof(devices));
	switch (p->error) {
	case -EADDRNOTAVAIL:
		snprintf(p->detail, sizeof(p->detail), "%s is not an address of this machine", ip);
		break;
	case -ENODEV:
		snprintf(p->detail, sizeof(p->detail),
		    "no RDMA device has the address %s (RDMA devices here: %s)", ip, devices);
		break;
	case -EADDRINUSE:
		snprintf(p->detail, sizeof(p->detail),
		    "%s is taken by another listener (an iWARP device shares its ports with TCP)",
		    full);
		break;
	case -EACCES:
		snprintf(p->detail, sizeof(p->detail),
		    "%s: ports below 1024 need CAP_NET_BIND_SERVICE", full);
		break;
	default:
		snprintf(
		    p->detail, sizeof(p->detail), "%s: %s: %s", full, call, strerror(-p->error));
	}
}

/* Which devices requests can come from; -ENODEV: not from the one that is wanted, -ENXIO: there is
 * none at all. */
static int
check_device(struct verbs_port *p, const struct sockaddr *address)
{
	char ip[TEXT_ADDRESS_MAX], devices[128];
	const char *bound = device_name(p->id);

	text_address(ip, address);
	device_names(devices, sizeof(devices));
	if (p->device[0] != '\0' && bound[0] != '\0' && strcmp(p->device, bound) != 0)
		snprintf(p->detail, sizeof(p->detail),
		    "%s is an address of the RDMA device %s, not of %s", ip, bound, p->device);
	else if (p->device[0] != '\0' && !device_exists(p->device))
		snprintf(p->detail, sizeof(p->detail),
		    "there is no RDMA device %s (RDMA devices here: %s)", p->device, devices);
	else if (!device_exists(NULL))
		snprintf(p->detail, sizeof(p->detail), "no RDMA device here");
	else {
		const char *named = p->device[0] != '\0' ? p->device : bound;

		snprintf(
		    p->detail, sizeof(p->detail), "verbs %s", named[0] != '\0' ? named : devices);
		return 0;
	}
	return device_exists(NULL) ? -ENODEV : -ENXIO;
}

/* ---- operations ---- */

/* An IPv6 wildcard leaves IPv4 to a listener of its own. */
static int
bind_and_listen(struct verbs_port *p, const struct sockaddr *address, const char **call)
{
	int one = 1;

	*call = "RDMA_OPTION_ID_AFONLY";
	if (address->sa_family == AF_INET6 &&
	    rdma_set_option(p->id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &one, sizeof(one)) != 0)
		return -errno;
	*call = "rdma_bind_addr";
	if (rdma_bind_addr(p->id, (struct sockaddr *)address) != 0)
		return -errno;
	*call = "rdma_listen";
	if (rdma_listen(p->id, LIMIT_LISTEN_BACKLOG) != 0)
		return -errno;
	return 0;
}

static void
start(struct verbs_port *p, const struct sockaddr *address)
{
	struct verbs *v = (struct verbs *)p->base.fabric;
	const char *call = "rdma_create_id";

	verbs_hotplug_poll(v);
	if (rdma_create_id(v->channel, &p->id, p, RDMA_PS_TCP) != 0)
		p->error = -errno;
	else
		p->error = bind_and_listen(p, address, &call);
	if (p->error == 0 && p->id->verbs != NULL) {
		call = "opening the device";
		p->error = device_hold(v, p->id->verbs, &p->bound);
	}
	if (p->error == -EADDRNOTAVAIL && is_local(address))
		p->error = -EADDRINUSE;
	if (p->error == 0)
		p->error = check_device(p, address);
	else
		explain(p, address, call);
	if (p->error == -ENODEV && !device_exists(NULL))
		p->error = -ENXIO;
}

static void
on_grave(struct loop_task *task)
{
	free(container_of(task, struct verbs_port, grave));
}

int
verbs_listen(struct fabric *f, const struct sockaddr *address, const char *device, void *owner,
    struct fabric_port **ret)
{
	struct verbs *v = (struct verbs *)f;
	struct verbs_port *p = calloc(1, sizeof(*p));

	if (p == NULL)
		return -ENOMEM;
	p->base = (struct fabric_port){.fabric = f, .owner = owner};
	snprintf(p->device, sizeof(p->device), "%s", device != NULL ? device : "");
	loop_task_init(&p->news, on_news);
	loop_task_init(&p->grave, on_grave);
	start(p, address);
	list_add_tail(&v->ports, &p->node); /* only now: start() may look at all that are there */
	verbs_defer(v, &p->news);
	*ret = &p->base;
	return 0;
}

void
verbs_unlisten(struct fabric_port *base)
{
	struct verbs_port *p = (struct verbs_port *)base;

	stop_listening(p);
	list_del(&p->node);
	loop_undefer(&p->news);
	verbs_bury((struct verbs *)base->fabric, &p->grave);
}

/* ---- CM events ---- */

struct verbs_port *
verbs_port_find(struct verbs *v, const struct rdma_cm_id *id)
{
	struct verbs_port *p;

	list_for_each (p, &v->ports, struct verbs_port, node)
		if (p->id == id)
			return p;
	return NULL;
}

static void
refuse(struct rdma_cm_id *id)
{
	rdma_reject(id, NULL, 0);
	rdma_destroy_id(id);
}

static void
on_request(struct verbs_port *p, const struct cm_event *e)
{
	struct verbs *v = (struct verbs *)p->base.fabric;
	struct fabric_event event = {
	    .type = FABRIC_REQUEST, .port = &p->base, .data = e->data, .data_len = e->data_len};
	struct verbs_conn *c;

	/* A broken device may leave an id without its verbs. */
	if (p->error != 0 || e->id->verbs == NULL ||
	    (p->device[0] != '\0' && strcmp(p->device, device_name(e->id)) != 0)) {
		refuse(e->id);
		return;
	}
	c = verbs_conn_new_passive(v, e->id);
	if (c == NULL) {
		log_error("verbs: no memory for a connection request");
		refuse(e->id);
		return;
	}
	event.conn = &c->base;
	verbs_emit(v, &event);
}

/* The device or its address is gone; a listener on all devices outlives the loss of one. */
static void
go_down(struct verbs_port *p, const char *why)
{
	if (p->error != 0)
		return;
	snprintf(p->detail, sizeof(p->detail), "%s: %s", device_name(p->id), why);
	p->error = -ENODEV;
	verbs_defer((struct verbs *)p->base.fabric, &p->news);
}

/* Without an address it listens on all devices, whichever they are. */
static void
check(struct verbs_port *p)
{
	char before[sizeof(p->detail)];

	memcpy(before, p->detail, sizeof(before));
	p->error = check_device(p, rdma_get_local_addr(p->id));
	if (p->error != 0 || strcmp(before, p->detail) != 0)
		verbs_defer((struct verbs *)p->base.fabric, &p->news);
}

void
verbs_ports_check(struct verbs *v)
{
	struct verbs_port *p;

	list_for_each (p, &v->ports, struct verbs_port, node) {
		if (p->error != 0)
			continue;
		if (p->bound == NULL)
			check(p);
		else if (p->bound->gone)
			go_down(p, "the RDMA device is gone");
	}
}

void
verbs_port_event(struct verbs_port *p, const struct cm_event *e)
{
	switch (e->type) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		on_request(p, e);
		break;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		go_down(p, "the RDMA device is gone");
		break;
	case RDMA_CM_EVENT_ADDR_CHANGE:
		go_down(p, "the address moved to another device");
		break;
	default: /* no other event belongs to a listener */
		log_debug("verbs: listener: %s ignored", rdma_event_str(e->type));
	}
}
