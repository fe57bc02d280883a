/* peer.c -- another daemon that we write to: its addresses, its connections, what waits for it */

#include "config.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
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
#include "core/source.h"
#include "core/transfer.h"
#include "wire/rwp.h"

#define RESOLVE_KEEP_NS (60 * NSEC_PER_SEC)
#define FABRIC_KEEP_NS  (600 * NSEC_PER_SEC)

struct peer {
	struct list node;
	struct core *core;
	char name[TEXT_ADDRESS_MAX];
	char host[LIMIT_NAME * 4];
	uint16_t port;
	enum conf_fabric fabric;
	bool configured;
	struct list outbounds; /* struct outbound */
	struct list waiting;   /* struct transfer */
	unsigned transfers;    /* waiting or running */
	unsigned connections;  /* outbounds that are not gone */

	struct sockaddr_storage addresses[PEER_ADDRESSES_MAX];
	unsigned n_addresses;
	uint64_t resolved_at;          /* loop_now(); 0: never */
	const struct core_fabric *won; /* the last dial, at */
	uint64_t won_at;
	struct job resolve;
	bool resolving;
	struct sockaddr_storage found[PEER_ADDRESSES_MAX]; /* the job's */
	unsigned n_found;
	int resolve_error; /* of getaddrinfo(3) */

	char last_error[LIMIT_TEXT + 1];
	struct loop_task schedule_task, grave;
};

static void schedule(struct loop_task *task);
static void run_resolve(struct job *job);
static void done_resolve(struct job *job);

static void
bury(struct loop_task *task)
{
	free(container_of(task, struct peer, grave));
}

/* A peer nobody configured goes when nothing is left of it. */
static void
free_if_unused(struct peer *peer)
{
	if (peer->configured || peer->transfers > 0 || peer->connections > 0 || peer->resolving)
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

	if (peer == NULL)
		return -ENOMEM;
	peer->core = core;
	peer->port = port;
	snprintf(peer->name, sizeof(peer->name), "%s", name);
	snprintf(peer->host, sizeof(peer->host), "%s", host);
	list_init(&peer->outbounds);
	list_init(&peer->waiting);
	loop_task_init(&peer->schedule_task, schedule);
	loop_task_init(&peer->grave, bury);
	peer->resolve = (struct job){.run = run_resolve, .done = done_resolve};
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

/* ---- addresses ---- */

static void
run_resolve(struct job *job)
{
	struct peer *peer = container_of(job, struct peer, resolve);
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG}, *all, *it;
	char port[8];

	snprintf(port, sizeof(port), "%u", peer->port);
	peer->n_found = 0;
	peer->resolve_error = getaddrinfo(peer->host, port, &hints, &all);
	if (peer->resolve_error != 0)
		return;
	for (it = all; it != NULL && peer->n_found < PEER_ADDRESSES_MAX; it = it->ai_next)
		memcpy(&peer->found[peer->n_found++], it->ai_addr, it->ai_addrlen);
	freeaddrinfo(all);
}

static void
fail_waiting(struct peer *peer, const struct failure *why)
{
	struct transfer *t;

	snprintf(peer->last_error, sizeof(peer->last_error), "%s", why->text);
	list_for_each (t, &peer->waiting, struct transfer, queue_node)
		transfer_fail(t, why);
}

static void
done_resolve(struct job *job)
{
	struct peer *peer = container_of(job, struct peer, resolve);
	struct failure why;

	peer->resolving = false;
	if (peer->resolve_error == 0) {
		memcpy(peer->addresses, peer->found, sizeof(peer->addresses));
		peer->n_addresses = peer->n_found;
		peer->resolved_at = loop_now();
	} else {
		why = failure_make(0, "cannot be found: \"%s\": %s", peer->host,
		    gai_strerror(peer->resolve_error));
		snprintf(why.fix, sizeof(why.fix), "name a host that resolves, or an address");
		fail_waiting(peer, &why);
	}
	peer_schedule(peer);
	free_if_unused(peer);
}

/* True: the addresses are known and fresh. */
static bool
resolved(struct peer *peer)
{
	if (text_parse_address(peer->host, peer->port, &peer->addresses[0]) == 0) {
		peer->n_addresses = 1;
		return true;
	}
	if (peer->resolved_at != 0 && loop_now() - peer->resolved_at < RESOLVE_KEEP_NS)
		return true;
	if (!peer->resolving) {
		peer->resolving = true;
		work_submit(peer->core->env.source, &peer->resolve);
	}
	return false;
}

/* ---- configured peers ---- */

