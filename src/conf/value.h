/* value.h -- the types of values in rwriter.conf: how each is read and printed */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define VALUE_NUMBER_MAX 24
#define VALUE_NAME_RULE  "1 to 64 letters, digits, '.', '_' and '-', the first neither '.' nor '-'"

struct value_type {
	const char *takes; /* "auto, verbs or iwarp"; of a number what it is: "a size" */

	/* Of a number: */
	size_t width; /* bytes of the field: 2, 4 or 8 */
	int (*read)(const char *value, uint64_t *ret);
	char *(*write)(char *buf, uint64_t number); /* at most VALUE_NUMBER_MAX bytes */

	/* Of anything else: */
	bool list; /* the field is a struct list, and each value adds an item to it */
	/* 0, -EINVAL, -ERANGE, -ENODEV (no such interface), -EEXIST ("any" after another),
	 * -EDOM (what "%H" or "%t" stands for does not fit) or -ENOMEM. */
	int (*parse)(const char *value, void *field);
	/* Prints prefix, value and a newline; of a list each item so. */
	void (*print)(const void *field, const char *prefix, FILE *out);
};

extern const struct value_type VALUE_SIZE, VALUE_TIME, VALUE_COUNT, VALUE_PORT, VALUE_MODE;
extern const struct value_type VALUE_LEVEL, VALUE_FABRIC, VALUE_BOOL, VALUE_SINK, VALUE_CONFLICT;
extern const struct value_type VALUE_NAME, VALUE_PATH, VALUE_HOST, VALUE_DEVICE, VALUE_KEY_FILE;
extern const struct value_type VALUE_PROGRAM, VALUE_ARGUMENTS; /* value_program.c */
extern const struct value_type VALUE_DIRECTORY, VALUE_OWNER;
extern const struct value_type VALUE_ADDRESSES, VALUE_ALLOWS, VALUE_MEMBERS;
