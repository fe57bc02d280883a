/* sender.c -- one transfer's way out: source to staging to records */

#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/log.h"
#include "base/page.h"
#include "base/text.h"
#include "core/priv.h"
#include "core/region.h"
#include "core/sender.h"
#include "core/transfer.h"

/* Files up to this go in one small segment: touching a megabyte for them would take longer than
 * they. */
#define SMALL (UINT64_C(64) << 10)

static const char *const STATES[] = {
    [SENDER_IDLE] = "idle",
    [SENDER_STAGING] = "staging",
    [SENDER_SENDING] = "sending",
    [SENDER_CONFIRMING] = "confirming",
};

static void on_staging_memory(struct memory_request *request, struct memory *memory, int error);
static void on_staging_registered(struct registration *r, int error, const char *detail);
static void on_staging_gone(struct registration *r);

static void
set_state(struct sender *s, enum sender_state state)
{
	log_debug("sender %u: %s -> %s", s->number, STATES[s->state], STATES[state]);
	s->state = state;
}

void
sender_init(struct sender *s, struct channel *ch, const struct rwp_grant *grant)
{
	memset(s, 0, sizeof(*s));
	s->channel = ch;
	s->grant = grant;
	s->request.fn = on_staging_memory;
	s->reg.on_ready = on_staging_registered;
	s->reg.on_gone = on_staging_gone;
	for (unsigned i = 0; i < LIMIT_STAGING_CHUNKS; i++)
		s->chunks[i].sender = s;
}

void
sender_done(struct sender *s)
{
	memory_put(s->memory);
	s->memory = NULL;
}

bool
sender_fits(const struct sender *s, uint64_t length)
{
	if (s->state != SENDER_IDLE)
		return false;
	return s->memory == NULL || length <= s->chunk_size || s->chunk_size > SMALL;
}

/* ---- failing ---- */

static void
fail(struct sender *s, unsigned code, const char *text, const char *fix)
{
	struct transfer *t = s->transfer;

	sender_finish(s);
	transfer_failed(t, code, text, fix);
}

static void
fail_staging(struct sender *s, uint64_t size, int error, const char *detail)
{
	struct pool *pool = s->channel->core->pool;
	char text[LIMIT_TEXT + 1], fix[LIMIT_TEXT + 1] = "";
	char want[TEXT_SIZE_MAX], room[TEXT_SIZE_MAX], limit[TEXT_SIZE_MAX], more[TEXT_SIZE_MAX];

	text_human_size(want, size);
	if (error == -ENOBUFS) {
		snprintf(text, sizeof(text),
		    "%s for sending: %s of the %s of pinned memory here are free", want,
		    text_human_size(room, pool_room(pool)),
		    text_human_size(limit, pool_limit(pool)));
		snprintf(fix, sizeof(fix), "pinned-memory = %s in [limits]",
		    text_print_size(more, pool_used(pool) + page_round(size)));
	} else {
		snprintf(text, sizeof(text), "%s for sending: %s", want,
		    detail != NULL ? detail : strerror(-error));
	}
	fail(s, RWP_E_MEMORY, text, fix);
}

/* ---- staging ---- */

static void
choose_chunks(struct sender *s, uint64_t length)
{
	uint64_t most = s->grant->segment < LIMIT_SEGMENT ? s->grant->segment : LIMIT_SEGMENT;

	if (most > s->grant->in_flight)
		most = s->grant->in_flight;
	s->chunk_size = length <= SMALL && SMALL < most ? SMALL : most;
	s->n_chunks = LIMIT_STAGING_CHUNKS;
	while (s->n_chunks > 1 && length <= (uint64_t)s->chunk_size * (s->n_chunks - 1))
		s->n_chunks--;
}

static void
get_staging(struct sender *s)
{
	uint64_t size = (uint64_t)s->chunk_size * s->n_chunks;
	int error = -ENOBUFS;

	if (region_evict(s->channel->core, page_round(size)))
		error = pool_get(s->channel->core->pool, size, &s->request);
	if (error < 0)
		fail_staging(s, size, error, NULL);
	else
		channel_hold(s->channel);
}

static void
on_staging_memory(struct memory_request *request, struct memory *memory, int error)
{
	struct sender *s = container_of(request, struct sender, request);
	struct channel *ch = s->channel;

	s->memory = memory;
	if (s->state == SENDER_STAGING) {
		if (error == 0)
			error = registration_add(&s->reg, ch, memory->addr, memory->size, 0);
		if (error < 0)
			fail_staging(s, (uint64_t)s->chunk_size * s->n_chunks, error, NULL);
	}
	channel_release(ch);
}

