/* poller.c -- looks at memory that peers write, when nothing else tells of it */

#include "config.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>

#include "conf/conf.h"
#include "core/poller.h"

#define SPIN_MIN_CPUS 4

struct poller {
	struct loop *loop;
	struct loop_timer *timer;
	struct list entries;
	uint64_t spin_ns, interval_min_ns, interval_max_ns;
	uint64_t spin_until; /* loop_now() */
	uint64_t interval_ns;
};

static unsigned
usable_cpus(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
}

void
poller_set_conf(struct poller *poller, const struct conf *conf)
{
	poller->spin_ns = usable_cpus() >= SPIN_MIN_CPUS ? conf->spin_ns : 0;
	poller->interval_min_ns = conf->interval_min_ns;
	poller->interval_max_ns = conf->interval_max_ns;
	poller->interval_ns = poller->interval_min_ns;
}

static void
activity(struct poller *poller)
{
	poller->spin_until = loop_now() + poller->spin_ns;
	poller->interval_ns = poller->interval_min_ns;
}

/* The pause before the next look; grows while nothing happens. */
static uint64_t
next_pause(struct poller *poller)
{
	uint64_t pause = poller->interval_ns;

	if (poller->spin_ns > 0 && loop_now() < poller->spin_until)
		return 0;
	poller->interval_ns *= 2;
	if (poller->interval_ns > poller->interval_max_ns)
		poller->interval_ns = poller->interval_max_ns;
	return pause;
}

static void
tick(void *arg)
{
	struct poller *poller = arg;
	struct poll_entry *entry;
	bool any = false;

	list_for_each (entry, &poller->entries, struct poll_entry, node)
		any |= entry->fn(entry);
	if (any)
		activity(poller);
	if (!list_empty(&poller->entries))
		loop_timer_set(poller->timer, next_pause(poller));
}

static void
look_once(struct loop_task *task)
{
	struct poll_entry *entry = container_of(task, struct poll_entry, task);

	if (entry->fn(entry))
		activity(entry->poller);
}

int
poller_new(struct loop *loop, const struct conf *conf, struct poller **ret)
{
	struct poller *poller = calloc(1, sizeof(*poller));

	if (poller == NULL)
		return -ENOMEM;
	if (loop_timer_new(loop, tick, poller, &poller->timer) < 0) {
		free(poller);
		return -ENOMEM;
	}
	poller->loop = loop;
	list_init(&poller->entries);
	poller_set_conf(poller, conf);
	*ret = poller;
	return 0;
}

struct poller *
poller_free(struct poller *poller)
{
	if (poller == NULL)
		return NULL;
	loop_timer_free(poller->timer);
	free(poller);
	return NULL;
}

void
poll_entry_init(struct poll_entry *entry, struct poller *poller, bool (*fn)(struct poll_entry *))
{
	list_init(&entry->node);
	loop_task_init(&entry->task, look_once);
	entry->poller = poller;
	entry->fn = fn;
}

void
poll_entry_start(struct poll_entry *entry)
{
	if (!list_linked(&entry->node))
		list_add_tail(&entry->poller->entries, &entry->node);
	activity(entry->poller);
	loop_timer_set(entry->poller->timer, 0);
}

void
poll_entry_stop(struct poll_entry *entry)
{
	list_del(&entry->node);
	loop_undefer(&entry->task);
	if (list_empty(&entry->poller->entries))
		loop_timer_clear(entry->poller->timer);
}

void
poll_entry_kick(struct poll_entry *entry)
{
	loop_defer(entry->poller->loop, &entry->task);
	activity(entry->poller);
	if (list_linked(&entry->node))
		loop_timer_set(entry->poller->timer, next_pause(entry->poller));
}
