/* test_core_hard.c -- hard times: peers that lie, dawdle or never end, bytes that are damaged,
 * files that cannot be read, memory that is short, and other configurations under live connections
 */

#include "config.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/outbound.h"
#include "fake/fake.h"
#include "unit/world.h"
#include "wire/rwp.h"

/* ---- system calls that hang ---- */

static bool reads_stuck;  /* all of them */
static bool touch_sticks; /* the next one ... */
static bool touch_stuck;  /* ... until this is over */

ssize_t __real_pread(int fd, void *buf, size_t len, off_t offset);
ssize_t __wrap_pread(int fd, void *buf, size_t len, off_t offset);
int __real_madvise(void *addr, size_t len, int advice);
int __wrap_madvise(void *addr, size_t len, int advice);

static void
wait_while(const bool *stuck)
{
	while (__atomic_load_n(stuck, __ATOMIC_RELAXED))
		usleep(1000);
}

ssize_t
__wrap_pread(int fd, void *buf, size_t len, off_t offset)
{
	wait_while(&reads_stuck);
	return __real_pread(fd, buf, len, offset);
}

int
__wrap_madvise(void *addr, size_t len, int advice)
{
	if (advice == MADV_POPULATE_WRITE &&
	    __atomic_exchange_n(&touch_sticks, false, __ATOMIC_RELAXED))
		wait_while(&touch_stuck);
	return __real_madvise(addr, len, advice);
}

static void
set(bool *what, bool value)
{
	__atomic_store_n(what, value, __ATOMIC_RELAXED);
}

static int
teardown(void **state)
{
	set(&reads_stuck, false);
	set(&touch_stuck, false);
	return world_teardown(state);
}

/* ---- */

static void
arrives(struct world *w, const char *peer, uint64_t size)
{
	struct outcome o;

	world_write(w, &o, peer, size);
	assert_string_equal(o.view.text, "");
	assert_int_equal(o.view.state, TRANSFER_ARRIVED);
}

static void
disconnect(struct world *w)
{
	core_disconnect(w->a, "b");
	WORLD_UNTIL(w, world_connections(w->a) == 0 && world_connections(w->b) == 0);
}

/* What one end of the oldest connection may be made to do: the protocol's other side sees it. */
static struct channel *
writer_end(void)
{
	return fake_conn(0, 0)->owner;
}

static struct channel *
target_end(void)
{
	return fake_conn(1, 0)->owner;
}

/* ---- no progress ---- */

static int
stream_of(struct world *w, struct outcome *o, const void *bytes, size_t len)
{
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	assert_int_equal(world_write_fd(w, o, "b", "stdin", fds[1]), 0);
	close(fds[1]);
	assert_int_equal(write(fds[0], bytes, len), len);
	return fds[0];
}

/* All of the stream is sent, and no RESULT comes. A slow input would be no fault; this is one. */
static void
stream_without_result(void **state)
{
	struct world *w = *state;
	struct outcome o;
	int fd;

	world_reopen(w, "[limits]\nstall = 300ms\n", NULL);
	arrives(w, "b", 10);
	fd = stream_of(w, &o, "hello", 5);
	world_turns(w, 0.5); /* longer than the stall */
	assert_false(o.done);
	fake.cut = true;
	shutdown(fd, SHUT_WR);
	world_fails_with(w, &o, "no progress for 0.3 s");
	close(fd);
}

static void
stuck_read(void **state)
{
	struct world *w = *state;
	struct outcome o;

	world_reopen(w, "[limits]\nstall = 300ms\n", NULL);
	set(&reads_stuck, true);
	world_begin(w, &o, "b", 1000);
	world_fails_with(w, &o, "no progress for 0.3 s");
	set(&reads_stuck, false);
	arrives(w, "b", 1000);
}

/* All of the staging memory is being filled, before the first segment is there. */
static void
reads_ahead(void **state)
{
	struct world *w = *state;
	struct outcome o;
	struct outbound *ob;

	set(&reads_stuck, true);
	world_begin(w, &o, "b", 9 << 20);
	WORLD_UNTIL(w, fake_conn(0, 0) != NULL);
	ob = container_of(writer_end(), struct outbound, channel);
	WORLD_UNTIL(w, ob->open.sender.state == SENDER_SENDING);
	for (unsigned i = 0; i < LIMIT_STAGING_CHUNKS; i++)
		assert_int_equal(ob->open.sender.staging.chunks[i].state, CHUNK_READING);
	set(&reads_stuck, false);
	WORLD_UNTIL(w, o.done);
	assert_int_equal(o.view.state, TRANSFER_ARRIVED);
}

