/* fleet.c -- which peers one word names: a, or a,b or @group or @all, or several with commas */

#include "config.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "conf/conf.h"
#include "core/core.h"
#include "core/priv.h"

struct fleet {
	const struct conf *conf;
	size_t n;
	const char *names[LIMIT_FLEET]; /* the configuration's, or in the words */
	char *error;
	size_t size;
};

static int __attribute__((format(printf, 2, 3))) complain(struct fleet *f, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(f->error, f->size, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

static int
add(struct fleet *f, const char *name)
{
	for (size_t i = 0; i < f->n; i++)
		if (strcmp(f->names[i], name) == 0)
			return 0;
	if (f->n == LIMIT_FLEET)
		return complain(
		    f, "more than %d peers: write to some of them at a time", LIMIT_FLEET);
	f->names[f->n++] = name;
	return 0;
}

static int
add_all(struct fleet *f)
{
	const struct conf_peer *peer;
	int r = 0;

	if (list_empty(&f->conf->peers))
		return complain(f, "@all: there is no [peer NAME] in the configuration");
	list_for_each (peer, &f->conf->peers, struct conf_peer, node)
		if (r == 0)
			r = add(f, peer->name);
	return r;
}

static int
no_group(struct fleet *f, const char *name)
{
	const struct conf_group *group;
	size_t used;

	complain(f, "@%.*s: there is no such group; there are @all", LIMIT_NAME, name);
	list_for_each (group, &f->conf->groups, struct conf_group, node) {
		used = strlen(f->error);
		snprintf(f->error + used, f->size - used, ", @%s", group->name);
	}
	return -EINVAL;
}

static int
add_group(struct fleet *f, const char *name)
{
	const struct conf_group *group = conf_find_group(f->conf, name);
	const struct conf_member *member;
	int r = 0;

	if (strcmp(name, "all") == 0)
		return add_all(f);
	if (group == NULL)
		return no_group(f, name);
	list_for_each (member, &group->members, struct conf_member, node)
		if (r == 0)
			r = add(f, member->peer);
	return r;
}

/* Parts words at its commas. */
static int
add_words(struct fleet *f, char *words)
{
	const char *word;
	int r = 0;

	while (r == 0 && (word = strsep(&words, ",")) != NULL)
		if (word[0] == '\0')
			r = complain(f, "a peer without a name: write a,b,c with no blank between");
		else if (word[0] == '@')
			r = add_group(f, word + 1);
		else
			r = add(f, word);
	return r;
}

int
core_each_named(struct core *core, const char *word, void (*fn)(void *arg, const char *peer),
    void *arg, char *error, size_t size)
{
	struct fleet *f = calloc(1, sizeof(*f));
	char *words = strdup(word);
	int r = -ENOMEM;

	snprintf(error, size, "%s", strerror(ENOMEM));
	if (f != NULL && words != NULL) {
		f->conf = core->conf;
		f->error = error;
		f->size = size;
		r = add_words(f, words);
	}
	for (size_t i = 0; r == 0 && i < f->n; i++)
		fn(arg, f->names[i]);
	free(words);
	free(f);
	return r;
}

unsigned
core_width(const struct core *core)
{
	return core->conf->width;
}
