/* test_core.c -- writes from one core to another over the fake fabric, and what can go wrong with
 * them
 */

#include "config.h"

#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/text.h"
#include "core/listener.h"
#include "core/outbound.h"
#include "fake/fake.h"
#include "unit/world.h"
#include "wire/rwp.h"

/* ---- what works ---- */

static void
hello(void **state)
{
	struct world *w = *state;
	struct region_view v;
	struct outcome o;
	char text[18] = "";
	int fd = memfd_create("hello", 0);

	assert_int_equal(write(fd, "Hello RDMA Write!", 17), 17);
	assert_int_equal(world_write_fd(w, &o, "b", "hello.txt", fd), 0);
	close(fd);
	world_wait(w, &o.done, "hello", 5);
	assert_int_equal(o.view.state, TRANSFER_ARRIVED);
	assert_int_equal(o.view.crc32c, 0x24ca7934);
	assert_string_equal(o.view.host, "b");
	assert_int_equal(o.view.region_id, 1);
	assert_int_equal(w->arrivals, 1);

	assert_int_equal(core_open_region(w->b, "", &v, &fd), 0);
	assert_int_equal(pread(fd, text, 17, 0), 17);
	assert_string_equal(text, "Hello RDMA Write!");
	assert_string_equal(v.last.name, "hello.txt");
	assert_string_equal(v.claimed_name, "a");
	assert_int_equal(v.receive_completions, 0);
	/* The descriptor shows, it does not change. */
	assert_int_equal(pwrite(fd, "x", 1, 0), -1);
	assert_ptr_equal(mmap(NULL, 4096, PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
	close(fd);
}

static void
sizes(void **state)
{
	static const uint64_t SIZES[] = {0, 1, 17, 4095, 4096, 4097, 65535, 65536, 65537, 1048575,
	    1048576, 1048577, 4194304, 9437185};
	struct outcome o;

	for (size_t i = 0; i < sizeof(SIZES) / sizeof(SIZES[0]); i++) {
		world_write(*state, &o, "b", SIZES[i]);
		assert_int_equal(o.view.state, TRANSFER_ARRIVED);
		assert_int_equal(o.view.length, SIZES[i]);
		world_check(*state, SIZES[i]);
	}
}

/* Payload that lands after its record is read again, not believed. */
static void
late_payload(void **state)
{
	struct outcome o;

	fake.late_payload = 3;
	world_write(*state, &o, "b", 3 << 20);
	assert_int_equal(o.view.state, TRANSFER_ARRIVED);
	world_check(*state, 3 << 20);
}

static void
late_established(void **state)
{
	struct outcome o;

	fake.late_established = 5;
	fake.late_mem = 3;
	world_write(*state, &o, "b", 100000);
	assert_int_equal(o.view.state, TRANSFER_ARRIVED);
	world_check(*state, 100000);
}

/* A fabric that tells of arrivals, and rules of iWARP; one write in flight at a time. */
static void
hints_and_narrow_queue(void **state)
{
	struct outcome o;

	fake.hints = fake.iwarp = true;
	fake.depth = 4;
	fake.batch = 1;
	world_write(*state, &o, "b", 5 << 20);
	assert_int_equal(o.view.state, TRANSFER_ARRIVED);
	world_check(*state, 5 << 20);
}

static void
stream(void **state)
{
	struct world *w = *state;
	struct outcome o;
	uint8_t *bytes = malloc(3 << 20);
	size_t sent = 0;
	int fds[2], fd = world_file(3 << 20);

	assert_int_equal(pread(fd, bytes, 3 << 20, 0), 3 << 20);
	close(fd);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
	assert_int_equal(world_write_fd(w, &o, "b", "stdin", fds[1]), 0);
	close(fds[1]);
	while (sent < 3 << 20) {
		ssize_t n = send(fds[0], bytes + sent, (3 << 20) - sent, MSG_NOSIGNAL);

		sent += n > 0 ? n : 0;
		loop_turn(w->loop, NSEC_PER_MSEC);
	}
	shutdown(fds[0], SHUT_WR);
	world_wait(w, &o.done, "the stream's end", 10);
	close(fds[0]);
	assert_int_equal(o.view.state, TRANSFER_ARRIVED);
	world_check(w, 3 << 20);
	free(bytes);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	shutdown(fds[0], SHUT_WR);
	assert_int_equal(world_write_fd(w, &o, "b", "nothing", fds[1]), 0);
	close(fds[1]);
	world_wait(w, &o.done, "a stream of nothing", 10);
	close(fds[0]);
	assert_int_equal(o.view.length, 0);
	assert_int_equal(o.view.region_id, 1); /* on the same connection */
}

/* A person at the keyboard is no fault: neither side gives the stream up. */
static void
stream_pauses(void **state)
{
	static const char SHORT[] = "[limits]\nstall = 300ms\n";
	struct world *w = *state;
	uint8_t *bytes = calloc(1, (1 << 20) + 10);
	struct outcome o;
	size_t sent = 0;
	int fds[2];

	world_reopen(w, SHORT, SHORT);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
	assert_int_equal(world_write_fd(w, &o, "b", "stdin", fds[1]), 0);
	close(fds[1]);
	while (sent < (1 << 20) + 10) {
		ssize_t n = send(fds[0], bytes + sent, (1 << 20) + 10 - sent, MSG_NOSIGNAL);

		sent += n > 0 ? n : 0;
		loop_turn(w->loop, NSEC_PER_MSEC);
	}
	world_turns(w, 1);
	assert_false(o.done);
	shutdown(fds[0], SHUT_WR);
	world_wait(w, &o.done, "the stream's end", 10);
	close(fds[0]);
	free(bytes);
	assert_int_equal(o.view.state, TRANSFER_ARRIVED);
	assert_int_equal(o.view.length, (1 << 20) + 10);
}

/* Who fed the stream has died: half of it is not the whole. */
static void
stream_is_cut_off(void **state)
{
	struct world *w = *state;
	struct outcome o;
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	assert_int_equal(world_write_fd(w, &o, "b", "stdin", fds[1]), 0);
	close(fds[1]);
	assert_int_equal(send(fds[0], "half", 4, 0), 4);
	world_turns(w, 0.1);
	close(fds[0]);
	world_wait(w, &o.done, "the end", 5);
	assert_int_equal(o.view.state, TRANSFER_FAILED);
	assert_string_equal(o.view.text, "the input was cut off");
	assert_int_equal(w->arrivals, 0);
}

static void
many_at_once(void **state)
{
	struct world *w = *state;
	struct outcome o[24];
	int fd = world_file(70000);

	for (int i = 0; i < 24; i++)
		assert_int_equal(world_write_fd(w, &o[i], "127.0.0.1:7472", "file", fd), 0);
	close(fd);
	for (int i = 0; i < 24; i++) {
		world_wait(w, &o[i].done, "one of many", 20);
		assert_int_equal(o[i].view.state, TRANSFER_ARRIVED);
	}
	assert_int_equal(w->arrivals, 24);
	assert_int_equal(world_regions(w), 24);
}

static void
connection_is_reused(void **state)
{
	struct outcome o;

	for (int i = 0; i < 5; i++) {
		world_write(*state, &o, "b", 1000 + i);
		assert_int_equal(o.view.region_id, 1);
	}
	world_write(*state, &o, "b", 5 << 20); /* does not fit the 4 MiB granted */
	assert_int_equal(o.view.region_id, 2);
}

/* The target closed the idle connection at the moment a write took it. */
static void
reused_connection_is_dead(void **state)
{
	struct world *w = *state;
	struct outcome o;
	int fd = world_file(1000);

	world_write(w, &o, "b", 1000);
	assert_int_equal(world_write_fd(w, &o, "b", "again", fd), 0);
	close(fd);
	fake_break(fake_conn(1, 0), FABRIC_CAUSE_LOCAL);
	world_wait(w, &o.done, "the second try", 10);
	assert_int_equal(o.view.state, TRANSFER_ARRIVED);
	assert_int_equal(o.view.region_id, 2);
}

/* ---- refusals ---- */

static void
too_big(void **state)
{
	struct world *w = *state;
	struct outcome o;

	world_reopen(w, NULL, "[region default]\nsize = 1M\nmax-size = 2M\n");
	world_write(w, &o, "b", 3 << 20);
	assert_int_equal(o.view.state, TRANSFER_REFUSED);
	assert_int_equal(o.view.code, RWP_E_SIZE);
	assert_string_equal(
	    o.view.text, "refused 3.0 MiB for region \"default\": it grants at most 2.0 MiB");
	assert_string_equal(o.view.fix, "max-size = 3M in [region default]");
	assert_true(o.view.fix_on_peer);
}

static void
address_not_allowed(void **state)
{
	struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x0a000001)};
	struct world *w = *state;
	struct outcome o;

	world_reopen(
	    w, NULL, "[listen strict]\naddress = 127.0.0.1\nport = 7473\nallow = 10.1.0.0/16\n");
	fake.from = (struct sockaddr *)&from;
	world_write(w, &o, "127.0.0.1:7473", 10);
	assert_int_equal(o.view.state, TRANSFER_REFUSED);
	assert_int_equal(o.view.code, RWP_E_ADDRESS);
	assert_string_equal(
	    o.view.text, "refused us: 10.0.0.1 is in no allow line of [listen strict]");
	assert_non_null(strstr(o.view.fix, "allow = 10.0.0.1"));
	assert_int_equal(world_regions(w), 0);
}

