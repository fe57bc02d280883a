/* write_many.c -- many files, or many peers, in few calls, with a line for each and a summary
 *
 * As many as may travel with one call are opened at a time, and what goes to several peers is
 * opened once. Results come in any order; those that are missing when the daemon has gone are asked
 * for again when it is back. A peer that cannot be reached would hold up each call: from the first
 * such failure on its files are put off until the other peers have all of theirs.
 */

#include "config.h"

#include <errno.h>
#include <fcntl.h>
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

/* Bytes of a request that names and peers may take; the rest of it is short. */
#define BATCH_TEXT (LIMIT_CONTROL_MESSAGE - 8192)

struct item { /* a file and one of the peers that it goes to */
	const char *file;
	struct member *member;
	int fd;
	bool done;
	json_t *stopped; /* failed since a daemon stops: perhaps not for good */
};

struct batch { /* what one call asks for */
	unsigned n;
	struct item items[LIMIT_BATCH];
};

struct many {
	struct writing *w;
	struct batch batch;
	char **files;
	size_t n_files, next; /* items so far: each file goes to all peers before the next does */
	bool last;            /* all over again, for what was put off */
	size_t good, bad, late;
	uint64_t bytes;
};

static size_t
n_items(const struct many *m)
{
	return m->n_files * m->w->fleet.n;
}

/* ---- results ---- */

static void
count(struct many *m, struct member *member, const json_t *transfer)
{
	const char *state = text_at(transfer, "state");

	if (strcmp(state, "arrived") == 0 || strcmp(state, "stored") == 0) {
		m->good++;
		m->bytes += number_at(transfer, "length");
	} else {
		m->bad++;
		member->bad++;
		m->late += strcmp(state, "deadline") == 0;
	}
	progress_count(m->w->progress, m->good + m->bad, n_items(m));
}

static void
print_json(const struct item *item, const json_t *transfer, const char *text)
{
	json_t *line = json_pack("{s:o, s:o, s:O?, s:s?}", "file", call_text(item->file), "peer",
	    call_text(item->member->name), "transfer", transfer, "text", text);

	json_dumpf(line, stdout, JSON_COMPACT);
	putchar('\n');
	json_decref(line);
}

/* transfer: NULL when there was none; text says why then. */
static void
tell(struct many *m, const struct item *item, json_t *transfer, const char *text)
{
	char name[LIMIT_FILE_NAME + 1];
	const char *own = input_base_name(item->file);

	count(m, item->member, transfer);
	progress_clear(m->w->progress);
	if (m->w->o->json)
		print_json(item, transfer, text);
	else if (transfer != NULL)
		writing_print(transfer);
	else
		printf("%s -> %s: failed: %s\n", text_clean(name, sizeof(name), own, strlen(own)),
		    item->member->name, text);
}

static int
summarize(const struct many *m, uint64_t ns)
{
	char amount[TEXT_SIZE_MAX], took[TEXT_TIME_MAX], rate[TEXT_SIZE_MAX], to[FLEET_NAME_MAX];
	size_t missing = n_items(m) - m->good - m->bad;

	if (!m->w->o->json) {
		printf("%zu file%s -> %s: %zu done, %zu failed", m->n_files,
		    m->n_files == 1 ? "" : "s", fleet_name(to, &m->w->fleet), m->good, m->bad);
		if (missing > 0)
			printf(", %zu unfinished", missing);
		printf("; %s in %s (%s/s)\n", text_human_size(amount, m->bytes),
		    text_human_time(took, ns),
		    text_human_size(rate, (uint64_t)(m->bytes * 1e9 / ns)));
		fleet_print_bad(&m->w->fleet, m->n_files);
	}
	if (m->bad > 0)
		return m->late == m->bad ? STATUS_DEADLINE : STATUS_FAILED;
	return STATUS_DONE;
}

/* ---- a batch ---- */

static const char *
why_not(const struct many *m, int error)
{
	if (error != -EINVAL)
		return strerror(-error);
	return m->w->fleet.n > 1 ? "it is no regular file: write it to one peer at a time"
				 : "it is no regular file: write it by itself";
}

/* The same file for another peer is the same open file. */
static int
open_item(const struct batch *b, const char *file)
{
	const struct item *last = b->n > 0 ? &b->items[b->n - 1] : NULL;
	int fd;

	if (last == NULL || last->file != file)
		return strcmp(file, "-") == 0 ? -EINVAL : input_open_regular(file);
	fd = fcntl(last->fd, F_DUPFD_CLOEXEC, 0);
	return fd >= 0 ? fd : -errno;
}

static bool
has_turn(const struct many *m, const struct member *member, size_t file)
{
	return m->last ? file >= member->had : !member->stuck;
}

static const char *
name_of(const struct many *m, const struct item *item)
{
	return m->w->o->name != NULL ? m->w->o->name : input_base_name(item->file);
}

