/* inbound.c -- the target's side of a connection: admission, hello, grant, transfers, end */

#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "base/text.h"
#include "core/admission.h"
#include "core/arrival.h"
#include "core/channel.h"
#include "core/event.h"
#include "core/hello.h"
#include "core/inbound.h"
#include "core/listener.h"
#include "core/priv.h"
#include "core/refusal.h"
#include "core/region.h"
#include "core/sink.h"

#define TAIL_SIZE      RWP_TAIL_MIN_SIZE
#define TAIL_RING_LOG2 6

/* The longest answer to a record: a DENY or failed RESULT with its texts. */
#define ANSWER_MAX 1280

#define FOREVER_NS (365 * 24 * 3600 * NSEC_PER_SEC)

static const char *const STATES[] = {
    [INBOUND_PREPARING] = "preparing",
    [INBOUND_ACCEPTING] = "accepting",
    [INBOUND_GREETING] = "greeting",
    [INBOUND_GRANTING] = "granting",
    [INBOUND_OPEN] = "open",
    [INBOUND_ENDING] = "ending",
    [INBOUND_CLOSED] = "closed",
};

static const struct channel_ops CHANNEL_OPS;

static struct inbound *
inbound_of(struct channel *ch)
{
	return container_of(ch, struct inbound, channel);
}

/* ---- state ---- */

/* A stream may pause for as long as its writer beats: what feeds it may be a person. So may a
 * writer that compares what is there with what it has. */
static uint64_t
state_deadline(const struct inbound *in)
{
	const struct conf *conf = in->core->conf;

	if (in->state < INBOUND_GRANTING)
		return conf->hello_ns;
	if (in->state < INBOUND_OPEN)
		return conf->setup_ns;
	if (!arrival_open(&in->arrival))
		return conf->idle_ns;
	if (arrival_is_stream(&in->arrival) || in->arrival.resumes)
		return FOREVER_NS;
	return conf->stall_ns;
}

static void
set_state(struct inbound *in, enum inbound_state state)
{
	log_debug("connection from %s: %s -> %s", in->peer, STATES[in->state], STATES[state]);
	in->state = state;
	if (state == INBOUND_GRANTING || state == INBOUND_OPEN)
		loop_timer_set(in->deadline, state_deadline(in));
	else if (state >= INBOUND_ENDING)
		loop_timer_clear(in->deadline);
	core_changed(in->core);
}

static void
on_deadline(void *arg)
{
	struct inbound *in = arg;

	if (in->state < INBOUND_OPEN)
		inbound_end(in, RWP_E_TIMEOUT, "the set-up took too long");
	else if (arrival_open(&in->arrival))
		inbound_end(in, RWP_E_TIMEOUT, "the transfer stands still");
	else
		inbound_end(in, RWP_E_IDLE, "idle");
}

/* Only what a transfer needs puts off the deadline, not any record. */
static void
note_progress(struct inbound *in)
{
	if (in->progress == in->arrival.progress)
		return;
	in->progress = in->arrival.progress;
	loop_timer_set(in->deadline, state_deadline(in));
}

/* Records are taken while no payload is being verified and there is room for an answer. */
static void
pause_or_go(struct inbound *in)
{
	channel_pause(&in->channel,
	    arrival_busy(&in->arrival) || !area_out_room(&in->channel.out, ANSWER_MAX));
}

/* ---- words to the peer ---- */

static void
push_word(struct inbound *in, unsigned type, struct rwp_deny *word)
{
	struct rwp_record r = {.type = type};
	uint8_t blob[RWP_BLOB_MAX];
	int len;

	memcpy(word->host, in->core->conf->name, sizeof(word->host));
	len = rwp_deny_encode(word, type, area_out_seq(&in->channel.out), blob, sizeof(blob));
	if (len > 0)
		channel_push(&in->channel, &r, blob, len, NULL);
}

