/* poller.h -- looks at memory that peers write, when nothing else tells of it
 *
 * Spins after activity (only where there are CPUs to spare), then pauses interval-min, doubling up
 * to interval-max. With no entry there is no timer. Entries whose fabric hints (FABRIC_ARRIVED) are
 * not polled by time: they are only kicked.
 */

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "loop/loop.h"

struct conf;
struct poller;

struct poll_entry {             /* embedded in its owner */
	struct list node;       /* polled by time */
	struct list again_node; /* to be looked at in the next turn */
	struct loop_task task;
	struct poller *poller;
	bool (*fn)(struct poll_entry *entry); /* true: there was something */
};

int poller_new(struct loop *loop, const struct conf *conf, struct poller **ret);
void poller_set_conf(struct poller *poller, const struct conf *conf);
struct poller *poller_free(struct poller *poller);

void poll_entry_init(
    struct poll_entry *entry, struct poller *poller, bool (*fn)(struct poll_entry *));
void poll_entry_start(struct poll_entry *entry); /* by time */
void poll_entry_stop(struct poll_entry *entry);  /* idempotent */
/* Looks once when this turn's callbacks are done, and starts the spin again. */
void poll_entry_kick(struct poll_entry *entry);
/* Looks in the next turn: what fn says when it has had its share and there is more. */
void poll_entry_again(struct poll_entry *entry);
