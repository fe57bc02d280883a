/* spool.h -- the directories of [region NAME] sink = spool, and who is at work in them
 *
 *   opening > ready <> sweeping        begins wait while it is not ready
 *       ^ v
 *       down                           tried again with each begin
 *
 * A transfer has a key. Only one of a key is at work: a later one ends the connection of the
 * earlier and waits until that one's disk work has drained. What has ended is remembered for a
 * while, so that whoever missed its result can ask again.
 */

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "conf/conf.h"
#include "core/part.h"
#include "loop/work.h"

struct core;
struct loop_timer;

enum spool_state { SPOOL_OPENING, SPOOL_READY, SPOOL_SWEEPING, SPOOL_DOWN };

struct spool {
	struct list node; /* of core->spools, while it is configured */
	struct core *core;
	unsigned refs;           /* the configuration, those at work, jobs */
	struct conf_region conf; /* a copy; its lists are nobody's */
	enum spool_state state;
	int dir;
	char detail[LIMIT_TEXT + 1]; /* why it is down */
	struct list users;           /* struct spool_user, first come first */
	struct loop_timer *timer;    /* to sweep */
	struct loop_task kick, grave;

	struct job job;            /* opens and sweeps; while it runs, these are its own: */
	char path[LIMIT_NAME * 4]; /* conf.directory, which a reload writes anew */
	struct part_sweep sweep;
	int error;
};

/* A transfer at work, or waiting for its turn; embedded in its owner. */
struct spool_user {
	struct list node;
	struct spool *spool;
	char key[SPOOL_KEY_SIZE + 1];
	bool running;
	/* Its turn: spool->dir can be used; if state is SPOOL_DOWN, detail says why not. */
	void (*go)(struct spool_user *user);
	/* Another connection has come with the same transfer: leave soon. */
	void (*yield)(struct spool_user *user);
};

/* Spools as the configuration wants them; their directories are opened by jobs. 0 or -ENOMEM. */
int spool_sync(struct core *core);
/* Nobody is at work in any. */
void spool_free_all(struct core *core);
/* No job is under way. */
bool spool_quiet(const struct core *core);
/* NULL: that region has none (any more). */
struct spool *spool_find(struct core *core, const char *region);

void spool_enter(struct spool *spool, struct spool_user *user);
void spool_leave(struct spool_user *user);

/* ---- what has ended ---- */

/* done: of the transfer with this key; its RESULT has this seq on the connection of that region. */
void spool_remember(struct spool *spool, const char *key, const struct part_done *done,
    uint32_t region_id, uint64_t seq);
/* False: not known (any more). */
bool spool_recall(struct core *core, const char *key, struct part_done *ret);
/* The writer has taken all records up to seq on that connection: journals go. */
void spool_heard(struct spool *spool, uint32_t region_id, uint64_t seq);
