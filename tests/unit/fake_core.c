/* fake_core.c -- tests: the functions of core.h over scripted data */

#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rwriter/region.h>

#include "base/crc32c.h"
#include "loop/loop.h"
#include "unit/fake_core.h"
#include "wire/rwp.h"

#define STEP       (64U << 10) /* bytes of one step */
#define STEP_PAUSE (2 * NSEC_PER_MSEC)
#define ARRIVED_AT UINT64_C(1764435280123000000) /* 2025-11-29T16:54:40.123Z */

struct transfer {
	struct core *core;
	struct write_request request;
	const struct ending *ending;
	int fd;
	bool regular;
	uint64_t started;
	struct loop_timer *timer;
	struct transfer_view view;
};

/* How a write to a peer of this name ends, when all bytes have been read. */
static const struct ending {
	const char *peer;
	enum transfer_state state;
	unsigned code;
	const char *text, *fix;
	bool fix_on_peer;
} ENDINGS[] = {
    {"b", TRANSFER_ARRIVED, 0, "", "", false},
    {"spooler", TRANSFER_STORED, 0, "", "", false},
    {"closed", TRANSFER_REFUSED, RWP_E_ADDRESS,
	"refused us: 10.0.0.1 is in no allow line of [listen default]",
	"add \"allow = 10.0.0.1\" under [listen default] in /etc/rwriter/rwriter.conf", true},
    {"small", TRANSFER_REFUSED, RWP_E_SIZE,
	"refused 2.0 GiB for region \"default\": it grants at most 1.0 GiB",
	"max-size = 2G in [region default], or use a spool region", true},
    {"broken", TRANSFER_FAILED, 0, "the connection was lost", "", false},
    {"locked", TRANSFER_FAILED, 0, "1.0 MiB cannot be registered", "set LimitMEMLOCK=infinity",
	false},
    {"evil", TRANSFER_FAILED, RWP_E_INTERNAL, "\033[31mred\nalert", "", false},
    {"late", TRANSFER_DEADLINE, 0, "nothing was heard within 1 s", "", false},
    {"slow", TRANSFER_SENDING, 0, "", "", false}, /* never */
    {"slower", TRANSFER_SENDING, 0, "", "", false},
    {"slowest", TRANSFER_SENDING, 0, "", "", false},
};

static const char *const STATES[] = {
    [TRANSFER_QUEUED] = "queued",
    [TRANSFER_CONNECTING] = "connecting",
    [TRANSFER_RECONNECTING] = "reconnecting",
    [TRANSFER_CHECKING] = "checking",
    [TRANSFER_SENDING] = "sending",
    [TRANSFER_CONFIRMING] = "confirming",
    [TRANSFER_ARRIVED] = "arrived",
    [TRANSFER_STORED] = "stored",
    [TRANSFER_REFUSED] = "refused",
    [TRANSFER_FAILED] = "failed",
    [TRANSFER_DEADLINE] = "deadline",
};

const char *
transfer_state_name(enum transfer_state state)
{
	return STATES[state];
}

/* ---- writing ---- */

static void
free_transfer(struct transfer *t)
{
	loop_timer_free(t->timer);
	close(t->fd);
	free(t);
}

/* Bytes read, 0 at the end, -1 when there are none yet. */
static ssize_t
read_step(struct transfer *t, void *buf)
{
	if (t->regular)
		return pread(t->fd, buf, STEP, t->view.sent);
	return recv(t->fd, buf, STEP, MSG_DONTWAIT);
}

static void
end_transfer(struct transfer *t)
{
	const struct ending *e = t->ending;

	t->view.state = e->state;
	t->view.length = t->view.arrived = t->view.sent;
	t->view.duration_ns = t->view.sending_ns = loop_now() - t->started;
	t->view.region_id = 1;
	t->view.code = e->code;
	t->view.fix_on_peer = e->fix_on_peer;
	strcpy(t->view.text, e->text);
	strcpy(t->view.fix, e->fix);
	t->request.update(t->request.arg, &t->view);
	free_transfer(t);
}

