/* loader.h -- a configuration being loaded: its errors, and where everything in it was said
 *
 * Shared by conf_load.c, which reads the files, and complete.c, which fills in and checks what they
 * said.
 */

#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "conf/conf.h"
#include "conf/option.h"

#define LOADER_LINE_MAX 190 /* inih's buffer has 200 bytes, for newline and NUL too */

/* Where something was said, so that a later check can point at it. */
struct place {
	struct list node;
	const void *object;
	const struct conf_option *option; /* NULL: the header of the section */
	const struct list *item;          /* what the value added to a list, else NULL */
	bool bad;                         /* the value was not accepted */
	const char *path;
	unsigned line;
};

/* A file that was read; places point at its path. */
struct source {
	struct list node;
	char path[];
};

struct loader {
	struct conf *conf;
	FILE *errors;
	int result; /* 0, or what conf_load() will return */
	struct list places, sources;

	/* What loader_complain() points at: */
	const char *path;
	unsigned line; /* 0: the file as a whole */
	const struct conf_section *section;
	void *object;

	FILE *in;      /* the file being read */
	bool skipping; /* the section's header was refused, so its lines mean nothing */
};

/* ---- errors ---- */

/* Makes conf_load() return it. The first real failure outweighs all mistakes in the files. */
void loader_fail(struct loader *l, int result);
/* Prints "file:line: [section name] key: ..." of what l points at; the key may be NULL. */
void loader_complain(struct loader *l, const char *key, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* The same, but what it says is no error. */
void loader_warn(struct loader *l, const char *key, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* ... key: "value" is not understood; takes ...; for example: ... The errors of struct value_type,
 * and -ENODATA: empty. */
void loader_complain_value(
    struct loader *l, const struct conf_option *option, const char *value, int error);

/* What a line says, safe to print. */
struct quoted {
	char text[LOADER_LINE_MAX + 1];
};
struct quoted loader_quote(const char *foreign);

/* ---- places ---- */

/* Remembers where the current object was opened (option NULL) or an option of it was set. NULL
 * after loader_fail() when there is no memory. */
struct place *loader_add_place(struct loader *l, const struct conf_option *option);
/* The first place of that option, and of that item unless it is NULL; or NULL. */
struct place *loader_find_place(struct loader *l, const void *object,
    const struct conf_option *option, const struct list *item);
/* Points at an option: where it was set, else where its section begins, else the whole file. */
void loader_point_at(struct loader *l, const struct conf_section *section, void *object,
    const struct conf_option *option, const struct list *item);
void loader_free_notes(struct loader *l);

/* ---- objects ---- */

struct list *loader_list(const struct loader *l, const struct conf_section *section);
/* NULL after loader_fail() when there is no memory. */
void *loader_add_object(struct loader *l, const struct conf_section *section, const char *name);
/* Gives the current object's option a value; place: where it is written, NULL for a default. */
void loader_apply(
    struct loader *l, const struct conf_option *option, const char *value, struct place *place);