static void
no_such_region(void **state)
{
	struct write_request request = {.peer = "b", .name = "x", .region = "nowhere"};
	struct world *w = *state;
	struct outcome o;

	request.fd = world_file(10);
	assert_int_equal(world_write_request(w, &o, request), 0);
	world_wait(w, &o.done, "the refusal", 5);
	assert_int_equal(o.view.state, TRANSFER_REFUSED);
	assert_int_equal(o.view.code, RWP_E_REGION);
	assert_non_null(strstr(o.view.text, "\"nowhere\""));
	close(request.fd);
}

static void
bad_requests(void **state)
{
	static const struct {
		struct write_request request;
		const char *named; /* in the error */
	} BAD[] = {
	    {{.peer = "b", .name = "x", .region = "no way"}, "no way"},
	    {{.peer = "b", .name = ""}, "name"},
	    {{.peer = "b", .name = "a\nb"}, "name"},
	    {{.peer = "b:99999", .name = "x"}, "b:99999"},
	    {{.peer = "", .name = "x"}, "neither a configured peer"},
	};
	struct outcome o;
	int fd = world_file(10), pipes[2];

	for (size_t i = 0; i < sizeof(BAD) / sizeof(BAD[0]); i++) {
		struct write_request request = BAD[i].request;

		request.fd = fd;
		assert_int_equal(world_write_request(*state, &o, request), -EINVAL);
		assert_non_null(strstr(o.error, BAD[i].named));
	}
	close(fd);
	assert_int_equal(pipe(pipes), 0);
	assert_int_equal(world_write_fd(*state, &o, "b", "x", pipes[0]), -EINVAL);
	assert_non_null(strstr(o.error, "neither a regular file nor a stream socket"));
	close(pipes[0]);
	close(pipes[1]);
}