void
inbound_end(struct inbound *in, unsigned code, const char *text)
{
	struct rwp_deny notice = {.code = code};

	if (in->state >= INBOUND_ENDING)
		return;
	log_info("connection from %s: ended: %s", in->peer, text);
	event_inbound(in, EVENT_DISCONNECTED, code, text);
	/* Otherwise the writer hears why before its writes fail (protocol rule 11). */
	if (in->region != NULL && (code == RWP_E_RELEASED || code == RWP_E_PROTOCOL))
		region_revoke(in->region);
	/* The target says nothing before the writer's first record: iWARP (protocol rule 4). */
	if (in->channel.in.next_seq > 1 && code != 0) {
		snprintf(notice.text, sizeof(notice.text), "%s", text);
		push_word(in, RWP_NOTICE, &notice);
	}
	set_state(in, INBOUND_ENDING);
	channel_end(&in->channel);
}

static void
say_deny(struct inbound *in, struct rwp_deny *why)
{
	push_word(in, RWP_DENY, why);
	set_state(in, INBOUND_ENDING);
	channel_end(&in->channel);
}

static void
deny(struct inbound *in, struct rwp_deny *why)
{
	log_warning("connection from %s (%s): denied: %s%s%s", in->peer, in->hello.writer,
	    why->text, why->fix[0] != '\0' ? "; " : "", why->fix);
	refusal_tally(in->core, REFUSED_OTHER);
	event_inbound(in, EVENT_REFUSED, why->code, why->text);
	say_deny(in, why);
}

static void
refuse(struct inbound *in, const struct refusal *refusal)
{
	struct rwp_deny why = {.code = refusal->code, .retry_ms = refusal->retry_ms};

	refusal_note(in->core, (const struct sockaddr *)&in->info.remote, refusal);
	snprintf(why.text, sizeof(why.text), "%s", refusal->text);
	say_deny(in, &why);
}

/* ---- hello and grant ---- */

/* From now on it counts among the connections, and by the name that it has proved. */
static bool
take_in(struct inbound *in, struct refusal *refusal)
{
	struct core *core = in->core;

	if (!admission_has_room(core, refusal))
		return false;
	core->unproven--;
	core->connections++;
	in->proven = true;
	if (in->auth.keyed)
		snprintf(in->peer, sizeof(in->peer), "%s", in->hello.writer);
	return true;
}

static void
on_hello(struct inbound *in, const struct rwp_record *r, const uint8_t *blob)
{
	const struct conf_region *conf;
	struct rwp_deny why = {0};
	struct refusal refusal = {0};
	uint64_t size;
	int error;

	error = r->type == RWP_HELLO ? rwp_hello_decode(blob, r->blob_len, r->seq, &in->hello)
				     : -EBADMSG;
	if (error == -EPROTONOSUPPORT) {
		why.code = RWP_E_UNSUPPORTED;
		snprintf(why.text, sizeof(why.text), "the HELLO asks for what is not known here");
		deny(in, &why);
		return;
	}
	if (error < 0) {
		inbound_end(in, RWP_E_PROTOCOL, "the first record is no well-formed HELLO");
		return;
	}
	if (in->hello.region[0] == '\0')
		strcpy(in->hello.region, "default");
	if (!hello_proved(in, blob, r->blob_len, &refusal) || !take_in(in, &refusal)) {
		refuse(in, &refusal);
		return;
	}
	conf = hello_check(in->core, &in->hello, in->generation, &why);
	if (conf == NULL) {
		deny(in, &why);
		return;
	}
	size = hello_size(&in->hello, conf);
	error = region_new(in->core, in, conf, size, &in->region);
	if (error < 0) {
		hello_no_memory(in->core, &in->hello, size * conf->buffers, error, NULL, &why);
		deny(in, &why);
		return;
	}
	set_state(in, INBOUND_GRANTING);
	event_inbound(in, EVENT_CONNECTED, 0, NULL);
	flight_begin(&in->region->flight, loop_now());
}

/* In a ring, even a piece for which the writer has to skip to the start finds its room. */
static uint32_t
segment(const struct region *region)
{
	uint64_t most = region->sink->ring ? region->size / 4 : region->size;

	return most < LIMIT_SEGMENT ? most : LIMIT_SEGMENT;
}

