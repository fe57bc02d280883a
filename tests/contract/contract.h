/* contract.h -- what fabric.h promises, as tests that run over any fabric
 *
 * Both ends are in this process, on one loop and one open fabric. The active side always writes
 * first, as iWARP demands.
 */

#pragma once

#include "fabric/fabric.h"

/* address: numeric, of an interface that the fabric can listen on. Prints as cmocka does; returns
 * how many tests failed. */
int contract_run(const char *title, const struct fabric_ops *ops, const char *address);

/* Its parts. */
int contract_connect(const char *title);
int contract_write(const char *title);
int contract_end(const char *title);
