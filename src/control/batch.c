/* batch.c -- io.rwriter.WriteBatch: many files in one call
 *
 * Each file has its own result, an answer with its place in the call; the last of them ends the
 * call. Some transfers are under way at once, the core queues them, and no file waits for the
 * answer of another.
 */

#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "control/batch.h"
#include "control/report.h"
#include "core/core.h"
#include "loop/loop.h"

struct item {
	struct batch *batch;
	struct transfer *transfer; /* while it runs */
	int fd;                    /* until then, or -1 */
};

struct batch {
	struct core *core;
	struct varlink_call *call; /* owns this, through cancelled, until the last answer */
	bool discard;
	unsigned n, begun, running, done;
	struct item items[];
};

static void start_some(struct batch *b);

static struct batch *
batch_free(struct batch *b)
{
	for (unsigned i = 0; i < b->n; i++)
		if (b->items[i].fd >= 0)
			close(b->items[i].fd);
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
		b->running--;
		if (finish_item(b, item, report_transfer(v), json_null()))
			start_some(b);
	} else if (!varlink_congested(b->call)) {
		varlink_continue(
		    b->call, json_pack("{s:I, s:o, s:n}", "index", (json_int_t)(item - b->items),
				 "transfer", report_transfer(v), "text"));
	}
}

/* False: that was the end of the batch. */
static bool
start_item(struct batch *b, struct item *item)
{
	const json_t *names = json_object_get(b->call->parameters, "names");
	struct write_request request = {
	    .peer = varlink_text(b->call, "peer"),
	    .region = varlink_text(b->call, "region"),
	    .name = json_string_value(json_array_get(names, item - b->items)),
	    .fd = item->fd,
	    .timeout_ns = varlink_number(b->call, "timeoutMs") * NSEC_PER_MSEC,
	    .preserve = varlink_flag(b->call, "preserve"),
	    .again = varlink_flag(b->call, "again"),
	    .uid = b->call->uid,
	    .update = item_update,
	    .arg = item,
	};
	char error[LIMIT_TEXT];
	int r = core_write(b->core, &request, &item->transfer, error, sizeof(error));

	close(item->fd);
	item->fd = -1;
	if (r < 0)
		return finish_item(b, item, json_null(), report_text(error));
	b->running++;
	return true;
}

static void
start_some(struct batch *b)
{
	while (b->begun < b->n && b->running < LIMIT_BATCH_RUNNING)
		if (!start_item(b, &b->items[b->begun++]))
			return;
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

static struct batch *
batch_new(struct core *core, struct varlink_call *call)
{
	struct batch *b = calloc(1, sizeof(*b) + call->n_fds * sizeof(b->items[0]));

	if (b == NULL)
		return NULL;
	b->core = core;
	b->call = call;
	b->discard = varlink_flag(call, "discard");
	b->n = call->n_fds;
	for (unsigned i = 0; i < b->n; i++)
		b->items[i] = (struct item){.batch = b, .fd = call->fds[i]};
	call->n_fds = 0;
	return b;
}

void
batch_start(struct core *core, struct varlink_call *call)
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
	b = batch_new(core, call);
	if (b == NULL) {
		varlink_fail(call, "io.rwriter.NotStarted", "memory is short");
		return;
	}
	call->cancelled = batch_cancelled;
	call->arg = b;
	start_some(b);
}
