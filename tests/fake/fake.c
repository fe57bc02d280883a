/* fake.c -- the fake network: fabrics, ports, turns, and the hands of the tests */

#include "config.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "fake/inside.h"
#include "wire/rwp.h"

struct fake_knobs fake = {.depth = 16, .batch = 4, .turn_bytes = 256 * 1024};

static struct list network = LIST_INIT(network);

enum luck
draw(void)
{
	if (++fake.ops != fake.fail_at)
		return GOOD;
	return fake.fail_later ? FAILS_LATER : FAILS_NOW;
}

void
wind(struct fake_fabric *f)
{
	loop_timer_set(f->turn, 0);
}

/* ---- addresses ---- */

struct sockaddr_storage
copy_address(const struct sockaddr *sa)
{
	struct sockaddr_storage copy = {0};

	assert(sa->sa_family == AF_INET || sa->sa_family == AF_INET6);
	memcpy(&copy, sa,
	    sa->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in));
	return copy;
}

/* Does what listens on `on` get what is sent to `to`? */
static bool
reaches(const struct sockaddr_storage *to, const struct sockaddr_storage *on)
{
	const struct sockaddr_in *to4 = (const void *)to, *on4 = (const void *)on;
	const struct sockaddr_in6 *to6 = (const void *)to, *on6 = (const void *)on;

	if (to->ss_family != on->ss_family)
		return false;
	if (to->ss_family == AF_INET)
		return to4->sin_port == on4->sin_port &&
		       (on4->sin_addr.s_addr == htonl(INADDR_ANY) ||
			   to4->sin_addr.s_addr == on4->sin_addr.s_addr);
	return to6->sin6_port == on6->sin6_port &&
	       (IN6_IS_ADDR_UNSPECIFIED(&on6->sin6_addr) ||
		   (IN6_ARE_ADDR_EQUAL(&to6->sin6_addr, &on6->sin6_addr) &&
		       to6->sin6_scope_id == on6->sin6_scope_id));
}

struct fake_port *
find_port(const struct sockaddr_storage *to)
{
	struct fake_fabric *f;
	struct fake_port *p;

	list_for_each (f, &network, struct fake_fabric, node)
		list_for_each (p, &f->ports, struct fake_port, node)
			if (p->up && reaches(to, &p->address))
				return p;
	return NULL;
}

/* ---- ports ---- */

static void
tell_port(struct loop_task *task)
{
	struct fake_port *p = container_of(task, struct fake_port, task);
	struct fabric *f = p->base.fabric;

	p->up = p->error == 0;
	f->env.event(
	    f->env.arg, &(struct fabric_event){.type = p->up ? FABRIC_PORT_UP : FABRIC_PORT_DOWN,
			    .port = &p->base,
			    .error = p->error,
			    .detail = p->up ? "fake fake0" : p->detail});
}

static void
bury_port(struct loop_task *task)
{
	free(container_of(task, struct fake_port, grave));
}

static void
port_fails(struct fake_port *p, int error, const char *detail)
{
	p->error = error;
	p->detail = detail;
	p->up = false;
	loop_defer(p->base.fabric->env.loop, &p->task);
}

static int
fake_listen(struct fabric *fabric, const struct sockaddr *address, const char *device, void *owner,
    struct fabric_port **ret)
{
	struct fake_fabric *f = (struct fake_fabric *)fabric;
	enum luck luck = draw();
	struct fake_port *p = luck == FAILS_NOW ? NULL : calloc(1, sizeof(*p));

	if (p == NULL)
		return -ENOMEM;
	p->base = (struct fabric_port){.fabric = fabric, .owner = owner};
	p->address = copy_address(address);
	loop_task_init(&p->task, tell_port);
	loop_task_init(&p->grave, bury_port);
	if (luck == FAILS_LATER)
		port_fails(p, -EADDRNOTAVAIL, "no such address (fake)");
	else if (device != NULL && *device != '\0' && strcmp(device, "fake0") != 0)
		port_fails(p, -ENODEV, "no such device (fake)");
	else if (find_port(&p->address) != NULL)
		port_fails(p, -EADDRINUSE, "address in use (fake)");
	else
		loop_defer(fabric->env.loop, &p->task);
	list_add_tail(&f->ports, &p->node);
	*ret = &p->base;
	return 0;
}

