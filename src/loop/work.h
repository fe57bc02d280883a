/* work.h -- job pools: what may block runs on their threads and comes back to the loop
 *
 * A job owns its arguments and holds a reference on whatever it touches; run() calls no function of
 * the core and does not log; all signals are blocked there. done() is called on the loop's thread
 * exactly once and may free the job.
 */

#pragma once

#include "base/list.h"

struct loop;
struct work;

struct job {
	struct list node;
	void (*run)(struct job *job);  /* on a worker thread */
	void (*done)(struct job *job); /* on the loop's thread, after run() */
};

/* 0, or a negative errno when threads or descriptors are short. name: at most 15 characters. */
int work_new(struct loop *loop, const char *name, unsigned threads, struct work **ret);

/* First in, first out; cannot fail. */
void work_submit(struct work *work, struct job *job);

unsigned work_threads(const struct work *work);

/* Jobs submitted whose done() has not been called yet. */
unsigned work_pending(const struct work *work);

/* Waits until every job has run, calls their done(), ends the threads. NULL is fine; returns NULL.
 */
struct work *work_free(struct work *work);
