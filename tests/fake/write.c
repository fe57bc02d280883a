/* write.c -- memory of the fake, and the writes that land there */

#include "config.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake/inside.h"

/* ---- memory ---- */

static unsigned serial; /* makes rkeys and addresses distinct */

int
fake_mem_add(struct fabric_conn *conn, void *addr, size_t len, unsigned access, void *owner,
    struct fabric_mem **ret)
{
	struct fake_conn *c = (struct fake_conn *)conn;
	enum luck luck = draw();
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct fake_mem *m = luck == FAILS_NOW ? NULL : calloc(1, sizeof(*m));

	assert(!(c->pending & BIT(FABRIC_RESOLVED)));
	assert(len > 0 && len % page == 0 && (uintptr_t)addr % page == 0);
	if (m == NULL)
		return -ENOMEM;
	m->base = (struct fabric_mem){.conn = conn, .owner = owner, .addr = addr, .len = len};
	m->access = access;
	m->target = access & FABRIC_REMOTE_WRITE;
	if (access & FABRIC_REMOTE_WRITE && fake.drop_remote_write) {
		m->access = 0;
		fake.drop_remote_write = false;
	}
	m->error = luck == FAILS_LATER ? -ENOMEM : 0;
	m->due_in = 1 + fake.late_mem;
	list_add_tail(&c->mems, &m->node);
	wind((struct fake_fabric *)conn->fabric);
	*ret = &m->base;
	return 0;
}

void
fake_mem_drop(struct fabric_mem *mem)
{
	struct fake_mem *m = (struct fake_mem *)mem;

	assert(m->ready && !m->dropped);
	m->dropped = true;
	m->due_in = 1 + fake.late_mem;
	wind((struct fake_fabric *)mem->conn->fabric);
}

struct fake_mem *
due_mem(struct fake_conn *c)
{
	struct fake_mem *m;

	list_for_each (m, &c->mems, struct fake_mem, node)
		if (m->due)
			return m;
	return NULL;
}

/* What the peer writes to differs from where it is here, so that mixing them up is caught. */
static void
advertise(struct fake_mem *m)
{
	m->ready = true;
	m->base.rkey = ++serial * 0x9e3779b1u;
	m->base.remote_addr = serial * (UINT64_C(1) << 40);
}

void
tell_mem(struct fake_conn *c, struct fake_mem *m)
{
	struct fabric *f = c->base.fabric;
	struct fabric_event e = {.type = m->dropped ? FABRIC_MEM_GONE : FABRIC_MEM_READY,
	    .conn = &c->base,
	    .mem = &m->base};
	bool gone = true;

	m->due = false;
	if (!m->dropped) {
		e.error = m->error == 0 && c->state == CLOSED ? -ECANCELED : m->error;
		e.detail = e.error != 0 ? "cannot register memory (fake)" : NULL;
		gone = e.error != 0;
	}
	if (gone)
		list_del(&m->node);
	else
		advertise(m);
	f->env.event(f->env.arg, &e);
	if (gone)
		free(m);
}

/* ---- writes ---- */

bool
retire(struct fake_conn *c)
{
	uint64_t before = c->written;
	bool owed = c->starved;

	while (c->used > 0 && c->queue[c->head].done) {
		if (c->queue[c->head].write.cookie != 0)
			c->written = c->queue[c->head].write.cookie;
		c->head = (c->head + 1) % c->depth;
		c->used--;
	}
	c->starved = false;
	return owed || c->written != before;
}

int
fake_write(struct fabric_conn *conn, const struct fabric_write *w, unsigned n)
{
	struct fake_conn *c = (struct fake_conn *)conn;
	enum luck luck = draw();

	assert(n > 0 && n <= FABRIC_WRITES_MAX);
	if (c->state != ESTABLISHED || c->pending & BIT(FABRIC_ESTABLISHED))
		return -ENOTCONN;
	if (luck == FAILS_NOW) {
		close_both(c, FABRIC_CAUSE_DEVICE, FABRIC_CAUSE_PEER);
		return -ENOTCONN;
	}
	if (n > c->depth - c->used) {
		c->starved = true;
		return -EAGAIN;
	}
	for (unsigned i = 0; i < n; i++) {
		assert(w[i].len == 0 || !((struct fake_mem *)w[i].mem)->target);
		assert(w[i].cookie == 0 || w[i].cookie > c->posted);
		if (w[i].cookie != 0)
			c->posted = w[i].cookie;
		c->queue[(c->head + c->used++) % c->depth] = (struct send){.write = w[i],
		    .late = w[i].len > 64 ? fake.late_payload : 0,
		    .doomed = luck == FAILS_LATER};
	}
	wind((struct fake_fabric *)conn->fabric);
	return 0;
}

