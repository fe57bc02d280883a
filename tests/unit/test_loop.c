/* test_loop.c -- turns, timers, descriptors, signals, tasks and job pools */

#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "loop/loop.h"
#include "loop/work.h"
#include "unit/scarce.h"

#define PATIENCE (10 * NSEC_PER_SEC)

/* ---- short of threads (linked with --wrap) ---- */

static unsigned thread_fails_in; /* calls; 0: never */

int __real_pthread_create(
    pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *arg);
int __wrap_pthread_create(
    pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *arg);

int
__wrap_pthread_create(
    pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *arg)
{
	if (thread_fails_in > 0 && --thread_fails_in == 0)
		return EAGAIN;
	return __real_pthread_create(thread, attr, start, arg);
}

static char story[64]; /* what happened, one letter each */

static void
tell(char what)
{
	size_t n = strlen(story);

	assert_true(n + 1 < sizeof(story));
	story[n] = what;
	story[n + 1] = '\0';
}

static int
setup(void **state)
{
	story[0] = '\0';
	return loop_new((struct loop **)state);
}

static int
teardown(void **state)
{
	*state = loop_free(*state);
	return 0;
}

/* ---- timers ---- */

static void
tell_a(void *arg)
{
	(void)arg;
	tell('a');
}

static void
tell_b_and_stop(void *arg)
{
	tell('b');
	loop_stop(arg);
}

static void
timers_fire_in_order_once_and_not_early(void **state)
{
	struct loop_timer *a, *b, *never;
	uint64_t start = loop_now();

	assert_int_equal(loop_timer_new(*state, tell_a, NULL, &a), 0);
	assert_int_equal(loop_timer_new(*state, tell_b_and_stop, *state, &b), 0);
	assert_int_equal(loop_timer_new(*state, tell_a, NULL, &never), 0);
	loop_timer_set(b, 3 * NSEC_PER_MSEC);
	loop_timer_set(a, 1);
	loop_timer_set(never, 1);
	loop_timer_clear(never);
	assert_int_equal(loop_run(*state), 0);
	assert_string_equal(story, "ab");
	assert_true(loop_now() - start >= 3 * NSEC_PER_MSEC);
	loop_timer_free(never);
	loop_timer_free(b);
	assert_null(loop_timer_free(a));
	assert_null(loop_timer_free(NULL));
}

static void
setting_again_moves_a_timer(void **state)
{
	struct loop_timer *timer;
	uint64_t start = loop_now();

	assert_int_equal(loop_timer_new(*state, tell_b_and_stop, *state, &timer), 0);
	loop_timer_set(timer, UINT64_MAX);
	loop_timer_set(timer, NSEC_PER_MSEC);
	assert_int_equal(loop_run(*state), 0);
	assert_true(loop_now() - start < PATIENCE);
	loop_timer_free(timer);
}

static void
sleep_and_set(void *arg)
{
	struct loop_timer **next = arg;

	usleep(20000);
	loop_timer_set(*next, 20 * NSEC_PER_MSEC);
}

static void
a_timer_set_by_a_slow_callback_counts_from_then(void **state)
{
	struct loop_timer *slow, *next;
	uint64_t start = loop_now();

	assert_int_equal(loop_timer_new(*state, tell_b_and_stop, *state, &next), 0);
	assert_int_equal(loop_timer_new(*state, sleep_and_set, &next, &slow), 0);
	loop_timer_set(slow, 0);
	assert_int_equal(loop_run(*state), 0);
	assert_true(loop_now() - start >= 40 * NSEC_PER_MSEC);
	loop_timer_free(slow);
	loop_timer_free(next);
}

static void
short_timers_are_precise(void **state)
{
	struct loop_timer *timer;
	uint64_t best = UINT64_MAX;

	assert_int_equal(loop_timer_new(*state, tell_b_and_stop, *state, &timer), 0);
	for (int i = 0; i < 20; i++) {
		uint64_t start = loop_now(), took;

		loop_timer_set(timer, 50 * NSEC_PER_USEC);
		assert_int_equal(loop_run(*state), 0);
		took = loop_now() - start;
		best = took < best ? took : best;
	}
	assert_true(best >= 50 * NSEC_PER_USEC);
	assert_true(best < NSEC_PER_MSEC); /* libevent's default grain is 4 ms */
	loop_timer_free(timer);
}

