/* region.c -- memory granted to one connection, and what has arrived in it */

#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/page.h"
#include "core/event.h"
#include "core/inbound.h"
#include "core/priv.h"
#include "core/region.h"
#include "core/sink.h"

static const char *const STATES[] = {
    [REGION_PREPARING] = "preparing",
    [REGION_GRANTED] = "granted",
    [REGION_RECEIVING] = "receiving",
    [REGION_LINGERING] = "lingering",
};

static void
set_state(struct region *region, enum region_state state)
{
	log_debug("region %u: %s -> %s", region->id, STATES[region->state], STATES[state]);
	region->state = state;
	core_changed(region->core);
}

static void
on_linger_end(void *arg)
{
	region_free(arg);
}

/* ---- preparing: memory, then registration ---- */

static void
on_registered(struct registration *r, int error, const char *detail)
{
	struct region *region = container_of(r, struct region, reg);

	if (error == 0) {
		flight_mark(&region->flight, FLIGHT_REGISTER, loop_now());
		set_state(region, REGION_GRANTED);
		memory_touch(region->memory);
	}
	inbound_region_ready(region->inbound, error, detail);
}

static void
write_label(struct region *region)
{
	if (region->sink->ring)
		return; /* nothing stays in it for readers */
	region->label = memory_behind(region->memory);
	label_init(region->label, region->id, region->size, region->buffers);
}

static void
on_memory(struct memory_request *request, struct memory *memory, int error)
{
	struct region *region = container_of(request, struct region, request);
	struct channel *ch = &region->inbound->channel;

	region->memory = memory;
	if (error == 0) {
		write_label(region);
		error = registration_add(
		    &region->reg, ch, memory->pages.addr, memory->size, FABRIC_REMOTE_WRITE);
	}
	if (error < 0)
		inbound_region_ready(region->inbound, error, NULL);
	channel_release(ch);
}

static void
describe(struct region *region, struct inbound *inbound)
{
	struct fabric_info info;

	inbound_describe(inbound, &info);
	region->fabric = info.fabric;
	memcpy(region->device, info.device, sizeof(region->device));
	memcpy(region->fabric_why, inbound->fabric_why, sizeof(region->fabric_why));
	text_address(region->address, (struct sockaddr *)&info.remote);
	memcpy(region->peer, inbound->peer, sizeof(region->peer));
	memcpy(region->claimed_name, inbound->hello.writer, sizeof(region->claimed_name));
	region->keyed = inbound->auth.keyed;
}

static int
start(struct region *region, struct channel *ch)
{
	int error;

	if (!region_evict(region->core, page_round(region_bytes(region))))
		return -ENOBUFS;
	error = pool_get(region->core->pool, region_bytes(region), &region->request);
	if (error == 0)
		channel_hold(ch);
	return error;
}

int
region_new(struct core *core, struct inbound *inbound, const struct conf_region *conf,
    uint64_t size, struct region **ret)
{
	struct region *region = calloc(1, sizeof(*region));
	int error = -ENOMEM;

	if (region == NULL)
		return -ENOMEM;
	region->core = core;
	region->inbound = inbound;
	region->sink = sink_of(conf->sink);
	region->size = size;
	region->buffers = conf->buffers;
	memcpy(region->section, conf->name, sizeof(region->section));
	region->request.fn = on_memory;
	region->request.behind = region->sink->ring ? 0 : RWRITER_LABEL_SIZE;
	region->reg.on_ready = on_registered;
	describe(region, inbound);
	if (loop_timer_new(core->env.loop, on_linger_end, region, &region->linger_timer) == 0)
		error = start(region, &inbound->channel);
	if (error < 0) {
		loop_timer_free(region->linger_timer);
		free(region);
		return error;
	}
	region->id = ++core->last_region;
	list_add_tail(&core->regions, &region->node);
	*ret = region;
	return 0;
}

/* ---- arrivals ---- */

uint64_t
region_bytes(const struct region *region)
{
	return region->size * region->buffers;
}

uint64_t
region_base(const struct region *region)
{
	return region->arrivals % region->buffers * region->size;
}

/* With a second buffer the last arrival stays whole meanwhile. */
void
region_begin(struct region *region)
{
	if (region->flight.at[FLIGHT_FIRST_BYTE] != 0) /* of the one before */
		flight_begin(&region->flight, loop_now());
	flight_mark(&region->flight, FLIGHT_FIRST_BYTE, loop_now());
	if (region->buffers == 1 && region->label != NULL) {
		region->has_arrival = false;
		label_overwritten(region->label);
	}
	set_state(region, REGION_RECEIVING);
}

static void
record(struct region *region, const char *state, const struct arrival_view *arrival)
{
	struct flight_record *r = flight_log_add(&region->core->received);

