/* transfer.c -- one `rwctl write`: from the queue of its peer to its final state */

#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "conf/conf.h"
#include "core/dial.h"
#include "core/event.h"
#include "core/failure.h"
#include "core/outbound.h"
#include "core/peer.h"
#include "core/priv.h"
#include "core/source.h"
#include "core/transfer.h"
#include "wire/rwp.h"

#define UPDATE_NS (100 * NSEC_PER_MSEC)

static void connect_again(void *arg);

static const char *const STATES[] = {
    [TRANSFER_QUEUED] = "queued",
    [TRANSFER_CONNECTING] = "connecting",
    [TRANSFER_RECONNECTING] = "reconnecting",
    [TRANSFER_CHECKING] = "checking",
    [TRANSFER_SENDING] = "sending",
    [TRANSFER_CONFIRMING] = "confirming",
    [TRANSFER_ARRIVED] = "arrived",
    [TRANSFER_STORED] = "stored",
    [TRANSFER_REFUSED] = "refused",
    [TRANSFER_FAILED] = "failed",
    [TRANSFER_DEADLINE] = "deadline",
};

const char *
transfer_state_name(enum transfer_state state)
{
	return STATES[state];
}

/* ---- the caller's view ---- */

static bool
is_final(const struct transfer *t)
{
	return t->view.state >= TRANSFER_ARRIVED;
}

static void
bury(struct loop_task *task)
{
	free(container_of(task, struct transfer, grave));
}

/* Between callbacks: the caller may do anything in update, cancel too. After the final one the
 * transfer goes; its memory when the turn ends. */
static void
tell(struct loop_task *task)
{
	struct transfer *t = container_of(task, struct transfer, tell_task);
	bool final = is_final(t);

	t->view_dirty = false;
	if (!final)
		t->view.duration_ns = loop_now() - t->started;
	if (t->update != NULL)
		t->update(t->arg, &t->view);
	if (final)
		loop_bury(t->loop, &t->grave);
}

static void
tell_soon(struct transfer *t)
{
	loop_defer(t->loop, &t->tell_task);
}

static void
on_update_time(void *arg)
{
	struct transfer *t = arg;

	loop_timer_set(t->updates, UPDATE_NS);
	if (t->view_dirty)
		tell_soon(t);
}

static void
free_timers(struct transfer *t)
{
	t->deadline = loop_timer_free(t->deadline);
	t->stall = loop_timer_free(t->stall);
	t->updates = loop_timer_free(t->updates);
	reconnect_done(&t->reconnect);
}

/* Neither the core nor its peer knows the transfer any more. */
static void
retire(struct transfer *t)
{
	if (t->dial != NULL)
		dial_cancel(t->dial);
	t->dial = NULL;
	list_del(&t->node);
	list_del(&t->queue_node);
	free_timers(t);
	t->source = source_free(t->source);
	peer_transfer_gone(t->peer, t);
	core_changed(t->core);
}

static void
set_state(struct transfer *t, enum transfer_state state)
{
	if (t->view.state == state)
		return;
	log_debug("transfer %u to %s: %s -> %s", t->view.id, t->view.peer, STATES[t->view.state],
	    STATES[state]);
	t->view.state = state;
	tell_soon(t);
	if (is_final(t))
		retire(t);
}

/* ---- its time ---- */

static void
on_deadline(void *arg)
{
	struct transfer *t = arg;
	bool lost = t->view.state == TRANSFER_RECONNECTING;
	struct failure why =
	    failure_make(0, "not done within the time given%s%s", lost ? ": " : "", t->view.text);

	why.state = TRANSFER_DEADLINE;
	transfer_fail(t, &why);
}

/* An input that is slow is no fault, nor are other results that come first; a target that does not
 * take what was sent is one. */
