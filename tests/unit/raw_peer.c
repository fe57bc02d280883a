/* raw_peer.c -- an open iwarp fabric, and a peer of it that is a TCP socket in the test's hands */

#include "config.h"

#include "raw_peer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "fabric/rdmap.h"
#include "free_port.h"

static void
on_event(void *arg, const struct fabric_event *e)
{
	struct raw *r = arg;

	r->port_up |= e->type == FABRIC_PORT_UP;
	r->requested |= e->type == FABRIC_REQUEST;
	r->resolved |= e->type == FABRIC_RESOLVED;
	r->established |= e->type == FABRIC_ESTABLISHED;
	r->mem_ready |= e->type == FABRIC_MEM_READY;
	r->mem_gone |= e->type == FABRIC_MEM_GONE;
	r->arrived += e->type == FABRIC_ARRIVED;
	r->written += e->type == FABRIC_WRITTEN;
	if (e->type == FABRIC_REQUEST)
		r->conn = e->conn;
	if (e->type == FABRIC_CLOSED) {
		r->closed = true;
		r->cause = e->cause;
		snprintf(r->detail, sizeof(r->detail), "%s", e->detail);
	}
	if (e->type != FABRIC_REQUEST && e->type != FABRIC_ESTABLISHED && e->data_len == 0)
		return;
	if (e->data_len > 0)
		memcpy(r->data, e->data, e->data_len);
	r->data_len = e->data_len;
}

