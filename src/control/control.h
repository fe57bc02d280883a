/* control.h -- the control socket: io.rwriter(Varlink) for rwctl and any other client */

#pragma once

#include <stddef.h>

struct control;
struct core;
struct event_view;
struct events;
struct loop;

struct control_env {
	struct loop *loop;
	struct core *core;
	const char *path;      /* of the socket; copied */
	const char *version;   /* of the daemon */
	const char *conf_file; /* named in hints */
	/* Reads the configuration and swaps it in: 0, or a negative errno and a line for each fault
	 * in errors. */
	int (*reload)(void *arg, char *errors, size_t size);
	void *arg;
	struct events *events; /* control's own: what has happened */
};

/* fd: listens on env->path already and stays there when we go (socket activation), or -1; owned
 * from success on. What env points to is borrowed until control_free(). 0, or a negative errno that
 * has been logged. */
int control_new(const struct control_env *env, int fd, struct control **ret);
/* Something has happened: for those who read events. */
void control_event(struct control *control, const struct event_view *event);
/* Cuts clients off (their writes are cancelled) and removes the socket that it made; before
 * core_free(). Accepts NULL, returns NULL. */
struct control *control_free(struct control *control);
