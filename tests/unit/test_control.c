/* test_control.c -- the socket's place, the methods, their privileges and parameters, over a fake
 * core */

#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/crc32c.h"
#include "base/log.h"
#include "control/control.h"
#include "control/socket.h"
#include "unit/control_fixture.h"
#include "unit/scarce.h"

/* A client whom the kernel says to be of this uid. */
static struct test_client *
client_as(struct fixture *f, uid_t uid)
{
	struct test_client *c;

	client_uid = uid;
	c = client_new(f->core.loop, f->path);
	json_decref(client_call(c, "{\"method\":\"io.rwriter.GetStatus\"}"));
	client_uid = -1;
	return c;
}

static json_t *
write_call(struct fixture *f, const char *parameters, bool more, int fd)
{
	char call[512];

	snprintf(call, sizeof(call),
	    "{\"method\":\"io.rwriter.Write\",\"more\":%s,\"parameters\":%s}",
	    more ? "true" : "false", parameters);
	client_send_raw(f->client, call, strlen(call) + 1, &fd, fd >= 0);
	return client_receive(f->client);
}

/* ---- looking ---- */

static void
regions(void **state)
{
	struct fixture *f = *state;
	json_t *answer = client_call(f->client, "{\"method\":\"io.rwriter.ListRegions\"}");
	json_t *list = json_object_get(json_object_get(answer, "parameters"), "regions");
	json_t *expected = json_pack(
	    "{s:i, s:s, s:s, s:s, s:s, s:s, s:s, s:b, s:n, s:s, s:s, s:i, s:i, s:i, "
	    "s:i, s:i, s:i, s:s, s:{s:s, s:i, s:i, s:s, s:s, s:n}, s:n}",
	    "id", 4, "region", "default", "peer", "c", "claimedName", "a", "address", "10.0.0.4",
	    "fabric", "verbs", "device", "mlx5_0", "keyed", 0, "fabricWhy", "state", "granted",
	    "sink", "memory", "size", 4096, "buffers", 1, "generation", 2, "arrivals", 1, "bytes",
	    17, "receiveCompletions", 0, "grantedAt", "2025-11-29T16:54:40.123Z", "lastArrival",
	    "name", "hello.txt", "offset", 0, "length", 17, "crc32c", "9b6a4ff3", "time",
	    "2025-11-29T16:54:40.123Z", "path", "lastHook");
	char crc[9];

	snprintf(crc, sizeof(crc), "%08x", crc32c(0, "Hello RDMA Write!", 17));
	json_object_set_new(json_object_get(expected, "lastArrival"), "crc32c", json_string(crc));
	assert_int_equal(json_array_size(list), 4);
	assert_true(json_equal(json_array_get(list, 3), expected));
	assert_true(json_is_null(json_object_get(json_array_get(list, 2), "lastArrival")));
	json_decref(answer);
	json_decref(expected);
}

static void
peers(void **state)
{
	struct fixture *f = *state;
	json_t *answer = client_call(f->client, "{\"method\":\"io.rwriter.ListPeers\"}");
	json_t *list = json_object_get(json_object_get(answer, "parameters"), "peers");
	json_t *expected =
	    json_pack("{s:s, s:n, s:n, s:b, s:n, s:s, s:n, s:n, s:b, s:n, s:n, s:i, s:i, s:s}",
		"name", "spare", "claimedName", "address", "configured", 1, "direction", "state",
		"idle", "fabric", "device", "keyed", 0, "fabricWhy", "since", "transfers", 0,
		"queued", 0, "lastError", "connection refused");

	assert_int_equal(json_array_size(list), 2);
	assert_true(json_equal(json_array_get(list, 1), expected));
	json_decref(answer);
	json_decref(expected);
}

