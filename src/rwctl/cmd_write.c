/* cmd_write.c -- rwctl write PEER FILE...|-: have the daemon write files into regions of peers */

#include "config.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "rwctl/input.h"
#include "rwctl/interrupt.h"
#include "rwctl/progress.h"
#include "rwctl/pump.h"
#include "rwctl/writing.h"

/* ---- one file, or a stream ---- */

static void
send_call(struct writing *w, struct input *in)
{
	json_t *parameters = writing_parameters(w);
	const int *fd = in->pump != NULL ? &in->far_end : &in->fd;

	json_object_set_new(parameters, "peer", call_text(w->fleet.members[0].name));
	json_object_set_new(parameters, "name", call_text(in->name));
	if (w->o->size != 0)
		json_object_set_new(parameters, "size", json_integer(w->o->size));
	call_send(w->call, "io.rwriter.Write", parameters, !w->o->quiet, fd, 1);
	if (in->far_end >= 0)
		close(in->far_end);
	in->far_end = -1;
}

static int
await_result(struct writing *w, struct input *in, struct answer *ret)
{
	int r;

	while ((r = writing_receive(w, in->pump, ret)) == 0 && ret->continues) {
		writing_show(w, w->fleet.members, json_object_get(ret->parameters, "transfer"));
		answer_done(ret);
	}
	return r;
}

/* r: there is an answer, or why not. */
static bool
daemon_gone(struct writing *w, int r, struct answer *answer)
{
	if (r < 0)
		return comeback_needed(r);
	if (!comeback_likely(json_object_get(answer->parameters, "transfer")) ||
	    !comeback_follows(w->call))
		return false;
	answer_done(answer);
	return true;
}

static int
explain(const struct writing *w, const struct input *in, int error)
{
	int status;

	if (in->pump != NULL && pump_error(in->pump) < 0) {
		complain("%s: cannot be read: %s", in->name, strerror(-pump_error(in->pump)));
		return STATUS_FAILED;
	}
	status = call_explain(w->call, error);
	if (in->pump != NULL && comeback_needed(error))
		advise("%s is a stream, which cannot be read again: start it anew", in->name);
	return status;
}

static int
conclude(const struct writing *w, struct answer *answer)
{
	int status = STATUS_DONE;

	if (answer->error != NULL)
		status = answer_failed(answer, w->o);
	else if (w->o->json)
		answer_print(answer);
	else
		writing_print(json_object_get(answer->parameters, "transfer"));
	answer_done(answer);
	return status;
}

static int
write_one(struct writing *w, struct input *in)
{
	struct answer answer;
	int r, status;

	for (;;) {
		send_call(w, in);
		r = await_result(w, in, &answer);
		if (in->pump != NULL || !daemon_gone(w, r, &answer))
			break;
		status = writing_await_daemon(w);
		if (status != STATUS_DONE)
			return status;
	}
	progress_clear(w->progress);
	return r < 0 ? explain(w, in, r) : conclude(w, &answer);
}

static int
write_input(struct writing *w, const char *file)
{
	struct input in;
	int status = input_open(&in, file, w->o->name);

	if (status == STATUS_DONE)
		status = call_open(w->o, &w->call);
	if (status == STATUS_DONE)
		status = write_one(w, &in);
	w->call = call_close(w->call);
	if (in.pump != NULL && status != STATUS_DONE)
		pump_await_drop(in.pump);
	input_close(&in);
	return status;
}

/* ---- the command ---- */

static int
check_usage(const struct options *o, char **files)
{
	bool one = o->files_from == NULL && files[0] != NULL && files[1] == NULL;

	if (files[0] == NULL && o->files_from == NULL) {
		complain("write what? rwctl write PEER FILE...|-");
		return STATUS_USAGE;
	}
	if (!one && (o->name != NULL || o->size != 0)) {
		complain("--%s is for a single file", o->name != NULL ? "name" : "size");
		return STATUS_USAGE;
	}
	return STATUS_DONE;
}

static int
write_files(struct writing *w, char **files)
{
	bool one = w->fleet.n == 1 && w->o->files_from == NULL && files[1] == NULL;
	int status;

	if (!w->o->quiet && !w->o->json)
		w->progress = progress_new(w->fleet.n);
	status = one ? write_input(w, files[0]) : write_many(w, files);
	progress_free(w->progress);
	call_close(w->call);
	return status;
}

int
cmd_write(const struct options *o, char **args)
{
	struct writing w = {.o = o, .deadline = deadline_in(o->timeout_ns)};
	int status = check_usage(o, args + 1);

	if (status != STATUS_DONE)
		return status;
	status = fleet_get(&w.fleet, o, args[0]);
	if (status == STATUS_DONE && w.fleet.n > 1 && o->size != 0) {
		complain("--size is for a stream, which goes to one peer at a time");
		status = STATUS_USAGE;
	}
	if (status == STATUS_DONE)
		status = write_files(&w, args + 1);
	fleet_done(&w.fleet);
	return status;
}
