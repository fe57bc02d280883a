/* daemon.c -- rwriterd: options, configuration, ordered start, loop, ordered end */

#include "config.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/log.h"
#include "base/text.h"
#include "conf/conf.h"
#include "control/control.h"
#include "core/core.h"
#include "daemon/daemon.h"
#include "daemon/hook.h"
#include "daemon/service.h"
#include "loop/loop.h"
#include "loop/work.h"

#define SOURCE_THREADS  4
#define STORE_THREADS   4
#define SPOOL_THREADS   4
#define RESOLVE_THREADS 2

struct daemon {
	const char *file; /* -c, or NULL */
	const struct fabric_ops *const *fabrics;
	struct conf *conf;
	struct loop *loop;
	struct work *source, *store, *spool, *resolve;
	struct service *service;
	struct core *core;
	struct control *control;
	struct hooks *hooks;
	struct loop_signal *sigterm, *sigint, *sighup;
};

/* ---- reload ---- */

static int
reload(void *arg, char *errors, size_t size)
{
	struct daemon *d = arg;
	struct conf *fresh, *old = d->conf;
	FILE *out = fmemopen(errors, size, "w");
	int error;

	if (out == NULL)
		return -ENOMEM;
	service_reloading();
	error = conf_load(d->file, out, &fresh);
	fclose(out);
	if (error == 0) {
		log_set_level(fresh->log_level);
		d->conf = fresh;
		core_reload(d->core, fresh);
		if (strcmp(old->control, fresh->control) != 0)
			log_warning("reload: the control socket stays at %s until the next start",
			    old->control);
		conf_free(old);
		log_info("configuration reloaded");
	}
	service_ready();
	return error;
}

static void
on_hup(void *arg)
{
	char errors[4096];

	if (reload(arg, errors, sizeof(errors)) < 0)
		log_error("reload failed, the old configuration stays: %s", errors);
}

/* ---- what goes on ---- */

struct summary {
	char text[512];
	unsigned up, down;
};

static void
count_listen(void *arg, const struct listen_view *v)
{
	struct summary *s = arg;

	if (v->up) {
		s->up++;
		return;
	}
	if (s->down++ == 0)
		snprintf(s->text, sizeof(s->text), "; %s on %s is down: %s", v->fabric, v->address,
		    v->detail);
}

static void
on_changed(void *arg)
{
	struct daemon *d = arg;
	struct summary s = {0};
	struct status_view v;
	char line[1024];

	core_status(d->core, &v);
	core_each_listen(d->core, count_listen, &s);
	snprintf(line, sizeof(line), "%s: %u listening, %u connections, %u regions, %u transfers%s",
	    v.stopping ? "stopping" : "ready", s.up, v.connections, v.regions, v.transfers, s.text);
	service_status(line);
}

static void
log_stored(const struct region_view *v)
{
	log_info("region %u: %s from %s (%s) is stored as %s, %llu bytes, crc32c %08x", v->id,
	    v->last.name, v->peer, v->claimed_name, v->last.path,
	    (unsigned long long)v->last.length, v->last.crc32c);
}

static void
on_arrived(void *arg, const struct region_view *v)
{
	(void)arg;
	if (v->last.path[0] != '\0') {
		log_stored(v);
		return;
	}
	log_info("region %u: %s arrived from %s (%s), %llu bytes, crc32c %08x, %s %s", v->id,
	    v->last.name, v->peer, v->claimed_name, (unsigned long long)v->last.length,
	    v->last.crc32c, v->fabric, v->device);
}

static void
on_event(void *arg, const struct event_view *event)
{
	struct daemon *d = arg;

	if (d->control != NULL) /* which starts last and ends first */
		control_event(d->control, event);
	hooks_event(d->hooks, d->conf, event);
}

/* A program has ended. */
static void
on_hook(void *arg, const struct event_view *event)
{
	struct daemon *d = arg;

	if (d->control != NULL)
		control_event(d->control, event);
}

static void
on_stopped(void *arg)
{
	struct daemon *d = arg;

	loop_stop(d->loop);
}

static void
on_term(void *arg)
{
	struct daemon *d = arg;

	log_info("stopping");
	service_stopping(d->conf->stop_ns);
	core_stop(d->core);
}

/* ---- start and end ---- */

/* The kernel would refuse to pin what the configuration allows: better said now than at the first
 * transfer. */
static void
check_memlock(const struct conf *conf)
{
	char have[TEXT_SIZE_MAX], want[TEXT_SIZE_MAX];
	struct rlimit limit;

	if (access("/dev/infiniband/rdma_cm", F_OK) < 0) /* only RDMA devices pin memory */
		return;
	if (getrlimit(RLIMIT_MEMLOCK, &limit) < 0 || limit.rlim_cur >= conf->pinned_memory)
		return;
	log_warning("RDMA devices may pin only %s (RLIMIT_MEMLOCK), [limits] pinned-memory is %s: "
		    "set LimitMEMLOCK=infinity in rwriter.service, or ulimit -l",
	    text_human_size(have, limit.rlim_cur), text_human_size(want, conf->pinned_memory));
}

/* As many descriptors as the system lets us have: each write and each connection holds some. */
static void
raise_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static int
start_signals(struct daemon *d)
{
	int error;

	signal(SIGPIPE, SIG_IGN);
	error = loop_signal_new(d->loop, SIGTERM, on_term, d, &d->sigterm);
	if (error == 0)
		error = loop_signal_new(d->loop, SIGINT, on_term, d, &d->sigint);
	if (error == 0)
		error = loop_signal_new(d->loop, SIGHUP, on_hup, d, &d->sighup);
	return error;
}