static void
too_many_connections(void **state)
{
	struct world *w = *state;
	struct outcome one, two;

	world_reopen(w, NULL, "[limits]\nconnections = 1\n");
	world_write(w, &one, "b", 10);
	world_write(w, &two, "127.0.0.1:7472", 10);
	assert_int_equal(two.view.state, TRANSFER_REFUSED);
	assert_int_equal(two.view.code, RWP_E_BUSY);
	assert_non_null(strstr(two.view.text, "1 of 1 connections"));
}

static void
memory_budget(void **state)
{
	struct world *w = *state;
	struct outcome o;

	world_reopen(
	    w, NULL, "[region default]\nsize = 1M\nmax-size = 8M\n[limits]\npinned-memory = 8M\n");
	world_write(w, &o, "b", 6 << 20);
	assert_int_equal(o.view.state, TRANSFER_ARRIVED);
	/* Still granted to a connection: it is not taken away. */
	world_write(w, &o, "127.0.0.1:7472", 4 << 20);
	assert_int_equal(o.view.state, TRANSFER_REFUSED);
	assert_int_equal(o.view.code, RWP_E_MEMORY);
	assert_non_null(strstr(o.view.text, "2.0 MiB of the 8.0 MiB"));
	/* Lingering: it goes for the new one. */
	assert_int_equal(core_disconnect(w->b, "b"), 1);
	world_turns(w, 0.1);
	world_write(w, &o, "127.0.0.1:7472", 4 << 20);
	assert_int_equal(o.view.state, TRANSFER_ARRIVED);
	assert_int_equal(world_regions(w), 1);
}

