/* value.c -- how each type of value in rwriter.conf is read and printed */

#include "config.h"

#include <errno.h>
#include <grp.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "conf/conf.h"
#include "conf/value.h"

/* ---- numbers ---- */

static int
read_count(const char *value, uint64_t *ret)
{
	return text_parse_uint(value, UINT64_MAX, ret);
}

static char *
write_count(char *buf, uint64_t number)
{
	snprintf(buf, VALUE_NUMBER_MAX, "%" PRIu64, number);
	return buf;
}

const struct value_type VALUE_SIZE = {
    .takes = "a size", .width = 8, .read = text_parse_size, .write = text_print_size};
const struct value_type VALUE_TIME = {
    .takes = "a time", .width = 8, .read = text_parse_time, .write = text_print_time};
const struct value_type VALUE_COUNT = {
    .takes = "a number", .width = 4, .read = read_count, .write = write_count};
const struct value_type VALUE_PORT = {
    .takes = "a number", .width = 2, .read = read_count, .write = write_count};

static int
read_mode(const char *value, uint64_t *ret)
{
	char *end;
	unsigned long mode;

	if (value[0] < '0' || value[0] > '7')
		return -EINVAL;
	mode = strtoul(value, &end, 8);
	if (*end != '\0')
		return -EINVAL;
	*ret = mode;
	return 0;
}

static char *
write_mode(char *buf, uint64_t number)
{
	snprintf(buf, VALUE_NUMBER_MAX, "%04" PRIo64, number);
	return buf;
}

const struct value_type VALUE_MODE = {
    .takes = "an octal mode", .width = 4, .read = read_mode, .write = write_mode};

/* ---- words ---- */

static int
parse_level(const char *value, void *field)
{
	return log_level_parse(value, field);
}

static void
print_level(const void *field, const char *prefix, FILE *out)
{
	fprintf(out, "%s%s\n", prefix, log_level_name(*(const enum log_level *)field));
}

static const char *const FABRICS[] = {
    [CONF_FABRIC_AUTO] = "auto",
    [CONF_FABRIC_VERBS] = "verbs",
    [CONF_FABRIC_IWARP] = "iwarp",
};

const char *
conf_fabric_name(enum conf_fabric fabric)
{
	return FABRICS[fabric];
}

/* The number of a word among n; words that do not exist are NULL. */
static int
find_word(const char *value, const char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (words[i] != NULL && strcmp(value, words[i]) == 0)
			return (int)i;
	return -EINVAL;
}

#define FIND_WORD(value, words) find_word(value, words, sizeof(words) / sizeof(words[0]))

static int
parse_fabric(const char *value, void *field)
{
	int i = FIND_WORD(value, FABRICS);

	if (i < 0)
		return i;
	*(enum conf_fabric *)field = i;
	return 0;
}

static void
print_fabric(const void *field, const char *prefix, FILE *out)
{
	fprintf(out, "%s%s\n", prefix, FABRICS[*(const enum conf_fabric *)field]);
}

static const char *const SINKS[] = {
    [CONF_SINK_MEMORY] = "memory",
    [CONF_SINK_SPOOL] = "spool",
    [CONF_SINK_DISCARD] = "discard",
};

static int
parse_sink(const char *value, void *field)
{
	int i = FIND_WORD(value, SINKS);

	if (i < 0)
		return i;
	*(enum conf_sink *)field = i;
	return 0;
}

static void
print_sink(const void *field, const char *prefix, FILE *out)
{
	fprintf(out, "%s%s\n", prefix, SINKS[*(const enum conf_sink *)field]);
}

static const char *const CONFLICTS[] = {
    [CONF_CONFLICT_KEEP] = "keep",
    [CONF_CONFLICT_REPLACE] = "replace",
    [CONF_CONFLICT_VERSION] = "version",
};

static int
parse_conflict(const char *value, void *field)
{
	int i = FIND_WORD(value, CONFLICTS);

	if (i < 0)
		return i;
	*(enum conf_conflict *)field = i;
	return 0;
}

