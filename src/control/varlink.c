/* varlink.c -- server side of Varlink: NUL-terminated JSON over a Unix stream socket */

#include "config.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/list.h"
#include "base/log.h"
#include "base/text.h"
#include "control/frame.h"
#include "control/message.h"
#include "control/varlink.h"
#include "loop/loop.h"

#define CALLS_PER_TURN   16 /* of one client, before others get a turn */
#define ACCEPTS_PER_TURN 16
#define ACCEPT_PAUSE     NSEC_PER_SEC /* when descriptors are short */
#define LOG_EVERY        (60 * NSEC_PER_SEC)

enum client_state {
	CLIENT_READING, /* waits for a call */
	CLIENT_CALLED,  /* a call is running; we only look whether the client is still there */
	CLIENT_ENDING,  /* closed later in this turn */
};

static const char *const STATE_NAMES[] = {
    [CLIENT_READING] = "reading",
    [CLIENT_CALLED] = "called",
    [CLIENT_ENDING] = "ending",
};

struct varlink {
	struct loop *loop;
	varlink_fn *fn;
	void *arg;
	int fd;
	struct loop_io *io;
	struct loop_timer *resume; /* runs while accepting pauses */
	struct list clients;
	unsigned count;
	uint64_t complained_at; /* that somebody was turned away; 0: never */
};

struct client {
	struct list node;
	struct varlink *server;
	enum client_state state;
	int fd;
	struct loop_io *io;
	struct loop_task end, grave;

	struct varlink_call call;
	json_t *message; /* that call points into */
	int fds[LIMIT_BATCH];
	bool waiting; /* bytes of a next call are waiting behind the running one */

	struct outbox out;
	struct inbox in;
};

/* ---- the client's state ---- */

static void
update_interest(struct client *c)
{
	unsigned events = 0;

	/* Who does not read his answers is not asked for more; that he has gone shows when we
	 * write. Whoever sends a next call early may go all the same. */
	if (c->state == CLIENT_ENDING)
		events = 0;
	else if (!outbox_empty(&c->out))
		events = LOOP_WRITE;
	else if (c->state == CLIENT_READING || !c->waiting)
		events = LOOP_READ;
	else
		events = LOOP_CLOSED;
	loop_io_set(c->io, events);
}

static void
set_state(struct client *c, enum client_state state)
{
	log_debug("control client of uid %u: %s -> %s", (unsigned)c->call.uid,
	    STATE_NAMES[c->state], STATE_NAMES[state]);
	c->state = state;
	update_interest(c);
}

static void
end_client(struct client *c, const char *why)
{
	if (c->state == CLIENT_ENDING)
		return;
	log_debug("control client of uid %u: %s", (unsigned)c->call.uid, why);
	loop_defer(c->server->loop, &c->end);
	/* A call that is running is cancelled when the client is closed: see close_client(). */
	set_state(c, CLIENT_ENDING);
}

static void
drop_descriptors(struct client *c)
{
	while (c->call.n_fds > 0)
		close(c->fds[--c->call.n_fds]);
}

static void
drop_call(struct client *c)
{
	drop_descriptors(c);
	c->message = (json_decref(c->message), NULL);
	c->call = (struct varlink_call){.uid = c->call.uid};
	c->waiting = false;
}

/* ---- answering ---- */

static void
flush(struct client *c)
{
	int r = outbox_flush(&c->out, c->fd);

	if (r < 0)
		end_client(c, strerror(-r));
	update_interest(c);
}

/* Takes parameters and fd over. */
static void
send_message(struct client *c, json_t *parameters, const char *error, bool continues, int fd)
{
	char *text = message_print(parameters, error, continues);

	if (text == NULL)
		end_client(c, "no memory for an answer");
	if (c->state == CLIENT_ENDING || c->call.oneway) {
		free(text);
		if (fd >= 0)
			close(fd);
		return;
	}
	if (outbox_put(&c->out, text, fd) < 0)
		end_client(c, "does not read its answers, or memory is short");
	else
		flush(c);
}

static struct client *
client_of(const struct varlink_call *call)
{
	return container_of(call, struct client, call);
}

