/* label.h -- what the readers of a region are told: rwriter/region.h, the writing side
 *
 * Readers look at it at any time, from other processes; so every change is made as a seqlock wants
 * it. One thread writes.
 */

#pragma once

#include <stdint.h>

#include <rwriter/region.h>

struct arrival_view;

/* In zeroed memory that nobody else sees yet. */
void label_init(struct rwriter_label *label, uint32_t region, uint64_t capacity, uint32_t buffers);
/* What lies in the region is no longer whole. */
void label_overwritten(struct rwriter_label *label);
void label_arrived(
    struct rwriter_label *label, const struct arrival_view *arrival, const char *peer);
/* Nothing more will arrive. */
void label_ended(struct rwriter_label *label);
