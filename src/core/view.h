/* view.h -- the core's objects as others may see them: plain copies for the control socket and the
 * log
 *
 * Strings are valid during the call that hands the view out. Names that came from a peer are clean
 * UTF-8 (text_clean). Times: *_at are nanoseconds of CLOCK_REALTIME, *_ns are durations.
 */

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/limits.h"
#include "base/text.h"

struct arrival_view {
	char name[LIMIT_FILE_NAME + 1];
	uint64_t offset; /* in the region's memory */
	uint64_t length;
	uint32_t crc32c;
	uint64_t at;
	char path[LIMIT_PATH + 1]; /* where it is stored; "": nowhere */
};

enum event_kind {
	EVENT_CONNECTED,    /* and admitted */
	EVENT_GRANTED,      /* a region, to the peer */
	EVENT_ARRIVAL,      /* verified in memory: here ("in"), or there ("out") */
	EVENT_STORED,       /* on stable storage */
	EVENT_FAILED,       /* a write, either way */
	EVENT_REFUSED,      /* a connection from a stranger or a peer; or our write, by the peer */
	EVENT_DISCONNECTED, /* what was connected */
	EVENT_HOOK,         /* a program has ended: daemon/hook.c */
};

struct event_view {
	enum event_kind kind;
	uint64_t at;
	const char *direction; /* "in", "out" */
	const char *peer;      /* configured name, or address; of our write: as it was named */
	const char *address;   /* "" while not known, as fabric and device */
	const char *fabric, *device;
	const char *region;                 /* its section, or the word that was asked for */
	uint32_t region_id;                 /* 0: none */
	uint32_t transfer_id;               /* of our write; else 0 */
	const char *path;                   /* where that is stored; "": nowhere here */
	const struct arrival_view *arrival; /* what was written, or NULL */
	unsigned code;                      /* enum rwp_code, 0: none */
	const char *text;                   /* why; "" where there is nothing to say */
};

struct region_view {
	uint32_t id;
	char region[LIMIT_NAME + 1];       /* section it was granted from */
	char peer[TEXT_ADDRESS_MAX];       /* configured name, or address */
	char claimed_name[LIMIT_NAME + 1]; /* what the writer calls itself */
	char address[TEXT_ADDRESS_MAX];
	const char *fabric;
	char device[64];
	bool keyed;                      /* the writer has proved the peer's key */
	const char *state;               /* "preparing", "granted", "receiving", "lingering" */
	const char *sink;                /* "memory", "spool", "discard" */
	uint64_t size;                   /* bytes granted, in each buffer */
	uint32_t buffers;                /* that arrivals take in turns */
	uint64_t generation;             /* as in rwriter/region.h */
	uint64_t arrivals;               /* verified transfers */
	uint64_t bytes;                  /* verified bytes, all arrivals together */
	char fabric_why[LIMIT_TEXT + 1]; /* what spoke against other fabrics, "" for nothing */
	uint64_t receive_completions;
	uint64_t granted_at;
	bool has_arrival; /* last is whole in the region now, or was stored, or discarded */
	struct arrival_view last;
};

struct peer_view {                   /* one connection, or a configured peer without one */
	char name[TEXT_ADDRESS_MAX]; /* configured name, or address */
	char claimed_name[LIMIT_NAME + 1];
	char address[TEXT_ADDRESS_MAX]; /* with port; "" while not resolved */
	bool configured;
	const char *direction; /* "in", "out", or "" without a connection */
	const char *state;     /* of the connection; "idle" without one */
	const char *fabric;    /* "" without a connection */
	bool keyed;            /* both sides have proved a key */
	char device[64];
	char fabric_why[LIMIT_TEXT + 1]; /* as in region_view */
	uint64_t since;                  /* 0 without a connection */
	uint32_t transfers;              /* finished on this connection */
	uint32_t queued;                 /* running on it; without a connection: waiting */
	char last_error[LIMIT_TEXT + 1];
};

