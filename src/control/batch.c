/* batch.c -- io.rwriter.WriteBatch: many files, or many peers, in one call
 *
 * Each file has its own result, an answer with its place in the call; the last of them ends the
 * call. So many peers are written to at once as the width says, with some transfers under way to
 * each, which the core queues; no file waits for the answer of another. What the core has no place
 * for, since others write so much, waits here.
 */

#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "control/batch.h"
#include "control/control.h"
#include "control/report.h"
#include "control/write.h"
#include "loop/loop.h"

#define FULL_PAUSE_NS (100 * NSEC_PER_MSEC) /* until a core that was full is asked again */
#define NO_TIME       1                     /* left of the time of the call */

struct target { /* a peer of the call */
	const char *peer;
	unsigned running; /* transfers to it */
};

struct item {
	struct batch *batch;
	struct target *target;
	struct transfer *transfer; /* while it runs */
	int fd;                    /* until then, or -1 */
};

struct batch {
	struct core *core;
	struct varlink_call *call; /* owns this, through cancelled, until the last answer */
	bool discard;
	uint64_t since; /* loop_now(): the time of the call runs for those that wait, too */
	struct loop_timer *full; /* runs while the core takes no more transfers */
	unsigned n, done;
	unsigned width, n_targets, busy; /* busy: targets with transfers running */
	struct target targets[LIMIT_BATCH];
	struct item items[LIMIT_BATCH];
};

static void start_some(struct batch *b);

static struct batch *
batch_free(struct batch *b)
{
	for (unsigned i = 0; i < b->n; i++)
		if (b->items[i].fd >= 0)
			close(b->items[i].fd);
	loop_timer_free(b->full);
	free(b);
	return NULL;
}

/* The result of one, and with the last of them the end; false: the batch has gone. */
static bool
finish_item(struct batch *b, struct item *item, json_t *transfer, json_t *text)
{
	json_t *answer = json_pack("{s:I, s:o, s:o}", "index", (json_int_t)(item - b->items),
	    "transfer", transfer, "text", text);

	if (++b->done < b->n) {
		varlink_continue(b->call, answer);
		return true;
	}
	varlink_reply(b->call, answer);
	batch_free(b);
	return false;
}

static void
item_update(void *arg, const struct transfer_view *v)
{
	struct item *item = arg;
	struct batch *b = item->batch;

	if (v->state >= TRANSFER_ARRIVED) {
		item->transfer = NULL;
		item->target->running--;
		b->busy -= item->target->running == 0;
		if (finish_item(b, item, report_transfer(v), json_null()))
			start_some(b);
	} else if (!varlink_congested(b->call)) {
		varlink_continue(
		    b->call, json_pack("{s:I, s:o, s:n}", "index", (json_int_t)(item - b->items),
				 "transfer", report_transfer(v), "text"));
	}
}

/* Of the call's, for one that begins now; 0: it has no end. */
static uint64_t
time_left(const struct batch *b, uint64_t timeout_ns)
{
	uint64_t passed = loop_now() - b->since;

	if (timeout_ns == 0)
		return 0;
	return passed < timeout_ns ? timeout_ns - passed : NO_TIME;
}

/* False: that was the end of the batch, or no other can be started now. */
static bool
start_item(struct batch *b, struct item *item)
{
	const json_t *names = json_object_get(b->call->parameters, "names");
	struct write_request request = write_asked(b->call);
	char error[LIMIT_TEXT];
	int r;

	request.peer = item->target->peer;
	request.name = json_string_value(json_array_get(names, item - b->items));
	request.fd = item->fd;
	request.timeout_ns = time_left(b, request.timeout_ns);
	request.update = item_update;
	request.arg = item;
	r = core_write(b->core, &request, &item->transfer, error, sizeof(error));
	if (r == -EBUSY && request.timeout_ns != NO_TIME) {
		loop_timer_set(b->full, FULL_PAUSE_NS);
		return false;
	}
	close(item->fd);
	item->fd = -1;
	if (r < 0)
		return finish_item(b, item, json_null(), report_text(error));
	b->busy += item->target->running++ == 0;
	return true;
}

static bool
may_start(const struct batch *b, const struct item *item)
{
	unsigned running = item->target->running;

	return item->fd >= 0 && running < LIMIT_BATCH_RUNNING &&
	       (running > 0 || b->busy < b->width);
}

static void
start_some(struct batch *b)
{
	for (unsigned i = 0; i < b->n; i++)
		if (may_start(b, &b->items[i]) && !start_item(b, &b->items[i]))
			return;
}

static void
on_full(void *arg)
{
	start_some(arg);
}

static void
batch_cancelled(void *arg)
{
	struct batch *b = arg;

	for (unsigned i = 0; i < b->n; i++)
		if (b->items[i].transfer != NULL)
			core_write_cancel(b->items[i].transfer, b->discard);
	batch_free(b);
}

static struct target *
get_target(struct batch *b, const char *peer)
{
	for (unsigned i = 0; i < b->n_targets; i++)
		if (strcmp(b->targets[i].peer, peer) == 0)
			return &b->targets[i];
	b->targets[b->n_targets].peer = peer;
	return &b->targets[b->n_targets++];
}

/* The peer of the call, or that of its nth file. */
static const char *
peer_of(const struct varlink_call *call, unsigned n)
{
	const json_t *peers = json_object_get(call->parameters, "peers");

	return json_is_array(peers) ? json_string_value(json_array_get(peers, n))
				    : varlink_text(call, "peer");
}

static struct batch *
batch_new(const struct control_env *env, struct varlink_call *call)
{
	struct batch *b = calloc(1, sizeof(*b));

	if (b == NULL || loop_timer_new(env->loop, on_full, b, &b->full) < 0) {
		free(b);
		return NULL;
	}
	b->core = env->core;
	b->call = call;
	b->since = loop_now();
	b->discard = varlink_flag(call, "discard");
	b->width = varlink_number(call, "width");
	if (b->width == 0)
		b->width = core_width(b->core);
	b->n = call->n_fds;
	for (unsigned i = 0; i < b->n; i++)
		b->items[i] = (struct item){
		    .batch = b, .target = get_target(b, peer_of(call, i)), .fd = call->fds[i]};
	call->n_fds = 0;
	return b;
}

/* One peer for all, or one for each name. */
static bool
peers_fit(const struct varlink_call *call, size_t names)
{
	const json_t *peers = json_object_get(call->parameters, "peers");
	bool one = varlink_text(call, "peer") != NULL;

	return json_is_array(peers) ? !one && json_array_size(peers) == names : one;
}

void
batch_start(const struct control_env *env, struct varlink_call *call)
{
	size_t names = json_array_size(json_object_get(call->parameters, "names"));
	struct batch *b;

	if (!call->more) {
		varlink_error(call, "org.varlink.service.ExpectedMore", json_object());
		return;
	}
	if (call->n_fds != names) {
		varlink_fail(call, "io.rwriter.DescriptorMissing",
		    "%zu names came with %u descriptors", names, call->n_fds);
		return;
	}
	if (!peers_fit(call, names)) {
		varlink_error(call, "org.varlink.service.InvalidParameter",
		    json_pack("{s:s}", "parameter", "peers"));
		return;
	}
	b = batch_new(env, call);
	if (b == NULL) {
		varlink_fail(call, "io.rwriter.NotStarted", "memory is short");
		return;
	}
	call->cancelled = batch_cancelled;
	call->arg = b;
	start_some(b);
}
