/* write_many.c -- many files in few calls, with a line for each and a summary
 *
 * As many as may travel with one call are opened at a time. Their results come in any order; those
 * that are missing when the daemon has gone are asked for again when it is back.
 */

#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/text.h"
#include "rwctl/filelist.h"
#include "rwctl/input.h"
#include "rwctl/interrupt.h"
#include "rwctl/progress.h"
#include "rwctl/writing.h"

struct batch { /* what one call asks for */
	unsigned n;
	int fds[LIMIT_BATCH];
	const char *files[LIMIT_BATCH];
	bool done[LIMIT_BATCH];
	json_t *stopped[LIMIT_BATCH]; /* failed since a daemon stops: perhaps not for good */
};

struct many {
	struct writing *w;
	struct batch batch;
	size_t files, good, bad, late; /* late: of the bad */
	uint64_t bytes;
};

/* ---- results ---- */

static void
count(struct many *m, const json_t *transfer)
{
	const char *state = text_at(transfer, "state");

	if (strcmp(state, "arrived") == 0 || strcmp(state, "stored") == 0) {
		m->good++;
		m->bytes += number_at(transfer, "length");
	} else {
		m->bad++;
		m->late += strcmp(state, "deadline") == 0;
	}
	progress_count(m->w->progress, m->good + m->bad, m->files);
}

static void
print_json(const char *file, const json_t *transfer, const char *text)
{
	json_t *line = json_pack(
	    "{s:o, s:O?, s:s?}", "file", call_text(file), "transfer", transfer, "text", text);

	json_dumpf(line, stdout, JSON_COMPACT);
	putchar('\n');
	json_decref(line);
}

/* transfer: NULL when there was none; text says why then. */
static void
tell(struct many *m, const char *file, json_t *transfer, const char *text)
{
	char name[LIMIT_FILE_NAME + 1];
	const char *own = input_base_name(file);

	count(m, transfer);
	progress_clear(m->w->progress);
	if (m->w->o->json)
		print_json(file, transfer, text);
	else if (transfer != NULL)
		writing_print(transfer);
	else
		printf("%s -> %s: failed: %s\n", text_clean(name, sizeof(name), own, strlen(own)),
		    m->w->peer, text);
}

static int
summarize(const struct many *m, uint64_t ns)
{
	char amount[TEXT_SIZE_MAX], took[TEXT_TIME_MAX], rate[TEXT_SIZE_MAX];
	size_t missing = m->files - m->good - m->bad;

	if (!m->w->o->json) {
		printf("%zu file%s -> %s: %zu done, %zu failed", m->files, m->files == 1 ? "" : "s",
		    m->w->peer, m->good, m->bad);
		if (missing > 0)
			printf(", %zu not tried", missing);
		printf("; %s in %s (%s/s)\n", text_human_size(amount, m->bytes),
		    text_human_time(took, ns),
		    text_human_size(rate, (uint64_t)(m->bytes * 1e9 / ns)));
	}
	if (m->bad > 0)
		return m->late == m->bad ? STATUS_DEADLINE : STATUS_FAILED;
	return STATUS_DONE;
}

/* ---- a batch ---- */

static const char *
why_not(int error)
{
	return error == -EINVAL ? "it is no regular file: write it by itself" : strerror(-error);
}

/* Opens what fits; returns the first file that does not. */
static char **
batch_fill(struct many *m, char **files)
{
	struct batch *b = &m->batch;

	*b = (struct batch){.n = 0};
	for (; *files != NULL && b->n < LIMIT_BATCH; files++) {
		int fd = strcmp(*files, "-") == 0 ? -EINVAL : input_open_regular(*files);

		if (fd < 0) {
			tell(m, *files, NULL, why_not(fd));
			continue;
		}
		b->fds[b->n] = fd;
		b->files[b->n++] = *files;
	}
	return files;
}

static void
batch_close(struct batch *b)
{
	for (unsigned i = 0; i < b->n; i++) {
		close(b->fds[i]);
		json_decref(b->stopped[i]);
	}
	b->n = 0;
}

/* Leaves only what is not done. */
static void
batch_shrink(struct batch *b)
{
	unsigned left = 0;

	for (unsigned i = 0; i < b->n; i++) {
		json_decref(b->stopped[i]);
		if (b->done[i]) {
			close(b->fds[i]);
			continue;
		}
		b->fds[left] = b->fds[i];
		b->files[left++] = b->files[i];
	}
	b->n = left;
	memset(b->done, 0, sizeof(b->done));
	memset(b->stopped, 0, sizeof(b->stopped));
}

