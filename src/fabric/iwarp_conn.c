/* iwarp_conn.c -- one connection: its states, its life, its end
 *
 *   active:  NEW > RESOLVED > CONNECTING > ASKING \
 *                                                  > ESTABLISHED > ENDING > CLOSED
 *   passive:     GREETING > REQUESTED > ACCEPTING /
 *
 * Every state before ENDING may go to ENDING; one that ends while GREETING just disappears, because
 * nobody has heard of it. The table of reactions says what the socket may bring in a state.
 */

#include "config.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/text.h"
#include "fabric/iwarp.h"
#include "wire/rwp.h"

static const char *const STATES[] = {
    [CONN_NEW] = "new",
    [CONN_RESOLVED] = "resolved",
    [CONN_CONNECTING] = "connecting",
    [CONN_ASKING] = "asking",
    [CONN_GREETING] = "greeting",
    [CONN_REQUESTED] = "requested",
    [CONN_ACCEPTING] = "accepting",
    [CONN_ESTABLISHED] = "established",
    [CONN_ENDING] = "ending",
    [CONN_CLOSED] = "closed",
};

#define IN(state) (1U << (state))
#define TIMED     (IN(CONN_CONNECTING) | IN(CONN_ASKING) | IN(CONN_GREETING))

const char *
iwarp_peer(const struct iwarp_conn *c, char buf[])
{
	return text_address_port(buf, (const struct sockaddr *)&c->info.remote);
}

void
iwarp_set_state(struct iwarp_conn *c, enum iwarp_state state)
{
	char peer[TEXT_ADDRESS_MAX];

	log_debug("iwarp %s: %s > %s", iwarp_peer(c, peer), STATES[c->state], STATES[state]);
	c->state = state;
	if (!(TIMED & IN(state)))
		loop_timer_clear(c->deadline);
}

/* ---- the end ---- */

/* The socket goes at once, with all that depends on it. */
static void
hang_up(struct iwarp_conn *c, uint8_t *words, size_t len)
{
	int fd = c->fd;

	c->fd = -1;
	c->io = loop_io_free(c->io);
	loop_undefer(&c->push);
	recv_keep(c, NULL, 0);
	if (fd >= 0 && !c->eof) {
		farewell_begin(c->iwarp, fd, words, len);
		return;
	}
	free(words);
	if (fd >= 0)
		close(fd);
}

static void
begin_end(struct iwarp_conn *c, enum fabric_cause cause, uint8_t *words, size_t len)
{
	bool unknown = c->state == CONN_GREETING;
	char peer[TEXT_ADDRESS_MAX];

	iwarp_set_state(c, CONN_ENDING);
	c->cause = cause;
	hang_up(c, words, len);
	if (unknown) {
		log_debug("iwarp %s: %s", iwarp_peer(c, peer), c->detail);
		iwarp_conn_dispose(c);
	} else {
		iwarp_defer(c->iwarp, &c->news);
	}
}

void
iwarp_end(struct iwarp_conn *c, enum fabric_cause cause, const char *fmt, ...)
{
	va_list ap;

	if (c->state >= CONN_ENDING)
		return;
	va_start(ap, fmt);
	vsnprintf(c->detail, sizeof(c->detail), fmt, ap);
	va_end(ap);
	begin_end(c, cause, NULL, 0);
}

static enum fabric_cause
errno_cause(int error)
{
	switch (error) {
	case -ECONNREFUSED:
		return FABRIC_CAUSE_REFUSED;
	case -ETIMEDOUT:
	case -EHOSTUNREACH:
	case -ENETUNREACH:
		return FABRIC_CAUSE_TIMEOUT;
	case -ECONNRESET:
	case -EPIPE:
		return FABRIC_CAUSE_PEER;
	default:
		return FABRIC_CAUSE_DEVICE;
	}
}

void
iwarp_end_errno(struct iwarp_conn *c, const char *what, int error)
{
	c->eof = true;
	iwarp_end(c, errno_cause(error), "%s: %s", what, strerror(-error));
}

/* The rest of an FPDU that is half sent goes first: in the middle of it a Terminate would be taken
 * for payload. */
static uint8_t *
last_words(struct iwarp_conn *c, enum rdmap_error error, const uint8_t *culprit, size_t *ret_len)
{
	uint8_t *words = malloc(MPA_FPDU_MAX + RDMAP_TERMINATE_MAX);
	size_t len;

	*ret_len = 0;
	if (words == NULL)
		return NULL;
	len = send_copy_rest(c, words);
	*ret_len = len + rdmap_terminate_encode(error, culprit, c->crc, words + len);
	return words;
}

void
iwarp_terminate(
    struct iwarp_conn *c, enum rdmap_error error, const uint8_t *culprit, const char *fmt, ...)
{
	char what[IWARP_DETAIL / 2];
	uint8_t *words;
	size_t len;
	va_list ap;

	if (c->state != CONN_ESTABLISHED)
		return;
	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	snprintf(c->detail, sizeof(c->detail), "%s (we told the peer: %s)", what,
	    rdmap_error_text(error));
	words = last_words(c, error, culprit, &len);
	begin_end(c, FABRIC_CAUSE_PROTOCOL, words, len);
}

void
iwarp_stop(struct fabric_conn *base)
{
	struct iwarp_conn *c = (struct iwarp_conn *)base;

	if (c->state == CONN_ESTABLISHED)
		send_last(c);
	if (c->state == CONN_REQUESTED)
		setup_refuse(c, NULL, 0);
	iwarp_end(c, FABRIC_CAUSE_LOCAL, "stopped");
}

