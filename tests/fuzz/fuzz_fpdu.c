/* fuzz_fpdu.c -- the iwarp back end's receiving side: whatever a peer sends, in whatever pieces,
 * only the memory that it may write to changes
 *
 * Input: flags (below) | the pieces after which the region is taken away, 0: never |
 *        sizes of four pieces, over and over, 0: all | what the peer sends
 *
 * The connection stands on a socket pair. Numbers that are random elsewhere are known here, so that
 * inputs can name the region: see tests/fuzz/seeds.
 */

#include "config.h"

#include <endian.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/log.h"
#include "base/random.h"
#include "fabric/iwarp.h"
#include "fuzz/fuzz.h"
#include "loop/loop.h"

enum {
	PASSIVE = 1, /* the peer sends a request, not a reply */
	SET_UP = 2,  /* that is sent for it, all of the input is FPDUs */
	CRC = 4,     /* is demanded */
	REPAIR = 8,  /* CRCs of FPDUs are made right (with SET_UP) */
};

#define PAGE    ((size_t)4096)
#define PIECES  4
#define TURNS   2
#define PATTERN 0xa5

/* Page by page: what the peer may write to lies between pages that it may not. */
enum { BEFORE, REGION, AFTER, SOURCE, OTHERS, PAGES };

static struct loop *loop;
static uint8_t *memory;
static struct fabric_mem *mems[PAGES];
static struct iwarp_conn *conn; /* NULL: not told of it yet, or it is gone */
static bool accepting, closed;
static uint8_t randomness;

/* ---- what stands in for something else ---- */

void __wrap_random_bytes(void *buf, size_t len);

/* 1, 1, ..., then 2, 2, ... */
void
__wrap_random_bytes(void *buf, size_t len)
{
	memset(buf, ++randomness, len);
}

static void
on_log(enum log_level level, const char *line)
{
	(void)level;
	(void)line;
}

static void
turn(unsigned times)
{
	while (times-- > 0)
		CHECK(loop_turn(loop, 0) == 0);
}

/* ---- our side ---- */

static void
add_memory(struct fabric_conn *c, unsigned page, unsigned access)
{
	CHECK(iwarp_mem_add(c, memory + page * PAGE, PAGE, access, NULL, &mems[page]) == 0);
}

static void
drop_memory(unsigned page)
{
	if (mems[page] != NULL)
		iwarp_mem_drop(mems[page]);
	mems[page] = NULL;
}

static void
begin(struct fabric_conn *c)
{
	conn = (struct iwarp_conn *)c;
	add_memory(c, REGION, FABRIC_REMOTE_WRITE);
	add_memory(c, SOURCE, 0);
}

static void
on_event(void *arg, const struct fabric_event *e)
{
	(void)arg;
	if (e->type == FABRIC_REQUEST) {
		begin(e->conn);
		accepting = true;
	}
	if (e->type == FABRIC_CLOSED)
		closed = true;
}

/* Writes of our own go out between what the peer sends. */
static void
answer(void)
{
	struct fabric_write w = {
	    .mem = mems[SOURCE], .addr = memory + SOURCE * PAGE, .len = 100, .cookie = 1};

	if (conn == NULL || closed)
		return;
	if (accepting)
		(void)iwarp_accept(&conn->base, NULL, 0);
	accepting = false;
	(void)iwarp_write(&conn->base, &w, 1);
}

/* Returns the peer's end of it. */
static int
open_connection(struct iwarp *iwarp, struct iwarp_port *port, bool passive)
{
	struct iwarp_conn *c = iwarp_conn_new(iwarp, passive ? CONN_GREETING : CONN_ASKING, NULL);
	int fds[2];

	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) == 0);
	CHECK(c != NULL && iwarp_attach(c, fds[0], LOOP_READ) == 0);
	c->active = !passive;
	c->port = port;
	if (passive)
		list_add_tail(&iwarp->greeting, &c->node);
	else
		begin(&c->base);
	return fds[1];
}

static void
close_connection(int peer)
{
	close(peer);
	turn(TURNS);
	if (conn == NULL)
		return;
	iwarp_stop(&conn->base);
	drop_memory(REGION);
	drop_memory(SOURCE);
	turn(TURNS);
	CHECK(closed);
	iwarp_conn_free(&conn->base);
}

