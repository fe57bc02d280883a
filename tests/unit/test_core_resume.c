/* test_core_resume.c -- writes into a spool that lose their connection, or are written again: what
 * is there already is not sent again
 */

#include "config.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "core/outbound.h"
#include "core/transfer.h"
#include "fake/fake.h"
#include "unit/world.h"

#define MIB    UINT64_C(1048576)
#define WINDOW MIB /* the ring: what can be under way */
#define LENGTH (12 * MIB)

static char directory[] = "/tmp/rwriter-spool-XXXXXX";

/* ---- removing that hangs ---- */

static atomic_bool removal_sticks, removal_is_stuck;

/* In the place of the C library's. */
int
unlinkat(int dir, const char *leaf, int flags)
{
	while (removal_sticks) {
		removal_is_stuck = true;
		usleep(1000);
	}
	return syscall(SYS_unlinkat, dir, leaf, flags);
}

/* ---- the spool ---- */

static int
setup(void **state)
{
	static char lines[256];

	strcpy(directory + strlen(directory) - 6, "XXXXXX");
	assert_non_null(mkdtemp(directory));
	snprintf(lines, sizeof(lines),
	    "[region spool]\nsink = spool\ndirectory = %s\nfree = 0\nsize = 1M\n", directory);
	world_lines_b = lines;
	return world_setup(state);
}

static int
teardown(void **state)
{
	char command[128];

	world_teardown(state);
	snprintf(command, sizeof(command), "rm -r '%s'", directory);
	return system(command);
}

/* It is there under its name, byte for byte. */
static void
is_stored(int fd, const char *name)
{
	static uint8_t here[MIB], there[MIB];
	char path[128];
	struct stat a, b;
	int stored;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	stored = open(path, O_RDONLY);
	assert_true(stored >= 0);
	assert_int_equal(fstat(fd, &a), 0);
	assert_int_equal(fstat(stored, &b), 0);
	assert_int_equal(a.st_size, b.st_size);
	for (off_t at = 0; at < a.st_size; at += MIB) {
		ssize_t n = pread(fd, here, MIB, at);

		assert_int_equal(pread(stored, there, MIB, at), n);
		assert_memory_equal(here, there, n);
	}
	close(stored);
}

/* ---- writes ---- */

static void
begin(struct world *w, struct outcome *o, const char *name, int fd)
{
	struct write_request r = {.peer = "b", .region = "spool", .name = name, .fd = fd};

	assert_int_equal(world_write_request(w, o, r), 0);
}

static void
ends_stored(struct world *w, struct outcome *o)
{
	WORLD_UNTIL(w, o->done);
	assert_string_equal(o->view.text, "");
	assert_int_equal(o->view.state, TRANSFER_STORED);
	assert_int_equal(o->view.durable, o->view.length);
}

static void
half_way(struct world *w, struct outcome *o)
{
	fake.turn_bytes = 64 << 10;
	WORLD_UNTIL(w, o->done || o->transfer->view.arrived >= LENGTH / 2); /* as it is now */
	assert_false(o->done);
	fake.turn_bytes = MIB;
}

static void
breaks(struct world *w, struct outcome *o)
{
	fake_break(o->transfer->outbound->channel.conn, FABRIC_CAUSE_PEER);
	WORLD_UNTIL(w, o->view.state == TRANSFER_RECONNECTING);
}

static void
goes_on_after_a_loss(void **state)
{
	struct world *w = *state;
	struct outcome o;
	int fd = world_file(LENGTH);

	begin(w, &o, "file", fd);
	half_way(w, &o);
	breaks(w, &o);
	ends_stored(w, &o);
	is_stored(fd, "file");
	close(fd);
	assert_int_equal(o.view.reconnects, 1);
	assert_true(o.view.resumed >= LENGTH / 2);
	assert_int_equal(o.view.checked, o.view.resumed);
	assert_true(o.view.sent_again <= WINDOW);
}