static void
step(void *arg)
{
	struct transfer *t = arg;
	char buf[STEP];
	ssize_t n = read_step(t, buf);

	if (n == 0 && t->ending->state >= TRANSFER_ARRIVED) {
		end_transfer(t);
		return;
	}
	if (n > 0) {
		t->view.crc32c = crc32c(t->view.crc32c, buf, n);
		t->view.sent += n;
	}
	t->view.state = TRANSFER_SENDING;
	t->view.duration_ns = loop_now() - t->started;
	t->request.update(t->request.arg, &t->view);
	loop_timer_set(t->timer, STEP_PAUSE);
}

static const struct ending *
find_ending(const char *peer)
{
	for (size_t i = 0; i < sizeof(ENDINGS) / sizeof(ENDINGS[0]); i++)
		if (strcmp(ENDINGS[i].peer, peer) == 0)
			return &ENDINGS[i];
	return NULL;
}

static void
remember(struct core *core, const struct write_request *r)
{
	core->writes++;
	core->size = r->size;
	core->timeout_ns = r->timeout_ns;
	core->preserve = r->preserve;
	core->uid = r->uid;
	snprintf(core->peer, sizeof(core->peer), "%s", r->peer);
	snprintf(
	    core->region, sizeof(core->region), "%s", r->region != NULL ? r->region : "default");
	snprintf(core->name, sizeof(core->name), "%s", r->name);
}

int
core_write(struct core *core, const struct write_request *request, struct transfer **ret,
    char *error, size_t size)
{
	const struct ending *ending = find_ending(request->peer);
	struct loop_timer *timer;
	struct transfer *t;
	struct stat st;

	if (ending == NULL) {
		snprintf(error, size, "%s: no such peer is configured", request->peer);
		return -EINVAL;
	}
	if (core->full) {
		snprintf(error, size, "256 transfers are queued already");
		return -EBUSY;
	}
	if (fstat(request->fd, &st) < 0)
		return -errno;
	remember(core, request);
	t = calloc(1, sizeof(*t));
	if (t == NULL || loop_timer_new(core->loop, step, t, &timer) < 0) {
		free(t);
		snprintf(error, size, "out of memory");
		return -ENOMEM;
	}
	*t = (struct transfer){
	    core, *request, ending, dup(request->fd), S_ISREG(st.st_mode), loop_now(), NULL, {0}};
	t->view.state = TRANSFER_CONNECTING;
	t->view.id = core->writes;
	t->view.length = S_ISREG(st.st_mode) ? (uint64_t)st.st_size : UINT64_MAX;
	t->view.fabric = "verbs";
	strcpy(t->view.device, "mlx5_0");
	strcpy(t->view.address, "10.0.0.2:7471");
	strcpy(t->view.peer, core->peer);
	strcpy(t->view.host, core->peer);
	strcpy(t->view.name, core->name);
	strcpy(t->view.region, core->region);
	t->timer = timer;
	loop_timer_set(t->timer, STEP_PAUSE);
	*ret = t;
	return 0;
}

void
core_write_cancel(struct transfer *t, bool discard)
{
	t->core->cancelled++;
	t->core->discarded += discard;
	free_transfer(t);
}

/* ---- looking and administering ---- */

/* Names three, or nobody. */
int
core_each_named(struct core *core, const char *word, void (*fn)(void *arg, const char *peer),
    void *arg, char *error, size_t size)
{
	(void)core;
	if (strcmp(word, "@all") != 0) {
		snprintf(error, size, "%s: there is no such group; there are @all", word);
		return -EINVAL;
	}
	fn(arg, "a");
	fn(arg, "b");
	fn(arg, "c");
	return 0;
}

unsigned
core_width(const struct core *core)
{
	(void)core;
	return 2;
}

void
core_status(const struct core *core, struct status_view *ret)
{
	*ret = core->status;
}

void
core_each_region(struct core *core, void (*fn)(void *arg, const struct region_view *v), void *arg)
{
	for (unsigned i = 0; i < core->n_regions; i++)
		fn(arg, &core->regions[i].view);
}

