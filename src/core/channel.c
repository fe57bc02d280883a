/* channel.c -- one connection's plumbing: areas, records, lines, beats, and the way down */

#include "config.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "base/page.h"
#include "core/channel.h"
#include "core/priv.h"

/* A last record (BYE, NOTICE, DENY) gets so long to leave (protocol rule 11). */
#define LAST_WORD_NS (100 * NSEC_PER_MSEC)
/* A record that its flag has overtaken is looked at again so soon (protocol rule 2). */
#define AGAIN_NS NSEC_PER_MSEC

static bool poll_channel(struct poll_entry *entry);
static void beat(void *arg);
static void look_again(void *arg);
static void stop_now(void *arg);
static void flush(struct loop_task *task);
static void tell_gone(struct loop_task *task);

static const struct fabric_ops *
fabric_of(const struct channel *ch)
{
	return ch->conn->fabric->ops;
}

int
channel_init(
    struct channel *ch, struct core *core, const struct channel_ops *ops, struct fabric_conn *conn)
{
	memset(ch, 0, sizeof(*ch));
	ch->core = core;
	ch->ops = ops;
	if (loop_timer_new(core->env.loop, beat, ch, &ch->beat_timer) < 0 ||
	    loop_timer_new(core->env.loop, stop_now, ch, &ch->end_timer) < 0 ||
	    loop_timer_new(core->env.loop, look_again, ch, &ch->again_timer) < 0) {
		loop_timer_free(ch->end_timer);
		loop_timer_free(ch->beat_timer);
		return -ENOMEM;
	}
	poll_entry_init(&ch->poll, core->poller, poll_channel);
	ch->line.state = RWP_LINE_OPEN;
	loop_task_init(&ch->flush_task, flush);
	loop_task_init(&ch->gone_task, tell_gone);
	ch->conn = conn;
	if (conn != NULL)
		conn->owner = ch;
	return 0;
}

void
channel_done(struct channel *ch)
{
	loop_timer_free(ch->beat_timer);
	loop_timer_free(ch->end_timer);
	loop_timer_free(ch->again_timer);
	poll_entry_stop(&ch->poll);
	loop_undefer(&ch->flush_task);
	loop_undefer(&ch->gone_task);
	area_out_done(&ch->out);
	if (ch->in_map != NULL)
		munmap(ch->in_map, ch->in_size);
	if (ch->out_map != NULL)
		munmap(ch->out_map, ch->out_size);
}

int
channel_connect(struct channel *ch, const struct fabric_ops *ops, struct fabric *fabric,
    const struct sockaddr *to)
{
	return ops->connect(fabric, to, ch, &ch->conn);
}

/* ---- registrations ---- */

int
registration_add(
    struct registration *r, struct channel *ch, void *addr, size_t len, unsigned access)
{
	int error;

	if (ch->phase == CHANNEL_CLOSED)
		return -ENOTCONN;
	r->channel = ch;
	r->ready = r->dropping = false;
	error = fabric_of(ch)->mem_add(ch->conn, addr, len, access, r, &r->mem);
	if (error == 0)
		channel_hold(ch);
	return error;
}

void
registration_drop(struct registration *r)
{
	if (r->mem == NULL || r->dropping)
		return;
	r->dropping = true;
	if (r->ready)
		fabric_of(r->channel)->mem_drop(r->mem);
}

bool
registration_crc(const struct registration *r, const void *addr, size_t len, uint32_t *ret_crc)
{
	bool (*placed_crc)(struct fabric_mem *, const void *, size_t, uint32_t *);

	if (!r->ready || r->dropping)
		return false;
	placed_crc = fabric_of(r->channel)->placed_crc;
	return placed_crc != NULL && placed_crc(r->mem, addr, len, ret_crc);
}

static void
registration_gone(struct registration *r)
{
	struct channel *ch = r->channel;

	r->mem = NULL;
	r->ready = r->dropping = false;
	if (r->on_gone != NULL)
		r->on_gone(r);
	channel_release(ch);
}

void
registration_event(struct registration *r, const struct fabric_event *event)
{
	if (event->type == FABRIC_MEM_GONE) {
		registration_gone(r);
		return;
	}
	if (event->error == 0)
		r->ready = true;
	if (r->dropping) {
		if (r->ready)
			fabric_of(r->channel)->mem_drop(r->mem);
		else
			registration_gone(r);
		return;
	}
	if (event->error < 0)
		r->mem = NULL;
	r->on_ready(r, event->error, event->detail);
	if (event->error < 0)
		channel_release(r->channel);
}

