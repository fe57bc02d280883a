/* conf.h -- the configuration: rwriter.conf(5) as structs
 *
 * The fence around inih. One table in option.c drives parsing, validation, defaults, `rwriterd -t`
 * and the test that compares it with etc/rwriter.conf and the man page. A configuration is parsed
 * fresh, checked whole, and swapped in; nothing changes it afterwards.
 */

#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>

#include "base/limits.h"
#include "base/list.h"
#include "base/log.h"

#define CONF_FILE SYSCONFDIR "/rwriter/rwriter.conf"

#define CONF_KEY_SIZE 32

enum conf_fabric { CONF_FABRIC_AUTO, CONF_FABRIC_VERBS, CONF_FABRIC_IWARP };

enum conf_sink { CONF_SINK_MEMORY, CONF_SINK_SPOOL, CONF_SINK_DISCARD };

enum conf_conflict { CONF_CONFLICT_KEEP, CONF_CONFLICT_REPLACE, CONF_CONFLICT_VERSION };

enum conf_allow_kind { CONF_ALLOW_HOST, CONF_ALLOW_ANY, CONF_ALLOW_NETWORK, CONF_ALLOW_PEER };

struct conf_allow {
	struct list node;
	enum conf_allow_kind kind;
	struct sockaddr_storage
	    network; /* CONF_ALLOW_NETWORK; a single address has the full prefix */
	unsigned prefix;
	char peer[LIMIT_NAME + 1]; /* CONF_ALLOW_PEER */
};

struct conf_address { /* of a listen section; none in the list: all addresses */
	struct list node;
	struct sockaddr_storage address; /* port filled in */
};

struct conf_listen {
	struct list node;
	char name[LIMIT_NAME + 1];
	struct list addresses; /* struct conf_address */
	uint16_t port;
	enum conf_fabric fabric;
	char device[LIMIT_NAME + 1]; /* "": any */
	struct list allow;           /* struct conf_allow; never empty after parsing */
};

struct conf_peer {
	struct list node;
	char name[LIMIT_NAME + 1];
	char address[LIMIT_NAME * 4]; /* host name or numeric address */
	uint16_t port;
	enum conf_fabric fabric;
	char key_file[LIMIT_NAME * 4]; /* as it was given; "": none */
	uint8_t key[CONF_KEY_SIZE];    /* what the file holds */
};

struct conf_member {
	struct list node;
	char peer[LIMIT_NAME + 1];
};

struct conf_group { /* peers that `rwctl write @NAME` writes to */
	struct list node;
	char name[LIMIT_NAME + 1];
	struct list members; /* struct conf_member, each once; never empty after parsing */
};

struct conf_argument {
	struct list node;
	char text[LIMIT_NAME * 4];
};

struct conf_owner {
	char text[LIMIT_NAME * 2 + 2]; /* as it was given; "": whoever the daemon is */
	uint32_t uid, gid;             /* UINT32_MAX: as it comes about */
};

struct conf_region {
	struct list node;
	char name[LIMIT_NAME + 1];
	enum conf_sink sink;
	uint64_t size;      /* bytes granted at the least; those of a ring */
	uint64_t max_size;  /* bytes granted at the most */
	uint64_t linger_ns; /* how long the bytes stay readable when the connection has ended */
	uint32_t buffers;   /* that arrivals take in turns, each of the size granted */
	bool require_key;   /* only a writer that proved its key is granted one */
	uint32_t keep;      /* regions without a connection kept at the most */
	char program[LIMIT_NAME * 4]; /* run for each arrival; "": none */
	struct list arguments;        /* struct conf_argument */

	/* sink = spool */
	char directory[LIMIT_NAME * 4]; /* "": none */
	uint32_t mode;
	struct conf_owner owner;
	enum conf_conflict conflict;
	uint64_t free;            /* bytes of the disk that stay free */
	uint64_t keep_partial_ns; /* how long a file that is not whole waits for its rest */
};

struct conf {
	/* [rwriter] */
	char name[LIMIT_NAME + 1]; /* this daemon's name; default: the host's */
	char control[108];         /* path of the control socket (sun_path) */
	enum log_level log_level;

	/* [limits] */
	uint32_t connections;   /* both ways together */
	uint32_t unproven;      /* besides: from strangers who have not said a valid HELLO */
	uint64_t pinned_memory; /* bytes, all regions and staging together */
	uint64_t beat_ns;       /* each side rewrites its line so often */
	uint64_t dead_ns;       /* no new beat for so long ends the connection */
	uint64_t hello_ns;      /* from the connection request to a valid HELLO */
	uint64_t setup_ns;      /* from the connection request (connect) to the grant */
	uint64_t idle_ns;       /* a connection without a transfer is closed */
	uint64_t stall_ns;      /* a transfer without progress fails */
	uint32_t width;         /* peers that one rwctl write sends to at once */
	uint64_t reconnect_ns;  /* a transfer without its connection tries again for so long */
	uint64_t stop_ns;       /* SIGTERM waits so long for running transfers */
	uint32_t hooks;         /* programs of regions that run at once */
	uint64_t hook_time_ns;  /* how long one may run */
	uint64_t retry_ns;      /* the longest pause before a listener that failed is tried again */

	/* [arrival] */
	uint64_t spin_ns; /* poll without pause after activity */
	uint64_t interval_min_ns, interval_max_ns;

	/* [iwarp] */
	bool mpa_crc;

	struct list listens; /* struct conf_listen; the built-in "default" when the file has none */
	struct list peers;   /* struct conf_peer */
	struct list groups;  /* struct conf_group */
	struct list regions; /* struct conf_region; always holds "default" */
};

/* Reads file and, beside it, conf.d/[*].conf in order; NULL file: CONF_FILE, which may be missing;
 * a file that was named must exist. Every error is printed to errors as "file:line: [section name]
 * key: what is wrong; the limit; the fix", and the reading goes on, so that all are seen; so is a
 * warning, which is no error. Key files are read. 0, -EINVAL (errors printed), -ENOMEM, or what
 * opening a file said (printed too); *ret only on 0. */
int conf_load(const char *file, FILE *errors, struct conf **ret);
struct conf *conf_free(struct conf *conf);

/* The effective configuration in the file's own syntax (`rwriterd -t`). */
void conf_print(const struct conf *conf, FILE *out);
/* Every option as a line "section.key<TAB>default<TAB>what it takes<TAB>help" (`rwriterd
 * --options`); the default of an option that must be given is "-". */
void conf_print_options(FILE *out);

/* NULL when there is none of that name. */
const struct conf_peer *conf_find_peer(const struct conf *conf, const char *name);
const struct conf_group *conf_find_group(const struct conf *conf, const char *name);
const struct conf_region *conf_find_region(const struct conf *conf, const char *name);
const struct conf_listen *conf_find_listen(const struct conf *conf, const char *name);

const char *conf_fabric_name(enum conf_fabric fabric); /* "auto", "verbs", "iwarp" */