static void
a_turn_waits_no_longer_than_asked(void **state)
{
	uint64_t start = loop_now();

	assert_int_equal(loop_turn(*state, 0), 0);
	assert_int_equal(loop_turn(*state, 2 * NSEC_PER_MSEC), 0);
	assert_true(loop_now() - start >= 2 * NSEC_PER_MSEC);
	assert_true(loop_now() - start < PATIENCE);
}

/* ---- descriptors ---- */

struct reader {
	struct loop_io *io;
	int fd;
	unsigned seen;
	char last;
};

static void
on_readable(void *arg, unsigned events)
{
	struct reader *r = arg;

	r->seen |= events;
	if (events & LOOP_READ)
		assert_int_equal(read(r->fd, &r->last, 1), 1);
}

static void
descriptors_are_level_triggered(void **state)
{
	struct reader r = {0};
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	r.fd = fds[0];
	assert_int_equal(loop_io_new(*state, r.fd, LOOP_READ, on_readable, &r, &r.io), 0);
	loop_turn(*state, 0);
	assert_int_equal(r.seen, 0);
	assert_int_equal(write(fds[1], "xy", 2), 2);
	loop_turn(*state, PATIENCE);
	assert_int_equal(r.seen, LOOP_READ);
	assert_int_equal(r.last, 'x');
	loop_turn(*state, PATIENCE);
	assert_int_equal(r.last, 'y');
	assert_null(loop_io_free(r.io));
	assert_null(loop_io_free(NULL));
	close(fds[0]);
	close(fds[1]);
}

static void
interest_can_change(void **state)
{
	struct reader r = {0};
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	r.fd = fds[1];
	assert_int_equal(loop_io_new(*state, r.fd, 0, on_readable, &r, &r.io), 0);
	loop_turn(*state, 0);
	assert_int_equal(r.seen, 0);
	loop_io_set(r.io, LOOP_WRITE);
	loop_turn(*state, PATIENCE);
	assert_int_equal(r.seen, LOOP_WRITE);
	r.seen = 0;
	loop_io_set(r.io, 0);
	loop_turn(*state, 0);
	assert_int_equal(r.seen, 0);
	loop_io_free(r.io);
	close(fds[0]);
	close(fds[1]);
}

static void
free_both(void *arg, unsigned events)
{
	struct loop_io **both = arg;

	(void)events;
	tell('f');
	both[0] = loop_io_free(both[0]);
	both[1] = loop_io_free(both[1]);
}

static void
a_callback_may_free_itself_and_others_that_are_ready(void **state)
{
	struct loop_io *both[2];
	int fds[2], copy;

	assert_int_equal(pipe(fds), 0);
	copy = dup(fds[1]);
	assert_int_equal(loop_io_new(*state, fds[1], LOOP_WRITE, free_both, both, &both[0]), 0);
	assert_int_equal(loop_io_new(*state, copy, LOOP_WRITE, free_both, both, &both[1]), 0);
	loop_turn(*state, PATIENCE);
	loop_turn(*state, 0);
	assert_string_equal(story, "f");
	close(copy);
	close(fds[0]);
	close(fds[1]);
}

/* ---- signals ---- */

static void
signals_arrive_on_the_loop(void **state)
{
	struct loop_signal *signal;

	assert_int_equal(loop_signal_new(*state, SIGUSR1, tell_b_and_stop, *state, &signal), 0);
	raise(SIGUSR1);
	assert_string_equal(story, "");
	assert_int_equal(loop_run(*state), 0);
	assert_string_equal(story, "b");
	assert_null(loop_signal_free(signal));
	assert_null(loop_signal_free(NULL));
}

/* ---- tasks ---- */

struct teller {
	struct loop_task task;
	struct loop *loop;
	char letter;
	struct teller *defers, *buries;
};

static void
on_teller(struct loop_task *task)
{
	struct teller *t = container_of(task, struct teller, task);

	tell(t->letter);
	if (t->buries != NULL)
		loop_bury(t->loop, &t->buries->task);
	if (t->defers != NULL)
		loop_defer(t->loop, &t->defers->task);
}

static struct teller
teller(struct loop *loop, char letter)
{
	return (struct teller){.loop = loop, .letter = letter};
}

