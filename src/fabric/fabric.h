/* fabric.h -- THE SEAM: what the core asks of a fabric, and what a fabric tells the core
 *
 * A fabric carries one-sided writes. Back ends: verbs (rdma_cm and libibverbs), iwarp (in this
 * process, over TCP), and the in-memory fake of the tests. All of them pass one contract suite
 * (tests/contract/).
 *
 * Everything here happens on the loop's thread. No operation calls back before it has returned:
 * events come in later turns, or in this turn's deferred tasks.
 *
 *   active:   connect > RESOLVED > mem_add(mailbox) > MEM_READY > request > ESTABLISHED
 *   passive:  REQUEST > mem_add(tail area) > MEM_READY > accept > ESTABLISHED
 *             REQUEST > reject > CLOSED
 *   then:     write > WRITTEN ...
 *   end:      stop or any failure > CLOSED; mem_drop > MEM_GONE; conn_free
 *
 * There is no 'write failed': the first failure of anything on a connection gives exactly one
 * CLOSED. After it only MEM_READY (with an error) and MEM_GONE still come for that connection. At
 * CLOSED the peer can no longer reach any memory of the connection, and no source is read any more.
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

struct loop;
struct work;
struct fabric;
struct fabric_ops;

/* ---- objects: back ends embed these as their first member; owner is the core's alone ---- */

struct fabric_port { /* something that listens */
	struct fabric *fabric;
	void *owner;
};

struct fabric_conn {
	struct fabric *fabric;
	void *owner;
};

struct fabric_mem { /* memory registered for one connection */
	struct fabric_conn *conn;
	void *owner;
	void *addr;
	size_t len;
	uint64_t remote_addr; /* what the peer writes to; valid from MEM_READY */
	uint32_t rkey;
};

/* ---- events ---- */

enum fabric_event_type {
	FABRIC_PORT_UP, /* port; detail: what it listens on ("verbs rxe0"); again when that changes
			 */
	FABRIC_PORT_DOWN,   /* port, error, detail; it is dead: unlisten it, and listen again later;
			     * -ENXIO: when device_files.h tells of a file that has come */
	FABRIC_REQUEST,     /* port, conn (new, owner NULL), data */
	FABRIC_RESOLVED,    /* conn: device known, memory may be added */
	FABRIC_ESTABLISHED, /* conn; on the active side data: the reply */
	FABRIC_MEM_READY,   /* mem, error: 0, or why it could not be registered (detail); then it is
			       gone */
	FABRIC_MEM_GONE, /* mem: deregistered; its memory may be unmapped, mem is freed on return */
	FABRIC_WRITTEN,  /* conn, cookie: sources of writes up to this cookie may be reused. That
			  * says nothing about the other side */
	FABRIC_ARRIVED,  /* conn: a hint that memory changed; only back ends that place bytes
			    themselves */
	FABRIC_CLOSED,   /* conn, cause, detail; the reject's private data when refused */
};

enum fabric_cause {
	FABRIC_CAUSE_LOCAL,   /* stop() or reject() of our own */
	FABRIC_CAUSE_REFUSED, /* by the peer: with data its word, without nobody listens there */
	FABRIC_CAUSE_PEER,    /* the peer ended the connection, or died */
	FABRIC_CAUSE_REMOTE_ACCESS, /* the peer's memory may not be written there */
	FABRIC_CAUSE_TIMEOUT,
	FABRIC_CAUSE_DEVICE,   /* device gone, out of resources, a local error */
	FABRIC_CAUSE_PROTOCOL, /* the peer sent what the fabric does not allow */
	FABRIC_CAUSE_UNKNOWN,  /* ended; siw cannot tell PEER from REMOTE_ACCESS */
};

/* "local", "refused", "peer", "remote access error", ... */
const char *fabric_cause_name(enum fabric_cause cause);

struct fabric_event { /* everything it points to is valid during the call only */
	enum fabric_event_type type;
	struct fabric_port *port;
	struct fabric_conn *conn;
	struct fabric_mem *mem;
	const void
	    *data; /* private data: padding may follow (protocol: only `length` bytes count) */
	size_t data_len;
	uint64_t cookie;
	int error; /* negative errno, or 0 */
	enum fabric_cause cause;
	const char *detail; /* one line for people, or NULL */
};

typedef void fabric_event_fn(void *arg, const struct fabric_event *event);

/* ---- operations ---- */

struct fabric_options {
	bool mpa_crc; /* iwarp: demand CRCs in FPDUs; without it they are used if the peer does */
	unsigned setup_ms; /* iwarp: so long a connection may take to be set up */
	unsigned dead_ms;  /* iwarp: a peer that answers nothing for so long is dead */
};

