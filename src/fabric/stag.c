/* stag.c -- steering tags: which memory a peer may write to, and where in it */

#include "config.h"

#include <errno.h>
#include <stdlib.h>

#include "base/random.h"
#include "fabric/rdmap.h"
#include "fabric/stag.h"

#define KEY_BITS  8
#define BUCKETS   1024
#define RETIRED   1024 /* indices that stay unused after their end */
#define PAGE_SIZE UINT64_C(4096)
#define BASE_BITS 62 /* so that no memory wraps around */

struct stag_table {
	struct list buckets[BUCKETS]; /* by index */
	uint32_t retired[RETIRED];    /* a ring; 0: none */
	unsigned n_retired;
};

static uint32_t
index_of(uint32_t number)
{
	return number >> KEY_BITS;
}

int
stag_table_new(struct stag_table **ret)
{
	struct stag_table *t = calloc(1, sizeof(*t));

	if (t == NULL)
		return -ENOMEM;
	for (unsigned i = 0; i < BUCKETS; i++)
		list_init(&t->buckets[i]);
	*ret = t;
	return 0;
}

struct stag_table *
stag_table_free(struct stag_table *t)
{
	free(t);
	return NULL;
}

static struct stag *
find(const struct stag_table *t, uint32_t index)
{
	struct stag *s;

	list_for_each (s, &t->buckets[index % BUCKETS], struct stag, node)
		if (index_of(s->number) == index)
			return s;
	return NULL;
}

static bool
is_retired(const struct stag_table *t, uint32_t index)
{
	for (unsigned i = 0; i < RETIRED; i++)
		if (t->retired[i] == index)
			return true;
	return false;
}

/* Index 0 is never given out: some adapters fail on STag 0 even in empty writes. */
static uint32_t
choose_number(const struct stag_table *t)
{
	uint32_t number;

	do
		random_bytes(&number, sizeof(number));
	while (index_of(number) == 0 || find(t, index_of(number)) != NULL ||
	       is_retired(t, index_of(number)));
	return number;
}

static uint64_t
choose_base(void)
{
	uint64_t base;

	random_bytes(&base, sizeof(base));
	return (base & ((UINT64_C(1) << BASE_BITS) - 1) & ~(PAGE_SIZE - 1)) + PAGE_SIZE;
}

void
stag_register(struct stag_table *t, struct stag *s)
{
	s->number = choose_number(t);
	s->base = choose_base();
	list_add_tail(&t->buckets[index_of(s->number) % BUCKETS], &s->node);
}

void
stag_revoke(struct stag_table *t, struct stag *s)
{
	list_del(&s->node);
	t->retired[t->n_retired++ % RETIRED] = index_of(s->number);
}

/* In the order of RFC 5041: is there such an STag, is it this stream's, do offset and length make
 * sense, are they inside. The rights are RDMAP's and come last. */
int
stag_check(const struct stag_table *t, const void *scope, uint32_t number, uint64_t to,
    uint64_t len, uint8_t **ret)
{
	const struct stag *s = find(t, index_of(number));

	if (s == NULL || s->number != number)
		return DDP_E_STAG;
	if (s->scope != scope)
		return DDP_E_SCOPE;
	if (len > UINT64_MAX - to)
		return DDP_E_WRAP;
	if (to < s->base || to - s->base > s->len || len > s->len - (to - s->base))
		return DDP_E_BOUNDS;
	if (!s->remote_write)
		return RDMAP_E_ACCESS;
	*ret = s->addr + (to - s->base);
	return 0;
}
