/* peer.c -- another daemon that we write to: its addresses, its connections, what waits for it */

#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "conf/conf.h"
#include "core/dial.h"
#include "core/failure.h"
#include "core/outbound.h"
#include "core/peer.h"
#include "core/priv.h"
#include "core/resolve.h"
#include "core/source.h"
#include "core/transfer.h"
#include "wire/rwp.h"

#define FABRIC_KEEP_NS (600 * NSEC_PER_SEC)

struct peer {
	struct list node;
	struct core *core;
	char name[TEXT_ADDRESS_MAX];
	struct resolve resolve;
	enum conf_fabric fabric;
	bool configured;
	struct list outbounds; /* struct outbound */
	struct list waiting;   /* struct transfer */
	unsigned transfers;    /* waiting or running */
	unsigned connections;  /* outbounds that are not gone */

	const struct core_fabric *won; /* the last dial, at */
	uint64_t won_at;

	char last_error[LIMIT_TEXT + 1];
	struct loop_task schedule_task, grave;
};

static void schedule(struct loop_task *task);
static void on_resolved(struct resolve *r, const char *error);

static struct peer *
peer_free(struct peer *peer)
{
	resolve_done(&peer->resolve);
	free(peer);
	return NULL;
}

static void
bury(struct loop_task *task)
{
	peer_free(container_of(task, struct peer, grave));
}

/* A peer nobody configured goes when nothing is left of it. */
static void
free_if_unused(struct peer *peer)
{
	if (peer->configured || peer->transfers > 0 || peer->connections > 0 ||
	    peer->resolve.running)
		return;
	list_del(&peer->node);
	loop_undefer(&peer->schedule_task);
	loop_bury(peer->core->env.loop, &peer->grave);
}

/* ---- making ---- */

static int
peer_new(struct core *core, const char *name, const char *host, uint16_t port, struct peer **ret)
{
	struct peer *peer = calloc(1, sizeof(*peer));

	if (peer == NULL || resolve_init(&peer->resolve, core, on_resolved) < 0) {
		free(peer);
		return -ENOMEM;
	}
	peer->core = core;
	snprintf(peer->name, sizeof(peer->name), "%s", name);
	resolve_set(&peer->resolve, host, port);
	list_init(&peer->outbounds);
	list_init(&peer->waiting);
	loop_task_init(&peer->schedule_task, schedule);
	loop_task_init(&peer->grave, bury);
	list_add_tail(&core->peers, &peer->node);
	*ret = peer;
	return 0;
}

static struct peer *
find(const struct core *core, const char *name)
{
	struct peer *peer;

	list_for_each (peer, &core->peers, struct peer, node)
		if (strcmp(peer->name, name) == 0)
			return peer;
	return NULL;
}

static void
fail_waiting(struct peer *peer, const struct failure *why)
{
	struct transfer *t;

	list_for_each (t, &peer->waiting, struct transfer, queue_node)
		transfer_broke(t, why);
}

static void
on_resolved(struct resolve *r, const char *error)
{
	struct peer *peer = container_of(r, struct peer, resolve);
	struct failure why;

	if (error != NULL) {
		why = failure_make(0, "cannot be found: \"%s\": %s", r->host, error);
		failure_fix(&why, "name a host that resolves, or an address");
		memcpy(peer->last_error, why.text, sizeof(peer->last_error));
		fail_waiting(peer, &why);
	}
	peer_schedule(peer);
	free_if_unused(peer);
}

/* ---- configured peers ---- */

static int
take_over(struct core *core, const struct conf_peer *conf)
{
	struct peer *peer = find(core, conf->name);
	int error = peer != NULL ? 0 : peer_new(core, conf->name, conf->address, conf->port, &peer);

	if (error < 0)
		return error;
	resolve_set(&peer->resolve, conf->address, conf->port);
	peer->fabric = conf->fabric;
	peer->configured = true;
	return 0;
}

int
peer_sync(struct core *core)
{
	const struct conf_peer *conf;
	struct peer *peer;
	int error = 0;

	list_for_each (peer, &core->peers, struct peer, node)
		peer->configured = false;
	list_for_each (conf, &core->conf->peers, struct conf_peer, node)
		if (error == 0)
			error = take_over(core, conf);
	list_for_each (peer, &core->peers, struct peer, node)
		free_if_unused(peer);
	return error;
}

static bool
is_allowed_somewhere(const struct core *core, const struct peer *peer)
{
	const struct conf_listen *listen;
	const struct conf_allow *allow;

	list_for_each (listen, &core->conf->listens, struct conf_listen, node)
		list_for_each (allow, &listen->allow, struct conf_allow, node)
			if (allow->kind == CONF_ALLOW_PEER && strcmp(allow->peer, peer->name) == 0)
				return true;
	return false;
}

void
peer_resolve_allowed(struct core *core)
{
	struct peer *peer;

	list_for_each (peer, &core->peers, struct peer, node)
		resolve_keep(&peer->resolve, peer->configured && is_allowed_somewhere(core, peer));
}

