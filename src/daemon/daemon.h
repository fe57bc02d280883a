/* daemon.h -- rwriterd as a function: options, configuration, ordered start, loop, ordered end */

#pragma once

struct fabric_ops;

/* fabrics: the back ends, ended by NULL (tests put twisted ones in). Returns the exit status: 0
 * stopped in good order (or -t found no fault), 1 the configuration is bad, or the start or the
 * loop failed, 2 usage. */
int daemon_main(int argc, char **argv, const struct fabric_ops *const *fabrics);
