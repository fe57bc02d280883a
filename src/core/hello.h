/* hello.h -- what a HELLO asks for: whether it may have it, and the words of a denial */

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "wire/rwp.h"

struct conf_region;
struct core;

/* The region section that it may be granted from; or NULL and *why. generation: of its connection.
 */
const struct conf_region *hello_check(
    const struct core *core, const struct rwp_hello *h, uint32_t generation, struct rwp_deny *why);

/* Memory for it could not be had: error, and what the system said (detail, or NULL). */
void hello_no_memory(const struct core *core, const struct rwp_hello *h, uint64_t size, int error,
    const char *detail, struct rwp_deny *why);