static void
status(void **state)
{
	struct fixture *f = *state;
	json_t *answer = client_call(f->client, "{\"method\":\"io.rwriter.GetStatus\"}");
	json_t *p = json_object_get(answer, "parameters");
	json_t *notes = json_object_get(p, "notes");

	assert_string_equal(json_string_value(json_object_get(p, "version")), "0.1.0");
	assert_string_equal(json_string_value(json_object_get(p, "state")), "ready");
	assert_string_equal(json_string_value(json_object_get(p, "bootId")), "01020304050607ef");
	assert_int_equal(json_integer_value(json_object_get(p, "upNs")), 8 * NSEC_PER_SEC);
	assert_int_equal(json_array_size(json_object_get(p, "listeners")), 3);
	assert_int_equal(json_integer_value(json_object_get(p, "unproven")), 2);
	assert_int_equal(json_integer_value(json_object_get(p, "refusedAddress")), 1);
	assert_int_equal(json_integer_value(json_object_get(p, "refusedKeyMissing")), 6);
	assert_int_equal(json_integer_value(json_object_get(p, "refusedOther")), 7);
	assert_int_equal(json_array_size(notes), 1); /* one for the two fabrics of one section */
	assert_string_equal(json_string_value(json_array_get(notes, 0)),
	    "no other machine may write here yet: add \"allow = ADDRESS\" to [listen default] in "
	    "/etc/rwriter/rwriter.conf");
	json_decref(answer);
}

static void
open_region(void **state)
{
	static const struct {
		const char *parameters, *error, *text;
	} CASES[] = {
	    {"{\"which\":\"9\"}", "io.rwriter.NoSuchRegion", "9: no region"},
	    {"{\"which\":\"3\"}", "io.rwriter.NoArrival", "3: nothing lies whole"},
	};
	struct fixture *f = *state;
	char call[256], buf[64];
	json_t *answer = client_call(f->client, "{\"method\":\"io.rwriter.OpenRegion\"}");

	assert_string_equal(text_at(answer, "region", "peer"), "c");
	json_decref(answer);
	answer = client_call(
	    f->client, "{\"method\":\"io.rwriter.OpenRegion\",\"parameters\":{\"which\":\"c\"}}");
	assert_true(f->client->got_fd >= 0);
	assert_int_equal(pread(f->client->got_fd, buf, 17, 0), 17);
	assert_memory_equal(buf, "Hello RDMA Write!", 17);
	json_decref(answer);
	for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
		snprintf(call, sizeof(call),
		    "{\"method\":\"io.rwriter.OpenRegion\",\"parameters\":%s}",
		    CASES[i].parameters);
		assert_answer(client_call(f->client, call), CASES[i].error, "text", CASES[i].text);
	}
	f->core.n_regions = 0;
	assert_answer(client_call(f->client, "{\"method\":\"io.rwriter.OpenRegion\"}"),
	    "io.rwriter.NoArrival", "text", "nothing has arrived yet");
}

/* ---- writing ---- */

static void
write_arrives(void **state)
{
	struct fixture *f = *state;
	int fd = memory_file(100000);
	json_t *answer = write_call(f,
	    "{\"peer\":\"b\",\"name\":\"zeros\",\"region\":\"r\",\"timeoutMs\":1500,\"size\":null}",
	    false, fd);

	assert_null(json_object_get(answer, "error"));
	assert_null(json_object_get(answer, "continues"));
	assert_string_equal(text_at(answer, "transfer", "state"), "arrived");
	assert_string_equal(text_at(answer, "transfer", "name"), "zeros");
	assert_int_equal(strlen(text_at(answer, "transfer", "crc32c")), 8);
	assert_string_equal(f->core.region, "r");
	assert_int_equal(f->core.timeout_ns, 1500 * NSEC_PER_MSEC);
	assert_int_equal(f->core.uid, getuid());
	json_decref(answer);
	close(fd);
}

static void
write_tells_progress(void **state)
{
	struct fixture *f = *state;
	int fd = memory_file(300000), continues = 0;
	json_t *answer = write_call(f, "{\"peer\":\"b\",\"name\":\"zeros\"}", true, fd);

	while (json_is_true(json_object_get(answer, "continues"))) {
		assert_string_equal(text_at(answer, "transfer", "state"), "sending");
		assert_null(text_at(answer, "transfer", "crc32c"));
		json_decref(answer);
		answer = client_receive(f->client);
		continues++;
	}
	assert_true(continues >= 4);
	assert_string_equal(text_at(answer, "transfer", "state"), "arrived");
	json_decref(answer);
	close(fd);
}