static void
tasks_run_after_the_callbacks_and_the_buried_last(void **state)
{
	struct teller d = teller(*state, 'd'), e = teller(*state, 'e'), g = teller(*state, 'g');
	struct teller x = teller(*state, 'x'), y = teller(*state, 'y');
	struct loop_timer *timer;

	loop_task_init(&d.task, on_teller);
	loop_task_init(&e.task, on_teller);
	loop_task_init(&g.task, on_teller);
	loop_task_init(&x.task, on_teller);
	loop_task_init(&y.task, on_teller);
	assert_int_equal(loop_timer_new(*state, tell_a, NULL, &timer), 0);
	loop_timer_set(timer, 0);
	loop_bury(*state, &x.task);
	loop_defer(*state, &d.task);
	loop_defer(*state, &d.task); /* once, however often it is asked for */
	d.defers = &e;               /* a task defers a task: same turn, before the buried */
	d.buries = &y;
	x.defers = &g; /* the buried may still defer; what is buried waits for it */
	loop_turn(*state, PATIENCE);
	assert_string_equal(story, "adexgy");
	loop_turn(*state, 0);
	assert_string_equal(story, "adexgy");
	loop_timer_free(timer);
}

static void
undeferred_tasks_do_not_run(void **state)
{
	struct teller d = teller(*state, 'd');

	loop_task_init(&d.task, on_teller);
	loop_undefer(&d.task);
	loop_defer(*state, &d.task);
	loop_undefer(&d.task);
	loop_turn(*state, 0);
	assert_string_equal(story, "");
}

static void
burying_a_deferred_task_runs_it_once_and_last(void **state)
{
	struct teller d = teller(*state, 'd'), e = teller(*state, 'e');

	loop_task_init(&d.task, on_teller);
	loop_task_init(&e.task, on_teller);
	loop_defer(*state, &d.task);
	loop_bury(*state, &d.task);
	loop_bury(*state, &d.task);
	loop_defer(*state, &d.task);
	loop_defer(*state, &e.task);
	loop_turn(*state, 0);
	assert_string_equal(story, "ed");
}

static void
loop_free_runs_what_is_queued(void **state)
{
	struct teller d = teller(*state, 'd'), x = teller(*state, 'x');

	loop_task_init(&d.task, on_teller);
	loop_task_init(&x.task, on_teller);
	loop_bury(*state, &x.task);
	loop_defer(*state, &d.task);
	*state = loop_free(*state);
	assert_null(*state);
	assert_string_equal(story, "dx");
}

static void
waiting_tasks_do_not_wait_for_an_event(void **state)
{
	struct teller d = teller(*state, 'd');
	uint64_t start = loop_now();

	loop_task_init(&d.task, on_teller);
	loop_defer(*state, &d.task);
	loop_turn(*state, 2 * PATIENCE);
	assert_string_equal(story, "d");
	assert_true(loop_now() - start < PATIENCE);
}

/* ---- jobs ---- */

struct sum_job {
	struct job job;
	pthread_t loop_thread;
	struct work *work;
	unsigned number;
	unsigned *total; /* the loop's thread only */
	struct sum_job *then;
	unsigned square;
	sigset_t mask;
};

static void
run_square(struct job *job)
{
	struct sum_job *s = container_of(job, struct sum_job, job);

	if (pthread_equal(pthread_self(), s->loop_thread))
		return; /* done_sum() will see that square is 0 */
	pthread_sigmask(SIG_SETMASK, NULL, &s->mask);
	s->square = s->number * s->number;
}

static void
done_sum(struct job *job)
{
	struct sum_job *s = container_of(job, struct sum_job, job);

	assert_true(pthread_equal(pthread_self(), s->loop_thread));
	assert_int_equal(s->square, s->number * s->number);
	assert_int_equal(sigismember(&s->mask, SIGTERM), 1);
	*s->total += s->square;
	if (s->then != NULL)
		work_submit(s->work, &s->then->job);
	free(s);
}

static struct sum_job *
sum_job(struct work *work, unsigned number, unsigned *total)
{
	struct sum_job *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	*s = (struct sum_job){.job = {.run = run_square, .done = done_sum},
	    .loop_thread = pthread_self(),
	    .work = work,
	    .number = number,
	    .total = total};
	return s;
}

