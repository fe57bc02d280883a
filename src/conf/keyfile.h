/* keyfile.h -- the file that holds a peer's key */

#pragma once

#include <stddef.h>
#include <stdint.h>

#include "conf/conf.h"

/* Reads the key. The file is a regular one that belongs to root or to the user that the daemon runs
 * as (root, which checks for others too, does not mind whose it is), and nobody else can read or
 * write it. 0, or -EINVAL and why it is not taken. */
int keyfile_read(const char *path, uint8_t key[CONF_KEY_SIZE], char *why, size_t size);
