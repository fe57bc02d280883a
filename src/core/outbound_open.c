/* outbound_open.c -- what a connection to a target carries: its transfers, from GRANT to the end */

#include "config.h"

#include <string.h>

#include "core/failure.h"
#include "core/outbound.h"
#include "core/outbound_open.h"
#include "core/peer.h"
#include "core/priv.h"
#include "core/transfer.h"

static bool
broken(struct failure *why, const char *text)
{
	*why = failure_protocol(text);
	return false;
}

/* ---- what it may take ---- */

bool
outbound_open_is_idle(const struct outbound *ob)
{
	return ob->state == OUTBOUND_OPEN && ob->open.transfer == NULL &&
	       ob->open.results == ob->open.sender.records.number;
}

static bool
takes_region(const struct outbound *ob, const struct transfer *t)
{
	return ob->state == OUTBOUND_OPEN && !ob->open.last && strcmp(ob->region, t->region) == 0;
}

/* In a memory region a transfer's bytes may be in use until its RESULT. */
bool
outbound_open_fits(const struct outbound *ob, const struct transfer *t)
{
	const struct sender *s = &ob->open.sender;

	if (!takes_region(ob, t) || !sender_fits(s, t->view.length))
		return false;
	if (records_is_ring(&s->records))
		return s->records.number - ob->open.results < LIMIT_PIPELINE;
	return outbound_open_is_idle(ob) && t->wanted <= ob->grant.size;
}

bool
outbound_open_will_fit(const struct outbound *ob, const struct transfer *t)
{
	const struct sender *s = &ob->open.sender;

	return takes_region(ob, t) && records_is_ring(&s->records) && sender_is_brief(s) &&
	       sender_suits(s, t->view.length);
}

bool
outbound_open_discards(const struct outbound *ob, const struct transfer *t)
{
	const struct outbound_open *open = &ob->open;

	return ob->state == OUTBOUND_OPEN && open->results < open->discard.number &&
	       memcmp(open->discard.id, t->id, sizeof(open->discard.id)) == 0;
}

unsigned
outbound_open_count(const struct outbound *ob)
{
	return list_length(&ob->open.awaiting) + (ob->open.transfer != NULL);
}

/* ---- on their way ---- */

static void
rest(struct outbound *ob)
{
	if (outbound_open_count(ob) == 0)
		loop_timer_set(ob->deadline, ob->core->conf->idle_ns);
	peer_schedule(ob->peer);
}

void
outbound_open_take(struct outbound *ob, struct transfer *t)
{
	ob->open.transfer = t;
}

void
outbound_open_run(struct outbound *ob)
{
	struct transfer *t = ob->open.transfer;

	loop_timer_clear(ob->deadline);
	transfer_running(t, ob->grant.sink == RWP_SINK_SPOOL);
	flight_join(&t->flight, &ob->flight);
	sender_start(&ob->open.sender, t, t->source);
}

static void
on_sent_all(struct sender *s)
{
	struct outbound *ob = container_of(s, struct outbound, open.sender);
	struct transfer *t = ob->open.transfer;

	ob->open.transfer = NULL;
	list_add_tail(&ob->open.awaiting, &t->queue_node);
	transfer_confirming(t, s->records.number, s->records.done, s->records.crc);
	peer_schedule(ob->peer); /* another may follow */
}

void
outbound_open_init(struct outbound_open *open)
{
	list_init(&open->awaiting);
}

void
outbound_open_begin(struct outbound *ob)
{
	sender_init(&ob->open.sender, &ob->channel, &ob->grant, on_sent_all);
	loop_timer_set(ob->deadline, ob->core->conf->idle_ns);
	if (ob->open.transfer != NULL)
		outbound_open_run(ob);
}

void
outbound_open_room(struct outbound *ob)
{
	if (ob->state == OUTBOUND_OPEN)
		sender_pump(&ob->open.sender);
}

/* ---- their ends ---- */

static void
note_discard(struct outbound_open *open, const struct transfer *t)
{
	if (!open->sender.records.begun)
		return;
	open->discard.number = open->sender.records.number;
	memcpy(open->discard.id, t->id, sizeof(open->discard.id));
}

void
outbound_open_drop(struct outbound *ob, struct transfer *t, bool discard)
{
	struct outbound_open *open = &ob->open;

	list_del(&t->queue_node);
	if (open->transfer == t) {
		open->transfer = NULL;
		if (discard)
			note_discard(open, t);
		sender_abort(&open->sender, discard);
	}
	if (ob->state == OUTBOUND_OPEN)
		rest(ob);
}

