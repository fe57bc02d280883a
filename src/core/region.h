/* region.h -- memory granted to one connection, and what has arrived in it
 *
 *   preparing > granted > lingering > (gone)
 *                  ^v
 *               receiving
 *
 * A region outlives its connection while it holds an arrival ([region NAME] linger, keep); then it
 * is out of every peer's reach and goes oldest first when memory is needed.
 */

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "core/channel.h"
#include "core/flight.h"
#include "core/label.h"
#include "core/pool.h"
#include "core/view.h"

struct conf_region;
struct core;
struct inbound;
struct sink;

enum region_state { REGION_PREPARING, REGION_GRANTED, REGION_RECEIVING, REGION_LINGERING };

struct region {
	struct list node;
	struct core *core;
	uint32_t id;
	enum region_state state;
	struct inbound *inbound; /* NULL while lingering */
	char section[LIMIT_NAME + 1];
	char peer[TEXT_ADDRESS_MAX], address[TEXT_ADDRESS_MAX], claimed_name[LIMIT_NAME + 1];
	const char *fabric;
	char device[64];
	char fabric_why[LIMIT_TEXT + 1];
	bool keyed; /* the writer has proved the peer's key */

	const struct sink *sink;
	uint64_t size;               /* of a buffer */
	uint32_t buffers;            /* that arrivals take in turns */
	struct memory *memory;       /* of all buffers; behind them is the label */
	struct rwriter_label *label; /* NULL: a ring, or there is no memory yet */
	struct memory_request request;
	struct registration reg;
	struct loop_timer *linger_timer;
	bool released; /* by an operator: does not linger */

	uint64_t granted_at;
	uint64_t arrivals, bytes, receive_completions;
	bool has_arrival; /* last is whole in memory, or is stored */
	struct arrival_view last;
	struct flight flight; /* of the connection, and of the arrival that comes */
};

/* Starts to prepare size bytes for inbound; inbound_region_ready() follows. -ENOBUFS (over the
 * budget, even after evicting what lingers) or -ENOMEM. */
int region_new(struct core *core, struct inbound *inbound, const struct conf_region *conf,
    uint64_t size, struct region **ret);
/* Bytes of all buffers. */
uint64_t region_bytes(const struct region *region);
/* Where the transfer that is open, or comes next, lies in them. */
uint64_t region_base(const struct region *region);
/* A transfer begins to overwrite the region; then it has ended: with an arrival, or without. */
void region_begin(struct region *region);
void region_arrived(struct region *region, const struct arrival_view *arrival);
void region_failed(struct region *region);
/* No write of the peer reaches the memory any more (as far as the fabric can do that at once). */
void region_revoke(struct region *region);
/* The connection is gone and nothing of it touches the memory: lingers, or goes. */
void region_detach(struct region *region);
/* A lingering region goes now. */
void region_free(struct region *region);

void region_view(struct region *region, struct region_view *ret);
struct region *region_find(struct core *core, uint32_t id);
/* Lingering regions go, oldest first, until size bytes can be had. False, and none goes: it would
 * not suffice. */
bool region_evict(struct core *core, uint64_t size);