static void
answer(struct varlink_call *call, json_t *parameters, const char *error, int fd)
{
	struct client *c = client_of(call);

	send_message(c, parameters, error, false, fd);
	drop_call(c);
	if (c->state == CLIENT_CALLED)
		set_state(c, CLIENT_READING);
}

void
varlink_continue(struct varlink_call *call, json_t *parameters)
{
	assert(call->more);
	send_message(client_of(call), parameters, NULL, true, -1);
}

void
varlink_reply(struct varlink_call *call, json_t *parameters)
{
	answer(call, parameters, NULL, -1);
}

void
varlink_reply_fd(struct varlink_call *call, json_t *parameters, int fd)
{
	answer(call, parameters, NULL, fd);
}

void
varlink_error(struct varlink_call *call, const char *error, json_t *parameters)
{
	answer(call, parameters, error, -1);
}

void
varlink_fail(struct varlink_call *call, const char *error, const char *fmt, ...)
{
	char text[LIMIT_TEXT * 2], clean[sizeof(text)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	text_clean(clean, sizeof(clean), text, strlen(text));
	varlink_error(call, error, json_pack("{s:s}", "text", clean));
}

bool
varlink_congested(const struct varlink_call *call)
{
	return !outbox_empty(&client_of(call)->out);
}

/* ---- receiving ---- */

const char *
varlink_text(const struct varlink_call *call, const char *name)
{
	return json_string_value(json_object_get(call->parameters, name));
}

uint64_t
varlink_number(const struct varlink_call *call, const char *name)
{
	return json_integer_value(json_object_get(call->parameters, name));
}

bool
varlink_flag(const struct varlink_call *call, const char *name)
{
	return json_is_true(json_object_get(call->parameters, name));
}

/* Turns the message in c->in into c->call; -EBADMSG when it is none. */
static int
take_call(struct client *c)
{
	json_t *message = message_parse(c->in.text, c->in.len - 1);

	if (message == NULL)
		return -EBADMSG;
	c->message = message;
	c->call = (struct varlink_call){
	    .method = json_string_value(json_object_get(message, "method")),
	    .parameters = json_object_get(message, "parameters"),
	    .more = json_is_true(json_object_get(message, "more")),
	    .oneway = json_is_true(json_object_get(message, "oneway")),
	    .fds = c->fds,
	    .n_fds = c->in.n_fds,
	    .uid = c->call.uid,
	};
	memcpy(c->fds, c->in.fds, c->in.n_fds * sizeof(c->fds[0]));
	c->in.n_fds = 0;
	inbox_clear(&c->in);
	return 0;
}

static void
dispatch(struct client *c)
{
	set_state(c, CLIENT_CALLED);
	c->server->fn(c->server->arg, &c->call);
	/* Those that the handler did not take; the answer has closed them if there was one
	 * already. */
	drop_descriptors(c);
	assert(c->message == NULL || c->call.cancelled != NULL);
}

static void
read_calls(struct client *c)
{
	for (int i = 0; i < CALLS_PER_TURN; i++) {
		int r;

		if (c->state != CLIENT_READING || !outbox_empty(&c->out))
			return;
		r = inbox_receive(&c->in, c->fd);
		if (r == 0)
			return;
		if (r > 0)
			r = take_call(c);
		if (r < 0) {
			end_client(c, r == -EPIPE ? "closed the connection" : strerror(-r));
			return;
		}
		dispatch(c);
	}
}

/* A call is running: has the client gone, or does it only send the next call early? */
static void
look_for_end(struct client *c)
{
	char byte;
	ssize_t n = recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

	if (n > 0) {
		c->waiting = true;
		update_interest(c);
	} else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
		end_client(c, "closed the connection");
	}
}

static void
client_ready(void *arg, unsigned events)
{
	struct client *c = arg;

	if (c->state == CLIENT_ENDING)
		return;
	if (events & LOOP_WRITE)
		flush(c);
	if (events & LOOP_WRITE && outbox_empty(&c->out) && c->call.drained != NULL)
		c->call.drained(c->call.arg);
	if (events & LOOP_CLOSED)
		end_client(c, "closed the connection");
	if (!(events & LOOP_READ))
		return;
	if (c->state == CLIENT_CALLED)
		look_for_end(c);
	else
		read_calls(c);
}

/* ---- life and death ---- */

static void
bury_client(struct loop_task *task)
{
	free(container_of(task, struct client, grave));
}

