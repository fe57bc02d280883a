/* sender.c -- transfers on their way out over one connection: source to staging to records */

#include "config.h"

#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "core/failure.h"
#include "core/priv.h"
#include "core/sender.h"
#include "core/transfer.h"

/* Files up to this go in one small segment: touching megabytes for them would take longer than
 * they. */
#define SMALL (UINT64_C(64) << 10)

static const char *const STATES[] = {
    [SENDER_IDLE] = "idle",
    [SENDER_STAGING] = "staging",
    [SENDER_OPENING] = "opening",
    [SENDER_CHECKING] = "checking",
    [SENDER_SENDING] = "sending",
};

static void on_staging_ready(struct staging *st, int error, const char *detail);
static void on_filled(struct staging *st);

static void
set_state(struct sender *s, enum sender_state state)
{
	log_debug("sender %u: %s -> %s", s->records.number, STATES[s->state], STATES[state]);
	s->state = state;
}

void
sender_init(struct sender *s, struct channel *ch, const struct rwp_grant *grant,
    void (*sent_all)(struct sender *s))
{
	memset(s, 0, sizeof(*s));
	records_init(&s->records, ch, grant);
	s->sent_all = sent_all;
	staging_init(&s->staging, ch, on_staging_ready, on_filled);
}

void
sender_done(struct sender *s)
{
	staging_done(&s->staging);
}

