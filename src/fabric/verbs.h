/* verbs.h -- what the files of the verbs back end share; nobody else includes it
 *
 *   verbs.c       the operations, opening and closing, CM channels
 *   verbs_port.c  listening
 *   verbs_conn.c  one connection: its states, its life and its end
 *   verbs_cm.c    how a connection comes about, and what CM events do to it
 *   verbs_join.c  rdma_connect where it blocks: a job that a signal interrupts
 *   verbs_qp.c    queue pairs, writes, completions
 *   verbs_mem.c   registered memory
 *   verbs_dev.c   what is shared by all that use one device; asynchronous events
 *   verbs_hotplug.c  devices that come and go
 *
 * One thread owns the channels, the ids and the queue pairs: the loop's. Only registering,
 * deregistering and a blocking rdma_connect run elsewhere. CLOSED is emitted from a deferred task,
 * so that nothing dies under a function that is still reading events.
 */

#pragma once

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include "base/limits.h"
#include "base/list.h"
#include "fabric/fabric.h"
#include "loop/loop.h"
#include "loop/work.h"

#define VERBS_DETAIL 320
#define VERBS_INLINE 256 /* bytes wanted to be copied into the request itself: records, lines */

struct verbs {
	struct fabric base;
	struct rdma_event_channel *channel; /* of listeners and of the connections they bring */
	struct loop_io *io;
	struct device_files *files; /* tells of devices that come and go; NULL: nothing does */
	struct list ports, devices;
	struct list lingering; /* connections freed by their owner during the handshake */
	unsigned n_conns;      /* the others */
};

struct verbs_port {
	struct fabric_port base;
	struct list node; /* in verbs.ports */
	struct rdma_cm_id *id;
	struct verbs_device *bound; /* NULL: any */
	char device[64];            /* the only one that is wanted; "": any */
	struct loop_task news;      /* PORT_UP or PORT_DOWN, once listen() has returned */
	struct loop_task grave;
	int error;
	char detail[VERBS_DETAIL];
};

/* What is shared by all that use one device; exists from the first use until the device is gone. */
struct verbs_device {
	struct verbs *verbs;
	struct list node;  /* in verbs.devices */
	struct list conns; /* all that hold it */
	unsigned users;    /* these, and ports that are bound to it */
	bool gone;
	struct ibv_context *context;
	struct ibv_device_attr attr;
	struct ibv_comp_channel *channel;
	struct loop_io *channel_io, *async_io;
	struct ibv_cq *guard; /* see verbs_dev.c */
	bool iwarp;
	uint32_t inline_max,
	    max_recv_wr; /* what the last queue pair was created with; see verbs_qp.c */
};

enum conn_state {
	CONN_RESOLVING, /* active: the address */
	CONN_ROUTING,   /* active: the route */
	CONN_RESOLVED,  /* active: request() is awaited */
	CONN_CONNECTING,
	CONN_REQUESTED, /* passive: accept() or reject() is awaited */
	CONN_ACCEPTING,
	CONN_ESTABLISHED,
	CONN_ENDING, /* why is known, or waited for a moment; CLOSED comes */
	CONN_CLOSED,
};

/* The send queue: all counters count work requests since the start. */
struct verbs_queue {
	struct ibv_cq *cq, *recv_cq;
	uint32_t depth;
	uint32_t inline_max;
	uint64_t message_max;
	uint64_t posted, completed, signalled; /* signalled: the last one that was */
	uint64_t *cookies; /* by work request, modulo depth: the newest cookie up to there */
	uint64_t cookie, reported;
	bool starved; /* write() said -EAGAIN: a WRITTEN is owed */

	/* The call that is being posted: it may be longer than the queue. */
	struct fabric_write held[FABRIC_WRITES_MAX];
	unsigned n_held, at;
	size_t offset; /* in held[at] */
};

struct verbs_conn {
	struct fabric_conn base;
	struct verbs *verbs;
	enum conn_state state;
	bool active;
	bool hung_up; /* rdma_disconnect was called */
	bool shaking; /* a handshake is on that must end by itself: see close_conn() */
	bool freed;
	struct rdma_cm_id *id;
	struct rdma_event_channel
	    *channel; /* active: its own, so that rdma_connect may block on it */
	struct loop_io *io;
	struct verbs_join *join; /* rdma_connect that runs */
	struct loop_timer *timer;
	struct loop_task closing, grave;

	struct verbs_device *device; /* NULL before verbs_conn_prepare() */
	struct list node;            /* in device->conns */
	struct list lingering;       /* in verbs->lingering */
	struct ibv_pd *pd;
	struct verbs_queue queue; /* its queue pair is id->qp */
	unsigned n_mems;

	enum fabric_cause cause;
	char detail[VERBS_DETAIL];
	uint8_t word[256]; /* private data of a reject */
	size_t word_len;
	struct fabric_info info;
};

/* A CM event, copied so that the original could be acknowledged before anything is done about it.
 */
struct cm_event {
	enum rdma_cm_event_type type;
	int status;
	struct rdma_cm_id *id, *listener;
	uint8_t data[256];
	size_t data_len;
};

/* ---- verbs.c ---- */

void verbs_emit(struct verbs *v, const struct fabric_event *event);
void verbs_defer(struct verbs *v, struct loop_task *task);
void verbs_bury(struct verbs *v, struct loop_task *task);
/* An event channel that does not block, watched. 0 or a negative errno. */
int verbs_channel_new(struct verbs *v, loop_io_fn *fn, void *arg, struct rdma_event_channel **ret,
    struct loop_io **ret_io);