static void
nobody_there(void **state)
{
	struct outcome o;

	world_write(*state, &o, "127.0.0.1:9", 10);
	assert_int_equal(o.view.state, TRANSFER_FAILED);
	assert_string_equal(o.view.text, "nobody listens there");
}

static void
remote_access(void **state)
{
	struct world *w = *state;
	struct outcome o;

	world_reopen(w, "[limits]\nreconnect = 0\n", NULL);
	world_write(w, &o, "b", 10);
	core_disconnect(w->a, "b");
	world_turns(w, 0.3);
	/* The areas are registered first, then the region. */
	assert_int_equal(world_write_fd(w, &o, "b", "file", world_file(10)), 0);
	while (world_regions(w) < 2)
		loop_turn(w->loop, 0);
	fake.drop_remote_write = true;
	world_wait(w, &o.done, "the end", 10);
	assert_int_equal(o.view.state, TRANSFER_FAILED);
	assert_non_null(strstr(o.view.text, "remote access error"));
}

/* ---- ends ---- */

static void
lingers_and_goes(void **state)
{
	struct world *w = *state;
	struct region_view v;
	struct outcome o;
	int fd;

	world_reopen(w, NULL, "[region default]\nlinger = 300ms\nkeep = 1\n");
	for (int i = 0; i < 2; i++) {
		world_write(w, &o, "b", 1000);
		assert_int_equal(core_disconnect(w->a, "b"), 1);
		world_turns(w, 0.15);
	}
	assert_int_equal(world_regions(w), 1); /* keep */
	assert_int_equal(core_open_region(w->b, "", &v, &fd), 0);
	assert_string_equal(v.state, "lingering");
	assert_int_equal(v.id, 2);
	close(fd);
	world_turns(w, 0.4);
	assert_int_equal(world_regions(w), 0); /* linger */
	assert_int_equal(core_open_region(w->b, "", &v, &fd), -ENOENT);
}

static void
release(void **state)
{
	struct world *w = *state;
	struct outcome o;

	world_write(w, &o, "b", 1000);
	assert_int_equal(core_release(w->b, 7), -ENOENT);
	assert_int_equal(core_release(w->b, 1), 0);
	world_turns(w, 0.3);
	assert_int_equal(world_regions(w), 0);
	world_write(w, &o, "b", 1000);
	assert_int_equal(o.view.state, TRANSFER_ARRIVED);
}

static void
idle_connection_closes(void **state)
{
	struct world *w = *state;
	struct status_view v;
	struct outcome o;

	world_reopen(w, NULL, "[limits]\nidle = 200ms\n");
	world_write(w, &o, "b", 1000);
	world_turns(w, 0.6);
	core_status(w->b, &v);
	assert_int_equal(v.connections, 0);
	core_status(w->a, &v);
	assert_int_equal(v.connections, 0);
}

