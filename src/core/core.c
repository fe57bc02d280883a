/* core.c -- start, stop, and the fabrics' events handed to the objects they belong to */

#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/random.h"
#include "base/text.h"
#include "core/addresses.h"
#include "core/channel.h"
#include "core/file.h"
#include "core/inbound.h"
#include "core/keyring.h"
#include "core/listener.h"
#include "core/peer.h"
#include "core/priv.h"
#include "core/refusal.h"
#include "core/region.h"
#include "core/share.h"
#include "core/sink.h"
#include "core/spool.h"
#include "core/transfer.h"
#include "fabric/device_files.h"

static void stop_waiting(void *arg);
static void tell_changed(struct loop_task *task);
static void tell_stopped(struct loop_task *task);

/* ---- events ---- */

static void
on_port(struct core *core, const struct fabric_event *event)
{
	(void)core;
	listener_event(event->port->owner, event);
}

static void
on_memory(struct core *core, const struct fabric_event *event)
{
	(void)core;
	registration_event(event->mem->owner, event);
}

static void
on_conn(struct core *core, const struct fabric_event *event)
{
	if (event->conn->owner != NULL) {
		channel_event(event->conn->owner, event);
		return;
	}
	/* Rejected: nothing but its end is of interest. */
	if (event->type == FABRIC_CLOSED) {
		refusal_closed(core, event->conn);
		core->orphans--;
		event->conn->fabric->ops->conn_free(event->conn);
		core_changed(core);
	}
}

static void (*const EVENTS[])(struct core *, const struct fabric_event *) = {
    [FABRIC_PORT_UP] = on_port,
    [FABRIC_PORT_DOWN] = on_port,
    [FABRIC_REQUEST] = on_port,
    [FABRIC_RESOLVED] = on_conn,
    [FABRIC_ESTABLISHED] = on_conn,
    [FABRIC_MEM_READY] = on_memory,
    [FABRIC_MEM_GONE] = on_memory,
    [FABRIC_WRITTEN] = on_conn,
    [FABRIC_ARRIVED] = on_conn,
    [FABRIC_CLOSED] = on_conn,
};

static void
on_event(void *arg, const struct fabric_event *event)
{
	EVENTS[event->type](arg, event);
}

/* ---- fabrics ---- */

void
core_open_fabric(struct core *core, struct core_fabric *f)
{
	struct fabric_options options = {
	    .mpa_crc = core->conf->mpa_crc,
	    .setup_ms = core->conf->setup_ns / NSEC_PER_MSEC,
	    .dead_ms = core->conf->dead_ns / NSEC_PER_MSEC,
	};
	struct fabric_env env = {
	    .loop = core->env.loop,
	    .work = core->env.store,
	    .event = on_event,
	    .arg = core,
	    .options = &options,
	};
	const char *missing = NULL;

	if (f->fabric != NULL)
		return;
	f->error = f->ops->open(&env, &f->fabric, &missing);
	if (f->error < 0)
		f->missing = missing != NULL ? missing : strerror(-f->error);
}

bool
core_fabric_wanted(const struct core_fabric *f, enum conf_fabric fabric)
{
	return fabric == CONF_FABRIC_AUTO || strcmp(conf_fabric_name(fabric), f->ops->name) == 0;
}

static void
take_fabrics(struct core *core)
{
	for (; core->n_fabrics < CORE_FABRICS_MAX && core->env.fabrics[core->n_fabrics] != NULL;
	     core->n_fabrics++)
		core->fabrics[core->n_fabrics].ops = core->env.fabrics[core->n_fabrics];
}

/* ---- start ---- */

static void
on_quiet(void *arg)
{
	core_changed(arg); /* core_stop() waits for it */
}

static void
on_address(void *arg, const struct sockaddr *address, bool here)
{
	listener_address(arg, address, here);
}

static void
on_device_file(void *arg, bool come)
{
	if (come)
		listener_device(arg);
}

/* Nothing but a listener's retries depends on it. */
static void
watch_machine(struct core *core)
{
	struct loop *loop = core->env.loop;
	int error = addresses_new(loop, on_address, core, &core->addresses);

	if (error < 0)
		log_warning(
		    "addresses that come and go will be noticed late: %s", strerror(-error));
	error = device_files_watch(loop, DEVICE_FILES, on_device_file, core, &core->files);
	if (error < 0)
		log_warning("RDMA devices that come will be noticed late: %s", strerror(-error));
}