static int
push_grant(struct inbound *in)
{
	const struct conf *conf = in->core->conf;
	struct rwp_grant grant = {
	    .address = in->region->reg.mem->remote_addr,
	    .rkey = in->region->reg.mem->rkey,
	    .size = in->region->size,
	    .generation = in->generation,
	    .sink = in->region->sink->kind,
	    .segment = segment(in->region),
	    .in_flight = in->region->size,
	    .beat_ms = conf->beat_ns / NSEC_PER_MSEC,
	    .dead_ms = conf->dead_ns / NSEC_PER_MSEC,
	    .region_id = in->region->id,
	    .buffers = in->region->buffers > 1 ? in->region->buffers : 0,
	};
	struct rwp_record r = {.type = RWP_GRANT, .grant = in->generation};
	uint8_t blob[RWP_BLOB_MAX];
	int len;

	memcpy(grant.host, conf->name, sizeof(grant.host));
	len = rwp_grant_encode(&grant, area_out_seq(&in->channel.out), blob, sizeof(blob));
	if (len > 0)
		len = hello_answer(in, blob, sizeof(blob), len);
	if (len < 0)
		return len;
	channel_push(&in->channel, &r, blob, len, NULL);
	if (in->auth.keyed)
		channel_key(&in->channel, in->auth.writer_key, in->auth.target_key);
	return 0;
}

static void
arrival_idle(struct arrival *a)
{
	struct inbound *in = container_of(a, struct inbound, arrival);

	if (in->state != INBOUND_OPEN)
		return;
	note_progress(in);
	pause_or_go(in);
}

void
inbound_region_ready(struct inbound *in, int error, const char *detail)
{
	struct rwp_deny why = {0};

	if (in->state != INBOUND_GRANTING)
		return;
	if (error == 0)
		error = arrival_init(
		    &in->arrival, &in->channel, in->region, in->region->sink, arrival_idle);
	if (error == 0)
		error = push_grant(in);
	if (error < 0) {
		hello_no_memory(
		    in->core, &in->hello, region_bytes(in->region), error, detail, &why);
		deny(in, &why);
		return;
	}
	in->region->granted_at = clock_realtime();
	in->channel.line.grant = in->generation;
	channel_beat(&in->channel, in->core->conf->beat_ns, in->core->conf->dead_ns);
	set_state(in, INBOUND_OPEN);
	event_inbound(in, EVENT_GRANTED, 0, NULL);
	flight_mark(&in->region->flight, FLIGHT_GRANT, loop_now());
	log_info("region %u: %llu bytes granted to %s (%s) on %s %s", in->region->id,
	    (unsigned long long)in->region->size, in->peer, in->hello.writer, in->info.fabric,
	    in->info.device);
}

/* ---- records while open ---- */

static void
on_transfer_record(struct inbound *in, const struct rwp_record *r, const uint8_t *blob)
{
	const char *text = NULL;

	if (r->grant != in->generation && r->type != RWP_ABORT)
		inbound_end(in, RWP_E_PROTOCOL, "a record names another grant");
	else if (arrival_record(&in->arrival, r, blob, &text) < 0)
		inbound_end(in, RWP_E_PROTOCOL, text);
}

static void
on_bye(struct inbound *in, const struct rwp_record *r, const uint8_t *blob)
{
	(void)r;
	(void)blob;
	inbound_end(in, 0, "the writer said good-bye");
}

static void (*const RECORDS[])(struct inbound *, const struct rwp_record *, const uint8_t *) = {
    [RWP_BEGIN] = on_transfer_record,
    [RWP_DATA] = on_transfer_record,
    [RWP_HOLE] = on_transfer_record,
    [RWP_END] = on_transfer_record,
    [RWP_ONE] = on_transfer_record,
    [RWP_ABORT] = on_transfer_record,
    [RWP_BYE] = on_bye,
};

