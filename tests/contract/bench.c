/* bench.c -- the bench that the contract is tested on */

#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "contract/bench.h"
#include "free_port.h"
#include "loop/loop.h"
#include "loop/work.h"
#include "wire/rwp.h"

static const struct fabric_ops *used_ops;
static struct sockaddr_storage used_address;
static const struct fabric_options *used_options;
static bool used_introduce;

void
bench_use(const struct fabric_ops *ops, const struct sockaddr_storage *address)
{
	used_ops = ops;
	used_address = *address;
}

void
bench_mood(const struct fabric_options *options, bool introduce)
{
	used_options = options;
	used_introduce = introduce;
}

int
bench_setup(void **state)
{
	struct bench *b = calloc(1, sizeof(*b));
	struct fabric_env env = {.event = bench_event, .arg = b, .options = used_options};
	const char *detail = NULL;

	assert_non_null(b);
	/* What the test before left in the kernel does not matter. */
	choose_free_port(&used_address);
	b->ops = used_ops;
	b->address = used_address;
	list_init(&b->ends);
	assert_int_equal(loop_new(&b->loop), 0);
	assert_int_equal(work_new(b->loop, "contract", 2, &b->work), 0);
	env.loop = b->loop;
	env.work = b->work;
	if (b->ops->open(&env, &b->fabric, &detail) < 0)
		fail_msg("open: %s", detail);
	*state = b;
	return 0;
}

/* What the first test leaves open is the libraries' own; no later one leaves more. */
static void
check_descriptors(void)
{
	static int first;
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	assert_non_null(dir);
	/* cppcheck-suppress readdirCalled ; nobody else has this stream */
	while (readdir(dir) != NULL)
		n++;
	closedir(dir);
	first = first == 0 ? n : first;
	assert_true(n <= first);
}

int
bench_teardown(void **state)
{
	struct bench *b = *state;

	while (!list_empty(&b->ends))
		bench_release(list_first(&b->ends, struct end, node));
	bench_unlisten(b, &b->second);
	bench_unlisten(b, &b->port);
	bench_settle(b);
	DO(b, b->ops->close(b->fabric));
	work_free(b->work);
	loop_free(b->loop);
	free(b);
	check_descriptors();
	return 0;
}

void
bench_check(struct bench *b, const char *awaited)
{
	if (b->flaw != NULL)
		fail_msg("the fabric gave %s (while awaiting %s)", b->flaw, awaited);
}

void
bench_check_open(struct end *end, const char *awaited)
{
	if (end->closed)
		fail_msg("closed (%s: %s) while awaiting %s", fabric_cause_name(end->cause),
		    end->detail, awaited);
}

void
bench_turn(struct bench *b, uint64_t deadline, const char *awaited)
{
	bench_check(b, awaited);
	if (loop_now() > deadline)
		fail_msg("awaited in vain: %s", awaited);
	assert_int_equal(loop_turn(b->loop, NSEC_PER_MSEC), 0);
}

void
bench_settle(struct bench *b)
{
	uint64_t end = loop_now() + 50 * NSEC_PER_MSEC;

	while (loop_now() < end)
		loop_turn(b->loop, NSEC_PER_MSEC);
	bench_check(b, "nothing more");
}

/* ---- connecting ---- */

struct end *
bench_end_new(struct bench *b)
{
	struct end *end = calloc(1, sizeof(*end));

	if (end == NULL)
		abort();
	end->bench = b;
	list_add_tail(&b->ends, &end->node);
	return end;
}

int
bench_listen_on(struct bench *b, const char *device, int *word, struct fabric_port **ret)
{
	int r;

	*word = 0;
	DO(b, r = b->ops->listen(b->fabric, (void *)&b->address, device, word, ret));
	assert_int_equal(r, 0);
	AWAIT(b, *word != 0, "PORT_UP or PORT_DOWN");
	return *word;
}

void
bench_unlisten(struct bench *b, struct fabric_port **port)
{
	if (*port != NULL)
		DO(b, b->ops->unlisten(*port));
	*port = NULL;
}

