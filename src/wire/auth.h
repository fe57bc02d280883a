/* auth.h -- the key that two peers share: what each side proves with it, and the session's keys
 *
 * The fence around libcrypto. Formulas: rwriter-protocol(7), KEYS. What is needed of a hash here
 * fails only when memory is short (-ENOMEM), and then closed: a tag that cannot be made matches
 * nothing, one that cannot be checked is wrong.
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AUTH_KEY_SIZE 32 /* also of session keys */
#define AUTH_ID_SIZE  8  /* key_id and gate of a request */
#define AUTH_MAC_SIZE 16 /* of HELLO and GRANT */
#define AUTH_GATED    48 /* bytes of a request that its gate covers */

int auth_key_id(const uint8_t *key, uint8_t ret[AUTH_ID_SIZE]);
/* Over the first AUTH_GATED bytes of the request. */
int auth_gate(const uint8_t *key, const void *request, uint8_t ret[AUTH_ID_SIZE]);

/* A run of bytes and another behind it under a session key, cut to size bytes. False: no memory,
 * and *ret is zeros. */
bool auth_tag(const uint8_t *key, const void *run, size_t run_len, const void *more,
    size_t more_len, void *ret, size_t size);

/* What a transfer is known by: 128 bits of a hash of where it goes, under which name, and numbers
 * that tell its source from all others. 0 or -ENOMEM. */
int auth_file_id(const char *region, const char *name, const void *numbers, size_t len,
    uint8_t ret[AUTH_MAC_SIZE]);

/* In a time that does not depend on the bytes. */
bool auth_equal(const void *a, const void *b, size_t len);
void auth_wipe(void *secret, size_t len);

/* ---- one connection's proof, the same on both sides ----
 *
 * auth_start, auth_reply, auth_hello, auth_grant, in this order; all zeros: a connection without a
 * key. Private data is hashed as it was sent: its first `length` bytes.
 */

struct auth_private {
	uint8_t bytes[UINT8_MAX];
	uint8_t len;
};

struct auth {
	bool keyed;
	uint8_t key[AUTH_KEY_SIZE];
	struct auth_private request, reply;
	uint8_t t1[32];
	uint8_t hello_mac[AUTH_MAC_SIZE];
	/* Session keys, from auth_grant() on: for what the writer writes, and what the target does.
	 */
	uint8_t writer_key[AUTH_KEY_SIZE], target_key[AUTH_KEY_SIZE];
};

void auth_start(struct auth *a, const uint8_t *key, const void *request, uint8_t len);
void auth_reply(struct auth *a, const void *reply, uint8_t len);
/* The MAC that belongs behind these bytes of the blob. 0 or -ENOMEM. */
int auth_hello(struct auth *a, const void *blob, size_t len, uint8_t mac[AUTH_MAC_SIZE]);
int auth_grant(struct auth *a, const void *blob, size_t len, uint8_t mac[AUTH_MAC_SIZE]);
/* Nothing secret is left. */
void auth_done(struct auth *a);
