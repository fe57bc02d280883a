/* service.c -- what the daemon tells the service manager */

#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <systemd/sd-daemon.h>

#include "daemon/service.h"
#include "loop/loop.h"

struct service {
	struct loop_timer *timer; /* NULL: no watchdog */
	uint64_t interval_ns;
};

static void
feed(void *arg)
{
	struct service *service = arg;

	sd_notify(0, "WATCHDOG=1");
	loop_timer_set(service->timer, service->interval_ns);
}

int
service_new(struct loop *loop, struct service **ret)
{
	struct service *service = calloc(1, sizeof(*service));
	uint64_t usec;

	if (service == NULL)
		return -ENOMEM;
	if (sd_watchdog_enabled(0, &usec) > 0) {
		if (loop_timer_new(loop, feed, service, &service->timer) < 0) {
			free(service);
			return -ENOMEM;
		}
		service->interval_ns = usec * NSEC_PER_USEC / 3;
		feed(service);
	}
	*ret = service;
	return 0;
}

struct service *
service_free(struct service *service)
{
	if (service == NULL)
		return NULL;
	loop_timer_free(service->timer);
	free(service);
	return NULL;
}

void
service_ready(void)
{
	sd_notify(0, "READY=1");
}

void
service_reloading(void)
{
	sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64, loop_now() / NSEC_PER_USEC);
}

void
service_stopping(void)
{
	sd_notify(0, "STOPPING=1");
}

void
service_status(const char *text)
{
	sd_notifyf(0, "STATUS=%s", text);
}
