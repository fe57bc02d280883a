/* inside.h -- what the files of the fake share
 *
 * Operations change state at once and mark what is to be told (`pending`); a connection's task
 * tells it, in the order of enum fabric_event_type. What takes time counts turns down on the
 * fabric's timer.
 */

#pragma once

#include "base/list.h"
#include "fake/fake.h"
#include "loop/loop.h"

#define BIT(type) (1u << (type))

/* Private data lengths on RoCE. */
enum { REQUEST_PAD = 56, REPLY_PAD = 196, REJECT_PAD = 148 };

struct fake_fabric {
	struct fabric base;
	struct list node; /* in network */
	struct list ports, conns;
	struct loop_timer *turn;
};

struct fake_port {
	struct fabric_port base;
	struct list node;
	struct loop_task task, grave;
	struct sockaddr_storage address;
	bool up;
	int error; /* to be told; 0: that it is up */
	const char *detail;
};

enum state { RESOLVED, REQUESTED, OFFERED, ACCEPTED, ESTABLISHED, CLOSED };

struct send {
	struct fabric_write write;
	size_t landed;
	unsigned late;
	bool doomed, done;
};

struct fake_conn {
	struct fabric_conn base;
	struct list node;
	struct loop_task task, grave;
	enum state state;
	struct fake_conn *peer; /* NULL: none, or lost without a word */
	struct fake_port *port; /* passive: where it came in, until REQUEST is told */
	struct sockaddr_storage local, remote;
	struct list mems;

	unsigned pending; /* BIT(event type) */
	uint8_t data[REPLY_PAD];
	size_t data_len;
	enum fabric_cause cause;
	bool told_closed, freed;

	unsigned established_in; /* turns; 0: not counting */
	bool passive, spoken_to;
	bool starved;             /* write() said -EAGAIN: WRITTEN is owed */
	uint64_t posted, written; /* cookies */
	unsigned depth, head, used;
	struct send queue[];
};

struct fake_mem {
	struct fabric_mem base;
	struct list node;
	unsigned access;
	unsigned due_in; /* turns; 0: not counting */
	bool target;     /* not a source, then */
	bool due, ready, dropped;
	int error;
};

enum luck { GOOD, FAILS_NOW, FAILS_LATER };

/* Counts an operation. */
enum luck draw(void);
/* Something will happen in the next turn of this fabric. */
void wind(struct fake_fabric *f);

/* ---- fake.c ---- */

struct sockaddr_storage copy_address(const struct sockaddr *sa);
/* The one that gets what is sent there, or NULL. */
struct fake_port *find_port(const struct sockaddr_storage *to);

/* ---- conn.c ---- */

/* The event will be told after this turn's callbacks. */
void mark(struct fake_conn *c, enum fabric_event_type type);
/* Ends this side with one cause, and the other with another unless it hears nothing any more. */
void close_both(struct fake_conn *c, enum fabric_cause cause, enum fabric_cause peers);
/* Operations: see fabric.h. */
int fake_connect(
    struct fabric *f, const struct sockaddr *to, void *owner, struct fabric_conn **ret);
int fake_request(struct fabric_conn *c, const void *data, size_t len);
int fake_accept(struct fabric_conn *c, const void *data, size_t len);
void fake_reject(struct fabric_conn *c, const void *data, size_t len);
void fake_stop(struct fabric_conn *c);
void fake_conn_free(struct fabric_conn *c);

/* ---- write.c ---- */

int fake_mem_add(struct fabric_conn *c, void *addr, size_t len, unsigned access, void *owner,
    struct fabric_mem **ret);
void fake_mem_drop(struct fabric_mem *m);
int fake_write(struct fabric_conn *c, const struct fabric_write *w, unsigned n);
/* The mem that has something to be told, or NULL; and tells it. */
struct fake_mem *due_mem(struct fake_conn *c);
void tell_mem(struct fake_conn *c, struct fake_mem *m);
/* Takes what has landed off the queue. True if there is something to tell: a new cookie, or room
 * that somebody waits for. */
bool retire(struct fake_conn *c);
/* One turn of what was posted and of what becomes of memory; true while more is to come. */
bool turn_writes(struct fake_conn *c);
