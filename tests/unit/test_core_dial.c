/* test_core_dial.c -- getting a connection: two fabrics in a race, several addresses, host names,
 * and what a refusal means
 */

#include "config.h"

#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fake/fake.h"
#include "unit/world.h"
#include "wire/rwp.h"

/* ---- names ---- */

static bool names_unknown; /* no name server yet */
static bool names_stuck;   /* ... or one that does not answer for "slow.test" */
static unsigned lookups;

/* Nobody listens on 127.0.0.9. */
static const struct {
	const char *name;
	const char *addresses[2];
} NAMES[] = {
    {"b.test", {"127.0.0.1"}},
    {"slow.test", {"127.0.0.1"}},
    {"second.test", {"127.0.0.9", "127.0.0.1"}},
    {"nowhere.test", {"127.0.0.9", "127.0.0.8"}},
};

int __real_getaddrinfo(const char *, const char *, const struct addrinfo *, struct addrinfo **);
int __wrap_getaddrinfo(const char *, const char *, const struct addrinfo *, struct addrinfo **);

static int
add_addresses(unsigned n, const char *port, const struct addrinfo *hints, struct addrinfo **ret)
{
	int error = 0;

	for (unsigned i = 0; i < 2 && NAMES[n].addresses[i] != NULL && error == 0; i++) {
		error = __real_getaddrinfo(NAMES[n].addresses[i], port, hints, ret);
		if (error == 0)
			ret = &(*ret)->ai_next;
	}
	return error;
}

/* On a thread of the resolve pool. */
int
__wrap_getaddrinfo(
    const char *name, const char *port, const struct addrinfo *hints, struct addrinfo **ret)
{
	__atomic_add_fetch(&lookups, 1, __ATOMIC_RELAXED);
	while (strcmp(name, "slow.test") == 0 && __atomic_load_n(&names_stuck, __ATOMIC_RELAXED))
		usleep(1000);
	if (__atomic_load_n(&names_unknown, __ATOMIC_RELAXED))
		return EAI_AGAIN;
	for (unsigned i = 0; i < sizeof(NAMES) / sizeof(NAMES[0]); i++)
		if (strcmp(name, NAMES[i].name) == 0)
			return add_addresses(i, port, hints, ret);
	return EAI_NONAME;
}

static void
set(bool *what, bool value)
{
	__atomic_store_n(what, value, __ATOMIC_RELAXED);
}

static int
teardown(void **state)
{
	set(&names_unknown, false);
	set(&names_stuck, false);
	return world_teardown(state);
}

/* ---- */

static void
arrives(struct world *w, const char *peer)
{
	struct outcome o;

	world_write(w, &o, peer, 10);
	assert_string_equal(o.view.text, "");
	assert_int_equal(o.view.state, TRANSFER_ARRIVED);
}

static void
with_two_fabrics(struct world *w, const char *lines_a, const char *lines_b)
{
	world_two_fabrics = true;
	world_reopen(w, lines_a, lines_b);
}

static void
count_asking(void *arg, const struct peer_view *v)
{
	*(unsigned *)arg += strcmp(v->state, "connecting") == 0;
}

/* Attempts whose request is out. */
static unsigned
asking(struct core *core)
{
	unsigned n = 0;

	core_each_peer(core, count_asking, &n);
	return n;
}

#define A_FAKE  0 /* fabrics of fake_conn() */
#define A_VERBS 1

/* Begins a write whose first attempt keeps the target busy for longer than the second waits, and
 * not as long as an attempt has; waits for its end. */
static void
write_with_a_slow_start(struct world *w, struct outcome *o)
{
	world_begin(w, o, "b", 10);
	WORLD_UNTIL(w, fake_conn(A_FAKE, 0) != NULL);
	fake.late_mem = 400; /* turns for b's areas, each of a millisecond or two */
	WORLD_UNTIL(w, world_connections(w->b) == 1);
	fake.late_mem = 0;
	WORLD_UNTIL(w, usleep(1000) < 0 || o->done);
	assert_string_equal(o->view.text, "");
	assert_int_equal(o->view.state, TRANSFER_ARRIVED);
}

/* ---- two fabrics ---- */

/* The second starts 300 ms after the first, beside it, and wins; the first ends, and does not come
 * back. */