void
bench_listen(struct bench *b)
{
	if (bench_listen_on(b, NULL, &b->port_word, &b->port) < 0)
		fail_msg("cannot listen: %s", strerror(-b->port_word));
}

struct end *
bench_connect(struct bench *b)
{
	struct end *end = bench_end_new(b);
	int r;

	DO(b, r = b->ops->connect(b->fabric, (void *)&b->address, end, &end->conn));
	assert_int_equal(r, 0);
	assert_ptr_equal(end->conn->owner, end);
	return end;
}

struct end *
bench_dial(struct bench *b)
{
	struct end *end = bench_connect(b);

	AWAIT_OPEN(end, end->resolved, "RESOLVED");
	return end;
}

struct end *
bench_request(struct end *active, const void *data, size_t len)
{
	struct bench *b = active->bench;
	int r;

	b->incoming = NULL;
	DO(b, r = b->ops->request(active->conn, data, len));
	assert_int_equal(r, 0);
	AWAIT_OPEN(active, b->incoming != NULL, "REQUEST");
	return b->incoming;
}

void
bench_accept(struct end *passive, const void *data, size_t len)
{
	int r;

	DO(passive->bench, r = passive->bench->ops->accept(passive->conn, data, len));
	assert_int_equal(r, 0);
}

static void
make_noise(uint8_t *addr, size_t len)
{
	uint32_t x = 2463534242u;

	for (size_t i = 0; i < len; i++) {
		x ^= x << 13;
		x ^= x >> 17;
		x ^= x << 5;
		addr[i] = (uint8_t)x;
	}
}

static void
add_both_chunks(struct end *end, size_t len)
{
	bench_mem_ready(end, TARGET, len, FABRIC_REMOTE_WRITE);
	make_noise(bench_mem_ready(end, SOURCE, len, 0)->addr, len);
}

/* The first bytes of a request and of a reply. */
static size_t
make_word(const struct end *end, uint8_t word[8])
{
	struct fabric_info info;

	end->bench->ops->describe(end->conn, &info);
	memcpy(word, used_introduce ? "RWP1" : "none", 4);
	memcpy(word + 4, (uint8_t[]){RWP_VERSION, RWP_VERSION, 8, info.kind}, 4);
	return 8;
}

struct pair
bench_pair(struct bench *b, size_t len)
{
	struct pair pair;
	uint8_t word[8];

	if (b->port == NULL)
		bench_listen(b);
	pair.active = bench_dial(b);
	add_both_chunks(pair.active, len);
	pair.passive = bench_request(pair.active, word, make_word(pair.active, word));
	add_both_chunks(pair.passive, len);
	bench_accept(pair.passive, word, make_word(pair.passive, word));
	AWAIT_OPEN(pair.active, pair.active->established, "ESTABLISHED on the active side");
	AWAIT_OPEN(pair.passive, pair.passive->established, "ESTABLISHED on the passive side");
	return pair;
}

/* ---- memory ---- */

struct chunk *
bench_mem(struct end *end, unsigned nth, size_t len, unsigned access)
{
	struct chunk *chunk = &end->chunks[nth];
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int r;

	assert_null(chunk->addr);
	len = (len + page - 1) / page * page;
	/* cppcheck-suppress invalidFunctionArg ; -1 is right for anonymous memory */
	chunk->addr = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(chunk->addr, MAP_FAILED);
	chunk->len = len;
	DO(end->bench,
	    r = end->bench->ops->mem_add(end->conn, chunk->addr, len, access, chunk, &chunk->mem));
	assert_int_equal(r, 0);
	return chunk;
}

struct chunk *
bench_mem_ready(struct end *end, unsigned nth, size_t len, unsigned access)
{
	struct chunk *chunk = bench_mem(end, nth, len, access);

	AWAIT(end->bench, chunk->ready || chunk->error != 0, "MEM_READY");
	assert_int_equal(chunk->error, 0);
	assert_ptr_equal(chunk->mem->addr, chunk->addr);
	assert_int_equal(chunk->mem->len, chunk->len);
	return chunk;
}

