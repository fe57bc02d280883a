/* service.h -- what the daemon tells the service manager; without one, nothing happens
 *
 * The fence around libsystemd. See sd_notify(3) and sd_watchdog_enabled(3).
 */

#pragma once

#include <stdint.h>

struct loop;
struct service;

/* Feeds the watchdog, if there is one, from the loop at a third of its time. 0 or -ENOMEM. */
int service_new(struct loop *loop, struct service **ret);
struct service *service_free(struct service *service);

/* The control socket, where the service manager listens for us (sd_listen_fds(3)); without it
 * *ret_fd is -1. Whatever else was passed is refused: -EINVAL, and the log says what it was. */
int service_control_socket(const char *path, int *ret_fd);

void service_ready(void);
void service_reloading(void);
/* It may take so long, and a little more. */
void service_stopping(uint64_t may_take_ns);
/* One line for `systemctl status`. */
void service_status(const char *text);