static int
take_over(struct core *core, const struct conf_peer *conf)
{
	struct peer *peer = find(core, conf->name);
	int error = peer != NULL ? 0 : peer_new(core, conf->name, conf->address, conf->port, &peer);

	if (error < 0)
		return error;
	if (strcmp(peer->host, conf->address) != 0 || peer->port != conf->port) {
		snprintf(peer->host, sizeof(peer->host), "%s", conf->address);
		peer->port = conf->port;
		peer->n_addresses = 0;
		peer->resolved_at = 0;
	}
	peer->fabric = conf->fabric;
	peer->configured = true;
	resolved(peer); /* allow lines may name it */
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

void
peer_free_all(struct core *core)
{
	struct peer *peer;

	list_for_each (peer, &core->peers, struct peer, node) {
		list_del(&peer->node);
		loop_undefer(&peer->schedule_task);
		free(peer);
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
	list_add_tail(&peer->waiting, &t->queue_node);
	peer->transfers++;
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
		if (outbound_fits(ob, t))
			return ob;
	return NULL;
}

/* An idle connection that does not fit makes room for one that will. */
static void
end_one_idle(struct peer *peer)
{
	struct outbound *ob;

	list_for_each (ob, &peer->outbounds, struct outbound, node)
		if (outbound_is_idle(ob)) {
			outbound_end(ob, RWP_E_IDLE, "makes room for another");
			return;
		}
}

static void
connect_for(struct peer *peer, struct transfer *t)
{
	uint32_t limit = peer->core->conf->connections;
	struct failure why;
	int error;

	list_del(&t->queue_node);
	if (peer->core->connections >= limit) {
		why = failure_make(RWP_E_BUSY,
		    "cannot be connected to from here: %u of %u connections are in use",
		    peer->core->connections, limit);
		snprintf(why.fix, sizeof(why.fix), "connections = %u in [limits]", limit * 2);
		transfer_fail(t, &why);
		return;
	}
	transfer_connecting(t);
	error = dial_new(peer, t, &why);
	if (error < 0)
		transfer_fail(t, &why);
}

static void
schedule(struct loop_task *task)
{
	struct peer *peer = container_of(task, struct peer, schedule_task);
	struct outbound *ob;
	struct transfer *t;

	if (list_empty(&peer->waiting) || !resolved(peer))
		return;
	list_for_each (t, &peer->waiting, struct transfer, queue_node) {
		ob = find_fitting(peer, t);
		if (ob != NULL) {
			transfer_attach(t, ob);
			outbound_run(ob, t);
			continue;
		}
		end_one_idle(peer);
		if (peer->connections < LIMIT_PEER_CONNECTIONS)
			connect_for(peer, t);
	}
}

void
peer_transfer_broke(struct peer *peer, struct transfer *t, const struct failure *why, bool reused)
{
	if (!reused || t->retried || t->view.arrived > 0 || source_is_stream(t->source)) {
		transfer_fail(t, why);
		return;
	}
	t->retried = true;
	log_debug("transfer to %s: again, since %s", peer->name, why->text);
	peer->transfers--;
	transfer_requeue(t);
}

void
peer_outbound_gone(struct peer *peer, const struct failure *why)
{
	peer->connections--;
	if (failure_is_fault(why))
		memcpy(peer->last_error, why->text, sizeof(peer->last_error));
	peer_schedule(peer);
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
	return n < peer->n_addresses ? (const struct sockaddr *)&peer->addresses[n] : NULL;
}

bool
peer_wants_fabric(const struct peer *peer, const struct core_fabric *f)
{
	return peer->fabric == CONF_FABRIC_AUTO ||
	       strcmp(conf_fabric_name(peer->fabric), f->ops->name) == 0;
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

static bool
has_address(const struct peer *peer, const struct sockaddr *address)
{
	for (unsigned i = 0; i < peer->n_addresses; i++)
		if (text_address_equal((const struct sockaddr *)&peer->addresses[i], address))
			return true;
	return false;
}

bool
peer_has_address(const struct core *core, const char *name, const struct sockaddr *address)
{
	const struct peer *peer = find(core, name);

	return peer != NULL && peer->configured && has_address(peer, address);
}

void
core_peer_name(struct core *core, const struct sockaddr *address, char buf[TEXT_ADDRESS_MAX])
{
	const struct peer *peer, *only = NULL;
	unsigned n = 0;

	list_for_each (peer, &core->peers, struct peer, node)
		if (peer->configured && has_address(peer, address)) {
			only = peer;
			n++;
		}
	if (n == 1)
		snprintf(buf, TEXT_ADDRESS_MAX, "%s", only->name);
	else /* a stranger, or one of several daemons on one machine */
		text_address(buf, address);
}

static unsigned
end_outbounds(struct peer *peer, unsigned code, const char *text)
{
	struct outbound *ob;
	unsigned n = 0;

	list_for_each (ob, &peer->outbounds, struct outbound, node) {
		outbound_end(ob, code, text);
		n++;
	}
	return n;
}

unsigned
peer_disconnect(struct core *core, const char *who)
{
	struct sockaddr_storage address;
	bool numeric = text_parse_address(who, 0, &address) == 0;
	struct peer *peer;
	unsigned n = 0;

	list_for_each (peer, &core->peers, struct peer, node)
		if (strcmp(peer->name, who) == 0 ||
		    (numeric && has_address(peer, (struct sockaddr *)&address)))
			n +=
			    end_outbounds(peer, RWP_E_RELEASED, "disconnected by an operator here");
	return n;
}

void
peer_end_all(struct core *core)
{
	struct failure why =
	    failure_make(RWP_E_SHUTDOWN, "was not written to: the daemon here stops");
	struct peer *peer;

	list_for_each (peer, &core->peers, struct peer, node) {
		fail_waiting(peer, &why);
		end_outbounds(peer, RWP_E_SHUTDOWN, "the daemon here stops");
	}
}

static void
view_idle(const struct peer *peer, struct peer_view *v)
{
	*v = (struct peer_view){.direction = "", .state = "idle", .fabric = ""};
	if (peer->n_addresses > 0)
		text_address_port(v->address, (const struct sockaddr *)&peer->addresses[0]);
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