static void
on_record_open(struct inbound *in, const struct rwp_record *r, const uint8_t *blob)
{
	if (r->type < sizeof(RECORDS) / sizeof(RECORDS[0]) && RECORDS[r->type] != NULL)
		RECORDS[r->type](in, r, blob);
	else if (rwp_type_name(r->type) != NULL && r->type != RWP_GROW)
		inbound_end(in, RWP_E_PROTOCOL, "a record that has no place here");
	else if (r->flags & RWP_MUST_UNDERSTAND || r->type == RWP_GROW)
		inbound_end(in, RWP_E_UNSUPPORTED, "a record that is not known here");
	if (in->state != INBOUND_OPEN)
		return;
	note_progress(in);
	pause_or_go(in);
}

static void
on_record(struct channel *ch, const struct rwp_record *r, const uint8_t *blob)
{
	struct inbound *in = inbound_of(ch);

	switch (in->state) {
	case INBOUND_ACCEPTING: /* the record was faster than the event */
	case INBOUND_GREETING:
		on_hello(in, r, blob);
		break;
	case INBOUND_OPEN:
		on_record_open(in, r, blob);
		break;
	default:
		if (r->type == RWP_BYE)
			on_bye(in, r, blob);
		else
			inbound_end(in, RWP_E_PROTOCOL, "a record before the grant");
	}
}

static void
on_room(struct channel *ch)
{
	struct inbound *in = inbound_of(ch);

	if (in->state != INBOUND_OPEN)
		return;
	arrival_heard(&in->arrival, ch->out.consumed);
	if (ch->paused)
		pause_or_go(in);
}

/* ---- set-up ---- */

static void
accept_now(struct channel *ch, int error, const char *detail)
{
	struct inbound *in = inbound_of(ch);
	struct rwp_reply reply = {
	    .version = RWP_VERSION,
	    .ring_log2 = TAIL_RING_LOG2,
	    .fabric = in->info.kind,
	    .flags = in->auth.keyed ? RWP_KEYED : 0,
	    .tail_len = TAIL_SIZE,
	    .generation = in->generation,
	};
	uint8_t data[sizeof(reply)];

	if (error == 0) {
		reply.tail_rkey = ch->in_reg.mem->rkey;
		reply.tail_addr = ch->in_reg.mem->remote_addr;
		memcpy(reply.boot_id, in->core->boot_id, sizeof(reply.boot_id));
		if (in->auth.keyed)
			random_bytes(reply.nonce, sizeof(reply.nonce));
		rwp_reply_encode(&reply, data);
		auth_reply(&in->auth, data, sizeof(data));
		set_state(in, INBOUND_ACCEPTING);
		error = ch->conn->fabric->ops->accept(ch->conn, data, sizeof(data));
	}
	if (error < 0)
		inbound_end(in, RWP_E_MEMORY, detail != NULL ? detail : strerror(-error));
	else
		channel_listen(ch);
}

static void
on_established(struct channel *ch, const void *data, size_t len)
{
	struct inbound *in = inbound_of(ch);

	(void)data;
	(void)len;
	if (in->state == INBOUND_ACCEPTING)
		set_state(in, INBOUND_GREETING);
}

static struct inbound *
inbound_free(struct inbound *in)
{
	if (in == NULL)
		return NULL;
	list_del(&in->node);
	loop_timer_free(in->deadline);
	auth_done(&in->auth);
	free(in);
	return NULL;
}

static void
bury(struct loop_task *task)
{
	inbound_free(container_of(task, struct inbound, grave));
}