static void
write_ends_badly(void **state)
{
	static const struct {
		const char *peer, *error, *state, *code;
	} CASES[] = {
	    {"closed", "io.rwriter.TransferRefused", "refused", "address"},
	    {"small", "io.rwriter.TransferRefused", "refused", "size"},
	    {"evil", "io.rwriter.TransferFailed", "failed", "internal"},
	    {"late", "io.rwriter.TransferDeadline", "deadline", NULL},
	};
	struct fixture *f = *state;
	int fd = memory_file(0);
	char parameters[64];

	for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
		snprintf(parameters, sizeof(parameters), "{\"peer\":\"%s\",\"name\":\"x\"}",
		    CASES[i].peer);
		json_t *answer = write_call(f, parameters, false, fd);
		const char *code = text_at(answer, "transfer", "code");

		assert_string_equal(
		    json_string_value(json_object_get(answer, "error")), CASES[i].error);
		assert_string_equal(text_at(answer, "transfer", "state"), CASES[i].state);
		assert_string_equal(
		    code != NULL ? code : "", CASES[i].code != NULL ? CASES[i].code : "");
		json_decref(answer);
	}
	close(fd);
}

static void
write_does_not_begin(void **state)
{
	struct fixture *f = *state;
	int fd = memory_file(0);

	assert_answer(write_call(f, "{\"peer\":\"b\",\"name\":\"x\"}", false, -1),
	    "io.rwriter.DescriptorMissing", "text", "first byte");
	assert_answer(write_call(f, "{\"peer\":\"nobody\",\"name\":\"x\"}", false, fd),
	    "io.rwriter.NotStarted", "text", "nobody: no such peer");
	close(fd);
}

static void
write_ends_with_its_connection(void **state)
{
	struct fixture *f = *state;
	int fd = memory_file(10);
	json_t *answer = write_call(f, "{\"peer\":\"slow\",\"name\":\"x\"}", true, fd);

	assert_true(json_is_true(json_object_get(answer, "continues")));
	json_decref(answer);
	close(f->client->fd);
	f->client->fd = -1;
	for (int i = 0; i < 10; i++)
		loop_turn(f->core.loop, 5 * NSEC_PER_MSEC);
	assert_int_equal(f->core.cancelled, 1);
	close(fd);
}

static void
write_ends_with_the_server(void **state)
{
	struct fixture *f = *state;
	int fd = memory_file(10);

	json_decref(write_call(f, "{\"peer\":\"slow\",\"name\":\"x\"}", true, fd));
	f->control = control_free(f->control);
	assert_int_equal(f->core.cancelled, 1);
	close(fd);
}

static void
write_may_discard(void **state)
{
	struct fixture *f = *state;
	int fd = memory_file(10);

	json_decref(write_call(
	    f, "{\"peer\":\"slow\",\"name\":\"x\",\"preserve\":true,\"discard\":true}", true, fd));
	f->control = control_free(f->control);
	assert_true(f->core.preserve);
	assert_int_equal(f->core.discarded, 1);
	close(fd);
}

/* ---- privileges and parameters ---- */

static void
privileges(void **state)
{
	static const char *const ADMINISTER[] = {
	    "{\"method\":\"io.rwriter.Release\",\"parameters\":{\"id\":1}}",
	    "{\"method\":\"io.rwriter.Disconnect\",\"parameters\":{\"peer\":\"10.0.0.1\"}}",
	    "{\"method\":\"io.rwriter.Reload\"}",
	};
	struct fixture *f = *state;
	struct test_client *stranger = client_as(f, geteuid() + 1000), *root = client_as(f, 0),
			   *self = client_as(f, geteuid());

	for (size_t i = 0; i < 3; i++)
		assert_answer(client_call(stranger, ADMINISTER[i]), "io.rwriter.PermissionDenied",
		    "text", "is for root and for uid");
	assert_int_equal(f->core.n_regions, 4);
	assert_answer(client_call(stranger, "{\"method\":\"io.rwriter.ListRegions\"}"), "", "", "");
	assert_answer(client_call(root, ADMINISTER[0]), "", "", "");
	assert_int_equal(f->core.n_regions, 3);
	assert_answer(client_call(self, ADMINISTER[1]), "", "", "");
	assert_answer(client_call(self, ADMINISTER[2]), "", "", "");
	client_free(stranger);
	client_free(root);
	client_free(self);
}