static void
second_fabric_wins(void **state)
{
	struct world *w = *state;
	uint64_t began = loop_now();
	struct outcome o;

	with_two_fabrics(w, NULL, NULL);
	fake.cut = true; /* swallows the first request */
	world_begin(w, &o, "b", 10);
	WORLD_UNTIL(w, asking(w->a) == 1);
	assert_null(fake_conn(A_VERBS, 0));
	fake.cut = false;
	WORLD_UNTIL(w, fake_conn(A_VERBS, 0) != NULL);
	assert_true(loop_now() - began >= 300 * NSEC_PER_MSEC);
	assert_non_null(fake_conn(A_FAKE, 0));
	WORLD_UNTIL(w, o.done);
	assert_int_equal(o.view.state, TRANSFER_ARRIVED);
	assert_string_equal(o.view.fabric, "verbs");
	WORLD_UNTIL(w, fake_conn(A_FAKE, 0) == NULL);
	assert_int_equal(world_connections(w->a), 1);

	core_disconnect(w->a, "b");
	WORLD_UNTIL(w, world_connections(w->a) == 0);
	world_begin(w, &o, "b", 10);
	WORLD_UNTIL(w, fake_conn(A_VERBS, 0) != NULL); /* remembered */
	assert_null(fake_conn(A_FAKE, 0));
	WORLD_UNTIL(w, o.done);
	assert_string_equal(o.view.fabric, "verbs");
}

/* Both are answered: the target loses the one that came too late. */
static void
loser_is_destroyed(void **state)
{
	struct world *w = *state;
	struct outcome o;

	with_two_fabrics(w, NULL, NULL);
	write_with_a_slow_start(w, &o);
	assert_string_equal(o.view.fabric, "verbs");
	WORLD_UNTIL(w, world_connections(w->a) == 1 && world_connections(w->b) == 1);
	assert_int_equal(w->arrivals, 1);
}

/* While there is another to be tried an attempt has 2 s; the last has all of [limits] setup. */
static void
nobody_answers(void **state)
{
	struct world *w = *state;
	uint64_t began = loop_now();
	struct outcome o;

	with_two_fabrics(w, "[limits]\nsetup = 3s\n", NULL);
	fake.cut = true;
	world_begin(w, &o, "b", 10);
	WORLD_UNTIL(w, fake_conn(A_VERBS, 0) != NULL);
	WORLD_UNTIL(w, fake_conn(A_FAKE, 0) == NULL);
	assert_true(loop_now() - began >= 2 * NSEC_PER_SEC);
	assert_false(o.done);
	WORLD_UNTIL(w, o.done);
	assert_true(loop_now() - began >= 3 * NSEC_PER_SEC);
	assert_int_equal(o.view.state, TRANSFER_FAILED);
	assert_string_equal(o.view.text, "no answer within 3 s (connecting) "
					 "(fake: no answer within 2 s (connecting))");
}

/* Established it is no attempt any more: then [limits] setup counts, not the 2 s. */
static void
no_grant(void **state)
{
	struct world *w = *state;
	uint64_t began = loop_now();
	struct outcome o;

	with_two_fabrics(w, "[limits]\nsetup = 2500ms\n", NULL);
	world_begin(w, &o, "b", 10);
	WORLD_UNTIL(w, world_regions(w) == 1); /* HELLO has come */
	fake.cut = true;
	WORLD_UNTIL(w, o.done);
	assert_true(loop_now() - began >= 2500 * NSEC_PER_MSEC);
	assert_string_equal(o.view.text, "no answer within 2.5 s (greeting)");
}

/* ---- refusals ---- */

/* The target has said no in its own words: no other fabric is tried. */
static void
reject_is_final(void **state)
{
	struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x0a000001)};
	struct world *w = *state;
	struct outcome o;

	with_two_fabrics(
	    w, NULL, "[listen strict]\naddress = 127.0.0.1\nport = 7473\nallow = 10.1.0.0/16\n");
	fake.from = (struct sockaddr *)&from;
	world_begin(w, &o, "127.0.0.1:7473", 10);
	WORLD_UNTIL(w, o.done || fake_conn(A_VERBS, 0) != NULL);
	assert_int_equal(o.view.state, TRANSFER_REFUSED);
	assert_int_equal(o.view.code, RWP_E_ADDRESS);
}

