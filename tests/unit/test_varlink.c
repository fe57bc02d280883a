/* test_varlink.c -- framing, descriptors, limits and lifetimes of the Varlink server */

#include "config.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/limits.h"
#include "base/log.h"
#include "control/socket.h"
#include "control/varlink.h"
#include "unit/client.h"

struct fixture {
	struct loop *loop;
	struct varlink *varlink;
	char path[64];
	struct varlink_call *hanging; /* a call of t.Hang that waits */
	unsigned calls, cancelled;
};

static unsigned warnings;

static void
on_log(enum log_level level, const char *line)
{
	(void)line;
	warnings += level <= LOG_LEVEL_WARNING;
}

/* ---- methods ---- */

static void
on_cancelled(void *arg)
{
	struct fixture *f = arg;

	f->cancelled++;
	f->hanging = NULL;
}

static void
content(struct varlink_call *call)
{
	char buf[32];
	ssize_t n = call->n_fds == 0 ? -1 : pread(call->fds[0], buf, sizeof(buf), 0);

	varlink_reply(call,
	    n < 0 ? json_pack("{s:n}", "content") : json_pack("{s:s%}", "content", buf, (size_t)n));
}

static int
memory_file(const char *text)
{
	int fd = memfd_create("test", MFD_CLOEXEC);

	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	return fd;
}

static void
count(struct varlink_call *call)
{
	for (int i = 1; i < 3 && call->more; i++)
		varlink_continue(call, json_pack("{s:i}", "n", i));
	varlink_reply(call, json_pack("{s:i}", "n", 3));
}

static void
flood(struct fixture *f, struct varlink_call *call)
{
	static char big[1 << 20];

	memset(big, 'x', sizeof(big) - 1);
	call->cancelled = on_cancelled;
	call->arg = f;
	for (int i = 0; i < 32; i++)
		varlink_continue(call, json_pack("{s:s}", "big", big));
}

static void
on_call(void *arg, struct varlink_call *call)
{
	struct fixture *f = arg;

	f->calls++;
	if (strcmp(call->method, "t.Echo") == 0)
		varlink_reply(call, json_incref(call->parameters));
	else if (strcmp(call->method, "t.Uid") == 0)
		varlink_reply(call, json_pack("{s:i}", "uid", (int)call->uid));
	else if (strcmp(call->method, "t.Content") == 0)
		content(call);
	else if (strcmp(call->method, "t.Give") == 0)
		varlink_reply_fd(call, json_object(), memory_file("given"));
	else if (strcmp(call->method, "t.Count") == 0)
		count(call);
	else if (strcmp(call->method, "t.Flood") == 0)
		flood(f, call);
	else if (strcmp(call->method, "t.Hang") == 0) {
		call->cancelled = on_cancelled;
		call->arg = f;
		f->hanging = call;
	} else if (strcmp(call->method, "t.NoMemory") == 0)
		varlink_reply(call, NULL);
	else
		varlink_fail(call, "t.Failed", "what is %s?", call->method);
}

/* ---- fixture ---- */

static int
setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	int fd;

	snprintf(f->path, sizeof(f->path), "test_varlink.%d", (int)getpid());
	client_uid = -1;
	warnings = 0;
	log_set_sink(on_log);
	assert_int_equal(loop_new(&f->loop), 0);
	assert_int_equal(control_socket_listen(f->path, &fd), 0);
	assert_int_equal(varlink_new(f->loop, fd, on_call, f, &f->varlink), 0);
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;

	varlink_free(f->varlink);
	loop_free(f->loop);
	unlink(f->path);
	free(f);
	return 0;
}

static void
turns(struct fixture *f, int n)
{
	while (n-- > 0)
		loop_turn(f->loop, NSEC_PER_MSEC);
}

/* ---- framing ---- */