static void
print_conflict(const void *field, const char *prefix, FILE *out)
{
	fprintf(out, "%s%s\n", prefix, CONFLICTS[*(const enum conf_conflict *)field]);
}

static int
parse_bool(const char *value, void *field)
{
	bool yes = strcmp(value, "yes") == 0;

	if (!yes && strcmp(value, "no") != 0)
		return -EINVAL;
	*(bool *)field = yes;
	return 0;
}

static void
print_bool(const void *field, const char *prefix, FILE *out)
{
	fprintf(out, "%s%s\n", prefix, *(const bool *)field ? "yes" : "no");
}

const struct value_type VALUE_LEVEL = {
    .takes = "error, warning, info or debug", .parse = parse_level, .print = print_level};
const struct value_type VALUE_FABRIC = {
    .takes = "auto, verbs or iwarp", .parse = parse_fabric, .print = print_fabric};

const struct value_type VALUE_CONFLICT = {
    .takes = "keep, replace or version", .parse = parse_conflict, .print = print_conflict};

const struct value_type VALUE_SINK = {
    .takes = "memory, spool or discard", .parse = parse_sink, .print = print_sink};

const struct value_type VALUE_BOOL = {
    .takes = "yes or no", .parse = parse_bool, .print = print_bool};

/* ---- texts ---- */

static void
print_text(const void *field, const char *prefix, FILE *out)
{
	fprintf(out, "%s%s\n", prefix, (const char *)field);
}

/* "%H" is the host's name, as in systemd.unit(5). */
static int
parse_name(const char *value, void *field)
{
	bool expand = strcmp(value, "%H") == 0;
	char host[LIMIT_NAME + 2] = ""; /* a longer name is cut to what is refused below */

	if (expand)
		gethostname(host, sizeof(host) - 1);
	if (!text_is_name(expand ? host : value))
		return expand ? -EDOM : -EINVAL;
	strcpy(field, expand ? host : value);
	return 0;
}

/* "%t", as in systemd.unit(5): the system's for root and for services, else the user's. */
static const char *
runtime_directory(void)
{
	const char *user = getenv("XDG_RUNTIME_DIR");

	return geteuid() == 0 || user == NULL || *user == '\0' ? RUNSTATEDIR : user;
}

static int
parse_path(const char *value, void *field)
{
	bool expand = strncmp(value, "%t/", 3) == 0;
	char path[sizeof(((struct conf *)NULL)->control)];
	int len = snprintf(path, sizeof(path), "%s%s", expand ? runtime_directory() : "",
	    expand ? value + strlen("%t") : value);

	if (len >= (int)sizeof(path))
		return expand ? -EDOM : -ERANGE;
	if (path[0] != '/' || !text_is_clean(path, strlen(path)))
		return expand ? -EDOM : -EINVAL;
	strcpy(field, path);
	return 0;
}

static int
parse_host(const char *value, void *field)
{
	char host[sizeof(((struct conf_peer *)NULL)->address)];
	uint16_t port = 0;
	int r = text_split_host(value, host, sizeof(host), &port);

	if (r < 0)
		return r;
	if (port != 0) /* it has an option of its own */
		return -EINVAL;
	strcpy(field, host);
	return 0;
}

static int
parse_device(const char *value, void *field)
{
	if (!text_is_name(value))
		return -EINVAL;
	strcpy(field, strcmp(value, "any") == 0 ? "" : value);
	return 0;
}

static void
print_device(const void *field, const char *prefix, FILE *out)
{
	fprintf(out, "%s%s\n", prefix, *(const char *)field != '\0' ? (const char *)field : "any");
}

/* complete.c reads the file, when the whole configuration is there. */
static int
parse_key_file(const char *value, void *field)
{
	char path[sizeof(((struct conf_peer *)NULL)->key_file)];

	if (snprintf(path, sizeof(path), "%s", value) >= (int)sizeof(path))
		return -ERANGE;
	if (!text_is_clean(path, strlen(path)))
		return -EINVAL;
	strcpy(field, strcmp(path, "none") == 0 ? "" : path);
	return 0;
}

