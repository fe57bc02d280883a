/* hello.h -- what a HELLO asks for: whether it may have it, and the words of a denial */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/rwp.h"

struct conf_region;
struct core;
struct inbound;
struct refusal;

/* in->hello (len bytes of blob) proves the key that the request spoke of, by its MAC and its names;
 * or it has none and asks for no region that requires one. False and *refusal otherwise. */
bool hello_proved(struct inbound *in, const void *blob, size_t len, struct refusal *refusal);
/* Puts the MAC of the GRANT behind a blob of len bytes, and makes the session keys: its length, or
 * -ENOMEM. Without a key: len. */
int hello_answer(struct inbound *in, void *blob, size_t size, int len);

/* The region section that it may be granted from; or NULL and *why. generation: of its connection.
 */
const struct conf_region *hello_check(
    const struct core *core, const struct rwp_hello *h, uint32_t generation, struct rwp_deny *why);

/* Bytes of the region to grant. */
uint64_t hello_size(const struct rwp_hello *h, const struct conf_region *region);

/* Memory for it could not be had: error, and what the system said (detail, or NULL). */
void hello_no_memory(const struct core *core, const struct rwp_hello *h, uint64_t size, int error,
    const char *detail, struct rwp_deny *why);