static void
splits(void **state)
{
	static const char MESSAGE[] = "{\"method\":\"t.Echo\",\"parameters\":{\"a\":\"b\"}}";
	struct fixture *f = *state;
	struct test_client *c = client_new(f->loop, f->path);

	for (size_t cut = 1; cut < sizeof(MESSAGE); cut++) {
		client_send_raw(c, MESSAGE, cut, NULL, 0);
		turns(f, 2);
		client_send_raw(c, MESSAGE + cut, sizeof(MESSAGE) - cut, NULL, 0);
		assert_answer(client_receive(c), "", "a", "b");
	}
	assert_int_equal(f->calls, sizeof(MESSAGE) - 1);
	client_free(c);
}

static void
two_at_once(void **state)
{
	static const char MESSAGES[] = "{\"method\":\"t.Echo\",\"parameters\":{\"a\":\"1\"}}\0"
				       "{\"method\":\"t.Echo\",\"parameters\":{\"a\":\"2\"}}\0"
				       "{\"method\":\"t.Ec";
	static const char REST[] = "ho\",\"parameters\":{\"a\":\"3\"}}";
	struct fixture *f = *state;
	struct test_client *c = client_new(f->loop, f->path);

	client_send_raw(c, MESSAGES, sizeof(MESSAGES) - 1, NULL, 0);
	assert_answer(client_receive(c), "", "a", "1");
	assert_answer(client_receive(c), "", "a", "2");
	client_send_raw(c, REST, sizeof(REST), NULL, 0);
	assert_answer(client_receive(c), "", "a", "3");
	client_free(c);
}

/* The server closes the connection and calls nothing. */
static void
assert_cut_off(struct fixture *f, const void *bytes, size_t len, const int *fds, unsigned n_fds)
{
	struct test_client *c = client_new(f->loop, f->path);
	unsigned calls = f->calls;

	client_send_raw(c, bytes, len, fds, n_fds);
	assert_null(client_receive(c));
	assert_int_equal(f->calls, calls);
	client_free(c);
}

static void
not_a_call(void **state)
{
	static const char *const MESSAGES[] = {
	    "",
	    "hello",
	    "[]",
	    "17",
	    "{}",
	    "{\"method\":1}",
	    "{\"method\":\"t.Echo\",\"parameters\":[]}",
	    "{\"method\":\"t.Echo\",\"parameters\":\"x\"}",
	    "{\"method\":\"t.Echo\",\"method\":\"t.Echo\"}",
	    "{\"method\":\"t.Echo\"} {}",
	    "{\"method\":\"t.Echo\",\"upgrade\":true}",
	    "{\"method\":\"t.Echo\",\"parameters\":{\"a\":\"\\u0000\"}}",
	    "{\"method\":\"t.Echo\",\"parameters\":{\"a\":\"\xff\"}}",
	};

	for (size_t i = 0; i < sizeof(MESSAGES) / sizeof(MESSAGES[0]); i++)
		assert_cut_off(*state, MESSAGES[i], strlen(MESSAGES[i]) + 1, NULL, 0);
}

static void
parameters_may_be_missing(void **state)
{
	struct fixture *f = *state;
	struct test_client *c = client_new(f->loop, f->path);
	json_t *answer =
	    client_call(c, "{\"method\":\"t.Echo\",\"parameters\":null,\"more\":null}");

	assert_int_equal(json_object_size(json_object_get(answer, "parameters")), 0);
	json_decref(answer);
	assert_answer(
	    client_call(c, "{\"method\":\"t.What\"}"), "t.Failed", "text", "what is t.What?");
	client_free(c);
}

static void
size_limit(void **state)
{
	static char message[LIMIT_CONTROL_MESSAGE + 1];
	static const char HEAD[] = "{\"method\":\"t.Echo\",\"parameters\":{\"a\":\"";
	struct fixture *f = *state;
	struct test_client *c = client_new(f->loop, f->path);

	memset(message, 'x', sizeof(message));
	memcpy(message, HEAD, strlen(HEAD));
	strcpy(message + LIMIT_CONTROL_MESSAGE - 4, "\"}}");
	client_send_raw(c, message, LIMIT_CONTROL_MESSAGE, NULL, 0);
	assert_answer(client_receive(c), "", "a", "xxx");
	client_free(c);

	strcpy(message + LIMIT_CONTROL_MESSAGE - 4, "x\"}}");
	assert_cut_off(f, message, LIMIT_CONTROL_MESSAGE + 1, NULL, 0);
}

