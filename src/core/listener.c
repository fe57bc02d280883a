/* listener.c -- one address that one fabric listens on for one [listen] section */

#include "config.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "core/addresses.h"
#include "core/inbound.h"
#include "core/listener.h"
#include "core/priv.h"

#define RETRY_MIN_NS NSEC_PER_SEC
/* The kernel may tell of an address, or a device, before it can be used: after word of one it is
 * tried so often by the clock before the next word is waited for. */
#define DOUBTS 2

enum listener_state { DOWN, UP };

static const char *const STATES[] = {[DOWN] = "down", [UP] = "up"};

struct listener {
	struct list node;
	struct core *core;
	char name[LIMIT_NAME + 1];
	char device[LIMIT_NAME + 1];
	struct sockaddr_storage address;
	struct core_fabric *fabric;
	struct fabric_port *port;
	enum listener_state state;
	struct loop_timer *retry;
	uint64_t pause_ns;
	char detail[LIMIT_TEXT + 1];
	unsigned doubts; /* > 0: the machine has changed, and may not be done with it */
	bool wanted;     /* used by listener_sync() */
};

static void
set_state(struct listener *l, enum listener_state state, const char *detail)
{
	char where[TEXT_ADDRESS_MAX];

	if (l->state != state || strcmp(l->detail, detail) != 0)
		log_line(state == DOWN ? LOG_LEVEL_WARNING : LOG_LEVEL_INFO,
		    "listen %s: %s on %s: %s%s%s", l->name, l->fabric->ops->name,
		    text_address_port(where, (struct sockaddr *)&l->address), STATES[state],
		    detail[0] != '\0' ? ": " : "", detail);
	snprintf(l->detail, sizeof(l->detail), "%s", detail);
	l->state = state;
	core_changed(l->core);
}

/* What keeps it down ends with a word from the kernel, so nobody need look before. */
static bool
will_be_told(const struct listener *l, int error)
{
	switch (error) {
	case -EADDRNOTAVAIL:
		return l->core->addresses != NULL && l->doubts == 0;
	case -ENXIO:
		return l->core->files != NULL && l->doubts == 0;
	default:
		return false;
	}
}

static void
try_later(struct listener *l, int error, const char *why)
{
	set_state(l, DOWN, why);
	if (will_be_told(l, error))
		return;
	if (l->doubts > 0)
		l->doubts--;
	l->pause_ns = l->pause_ns == 0 ? RETRY_MIN_NS : l->pause_ns * 2;
	if (l->pause_ns > l->core->conf->retry_ns)
		l->pause_ns = l->core->conf->retry_ns;
	loop_timer_set(l->retry, l->pause_ns);
}

static void
start(void *arg)
{
	struct listener *l = arg;
	const struct core_fabric *f = l->fabric;
	int error;

	core_open_fabric(l->core, l->fabric);
	if (f->fabric == NULL) {
		try_later(l, f->error, f->missing);
		return;
	}
	error = f->ops->listen(f->fabric, (struct sockaddr *)&l->address, l->device, l, &l->port);
	if (error < 0)
		try_later(l, error, strerror(-error));
}

void
listener_event(struct listener *l, const struct fabric_event *event)
{
	switch (event->type) {
	case FABRIC_PORT_UP:
		l->pause_ns = 0;
		l->doubts = 0;
		set_state(l, UP, event->detail != NULL ? event->detail : "");
		break;
	case FABRIC_PORT_DOWN:
		l->fabric->ops->unlisten(l->port);
		l->port = NULL;
		try_later(l, event->error,
		    event->detail != NULL ? event->detail : strerror(-event->error));
		break;
	case FABRIC_REQUEST:
		inbound_request(l->core, l, event);
		break;
	default:
		break;
	}
}

/* Its connections end by themselves; a port would go on listening, on an address that is not there.
 */
static void
lose(struct listener *l)
{
	char ip[TEXT_ADDRESS_MAX], why[LIMIT_TEXT + 1];

	snprintf(why, sizeof(why), "%s is not an address of this machine",
	    text_address(ip, (struct sockaddr *)&l->address));
	l->fabric->ops->unlisten(l->port);
	l->port = NULL;
	try_later(l, -EADDRNOTAVAIL, why);
}

/* Something has come that it may have waited for. One that is being tried may have failed already,
 * and its PORT_DOWN is on its way. */
static void
try_now(struct listener *l)
{
	l->doubts = DOUBTS;
	if (l->port != NULL)
		return;
	loop_timer_clear(l->retry);
	l->pause_ns = 0;
	start(l);
}

void
listener_address(struct core *core, const struct sockaddr *address, bool here)
{
	struct listener *l;

	list_for_each (l, &core->listeners, struct listener, node) {
		if (address != NULL && !text_address_equal((struct sockaddr *)&l->address, address))
			continue;
		if (here)
			try_now(l);
		else if (l->port != NULL && !addresses_has(address))
			lose(l);
	}
}

void
listener_device(struct core *core)
{
	struct listener *l;

	list_for_each (l, &core->listeners, struct listener, node)
		try_now(l);
}

static void
listener_free(struct listener *l)
{
	list_del(&l->node);
	if (l->port != NULL)
		l->fabric->ops->unlisten(l->port);
	loop_timer_free(l->retry);
	free(l);
}

/* ---- what the configuration asks for ---- */

