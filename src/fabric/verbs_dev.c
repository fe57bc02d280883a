/* verbs_dev.c -- what is shared by all that use one device: a completion channel, asynchronous
 * events */

#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "fabric/verbs.h"

/* ---- asynchronous events ---- */

enum scope { SCOPE_NONE, SCOPE_CQ, SCOPE_QP, SCOPE_COMM_EST, SCOPE_PORT, SCOPE_DEVICE };

/* Every event there is; those without a row mean nothing to us. */
static const struct {
	enum scope scope;
	enum fabric_cause cause;
	const char *text;
} ASYNC[] = {
    [IBV_EVENT_CQ_ERR] = {SCOPE_CQ, FABRIC_CAUSE_DEVICE, "completion queue overrun"},
    [IBV_EVENT_QP_FATAL] = {SCOPE_QP, FABRIC_CAUSE_UNKNOWN, "queue pair failed"},
    [IBV_EVENT_QP_REQ_ERR] = {SCOPE_QP, FABRIC_CAUSE_PROTOCOL, "the peer sent an invalid request"},
    [IBV_EVENT_QP_ACCESS_ERR] = {SCOPE_QP, FABRIC_CAUSE_PROTOCOL,
	"the peer wrote where it may not"},
    [IBV_EVENT_COMM_EST] = {SCOPE_COMM_EST, FABRIC_CAUSE_LOCAL, NULL},
    [IBV_EVENT_PATH_MIG_ERR] = {SCOPE_QP, FABRIC_CAUSE_DEVICE, "path migration failed"},
    [IBV_EVENT_DEVICE_FATAL] = {SCOPE_DEVICE, FABRIC_CAUSE_DEVICE,
	"the RDMA device failed or is gone"},
    [IBV_EVENT_PORT_ACTIVE] = {SCOPE_PORT, FABRIC_CAUSE_LOCAL, "port is active"},
    [IBV_EVENT_PORT_ERR] = {SCOPE_PORT, FABRIC_CAUSE_LOCAL, "port is down"},
    [IBV_EVENT_WQ_FATAL] = {SCOPE_NONE, FABRIC_CAUSE_LOCAL, NULL},
};

static void
end_all(struct verbs_device *d, enum fabric_cause cause, const char *text)
{
	struct verbs_conn *c;

	list_for_each (c, &d->conns, struct verbs_conn, node)
		verbs_conn_end(c, cause, "%s: %s", c->info.device, text);
}

static void
end_one(struct verbs_conn *c, enum fabric_cause cause, const char *text)
{
	if (cause == FABRIC_CAUSE_UNKNOWN)
		verbs_conn_end_unexplained(c, text);
	else
		verbs_conn_end(c, cause, "%s: %s", c->info.device, text);
}

/* Queue pairs and completion queues that have an event are alive: destroying one takes its events
 * away, and both happen on this thread. */
static void
on_async_event(struct verbs_device *d, const struct ibv_async_event *e)
{
	enum fabric_cause cause = ASYNC[e->event_type].cause;
	const char *text = ASYNC[e->event_type].text;
	const char *name = ibv_get_device_name(d->context->device);

	switch (ASYNC[e->event_type].scope) {
	case SCOPE_NONE:
		break;
	case SCOPE_CQ:
		if (e->element.cq->cq_context != NULL)
			end_one(e->element.cq->cq_context, cause, text);
		break;
	case SCOPE_QP:
		end_one(e->element.qp->qp_context, cause, text);
		break;
	case SCOPE_COMM_EST:
		/* Data overtook the last message of the handshake: tell the CM. */
		rdma_notify(((struct verbs_conn *)e->element.qp->qp_context)->id, e->event_type);
		break;
	case SCOPE_PORT:
		log_warning("verbs %s: %s (port %d)", name, text, e->element.port_num);
		break;
	case SCOPE_DEVICE:
		end_all(d, cause, text);
		break;
	}
}

void
device_poll_async(struct verbs_device *d)
{
	struct ibv_async_event event, copy;

	while (ibv_get_async_event(d->context, &event) == 0) {
		copy = event;
		ibv_ack_async_event(&event);
		if (copy.event_type < sizeof(ASYNC) / sizeof(ASYNC[0]))
			on_async_event(d, &copy);
	}
}

static void
on_async(void *arg, unsigned events)
{
	(void)events;
	device_poll_async(arg);
}

/* ---- completions ---- */

/* Arming comes before polling: what completes in between is seen by one or the other. */
static void
on_completions(void *arg, unsigned events)
{
	struct verbs_device *d = arg;
	struct ibv_cq *cq;
	void *conn;

	(void)events;
	while (ibv_get_cq_event(d->channel, &cq, &conn) == 0) {
		ibv_ack_cq_events(cq, 1);
		ibv_req_notify_cq(cq, 0);
		queue_poll(conn);
	}
}

/* ---- life ---- */

/* libsiw takes the mmap key 0x90000 for 'none', so the queue that gets it cannot be used and a
 * process is left with some twenty queue pairs. The kernel gives out keys by page, the lowest
 * first: a queue that covers that page and is created before all others keeps everybody else off
 * it. */
#define SIW_VENDOR_ID  0x626d74
#define SIW_GUARD_CQES 20000

static void
guard_siw(struct verbs_device *d)
{
	if (!d->iwarp || d->attr.vendor_id != SIW_VENDOR_ID)
		return;
	d->guard = ibv_create_cq(d->context, SIW_GUARD_CQES, NULL, NULL, 0);
	if (d->guard == NULL)
		log_warning("verbs %s: only some twenty connections will be possible: %s",
		    ibv_get_device_name(d->context->device), strerror(errno));
}

