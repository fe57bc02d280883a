/* value_program.c -- programs and their arguments in rwriter.conf */

#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "conf/conf.h"
#include "conf/value.h"

static int
parse_program(const char *value, void *field)
{
	if (strcmp(value, "none") == 0) {
		strcpy(field, "");
		return 0;
	}
	if (strlen(value) >= sizeof(((struct conf_region *)NULL)->program))
		return -ERANGE;
	if (value[0] != '/' || !text_is_clean(value, strlen(value)))
		return -EINVAL;
	strcpy(field, value);
	return 0;
}

static void
print_program(const void *field, const char *prefix, FILE *out)
{
	fprintf(out, "%s%s\n", prefix, *(const char *)field != '\0' ? (const char *)field : "none");
}

/* "none" adds nothing. */
static int
parse_argument(const char *value, void *field)
{
	struct conf_argument *item;

	if (strcmp(value, "none") == 0)
		return list_empty(field) ? 0 : -EEXIST;
	if (strlen(value) >= sizeof(item->text))
		return -ERANGE;
	item = calloc(1, sizeof(*item));
	if (item == NULL)
		return -ENOMEM;
	strcpy(item->text, value);
	list_add_tail(field, &item->node);
	return 0;
}

static void
print_arguments(const void *field, const char *prefix, FILE *out)
{
	const struct conf_argument *item;
	const struct list *list = field;

	if (list_empty(list))
		fprintf(out, "%snone\n", prefix);
	list_for_each (item, list, struct conf_argument, node)
		fprintf(out, "%s%s\n", prefix, item->text);
}

const struct value_type VALUE_PROGRAM = {
    .takes = "an absolute path, or none", .parse = parse_program, .print = print_program};
const struct value_type VALUE_ARGUMENTS = {
    .takes = "a text, or none", .list = true, .parse = parse_argument, .print = print_arguments};