static int
start_core(struct daemon *d)
{
	struct core_env env = {.loop = d->loop,
	    .source = d->source,
	    .store = d->store,
	    .spool = d->spool,
	    .resolve = d->resolve,
	    .fabrics = d->fabrics};
	struct observer observer = {.arg = d,
	    .changed = on_changed,
	    .arrived = on_arrived,
	    .event = on_event,
	    .stopped = on_stopped};

	return core_new(&env, d->conf, &observer, &d->core);
}

static int
start_control(struct daemon *d)
{
	struct control_env env = {
	    .loop = d->loop,
	    .core = d->core,
	    .path = d->conf->control,
	    .version = PACKAGE_VERSION,
	    .conf_file = d->file != NULL ? d->file : CONF_FILE,
	    .reload = reload,
	    .arg = d,
	};
	int fd, error = service_control_socket(env.path, &fd);

	return error < 0 ? error : control_new(&env, fd, &d->control);
}

static int
start(struct daemon *d)
{
	int error;

	error = loop_new(&d->loop);
	if (error == 0)
		error = work_new(d->loop, "rw-source", SOURCE_THREADS, &d->source);
	if (error == 0)
		error = work_new(d->loop, "rw-store", STORE_THREADS, &d->store);
	if (error == 0)
		error = work_new(d->loop, "rw-spool", SPOOL_THREADS, &d->spool);
	if (error == 0)
		error = work_new(d->loop, "rw-resolve", RESOLVE_THREADS, &d->resolve);
	if (error == 0)
		error = start_signals(d);
	if (error == 0)
		error = service_new(d->loop, &d->service);
	if (error == 0)
		error = hooks_new(d->loop, on_hook, d, &d->hooks);
	if (error == 0)
		error = start_core(d);
	if (error == 0)
		error = start_control(d); /* after the core, which it shows */
	return error;
}

static void
finish(struct daemon *d)
{
	d->control = control_free(d->control); /* its writes hold transfers of the core */
	/* Jobs come back to the core: their threads end before it. */
	if (d->source != NULL)
		work_free(d->source);
	if (d->resolve != NULL)
		work_free(d->resolve);
	work_free(d->spool);
	core_free(d->core);
	if (d->store != NULL)
		work_free(d->store);
	hooks_free(d->hooks);
	service_free(d->service);
	loop_signal_free(d->sigterm);
	loop_signal_free(d->sigint);
	loop_signal_free(d->sighup);
	loop_free(d->loop);
	conf_free(d->conf);
}

static int
run(struct daemon *d)
{
	int error;

	log_set_level(d->conf->log_level);
	if (crc32c_init() < 0) {
		log_error(
		    "the CRC32C self-test failed: this machine or this build computes wrongly");
		return EXIT_FAILURE;
	}
	check_memlock(d->conf);
	raise_descriptors();
	error = start(d);
	if (error == 0) {
		log_info("rwriterd %s \"%s\" is ready, control socket %s, CRC32C by %s",
		    PACKAGE_VERSION, d->conf->name, d->conf->control, crc32c_name());
		service_ready();
		error = loop_run(d->loop);
	}
	if (error < 0)
		log_error("cannot go on: %s", strerror(-error));
	finish(d);
	return error == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* ---- options ---- */

static const char USAGE[] =
    "usage: rwriterd [-t] [-c FILE]\n"
    "  -c, --config FILE  read FILE instead of " CONF_FILE "\n"
    "  -t, --test         check the configuration, print it as it would take effect, and exit\n"
    "      --options      print every option with its default, and exit\n"
    "  -V, --version      print the version, and exit\n"
    "  -h, --help         print this, and exit\n";

static const struct option OPTIONS[] = {
    {"config", required_argument, NULL, 'c'},
    {"test", no_argument, NULL, 't'},
    {"options", no_argument, NULL, 'o'},
    {"version", no_argument, NULL, 'V'},
    {"help", no_argument, NULL, 'h'},
    {0},
};

static int
load_and_run(struct daemon *d, bool test)
{
	int status = EXIT_SUCCESS;

	if (conf_load(d->file, stderr, &d->conf) < 0)
		return EXIT_FAILURE;
	if (!test)
		return run(d);
	conf_print(d->conf, stdout);
	if (fflush(stdout) != 0)
		status = EXIT_FAILURE;
	conf_free(d->conf);
	return status;
}

int
daemon_main(int argc, char **argv, const struct fabric_ops *const *fabrics)
{
	struct daemon d = {.fabrics = fabrics};
	bool test = false;
	int c;

	while ((c = getopt_long(argc, argv, "c:tVh", OPTIONS, NULL)) != -1) {
		switch (c) {
		case 'c':
			d.file = optarg;
			break;
		case 't':
			test = true;
			break;
		case 'o':
			conf_print_options(stdout);
			return EXIT_SUCCESS;
		case 'V':
			printf("rwriterd %s\n", PACKAGE_VERSION);
			return EXIT_SUCCESS;
		case 'h':
			fputs(USAGE, stdout);
			return EXIT_SUCCESS;
		default:
			fputs(USAGE, stderr);
			return 2;
		}
	}
	if (optind < argc) {
		fprintf(stderr, "rwriterd: \"%s\" is no option\n%s", argv[optind], USAGE);
		return 2;
	}
	return load_and_run(&d, test);
}