static uint64_t
min(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Of a ring a segment takes at most half, so that one can be on its way while one is taken. */
static uint64_t
segment_max(const struct sender *s)
{
	const struct rwp_grant *grant = s->records.grant;
	uint64_t most = min(min(grant->segment, LIMIT_SEGMENT), grant->in_flight);

	return records_is_ring(&s->records) ? min(most, grant->size / 2) : most;
}

bool
sender_suits(const struct sender *s, uint64_t length)
{
	const struct staging *st = &s->staging;

	if (st->error < 0 || staging_is_stuck(st))
		return false;
	return !st->asked || length <= st->chunk_size || st->chunk_size > SMALL ||
	       st->chunk_size == segment_max(s);
}

bool
sender_fits(const struct sender *s, uint64_t length)
{
	return s->state == SENDER_IDLE && sender_suits(s, length);
}

bool
sender_is_brief(const struct sender *s)
{
	return s->staging.asked && s->staging.chunk_size <= SMALL;
}

/* ---- failing ---- */

static void
fail(struct sender *s, const struct failure *why)
{
	struct transfer *t = s->transfer;

	sender_abort(s, true);
	transfer_fail(t, why);
}

static void
fail_staging(struct sender *s, int error, const char *detail)
{
	uint64_t size = (uint64_t)s->staging.chunk_size * s->staging.n_chunks;
	struct failure why = failure_staging(size, s->staging.channel->core->pool, error, detail);

	fail(s, &why);
}

static void
fail_read(struct sender *s, int error)
{
	struct failure why = failure_read(error);

	fail(s, &why);
}

static void
fail_size(struct sender *s)
{
	char granted[TEXT_SIZE_MAX];
	struct failure why =
	    failure_make(RWP_E_SIZE, "the stream is longer than the %s that were granted",
		text_human_size(granted, s->records.grant->size));

	failure_fix(&why, "ask for more with --size, or write a file");
	fail(s, &why);
}

/* The stream's first bytes are gone here, and the target cannot go on behind them. */
static void
fail_forgotten(struct sender *s)
{
	char gone[TEXT_SIZE_MAX];
	struct failure why = failure_make(RWP_E_ABORTED,
	    "lost what it had of the stream, whose first %s cannot be read again here",
	    text_human_size(gone, source_start(s->source)));

	failure_fix(&why, "write a file: it can be sent again from any place");
	fail(s, &why);
}

/* ---- staging ---- */

static int
get_staging(struct sender *s, uint64_t length)
{
	uint64_t most = segment_max(s);
	unsigned n = LIMIT_STAGING_CHUNKS;

	if (length <= SMALL)
		most = min(most, SMALL);
	while (n > 1 && !records_is_ring(&s->records) && length <= most * (n - 1))
		n--;
	return staging_get(&s->staging, most, n);
}

/* A short file is known whole before anything is said of it. A stream that pauses before its first
 * byte is under way too, so that its BEGIN goes out at once. */
static bool
is_one(const struct sender *s)
{
	return source_length(s->source) <= s->staging.chunk_size;
}

/* From there on, behind bytes of that sum; a border parts what is only compared from what is sent.
 */
static void
read_from(struct sender *s, uint64_t offset, uint32_t crc, uint64_t border)
{
	records_go_on(&s->records, offset, crc);
	s->zeros = offset;
	staging_start(&s->staging, s->source, offset, border, true);
}

static void
begin_sending(struct sender *s)
{
	set_state(s, SENDER_SENDING);
	if (is_one(s))
		staging_start(&s->staging, s->source, 0, 0, false);
	else if (source_start(s->source) > 0 && s->records.grant->sink != RWP_SINK_SPOOL)
		fail_forgotten(s);
	sender_pump(s);
}

static void
on_staging_ready(struct staging *st, int error, const char *detail)
{
	struct sender *s = container_of(st, struct sender, staging);

	if (s->state != SENDER_STAGING)
		return;
	if (error < 0)
		fail_staging(s, error, detail);
	else {
		flight_mark(&s->transfer->flight, FLIGHT_REGISTER, loop_now());
		begin_sending(s);
	}
}

static void
on_filled(struct staging *st)
{
	sender_pump(container_of(st, struct sender, staging));
}

/* ---- records ---- */

static int
sent_chunk(struct sender *s, const struct chunk *c, uint64_t seq)
{
	staging_take(&s->staging, seq);
	transfer_sending(s->transfer, s->records.done, c->read.len);
	return 0;
}

static int
push_one(struct sender *s, const struct chunk *c)
{
	struct rwp_begin what;
	uint64_t seq;
	int error;

	transfer_describe(s->transfer, &what);
	error = records_one(&s->records, &what, &c->read, s->staging.reg.mem, &seq);
	return error < 0 ? error : sent_chunk(s, c, seq);
}

static int
push_data(struct sender *s, const struct chunk *c)
{
	uint64_t seq;
	int error = records_data(&s->records, &c->read, s->staging.reg.mem, &seq);

	return error < 0 ? error : sent_chunk(s, c, seq);
}

static int
push_hole(struct sender *s, uint64_t end)
{
	int error = records_hole(&s->records, end);

	if (error == 0)
		transfer_sending(s->transfer, s->records.done, 0);
	return error;
}

static int
push_begin(struct sender *s)
{
	struct rwp_begin what;
	int error;

	transfer_describe(s->transfer, &what);
	error = records_begin(&s->records, &what);
	if (error < 0)
		return error;
	if (s->records.grant->sink == RWP_SINK_SPOOL)
		set_state(s, SENDER_OPENING);
	else
		read_from(s, 0, 0, 0);
	return 0;
}

/* ---- the pump: each step is 0 (done, or failed), or -EAGAIN (must wait) ---- */

static int
finish_step(struct sender *s, int error)
{
	if (error < 0)
		return error;
	staging_stop(&s->staging);
	set_state(s, SENDER_IDLE);
	s->sent_all(s);
	return 0;
}

static int
begin_step(struct sender *s)
{
	struct chunk *c = staging_head(&s->staging);

	if (!is_one(s))
		return push_begin(s);
	if (c == NULL)
		return -EAGAIN;
	if (c->read.error < 0) {
		fail_read(s, c->read.error);
		return 0;
	}
	return finish_step(s, push_one(s, c));
}

/* Data where there was a hole a moment ago. */
static bool
is_out_of_place(const struct sender *s, const struct source_read *read)
{
	return read->len > 0 && (read->offset < s->records.done || read->offset < s->zeros);
}

static int
chunk_step(struct sender *s, const struct chunk *c)
{
	int error = is_out_of_place(s, &c->read) ? -ESTALE : c->read.error;

	if (error < 0) {
		fail_read(s, error);
		return 0;
	}
	if (!records_is_ring(&s->records) && c->read.next > s->records.grant->size) {
		fail_size(s);
		return 0;
	}
	if (c->read.len == 0) { /* a hole, or the end of a stream */
		if (c->read.next > s->zeros)
			s->zeros = c->read.next;
		staging_take(&s->staging, 0);
		return 0;
	}
	return s->records.done < c->read.offset ? push_hole(s, c->read.offset) : push_data(s, c);
}

static int
send_step(struct sender *s)
{
	struct chunk *c = staging_head(&s->staging);

	if (!s->records.begun)
		return begin_step(s);
	if (c != NULL)
		return chunk_step(s, c);
	if (!staging_is_over(&s->staging))
		return -EAGAIN;
	return s->records.done < s->zeros ? push_hole(s, s->zeros)
					  : finish_step(s, records_end(&s->records));
}

/* What the target has is what is here, so it goes on; or it is not, and all is sent anew. */
static void
compare(struct sender *s)
{
	set_state(s, SENDER_SENDING);
	if (s->records.crc == s->resume_crc) {
		transfer_resumed(s->transfer, s->records.done);
		return;
	}
	log_info("%s: the target has something else under this name and time: it is sent anew",
	    transfer_name(s->transfer));
	read_from(s, 0, 0, 0);
}

static int
check_step(struct sender *s)
{
	struct chunk *c = staging_head(&s->staging);
	int error;

	if (s->records.done == s->resume) {
		compare(s);
		return 0;
	}
	if (c == NULL)
		return -EAGAIN;
	error = is_out_of_place(s, &c->read) ? -ESTALE : c->read.error;
	if (error < 0) {
		fail_read(s, error);
		return 0;
	}
	if (c->read.next > s->records.done) {
		records_add(&s->records, &c->read);
		s->zeros = s->records.done;
	}
	staging_take(&s->staging, 0);
	transfer_checking(s->transfer, s->records.done);
	return 0;
}

static enum flight_wait
waits_for(struct sender *s)
{
	if (staging_head(&s->staging) != NULL)
		return FLIGHT_WINDOW;
	return staging_is_sent(&s->staging) ? FLIGHT_DEVICE : FLIGHT_SOURCE;
}

void
sender_pump(struct sender *s)
{
	int step = 0;

	if (s->state != SENDER_SENDING && s->state != SENDER_CHECKING)
		return;
	flight_wait(&s->transfer->flight, FLIGHT_NOTHING, loop_now());
	staging_ahead(&s->staging);
	while (step == 0 && s->state >= SENDER_CHECKING)
		step = s->state == SENDER_CHECKING ? check_step(s) : send_step(s);
	if (step < 0)
		flight_wait(&s->transfer->flight, waits_for(s), loop_now());
	staging_ahead(&s->staging);
}

/* ---- what is asked of it ---- */

void
sender_start(struct sender *s, struct transfer *t, struct source *source)
{
	int error = 0;

	s->transfer = t;
	s->source = source;
	s->zeros = s->resume = 0;
	records_start(&s->records);
	if (staging_is_ready(&s->staging)) {
		begin_sending(s);
		return;
	}
	set_state(s, SENDER_STAGING);
	if (!s->staging.asked)
		error = get_staging(s, source_length(source));
	if (error < 0)
		fail_staging(s, error, NULL);
}

/* A stream is compared at once: what is kept of it is at hand. */
static void
open_stream(struct sender *s, uint64_t offset, uint32_t crc)
{
	uint32_t own;

	s->resume = offset;
	set_state(s, SENDER_SENDING);
	if (offset > 0 && source_crc(s->source, offset, &own) && own == crc) {
		read_from(s, offset, crc, 0);
		transfer_resumed(s->transfer, offset);
	} else if (source_start(s->source) > 0) {
		fail_forgotten(s);
	} else {
		read_from(s, 0, 0, 0);
	}
}

static void
open_file(struct sender *s, uint64_t offset, uint32_t crc)
{
	if (offset > source_length(s->source))
		offset = 0; /* none of ours */
	s->resume = offset;
	s->resume_crc = crc;
	set_state(s, offset > 0 ? SENDER_CHECKING : SENDER_SENDING);
	read_from(s, 0, 0, offset);
}

int
sender_opened(struct sender *s, uint64_t offset, uint32_t crc)
{
	if (s->state != SENDER_OPENING)
		return -EPROTO;
	if (source_is_stream(s->source))
		open_stream(s, offset, crc);
	else
		open_file(s, offset, crc);
	sender_pump(s);
	return 0;
}

void
sender_abort(struct sender *s, bool discard)
{
	if (s->state != SENDER_IDLE && s->records.begun)
		records_abort(&s->records, discard);
	sender_finish(s);
}

void
sender_finish(struct sender *s)
{
	s->transfer = NULL;
	s->source = NULL;
	staging_stop(&s->staging);
	if (s->state != SENDER_IDLE)
		set_state(s, SENDER_IDLE);
}