static void
on_staging_registered(struct registration *r, int error, const char *detail)
{
	struct sender *s = container_of(r, struct sender, reg);

	if (s->state != SENDER_STAGING)
		return;
	if (error < 0) {
		fail_staging(s, s->memory->size, error, detail);
		return;
	}
	set_state(s, SENDER_SENDING);
	sender_pump(s);
}

static void
on_staging_gone(struct registration *r)
{
	(void)r; /* the memory goes with sender_done(): reads may still be filling it */
}

/* ---- reading ahead ---- */

static void
read_done(struct source_read *read)
{
	struct chunk *c = container_of(read, struct chunk, read);
	struct sender *s = c->sender;
	struct channel *ch = s->channel;

	c->state = CHUNK_FREE;
	if (s->state == SENDER_SENDING) {
		c->state = CHUNK_FULL;
		if (read->end)
			s->read_end = true;
		sender_pump(s);
	}
	channel_release(ch);
}

static void
free_chunks(struct sender *s)
{
	for (unsigned i = 0; i < s->n_chunks; i++)
		if (s->chunks[i].state == CHUNK_SENT && s->chunks[i].seq <= s->channel->out.written)
			s->chunks[i].state = CHUNK_FREE;
}

static bool
may_read(const struct sender *s)
{
	if (s->read_end || s->chunks[s->reads % s->n_chunks].state != CHUNK_FREE)
		return false;
	if (source_is_stream(
		s->source)) /* one at a time, and the first tells whether it is the last */
		return s->reads == s->sends;
	return s->read_off < source_length(s->source) || s->reads == s->sends;
}

static void
read_ahead(struct sender *s)
{
	while (may_read(s)) {
		unsigned i = s->reads++ % s->n_chunks;
		struct chunk *c = &s->chunks[i];

		c->state = CHUNK_READING;
		c->read.buf = s->memory->addr + (size_t)i * s->chunk_size;
		c->read.size = s->chunk_size;
		c->read.offset = s->read_off;
		c->read.done = read_done;
		s->read_off += s->chunk_size;
		channel_hold(s->channel);
		source_read(s->source, &c->read);
	}
}

/* ---- records ---- */

static int
describe(struct sender *s, unsigned type, uint8_t blob[RWP_BLOB_MAX])
{
	struct rwp_begin b = {
	    .length = source_length(s->source),
	    .mode = transfer_preserves(s->transfer) ? source_mode(s->source) : 0,
	    .mtime_ns = transfer_preserves(s->transfer) ? source_mtime(s->source) : 0,
	};

	snprintf(b.name, sizeof(b.name), "%s", transfer_name(s->transfer));
	return rwp_begin_encode(&b, type, area_out_seq(&s->channel->out), blob, RWP_BLOB_MAX);
}

static int
push(struct sender *s, struct rwp_record *r, const uint8_t *blob, int blob_len, struct chunk *c)
{
	struct area_payload payload;
	int error;

	r->transfer = s->number;
	r->grant = s->grant->generation;
	if (c != NULL && c->read.len > 0)
		payload = (struct area_payload){
		    .mem = s->reg.mem,
		    .addr = c->read.buf,
		    .len = c->read.len,
		    .remote_addr = s->grant->address + r->region_off,
		    .rkey = s->grant->rkey,
		};
	error = channel_push(
	    s->channel, r, blob, blob_len, c != NULL && c->read.len > 0 ? &payload : NULL);
	if (error < 0 || c == NULL)
		return error;
	c->state = CHUNK_SENT;
	c->seq = r->seq;
	s->sends++;
	s->crc = crc32c_combine(s->crc, c->read.crc, c->read.len);
	s->sent += c->read.len;
	transfer_sending(s->transfer, s->sent);
	return 0;
}

static void
confirming(struct sender *s)
{
	set_state(s, SENDER_CONFIRMING);
	transfer_confirming(s->transfer);
}

/* The first segment is the whole: one record says it all. */
static int
push_one(struct sender *s, struct chunk *c)
{
	struct rwp_record r = {.type = RWP_ONE, .length = c->read.len, .data_crc = c->read.crc};
	uint8_t blob[RWP_BLOB_MAX];
	int len = describe(s, RWP_ONE, blob);
	int error = push(s, &r, blob, len, c);

	if (error == 0)
		confirming(s);
	return error;
}

