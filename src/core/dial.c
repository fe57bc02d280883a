/* dial.c -- getting a connection for a transfer: addresses and fabrics, tried in turn */

#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "core/dial.h"
#include "core/failure.h"
#include "core/outbound.h"
#include "core/peer.h"
#include "core/priv.h"
#include "core/resolve.h"
#include "core/transfer.h"

#define CANDIDATES_MAX (RESOLVE_MAX * CORE_FABRICS_MAX)
/* Another fabric is started beside one that has not answered for so long. */
#define BESIDE_NS (300 * NSEC_PER_MSEC)
/* What a fabric gets while others could do as well. */
#define RACE_NS (2 * NSEC_PER_SEC)

struct candidate {
	struct core_fabric *fabric;
	struct sockaddr_storage address; /* a copy: the peer's may change */
};

struct dial {
	struct core *core;
	struct peer *peer;
	struct transfer *transfer;
	struct candidate candidates[CANDIDATES_MAX];
	struct outbound *running[CANDIDATES_MAX]; /* by candidate; NULL: not started, or over */
	unsigned count, next;
	struct loop_timer *beside;
	struct failure failure;   /* the last attempt's */
	char why[LIMIT_TEXT + 1]; /* what other fabrics failed with, for the view */
	struct loop_task grave;
};

static void
bury(struct loop_task *task)
{
	free(container_of(task, struct dial, grave));
}

/* The attempts that still run end, and the dial goes. */
static void
finish(struct dial *d)
{
	for (unsigned i = 0; i < d->count; i++) {
		struct outbound *ob = d->running[i];

		d->running[i] = NULL;
		if (ob != NULL)
			outbound_hang_up(ob);
	}
	d->beside = loop_timer_free(d->beside);
	loop_bury(d->core->env.loop, &d->grave);
}

static unsigned
index_of(const struct dial *d, const struct outbound *ob)
{
	unsigned i = 0;

	while (d->running[i] != ob)
		i++;
	return i;
}

static bool
any_running(const struct dial *d)
{
	for (unsigned i = 0; i < d->count; i++)
		if (d->running[i] != NULL)
			return true;
	return false;
}

/* ---- starting attempts ---- */

/* The set-up of an attempt may take long only if nothing else is left to be tried. */
static uint64_t
attempt_ns(const struct dial *d)
{
	uint64_t setup_ns = d->core->conf->setup_ns;

	return d->next < d->count && setup_ns > RACE_NS ? RACE_NS : setup_ns;
}

static int
start_next(struct dial *d)
{
	unsigned i = d->next++;
	const struct candidate *c = &d->candidates[i];
	int error;

	error = outbound_new(d->peer, c->fabric, (const struct sockaddr *)&c->address, d->transfer,
	    d, attempt_ns(d), &d->running[i]);
	if (error < 0)
		return error;
	if (d->next < d->count && d->candidates[d->next].fabric != c->fabric)
		loop_timer_set(d->beside, BESIDE_NS);
	return 0;
}

static void
fail_transfer(struct dial *d)
{
	struct failure why = d->failure;
	struct transfer *t = d->transfer;

	t->dial = NULL;
	finish(d);
	transfer_broke(t, &why);
}

/* Starts what is left until something runs. */
static void
go_on(struct dial *d)
{
	int error = 0;

	while (d->next < d->count && !any_running(d))
		error = start_next(d);
	if (any_running(d))
		return;
	if (error < 0)
		d->failure = failure_setup(error, NULL);
	fail_transfer(d);
}

static void
on_beside(void *arg)
{
	struct dial *d = arg;

	/* A second attempt is a help, not a right to a further connection. */
	if (d->next < d->count && d->core->connections < d->core->conf->connections)
		start_next(d);
}

/* ---- candidates ---- */

/* The fabrics that can be had for this peer, the remembered one first. */
static unsigned
usable_fabrics(
    struct core *core, struct peer *peer, struct core_fabric **ret, char *why, size_t size)
{
	const struct core_fabric *first = peer_fabric(peer);
	unsigned n = 0;

	for (unsigned i = 0; i < core->n_fabrics; i++) {
		struct core_fabric *f = &core->fabrics[i];

		if (!core_fabric_wanted(f, peer_conf_fabric(peer)))
			continue;
		core_open_fabric(core, f);
		if (f->fabric == NULL) {
			size_t used = strlen(why);

			snprintf(why + used, size - used, "%s%s: %s", used > 0 ? "; " : "",
			    f->ops->name, f->missing);
			continue;
		}
		ret[n++] = f;
		if (f == first) {
			ret[n - 1] = ret[0];
			ret[0] = f;
		}
	}
	return n;
}

static void
add_candidates(struct dial *d, struct core_fabric *const *fabrics, unsigned n)
{
	const struct sockaddr *address;

	for (unsigned i = 0; (address = peer_address(d->peer, i)) != NULL; i++)
		for (unsigned j = 0; j < n; j++) {
			struct candidate *c = &d->candidates[d->count++];

			c->fabric = fabrics[j];
			memcpy(&c->address, address, sizeof(c->address));
		}
}

int
dial_new(struct peer *peer, struct transfer *t, struct failure *why)
{
	struct core_fabric *fabrics[CORE_FABRICS_MAX];
	struct core *core = peer_core(peer);
	struct dial *d = calloc(1, sizeof(*d));
	unsigned n;

	if (d == NULL || loop_timer_new(core->env.loop, on_beside, d, &d->beside) < 0) {
		free(d);
		*why = failure_setup(-ENOMEM, NULL);
		return -ENOMEM;
	}
	d->core = core;
	d->peer = peer;
	d->transfer = t;
	loop_task_init(&d->grave, bury);
	n = usable_fabrics(core, peer, fabrics, d->why, sizeof(d->why));
	if (n == 0) {
		*why = failure_setup(
		    -ENODEV, d->why[0] != '\0' ? d->why : "this build has no such fabric");
		finish(d);
		return -ENODEV;
	}
	add_candidates(d, fabrics, n);
	t->dial = d;
	go_on(d);
	return 0;
}

void
dial_cancel(struct dial *d)
{
	finish(d);
}

/* ---- what becomes of attempts ---- */

void
dial_won(struct dial *d, struct outbound *ob)
{
	struct transfer *t = d->transfer;
	unsigned i = index_of(d, ob);

	d->running[i] = NULL;
	peer_remember_fabric(d->peer, d->candidates[i].fabric);
	t->dial = NULL;
	outbound_won(ob, d->why);
	transfer_attach(t, ob);
	finish(d);
}

void
dial_lost(struct dial *d, struct outbound *ob, const struct failure *why)
{
	unsigned i = index_of(d, ob);
	size_t used = strlen(d->why);

	d->running[i] = NULL;
	d->failure = *why;
	if (used > 0)
		failure_add(&d->failure, " (%s)", d->why);
	/* Its own word: no other way leads around it. But it may be busy with our other attempt. */
	if (why->state == TRANSFER_REFUSED && !(why->code == RWP_E_BUSY && any_running(d))) {
		text_address_port(
		    d->transfer->view.address, (const struct sockaddr *)&d->candidates[i].address);
		fail_transfer(d);
		return;
	}
	snprintf(d->why + used, sizeof(d->why) - used, "%s%s: %s", used > 0 ? "; " : "",
	    d->candidates[i].fabric->ops->name, why->text);
	go_on(d);
}
