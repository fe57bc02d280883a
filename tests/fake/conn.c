/* conn.c -- connections of the fake: how they begin and end, and what is told */

#include "config.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "fake/inside.h"

#define WITH_DATA (BIT(FABRIC_REQUEST) | BIT(FABRIC_ESTABLISHED) | BIT(FABRIC_CLOSED))

static unsigned serial; /* makes ports distinct */

void
mark(struct fake_conn *c, enum fabric_event_type type)
{
	c->pending |= BIT(type);
	loop_defer(c->base.fabric->env.loop, &c->task);
}

static void
put_data(struct fake_conn *c, const void *data, size_t len, size_t padded)
{
	assert(len <= padded);
	memset(c->data, 0, sizeof(c->data));
	if (len > 0)
		memcpy(c->data, data, len);
	c->data_len = padded;
}

static void
tell(struct fake_conn *c, enum fabric_event_type type)
{
	struct fabric *f = c->base.fabric;
	struct fabric_event e = {.type = type, .conn = &c->base};

	if (type == FABRIC_WRITTEN && !retire(c))
		return;
	if (type == FABRIC_REQUEST)
		e.port = &c->port->base;
	if (BIT(type) & WITH_DATA && c->data_len > 0) {
		if (fake.private_data != NULL)
			fake.private_data(type, c->data, c->data_len);
		e.data = c->data;
		e.data_len = c->data_len;
	}
	if (type == FABRIC_WRITTEN)
		e.cookie = c->written;
	if (type == FABRIC_CLOSED) {
		c->told_closed = true;
		e.cause = c->cause;
		e.detail = "fake";
	}
	c->port = NULL;
	f->env.event(f->env.arg, &e);
}

static void
tell_all(struct loop_task *task)
{
	struct fake_conn *c = container_of(task, struct fake_conn, task);
	struct fake_mem *m;

	while (!c->freed) {
		if ((m = due_mem(c)) != NULL) {
			tell_mem(c, m);
		} else if (c->pending != 0) {
			enum fabric_event_type type = __builtin_ctz(c->pending);

			c->pending &= ~BIT(type);
			tell(c, type);
		} else {
			return;
		}
	}
}

static void
bury_conn(struct loop_task *task)
{
	free(container_of(task, struct fake_conn, grave));
}

/* The memory stays until the task that may be running for it has returned. */
static void
dispose(struct fake_conn *c)
{
	c->freed = true;
	list_del(&c->node);
	loop_undefer(&c->task);
	loop_bury(c->base.fabric->env.loop, &c->grave);
}

static void
close_side(struct fake_conn *c, enum fabric_cause cause)
{
	bool unseen = c->pending & BIT(FABRIC_REQUEST);

	if (c->state == CLOSED)
		return;
	c->state = CLOSED;
	c->cause = cause;
	c->pending = 0;
	c->data_len = 0;
	c->established_in = 0;
	c->used = 0;
	if (unseen)
		dispose(c);
	else
		mark(c, FABRIC_CLOSED);
}

void
close_both(struct fake_conn *c, enum fabric_cause cause, enum fabric_cause peers)
{
	struct fake_conn *peer = c->peer;

	c->peer = NULL;
	close_side(c, cause);
	if (peer == NULL)
		return;
	peer->peer = NULL;
	if (!fake.cut)
		close_side(
		    peer, fake.iwarp && peers == FABRIC_CAUSE_PEER ? FABRIC_CAUSE_UNKNOWN : peers);
}

static uint16_t *
port_of(struct sockaddr_storage *sa)
{
	return sa->ss_family == AF_INET6 ? &((struct sockaddr_in6 *)sa)->sin6_port
					 : &((struct sockaddr_in *)sa)->sin_port;
}

static struct fake_conn *
conn_new(struct fake_fabric *f, enum state state)
{
	struct fake_conn *c = calloc(1, sizeof(*c) + fake.depth * sizeof(c->queue[0]));

	assert(fake.depth >= FABRIC_WRITES_MAX);
	if (c == NULL)
		return NULL;
	c->base.fabric = &f->base;
	c->state = state;
	c->depth = fake.depth;
	loop_task_init(&c->task, tell_all);
	loop_task_init(&c->grave, bury_conn);
	list_init(&c->mems);
	list_add_tail(&f->conns, &c->node);
	return c;
}