#define FABRIC_OPTIONS_DEFAULTS                                      \
	{                                                            \
		.mpa_crc = true, .setup_ms = 10000, .dead_ms = 20000 \
	}

struct fabric_env {
	struct loop *loop;
	struct work *work; /* for what blocks: registering, connecting on iWARP devices */
	fabric_event_fn *event;
	void *arg;
	const struct fabric_options *options; /* copied by open; NULL: the defaults */
};

struct fabric {
	const struct fabric_ops *ops;
	struct fabric_env env;
};

/* mem_add: the peer may write, and it is no source. Without it a source of our writes. */
enum { FABRIC_REMOTE_WRITE = 1 };

struct fabric_write {
	struct fabric_mem *mem; /* source, inside a mem of the same connection */
	const void *addr;
	size_t len; /* any size: cut into what the device takes; 0 is legal */
	uint64_t remote_addr;
	uint32_t rkey;
	uint64_t cookie; /* grows from write to write; 0: not reported */
};

#define FABRIC_WRITES_MAX 4 /* of one call */

struct fabric_info {
	uint8_t kind;       /* enum rwp_fabric */
	const char *fabric; /* "verbs", "iwarp", "fake" */
	char device[64];    /* "rxe0"; "" before it is known */
	struct sockaddr_storage local, remote;
	bool polled; /* no ARRIVED hints: memory must be polled */
	uint64_t
	    receive_completions; /* taken from the receive queue: 0 unless something is wrong */
	uint32_t inline_max;     /* bytes */
	uint64_t message_max;    /* bytes of one work request */
};

struct fabric_ops {
	const char *name; /* as in the configuration */

	/* 0, or a negative errno with *detail (static text): what is missing on this machine;
	 * -ENXIO: device_files.h will tell of its file when it comes. */
	int (*open)(const struct fabric_env *env, struct fabric **ret, const char **detail);
	/* Every port and connection must be gone. Accepts NULL. */
	void (*close)(struct fabric *f);

	/* address has its port; device "" or NULL: any. PORT_UP or PORT_DOWN follows. -ENOMEM only.
	 */
	int (*listen)(struct fabric *f, const struct sockaddr *address, const char *device,
	    void *owner, struct fabric_port **ret);
	void (*unlisten)(struct fabric_port *p);

	/* to: a numeric address. RESOLVED or CLOSED follows. -ENOMEM only. */
	int (*connect)(
	    struct fabric *f, const struct sockaddr *to, void *owner, struct fabric_conn **ret);
	/* Private data: at most 56 bytes for request, 56 for accept, 128 for reject. A negative
	 * errno means that nothing was sent and the connection is as before; CLOSED may follow. */
	int (*request)(struct fabric_conn *c, const void *data, size_t len);
	int (*accept)(struct fabric_conn *c, const void *data, size_t len);
	void (*reject)(
	    struct fabric_conn *c, const void *data, size_t len); /* CLOSED(LOCAL) follows */

	/* addr: page-aligned, whole pages, mapped until MEM_GONE or a MEM_READY with an error.
	 * MEM_READY follows, also after CLOSED. 0 or -ENOMEM. */
	int (*mem_add)(struct fabric_conn *c, void *addr, size_t len, unsigned access, void *owner,
	    struct fabric_mem **ret);
	/* At once out of the peer's reach if the fabric can; MEM_GONE follows. Only after
	 * MEM_READY. */
	void (*mem_drop)(struct fabric_mem *m);
	/* CRC32C of len bytes at addr, where the fabric has placed them itself: true if they are
	 * just those of one write of the peer's, intact, and nothing has been placed over any of
	 * them since. Told once; who else writes there asks first, and so has it forgotten. False:
	 * it is not known. NULL: it never is. Only before mem_drop(). */
	bool (*placed_crc)(struct fabric_mem *m, const void *addr, size_t len, uint32_t *ret_crc);

	/* All n in order and with one doorbell, or none: -EAGAIN (queue full: a WRITTEN will come,
	 * with an old cookie or 0 if nothing newer has one), -ENOTCONN (not established or closed;
	 * a passive side may write from ESTABLISHED on). */
	int (*write)(struct fabric_conn *c, const struct fabric_write *w, unsigned n);

	/* Ends the connection from any state: CLOSED(LOCAL) follows unless CLOSED is on its way
	 * already. */
	void (*stop)(struct fabric_conn *c);
	/* Only after CLOSED and when every mem is gone. */
	void (*conn_free)(struct fabric_conn *c);

	void (*describe)(struct fabric_conn *c, struct fabric_info *ret);
};

/* The back ends that this build knows, ended by NULL; tests put their own table in. */
extern const struct fabric_ops *const fabric_builtin[];
extern const struct fabric_ops fabric_verbs;
extern const struct fabric_ops fabric_iwarp;