static void
give_back(struct transfer *t, const struct failure *why)
{
	transfer_released(t);
	transfer_broke(t, why);
}

void
outbound_open_give_back(struct outbound *ob, const struct failure *why)
{
	struct transfer *t, *sending = ob->open.transfer;

	ob->open.transfer = NULL;
	sender_finish(&ob->open.sender);
	while ((t = list_first(&ob->open.awaiting, struct transfer, queue_node)) != NULL)
		give_back(t, why);
	if (sending != NULL)
		give_back(sending, why);
}

void
outbound_open_done(struct outbound_open *open)
{
	sender_done(&open->sender);
}

/* ---- what the target says ---- */

/* The transfer of this number, if it was not given up meanwhile. */
static struct transfer *
find_transfer(const struct outbound_open *open, uint32_t number)
{
	struct transfer *t;

	list_for_each (t, &open->awaiting, struct transfer, queue_node)
		if (t->sent.number == number)
			return t;
	return open->sender.records.begun && open->sender.records.number == number ? open->transfer
										   : NULL;
}

/* The one good answer of this sink, for all that was sent. */
static bool
result_matches(const struct outbound *ob, const struct transfer *t, const struct rwp_record *r)
{
	bool spool = ob->grant.sink == RWP_SINK_SPOOL;

	return t != ob->open.transfer && r->length == (spool ? RWP_STORED : RWP_ARRIVED) &&
	       r->stream_off == t->sent.length && r->data_crc == t->sent.crc;
}

static bool
on_result(struct outbound *ob, const struct rwp_record *r, const uint8_t *blob, struct failure *why)
{
	struct outbound_open *open = &ob->open;
	struct transfer *t = find_transfer(open, r->transfer);
	bool good = r->length <= RWP_STORED;

	if (r->transfer != open->results + 1 || r->transfer > open->sender.records.number)
		return broken(why, "a result for no transfer");
	if (good && t != NULL && !result_matches(ob, t, r))
		return broken(why, "a result that does not match what was sent");
	open->results++;
	open->news_at = loop_now();
	open->transfers += good;
	open->sender.records.arrivals += r->length == RWP_ARRIVED;
	if (t != NULL && t == open->transfer) { /* it failed before its end: no more of it */
		open->transfer = NULL;
		sender_finish(&open->sender);
	}
	if (t != NULL)
		transfer_result(t, r, blob);
	rest(ob);
	return true;
}

static bool
on_begin_ok(struct outbound_open *open, const struct rwp_record *r, struct failure *why)
{
	if (r->transfer != open->sender.records.number || open->transfer == NULL)
		return true; /* given up meanwhile */
	open->news_at = loop_now();
	if (sender_opened(&open->sender, r->stream_off, r->data_crc) < 0)
		return broken(why, "an answer to no question");
	return true;
}

bool
outbound_open_record(
    struct outbound *ob, const struct rwp_record *r, const uint8_t *blob, struct failure *why)
{
	if (r->type == RWP_RESULT)
		return on_result(ob, r, blob, why);
	if (r->type == RWP_BEGIN_OK)
		return on_begin_ok(&ob->open, r, why);
	if (r->flags & RWP_MUST_UNDERSTAND || rwp_type_name(r->type) != NULL)
		return broken(why, "a record that is not known, or has no place here");
	return true;
}

/* So much can have arrived. What the target had before it was asked counts as well. */
static bool
can_have_arrived(const struct outbound_open *open, const struct transfer *t, uint64_t arrived)
{
	if (arrived <= t->view.sent)
		return true;
	return t == open->transfer &&
	       (open->sender.state == SENDER_OPENING || arrived <= open->sender.resume);
}

bool
outbound_open_line(struct outbound *ob, const struct rwp_line *line, struct failure *why)
{
	struct outbound_open *open = &ob->open;
	struct transfer *t;

	if (line->state == RWP_LINE_ENDING)
		open->last = true;
	if (ob->state != OUTBOUND_OPEN)
		return true;
	if (records_released(&open->sender.records, line->released) < 0)
		return broken(why, "its line gives back what was not used");
	t = find_transfer(open, line->transfer);
	if (t == NULL)
		return true;
	if (!can_have_arrived(open, t, line->arrived) || line->durable > line->arrived)
		return broken(why, "its line says that more has arrived than was sent");
	if (transfer_progress(t, line->arrived, line->durable))
		open->news_at = loop_now();
	return true;
}
