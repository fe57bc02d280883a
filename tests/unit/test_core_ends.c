/* test_core_ends.c -- how transfers and daemons end: stop, drain, disconnect, cancel, and observers
 * that call back into the core
 */

#include "config.h"

#include <errno.h>
#include <unistd.h>

#include "fake/fake.h"
#include "unit/world.h"
#include "wire/rwp.h"

#define TOO_LONG (4 << 20) /* bytes that take far longer than any test at a crawl */

/* [peer c] is b under another name: a second connection to it. */
#define TWO_NAMES                                      \
	"[peer c]\naddress = 127.0.0.1\nport = 7472\n" \
	"[peer d]\naddress = 127.0.0.1\nport = 7472\n"
#define TWO_NAMES_ONCE TWO_NAMES "[limits]\nreconnect = 0\n"

/* A transfer on a connection that has carried another before, of which nothing has arrived. */
static void
begin_on_reused(struct world *w, struct outcome *o)
{
	world_write(w, o, "b", 100000);
	fake.turn_bytes = 8;
	world_begin(w, o, "b", TOO_LONG);
	WORLD_UNTIL(w, o->view.state == TRANSFER_SENDING);
	assert_int_equal(o->view.arrived, 0);
}

/* Some of it has arrived; the rest never will, unless it is made to go faster. */
static void
half_way(struct world *w, struct outcome *o)
{
	world_half_way(w, o);
	fake.turn_bytes = 8;
}

/* ---- stop ---- */

/* A second stop does not wait, and nothing gets another try on a fresh connection. */
static void
stop_at_once(void **state)
{
	struct world *w = *state;
	struct outcome o;

	begin_on_reused(w, &o);
	core_stop(w->a);
	assert_false(w->stopped_a);
	core_stop(w->a);
	fake.turn_bytes = 1 << 20; /* with another try it would arrive */
	world_fails_with(w, &o, "was not written to the end: the daemon here stops");
	WORLD_UNTIL(w, w->stopped_a);
	assert_int_equal(w->arrivals, 1);
}

static void
stop_while_dialling(void **state)
{
	struct world *w = *state;
	struct outcome o;

	world_two_fabrics = true;
	world_reopen(w, NULL, NULL);
	fake.cut = true;
	world_begin(w, &o, "b", 10);
	WORLD_UNTIL(w, fake_conn(0, 0) != NULL);
	core_stop(w->a);
	core_stop(w->a);
	fake.cut = false;
	world_fails_with(w, &o, "was not written to the end: the daemon here stops");
	WORLD_UNTIL(w, w->stopped_a);
	assert_int_equal(world_connections(w->b), 0);
}

/* A transfer that is dialled for has its time as well. */
static void
stop_lets_a_dial_finish(void **state)
{
	struct world *w = *state;
	struct outcome o;

	world_begin(w, &o, "b", 100000);
	core_stop(w->a);
	WORLD_UNTIL(w, o.done);
	assert_int_equal(o.view.state, TRANSFER_ARRIVED);
	WORLD_UNTIL(w, w->stopped_a);
}

static void
stopped_core_takes_nothing(void **state)
{
	struct world *w = *state;
	struct outcome o;
	int fd = world_file(10);

	core_stop(w->a);
	assert_int_equal(world_write_fd(w, &o, "b", "file", fd), -ESHUTDOWN);
	assert_string_equal(o.error, "the daemon stops");
	close(fd);
}

/* ---- a target that stops ---- */

static void
target_drains(void **state)
{
	struct world *w = *state;
	struct outcome o;

	half_way(w, &o);
	core_stop(w->b);
	world_turns(w, 0.1);
	assert_false(w->stopped_b);
	fake.turn_bytes = 1 << 20;
	WORLD_UNTIL(w, o.done);
	assert_int_equal(o.view.state, TRANSFER_ARRIVED);
	WORLD_UNTIL(w, w->stopped_b);
}

/* ... but only for [limits] stop. */
static void
target_drains_for_a_while(void **state)
{
	struct world *w = *state;
	struct outcome o;
	uint64_t began;

	world_reopen(w, "[limits]\nreconnect = 0\n", "[limits]\nstop = 300ms\n");
	half_way(w, &o);
	began = loop_now();
	core_stop(w->b);
	world_fails_with(w, &o, "ended the connection: the daemon stops");
	assert_int_equal(o.view.code, RWP_E_SHUTDOWN);
	assert_true(loop_now() - began >= 300 * NSEC_PER_MSEC);
	WORLD_UNTIL(w, w->stopped_b);
}

