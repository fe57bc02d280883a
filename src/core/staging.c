/* staging.c -- registered memory of an outbound connection, into which its sources are read ahead
 */

#include "config.h"

#include <errno.h>
#include <string.h>

#include "base/page.h"
#include "core/priv.h"
#include "core/region.h"
#include "core/staging.h"

static void on_memory(struct memory_request *request, struct memory *memory, int error);
static void on_registered(struct registration *r, int error, const char *detail);
static void on_gone(struct registration *r);

void
staging_init(struct staging *st, struct channel *ch,
    void (*ready)(struct staging *st, int error, const char *detail),
    void (*filled)(struct staging *st))
{
	memset(st, 0, sizeof(*st));
	st->channel = ch;
	st->ready = ready;
	st->filled = filled;
	st->request.fn = on_memory;
	st->reg.on_ready = on_registered;
	st->reg.on_gone = on_gone;
	for (unsigned i = 0; i < LIMIT_STAGING_CHUNKS; i++)
		st->chunks[i].staging = st;
}

void
staging_done(struct staging *st)
{
	memory_put(st->memory);
	st->memory = NULL;
}

/* ---- its memory ---- */

int
staging_get(struct staging *st, uint32_t chunk_size, unsigned n_chunks)
{
	struct core *core = st->channel->core;
	uint64_t size = (uint64_t)chunk_size * n_chunks;
	int error = -ENOBUFS;

	st->asked = true;
	st->chunk_size = chunk_size;
	st->n_chunks = n_chunks;
	if (region_evict(core, page_round(size)))
		error = pool_get(core->pool, size, &st->request);
	if (error == 0)
		channel_hold(st->channel);
	else
		st->error = error;
	return error;
}

static void
tell_ready(struct staging *st, int error, const char *detail)
{
	st->error = error;
	st->ready(st, error, detail);
}

static void
on_memory(struct memory_request *request, struct memory *memory, int error)
{
	struct staging *st = container_of(request, struct staging, request);
	struct channel *ch = st->channel;

	st->memory = memory;
	if (error == 0)
		error = registration_add(&st->reg, ch, memory->pages.addr, memory->size, 0);
	if (error < 0)
		tell_ready(st, error, NULL);
	channel_release(ch);
}

static void
on_registered(struct registration *r, int error, const char *detail)
{
	tell_ready(container_of(r, struct staging, reg), error, detail);
}

static void
on_gone(struct registration *r)
{
	(void)r; /* the memory goes with staging_done(): reads may still be filling it */
}

bool
staging_is_ready(const struct staging *st)
{
	return st->reg.ready;
}

bool
staging_is_stuck(const struct staging *st)
{
	for (unsigned i = 0; i < st->n_chunks; i++)
		if (st->chunks[i].state == CHUNK_READING && st->chunks[i].stale)
			return true;
	return false;
}

/* ---- reading ahead ---- */

static void
read_done(struct source_read *read)
{
	struct chunk *c = container_of(read, struct chunk, read);
	struct staging *st = c->staging;
	struct channel *ch = st->channel;
	bool stale = c->stale;

	c->state = stale ? CHUNK_FREE : CHUNK_FULL;
	if (!stale) {
		if (read->offset < st->border && st->border < read->next) {
			read->next = st->border; /* the hole goes on behind it */
			read->end = false;
		}
		if (read->next > st->next)
			st->next = read->next;
		st->end = st->end || read->end;
	}
	if (st->source != NULL)
		st->filled(st);
	channel_release(ch);
}

static void
free_written(struct staging *st)
{
	for (unsigned i = 0; i < st->n_chunks; i++)
		if (st->chunks[i].state == CHUNK_SENT &&
		    st->chunks[i].seq <= st->channel->out.written)
			st->chunks[i].state = CHUNK_FREE;
}

/* A stream has one read at a time; the first read of all comes also where no bytes are left. */
static bool
may_read(const struct staging *st)
{
	const struct chunk *last = &st->chunks[(st->reads - 1) % st->n_chunks];

	if (st->end || st->chunks[st->reads % st->n_chunks].state != CHUNK_FREE)
		return false;
	if (st->reads == st->takes)
		return true;
	if (source_is_stream(st->source))
		return last->state != CHUNK_READING;
	return st->next < source_length(st->source);
}

static void
start_read(struct staging *st, struct chunk *c, uint8_t *buf)
{
	bool bordered = st->next < st->border && st->border - st->next < st->chunk_size;

	c->state = CHUNK_READING;
	c->stale = false;
	c->read.buf = buf;
	c->read.size = bordered ? st->border - st->next : st->chunk_size;
	c->read.offset = st->next;
	c->read.holes = st->holes;
	c->read.done = read_done;
	if (!source_is_stream(st->source))
		st->next += c->read.size;
	channel_hold(st->channel);
	source_read(st->source, &c->read);
}

void
staging_ahead(struct staging *st)
{
	free_written(st);
	while (st->source != NULL && may_read(st)) {
		unsigned i = st->reads++ % st->n_chunks;

		start_read(st, &st->chunks[i], st->memory->pages.addr + (size_t)i * st->chunk_size);
	}
}

/* Chunks whose record is on its way stay what they are. */
static void
forget_reads(struct staging *st)
{
	for (; st->takes < st->reads; st->takes++) {
		struct chunk *c = &st->chunks[st->takes % st->n_chunks];

		c->stale = c->state == CHUNK_READING;
		if (!c->stale)
			c->state = CHUNK_FREE;
	}
}

void
staging_start(
    struct staging *st, struct source *source, uint64_t offset, uint64_t border, bool holes)
{
	staging_stop(st);
	st->source = source;
	st->next = offset;
	st->border = border;
	st->holes = holes;
	st->end = false;
	staging_ahead(st);
}

void
staging_stop(struct staging *st)
{
	struct source *source = st->source;

	st->source = NULL;
	forget_reads(st);
	if (source != NULL)
		source_cancel(source);
}

/* ---- taking ---- */

struct chunk *
staging_head(struct staging *st)
{
	struct chunk *c = &st->chunks[st->takes % st->n_chunks];

	return st->takes < st->reads && c->state == CHUNK_FULL ? c : NULL;
}

void
staging_take(struct staging *st, uint64_t seq)
{
	struct chunk *c = &st->chunks[st->takes++ % st->n_chunks];

	c->state = seq > 0 ? CHUNK_SENT : CHUNK_FREE;
	c->seq = seq;
}

bool
staging_is_over(const struct staging *st)
{
	return st->end && st->takes == st->reads;
}

bool
staging_is_sent(const struct staging *st)
{
	return st->takes == st->reads && st->chunks[st->reads % st->n_chunks].state == CHUNK_SENT;
}
