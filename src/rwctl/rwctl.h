/* rwctl.h -- what the parts of rwctl share: options, exit status, messages, the commands */

#pragma once

#include <stdbool.h>
#include <stdint.h>

enum status {
	STATUS_DONE = 0,
	STATUS_FAILED = 1, /* refused, or it broke */
	STATUS_USAGE = 2,
	STATUS_UNREACHABLE = 3, /* no daemon answers */
	STATUS_DEADLINE = 4,
	STATUS_SIGNAL = 128, /* and the signal that cancelled: 130 for Ctrl-C */
};

struct options {
	const char *socket; /* NULL: the usual places */
	bool json;
	bool help, version;
	const char *region, *name;        /* NULL: not given, like all that follow */
	uint64_t timeout_ns, size, width; /* 0: not given */
	bool quiet, preserve, discard;
	const char *files_from, *since;
	bool all; /* of dump-region */
	const char *output;
};

/* "rwctl: ..." and, under it, what can be done about it, to standard error. */
void complain(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void advise(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* The commands; args is ended by NULL. Each returns an enum status. */
int cmd_write(const struct options *o, char **args);
int cmd_dump_region(const struct options *o, char **args);
int cmd_regions(const struct options *o, char **args);
int cmd_release(const struct options *o, char **args);
int cmd_status(const struct options *o, char **args);
int cmd_transfers(const struct options *o, char **args);
int cmd_explain(const struct options *o, char **args);
int cmd_events(const struct options *o, char **args);
int cmd_wait_arrival(const struct options *o, char **args);
int cmd_peers(const struct options *o, char **args);
int cmd_disconnect(const struct options *o, char **args);
int cmd_reload(const struct options *o, char **args);
int cmd_genkey(const struct options *o, char **args);
