/* greeting.h -- the writer's words of the set-up, and what it makes of the target's: request,
 * reply, HELLO, GRANT; with a key, the proof of both sides
 *
 * False, or a negative errno, and *why; then the connection is the caller's to end.
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/rwp.h"

struct failure;
struct outbound;

/* The mailbox is registered: its request, with the key of the peer if it has one. 0 or -ENOMEM. */
int greeting_request(struct outbound *ob, uint8_t data[sizeof(struct rwp_request)]);
/* ob->reply. */
bool greeting_reply(struct outbound *ob, const void *data, size_t len, struct failure *why);
/* Its blob for record seq: the length, or a negative errno. */
int greeting_hello(struct outbound *ob, uint64_t seq, uint8_t blob[RWP_BLOB_MAX]);
/* ob->grant; with a key, tags are keyed from now on. */
bool greeting_grant(
    struct outbound *ob, const struct rwp_record *r, const uint8_t *blob, struct failure *why);