static void
depth_limit(void **state)
{
	struct fixture *f = *state;
	struct test_client *c = client_new(f->loop, f->path);
	char message[256];

	for (int depth = LIMIT_CONTROL_DEPTH; depth <= LIMIT_CONTROL_DEPTH + 1; depth++) {
		int arrays = depth - 2; /* inside of the message and of its parameters */
		int n = snprintf(message, sizeof(message),
		    "{\"method\":\"t.Echo\",\"parameters\":{\"a[[[{\\\"\":");

		memset(message + n, '[', arrays);
		memset(message + n + arrays, ']', arrays);
		strcpy(message + n + 2 * arrays, ",\"b\":\"deep\"}}");
		if (depth <= LIMIT_CONTROL_DEPTH)
			assert_answer(client_call(c, message), "", "b", "deep");
		else
			assert_cut_off(f, message, strlen(message) + 1, NULL, 0);
	}
	client_free(c);
}

/* ---- more, oneway ---- */

static void
more_and_oneway(void **state)
{
	struct fixture *f = *state;
	struct test_client *c = client_new(f->loop, f->path);

	client_send(c, "{\"method\":\"t.Count\",\"more\":true}");
	for (int i = 1; i <= 3; i++) {
		json_t *answer = client_receive(c);

		assert_int_equal(json_is_true(json_object_get(answer, "continues")), i < 3);
		assert_int_equal(
		    json_integer_value(json_object_get(json_object_get(answer, "parameters"), "n")),
		    i);
		json_decref(answer);
	}
	client_send(c, "{\"method\":\"t.Echo\",\"oneway\":true}");
	client_send(c, "{\"method\":\"t.What\",\"oneway\":true}");
	assert_answer(client_call(c, "{\"method\":\"t.Echo\",\"parameters\":{\"a\":\"next\"}}"), "",
	    "a", "next");
	assert_int_equal(f->calls, 4);
	client_free(c);
}

/* ---- descriptors ---- */

static void
descriptor_with_its_message(void **state)
{
	static const char PLAIN[] = "{\"method\":\"t.Content\",\"parameters\":{\"n\":1}}";
	static const char CALL[] = "{\"method\":\"t.Content\"}";
	struct fixture *f = *state;
	struct test_client *c = client_new(f->loop, f->path);
	int fd = memory_file("here"), before;
	json_t *answer;

	turns(f, 3);
	before = open_fds();
	/* All in the socket before the server reads: the descriptor is the second message's alone.
	 */
	client_send_raw(c, PLAIN, sizeof(PLAIN), NULL, 0);
	client_send_raw(c, CALL, 5, &fd, 1);
	client_send_raw(c, CALL + 5, sizeof(CALL) - 5, NULL, 0);
	client_send_raw(c, PLAIN, sizeof(PLAIN), NULL, 0);
	for (int i = 0; i < 3; i++) {
		answer = client_receive(c);
		if (i == 1) {
			assert_answer(answer, "", "content", "here");
			continue;
		}
		assert_true(json_is_null(
		    json_object_get(json_object_get(answer, "parameters"), "content")));
		json_decref(answer);
	}
	assert_int_equal(open_fds(), before);
	client_free(c);
	close(fd);
}