static int
inbound_new(struct core *core, struct listener *listener, struct fabric_conn *conn,
    const struct fabric_info *info, const struct rwp_request *request, struct inbound **ret)
{
	struct inbound *in = calloc(1, sizeof(*in));

	if (in == NULL)
		return -ENOMEM;
	in->core = core;
	in->info = *info;
	in->since = clock_realtime();
	in->generation = ++core->last_generation;
	list_init(&in->node);
	loop_task_init(&in->grave, bury);
	core_peer_name(core, (const struct sockaddr *)&info->remote, in->peer);
	memcpy(in->listen, listener_name(listener), sizeof(in->listen));
	listener_why(listener, in->fabric_why, sizeof(in->fabric_why));
	if (loop_timer_new(core->env.loop, on_deadline, in, &in->deadline) < 0 ||
	    channel_init(&in->channel, core, &CHANNEL_OPS, conn) < 0) {
		inbound_free(in);
		return -ENOMEM;
	}
	channel_set_remote(&in->channel, request->mailbox_addr, request->mailbox_rkey);
	list_add_tail(&core->inbounds, &in->node);
	core->unproven++;
	*ret = in;
	return 0;
}

void
inbound_request(struct core *core, struct listener *listener, const struct fabric_event *event)
{
	struct refusal refusal = {0};
	const struct conf_peer *peer;
	struct rwp_request request;
	struct fabric_info info;
	struct inbound *in;

	event->conn->fabric->ops->describe(event->conn, &info);
	if (!admission_check(core, listener, &info, event, &request, &peer, &refusal)) {
		refusal_reject(core, event->conn, &info, &refusal);
		return;
	}
	if (inbound_new(core, listener, event->conn, &info, &request, &in) < 0) {
		refusal_set(&refusal, RWP_E_MEMORY, "%s", rwp_code_text(RWP_E_MEMORY));
		refusal_reject(core, event->conn, &info, &refusal);
		return;
	}
	if (peer != NULL)
		auth_start(&in->auth, peer->key, event->data, request.length);
	loop_timer_set(in->deadline, state_deadline(in));
	log_debug("connection from %s on [listen %s], %s %s", in->peer, in->listen, info.fabric,
	    info.device);
	if (channel_map_in(&in->channel, TAIL_SIZE, TAIL_RING_LOG2) < 0 ||
	    channel_map_out(&in->channel, RWP_MAILBOX_SIZE, RWP_MAILBOX_RING_LOG2) < 0)
		inbound_end(in, RWP_E_MEMORY, "out of memory");
}

/* ---- the end ---- */

static void
on_broken(struct channel *ch, enum rwp_code code, const char *text)
{
	inbound_end(inbound_of(ch), code, text);
}

static void
on_closed(struct channel *ch, const struct fabric_event *event)
{
	struct inbound *in = inbound_of(ch);

	if (in->state < INBOUND_ENDING) {
		log_info("connection from %s: closed: %s%s%s", in->peer,
		    fabric_cause_name(event->cause), event->detail != NULL ? ": " : "",
		    event->detail != NULL ? event->detail : "");
		event_inbound(in, EVENT_DISCONNECTED, 0, fabric_cause_name(event->cause));
	}
	set_state(in, INBOUND_CLOSED);
	ch->conn->fabric->ops->describe(ch->conn, &in->info);
	if (in->arrival.channel != NULL)
		arrival_abandon(&in->arrival);
	if (in->region != NULL)
		region_revoke(in->region);
}

static void
on_gone(struct channel *ch)
{
	struct inbound *in = inbound_of(ch);
	struct core *core = in->core;

	if (in->region != NULL)
		region_detach(in->region);
	arrival_done(&in->arrival);
	channel_done(ch);
	if (in->proven)
		core->connections--;
	else
		core->unproven--;
	list_del(&in->node);
	loop_bury(core->env.loop, &in->grave);
	core_changed(core);
}

static const struct channel_ops CHANNEL_OPS = {
    .ready = accept_now,
    .established = on_established,
    .record = on_record,
    .room = on_room,
    .broken = on_broken,
    .closed = on_closed,
    .gone = on_gone,
};

/* ---- looking ---- */

void
inbound_describe(struct inbound *in, struct fabric_info *ret)
{
	if (in->channel.conn != NULL)
		in->channel.conn->fabric->ops->describe(in->channel.conn, &in->info);
	*ret = in->info;
}

const char *
inbound_state_name(const struct inbound *in)
{
	return STATES[in->state];
}