static void
batch_send(struct many *m)
{
	json_t *parameters = writing_parameters(m->w), *names = json_array();

	for (unsigned i = 0; i < m->batch.n; i++)
		json_array_append_new(names, call_text(input_base_name(m->batch.files[i])));
	json_object_set_new(parameters, "names", names);
	call_send(m->w->call, "io.rwriter.WriteBatch", parameters, true, m->batch.fds, m->batch.n);
}

static bool
is_final(const json_t *transfer)
{
	static const char *const STATES[] = {"arrived", "stored", "refused", "failed", "deadline"};

	for (size_t i = 0; i < sizeof(STATES) / sizeof(STATES[0]); i++)
		if (strcmp(text_at(transfer, "state"), STATES[i]) == 0)
			return true;
	return false;
}

static void
take_answer(struct many *m, const json_t *p)
{
	json_t *transfer = json_object_get(p, "transfer");
	uint64_t i = number_at(p, "index");

	if (i >= m->batch.n || m->batch.done[i])
		return;
	if (json_is_null(transfer)) {
		tell(m, m->batch.files[i], NULL, text_at(p, "text"));
		m->batch.done[i] = true;
	} else if (!is_final(transfer)) {
		writing_show(m->w, transfer);
	} else if (comeback_likely(transfer)) {
		json_decref(m->batch.stopped[i]);
		m->batch.stopped[i] = json_incref(transfer);
	} else {
		tell(m, m->batch.files[i], transfer, NULL);
		m->batch.done[i] = true;
	}
}

/* All of a call's answers: 0, a negative errno, or a status when the call itself was wrong. */
static int
batch_receive(struct many *m)
{
	bool continues = true;

	while (continues) {
		struct answer answer;
		int r = writing_receive(m->w, NULL, &answer);

		if (r < 0)
			return r;
		continues = answer.continues;
		if (answer.error != NULL)
			r = answer_failed(&answer, m->w->o);
		else
			take_answer(m, answer.parameters);
		answer_done(&answer);
		if (r > 0)
			return r;
	}
	return 0;
}

/* All is answered. If the daemon was not about to go, the last word on what it stopped is spoken.
 */
static bool
stops(struct many *m)
{
	struct batch *b = &m->batch;
	bool any = false;

	for (unsigned i = 0; i < b->n; i++)
		any = any || b->stopped[i] != NULL;
	if (!any || comeback_follows(m->w->call))
		return any;
	for (unsigned i = 0; i < b->n; i++)
		if (b->stopped[i] != NULL)
			tell(m, b->files[i], b->stopped[i], NULL);
	return false;
}

static int
batch_run(struct many *m)
{
	while (m->batch.n > 0) {
		int r, status;

		batch_send(m);
		r = batch_receive(m);
		if (r > 0 || (r == 0 && !stops(m)))
			return r;
		progress_clear(m->w->progress);
		if (r < 0 && !comeback_needed(r))
			return call_explain(m->w->call, r);
		status = writing_await_daemon(m->w);
		if (status != STATUS_DONE)
			return status;
		batch_shrink(&m->batch);
	}
	return STATUS_DONE;
}

/* ---- all ---- */

static uint64_t
now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * UINT64_C(1000000000) + ts.tv_nsec;
}

static int
write_all(struct many *m, char **files)
{
	uint64_t since = now_ns();
	int status = call_open(m->w->o, &m->w->call), bad;

	if (status != STATUS_DONE)
		return status;
	while (files[m->files] != NULL)
		m->files++;
	progress_count(m->w->progress, 0, m->files);
	while (*files != NULL && status == STATUS_DONE) {
		files = batch_fill(m, files);
		status = batch_run(m);
		batch_close(&m->batch);
		if (status == STATUS_DONE && *files != NULL &&
		    deadline_left_ms(m->w->deadline) == 0)
			status = STATUS_DEADLINE;
	}
	progress_clear(m->w->progress);
	bad = summarize(m, now_ns() - since);
	return status != STATUS_DONE ? status : bad;
}

int
write_many(struct writing *w, char **files)
{
	struct many m = {.w = w};
	struct filelist list;
	int status, r;

	if (w->o->files_from == NULL)
		return write_all(&m, files);
	if (files[0] != NULL) {
		complain("--files-from names all the files: give no others");
		return STATUS_USAGE;
	}
	r = filelist_read(w->o->files_from, &list);
	if (r == 0)
		status = write_all(&m, list.names);
	else if (r == -EINTR)
		status = interrupt_explain();
	else {
		complain("%s: %s", w->o->files_from, strerror(-r));
		status = STATUS_FAILED;
	}
	filelist_free(&list);
	return status;
}
