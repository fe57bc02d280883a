/* iwarp.h -- what the files of the iwarp back end share; nobody else includes it
 *
 *   iwarp.c           the operations, opening and closing, socket options
 *   iwarp_port.c      listening
 *   iwarp_conn.c      one connection: its states, its life, its end
 *   iwarp_setup.c     how it begins: TCP, then MPA's request and reply
 *   iwarp_recv.c      FPDUs that come in
 *   iwarp_send.c      writes that go out
 *   iwarp_mem.c       registered memory
 *   iwarp_farewell.c  closing a socket so that the last words arrive
 *
 * iWARP in this process, over a TCP socket: MPA (mpa.h), DDP (ddp.h), RDMAP (rdmap.h). The peer may
 * be another rwriter, or a kernel iWARP device; both speak the published standard.
 *
 * A connection that ends lets go of its socket at once, so nothing is placed or read any more, and
 * CLOSED is told by a deferred task.
 */

#pragma once

#include "base/limits.h"
#include "base/list.h"
#include "fabric/ddp.h"
#include "fabric/fabric.h"
#include "fabric/mpa.h"
#include "fabric/placed.h"
#include "fabric/rdmap.h"
#include "fabric/stag.h"
#include "loop/loop.h"

#define IWARP_DETAIL  320
#define IWARP_WORD    256 /* of the private data of a reject */
#define IWARP_BUFFER  ((size_t)256 << 10)
#define IWARP_DEPTH   128 /* writes posted and not yet with TCP */
#define IWARP_FRAMES  64  /* FPDUs of one system call */
#define IWARP_REQUEST (MPA_FRAME_HEADER + 4 + 56)

struct iwarp {
	struct fabric base;
	struct fabric_options options;
	struct stag_table *stags;
	/* IWARP_BUFFER bytes that stay in the processor's cache: where any connection receives.
	 * Between turns there is nothing in it. */
	uint8_t *buffer;
	struct list ports;
	struct list greeting;  /* connections whose request has not come: half open, oldest first */
	struct list farewells; /* oldest first */
	unsigned n_conns;      /* not freed by their owner */
};

struct iwarp_port {
	struct fabric_port base;
	struct list node; /* in iwarp.ports */
	int fd;
	struct loop_io *io;
	struct loop_timer *pause; /* when descriptors are short */
	struct loop_task news;    /* PORT_UP or PORT_DOWN, once listen() has returned */
	struct loop_task grave;
	int error;
	char detail[IWARP_DETAIL];
};

enum iwarp_state {
	CONN_NEW,        /* active: RESOLVED is to be told */
	CONN_RESOLVED,   /* active: request() is awaited */
	CONN_CONNECTING, /* active: TCP */
	CONN_ASKING,     /* active: the reply is awaited */
	CONN_GREETING,   /* passive: the request is awaited; there is no owner yet */
	CONN_REQUESTED,  /* passive: accept() or reject() is awaited */
	CONN_ACCEPTING,  /* passive: ESTABLISHED is to be told */
	CONN_ESTABLISHED,
	CONN_ENDING, /* CLOSED is to be told */
	CONN_CLOSED,
};

struct iwarp_recv {
	uint8_t *kept; /* between turns: the start of a frame or FPDU whose rest is to come */
	size_t n_kept;

	/* With CRC an FPDU is placed whole. */
	uint32_t crc; /* of the one being taken, without its trailer */
	struct placed placed;
	/* Without, a write is placed while it comes. */
	uint8_t header[DDP_PREFIX_SIZE];
	uint32_t stag;
	uint64_t to;
	size_t left;   /* payload to come */
	size_t skip;   /* then, zeros and the CRC field */
	unsigned bulk; /* > 0: long writes are expected */

	bool heard; /* a valid FPDU has come */
	bool
	    open; /* a tagged message goes on in the next tagged segment, at open_to of open_stag */
	uint32_t open_stag;
	uint64_t open_to;
	uint32_t read_msn;
	bool arrived; /* bytes were placed in this turn */
};

/* An FPDU on its way out. Source and CRC do not change while it is. */
struct iwarp_frame {
	uint8_t header[DDP_PREFIX_SIZE];
	uint8_t trailer[MPA_TRAILER_MAX];
	uint8_t n_trailer;
	bool ends; /* the oldest write in the queue */
	const uint8_t *payload;
	size_t len;
};

struct iwarp_send {
	struct fabric_write writes[IWARP_DEPTH]; /* a ring: what TCP does not have whole */
	unsigned head, used;
	unsigned framed; /* so many of these are whole in frames */
	size_t offset;   /* in the next one */

	struct iwarp_frame frames[IWARP_FRAMES];
	unsigned n_frames, at; /* at: the first that TCP does not have whole */
	size_t sent;           /* bytes of it that TCP has */

	uint64_t cookie, reported;
	bool starved; /* write() said -EAGAIN: a WRITTEN is owed */
	bool running;
	bool response; /* to a read of no bytes is owed */
	uint32_t response_stag;
	uint64_t response_to;
};

struct iwarp_conn {
	struct fabric_conn base;
	struct iwarp *iwarp;
	enum iwarp_state state;
	bool active;
	int fd; /* -1: none */
	struct loop_io *io;
	struct loop_timer *deadline; /* of the set-up */
	struct loop_task news, push, grave;
	struct iwarp_port *port; /* GREETING: where it came in */
	struct list node;        /* GREETING: in iwarp.greeting */
	unsigned n_mems;

	uint8_t request[IWARP_REQUEST]; /* active: the frame */
	size_t request_size;
	struct mpa_frame asked; /* passive: the frame, without its data */
	bool crc;               /* agreed on */
	bool reads;             /* the peer was told that it may read; no bytes, that is */
	bool eof;               /* nothing more comes, nothing more can be said */
	uint8_t peer_kind;      /* enum rwp_fabric, or 0: not known */