/* No answer of the fabric itself is: the next is tried at once. */
static void
nobody_there_is_not_final(void **state)
{
	struct world *w = *state;
	struct outcome o;

	with_two_fabrics(w, NULL, NULL);
	world_write(w, &o, "127.0.0.1:9", 10);
	assert_int_equal(o.view.state, TRANSFER_FAILED);
	assert_string_equal(o.view.text, "nobody listens there (fake: nobody listens there)");
}

/* A write that was begun before waits for its peer, as one that has lost it; to a new one it is
 * told. */
static void
begun_again_waits(void **state)
{
	struct world *w = *state;
	struct outcome o;
	struct write_request r = {
	    .peer = "127.0.0.1:9", .name = "again", .fd = world_file(10), .again = true};

	world_reopen(w, "[limits]\nreconnect = 1s\n", NULL);
	assert_int_equal(world_write_request(w, &o, r), 0);
	WORLD_UNTIL(w, o.done || o.view.state == TRANSFER_RECONNECTING);
	assert_false(o.done);
	WORLD_UNTIL(w, o.done);
	assert_int_equal(o.view.state, TRANSFER_FAILED);
	assert_non_null(strstr(o.view.text, "nobody listens there"));
	assert_non_null(strstr(o.view.text, "to get on"));
	close(r.fd);
}

/* The target has one place, and our first attempt holds it: BUSY is our own doing. */
static void
busy_with_ourselves(void **state)
{
	struct world *w = *state;
	struct outcome o;

	with_two_fabrics(w, NULL, "[limits]\nunproven = 1\n");
	write_with_a_slow_start(w, &o);
	assert_string_equal(o.view.fabric, "fake");
	assert_non_null(strstr(o.view.fabric_why, "1 of 1 connections are being set up"));
}

/* ---- room for one more ---- */

/* An idle connection that does not suit is given up for one that does. */
static void
idle_makes_room(void **state)
{
	struct write_request r = {.peer = "b", .name = "x", .region = "other"};
	struct world *w = *state;
	struct outcome o;

	world_reopen(w, "[limits]\nconnections = 1\n", "[region other]\n");
	arrives(w, "b");
	r.fd = world_file(10);
	assert_int_equal(world_write_request(w, &o, r), 0);
	close(r.fd);
	WORLD_UNTIL(w, o.done);
	assert_int_equal(o.view.state, TRANSFER_ARRIVED);
	arrives(w, "127.0.0.1:7472"); /* another peer's as well */
	assert_int_equal(world_connections(w->a), 1);
}

/* ---- host names and several addresses ---- */

static void
next_address(void **state)
{
	struct world *w = *state;
	struct outcome o;

	world_write(w, &o, "second.test:7472", 10);
	assert_int_equal(o.view.state, TRANSFER_ARRIVED);
	assert_string_equal(o.view.address, "127.0.0.1:7472");
	assert_string_equal(o.view.fabric_why, "fake: nobody listens there");
	world_write(w, &o, "nowhere.test:7472", 10);
	assert_int_equal(o.view.state, TRANSFER_FAILED);
	assert_non_null(strstr(o.view.text, "nobody listens there"));
}

static void
names_are_kept(void **state)
{
	struct world *w = *state;

	lookups = 0;
	world_reopen(w, "[peer n]\naddress = b.test\nport = 7472\n", NULL);
	for (int i = 0; i < 3; i++) {
		arrives(w, "n");
		core_disconnect(w->a, "n");
		WORLD_UNTIL(w, world_connections(w->a) == 0);
	}
	assert_int_equal(__atomic_load_n(&lookups, __ATOMIC_RELAXED), 1);
}

static void
unknown_name(void **state)
{
	struct world *w = *state;
	struct outcome o;

	world_write(w, &o, "no.test", 10);
	assert_int_equal(o.view.state, TRANSFER_FAILED);
	assert_non_null(strstr(o.view.text, "cannot be found: \"no.test\": "));
	assert_string_equal(o.view.fix, "name a host that resolves, or an address");
	set(&names_unknown, true);
	world_write(w, &o, "b.test:7472", 10);
	assert_int_equal(o.view.state, TRANSFER_FAILED);
	set(&names_unknown, false); /* a failure is not kept */
	arrives(w, "b.test:7472");
}

