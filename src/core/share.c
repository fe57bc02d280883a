/* share.c -- a job pool shared among users */

#include "config.h"

#include <errno.h>
#include <stdlib.h>

#include "base/list.h"
#include "core/share.h"
#include "loop/work.h"

struct user {
	struct list node;
	uid_t uid;
	unsigned joined, running;
	struct list waiting; /* struct job */
};

struct share {
	struct work *work;
	unsigned most; /* threads for one user */
	struct list users;
};

int
share_new(struct work *work, struct share **ret)
{
	struct share *share = calloc(1, sizeof(*share));

	if (share == NULL)
		return -ENOMEM;
	share->work = work;
	share->most = work_threads(work) > 1 ? work_threads(work) / 2 : 1;
	list_init(&share->users);
	*ret = share;
	return 0;
}

struct share *
share_free(struct share *share)
{
	free(share);
	return NULL;
}

static struct user *
find(struct share *share, uid_t uid)
{
	struct user *user;

	list_for_each (user, &share->users, struct user, node)
		if (user->uid == uid)
			return user;
	return NULL;
}

int
share_join(struct share *share, uid_t uid)
{
	struct user *user = find(share, uid);

	if (user == NULL) {
		user = calloc(1, sizeof(*user));
		if (user == NULL)
			return -ENOMEM;
		user->uid = uid;
		list_init(&user->waiting);
		list_add_tail(&share->users, &user->node);
	}
	user->joined++;
	return 0;
}

void
share_leave(struct share *share, uid_t uid)
{
	struct user *user = find(share, uid);

	if (--user->joined > 0)
		return;
	list_del(&user->node);
	free(user);
}

static void
run_next(struct share *share, struct user *user)
{
	struct job *job;

	while (user->running < share->most && !list_empty(&user->waiting)) {
		job = list_first(&user->waiting, struct job, node);
		list_del(&job->node);
		user->running++;
		work_submit(share->work, job);
	}
}

void
share_submit(struct share *share, uid_t uid, struct job *job)
{
	struct user *user = find(share, uid);

	list_add_tail(&user->waiting, &job->node);
	run_next(share, user);
}

void
share_ended(struct share *share, uid_t uid)
{
	struct user *user = find(share, uid);

	user->running--;
	run_next(share, user);
}