static struct listener *
find(struct core *core, const struct conf_listen *conf, const struct sockaddr_storage *address,
    const struct core_fabric *f)
{
	struct listener *l;

	list_for_each (l, &core->listeners, struct listener, node)
		if (l->fabric == f && strcmp(l->name, conf->name) == 0 &&
		    strcmp(l->device, conf->device) == 0 &&
		    memcmp(&l->address, address, sizeof(*address)) == 0)
			return l;
	return NULL;
}

typedef int wanted_fn(struct core *core, const struct conf_listen *conf,
    const struct sockaddr_storage *address, struct core_fabric *f);

static int
mark(struct core *core, const struct conf_listen *conf, const struct sockaddr_storage *address,
    struct core_fabric *f)
{
	struct listener *l = find(core, conf, address, f);

	if (l != NULL)
		l->wanted = true;
	return 0;
}

static int
open_missing(struct core *core, const struct conf_listen *conf,
    const struct sockaddr_storage *address, struct core_fabric *f)
{
	struct listener *l = find(core, conf, address, f);

	if (l != NULL)
		return 0;
	l = calloc(1, sizeof(*l));
	if (l == NULL || loop_timer_new(core->env.loop, start, l, &l->retry) < 0) {
		free(l);
		return -ENOMEM;
	}
	l->core = core;
	l->fabric = f;
	l->address = *address;
	memcpy(l->name, conf->name, sizeof(l->name));
	memcpy(l->device, conf->device, sizeof(l->device));
	list_add_tail(&core->listeners, &l->node);
	start(l);
	return 0;
}

static int
each_fabric(struct core *core, const struct conf_listen *conf,
    const struct sockaddr_storage *address, wanted_fn *fn)
{
	int error = 0;

	for (unsigned i = 0; i < core->n_fabrics && error == 0; i++)
		if (core_fabric_wanted(&core->fabrics[i], conf->fabric))
			error = fn(core, conf, address, &core->fabrics[i]);
	return error;
}

/* Without an address line: the wildcard of both families. */
static int
each_wildcard(struct core *core, const struct conf_listen *conf, wanted_fn *fn)
{
	struct sockaddr_storage v4 = {0}, v6 = {0};
	int error;

	v4.ss_family = AF_INET;
	((struct sockaddr_in *)&v4)->sin_port = htons(conf->port);
	v6.ss_family = AF_INET6;
	((struct sockaddr_in6 *)&v6)->sin6_port = htons(conf->port);
	error = each_fabric(core, conf, &v4, fn);
	return error < 0 ? error : each_fabric(core, conf, &v6, fn);
}

static int
each_wanted(struct core *core, wanted_fn *fn)
{
	const struct conf_address *address;
	const struct conf_listen *conf;
	int error = 0;

	list_for_each (conf, &core->conf->listens, struct conf_listen, node) {
		if (list_empty(&conf->addresses) && error == 0)
			error = each_wildcard(core, conf, fn);
		list_for_each (address, &conf->addresses, struct conf_address, node)
			if (error == 0)
				error = each_fabric(core, conf, &address->address, fn);
	}
	return error;
}

int
listener_sync(struct core *core)
{
	struct listener *l;

	list_for_each (l, &core->listeners, struct listener, node)
		l->wanted = false;
	each_wanted(core, mark);
	/* The old ones go first: a new one may want their address. */
	list_for_each (l, &core->listeners, struct listener, node)
		if (!l->wanted)
			listener_free(l);
	return each_wanted(core, open_missing);
}

void
listener_close_all(struct core *core)
{
	struct listener *l;

	list_for_each (l, &core->listeners, struct listener, node)
		listener_free(l);
}

/* ---- looking ---- */

const char *
listener_name(const struct listener *l)
{
	return l->name;
}

void
listener_why(const struct listener *l, char *buf, size_t size)
{
	const struct listener *other;
	size_t used = 0;

	buf[0] = '\0';
	list_for_each (other, &l->core->listeners, struct listener, node) {
		if (other->fabric == l->fabric || other->state != DOWN || used >= size ||
		    strcmp(other->name, l->name) != 0 ||
		    other->address.ss_family != l->address.ss_family)
			continue;
		used += snprintf(buf + used, size - used, "%s%s: %s", used > 0 ? "; " : "",
		    other->fabric->ops->name, other->detail);
	}
}

static bool
host_only(const struct conf_listen *conf)
{
	const struct conf_allow *allow;

	list_for_each (allow, &conf->allow, struct conf_allow, node)
		if (allow->kind != CONF_ALLOW_HOST)
			return false;
	return true;
}

void
listener_view(const struct listener *l, struct listen_view *ret)
{
	const struct conf_listen *conf = conf_find_listen(l->core->conf, l->name);

	*ret = (struct listen_view){
	    .fabric = l->fabric->ops->name,
	    .up = l->state == UP,
	    .host_only = conf != NULL && host_only(conf),
	};
	memcpy(ret->name, l->name, sizeof(ret->name));
	memcpy(ret->detail, l->detail, sizeof(ret->detail));
	text_address_port(ret->address, (const struct sockaddr *)&l->address);
}

void
listener_each(struct core *core, void (*fn)(void *arg, const struct listen_view *v), void *arg)
{
	struct listener *l;
	struct listen_view view;

	list_for_each (l, &core->listeners, struct listener, node) {
		listener_view(l, &view);
		fn(arg, &view);
	}
}
