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
#include "core/priv.h"
#include "core/region.h"
#include "core/sink.h"

/* A payload overtaken by its record is read again for so long (protocol rule 2). */
#define SUSPECT_NS (50 * NSEC_PER_MSEC)
#define AGAIN_NS   NSEC_PER_MSEC

static const char *const STATES[] = {
    [ARRIVAL_NONE] = "none",
    [ARRIVAL_OPEN] = "open",
    [ARRIVAL_VERIFYING] = "verifying",
    [ARRIVAL_FAILED] = "failed",
};

static void verify(void *arg);
static void verified(struct job *job);
static void run_crc(struct job *job);

static void
set_state(struct arrival *a, enum arrival_state state)
{
	log_debug("region %u: transfer %u %s -> %s", a->region->id, a->transfer, STATES[a->state],
	    STATES[state]);
	a->state = state;
}

int
arrival_init(struct arrival *a, struct channel *ch, struct region *region, const struct sink *sink,
    void (*idle)(struct arrival *a))
{
	int error = loop_timer_new(ch->core->env.loop, verify, a, &a->again);
	struct fabric_info info;

	if (error < 0)
		return error;
	ch->conn->fabric->ops->describe(ch->conn, &info);
	a->inline_max = info.polled ? LIMIT_INLINE_VERIFY : LIMIT_SEGMENT;
	a->channel = ch;
	a->region = region;
	a->sink = sink;
	a->idle = idle;
	a->job = (struct job){.run = run_crc, .done = verified};
	return 0;
}

void
arrival_done(struct arrival *a)
{
	a->again = loop_timer_free(a->again);
}

bool
arrival_busy(const struct arrival *a)
{
	return a->state == ARRIVAL_VERIFYING;
}

bool
arrival_open(const struct arrival *a)
{
	return a->state == ARRIVAL_OPEN || a->state == ARRIVAL_VERIFYING;
}

