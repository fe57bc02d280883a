/* arrival_check.h -- whether what a record of a transfer says can be: a->record, of an arrival as
 * it is before the record is taken. Pure; 0, or a code and in *why the words for it.
 */

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "wire/rwp.h"

struct arrival;

/* DATA, ONE: r has its payload where the ring goes on, which then is used up to *ret_ring. */
bool arrival_check_ring(const struct arrival *a, const struct rwp_record *r, uint64_t *ret_ring);
/* BEGIN, ONE: may this transfer begin? */
unsigned arrival_check_begin(
    const struct arrival *a, const struct rwp_begin *b, struct rwp_deny *why);
/* DATA, HOLE, ONE: bounds, order, length, and the place that the sink wants. */
unsigned arrival_check_bytes(const struct arrival *a, struct rwp_deny *why);
/* END: all that was sent is what has arrived. */
unsigned arrival_check_end(const struct arrival *a, struct rwp_deny *why);