void
peer_free_all(struct core *core)
{
	struct peer *peer;

	list_for_each (peer, &core->peers, struct peer, node) {
		list_del(&peer->node);
		loop_undefer(&peer->schedule_task);
		peer_free(peer);
	}
}

int
peer_get(struct core *core, const char *word, struct peer **ret, char *error, size_t size)
{
	char host[LIMIT_NAME * 4];
	uint16_t port = RWP_PORT;

	*ret = find(core, word);
	if (*ret != NULL)
		return 0;
	if (strlen(word) >= TEXT_ADDRESS_MAX ||
	    text_split_host(word, host, sizeof(host), &port) < 0 || host[0] == '\0' || port == 0) {
		snprintf(error, size, "\"%s\" is neither a configured peer nor host[:port]", word);
		return -EINVAL;
	}
	return peer_new(core, word, host, port, ret);
}

/* ---- scheduling ---- */

void
peer_submit(struct peer *peer, struct transfer *t)
{
	peer->transfers++;
	peer_queue(peer, t);
}

void
peer_queue(struct peer *peer, struct transfer *t)
{
	list_add_tail(&peer->waiting, &t->queue_node);
	peer_schedule(peer);
}

void
peer_schedule(struct peer *peer)
{
	loop_defer(peer->core->env.loop, &peer->schedule_task);
}

static struct outbound *
find_fitting(struct peer *peer, const struct transfer *t)
{
	struct outbound *ob;

	list_for_each (ob, &peer->outbounds, struct outbound, node)
		if (outbound_open_discards(ob, t))
			return outbound_open_fits(ob, t) ? ob : NULL;
	list_for_each (ob, &peer->outbounds, struct outbound, node)
		if (outbound_open_fits(ob, t))
			return ob;
	return NULL;
}

static bool
will_soon_fit(struct peer *peer, const struct transfer *t)
{
	struct outbound *ob;

	list_for_each (ob, &peer->outbounds, struct outbound, node)
		if (outbound_open_will_fit(ob, t) || outbound_open_discards(ob, t))
			return true;
	return false;
}

/* An idle connection that does not fit makes room for one that will. */
static bool
end_one_idle(struct peer *peer)
{
	struct outbound *ob;

	list_for_each (ob, &peer->outbounds, struct outbound, node)
		if (outbound_open_is_idle(ob)) {
			outbound_end(ob, RWP_E_IDLE, "makes room for another");
			return true;
		}
	return false;
}

static void
connect_for(struct peer *peer, struct transfer *t)
{
	struct failure why;
	int error;

	list_del(&t->queue_node);
	transfer_connecting(t);
	error = dial_new(peer, t, &why);
	if (error < 0)
		transfer_broke(t, &why);
}

/* Every connection of [limits] connections is in use: an idle one of ours ends, and what waits goes
 * on when it is gone. False: there is none. */
static bool
make_room(struct core *core)
{
	struct outbound *ob;
	struct peer *peer;

	list_for_each (peer, &core->peers, struct peer, node)
		list_for_each (ob, &peer->outbounds, struct outbound, node)
			if (ob->state >= OUTBOUND_ENDING)
				return true;
	list_for_each (peer, &core->peers, struct peer, node)
		if (end_one_idle(peer))
			return true;
	return false;
}

static void
fail_busy(struct peer *peer)
{
	uint32_t limit = peer->core->conf->connections;
	struct failure why = failure_make(RWP_E_BUSY,
	    "cannot be connected to from here: %u of %u connections are in use",
	    peer->core->connections, limit);

	failure_fix(&why, "connections = %u in [limits]", limit * 2);
	fail_waiting(peer, &why);
}

/* What fits an open connection goes there first; then the rest gets connections of its own. */
static void
schedule(struct loop_task *task)
{
	struct peer *peer = container_of(task, struct peer, schedule_task);
	struct core *core = peer->core;
	struct outbound *ob;
	struct transfer *t;

	if (list_empty(&peer->waiting) || !resolve_ready(&peer->resolve))
		return;
	list_for_each (t, &peer->waiting, struct transfer, queue_node)
		if ((ob = find_fitting(peer, t)) != NULL) {
			transfer_attach(t, ob);
			outbound_open_run(ob);
		}
	list_for_each (t, &peer->waiting, struct transfer, queue_node) {
		if (will_soon_fit(peer, t))
			continue;
		if (core->connections >= core->conf->connections) {
			if (!make_room(core))
				fail_busy(peer);
			return;
		}
		end_one_idle(peer); /* it fits none of those that wait */
		if (peer->connections >= LIMIT_PEER_CONNECTIONS)
			return;
		connect_for(peer, t);
	}
}

void
peer_outbound_gone(struct peer *peer, const struct failure *why)
{
	struct peer *other;

	peer->connections--;
	if (failure_is_fault(why))
		memcpy(peer->last_error, why->text, sizeof(peer->last_error));
	list_for_each (other, &peer->core->peers, struct peer, node)
		if (!list_empty(&other->waiting))
			peer_schedule(other); /* for the place that has become free */
	free_if_unused(peer);
}

