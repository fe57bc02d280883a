/* spool_name.h -- names in a spool directory: those of files, made of what a peer says, and our own
 *
 * Our own begin with '.', and none that is made of a peer's word does. Pure.
 */

#pragma once

#include <stdbool.h>
#include <limits.h>

#define SPOOL_NAME_MAX (NAME_MAX + 1)
#define SPOOL_VERSIONS 9999 /* "name.1" to "name.9999" */
#define SPOOL_KEY_SIZE 32   /* hexadecimal digits */
#define SPOOL_OWN_NAME (SPOOL_KEY_SIZE + 32)
#define SPOOL_PART     "part"
#define SPOOL_JOURNAL  "journal"

/* One safe component: what is behind the last '/', without control characters, its first '.' made
 * to '_', cut to leave room for a version. False: nothing is left. */
bool spool_name_make(const char *foreign, char out[SPOOL_NAME_MAX]);
/* "name" for 0, else "name.N". */
void spool_name_version(const char *name, unsigned n, char out[SPOOL_NAME_MAX]);

/* ".rwriter-KEY.part" and ".rwriter-KEY.journal". */
void spool_name_own(const char *key, const char *suffix, char out[SPOOL_OWN_NAME]);
/* The key of such a name; false: it is no such name. */
bool spool_name_key(const char *name, const char *suffix, char key[SPOOL_KEY_SIZE + 1]);
