/* loop.c -- the event loop over libevent's event_core */

#include "config.h"

#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdlib.h>
#include <time.h>

#include "base/log.h"
#include "loop/loop.h"

struct loop {
	struct event_base *base;
	struct event limit; /* ends the wait of loop_turn() */
	struct list deferred, buried;
	bool stopping;
};

struct loop_io {
	struct event event;
	loop_io_fn *fn;
	void *arg;
	unsigned events;
};

struct loop_timer {
	struct event event;
	loop_fn *fn;
	void *arg;
};

struct loop_signal {
	struct event event;
	loop_fn *fn;
	void *arg;
};

/* ---- libevent's words ---- */

static void
on_libevent_log(int severity, const char *text)
{
	static const enum log_level levels[] = {
	    [EVENT_LOG_DEBUG] = LOG_LEVEL_DEBUG,
	    [EVENT_LOG_MSG] = LOG_LEVEL_INFO,
	    [EVENT_LOG_WARN] = LOG_LEVEL_WARNING,
	    [EVENT_LOG_ERR] = LOG_LEVEL_ERROR,
	};

	log_line(levels[severity], "loop: %s", text);
}

static _Noreturn void
on_libevent_fatal(int error)
{
	log_error("loop: libevent cannot go on (%d)", error);
	abort();
}

/* Arming what exists already has no error to return: a daemon whose deadlines do not fire is worse
 * than one that is started again. */
static void
must_add(struct event *event, const struct timeval *after)
{
	if (event_add(event, after) == 0)
		return;
	log_error("loop: no memory to arm an event");
	abort();
}

/* ---- turns ---- */

static void
on_limit(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
}

int
loop_new(struct loop **ret)
{
	struct loop *loop = calloc(1, sizeof(*loop));
	struct event_config *config = event_config_new();

	if (loop == NULL || config == NULL)
		goto fail;
	event_set_log_callback(on_libevent_log);
	event_set_fatal_callback(on_libevent_fatal);
	/* No cached time: a timer that a slow callback sets counts from then, not from the turn's
	 * start. */
	event_config_set_flag(
	    config, EVENT_BASE_FLAG_PRECISE_TIMER | EVENT_BASE_FLAG_NO_CACHE_TIME);
	loop->base = event_base_new_with_config(config);
	if (loop->base == NULL)
		goto fail;
	evtimer_assign(&loop->limit, loop->base, on_limit, NULL);
	list_init(&loop->deferred);
	list_init(&loop->buried);
	event_config_free(config);
	*ret = loop;
	return 0;
fail:
	if (config != NULL)
		event_config_free(config);
	free(loop);
	return -ENOMEM;
}

/* Deferred tasks go first, also those that a buried one defers. */
static struct list *
next_queue(struct loop *loop)
{
	if (!list_empty(&loop->deferred))
		return &loop->deferred;
	return list_empty(&loop->buried) ? NULL : &loop->buried;
}

static void
after_turn(struct loop *loop)
{
	struct list *queue;

	while ((queue = next_queue(loop)) != NULL) {
		struct loop_task *task = list_first(queue, struct loop_task, node);

		list_del(&task->node);
		task->fn(task);
	}
}

static int
turn(struct loop *loop)
{
	int wait = next_queue(loop) != NULL ? EVLOOP_NONBLOCK : 0;

	if (event_base_loop(loop->base, EVLOOP_ONCE | EVLOOP_NO_EXIT_ON_EMPTY | wait) < 0)
		return -EIO;
	after_turn(loop);
	return 0;
}

struct loop *
loop_free(struct loop *loop)
{
	if (loop == NULL)
		return NULL;
	after_turn(loop);
	event_base_free(loop->base);
	free(loop);
	return NULL;
}

int
loop_run(struct loop *loop)
{
	int r = 0;

	while (r == 0 && !loop->stopping)
		r = turn(loop);
	loop->stopping = false;
	return r;
}

/* Rounds up: a timer never fires early. */
static struct timeval
to_timeval(uint64_t ns)
{
	uint64_t us = ns / NSEC_PER_USEC + (ns % NSEC_PER_USEC != 0);

	return (struct timeval){.tv_sec = us / 1000000, .tv_usec = us % 1000000};
}

int
loop_turn(struct loop *loop, uint64_t max_ns)
{
	struct timeval after = to_timeval(max_ns);
	int r;

	must_add(&loop->limit, &after);
	r = turn(loop);
	event_del(&loop->limit);
	return r;
}

void
loop_stop(struct loop *loop)
{
	loop->stopping = true;
}

