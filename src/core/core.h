/* core.h -- the core seen from above: writes to peers, regions for peers, over any fabric
 *
 * Owns peers, connections, regions and their memory. One thread: the loop's.
 */

#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/flight.h"
#include "core/observer.h"
#include "core/view.h"

struct conf;
struct core;
struct fabric_ops;
struct loop;
struct transfer;
struct work;

struct core_env {
	struct loop *loop;
	struct work *source; /* reads and checksums what is sent */
	struct work *store;  /* memory, registration, verification: all else that blocks, but for */
	struct work *spool;  /* the disks that arrivals are stored on */
	struct work *resolve;                    /* looks up host names */
	const struct fabric_ops *const *fabrics; /* ended by NULL */
};

/* conf and env's pointers are borrowed. Starts to listen; a fabric or an address that is missing is
 * no failure: status says what, and it is tried again. 0 or -ENOMEM. */
int core_new(const struct core_env *env, const struct conf *conf, const struct observer *observer,
    struct core **ret);
/* The new configuration replaces the old one, which is no longer used on return. Listeners that
 * changed are closed and opened; connections stay, also those that would now be refused. */
void core_reload(struct core *core, const struct conf *conf);
/* No new connections and transfers; running transfers may end within [limits] stop; then everything
 * is closed and observer.stopped is called. A second call does not wait. */
void core_stop(struct core *core);
/* After stopped, or after core_new() alone. Accepts NULL, returns NULL. */
struct core *core_free(struct core *core);

/* ---- writing ---- */

struct write_request {
	const char *peer;   /* a configured peer, or host[:port] */
	const char *region; /* NULL: "default" */
	const char *name;   /* that the bytes shall have on the target; see text_is_clean() */
	int fd; /* borrowed: duplicated; regular file (from offset 0 to its size), or a stream
		   socket */
	uint64_t size;       /* stream: room to ask for, 0 if the caller does not know */
	uint64_t timeout_ns; /* 0: none */
	bool preserve;       /* the file there shall have the mode and the mtime of this one */
	bool again; /* it was begun before: a peer that is not there now is waited for, as after a
		       lost connection */
	uid_t uid;
	/* Each progress step at most every 100 ms and each change of state; the last call has a
	 * final state, and the transfer is gone when it returns. Called between the loop's
	 * callbacks, never from inside a call into the core; it may call into the core. */
	void (*update)(void *arg, const struct transfer_view *view);
	void *arg;
};

/* 0 and a transfer, or: -EINVAL (peer, region or name is not well-formed, fd is of the wrong type),
 * -EBUSY (too many transfers), -ESHUTDOWN, -ENOMEM, or what fstat(2) said; error (size bytes) says
 * it in words. */
int core_write(struct core *core, const struct write_request *request, struct transfer **ret,
    char *error, size_t size);
/* Gives up: no further update. discard: the target shall keep nothing of it; else it keeps what a
 * later write of the same file can go on from. It hears of that if there is a connection. */
void core_write_cancel(struct transfer *transfer, bool discard);

/* The peers that word names, each once, in its order: a, or a,b or @group or @all (every configured
 * one), or several with commas. A name that is no configured peer's is taken as it is: it may be a
 * host's. 0, or -EINVAL (an empty name, no such group, too many), -ENOMEM; error says it in words,
 * and fn is not called. */
int core_each_named(struct core *core, const char *word, void (*fn)(void *arg, const char *peer),
    void *arg, char *error, size_t size);
/* [limits] width. */
unsigned core_width(const struct core *core);

/* ---- looking and administering ---- */

void core_status(const struct core *core, struct status_view *ret);
/* Regions come in order of id, listeners and peers in that of their making; inbound connections
 * come after the peers. The callback must not call into the core. */
void core_each_region(
    struct core *core, void (*fn)(void *arg, const struct region_view *v), void *arg);
void core_each_peer(struct core *core, void (*fn)(void *arg, const struct peer_view *v), void *arg);
/* The course of the last transfers and arrivals, and of transfers under way. */
void core_each_flight(
    struct core *core, void (*fn)(void *arg, const struct flight_record *r), void *arg);
/* In order of id: the oldest first. */
void core_each_transfer(
    struct core *core, void (*fn)(void *arg, const struct transfer_view *v), void *arg);
void core_each_listen(
    struct core *core, void (*fn)(void *arg, const struct listen_view *v), void *arg);

/* A read-only descriptor of the region's memory (caller closes it) and its view. which: "" (the
 * region with the newest arrival), a region's number, or a peer (name, claimed name or address: its
 * newest arrival). -ENOENT: no such region; -ENODATA: no whole arrival in it (now). */
int core_open_region(struct core *core, const char *which, struct region_view *ret, int *ret_fd);
/* Ends the region's connection, if any, and gives its memory back. 0 or -ENOENT. */
int core_release(struct core *core, uint32_t id);
/* Ends every connection with the peer (name, claimed name or address), both ways; the number of
 * them. */
unsigned core_disconnect(struct core *core, const char *peer);
