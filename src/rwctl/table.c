/* table.c -- columns for people, as lsblk prints them; the fence around libsmartcols */

#include "config.h"

#include <libsmartcols/libsmartcols.h>
#include <stdlib.h>

#include "rwctl/table.h"

static const int FLAGS[] = {
    [COLUMN_TEXT] = 0,
    [COLUMN_NUMBER] = SCOLS_FL_RIGHT,
    [COLUMN_LONG] = SCOLS_FL_TRUNC,
    [COLUMN_NOTE] = SCOLS_FL_TRUNC | SCOLS_FL_HIDDEN, /* until there is one */
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

static int
set_cell(struct table *table, struct libscols_line *line, size_t i, const char *text)
{
	struct libscols_column *column = scols_table_get_column(table->scols, i);

	if (text[0] == '\0')
		return scols_line_set_data(line, i, "-");
	if (scols_column_is_hidden(column))
		scols_column_set_flags(column, FLAGS[COLUMN_LONG]);
	return scols_line_set_data(line, i, text);
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
		table->failed = set_cell(table, line, i, cells[i]) < 0;
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