void
peer_transfer_gone(struct peer *peer, struct transfer *t)
{
	(void)t;
	peer->transfers--;
	free_if_unused(peer);
}

/* ---- for dial.c and outbound.c ---- */

const struct sockaddr *
peer_address(const struct peer *peer, unsigned n)
{
	return n < peer->resolve.n ? (const struct sockaddr *)&peer->resolve.addresses[n] : NULL;
}

enum conf_fabric
peer_conf_fabric(const struct peer *peer)
{
	return peer->fabric;
}

const struct core_fabric *
peer_fabric(const struct peer *peer)
{
	return peer->won_at != 0 && loop_now() - peer->won_at < FABRIC_KEEP_NS ? peer->won : NULL;
}

void
peer_remember_fabric(struct peer *peer, const struct core_fabric *fabric)
{
	peer->won = fabric;
	peer->won_at = loop_now();
}

void
peer_add(struct peer *peer, struct outbound *ob)
{
	list_add_tail(&peer->outbounds, &ob->node);
	peer->connections++;
}

/* ---- looking and ending ---- */

const char *
peer_name(const struct peer *peer)
{
	return peer->name;
}

struct core *
peer_core(const struct peer *peer)
{
	return peer->core;
}

bool
peer_has_address(const struct core *core, const char *name, const struct sockaddr *address)
{
	const struct peer *peer = find(core, name);

	return peer != NULL && peer->configured && resolve_has(&peer->resolve, address);
}

void
core_peer_name(struct core *core, const struct sockaddr *address, char buf[TEXT_ADDRESS_MAX])
{
	const struct peer *peer, *only = NULL;
	unsigned n = 0;

	list_for_each (peer, &core->peers, struct peer, node)
		if (peer->configured && resolve_has(&peer->resolve, address)) {
			only = peer;
			n++;
		}
	if (n == 1)
		snprintf(buf, TEXT_ADDRESS_MAX, "%s", only->name);
	else /* a stranger, or one of several daemons on one machine */
		text_address(buf, address);
}

/* Ends the peer's connections, and its transfers with them; how many connections. */
static unsigned
end_all_of(struct peer *peer, const struct failure *why)
{
	struct transfer *t;
	struct outbound *ob;
	unsigned n = 0;

	list_for_each (ob, &peer->outbounds, struct outbound, node)
		n += ob->state < OUTBOUND_ENDING;
	list_for_each (t, &peer->core->transfers, struct transfer, node)
		if (t->peer == peer)
			transfer_fail(t, why);
	list_for_each (ob, &peer->outbounds, struct outbound, node)
		outbound_end(ob, why->code, why->text);
	return n;
}

unsigned
peer_disconnect(struct core *core, const char *who)
{
	struct failure why = failure_make(RWP_E_RELEASED, "was disconnected by an operator here");
	struct sockaddr_storage address;
	bool numeric = text_parse_address(who, 0, &address) == 0;
	struct peer *peer;
	unsigned n = 0;

	list_for_each (peer, &core->peers, struct peer, node)
		if (strcmp(peer->name, who) == 0 ||
		    (numeric && resolve_has(&peer->resolve, (struct sockaddr *)&address)))
			n += end_all_of(peer, &why);
	return n;
}

void
peer_end_all(struct core *core)
{
	struct failure why =
	    failure_make(RWP_E_SHUTDOWN, "was not written to the end: the daemon here stops");
	struct peer *peer;

	list_for_each (peer, &core->peers, struct peer, node)
		end_all_of(peer, &why);
}

static void
view_idle(const struct peer *peer, struct peer_view *v)
{
	*v = (struct peer_view){.direction = "", .state = "idle", .fabric = ""};
	if (peer->resolve.n > 0)
		text_address_port(v->address, (const struct sockaddr *)&peer->resolve.addresses[0]);
}

static void
view_one(
    struct peer *peer, struct outbound *ob, void (*fn)(void *, const struct peer_view *), void *arg)
{
	struct peer_view v;

	if (ob != NULL)
		outbound_view(ob, &v);
	else
		view_idle(peer, &v);
	memcpy(v.name, peer->name, sizeof(v.name));
	memcpy(v.last_error, peer->last_error, sizeof(v.last_error));
	v.configured = peer->configured;
	if (ob == NULL)
		v.queued = peer->transfers;
	fn(arg, &v);
}

void
peer_each(struct core *core, void (*fn)(void *arg, const struct peer_view *v), void *arg)
{
	struct outbound *ob;
	struct peer *peer;

	list_for_each (peer, &core->peers, struct peer, node) {
		if (list_empty(&peer->outbounds))
			view_one(peer, NULL, fn, arg);
		list_for_each (ob, &peer->outbounds, struct outbound, node)
			view_one(peer, ob, fn, arg);
	}
}