void verbs_channel_drain(struct verbs *v, struct rdma_event_channel *channel);
int verbs_nonblocking(int fd);
bool verbs_is_iwarp(const struct ibv_context *context);

/* ---- verbs_port.c ---- */

int verbs_listen(struct fabric *f, const struct sockaddr *address, const char *device, void *owner,
    struct fabric_port **ret);
void verbs_unlisten(struct fabric_port *base);
struct verbs_port *verbs_port_find(struct verbs *v, const struct rdma_cm_id *id);
void verbs_port_event(struct verbs_port *p, const struct cm_event *e);
/* After devices have come or gone: says which requests can come from now. */
void verbs_ports_check(struct verbs *v);

/* ---- verbs_conn.c ---- */

struct verbs_conn *verbs_conn_new(struct verbs *v, enum conn_state state, void *owner);
void verbs_stop(struct fabric_conn *base);
void verbs_conn_free(struct fabric_conn *base);
void verbs_describe(struct fabric_conn *base, struct fabric_info *ret);
void verbs_conn_set_state(struct verbs_conn *c, enum conn_state state);
const char *verbs_conn_state_name(const struct verbs_conn *c);
/* Notes what the id has learnt about both ends. */
void verbs_conn_note_ends(struct verbs_conn *c);
/* The device is held and there is a PD; 0, or a negative errno and the connection ends. */
int verbs_conn_prepare(struct verbs_conn *c);
/* The connection ends at the end of this turn. Only the first cause counts, but any is better than
 * unknown. */
void verbs_conn_end(struct verbs_conn *c, enum fabric_cause cause, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* The same for an errno, which becomes the cause. */
void verbs_conn_end_errno(struct verbs_conn *c, const char *what, int error);
/* It has ended, and an event that says why may still be on its way: wait for it a moment. */
void verbs_conn_end_unexplained(struct verbs_conn *c, const char *detail);
/* That event, or the peer's answer to our own end, is there: nothing is left to wait for. */
void verbs_conn_end_wait(struct verbs_conn *c);
/* The handshake is over, one way or the other. */
void verbs_conn_end_handshake(struct verbs_conn *c);
/* After CLOSED: lets go of everything, if it has to be of a handshake that is not over. */
void verbs_conn_finish(struct verbs_conn *c);
/* Lets go of what must outlive the last memory. Does nothing before CLOSED, or while memory is
 * left. */
void verbs_conn_release(struct verbs_conn *c);

/* ---- verbs_cm.c ---- */

int verbs_connect(
    struct fabric *f, const struct sockaddr *to, void *owner, struct fabric_conn **ret);
int verbs_request(struct fabric_conn *base, const void *data, size_t len);
int verbs_accept(struct fabric_conn *base, const void *data, size_t len);
void verbs_reject(struct fabric_conn *base, const void *data, size_t len);
/* The passive side of a request; takes the id. NULL: no memory, the id is still the caller's. */
struct verbs_conn *verbs_conn_new_passive(struct verbs *v, struct rdma_cm_id *id);
void verbs_conn_event(struct verbs_conn *c, const struct cm_event *e);
/* rdma_connect, as a job, has returned. */
void verbs_conn_join_done(struct verbs_conn *c, int error);

/* ---- verbs_join.c ---- */

/* The signal that interrupts rdma_connect; 0 or a negative errno. */
int join_init(void);
/* Does rdma_connect on a worker; verbs_conn_join_done() follows unless it is cancelled. 0 or
 * -ENOMEM. */
int join_start(struct verbs_conn *c, const struct rdma_conn_param *param);
/* True: nobody uses the id any more. False: call again a little later, until it is true. */
bool join_cancel(struct verbs_conn *c);

/* ---- verbs_qp.c ---- */

/* 0, or a negative errno and the connection ends. */
int queue_open(struct verbs_conn *c);
/* After both of these no peer reaches any memory of the connection, and no source is read. */
void queue_disable(struct verbs_conn *c);
void queue_close(struct verbs_conn *c);
int verbs_write(struct fabric_conn *base, const struct fabric_write *w, unsigned n);
/* Takes all completions. */
void queue_poll(struct verbs_conn *c);
uint64_t queue_count_receives(struct verbs_conn *c);

/* ---- verbs_mem.c ---- */

int verbs_mem_add(struct fabric_conn *base, void *addr, size_t len, unsigned access, void *owner,
    struct fabric_mem **ret);
void verbs_mem_drop(struct fabric_mem *base);
uint32_t mem_lkey(const struct fabric_mem *base);

/* ---- verbs_dev.c ---- */

int device_get(struct verbs *v, struct verbs_conn *c);
void device_put(struct verbs_conn *c);
/* The same for others than connections. 0 or a negative errno; release accepts NULL, returns NULL.
 */
int device_hold(struct verbs *v, struct ibv_context *context, struct verbs_device **ret);
struct verbs_device *device_release(struct verbs_device *d);
/* Ends what uses a device that is gone; it is let go when nothing does any more. */
void devices_check(struct verbs *v);
void devices_free(struct verbs *v);
/* Takes all asynchronous events. */
void device_poll_async(struct verbs_device *d);
/* "rxe0, siw0", or "none". */
void device_names(char *buf, size_t size);
bool device_exists(const char *name);

/* ---- verbs_hotplug.c ---- */

void verbs_hotplug_start(struct verbs *v);
void verbs_hotplug_stop(struct verbs *v);
/* Takes all news. Done before librdmacm may meet a new device: it closes those that are gone. */
void verbs_hotplug_poll(struct verbs *v);