static void
too_many_descriptors(void **state)
{
	static const char CALL[] = "{\"method\":\"t.Content\"}";
	struct fixture *f = *state;
	int fds[LIMIT_BATCH + 2], before;
	struct test_client *c;

	fds[0] = memory_file("x");
	for (int i = 1; i < LIMIT_BATCH + 2; i++)
		fds[i] = fds[0];
	before = open_fds();
	for (unsigned n = LIMIT_BATCH + 1; n <= LIMIT_BATCH + 2; n++)
		assert_cut_off(f, CALL, sizeof(CALL), fds, n);
	turns(f, 3);
	assert_int_equal(open_fds(), before);

	/* As many as may be at a time, but one more to the message. */
	c = client_new(f->loop, f->path);
	client_send_raw(c, CALL, 5, fds, LIMIT_BATCH);
	client_send_raw(c, CALL + 5, 5, fds, 1);
	assert_null(client_receive(c));
	client_free(c);
	turns(f, 3);
	assert_int_equal(open_fds(), before);

	c = client_new(f->loop, f->path);
	client_send_raw(c, CALL, sizeof(CALL), fds, LIMIT_BATCH);
	assert_answer(client_receive(c), "", "content", "x");
	client_free(c);
	turns(f, 3);
	assert_int_equal(open_fds(), before);
	close(fds[0]);
}

static void
descriptor_without_message(void **state)
{
	struct fixture *f = *state;
	struct test_client *c = client_new(f->loop, f->path);
	int fd = memory_file("x"), before;

	client_send_raw(c, "{", 1, &fd, 1);
	turns(f, 3);
	close(fd);
	before = open_fds();
	client_free(c);
	turns(f, 3);
	assert_int_equal(open_fds(), before - 3); /* both ends, and the descriptor */
}

static void
descriptor_in_answer(void **state)
{
	struct fixture *f = *state;
	struct test_client *c = client_new(f->loop, f->path);
	char buf[8];

	assert_answer(client_call(c, "{\"method\":\"t.Give\"}"), "", "", "");
	assert_int_equal(pread(c->got_fd, buf, sizeof(buf), 0), 5);
	assert_memory_equal(buf, "given", 5);
	client_free(c);
}

/* ---- lifetimes and limits ---- */

static void
hang_up_cancels(void **state)
{
	struct fixture *f = *state;
	struct test_client *c = client_new(f->loop, f->path);

	client_send(c, "{\"method\":\"t.Hang\"}");
	turns(f, 3);
	assert_non_null(f->hanging);
	client_free(c);
	turns(f, 3);
	assert_int_equal(f->cancelled, 1);
	assert_null(f->hanging);
}

static void
hang_up_behind_a_waiting_call_cancels(void **state)
{
	struct fixture *f = *state;
	struct test_client *c = client_new(f->loop, f->path);

	client_send(c, "{\"method\":\"t.Hang\"}");
	client_send(c, "{\"method\":\"t.Echo\"}");
	turns(f, 3);
	assert_non_null(f->hanging);
	client_free(c);
	turns(f, 3);
	assert_int_equal(f->cancelled, 1);
	assert_int_equal(f->calls, 1);
}

static void
waiting_calls(void **state)
{
	struct fixture *f = *state;
	struct test_client *c = client_new(f->loop, f->path);

	client_send(c, "{\"method\":\"t.Hang\"}");
	client_send(c, "{\"method\":\"t.Echo\",\"parameters\":{\"a\":\"second\"}}");
	turns(f, 5);
	assert_int_equal(f->calls, 1);
	varlink_reply(f->hanging, json_pack("{s:s}", "a", "first"));
	assert_answer(client_receive(c), "", "a", "first");
	assert_answer(client_receive(c), "", "a", "second");
	client_free(c);
	turns(f, 3);
	assert_int_equal(f->cancelled, 0);
}

static void
end_with_calls_running(void **state)
{
	struct fixture *f = *state;
	struct test_client *c = client_new(f->loop, f->path);

	client_send(c, "{\"method\":\"t.Hang\"}");
	turns(f, 3);
	f->varlink = varlink_free(f->varlink);
	assert_int_equal(f->cancelled, 1);
	assert_null(client_receive(c));
	client_free(c);
}

