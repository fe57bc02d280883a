/* control.c -- the control socket: io.rwriter(Varlink) for rwctl and any other client */

#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "control/control.h"
#include "control/events.h"
#include "control/methods.h"
#include "control/socket.h"
#include "control/varlink.h"

struct control {
	struct control_env env;
	struct varlink *varlink;
	bool made;   /* the socket is ours to remove */
	char path[]; /* env's: a reload may free the configuration that it came from */
};

int
control_new(const struct control_env *env, int fd, struct control **ret)
{
	struct control *control = malloc(sizeof(*control) + strlen(env->path) + 1);
	int r;

	if (control == NULL)
		return -ENOMEM;
	control->env = *env;
	control->env.path = strcpy(control->path, env->path);
	r = events_new(env->core, &control->env.events);
	if (r < 0)
		goto fail;
	control->made = fd < 0;
	if (control->made)
		r = control_socket_listen(env->path, &fd);
	if (r < 0)
		goto fail_events;
	r = varlink_new(env->loop, fd, methods_call, &control->env, &control->varlink);
	if (r < 0) {
		log_error("control socket %s: %s", env->path, strerror(-r));
		goto fail_socket;
	}
	*ret = control;
	return 0;
fail_socket:
	if (control->made) {
		unlink(env->path);
		close(fd);
	}
fail_events:
	events_free(control->env.events);
fail:
	free(control);
	return r;
}

void
control_event(struct control *control, const struct event_view *event)
{
	events_add(control->env.events, event);
}

struct control *
control_free(struct control *control)
{
	if (control == NULL)
		return NULL;
	if (control->made)
		unlink(control->env.path);
	varlink_free(control->varlink);
	events_free(control->env.events);
	free(control);
	return NULL;
}
