/* complete.c -- what no line said: built-in sections and defaults; and what must fit together */

#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "conf/complete.h"
#include "conf/keyfile.h"

typedef void visit(struct loader *l, const struct conf_section *section, void *object);

static void
visit_objects(struct loader *l, const struct conf_section *section, visit *fn)
{
	struct conf_object *o;

	if (section->list == 0)
		fn(l, section, l->conf);
	else
		list_for_each (o, loader_list(l, section), struct conf_object, node)
			fn(l, section, o);
}

static void
fill(struct loader *l, const struct conf_section *section, void *object)
{
	for (const struct conf_option *o = section->options; o->key != NULL; o++) {
		char takes[OPTION_TAKES_MAX];

		if (loader_find_place(l, object, o, NULL) != NULL)
			continue;
		loader_point_at(l, section, object, o, NULL);
		if (o->default_text == NULL)
			loader_complain(l, o->key, "is missing; takes %s", option_takes(o, takes));
		else
			loader_apply(l, o, o->default_text, NULL);
	}
}

static void
add_built_in(struct loader *l)
{
	if (list_empty(&l->conf->listens))
		loader_add_object(l, option_section("listen"), "default");
	if (conf_find_region(l->conf, "default") == NULL)
		loader_add_object(l, option_section("region"), "default");
}

/* Of a region that is a ring; it stays in the cache. */
#define RING_SIZE (UINT64_C(8) << 20)

/* A ring has one size, whatever a writer asks for. */
static void
settle_ring(struct loader *l, const struct conf_section *section, void *object)
{
	struct conf_region *region = object;

	if (region->sink == CONF_SINK_MEMORY)
		return;
	if (loader_find_place(l, region, option_find(section, "size"), NULL) == NULL)
		region->size = RING_SIZE;
	region->max_size = region->size;
}

/* low, taken so many times, is at most high. */
static const struct order {
	const char *low_section, *low, *high_section, *high;
	unsigned times;
	const char *times_key; /* or as this option of the low section says */
} ORDERS[] = {
    {"region", "size", "region", "max-size", 1, NULL},
    {"region", "max-size", "limits", "pinned-memory", 1, "buffers"},
    {"limits", "beat", "limits", "dead", 2, NULL},
    {"arrival", "interval-min", "arrival", "interval-max", 1, NULL},
};

static bool
is_bad(struct loader *l, const void *object, const struct conf_option *option)
{
	const struct place *p = loader_find_place(l, object, option, NULL);

	return p != NULL && p->bad;
}

static void
check_order(
    struct loader *l, const struct order *order, const struct conf_section *section, void *object)
{
	const struct conf_section *high_section = option_section(order->high_section);
	const struct conf_option *low = option_find(section, order->low);
	const struct conf_option *high = option_find(high_section, order->high);
	void *high_object = high_section == section ? object : l->conf;
	uint64_t least = option_number(low, object), most = option_number(high, high_object);
	const struct conf_option *many =
	    order->times_key != NULL ? option_find(section, order->times_key) : NULL;
	uint64_t times = many != NULL ? option_number(many, object) : order->times;
	char least_text[VALUE_NUMBER_MAX], most_text[VALUE_NUMBER_MAX];

	if (is_bad(l, object, low) || is_bad(l, high_object, high) || least * times <= most)
		return;
	loader_point_at(l, high_section, high_object, high, NULL);
	if (many != NULL && loader_find_place(l, object, many, NULL) != NULL)
		loader_point_at(l, section, object, many, NULL);
	if (loader_find_place(l, object, low, NULL) != NULL)
		loader_point_at(l, section, object, low, NULL);
	l->section = section;
	l->object = object;
	loader_complain(l, low->key, "%s%s is more than %s = %s; raise %s or lower %s",
	    times == 2 ? "twice " : "", low->type->write(least_text, least), high->key,
	    high->type->write(most_text, most), high->key, low->key);
}