/* Compares before it looks inside: the mem may be gone for long. */
static bool
source_is_there(const struct fake_conn *c, const struct fabric_write *w)
{
	struct fake_mem *m;

	list_for_each (m, &c->mems, struct fake_mem, node)
		if (&m->base == w->mem && m->ready && !m->dropped) {
			size_t off = (size_t)((uintptr_t)w->addr - (uintptr_t)m->base.addr);

			return off <= m->base.len && w->len <= m->base.len - off;
		}
	return false;
}

/* Where the write may land: only in what the peer has registered for this very connection. */
static uint8_t *
find_target(const struct fake_conn *peer, const struct fabric_write *w, size_t *ret_offset)
{
	struct fake_mem *m;

	list_for_each (m, &peer->mems, struct fake_mem, node)
		if (m->ready && !m->dropped && m->access & FABRIC_REMOTE_WRITE &&
		    m->base.rkey == w->rkey) {
			uint64_t off = w->remote_addr - m->base.remote_addr;

			if (off > m->base.len || w->len > m->base.len - off)
				return NULL;
			*ret_offset = off;
			return (uint8_t *)m->base.addr + off;
		}
	return NULL;
}

/* Lets one write land as far as the turn allows; false: the connection has ended instead. */
static bool
land(struct fake_conn *c, struct send *s, size_t *budget)
{
	const struct fabric_write *w = &s->write;
	size_t piece = w->len - s->landed < *budget ? w->len - s->landed : *budget;
	bool lost = c->peer == NULL || fake.cut;
	size_t offset = 0;
	uint8_t *target = lost || w->len == 0 ? NULL : find_target(c->peer, w, &offset);

	if (s->doomed || (w->len > 0 && !source_is_there(c, w))) {
		close_both(c, FABRIC_CAUSE_DEVICE, FABRIC_CAUSE_PEER);
		return false;
	}
	if (!lost && w->len > 0 && target == NULL) {
		close_both(c, fake.iwarp ? FABRIC_CAUSE_UNKNOWN : FABRIC_CAUSE_REMOTE_ACCESS,
		    FABRIC_CAUSE_PEER);
		return false;
	}
	if (target != NULL)
		memcpy(target + s->landed, (const uint8_t *)w->addr + s->landed, piece);
	s->landed += piece;
	s->done = s->landed == w->len;
	*budget -= piece;
	if (target != NULL && s->done && fake.landed != NULL)
		fake.landed(c->passive, offset, target, w->len);
	if (!lost) {
		c->peer->spoken_to = true;
		if (fake.hints && c->peer->state == ESTABLISHED)
			mark(c->peer, FABRIC_ARRIVED);
	}
	return true;
}

static unsigned
count_done(const struct fake_conn *c)
{
	unsigned n = 0;

	while (n < c->used && c->queue[(c->head + n) % c->depth].done)
		n++;
	return n;
}

static void
land_queue(struct fake_conn *c)
{
	size_t budget = fake.turn_bytes;
	unsigned n;

	if (fake.iwarp && c->passive && c->used > 0 && !c->spoken_to && !fake.cut) {
		close_both(c, FABRIC_CAUSE_UNKNOWN, FABRIC_CAUSE_UNKNOWN);
		return;
	}
	for (unsigned i = 0; i < c->used && budget > 0; i++) {
		struct send *s = &c->queue[(c->head + i) % c->depth];

		if (s->late > 0)
			s->late--;
		else if (!s->done && !land(c, s, &budget))
			return;
	}
	n = count_done(c);
	if (n >= fake.batch || (n > 0 && n == c->used))
		mark(c, FABRIC_WRITTEN);
}

/* True while it goes on. */
static bool
turn_mem(struct fake_mem *m)
{
	if (m->due_in > 0 && --m->due_in == 0) {
		m->due = true;
		loop_defer(
		    m->base.conn->fabric->env.loop, &((struct fake_conn *)m->base.conn)->task);
	}
	return m->due_in > 0;
}

bool
turn_writes(struct fake_conn *c)
{
	bool busy = false;
	struct fake_mem *m;

	land_queue(c);
	list_for_each (m, &c->mems, struct fake_mem, node)
		busy = turn_mem(m) || busy;
	return busy || count_done(c) < c->used;
}