struct listen_view {
	char name[LIMIT_NAME + 1];
	char address[TEXT_ADDRESS_MAX]; /* with port; "0.0.0.0:7471" and "[::]:7471" for all */
	const char *fabric;
	bool up;
	char detail[LIMIT_TEXT + 1]; /* devices when up; what is missing when not */
	bool host_only;              /* allow admits this machine alone */
};

enum refused { /* why connections were refused */
	REFUSED_ADDRESS,
	REFUSED_BUSY,        /* too many connections */
	REFUSED_KEY_UNKNOWN, /* no peer has it */
	REFUSED_KEY_WRONG,   /* it was not proved */
	REFUSED_KEY_NAMES,   /* proved, but for other names or another listener */
	REFUSED_KEY_MISSING, /* the region requires one */
	REFUSED_OTHER,
	REFUSED_CAUSES
};

struct status_view {
	char name[LIMIT_NAME + 1];
	uint8_t boot_id[8];
	uint64_t up_ns;
	uint64_t memory_used, memory_limit;
	uint32_t regions, connections, connections_limit, transfers;
	uint32_t unproven, unproven_limit; /* connections besides: no valid HELLO yet */
	uint64_t refused[REFUSED_CAUSES];
	uint64_t reconnects; /* connections lost under a transfer that went on */
	bool stopping;
};

enum transfer_state {
	TRANSFER_QUEUED,       /* waits for its turn on the connection */
	TRANSFER_CONNECTING,   /* the connection is being made */
	TRANSFER_RECONNECTING, /* it was lost, text says how, and is being made again */
	TRANSFER_CHECKING,     /* what the target has already is compared with the source */
	TRANSFER_SENDING,
	TRANSFER_CONFIRMING, /* all sent; the target verifies */
	TRANSFER_ARRIVED,    /* from here on: final */
	TRANSFER_STORED,
	TRANSFER_REFUSED,  /* the peer said no: code, text, fix */
	TRANSFER_FAILED,   /* it broke: text, fix */
	TRANSFER_DEADLINE, /* the caller's time was up */
};

const char *transfer_state_name(enum transfer_state state);

struct transfer_view { /* progress, and the result when the state is final */
	uint32_t id;
	enum transfer_state state;
	char peer[TEXT_ADDRESS_MAX];    /* as the caller named it */
	char address[TEXT_ADDRESS_MAX]; /* with port; "" before it is resolved */
	char name[LIMIT_FILE_NAME + 1];
	uint64_t length;      /* UINT64_MAX: not known yet */
	uint64_t sent;        /* its first bytes: handed to the fabric, or at the target already */
	uint64_t arrived;     /* ... that the target has verified */
	uint64_t durable;     /* ... that are on stable storage there */
	uint64_t resumed;     /* ... that the target had when it was asked last */
	uint64_t checked;     /* ... of them that were compared with the source */
	uint64_t sent_again;  /* bytes sent more than once, since connections were lost */
	uint32_t reconnects;  /* connections that were lost under it */
	uint64_t duration_ns; /* of the transfer, connection set-up included */
	uint64_t sending_ns;  /* first byte to result */
	uint32_t region_id;   /* on the target; 0: none */
	char region[LIMIT_NAME + 1];
	const char *fabric; /* "" before there is a connection */
	char device[64];
	char fabric_why[LIMIT_TEXT + 1]; /* as in region_view */
	uint32_t crc32c;                 /* of all bytes, when arrived or stored */
	unsigned code;             /* enum rwp_code when refused or failed by the peer; else 0 */
	char text[LIMIT_TEXT + 1]; /* what is wrong: "refused 2.0 GiB for region ..." */
	char fix[LIMIT_TEXT + 1];  /* what to change; "" if nothing is known */
	bool fix_on_peer;          /* the fix is to be made on the peer's machine, not here */
	char host[LIMIT_NAME + 1]; /* the peer's own name, when it told it */
};