/* complete.c looks at it, when the whole configuration is there. */
static int
parse_directory(const char *value, void *field)
{
	char path[sizeof(((struct conf_region *)NULL)->directory)];

	if (snprintf(path, sizeof(path), "%s", value) >= (int)sizeof(path))
		return -ERANGE;
	if (strcmp(path, "none") == 0)
		path[0] = '\0';
	else if (path[0] != '/' || !text_is_clean(path, strlen(path)))
		return -EINVAL;
	strcpy(field, path);
	return 0;
}

/* "user" or "user:group", as chown(1) takes them. */
static int
parse_owner(const char *value, void *field)
{
	struct conf_owner owner = {.uid = UINT32_MAX, .gid = UINT32_MAX};
	char user[sizeof(owner.text)];
	const struct passwd *pw;
	const struct group *gr;
	char *group;

	if (snprintf(owner.text, sizeof(owner.text), "%s", value) >= (int)sizeof(owner.text))
		return -ERANGE;
	strcpy(user, owner.text);
	group = strchr(user, ':');
	if (group != NULL)
		*group++ = '\0';
	if (strcmp(value, "none") == 0) {
		owner.text[0] = '\0';
	} else if ((pw = getpwnam(user)) == NULL) {
		return -EINVAL;
	} else {
		owner.uid = pw->pw_uid;
		owner.gid = pw->pw_gid;
		if (group != NULL && (gr = getgrnam(group)) == NULL)
			return -EINVAL;
		if (group != NULL)
			owner.gid = gr->gr_gid;
	}
	*(struct conf_owner *)field = owner;
	return 0;
}

static void
print_or_none(const void *field, const char *prefix, FILE *out)
{
	fprintf(out, "%s%s\n", prefix, *(const char *)field != '\0' ? (const char *)field : "none");
}

const struct value_type VALUE_NAME = {.takes = VALUE_NAME_RULE ", or %H, the name of the host",
    .parse = parse_name,
    .print = print_text};
const struct value_type VALUE_PATH = {
    .takes = "an absolute path of at most 107 bytes; %t/ is the runtime directory",
    .parse = parse_path,
    .print = print_text};
const struct value_type VALUE_HOST = {
    .takes = "a host name or an address, without a port", .parse = parse_host, .print = print_text};
const struct value_type VALUE_DEVICE = {
    .takes = "the name of an RDMA device, or any", .parse = parse_device, .print = print_device};
const struct value_type VALUE_DIRECTORY = {
    .takes = "the absolute path of a directory, of at most 255 bytes, or none",
    .parse = parse_directory,
    .print = print_or_none};
const struct value_type VALUE_OWNER = {.takes = "the name of a user, user:group, or none",
    .parse = parse_owner,
    .print = print_or_none};
const struct value_type VALUE_KEY_FILE = {
    .takes = "the path of a file that rwctl genkey made, or none",
    .parse = parse_key_file,
    .print = print_or_none};

/* ---- lists ---- */

/* "any" adds nothing: an empty list is every address. */
static int
parse_address(const char *value, void *field)
{
	struct sockaddr_storage address;
	struct conf_address *item;
	int r;

	if (strcmp(value, "any") == 0)
		return list_empty(field) ? 0 : -EEXIST;
	r = text_parse_address(value, 0, &address);
	if (r < 0)
		return r;
	item = calloc(1, sizeof(*item));
	if (item == NULL)
		return -ENOMEM;
	item->address = address;
	list_add_tail(field, &item->node);
	return 0;
}

static void
print_addresses(const void *field, const char *prefix, FILE *out)
{
	const struct conf_address *item;
	const struct list *list = field;
	char buf[TEXT_ADDRESS_MAX];

	if (list_empty(list))
		fprintf(out, "%sany\n", prefix);
	list_for_each (item, list, struct conf_address, node)
		fprintf(out, "%s%s\n", prefix,
		    text_address(buf, (const struct sockaddr *)&item->address));
}

static unsigned
address_bits(const struct sockaddr_storage *address)
{
	return address->ss_family == AF_INET ? 32 : 128;
}