/* ---- areas ---- */

static void
area_ready(struct registration *r, int error, const char *detail)
{
	struct channel *ch = r->channel;

	if (error < 0 && ch->areas_error == 0)
		ch->areas_error = error;
	if (--ch->areas_pending == 0 && ch->phase < CHANNEL_ENDING)
		ch->ops->ready(ch, ch->areas_error, detail);
}

static int
map_area(struct channel *ch, size_t size, unsigned access, uint8_t **map, size_t *map_size,
    struct registration *r)
{
	void *addr;

	size = page_round(size);
	addr = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (addr == MAP_FAILED)
		return -errno;
	*map = addr;
	*map_size = size;
	r->on_ready = area_ready;
	ch->areas_pending++;
	return registration_add(r, ch, addr, size, access);
}

int
channel_map_in(struct channel *ch, size_t size, unsigned ring_log2)
{
	int error = map_area(ch, size, FABRIC_REMOTE_WRITE, &ch->in_map, &ch->in_size, &ch->in_reg);

	if (error == 0)
		area_in_init(&ch->in, ch->in_map, size, ring_log2);
	return error;
}

int
channel_map_out(struct channel *ch, size_t size, unsigned ring_log2)
{
	int error = map_area(ch, size, 0, &ch->out_map, &ch->out_size, &ch->out_reg);

	return error < 0 ? error : area_out_init(&ch->out, ch->out_map, size, ring_log2);
}

void
channel_set_remote(struct channel *ch, uint64_t addr, uint32_t rkey)
{
	ch->remote_area = addr;
	ch->remote_rkey = rkey;
}

void
channel_key(struct channel *ch, const uint8_t *in, const uint8_t *out)
{
	ch->in.key = in;
	ch->out.key = out;
}

/* ---- out: records and lines to the fabric ---- */

static struct fabric_write
area_write(struct channel *ch, uint32_t offset, uint32_t len)
{
	return (struct fabric_write){
	    .mem = ch->out_reg.mem,
	    .addr = ch->out_map + offset,
	    .len = len,
	    .remote_addr = ch->remote_area + offset,
	    .rkey = ch->remote_rkey,
	};
}

/* Payload, blob, record: each a write of its own, in this order, with one doorbell. */
static int
post_record(struct channel *ch, uint64_t seq)
{
	const struct area_slot *slot = area_out_slot(&ch->out, seq);
	struct fabric_write w[FABRIC_WRITES_MAX];
	unsigned n = 0;

	if (slot->payload.mem != NULL)
		w[n++] = (struct fabric_write){
		    .mem = slot->payload.mem,
		    .addr = slot->payload.addr,
		    .len = slot->payload.len,
		    .remote_addr = slot->payload.remote_addr,
		    .rkey = slot->payload.rkey,
		};
	if (slot->blob_len > 0)
		w[n++] = area_write(
		    ch, rwp_blob_offset(ch->out.ring_log2) + slot->blob_off, slot->blob_len);
	w[n] = area_write(ch, area_out_offset(&ch->out, seq), RWP_RECORD_SIZE);
	w[n++].cookie = seq;
	return fabric_of(ch)->write(ch->conn, w, n);
}

static int
post_line(struct channel *ch)
{
	struct fabric_write w = area_write(ch, RWP_LINE_OFFSET, sizeof(struct rwp_line));
	int error;

	ch->line.beat++;
	area_out_line(&ch->out, &ch->line);
	error = fabric_of(ch)->write(ch->conn, &w, 1);
	if (error < 0)
		ch->line.beat--;
	else
		ch->line_dirty = false;
	return error;
}

static int
post_all(struct channel *ch)
{
	int error;

	while (ch->out.posted < ch->out.pushed) {
		error = post_record(ch, ch->out.posted + 1);
		if (error < 0)
			return error;
		ch->out.posted++;
		poll_entry_kick(&ch->poll); /* an answer may be near: look often again */
	}
	return ch->line_dirty ? post_line(ch) : 0;
}

