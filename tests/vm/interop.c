/* interop.c -- two ends on two fabrics: does what one writes arrive at the other, byte for byte?
 *
 *   interop target FABRIC ADDRESS PORT [crc|nocrc]       serves one connection
 *   interop writer FABRIC ADDRESS PORT [crc|nocrc]       writes every size, then where it may not
 *   interop push   FABRIC ADDRESS PORT [crc|nocrc] MIB   writes so much, and says how fast
 *
 * FABRIC: verbs or iwarp. The private data are those of rwriter, so each side knows the fabric of
 * the other. The writer puts a payload into the region, and then a record that describes it, each
 * by a write of its own; the target compares and writes its verdict back into the writer's mailbox.
 */

#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/crc32c.h"
#include "base/text.h"
#include "fabric/fabric.h"
#include "loop/loop.h"
#include "loop/work.h"
#include "wire/rwp.h"

#define MIB         ((size_t)1 << 20)
#define REGION      (8 * MIB)
#define PAYLOAD_MAX (REGION - MIB)
#define TICK        (100 * NSEC_PER_USEC)
#define PATIENCE    (60 * NSEC_PER_SEC)
#define NUDGE       (100 * NSEC_PER_MSEC)
#define WINDOW      8 /* pushed writes of 1 MiB that are not WRITTEN */

/* In host order: both ends are on one machine. */
struct record {
	uint64_t offset, len;
	uint32_t seed;
	uint32_t compare;
	uint64_t seq; /* last: the flag */
};

static struct {
	bool writer;
	size_t push; /* writes of 1 MiB; 0: the sizes */
	struct fabric *fabric;
	const struct fabric_ops *ops;
	struct loop *loop;
	struct loop_timer *tick;
	struct fabric_conn *conn;
	uint8_t *target, *source;   /* what the other side writes to, what we write from */
	struct fabric_mem *mems[2]; /* of target and source */
	unsigned n_ready;
	uint64_t remote_addr;
	uint32_t rkey;
	uint64_t seq, verdicts, since, nudged;
	uint64_t posted, written; /* cookies */
	size_t pushed;
	bool established, trespassing, failed, over;
} me;

static void
fail(const char *why)
{
	printf("FAILED: %s\n", why);
	me.failed = me.over = true;
}

static void
make_noise(uint8_t *p, size_t len, uint32_t x)
{
	for (size_t i = 0; i < len; i++) {
		x = x * 1664525 + 1013904223;
		p[i] = (uint8_t)(x >> 24);
	}
}

/* ---- memory ---- */

