/* loop.h -- the event loop: descriptors, timers, signals, and what happens between turns
 *
 * The fence around libevent. Everything here is called on the loop's own thread.
 *
 * A turn calls the callbacks of what is ready, then runs the deferred tasks (also those that they
 * defer), then the buried ones. So an object that dies inside a callback is only detached there and
 * buried: its memory goes when nobody up the stack can still be using it.
 */

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"

#define NSEC_PER_USEC UINT64_C(1000)
#define NSEC_PER_MSEC UINT64_C(1000000)
#define NSEC_PER_SEC  UINT64_C(1000000000)

struct loop;
struct loop_io;
struct loop_timer;
struct loop_signal;

/* CLOSED: the other end of a stream has closed, however much there is still to be read. */
enum { LOOP_READ = 1, LOOP_WRITE = 2, LOOP_CLOSED = 4 };

typedef void loop_fn(void *arg);
typedef void loop_io_fn(void *arg, unsigned events);

/* Embedded in its owner; zero-filled is not enough: see loop_task_init(). */
struct loop_task {
	struct list node;
	void (*fn)(struct loop_task *task);
};

/* 0, or -ENOMEM. The free functions accept NULL and return NULL; loop_free() runs what is still
 * deferred and buried, everything else is gone by then. */
int loop_new(struct loop **ret);
struct loop *loop_free(struct loop *loop);

/* Runs turns until loop_stop(); 0 or a negative errno. */
int loop_run(struct loop *loop);
/* One turn that waits at most max_ns for something to happen (tests). */
int loop_turn(struct loop *loop, uint64_t max_ns);
void loop_stop(struct loop *loop);

/* Nanoseconds of CLOCK_MONOTONIC. */
uint64_t loop_now(void);

/* Watches fd (borrowed) for events, level-triggered, until changed or freed. 0, or -ENOMEM. A
 * callback may free this or any other. Arming what exists (loop_io_set, loop_timer_set) aborts when
 * memory is out. */
int loop_io_new(
    struct loop *loop, int fd, unsigned events, loop_io_fn *fn, void *arg, struct loop_io **ret);
void loop_io_set(struct loop_io *io, unsigned events);
struct loop_io *loop_io_free(struct loop_io *io);

/* A one-shot timer: created idle; set (again) moves it. Precise to about 50 us. 0, or -ENOMEM. */
int loop_timer_new(struct loop *loop, loop_fn *fn, void *arg, struct loop_timer **ret);
void loop_timer_set(struct loop_timer *timer, uint64_t after_ns);
void loop_timer_clear(struct loop_timer *timer);
struct loop_timer *loop_timer_free(struct loop_timer *timer);

int loop_signal_new(struct loop *loop, int signo, loop_fn *fn, void *arg, struct loop_signal **ret);
struct loop_signal *loop_signal_free(struct loop_signal *signal);

void loop_task_init(struct loop_task *task, void (*fn)(struct loop_task *task));
/* Runs the task once when this turn's callbacks are done; no effect while it is queued already. */
void loop_defer(struct loop *loop, struct loop_task *task);
void loop_undefer(struct loop_task *task);
/* Runs the task last in this turn, instead of where it was queued before: the place for free(). */
void loop_bury(struct loop *loop, struct loop_task *task);
