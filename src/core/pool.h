/* pool.h -- memory for regions and staging: memfds reserved, zeroed, mapped and sealed, within a
 * budget
 *
 * Making and unmaking memory takes long, so both are jobs (pages.h). What comes back is
 * zeroed and kept warm for the next one of the same size; warm memory goes after a minute without
 * use, and earlier when the budget is needed. Used on the loop's thread only.
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "core/pages.h"
#include "loop/slices.h"
#include "loop/work.h"

struct loop;
struct pool;

struct memory {
	struct list node;
	struct pool *pool;
	struct pages pages; /* of both the following, or more */
	size_t size;        /* whole pages */
	size_t behind;      /* bytes that were asked for behind them */
	bool exported;      /* a descriptor has left the daemon: never recycled */

	struct job job; /* the pool's: one of both at a time is under way */
	struct slices slices;
	struct memory_request *request;
	int error;
	bool touching; /* its slices are under way */
	bool put;      /* given back meanwhile */
	uint64_t warm_since;
};

/* Embedded in who asks; must live until fn has been called. */
struct memory_request {
	/* memory (now the owner's), or NULL and why not: -ENOMEM or what the system said. */
	void (*fn)(struct memory_request *request, struct memory *memory, int error);
	size_t behind; /* bytes wanted besides, for memory_behind(); the budget does not count them
			*/
};

/* limit: bytes, everything together. quiet: nothing is being made or unmade any more. 0 or -ENOMEM.
 */
int pool_new(struct loop *loop, struct work *work, uint64_t limit, void (*quiet)(void *arg),
    void *arg, struct pool **ret);
/* All memory must have been put back. Accepts NULL, returns NULL. */
struct pool *pool_free(struct pool *pool);

void pool_set_limit(struct pool *pool, uint64_t limit);
uint64_t pool_limit(const struct pool *pool);
/* Bytes in use, and those that a request could take beside them (warm memory counts as free). */
uint64_t pool_used(const struct pool *pool);
uint64_t pool_room(const struct pool *pool);
/* True while nothing is being made or unmade. */
bool pool_quiet(const struct pool *pool);

/* Asks for zeroed memory; fn follows in a later turn. 0, -ENOBUFS (over budget) or -ENOMEM: no fn
 * then. */
int pool_get(struct pool *pool, uint64_t size, struct memory_request *request);
/* The bytes behind those of size, at the end of the file. */
void *memory_behind(const struct memory *memory);
/* Gives it back; nobody may reach it any more, except through exported descriptors. Accepts NULL.
 */
void memory_put(struct memory *memory);

/* Maps its pages ahead of their first use, in the background and from the end: a writer fills it
 * from the start. */
void memory_touch(struct memory *memory);

/* A new read-only descriptor of the same memory, or a negative errno. */
int memory_export(struct memory *memory);