/* Name servers that do not answer hold up nobody else. */
static void
stuck_names(void **state)
{
	struct world *w = *state;
	struct outcome o[2];

	set(&names_stuck, true);
	world_begin(w, &o[0], "slow.test:7472", 10);
	world_begin(w, &o[1], "slow.test:1", 10);
	arrives(w, "b");
	assert_false(o[0].done || o[1].done);
	set(&names_stuck, false);
	WORLD_UNTIL(w, o[0].done && o[1].done);
	assert_int_equal(o[0].view.state, TRANSFER_ARRIVED);
	assert_string_equal(o[1].view.text, "nobody listens there");
}

/* An allow line names a peer whose address is not known at the start: it will be. */
static void
allowed_by_a_later_name(void **state)
{
	struct world *w = *state;
	struct outcome o;

	set(&names_unknown, true);
	world_reopen(w, NULL,
	    "[peer writer]\naddress = b.test\n"
	    "[listen strict]\naddress = 127.0.0.1\nport = 7473\nallow = writer\n");
	world_write(w, &o, "127.0.0.1:7473", 10);
	assert_int_equal(o.view.state, TRANSFER_REFUSED);
	assert_int_equal(o.view.code, RWP_E_ADDRESS);
	lookups = 0;
	set(&names_unknown, false);
	WORLD_UNTIL(w, __atomic_load_n(&lookups, __ATOMIC_RELAXED) > 0); /* without being asked */
	world_turns(w, 0.1);
	arrives(w, "127.0.0.1:7473");
}

/* ---- reload during a dial ---- */

/* What has begun goes where it was sent; the next goes to the new place. */
static void
reload_moves_the_peer(void **state)
{
	struct world *w = *state;
	struct outcome o;

	with_two_fabrics(w, "[peer c]\naddress = 127.0.0.1\nport = 7472\n", NULL);
	fake.cut = true; /* swallows the first request */
	world_begin(w, &o, "c", 10);
	WORLD_UNTIL(w, asking(w->a) == 1);
	fake.cut = false;
	world_reload(w, w->a, "[peer c]\naddress = 127.0.0.1\nport = 9999\n");
	WORLD_UNTIL(w, o.done);
	assert_int_equal(o.view.state, TRANSFER_ARRIVED);
	assert_string_equal(o.view.address, "127.0.0.1:7472");
	assert_string_equal(o.view.fabric, "verbs");
	core_disconnect(w->a, "c");
	world_write(w, &o, "c", 10);
	assert_int_equal(o.view.state, TRANSFER_FAILED);
	assert_non_null(strstr(o.view.text, "nobody listens there"));
}

static void
reload_drops_the_peer(void **state)
{
	struct world *w = *state;
	struct outcome o;

	set(&names_stuck, true);
	world_reopen(w, "[peer c]\naddress = slow.test\nport = 7472\n", NULL);
	world_begin(w, &o, "c", 10);
	world_turns(w, 0.05);
	world_reload(w, w->a, NULL);
	set(&names_stuck, false);
	WORLD_UNTIL(w, o.done);
	assert_int_equal(o.view.state, TRANSFER_ARRIVED);
}

/* ---- the Nth allocation fails ---- */

/* ... while names are looked up that an allow line needs: nobody touches what is gone. */
static bool
opens(void)
{
	static struct world w;
	bool opened = world_open(&w) == 0;

	world_close(&w);
	return opened;
}

static void
no_memory_while_names_are_looked_up(void **state)
{
	(void)state;
	world_lines_a = "[peer c]\naddress = b.test\n[peer d]\naddress = second.test\n"
			"[listen other]\naddress = 127.0.0.1\nport = 7474\nallow = c\nallow = d\n";
	assert_true(world_each_allocation_fails(opens) > 10);
	world_lines_a = NULL;
}

#define NAMED(fn) cmocka_unit_test_setup_teardown(fn, world_setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(second_fabric_wins),
	    TEST(loser_is_destroyed),
	    TEST(nobody_answers),
	    TEST(no_grant),
	    TEST(reject_is_final),
	    TEST(nobody_there_is_not_final),
	    TEST(begun_again_waits),
	    TEST(busy_with_ourselves),
	    TEST(idle_makes_room),
	    NAMED(next_address),
	    NAMED(names_are_kept),
	    NAMED(unknown_name),
	    NAMED(stuck_names),
	    NAMED(allowed_by_a_later_name),
	    TEST(reload_moves_the_peer),
	    NAMED(reload_drops_the_peer),
	    cmocka_unit_test(no_memory_while_names_are_looked_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