static bool
stands_still(const struct transfer *t)
{
	if (t->view.state < TRANSFER_CONFIRMING && t->view.sent == t->view.arrived &&
	    source_is_stream(t->source))
		return false;
	return loop_now() - t->outbound->open.news_at >= t->core->conf->stall_ns;
}

static void
on_stall(void *arg)
{
	struct transfer *t = arg;
	struct outbound *ob = t->outbound;
	struct failure why;
	char time[TEXT_TIME_MAX];

	if (!stands_still(t)) {
		loop_timer_set(t->stall, t->core->conf->stall_ns);
		return;
	}
	why = failure_make(
	    RWP_E_TIMEOUT, "no progress for %s", text_human_time(time, t->core->conf->stall_ns));
	transfer_fail(t, &why);
	outbound_end(ob, RWP_E_TIMEOUT, "a transfer stood still on it");
}

/* ---- making ---- */

struct transfer *
transfer_free(struct transfer *t)
{
	if (t == NULL)
		return NULL;
	source_free(t->source);
	free_timers(t);
	free(t);
	return NULL;
}

int
transfer_new(struct core *core, struct transfer **ret)
{
	struct transfer *t = calloc(1, sizeof(*t));

	if (t == NULL)
		return -ENOMEM;
	t->core = core;
	t->loop = core->env.loop;
	list_init(&t->node);
	list_init(&t->queue_node);
	loop_task_init(&t->tell_task, tell);
	loop_task_init(&t->grave, bury);
	if (loop_timer_new(t->loop, on_deadline, t, &t->deadline) < 0 ||
	    loop_timer_new(t->loop, on_stall, t, &t->stall) < 0 ||
	    loop_timer_new(t->loop, on_update_time, t, &t->updates) < 0 ||
	    reconnect_init(&t->reconnect, t->loop, connect_again, t) < 0) {
		transfer_free(t);
		return -ENOMEM;
	}
	loop_timer_set(t->updates, UPDATE_NS);
	*ret = t;
	return 0;
}

static void
describe(struct transfer *t, struct outbound *ob)
{
	struct fabric_info info;

	outbound_describe(ob, &info);
	t->view.fabric = info.fabric;
	memcpy(t->view.device, info.device, sizeof(t->view.device));
	text_address_port(t->view.address, (const struct sockaddr *)&ob->address);
	snprintf(t->view.host, sizeof(t->view.host), "%s", ob->grant.host);
	memcpy(t->view.fabric_why, ob->fabric_why, sizeof(t->view.fabric_why));
	t->view.region_id = ob->grant.region_id;
}

/* Given up from our side. */
static void
leave_outbound(struct transfer *t, bool discard)
{
	struct outbound *ob = t->outbound;

	if (ob == NULL)
		return;
	transfer_released(t);
	outbound_detach(ob, t, discard);
}

void
core_write_cancel(struct transfer *t, bool discard)
{
	t->update = NULL;
	if (is_final(t)) /* its last update is under way, or will not be missed */
		return;
	log_info("transfer %u to %s: cancelled", t->view.id, t->view.peer);
	leave_outbound(t, discard);
	retire(t);
	loop_undefer(&t->tell_task);
	loop_bury(t->loop, &t->grave);
}

/* ---- its course ---- */

void
transfer_connecting(struct transfer *t)
{
	if (t->view.state != TRANSFER_RECONNECTING)
		set_state(t, TRANSFER_CONNECTING);
}

void
transfer_attach(struct transfer *t, struct outbound *ob)
{
	list_del(&t->queue_node);
	t->outbound = ob;
	outbound_open_take(ob, t);
	transfer_connecting(t);
}

void
transfer_released(struct transfer *t)
{
	describe(t, t->outbound);
	list_del(&t->queue_node);
	t->outbound = NULL;
	loop_timer_clear(t->stall);
}

