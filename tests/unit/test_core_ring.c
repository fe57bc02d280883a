/* test_core_ring.c -- transfers into rings: any length, holes, one close behind the other, and
 * connections that are lost under them
 */

#include "config.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "core/outbound.h"
#include "core/transfer.h"
#include "fake/fake.h"
#include "unit/world.h"
#include "wire/rwp.h"

#define MIB UINT64_C(1048576)
#define GIB (1024 * MIB)

static const char RING[] = "[region ring]\nsink = discard\nsize = 256K\n";

/* ---- what is asked, what came ---- */

static void
begin_fd(struct world *w, struct outcome *o, const char *region, int fd)
{
	struct write_request r = {.peer = "b", .region = region, .name = "file", .fd = fd};

	assert_int_equal(world_write_request(w, o, r), 0);
	close(fd);
}

static uint32_t
crc_of(int fd, uint64_t size)
{
	uint8_t *bytes;
	uint32_t crc;

	if (size == 0)
		return 0;
	bytes = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	assert_true(bytes != MAP_FAILED);
	crc = crc32c(0, bytes, size);
	munmap(bytes, size);
	return crc;
}

/* A file of this size and pattern. */
static void
begin(struct world *w, struct outcome *o, uint64_t size)
{
	begin_fd(w, o, "ring", world_file(size));
}

static void
arrives(struct world *w, struct outcome *o, uint64_t size)
{
	int fd = world_file(size);

	WORLD_UNTIL(w, o->done);
	assert_string_equal(o->view.text, "");
	assert_int_equal(o->view.state, TRANSFER_ARRIVED);
	assert_int_equal(o->view.length, size);
	assert_int_equal(o->view.crc32c, crc_of(fd, size));
	close(fd);
}

static struct outbound *
outbound_of(const struct outcome *o)
{
	return o->transfer->outbound;
}

/* ---- rings ---- */

static void
any_length(void **state)
{
	static const uint64_t SIZES[] = {
	    0, 1, 4096, 65536, 65537, 131072, 131073, 3 * MIB + 5, 20 * MIB};
	struct world *w = *state;
	struct outcome o;

	world_reopen(w, NULL, RING);
	for (size_t i = 0; i < sizeof(SIZES) / sizeof(SIZES[0]); i++) {
		begin(w, &o, SIZES[i]);
		arrives(w, &o, SIZES[i]);
		assert_int_equal(o.view.sent_again, 0);
	}
}

/* Segments of all lengths do not divide the ring, so its end is skipped now and then. */
static void
skips_the_end(void **state)
{
	struct world *w = *state;
	struct outcome o;

	world_reopen(w, NULL, "[region ring]\nsink = discard\nsize = 132K\n");
	for (uint64_t i = 0; i < 60; i++) {
		begin(w, &o, i * 7919 % 65537);
		arrives(w, &o, i * 7919 % 65537);
		assert_int_equal(o.view.region_id, 1);
	}
}

static void
stream_of_any_length(void **state)
{
	struct world *w = *state;
	struct outcome o;
	uint64_t size = 12 * MIB + 7, sent = 0;
	uint8_t *bytes;
	int fds[2], fd = world_file(size);

	world_reopen(w, NULL, RING);
	bytes = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	assert_true(bytes != MAP_FAILED);
	close(fd);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
	begin_fd(w, &o, "ring", fds[1]);
	while (sent < size) {
		ssize_t n = send(fds[0], bytes + sent, size - sent, MSG_NOSIGNAL);

		sent += n > 0 ? n : 0;
		loop_turn(w->loop, NSEC_PER_MSEC);
	}
	shutdown(fds[0], SHUT_WR);
	arrives(w, &o, size);
	close(fds[0]);
	munmap(bytes, size);
}

/* ---- holes ---- */

static uint64_t landed;

static void
count_landed(bool by_target, size_t offset, uint8_t *bytes, size_t len)
{
	(void)offset;
	(void)bytes;
	landed += by_target ? 0 : len;
}