void
core_each_peer(struct core *core, void (*fn)(void *arg, const struct peer_view *v), void *arg)
{
	for (unsigned i = 0; i < core->n_peers; i++)
		fn(arg, &core->peers[i]);
}

void
core_each_transfer(
    struct core *core, void (*fn)(void *arg, const struct transfer_view *v), void *arg)
{
	struct transfer_view v = {
	    .id = 7,
	    .state = TRANSFER_RECONNECTING,
	    .peer = "b",
	    .name = "model.bin",
	    .length = 640 << 20,
	    .sent = 456 << 20,
	    .reconnects = 2,
	    .duration_ns = 3 * NSEC_PER_SEC,
	    .fabric = "verbs",
	    .device = "mlx5_0",
	    .text = "the connection was lost",
	};

	(void)core;
	fn(arg, &v);
}

void
core_each_flight(struct core *core, void (*fn)(void *arg, const struct flight_record *r), void *arg)
{
	struct flight_record r = {
	    .id = 7, .name = "model.bin", .peer = "b", .state = "arrived", .length = 640 << 20};

	(void)core;
	flight_begin(&r.flight, 1);
	flight_mark(&r.flight, FLIGHT_CONNECT, 1 + NSEC_PER_MSEC);
	flight_mark(&r.flight, FLIGHT_FIRST_BYTE, 1 + 2 * NSEC_PER_MSEC);
	flight_mark(&r.flight, FLIGHT_LAST_BYTE, 1 + 9 * NSEC_PER_MSEC);
	flight_mark(&r.flight, FLIGHT_RESULT, 1 + 10 * NSEC_PER_MSEC);
	flight_wait(&r.flight, FLIGHT_WINDOW, 1 + 3 * NSEC_PER_MSEC);
	flight_wait(&r.flight, FLIGHT_NOTHING, 1 + 5 * NSEC_PER_MSEC);
	fn(arg, &r);
}

void
core_each_listen(struct core *core, void (*fn)(void *arg, const struct listen_view *v), void *arg)
{
	for (unsigned i = 0; i < core->n_listens; i++)
		fn(arg, &core->listens[i]);
}

static struct fake_region *
find_region(struct core *core, const char *which)
{
	for (unsigned i = core->n_regions; i-- > 0;) {
		struct fake_region *r = &core->regions[i];
		char id[16];

		snprintf(id, sizeof(id), "%u", (unsigned)r->view.id);
		if (which[0] == '\0' || strcmp(which, id) == 0 || strcmp(which, r->view.peer) == 0)
			return r;
	}
	return NULL;
}

int
core_open_region(struct core *core, const char *which, struct region_view *ret, int *ret_fd)
{
	struct fake_region *r = find_region(core, which);
	struct rwriter_label label = {0};
	off_t end;
	int fd;

	if (r == NULL)
		return -ENOENT;
	end = r->view.size * r->view.buffers;
	if (!r->view.has_arrival)
		return -ENODATA;
	fd = memfd_create("region", MFD_CLOEXEC);
	label.generation = r->view.generation;
	if (pwrite(fd, r->bytes, r->size, r->view.last.offset) != (ssize_t)r->size ||
	    ftruncate(fd, end + RWRITER_LABEL_SIZE) < 0 ||
	    pwrite(fd, &label, sizeof(label), end) != sizeof(label))
		return -errno;
	if (r->torn > 0) {
		r->torn--;
		if (pwrite(fd, "\xff", 1, r->view.last.offset) != 1)
			return -errno;
	}
	*ret = r->view;
	*ret_fd = fd;
	return 0;
}

int
core_release(struct core *core, uint32_t id)
{
	for (unsigned i = 0; i < core->n_regions; i++)
		if (core->regions[i].view.id == id) {
			core->n_regions--;
			memmove(&core->regions[i], &core->regions[i + 1],
			    (core->n_regions - i) * sizeof(core->regions[0]));
			return 0;
		}
	return -ENOENT;
}

