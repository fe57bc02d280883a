/* keyring.h -- whose key a request speaks of: the configured peers by the id of their key */

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "wire/auth.h"

struct conf;
struct conf_peer;
struct keyring;

/* The peers are borrowed: the ring goes before conf. 0 or -ENOMEM. */
int keyring_new(const struct conf *conf, struct keyring **ret);
/* Accepts NULL, returns NULL. */
struct keyring *keyring_free(struct keyring *ring);

/* The first peer whose key has this id; NULL when there is none (or no ring). */
const struct conf_peer *keyring_find(const struct keyring *ring, const uint8_t id[AUTH_ID_SIZE]);

bool keyring_has_key(const struct conf_peer *peer);
/* It is this very key. */
bool keyring_is_key(const struct conf_peer *peer, const uint8_t key[AUTH_KEY_SIZE]);
