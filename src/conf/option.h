/* option.h -- what rwriter.conf may say: the table of sections and their options
 *
 * It drives parsing, checking, defaults, printing and the test of the documentation. Files and
 * lines are conf_load.c's.
 */

#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/limits.h"
#include "base/list.h"
#include "conf/value.h"

struct conf_option {
	const char *key; /* NULL ends the table */
	const struct value_type *type;
	size_t offset;            /* of the field in the section's object */
	const char *default_text; /* in the file's syntax; NULL: the option must be given */
	const char *min, *max;    /* of a number, in the file's syntax; else NULL */
	const char *help;         /* one line */
};

struct conf_section {
	const char *word;                  /* "listen"; NULL ends the table */
	const struct conf_option *options; /* ends with a NULL key */
	/* Of a section with a name; without one both are 0, and the object is struct conf: */
	size_t size; /* of its object, which begins as struct conf_object */
	size_t list; /* offset of the list of objects in struct conf */
};

/* How struct conf_listen, conf_peer, conf_group and conf_region begin. */
struct conf_object {
	struct list node;
	char name[LIMIT_NAME + 1];
};

extern const struct conf_section OPTION_SECTIONS[];

/* NULL when there is none. */
const struct conf_section *option_section(const char *word);
const struct conf_option *option_find(const struct conf_section *section, const char *key);
void *option_object(const struct list *objects, const char *name);

/* The field of an option in its section's object. */
void *option_field(const struct conf_option *option, const void *object);
uint64_t option_number(const struct conf_option *option, const void *object);

/* Reads a value into the field: 0, or the errors of struct value_type. */
int option_parse(const struct conf_option *option, const char *value, void *object);
/* "key = value" lines. */
void option_print(const struct conf_option *option, const void *object, FILE *out);
/* "a size from 4K to 1T", "auto, verbs or iwarp". */
#define OPTION_TAKES_MAX 128
char *option_takes(const struct conf_option *option, char buf[OPTION_TAKES_MAX]);

/* All sections, and all keys of one, for people: "size, max-size, linger, keep". */
#define OPTION_KEYS_MAX 192
char *option_sections(char buf[OPTION_KEYS_MAX]);
char *option_keys(const struct conf_section *section, char buf[OPTION_KEYS_MAX]);
