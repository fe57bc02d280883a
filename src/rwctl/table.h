/* table.h -- columns for people, as lsblk prints them; the fence around libsmartcols */

#pragma once

#include <stdbool.h>
#include <stddef.h>

struct table;

enum column_kind {
	COLUMN_TEXT,
	COLUMN_NUMBER, /* to the right */
	COLUMN_LONG,   /* text that is cut where the terminal is too narrow */
	COLUMN_NOTE,   /* the same, and hidden when no row has any */
};

struct column {
	const char *heading;
	enum column_kind kind;
};

/* NULL without memory: the others accept that. */
struct table *table_new(const struct column *columns, size_t n);
/* A row of n cells, which are copied; "" shows as "-". */
void table_row(struct table *table, const char *const *cells);
/* Prints to standard output and frees; false when memory was short. */
bool table_print(struct table *table);
