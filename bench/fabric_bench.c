/* fabric_bench.c -- how fast a fabric carries writes between two processes
 *
 *   fabric_bench [FABRIC [ADDRESS [PORT [SECONDS [SIZE ...]]]]]
 *
 * Defaults: iwarp 127.0.0.1 7470 2, and sizes from 64 KiB to 1 MiB. A child offers a region of 8
 * MiB; the parent writes to it round and round, from staging of the same size, for so long with
 * each size, with MPA CRCs. Its last word is a flag: the child answers it by a write into the
 * parent's mailbox when it is there, and the region is what was sent. That ends the measurement.
 *
 * With the one size 0 flags go to and fro alone, and half a round trip is told; where memory must
 * be polled, both sides spin.
 */

#include "config.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/text.h"
#include "fabric/fabric.h"
#include "loop/loop.h"
#include "loop/work.h"

#define PAGE     ((size_t)4096)
#define REGION   ((size_t)8 << 20)
#define PATIENCE (20 * NSEC_PER_SEC)
#define POLL     (50 * NSEC_PER_USEC)
#define PINGS    100000

/* What the peer writes to: the parent's is the mailbox alone. */
struct words {
	uint64_t addr; /* of what the sender offers */
	uint32_t rkey;
};

static const size_t SIZES[] = {64 << 10, 128 << 10, 256 << 10, 512 << 10, 1 << 20};

static struct {
	const struct fabric_ops *ops;
	struct loop *loop;
	struct fabric *fabric;
	struct fabric_conn *conn;
	bool writer, established, closed;
	bool ping;                   /* the size is 0 */
	struct fabric_mem *in, *out; /* what the peer writes to, and what we write from */
	unsigned n_ready;
	struct words peer;
	uint64_t flag, came; /* the newest that we have sent, the newest that has come; even
				ones say that the region is to be compared */

	/* parent */
	size_t size, at;
	uint64_t until, last_flag;      /* of this measurement */
	uint64_t posted, written, sent; /* bytes; the first two are cookies, too */
} me;

static void __attribute__((noreturn, format(printf, 1, 2))) die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fputs("fabric_bench: ", stderr);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
	va_end(ap);
	exit(1);
}

/* ---- memory: the region, or staging, and behind it a page for the flag ---- */

