/* keyring.c -- whose key a request speaks of */

#include "config.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "conf/conf.h"
#include "core/keyring.h"

static_assert(CONF_KEY_SIZE == AUTH_KEY_SIZE, "keys");

struct keyring {
	unsigned n;
	struct entry {
		uint8_t id[AUTH_ID_SIZE];
		const struct conf_peer *peer;
	} entries[];
};

bool
keyring_has_key(const struct conf_peer *peer)
{
	return peer->key_file[0] != '\0';
}

bool
keyring_is_key(const struct conf_peer *peer, const uint8_t key[AUTH_KEY_SIZE])
{
	return keyring_has_key(peer) && auth_equal(peer->key, key, AUTH_KEY_SIZE);
}

int
keyring_new(const struct conf *conf, struct keyring **ret)
{
	struct keyring *ring =
	    calloc(1, sizeof(*ring) + list_length(&conf->peers) * sizeof(ring->entries[0]));
	const struct conf_peer *peer;
	int error = ring != NULL ? 0 : -ENOMEM;

	list_for_each (peer, &conf->peers, struct conf_peer, node) {
		if (error < 0 || !keyring_has_key(peer))
			continue;
		error = auth_key_id(peer->key, ring->entries[ring->n].id);
		ring->entries[ring->n++].peer = peer;
	}
	if (error < 0)
		keyring_free(ring);
	else
		*ret = ring;
	return error;
}

struct keyring *
keyring_free(struct keyring *ring)
{
	free(ring);
	return NULL;
}

const struct conf_peer *
keyring_find(const struct keyring *ring, const uint8_t id[AUTH_ID_SIZE])
{
	for (unsigned i = 0; ring != NULL && i < ring->n; i++)
		if (memcmp(ring->entries[i].id, id, AUTH_ID_SIZE) == 0)
			return ring->entries[i].peer;
	return NULL;
}
