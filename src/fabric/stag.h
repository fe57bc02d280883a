/* stag.h -- steering tags: which memory a peer may write to, and where in it
 *
 * An STag is a 24-bit index and an 8-bit key. Both are random at every registration, and an index
 * is not given out again soon after its end: a peer cannot guess an STag, and one that was revoked
 * leads nowhere. Each belongs to a scope (a connection) and counts for no other.
 *
 * No I/O but random bytes, no log. One thread.
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"

struct stag_table;

struct stag { /* embedded in the memory's owner */
	struct list node;
	const void *scope;
	uint8_t *addr;
	size_t len;
	bool remote_write;

	uint32_t number; /* never 0 */
	uint64_t base;   /* what the peer calls addr: random, page-aligned */
};

/* 0, or -ENOMEM. Freeing accepts NULL and returns NULL; every STag is revoked by then. */
int stag_table_new(struct stag_table **ret);
struct stag_table *stag_table_free(struct stag_table *t);

/* Everything but number and base is set; those are chosen here. */
void stag_register(struct stag_table *t, struct stag *s);
/* From now on no stag_check() finds it. */
void stag_revoke(struct stag_table *t, struct stag *s);

/* May a connection write len bytes at `to`? 0: *ret is where; else an enum rdmap_error. */
int stag_check(const struct stag_table *t, const void *scope, uint32_t number, uint64_t to,
    uint64_t len, uint8_t **ret);