static void
parameters(void **state)
{
	static const struct {
		const char *call, *parameter;
	} CASES[] = {
	    {"{\"method\":\"io.rwriter.ListRegions\",\"parameters\":{\"peeer\":1}}", "peeer"},
	    {"{\"method\":\"io.rwriter.Release\"}", "id"},
	    {"{\"method\":\"io.rwriter.Release\",\"parameters\":{\"id\":\"1\"}}", "id"},
	    {"{\"method\":\"io.rwriter.Release\",\"parameters\":{\"id\":-1}}", "id"},
	    {"{\"method\":\"io.rwriter.Release\",\"parameters\":{\"id\":1.5}}", "id"},
	    {"{\"method\":\"io.rwriter.Release\",\"parameters\":{\"id\":4294967297}}", "id"},
	    {"{\"method\":\"io.rwriter.Release\",\"parameters\":{\"id\":null}}", "id"},
	    {"{\"method\":\"io.rwriter.OpenRegion\",\"parameters\":{\"which\":1}}", "which"},
	    {"{\"method\":\"io.rwriter.Write\",\"parameters\":{\"name\":\"x\"}}", "peer"},
	    {"{\"method\":\"io.rwriter.Write\",\"parameters\":{\"peer\":\"b\",\"name\":\"x\","
	     "\"timeoutMs\":9000000000000000000}}",
		"timeoutMs"},
	    {"{\"method\":\"io.rwriter.Write\",\"parameters\":{\"peer\":\"b\",\"name\":\"x\",\"X\":"
	     "null}}",
		"X"},
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++)
		assert_answer(client_call(f->client, CASES[i].call),
		    "org.varlink.service.InvalidParameter", "parameter", CASES[i].parameter);
	assert_int_equal(f->core.n_regions, 4);
	assert_answer(client_call(f->client,
			  "{\"method\":\"io.rwriter.OpenRegion\",\"parameters\":{\"which\":null}}"),
	    "", "", "");
}

static void
administering(void **state)
{
	struct fixture *f = *state;
	json_t *answer;

	assert_answer(client_call(f->client,
			  "{\"method\":\"io.rwriter.Release\",\"parameters\":{\"id\":77}}"),
	    "io.rwriter.NoSuchRegion", "text", "no region 77");
	assert_answer(
	    client_call(f->client,
		"{\"method\":\"io.rwriter.Disconnect\",\"parameters\":{\"peer\":\"\\u001b[1m\"}}"),
	    "io.rwriter.NotConnected", "text", "no connection with ");
	answer = client_call(f->client,
	    "{\"method\":\"io.rwriter.Disconnect\",\"parameters\":{\"peer\":\"10.0.0.1\"}}");
	assert_int_equal(json_integer_value(
			     json_object_get(json_object_get(answer, "parameters"), "connections")),
	    1);
	json_decref(answer);
	f->reload_result = -EINVAL;
	assert_answer(client_call(f->client, "{\"method\":\"io.rwriter.Reload\"}"),
	    "io.rwriter.ReloadFailed", "errors", "what is a port?");
}

static void
service(void **state)
{
	struct fixture *f = *state;

	assert_answer(client_call(f->client, "{\"method\":\"org.varlink.service.GetInfo\"}"), "",
	    "version", "0.1.0");
	assert_answer(
	    client_call(f->client, "{\"method\":\"org.varlink.service.GetInterfaceDescription\","
				   "\"parameters\":{\"interface\":\"io.rwriter\"}}"),
	    "", "description", "interface io.rwriter\n");
	assert_answer(
	    client_call(f->client, "{\"method\":\"org.varlink.service.GetInterfaceDescription\","
				   "\"parameters\":{\"interface\":\"io.other\"}}"),
	    "org.varlink.service.InterfaceNotFound", "interface", "io.other");
	assert_answer(client_call(f->client, "{\"method\":\"io.rwriter.Fly\"}"),
	    "org.varlink.service.MethodNotFound", "method", "io.rwriter.Fly");
	assert_answer(client_call(f->client, "{\"method\":\"io.other.Fly\"}"),
	    "org.varlink.service.InterfaceNotFound", "interface", "io.other");
	assert_answer(client_call(f->client, "{\"method\":\"Fly\"}"),
	    "org.varlink.service.InterfaceNotFound", "interface", "");
}