static void
flush(struct loop_task *task)
{
	struct channel *ch = container_of(task, struct channel, flush_task);
	int error;

	if (ch->phase == CHANNEL_OPENING || ch->phase >= CHANNEL_STOPPING)
		return;
	error = post_all(ch);
	/* -EAGAIN: a WRITTEN will come; -ENOTCONN: ESTABLISHED or CLOSED will. */
	if (error < 0 && error != -EAGAIN && error != -ENOTCONN && ch->phase == CHANNEL_UP)
		ch->ops->broken(ch, RWP_E_INTERNAL, strerror(-error));
}

static void
flush_soon(struct channel *ch)
{
	loop_defer(ch->core->env.loop, &ch->flush_task);
}

int
channel_push(struct channel *ch, struct rwp_record *r, const void *blob, uint32_t blob_len,
    const struct area_payload *payload)
{
	int error;

	if (ch->phase >= CHANNEL_ENDING || ch->out.slots == NULL)
		return -ENOTCONN;
	error = area_out_push(&ch->out, r, blob, blob_len, payload);
	if (error == 0)
		flush_soon(ch);
	return error;
}

void
channel_line(struct channel *ch)
{
	ch->line_dirty = true;
	flush_soon(ch);
}

/* ---- in: records and lines from the peer ---- */

/* True if it says more than that the peer lives: a bare beat is no reason to look more often. */
static bool
take_line(struct channel *ch)
{
	struct rwp_line line;
	bool news;

	if (area_in_line(&ch->in, &line) < 0)
		return false;
	ch->heard_at = loop_now();
	news = line.consumed != ch->out.consumed || line.arrived != ch->arrived;
	ch->arrived = line.arrived;
	if (area_out_consumed(&ch->out, line.consumed) < 0) {
		ch->ops->broken(ch, RWP_E_PROTOCOL, "its line takes back or invents records");
		return true;
	}
	if (ch->ops->line != NULL)
		ch->ops->line(ch, &line);
	if (ch->ops->room != NULL && ch->phase == CHANNEL_UP)
		ch->ops->room(ch);
	return news;
}

/* A record counts as consumed when the owner is ready for the next: its payload is verified then.
 */
static void
acknowledge(struct channel *ch)
{
	if (ch->paused || ch->line.consumed == ch->in.next_seq - 1)
		return;
	ch->line.consumed = ch->in.next_seq - 1;
	channel_line(ch);
}

static const char *
record_error_text(int error)
{
	return error == -EBADMSG ? "a record or its blob is damaged"
				 : "a record is out of sequence";
}

static bool
take_record(struct channel *ch)
{
	struct rwp_record r;
	int error = area_in_record(&ch->in, loop_now(), &r, ch->blob);

	if (error == -EAGAIN) {
		if (ch->in.suspect_since != 0)
			loop_timer_set(ch->again_timer, AGAIN_NS);
		return false;
	}
	if (error < 0) {
		ch->ops->broken(ch, RWP_E_PROTOCOL, record_error_text(error));
		return false;
	}
	ch->heard_at = loop_now();
	ch->ops->record(ch, &r, ch->blob);
	acknowledge(ch);
	return true;
}

static bool
poll_channel(struct poll_entry *entry)
{
	struct channel *ch = container_of(entry, struct channel, poll);
	bool any = false;

	if (ch->phase != CHANNEL_UP)
		return false;
	any = take_line(ch);
	for (unsigned i = 0; i < LIMIT_RECORDS_PER_POLL; i++) {
		if (ch->phase != CHANNEL_UP || ch->paused || !take_record(ch))
			return any;
		any = true;
	}
	poll_entry_again(entry); /* more may be there: after the others' turn */
	return any;
}

/* A record that is not whole is looked at by time, whether or not the fabric hints. */
static void
look_again(void *arg)
{
	struct channel *ch = arg;

	poll_channel(&ch->poll);
}

void
channel_listen(struct channel *ch)
{
	struct fabric_info info;

	fabric_of(ch)->describe(ch->conn, &info);
	ch->phase = CHANNEL_UP;
	ch->heard_at = loop_now();
	if (info.polled)
		poll_entry_start(&ch->poll);
	else
		poll_entry_kick(&ch->poll);
}

void
channel_pause(struct channel *ch, bool paused)
{
	ch->paused = paused;
	if (paused || ch->phase != CHANNEL_UP)
		return;
	acknowledge(ch);
	poll_entry_again(&ch->poll);
}