	flight_wait(&region->flight, FLIGHT_NOTHING, loop_now());
	flight_mark(&region->flight, FLIGHT_RESULT, loop_now());
	r->in = true;
	r->id = region->core->received.next;
	memcpy(r->name, arrival->name, sizeof(r->name));
	memcpy(r->peer, region->peer, sizeof(r->peer));
	r->state = state;
	r->length = arrival->length;
	r->flight = region->flight;
}

void
region_arrived(struct region *region, const struct arrival_view *arrival)
{
	struct region_view view;

	region->last = *arrival;
	region->last.offset = region_base(region);
	region->has_arrival = true;
	if (region->label != NULL)
		label_arrived(region->label, &region->last, region->peer);
	region->arrivals++;
	region->bytes += arrival->length;
	set_state(region, REGION_GRANTED);
	region_view(region, &view);
	if (region->core->observer.arrived != NULL)
		region->core->observer.arrived(region->core->observer.arg, &view);
	event_arrived(region);
	record(region, region->sink->kind == RWP_SINK_SPOOL ? "stored" : "arrived", arrival);
}

void
region_failed(struct region *region)
{
	set_state(region, REGION_GRANTED);
}

/* ---- the end ---- */

void
region_revoke(struct region *region)
{
	registration_drop(&region->reg);
}

/* Of the connection as it is, or was at its end. */
static void
count_completions(struct region *region)
{
	struct fabric_info info;

	if (region->inbound == NULL)
		return;
	inbound_describe(region->inbound, &info);
	region->receive_completions = info.receive_completions;
}

void
region_free(struct region *region)
{
	log_debug("region %u: gone", region->id);
	list_del(&region->node);
	loop_timer_free(region->linger_timer);
	memory_put(region->memory);
	core_changed(region->core);
	free(region);
}

/* The oldest lingering region, of this section or of any (NULL). */
static struct region *
oldest_lingering(struct core *core, const char *section, unsigned *count)
{
	struct region *region, *oldest = NULL;

	*count = 0;
	list_for_each (region, &core->regions, struct region, node) {
		if (region->state != REGION_LINGERING ||
		    (section != NULL && strcmp(region->section, section) != 0))
			continue;
		++*count;
		if (oldest == NULL || region->last.at < oldest->last.at)
			oldest = region;
	}
	return oldest;
}

void
region_detach(struct region *region)
{
	const struct conf_region *conf = conf_find_region(region->core->conf, region->section);
	struct core *core;
	struct region *oldest;
	unsigned count;

	count_completions(region);
	region->inbound = NULL;
	if (region->label != NULL)
		label_ended(region->label);
	if (!region->has_arrival || region->sink->ring || region->released || conf == NULL ||
	    conf->linger_ns == 0 || conf->keep == 0 || region->core->stopping) {
		region_free(region);
		return;
	}
	set_state(region, REGION_LINGERING);
	loop_timer_set(region->linger_timer, conf->linger_ns);
	core = region->core; /* the region itself may be the one that goes */
	while ((oldest = oldest_lingering(core, conf->name, &count)) != NULL && count > conf->keep)
		region_free(oldest);
}

static uint64_t
lingering_bytes(const struct core *core)
{
	const struct region *region;
	uint64_t bytes = 0;

	list_for_each (region, &core->regions, struct region, node)
		if (region->state == REGION_LINGERING)
			bytes += region->memory->size;
	return bytes;
}

bool
region_evict(struct core *core, uint64_t size)
{
	struct region *oldest;
	unsigned count;

	if (pool_room(core->pool) + lingering_bytes(core) < size)
		return false;
	while (pool_room(core->pool) < size) {
		oldest = oldest_lingering(core, NULL, &count);
		log_info("region %u: goes, its memory is needed", oldest->id);
		region_free(oldest);
	}
	return true;
}

/* ---- looking ---- */

void
region_view(struct region *region, struct region_view *ret)
{
	count_completions(region);
	*ret = (struct region_view){
	    .id = region->id,
	    .fabric = region->fabric,
	    .keyed = region->keyed,
	    .state = STATES[region->state],
	    .sink = region->sink->name,
	    .size = region->size,
	    .buffers = region->buffers,
	    .generation = region->label != NULL ? region->label->generation : 1,
	    .arrivals = region->arrivals,
	    .bytes = region->bytes,
	    .receive_completions = region->receive_completions,
	    .granted_at = region->granted_at,
	    .has_arrival = region->has_arrival,
	    .last = region->last,
	};
	memcpy(ret->region, region->section, sizeof(ret->region));
	memcpy(ret->peer, region->peer, sizeof(ret->peer));
	memcpy(ret->claimed_name, region->claimed_name, sizeof(ret->claimed_name));
	memcpy(ret->address, region->address, sizeof(ret->address));
	memcpy(ret->device, region->device, sizeof(ret->device));
	memcpy(ret->fabric_why, region->fabric_why, sizeof(ret->fabric_why));
}

struct region *
region_find(struct core *core, uint32_t id)
{
	struct region *region;

	list_for_each (region, &core->regions, struct region, node)
		if (region->id == id)
			return region;
	return NULL;
}
