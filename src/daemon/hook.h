/* hook.h -- the program of a region, run for what arrives in it
 *
 * [region NAME] program and argument. It gets the facts in its environment and nothing else of the
 * daemon: no descriptors, no memory. So many run at once, each for so long ([limits] hooks,
 * hook-time); the others wait for their turn.
 */

#pragma once

#include "core/view.h"

struct conf;
struct hooks;
struct loop;

/* ended: EVENT_HOOK, whose text says how a program ended. 0 or -ENOMEM. */
int hooks_new(struct loop *loop, void (*ended)(void *arg, const struct event_view *event),
    void *arg, struct hooks **ret);
/* Those that run are killed. Accepts NULL, returns NULL. */
struct hooks *hooks_free(struct hooks *hooks);

/* Runs what conf, which is not kept, says about this event, or nothing. */
void hooks_event(struct hooks *hooks, const struct conf *conf, const struct event_view *event);