static void
half_closed(void **state)
{
	struct fixture *f = *state;
	struct test_client *c = client_new(f->loop, f->path);

	client_send(c, "{\"method\":\"t.Echo\",\"parameters\":{\"a\":\"b\"}}");
	shutdown(c->fd, SHUT_WR);
	assert_answer(client_receive(c), "", "a", "b");
	assert_null(client_receive(c));
	client_free(c);
}

static void
slow_reader(void **state)
{
	struct fixture *f = *state;
	struct test_client *c = client_new(f->loop, f->path);
	struct test_client *other = client_new(f->loop, f->path);

	client_send(c, "{\"method\":\"t.Flood\",\"more\":true}");
	turns(f, 3);
	assert_int_equal(f->cancelled, 1);
	assert_answer(client_call(other, "{\"method\":\"t.Echo\",\"parameters\":{\"a\":\"b\"}}"),
	    "", "a", "b");
	client_free(c);
	client_free(other);
}

static void
no_memory_for_an_answer(void **state)
{
	struct fixture *f = *state;
	struct test_client *c = client_new(f->loop, f->path);

	assert_null(client_call(c, "{\"method\":\"t.NoMemory\"}"));
	client_free(c);
}

static void
clients_per_uid(void **state)
{
	struct fixture *f = *state;
	struct test_client *clients[LIMIT_CONTROL_CLIENTS_PER_UID], *over, *other;

	client_uid = 1001;
	for (int i = 0; i < LIMIT_CONTROL_CLIENTS_PER_UID; i++) {
		clients[i] = client_new(f->loop, f->path);
		turns(f, 1);
	}
	over = client_new(f->loop, f->path);
	assert_null(client_receive(over));
	client_uid = 1002;
	other = client_new(f->loop, f->path);
	json_t *answer = client_call(other, "{\"method\":\"t.Uid\"}");

	assert_int_equal(
	    json_integer_value(json_object_get(json_object_get(answer, "parameters"), "uid")),
	    1002);
	json_decref(answer);
	client_uid = 1001;
	client_free(over);
	client_free(clients[0]);
	turns(f, 3);
	clients[0] = client_new(f->loop, f->path);
	assert_answer(
	    client_call(clients[0], "{\"method\":\"t.Echo\",\"parameters\":{\"a\":\"b\"}}"), "",
	    "a", "b");
	for (int i = 0; i < LIMIT_CONTROL_CLIENTS_PER_UID; i++)
		client_free(clients[i]);
	client_free(other);
}

static void
short_of_descriptors(void **state)
{
	struct fixture *f = *state;
	struct test_client *c = client_new(f->loop, f->path);
	int lowest = dup(c->fd);
	struct rlimit old, low;

	close(lowest);
	getrlimit(RLIMIT_NOFILE, &old);
	low = (struct rlimit){lowest, old.rlim_max};
	setrlimit(RLIMIT_NOFILE, &low);
	client_send(c, "{\"method\":\"t.Echo\",\"parameters\":{\"a\":\"late\"}}");
	turns(f, 100);
	setrlimit(RLIMIT_NOFILE, &old);
	assert_int_equal(f->calls, 0);
	assert_int_equal(warnings, 1); /* it pauses instead of spinning */
	for (int i = 0; i < 300 && f->calls == 0; i++)
		loop_turn(f->loop, 5 * NSEC_PER_MSEC);
	assert_answer(client_receive(c), "", "a", "late");
	client_free(c);
}

#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    T(splits),
	    T(two_at_once),
	    T(not_a_call),
	    T(parameters_may_be_missing),
	    T(size_limit),
	    T(depth_limit),
	    T(more_and_oneway),
	    T(descriptor_with_its_message),
	    T(too_many_descriptors),
	    T(descriptor_without_message),
	    T(descriptor_in_answer),
	    T(hang_up_cancels),
	    T(hang_up_behind_a_waiting_call_cancels),
	    T(waiting_calls),
	    T(end_with_calls_running),
	    T(half_closed),
	    T(slow_reader),
	    T(no_memory_for_an_answer),
	    T(clients_per_uid),
	    T(short_of_descriptors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