static void
described_methods_exist(void **state)
{
	static const char *const METHODS[] = {"Write(", "WriteBatch(", "OpenRegion(",
	    "ListRegions(", "ListPeers(", "ListTransfers(", "Explain(", "Events(", "GetStatus(",
	    "Release(", "Disconnect(", "Reload("};
	struct fixture *f = *state;
	json_t *answer =
	    client_call(f->client, "{\"method\":\"org.varlink.service.GetInterfaceDescription\","
				   "\"parameters\":{\"interface\":\"io.rwriter\"}}");
	const char *text = json_string_value(
	    json_object_get(json_object_get(answer, "parameters"), "description"));

	for (size_t i = 0; i < sizeof(METHODS) / sizeof(METHODS[0]); i++) {
		char call[128];

		assert_non_null(strstr(text, METHODS[i]));
		snprintf(call, sizeof(call),
		    "{\"method\":\"io.rwriter.%.*s\",\"parameters\":{\"?\":0}}",
		    (int)strlen(METHODS[i]) - 1, METHODS[i]);
		assert_answer(client_call(f->client, call), "org.varlink.service.InvalidParameter",
		    "parameter", "");
	}
	json_decref(answer);
}

/* Every field of what is answered is described. */
static void
assert_described(const char *text, json_t *value)
{
	char field[64];
	const char *key;
	json_t *item;
	size_t i;

	json_object_foreach (value, key, item) {
		snprintf(field, sizeof(field), "%s: ", key);
		assert_non_null(strstr(text, field));
		assert_described(text, item);
	}
	json_array_foreach (value, i, item) {
		assert_described(text, item);
	}
}

static void
answers_are_described(void **state)
{
	static const char *const CALLS[] = {"io.rwriter.ListRegions", "io.rwriter.ListPeers",
	    "io.rwriter.ListTransfers", "io.rwriter.Explain", "io.rwriter.GetStatus"};
	struct fixture *f = *state;
	int fd = memory_file(1);
	json_t *described =
	    client_call(f->client, "{\"method\":\"org.varlink.service.GetInterfaceDescription\","
				   "\"parameters\":{\"interface\":\"io.rwriter\"}}");
	const char *text = json_string_value(
	    json_object_get(json_object_get(described, "parameters"), "description"));
	json_t *answer = write_call(f, "{\"peer\":\"b\",\"name\":\"x\"}", false, fd);

	assert_described(text, json_object_get(answer, "parameters"));
	json_decref(answer);
	for (size_t i = 0; i < sizeof(CALLS) / sizeof(CALLS[0]); i++) {
		char call[64];

		snprintf(call, sizeof(call), "{\"method\":\"%s\"}", CALLS[i]);
		answer = client_call(f->client, call);
		assert_described(text, json_object_get(answer, "parameters"));
		json_decref(answer);
	}
	json_decref(described);
	close(fd);
}

/* ---- the socket's place ---- */

static void
place(void **state)
{
	struct fixture *f = *state;
	struct stat st;
	mode_t mode;
	struct control *second;
	char path[200];
	int fd;

	assert_int_equal(stat(f->path, &st), 0);
	/* cppcheck-suppress getgrnamCalled */
	mode = getgrnam("rwriter") != NULL && geteuid() == 0 ? 0660 : 0600;
	assert_int_equal(st.st_mode & 0777, mode);
	assert_int_equal(control_new(&f->env, -1, &second), -EADDRINUSE);
	assert_non_null(strstr(last_log, "another rwriterd"));

	memset(path, 'x', sizeof(path));
	path[sizeof(path) - 1] = '\0';
	assert_int_equal(control_socket_listen(path, &fd), -ENAMETOOLONG);
	assert_non_null(strstr(last_log, "at most 107"));
	assert_int_equal(control_socket_listen("no-such-directory/s", &fd), -ENOENT);
	assert_int_equal(control_socket_listen("/dev/null", &fd), -EEXIST);
	assert_int_equal(access("/dev/null", F_OK), 0);
}

