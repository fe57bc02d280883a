/* greeting.c -- the writer's words of the set-up, and what it makes of the target's */

#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/random.h"
#include "core/failure.h"
#include "core/greeting.h"
#include "core/keyring.h"
#include "core/outbound.h"
#include "core/peer.h"
#include "core/priv.h"

/* The configured peer if it has a key; else NULL. */
static const struct conf_peer *
keyed_peer(const struct outbound *ob)
{
	const struct conf_peer *peer = conf_find_peer(ob->core->conf, peer_name(ob->peer));

	return peer != NULL && keyring_has_key(peer) ? peer : NULL;
}

/* ---- request ---- */

static int
offer_key(struct outbound *ob, const uint8_t *key, struct rwp_request *request, uint8_t *data)
{
	int error = auth_key_id(key, request->key_id);

	if (error < 0)
		return error;
	request->flags |= RWP_KEYED;
	random_bytes(request->nonce, sizeof(request->nonce));
	rwp_request_encode(request, data);
	error = auth_gate(key, data, data + offsetof(struct rwp_request, gate));
	if (error == 0)
		auth_start(&ob->auth, key, data, sizeof(*request));
	return error;
}

int
greeting_request(struct outbound *ob, uint8_t data[sizeof(struct rwp_request)])
{
	const struct fabric_mem *mailbox = ob->channel.in_reg.mem;
	const struct conf_peer *peer = keyed_peer(ob);
	struct rwp_request request = {
	    .version_min = RWP_VERSION,
	    .version_max = RWP_VERSION,
	    .fabric = ob->info.kind,
	    .mailbox_rkey = mailbox->rkey,
	    .mailbox_addr = mailbox->remote_addr,
	};

	if (peer != NULL)
		return offer_key(ob, peer->key, &request, data);
	rwp_request_encode(&request, data);
	return 0;
}

/* ---- reply ---- */

/* Whoever it is: to go on without the key would be to trust the network. */
static struct failure
not_proved(const struct outbound *ob)
{
	struct failure f = failure_make(RWP_E_KEY, "does not prove that it has our key");

	failure_fix(&f,
	    "the key of [peer %s] must be that of our [peer] section there; or somebody between "
	    "us pretends to be it",
	    peer_name(ob->peer));
	return f;
}

bool
greeting_reply(struct outbound *ob, const void *data, size_t len, struct failure *why)
{
	struct rwp_reply *r = &ob->reply;

	if (rwp_reply_decode(data, len, r) < 0 || (r->flags & ~RWP_KEYED) != 0 ||
	    (r->flags & RWP_KEYED && !ob->auth.keyed)) {
		*why = failure_protocol("its reply is no RWP version 1 reply");
		return false;
	}
	if (!ob->auth.keyed)
		return true;
	if (!(r->flags & RWP_KEYED)) {
		*why = not_proved(ob);
		return false;
	}
	auth_reply(&ob->auth, data, r->length);
	return true;
}

/* ---- HELLO ---- */

int
greeting_hello(struct outbound *ob, uint64_t seq, uint8_t blob[RWP_BLOB_MAX])
{
	struct rwp_hello hello = {.size = ob->wanted, .generation = ob->reply.generation};
	int len, before;
	uint8_t *mac;

	memcpy(hello.writer, ob->core->conf->name, sizeof(hello.writer));
	memcpy(hello.region, ob->region, sizeof(hello.region));
	memcpy(hello.boot_id, ob->reply.boot_id, sizeof(hello.boot_id));
	if (ob->auth.keyed) /* a configured peer's, so it fits */
		snprintf(hello.target, sizeof(hello.target), "%s", peer_name(ob->peer));
	before = len = rwp_hello_encode(&hello, seq, blob, RWP_BLOB_MAX);
	if (len < 0 || !ob->auth.keyed)
		return len;
	mac = rwp_blob_add_mac(blob, RWP_BLOB_MAX, &len);
	if (mac == NULL)
		return -EMSGSIZE;
	return auth_hello(&ob->auth, blob, (size_t)before, mac) == 0 ? len : -ENOMEM;
}

/* ---- GRANT ---- */

static bool
is_proved(struct outbound *ob, const uint8_t *blob, size_t len)
{
	uint8_t mac[AUTH_MAC_SIZE];
	size_t before;
	const uint8_t *found = rwp_blob_find_mac(blob, len, &before);

	return found != NULL && auth_grant(&ob->auth, blob, before, mac) == 0 &&
	       auth_equal(found, mac, sizeof(mac));
}

static const char *
grant_fault(const struct rwp_grant *g, uint64_t wanted)
{
	if (g->sink < RWP_SINK_MEMORY || g->sink > RWP_SINK_DISCARD)
		return "grants a sink that is not known here";
	if (g->sink == RWP_SINK_MEMORY && g->size < wanted)
		return "grants less than it was asked for";
	if (g->segment == 0 || g->in_flight == 0 || g->size < 2) /* halves of a ring */
		return "grants nothing to send";
	if (g->beat_ms == 0 || g->dead_ms <= g->beat_ms)
		return "grants impossible beats";
	return NULL;
}

bool
greeting_grant(
    struct outbound *ob, const struct rwp_record *r, const uint8_t *blob, struct failure *why)
{
	const char *fault = NULL;

	if (ob->auth.keyed && !is_proved(ob, blob, r->blob_len)) {
		*why = not_proved(ob);
		return false;
	}
	if (rwp_grant_decode(blob, r->blob_len, r->seq, &ob->grant) < 0)
		fault = "a malformed grant";
	else
		fault = grant_fault(&ob->grant, ob->wanted);
	if (fault != NULL) {
		*why = failure_protocol(fault);
		return false;
	}
	if (ob->auth.keyed)
		channel_key(&ob->channel, ob->auth.target_key, ob->auth.writer_key);
	return true;
}
