/* spool_name.c -- names in a spool directory */

#include "config.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "core/spool_name.h"

#define OWN "rwriter"

/* "." and the digits of SPOOL_VERSIONS. */
#define VERSION_ROOM 5

bool
spool_name_make(const char *foreign, char out[SPOOL_NAME_MAX])
{
	const char *slash = strrchr(foreign, '/');
	const char *last = slash != NULL ? slash + 1 : foreign;

	text_clean(out, SPOOL_NAME_MAX - VERSION_ROOM, last, strlen(last));
	if (out[0] == '.')
		out[0] = '_';
	return out[0] != '\0';
}

void
spool_name_version(const char *name, unsigned n, char out[SPOOL_NAME_MAX])
{
	if (n == 0)
		snprintf(out, SPOOL_NAME_MAX, "%s", name);
	else
		snprintf(out, SPOOL_NAME_MAX, "%.*s.%u", NAME_MAX - VERSION_ROOM, name,
		    n % (SPOOL_VERSIONS + 1)); /* not more: the compiler counts the bytes */
}

void
spool_name_own(const char *key, const char *suffix, char out[SPOOL_OWN_NAME])
{
	snprintf(out, SPOOL_OWN_NAME, "." OWN "-%s.%s", key, suffix);
}

bool
spool_name_key(const char *name, const char *suffix, char key[SPOOL_KEY_SIZE + 1])
{
	char again[SPOOL_OWN_NAME];

	if (sscanf(name, "." OWN "-%32[0-9a-f].", key) != 1 || strlen(key) != SPOOL_KEY_SIZE)
		return false;
	spool_name_own(key, suffix, again);
	return strcmp(again, name) == 0;
}
