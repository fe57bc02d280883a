/* hook.c -- the program of a region, run for what arrives in it */

#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/list.h"
#include "base/log.h"
#include "base/text.h"
#include "conf/conf.h"
#include "daemon/hook.h"
#include "loop/loop.h"

struct hooks {
	struct loop *loop;
	void (*ended)(void *arg, const struct event_view *event);
	void *arg;
	struct list waiting, running; /* struct hook */
	unsigned limit;               /* that run at once, as it was said last */
};

/* One run. What was told of the event and of the configuration is copied: both go. */
struct hook {
	struct list node;
	struct hooks *hooks;
	char *text; /* holds argv and envp, and the words of event */
	char **argv, **envp;
	struct event_view event;
	struct arrival_view arrival;
	uint64_t time_ns;

	pid_t pid; /* and process group */
	int pidfd;
	struct loop_io *io;
	struct loop_timer *timer;
	uint64_t started;
	bool late;
	struct loop_task grave;
};

static void start_next(struct hooks *hooks);

/* ---- making ---- */

static struct hook *
hook_free(struct hook *h)
{
	if (h == NULL)
		return NULL;
	list_del(&h->node);
	loop_io_free(h->io);
	loop_timer_free(h->timer);
	if (h->pidfd >= 0)
		close(h->pidfd);
	free(h->argv);
	free(h->envp);
	free(h->text);
	free(h);
	return NULL;
}

static void
bury(struct loop_task *task)
{
	hook_free(container_of(task, struct hook, grave));
}

/* The program and its arguments are lines of text, the facts are lines behind them. */
static void
write_text(FILE *out, const struct conf_region *conf, const struct event_view *e)
{
	const struct conf_argument *argument;

	fprintf(out, "%s%c", conf->program, 0);
	list_for_each (argument, &conf->arguments, struct conf_argument, node)
		fprintf(out, "%s%c", argument->text, 0);
	fprintf(out, "PATH=/usr/local/bin:/usr/bin:/bin%c", 0);
	fprintf(out, "RWRITER_NAME=%s%c", e->arrival->name, 0);
	fprintf(out, "RWRITER_PEER=%s%c", e->peer, 0);
	fprintf(out, "RWRITER_LENGTH=%" PRIu64 "%c", e->arrival->length, 0);
	fprintf(out, "RWRITER_PATH=%s%c", e->path, 0);
	fprintf(out, "RWRITER_REGION=%s%c", e->region, 0);
	fprintf(out, "RWRITER_CRC32C=%08" PRIx32 "%c", e->arrival->crc32c, 0);
	/* For the event that tells of its end. */
	fprintf(out, "%s%c%s%c%s%c", e->address, 0, e->fabric, 0, e->device, 0);
}

#define N_FACTS 7

static char *
next(char *s)
{
	return s + strlen(s) + 1;
}

static void
point_at_text(struct hook *h, unsigned n_args, const struct event_view *e)
{
	char *s = h->text;

	for (unsigned i = 0; i < n_args; i++, s = next(s))
		h->argv[i] = s;
	for (unsigned i = 0; i < N_FACTS; i++, s = next(s))
		h->envp[i] = s;
	h->arrival = *e->arrival;
	h->event = (struct event_view){
	    .kind = EVENT_HOOK,
	    .direction = e->direction,
	    .peer = strchr(h->envp[2], '=') + 1,
	    .address = s,
	    .fabric = next(s),
	    .device = next(next(s)),
	    .region = strchr(h->envp[5], '=') + 1,
	    .path = strchr(h->envp[4], '=') + 1,
	    .region_id = e->region_id,
	    .arrival = &h->arrival,
	};
}

static struct hook *
hook_new(struct hooks *hooks, const struct conf_region *conf, const struct event_view *e)
{
	unsigned n_args = 1 + list_length(&conf->arguments);
	struct hook *h = calloc(1, sizeof(*h));
	size_t len;
	FILE *out;

	if (h == NULL)
		return NULL;
	list_init(&h->node);
	loop_task_init(&h->grave, bury);
	h->hooks = hooks;
	h->pidfd = -1;
	h->argv = calloc(n_args + 1, sizeof(char *));
	h->envp = calloc(N_FACTS + 1, sizeof(char *));
	out = open_memstream(&h->text, &len);
	if (out != NULL) {
		write_text(out, conf, e);
		if (fclose(out) != 0)
			return hook_free(h);
	}
	if (h->argv == NULL || h->envp == NULL || h->text == NULL)
		return hook_free(h);
	point_at_text(h, n_args, e);
	return h;
}

/* ---- the end ---- */

static void
tell(struct hook *h, const char *how)
{
	char text[LIMIT_TEXT], took[TEXT_TIME_MAX];

	snprintf(text, sizeof(text), "%s %s after %s", h->argv[0], how,
	    text_human_time(took, loop_now() - h->started));
	log_info("region %" PRIu32 ": %s, for %s", h->event.region_id, text, h->arrival.name);
	h->event.at = clock_realtime();
	h->event.text = text;
	h->hooks->ended(h->hooks->arg, &h->event);
}

