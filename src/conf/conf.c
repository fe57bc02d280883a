/* conf.c -- a configuration in memory: find in it, print it, free it */

#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "conf/conf.h"
#include "conf/option.h"

const struct conf_peer *
conf_find_peer(const struct conf *conf, const char *name)
{
	return option_object(&conf->peers, name);
}

const struct conf_group *
conf_find_group(const struct conf *conf, const char *name)
{
	return option_object(&conf->groups, name);
}

const struct conf_region *
conf_find_region(const struct conf *conf, const char *name)
{
	return option_object(&conf->regions, name);
}

const struct conf_listen *
conf_find_listen(const struct conf *conf, const char *name)
{
	return option_object(&conf->listens, name);
}

static void
print_section(const struct conf_section *section, const char *name, const void *object, FILE *out)
{
	if (name != NULL)
		fprintf(out, "[%s %s]\n", section->word, name);
	else
		fprintf(out, "[%s]\n", section->word);
	for (const struct conf_option *o = section->options; o->key != NULL; o++)
		option_print(o, object, out);
	fputc('\n', out);
}

void
conf_print(const struct conf *conf, FILE *out)
{
	for (const struct conf_section *s = OPTION_SECTIONS; s->word != NULL; s++) {
		const struct list *list = (const struct list *)((const char *)conf + s->list);
		struct conf_object *o;

		if (s->list == 0)
			print_section(s, NULL, conf, out);
		else
			list_for_each (o, list, struct conf_object, node)
				print_section(s, o->name, o, out);
	}
}

void
conf_print_options(FILE *out)
{
	for (const struct conf_section *s = OPTION_SECTIONS; s->word != NULL; s++)
		for (const struct conf_option *o = s->options; o->key != NULL; o++) {
			char takes[OPTION_TAKES_MAX];

			fprintf(out, "%s.%s\t%s\t%s\t%s\n", s->word, o->key,
			    o->default_text != NULL ? o->default_text : "-", option_takes(o, takes),
			    o->help);
		}
}

static void
free_listen(struct conf_listen *listen)
{
	struct conf_address *address;
	struct conf_allow *allow;

	list_for_each (address, &listen->addresses, struct conf_address, node)
		free(address);
	list_for_each (allow, &listen->allow, struct conf_allow, node)
		free(allow);
	free(listen);
}

static void
free_group(struct conf_group *group)
{
	struct conf_member *member;

	list_for_each (member, &group->members, struct conf_member, node)
		free(member);
	free(group);
}

static void
free_region(struct conf_region *region)
{
	struct conf_argument *argument;

	list_for_each (argument, &region->arguments, struct conf_argument, node)
		free(argument);
	free(region);
}

struct conf *
conf_free(struct conf *conf)
{
	struct conf_listen *listen;
	struct conf_region *region;
	struct conf_group *group;
	struct conf_peer *peer;

	if (conf == NULL)
		return NULL;
	list_for_each (listen, &conf->listens, struct conf_listen, node)
		free_listen(listen);
	list_for_each (peer, &conf->peers, struct conf_peer, node) {
		explicit_bzero(peer->key, sizeof(peer->key));
		free(peer);
	}
	list_for_each (group, &conf->groups, struct conf_group, node)
		free_group(group);
	list_for_each (region, &conf->regions, struct conf_region, node)
		free_region(region);
	free(conf);
	return NULL;
}