static uint8_t *
map(void)
{
	void *p = mmap(NULL, REGION + PAGE, PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (p == MAP_FAILED)
		die("mmap: %s", strerror(errno));
	return p;
}

static void
fill(uint8_t *p)
{
	uint32_t x = 1;

	for (size_t i = 0; i < REGION; i++) {
		x = x * 1664525 + 1013904223;
		p[i] = (uint8_t)(x >> 24);
	}
}

static void
add_memory(struct fabric_conn *c)
{
	me.conn = c;
	if (me.ops->mem_add(c, map(), REGION + PAGE, FABRIC_REMOTE_WRITE, NULL, &me.in) < 0 ||
	    me.ops->mem_add(c, map(), REGION + PAGE, 0, NULL, &me.out) < 0)
		die("mem_add");
	fill(me.out->addr);
}

/* ---- writing ---- */

static uint64_t *
flag_in(const struct fabric_mem *mem)
{
	return (uint64_t *)((uint8_t *)mem->addr + REGION);
}

static bool
put(size_t at, size_t len)
{
	const struct fabric_write w = {
	    .mem = me.out,
	    .addr = (uint8_t *)me.out->addr + at,
	    .len = len,
	    .remote_addr = me.peer.addr + at,
	    .rkey = me.peer.rkey,
	    .cookie = me.posted + len,
	};
	int r = me.ops->write(me.conn, &w, 1);

	if (r < 0 && r != -EAGAIN)
		die("write: %s", strerror(-r));
	if (r == 0)
		me.posted += len;
	return r == 0;
}

static void
put_flag(uint64_t flag)
{
	*flag_in(me.out) = flag;
	if (put(REGION, sizeof(flag)))
		me.flag = flag;
}

/* The region is compared whole: it is written once at least, however slow that is. */
static bool
time_is_up(void)
{
	return loop_now() >= me.until && me.sent >= REGION;
}

/* Staging is used again when it is WRITTEN. */
static void
write_more(void)
{
	while (!time_is_up() && me.posted + me.size - me.written <= REGION && put(me.at, me.size)) {
		me.sent += me.size;
		me.at = (me.at + me.size) % REGION;
	}
	if (time_is_up() && me.flag < me.last_flag)
		put_flag(me.last_flag);
}

/* ---- what comes ---- */

static bool
flag_came(void)
{
	uint64_t flag;

	if (me.in == NULL)
		return false;
	flag = __atomic_load_n(flag_in(me.in), __ATOMIC_ACQUIRE);
	if (flag == me.came)
		return false;
	me.came = flag;
	return true;
}

static void
look(void)
{
	if (!me.established || !flag_came() || me.writer)
		return;
	if (me.came % 2 == 0 && memcmp(me.in->addr, me.out->addr, REGION) != 0)
		die("the region is not what was sent");
	put_flag(me.came);
}

static void
introduce(void)
{
	struct words words = {me.in->remote_addr, me.in->rkey};
	int r = me.writer ? me.ops->request(me.conn, &words, sizeof(words))
			  : me.ops->accept(me.conn, &words, sizeof(words));

	if (r < 0)
		die("request or accept: %s", strerror(-r));
}

static void
on_event(void *arg, const struct fabric_event *e)
{
	(void)arg;
	if (e->error < 0)
		die("%s", e->detail);
	if (e->type == FABRIC_REQUEST || (e->type == FABRIC_ESTABLISHED && me.writer))
		memcpy(&me.peer, e->data, sizeof(me.peer));
	if (e->type == FABRIC_REQUEST || e->type == FABRIC_RESOLVED)
		add_memory(e->conn);
	if (e->type == FABRIC_MEM_READY && ++me.n_ready == 2)
		introduce();
	if (e->type == FABRIC_ESTABLISHED)
		me.established = true;
	if (e->type == FABRIC_WRITTEN) {
		me.written = e->cookie;
		if (me.writer && !me.ping)
			write_more();
	}
	if (e->type == FABRIC_ARRIVED)
		look();
	if (e->type == FABRIC_CLOSED) {
		me.closed = true;
		if (me.writer)
			die("%s: %s", fabric_cause_name(e->cause), e->detail);
	}
}

static void
turn(void)
{
	struct fabric_info info = {0};

	if (me.conn != NULL)
		me.ops->describe(me.conn, &info);
	loop_turn(me.loop, !info.polled ? NSEC_PER_SEC : me.ping ? 0 : POLL);
	if (info.polled)
		look();
}

/* ---- the two processes ---- */

static void
open_fabric(void)
{
	struct fabric_env env = {.event = on_event};
	const char *detail;

	if (loop_new(&me.loop) < 0 || work_new(me.loop, "bench", 1, &env.work) < 0)
		die("no memory");
	env.loop = me.loop;
	if (me.ops->open(&env, &me.fabric, &detail) < 0)
		die("%s", detail);
}

/* ready: is closed when we listen. */
static int
serve(const struct sockaddr *address, int ready)
{
	struct fabric_port *port;

	open_fabric();
	if (me.ops->listen(me.fabric, address, NULL, NULL, &port) < 0)
		die("listen");
	turn(); /* PORT_UP, or an error */
	close(ready);
	while (!me.closed)
		turn();
	return 0;
}

static double
core_seconds(void)
{
	struct rusage r;

	getrusage(RUSAGE_SELF, &r);
	return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) +
	       (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1e6;
}

static void
measure(size_t size, double seconds)
{
	uint64_t began = loop_now();
	double cpu = core_seconds(), took;

	if (size == 0 || REGION % size != 0)
		die("%zu is no part of the region", size);
	me.size = size;
	me.at = 0;
	me.sent = 0;
	me.until = began + (uint64_t)(seconds * 1e9);
	me.last_flag = (me.flag | 1) + 1;
	write_more();
	while (me.came < me.last_flag) {
		turn();
		if (loop_now() > me.until + PATIENCE)
			die("nothing comes back");
	}
	took = (double)(loop_now() - began) / 1e9;
	cpu = core_seconds() - cpu;
	printf("%zu bytes a write: %.2f GB/s; the writer used %.2f core-seconds per GB\n", size,
	    (double)me.sent / 1e9 / took, cpu / ((double)me.sent / 1e9));
	fflush(stdout);
}

static int
by_time(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* Until a flag is there and back. */
static uint64_t
round_trip(void)
{
	uint64_t began = loop_now(), flag = (me.flag + 1) | 1;

	put_flag(flag);
	while (me.came < flag) {
		turn();
		if (loop_now() > began + PATIENCE)
			die("nothing comes back");
	}
	return loop_now() - began;
}

static void
measure_latency(double seconds)
{
	static uint64_t took[PINGS];
	uint64_t until = loop_now() + (uint64_t)(seconds * 1e9);
	size_t n = 0;

	while (n < PINGS && (n == 0 || loop_now() < until))
		took[n++] = round_trip();
	qsort(took, n, sizeof(took[0]), by_time);
	printf("half a round trip of %zu: median %.2f us, 99 percent below %.2f us\n", n,
	    (double)took[n / 2] / 2e3, (double)took[n - 1 - n / 100] / 2e3);
}

static void
drive(const struct sockaddr *address)
{
	open_fabric();
	if (me.ops->connect(me.fabric, address, NULL, &me.conn) < 0)
		die("connect");
	while (!me.established)
		turn();
}

static pid_t
start_child(const struct sockaddr *address)
{
	int ready[2];
	pid_t child;
	char byte;

	if (pipe(ready) < 0 || (child = fork()) < 0)
		die("%s", strerror(errno));
	if (child == 0) {
		close(ready[0]);
		exit(serve(address, ready[1]));
	}
	me.writer = true;
	close(ready[1]);
	(void)!read(ready[0], &byte, 1);
	close(ready[0]);
	return child;
}

int
main(int argc, char **argv)
{
	const char *host = argc > 2 ? argv[2] : "127.0.0.1";
	uint16_t port = argc > 3 ? (uint16_t)atoi(argv[3]) : 7470;
	double seconds = argc > 4 ? atof(argv[4]) : 2;
	struct sockaddr_storage address;
	pid_t child;

	me.ops = argc > 1 && strcmp(argv[1], "verbs") == 0 ? &fabric_verbs : &fabric_iwarp;
	if (text_parse_address(host, port, &address) < 0)
		die("%s is no address", host);
	me.ping = argc == 6 && atol(argv[5]) == 0;
	crc32c_init();
	child = start_child((struct sockaddr *)&address);
	drive((struct sockaddr *)&address);
	if (me.ping)
		measure_latency(seconds);
	for (int i = 5; i < argc && !me.ping; i++)
		measure((size_t)atol(argv[i]), seconds);
	for (size_t i = 0; argc <= 5 && i < sizeof(SIZES) / sizeof(SIZES[0]); i++)
		measure(SIZES[i], seconds);
	kill(child, SIGTERM);
	waitpid(child, NULL, 0);
	return 0;
}
