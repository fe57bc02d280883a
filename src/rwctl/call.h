/* call.h -- Varlink client: calls to rwriterd, with descriptors both ways */

#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "rwctl/answer.h"

struct call; /* a connection, on which one call is made after the other */
struct pump;

/* Connects to the daemon: STATUS_DONE, or STATUS_UNREACHABLE when it has been said why. */
int call_open(const struct options *o, struct call **ret);
struct call *call_close(struct call *call);

/* The daemon has gone: a new connection to it, on which nothing is under way. 0 or a negative
 * errno. */
int call_reopen(struct call *call);

/* Begins a call. parameters are taken over; fds, at most LIMIT_BATCH, travel with it. A failure
 * shows in call_receive(). */
void call_send(struct call *call, const char *method, json_t *parameters, bool more, const int *fds,
    unsigned n_fds);
/* Waits for the next answer, at most timeout_ms (-1: for ever), while pump (may be NULL) runs. 0,
 * also when it is an error; -EINTR: interrupted; -ETIME; -EPIPE: the daemon has closed the
 * connection; or what else is wrong. */
int call_receive(struct call *call, struct pump *pump, int timeout_ms, struct answer *ret);
/* Says why there was no answer; the status. */
int call_explain(const struct call *call, int error);

/* A whole call: STATUS_DONE and an answer that is no error, or the status when all has been said.
 */
int call_simple(struct call *call, const struct options *o, const char *method, json_t *parameters,
    struct answer *ret);
/* The same on a connection of its own; prints the answer with --json. */
int call_once(const struct options *o, const char *method, json_t *parameters, struct answer *ret);

/* A word of the command line for a call's parameters: what is no clean UTF-8 is made so. */
json_t *call_text(const char *text);