/* Two islands of data in ten gibibytes of nothing, and nothing at the end. */
static int
sparse_file(uint32_t *ret_crc)
{
	static uint8_t island[300000];
	int fd = memfd_create("sparse", MFD_CLOEXEC);
	uint32_t crc;

	memset(island, 'x', sizeof(island));
	assert_int_equal(ftruncate(fd, 10 * GIB), 0);
	assert_int_equal(pwrite(fd, island, sizeof(island), 3 * MIB), sizeof(island));
	assert_int_equal(pwrite(fd, island, sizeof(island), 8 * GIB), sizeof(island));
	crc = crc32c_zeros(3 * MIB);
	crc = crc32c(crc, island, sizeof(island));
	crc = crc32c_combine(crc, crc32c_zeros(8 * GIB - 3 * MIB - sizeof(island)),
	    8 * GIB - 3 * MIB - sizeof(island));
	crc = crc32c(crc, island, sizeof(island));
	*ret_crc =
	    crc32c_combine(crc, crc32c_zeros(2 * GIB - sizeof(island)), 2 * GIB - sizeof(island));
	return fd;
}

static void
holes_cost_nothing(void **state)
{
	struct world *w = *state;
	struct outcome o;
	uint32_t crc;

	world_reopen(w, NULL, RING);
	landed = 0;
	fake.landed = count_landed;
	begin_fd(w, &o, "ring", sparse_file(&crc));
	WORLD_UNTIL(w, o.done);
	fake.landed = NULL;
	assert_int_equal(o.view.state, TRANSFER_ARRIVED);
	assert_int_equal(o.view.length, 10 * GIB);
	assert_int_equal(o.view.crc32c, crc);
	assert_true(landed < 2 * MIB);
}

/* In memory a hole is zeros, whatever was there before. */
static void
holes_in_memory(void **state)
{
	static const uint8_t zeros[4096];
	struct world *w = *state;
	struct outcome o;
	struct region_view v;
	uint8_t bytes[4096];
	int fd;

	world_write(w, &o, "b", 4 * MIB);
	fd = memfd_create("hole", MFD_CLOEXEC);
	assert_int_equal(ftruncate(fd, 4 * MIB), 0);
	begin_fd(w, &o, NULL, fd);
	WORLD_UNTIL(w, o.done);
	assert_int_equal(o.view.state, TRANSFER_ARRIVED);
	assert_int_equal(o.view.region_id, 1);
	assert_int_equal(o.view.crc32c, crc32c_zeros(4 * MIB));
	assert_int_equal(core_open_region(w->b, "", &v, &fd), 0);
	for (uint64_t at = 0; at < 4 * MIB; at += sizeof(bytes)) {
		assert_int_equal(pread(fd, bytes, sizeof(bytes), at), sizeof(bytes));
		assert_memory_equal(bytes, zeros, sizeof(bytes));
	}
	close(fd);
}

/* ---- one behind the other ---- */

/* Short files share a connection, and follow each other without waiting for results. */
static void
short_files_follow(void **state)
{
	static struct outcome o[60];
	struct world *w = *state;
	unsigned most = 0;

	world_reopen(w, NULL, RING);
	begin(w, &o[0], 10);
	arrives(w, &o[0], 10);
	for (unsigned i = 0; i < 60; i++)
		begin(w, &o[i], 1000 + i);
	for (bool running = true; running; running = !o[59].done) {
		struct outbound *ob = outbound_of(&o[59]);

		if (ob != NULL && list_length(&ob->open.awaiting) > most)
			most = list_length(&ob->open.awaiting);
		loop_turn(w->loop, NSEC_PER_MSEC);
	}
	assert_true(most > 1);
	for (unsigned i = 0; i < 60; i++) {
		arrives(w, &o[i], 1000 + i);
		assert_int_equal(o[i].view.region_id, 1);
	}
}

/* ---- connections that are lost ---- */

/* Far enough on its way that some of it has arrived; its connection. */
static struct fabric_conn *
some_arrives(struct world *w, struct outcome *o, uint64_t bytes)
{
	world_some_arrives(w, o, bytes);
	return outbound_of(o)->channel.conn;
}

static void
lost_and_made_again(void **state)
{
	struct world *w = *state;
	struct outcome o;

	fake.turn_bytes = 32 << 10;
	world_begin(w, &o, "b", 16 * MIB);
	fake_break(some_arrives(w, &o, 2 * MIB), FABRIC_CAUSE_PEER);
	WORLD_UNTIL(w, o.view.state == TRANSFER_RECONNECTING);
	assert_string_equal(o.view.text, "the connection broke: peer: fake");
	fake.turn_bytes = 1 << 20;
	WORLD_UNTIL(w, o.done);
	assert_int_equal(o.view.state, TRANSFER_ARRIVED);
	assert_string_equal(o.view.text, "");
	assert_int_equal(o.view.reconnects, 1);
	assert_true(o.view.sent_again >= 2 * MIB); /* in memory nothing can be resumed */
	world_check(w, 16 * MIB);
}

