/* arrival.c -- incoming transfers of one connection: records to verified bytes to the sink */

#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/crc32c.h"
#include "base/log.h"
#include "base/text.h"
#include "core/arrival.h"
#include "core/arrival_check.h"
#include "core/event.h"
#include "core/priv.h"
#include "core/region.h"
#include "core/sink.h"

static const char *const STATES[] = {
    [ARRIVAL_NONE] = "none",
    [ARRIVAL_BEGINNING] = "beginning",
    [ARRIVAL_OPEN] = "open",
    [ARRIVAL_STORING] = "storing",
    [ARRIVAL_ENDING] = "ending",
    [ARRIVAL_DROPPING] = "dropping",
    [ARRIVAL_FAILED] = "failed",
};

static const struct record_kind {
	bool begins; /* a transfer; all others belong to the open one */
	bool ends;
	bool payload; /* in the region */
	int (*fn)(struct arrival *a, const uint8_t *blob, const char **text);
} RECORDS[];

static void on_taken(struct intake *in, int result);

static enum flight_wait
waits_for(const struct arrival *a)
{
	if (a->state == ARRIVAL_OPEN)
		return FLIGHT_POLL;
	return a->state != ARRIVAL_NONE && a->sink->blocks ? FLIGHT_DISK : FLIGHT_NOTHING;
}

static void
set_state(struct arrival *a, enum arrival_state state)
{
	log_debug("region %u: transfer %u %s -> %s", a->region->id, a->transfer, STATES[a->state],
	    STATES[state]);
	a->state = state;
	flight_wait(&a->region->flight, waits_for(a), loop_now());
}

int
arrival_init(struct arrival *a, struct channel *ch, struct region *region, const struct sink *sink,
    void (*idle)(struct arrival *a))
{
	a->channel = ch;
	a->region = region;
	a->sink = sink;
	a->idle = idle;
	return intake_init(&a->intake, a, on_taken);
}

void
arrival_done(struct arrival *a)
{
	intake_done(&a->intake);
}

bool
arrival_busy(const struct arrival *a)
{
	return a->state == ARRIVAL_BEGINNING || a->state == ARRIVAL_STORING ||
	       a->state == ARRIVAL_ENDING || a->state == ARRIVAL_DROPPING;
}

bool
arrival_open(const struct arrival *a)
{
	return a->state >= ARRIVAL_BEGINNING && a->state <= ARRIVAL_ENDING;
}

bool
arrival_is_stream(const struct arrival *a)
{
	return a->announced == UINT64_MAX;
}

void
arrival_heard(struct arrival *a, uint64_t seq)
{
	if (a->sink != NULL && a->sink->heard != NULL)
		a->sink->heard(a, seq);
}

/* ---- being busy ---- */

/* Something begins whose end settle() is. */
static void
start(struct arrival *a, enum arrival_state state)
{
	set_state(a, state);
	channel_hold(a->channel);
}

static void lose(struct arrival *a);

/* Something has ended; something else may have begun by now. */
static void
go_idle(struct arrival *a)
{
	if (arrival_busy(a))
		return;
	if (arrival_open(a) && a->channel->phase == CHANNEL_CLOSED)
		lose(a);
	else
		a->idle(a);
}

/* What start() began has ended. */
static void
settle(struct arrival *a)
{
	struct channel *ch = a->channel;

	go_idle(a);
	channel_release(ch);
}

/* ---- the ring ---- */

/* No record is being stored: all that was used is free again. */
static void
ring_give_back(struct arrival *a)
{
	if (a->channel->line.released == a->ring)
		return;
	a->channel->line.released = a->ring;
	channel_line(a->channel);
}

/* ---- results ---- */

static void
push_result(
    struct arrival *a, unsigned status, uint32_t data_crc, const void *blob, uint32_t blob_len)
{
	struct rwp_record r = {
	    .type = RWP_RESULT,
	    .transfer = a->transfer,
	    .stream_off = a->received,
	    .region_off = status == RWP_STORED ? a->received : 0,
	    .length = status,
	    .data_crc = data_crc,
	    .grant = a->record.grant,
	};

