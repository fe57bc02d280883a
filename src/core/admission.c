/* admission.c -- who may connect: versions, keys, allow lines, limits */

#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "core/addresses.h"
#include "core/admission.h"
#include "core/keyring.h"
#include "core/listener.h"
#include "core/peer.h"
#include "core/priv.h"
#include "core/refusal.h"

#define RETRY_MS 1000 /* what a busy daemon asks a writer to wait */

/* ---- allow lines ---- */

static bool
allow_matches(
    const struct core *core, const struct conf_allow *allow, const struct sockaddr *address)
{
	switch (allow->kind) {
	case CONF_ALLOW_ANY:
		return true;
	case CONF_ALLOW_HOST:
		return addresses_has(address);
	case CONF_ALLOW_NETWORK:
		return text_address_match(
		    address, (const struct sockaddr *)&allow->network, allow->prefix);
	case CONF_ALLOW_PEER:
		return peer_has_address(core, allow->peer, address);
	}
	return false;
}

static bool
allows_address(
    const struct core *core, const struct conf_listen *listen, const struct sockaddr *address)
{
	const struct conf_allow *allow;

	list_for_each (allow, &listen->allow, struct conf_allow, node)
		if (allow_matches(core, allow, address))
			return true;
	return false;
}

/* A line names a peer that has this key: its own name, unless NULL, is the one meant. */
static bool
allows_key(
    const struct core *core, const struct conf_listen *listen, const uint8_t *key, const char *name)
{
	const struct conf_allow *allow;

	list_for_each (allow, &listen->allow, struct conf_allow, node)
		if (allow->kind == CONF_ALLOW_PEER &&
		    (name == NULL || strcmp(allow->peer, name) == 0) &&
		    keyring_is_key(conf_find_peer(core->conf, allow->peer), key))
			return true;
	return false;
}

bool
admission_allows(const struct core *core, const char *listen, const struct sockaddr *address,
    const struct conf_peer *peer)
{
	const struct conf_listen *conf = conf_find_listen(core->conf, listen);

	return conf != NULL && (allows_key(core, conf, peer->key, peer->name) ||
				   allows_address(core, conf, address));
}

bool
admission_has_room(const struct core *core, struct refusal *r)
{
	if (core->connections < core->conf->connections)
		return true;
	refusal_set(r, RWP_E_BUSY, "%u of %u connections in use ([limits] connections)",
	    core->connections, core->conf->connections);
	r->retry_ms = RETRY_MS;
	return false;
}

/* ---- requests: one check each, in this order ---- */

struct candidate {
	struct core *core;
	struct listener *listener;
	const struct sockaddr *address;
	const void *data; /* the request as it came */
	const struct rwp_request *request;
	const struct conf_peer *peer; /* whose key it has; NULL: it speaks of none */
};

static bool
check_flags(struct candidate *c, struct refusal *r)
{
	if ((c->request->flags & ~RWP_KEYED) == 0)
		return true;
	refusal_set(r, RWP_E_UNSUPPORTED,
	    "flags %#x: sealing, doorbells and joining are not known here", c->request->flags);
	return false;
}

static bool
check_stopping(struct candidate *c, struct refusal *r)
{
	if (!c->core->stopping)
		return true;
	refusal_set(r, RWP_E_SHUTDOWN, "the daemon stops");
	return false;
}

/* A key that is not known takes as long as a wrong gate. */
static bool
check_key(struct candidate *c, struct refusal *r)
{
	static const uint8_t nobody[AUTH_KEY_SIZE];
	const struct conf_peer *peer = keyring_find(c->core->keyring, c->request->key_id);
	uint8_t gate[AUTH_ID_SIZE];
	bool right;

	if (!(c->request->flags & RWP_KEYED))
		return true;
	right = auth_gate(peer != NULL ? peer->key : nobody, c->data, gate) == 0 &&
		auth_equal(gate, c->request->gate, sizeof(gate));
	if (peer == NULL)
		refusal_set_key(r, REFUSED_KEY_UNKNOWN, "its key is that of no [peer]");
	else if (!right)
		refusal_set_key(r, REFUSED_KEY_WRONG,
		    "it speaks of the key of [peer %s], but does not have it", peer->name);
	else
		c->peer = peer;
	return c->peer != NULL;
}

static bool
check_address(struct candidate *c, struct refusal *r)
{
	const char *name = listener_name(c->listener);
	const struct conf_listen *listen = conf_find_listen(c->core->conf, name);
	char address[TEXT_ADDRESS_MAX];

	if (listen != NULL &&
	    ((c->peer != NULL && allows_key(c->core, listen, c->peer->key, NULL)) ||
		allows_address(c->core, listen, c->address)))
		return true;
	if (c->peer != NULL)
		refusal_set_key(r, REFUSED_KEY_NAMES,
		    "neither its address nor [peer %s] is in an allow line of [listen %s]",
		    c->peer->name, name);
	else
		refusal_set(r, RWP_E_ADDRESS, "%s is in no allow line of [listen %s]",
		    text_address(address, c->address), name);
	return false;
}

static bool
check_busy(struct candidate *c, struct refusal *r)
{
	const struct core *core = c->core;

	if (!admission_has_room(core, r))
		return false;
	if (core->unproven < core->conf->unproven)
		return true;
	refusal_set(r, RWP_E_BUSY, "%u of %u connections are being set up ([limits] unproven)",
	    core->unproven, core->conf->unproven);
	r->retry_ms = RETRY_MS;
	return false;
}

static bool (*const CHECKS[])(struct candidate *, struct refusal *) = {
    check_flags,
    check_stopping,
    check_key,
    check_address,
    check_busy,
};

bool
admission_check(struct core *core, struct listener *listener, const struct fabric_info *info,
    const struct fabric_event *event, struct rwp_request *request, const struct conf_peer **ret,
    struct refusal *r)
{
	struct candidate c = {.core = core,
	    .listener = listener,
	    .address = (const struct sockaddr *)&info->remote,
	    .data = event->data,
	    .request = request};
	int error = rwp_request_decode(event->data, event->data_len, request);

	if (error == -EPROTONOSUPPORT)
		refusal_set(r, RWP_E_VERSION, "only RWP version 1 is spoken here");
	else if (error < 0)
		refusal_set(r, RWP_E_PROTOCOL, "the request is no RWP request");
	for (size_t i = 0; i < sizeof(CHECKS) / sizeof(CHECKS[0]) && error == 0; i++)
		error = CHECKS[i](&c, r) ? 0 : -EACCES;
	*ret = c.peer;
	return error == 0;
}
