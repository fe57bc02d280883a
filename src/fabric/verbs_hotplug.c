/* verbs_hotplug.c -- devices that come and go while we run
 *
 * The connection manager tells of a removed device only where something is bound to it, and
 * librdmacm keeps every device open that was used once. Linux removes its software devices (rxe,
 * siw) when nobody has them open any more, and `rdma link delete` hangs until then. So the
 * directory of the device files is watched, and what is not there is let go.
 */

#include "config.h"

#include <errno.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/log.h"
#include "fabric/verbs.h"

#define DEVICE_FILES "/dev/infiniband"

void
verbs_hotplug_poll(struct verbs *v)
{
	_Alignas(struct inotify_event) char buf[4096];
	bool any = false;

	while (v->watch >= 0 && read(v->watch, buf, sizeof(buf)) > 0)
		any = true;
	if (!any)
		return;
	devices_check(v);
	verbs_ports_check(v);
}

static void
on_watch(void *arg, unsigned events)
{
	(void)events;
	verbs_hotplug_poll(arg);
}

void
verbs_hotplug_start(struct verbs *v)
{
	v->watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (v->watch >= 0 &&
	    inotify_add_watch(v->watch, DEVICE_FILES, IN_CREATE | IN_DELETE) >= 0 &&
	    loop_io_new(v->base.env.loop, v->watch, LOOP_READ, on_watch, v, &v->watch_io) == 0)
		return;
	log_warning("verbs: devices that come and go will be noticed late: cannot watch %s: %s",
	    DEVICE_FILES, strerror(errno));
	verbs_hotplug_stop(v);
}

void
verbs_hotplug_stop(struct verbs *v)
{
	v->watch_io = loop_io_free(v->watch_io);
	if (v->watch >= 0)
		close(v->watch);
	v->watch = -1;
}
