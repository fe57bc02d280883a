/* events.c -- what the fabric tells the bench, and what it must never tell */

#include "config.h"

#include <stdio.h>
#include <string.h>

#include "contract/bench.h"

static void
flaw(struct bench *b, const char *text)
{
	if (b->flaw == NULL)
		b->flaw = text;
}

static void
keep_data(struct end *end, const struct fabric_event *e)
{
	if (e->data_len > sizeof(end->data)) {
		flaw(end->bench, "more private data than any fabric carries");
		return;
	}
	if (e->data_len > 0)
		memcpy(end->data, e->data, e->data_len);
	end->data_len = e->data_len;
}

/* A port's owner is the int that keeps the last word about it. */
static void
on_port_up(struct bench *b, const struct fabric_event *e)
{
	int *word = e->port->owner;

	if (*word != 0 || e->detail == NULL)
		flaw(b, "PORT_UP that is not the first word, or does not say what it listens on");
	*word = 1;
}

static void
on_port_down(struct bench *b, const struct fabric_event *e)
{
	int *word = e->port->owner;

	if (*word < 0 || e->error >= 0 || e->detail == NULL)
		flaw(b, "PORT_DOWN twice, or without error or detail");
	*word = e->error;
}

static void
on_request(struct bench *b, const struct fabric_event *e)
{
	struct end *end;

	if (e->conn->owner != NULL || e->port != b->port) {
		flaw(b, "REQUEST with an owner, or on a port that does not listen");
		return;
	}
	end = bench_end_new(b);
	end->conn = e->conn;
	e->conn->owner = end;
	keep_data(end, e);
	b->incoming = end;
	b->requests++;
}

static void
on_resolved(struct end *end, const struct fabric_event *e)
{
	(void)e;
	if (end->resolved)
		flaw(end->bench, "RESOLVED twice");
	end->resolved = true;
}

static void
on_established(struct end *end, const struct fabric_event *e)
{
	if (end->established)
		flaw(end->bench, "ESTABLISHED twice");
	end->established = true;
	if (end->resolved) /* the active side */
		keep_data(end, e);
}

static void
on_written(struct end *end, const struct fabric_event *e)
{
	if (e->cookie < end->written || e->cookie > end->posted)
		flaw(end->bench, "WRITTEN with a cookie that goes back, or was never posted");
	end->written = e->cookie;
	end->written_events++;
	if (end->on_written != NULL)
		end->on_written(end);
}

static void
on_arrived(struct end *end, const struct fabric_event *e)
{
	(void)e;
	end->arrived_events++;
}

static void
on_closed(struct end *end, const struct fabric_event *e)
{
	end->closed = true;
	end->cause = e->cause;
	snprintf(end->detail, sizeof(end->detail), "%s", e->detail != NULL ? e->detail : "");
	keep_data(end, e);
}

static void
on_mem(struct end *end, const struct fabric_event *e)
{
	struct chunk *chunk = e->mem->owner;
	bool ready = e->type == FABRIC_MEM_READY;

	if (e->mem != chunk->mem || e->mem->conn != end->conn)
		flaw(end->bench, "an event of memory that is not there");
	if (ready == chunk->ready || chunk->error != 0)
		flaw(end->bench, "MEM_READY or MEM_GONE out of order");
	if (e->error > 0 || (!ready && e->error != 0))
		flaw(end->bench, "MEM_READY or MEM_GONE with an impossible error");
	if (ready && e->error == 0 && end->closed)
		flaw(end->bench, "MEM_READY without an error after CLOSED");
	chunk->error = e->error;
	chunk->ready = ready && e->error == 0;
	if (!chunk->ready)
		chunk->mem = NULL;
}

void
bench_event(void *arg, const struct fabric_event *e)
{
	static void (*const of_bench[])(struct bench *, const struct fabric_event *) = {
	    [FABRIC_PORT_UP] = on_port_up,
	    [FABRIC_PORT_DOWN] = on_port_down,
	    [FABRIC_REQUEST] = on_request,
	    [FABRIC_CLOSED] = NULL, /* the last: the table covers all types */
	};
	static void (*const of_end[])(struct end *, const struct fabric_event *) = {
	    [FABRIC_RESOLVED] = on_resolved,
	    [FABRIC_ESTABLISHED] = on_established,
	    [FABRIC_MEM_READY] = on_mem,
	    [FABRIC_MEM_GONE] = on_mem,
	    [FABRIC_WRITTEN] = on_written,
	    [FABRIC_ARRIVED] = on_arrived,
	    [FABRIC_CLOSED] = on_closed,
	};
	struct bench *b = arg;
	struct fabric_conn *conn = e->mem != NULL ? e->mem->conn : e->conn;
	bool of_mem = e->type == FABRIC_MEM_READY || e->type == FABRIC_MEM_GONE;
	struct end *end;

	if (b->inside)
		flaw(b, "an event from inside an operation");
	if (of_bench[e->type] != NULL) {
		of_bench[e->type](b, e);
		return;
	}
	end = conn != NULL ? conn->owner : NULL;
	if (end == NULL || end->conn != conn)
		flaw(b, "an event of a connection that nobody owns");
	else if (end->closed && !of_mem)
		flaw(b, "an event after CLOSED");
	else
		of_end[e->type](end, e);
}
