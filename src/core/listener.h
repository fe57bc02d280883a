/* listener.h -- one address that one fabric listens on for one [listen] section
 *
 * What is down is tried again when its address or a device comes, and for a moment after that. If
 * it lacks anything but these, also after a pause that doubles from 1 s up to [limits] retry.
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "fabric/fabric.h"

struct conf;
struct core;
struct listen_view;
struct listener;

/* Opens and closes what differs between the core's configuration and what is listened on now.
 * -ENOMEM: some are missing. */
int listener_sync(struct core *core);
void listener_close_all(struct core *core);

/* An address of this machine has come, or has gone (NULL: see addresses.h). */
void listener_address(struct core *core, const struct sockaddr *address, bool here);
/* A device that a fabric may lack has come. */
void listener_device(struct core *core);
void listener_event(struct listener *l, const struct fabric_event *event);
const char *listener_name(const struct listener *l); /* LIMIT_NAME + 1 bytes */
/* What speaks against the other fabrics of its section here: "verbs: ...", or "". */
void listener_why(const struct listener *l, char *buf, size_t size);
void listener_view(const struct listener *l, struct listen_view *ret);
/* fn for every listener, in the order of the configuration. */
void listener_each(
    struct core *core, void (*fn)(void *arg, const struct listen_view *v), void *arg);
