/* failure.h -- why something did not work, in words that follow the peer's name: "b (10.0.0.2:7471)
 * ..."
 *
 * Made where it happens, carried to the transfer_view. A text names what, the numbers and the
 * machine; a fix names the line to change or the command to give.
 */

#pragma once

#include <stdbool.h>
#include <sys/socket.h>

#include "base/limits.h"
#include "core/view.h"
#include "wire/rwp.h"

struct fabric_event;

struct failure {
	enum transfer_state state;
	unsigned code; /* enum rwp_code, or 0 */
	char text[LIMIT_TEXT + 1], fix[LIMIT_TEXT + 1];
	bool fix_on_peer; /* the fix is to be made there, not here */
};

/* TRANSFER_FAILED with this text. */
struct failure failure_make(unsigned code, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* The target's own word; text and fix may be "". */
struct failure failure_refused(unsigned code, const char *text, const char *fix);
/* The target sent what the protocol does not allow. */
struct failure failure_protocol(const char *text);
/* This machine cannot even begin: detail (or NULL), else what errno says. */
struct failure failure_setup(int error, const char *detail);
/* CLOSED before it was expected; open: there was a connection. local: our address towards the peer.
 */
struct failure failure_closed(
    const struct fabric_event *event, bool open, const struct sockaddr *local);

/* Another connection may do better: it is no word against the transfer itself. */
bool failure_is_passing(const struct failure *f);
/* Worth to be remembered as a peer's last error: not the ordinary end of a connection. */
bool failure_is_fault(const struct failure *f);