static int
make_parts(struct core *core)
{
	struct loop *loop = core->env.loop;
	int error;

	core->sources.loop = loop;
	error = loop_timer_new(loop, stop_waiting, core, &core->stop_timer);
	if (error == 0)
		error = pool_new(
		    loop, core->env.store, core->conf->pinned_memory, on_quiet, core, &core->pool);
	if (error == 0)
		error = share_new(core->env.source, &core->sources.share);
	if (error == 0)
		error = files_new(core->sources.share, &core->sources.files);
	if (error == 0)
		error = poller_new(loop, core->conf, &core->poller);
	if (error == 0)
		error = refusals_new(core, &core->refusals);
	if (error == 0)
		error = keyring_new(core->conf, &core->keyring);
	return error;
}

int
core_new(const struct core_env *env, const struct conf *conf, const struct observer *observer,
    struct core **ret)
{
	struct core *core = calloc(1, sizeof(*core));
	int error;

	if (core == NULL)
		return -ENOMEM;
	core->env = *env;
	core->conf = conf;
	core->observer = *observer;
	core->started_ns = loop_now();
	random_bytes(core->boot_id, sizeof(core->boot_id));
	list_init(&core->listeners);
	list_init(&core->inbounds);
	list_init(&core->regions);
	list_init(&core->peers);
	list_init(&core->transfers);
	list_init(&core->spools);
	list_init(&core->finished);
	loop_task_init(&core->changed_task, tell_changed);
	loop_task_init(&core->stopped_task, tell_stopped);
	take_fabrics(core);
	watch_machine(core);
	error = make_parts(core);
	if (error == 0)
		error = peer_sync(core);
	if (error == 0)
		error = listener_sync(core);
	if (error < 0) {
		core_free(core);
		return error;
	}
	if (spool_sync(core) < 0)
		log_error("out of memory: some regions cannot store");
	peer_resolve_allowed(core);
	*ret = core;
	return 0;
}

void
core_reload(struct core *core, const struct conf *conf)
{
	core->conf = conf;
	pool_set_limit(core->pool, conf->pinned_memory);
	poller_set_conf(core->poller, conf);
	core->keyring = keyring_free(core->keyring);
	if (keyring_new(conf, &core->keyring) < 0)
		log_error("reload: out of memory: no key is known");
	if (core->stopping)
		return;
	if (peer_sync(core) < 0 || listener_sync(core) < 0 || spool_sync(core) < 0)
		log_error(
		    "reload: out of memory: some peers, listeners or directories are missing");
	peer_resolve_allowed(core);
	core_changed(core);
}

/* ---- stop ---- */

static bool
all_gone(const struct core *core)
{
	return core->connections == 0 && core->unproven == 0 && core->orphans == 0 &&
	       list_empty(&core->transfers) && pool_quiet(core->pool) && spool_quiet(core);
}

static void
end_lingering(struct core *core)
{
	struct region *region;

	list_for_each (region, &core->regions, struct region, node)
		if (region->state == REGION_LINGERING)
			region_free(region);
}

/* Transfers have had their time: everything ends now. */
static void
stop_waiting(void *arg)
{
	struct core *core = arg;

	loop_timer_clear(core->stop_timer);
	pool_set_limit(core->pool, 0); /* nobody needs what comes back, so it is not made warm */
	peer_end_all(core);
	inbound_end_all(core, RWP_E_SHUTDOWN, "the daemon stops");
	end_lingering(core);
}

static bool
busy(const struct core *core)
{
	return !list_empty(&core->transfers) || inbound_any_open(core);
}

void
core_stop(struct core *core)
{
	bool again = core->stopping;

	core->stopping = true;
	listener_close_all(core);
	refusal_flush(core);
	inbound_take_no_more(core);
	if (again || !busy(core))
		stop_waiting(core);
	else
		loop_timer_set(core->stop_timer, core->conf->stop_ns);
	core_changed(core);
}

struct core *
core_free(struct core *core)
{
	if (core == NULL)
		return NULL;
	listener_close_all(core);
	peer_free_all(core);
	addresses_free(core->addresses);
	device_files_free(core->files);
	spool_free_all(core);
	loop_undefer(&core->changed_task);
	loop_undefer(&core->stopped_task);
	for (unsigned i = 0; i < core->n_fabrics; i++)
		core->fabrics[i].ops->close(core->fabrics[i].fabric);
	keyring_free(core->keyring);
	refusals_free(core->refusals);
	poller_free(core->poller);
	files_free(core->sources.files);
	share_free(core->sources.share);
	pool_free(core->pool);
	loop_timer_free(core->stop_timer);
	free(core);
	return NULL;
}

