/* test_share.c -- a user whose jobs hang stops only himself */

#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/share.h"
#include "loop/loop.h"
#include "loop/work.h"

static struct share *share;
static int pipes[2];

struct task {
	struct job job;
	uid_t uid;
	bool done;
};

static void
hang(struct job *job)
{
	char c;

	(void)job;
	assert_int_equal(read(pipes[0], &c, 1), 1);
}

static void
run(struct job *job)
{
	(void)job;
}

static void
done(struct job *job)
{
	struct task *task = container_of(job, struct task, job);

	task->done = true;
	share_ended(share, task->uid);
}

static void
wait_for(struct loop *loop, const struct task *task)
{
	uint64_t until = loop_now() + 10 * NSEC_PER_SEC;

	while (!task->done) {
		loop_turn(loop, NSEC_PER_MSEC);
		assert_true(loop_now() < until);
	}
}

static void
one_user_hangs(void **state)
{
	struct task stuck[4], free_one = {.job = {.run = run, .done = done}, .uid = 2};
	struct loop *loop;
	struct work *work;

	(void)state;
	assert_int_equal(pipe(pipes), 0);
	assert_int_equal(loop_new(&loop), 0);
	assert_int_equal(work_new(loop, "test", 2, &work), 0);
	assert_int_equal(share_new(work, &share), 0);
	assert_int_equal(share_join(share, 1), 0);
	assert_int_equal(share_join(share, 2), 0);
	for (int i = 0; i < 4; i++) {
		stuck[i] = (struct task){.job = {.run = hang, .done = done}, .uid = 1};
		share_submit(share, 1, &stuck[i].job);
	}
	share_submit(share, 2, &free_one.job);
	wait_for(loop, &free_one); /* although four were there before it */
	assert_false(stuck[0].done);

	/* The user's own go on one after the other, in order. */
	for (int i = 0; i < 4; i++) {
		assert_int_equal(write(pipes[1], "x", 1), 1);
		wait_for(loop, &stuck[i]);
		assert_true(i == 3 || !stuck[i + 1].done);
	}
	share_leave(share, 1);
	share_leave(share, 2);
	share_free(share);
	work_free(work);
	loop_free(loop);
	close(pipes[0]);
	close(pipes[1]);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(one_user_hangs)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