/* At most so many bytes of the request: a quote or a backslash takes two. */
static size_t
text_size(const struct many *m, const struct item *item)
{
	return 2 * (strlen(name_of(m, item)) + strlen(item->member->name)) + sizeof("\"\",\"\",");
}

/* Opens what fits into one call, the rest is for the next. */
static void
batch_fill(struct many *m)
{
	const struct fleet *fleet = &m->w->fleet;
	struct batch *b = &m->batch;
	size_t text = 0;

	b->n = 0;
	for (; m->next < n_items(m) && b->n < LIMIT_BATCH; m->next++) {
		size_t file = m->next / fleet->n;
		struct item item = {
		    .file = m->files[file], .member = &fleet->members[m->next % fleet->n]};

		if (!has_turn(m, item.member, file))
			continue;
		if (b->n > 0 && text + text_size(m, &item) > BATCH_TEXT)
			break;
		item.fd = open_item(b, item.file);
		if (item.fd == -EMFILE && b->n > 0)
			break;
		text += text_size(m, &item);
		item.member->had = file + 1;
		if (item.fd < 0)
			tell(m, &item, NULL, why_not(m, item.fd));
		else
			b->items[b->n++] = item;
	}
}

static void
batch_close(struct batch *b)
{
	for (unsigned i = 0; i < b->n; i++) {
		close(b->items[i].fd);
		json_decref(b->items[i].stopped);
	}
	b->n = 0;
}

/* Leaves only what is not done. */
static void
batch_shrink(struct batch *b)
{
	unsigned left = 0;

	for (unsigned i = 0; i < b->n; i++) {
		struct item *item = &b->items[i];

		json_decref(item->stopped);
		item->stopped = NULL;
		if (item->done)
			close(item->fd);
		else
			b->items[left++] = *item;
	}
	b->n = left;
}

static void
batch_send(struct many *m)
{
	json_t *parameters = writing_parameters(m->w), *names = json_array(), *peers = json_array();
	int fds[LIMIT_BATCH];

	for (unsigned i = 0; i < m->batch.n; i++) {
		const struct item *item = &m->batch.items[i];

		json_array_append_new(names, call_text(name_of(m, item)));
		json_array_append_new(peers, call_text(item->member->name));
		fds[i] = item->fd;
	}
	json_object_set_new(parameters, "names", names);
	json_object_set_new(parameters, "peers", peers);
	if (m->w->o->width != 0)
		json_object_set_new(parameters, "width", json_integer(m->w->o->width));
	call_send(m->w->call, "io.rwriter.WriteBatch", parameters, true, fds, m->batch.n);
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

/* Nothing is wrong about the file, nor did the peer say anything. */
static bool
is_unreachable(const json_t *transfer)
{
	const char *code = text_at(transfer, "code");

	return strcmp(text_at(transfer, "state"), "failed") == 0 &&
	       (code[0] == '\0' || strcmp(code, "timeout") == 0);
}

static void
take_answer(struct many *m, const json_t *p)
{
	json_t *transfer = json_object_get(p, "transfer");
	uint64_t i = number_at(p, "index");
	struct item *item = &m->batch.items[i < m->batch.n ? i : 0];

	if (i >= m->batch.n || item->done)
		return;
	if (json_is_null(transfer)) {
		tell(m, item, NULL, text_at(p, "text"));
		item->done = true;
	} else if (!is_final(transfer)) {
		writing_show(m->w, item->member, transfer);
	} else if (comeback_likely(transfer)) {
		json_decref(item->stopped);
		item->stopped = json_incref(transfer);
	} else {
		tell(m, item, transfer, NULL);
		item->done = true;
		item->member->stuck |= is_unreachable(transfer);
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
		any = any || b->items[i].stopped != NULL;
	if (!any || comeback_follows(m->w->call))
		return any;
	for (unsigned i = 0; i < b->n; i++)
		if (b->items[i].stopped != NULL)
			tell(m, &b->items[i], b->items[i].stopped, NULL);
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

/* There is more to do: last of all what was put off. */
static bool
goes_on(struct many *m)
{
	if (m->next == n_items(m) && !m->last) {
		m->last = true;
		m->next = 0;
	}
	return m->next < n_items(m);
}

static int
write_all(struct many *m, char **files)
{
	uint64_t since = now_ns();
	int status = call_open(m->w->o, &m->w->call), bad;

	if (status != STATUS_DONE)
		return status;
	m->files = files;
	while (files[m->n_files] != NULL)
		m->n_files++;
	progress_count(m->w->progress, 0, n_items(m));
	while (status == STATUS_DONE && goes_on(m)) {
		batch_fill(m);
		status = batch_run(m);
		batch_close(&m->batch);
		if (status == STATUS_DONE && m->next < n_items(m) &&
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
