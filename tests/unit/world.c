/* world.c -- two daemons' cores on one loop over the fake fabric */

#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/log.h"
#include "base/text.h"
#include "core/transfer.h"
#include "fake/fake.h"
#include "unit/scarce.h"
#include "unit/world.h"

const char *world_lines_a, *world_lines_b;
const char *world_name_b = "b", *world_allow = "any";
bool world_two_fabrics;

static unsigned fail_at; /* which allocation, while a world is open */
static bool ran_short;   /* it was made: the world before had so many */

/* ---- fabrics ---- */

/* The fake under another name. */
static struct fabric_ops second;

static int
second_open(const struct fabric_env *env, struct fabric **ret, const char **detail)
{
	int error = fabric_fake.open(env, ret, detail);

	if (error == 0)
		(*ret)->ops = &second;
	return error;
}

static void
second_describe(struct fabric_conn *conn, struct fabric_info *ret)
{
	fabric_fake.describe(conn, ret);
	ret->fabric = second.name;
}

static const struct fabric_ops *const *
fabrics(void)
{
	static const struct fabric_ops *const ONE[] = {&fabric_fake, NULL};
	static const struct fabric_ops *const TWO[] = {&fabric_fake, &second, NULL};

	second = fabric_fake;
	second.name = "verbs"; /* one of those that a configuration can name */
	second.open = second_open;
	second.describe = second_describe;
	return world_two_fabrics ? TWO : ONE;
}

/* ---- opening and closing ---- */

static void
quiet(enum log_level level, const char *line)
{
	(void)level;
	(void)line;
}

static struct conf *
make_conf(const char *name, unsigned port, const char *lines)
{
	char path[] = "/tmp/rwriter-test-XXXXXX";
	struct conf *conf = NULL;
	FILE *file = fdopen(mkstemp(path), "w");

	assert_non_null(file);
	fprintf(file,
	    "[rwriter]\nname = %s\nlog-level = error\n"
	    "[listen default]\naddress = 127.0.0.1\nport = %u\nallow = %s\n"
	    "[peer b]\naddress = 127.0.0.1\nport = 7472\n%s",
	    name, port, world_allow, lines != NULL ? lines : "");
	fclose(file);
	assert_int_equal(conf_load(path, stderr, &conf), 0);
	unlink(path);
	return conf;
}

static void
on_arrived(void *arg, const struct region_view *region)
{
	struct world *w = arg;

	(void)region;
	w->arrivals++;
	if (w->on_arrival != NULL)
		w->on_arrival(w);
}

static void
on_stopped(void *arg)
{
	*(bool *)arg = true;
}

static void
on_stopped_b(void *arg)
{
	((struct world *)arg)->stopped_b = true;
}

static int
open_core(
    struct world *w, const struct conf *conf, const struct observer *observer, struct core **ret)
{
	struct core_env env = {.loop = w->loop,
	    .source = w->work,
	    .store = w->work,
	    .spool = w->work,
	    .resolve = w->resolve,
	    .fabrics = fabrics()};

	return core_new(&env, conf, observer, ret);
}

int
world_open(struct world *w)
{
	const struct observer a = {.arg = &w->stopped_a, .stopped = on_stopped};
	const struct observer b = {.arg = w, .arrived = on_arrived, .stopped = on_stopped_b};
	int error;

	log_set_sink(quiet);
	memset(w, 0, sizeof(*w));
	w->conf_a = make_conf("a", 7471, world_lines_a);
	w->conf_b = make_conf(world_name_b, 7472, world_lines_b);
	scarce_begin(fail_at);
	error = loop_new(&w->loop);
	if (error == 0)
		error = work_new(w->loop, "test", 2, &w->work);
	if (error == 0)
		error = work_new(w->loop, "resolve", 2, &w->resolve);
	if (error == 0)
		error = open_core(w, w->conf_a, &a, &w->a);
	if (error == 0)
		error = open_core(w, w->conf_b, &b, &w->b);
	return error;
}