	a->progress++;
	/* There is room: the owner takes no record while there is none. */
	channel_push(a->channel, &r, blob, blob_len, NULL);
}

static void
push_failure(struct arrival *a)
{
	uint8_t blob[RWP_BLOB_MAX];
	int len = rwp_deny_encode(
	    &a->fail_why, RWP_RESULT, area_out_seq(&a->channel->out), blob, sizeof(blob));

	push_result(a, a->fail_code, 0, blob, len > 0 ? len : 0);
}

static void
drop(struct arrival *a, bool keep)
{
	intake_cancel(&a->intake);
	start(a, ARRIVAL_DROPPING);
	if (a->sink->drop == NULL || a->sink->drop(a, keep) != SINK_LATER)
		arrival_dropped(a);
}

void
arrival_dropped(struct arrival *a)
{
	region_failed(a->region);
	if (a->sink->ring)
		ring_give_back(a);
	if (a->fail_code != 0)
		push_failure(a);
	set_state(
	    a, a->fail_code == 0 || RECORDS[a->record.type].ends ? ARRIVAL_NONE : ARRIVAL_FAILED);
	settle(a);
}

/* What is there may be gone on from, unless it is not what the writer has, or he does not want it.
 */
static bool
is_worth_keeping(const struct arrival *a)
{
	if (a->record.type == RWP_ABORT)
		return a->record.length == RWP_ABORT_KEEP;
	return a->record.type != RWP_END || a->fail_code != RWP_E_CHECKSUM;
}

/* The transfer has failed, the connection goes on. */
static void
fail(struct arrival *a, unsigned code, const struct rwp_deny *why)
{
	a->fail_code = code;
	a->fail_why = *why;
	a->fail_why.code = code;
	if (why->text[0] == '\0')
		snprintf(a->fail_why.text, sizeof(a->fail_why.text), "%s", rwp_code_text(code));
	log_warning("region %u: %s from %s: %s", a->region->id, a->view.name, a->region->peer,
	    a->fail_why.text);
	event_arrival_failed(a);
	drop(a, is_worth_keeping(a));
}

static void
fail_text(struct arrival *a, unsigned code, const char *text)
{
	struct rwp_deny why = {0};

	snprintf(why.text, sizeof(why.text), "%s", text);
	fail(a, code, &why);
}

void
arrival_broke(struct arrival *a, unsigned code, const struct rwp_deny *why)
{
	fail(a, code, why);
}

/* The connection is gone. */
static void
lose(struct arrival *a)
{
	log_warning("region %u: %s from %s: the connection ended after %llu bytes", a->region->id,
	    a->view.name, a->region->peer, (unsigned long long)a->received);
	a->fail_code = 0;
	drop(a, true);
}

static void
finish(struct arrival *a)
{
	struct rwp_deny why = {0};
	unsigned status;

	flight_mark(&a->region->flight, FLIGHT_LAST_BYTE, loop_now());
	start(a, ARRIVAL_ENDING);
	status = a->sink->end(a, &why);
	if (status != SINK_LATER)
		arrival_ended(a, status, &why);
}

void
arrival_ended(struct arrival *a, unsigned status, const struct rwp_deny *why)
{
	if (status > RWP_STORED) {
		fail(a, status, why);
	} else {
		flight_mark(&a->region->flight, status == RWP_STORED ? FLIGHT_FSYNC : FLIGHT_VERIFY,
		    loop_now());
		a->view.length = a->received;
		a->view.crc32c = a->crc;
		a->view.at = clock_realtime();
		push_result(a, status, a->crc, NULL, 0);
		if (a->sink->ring)
			ring_give_back(a);
		set_state(a, ARRIVAL_NONE);
		region_arrived(a->region, &a->view);
	}
	settle(a);
}

