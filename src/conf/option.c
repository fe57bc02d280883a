/* option.c -- the table of sections and options */

#include "config.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "conf/conf.h"
#include "conf/option.h"

#define AT(field) offsetof(struct conf, field)

static const struct conf_option RWRITER[] = {
    {"name", &VALUE_NAME, AT(name), "%H", NULL, NULL, "what this daemon calls itself to its peers"},
    {"control", &VALUE_PATH, AT(control), "%t/rwriter/io.rwriter", NULL, NULL,
	"the control socket"},
    {"log-level", &VALUE_LEVEL, AT(log_level), "info", NULL, NULL,
	"the least serious lines that are logged"},
    {.key = NULL},
};

#undef AT
#define AT(field) offsetof(struct conf_listen, field)

static const struct conf_option LISTEN[] = {
    {"address", &VALUE_ADDRESSES, AT(addresses), "any", NULL, NULL,
	"where to listen; repeat it for several"},
    {"port", &VALUE_PORT, AT(port), "7471", "1", "65535", "the port to listen on"},
    {"fabric", &VALUE_FABRIC, AT(fabric), "auto", NULL, NULL, "what carries the writes"},
    {"device", &VALUE_DEVICE, AT(device), "any", NULL, NULL, "the one RDMA device to listen on"},
    {"allow", &VALUE_ALLOWS, AT(allow), "host", NULL, NULL,
	"who may write here; repeat it for several"},
    {.key = NULL},
};

#undef AT
#define AT(field) offsetof(struct conf_peer, field)

static const struct conf_option PEER[] = {
    {"address", &VALUE_HOST, AT(address), NULL, NULL, NULL, "where the peer is"},
    {"port", &VALUE_PORT, AT(port), "7471", "1", "65535", "the port it listens on"},
    {"fabric", &VALUE_FABRIC, AT(fabric), "auto", NULL, NULL, "what carries the writes"},
    {"key", &VALUE_KEY_FILE, AT(key_file), "none", NULL, NULL,
	"the key that this machine and the peer share"},
    {.key = NULL},
};

#undef AT
#define AT(field) offsetof(struct conf_group, field)

static const struct conf_option GROUP[] = {
    {"peer", &VALUE_MEMBERS, AT(members), NULL, NULL, NULL,
	"a peer that belongs to the group; repeat it for several"},
    {.key = NULL},
};

#undef AT
#define AT(field) offsetof(struct conf_region, field)

static const struct conf_option REGION[] = {
    {"sink", &VALUE_SINK, AT(sink), "memory", NULL, NULL, "what becomes of the bytes"},
    {"directory", &VALUE_DIRECTORY, AT(directory), "none", NULL, NULL,
	"where a spool stores its files"},
    {"mode", &VALUE_MODE, AT(mode), "0640", "0400", "0777", "the permissions of stored files"},
    {"owner", &VALUE_OWNER, AT(owner), "none", NULL, NULL, "whose the stored files become"},
    {"conflict", &VALUE_CONFLICT, AT(conflict), "keep", NULL, NULL,
	"what a file does whose name is taken"},
    {"free", &VALUE_SIZE, AT(free), "1G", "0", "1024T", "how much of the disk stays free"},
    {"keep-partial", &VALUE_TIME, AT(keep_partial_ns), "7d", "1min", "365d",
	"how long what has come of a file waits for its rest"},
    {"size", &VALUE_SIZE, AT(size), "4M", "4K", "1T", "the least memory granted to a connection"},
    {"max-size", &VALUE_SIZE, AT(max_size), "1G", "4K", "1T",
	"the most memory granted to a connection"},
    {"buffers", &VALUE_COUNT, AT(buffers), "1", "1", "2",
	"2: the last arrival stays whole until the next is verified"},
    {"linger", &VALUE_TIME, AT(linger_ns), "1h", "0", "365d",
	"how long the bytes stay when the connection has ended"},
    {"keep", &VALUE_COUNT, AT(keep), "16", "0", "65536",
	"how many regions stay when their connection has ended"},
    {"require-key", &VALUE_BOOL, AT(require_key), "no", NULL, NULL,
	"grant it only to writers that prove a key"},
    {"program", &VALUE_PROGRAM, AT(program), "none", NULL, NULL, "what to run for each arrival"},
    {"argument", &VALUE_ARGUMENTS, AT(arguments), "none", NULL, NULL,
	"what the program is given; repeat it for several"},
    {.key = NULL},
};

