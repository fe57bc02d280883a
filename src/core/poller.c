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
	uint64_t due; /* loop_now() when the timer fires; 0: it is not set */
	struct list entries, again;
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

/* Only ever earlier: a kick for one must not put off the others. */
static void
tick_after(struct poller *poller, uint64_t after_ns)
{
	uint64_t due = loop_now() + after_ns;

	if (poller->due != 0 && poller->due <= due)
		return;
	poller->due = due;
	loop_timer_set(poller->timer, after_ns);
}

/* An entry's fn may stop any entry, itself too: so each is taken from a list of those to come. */
static bool
look_at_polled(struct poller *poller)
{
	struct poll_entry *entry;
	struct list todo;
	bool any = false;

	list_init(&todo);
	list_splice_tail(&todo, &poller->entries);
	while ((entry = list_first(&todo, struct poll_entry, node)) != NULL) {
		list_del(&entry->node);
		list_add_tail(&poller->entries, &entry->node);
		any |= entry->fn(entry);
	}
	return any;
}

static bool
look_again(struct poller *poller)
{
	struct poll_entry *entry;
	struct list todo;
	bool any = false;

	list_init(&todo);
	list_splice_tail(&todo, &poller->again);
	while ((entry = list_first(&todo, struct poll_entry, again_node)) != NULL) {
		list_del(&entry->again_node);
		any |= entry->fn(entry);
	}
	return any;
}

static void
tick(void *arg)
{
	struct poller *poller = arg;
	bool any;

	poller->due = 0;
	any = look_again(poller);
	any |= look_at_polled(poller);
	if (any)
		activity(poller);
	if (!list_empty(&poller->again))
		tick_after(poller, 0);
	else if (!list_empty(&poller->entries))
		tick_after(poller, next_pause(poller));
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
	list_init(&poller->again);
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
	list_init(&entry->again_node);
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
	tick_after(entry->poller, 0);
}

void
poll_entry_stop(struct poll_entry *entry)
{
	struct poller *poller = entry->poller;

	list_del(&entry->node);
	list_del(&entry->again_node);
	loop_undefer(&entry->task);
	if (list_empty(&poller->entries) && list_empty(&poller->again)) {
		loop_timer_clear(poller->timer);
		poller->due = 0;
	}
}

void
poll_entry_kick(struct poll_entry *entry)
{
	loop_defer(entry->poller->loop, &entry->task);
	activity(entry->poller);
	if (list_linked(&entry->node))
		tick_after(entry->poller, next_pause(entry->poller));
}

void
poll_entry_again(struct poll_entry *entry)
{
	if (!list_linked(&entry->again_node))
		list_add_tail(&entry->poller->again, &entry->again_node);
	tick_after(entry->poller, 0);
}