static void
close_client(struct client *c)
{
	loop_undefer(&c->end);
	if (c->call.cancelled != NULL)
		c->call.cancelled(c->call.arg);
	drop_call(c);
	outbox_clear(&c->out);
	inbox_clear(&c->in);
	c->io = loop_io_free(c->io);
	close(c->fd);
	list_del(&c->node);
	c->server->count--;
	loop_bury(c->server->loop, &c->grave);
}

static void
client_end(struct loop_task *task)
{
	close_client(container_of(task, struct client, end));
}

static bool
admits(const struct varlink *v, uid_t uid)
{
	const struct client *c;
	unsigned same = 0;

	list_for_each (c, &v->clients, struct client, node)
		same += c->call.uid == uid;
	return v->count < LIMIT_CONTROL_CLIENTS && same < LIMIT_CONTROL_CLIENTS_PER_UID;
}

/* Whoever floods us with clients does not flood the log. */
static void
complain(struct varlink *v, uid_t uid)
{
	uint64_t now = loop_now();

	if (v->complained_at != 0 && now - v->complained_at < LOG_EVERY)
		return;
	v->complained_at = now;
	log_warning("control socket: uid %u has too many clients, or all have", (unsigned)uid);
}

/* Owns fd on success. */
static int
add_client(struct varlink *v, int fd)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);
	struct client *c;
	int r;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0)
		return -errno;
	if (!admits(v, cred.uid)) {
		complain(v, cred.uid);
		return -EUSERS;
	}
	c = malloc(sizeof(*c));
	if (c == NULL)
		return -ENOMEM;
	c->server = v;
	c->state = CLIENT_READING;
	c->fd = fd;
	c->call = (struct varlink_call){.uid = cred.uid};
	c->message = NULL;
	c->waiting = false;
	outbox_init(&c->out);
	inbox_init(&c->in);
	loop_task_init(&c->end, client_end);
	loop_task_init(&c->grave, bury_client);
	r = loop_io_new(v->loop, fd, LOOP_READ, client_ready, c, &c->io);
	if (r < 0) {
		free(c);
		return r;
	}
	list_add_tail(&v->clients, &c->node);
	v->count++;
	return 0;
}

static void
resume_accepting(void *arg)
{
	struct varlink *v = arg;

	loop_io_set(v->io, LOOP_READ);
}

static void
accept_clients(void *arg, unsigned events)
{
	struct varlink *v = arg;

	(void)events;
	for (int i = 0; i < ACCEPTS_PER_TURN; i++) {
		/* cppcheck-suppress nullPointer -- the address may be NULL */
		int fd = accept4(v->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd < 0 && (errno == ECONNABORTED || errno == EINTR))
			continue;
		if (fd < 0 && errno == EAGAIN)
			return;
		if (fd < 0) {
			/* The listener stays readable: without a pause we would only spin. */
			log_warning("control socket: %s, accepting again in 1 s", strerror(errno));
			loop_io_set(v->io, 0);
			loop_timer_set(v->resume, ACCEPT_PAUSE);
			return;
		}
		if (add_client(v, fd) < 0)
			close(fd);
	}
}

int
varlink_new(struct loop *loop, int fd, varlink_fn *fn, void *arg, struct varlink **ret)
{
	struct varlink *v = malloc(sizeof(*v));
	int r;

	if (v == NULL)
		return -ENOMEM;
	*v = (struct varlink){.loop = loop, .fn = fn, .arg = arg, .fd = -1};
	list_init(&v->clients);
	r = loop_timer_new(loop, resume_accepting, v, &v->resume);
	if (r == 0)
		r = loop_io_new(loop, fd, LOOP_READ, accept_clients, v, &v->io);
	if (r < 0) {
		varlink_free(v);
		return r;
	}
	v->fd = fd;
	*ret = v;
	return 0;
}

struct varlink *
varlink_free(struct varlink *v)
{
	struct client *c;

	if (v == NULL)
		return NULL;
	while ((c = list_first(&v->clients, struct client, node)) != NULL)
		close_client(c);
	loop_io_free(v->io);
	loop_timer_free(v->resume);
	if (v->fd >= 0)
		close(v->fd);
	free(v);
	return NULL;
}
