/* world.h -- two daemons' cores, "a" and "b", on one loop over the fake fabric */

#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "conf/conf.h"
#include "core/core.h"
#include "loop/loop.h"
#include "loop/work.h"

struct outcome;

#define WORLD_WRITES 64 /* under way at once */

struct world {
	struct loop *loop;
	struct work *work, *resolve;
	struct conf *conf_a, *conf_b;
	struct core *a, *b;
	unsigned arrivals;                   /* at b */
	void (*on_arrival)(struct world *w); /* what b's observer does beside counting; or NULL */
	bool stopped_a, stopped_b;
	struct world_write { /* whose outcome is told there; NULL: free, or to nobody any more */
		struct outcome *outcome;
	} writes[WORLD_WRITES];
};

struct outcome { /* of one write; must outlive it, or the world's closing */
	struct transfer *transfer;
	struct transfer_view view;
	unsigned updates;
	bool done;
	char error[256]; /* of core_write() */
};

/* More lines for the configuration of a or b, before world_open(); NULL: none. */
extern const char *world_lines_a, *world_lines_b;
/* What b calls itself ("b"), and whom both allow ("any"). */
extern const char *world_name_b, *world_allow;

/* Both cores have a second fabric, "verbs", beside "fake"; before world_open(). Of fake_conn()'s
 * fabrics 0 and 1 are a's then, 2 and 3 b's. */
extern bool world_two_fabrics;

/* Failures of the daemon's code are returned; those of the test itself end it. */
int world_open(struct world *w);
void world_stop(struct world *w);
/* Also half open. Outcomes are not looked at any more: they may be gone with a failed test. */
void world_close(struct world *w);

/* Run a scenario, from its world_open() to its world_close(), again and again: each time another
 * allocation (after the configurations are read), or another operation of the fabric, fails, the
 * latter at once or later; until none is left that can. How many runs returned false. */
unsigned world_each_allocation_fails(bool (*scenario)(void));
unsigned world_each_operation_fails(bool (*scenario)(void), bool later);
/* A core of w gets another configuration, with these lines. */
void world_reload(struct world *w, struct core *core, const char *lines);

/* Fixtures: the test's state is a world; it may be opened again with other lines. */
int world_setup(void **state);
int world_teardown(void **state);
void world_reopen(struct world *w, const char *lines_a, const char *lines_b);
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, world_setup, world_teardown)

/* Turns until *flag, or fails the test after `seconds`, naming what was awaited. */
void world_wait(struct world *w, const bool *flag, const char *what, double seconds);
void world_turns(struct world *w, double seconds);
/* Turns until the condition holds; the test fails if that takes absurdly long. */
#define WORLD_UNTIL(w, condition)                                               \
	for (uint64_t until_ = loop_now() + 20 * NSEC_PER_SEC; !(condition);) { \
		loop_turn((w)->loop, NSEC_PER_MSEC);                            \
		if (loop_now() > until_)                                        \
			fail_msg("not within 20 s: %s", #condition);            \
	}

/* Begins what the request says, which gets its update and arg here. */
int world_write_request(struct world *w, struct outcome *o, struct write_request request);
/* Begins to write fd's bytes from a to peer; the outcome comes with o->done. */
int world_write_fd(struct world *w, struct outcome *o, const char *peer, const char *name, int fd);
/* Begins to write a file of this size and pattern; world_write() also waits for its end. */
void world_begin(struct world *w, struct outcome *o, const char *peer, uint64_t size);
void world_write(struct world *w, struct outcome *o, const char *peer, uint64_t size);
/* Begins a long write from a to b, slowly, and returns when some of it has arrived. */
void world_half_way(struct world *w, struct outcome *o);
/* Returns when so much of o has arrived, as its transfer knows it, and it still sends. */
void world_some_arrives(struct world *w, struct outcome *o, uint64_t bytes);
/* Waits for its end, which must be this failure. */
void world_fails_with(struct world *w, struct outcome *o, const char *text);
/* A file in memory with a repeatable pattern of bytes. */
int world_file(uint64_t size);
/* b's newest arrival is byte for byte the pattern. */
void world_check(struct world *w, uint64_t size);
unsigned world_regions(const struct world *w);       /* at b */
unsigned world_connections(const struct core *core); /* also those without a HELLO */