uint64_t
loop_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NSEC_PER_SEC + (uint64_t)now.tv_nsec;
}

/* ---- descriptors ---- */

static void
on_io(evutil_socket_t fd, short what, void *arg)
{
	struct loop_io *io = arg;

	(void)fd;
	io->fn(io->arg, (what & EV_READ ? LOOP_READ : 0) | (what & EV_WRITE ? LOOP_WRITE : 0) |
			    (what & EV_CLOSED ? LOOP_CLOSED : 0));
}

static void
assign_io(struct loop_io *io, struct event_base *base, int fd, unsigned events)
{
	short what = EV_PERSIST | (events & LOOP_READ ? EV_READ : 0) |
		     (events & LOOP_WRITE ? EV_WRITE : 0) | (events & LOOP_CLOSED ? EV_CLOSED : 0);

	event_assign(&io->event, base, fd, what, on_io, io);
	io->events = events;
}

int
loop_io_new(
    struct loop *loop, int fd, unsigned events, loop_io_fn *fn, void *arg, struct loop_io **ret)
{
	struct loop_io *io = calloc(1, sizeof(*io));

	if (io == NULL)
		return -ENOMEM;
	io->fn = fn;
	io->arg = arg;
	assign_io(io, loop->base, fd, events);
	if (events != 0 && event_add(&io->event, NULL) < 0) {
		free(io);
		return -ENOMEM;
	}
	*ret = io;
	return 0;
}

void
loop_io_set(struct loop_io *io, unsigned events)
{
	if (events == io->events)
		return;
	event_del(&io->event);
	assign_io(io, event_get_base(&io->event), event_get_fd(&io->event), events);
	if (events != 0)
		must_add(&io->event, NULL);
}

struct loop_io *
loop_io_free(struct loop_io *io)
{
	if (io == NULL)
		return NULL;
	event_del(&io->event);
	free(io);
	return NULL;
}

/* ---- timers ---- */

static void
on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct loop_timer *timer = arg;

	(void)fd;
	(void)what;
	timer->fn(timer->arg);
}

int
loop_timer_new(struct loop *loop, loop_fn *fn, void *arg, struct loop_timer **ret)
{
	struct loop_timer *timer = calloc(1, sizeof(*timer));

	if (timer == NULL)
		return -ENOMEM;
	timer->fn = fn;
	timer->arg = arg;
	evtimer_assign(&timer->event, loop->base, on_timer, timer);
	*ret = timer;
	return 0;
}

void
loop_timer_set(struct loop_timer *timer, uint64_t after_ns)
{
	struct timeval after = to_timeval(after_ns);

	must_add(&timer->event, &after);
}

void
loop_timer_clear(struct loop_timer *timer)
{
	event_del(&timer->event);
}

struct loop_timer *
loop_timer_free(struct loop_timer *timer)
{
	if (timer == NULL)
		return NULL;
	event_del(&timer->event);
	free(timer);
	return NULL;
}

/* ---- signals ---- */

static void
on_signal(evutil_socket_t fd, short what, void *arg)
{
	struct loop_signal *signal = arg;

	(void)fd;
	(void)what;
	signal->fn(signal->arg);
}

int
loop_signal_new(struct loop *loop, int signo, loop_fn *fn, void *arg, struct loop_signal **ret)
{
	struct loop_signal *signal = calloc(1, sizeof(*signal));

	if (signal == NULL)
		return -ENOMEM;
	signal->fn = fn;
	signal->arg = arg;
	evsignal_assign(&signal->event, loop->base, signo, on_signal, signal);
	if (event_add(&signal->event, NULL) < 0) {
		free(signal);
		return -ENOMEM;
	}
	*ret = signal;
	return 0;
}

struct loop_signal *
loop_signal_free(struct loop_signal *signal)
{
	if (signal == NULL)
		return NULL;
	event_del(&signal->event);
	free(signal);
	return NULL;
}

/* ---- tasks ---- */

void
loop_task_init(struct loop_task *task, void (*fn)(struct loop_task *task))
{
	list_init(&task->node);
	task->fn = fn;
}

void
loop_defer(struct loop *loop, struct loop_task *task)
{
	if (!list_linked(&task->node))
		list_add_tail(&loop->deferred, &task->node);
}

void
loop_undefer(struct loop_task *task)
{
	list_del(&task->node);
}

void
loop_bury(struct loop *loop, struct loop_task *task)
{
	list_del(&task->node);
	list_add_tail(&loop->buried, &task->node);
}