/* "10.0.0.0/8" or "10.0.0.1". */
static int
parse_network(const char *value, struct conf_allow *allow)
{
	const char *slash = strchr(value, '/');
	char host[TEXT_ADDRESS_MAX];
	uint64_t prefix;
	int len = (int)(slash != NULL ? (size_t)(slash - value) : strlen(value));
	int r;

	if (snprintf(host, sizeof(host), "%.*s", len, value) >= (int)sizeof(host))
		return -EINVAL;
	r = text_parse_address(host, 0, &allow->network);
	if (r < 0)
		return r;
	prefix = address_bits(&allow->network);
	if (slash != NULL) {
		r = text_parse_uint(slash + 1, prefix, &prefix);
		if (r < 0)
			return r;
	}
	allow->kind = CONF_ALLOW_NETWORK;
	allow->prefix = (unsigned)prefix;
	return 0;
}

static int
read_allow(const char *value, struct conf_allow *allow)
{
	int r = 0;

	if (strcmp(value, "host") == 0)
		allow->kind = CONF_ALLOW_HOST;
	else if (strcmp(value, "any") == 0)
		allow->kind = CONF_ALLOW_ANY;
	else
		r = parse_network(value, allow);
	if (r == -EINVAL && text_is_name(value)) { /* complete.c sees to it that it exists */
		allow->kind = CONF_ALLOW_PEER;
		strcpy(allow->peer, value);
		r = 0;
	}
	return r;
}

static int
parse_allow(const char *value, void *field)
{
	struct conf_allow allow = {0}, *item;
	int r = read_allow(value, &allow);

	if (r < 0)
		return r;
	item = calloc(1, sizeof(*item));
	if (item == NULL)
		return -ENOMEM;
	*item = allow;
	list_add_tail(field, &item->node);
	return 0;
}

static void
print_network(const struct conf_allow *allow, const char *prefix, FILE *out)
{
	char buf[TEXT_ADDRESS_MAX];

	fprintf(out, "%s%s", prefix, text_address(buf, (const struct sockaddr *)&allow->network));
	if (allow->prefix < address_bits(&allow->network))
		fprintf(out, "/%u", allow->prefix);
	fputc('\n', out);
}

static void
print_allows(const void *field, const char *prefix, FILE *out)
{
	const struct conf_allow *item;
	const struct list *list = field;

	list_for_each (item, list, struct conf_allow, node)
		if (item->kind == CONF_ALLOW_NETWORK)
			print_network(item, prefix, out);
		else if (item->kind == CONF_ALLOW_PEER)
			fprintf(out, "%s%s\n", prefix, item->peer);
		else
			fprintf(
			    out, "%s%s\n", prefix, item->kind == CONF_ALLOW_HOST ? "host" : "any");
}

static bool
has_member(const struct list *list, const char *peer)
{
	const struct conf_member *item;

	list_for_each (item, list, struct conf_member, node)
		if (strcmp(item->peer, peer) == 0)
			return true;
	return false;
}

/* complete.c sees to it that the peer exists; one that is named twice is there once. */
static int
parse_member(const char *value, void *field)
{
	struct conf_member *item;

	if (!text_is_name(value))
		return -EINVAL;
	if (has_member(field, value))
		return 0;
	item = calloc(1, sizeof(*item));
	if (item == NULL)
		return -ENOMEM;
	strcpy(item->peer, value);
	list_add_tail(field, &item->node);
	return 0;
}

static void
print_members(const void *field, const char *prefix, FILE *out)
{
	const struct conf_member *item;
	const struct list *list = field;

	list_for_each (item, list, struct conf_member, node)
		fprintf(out, "%s%s\n", prefix, item->peer);
}

const struct value_type VALUE_ADDRESSES = {.takes = "an address of this machine, or any",
    .list = true,
    .parse = parse_address,
    .print = print_addresses};
const struct value_type VALUE_ALLOWS = {
    .takes = "host, any, an address, a network as 10.0.0.0/8, or the name of a [peer]",
    .list = true,
    .parse = parse_allow,
    .print = print_allows};
const struct value_type VALUE_MEMBERS = {
    .takes = "the name of a [peer]", .list = true, .parse = parse_member, .print = print_members};