	struct iwarp_recv recv;
	struct iwarp_send send;

	enum fabric_cause cause;
	char detail[IWARP_DETAIL];
	uint8_t word[IWARP_WORD]; /* private data of a reject */
	size_t word_len;
	struct fabric_info info;
};

/* ---- iwarp.c ---- */

void iwarp_emit(struct iwarp *w, const struct fabric_event *event);
void iwarp_defer(struct iwarp *w, struct loop_task *task);
void iwarp_bury(struct iwarp *w, struct loop_task *task);
/* The options of a connection's socket. */
void iwarp_tune(const struct iwarp *w, int fd);
/* The same for one whose other end is on this machine. */
void iwarp_tune_local(int fd);
socklen_t iwarp_address_size(const struct sockaddr *sa);

/* ---- iwarp_port.c ---- */

int iwarp_listen(struct fabric *f, const struct sockaddr *address, const char *device, void *owner,
    struct fabric_port **ret);
void iwarp_unlisten(struct fabric_port *base);

/* ---- iwarp_conn.c ---- */

struct iwarp_conn *iwarp_conn_new(struct iwarp *w, enum iwarp_state state, void *owner);
/* For a connection that the owner does not know of, or knows no more. */
void iwarp_conn_dispose(struct iwarp_conn *c);
/* Takes the socket; it is watched for events. 0, or -ENOMEM and it is still the caller's. */
int iwarp_attach(struct iwarp_conn *c, int fd, unsigned events);
void iwarp_set_state(struct iwarp_conn *c, enum iwarp_state state);
const char *iwarp_peer(const struct iwarp_conn *c, char buf[]);
/* What the socket knows about both ends. */
void iwarp_note_ends(struct iwarp_conn *c);
void iwarp_conn_emit(
    struct iwarp_conn *c, enum fabric_event_type type, const void *data, size_t data_len);
/* The connection ends; CLOSED is told later in this turn. Only the first cause counts. */
void iwarp_end(struct iwarp_conn *c, enum fabric_cause cause, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* The same for what a system call said, which becomes the cause. */
void iwarp_end_errno(struct iwarp_conn *c, const char *what, int error);
/* The peer broke the rules: it is told by a Terminate. culprit: see rdmap_terminate_encode(). */
void iwarp_terminate(struct iwarp_conn *c, enum rdmap_error error, const uint8_t *culprit,
    const char *fmt, ...) __attribute__((format(printf, 4, 5)));
void iwarp_stop(struct fabric_conn *base);
void iwarp_conn_free(struct fabric_conn *base);
void iwarp_describe(struct fabric_conn *base, struct fabric_info *ret);

/* ---- iwarp_setup.c ---- */

int iwarp_connect(
    struct fabric *f, const struct sockaddr *to, void *owner, struct fabric_conn **ret);
int iwarp_request(struct fabric_conn *base, const void *data, size_t len);
int iwarp_accept(struct fabric_conn *base, const void *data, size_t len);
void iwarp_reject(struct fabric_conn *base, const void *data, size_t len);
/* The set-up goes on: the socket is connected; the request, the reply, or what is too early came.
 */
void setup_connected(struct iwarp_conn *c);
void setup_read_request(struct iwarp_conn *c);
void setup_read_reply(struct iwarp_conn *c);
void setup_read_early(struct iwarp_conn *c);
/* Tells an initiator, in MPA's own words, that it is refused. */
void setup_refuse(struct iwarp_conn *c, const void *data, size_t len);

/* ---- iwarp_recv.c ---- */

/* In the fabric's buffer, of `size` bytes at most: what was kept, and behind it what has come.
 * Returns how much there is in all; 0: nothing came, or the connection has ended. */
size_t recv_gather(struct iwarp_conn *c, size_t size);
/* For the next turn. */
void recv_keep(struct iwarp_conn *c, const uint8_t *bytes, size_t len);
/* Takes what has come, as long as it is this connection's turn. */
void recv_run(struct iwarp_conn *c);

/* ---- iwarp_send.c ---- */

int iwarp_write(struct fabric_conn *base, const struct fabric_write *w, unsigned n);
/* Gives TCP as much as it takes, as long as it is this connection's turn; reports what it took. */
void send_run(struct iwarp_conn *c);
/* The same, but silently: what cannot be sent now never is. */
void send_last(struct iwarp_conn *c);
/* Something to be sent has come up; later in this turn it is. */
void send_kick(struct iwarp_conn *c);
/* A read of no bytes is to be answered. False: the answer to the one before is still owed. */
bool send_response(struct iwarp_conn *c, uint32_t stag, uint64_t to);
/* Copies the rest of an FPDU of which TCP has a part; returns its size. out must hold
 * MPA_FPDU_MAX. */
size_t send_copy_rest(const struct iwarp_conn *c, uint8_t *out);
/* True while a write reads from there. */
bool send_uses(const struct iwarp_conn *c, const struct fabric_mem *mem);

/* ---- iwarp_mem.c ---- */

int iwarp_mem_add(struct fabric_conn *base, void *addr, size_t len, unsigned access, void *owner,
    struct fabric_mem **ret);
void iwarp_mem_drop(struct fabric_mem *base);
bool iwarp_placed_crc(struct fabric_mem *base, const void *addr, size_t len, uint32_t *ret_crc);

/* ---- iwarp_farewell.c ---- */

/* Takes the socket and the words (which come from malloc; NULL: none). Sends them, then the end of
 * the stream; closes when the peer has ended its stream too, or after a moment. */
void farewell_begin(struct iwarp *w, int fd, uint8_t *words, size_t len);
/* Cuts all of them short. */
void farewell_end_all(struct iwarp *w);
