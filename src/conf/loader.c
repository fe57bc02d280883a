/* loader.c -- errors of a configuration being loaded, and where everything was said */

#include "config.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "conf/loader.h"

void
loader_fail(struct loader *l, int result)
{
	if (l->result == 0 || l->result == -EINVAL)
		l->result = result;
}

static const char *
object_name(const struct conf_section *section, const void *object)
{
	return section->list != 0 ? ((const struct conf_object *)object)->name : NULL;
}

static void
say(struct loader *l, const char *key, const char *fmt, va_list ap)
{
	const char *name = l->section != NULL ? object_name(l->section, l->object) : NULL;

	fprintf(l->errors, "%s:", l->path);
	if (l->line > 0)
		fprintf(l->errors, "%u:", l->line);
	if (l->section != NULL)
		fprintf(l->errors, " [%s%s%s]", l->section->word, name != NULL ? " " : "",
		    name != NULL ? name : "");
	if (key != NULL)
		fprintf(l->errors, " %s:", key);
	fputc(' ', l->errors);
	vfprintf(l->errors, fmt, ap);
	fputc('\n', l->errors);
}

void
loader_complain(struct loader *l, const char *key, const char *fmt, ...)
{
	va_list ap;

	loader_fail(l, -EINVAL);
	va_start(ap, fmt);
	say(l, key, fmt, ap);
	va_end(ap);
}

void
loader_warn(struct loader *l, const char *key, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(l, key, fmt, ap);
	va_end(ap);
}

struct quoted
loader_quote(const char *foreign)
{
	struct quoted q = {""};

	text_clean(q.text, sizeof(q.text), foreign, strlen(foreign));
	return q;
}

static const char *
value_error(int error)
{
	static const struct {
		int error;
		const char *what;
	} WHAT[] = {
	    {-ENODATA, "is empty"}, {-ERANGE, "is out of range"},
	    {-ENODEV, "names an interface that this machine does not have"},
	    {-EEXIST, "does not go together with another"},
	    {-EDOM, "stands for something that does not fit"},
	    {-EINVAL, "is not understood"}, /* last: anything else */
	};
	size_t i = 0;

	while (WHAT[i].error != error && WHAT[i].error != -EINVAL)
		i++;
	return WHAT[i].what;
}

void
loader_complain_value(
    struct loader *l, const struct conf_option *option, const char *value, int error)
{
	char takes[OPTION_TAKES_MAX], example[OPTION_TAKES_MAX] = "";

	if (option->default_text != NULL)
		snprintf(example, sizeof(example), "; for example: %s = %s", option->key,
		    option->default_text);
	loader_complain(l, option->key, "\"%s\" %s; takes %s%s", loader_quote(value).text,
	    value_error(error), option_takes(option, takes), example);
}

struct place *
loader_add_place(struct loader *l, const struct conf_option *option)
{
	struct place *p = calloc(1, sizeof(*p));

	if (p == NULL) {
		loader_fail(l, -ENOMEM);
		return NULL;
	}
	p->object = l->object;
	p->option = option;
	p->path = l->path;
	p->line = l->line;
	list_add_tail(&l->places, &p->node);
	return p;
}

struct place *
loader_find_place(
    struct loader *l, const void *object, const struct conf_option *option, const struct list *item)
{
	struct place *p;

	list_for_each (p, &l->places, struct place, node)
		if (p->object == object && p->option == option && (item == NULL || p->item == item))
			return p;
	return NULL;
}

void
loader_point_at(struct loader *l, const struct conf_section *section, void *object,
    const struct conf_option *option, const struct list *item)
{
	struct place *p = loader_find_place(l, object, option, item);

	if (p == NULL && section->list != 0)
		p = loader_find_place(l, object, NULL, NULL);
	l->section = section;
	l->object = object;
	l->path = p != NULL ? p->path : list_first(&l->sources, struct source, node)->path;
	l->line = p != NULL ? p->line : 0;
}

struct list *
loader_list(const struct loader *l, const struct conf_section *section)
{
	return (struct list *)((char *)l->conf + section->list);
}

void *
loader_add_object(struct loader *l, const struct conf_section *section, const char *name)
{
	struct conf_object *o = calloc(1, section->size);

	if (o == NULL) {
		loader_fail(l, -ENOMEM);
		return NULL;
	}
	strcpy(o->name, name);
	for (const struct conf_option *option = section->options; option->key != NULL; option++)
		if (option->type->list)
			list_init(option_field(option, o));
	list_add_tail(loader_list(l, section), &o->node);
	return o;
}

void
loader_apply(
    struct loader *l, const struct conf_option *option, const char *value, struct place *place)
{
	int r = option_parse(option, value, l->object);

	if (r == -ENOMEM)
		loader_fail(l, r);
	else if (r < 0)
		loader_complain_value(l, option, value, r);
	if (place == NULL)
		return;
	place->bad = r < 0;
	if (r == 0 && option->type->list)
		place->item = ((struct list *)option_field(option, l->object))->prev;
}

void
loader_free_notes(struct loader *l)
{
	struct source *s;
	struct place *p;

	list_for_each (p, &l->places, struct place, node)
		free(p);
	list_for_each (s, &l->sources, struct source, node)
		free(s);
}