static void
check_orders(struct loader *l, const struct conf_section *section, void *object)
{
	for (size_t i = 0; i < sizeof(ORDERS) / sizeof(ORDERS[0]); i++)
		if (strcmp(ORDERS[i].low_section, section->word) == 0)
			check_order(l, &ORDERS[i], section, object);
}

static void
set_port(struct sockaddr_storage *address, uint16_t port)
{
	if (address->ss_family == AF_INET)
		((struct sockaddr_in *)address)->sin_port = htons(port);
	else
		((struct sockaddr_in6 *)address)->sin6_port = htons(port);
}

static void
check_listen(struct loader *l, const struct conf_section *section, void *object)
{
	struct conf_listen *listen = object;
	struct conf_address *address;
	struct conf_allow *allow;

	list_for_each (address, &listen->addresses, struct conf_address, node)
		set_port(&address->address, listen->port);
	list_for_each (allow, &listen->allow, struct conf_allow, node) {
		if (allow->kind != CONF_ALLOW_PEER || conf_find_peer(l->conf, allow->peer) != NULL)
			continue;
		loader_point_at(l, section, listen, option_find(section, "allow"), &allow->node);
		loader_complain(l, "allow",
		    "\"%s\" is neither an address nor a [peer]; correct it or add [peer %s]",
		    allow->peer, allow->peer);
	}
}

static void
check_region(struct loader *l, const struct conf_section *section, void *object)
{
	const struct conf_region *region = object;

	if (region->buffers == 1 || region->sink == CONF_SINK_MEMORY)
		return;
	loader_point_at(l, section, object, option_find(section, "buffers"), NULL);
	loader_complain(l, "buffers", "is for sink = memory, where bytes stay; remove one of both");
}

/* A peer called "any" or "10.0.0.1" could not be told from what allow takes besides. */
static void
check_peer(struct loader *l, const struct conf_section *section, void *object)
{
	struct conf_peer *peer = object;
	struct sockaddr_storage address;

	if (strcmp(peer->name, "host") != 0 && strcmp(peer->name, "any") != 0 &&
	    text_parse_address(peer->name, 0, &address) < 0)
		return;
	loader_point_at(l, section, peer, NULL, NULL);
	loader_complain(
	    l, NULL, "\"%s\" means something else in allow; choose another name", peer->name);
}

/* "@all" is every peer. */
static void
check_group(struct loader *l, const struct conf_section *section, void *object)
{
	struct conf_group *group = object;
	struct conf_member *member;

	if (strcmp(group->name, "all") == 0) {
		loader_point_at(l, section, group, NULL, NULL);
		loader_complain(
		    l, NULL, "@all is every peer already; choose another name for the group");
	}
	list_for_each (member, &group->members, struct conf_member, node) {
		if (conf_find_peer(l->conf, member->peer) != NULL)
			continue;
		loader_point_at(l, section, group, option_find(section, "peer"), &member->node);
		loader_complain(l, "peer", "\"%s\" is no [peer]; correct it or add [peer %s]",
		    member->peer, member->peer);
	}
}

static void
complain_of(struct loader *l, struct conf_region *region, const char *key, const char *text)
{
	const struct conf_section *section = option_section("region");

	loader_point_at(l, section, region, option_find(section, key), NULL);
	loader_complain(l, key, "%s", text);
}