int
fake_connect(
    struct fabric *fabric, const struct sockaddr *to, void *owner, struct fabric_conn **ret)
{
	enum luck luck = draw();
	struct fake_conn *c =
	    luck == FAILS_NOW ? NULL : conn_new((struct fake_fabric *)fabric, RESOLVED);

	if (c == NULL)
		return -ENOMEM;
	c->base.owner = owner;
	c->remote = copy_address(to);
	c->local = fake.from != NULL ? copy_address(fake.from) : c->remote;
	*port_of(&c->local) = htons(32768 + serial++ % 32768);
	if (luck == FAILS_LATER)
		close_side(c, FABRIC_CAUSE_TIMEOUT);
	else
		mark(c, FABRIC_RESOLVED);
	*ret = &c->base;
	return 0;
}

int
fake_request(struct fabric_conn *conn, const void *data, size_t len)
{
	struct fake_conn *c = (struct fake_conn *)conn, *passive;
	enum luck luck = draw();
	struct fake_port *p;

	if (c->state == CLOSED)
		return -ENOTCONN;
	assert(c->state == RESOLVED && !(c->pending & BIT(FABRIC_RESOLVED)));
	if (luck == FAILS_NOW)
		return -ECONNABORTED;
	p = luck == FAILS_LATER || fake.cut ? NULL : find_port(&c->remote);
	if (p != NULL) {
		passive = conn_new((struct fake_fabric *)p->base.fabric, OFFERED);
		if (passive == NULL)
			return -ENOMEM;
		passive->passive = true;
		passive->port = p;
		passive->peer = c;
		passive->local = c->remote;
		passive->remote = c->local;
		c->peer = passive;
		put_data(passive, data, len, REQUEST_PAD);
		mark(passive, FABRIC_REQUEST);
	}
	c->state = REQUESTED;
	if (luck == FAILS_LATER)
		close_side(c, FABRIC_CAUSE_TIMEOUT);
	else if (p == NULL && !fake.cut)
		close_side(c, FABRIC_CAUSE_REFUSED);
	return 0;
}

int
fake_accept(struct fabric_conn *conn, const void *data, size_t len)
{
	struct fake_conn *c = (struct fake_conn *)conn;
	enum luck luck = draw();

	if (c->state == CLOSED)
		return -ENOTCONN;
	assert(c->state == OFFERED);
	if (luck == FAILS_NOW)
		return -ECONNABORTED;
	c->state = ACCEPTED;
	if (luck == FAILS_LATER) {
		close_both(c, FABRIC_CAUSE_DEVICE, FABRIC_CAUSE_PEER);
		return 0;
	}
	c->established_in = 1 + fake.late_established;
	wind((struct fake_fabric *)conn->fabric);
	if (c->peer != NULL && !fake.cut) {
		c->peer->state = ESTABLISHED;
		put_data(c->peer, data, len, REPLY_PAD);
		mark(c->peer, FABRIC_ESTABLISHED);
	}
	return 0;
}

void
fake_reject(struct fabric_conn *conn, const void *data, size_t len)
{
	struct fake_conn *c = (struct fake_conn *)conn, *peer = c->peer;

	if (c->state == CLOSED)
		return;
	assert(c->state == OFFERED);
	close_both(c, FABRIC_CAUSE_LOCAL, FABRIC_CAUSE_REFUSED);
	if (peer != NULL && !fake.cut)
		put_data(peer, data, len, REJECT_PAD);
}

void
fake_stop(struct fabric_conn *conn)
{
	close_both((struct fake_conn *)conn, FABRIC_CAUSE_LOCAL, FABRIC_CAUSE_PEER);
}

void
fake_conn_free(struct fabric_conn *conn)
{
	struct fake_conn *c = (struct fake_conn *)conn;

	assert(c->told_closed && list_empty(&c->mems));
	dispose(c);
}
