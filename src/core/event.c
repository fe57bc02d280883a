/* event.c -- what happens, told to the observer */

#include "config.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "core/arrival.h"
#include "core/event.h"
#include "core/inbound.h"
#include "core/outbound.h"
#include "core/peer.h"
#include "core/priv.h"
#include "core/region.h"
#include "core/sink.h"
#include "core/transfer.h"
#include "wire/message.h"

static void
tell(struct core *core, struct event_view *e)
{
	e->at = clock_realtime();
	if (e->text == NULL)
		e->text = "";
	if (e->path == NULL)
		e->path = "";
	if (core->observer.event != NULL)
		core->observer.event(core->observer.arg, e);
}

/* ---- connections ---- */

void
event_inbound(struct inbound *in, enum event_kind kind, unsigned code, const char *text)
{
	struct event_view e = {
	    .kind = kind,
	    .direction = "in",
	    .fabric = in->info.fabric,
	    .device = in->info.device,
	    .code = code,
	    .text = text,
	    .peer = in->peer,
	    .region = in->hello.region,
	};
	char address[TEXT_ADDRESS_MAX];

	if (!in->proven && kind != EVENT_REFUSED)
		return;
	e.address = text_address(address, (const struct sockaddr *)&in->info.remote);
	e.region_id = in->region != NULL ? in->region->id : 0;
	tell(in->core, &e);
}

void
event_outbound(struct outbound *ob, enum event_kind kind, unsigned code, const char *text)
{
	struct event_view e = {
	    .kind = kind,
	    .direction = "out",
	    .fabric = ob->info.fabric,
	    .device = ob->info.device,
	    .code = code,
	    .text = text,
	    .peer = peer_name(ob->peer),
	    .region = ob->region,
	    .region_id = ob->grant.region_id,
	};
	char address[TEXT_ADDRESS_MAX];

	e.address = text_address_port(address, (const struct sockaddr *)&ob->address);
	tell(ob->core, &e);
}

void
event_refused(struct core *core, const struct sockaddr *from, unsigned code, const char *text)
{
	struct event_view e = {
	    .kind = EVENT_REFUSED,
	    .direction = "in",
	    .fabric = "",
	    .device = "",
	    .code = code,
	    .text = text,
	    .region = "",
	};
	char address[TEXT_ADDRESS_MAX], peer[TEXT_ADDRESS_MAX];

	core_peer_name(core, from, peer);
	e.peer = peer;
	e.address = text_address(address, from);
	tell(core, &e);
}

/* ---- what was written ---- */

static struct event_view
describe_region(const struct region *region, const struct arrival_view *arrival)
{
	return (struct event_view){
	    .direction = "in",
	    .fabric = region->fabric,
	    .device = region->device,
	    .peer = region->peer,
	    .address = region->address,
	    .region = region->section,
	    .region_id = region->id,
	    .arrival = arrival,
	    .path = arrival->path,
	};
}

void
event_arrived(struct region *region)
{
	struct event_view e = describe_region(region, &region->last);

	e.kind = region->sink->kind == RWP_SINK_SPOOL ? EVENT_STORED : EVENT_ARRIVAL;
	tell(region->core, &e);
}

void
event_arrival_failed(struct arrival *a)
{
	struct event_view e = describe_region(a->region, &a->view);

	e.kind = EVENT_FAILED;
	e.code = a->fail_code;
	e.text = a->fail_why.text;
	tell(a->region->core, &e);
}

static const enum event_kind ENDS[] = {
    [TRANSFER_ARRIVED] = EVENT_ARRIVAL,
    [TRANSFER_STORED] = EVENT_STORED,
    [TRANSFER_REFUSED] = EVENT_REFUSED,
    [TRANSFER_FAILED] = EVENT_FAILED,
    [TRANSFER_DEADLINE] = EVENT_FAILED,
};

void
event_transfer(struct transfer *t)
{
	const struct transfer_view *v = &t->view;
	struct arrival_view file = {.crc32c = v->crc32c};
	struct event_view e = {
	    .kind = ENDS[v->state],
	    .direction = "out",
	    .fabric = v->fabric,
	    .device = v->device,
	    .code = v->code,
	    .text = v->text,
	    .peer = v->peer,
	    .address = v->address,
	    .region = v->region,
	    .region_id = v->region_id,
	    .transfer_id = v->id,
	    .arrival = &file,
	};

	file.length = v->length == UINT64_MAX ? v->sent : v->length;
	memcpy(file.name, v->name, sizeof(file.name));
	tell(t->core, &e);
}