static void
check_writable(struct loader *l, struct conf_region *region)
{
	int dir = open(region->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char text[sizeof(region->directory) + 128];

	if (dir >= 0 && faccessat(dir, ".", W_OK | X_OK, AT_EACCESS) == 0) {
		close(dir);
		return;
	}
	snprintf(text, sizeof(text), "cannot store in %s: %s", region->directory, strerror(errno));
	complain_of(l, region, "directory", text);
	if (dir >= 0)
		close(dir);
}

/* Two that store in one directory would take each other's files for what a crash has left. */
static bool
shares_directory(const struct loader *l, const struct conf_region *region)
{
	const struct conf_region *other;

	list_for_each (other, &l->conf->regions, struct conf_region, node)
		if (other != region && strcmp(other->directory, region->directory) == 0)
			return true;
	return false;
}

/* Only root gives files away. */
static bool
may_own(const struct conf_owner *owner)
{
	return owner->text[0] == '\0' || geteuid() == 0 ||
	       (owner->uid == geteuid() && owner->gid == getegid());
}

static void
check_spool(struct loader *l, const struct conf_section *section, void *object)
{
	struct conf_region *region = object;

	(void)section;
	if (region->sink != CONF_SINK_SPOOL) {
		if (region->directory[0] != '\0')
			complain_of(l, region, "directory",
			    "nothing is stored here; add sink = spool, or remove directory");
	} else if (region->directory[0] == '\0') {
		complain_of(l, region, "sink",
		    "a spool needs a directory; add directory = /PATH, or choose another sink");
	} else if (shares_directory(l, region)) {
		complain_of(l, region, "directory",
		    "another region stores there; give each a directory of its own");
	} else if (!may_own(&region->owner)) {
		complain_of(l, region, "owner",
		    "only root may give files to others; remove owner, or run the daemon as that "
		    "user");
	} else {
		check_writable(l, region);
	}
}

/* A relative path starts at the directory of the main file. */
static void
key_path(struct loader *l, const char *file, char *buf, size_t size)
{
	const char *main_file = list_first(&l->sources, struct source, node)->path;
	const char *slash = file[0] != '/' ? strrchr(main_file, '/') : NULL;

	snprintf(
	    buf, size, "%.*s%s", slash != NULL ? (int)(slash - main_file) + 1 : 0, main_file, file);
}

static void
read_key(struct loader *l, const struct conf_section *section, void *object)
{
	struct conf_peer *peer = object;
	char path[PATH_MAX], why[160];

	if (peer->key_file[0] == '\0')
		return;
	key_path(l, peer->key_file, path, sizeof(path));
	if (keyfile_read(path, peer->key, why, sizeof(why)) == 0)
		return;
	loader_point_at(l, section, peer, option_find(section, "key"), NULL);
	loader_complain(l, "key", "%s %s", path, why);
}

static bool
same_key(const struct conf_peer *a, const struct conf_peer *b)
{
	return a->key_file[0] != '\0' && b->key_file[0] != '\0' &&
	       memcmp(a->key, b->key, sizeof(a->key)) == 0;
}

/* One key for several peers proves only that a connection comes from one of them. */
static void
warn_of_shared_key(struct loader *l, const struct conf_section *section, void *object)
{
	const struct conf_peer *other;
	struct conf_peer *peer = object;

	list_for_each (other, &l->conf->peers, struct conf_peer, node) {
		if (other == peer)
			return;
		if (!same_key(other, peer))
			continue;
		loader_point_at(l, section, peer, option_find(section, "key"), NULL);
		loader_warn(l, "key",
		    "warning: [peer %s] has the same key, so each can pass for the other; give "
		    "every peer its own",
		    other->name);
		return;
	}
}

void
complete(struct loader *l)
{
	add_built_in(l);
	for (const struct conf_section *s = OPTION_SECTIONS; s->word != NULL; s++)
		visit_objects(l, s, fill);
	if (l->result == -ENOMEM)
		return; /* what was not filled in cannot be checked */
	visit_objects(l, option_section("region"), settle_ring);
	for (const struct conf_section *s = OPTION_SECTIONS; s->word != NULL; s++)
		visit_objects(l, s, check_orders);
	visit_objects(l, option_section("listen"), check_listen);
	visit_objects(l, option_section("region"), check_region);
	visit_objects(l, option_section("region"), check_spool);
	visit_objects(l, option_section("peer"), check_peer);
	visit_objects(l, option_section("group"), check_group);
	visit_objects(l, option_section("peer"), read_key);
	if (l->result == 0)
		visit_objects(l, option_section("peer"), warn_of_shared_key);
}