/* What anybody can send for nothing is no progress of the transfer that it interrupts. */
static void
cheap_records(void **state)
{
	struct rwp_begin description = {.name = "file", .length = 10};
	struct world *w = *state;
	struct channel *ch;
	uint8_t blob[RWP_BLOB_MAX];
	uint64_t began;
	int len;

	world_reopen(w, NULL, "[limits]\nstall = 500ms\n");
	arrives(w, "b", 10);
	ch = writer_end();
	len = rwp_begin_encode(&description, RWP_BEGIN, area_out_seq(&ch->out), blob, sizeof(blob));
	began = loop_now();
	channel_push(ch,
	    &(struct rwp_record){
		.type = RWP_BEGIN, .transfer = 2, .grant = target_end()->line.grant},
	    blob, len, NULL);
	while (world_connections(w->b) == 1) {
		channel_push(writer_end(), &(struct rwp_record){.type = 200}, NULL, 0, NULL);
		world_turns(w, 0.02);
		assert_true(loop_now() - began < 10 * NSEC_PER_SEC);
	}
	assert_true(loop_now() - began >= 500 * NSEC_PER_MSEC);
	assert_int_equal(w->arrivals, 1);
}

/* ---- lies ---- */

/* Its line says so again and again: a good one that is sent meanwhile changes nothing. */
static void
target_lies(struct world *w, struct outcome *o, uint64_t consumed, uint64_t arrived)
{
	/* By time, not by turns: the writer looks every 20 ms at the least. */
	uint64_t until = loop_now() + 5 * NSEC_PER_SEC;
	struct rwp_line *line;

	while (!o->done && loop_now() < until) {
		line = &target_end()->line;
		line->consumed += consumed;
		line->arrived += arrived;
		channel_line(target_end());
		loop_turn(w->loop, NSEC_PER_MSEC);
	}
}

static void
line_invents_bytes(void **state)
{
	struct world *w = *state;
	struct outcome o;

	world_half_way(w, &o);
	target_lies(w, &o, 0, 1u << 30);
	world_fails_with(
	    w, &o, "broke the protocol: its line says that more has arrived than was sent");
	assert_true(o.view.arrived <= o.view.sent);
}

static void
line_invents_records(void **state)
{
	struct world *w = *state;
	struct outcome o;

	world_half_way(w, &o);
	target_lies(w, &o, 1000, 0);
	world_fails_with(w, &o, "broke the protocol: its line takes back or invents records");
}

static void
result_of_something_else(void **state)
{
	struct world *w = *state;
	struct outcome o;

	world_half_way(w, &o);
	channel_push(
	    target_end(), &(struct rwp_record){.type = RWP_RESULT, .transfer = 1}, NULL, 0, NULL);
	world_fails_with(w, &o, "broke the protocol: a result that does not match what was sent");
}

/* ---- damaged payload ---- */

/* A segment whose bytes are not those that its record speaks of: looked at again for 50 ms. */
static void
damaged_payload(void **state)
{
	struct world *w = *state;
	struct outbound *ob;
	struct outcome o;
	uint64_t began;

	arrives(w, "b", 10);
	ob = container_of(writer_end(), struct outbound, channel);
	fake.turn_bytes = 8; /* slow enough to be caught on the way */
	world_begin(w, &o, "b", 60000);
	WORLD_UNTIL(w, o.view.state == TRANSFER_CONFIRMING);
	assert_int_equal(ob->open.sender.staging.chunks[0].state, CHUNK_SENT);
	ob->open.sender.staging.chunks[0].read.buf[59999] ^= 1;
	began = loop_now();
	fake.turn_bytes = 1 << 20;
	WORLD_UNTIL(w, o.done);
	assert_int_equal(o.view.state, TRANSFER_FAILED);
	assert_int_equal(o.view.code, RWP_E_CHECKSUM);
	assert_string_equal(o.view.text, "payload does not match its checksum");
	assert_true(loop_now() - began >= 50 * NSEC_PER_MSEC);
	assert_int_equal(w->arrivals, 1);
	arrives(w, "b", 60000);
	world_check(w, 60000);
}

/* ---- too much ---- */

