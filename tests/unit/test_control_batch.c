/* test_control_batch.c -- many files in one call, to one peer or to many, over a fake core */

#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/limits.h"
#include "unit/control_fixture.h"
#include "unit/scarce.h"

/* to: what it says of peers, an object that is taken over. */
static void
batch_send_to(struct fixture *f, json_t *to, unsigned names, unsigned n_fds, bool more)
{
	int fd = memory_file(1000), fds[LIMIT_BATCH];
	json_t *list = json_array(), *message;
	char name[16], *call;

	for (unsigned i = 0; i < names; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		json_array_append_new(list, json_string(name));
	}
	json_object_set_new(to, "names", list);
	message = json_pack(
	    "{s:s, s:b, s:o}", "method", "io.rwriter.WriteBatch", "more", more, "parameters", to);
	call = json_dumps(message, JSON_COMPACT);
	for (unsigned i = 0; i < n_fds; i++)
		fds[i] = fd;
	client_send_raw(f->client, call, strlen(call) + 1, fds, n_fds);
	free(call);
	json_decref(message);
	close(fd);
}

static void
batch_send(struct fixture *f, const char *peer, unsigned names, unsigned n_fds, bool more)
{
	batch_send_to(f, json_pack("{s:s}", "peer", peer), names, n_fds, more);
}

static void
batch_ends_each(void **state)
{
	static const struct {
		const char *peer, *state; /* NULL: does not begin */
	} CASES[] = {
	    {"b", "arrived"}, {"spooler", "stored"}, {"closed", "refused"}, {"nobody", NULL}};
	struct fixture *f = *state;
	int before;

	loop_turn(f->core.loop, 5 * NSEC_PER_MSEC); /* the client is accepted */
	before = open_fds();
	for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
		bool seen[LIMIT_BATCH] = {false}, continues = true;

		batch_send(f, CASES[i].peer, LIMIT_BATCH, LIMIT_BATCH, true);
		for (unsigned done = 0; done < LIMIT_BATCH;) {
			json_t *answer = client_receive(f->client);
			json_t *p = json_object_get(answer, "parameters");
			unsigned index = json_integer_value(json_object_get(p, "index"));
			const char *text = json_string_value(json_object_get(p, "text"));
			const char *ended = text_at(answer, "transfer", "state");

			assert_true(continues && index < LIMIT_BATCH && !seen[index]);
			assert_null(json_object_get(answer, "error"));
			continues = json_is_true(json_object_get(answer, "continues"));
			if (CASES[i].state == NULL)
				assert_string_equal(text, "nobody: no such peer is configured");
			seen[index] = CASES[i].state == NULL || strcmp(ended, CASES[i].state) == 0;
			done += seen[index];
			json_decref(answer);
		}
		assert_false(continues);
	}
	assert_int_equal(f->core.writes, 3 * LIMIT_BATCH);
	assert_int_equal(open_fds(), before);
}

static void
batch_does_not_begin(void **state)
{
	struct fixture *f = *state;

	batch_send(f, "b", 2, 1, true);
	assert_answer(client_receive(f->client), "io.rwriter.DescriptorMissing", "text",
	    "2 names came with 1 descriptors");
	batch_send(f, "b", 2, 2, false);
	assert_answer(client_receive(f->client), "org.varlink.service.ExpectedMore", "", "");
	batch_send(f, "b", 0, 0, true);
	assert_answer(client_receive(f->client), "org.varlink.service.InvalidParameter",
	    "parameter", "names");
	assert_int_equal(f->core.writes, 0);
}

/* Each file to its own peer, and no more peers at once than the width. */
static void
batch_to_many(void **state)
{
	static const char *const STATES[] = {"arrived", "stored", "refused", "failed"};
	struct fixture *f = *state;
	json_t *to = json_pack("{s:[s,s,s,s], s:i}", "peers", "b", "spooler", "closed", "nobody",
	    "width", LIMIT_BATCH);
	bool continues = true;
	unsigned right = 0;

	batch_send_to(f, to, 4, 4, true);
	while (continues) {
		json_t *answer = client_receive(f->client);
		json_t *p = json_object_get(answer, "parameters");
		unsigned index = json_integer_value(json_object_get(p, "index"));
		const char *ended = json_is_null(json_object_get(p, "transfer"))
					? "failed"
					: text_at(answer, "transfer", "state");

		continues = json_is_true(json_object_get(answer, "continues"));
		right += strcmp(ended, STATES[index]) == 0;
		json_decref(answer);
	}
	assert_int_equal(right, 4);
}

static void
batch_has_a_width(void **state)
{
	struct fixture *f = *state;

	/* Two at once where nothing is said: to a third one only when one of them is done. */
	batch_send_to(
	    f, json_pack("{s:[s,s,s]}", "peers", "slow", "slower", "slowest"), 3, 3, true);
	for (int i = 0; i < 10; i++)
		loop_turn(f->core.loop, 5 * NSEC_PER_MSEC);
	assert_int_equal(f->core.writes, 2);
}