void
bench_mem_drop(struct end *end, struct chunk *chunk)
{
	DO(end->bench, end->bench->ops->mem_drop(chunk->mem));
	AWAIT(end->bench, chunk->mem == NULL, "MEM_GONE");
}

static void
release_chunk(struct end *end, struct chunk *chunk)
{
	if (chunk->addr == NULL)
		return;
	AWAIT(end->bench, chunk->ready || chunk->mem == NULL, "MEM_READY, also after CLOSED");
	if (chunk->mem != NULL)
		bench_mem_drop(end, chunk);
	munmap(chunk->addr, chunk->len);
	chunk->addr = NULL;
}

/* ---- writing ---- */

struct fabric_write
bench_write_to(
    struct end *from, size_t offset, size_t len, const struct chunk *to, size_t to_offset)
{
	return (struct fabric_write){.mem = from->chunks[SOURCE].mem,
	    .addr = from->chunks[SOURCE].addr + offset,
	    .len = len,
	    .remote_addr = to->mem->remote_addr + to_offset,
	    .rkey = to->mem->rkey,
	    .cookie = from->posted + 1};
}

int
bench_post(struct end *end, struct fabric_write *w, unsigned n)
{
	uint64_t before = end->posted;
	int r;

	for (unsigned i = 0; i < n; i++)
		end->posted = w[i].cookie != 0 ? w[i].cookie : end->posted;
	DO(end->bench, r = end->bench->ops->write(end->conn, w, n));
	if (r < 0)
		end->posted = before;
	return r;
}

void
bench_put(struct end *from, size_t offset, size_t len, const struct chunk *to, size_t to_offset)
{
	struct fabric_write w = bench_write_to(from, offset, len, to, to_offset);
	int r;

	AWAIT(from->bench, (r = bench_post(from, &w, 1)) != -EAGAIN, "room in the send queue");
	assert_int_equal(r, 0);
}

void
bench_await_written(struct end *end)
{
	AWAIT_OPEN(end, end->written == end->posted, "WRITTEN of the last cookie");
}

void
bench_assert_zeros(const uint8_t *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		assert_int_equal(p[i], 0);
}

void
bench_flush(struct end *from, struct end *to, struct chunk *chunk)
{
	volatile uint8_t *last = &chunk->addr[chunk->len - 1];
	uint8_t *source = &from->chunks[SOURCE].addr[from->chunks[SOURCE].len - 1];

	*last = 0;
	*source = 1;
	bench_put(from, from->chunks[SOURCE].len - 1, 1, chunk, chunk->len - 1);
	AWAIT_OPEN(from, *last == 1 || to->closed, "the last byte to land");
	bench_check_open(to, "the last byte to land");
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
}

void
bench_assert_works(struct pair pair)
{
	struct chunk *to = &pair.passive->chunks[TARGET];

	memset(to->addr, 0, 100);
	bench_put(pair.active, 0, 100, to, 0);
	bench_flush(pair.active, pair.passive, to);
	assert_memory_equal(to->addr, pair.active->chunks[SOURCE].addr, 100);
}

/* ---- ending ---- */

void
bench_stop(struct end *end)
{
	DO(end->bench, end->bench->ops->stop(end->conn));
}

void
bench_await_closed(struct end *end, unsigned causes)
{
	AWAIT(end->bench, end->closed, "CLOSED");
	if (!(causes & 1u << end->cause))
		fail_msg("closed (%s: %s), with a cause that the contract does not allow here",
		    fabric_cause_name(end->cause), end->detail);
}

void
bench_release(struct end *end)
{
	if (end == NULL)
		return;
	if (!end->closed)
		bench_stop(end);
	AWAIT(end->bench, end->closed, "CLOSED after stop");
	for (unsigned i = 0; i < BENCH_CHUNKS; i++)
		release_chunk(end, &end->chunks[i]);
	DO(end->bench, end->bench->ops->conn_free(end->conn));
	list_del(&end->node);
	free(end);
}

void
bench_release_pair(struct pair pair)
{
	bench_release(pair.active);
	bench_release(pair.passive);
}