unsigned
core_disconnect(struct core *core, const char *peer)
{
	unsigned n = 0;

	for (unsigned i = 0; i < core->n_peers; i++)
		n += core->peers[i].since != 0 && strcmp(core->peers[i].name, peer) == 0;
	return n;
}

/* ---- the script ---- */

void
fake_region_add(
    struct core *core, const char *peer, const char *name, const void *bytes, size_t size)
{
	struct fake_region *r = &core->regions[core->n_regions++];

	r->bytes = bytes;
	r->size = size;
	r->view = (struct region_view){
	    .id = core->n_regions,
	    .region = "default",
	    .fabric = "verbs",
	    .device = "mlx5_0",
	    .state = "granted",
	    .sink = "memory",
	    .size = size < 4096 ? 4096 : size,
	    .buffers = 1,
	    .generation = 2,
	    .arrivals = 1,
	    .bytes = size,
	    .granted_at = ARRIVED_AT,
	    .has_arrival = true,
	    .last = {.length = size, .crc32c = crc32c(0, bytes, size), .at = ARRIVED_AT},
	};
	snprintf(r->view.peer, sizeof(r->view.peer), "%s", peer);
	snprintf(r->view.address, sizeof(r->view.address), "10.0.0.%u", core->n_regions);
	snprintf(r->view.claimed_name, sizeof(r->view.claimed_name), "a");
	snprintf(r->view.last.name, sizeof(r->view.last.name), "%s", name);
}

void
fake_core_fill(struct core *core)
{
	static const char HELLO[] = "Hello RDMA Write!";
	static char model[200000];

	for (size_t i = 0; i < sizeof(model); i++)
		model[i] = i < 160 ? 0 : i * 2654435761u >> 13;
	core->status = (struct status_view){
	    .name = "b",
	    .boot_id = {1, 2, 3, 4, 5, 6, 7, 0xef},
	    .up_ns = 8 * NSEC_PER_SEC,
	    .memory_used = 204800,
	    .memory_limit = UINT64_C(1) << 30,
	    .regions = 3,
	    .connections = 1,
	    .connections_limit = 256,
	    .unproven = 2,
	    .unproven_limit = 64,
	    .refused = {1, 2, 3, 4, 5, 6, 7},
	};
	fake_region_add(core, "10.0.0.1", "model.bin", model, sizeof(model));
	core->regions[0].view.buffers = 2;
	core->regions[0].view.last.offset = core->regions[0].view.size;
	fake_region_add(core, "torn", "always torn", HELLO, 17);
	core->regions[1].torn = UINT32_MAX;
	fake_region_add(core, "new", "x", HELLO, 17);
	core->regions[2].view.has_arrival = false;
	core->regions[2].view.arrivals = core->regions[2].view.bytes = 0;
	core->regions[2].view.state = "receiving";
	fake_region_add(core, "c", "hello.txt", HELLO, 17);
	core->regions[3].torn = 1;
	core->n_peers = 2;
	core->peers[0] = (struct peer_view){
	    .name = "10.0.0.1",
	    .claimed_name = "a",
	    .address = "10.0.0.1:7471",
	    .direction = "in",
	    .state = "established",
	    .fabric = "verbs",
	    .device = "mlx5_0",
	    .keyed = true,
	    .since = ARRIVED_AT,
	    .transfers = 1,
	};
	core->peers[1] = (struct peer_view){
	    .name = "spare",
	    .configured = true,
	    .direction = "",
	    .state = "idle",
	    .fabric = "",
	    .last_error = "connection refused",
	};
	core->n_listens = 3;
	core->listens[0] =
	    (struct listen_view){"default", "10.0.0.2:7471", "verbs", true, "mlx5_0", true};
	core->listens[1] =
	    (struct listen_view){"default", "10.0.0.2:7471", "iwarp", true, "", true};
	core->listens[2] = (struct listen_view){
	    "lab", "10.9.0.2:7471", "verbs", false, "no RDMA device has this address", false};
}
