/* test_iwarp_memory.c -- a whole life of two iwarp connections, and the Nth allocation fails
 *
 * Whatever fails, both ends end, everything can be freed, and nothing is left behind (the leak
 * sanitizer looks).
 */

#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "fabric/fabric.h"
#include "free_port.h"
#include "hex.h"
#include "loop/loop.h"
#include "unit/scarce.h"

#define OPS    fabric_iwarp
#define MEMORY ((size_t)1 << 20)

/* ---- two ends ---- */

struct end {
	struct fabric_conn *conn;
	struct fabric_mem *mem;
	uint8_t *memory;
	bool active, mem_there, closed;
};

static struct end ends[2]; /* active, passive */
static bool port_down;
static bool ran_short; /* in the last life */

static struct end *
end_of(const struct fabric_conn *c)
{
	return c == ends[0].conn ? &ends[0] : &ends[1];
}

static void
add_memory(struct end *end)
{
	if (OPS.mem_add(end->conn, end->memory, MEMORY, FABRIC_REMOTE_WRITE, NULL, &end->mem) < 0)
		OPS.stop(end->conn);
	else
		end->mem_there = true;
}

static void
go_on(struct end *end)
{
	int r = end->active ? OPS.request(end->conn, "?", 1) : OPS.accept(end->conn, "!", 1);

	if (r < 0)
		OPS.stop(end->conn);
}

/* More than the socket takes at once, so that the rest of FPDUs must be kept. */
static void
write_all(struct end *from, const struct end *to)
{
	struct fabric_write w = {.mem = from->mem,
	    .addr = from->memory,
	    .len = MEMORY,
	    .remote_addr = to->mem->remote_addr,
	    .rkey = to->mem->rkey,
	    .cookie = 1};

	(void)OPS.write(from->conn, &w, 1);
}

static void
on_event(void *arg, const struct fabric_event *e)
{
	(void)arg;
	switch (e->type) {
	case FABRIC_PORT_DOWN:
		port_down = true;
		break;
	case FABRIC_REQUEST:
		ends[1].conn = e->conn;
		add_memory(&ends[1]);
		break;
	case FABRIC_RESOLVED:
		add_memory(&ends[0]);
		break;
	case FABRIC_MEM_READY:
		if (e->error < 0)
			end_of(e->conn)->mem_there = false;
		else
			go_on(end_of(e->conn));
		break;
	case FABRIC_MEM_GONE:
		end_of(e->conn)->mem_there = false;
		break;
	case FABRIC_ESTABLISHED:
		if (end_of(e->conn)->active)
			write_all(&ends[0], &ends[1]);
		break;
	case FABRIC_CLOSED:
		end_of(e->conn)->closed = true;
		break;
	default:
		break;
	}
}

static bool
is_over(void)
{
	const uint8_t *last = ends[1].memory + MEMORY - 1;

	return port_down || ends[0].closed || ends[1].closed || *last == 1;
}

static void
turn_until(struct loop *loop, bool (*condition)(void))
{
	uint64_t end = loop_now() + 5 * NSEC_PER_SEC;

	while (!condition()) {
		assert_true(loop_now() < end);
		loop_turn(loop, NSEC_PER_MSEC);
	}
}

static bool
both_have_ended(void)
{
	return (ends[0].conn == NULL || (ends[0].closed && !ends[0].mem_there)) &&
	       (ends[1].conn == NULL || (ends[1].closed && !ends[1].mem_there));
}

static bool
is_closed(void)
{
	return (ends[0].conn == NULL || ends[0].closed) && (ends[1].conn == NULL || ends[1].closed);
}

static void
end_all(struct loop *loop)
{
	for (unsigned i = 0; i < 2; i++)
		if (ends[i].conn != NULL && !ends[i].closed)
			OPS.stop(ends[i].conn);
	turn_until(loop, is_closed);
	loop_turn(loop, NSEC_PER_MSEC); /* memory that was on its way is answered */
	for (unsigned i = 0; i < 2; i++)
		if (ends[i].mem_there)
			OPS.mem_drop(ends[i].mem);
	turn_until(loop, both_have_ended);
	for (unsigned i = 0; i < 2; i++)
		if (ends[i].conn != NULL)
			OPS.conn_free(ends[i].conn);
}

/* True if all of it succeeded. */
static bool
live(struct loop *loop)
{
	struct fabric_options options = {.mpa_crc = true, .setup_ms = 100, .dead_ms = 20000};
	struct fabric_env env = {.loop = loop, .event = on_event, .options = &options};
	struct sockaddr_storage address = {0};
	struct sockaddr_in *sin = (void *)&address;
	struct fabric_port *port = NULL;
	struct fabric *fabric;
	const char *detail;
	bool arrived = false;

	*sin =
	    (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	choose_free_port(&address);
	if (OPS.open(&env, &fabric, &detail) < 0)
		return false;
	if (OPS.listen(fabric, (void *)&address, NULL, NULL, &port) == 0 &&
	    OPS.connect(fabric, (void *)&address, NULL, &ends[0].conn) == 0) {
		ends[0].active = true;
		turn_until(loop, is_over);
		arrived = ends[1].memory[MEMORY - 1] == 1;
	}
	end_all(loop);
	if (port != NULL)
		OPS.unlisten(port);
	loop_turn(loop, 0);
	OPS.close(fabric);
	return arrived;
}

static bool
live_once(unsigned fail_nth)
{
	struct loop *loop;
	bool arrived;

	assert_int_equal(loop_new(&loop), 0);
	port_down = false;
	for (unsigned i = 0; i < 2; i++) {
		ends[i] = (struct end){.memory = ends[i].memory};
		memset(ends[i].memory, i == 0, MEMORY);
	}
	scarce_begin(fail_nth);
	arrived = live(loop);
	ran_short = scarce_end();
	loop_free(loop);
	return arrived;
}

static void
every_allocation_may_fail(void **state)
{
	unsigned n = 0, failures = 0;

	(void)state;
	for (unsigned i = 0; i < 2; i++)
		ends[i].memory =
		    mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(live_once(0));
	do
		failures += !live_once(++n);
	while (ran_short);
	assert_true(n > 15 && failures > 10);
	for (unsigned i = 0; i < 2; i++)
		munmap(ends[i].memory, MEMORY);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(every_allocation_may_fail),
	};

	return cmocka_run_group_tests_name("iwarp: short of memory", tests, NULL, NULL);
}
