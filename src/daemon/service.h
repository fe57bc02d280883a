/* service.h -- what the daemon tells the service manager; without one, nothing happens
 *
 * The fence around libsystemd. See sd_notify(3) and sd_watchdog_enabled(3).
 */

#pragma once

struct loop;
struct service;

/* Feeds the watchdog, if there is one, from the loop at a third of its time. 0 or -ENOMEM. */
int service_new(struct loop *loop, struct service **ret);
struct service *service_free(struct service *service);

void service_ready(void);
void service_reloading(void);
void service_stopping(void);
/* One line for `systemctl status`. */
void service_status(const char *text);