/* ---- beats ---- */

static void
beat(void *arg)
{
	struct channel *ch = arg;

	if (ch->phase != CHANNEL_UP)
		return;
	/* Beats of the peer are looked at here too: the fabric's hint is only a hint. */
	poll_channel(&ch->poll);
	if (ch->phase != CHANNEL_UP)
		return;
	if (loop_now() - ch->heard_at > ch->dead_ns) {
		ch->ops->broken(ch, RWP_E_TIMEOUT, "no sign of life");
		return;
	}
	channel_line(ch);
	loop_timer_set(ch->beat_timer, ch->beat_ns);
}

void
channel_beat(struct channel *ch, uint64_t beat_ns, uint64_t dead_ns)
{
	ch->beat_ns = beat_ns;
	ch->dead_ns = dead_ns;
	ch->heard_at = loop_now();
	channel_line(ch);
	loop_timer_set(ch->beat_timer, beat_ns);
}

/* ---- the way down ---- */

static void
stop_now(void *arg)
{
	struct channel *ch = arg;

	loop_timer_clear(ch->end_timer);
	poll_entry_stop(&ch->poll);
	ch->phase = CHANNEL_STOPPING;
	if (!ch->down)
		fabric_of(ch)->stop(ch->conn);
}

void
channel_end(struct channel *ch)
{
	if (ch->phase >= CHANNEL_ENDING)
		return;
	loop_timer_clear(ch->beat_timer);
	if (ch->phase == CHANNEL_UP && !ch->down && ch->out.written < ch->out.pushed) {
		ch->phase = CHANNEL_ENDING;
		poll_entry_stop(&ch->poll);
		loop_timer_set(ch->end_timer, LAST_WORD_NS);
		flush_soon(ch);
	} else {
		stop_now(ch);
	}
}

static void
tell_gone(struct loop_task *task)
{
	struct channel *ch = container_of(task, struct channel, gone_task);

	fabric_of(ch)->conn_free(ch->conn);
	ch->conn = NULL;
	ch->ops->gone(ch);
}

static void
gone_if_free(struct channel *ch)
{
	if (ch->phase == CHANNEL_CLOSED && ch->holds == 0)
		loop_defer(ch->core->env.loop, &ch->gone_task);
}

void
channel_hold(struct channel *ch)
{
	ch->holds++;
}

void
channel_release(struct channel *ch)
{
	ch->holds--;
	gone_if_free(ch);
}

/* ---- events ---- */

static void
on_written(struct channel *ch, const struct fabric_event *event)
{
	area_out_written(&ch->out, event->cookie);
	flush_soon(ch);
	if (ch->phase == CHANNEL_ENDING && ch->out.written == ch->out.pushed)
		stop_now(ch);
	else if (ch->phase == CHANNEL_UP && ch->ops->room != NULL)
		ch->ops->room(ch);
}

static void
on_closed(struct channel *ch, const struct fabric_event *event)
{
	ch->down = true;
	/* Its last words may be there already; no more can come. */
	while (ch->phase == CHANNEL_UP && !ch->paused && poll_channel(&ch->poll))
		;
	ch->phase = CHANNEL_CLOSED;
	loop_timer_clear(ch->beat_timer);
	loop_timer_clear(ch->end_timer);
	poll_entry_stop(&ch->poll);
	loop_undefer(&ch->flush_task);
	channel_hold(ch);
	ch->ops->closed(ch, event);
	registration_drop(&ch->in_reg);
	registration_drop(&ch->out_reg);
	channel_release(ch);
}

void
channel_event(struct channel *ch, const struct fabric_event *event)
{
	switch (event->type) {
	case FABRIC_RESOLVED:
		if (ch->phase < CHANNEL_ENDING)
			ch->ops->resolved(ch);
		break;
	case FABRIC_ESTABLISHED:
		flush_soon(ch);
		if (ch->phase < CHANNEL_ENDING)
			ch->ops->established(ch, event->data, event->data_len);
		break;
	case FABRIC_WRITTEN:
		on_written(ch, event);
		break;
	case FABRIC_ARRIVED:
		if (ch->phase == CHANNEL_UP)
			poll_entry_kick(&ch->poll);
		break;
	case FABRIC_CLOSED:
		on_closed(ch, event);
		break;
	default:
		break;
	}
}
