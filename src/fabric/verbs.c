/* verbs.c -- the fabric over rdma_cm and libibverbs: operations, opening and closing, CM channels
 *
 * ibv_fork_init() is never called: the daemon starts no programs. Regions are shared memory (a
 * memfd), which fork() would not copy; kernels from 5.12 on copy pinned private pages, such as
 * those of the areas, for the child.
 */

#include "config.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "fabric/verbs.h"
#include "wire/rwp.h"

void
verbs_emit(struct verbs *v, const struct fabric_event *event)
{
	v->base.env.event(v->base.env.arg, event);
}

void
verbs_defer(struct verbs *v, struct loop_task *task)
{
	loop_defer(v->base.env.loop, task);
}

void
verbs_bury(struct verbs *v, struct loop_task *task)
{
	loop_bury(v->base.env.loop, task);
}

int
verbs_nonblocking(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return -errno;
	return 0;
}

bool
verbs_is_iwarp(const struct ibv_context *context)
{
	return context->device->transport_type == IBV_TRANSPORT_IWARP;
}

/* ---- CM channels ---- */

static void
copy_event(struct cm_event *to, const struct rdma_cm_event *from)
{
	const struct rdma_conn_param *param = &from->param.conn;

	to->type = from->event;
	to->status = from->status;
	to->id = from->id;
	to->listener = from->listen_id;
	to->data_len = param->private_data != NULL ? param->private_data_len : 0;
	if (to->data_len > 0)
		memcpy(to->data, param->private_data, to->data_len);
}

static void
dispatch(struct verbs *v, const struct cm_event *e)
{
	struct rdma_cm_id *listener = e->listener != NULL ? e->listener : e->id;
	struct verbs_port *port = verbs_port_find(v, listener);

	if (port != NULL)
		verbs_port_event(port, e);
	else
		verbs_conn_event(e->id->context, e);
}

/* An event that is not acknowledged blocks the destruction of its id for ever. */
void
verbs_channel_drain(struct verbs *v, struct rdma_event_channel *channel)
{
	struct rdma_cm_event *event;
	struct cm_event copy;

	verbs_hotplug_poll(v);
	while (rdma_get_cm_event(channel, &event) == 0) {
		copy_event(&copy, event);
		rdma_ack_cm_event(event);
		dispatch(v, &copy);
	}
	if (errno != EAGAIN && errno != EINTR)
		log_warning("verbs: cannot read an event: %s", strerror(errno));
}

int
verbs_channel_new(struct verbs *v, loop_io_fn *fn, void *arg, struct rdma_event_channel **ret,
    struct loop_io **ret_io)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	int r;

	if (channel == NULL)
		return -errno;
	r = verbs_nonblocking(channel->fd);
	if (r == 0)
		r = loop_io_new(v->base.env.loop, channel->fd, LOOP_READ, fn, arg, ret_io);
	if (r < 0) {
		rdma_destroy_event_channel(channel);
		return r;
	}
	*ret = channel;
	return 0;
}

static void
on_channel(void *arg, unsigned events)
{
	struct verbs *v = arg;

	(void)events;
	verbs_channel_drain(v, v->channel);
}

/* ---- the fabric ---- */

static bool
is_missing(int error)
{
	return error == -ENODEV || error == -ENOENT || error == -ENXIO;
}

static const char *
why_not(int error)
{
	switch (error) {
	case -ENODEV:
		return "no RDMA device here";
	case -ENOENT:
	case -ENXIO:
		return "/dev/infiniband/rdma_cm is missing: load the kernel module rdma_ucm";
	case -EPERM:
	case -EACCES:
		return "/dev/infiniband may not be opened: see DevicePolicy= and DeviceAllow= of "
		       "the "
		       "unit, and the group of the device files";
	default:
		return "the RDMA connection manager (/dev/infiniband/rdma_cm) cannot be opened";
	}
}

static void
verbs_close(struct fabric *f)
{
	struct verbs *v = (struct verbs *)f;
	struct verbs_conn *c;

	if (v == NULL)
		return;
	assert(list_empty(&v->ports) && v->n_conns == 0);
	list_for_each (c, &v->lingering, struct verbs_conn, lingering)
		verbs_conn_finish(c);
	devices_free(v);
	verbs_hotplug_stop(v);
	loop_io_free(v->io);
	if (v->channel != NULL)
		rdma_destroy_event_channel(v->channel);
	free(v);
}

static int
verbs_open(const struct fabric_env *env, struct fabric **ret, const char **detail)
{
	struct verbs *v = calloc(1, sizeof(*v));
	int r;

	if (v == NULL) {
		*detail = "no memory";
		return -ENOMEM;
	}
	v->base = (struct fabric){.ops = &fabric_verbs, .env = *env};
	list_init(&v->ports);
	list_init(&v->devices);
	list_init(&v->lingering);
	r = join_init();
	if (r == 0)
		r = verbs_channel_new(v, on_channel, v, &v->channel, &v->io);
	if (r < 0) {
		*detail = why_not(r);
		verbs_close(&v->base);
		return is_missing(r) ? -ENXIO : r;
	}
	verbs_hotplug_start(v);
	*ret = &v->base;
	return 0;
}

const struct fabric_ops fabric_verbs = {
    .name = "verbs",
    .open = verbs_open,
    .close = verbs_close,
    .listen = verbs_listen,
    .unlisten = verbs_unlisten,
    .connect = verbs_connect,
    .request = verbs_request,
    .accept = verbs_accept,
    .reject = verbs_reject,
    .mem_add = verbs_mem_add,
    .mem_drop = verbs_mem_drop,
    .write = verbs_write,
    .stop = verbs_stop,
    .conn_free = verbs_conn_free,
    .describe = verbs_describe,
};
