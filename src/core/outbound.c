/* outbound.c -- the writer's side of a connection: request, hello, grant, end */

#include "config.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "core/channel.h"
#include "core/dial.h"
#include "core/event.h"
#include "core/failure.h"
#include "core/greeting.h"
#include "core/outbound.h"
#include "core/peer.h"
#include "core/priv.h"
#include "core/transfer.h"

/* What we take of a tail area that the target offers bigger. */
#define TAIL_BLOB_MAX 8192

/* The pause between beats while the HELLO has no answer. */
#define GREETING_BEAT_NS (100 * NSEC_PER_MSEC)

static const char *const STATES[] = {
    [OUTBOUND_RESOLVING] = "resolving",
    [OUTBOUND_PREPARING] = "preparing",
    [OUTBOUND_CONNECTING] = "connecting",
    [OUTBOUND_GREETING] = "greeting",
    [OUTBOUND_OPEN] = "open",
    [OUTBOUND_ENDING] = "ending",
    [OUTBOUND_CLOSED] = "closed",
};

static const struct channel_ops CHANNEL_OPS;

static struct outbound *
outbound_of(struct channel *ch)
{
	return container_of(ch, struct outbound, channel);
}

static void
set_state(struct outbound *ob, enum outbound_state state)
{
	log_debug(
	    "connection to %s: %s -> %s", peer_name(ob->peer), STATES[ob->state], STATES[state]);
	ob->state = state;
	if (state >= OUTBOUND_ENDING)
		loop_timer_clear(ob->deadline);
	core_changed(ob->core);
}

/* ---- the end ---- */

static void
push_bye(struct outbound *ob)
{
	struct rwp_record r = {.type = RWP_BYE};

	channel_push(&ob->channel, &r, NULL, 0, NULL);
}

static void
end_now(struct outbound *ob, const struct failure *why)
{
	if (ob->failure.text[0] == '\0')
		ob->failure = *why;
	if (ob->state >= OUTBOUND_ENDING)
		return;
	log_debug("connection to %s: ends: %s", peer_name(ob->peer), why->text);
	if (ob->state == OUTBOUND_OPEN) {
		push_bye(ob);
		event_outbound(ob, EVENT_DISCONNECTED, why->code, why->text);
	}
	set_state(ob, OUTBOUND_ENDING);
	channel_end(&ob->channel);
}

/* The connection ends; its dial tries another, its transfers get the failure or another try. */
static void
give_up(struct outbound *ob, const struct failure *why)
{
	struct dial *dial = ob->dial;

	ob->dial = NULL;
	end_now(ob, why);
	if (dial != NULL)
		dial_lost(dial, ob, why);
	outbound_open_give_back(ob, why);
}

void
outbound_end(struct outbound *ob, unsigned code, const char *text)
{
	struct failure why = failure_make(code, "%s", text);

	give_up(ob, &why);
}

void
outbound_detach(struct outbound *ob, struct transfer *t, bool discard)
{
	outbound_open_drop(ob, t, discard);
	if (ob->state < OUTBOUND_OPEN)
		outbound_end(ob, RWP_E_ABORTED, "its transfer was given up");
}

void
outbound_hang_up(struct outbound *ob)
{
	ob->dial = NULL;
	outbound_end(ob, RWP_E_ABORTED, "it is not needed any more");
}

void
outbound_won(struct outbound *ob, const char *why)
{
	ob->dial = NULL;
	snprintf(ob->fabric_why, sizeof(ob->fabric_why), "%s", why);
}

/* The target is not what it should be. */
static void
fail_target(struct outbound *ob, const struct failure *why)
{
	log_warning("connection to %s: %s", peer_name(ob->peer), why->text);
	give_up(ob, why);
}

static void
fail_protocol(struct outbound *ob, const char *text)
{
	struct failure why = failure_protocol(text);

	fail_target(ob, &why);
}

static void
fail_setup(struct outbound *ob, int error, const char *detail)
{
	struct failure why = failure_setup(error, detail);

	give_up(ob, &why);
}

static void
on_deadline(void *arg)
{
	struct outbound *ob = arg;
	struct failure why;
	char time[TEXT_TIME_MAX];

	if (ob->state == OUTBOUND_OPEN) {
		outbound_end(ob, RWP_E_IDLE, "idle");
		return;
	}
	why = failure_make(RWP_E_TIMEOUT, "no answer within %s (%s)",
	    text_human_time(time, ob->setup_ns), STATES[ob->state]);
	failure_fix(&why, "is rwriterd running there, and does a firewall let it through?");
	give_up(ob, &why);
}

/* ---- what the target says ---- */

static void
push_hello(struct outbound *ob)
{
	struct rwp_record r = {.type = RWP_HELLO};
	uint8_t blob[RWP_BLOB_MAX];
	int len = greeting_hello(ob, area_out_seq(&ob->channel.out), blob);

	if (len < 0 || channel_push(&ob->channel, &r, blob, len, NULL) < 0)
		fail_protocol(ob, "its tail area has no room for a HELLO");
}