/* ---- what the socket brings ---- */

static void
on_deadline(void *arg)
{
	struct iwarp_conn *c = arg;
	char peer[TEXT_ADDRESS_MAX];

	if (c->state == CONN_CONNECTING)
		iwarp_end(c, FABRIC_CAUSE_TIMEOUT, "%s does not answer", iwarp_peer(c, peer));
	else
		iwarp_end(c, FABRIC_CAUSE_TIMEOUT, "%s is silent after TCP has connected",
		    iwarp_peer(c, peer));
}

static const struct {
	void (*readable)(struct iwarp_conn *c);
	void (*writable)(struct iwarp_conn *c);
} REACTIONS[] = {
    [CONN_CONNECTING] = {NULL, setup_connected},
    [CONN_ASKING] = {setup_read_reply, NULL},
    [CONN_GREETING] = {setup_read_request, NULL},
    [CONN_REQUESTED] = {setup_read_early, NULL},
    [CONN_ESTABLISHED] = {recv_run, send_run},
    [CONN_CLOSED] = {NULL, NULL},
};

static void
on_io(void *arg, unsigned events)
{
	struct iwarp_conn *c = arg;

	if (events & LOOP_READ && REACTIONS[c->state].readable != NULL)
		REACTIONS[c->state].readable(c);
	if (events & LOOP_WRITE && REACTIONS[c->state].writable != NULL)
		REACTIONS[c->state].writable(c);
}

static void
on_push(struct loop_task *task)
{
	send_run(container_of(task, struct iwarp_conn, push));
}

/* ---- what is told once the operation has returned ---- */

void
iwarp_conn_emit(
    struct iwarp_conn *c, enum fabric_event_type type, const void *data, size_t data_len)
{
	struct fabric_event event = {
	    .type = type,
	    .conn = &c->base,
	    .data = data_len > 0 ? data : NULL,
	    .data_len = data_len,
	};

	if (type == FABRIC_CLOSED) {
		event.cause = c->cause;
		event.detail = c->detail;
	}
	iwarp_emit(c->iwarp, &event);
}

static void
on_news(struct loop_task *task)
{
	struct iwarp_conn *c = container_of(task, struct iwarp_conn, news);

	switch (c->state) {
	case CONN_NEW:
		iwarp_set_state(c, CONN_RESOLVED);
		iwarp_conn_emit(c, FABRIC_RESOLVED, NULL, 0);
		break;
	case CONN_ACCEPTING:
		iwarp_set_state(c, CONN_ESTABLISHED);
		iwarp_conn_emit(c, FABRIC_ESTABLISHED, NULL, 0);
		break;
	case CONN_ENDING:
		iwarp_set_state(c, CONN_CLOSED);
		iwarp_conn_emit(c, FABRIC_CLOSED, c->word, c->word_len);
		break;
	default: /* has changed since */
		break;
	}
}

/* ---- life ---- */

static void
on_grave(struct loop_task *task)
{
	struct iwarp_conn *c = container_of(task, struct iwarp_conn, grave);

	loop_timer_free(c->deadline);
	free(c);
}

void
iwarp_conn_dispose(struct iwarp_conn *c)
{
	list_del(&c->node);
	loop_undefer(&c->news);
	c->iwarp->n_conns--;
	iwarp_bury(c->iwarp, &c->grave);
}

void
iwarp_conn_free(struct fabric_conn *base)
{
	struct iwarp_conn *c = (struct iwarp_conn *)base;

	assert(c->state == CONN_CLOSED && c->n_mems == 0);
	iwarp_conn_dispose(c);
}

struct iwarp_conn *
iwarp_conn_new(struct iwarp *w, enum iwarp_state state, void *owner)
{
	struct iwarp_conn *c = calloc(1, sizeof(*c));

	if (c == NULL)
		return NULL;
	*c = (struct iwarp_conn){
	    .base = {.fabric = &w->base, .owner = owner},
	    .iwarp = w,
	    .state = state,
	    .fd = -1,
	    .recv = {.read_msn = 1},
	    .info = {.kind = RWP_FABRIC_IWARP,
		.fabric = "iwarp",
		.device = "tcp",
		.message_max = LIMIT_WRITE},
	};
	list_init(&c->node);
	loop_task_init(&c->news, on_news);
	loop_task_init(&c->push, on_push);
	loop_task_init(&c->grave, on_grave);
	if (loop_timer_new(w->base.env.loop, on_deadline, c, &c->deadline) < 0) {
		free(c);
		return NULL;
	}
	w->n_conns++;
	return c;
}

int
iwarp_attach(struct iwarp_conn *c, int fd, unsigned events)
{
	int r = loop_io_new(c->base.fabric->env.loop, fd, events, on_io, c, &c->io);

	if (r < 0)
		return r;
	c->fd = fd;
	loop_timer_set(c->deadline, c->iwarp->options.setup_ms * NSEC_PER_MSEC);
	return 0;
}

void
iwarp_note_ends(struct iwarp_conn *c)
{
	socklen_t local = sizeof(c->info.local), remote = sizeof(c->info.remote);

	(void)getsockname(c->fd, (struct sockaddr *)&c->info.local, &local);
	(void)getpeername(c->fd, (struct sockaddr *)&c->info.remote, &remote);
	if (text_address_equal(
		(const struct sockaddr *)&c->info.local, (const struct sockaddr *)&c->info.remote))
		iwarp_tune_local(c->fd);
}

void
iwarp_describe(struct fabric_conn *base, struct fabric_info *ret)
{
	*ret = ((const struct iwarp_conn *)base)->info;
}