static void
jobs_run_on_threads_and_come_back_to_the_loop(void **state)
{
	uint64_t start = loop_now();
	struct work *work;
	unsigned total = 0;

	assert_int_equal(work_new(*state, "test-work", 3, &work), 0);
	for (unsigned i = 1; i <= 100; i++)
		work_submit(work, &sum_job(work, i, &total)->job);
	assert_int_equal(work_pending(work), 100);
	assert_int_equal(total, 0); /* never before the loop turns */
	while (work_pending(work) > 0 && loop_now() - start < PATIENCE)
		loop_turn(*state, PATIENCE);
	assert_int_equal(total, 100 * 101 * 201 / 6);
	assert_null(work_free(work));
}

static void
work_free_finishes_every_job(void **state)
{
	struct work *work;
	struct sum_job *s;
	unsigned total = 0;

	assert_int_equal(work_new(*state, "test-work", 2, &work), 0);
	for (unsigned i = 1; i <= 100; i++)
		work_submit(work, &sum_job(work, i, &total)->job);
	s = sum_job(work, 200, &total);
	s->then = sum_job(work, 300, &total); /* submitted by done(): run as well */
	work_submit(work, &s->job);
	assert_null(work_free(work));
	assert_int_equal(total, 100 * 101 * 201 / 6 + 200 * 200 + 300 * 300);
	assert_null(work_free(NULL));
}

static void
tell_number(struct job *job)
{
	tell((char)('0' + container_of(job, struct sum_job, job)->number));
	free(container_of(job, struct sum_job, job));
}

static void
one_thread_keeps_the_order(void **state)
{
	struct work *work;
	unsigned total;

	assert_int_equal(work_new(*state, "test-work", 1, &work), 0);
	for (unsigned i = 1; i <= 9; i++) {
		struct sum_job *s = sum_job(work, i, &total);

		s->job.done = tell_number;
		work_submit(work, &s->job);
	}
	work_free(work);
	assert_string_equal(story, "123456789");
}

static void
short_of_memory_or_threads_nothing_is_left(void **state)
{
	struct loop *loop = NULL;
	struct loop_io *io = NULL;
	struct loop_timer *timer = NULL;
	struct loop_signal *signal = NULL;
	struct work *work = NULL;

	scarce_begin(1);
	assert_int_equal(loop_new(&loop), -ENOMEM);
	scarce_begin(1);
	assert_int_equal(loop_io_new(*state, 0, LOOP_READ, on_readable, NULL, &io), -ENOMEM);
	scarce_begin(1);
	assert_int_equal(loop_timer_new(*state, tell_a, NULL, &timer), -ENOMEM);
	scarce_begin(1);
	assert_int_equal(loop_signal_new(*state, SIGUSR1, tell_a, NULL, &signal), -ENOMEM);
	for (unsigned nth = 1; nth <= 2; nth++) {
		scarce_begin(nth);
		assert_int_equal(work_new(*state, "test-work", 3, &work), -ENOMEM);
	}
	assert_true(scarce_end());
	for (unsigned nth = 1; nth <= 3; nth++) {
		thread_fails_in = nth;
		assert_int_equal(work_new(*state, "test-work", 3, &work), -EAGAIN);
	}
	assert_true(loop == NULL && io == NULL && timer == NULL && signal == NULL && work == NULL);
}

#define LOOP_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    LOOP_TEST(timers_fire_in_order_once_and_not_early),
	    LOOP_TEST(setting_again_moves_a_timer),
	    LOOP_TEST(a_timer_set_by_a_slow_callback_counts_from_then),
	    LOOP_TEST(short_timers_are_precise),
	    LOOP_TEST(a_turn_waits_no_longer_than_asked),
	    LOOP_TEST(descriptors_are_level_triggered),
	    LOOP_TEST(interest_can_change),
	    LOOP_TEST(a_callback_may_free_itself_and_others_that_are_ready),
	    LOOP_TEST(signals_arrive_on_the_loop),
	    LOOP_TEST(tasks_run_after_the_callbacks_and_the_buried_last),
	    LOOP_TEST(undeferred_tasks_do_not_run),
	    LOOP_TEST(burying_a_deferred_task_runs_it_once_and_last),
	    LOOP_TEST(loop_free_runs_what_is_queued),
	    LOOP_TEST(waiting_tasks_do_not_wait_for_an_event),
	    LOOP_TEST(jobs_run_on_threads_and_come_back_to_the_loop),
	    LOOP_TEST(work_free_finishes_every_job),
	    LOOP_TEST(one_thread_keeps_the_order),
	    LOOP_TEST(short_of_memory_or_threads_nothing_is_left),
	};

	return cmocka_run_group_tests_name("loop", tests, NULL, NULL);
}