/* While it waits for one transfer it begins no other: not on a connection that is open ... */
static void
draining_target_takes_no_more(void **state)
{
	struct world *w = *state;
	struct outcome running, late;

	world_reopen(w, TWO_NAMES, NULL);
	world_write(w, &late, "c", 10);
	half_way(w, &running);
	core_stop(w->b);
	world_turns(w, 0.1);
	world_begin(w, &late, "c", 10);
	WORLD_UNTIL(w, late.done);
	assert_int_equal(late.view.state, TRANSFER_FAILED);
	assert_string_equal(late.view.text, "nobody listens there");
	fake.turn_bytes = 1 << 20;
	WORLD_UNTIL(w, running.done);
	assert_int_equal(running.view.state, TRANSFER_ARRIVED);
	WORLD_UNTIL(w, w->stopped_b);
	assert_int_equal(w->arrivals, 2);
}

/* ... and not one that was under way before its writer could know. */
static void
draining_target_refuses_what_comes(void **state)
{
	struct world *w = *state;
	struct outcome running, late;

	world_reopen(w, TWO_NAMES_ONCE, NULL);
	world_write(w, &late, "c", 10);
	half_way(w, &running);
	world_begin(w, &late, "c", 10);
	core_stop(w->b);
	WORLD_UNTIL(w, late.done);
	assert_int_equal(late.view.state, TRANSFER_FAILED);
	assert_int_equal(late.view.code, RWP_E_SHUTDOWN);
	fake.turn_bytes = 1 << 20;
	WORLD_UNTIL(w, running.done);
	assert_int_equal(running.view.state, TRANSFER_ARRIVED);
	assert_int_equal(w->arrivals, 2);
}

/* ---- disconnect ---- */

static void
disconnect_ends_transfers(void **state)
{
	struct world *w = *state;
	struct outcome o;

	begin_on_reused(w, &o);
	assert_int_equal(core_disconnect(w->a, "b"), 1);
	fake.turn_bytes = 1 << 20; /* with another try it would arrive */
	world_fails_with(w, &o, "was disconnected by an operator here");
	assert_int_equal(w->arrivals, 1);
}

static void
disconnect_ends_dials(void **state)
{
	struct world *w = *state;
	struct outcome o;

	fake.cut = true;
	world_begin(w, &o, "b", 10);
	WORLD_UNTIL(w, fake_conn(0, 0) != NULL);
	assert_int_equal(core_disconnect(w->a, "127.0.0.1"), 1); /* by its address */
	fake.cut = false;
	world_fails_with(w, &o, "was disconnected by an operator here");
	WORLD_UNTIL(w, world_connections(w->a) == 0);
}

/* Each connection counts once, however often it is ended. */
static void
disconnect_counts(void **state)
{
	struct world *w = *state;
	struct outcome o;

	world_reopen(w, TWO_NAMES, NULL);
	world_write(w, &o, "b", 10);
	world_write(w, &o, "c", 10);
	assert_int_equal(core_disconnect(w->a, "nobody"), 0);
	assert_int_equal(core_disconnect(w->b, "a"), 2); /* by the name that a claims */
	assert_int_equal(core_disconnect(w->b, "a"), 0);
	WORLD_UNTIL(w, world_connections(w->a) == 0);
	world_write(w, &o, "c", 10);
	assert_int_equal(core_disconnect(w->a, "c"), 1);
	assert_int_equal(core_disconnect(w->a, "c"), 0);
}

/* ---- cancel ---- */

struct canceller {
	struct transfer *transfer;
	enum transfer_state at;
	enum transfer_state last; /* told */
	bool cancelled;
};

static void
cancel_at_state(void *arg, const struct transfer_view *view)
{
	struct canceller *c = arg;

	assert_false(c->cancelled);
	c->last = view->state;
	if (view->state != c->at)
		return;
	c->cancelled = true;
	core_write_cancel(c->transfer, false);
}

static unsigned
transfers(const struct core *core)
{
	struct status_view v;

	core_status(core, &v);
	return v.transfers;
}

