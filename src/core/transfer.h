/* transfer.h -- one `rwctl write`: from the queue of its peer to its final state
 *
 *   queued > connecting > sending > confirming > arrived or stored
 *       (back to queued, once, if a reused connection was dead)      any failure: refused, failed,
 * deadline
 *
 * Owned by the core; core_write() makes it, the final update ends it. A transfer belongs to its
 * peer's queue or to one outbound connection.
 */

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "core/core.h"
#include "core/view.h"
#include "loop/loop.h"

struct dial;
struct failure;
struct outbound;
struct peer;
struct rwp_record;
struct source;

struct transfer {
	struct list node;       /* core->transfers */
	struct list queue_node; /* peer->waiting */
	struct core *core;
	struct peer *peer;
	struct dial *dial;         /* while a connection is being made for it */
	struct outbound *outbound; /* while it has one */
	struct source *source;
	uint64_t wanted; /* bytes to ask of the target */
	char region[LIMIT_NAME + 1];
	bool preserve; /* the file's mode and mtime travel too */
	bool retried;  /* on a fresh connection, after a reused one turned out dead */
	uint64_t started, sending_since; /* loop_now() */
	struct transfer_view view;
	bool view_dirty;
	struct loop_timer *deadline, *stall, *updates;
	void (*update)(void *arg, const struct transfer_view *view);
	void *arg;
	struct loop *loop;
	struct loop_task tell_task, grave;
};

/* ---- from peer and outbound ---- */

/* A dial is under way; then a connection is its own. */
void transfer_connecting(struct transfer *t);
void transfer_attach(struct transfer *t, struct outbound *ob);
/* Its connection has lost it, or has done with it. */
void transfer_released(struct transfer *t);
/* The connection begins with it: from now on it must get on. */
void transfer_running(struct transfer *t);
/* Back to the peer's queue, as if it had not begun. */
void transfer_requeue(struct transfer *t);
/* Final. */
void transfer_fail(struct transfer *t, const struct failure *why);
/* RESULT of the target. */
void transfer_result(struct transfer *t, const struct rwp_record *r, const uint8_t *blob);
/* The target has verified so many bytes. */
void transfer_progress(struct transfer *t, uint64_t arrived);

/* ---- from sender ---- */

const char *transfer_name(const struct transfer *t);
bool transfer_preserves(const struct transfer *t);
void transfer_sending(struct transfer *t, uint64_t sent);
void transfer_confirming(struct transfer *t); /* all is sent */
/* It broke on our side; fix may be "". */
void transfer_failed(struct transfer *t, unsigned code, const char *text, const char *fix);