/* ---- upwards ---- */

void
core_changed(struct core *core)
{
	loop_defer(core->env.loop, &core->changed_task);
}

static void
tell_changed(struct loop_task *task)
{
	struct core *core = container_of(task, struct core, changed_task);

	if (core->stopping && !busy(core))
		stop_waiting(core); /* the last transfer has ended: no need to wait longer */
	if (core->observer.changed != NULL)
		core->observer.changed(core->observer.arg);
	if (core->stopping && all_gone(core))
		loop_defer(core->env.loop, &core->stopped_task);
}

static void
tell_stopped(struct loop_task *task)
{
	struct core *core = container_of(task, struct core, stopped_task);

	if (core->observer.stopped != NULL)
		core->observer.stopped(core->observer.arg);
}

/* ---- looking and administering ---- */

void
core_status(const struct core *core, struct status_view *ret)
{
	*ret = (struct status_view){
	    .up_ns = loop_now() - core->started_ns,
	    .memory_used = pool_used(core->pool),
	    .memory_limit = pool_limit(core->pool),
	    .connections = core->connections,
	    .connections_limit = core->conf->connections,
	    .unproven = core->unproven,
	    .unproven_limit = core->conf->unproven,
	    .regions = list_length(&core->regions),
	    .transfers = list_length(&core->transfers),
	    .reconnects = core->reconnects,
	    .stopping = core->stopping,
	};
	memcpy(ret->name, core->conf->name, sizeof(ret->name));
	memcpy(ret->boot_id, core->boot_id, sizeof(ret->boot_id));
	for (unsigned i = 0; i < REFUSED_CAUSES; i++)
		ret->refused[i] = refusal_count(core, i);
}

void
core_each_region(struct core *core, void (*fn)(void *arg, const struct region_view *v), void *arg)
{
	struct region_view view;
	struct region *region;

	list_for_each (region, &core->regions, struct region, node) {
		region_view(region, &view);
		fn(arg, &view);
	}
}

void
core_each_peer(struct core *core, void (*fn)(void *arg, const struct peer_view *v), void *arg)
{
	peer_each(core, fn, arg);
	inbound_each(core, fn, arg);
}

void
core_each_listen(struct core *core, void (*fn)(void *arg, const struct listen_view *v), void *arg)
{
	listener_each(core, fn, arg);
}

static bool
region_matches(const struct region *region, const char *which)
{
	uint64_t id;

	if (which[0] == '\0')
		return true;
	if (text_parse_uint(which, UINT32_MAX, &id) == 0)
		return region->id == id;
	return strcmp(region->peer, which) == 0 || strcmp(region->claimed_name, which) == 0 ||
	       strcmp(region->address, which) == 0;
}

int
core_open_region(struct core *core, const char *which, struct region_view *ret, int *ret_fd)
{
	struct region *region, *best = NULL;
	bool any = false;
	int fd;

	list_for_each (region, &core->regions, struct region, node) {
		if (!region_matches(region, which))
			continue;
		any = true;
		if (region->has_arrival && !region->sink->ring &&
		    (best == NULL || region->last.at >= best->last.at))
			best = region;
	}
	if (best == NULL)
		return any ? -ENODATA : -ENOENT;
	fd = memory_export(best->memory);
	if (fd < 0)
		return fd;
	region_view(best, ret);
	*ret_fd = fd;
	return 0;
}

int
core_release(struct core *core, uint32_t id)
{
	struct region *region = region_find(core, id);

	if (region == NULL)
		return -ENOENT;
	region->released = true;
	if (region->inbound != NULL)
		inbound_end(region->inbound, RWP_E_RELEASED, "an operator released the region");
	else
		region_free(region);
	return 0;
}

unsigned
core_disconnect(struct core *core, const char *peer)
{
	return peer_disconnect(core, peer) + inbound_disconnect(core, peer);
}

void
core_each_flight(struct core *core, void (*fn)(void *arg, const struct flight_record *r), void *arg)
{
	flight_log_each(&core->received, fn, arg);
	flight_log_each(&core->sent, fn, arg);
	transfer_each_flight(core, fn, arg);
}
