/* label.c -- what the readers of a region are told: rwriter/region.h, the writing side */

#include "config.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "core/label.h"
#include "core/view.h"

static_assert(sizeof(struct rwriter_label) == 416, "no padding, the same everywhere");
static_assert(sizeof(struct rwriter_label) <= RWRITER_LABEL_SIZE, "has room");
static_assert(sizeof(((struct rwriter_label *)0)->name) > LIMIT_FILE_NAME, "any name fits");
static_assert(sizeof(((struct rwriter_label *)0)->peer) >= TEXT_ADDRESS_MAX, "any peer fits");

void
label_init(struct rwriter_label *label, uint32_t region, uint64_t capacity, uint32_t buffers)
{
	*label = (struct rwriter_label){
	    .magic = RWRITER_LABEL_MAGIC,
	    .version = RWRITER_LABEL_VERSION,
	    .size = sizeof(*label),
	    .generation = 1,
	    .capacity = capacity,
	    .buffers = buffers,
	    .region = region,
	};
}

void
label_overwritten(struct rwriter_label *label)
{
	__atomic_store_n(&label->generation, label->generation | 1, __ATOMIC_RELEASE);
}

/* Every word is stored with release: who sees one sees the odd generation before it. */
static void
publish(struct rwriter_label *label, struct rwriter_label *next)
{
	const rwriter_word *from = (const rwriter_word *)(const void *)next;
	rwriter_word *to = (rwriter_word *)(void *)label;

	label_overwritten(label);
	next->generation = label->generation;
	for (size_t i = 0; i < sizeof(*label) / sizeof(*to); i++)
		__atomic_store_n(&to[i], from[i], __ATOMIC_RELEASE);
	__atomic_store_n(&label->generation, next->generation + 1, __ATOMIC_RELEASE);
}

void
label_arrived(struct rwriter_label *label, const struct arrival_view *arrival, const char *peer)
{
	struct rwriter_label next = *label;

	next.offset = arrival->offset;
	next.length = arrival->length;
	next.time_ns = arrival->at;
	next.crc32c = arrival->crc32c;
	memset(next.name, 0, sizeof(next.name));
	memset(next.peer, 0, sizeof(next.peer));
	snprintf(next.name, sizeof(next.name), "%s", arrival->name);
	snprintf(next.peer, sizeof(next.peer), "%s", peer);
	publish(label, &next);
}

void
label_ended(struct rwriter_label *label)
{
	__atomic_store_n(&label->ended, 1, __ATOMIC_RELEASE);
}
