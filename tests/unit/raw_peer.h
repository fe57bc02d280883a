/* raw_peer.h -- an open iwarp fabric with one connection, and a peer of it that is a TCP socket in
 * the hands of the test
 *
 * cmocka fixtures: *state is the struct raw. What the fabric tells is kept; what the peer sends and
 * expects is written in hex.
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fabric/fabric.h"
#include "hex.h"
#include "loop/loop.h"

#define RAW_REQUEST "4d 50 41 20 49 44 20 52 65 71 20 46 72 61 6d 65 "
#define RAW_REPLY   "4d 50 41 20 49 44 20 52 65 70 20 46 72 61 6d 65 "
/* Revision 2, CRC wanted, no depths, no data. */
#define RAW_ASK    RAW_REQUEST "50 02 00 04 00 00 00 00"
#define RAW_ACCEPT RAW_REPLY "50 02 00 04 00 00 00 00"

#define RAW_MEMORY ((size_t)1 << 20)

struct raw {
	struct loop *loop;
	struct fabric *fabric;
	struct fabric_port *port;
	struct sockaddr_storage address;
	int listener; /* of the peer, or -1 */
	int fd;       /* the peer's end, or -1 */

	struct fabric_conn *conn;
	bool port_up, requested, resolved, established, closed, mem_ready, mem_gone;
	enum fabric_cause cause;
	char detail[512];
	uint8_t data[512]; /* private data that came last */
	size_t data_len;
	unsigned arrived, written;
	struct fabric_mem *mem;
	uint8_t *memory;
};

#define RAW_HASTE_MS 200

/* Fixtures: with CRCs demanded; with RAW_HASTE_MS for the set-up; without CRCs. */
int raw_setup(void **state);
int raw_setup_hasty(void **state);
int raw_setup_no_crc(void **state);
int raw_teardown(void **state);

/* Turns the loop until the condition holds. */
#define RAW_AWAIT(r, condition)                                              \
	do {                                                                 \
		uint64_t raw_end = loop_now() + 5 * NSEC_PER_SEC;            \
		while (!(condition)) {                                       \
			if (loop_now() > raw_end)                            \
				fail_msg("awaited in vain: %s", #condition); \
			loop_turn((r)->loop, NSEC_PER_MSEC);                 \
		}                                                            \
	} while (0)

void raw_settle(struct raw *r);

/* The fabric listens, the peer connects to it. */
int raw_dial(struct raw *r);
/* The peer listens, and the fabric connects to it and sends its request with these data. */
void raw_answer(struct raw *r, const char *data);

/* The peer sends. */
void raw_say(struct raw *r, const char *hex);
void raw_say_bytes(struct raw *r, const void *bytes, size_t len);
/* Just these bytes come to the peer; or the end of the stream, and no byte before it. */
void raw_hear(struct raw *r, const char *hex);
void raw_hear_bytes(struct raw *r, void *bytes, size_t len);
void raw_hear_end(struct raw *r);
void raw_hear_nothing(struct raw *r);

/* The peer has asked and the fabric has accepted, without data; memory is registered, all zeros. */
void raw_open(struct raw *r);
void raw_add_memory(struct raw *r, unsigned access);
/* A segment of a write, at this offset of the memory, with the right CRC. Returns its size. */
size_t raw_segment(const struct raw *r, uint8_t *out, size_t offset, const char *text, bool last);
void raw_write(struct raw *r, size_t offset, const char *text);
