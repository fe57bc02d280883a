/* table.c -- columns for people, as lsblk prints them; the fence around libsmartcols */

#include "config.h"

#include <libsmartcols/libsmartcols.h>
#include <stdlib.h>

#include "rwctl/table.h"

static const int FLAGS[] = {
    [COLUMN_TEXT] = 0,
    [COLUMN_NUMBER] = SCOLS_FL_RIGHT,
    [COLUMN_LONG] = SCOLS_FL_TRUNC,
};

struct table {
	struct libscols_table *scols;
	size_t columns;
	bool failed;
};

struct table *
table_new(const struct column *columns, size_t n)
{
	struct table *table = calloc(1, sizeof(*table));

	if (table == NULL)
		return NULL;
	table->columns = n;
	table->scols = scols_new_table();
	if (table->scols == NULL || scols_table_set_column_separator(table->scols, "  ") < 0)
		table->failed = true;
	for (size_t i = 0; i < n && !table->failed; i++)
		table->failed = scols_table_new_column(table->scols, columns[i].heading, 0,
				    FLAGS[columns[i].kind]) == NULL;
	return table;
}

void
table_row(struct table *table, const char *const *cells)
{
	struct libscols_line *line;

	if (table == NULL || table->failed)
		return;
	line = scols_table_new_line(table->scols, NULL);
	table->failed = line == NULL;
	for (size_t i = 0; i < table->columns && !table->failed; i++)
		table->failed =
		    scols_line_set_data(line, i, cells[i][0] != '\0' ? cells[i] : "-") < 0;
}

bool
table_print(struct table *table)
{
	bool done;

	if (table == NULL)
		return false;
	done = !table->failed && scols_print_table(table->scols) == 0;
	scols_unref_table(table->scols);
	free(table);
	return done;
}
