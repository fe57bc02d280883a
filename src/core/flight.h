/* flight.h -- where the time of a transfer or of an arrival went; pure bookkeeping
 *
 * A phase is marked when it is reached: it took the time since the phase that was reached before
 * it. Beside that runs what is waited for, one thing at a time.
 */

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/limits.h"
#include "base/text.h"

enum flight_phase {
	FLIGHT_RESOLVE,  /* the way to the peer is known */
	FLIGHT_CONNECT,  /* it has answered */
	FLIGHT_HELLO,    /* HELLO is out, or has come */
	FLIGHT_GRANT,    /* GRANT has come, or is out */
	FLIGHT_REGISTER, /* the memory for it is registered */
	FLIGHT_FIRST_BYTE,
	FLIGHT_LAST_BYTE,
	FLIGHT_VERIFY, /* the target has verified all */
	FLIGHT_FSYNC,  /* ... and has it on stable storage */
	FLIGHT_RESULT,
	FLIGHT_PHASES
};

enum flight_wait {
	FLIGHT_NOTHING,
	FLIGHT_SOURCE, /* bytes to send */
	FLIGHT_WINDOW, /* room at the target */
	FLIGHT_DEVICE, /* the fabric, which has not written what it was given */
	FLIGHT_POLL,   /* the writer's next record, which is looked for in memory */
	FLIGHT_DISK,   /* the directory of a spool */
	FLIGHT_WAITS
};

/* All times are those of one monotonic clock, in nanoseconds. */
struct flight {
	uint64_t begun;
	uint64_t at[FLIGHT_PHASES]; /* 0: not reached */
	uint64_t waited[FLIGHT_WAITS];
	enum flight_wait waiting;
	uint64_t waiting_since;
};

const char *flight_phase_name(enum flight_phase phase);
const char *flight_wait_name(enum flight_wait wait);

void flight_begin(struct flight *f, uint64_t now);
/* The first time counts. */
void flight_mark(struct flight *f, enum flight_phase phase, uint64_t now);
/* From now on it waits for this; FLIGHT_NOTHING: it goes on. */
void flight_wait(struct flight *f, enum flight_wait wait, uint64_t now);
/* What a connection has been through since f began is part of f's way. */
void flight_join(struct flight *f, const struct flight *connection);
/* The time since the phase that was reached before; 0 for one that was not. */
uint64_t flight_took(const struct flight *f, enum flight_phase phase);

/* ---- those that have ended ---- */

struct flight_record {
	bool in; /* an arrival, else a transfer; each kind has its numbers */
	uint32_t id;
	char name[LIMIT_FILE_NAME + 1];
	char peer[TEXT_ADDRESS_MAX];
	const char *state; /* how it ended: static */
	uint64_t length;
	struct flight flight;
};

struct flight_log { /* zeros: none */
	struct flight_record kept[LIMIT_FLIGHTS];
	uint64_t next; /* number n is at n modulo LIMIT_FLIGHTS */
};

/* The oldest goes for it. The caller fills in what is returned. */
struct flight_record *flight_log_add(struct flight_log *log);
void flight_log_each(
    const struct flight_log *log, void (*fn)(void *arg, const struct flight_record *r), void *arg);