static void
batch_says_its_width(void **state)
{
	struct fixture *f = *state;

	batch_send_to(f,
	    json_pack("{s:[s,s,s], s:i}", "peers", "slow", "slower", "slow", "width", 1), 3, 3,
	    true);
	for (int i = 0; i < 10; i++)
		loop_turn(f->core.loop, 5 * NSEC_PER_MSEC);
	assert_int_equal(f->core.writes, 2); /* the first, and the third, which goes there too */
	assert_string_equal(f->core.name, "f2");
}

/* The time of the call is not begun anew by those that had to wait. */
static void
batch_has_one_time(void **state)
{
	const uint64_t time = 60 * NSEC_PER_SEC, pause = NSEC_PER_MSEC;
	struct fixture *f = *state;

	batch_send_to(f,
	    json_pack("{s:[s,s], s:i, s:i}", "peers", "b", "slow", "width", 1, "timeoutMs",
		(int)(time / NSEC_PER_MSEC)),
	    2, 2, true);
	while (f->core.writes < 1)
		loop_turn(f->core.loop, 5 * NSEC_PER_MSEC);
	assert_in_range(f->core.timeout_ns, time / 2, time);
	while (f->core.writes < 2)
		loop_turn(f->core.loop, 5 * NSEC_PER_MSEC);
	assert_in_range(f->core.timeout_ns, 1, time - pause); /* the first took longer */
}

/* What the core has no place for waits, for no longer than its time. */
static void
batch_waits_for_a_place(void **state)
{
	struct fixture *f = *state;
	bool continues = true;
	unsigned arrived = 0;

	f->core.full = true;
	batch_send(f, "b", 2, 2, true);
	for (int i = 0; i < 10; i++)
		loop_turn(f->core.loop, 5 * NSEC_PER_MSEC);
	assert_int_equal(f->core.writes, 0);
	f->core.full = false;
	while (continues) {
		json_t *answer = client_receive(f->client);

		continues = json_is_true(json_object_get(answer, "continues"));
		arrived += strcmp(text_at(answer, "transfer", "state"), "arrived") == 0;
		json_decref(answer);
	}
	assert_int_equal(arrived, 2);

	f->core.full = true;
	batch_send_to(f, json_pack("{s:s, s:i}", "peer", "b", "timeoutMs", 150), 1, 1, true);
	assert_answer(client_receive(f->client), "", "text", "256 transfers are queued already");
}

static void
batch_without_its_peers(void **state)
{
	struct fixture *f = *state;
	json_t *wrong[] = {json_object(), json_pack("{s:[s]}", "peers", "b"),
	    json_pack("{s:s, s:[s,s]}", "peer", "b", "peers", "b", "b")};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		batch_send_to(f, wrong[i], 2, 2, true);
		assert_answer(client_receive(f->client), "org.varlink.service.InvalidParameter",
		    "parameter", "peers");
	}
	assert_int_equal(f->core.writes, 0);
}

static void
batch_ends_with_its_connection(void **state)
{
	struct fixture *f = *state;

	batch_send(f, "slow", LIMIT_BATCH, LIMIT_BATCH, true);
	json_decref(client_receive(f->client));
	close(f->client->fd);
	f->client->fd = -1;
	for (int i = 0; i < 10; i++)
		loop_turn(f->core.loop, 5 * NSEC_PER_MSEC);
	assert_int_equal(f->core.writes, LIMIT_BATCH_RUNNING);
	assert_int_equal(f->core.cancelled, LIMIT_BATCH_RUNNING);
}

static void
peers_are_named(void **state)
{
	struct fixture *f = *state;
	json_t *answer = client_call(f->client,
	    "{\"method\":\"io.rwriter.ExpandPeers\",\"parameters\":{\"peers\":\"@all\"}}");
	json_t *expected = json_pack("{s:[s,s,s]}", "peers", "a", "b", "c");

	assert_true(json_equal(json_object_get(answer, "parameters"), expected));
	json_decref(expected);
	json_decref(answer);
	assert_answer(client_call(f->client, "{\"method\":\"io.rwriter.ExpandPeers\","
					     "\"parameters\":{\"peers\":\"@racks\"}}"),
	    "io.rwriter.NoSuchPeers", "text", "@racks: there is no such group; there are @all");
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    T(batch_ends_each),
	    T(batch_does_not_begin),
	    T(batch_to_many),
	    T(batch_has_a_width),
	    T(batch_says_its_width),
	    T(batch_has_one_time),
	    T(batch_waits_for_a_place),
	    T(batch_without_its_peers),
	    T(batch_ends_with_its_connection),
	    T(peers_are_named),
	};

	return cmocka_run_group_tests_name("control_batch", tests, NULL, NULL);
}