static void
stale_socket_and_own_directory(void **state)
{
	char dir[64], own[80], path[96];
	int fd;

	(void)state;
	snprintf(dir, sizeof(dir), "test_control.dir.%d", (int)getpid());
	snprintf(own, sizeof(own), "%s/rwriter", dir);
	snprintf(path, sizeof(path), "%s/io.rwriter", own);
	assert_int_equal(mkdir(dir, 0700), 0);
	assert_int_equal(control_socket_listen(path, &fd), 0);
	close(fd); /* as a daemon that died leaves it */
	assert_int_equal(access(path, F_OK), 0);
	assert_int_equal(control_socket_listen(path, &fd), 0);
	close(client_connect(path));
	close(fd);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(own), 0);
	assert_int_equal(rmdir(dir), 0);
}

/* ---- memory ---- */

/* The server answers or hangs up: it is never silent. */
static void
call_and_hang_up(struct fixture *f, struct test_client *c, const char *call, int fd)
{
	c->fd = client_connect(f->path);
	c->len = 0;
	client_send_raw(c, call, strlen(call) + 1, &fd, fd >= 0);
	while (memchr(c->buf, '\0', c->len) == NULL) {
		ssize_t n = client_read(c);

		assert_int_not_equal(n, -1);
		if (n == 0)
			break;
	}
	close(c->fd);
	c->fd = -1;
	loop_turn(f->core.loop, NSEC_PER_MSEC);
}

static void
call_everything(struct fixture *f, struct test_client *c, int fd)
{
	call_and_hang_up(f, c, "{\"method\":\"io.rwriter.GetStatus\"}", -1);
	call_and_hang_up(f, c, "{\"method\":\"io.rwriter.ListRegions\"}", -1);
	call_and_hang_up(f, c, "{\"method\":\"io.rwriter.ListPeers\"}", -1);
	call_and_hang_up(f, c, "{\"method\":\"io.rwriter.OpenRegion\"}", -1);
	call_and_hang_up(f, c, "{\"method\":\"io.rwriter.Release\"}", -1);
	call_and_hang_up(f, c,
	    "{\"method\":\"io.rwriter.Write\",\"parameters\":{\"peer\":\"b\",\"name\":\"x\"}}", fd);
	call_and_hang_up(f, c,
	    "{\"method\":\"io.rwriter.Write\",\"more\":true,\"parameters\":{\"peer\":\"b\","
	    "\"name\":\"x\"}}",
	    fd);
}

static void
memory_is_short(void **state)
{
	struct fixture *f = *state;
	struct test_client *c = calloc(1, sizeof(*c));
	int fd = memory_file(10), before;
	unsigned n = 0, failed_starts = 0;
	bool ran_short;

	f->control = control_free(f->control);
	loop_turn(f->core.loop, NSEC_PER_MSEC);
	before = open_fds();
	c->loop = f->core.loop;
	c->got_fd = -1;
	json_set_alloc_funcs(malloc, free); /* jansson's fail too: this malloc is wrapped */
	do {
		scarce_begin(++n);
		if (control_new(&f->env, -1, &f->control) == 0)
			call_everything(f, c, fd);
		else
			failed_starts++;
		ran_short = scarce_end();
		f->control = control_free(f->control);
		loop_turn(f->core.loop, NSEC_PER_MSEC);
		if (c->got_fd >= 0)
			close(c->got_fd);
		c->got_fd = -1;
		assert_int_equal(open_fds(), before);
	} while (ran_short);
	assert_true(failed_starts >= 3); /* the control, its listener, its timer */
	assert_true(n > 100);
	close(fd);
	free(c);
}

#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    T(regions),
	    T(peers),
	    T(status),
	    T(open_region),
	    T(write_arrives),
	    T(write_tells_progress),
	    T(write_ends_badly),
	    T(write_does_not_begin),
	    T(write_ends_with_its_connection),
	    T(write_ends_with_the_server),
	    T(write_may_discard),
	    T(privileges),
	    T(parameters),
	    T(administering),
	    T(service),
	    T(described_methods_exist),
	    T(answers_are_described),
	    T(place),
	    T(stale_socket_and_own_directory),
	    T(memory_is_short),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