void
transfer_running(struct transfer *t, bool to_spool)
{
	t->to_spool = to_spool;
	t->view.sent = t->view.arrived = t->view.durable = t->view.checked = 0;
	t->view.code = 0;
	t->view.text[0] = t->view.fix[0] = '\0';
	reconnect_granted(&t->reconnect);
	loop_timer_set(t->stall, t->core->conf->stall_ns);
}

static void
connect_again(void *arg)
{
	struct transfer *t = arg;

	peer_queue(t->peer, t);
}

static void
take_words(struct transfer *t, const struct failure *why)
{
	t->view.code = why->code;
	memcpy(t->view.text, why->text, sizeof(t->view.text));
	memcpy(t->view.fix, why->fix, sizeof(t->view.fix));
	t->view.fix_on_peer = why->fix_on_peer;
}

/* A stream whose first bytes are gone can only go on behind what a spool has of it. */
static bool
is_lost_for_good(const struct transfer *t, struct failure *why)
{
	if (t->to_spool || source_start(t->source) == 0)
		return false;
	failure_add(why, "; the first bytes of the stream cannot be read again");
	return true;
}

void
transfer_broke(struct transfer *t, const struct failure *why)
{
	struct failure last = *why;

	if (t->core->stopping || is_lost_for_good(t, &last) ||
	    !reconnect_lost(&t->reconnect, t->core->conf->reconnect_ns, &last)) {
		transfer_fail(t, &last);
		return;
	}
	list_del(&t->queue_node);
	log_info("transfer %u of %s: %s %s; it will be connected again", t->view.id, t->view.name,
	    t->view.peer, why->text);
	t->view.reconnects += t->view.state >= TRANSFER_CHECKING;
	t->core->reconnects += t->view.state >= TRANSFER_CHECKING;
	take_words(t, why);
	set_state(t, TRANSFER_RECONNECTING);
	t->view_dirty = true;
}

static void
progress(struct transfer *t)
{
	t->view_dirty = true;
	loop_timer_set(t->stall, t->core->conf->stall_ns);
}

static void
moving(struct transfer *t, enum transfer_state state)
{
	if (t->view.state == state)
		return;
	describe(t, t->outbound);
	if (t->sending_since == 0)
		t->sending_since = loop_now();
	set_state(t, state);
}

void
transfer_checking(struct transfer *t, uint64_t checked)
{
	moving(t, TRANSFER_CHECKING);
	t->view.checked = checked;
	progress(t);
}

void
transfer_resumed(struct transfer *t, uint64_t resumed)
{
	moving(t, TRANSFER_SENDING);
	t->view.resumed = t->view.checked = resumed;
	t->view.sent = t->view.arrived = resumed;
	progress(t);
}

void
transfer_sending(struct transfer *t, uint64_t sent, uint32_t payload)
{
	uint64_t again = t->sent_most + payload > sent ? t->sent_most + payload - sent : 0;

	moving(t, TRANSFER_SENDING);
	t->view.sent_again += again < payload ? again : payload;
	if (sent > t->sent_most)
		t->sent_most = sent;
	t->view.sent = sent;
	flight_mark(&t->flight, FLIGHT_FIRST_BYTE, loop_now());
	progress(t);
}

void
transfer_confirming(struct transfer *t, uint32_t number, uint64_t length, uint32_t crc)
{
	flight_mark(&t->flight, FLIGHT_LAST_BYTE, loop_now());
	t->sent.number = number;
	t->sent.length = length;
	t->sent.crc = crc;
	moving(t, TRANSFER_CONFIRMING);
	progress(t);
}

bool
transfer_progress(struct transfer *t, uint64_t arrived, uint64_t durable)
{
	/* More than is sent: the target has that from before, and will be told to go on or not. */
	if (arrived > t->view.sent || (arrived <= t->view.arrived && durable <= t->view.durable))
		return false;
	t->view.arrived = arrived;
	t->view.durable = durable;
	if (arrived == t->view.length)
		flight_mark(&t->flight, FLIGHT_VERIFY, loop_now());
	if (durable == t->view.length && durable > 0)
		flight_mark(&t->flight, FLIGHT_FSYNC, loop_now());
	source_forget(t->source, arrived);
	if (arrived > t->arrived_most) {
		t->arrived_most = arrived;
		reconnect_got_on(&t->reconnect);
	}
	progress(t);
	return true;
}