static void
writer_dies(void **state)
{
	struct world *w = *state;
	struct outcome o;

	world_reopen(w, "[limits]\nreconnect = 0\n", NULL);
	world_half_way(w, &o);
	fake_break(fake_conn(0, 0), FABRIC_CAUSE_PEER);
	world_wait(w, &o.done, "the end", 5);
	assert_int_equal(o.view.state, TRANSFER_FAILED);
	world_turns(w, 0.2);
	assert_int_equal(world_regions(w), 0); /* half a file does not linger */
	fake = FAKE_DEFAULTS;
	world_write(w, &o, "b", 1000);
	assert_int_equal(o.view.state, TRANSFER_ARRIVED);
}

/* Nobody says anything any more: the missing beats end it on both sides. */
static void
link_is_cut(void **state)
{
	struct world *w = *state;
	struct status_view v;
	struct outcome o;

	world_reopen(w, "[limits]\nbeat = 100ms\ndead = 500ms\nreconnect = 0\n",
	    "[limits]\nbeat = 100ms\ndead = 500ms\n");
	world_half_way(w, &o);
	fake.cut = true;
	world_wait(w, &o.done, "the end", 5);
	assert_int_equal(o.view.state, TRANSFER_FAILED);
	assert_string_equal(o.view.text, "no sign of life");
	world_turns(w, 1);
	core_status(w->b, &v);
	assert_int_equal(v.connections, 0);
}

/* The target has heard that the transfer is given up: the connection is good for another. */
static void
goes_on(struct world *w)
{
	struct channel *writer = fake_conn(0, 0)->owner;
	struct outbound *ob = container_of(writer, struct outbound, channel);
	struct outcome o;

	WORLD_UNTIL(w, work_pending(w->work) == 0 && outbound_open_is_idle(ob));
	assert_int_equal(w->arrivals, 0);
	world_write(w, &o, "b", 70000);
	assert_int_equal(o.view.state, TRANSFER_ARRIVED);
	assert_int_equal(o.view.region_id, 1);
	world_check(w, 70000);
}

static void
cancelled(void **state)
{
	struct world *w = *state;
	struct outcome o;

	world_half_way(w, &o);
	core_write_cancel(o.transfer, true);
	world_turns(w, 0.5);
	assert_false(o.done);
	fake.turn_bytes = 1 << 20;
	goes_on(w);
}

static void
deadline(void **state)
{
	struct write_request request = {
	    .peer = "b", .name = "x", .timeout_ns = 100 * NSEC_PER_MSEC};
	struct world *w = *state;
	struct outcome o;

	fake.cut = true;
	request.fd = world_file(10);
	assert_int_equal(world_write_request(w, &o, request), 0);
	close(request.fd);
	world_wait(w, &o.done, "the deadline", 2);
	assert_int_equal(o.view.state, TRANSFER_DEADLINE);
	fake.cut = false;
}

/* What is sent is the file as it was, or nothing. */
static void
source_changes(void **state)
{
	struct world *w = *state;
	struct outcome o;
	int fd = world_file(64 << 20);

	fake.turn_bytes = 8 << 10;
	assert_int_equal(world_write_fd(w, &o, "b", "long", fd), 0);
	world_some_arrives(w, &o, 2 << 20);
	assert_int_equal(pwrite(fd, "x", 1, 60 << 20), 1);
	close(fd);
	fake.turn_bytes = 1 << 20;
	world_wait(w, &o.done, "the end", 20);
	assert_int_equal(o.view.state, TRANSFER_FAILED);
	assert_string_equal(o.view.text, "the file changed while it was sent");
	goes_on(w);
}

static void
stops_while_sending(void **state)
{
	struct world *w = *state;
	struct outcome o;

	world_half_way(w, &o);
	core_stop(w->a);
	fake.turn_bytes = 1 << 20;
	world_wait(w, &o.done, "the running transfer", 20); /* has its time */
	assert_int_equal(o.view.state, TRANSFER_ARRIVED);
	world_wait(w, &w->stopped_a, "the end of a", 5);
}

