/* hello.c -- what a HELLO asks for: whether it may have it, and the words of a denial */

#include "config.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/page.h"
#include "base/text.h"
#include "conf/conf.h"
#include "core/admission.h"
#include "core/hello.h"
#include "core/inbound.h"
#include "core/keyring.h"
#include "core/pool.h"
#include "core/priv.h"
#include "core/refusal.h"
#include "core/region.h"

/* ---- keys ---- */

static bool
check_mac(struct inbound *in, const void *blob, size_t len, struct refusal *refusal)
{
	uint8_t mac[AUTH_MAC_SIZE];
	const uint8_t *found;
	size_t before;

	found = rwp_blob_find_mac(blob, len, &before);
	if (found != NULL && auth_hello(&in->auth, blob, before, mac) == 0 &&
	    auth_equal(found, mac, sizeof(mac)))
		return true;
	refusal_set_key(refusal, REFUSED_KEY_WRONG,
	    "its request had a key, which its HELLO does not prove: replayed, or altered on the "
	    "way");
	return false;
}

/* The key is proved, but for whom? Who relays another's words has other names than they. */
static bool
check_names(struct inbound *in, struct refusal *refusal)
{
	const struct conf *conf = in->core->conf;
	const struct rwp_hello *h = &in->hello;
	const struct conf_peer *peer = conf_find_peer(conf, h->writer);

	if (peer == NULL || !keyring_is_key(peer, in->auth.key))
		refusal_set_key(refusal, REFUSED_KEY_NAMES,
		    "it calls itself \"%s\", which is no [peer] with the key it has", h->writer);
	else if (strcmp(h->target, conf->name) != 0)
		refusal_set_key(refusal, REFUSED_KEY_NAMES,
		    "\"%s\" means to write to \"%s\", and this is \"%s\": its [peer] section must "
		    "be called as [rwriter] name here, or its words were relayed",
		    h->writer, h->target, conf->name);
	else if (!admission_allows(
		     in->core, in->listen, (const struct sockaddr *)&in->info.remote, peer))
		refusal_set_key(refusal, REFUSED_KEY_NAMES,
		    "neither its address nor [peer %s] is in an allow line of [listen %s]",
		    peer->name, in->listen);
	else
		return true;
	return false;
}

bool
hello_proved(struct inbound *in, const void *blob, size_t len, struct refusal *refusal)
{
	const struct conf_region *region = conf_find_region(in->core->conf, in->hello.region);

	if (in->auth.keyed)
		return check_mac(in, blob, len, refusal) && check_names(in, refusal);
	if (region == NULL || !region->require_key)
		return true;
	refusal_set_key(refusal, REFUSED_KEY_MISSING,
	    "[region %s] requires a key, and \"%s\" has none", region->name, in->hello.writer);
	return false;
}

int
hello_answer(struct inbound *in, void *blob, size_t size, int len)
{
	int before = len;
	uint8_t *mac;

	if (!in->auth.keyed)
		return len;
	mac = rwp_blob_add_mac(blob, size, &len);
	return mac != NULL && auth_grant(&in->auth, blob, (size_t)before, mac) == 0 ? len : -ENOMEM;
}

/* ---- what is asked for ---- */

static void __attribute__((format(printf, 3, 4)))
deny(struct rwp_deny *why, unsigned code, const char *fmt, ...)
{
	va_list ap;

	why->code = code;
	va_start(ap, fmt);
	vsnprintf(why->text, sizeof(why->text), fmt, ap);
	va_end(ap);
}

static void
check_identity(
    const struct core *core, const struct rwp_hello *h, uint32_t generation, struct rwp_deny *why)
{
	if (memcmp(h->boot_id, core->boot_id, sizeof(h->boot_id)) != 0 ||
	    h->generation != generation)
		deny(
		    why, RWP_E_STALE, "stale: the boot id or generation is not of this connection");
	else if (h->target[0] != '\0' && strcmp(h->target, core->conf->name) != 0)
		deny(why, RWP_E_STALE, "stale: this daemon is \"%s\", not \"%s\"", core->conf->name,
		    h->target);
	else if (h->required != 0)
		deny(why, RWP_E_UNSUPPORTED, "features %#llx are not known here",
		    (unsigned long long)h->required);
}

static void
check_region(const struct rwp_hello *h, const struct conf_region *region, struct rwp_deny *why)
{
	char asked[TEXT_SIZE_MAX], most[TEXT_SIZE_MAX], fix[TEXT_SIZE_MAX];

	if (region == NULL) {
		deny(why, RWP_E_REGION, "there is no region \"%s\"", h->region);
		snprintf(why->fix, sizeof(why->fix),
		    "add [region %s] to the configuration, or name another", h->region);
	} else if (region->sink == CONF_SINK_MEMORY && h->size > region->max_size) {
		deny(why, RWP_E_SIZE, "refused %s for region \"%s\": it grants at most %s",
		    text_human_size(asked, h->size), region->name,
		    text_human_size(most, region->max_size));
		why->size = h->size;
		why->limit = region->max_size;
		snprintf(why->fix, sizeof(why->fix), "max-size = %s in [region %s]",
		    text_print_size(fix, h->size), region->name);
	}
}

const struct conf_region *
hello_check(
    const struct core *core, const struct rwp_hello *h, uint32_t generation, struct rwp_deny *why)
{
	const struct conf_region *region = conf_find_region(core->conf, h->region);

	check_identity(core, h, generation, why);
	if (why->code == 0)
		check_region(h, region, why);
	return why->code == 0 ? region : NULL;
}

uint64_t
hello_size(const struct rwp_hello *h, const struct conf_region *region)
{
	bool more = region->sink == CONF_SINK_MEMORY && h->size > region->size;

	return page_round(more ? h->size : region->size);
}

/* Of regions that have their memory. */
static uint64_t
granted_bytes(const struct core *core, unsigned *ret_count)
{
	const struct region *region;
	uint64_t bytes = 0;

	*ret_count = 0;
	list_for_each (region, &core->regions, struct region, node)
		if (region->memory != NULL) {
			bytes += region->memory->size;
			++*ret_count;
		}
	return bytes;
}

void
hello_no_memory(const struct core *core, const struct rwp_hello *h, uint64_t size, int error,
    const char *detail, struct rwp_deny *why)
{
	const struct pool *pool = core->pool;
	char asked[TEXT_SIZE_MAX], room[TEXT_SIZE_MAX], limit[TEXT_SIZE_MAX], fix[TEXT_SIZE_MAX];
	char regions[TEXT_SIZE_MAX];
	unsigned count;

	why->size = size;
	text_human_size(asked, size);
	if (error != -ENOBUFS) {
		deny(why, RWP_E_MEMORY, "refused %s for region \"%s\": %s", asked, h->region,
		    detail != NULL ? detail : strerror(-error));
		return;
	}
	text_human_size(regions, granted_bytes(core, &count));
	deny(why, RWP_E_MEMORY,
	    "refused %s for region \"%s\": %s of the %s of pinned memory are free, %u regions hold "
	    "%s",
	    asked, h->region, text_human_size(room, pool_room(pool)),
	    text_human_size(limit, pool_limit(pool)), count, regions);
	why->limit = pool_limit(pool);
	snprintf(why->fix, sizeof(why->fix),
	    "pinned-memory = %s in [limits], or release one of those that rwctl regions shows",
	    text_print_size(fix, pool_used(pool) + page_round(size)));
}