static void
describe_flight(const struct transfer *t, struct flight_record *r)
{
	r->id = t->view.id;
	memcpy(r->name, t->view.name, sizeof(r->name));
	memcpy(r->peer, t->view.peer, sizeof(r->peer));
	r->state = STATES[t->view.state];
	r->length = t->view.length == UINT64_MAX ? t->view.sent : t->view.length;
	r->flight = t->flight;
}

static void
record(struct transfer *t)
{
	flight_wait(&t->flight, FLIGHT_NOTHING, loop_now());
	flight_mark(&t->flight, FLIGHT_RESULT, loop_now());
	describe_flight(t, flight_log_add(&t->core->sent));
}

static void
finish(struct transfer *t, enum transfer_state state)
{
	t->view.duration_ns = loop_now() - t->started;
	t->view.sending_ns = t->sending_since != 0 ? loop_now() - t->sending_since : 0;
	set_state(t, state);
	event_transfer(t);
	record(t);
}

void
transfer_fail(struct transfer *t, const struct failure *why)
{
	take_words(t, why);
	leave_outbound(t, false);
	log_warning("transfer %u of %s: %s: %s %s", t->view.id, t->view.name, STATES[why->state],
	    t->view.peer, t->view.text);
	finish(t, why->state);
}

static void
refuse(struct transfer *t, const struct rwp_record *r, const uint8_t *blob)
{
	struct rwp_deny deny;
	bool told = rwp_deny_decode(blob, r->blob_len, RWP_RESULT, r->seq, &deny) == 0;
	struct failure why = failure_result(r->length, told ? &deny : NULL);

	if (r->length != RWP_E_SHUTDOWN) {
		transfer_fail(t, &why);
		return;
	}
	transfer_released(t);
	transfer_broke(t, &why);
}

void
transfer_result(struct transfer *t, const struct rwp_record *r, const uint8_t *blob)
{
	if (r->length > RWP_STORED) {
		refuse(t, r, blob);
		return;
	}
	transfer_released(t);
	t->view.length = t->view.arrived = t->view.sent = r->stream_off;
	t->view.durable = r->region_off;
	t->view.crc32c = r->data_crc;
	log_info("transfer %u: %s to %s: %llu bytes arrived", t->view.id, t->view.name,
	    t->view.peer, (unsigned long long)r->stream_off);
	finish(t, r->length == RWP_STORED ? TRANSFER_STORED : TRANSFER_ARRIVED);
}

const char *
transfer_name(const struct transfer *t)
{
	return t->view.name;
}

void
transfer_describe(const struct transfer *t, struct rwp_begin *ret)
{
	*ret = (struct rwp_begin){.length = source_length(t->source)};
	memcpy(ret->name, t->view.name, sizeof(ret->name));
	memcpy(ret->id, t->id, sizeof(ret->id));
	if (!t->preserve)
		return;
	ret->mode = source_mode(t->source);
	ret->mtime_ns = source_mtime(t->source);
}

void
core_each_transfer(
    struct core *core, void (*fn)(void *arg, const struct transfer_view *v), void *arg)
{
	struct transfer *t;

	list_for_each (t, &core->transfers, struct transfer, node) {
		t->view.duration_ns = loop_now() - t->started;
		fn(arg, &t->view);
	}
}

void
transfer_each_flight(
    struct core *core, void (*fn)(void *arg, const struct flight_record *r), void *arg)
{
	struct flight_record r = {0};
	struct transfer *t;

	list_for_each (t, &core->transfers, struct transfer, node) {
		describe_flight(t, &r);
		fn(arg, &r);
	}
}
