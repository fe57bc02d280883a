/* failure.h -- why something did not work, in words that follow the peer's name: "b (10.0.0.2:7471)
 * ..."
 *
 * Made where it happens, carried to the transfer_view by transfer_fail(), or transfer_broke(). A
 * text names what, the numbers and the machine; a fix names the line to change or the command to
 * give.
 */

#pragma once

#include <stdbool.h>
#include <sys/socket.h>

#include "base/limits.h"
#include "core/view.h"
#include "wire/rwp.h"

struct fabric_event;
struct pool;
struct rwp_deny;

struct failure {
	enum transfer_state state;
	unsigned code; /* enum rwp_code, or 0 */
	char text[LIMIT_TEXT + 1], fix[LIMIT_TEXT + 1];
	bool fix_on_peer; /* the fix is to be made there, not here */
};

/* TRANSFER_FAILED with this text. */
struct failure failure_make(unsigned code, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* More of the text, behind what it says already. */
void failure_add(struct failure *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* What to do about it. */
void failure_fix(struct failure *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* ---- what the target says ---- */

/* No, to the request or to HELLO; text and fix may be "". */
struct failure failure_refused(unsigned code, const char *text, const char *fix);
/* The end of the connection. */
struct failure failure_notice(const struct rwp_deny *notice);
/* RESULT of a transfer that failed there; told: its words, or NULL if they cannot be read. */
struct failure failure_result(unsigned code, const struct rwp_deny *told);
/* The target sent what the protocol does not allow. */
struct failure failure_protocol(const char *text);

/* ---- what happens here ---- */

/* This machine cannot even begin: detail (or NULL), else what errno says. */
struct failure failure_setup(int error, const char *detail);
/* CLOSED before it was expected; open: there was a connection. local: our address towards the peer.
 */
struct failure failure_closed(
    const struct fabric_event *event, bool open, const struct sockaddr *local);
/* So many bytes of memory for sending cannot be had: the pool has no room (-ENOBUFS), or detail (or
 * NULL) says why, else errno. */
struct failure failure_staging(
    uint64_t size, const struct pool *pool, int error, const char *detail);
/* What is sent cannot be read: -ESTALE, it changed; -EPIPE, a stream did not end as it should. */
struct failure failure_read(int error);

/* Another connection may do better: it is no word against the transfer itself. */
bool failure_is_passing(const struct failure *f);
/* Worth to be remembered as a peer's last error: not the ordinary end of a connection. */
bool failure_is_fault(const struct failure *f);
