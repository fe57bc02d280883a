/* observer.h -- what the core tells those above it; calls come from the loop, never from inside a
 * call into the core, and may call into the core
 */

#pragma once

#include "core/view.h"

struct observer {
	void *arg;
	/* Anything that status shows has changed (listeners, counts): once per turn at the most. */
	void (*changed)(void *arg);
	/* A verified arrival. */
	void (*arrived)(void *arg, const struct region_view *region);
	/* Something has happened; this may come from inside a call into the core, and must not call
	 * into it. */
	void (*event)(void *arg, const struct event_view *event);
	/* core_stop() is done: core_free() may be called. */
	void (*stopped)(void *arg);
};