/* ---- the peer ---- */

static void
send_piece(int peer, const uint8_t *data, size_t len)
{
	char sink[4096];

	(void)send(peer, data, len, MSG_NOSIGNAL);
	turn(TURNS);
	answer();
	turn(1);
	while (recv(peer, sink, sizeof(sink), 0) > 0)
		;
}

static void
send_setup(int peer, bool passive, bool crc)
{
	struct mpa_frame frame = {.revision = 2, .enhanced = true, .crc = crc};
	uint8_t buf[MPA_FRAME_MAX];

	send_piece(peer, buf, mpa_frame_encode(passive ? MPA_REQUEST : MPA_REPLY, &frame, buf));
}

/* An engine would look for a matching CRC for ever. */
static void
repair(uint8_t *data, size_t size)
{
	size_t at = 0, end;

	for (; size - at >= MPA_LENGTH_SIZE; at = end) {
		uint32_t crc;

		end = at + mpa_fpdu_size((size_t)data[at] << 8 | data[at + 1]);
		if (end > size)
			return;
		crc = htole32(crc32c(0, data + at, end - at - MPA_CRC_SIZE));
		memcpy(data + end - MPA_CRC_SIZE, &crc, MPA_CRC_SIZE);
	}
}

/* Whoever writes to it afterwards is caught in the act. */
static void
take_region_away(void)
{
	drop_memory(REGION);
	CHECK(mprotect(memory + REGION * PAGE, PAGE, PROT_NONE) == 0);
}

static void
send_all(int peer, const uint8_t how[1 + PIECES], const uint8_t *data, size_t size)
{
	size_t at = 0, len;

	for (unsigned n = 0; at < size && !closed; n++, at += len) {
		len = how[1 + n % PIECES];
		if (len == 0 || len > size - at)
			len = size - at;
		if (n > 0 && n == how[0] && conn != NULL)
			take_region_away();
		send_piece(peer, data + at, len);
	}
}

/* ---- one input ---- */

static void
run(struct iwarp *iwarp, uint8_t flags, const uint8_t how[1 + PIECES], uint8_t *data, size_t size)
{
	struct iwarp_port port = {.base = {.fabric = &iwarp->base}};
	struct iwarp_conn *other = iwarp_conn_new(iwarp, CONN_NEW, NULL);
	int peer = open_connection(iwarp, &port, flags & PASSIVE);

	CHECK(other != NULL);
	if (flags & SET_UP)
		send_setup(peer, flags & PASSIVE, flags & CRC);
	add_memory(&other->base, OTHERS, FABRIC_REMOTE_WRITE);
	if (flags & REPAIR)
		repair(data, size);
	send_all(peer, how, data, size);
	close_connection(peer);
	drop_memory(OTHERS);
	turn(1);
	iwarp_conn_dispose(other);
	turn(1);
}

static void
check_memory(void)
{
	for (unsigned page = 0; page < PAGES; page++)
		for (size_t i = 0; page != REGION && i < PAGE; i++)
			CHECK(memory[page * PAGE + i] == PATTERN);
}

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	log_set_sink(on_log);
	memory =
	    mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(memory != MAP_FAILED && crc32c_init() == 0 && loop_new(&loop) == 0);
	memset(memory, PATTERN, PAGES * PAGE);
	return 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t flags = fuzz_take_byte(&data, &size), how[1 + PIECES], *copy;
	struct fabric_options options = {
	    .mpa_crc = flags & CRC, .setup_ms = 10000, .dead_ms = 20000};
	struct fabric_env env = {.loop = loop, .event = on_event, .options = &options};
	struct fabric *fabric;
	const char *detail;

	for (unsigned i = 0; i < sizeof(how); i++)
		how[i] = fuzz_take_byte(&data, &size);
	copy = malloc(size);
	if (size > 0)
		memcpy(copy, data, size);
	conn = NULL;
	accepting = closed = false;
	randomness = 0;
	CHECK(fabric_iwarp.open(&env, &fabric, &detail) == 0);
	run((struct iwarp *)fabric, flags, how, copy, size);
	fabric_iwarp.close(fabric);
	CHECK(mprotect(memory + REGION * PAGE, PAGE, PROT_READ | PROT_WRITE) == 0);
	check_memory();
	free(copy);
	return 0;
}