#undef AT
#define AT(field) offsetof(struct conf, field)

static const struct conf_option LIMITS[] = {
    {"connections", &VALUE_COUNT, AT(connections), "256", "1", "65536",
	"connections, both ways together"},
    {"unproven", &VALUE_COUNT, AT(unproven), "64", "1", "65536",
	"besides them: connections that have not said a valid HELLO"},
    {"pinned-memory", &VALUE_SIZE, AT(pinned_memory), "1G", "1M", "64T",
	"memory of all regions and of staging together"},
    {"beat", &VALUE_TIME, AT(beat_ns), "1s", "10ms", "1h",
	"how often each side shows that it lives"},
    {"dead", &VALUE_TIME, AT(dead_ns), "5s", "20ms", "1d",
	"a connection whose other side is silent for so long ends"},
    {"hello", &VALUE_TIME, AT(hello_ns), "5s", "10ms", "1h",
	"from the request of a connection to its valid HELLO"},
    {"setup", &VALUE_TIME, AT(setup_ns), "10s", "10ms", "1h",
	"from the request of a connection (or its HELLO) to its region"},
    {"idle", &VALUE_TIME, AT(idle_ns), "1min", "10ms", "365d",
	"a connection without a transfer for so long is closed"},
    {"stall", &VALUE_TIME, AT(stall_ns), "30s", "10ms", "1d",
	"a transfer without progress for so long fails"},
    {"width", &VALUE_COUNT, AT(width), "8", "1", "128",
	"peers that one rwctl write sends to at once"},
    {"reconnect", &VALUE_TIME, AT(reconnect_ns), "1min", "0", "365d",
	"how long a transfer that has lost its connection tries to get on"},
    {"stop", &VALUE_TIME, AT(stop_ns), "30s", "0", "1h",
	"how long a stopping daemon waits for running transfers"},
    {"hooks", &VALUE_COUNT, AT(hooks), "4", "1", "256", "programs of regions that run at once"},
    {"hook-time", &VALUE_TIME, AT(hook_time_ns), "1min", "100ms", "1d",
	"how long the program of a region may run"},
    {"retry", &VALUE_TIME, AT(retry_ns), "30s", "10ms", "1h",
	"the longest pause before a failed listener is tried again"},
    {.key = NULL},
};

static const struct conf_option ARRIVAL[] = {
    {"spin", &VALUE_TIME, AT(spin_ns), "200us", "0", "1s",
	"how long to poll without a pause after activity"},
    {"interval-min", &VALUE_TIME, AT(interval_min_ns), "100us", "1us", "1s",
	"the first pause between two polls"},
    {"interval-max", &VALUE_TIME, AT(interval_max_ns), "20ms", "1us", "10s",
	"what that pause grows up to"},
    {.key = NULL},
};

static const struct conf_option IWARP[] = {
    {"mpa-crc", &VALUE_BOOL, AT(mpa_crc), "yes", NULL, NULL,
	"checksums on the wire of the fabric iwarp"},
    {.key = NULL},
};

#undef AT

const struct conf_section OPTION_SECTIONS[] = {
    {"rwriter", RWRITER, 0, 0},
    {"listen", LISTEN, sizeof(struct conf_listen), offsetof(struct conf, listens)},
    {"peer", PEER, sizeof(struct conf_peer), offsetof(struct conf, peers)},
    {"group", GROUP, sizeof(struct conf_group), offsetof(struct conf, groups)},
    {"region", REGION, sizeof(struct conf_region), offsetof(struct conf, regions)},
    {"limits", LIMITS, 0, 0},
    {"arrival", ARRIVAL, 0, 0},
    {"iwarp", IWARP, 0, 0},
    {.word = NULL},
};

#define BEGINS_AS_OBJECT(type)                                         \
	(offsetof(type, node) == offsetof(struct conf_object, node) && \
	    offsetof(type, name) == offsetof(struct conf_object, name))
