/* client.h -- tests: a raw Varlink client of a server that runs in the same loop; linked with
 * --wrap=getsockopt
 */

#pragma once

#include <jansson.h>
#include <sys/types.h>

#include "loop/loop.h"

struct test_client {
	struct loop *loop;
	int fd;
	int got_fd; /* came with the last message, or -1 */
	char buf[256 << 10];
	size_t len;
};

/* What the kernel is made to say of clients; -1: the truth. */
extern uid_t client_uid;

/* Descriptors of this process. */
int open_fds(void);

int client_connect(const char *path);
struct test_client *client_new(struct loop *loop, const char *path);
void client_free(struct test_client *c);

/* Bytes as they are, with the descriptors attached to the first. */
void client_send_raw(
    struct test_client *c, const void *bytes, size_t len, const int *fds, unsigned n_fds);
void client_send(struct test_client *c, const char *json);

/* Bytes read, 0 at the end of the connection, -1 when nothing comes any more. */
ssize_t client_read(struct test_client *c);
/* The next message, NULL when the server has closed the connection (or sends nothing: fails). */
json_t *client_receive(struct test_client *c);
/* Call and answer; NULL when the server hangs up. */
json_t *client_call(struct test_client *c, const char *json);

/* The answer has this error ("" for none), and the parameter's text contains `part`; lets go of it.
 */
void assert_answer(json_t *answer, const char *error, const char *parameter, const char *part);