/* librdmacm closes a device that is gone when it meets a new one, and the kernel may not wait so
 * long. The context is librdmacm's and stays as it is, but its files are closed. (A protection
 * domain of librdmacm's is lost by that, a few bytes.) */
static void
let_go(const struct ibv_context *context)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null < 0 || dup3(null, context->cmd_fd, O_CLOEXEC) < 0 ||
	    dup3(null, context->async_fd, O_CLOEXEC) < 0)
		log_warning("verbs %s: the device cannot be let go: %s",
		    ibv_get_device_name(context->device), strerror(errno));
	if (null >= 0)
		close(null);
}

static struct verbs_device *
device_free(struct verbs_device *d)
{
	if (d == NULL)
		return NULL;
	list_del(&d->node);
	loop_io_free(d->async_io);
	loop_io_free(d->channel_io);
	if (d->channel != NULL)
		ibv_destroy_comp_channel(d->channel);
	if (d->guard != NULL)
		ibv_destroy_cq(d->guard);
	if (d->gone)
		let_go(d->context);
	free(d);
	return NULL;
}

static int
watch(struct verbs_device *d, int fd, loop_io_fn *fn, struct loop_io **ret)
{
	int r = verbs_nonblocking(fd);

	return r < 0 ? r : loop_io_new(d->verbs->base.env.loop, fd, LOOP_READ, fn, d, ret);
}

static int
device_new(struct verbs *v, struct ibv_context *context, struct verbs_device **ret)
{
	struct verbs_device *d = calloc(1, sizeof(*d));
	int r;

	if (d == NULL)
		return -ENOMEM;
	d->verbs = v;
	d->context = context;
	d->iwarp = verbs_is_iwarp(context);
	d->inline_max = VERBS_INLINE;
	list_init(&d->conns);
	list_init(&d->node);
	r = -ibv_query_device(context, &d->attr);
	if (r < 0)
		goto fail;
	guard_siw(d);
	d->channel = ibv_create_comp_channel(context);
	if (d->channel == NULL) {
		r = -errno;
		goto fail;
	}
	r = watch(d, d->channel->fd, on_completions, &d->channel_io);
	if (r == 0)
		r = watch(d, context->async_fd, on_async, &d->async_io);
	if (r < 0)
		goto fail;
	list_add_tail(&v->devices, &d->node);
	*ret = d;
	return 0;
fail:
	device_free(d);
	return r;
}

static struct verbs_device *
find(struct verbs *v, const struct ibv_context *context)
{
	struct verbs_device *d;

	list_for_each (d, &v->devices, struct verbs_device, node)
		if (d->context == context)
			return d;
	return NULL;
}

int
device_hold(struct verbs *v, struct ibv_context *context, struct verbs_device **ret)
{
	struct verbs_device *d = find(v, context);
	int r = 0;

	if (d == NULL)
		r = device_new(v, context, &d);
	if (r < 0)
		return r;
	d->users++;
	*ret = d;
	return 0;
}

struct verbs_device *
device_release(struct verbs_device *d)
{
	if (d != NULL && --d->users == 0 && d->gone)
		device_free(d);
	return NULL;
}

int
device_get(struct verbs *v, struct verbs_conn *c)
{
	int r = device_hold(v, c->id->verbs, &c->device);

	if (r == 0)
		list_add_tail(&c->device->conns, &c->node);
	return r;
}

/* librdmacm may close the context of a removed device with the last id: call this before the id
 * goes. */
void
device_put(struct verbs_conn *c)
{
	list_del(&c->node);
	c->device = device_release(c->device);
}

void
devices_free(struct verbs *v)
{
	struct verbs_device *d;

	list_for_each (d, &v->devices, struct verbs_device, node)
		device_free(d);
}

/* ---- devices that go ---- */

static bool
is_listed(struct ibv_device *const *list, const struct ibv_device *device)
{
	for (; *list != NULL; list++)
		if (*list == device)
			return true;
	return false;
}

static void
lose(struct verbs_device *d)
{
	log_warning("verbs %s: the RDMA device is gone", ibv_get_device_name(d->context->device));
	d->gone = true;
	end_all(d, FABRIC_CAUSE_DEVICE, "the RDMA device is gone");
	if (d->users == 0)
		device_free(d);
}

void
devices_check(struct verbs *v)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct verbs_device *d;

	if (list == NULL)
		return;
	list_for_each (d, &v->devices, struct verbs_device, node)
		if (!d->gone && !is_listed(list, d->context->device))
			lose(d);
	ibv_free_device_list(list);
}

/* ---- names ---- */

void
device_names(char *buf, size_t size)
{
	int n = 0;
	struct ibv_device **list = ibv_get_device_list(&n);
	size_t len = 0;

	snprintf(buf, size, "none");
	for (int i = 0; list != NULL && i < n && len < size; i++)
		len += (size_t)snprintf(
		    buf + len, size - len, "%s%s", i > 0 ? ", " : "", ibv_get_device_name(list[i]));
	if (list != NULL)
		ibv_free_device_list(list);
}

bool
device_exists(const char *name)
{
	int n = 0;
	struct ibv_device **list = ibv_get_device_list(&n);
	bool found = false;

	for (int i = 0; list != NULL && i < n && !found; i++)
		found = name == NULL || strcmp(name, ibv_get_device_name(list[i])) == 0;
	if (list != NULL)
		ibv_free_device_list(list);
	return found;
}