/* ---- storing what one record brings ---- */

static void
accept_bytes(struct arrival *a)
{
	a->crc = crc32c_combine(a->crc, a->intake.crc, a->record.length);
	a->received += a->record.length;
	a->progress++;
	a->channel->line.transfer = a->transfer;
	a->channel->line.arrived = a->received;
	channel_line(a->channel);
	if (a->sink->ring)
		ring_give_back(a);
	set_state(a, ARRIVAL_OPEN);
	if (a->record.type == RWP_ONE)
		finish(a);
	else if (a->sink->stored != NULL)
		a->sink->stored(a);
}

static void
on_taken(struct intake *in, int result)
{
	struct arrival *a = in->arrival;
	struct rwp_deny why = {0};

	if (result == INTAKE_DAMAGED)
		fail_text(a, RWP_E_CHECKSUM, "payload does not match its checksum");
	else if (result < 0)
		fail(a, a->sink->explain(a, result, &why), &why);
	else
		accept_bytes(a);
	go_idle(a);
}

/* ---- records ---- */

static void
take_bytes(struct arrival *a)
{
	struct rwp_deny why = {0};
	unsigned code = arrival_check_bytes(a, &why);

	if (code != 0) {
		fail(a, code, &why);
		return;
	}
	set_state(a, ARRIVAL_STORING); /* the intake holds the channel, while it has a job */
	intake_begin(&a->intake);
}

static int
on_bytes(struct arrival *a, const uint8_t *blob, const char **text)
{
	(void)blob;
	(void)text;
	take_bytes(a);
	return 0;
}

static int
on_end(struct arrival *a, const uint8_t *blob, const char **text)
{
	struct rwp_deny why = {0};
	unsigned code = arrival_check_end(a, &why);

	(void)blob;
	(void)text;
	if (code != 0)
		fail(a, code, &why);
	else
		finish(a);
	return 0;
}

static int
on_abort(struct arrival *a, const uint8_t *blob, const char **text)
{
	struct rwp_deny why = {0};

	(void)blob;
	(void)text;
	fail(a, RWP_E_ABORTED, &why);
	return 0;
}

/* ---- the first record of a transfer ---- */

static void
push_begin_ok(struct arrival *a)
{
	struct rwp_record r = {
	    .type = RWP_BEGIN_OK,
	    .transfer = a->transfer,
	    .stream_off = a->received,
	    .data_crc = a->crc,
	    .grant = a->record.grant,
	};

	a->resumes = true;
	a->progress++;
	channel_push(a->channel, &r, NULL, 0, NULL);
}

static void restart(struct arrival *a);

/* Behind what is there already a ONE is no news, or something else under the same ID. */
static void
take_one_again(struct arrival *a)
{
	if (a->received == a->record.length && a->crc == a->record.data_crc)
		finish(a);
	else
		restart(a);
}

/* The record that the sink had to make ready for. */
static void
go_on(struct arrival *a)
{
	if (a->record.type == RWP_ONE && a->received > 0) {
		take_one_again(a);
	} else if (a->record.type == RWP_BEGIN) {
		if (a->has_id && a->sink->restart != NULL)
			push_begin_ok(a);
	} else if (a->record.type == RWP_END) {
		on_end(a, NULL, NULL);
	} else {
		take_bytes(a);
	}
}

void
arrival_begun(
    struct arrival *a, unsigned code, const struct rwp_deny *why, uint64_t offset, uint32_t crc)
{
	if (code != 0) {
		fail(a, code, why);
	} else {
		a->progress++;
		a->received = offset;
		a->crc = crc;
		set_state(a, ARRIVAL_OPEN);
		go_on(a);
	}
	settle(a);
}