static void
on_end(void *arg, unsigned events)
{
	struct hook *h = arg;
	char how[64] = "ended";
	int status;

	(void)events;
	if (waitpid(h->pid, &status, WNOHANG) != h->pid)
		return;
	if (h->late)
		snprintf(how, sizeof(how), "was killed, its time was up,");
	else if (WIFEXITED(status))
		snprintf(how, sizeof(how), "exited with %d", WEXITSTATUS(status));
	else if (WIFSIGNALED(status))
		snprintf(how, sizeof(how), "was killed by signal %d", WTERMSIG(status));
	h->io = loop_io_free(h->io);
	h->timer = loop_timer_free(h->timer);
	list_del(&h->node);
	tell(h, how);
	loop_bury(h->hooks->loop, &h->grave);
	start_next(h->hooks);
}

static void
on_time(void *arg)
{
	struct hook *h = arg;

	h->late = true;
	kill(-h->pid, SIGKILL);
}

/* ---- running ---- */

/* Standard input is empty; what it says goes where the daemon's words go. Everything else is
 * closed. */
static int
spawn(struct hook *h)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	sigset_t none, all;
	int error;

	sigemptyset(&none);
	sigfillset(&all);
	posix_spawn_file_actions_init(&files);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setflags(
	    &attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setsigdefault(&attributes, &all);
	error = posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
	if (error == 0)
		error = posix_spawn_file_actions_adddup2(&files, STDERR_FILENO, STDOUT_FILENO);
	if (error == 0)
		error = posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);
	if (error == 0)
		error = posix_spawn(&h->pid, h->argv[0], &files, &attributes, h->argv, h->envp);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&files);
	return -error;
}

static void
abandon(struct hook *h)
{
	kill(-h->pid, SIGKILL);
	waitpid(h->pid, NULL, 0);
}

static int
watch(struct hook *h)
{
	struct loop *loop = h->hooks->loop;
	int r;

	h->pidfd = (int)syscall(SYS_pidfd_open, h->pid, 0);
	if (h->pidfd < 0)
		return -errno;
	r = loop_io_new(loop, h->pidfd, LOOP_READ, on_end, h, &h->io);
	if (r == 0)
		r = loop_timer_new(loop, on_time, h, &h->timer);
	if (r < 0)
		return r;
	loop_timer_set(h->timer, h->time_ns);
	return 0;
}

/* 0, or it has not come about and has gone. */
static void
start(struct hook *h)
{
	char how[LIMIT_TEXT / 2];
	int r = spawn(h);

	h->started = loop_now();
	if (r == 0) {
		r = watch(h);
		if (r < 0)
			abandon(h);
	}
	if (r == 0) {
		list_add_tail(&h->hooks->running, &h->node);
		return;
	}
	snprintf(how, sizeof(how), "cannot be run: %s,", strerror(-r));
	tell(h, how);
	hook_free(h);
}

static void
start_next(struct hooks *hooks)
{
	struct hook *h;

	while (list_length(&hooks->running) < hooks->limit &&
	       (h = list_first(&hooks->waiting, struct hook, node)) != NULL) {
		list_del(&h->node);
		start(h);
	}
}

void
hooks_event(struct hooks *hooks, const struct conf *conf, const struct event_view *e)
{
	const struct conf_region *region;
	struct hook *h;

	if ((e->kind != EVENT_ARRIVAL && e->kind != EVENT_STORED) || e->transfer_id != 0)
		return;
	region = conf_find_region(conf, e->region);
	if (region == NULL || region->program[0] == '\0')
		return;
	h = list_length(&hooks->waiting) < LIMIT_HOOKS ? hook_new(hooks, region, e) : NULL;
	if (h == NULL) {
		log_warning("region %" PRIu32 ": %s is not run for %s: %s", e->region_id,
		    region->program, e->arrival->name, "too many wait, or memory is short");
		return;
	}
	h->time_ns = conf->hook_time_ns;
	hooks->limit = conf->hooks;
	list_add_tail(&hooks->waiting, &h->node);
	start_next(hooks);
}

/* ---- life ---- */

int
hooks_new(struct loop *loop, void (*ended)(void *arg, const struct event_view *event), void *arg,
    struct hooks **ret)
{
	struct hooks *hooks = calloc(1, sizeof(*hooks));

	if (hooks == NULL)
		return -ENOMEM;
	hooks->loop = loop;
	hooks->ended = ended;
	hooks->arg = arg;
	list_init(&hooks->waiting);
	list_init(&hooks->running);
	*ret = hooks;
	return 0;
}

struct hooks *
hooks_free(struct hooks *hooks)
{
	struct hook *h;

	if (hooks == NULL)
		return NULL;
	list_for_each (h, &hooks->waiting, struct hook, node)
		hook_free(h);
	list_for_each (h, &hooks->running, struct hook, node) {
		abandon(h);
		hook_free(h);
	}
	free(hooks);
	return NULL;
}