static void
on_grant(struct outbound *ob, const struct rwp_record *r, const uint8_t *blob)
{
	struct failure why;

	if (!greeting_grant(ob, r, blob, &why)) {
		fail_target(ob, &why);
		return;
	}
	set_state(ob, OUTBOUND_OPEN);
	event_outbound(ob, EVENT_CONNECTED, 0, NULL);
	flight_mark(&ob->flight, FLIGHT_GRANT, loop_now());
	channel_beat(
	    &ob->channel, ob->grant.beat_ms * NSEC_PER_MSEC, ob->grant.dead_ms * NSEC_PER_MSEC);
	log_info("connection to %s: region %u, %llu bytes, on %s %s", peer_name(ob->peer),
	    ob->grant.region_id, (unsigned long long)ob->grant.size, ob->info.fabric,
	    ob->info.device);
	outbound_open_begin(ob);
}

static void
on_deny(struct outbound *ob, const struct rwp_record *r, const uint8_t *blob)
{
	struct rwp_deny deny;
	struct failure why;

	if (rwp_deny_decode(blob, r->blob_len, RWP_DENY, r->seq, &deny) < 0) {
		fail_protocol(ob, "a malformed denial");
		return;
	}
	memcpy(ob->grant.host, deny.host, sizeof(ob->grant.host));
	why = failure_refused(deny.code, deny.text, deny.fix);
	give_up(ob, &why);
}

static void
on_notice(struct outbound *ob, const struct rwp_record *r, const uint8_t *blob)
{
	struct rwp_deny notice;
	struct failure why;

	if (rwp_deny_decode(blob, r->blob_len, RWP_NOTICE, r->seq, &notice) < 0) {
		fail_protocol(ob, "a malformed notice");
		return;
	}
	why = failure_notice(&notice);
	give_up(ob, &why);
}

static void
on_record(struct channel *ch, const struct rwp_record *r, const uint8_t *blob)
{
	struct outbound *ob = outbound_of(ch);
	struct failure why;

	if (r->type == RWP_NOTICE)
		on_notice(ob, r, blob);
	else if (ob->state == OUTBOUND_OPEN) {
		if (!outbound_open_record(ob, r, blob, &why))
			fail_target(ob, &why);
	} else if (r->type == RWP_GRANT)
		on_grant(ob, r, blob);
	else if (r->type == RWP_DENY)
		on_deny(ob, r, blob);
	else
		fail_protocol(ob, "neither GRANT nor DENY");
}

static void
on_line(struct channel *ch, const struct rwp_line *line)
{
	struct outbound *ob = outbound_of(ch);
	struct failure why;

	if (!outbound_open_line(ob, line, &why))
		fail_target(ob, &why);
}

static void
on_room(struct channel *ch)
{
	outbound_open_room(outbound_of(ch));
}

/* ---- set-up ---- */

static void
on_resolved(struct channel *ch)
{
	struct outbound *ob = outbound_of(ch);
	int error;

	outbound_describe(ob, &ob->info);
	set_state(ob, OUTBOUND_PREPARING);
	flight_mark(&ob->flight, FLIGHT_RESOLVE, loop_now());
	error = channel_map_in(ch, RWP_MAILBOX_SIZE, RWP_MAILBOX_RING_LOG2);
	if (error < 0)
		fail_setup(ob, error, NULL);
}

static int
send_request(struct outbound *ob)
{
	struct fabric_conn *conn = ob->channel.conn;
	uint8_t data[sizeof(struct rwp_request)];
	int error = greeting_request(ob, data);

	if (error < 0)
		return error;
	set_state(ob, OUTBOUND_CONNECTING);
	return conn->fabric->ops->request(conn, data, sizeof(data));
}

/* First the mailbox, later the image of the tail area. */
static void
on_ready(struct channel *ch, int error, const char *detail)
{
	struct outbound *ob = outbound_of(ch);

	if (error == 0 && ob->state == OUTBOUND_PREPARING)
		error = send_request(ob);
	else if (error == 0) {
		channel_listen(ch);
		set_state(ob, OUTBOUND_GREETING);
		push_hello(ob);
		flight_mark(&ob->flight, FLIGHT_HELLO, loop_now());
		/* siw does not see a write that arrives while it accepts (its kernel side changes
		 * hands then), but finds it with the next one: so there is a next one. */
		channel_beat(ch, GREETING_BEAT_NS, ob->core->conf->setup_ns);
	}
	if (error < 0)
		fail_setup(ob, error, detail);
}

static void
on_established(struct channel *ch, const void *data, size_t len)
{
	struct outbound *ob = outbound_of(ch);
	struct failure why;
	uint32_t most;
	int error;

	if (!greeting_reply(ob, data, len, &why)) {
		fail_target(ob, &why);
		return;
	}
	outbound_describe(ob, &ob->info);
	flight_mark(&ob->flight, FLIGHT_CONNECT, loop_now());
	dial_won(ob->dial, ob);
	ob->setup_ns = ob->core->conf->setup_ns;
	loop_timer_set(ob->deadline, ob->setup_ns);
	channel_set_remote(ch, ob->reply.tail_addr, ob->reply.tail_rkey);
	most = rwp_blob_offset(ob->reply.ring_log2) + TAIL_BLOB_MAX;
	error = channel_map_out(
	    ch, ob->reply.tail_len < most ? ob->reply.tail_len : most, ob->reply.ring_log2);
	if (error < 0)
		fail_setup(ob, error, NULL);
}