static bool
is_empty(const struct core *core)
{
	struct status_view v;

	core_status(core, &v);
	return v.connections == 0 && v.unproven == 0 && v.regions == 0 && v.transfers == 0 &&
	       v.memory_used == 0;
}

static bool
has_stopped(const struct core *core, bool stopped)
{
	assert_true(core == NULL || !stopped || is_empty(core));
	return core == NULL || stopped;
}

void
world_stop(struct world *w)
{
	for (int i = 0; i < 2; i++) { /* the second call does not wait for transfers */
		if (w->a != NULL)
			core_stop(w->a);
		if (w->b != NULL)
			core_stop(w->b);
	}
	WORLD_UNTIL(w, has_stopped(w->a, w->stopped_a) && has_stopped(w->b, w->stopped_b));
	WORLD_UNTIL(w, work_pending(w->work) == 0);
	for (int i = 0; i < 10; i++) /* what is buried and late */
		loop_turn(w->loop, NSEC_PER_MSEC);
}

void
world_close(struct world *w)
{
	memset(w->writes, 0, sizeof(w->writes));
	w->on_arrival = NULL;
	if (w->work != NULL)
		world_stop(w);
	ran_short = scarce_end();
	work_free(w->resolve); /* as the daemon does: look-ups end before the core */
	core_free(w->a);
	core_free(w->b);
	work_free(w->work);
	loop_free(w->loop);
	conf_free(w->conf_a);
	conf_free(w->conf_b);
	memset(w, 0, sizeof(*w));
}

unsigned
world_each_allocation_fails(bool (*scenario)(void))
{
	unsigned failed = 0;

	fake = FAKE_DEFAULTS;
	do {
		fail_at++;
		failed += !scenario();
	} while (ran_short);
	fail_at = 0;
	return failed;
}

unsigned
world_each_operation_fails(bool (*scenario)(void), bool later)
{
	unsigned failed = 0, n = 0;

	do {
		fake = FAKE_DEFAULTS;
		fake.fail_at = ++n;
		fake.fail_later = later;
		failed += !scenario();
	} while (fake.ops >= n);
	fake = FAKE_DEFAULTS;
	return failed;
}

void
world_reload(struct world *w, struct core *core, const char *lines)
{
	struct conf **conf = core == w->a ? &w->conf_a : &w->conf_b;
	struct conf *fresh =
	    core == w->a ? make_conf("a", 7471, lines) : make_conf("b", 7472, lines);

	core_reload(core, fresh);
	conf_free(*conf);
	*conf = fresh;
}

int
world_setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	fake = FAKE_DEFAULTS;
	*state = w;
	return w != NULL && world_open(w) == 0 ? 0 : -1;
}

int
world_teardown(void **state)
{
	fake = FAKE_DEFAULTS;
	world_close(*state);
	free(*state);
	world_lines_a = world_lines_b = NULL;
	world_two_fabrics = false;
	return 0;
}

void
world_reopen(struct world *w, const char *lines_a, const char *lines_b)
{
	world_close(w);
	world_lines_a = lines_a;
	world_lines_b = lines_b;
	assert_int_equal(world_open(w), 0);
}

/* ---- waiting ---- */

void
world_wait(struct world *w, const bool *flag, const char *what, double seconds)
{
	uint64_t until = loop_now() + seconds * NSEC_PER_SEC;

	while (!*flag) {
		loop_turn(w->loop, NSEC_PER_MSEC);
		if (loop_now() > until)
			fail_msg("%s: not within %.1f s", what, seconds);
	}
}

void
world_turns(struct world *w, double seconds)
{
	uint64_t until = loop_now() + seconds * NSEC_PER_SEC;

	while (loop_now() < until)
		loop_turn(w->loop, NSEC_PER_MSEC);
}

/* ---- writing ---- */

