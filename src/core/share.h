/* share.h -- a job pool shared among users: one user's jobs hold at most half of its threads
 *
 * A file that hangs (a dead NFS server) blocks the thread that reads it. Whoever writes such files
 * stops only himself.
 */

#pragma once

#include <sys/types.h>

struct job;
struct share;
struct work;

int share_new(struct work *work, struct share **ret); /* 0 or -ENOMEM */
/* All jobs have ended. Accepts NULL, returns NULL. */
struct share *share_free(struct share *share);

/* Begins with jobs of this user; share_leave() ends it. 0 or -ENOMEM. */
int share_join(struct share *share, uid_t uid);
void share_leave(struct share *share, uid_t uid);
/* The user has joined. The job runs at once, or when one of the user's has ended. */
void share_submit(struct share *share, uid_t uid, struct job *job);
/* To be called from the done() of every such job. */
void share_ended(struct share *share, uid_t uid);
