/* verbs_hotplug.c -- devices that come and go while we run
 *
 * The connection manager tells of a removed device only where something is bound to it, and
 * librdmacm keeps every device open that was used once. Linux removes its software devices (rxe,
 * siw) when nobody has them open any more, and `rdma link delete` hangs until then. So the
 * directory of the device files is watched, and what is not there is let go.
 */

#include "config.h"

#include <string.h>

#include "base/log.h"
#include "fabric/device_files.h"
#include "fabric/verbs.h"

static void
on_files(void *arg, bool come)
{
	struct verbs *v = arg;

	(void)come;
	devices_check(v);
	verbs_ports_check(v);
}

void
verbs_hotplug_poll(struct verbs *v)
{
	device_files_poll(v->files);
}

void
verbs_hotplug_start(struct verbs *v)
{
	int r = device_files_watch(v->base.env.loop, DEVICE_FILES, on_files, v, &v->files);

	if (r < 0)
		log_warning("verbs: devices that come and go will be noticed late: cannot watch "
			    "%s: %s",
		    DEVICE_FILES, strerror(-r));
}

void
verbs_hotplug_stop(struct verbs *v)
{
	v->files = device_files_free(v->files);
}
