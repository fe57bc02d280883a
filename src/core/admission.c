/* admission.c -- who may connect: versions, allow lines, limits */

#include "config.h"

#include <errno.h>
#include <ifaddrs.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "core/admission.h"
#include "core/listener.h"
#include "core/peer.h"
#include "core/priv.h"

#define BUSY_RETRY_MS 1000

/* ---- allow lines ---- */

static bool
is_own_address(const struct sockaddr *address)
{
	struct ifaddrs *all, *it;
	bool own = false;

	if (getifaddrs(&all) < 0)
		return false;
	for (it = all; it != NULL && !own; it = it->ifa_next)
		own = it->ifa_addr != NULL && text_address_equal(it->ifa_addr, address);
	freeifaddrs(all);
	return own;
}

static bool
allow_matches(
    const struct core *core, const struct conf_allow *allow, const struct sockaddr *address)
{
	switch (allow->kind) {
	case CONF_ALLOW_ANY:
		return true;
	case CONF_ALLOW_HOST:
		return is_own_address(address);
	case CONF_ALLOW_NETWORK:
		return text_address_match(
		    address, (const struct sockaddr *)&allow->network, allow->prefix);
	case CONF_ALLOW_PEER:
		return peer_has_address(core, allow->peer, address);
	}
	return false;
}

bool
admission_allows(
    const struct core *core, const struct conf_listen *listen, const struct sockaddr *address)
{
	const struct conf_allow *allow;

	list_for_each (allow, &listen->allow, struct conf_allow, node)
		if (allow_matches(core, allow, address))
			return true;
	return false;
}

/* ---- requests: one check each, in this order, the cheapest first ---- */

struct candidate {
	struct core *core;
	struct listener *listener;
	const struct sockaddr *address;
	const struct rwp_request *request;
};

static unsigned
check_flags(const struct candidate *c, struct rwp_reject *reject, char *text)
{
	(void)reject;
	if (c->request->flags == 0)
		return 0;
	snprintf(text, LIMIT_REASON + 1,
	    "flags %#x: keys, sealing and doorbells are not known here", c->request->flags);
	return RWP_E_UNSUPPORTED;
}

static unsigned
check_stopping(const struct candidate *c, struct rwp_reject *reject, char *text)
{
	(void)reject;
	if (!c->core->stopping)
		return 0;
	snprintf(text, LIMIT_REASON + 1, "the daemon stops");
	return RWP_E_SHUTDOWN;
}

static unsigned
check_address(const struct candidate *c, struct rwp_reject *reject, char *text)
{
	const struct conf_listen *listen =
	    conf_find_listen(c->core->conf, listener_name(c->listener));
	char address[TEXT_ADDRESS_MAX];

	(void)reject;
	if (listen != NULL && admission_allows(c->core, listen, c->address))
		return 0;
	snprintf(text, LIMIT_REASON + 1, "%s is in no allow line of [listen %s]",
	    text_address(address, c->address), listener_name(c->listener));
	return RWP_E_ADDRESS;
}

static unsigned
check_busy(const struct candidate *c, struct rwp_reject *reject, char *text)
{
	uint32_t limit = c->core->conf->connections;

	if (c->core->connections < limit)
		return 0;
	reject->retry_after_ms = BUSY_RETRY_MS;
	snprintf(text, LIMIT_REASON + 1, "%u of %u connections in use ([limits] connections)",
	    c->core->connections, limit);
	return RWP_E_BUSY;
}

static unsigned (*const CHECKS[])(const struct candidate *, struct rwp_reject *, char *) = {
    check_flags,
    check_stopping,
    check_address,
    check_busy,
};

static void
set_reason(struct rwp_reject *reject, unsigned reason, const char *text)
{
	size_t len = strlen(text);

	reject->reason = reason;
	reject->text_len = len < sizeof(reject->text) ? len : sizeof(reject->text);
	memcpy(reject->text, text, reject->text_len);
}

bool
admission_check(struct core *core, struct listener *listener, const struct fabric_info *info,
    const void *data, size_t len, struct rwp_request *request, struct rwp_reject *reject)
{
	struct candidate c = {core, listener, (const struct sockaddr *)&info->remote, request};
	char text[LIMIT_REASON + 1] = "";
	unsigned reason;
	int error;

	error = rwp_request_decode(data, len, request);
	if (error < 0) {
		set_reason(reject, error == -EPROTONOSUPPORT ? RWP_E_VERSION : RWP_E_PROTOCOL,
		    error == -EPROTONOSUPPORT ? "only RWP version 1 is spoken here"
					      : "the request is no RWP request");
		return false;
	}
	for (size_t i = 0; i < sizeof(CHECKS) / sizeof(CHECKS[0]); i++) {
		reason = CHECKS[i](&c, reject, text);
		if (reason != 0) {
			set_reason(reject, reason, text);
			return false;
		}
	}
	return true;
}

void
admission_reject(struct core *core, struct fabric_conn *conn, const struct fabric_info *info,
    struct rwp_reject *reject)
{
	char address[TEXT_ADDRESS_MAX];
	uint8_t data[sizeof(*reject)];

	if (reject->text_len == 0)
		set_reason(reject, reject->reason, rwp_code_text(reject->reason));
	reject->version_min = reject->version_max = RWP_VERSION;
	reject->fabric = info->kind;
	rwp_reject_encode(reject, data);
	log_warning("%s: refused: %.*s",
	    text_address(address, (const struct sockaddr *)&info->remote), reject->text_len,
	    reject->text);
	core->orphans++;
	conn->owner = NULL;
	conn->fabric->ops->reject(conn, data, sizeof(data));
}
