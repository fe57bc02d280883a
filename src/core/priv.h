/* priv.h -- the core from inside: what its modules share; nothing outside core/ includes it */

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "conf/conf.h"
#include "core/core.h"
#include "core/flight.h"
#include "core/pool.h"
#include "core/poller.h"
#include "core/source.h"
#include "fabric/fabric.h"
#include "loop/loop.h"

#define CORE_FABRICS_MAX 4

struct core_fabric { /* one back end of core_env.fabrics */
	const struct fabric_ops *ops;
	struct fabric *fabric; /* NULL: this machine lacks something */
	const char *missing;   /* then: what, */
	int error;             /* and open()'s */
};

struct core {
	struct core_env env;
	const struct conf *conf;
	struct observer observer;
	struct core_fabric fabrics[CORE_FABRICS_MAX];
	unsigned n_fabrics;
	struct pool *pool;
	struct source_env sources; /* share: of env.source */
	struct keyring *keyring;   /* of conf; NULL: there was no memory */
	struct refusals *refusals;
	struct poller *poller;
	struct list spools;   /* struct spool */
	struct list finished; /* struct finished: spool.c */
	unsigned n_finished;
	unsigned spool_jobs; /* that belong to no connection */

	uint8_t boot_id[8];
	uint64_t started_ns; /* loop_now() */

	struct addresses *addresses; /* NULL: nobody tells */
	struct device_files *files;  /* NULL: nobody tells */
	struct list listeners;       /* struct listener */
	struct list inbounds;        /* struct inbound */
	struct list regions;         /* struct region, by id */
	struct list peers;           /* struct peer */
	struct list transfers;       /* struct transfer, by id */
	uint32_t connections;        /* inbound and outbound, but for: */
	uint32_t unproven;           /* inbound without a valid HELLO */
	uint32_t last_region, last_transfer, last_generation;
	uint64_t reconnects;
	struct flight_log sent, received;
	uint32_t orphans; /* refused connections whose CLOSED is to come */

	bool stopping;
	struct loop_timer *stop_timer;
	struct loop_task changed_task, stopped_task;
};

/* Opens the back end if it is not open yet: machines change. */
void core_open_fabric(struct core *core, struct core_fabric *f);

/* The configuration (auto, or its name) admits the back end. */
bool core_fabric_wanted(const struct core_fabric *f, enum conf_fabric fabric);

/* Something that status shows has changed, or something has gone that core_stop() waits for. */
void core_changed(struct core *core);

/* The configured peer at this address if it is the only one there; else the address itself. */
void core_peer_name(struct core *core, const struct sockaddr *address, char buf[TEXT_ADDRESS_MAX]);