static void
stream_beyond_the_grant(void **state)
{
	struct world *w = *state;
	struct outcome o;
	uint8_t bytes[4096] = {0};
	int fd;

	world_reopen(w, NULL, "[region default]\nsize = 64K\n");
	fd = stream_of(w, &o, bytes, sizeof(bytes));
	for (int i = 0; i < 16; i++) /* together one page more than granted */
		assert_int_equal(write(fd, bytes, sizeof(bytes)), sizeof(bytes));
	shutdown(fd, SHUT_WR);
	world_fails_with(w, &o, "the stream is longer than the 64 KiB that were granted");
	assert_string_equal(o.view.fix, "ask for more with --size, or write a file");
	close(fd);
	assert_int_equal(w->arrivals, 0);
}

/* ---- memory ---- */

/* Nothing that lingers is lost for one that cannot be had anyway. */
static void
denied_request_evicts_nothing(void **state)
{
	struct world *w = *state;
	struct outcome o;

	world_reopen(
	    w, NULL, "[region default]\nsize = 1M\nmax-size = 8M\n[limits]\npinned-memory = 8M\n");
	arrives(w, "b", 10);
	disconnect(w);
	arrives(w, "127.0.0.1:7472", 10); /* and stays connected */
	assert_int_equal(world_regions(w), 2);
	world_write(w, &o, "b", 8 << 20);
	assert_int_equal(o.view.state, TRANSFER_REFUSED);
	assert_int_equal(o.view.code, RWP_E_MEMORY);
	assert_int_equal(world_regions(w), 2);
	world_write(w, &o, "b", 7 << 20); /* this can */
	assert_int_equal(o.view.state, TRANSFER_ARRIVED);
	assert_int_equal(world_regions(w), 2);
}

/* What is evicted counts as free at once, though a job is still busy with it. */
static void
eviction_while_touching(void **state)
{
	struct world *w = *state;

	world_reopen(
	    w, NULL, "[region default]\nsize = 2M\nmax-size = 2M\n[limits]\npinned-memory = 5M\n");
	set(&touch_stuck, true);
	set(&touch_sticks, true);
	for (int i = 0; i < 2; i++) {
		arrives(w, "b", 10);
		disconnect(w);
	}
	assert_int_equal(world_regions(w), 2);
	arrives(w, "b", 10); /* takes the place of the first, and of that alone */
	assert_int_equal(world_regions(w), 2);
}

/* ---- another configuration ---- */

/* Connections stay, also those that would now be refused; what is new follows the new lines. */
static void
reload_under_a_connection(void **state)
{
	struct world *w = *state;
	struct outcome o;

	world_half_way(w, &o);
	world_reload(w, w->b, "[region default]\nmax-size = 8M\n[limits]\nconnections = 1\n");
	world_reload(w, w->a, "[limits]\nstall = 20s\n");
	fake.turn_bytes = 1 << 20;
	WORLD_UNTIL(w, o.done);
	assert_int_equal(o.view.state, TRANSFER_ARRIVED);
	arrives(w, "b", 10); /* on the same connection */
	assert_int_equal(world_regions(w), 1);
	world_write(w, &o, "127.0.0.1:7472", 10);
	assert_int_equal(o.view.code, RWP_E_BUSY);
	disconnect(w);
	world_write(w, &o, "b", 64 << 20);
	assert_int_equal(o.view.code, RWP_E_SIZE);
}

/* More linger than may from now on: the surplus goes with the next. */
static void
reload_keeps_less(void **state)
{
	struct world *w = *state;
	struct region_view v;
	int fd;

	world_reopen(w, NULL, "[region default]\nkeep = 3\n");
	for (int i = 0; i < 3; i++) {
		arrives(w, "b", 1000);
		disconnect(w);
	}
	assert_int_equal(world_regions(w), 3);
	world_reload(w, w->b, "[region default]\nkeep = 1\n");
	arrives(w, "b", 1000);
	disconnect(w);
	assert_int_equal(world_regions(w), 1);
	assert_int_equal(core_open_region(w->b, "", &v, &fd), 0);
	close(fd);
	assert_int_equal(v.id, 4);
}

#define STUCK(fn) cmocka_unit_test_setup_teardown(fn, world_setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(stream_without_result),
	    STUCK(stuck_read),
	    STUCK(reads_ahead),
	    TEST(cheap_records),
	    TEST(line_invents_bytes),
	    TEST(line_invents_records),
	    TEST(result_of_something_else),
	    TEST(damaged_payload),
	    TEST(stream_beyond_the_grant),
	    TEST(denied_request_evicts_nothing),
	    STUCK(eviction_while_touching),
	    TEST(reload_under_a_connection),
	    TEST(reload_keeps_less),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