static void
on_update(void *arg, const struct transfer_view *view)
{
	struct world_write *write = arg;
	struct outcome *o = write->outcome;

	if (o == NULL)
		return;
	o->view = *view;
	o->updates++;
	o->done = view->state >= TRANSFER_ARRIVED;
	if (o->done)
		write->outcome = NULL;
}

static struct world_write *
free_write(struct world *w)
{
	for (unsigned i = 0; i < WORLD_WRITES; i++)
		if (w->writes[i].outcome == NULL)
			return &w->writes[i];
	fail_msg("more than %d writes at once", WORLD_WRITES);
	return NULL;
}

int
world_write_request(struct world *w, struct outcome *o, struct write_request request)
{
	struct world_write *write = free_write(w);
	int error;

	memset(o, 0, sizeof(*o));
	request.update = on_update;
	request.arg = write;
	error = core_write(w->a, &request, &o->transfer, o->error, sizeof(o->error));
	if (error == 0)
		write->outcome = o;
	return error;
}

int
world_write_fd(struct world *w, struct outcome *o, const char *peer, const char *name, int fd)
{
	return world_write_request(
	    w, o, (struct write_request){.peer = peer, .name = name, .fd = fd});
}

static uint8_t
pattern(uint64_t i)
{
	return (i * 2654435761u) >> 13 ^ i >> 20;
}

int
world_file(uint64_t size)
{
	int fd = memfd_create("source", MFD_CLOEXEC);
	uint8_t *bytes;

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, size), 0);
	if (size == 0)
		return fd;
	bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(bytes != MAP_FAILED);
	for (uint64_t i = 0; i < size; i++)
		bytes[i] = pattern(i);
	munmap(bytes, size);
	return fd;
}

void
world_begin(struct world *w, struct outcome *o, const char *peer, uint64_t size)
{
	int fd = world_file(size);

	assert_int_equal(world_write_fd(w, o, peer, "file", fd), 0);
	close(fd);
}

void
world_write(struct world *w, struct outcome *o, const char *peer, uint64_t size)
{
	world_begin(w, o, peer, size);
	world_wait(w, &o->done, "the end of a write", 20);
}

void
world_half_way(struct world *w, struct outcome *o)
{
	fake.turn_bytes = 8 << 10;
	world_begin(w, o, "b", 64 << 20);
	world_some_arrives(w, o, 2 << 20);
}

void
world_some_arrives(struct world *w, struct outcome *o, uint64_t bytes)
{
	WORLD_UNTIL(w, o->done || (o->transfer->view.state == TRANSFER_SENDING &&
				      o->transfer->view.arrived >= bytes)); /* updates lag behind */
	assert_false(o->done);
}

void
world_fails_with(struct world *w, struct outcome *o, const char *text)
{
	WORLD_UNTIL(w, o->done);
	assert_int_equal(o->view.state, TRANSFER_FAILED);
	assert_string_equal(o->view.text, text);
}

void
world_check(struct world *w, uint64_t size)
{
	struct region_view v;
	uint8_t *bytes;
	uint32_t crc;
	int fd;

	assert_int_equal(core_open_region(w->b, "", &v, &fd), 0);
	assert_int_equal(v.last.length, size);
	assert_int_equal(v.receive_completions, 0);
	bytes = mmap(NULL, v.size, PROT_READ, MAP_SHARED, fd, 0);
	assert_true(bytes != MAP_FAILED);
	for (uint64_t i = 0; i < size; i++)
		if (bytes[i] != pattern(i))
			fail_msg("byte %llu of %llu differs", (unsigned long long)i,
			    (unsigned long long)size);
	crc = crc32c(0, bytes, size);
	assert_int_equal(v.last.crc32c, crc);
	munmap(bytes, v.size);
	close(fd);
}

unsigned
world_regions(const struct world *w)
{
	struct status_view v;

	core_status(w->b, &v);
	return v.regions;
}

unsigned
world_connections(const struct core *core)
{
	struct status_view v;

	core_status(core, &v);
	return v.connections + v.unproven;
}