static void
open_transfer(struct arrival *a, const struct rwp_begin *b)
{
	static const uint8_t NO_ID[sizeof(b->id)];

	a->progress++;
	a->transfer = a->record.transfer;
	a->announced = a->record.type == RWP_ONE ? a->record.length : b->length;
	a->received = 0;
	a->crc = 0;
	a->resumes = false;
	a->has_id = memcmp(b->id, NO_ID, sizeof(NO_ID)) != 0;
	memset(&a->view, 0, sizeof(a->view));
	memcpy(a->view.name, b->name, sizeof(a->view.name));
	region_begin(a->region);
}

static int
on_begin(struct arrival *a, const uint8_t *blob, const char **text)
{
	const struct rwp_record *r = &a->record;
	struct rwp_deny why = {0};
	struct rwp_begin b = {0};
	unsigned code;
	int error;

	if (r->transfer != a->transfer + 1) {
		*text = "a transfer is out of number";
		return -EPROTO;
	}
	error = rwp_begin_decode(blob, r->blob_len, r->type, r->seq, &b);
	if (error == -EBADMSG) {
		*text = "a transfer's description is malformed";
		return -EPROTO;
	}
	open_transfer(a, &b);
	start(a, ARRIVAL_BEGINNING);
	code = error < 0 ? RWP_E_UNSUPPORTED : arrival_check_begin(a, &b, &why);
	if (code == 0)
		code = a->sink->begin(a, &b, &why);
	if (code != SINK_LATER)
		arrival_begun(a, code, &why, 0, 0);
	return 0;
}

static const struct record_kind RECORDS[] = {
    [RWP_BEGIN] = {.begins = true, .fn = on_begin},
    [RWP_DATA] = {.payload = true, .fn = on_bytes},
    [RWP_HOLE] = {.fn = on_bytes},
    [RWP_END] = {.ends = true, .fn = on_end},
    [RWP_ONE] = {.begins = true, .ends = true, .payload = true, .fn = on_begin},
    [RWP_ABORT] = {.ends = true, .fn = on_abort},
};

/* What the writer still sent of a transfer that has got its RESULT is skipped. */
static bool
skip(struct arrival *a, const struct rwp_record *r)
{
	if (a->state != ARRIVAL_FAILED || r->transfer != a->transfer)
		return false;
	if (a->sink->ring)
		ring_give_back(a);
	if (RECORDS[r->type].ends)
		set_state(a, ARRIVAL_NONE);
	return true;
}

/* The first record behind BEGIN-OK goes on from there, or begins anew. */
static bool
is_restart(struct arrival *a, const struct rwp_record *r)
{
	bool resumes = a->resumes;

	a->resumes = false;
	return resumes && r->type != RWP_ABORT && r->stream_off == 0 && a->received > 0;
}

static void
restart(struct arrival *a)
{
	struct rwp_deny why = {0};
	unsigned code;

	start(a, ARRIVAL_BEGINNING);
	code = a->sink->restart(a, &why);
	if (code != SINK_LATER)
		arrival_begun(a, code, &why, 0, 0);
}

int
arrival_record(
    struct arrival *a, const struct rwp_record *r, const uint8_t *blob, const char **text)
{
	const struct record_kind *kind = &RECORDS[r->type];

	if (kind->payload && a->sink->ring && !arrival_check_ring(a, r, &a->ring)) {
		*text = "payload lies outside of its place in the ring";
		return -EPROTO;
	}
	if (skip(a, r))
		return 0;
	if (!kind->begins && (a->state != ARRIVAL_OPEN || r->transfer != a->transfer)) {
		*text = "a record belongs to no open transfer";
		return -EPROTO;
	}
	if (kind->begins && arrival_open(a)) {
		*text = "a transfer begins inside another";
		return -EPROTO;
	}
	a->record = *r;
	if (is_restart(a, r)) {
		restart(a);
		return 0;
	}
	return kind->fn(a, blob, text);
}

void
arrival_abandon(struct arrival *a)
{
	/* What else keeps it busy will find the channel closed. */
	if (a->state == ARRIVAL_OPEN || intake_waits(&a->intake))
		lose(a);
}
