/* frame.h -- NUL-terminated messages and the descriptors that travel with them, on a stream socket
 *
 * Descriptors belong to the message with whose bytes they come (senders attach them to the first),
 * at most LIMIT_BATCH to each that comes in, one to each that goes out. Sockets are non-blocking or
 * are treated so.
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/limits.h"
#include "base/list.h"

struct inbox {
	int fds[LIMIT_BATCH]; /* came with the message; the inbox owns them until someone takes
				 them (sets n_fds to 0) */
	unsigned n_fds;
	size_t len;
	char text[LIMIT_CONTROL_MESSAGE]; /* never holds bytes of more than one message */
};

void inbox_init(struct inbox *in);
/* 1: a whole message is in text, with its NUL; 0: not yet. -EPIPE: the other side has closed;
 * -EMSGSIZE, -EMFILE: the message is too long, has more descriptors than that; or what recvmsg(2)
 * said. */
int inbox_receive(struct inbox *in, int socket);
/* Forgets the message, to receive the next. */
void inbox_clear(struct inbox *in);

struct outbox {
	struct list chunks;
	size_t len; /* bytes of all of them */
};

void outbox_init(struct outbox *out);
/* Takes text (on the heap) and fd (-1: none) over, also when it fails. -ENOBUFS: over the limit;
 * -ENOMEM. */
int outbox_put(struct outbox *out, char *text, int fd);
/* Sends what the socket takes: 0 (more to do unless outbox_empty) or a negative errno. */
int outbox_flush(struct outbox *out, int socket);
bool outbox_empty(const struct outbox *out);
void outbox_clear(struct outbox *out);