static struct outbound *
outbound_free(struct outbound *ob)
{
	if (ob == NULL)
		return NULL;
	list_del(&ob->node);
	loop_timer_free(ob->deadline);
	auth_done(&ob->auth);
	free(ob);
	return NULL;
}

static void
bury(struct loop_task *task)
{
	outbound_free(container_of(task, struct outbound, grave));
}

static int
start(struct outbound *ob, struct core_fabric *fabric)
{
	int error;

	if (loop_timer_new(ob->core->env.loop, on_deadline, ob, &ob->deadline) < 0 ||
	    channel_init(&ob->channel, ob->core, &CHANNEL_OPS, NULL) < 0)
		return -ENOMEM;
	error = channel_connect(
	    &ob->channel, fabric->ops, fabric->fabric, (struct sockaddr *)&ob->address);
	if (error < 0)
		channel_done(&ob->channel);
	return error;
}

int
outbound_new(struct peer *peer, struct core_fabric *fabric, const struct sockaddr *address,
    const struct transfer *t, struct dial *dial, uint64_t setup_ns, struct outbound **ret)
{
	struct outbound *ob = calloc(1, sizeof(*ob));
	int error;

	if (ob == NULL)
		return -ENOMEM;
	ob->core = peer_core(peer);
	ob->peer = peer;
	ob->dial = dial;
	ob->wanted = t->wanted;
	ob->setup_ns = setup_ns;
	ob->since = clock_realtime();
	ob->info.fabric = fabric->ops->name;
	list_init(&ob->node);
	outbound_open_init(&ob->open);
	loop_task_init(&ob->grave, bury);
	memcpy(&ob->address, address,
	    address->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
					   : sizeof(struct sockaddr_in));
	memcpy(ob->region, t->region, sizeof(ob->region));
	error = start(ob, fabric);
	if (error < 0) {
		outbound_free(ob);
		return error;
	}
	ob->core->connections++;
	loop_timer_set(ob->deadline, setup_ns);
	peer_add(peer, ob);
	*ret = ob;
	return 0;
}

/* ---- OUTBOUND_CLOSED ---- */

static void
on_closed(struct channel *ch, const struct fabric_event *event)
{
	struct outbound *ob = outbound_of(ch);
	struct failure why;
	enum outbound_state state = ob->state;

	outbound_describe(ob, &ob->info);
	registration_drop(&ob->open.sender.staging.reg);
	set_state(ob, OUTBOUND_CLOSED);
	if (state >= OUTBOUND_ENDING)
		return;
	why = failure_closed(event, state == OUTBOUND_OPEN, (struct sockaddr *)&ob->info.local);
	give_up(ob, &why);
}

static void
on_broken(struct channel *ch, enum rwp_code code, const char *text)
{
	struct outbound *ob = outbound_of(ch);

	if (code == RWP_E_PROTOCOL)
		fail_protocol(ob, text);
	else
		outbound_end(ob, code, text);
}

static void
on_gone(struct channel *ch)
{
	struct outbound *ob = outbound_of(ch);
	struct core *core = ob->core;

	outbound_open_done(&ob->open);
	channel_done(ch);
	core->connections--;
	list_del(&ob->node);
	peer_outbound_gone(ob->peer, &ob->failure);
	loop_bury(core->env.loop, &ob->grave);
	core_changed(core);
}

static const struct channel_ops CHANNEL_OPS = {
    .resolved = on_resolved,
    .ready = on_ready,
    .established = on_established,
    .record = on_record,
    .line = on_line,
    .room = on_room,
    .broken = on_broken,
    .closed = on_closed,
    .gone = on_gone,
};

/* ---- looking ---- */

void
outbound_describe(struct outbound *ob, struct fabric_info *ret)
{
	struct fabric_info info = ob->info;

	if (ob->channel.conn != NULL)
		ob->channel.conn->fabric->ops->describe(ob->channel.conn, &info);
	*ret = info;
}

void
outbound_view(struct outbound *ob, struct peer_view *ret)
{
	outbound_describe(ob, &ob->info);
	*ret = (struct peer_view){
	    .direction = "out",
	    .state = STATES[ob->state],
	    .fabric = ob->info.fabric,
	    .keyed = ob->auth.keyed && ob->state == OUTBOUND_OPEN,
	    .since = ob->since,
	    .transfers = ob->open.transfers,
	    .queued = outbound_open_count(ob),
	};
	memcpy(ret->claimed_name, ob->grant.host, sizeof(ret->claimed_name));
	memcpy(ret->fabric_why, ob->fabric_why, sizeof(ret->fabric_why));
	memcpy(ret->device, ob->info.device, sizeof(ret->device));
	text_address_port(ret->address, (const struct sockaddr *)&ob->address);
}
