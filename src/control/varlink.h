/* varlink.h -- server side of Varlink: NUL-terminated JSON over a Unix stream socket
 *
 * One call at a time per client; further ones wait in the socket. Descriptors belong to the
 * message with whose bytes they come: see frame.h.
 * Whoever breaks the framing or a limit (base/limits.h) is cut off; what can be answered is
 * answered with an error.
 *
 * Nothing here frees a client inside a caller's call: a failing send ends the client later in the
 * turn.
 */

#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct loop;
struct varlink;

struct varlink_call {
	const char *method; /* like the parameters valid until the call is answered */
	json_t *parameters; /* an object, borrowed */
	bool more, oneway;
	int *fds; /* came with the call; closed when the handler returns (it may take them: set
		     n_fds to 0) */
	unsigned n_fds;
	uid_t uid; /* of the caller, from the kernel */

	/* A handler that returns before the call is answered sets these. The client has gone:
	 * nobody waits for an answer any more, and the call is over on return. */
	void (*cancelled)(void *arg);
	/* May be set too: the client has read all of its answers, and is congested no more. */
	void (*drained)(void *arg);
	void *arg;
};

/* Answers at once, or later (see cancelled). */
typedef void varlink_fn(void *arg, struct varlink_call *call);

/* fd: a listening socket, non-blocking, owned from success on. 0 or -ENOMEM. */
int varlink_new(struct loop *loop, int fd, varlink_fn *fn, void *arg, struct varlink **ret);
/* Cuts all clients off, cancelling their calls. Accepts NULL, returns NULL. */
struct varlink *varlink_free(struct varlink *v);

/* A parameter: NULL, 0 or false when it is absent or of another type. */
const char *varlink_text(const struct varlink_call *call, const char *name);
uint64_t varlink_number(const struct varlink_call *call, const char *name);
bool varlink_flag(const struct varlink_call *call, const char *name);

/* The answers. parameters is an object that is taken over; NULL means that memory was short while
 * it was made, and ends the client. After reply and error the call is over. */
void varlink_continue(struct varlink_call *call, json_t *parameters); /* only to a call with more */
void varlink_reply(struct varlink_call *call, json_t *parameters);
void varlink_reply_fd(struct varlink_call *call, json_t *parameters, int fd); /* fd is taken over */
void varlink_error(struct varlink_call *call, const char *error, json_t *parameters);
/* An error with one parameter, text. */
void varlink_fail(struct varlink_call *call, const char *error, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* True while the client has not read its last answers: progress can be left out. */
bool varlink_congested(const struct varlink_call *call);