static_assert(BEGINS_AS_OBJECT(struct conf_listen), "struct conf_object");
static_assert(BEGINS_AS_OBJECT(struct conf_peer), "struct conf_object");
static_assert(BEGINS_AS_OBJECT(struct conf_group), "struct conf_object");
static_assert(BEGINS_AS_OBJECT(struct conf_region), "struct conf_object");

const struct conf_section *
option_section(const char *word)
{
	for (const struct conf_section *s = OPTION_SECTIONS; s->word != NULL; s++)
		if (strcmp(s->word, word) == 0)
			return s;
	return NULL;
}

const struct conf_option *
option_find(const struct conf_section *section, const char *key)
{
	for (const struct conf_option *o = section->options; o->key != NULL; o++)
		if (strcmp(o->key, key) == 0)
			return o;
	return NULL;
}

void *
option_object(const struct list *list, const char *name)
{
	struct conf_object *o;

	list_for_each (o, list, struct conf_object, node)
		if (strcmp(o->name, name) == 0)
			return o;
	return NULL;
}

void *
option_field(const struct conf_option *option, const void *object)
{
	return (char *)(uintptr_t)object + option->offset;
}

uint64_t
option_number(const struct conf_option *option, const void *object)
{
	const void *field = option_field(option, object);

	if (option->type->width == sizeof(uint16_t))
		return *(const uint16_t *)field;
	if (option->type->width == sizeof(uint32_t))
		return *(const uint32_t *)field;
	return *(const uint64_t *)field;
}

static int
parse_number(const struct conf_option *option, const char *value, void *field)
{
	uint64_t number, min = 0, max = 0;
	int r = option->type->read(value, &number);

	if (r < 0)
		return r;
	option->type->read(option->min, &min);
	option->type->read(option->max, &max);
	if (number < min || number > max)
		return -ERANGE;
	if (option->type->width == sizeof(uint16_t))
		*(uint16_t *)field = (uint16_t)number;
	else if (option->type->width == sizeof(uint32_t))
		*(uint32_t *)field = (uint32_t)number;
	else
		*(uint64_t *)field = number;
	return 0;
}

int
option_parse(const struct conf_option *option, const char *value, void *object)
{
	void *field = option_field(option, object);

	if (option->type->read != NULL)
		return parse_number(option, value, field);
	return option->type->parse(value, field);
}

void
option_print(const struct conf_option *option, const void *object, FILE *out)
{
	char prefix[64], number[VALUE_NUMBER_MAX];

	snprintf(prefix, sizeof(prefix), "%s = ", option->key);
	if (option->type->read != NULL)
		fprintf(out, "%s%s\n", prefix,
		    option->type->write(number, option_number(option, object)));
	else
		option->type->print(option_field(option, object), prefix, out);
}

char *
option_takes(const struct conf_option *option, char buf[OPTION_TAKES_MAX])
{
	if (option->min != NULL)
		snprintf(buf, OPTION_TAKES_MAX, "%s from %s to %s", option->type->takes,
		    option->min, option->max);
	else
		snprintf(buf, OPTION_TAKES_MAX, "%s", option->type->takes);
	return buf;
}

static void __attribute__((format(printf, 2, 3)))
append(char buf[OPTION_KEYS_MAX], const char *fmt, ...)
{
	size_t used = strlen(buf);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(buf + used, OPTION_KEYS_MAX - used, fmt, ap);
	va_end(ap);
}

char *
option_sections(char buf[OPTION_KEYS_MAX])
{
	*buf = '\0';
	for (const struct conf_section *s = OPTION_SECTIONS; s->word != NULL; s++)
		append(buf, "%s[%s%s]", *buf != '\0' ? ", " : "", s->word,
		    s->list != 0 ? " NAME" : "");
	return buf;
}

char *
option_keys(const struct conf_section *section, char buf[OPTION_KEYS_MAX])
{
	*buf = '\0';
	for (const struct conf_option *o = section->options; o->key != NULL; o++)
		append(buf, "%s%s", *buf != '\0' ? ", " : "", o->key);
	return buf;
}
