/* write.c -- io.rwriter.Write: a transfer of the core and the call that waits for it */

#include "config.h"

#include <stdlib.h>

#include "control/report.h"
#include "control/write.h"
#include "loop/loop.h"

struct write {
	struct varlink_call *call; /* owns this, through cancelled, until it is answered */
	struct transfer *transfer;
	bool discard;
};

static const char *const WRITE_ERRORS[] = {
    [TRANSFER_REFUSED] = "io.rwriter.TransferRefused",
    [TRANSFER_FAILED] = "io.rwriter.TransferFailed",
    [TRANSFER_DEADLINE] = "io.rwriter.TransferDeadline",
};

static void
write_update(void *arg, const struct transfer_view *v)
{
	struct write *w = arg;

	if (v->state < TRANSFER_ARRIVED && (!w->call->more || varlink_congested(w->call)))
		return;
	json_t *result = json_pack("{s:o}", "transfer", report_transfer(v));
	if (v->state < TRANSFER_ARRIVED) {
		varlink_continue(w->call, result);
		return;
	}
	if (WRITE_ERRORS[v->state] != NULL)
		varlink_error(w->call, WRITE_ERRORS[v->state], result);
	else
		varlink_reply(w->call, result);
	free(w);
}

static void
write_cancelled(void *arg)
{
	struct write *w = arg;

	core_write_cancel(w->transfer, w->discard);
	free(w);
}

struct write_request
write_asked(const struct varlink_call *call)
{
	return (struct write_request){
	    .peer = varlink_text(call, "peer"),
	    .region = varlink_text(call, "region"),
	    .timeout_ns = varlink_number(call, "timeoutMs") * NSEC_PER_MSEC,
	    .preserve = varlink_flag(call, "preserve"),
	    .again = varlink_flag(call, "again"),
	    .uid = call->uid,
	};
}

void
write_start(struct core *core, struct varlink_call *call)
{
	struct write *w = malloc(sizeof(*w));
	struct write_request request = write_asked(call);
	char error[LIMIT_TEXT];

	if (w == NULL) {
		varlink_fail(call, "io.rwriter.NotStarted", "memory is short");
		return;
	}
	request.name = varlink_text(call, "name");
	request.fd = call->fds[0];
	request.size = varlink_number(call, "size");
	request.update = write_update;
	request.arg = w;
	w->call = call;
	w->discard = varlink_flag(call, "discard");
	if (core_write(core, &request, &w->transfer, error, sizeof(error)) < 0) {
		free(w);
		varlink_fail(call, "io.rwriter.NotStarted", "%s", error);
		return;
	}
	call->cancelled = write_cancelled;
	call->arg = w;
}