bool
arrival_is_stream(const struct arrival *a)
{
	return a->announced == UINT64_MAX;
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

/* The transfer has failed, the connection goes on. */
static void
fail(struct arrival *a, unsigned code, struct rwp_deny *why, enum arrival_state next)
{
	uint8_t blob[RWP_BLOB_MAX];
	int len;

	if (why->text[0] == '\0')
		snprintf(why->text, sizeof(why->text), "%s", rwp_code_text(code));
	why->code = code;
	len = rwp_deny_encode(why, RWP_RESULT, area_out_seq(&a->channel->out), blob, sizeof(blob));
	log_warning(
	    "region %u: %s from %s: %s", a->region->id, a->view.name, a->region->peer, why->text);
	region_failed(a->region);
	push_result(a, code, 0, blob, len > 0 ? len : 0);
	set_state(a, next);
}

static void
fail_text(struct arrival *a, unsigned code, const char *text)
{
	struct rwp_deny why = {0};

	snprintf(why.text, sizeof(why.text), "%s", text);
	fail(a, code, &why, a->record.type == RWP_ONE ? ARRIVAL_NONE : ARRIVAL_FAILED);
}

static void
finish(struct arrival *a)
{
	struct rwp_deny why = {0};
	unsigned status = a->sink->end(a, &why);

	if (status > RWP_STORED) {
		fail(a, status, &why, ARRIVAL_NONE);
		return;
	}
	a->view.length = a->received;
	a->view.crc32c = a->crc;
	a->view.at = clock_realtime();
	push_result(a, status, a->crc, NULL, 0);
	set_state(a, ARRIVAL_NONE);
	region_arrived(a->region, &a->view);
}

/* ---- verifying one payload ---- */

static const uint8_t *
payload(const struct arrival *a)
{
	return a->region->memory->addr + a->record.region_off;
}

static void
run_crc(struct job *job)
{
	struct arrival *a = container_of(job, struct arrival, job);

	a->job_crc = crc32c(0, payload(a), a->record.length);
}

static void
verify(void *arg)
{
	struct arrival *a = arg;

	if (a->record.length <= a->inline_max) {
		channel_hold(a->channel);
		run_crc(&a->job);
		verified(&a->job);
		return;
	}
	channel_hold(a->channel);
	work_submit(a->channel->core->env.store, &a->job);
}

static void
accept_payload(struct arrival *a)
{
	a->suspect_since = 0;
	a->crc = crc32c_combine(a->crc, a->job_crc, a->record.length);
	a->received += a->record.length;
	a->progress++;
	a->channel->line.transfer = a->transfer;
	a->channel->line.arrived = a->received;
	channel_line(a->channel);
	set_state(a, ARRIVAL_OPEN);
	if (a->record.type == RWP_ONE)
		finish(a);
}

/* True: look again soon. */
static bool
suspect(struct arrival *a)
{
	uint64_t now = loop_now();

	if (a->suspect_since == 0)
		a->suspect_since = now;
	if (now - a->suspect_since >= SUSPECT_NS)
		return false;
	loop_timer_set(a->again, AGAIN_NS);
	return true;
}

static void
verified(struct job *job)
{
	struct arrival *a = container_of(job, struct arrival, job);
	struct channel *ch = a->channel;
	bool waiting = false;

	if (ch->phase == CHANNEL_UP) {
		if (a->job_crc == a->record.data_crc) {
			accept_payload(a);
		} else if (!(waiting = suspect(a))) {
			a->damaged++;
			a->suspect_since = 0;
			fail_text(a, RWP_E_CHECKSUM, "payload does not match its checksum");
		}
		if (!waiting)
			a->idle(a);
	}
	channel_release(ch);
}

/* ---- records ---- */

static unsigned
check_payload(struct arrival *a, const struct rwp_record *r, struct rwp_deny *why)
{
	if (r->type == RWP_DATA && r->length == 0) {
		snprintf(why->text, sizeof(why->text), "a DATA without payload");
		return RWP_E_PROTOCOL;
	}
	if (r->length > LIMIT_SEGMENT || r->region_off > a->region->size ||
	    r->length > a->region->size - r->region_off) {
		snprintf(why->text, sizeof(why->text),
		    "%u bytes at %llu: a segment is at most %llu bytes and ends within %llu",
		    r->length, (unsigned long long)r->region_off, (unsigned long long)LIMIT_SEGMENT,
		    (unsigned long long)a->region->size);
		return RWP_E_PROTOCOL;
	}
	if (r->length > a->announced - a->received) {
		snprintf(why->text, sizeof(why->text), "more bytes than the %llu announced",
		    (unsigned long long)a->announced);
		return RWP_E_PROTOCOL;
	}
	return a->sink->place(a, r, why);
}

static int
take_payload(struct arrival *a, const struct rwp_record *r)
{
	struct rwp_deny why = {0};
	unsigned code = check_payload(a, r, &why);

	if (code != 0) {
		fail(a, code, &why, r->type == RWP_ONE ? ARRIVAL_NONE : ARRIVAL_FAILED);
		return 0;
	}
	set_state(a, ARRIVAL_VERIFYING);
	verify(a);
	return 0;
}

static unsigned
check_begin(
    struct arrival *a, const struct rwp_record *r, const struct rwp_begin *b, struct rwp_deny *why)
{
	if (a->channel->core->stopping)
		return RWP_E_SHUTDOWN;
	if (r->type == RWP_ONE && b->length != UINT64_MAX && b->length != r->length) {
		snprintf(why->text, sizeof(why->text), "a ONE of %u bytes that says to be of %llu",
		    r->length, (unsigned long long)b->length);
		return RWP_E_PROTOCOL;
	}
	return a->sink->begin(a, b, why);
}

static int
begin(struct arrival *a, const struct rwp_record *r, const uint8_t *blob, const char **text)
{
	struct rwp_deny why = {0};
	struct rwp_begin b = {0};
	unsigned code;
	int error;

	if (arrival_open(a)) {
		*text = "a transfer begins inside another";
		return -EPROTO;
	}
	if (r->transfer != a->transfer + 1) {
		*text = "a transfer is out of number";
		return -EPROTO;
	}
	error = rwp_begin_decode(blob, r->blob_len, r->type, r->seq, &b);
	if (error == -EBADMSG) {
		*text = "a transfer's description is malformed";
		return -EPROTO;
	}
	a->progress++;
	a->transfer = r->transfer;
	a->announced = r->type == RWP_ONE ? r->length : b.length;
	a->received = 0;
	a->crc = 0;
	memset(&a->view, 0, sizeof(a->view));
	memcpy(a->view.name, b.name, sizeof(a->view.name));
	set_state(a, ARRIVAL_OPEN);
	region_begin(a->region);
	code = error < 0 ? RWP_E_UNSUPPORTED : check_begin(a, r, &b, &why);
	if (code != 0)
		fail(a, code, &why, r->type == RWP_ONE ? ARRIVAL_NONE : ARRIVAL_FAILED);
	return 0;
}

static int
on_one(struct arrival *a, const struct rwp_record *r, const uint8_t *blob, const char **text)
{
	int error = begin(a, r, blob, text);

	return error == 0 && a->state == ARRIVAL_OPEN ? take_payload(a, r) : error;
}

static int
on_data(struct arrival *a, const struct rwp_record *r, const uint8_t *blob, const char **text)
{
	(void)blob;
	(void)text;
	return take_payload(a, r);
}

static int
on_hole(struct arrival *a, const struct rwp_record *r, const uint8_t *blob, const char **text)
{
	(void)r;
	(void)blob;
	(void)text;
	fail_text(a, RWP_E_UNSUPPORTED, "holes are not known here");
	return 0;
}

static int
on_end(struct arrival *a, const struct rwp_record *r, const uint8_t *blob, const char **text)
{
	struct rwp_deny why = {0};

	(void)blob;
	(void)text;
	if (r->stream_off == a->received && r->data_crc == a->crc &&
	    (a->announced == UINT64_MAX || a->announced == a->received)) {
		finish(a);
		return 0;
	}
	snprintf(why.text, sizeof(why.text),
	    "the end says %llu bytes with CRC32C %08x; %llu bytes with %08x arrived",
	    (unsigned long long)r->stream_off, r->data_crc, (unsigned long long)a->received,
	    a->crc);
	fail(a, RWP_E_CHECKSUM, &why, ARRIVAL_NONE);
	return 0;
}

static int
on_abort(struct arrival *a, const struct rwp_record *r, const uint8_t *blob, const char **text)
{
	struct rwp_deny why = {0};

	(void)r;
	(void)blob;
	(void)text;
	fail(a, RWP_E_ABORTED, &why, ARRIVAL_NONE);
	return 0;
}

static const struct {
	bool begins; /* a transfer; all others belong to the open one */
	bool ends;
	int (*fn)(struct arrival *, const struct rwp_record *, const uint8_t *, const char **);
} RECORDS[] = {
    [RWP_BEGIN] = {.begins = true, .fn = begin},
    [RWP_DATA] = {.fn = on_data},
    [RWP_HOLE] = {.fn = on_hole},
    [RWP_END] = {.ends = true, .fn = on_end},
    [RWP_ONE] = {.begins = true, .ends = true, .fn = on_one},
    [RWP_ABORT] = {.ends = true, .fn = on_abort},
};

/* What the writer still sent of a transfer that has got its RESULT is skipped. */
static bool
skip(struct arrival *a, const struct rwp_record *r)
{
	if (a->state != ARRIVAL_FAILED || r->transfer != a->transfer)
		return false;
	if (RECORDS[r->type].ends)
		set_state(a, ARRIVAL_NONE);
	return true;
}

int
arrival_record(
    struct arrival *a, const struct rwp_record *r, const uint8_t *blob, const char **text)
{
	if (skip(a, r))
		return 0;
	if (!RECORDS[r->type].begins && (a->state != ARRIVAL_OPEN || r->transfer != a->transfer)) {
		*text = "a record belongs to no open transfer";
		return -EPROTO;
	}
	a->record = *r;
	return RECORDS[r->type].fn(a, r, blob, text);
}

void
arrival_abandon(struct arrival *a)
{
	loop_timer_clear(a->again);
	if (arrival_open(a)) {
		log_warning("region %u: %s from %s: the connection ended after %llu bytes",
		    a->region->id, a->view.name, a->region->peer, (unsigned long long)a->received);
		region_failed(a->region);
		a->state = ARRIVAL_NONE;
	}
}