/* From inside the update, in every state of a write to memory: it is the last that is told. */
static void
cancel_in_update(void **state)
{
	static const enum transfer_state STATES[] = {
	    TRANSFER_CONNECTING, TRANSFER_SENDING, TRANSFER_CONFIRMING, TRANSFER_ARRIVED};
	static struct canceller c; /* outlives a test that fails */
	struct write_request r = {
	    .peer = "b", .name = "file", .update = cancel_at_state, .arg = &c};
	struct world *w = *state;
	char error[256];

	for (size_t i = 0; i < sizeof(STATES) / sizeof(STATES[0]); i++) {
		c.at = STATES[i];
		c.cancelled = false;
		r.fd = world_file(3 << 20);
		assert_int_equal(core_write(w->a, &r, &c.transfer, error, sizeof(error)), 0);
		close(r.fd);
		WORLD_UNTIL(w, c.cancelled);
		assert_int_equal(c.last, c.at);
		assert_int_equal(transfers(w->a), 0);
		world_turns(w, 0.15); /* somewhat longer than updates are apart */
		core_disconnect(w->a, "b");
		WORLD_UNTIL(w, world_connections(w->a) == 0 && world_connections(w->b) == 0);
	}
	assert_true(w->arrivals >= 1 && w->arrivals <= 2); /* CONFIRMING may be too late */
}

/* In the turn in which it was made, and in those after. */
static void
cancel_after_some_turns(void **state)
{
	struct world *w = *state;
	struct outcome o;

	for (int turns = 0; turns < 40; turns++) {
		world_begin(w, &o, "b", 200000);
		for (int i = 0; i < turns && !o.done; i++)
			loop_turn(w->loop, NSEC_PER_MSEC);
		if (!o.done)
			core_write_cancel(o.transfer, true);
		assert_int_equal(transfers(w->a), 0);
		assert_true(world_connections(w->a) <= LIMIT_PEER_CONNECTIONS);
	}
	world_write(w, &o, "b", 200000);
	assert_int_equal(o.view.state, TRANSFER_ARRIVED);
}

/* ---- observers that call in ---- */

static void
disconnects(struct world *w)
{
	assert_int_equal(core_disconnect(w->b, "b"), 3);
}

static void
releases(struct world *w)
{
	for (uint32_t id = 1; id <= 3; id++)
		assert_int_equal(core_release(w->b, id), 0);
}

static void
stops(struct world *w)
{
	core_stop(w->b);
	core_stop(w->b);
}

/* At an arrival b ends what is around it, that connection too: its RESULT still gets out. */
static void
observer_ends_all(void **state)
{
	static void (*const HOW[])(struct world *) = {disconnects, releases, stops};
	struct world *w = *state;
	struct outcome o;

	for (size_t i = 0; i < sizeof(HOW) / sizeof(HOW[0]); i++) {
		world_reopen(w, TWO_NAMES, NULL);
		world_write(w, &o, "b", 10);
		world_write(w, &o, "c", 10);
		world_write(w, &o, "d", 10);
		w->on_arrival = HOW[i];
		world_write(w, &o, "c", 10);
		w->on_arrival = NULL;
		assert_int_equal(o.view.state, TRANSFER_ARRIVED);
		WORLD_UNTIL(w, world_connections(w->a) == 0 && world_connections(w->b) == 0);
		WORLD_UNTIL(w, w->stopped_b == (HOW[i] == stops));
		assert_int_equal(world_regions(w), HOW[i] == disconnects ? 3 : 0);
	}
}

/* ---- */

static struct {
	struct world *w;
	struct outcome next;
} chain;

static void
write_another(void *arg, const struct transfer_view *view)
{
	(void)arg;
	if (view->state == TRANSFER_ARRIVED)
		world_begin(chain.w, &chain.next, "b", 2000);
}

/* The next write is begun in the last update of the one before. */
static void
update_writes(void **state)
{
	struct write_request r = {.peer = "b", .name = "file", .update = write_another};
	struct transfer *t;
	char error[256];

	chain.w = *state;
	chain.next = (struct outcome){0};
	r.fd = world_file(1000);
	assert_int_equal(core_write(chain.w->a, &r, &t, error, sizeof(error)), 0);
	close(r.fd);
	WORLD_UNTIL(chain.w, chain.next.done);
	assert_int_equal(chain.next.view.state, TRANSFER_ARRIVED);
	assert_int_equal(chain.next.view.region_id, 1); /* on the same connection */
	world_check(chain.w, 2000);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(stop_at_once),
	    TEST(stop_while_dialling),
	    TEST(stop_lets_a_dial_finish),
	    TEST(stopped_core_takes_nothing),
	    TEST(target_drains),
	    TEST(target_drains_for_a_while),
	    TEST(draining_target_takes_no_more),
	    TEST(draining_target_refuses_what_comes),
	    TEST(disconnect_ends_transfers),
	    TEST(disconnect_ends_dials),
	    TEST(disconnect_counts),
	    TEST(cancel_in_update),
	    TEST(cancel_after_some_turns),
	    TEST(observer_ends_all),
	    TEST(update_writes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