static void
port_goes_and_comes(void **state)
{
	struct outcome o;

	fake_ports_down(1, -ENODEV);
	world_turns(*state, 0.1);
	world_write(*state, &o, "b", 10);
	assert_int_equal(o.view.state, TRANSFER_FAILED);
	world_turns(*state, 1.5);
	world_write(*state, &o, "b", 10);
	assert_int_equal(o.view.state, TRANSFER_ARRIVED);
}

/* The kernel tells of an address that has come before it can be listened on. */
static void
word_comes_too_early(void **state)
{
	struct world *w = *state;
	struct outcome o;

	fake_ports_down(1, -EADDRNOTAVAIL);
	world_turns(w, 1.5);
	world_write(w, &o, "b", 10);
	assert_int_equal(o.view.state, TRANSFER_FAILED); /* it waits for word */
	fake.ops = 0;
	fake.fail_at = 1;
	fake.fail_later = true;
	listener_address(w->b, NULL, true);
	world_turns(w, 0.1);
	assert_true(fake.ops >= 1);
	world_write(w, &o, "b", 10);
	assert_int_equal(o.view.state, TRANSFER_FAILED);
	world_turns(w, 1.5);
	world_write(w, &o, "b", 10);
	assert_int_equal(o.view.state, TRANSFER_ARRIVED);
}

/* ---- the Nth of everything fails, until nothing does ---- */

/* One write, whatever comes of it, from birth to burial; true if it arrived. */
static bool
scenario(void)
{
	static const char SHORT[] = "[limits]\nsetup = 200ms\nstall = 200ms\n";
	struct world w;
	struct outcome o = {0};
	int fd = world_file(200000);
	uint64_t until;
	bool arrived = false;

	world_lines_a = world_lines_b = SHORT;
	if (world_open(&w) == 0 && world_write_fd(&w, &o, "b", "file", fd) == 0) {
		until = loop_now() + 2 * NSEC_PER_SEC;
		while (!o.done && loop_now() < until)
			loop_turn(w.loop, NSEC_PER_MSEC);
		assert_true(o.done);
		arrived = o.view.state == TRANSFER_ARRIVED;
		if (arrived)
			world_check(&w, 200000);
	}
	close(fd);
	world_close(&w);
	return arrived;
}

static void
nth_operation_fails(void **state)
{
	(void)state;
	assert_true(world_each_operation_fails(scenario, false) > 5);
	assert_true(world_each_operation_fails(scenario, true) > 5);
	assert_true(scenario());
}

static void
nth_allocation_fails(void **state)
{
	(void)state;
	assert_true(world_each_allocation_fails(scenario) > 10);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(hello),
	    TEST(sizes),
	    TEST(late_payload),
	    TEST(late_established),
	    TEST(hints_and_narrow_queue),
	    TEST(stream),
	    TEST(stream_pauses),
	    TEST(stream_is_cut_off),
	    TEST(many_at_once),
	    TEST(connection_is_reused),
	    TEST(reused_connection_is_dead),
	    TEST(too_big),
	    TEST(address_not_allowed),
	    TEST(no_such_region),
	    TEST(bad_requests),
	    TEST(too_many_connections),
	    TEST(memory_budget),
	    TEST(nobody_there),
	    TEST(remote_access),
	    TEST(lingers_and_goes),
	    TEST(release),
	    TEST(idle_connection_closes),
	    TEST(writer_dies),
	    TEST(link_is_cut),
	    TEST(cancelled),
	    TEST(deadline),
	    TEST(source_changes),
	    TEST(stops_while_sending),
	    TEST(port_goes_and_comes),
	    TEST(word_comes_too_early),
	    cmocka_unit_test(nth_operation_fails),
	    cmocka_unit_test(nth_allocation_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