/* Those that await their results are given back too. */
static void
followers_are_given_back(void **state)
{
	static struct outcome o[40];
	struct world *w = *state;

	world_reopen(w, NULL, RING);
	begin(w, &o[0], 10);
	arrives(w, &o[0], 10);
	for (unsigned i = 0; i < 40; i++)
		begin(w, &o[i], 50000 + i);
	WORLD_UNTIL(w, o[2].view.state == TRANSFER_CONFIRMING);
	fake_break(outbound_of(&o[2])->channel.conn, FABRIC_CAUSE_TIMEOUT);
	for (unsigned i = 0; i < 40; i++)
		arrives(w, &o[i], 50000 + i);
	assert_true(o[2].view.reconnects == 1);
}

static void
gives_up(void **state)
{
	struct world *w = *state;
	struct outcome o;
	uint64_t began;

	world_reopen(w, "[limits]\nreconnect = 400ms\n", NULL);
	world_half_way(w, &o);
	core_stop(w->b);
	core_stop(w->b);
	began = loop_now();
	WORLD_UNTIL(w, o.done);
	assert_int_equal(o.view.state, TRANSFER_FAILED);
	assert_non_null(strstr(o.view.text, "nobody listens there; tried for "));
	assert_true(loop_now() - began >= 400 * NSEC_PER_MSEC);
}

/* The caller's time is not prolonged, and what was wrong last is told. */
static void
deadline_while_reconnecting(void **state)
{
	struct write_request r = {.peer = "b", .name = "file", .timeout_ns = 2 * NSEC_PER_SEC};
	struct world *w = *state;
	struct outcome o;

	fake.turn_bytes = 8 << 10;
	r.fd = world_file(64 * MIB);
	assert_int_equal(world_write_request(w, &o, r), 0);
	close(r.fd);
	some_arrives(w, &o, 1);
	core_stop(w->b);
	core_stop(w->b);
	WORLD_UNTIL(w, o.done);
	assert_int_equal(o.view.state, TRANSFER_DEADLINE);
	assert_string_equal(o.view.text, "not done within the time given: nobody listens there");
}

/* ---- streams that lose their connection ---- */

static int
stream_of(struct world *w, struct outcome *o, const uint8_t *bytes, size_t len)
{
	size_t sent = 0;
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
	begin_fd(w, o, "ring", fds[1]);
	while (sent < len) {
		ssize_t n = send(fds[0], bytes + sent, len - sent, MSG_NOSIGNAL);

		sent += n > 0 ? n : 0;
		loop_turn(w->loop, NSEC_PER_MSEC);
	}
	return fds[0];
}

static void
short_stream_is_repeated(void **state)
{
	static uint8_t bytes[5 << 20];
	struct world *w = *state;
	struct outcome o;
	int fd;

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = i >> 3 ^ i >> 11;
	world_reopen(w, NULL, RING);
	fd = stream_of(w, &o, bytes, sizeof(bytes));
	fake_break(some_arrives(w, &o, 2 * MIB), FABRIC_CAUSE_PEER);
	WORLD_UNTIL(w, o.view.state == TRANSFER_RECONNECTING);
	shutdown(fd, SHUT_WR);
	WORLD_UNTIL(w, o.done);
	close(fd);
	assert_int_equal(o.view.state, TRANSFER_ARRIVED);
	assert_int_equal(o.view.length, sizeof(bytes));
	assert_int_equal(o.view.crc32c, crc32c(0, bytes, sizeof(bytes)));
}

static void
long_stream_is_not(void **state)
{
	static uint8_t bytes[12 << 20];
	struct world *w = *state;
	struct outcome o;
	int fd;

	world_reopen(w, NULL, RING);
	fd = stream_of(w, &o, bytes, sizeof(bytes));
	fake_break(some_arrives(w, &o, 9 * MIB), FABRIC_CAUSE_PEER);
	WORLD_UNTIL(w, o.done);
	close(fd);
	assert_int_equal(o.view.state, TRANSFER_FAILED);
	assert_non_null(strstr(o.view.text, "the first bytes of the stream cannot be read again"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(any_length),
	    TEST(skips_the_end),
	    TEST(stream_of_any_length),
	    TEST(holes_cost_nothing),
	    TEST(holes_in_memory),
	    TEST(short_files_follow),
	    TEST(lost_and_made_again),
	    TEST(followers_are_given_back),
	    TEST(gives_up),
	    TEST(deadline_while_reconnecting),
	    TEST(short_stream_is_repeated),
	    TEST(long_stream_is_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