/* Given up and written again, by the same command: its id finds what is there. */
static void
goes_on_when_written_again(void **state)
{
	struct world *w = *state;
	struct outcome o;
	int fd = world_file(LENGTH);

	begin(w, &o, "file", fd);
	half_way(w, &o);
	core_write_cancel(o.transfer, false);
	begin(w, &o, "file", fd);
	ends_stored(w, &o);
	is_stored(fd, "file");
	assert_true(o.view.resumed >= LENGTH / 2 - WINDOW);
	close(fd);
}

static void
discarded_is_gone(void **state)
{
	struct world *w = *state;
	struct outcome o;
	int fd = world_file(LENGTH);

	begin(w, &o, "file", fd);
	half_way(w, &o);
	core_write_cancel(o.transfer, true);
	begin(w, &o, "file", fd);
	ends_stored(w, &o);
	is_stored(fd, "file");
	assert_int_equal(o.view.resumed, 0);
	close(fd);
}

/* Its time was set back, so that its id is the same: the comparison finds out. */
static void
changed_in_secret(void **state)
{
	struct world *w = *state;
	struct timespec times[2];
	struct outcome o;
	struct stat st;
	int fd = world_file(LENGTH);

	begin(w, &o, "file", fd);
	half_way(w, &o);
	core_write_cancel(o.transfer, false);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(pwrite(fd, "!", 1, 5), 1);
	times[0] = st.st_atim;
	times[1] = st.st_mtim;
	assert_int_equal(futimens(fd, times), 0);
	begin(w, &o, "file", fd);
	ends_stored(w, &o);
	is_stored(fd, "file");
	assert_int_equal(o.view.resumed, 0);
	assert_true(o.view.checked > 0);
	close(fd);
}

/* What was stored is not stored twice: the result is given again. */
static void
result_is_lost(void **state)
{
	struct world *w = *state;
	struct outcome o;
	int fd = world_file(LENGTH);

	begin(w, &o, "file", fd);
	WORLD_UNTIL(w, o.view.state == TRANSFER_CONFIRMING);
	breaks(w, &o);
	ends_stored(w, &o);
	is_stored(fd, "file");
	assert_true(o.view.sent_again <= WINDOW);
	close(fd);
}

/* More than is kept here has gone by, but the target has it. */
static void
stream_goes_on(void **state)
{
	static uint8_t bytes[LENGTH];
	struct world *w = *state;
	struct outcome o;
	size_t sent = 0;
	int fds[2], fd = world_file(LENGTH);

	assert_int_equal(pread(fd, bytes, LENGTH, 0), LENGTH);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
	begin(w, &o, "stream", fds[1]);
	close(fds[1]);
	for (bool broken = false; sent < LENGTH;) {
		ssize_t n = send(fds[0], bytes + sent, LENGTH - sent, MSG_NOSIGNAL);

		sent += n > 0 ? n : 0;
		loop_turn(w->loop, NSEC_PER_MSEC);
		if (broken || o.transfer->view.arrived < 10 * MIB)
			continue;
		breaks(w, &o);
		broken = true;
	}
	shutdown(fds[0], SHUT_WR);
	ends_stored(w, &o);
	is_stored(fd, "stream");
	assert_int_equal(o.view.reconnects, 1);
	assert_true(o.view.resumed >= 10 * MIB);
	assert_true(o.view.sent_again <= WINDOW);
	close(fds[0]);
	close(fd);
}

/* Connections and transfers have gone before the journal of the last one has. */
static void
stops_while_forgetting(void **state)
{
	struct world *w = *state;
	struct outcome o;
	int fd = world_file(LENGTH);

	begin(w, &o, "file", fd);
	half_way(w, &o);
	removal_sticks = true;
	ends_stored(w, &o);
	close(fd);
	WORLD_UNTIL(w, removal_is_stuck);
	core_stop(w->b);
	world_turns(w, 0.3);
	assert_false(w->stopped_b);
	removal_sticks = false;
	WORLD_UNTIL(w, w->stopped_b);
}

#define SPOOL_TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    SPOOL_TEST(goes_on_after_a_loss),
	    SPOOL_TEST(goes_on_when_written_again),
	    SPOOL_TEST(discarded_is_gone),
	    SPOOL_TEST(changed_in_secret),
	    SPOOL_TEST(result_is_lost),
	    SPOOL_TEST(stream_goes_on),
	    SPOOL_TEST(stops_while_forgetting),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