static int
push_begin(struct sender *s)
{
	struct rwp_record r = {.type = RWP_BEGIN};
	uint8_t blob[RWP_BLOB_MAX];
	int len = describe(s, RWP_BEGIN, blob);
	int error = push(s, &r, blob, len, NULL);

	if (error == 0)
		s->begun = true;
	return error;
}

static int
push_data(struct sender *s, struct chunk *c)
{
	struct rwp_record r = {
	    .type = RWP_DATA,
	    .stream_off = s->sent,
	    .region_off = s->sent,
	    .length = c->read.len,
	    .data_crc = c->read.crc,
	};

	if (s->sent + c->read.len - s->arrived > s->grant->in_flight)
		return -EAGAIN; /* sender_arrived() will come */
	return push(s, &r, NULL, 0, c);
}

static int
push_end(struct sender *s)
{
	struct rwp_record r = {.type = RWP_END, .stream_off = s->sent, .data_crc = s->crc};
	int error = push(s, &r, NULL, 0, NULL);

	if (error == 0)
		confirming(s);
	return error;
}

/* ---- the pump ---- */

static void
fail_read(struct sender *s, int error)
{
	if (error == -ESTALE)
		fail(s, RWP_E_ABORTED, "the file changed while it was sent",
		    "write it again when nobody changes it");
	else if (error == -EPIPE)
		fail(s, RWP_E_ABORTED, "the input was cut off", "");
	else
		fail(s, RWP_E_ABORTED, strerror(-error), "");
}

static void
fail_size(struct sender *s)
{
	char text[LIMIT_TEXT + 1], granted[TEXT_SIZE_MAX];

	snprintf(text, sizeof(text), "the stream is longer than the %s that were granted",
	    text_human_size(granted, s->grant->size));
	fail(s, RWP_E_SIZE, text, "ask for more with --size, or write a file");
}

/* -EAGAIN: must wait; 0: a record went out; 1: the sender has failed and is idle. */
static int
send_chunk(struct sender *s, struct chunk *c)
{
	if (c->read.error < 0) {
		fail_read(s, c->read.error);
		return 1;
	}
	if (s->sent + c->read.len > s->grant->size) {
		fail_size(s);
		return 1;
	}
	if (!s->begun)
		return c->read.end ? push_one(s, c) : push_begin(s);
	if (c->read.len > 0)
		return push_data(s, c);
	c->state = CHUNK_FREE; /* the end of a stream that came without bytes */
	s->sends++;
	return 0;
}

static int
send_next(struct sender *s)
{
	struct chunk *c = &s->chunks[s->sends % s->n_chunks];

	/* A stream that pauses before its first byte is under way too: its connection is not idle. */
	if (!s->begun && source_is_stream(s->source))
		return push_begin(s);
	if (s->sends < s->reads)
		return c->state == CHUNK_FULL ? send_chunk(s, c) : -EAGAIN;
	return s->read_end ? push_end(s) : -EAGAIN;
}

void
sender_pump(struct sender *s)
{
	int step = 0;

	if (s->state != SENDER_SENDING)
		return;
	free_chunks(s);
	read_ahead(s);
	while (step == 0 && s->state == SENDER_SENDING)
		step = send_next(s);
	if (s->state == SENDER_SENDING)
		read_ahead(s);
}

void
sender_start(struct sender *s, struct transfer *t, struct source *source, uint32_t number)
{
	s->transfer = t;
	s->source = source;
	s->number = number;
	s->read_off = s->sent = s->arrived = 0;
	s->reads = s->sends = 0;
	s->crc = 0;
	s->begun = s->read_end = false;
	if (s->memory != NULL) {
		set_state(s, SENDER_SENDING);
		sender_pump(s);
		return;
	}
	choose_chunks(s, source_length(source));
	set_state(s, SENDER_STAGING);
	get_staging(s);
}

void
sender_arrived(struct sender *s, uint64_t bytes)
{
	if (bytes <= s->arrived || bytes > s->sent)
		return;
	s->arrived = bytes;
	sender_pump(s);
}

void
sender_abort(struct sender *s, bool discard)
{
	struct rwp_record r = {.type = RWP_ABORT, .length = discard ? 0 : 1};

	if (s->state == SENDER_SENDING && s->begun)
		push(s, &r, NULL, 0, NULL);
	sender_finish(s);
}

void
sender_finish(struct sender *s)
{
	s->transfer = NULL;
	s->source = NULL;
	if (s->state != SENDER_IDLE)
		set_state(s, SENDER_IDLE);
}
