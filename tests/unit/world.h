/* world.h -- two daemons' cores, "a" and "b", on one loop over the fake fabric */

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "conf/conf.h"
#include "core/core.h"
#include "loop/loop.h"
#include "loop/work.h"

struct world {
	struct loop *loop;
	struct work *work;
	struct conf *conf_a, *conf_b;
	struct core *a, *b;
	unsigned arrivals; /* at b */
	bool stopped_a, stopped_b;
};

struct outcome { /* of one write; must outlive it */
	struct transfer *transfer;
	struct transfer_view view;
	unsigned updates;
	bool done;
	char error[256]; /* of core_write() */
};

/* More lines for the configuration of a or b, before world_open(); NULL: none. */
extern const char *world_lines_a, *world_lines_b;

/* The Nth allocation after world_open() has read the configurations fails; 0: none. They are
 * counted from there. (Test programs that link world.c are linked with
 * --wrap=malloc,--wrap=calloc.) */
extern unsigned world_fail_at, world_allocations;

/* Failures of the daemon's code are returned; those of the test itself end it. */
int world_open(struct world *w);
void world_stop(struct world *w);
void world_close(struct world *w); /* also half open */

/* Turns until *flag, or fails the test after `seconds`, naming what was awaited. */
void world_wait(struct world *w, const bool *flag, const char *what, double seconds);
void world_turns(struct world *w, double seconds);

/* Begins what the request says, which gets its update and arg here. */
int world_write_request(struct world *w, struct outcome *o, struct write_request request);
/* Begins to write fd's bytes from a to peer; the outcome comes with o->done. */
int world_write_fd(struct world *w, struct outcome *o, const char *peer, const char *name, int fd);
/* Writes a file of this size and pattern and waits for its end. */
void world_write(struct world *w, struct outcome *o, const char *peer, uint64_t size);
/* A file in memory with a repeatable pattern of bytes. */
int world_file(uint64_t size);
/* b's newest arrival is byte for byte the pattern. */
void world_check(struct world *w, uint64_t size);
unsigned world_regions(struct world *w);