static void
fake_unlisten(struct fabric_port *port)
{
	struct fake_port *p = (struct fake_port *)port;
	struct fake_fabric *f = (struct fake_fabric *)port->fabric;
	struct fake_conn *c;

	list_for_each (c, &f->conns, struct fake_conn, node)
		if (c->port == p)
			close_both(c, FABRIC_CAUSE_LOCAL, FABRIC_CAUSE_REFUSED);
	list_del(&p->node);
	loop_undefer(&p->task);
	loop_bury(port->fabric->env.loop, &p->grave);
}

/* ---- turns ---- */

static bool
turn_conn(struct fake_conn *c)
{
	bool busy = turn_writes(c);

	if (c->established_in > 0 && --c->established_in == 0) {
		c->state = ESTABLISHED;
		mark(c, FABRIC_ESTABLISHED);
		if (fake.hints && c->spoken_to)
			mark(c, FABRIC_ARRIVED);
	}
	return busy || c->established_in > 0;
}

static void
on_turn(void *arg)
{
	struct fake_fabric *f = arg;
	struct fake_conn *c;
	bool busy = false;

	list_for_each (c, &f->conns, struct fake_conn, node)
		busy = turn_conn(c) || busy;
	if (busy)
		wind(f);
}

static int
fake_open(const struct fabric_env *env, struct fabric **ret, const char **detail)
{
	struct fake_fabric *f;
	int r;

	if (draw() != GOOD) {
		*detail = "no device (fake)";
		return -ENODEV;
	}
	f = calloc(1, sizeof(*f));
	if (f == NULL) {
		*detail = "no memory";
		return -ENOMEM;
	}
	f->base = (struct fabric){.ops = &fabric_fake, .env = *env};
	list_init(&f->ports);
	list_init(&f->conns);
	r = loop_timer_new(env->loop, on_turn, f, &f->turn);
	if (r < 0) {
		*detail = "no memory";
		free(f);
		return r;
	}
	list_add_tail(&network, &f->node);
	*ret = &f->base;
	return 0;
}

static void
fake_close(struct fabric *fabric)
{
	struct fake_fabric *f = (struct fake_fabric *)fabric;

	if (f == NULL)
		return;
	assert(list_empty(&f->ports) && list_empty(&f->conns));
	list_del(&f->node);
	loop_timer_free(f->turn);
	free(f);
}

static void
fake_describe(struct fabric_conn *conn, struct fabric_info *ret)
{
	struct fake_conn *c = (struct fake_conn *)conn;

	*ret = (struct fabric_info){
	    .kind = fake.iwarp ? RWP_FABRIC_VERBS_IWARP : RWP_FABRIC_VERBS,
	    .fabric = "fake",
	    .device = "fake0",
	    .local = c->local,
	    .remote = c->remote,
	    .polled = !fake.hints,
	    .receive_completions = fake.receive_completions,
	    .inline_max = 64,
	    .message_max = UINT64_C(1) << 30,
	};
}

const struct fabric_ops fabric_fake = {
    .name = "fake",
    .open = fake_open,
    .close = fake_close,
    .listen = fake_listen,
    .unlisten = fake_unlisten,
    .connect = fake_connect,
    .request = fake_request,
    .accept = fake_accept,
    .reject = fake_reject,
    .mem_add = fake_mem_add,
    .mem_drop = fake_mem_drop,
    .write = fake_write,
    .stop = fake_stop,
    .conn_free = fake_conn_free,
    .describe = fake_describe,
};

/* ---- hands of the tests ---- */

static struct fake_fabric *
nth_fabric(unsigned nth)
{
	struct fake_fabric *f;

	list_for_each (f, &network, struct fake_fabric, node)
		if (nth-- == 0)
			return f;
	return NULL;
}

struct fabric_conn *
fake_conn(unsigned fabric, unsigned nth)
{
	struct fake_fabric *f = nth_fabric(fabric);
	struct fake_conn *c;

	if (f == NULL)
		return NULL;
	list_for_each (c, &f->conns, struct fake_conn, node)
		if (nth-- == 0)
			return &c->base;
	return NULL;
}

void
fake_break(struct fabric_conn *c, enum fabric_cause cause)
{
	close_both((struct fake_conn *)c, cause, FABRIC_CAUSE_PEER);
}

void
fake_ports_down(unsigned fabric, int error)
{
	struct fake_fabric *f = nth_fabric(fabric);
	struct fake_port *p;

	list_for_each (p, &f->ports, struct fake_port, node)
		port_fails(p, error, "device gone (fake)");
}
