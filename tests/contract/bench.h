/* bench.h -- the bench that the contract is tested on: a loop, a fabric, and the ends of
 * connections
 *
 * An end keeps what its events said. What the fabric must never do (call back from inside an
 * operation, close twice, speak after CLOSED ...) is noticed as a flaw when it happens, and fails
 * the test at its next wait: a failing assertion must not jump through the fabric.
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "fabric/fabric.h"

#define PAGE ((size_t)4096)
#define MIB  ((size_t)1 << 20)

#define CAUSE(name) (1u << FABRIC_CAUSE_##name)
/* How an end may hear that the other has gone. */
#define GONE (CAUSE(PEER) | CAUSE(UNKNOWN))

/* The chunks of an end: the peer writes to TARGET, what it writes itself is in SOURCE. */
enum { TARGET, SOURCE, EXTRA, EXTRA2, BENCH_CHUNKS };

struct bench;

/* Memory of an end; page-aligned, mapped until the end goes. */
struct chunk {
	struct fabric_mem *mem; /* NULL: not added, or gone */
	uint8_t *addr;
	size_t len;
	bool ready;
	int error;
};

struct end {
	struct list node;
	struct bench *bench;
	struct fabric_conn *conn;
	bool resolved, established, closed;
	enum fabric_cause cause;
	char detail[160];
	uint8_t data[256]; /* of REQUEST, ESTABLISHED or CLOSED: the last that came with any */
	size_t data_len;
	uint64_t posted, written; /* cookies */
	unsigned written_events, arrived_events;
	struct chunk chunks[BENCH_CHUNKS];
	void (*on_written)(struct end *end); /* NULL: nothing */
};

struct bench {
	const struct fabric_ops *ops;
	struct sockaddr_storage address;
	struct loop *loop;
	struct work *work;
	struct fabric *fabric;
	struct fabric_port *port, *second;
	struct list ends;
	struct end *incoming;       /* the last REQUEST */
	int port_word, second_word; /* 1: up, negative: why not */
	unsigned requests;
	bool inside;      /* an operation is running */
	const char *flaw; /* what the fabric must not do, and did */
};

struct pair {
	struct end *active, *passive;
};

/* Calls an operation; events from inside it are a flaw. */
#define DO(b, call)                  \
	do {                         \
		(b)->inside = true;  \
		(call);              \
		(b)->inside = false; \
	} while (0)

/* Turns the loop until the condition holds; fails with the text when it does not in time. */
#define AWAIT(b, condition, text)                                 \
	do {                                                      \
		uint64_t await_end = loop_now() + BENCH_PATIENCE; \
		while (!(condition))                              \
			bench_turn(b, await_end, text);           \
		bench_check(b, text);                             \
	} while (0)

/* The same, on a connection that must not close meanwhile. */
#define AWAIT_OPEN(end, condition, text)                                 \
	do {                                                             \
		AWAIT((end)->bench, (end)->closed || (condition), text); \
		bench_check_open(end, text);                             \
	} while (0)

#define BENCH_PATIENCE (30 * NSEC_PER_SEC)

/* cmocka fixtures: *state is the bench. The operations and the address come from bench_use(). */
void bench_use(const struct fabric_ops *ops, const struct sockaddr_storage *address);
/* From now on: what the fabric is opened with (NULL: its defaults), and whether the ends say in
 * their private data that they are rwriters, and on which fabric. At first they do not. */
void bench_mood(const struct fabric_options *options, bool introduce);
int bench_setup(void **state);
int bench_teardown(void **state);
#define BENCH_TEST(name) cmocka_unit_test_setup_teardown(name, bench_setup, bench_teardown)

/* The fabric's events come here; looks for flaws. */
void bench_event(void *arg, const struct fabric_event *e);
struct end *bench_end_new(struct bench *b);

void bench_turn(struct bench *b, uint64_t deadline, const char *awaited);
void bench_check(struct bench *b, const char *awaited);
void bench_check_open(struct end *end, const char *awaited);
/* Lets everything that may still come, come. */
void bench_settle(struct bench *b);

/* Listens on the address and awaits the first word: 1 (PORT_UP) or the error of PORT_DOWN. */
int bench_listen_on(struct bench *b, const char *device, int *word, struct fabric_port **ret);
void bench_unlisten(struct bench *b, struct fabric_port **port);
/* Listens with the bench's own port; fails unless it comes up. */
void bench_listen(struct bench *b);
/* connect; does not wait. */
struct end *bench_connect(struct bench *b);
/* connect and RESOLVED. */
struct end *bench_dial(struct bench *b);
/* request, and awaits the REQUEST: the passive end. */
struct end *bench_request(struct end *active, const void *data, size_t len);
void bench_accept(struct end *passive, const void *data, size_t len);
/* All of it: two ends with a target of zeros and a source of noise each, all of this length. */
struct pair bench_pair(struct bench *b, size_t len);

/* Adds memory; does not wait. */
struct chunk *bench_mem(struct end *end, unsigned nth, size_t len, unsigned access);
struct chunk *bench_mem_ready(struct end *end, unsigned nth, size_t len, unsigned access);
void bench_mem_drop(struct end *end, struct chunk *chunk); /* and awaits MEM_GONE */

/* A write from the source of an end to a chunk of the other. */
struct fabric_write bench_write_to(
    struct end *from, size_t offset, size_t len, const struct chunk *to, size_t to_offset);
/* Posts; 0 or a negative errno. */
int bench_post(struct end *end, struct fabric_write *w, unsigned n);
/* Posts one, awaits room if need be. */
void bench_put(
    struct end *from, size_t offset, size_t len, const struct chunk *to, size_t to_offset);
void bench_await_written(struct end *end);
/* Writes one more byte behind all that was posted, and awaits that it lands: so has all before. */
void bench_flush(struct end *from, struct end *to, struct chunk *chunk);
/* The connection carries bytes. */
void bench_assert_works(struct pair pair);
void bench_assert_zeros(const uint8_t *p, size_t len);

void bench_stop(struct end *end);
void bench_await_closed(struct end *end, unsigned causes); /* CAUSE() | CAUSE() ... */
/* Stops, awaits CLOSED, drops its memory, frees it: from any state. Accepts NULL. */
void bench_release(struct end *end);
void bench_release_pair(struct pair pair);