static uint8_t *
map(size_t len)
{
	void *p = mmap(
	    NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (p == MAP_FAILED)
		abort();
	return p;
}

static size_t
target_size(void)
{
	return me.writer ? RWP_MAILBOX_SIZE : REGION;
}

static void
add_memory(struct fabric_conn *c)
{
	me.conn = c;
	me.ops->mem_add(c, me.target, target_size(), FABRIC_REMOTE_WRITE, NULL, &me.mems[0]);
	me.ops->mem_add(c, me.source, REGION, 0, NULL, &me.mems[1]);
}

static void
introduce(void)
{
	struct fabric_info info;
	uint8_t word[56];
	int r;

	me.ops->describe(me.conn, &info);
	if (me.writer) {
		struct rwp_request request = {.version_min = 1,
		    .version_max = 1,
		    .fabric = info.kind,
		    .mailbox_rkey = me.mems[0]->rkey,
		    .mailbox_addr = me.mems[0]->remote_addr};

		rwp_request_encode(&request, word);
		r = me.ops->request(me.conn, word, sizeof(word));
	} else {
		struct rwp_reply reply = {.version = 1,
		    .ring_log2 = 4,
		    .fabric = info.kind,
		    .tail_rkey = me.mems[0]->rkey,
		    .tail_addr = me.mems[0]->remote_addr,
		    .tail_len = REGION};

		rwp_reply_encode(&reply, word);
		r = me.ops->accept(me.conn, word, sizeof(word));
	}
	if (r < 0)
		fail("request or accept");
}

/* ---- writing ---- */

static struct fabric_write
write_of(size_t from, size_t len, uint64_t to)
{
	return (struct fabric_write){.mem = me.mems[1],
	    .addr = me.source + from,
	    .len = len,
	    .remote_addr = me.remote_addr + to,
	    .rkey = me.rkey,
	    .cookie = ++me.posted};
}

/* The payload, if any, and the record behind it. */
static void
put(const struct record *r, uint64_t record_at)
{
	struct fabric_write w[2];
	unsigned n = 0;

	memcpy(me.source + REGION - sizeof(*r), r, sizeof(*r));
	if (r->compare)
		w[n++] = write_of(r->offset, r->len, r->offset);
	w[n++] = write_of(REGION - sizeof(*r), sizeof(*r), record_at);
	if (me.ops->write(me.conn, w, n) < 0)
		fail("write");
}

static const struct record *
landed(void)
{
	const struct record *r = (const void *)(me.target + target_size() - sizeof(struct record));

	return __atomic_load_n(&r->seq, __ATOMIC_ACQUIRE) == me.seq + 1 ? r : NULL;
}

/* ---- the target ---- */

static void
judge(const struct record *r)
{
	struct record verdict = {.len = r->len, .seq = r->seq};

	me.seq = r->seq;
	if (r->compare) {
		make_noise(me.source, r->len, r->seed);
		if (memcmp(me.source, me.target + r->offset, r->len) != 0)
			fail("the bytes differ");
		memset(me.target + r->offset, 0, r->len);
	}
	put(&verdict, RWP_MAILBOX_SIZE - sizeof(verdict));
}

/* ---- the writer ---- */

static const size_t SIZES[] = {0, 1, 2, 3, 4, 5, 63, 64, 65, 1380, 1384, 1398, 1423, 1424, 1425,
    1426, 1427, 1428, 1429, 1430, 1431, 1432, 1448, 1460, 2855, 2856, 2857, 8880, 8920, 8927, 8928,
    8929, 8932, 8948, 32768, 65450, 65466, 65467, 65468, 65515, 65516, 65517, 65520, 65521, 65522,
    65535, 65536, 65537, 131032, 131072, 1000003, 2 << 20};
#define N_SIZES (sizeof(SIZES) / sizeof(SIZES[0]))

static void
next_size(void)
{
	struct record r = {.seq = me.seq + 1, .compare = 1, .seed = (uint32_t)me.seq + 7};

	r.len = SIZES[me.seq];
	r.offset = r.len < 4096 ? me.seq % 64 : 0;
	make_noise(me.source + r.offset, r.len, r.seed);
	put(&r, REGION - sizeof(r));
}

/* The last act: it ends the connection. */
static void
trespass(void)
{
	struct fabric_write w = write_of(0, 64, REGION - 63);

	me.trespassing = true;
	if (me.ops->write(me.conn, &w, 1) < 0)
		fail("write");
}

static void
push_more(void)
{
	struct record last = {.seq = me.seq + 1};

	while (me.pushed < me.push && me.posted - me.written < WINDOW) {
		size_t at = me.pushed % 7 * MIB;
		struct fabric_write w = write_of(at, MIB, at);

		if (me.ops->write(me.conn, &w, 1) < 0) {
			fail("write");
			return;
		}
		if (++me.pushed == me.push)
			put(&last, REGION - sizeof(last));
	}
}

static void
take_verdict(void)
{
	double seconds = (double)(loop_now() - me.since) / 1e9;

	me.seq++;
	if (me.push > 0) {
		printf("%zu MiB in %.3f s: %.2f GB/s\n", me.push, seconds,
		    (double)me.push * MIB / 1e9 / seconds);
		me.ops->stop(me.conn);
	} else if (me.seq < N_SIZES) {
		next_size();
	} else {
		printf("%zu sizes arrived\n", N_SIZES);
		trespass();
	}
}

/* ---- events ---- */

/* siw sends its reply before it looks at what comes: a first write that is faster lies there until
 * something else comes. So, as rwriter beats while it waits, something comes: a write of no bytes.
 */
static void
nudge(void)
{
	struct fabric_write w = write_of(0, 0, 0);

	if (loop_now() - me.nudged < NUDGE)
		return;
	me.nudged = loop_now();
	me.ops->write(me.conn, &w, 1);
}

static void
on_tick(void *arg)
{
	const struct record *r = me.established ? landed() : NULL;

	(void)arg;
	if (r != NULL && me.writer)
		take_verdict();
	else if (r != NULL)
		judge(r);
	else if (me.established && me.writer && me.push == 0 && !me.trespassing)
		nudge();
	if (loop_now() - me.since > PATIENCE && me.writer)
		fail("nothing comes any more");
	loop_timer_set(me.tick, TICK);
}

static void
on_established(const struct fabric_event *e)
{
	struct rwp_reply reply;

	me.established = true;
	if (!me.writer)
		return;
	if (rwp_reply_decode(e->data, e->data_len, &reply) < 0) {
		fail("the reply");
		return;
	}
	me.remote_addr = reply.tail_addr;
	me.rkey = reply.tail_rkey;
	me.since = loop_now();
	if (me.push > 0)
		push_more();
	else
		next_size();
}

static void
on_request(const struct fabric_event *e)
{
	struct rwp_request request;

	if (me.conn != NULL || rwp_request_decode(e->data, e->data_len, &request) < 0) {
		fail("the request");
		return;
	}
	me.remote_addr = request.mailbox_addr;
	me.rkey = request.mailbox_rkey;
	add_memory(e->conn);
}

static void
on_closed(const struct fabric_event *e)
{
	printf("closed: %s: %s\n", fabric_cause_name(e->cause), e->detail);
	if (me.writer && me.push == 0 && !me.trespassing)
		fail("closed too early");
	if (me.trespassing && strcmp(me.ops->name, "iwarp") == 0 &&
	    e->cause != FABRIC_CAUSE_REMOTE_ACCESS)
		fail("a trespass is a remote access error");
	me.over = true;
}

static void
on_event(void *arg, const struct fabric_event *e)
{
	(void)arg;
	switch (e->type) {
	case FABRIC_PORT_UP:
		printf("listening: %s\n", e->detail);
		fflush(stdout);
		break;
	case FABRIC_PORT_DOWN:
		fail(e->detail);
		break;
	case FABRIC_REQUEST:
		on_request(e);
		break;
	case FABRIC_RESOLVED:
		add_memory(e->conn);
		break;
	case FABRIC_MEM_READY:
		if (e->error < 0)
			fail(e->detail);
		else if (++me.n_ready == 2)
			introduce();
		break;
	case FABRIC_ESTABLISHED:
		on_established(e);
		break;
	case FABRIC_WRITTEN:
		me.written = e->cookie;
		if (me.push > 0)
			push_more();
		break;
	case FABRIC_CLOSED:
		on_closed(e);
		break;
	default:
		break;
	}
}

static int
run(const struct sockaddr_storage *address)
{
	struct fabric_port *port;
	int r = me.writer ? me.ops->connect(me.fabric, (const void *)address, NULL, &me.conn)
			  : me.ops->listen(me.fabric, (const void *)address, NULL, NULL, &port);

	if (r == 0)
		loop_timer_set(me.tick, TICK);
	me.since = loop_now();
	while (r == 0 && !me.over)
		r = loop_turn(me.loop, NSEC_PER_SEC);
	/* What was said last is still on its way to the peer. */
	for (uint64_t end = loop_now() + 300 * NSEC_PER_MSEC; loop_now() < end;)
		loop_turn(me.loop, 10 * NSEC_PER_MSEC);
	return r < 0 || me.failed;
}

int
main(int argc, char **argv)
{
	struct fabric_options options = FABRIC_OPTIONS_DEFAULTS;
	struct fabric_env env = {.event = on_event, .options = &options};
	struct sockaddr_storage address;
	struct work *work;
	const char *detail;
	int r;

	if (argc < 6 || text_parse_address(argv[3], (uint16_t)atoi(argv[4]), &address) < 0)
		return 2;
	me.writer = strcmp(argv[1], "target") != 0;
	me.push = argc > 6 ? (size_t)atoi(argv[6]) : 0;
	me.ops = strcmp(argv[2], "verbs") == 0 ? &fabric_verbs : &fabric_iwarp;
	options.mpa_crc = strcmp(argv[5], "crc") == 0;
	crc32c_init();
	me.target = map(target_size());
	me.source = map(REGION);
	if (loop_new(&me.loop) < 0 || work_new(me.loop, "interop", 1, &work) < 0 ||
	    loop_timer_new(me.loop, on_tick, NULL, &me.tick) < 0)
		return 1;
	env.loop = me.loop;
	env.work = work;
	if (me.ops->open(&env, &me.fabric, &detail) < 0) {
		printf("FAILED: %s\n", detail);
		return 1;
	}
	r = run(&address);
	printf("%s: %s\n", argv[1], r == 0 ? "ok" : "FAILED");
	return r;
}