static int
setup(void **state, bool crc, unsigned setup_ms)
{
	struct fabric_options options = {.mpa_crc = crc, .setup_ms = setup_ms, .dead_ms = 20000};
	struct raw *r = calloc(1, sizeof(*r));
	struct fabric_env env = {.event = on_event, .arg = r, .options = &options};
	struct sockaddr_in *sin = (void *)&r->address;
	const char *detail;

	assert_non_null(r);
	*sin =
	    (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	choose_free_port(&r->address);
	r->fd = r->listener = -1;
	r->memory =
	    mmap(NULL, RAW_MEMORY, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(r->memory, MAP_FAILED);
	assert_int_equal(loop_new(&r->loop), 0);
	env.loop = r->loop;
	assert_int_equal(fabric_iwarp.open(&env, &r->fabric, &detail), 0);
	*state = r;
	return 0;
}

int
raw_setup(void **state)
{
	return setup(state, true, 10000);
}

int
raw_setup_hasty(void **state)
{
	return setup(state, true, RAW_HASTE_MS);
}

int
raw_setup_no_crc(void **state)
{
	return setup(state, false, 10000);
}

int
raw_teardown(void **state)
{
	struct raw *r = *state;

	if (r->conn != NULL) {
		fabric_iwarp.stop(r->conn);
		RAW_AWAIT(r, r->closed);
		if (r->mem != NULL && !r->mem_gone) {
			fabric_iwarp.mem_drop(r->mem);
			RAW_AWAIT(r, r->mem_gone);
		}
		fabric_iwarp.conn_free(r->conn);
	}
	if (r->port != NULL)
		fabric_iwarp.unlisten(r->port);
	loop_turn(r->loop, 0);
	fabric_iwarp.close(r->fabric);
	loop_free(r->loop);
	if (r->fd >= 0)
		close(r->fd);
	if (r->listener >= 0)
		close(r->listener);
	munmap(r->memory, RAW_MEMORY);
	free(r);
	return 0;
}

void
raw_settle(struct raw *r)
{
	uint64_t end = loop_now() + 20 * NSEC_PER_MSEC;

	while (loop_now() < end)
		loop_turn(r->loop, NSEC_PER_MSEC);
}

/* ---- connecting ---- */

int
raw_dial(struct raw *r)
{
	int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (r->port == NULL) {
		assert_int_equal(
		    fabric_iwarp.listen(r->fabric, (void *)&r->address, NULL, NULL, &r->port), 0);
		RAW_AWAIT(r, r->port_up);
	}
	assert_int_equal(connect(fd, (void *)&r->address, sizeof(struct sockaddr_in)), 0);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (r->fd < 0)
		r->fd = fd;
	return fd;
}

void
raw_answer(struct raw *r, const char *data)
{
	int one = 1;

	r->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(r->listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	assert_int_equal(bind(r->listener, (void *)&r->address, sizeof(struct sockaddr_in)), 0);
	assert_int_equal(listen(r->listener, 1), 0);
	assert_int_equal(fabric_iwarp.connect(r->fabric, (void *)&r->address, NULL, &r->conn), 0);
	RAW_AWAIT(r, r->resolved);
	assert_int_equal(fabric_iwarp.request(r->conn, data, strlen(data)), 0);
	r->fd = accept(r->listener, NULL, NULL);
	assert_true(r->fd >= 0);
	setsockopt(r->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

/* ---- talking ---- */

void
raw_say_bytes(struct raw *r, const void *bytes, size_t len)
{
	assert_int_equal(send(r->fd, bytes, len, MSG_NOSIGNAL), len);
}

void
raw_say(struct raw *r, const char *hex)
{
	uint8_t bytes[1024];

	raw_say_bytes(r, bytes, unhex(hex, bytes, sizeof(bytes)));
}

void
raw_hear_bytes(struct raw *r, void *bytes, size_t len)
{
	uint8_t *p = bytes;
	ssize_t n = 0;

	for (size_t at = 0; at<len; at += n> 0 ? (size_t)n : 0) {
		RAW_AWAIT(r, (n = recv(r->fd, p + at, len - at, MSG_DONTWAIT)) >= 0);
		if (n == 0)
			fail_msg("the stream ended %zu bytes too early", len - at);
	}
}

void
raw_hear(struct raw *r, const char *hex)
{
	uint8_t expected[1024], bytes[1024];
	size_t len = unhex(hex, expected, sizeof(expected));

	raw_hear_bytes(r, bytes, len);
	assert_memory_equal(bytes, expected, len);
}

void
raw_hear_end(struct raw *r)
{
	uint8_t byte;
	ssize_t n;

	RAW_AWAIT(r, (n = recv(r->fd, &byte, 1, MSG_DONTWAIT)) >= 0);
	assert_int_equal(n, 0);
}

void
raw_hear_nothing(struct raw *r)
{
	uint8_t byte;

	raw_settle(r);
	assert_int_equal(recv(r->fd, &byte, 1, MSG_DONTWAIT), -1);
	assert_int_equal(errno, EAGAIN);
}

/* ---- an open connection ---- */

void
raw_add_memory(struct raw *r, unsigned access)
{
	assert_int_equal(
	    fabric_iwarp.mem_add(r->conn, r->memory, RAW_MEMORY, access, NULL, &r->mem), 0);
	RAW_AWAIT(r, r->mem_ready);
}

void
raw_open(struct raw *r)
{
	raw_dial(r);
	raw_say(r, RAW_ASK);
	RAW_AWAIT(r, r->requested);
	raw_add_memory(r, FABRIC_REMOTE_WRITE);
	assert_int_equal(fabric_iwarp.accept(r->conn, NULL, 0), 0);
	RAW_AWAIT(r, r->established);
	raw_hear(r, RAW_ACCEPT);
}

size_t
raw_segment(const struct raw *r, uint8_t *out, size_t offset, const char *text, bool last)
{
	struct ddp_segment s = {
	    .ulpdu = (uint16_t)(DDP_TAGGED_SIZE + strlen(text)),
	    .tagged = true,
	    .last = last,
	    .control = rdmap_control(RDMAP_WRITE),
	    .stag = r->mem->rkey,
	    .to = r->mem->remote_addr + offset,
	};
	size_t len = ddp_encode(&s, out);
	uint32_t crc;

	memcpy(out + len, text, strlen(text));
	len += strlen(text);
	crc = crc32c(0, out, len);
	return len + mpa_trailer(out + len, s.ulpdu, &crc);
}

void
raw_write(struct raw *r, size_t offset, const char *text)
{
	uint8_t fpdu[1024];

	raw_say_bytes(r, fpdu, raw_segment(r, fpdu, offset, text, true));
}
