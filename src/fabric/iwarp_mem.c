/* iwarp_mem.c -- registered memory: nothing is pinned, an STag is all there is to it */

#include "config.h"

#include <errno.h>
#include <stdlib.h>

#include "fabric/iwarp.h"

struct iwarp_mem {
	struct fabric_mem base;
	struct stag stag;
	bool leaving;
	struct loop_task done; /* MEM_READY or MEM_GONE, once the operation has returned */
	struct loop_task grave;
};

static struct iwarp_conn *
conn_of(const struct iwarp_mem *m)
{
	return (struct iwarp_conn *)m->base.conn;
}

static void
on_grave(struct loop_task *task)
{
	free(container_of(task, struct iwarp_mem, grave));
}

static void
emit(struct iwarp_mem *m, enum fabric_event_type type, int error)
{
	struct fabric_event event = {
	    .type = type,
	    .conn = m->base.conn,
	    .mem = &m->base,
	    .error = error,
	    .detail = error < 0 ? "the connection is closed" : NULL,
	};

	iwarp_emit(conn_of(m)->iwarp, &event);
}

/* The owner may free the connection inside the call. */
static void
say_goodbye(struct iwarp_mem *m, enum fabric_event_type type, int error)
{
	struct iwarp_conn *c = conn_of(m);

	c->n_mems--;
	iwarp_bury(c->iwarp, &m->grave);
	emit(m, type, error);
}

static void
on_done(struct loop_task *task)
{
	struct iwarp_mem *m = container_of(task, struct iwarp_mem, done);

	if (m->leaving) {
		say_goodbye(m, FABRIC_MEM_GONE, 0);
	} else if (conn_of(m)->state == CONN_CLOSED) {
		stag_revoke(conn_of(m)->iwarp->stags, &m->stag);
		say_goodbye(m, FABRIC_MEM_READY, -ENOTCONN);
	} else {
		emit(m, FABRIC_MEM_READY, 0);
	}
}

int
iwarp_mem_add(struct fabric_conn *base, void *addr, size_t len, unsigned access, void *owner,
    struct fabric_mem **ret)
{
	struct iwarp_conn *c = (struct iwarp_conn *)base;
	struct iwarp_mem *m = calloc(1, sizeof(*m));

	if (m == NULL)
		return -ENOMEM;
	m->stag = (struct stag){
	    .scope = c, .addr = addr, .len = len, .remote_write = access & FABRIC_REMOTE_WRITE};
	stag_register(c->iwarp->stags, &m->stag);
	m->base = (struct fabric_mem){
	    .conn = base,
	    .owner = owner,
	    .addr = addr,
	    .len = len,
	    .remote_addr = m->stag.base,
	    .rkey = m->stag.number,
	};
	loop_task_init(&m->done, on_done);
	loop_task_init(&m->grave, on_grave);
	c->n_mems++;
	iwarp_defer(c->iwarp, &m->done);
	*ret = &m->base;
	return 0;
}

/* A device would fail a write whose source is taken away; so do we, rather than read what may be
 * unmapped. */
void
iwarp_mem_drop(struct fabric_mem *base)
{
	struct iwarp_mem *m = (struct iwarp_mem *)base;
	struct iwarp_conn *c = conn_of(m);

	uint32_t ignored;

	m->leaving = true;
	placed_take(&c->recv.placed, base->addr, base->len, &ignored);
	stag_revoke(c->iwarp->stags, &m->stag);
	if (c->state == CONN_ESTABLISHED && send_uses(c, base))
		iwarp_end(c, FABRIC_CAUSE_DEVICE, "memory was dropped while it was being sent");
	iwarp_defer(c->iwarp, &m->done);
}

bool
iwarp_placed_crc(struct fabric_mem *base, const void *addr, size_t len, uint32_t *ret_crc)
{
	return placed_take(&conn_of((struct iwarp_mem *)base)->recv.placed, addr, len, ret_crc);
}
