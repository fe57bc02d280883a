/* inbounds.c -- all inbound connections: shown, and ended together */

#include "config.h"

#include <string.h>

#include "base/text.h"
#include "core/inbound.h"
#include "core/priv.h"
#include "core/region.h"

static void
view(struct inbound *in, struct peer_view *ret)
{
	*ret = (struct peer_view){
	    .direction = "in",
	    .state = inbound_state_name(in),
	    .fabric = in->info.fabric,
	    .keyed = in->proven && in->auth.keyed,
	    .since = in->since,
	    .transfers = in->region != NULL ? in->region->arrivals : 0,
	    .queued = arrival_open(&in->arrival),
	};
	memcpy(ret->name, in->peer, sizeof(ret->name));
	memcpy(ret->claimed_name, in->hello.writer, sizeof(ret->claimed_name));
	memcpy(ret->fabric_why, in->fabric_why, sizeof(ret->fabric_why));
	memcpy(ret->device, in->info.device, sizeof(ret->device));
	text_address_port(ret->address, (const struct sockaddr *)&in->info.remote);
	ret->configured = conf_find_peer(in->core->conf, in->peer) != NULL;
}

void
inbound_each(struct core *core, void (*fn)(void *arg, const struct peer_view *v), void *arg)
{
	struct peer_view v;
	struct inbound *in;

	list_for_each (in, &core->inbounds, struct inbound, node) {
		view(in, &v);
		fn(arg, &v);
	}
}

unsigned
inbound_disconnect(struct core *core, const char *who)
{
	char address[TEXT_ADDRESS_MAX];
	struct inbound *in;
	unsigned n = 0;

	list_for_each (in, &core->inbounds, struct inbound, node) {
		text_address(address, (const struct sockaddr *)&in->info.remote);
		if (in->state >= INBOUND_ENDING ||
		    (strcmp(in->peer, who) != 0 && strcmp(in->hello.writer, who) != 0 &&
			strcmp(address, who) != 0))
			continue;
		inbound_end(in, RWP_E_RELEASED, "an operator ended the connection");
		n++;
	}
	return n;
}

void
inbound_end_all(struct core *core, unsigned code, const char *text)
{
	struct inbound *in;

	list_for_each (in, &core->inbounds, struct inbound, node)
		inbound_end(in, code, text);
}

void
inbound_take_no_more(struct core *core)
{
	struct inbound *in;

	list_for_each (in, &core->inbounds, struct inbound, node) {
		in->channel.line.state = RWP_LINE_ENDING;
		if (in->state == INBOUND_OPEN)
			channel_line(&in->channel);
	}
}

bool
inbound_any_open(const struct core *core)
{
	struct inbound *in;

	list_for_each (in, &core->inbounds, struct inbound, node)
		if (arrival_open(&in->arrival))
			return true;
	return false;
}
