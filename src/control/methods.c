/* methods.c -- io.rwriter: what may be called, by whom, with which parameters */

#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "control/batch.h"
#include "control/events.h"
#include "control/interface.inc"
#include "control/look.h"
#include "control/methods.h"
#include "control/report.h"
#include "control/write.h"
#include "core/core.h"

enum privilege { OBSERVE, TRANSFER, ADMINISTER };

enum type { TEXT, NUMBER, FLAG, TEXTS };

#define MAX_TIMEOUT_MS (UINT64_C(1) << 40) /* 34 years, which fit as nanoseconds */

struct parameter {
	const char *name;
	enum type type;
	bool optional;
	uint64_t max; /* of a number; 0: what JSON can hold */
};

struct method {
	const char *name;
	enum privilege privilege;
	bool descriptor; /* one comes with the call; WriteBatch counts them itself */
	void (*fn)(const struct control_env *env, struct varlink_call *call);
	struct parameter parameters[11]; /* ended by a name that is NULL */
};

static void
bad_parameter(struct varlink_call *call, const char *name)
{
	varlink_error(
	    call, "org.varlink.service.InvalidParameter", json_pack("{s:s}", "parameter", name));
}

static void
open_region(const struct control_env *env, struct varlink_call *call)
{
	const char *which = varlink_text(call, "which");
	struct region_view view;
	int fd, r;

	if (which == NULL)
		which = "";
	r = core_open_region(env->core, which, &view, &fd);
	if (r == 0)
		varlink_reply_fd(call,
		    json_pack("{s:o}", "region",
			report_region(&view, events_last_hook(env->events, view.id))),
		    fd);
	else if (which[0] == '\0' && (r == -ENODATA || r == -ENOENT))
		varlink_fail(call, "io.rwriter.NoArrival", "nothing has arrived yet");
	else if (r == -ENODATA)
		varlink_fail(call, "io.rwriter.NoArrival",
		    "%s: nothing lies whole in the region now", which);
	else if (r == -ENOENT)
		varlink_fail(call, "io.rwriter.NoSuchRegion",
		    "%s: no region has this number or peer", which);
	else
		varlink_fail(
		    call, "io.rwriter.Failed", "the region cannot be opened: %s", strerror(-r));
}

static void
start_write(const struct control_env *env, struct varlink_call *call)
{
	write_start(env->core, call);
}

static void
start_batch(const struct control_env *env, struct varlink_call *call)
{
	batch_start(env, call);
}

/* ---- administering ---- */

static void
release(const struct control_env *env, struct varlink_call *call)
{
	uint32_t id = varlink_number(call, "id");

	if (core_release(env->core, id) < 0) {
		varlink_fail(call, "io.rwriter.NoSuchRegion", "no region %" PRIu32, id);
		return;
	}
	log_info("region %" PRIu32 ": released by uid %u", id, (unsigned)call->uid);
	varlink_reply(call, json_object());
}

static void
disconnect(const struct control_env *env, struct varlink_call *call)
{
	unsigned n = core_disconnect(env->core, varlink_text(call, "peer"));

	if (n == 0) {
		varlink_fail(call, "io.rwriter.NotConnected", "no connection with %s",
		    varlink_text(call, "peer"));
		return;
	}
	log_info("%u connections ended by uid %u", n, (unsigned)call->uid);
	varlink_reply(call, json_pack("{s:I}", "connections", (json_int_t)n));
}

static void
reload(const struct control_env *env, struct varlink_call *call)
{
	char errors[4096] = "";
	int r = env->reload(env->arg, errors, sizeof(errors));

	if (r < 0) {
		if (errors[0] == '\0')
			snprintf(errors, sizeof(errors), "%s", strerror(-r));
		varlink_error(
		    call, "io.rwriter.ReloadFailed", json_pack("{s:s}", "errors", errors));
		return;
	}
	varlink_reply(call, json_object());
}

/* ---- org.varlink.service ---- */

static void
get_info(const struct control_env *env, struct varlink_call *call)
{
	varlink_reply(call, json_pack("{s:s, s:s, s:s, s:s, s:[s, s]}", "vendor", "rwriter",
				"product", "rwriterd", "version", env->version, "url", "",
				"interfaces", "org.varlink.service", "io.rwriter"));
}

static const char SERVICE_INTERFACE[] =
    "# What every Varlink service tells about itself.\n"
    "interface org.varlink.service\n"
    "\n"
    "method GetInfo() -> (\n"
    "  vendor: string,\n"
    "  product: string,\n"
    "  version: string,\n"
    "  url: string,\n"
    "  interfaces: []string\n"
    ")\n"
    "\n"
    "method GetInterfaceDescription(interface: string) -> (description: string)\n"
    "\n"
    "error InterfaceNotFound (interface: string)\n"
    "error MethodNotFound (method: string)\n"
    "error MethodNotImplemented (method: string)\n"
    "error InvalidParameter (parameter: string)\n"
    "error PermissionDenied ()\n"
    "error ExpectedMore ()\n";

static const struct {
	const char *name, *description;
} INTERFACES[] = {
    {"io.rwriter", INTERFACE},
    {"org.varlink.service", SERVICE_INTERFACE},
};

static void
get_interface_description(const struct control_env *env, struct varlink_call *call)
{
	const char *name = varlink_text(call, "interface");

	(void)env;
	for (size_t i = 0; i < sizeof(INTERFACES) / sizeof(INTERFACES[0]); i++)
		if (strcmp(name, INTERFACES[i].name) == 0) {
			varlink_reply(
			    call, json_pack("{s:s}", "description", INTERFACES[i].description));
			return;
		}
	varlink_error(
	    call, "org.varlink.service.InterfaceNotFound", json_pack("{s:s}", "interface", name));
}

/* ---- the table, and its dispatcher ---- */

static const struct method METHODS[] = {
    {
	.name = "io.rwriter.Write",
	.privilege = TRANSFER,
	.descriptor = true,
	.fn = start_write,
	.parameters =
	    {
		{.name = "peer", .type = TEXT},
		{.name = "region", .type = TEXT, .optional = true},
		{.name = "name", .type = TEXT},
		{.name = "size", .type = NUMBER, .optional = true},
		{.name = "timeoutMs", .type = NUMBER, .optional = true, .max = MAX_TIMEOUT_MS},
		{.name = "preserve", .type = FLAG, .optional = true},
		{.name = "discard", .type = FLAG, .optional = true},
		{.name = "again", .type = FLAG, .optional = true},
	    },
    },
    {
	.name = "io.rwriter.WriteBatch",
	.privilege = TRANSFER,
	.fn = start_batch,
	.parameters =
	    {
		{.name = "peer", .type = TEXT, .optional = true},
		{.name = "peers", .type = TEXTS, .optional = true},
		{.name = "width", .type = NUMBER, .optional = true, .max = LIMIT_BATCH},
		{.name = "region", .type = TEXT, .optional = true},
		{.name = "names", .type = TEXTS},
		{.name = "timeoutMs", .type = NUMBER, .optional = true, .max = MAX_TIMEOUT_MS},
		{.name = "preserve", .type = FLAG, .optional = true},
		{.name = "discard", .type = FLAG, .optional = true},
		{.name = "again", .type = FLAG, .optional = true},
	    },
    },
    {
	.name = "io.rwriter.OpenRegion",
	.privilege = OBSERVE,
	.fn = open_region,
	.parameters = {{.name = "which", .type = TEXT, .optional = true}},
    },
    {.name = "io.rwriter.ListRegions", .privilege = OBSERVE, .fn = look_regions},
    {.name = "io.rwriter.ListPeers", .privilege = OBSERVE, .fn = look_peers},
    {
	.name = "io.rwriter.ExpandPeers",
	.privilege = OBSERVE,
	.fn = look_expand,
	.parameters = {{.name = "peers", .type = TEXT}},
    },
    {.name = "io.rwriter.ListTransfers", .privilege = OBSERVE, .fn = look_transfers},
    {
	.name = "io.rwriter.Explain",
	.privilege = OBSERVE,
	.fn = look_explain,
	.parameters = {{.name = "id", .type = TEXT, .optional = true}},
    },
    {
	.name = "io.rwriter.Events",
	.privilege = OBSERVE,
	.fn = look_events,
	.parameters = {{.name = "since", .type = TEXT, .optional = true}},
    },
    {.name = "io.rwriter.GetStatus", .privilege = OBSERVE, .fn = look_status},
    {
	.name = "io.rwriter.Release",
	.privilege = ADMINISTER,
	.fn = release,
	.parameters = {{.name = "id", .type = NUMBER, .max = UINT32_MAX}},
    },
    {
	.name = "io.rwriter.Disconnect",
	.privilege = ADMINISTER,
	.fn = disconnect,
	.parameters = {{.name = "peer", .type = TEXT}},
    },
    {.name = "io.rwriter.Reload", .privilege = ADMINISTER, .fn = reload},
    {.name = "org.varlink.service.GetInfo", .privilege = OBSERVE, .fn = get_info},
    {
	.name = "org.varlink.service.GetInterfaceDescription",
	.privilege = OBSERVE,
	.fn = get_interface_description,
	.parameters = {{.name = "interface", .type = TEXT}},
    },
};

static const struct method *
find_method(const char *name)
{
	for (size_t i = 0; i < sizeof(METHODS) / sizeof(METHODS[0]); i++)
		if (strcmp(name, METHODS[i].name) == 0)
			return &METHODS[i];
	return NULL;
}

static void
not_found(struct varlink_call *call)
{
	const char *dot = strrchr(call->method, '.');
	size_t len = dot != NULL ? (size_t)(dot - call->method) : 0;

	for (size_t i = 0; i < sizeof(INTERFACES) / sizeof(INTERFACES[0]); i++)
		if (strlen(INTERFACES[i].name) == len &&
		    strncmp(call->method, INTERFACES[i].name, len) == 0) {
			varlink_error(call, "org.varlink.service.MethodNotFound",
			    json_pack("{s:s}", "method", call->method));
			return;
		}
	varlink_error(call, "org.varlink.service.InterfaceNotFound",
	    json_pack("{s:s%}", "interface", call->method, len));
}

/* Whoever may open the socket may observe and transfer. */
static bool
permitted(const struct method *method, uid_t uid)
{
	return method->privilege != ADMINISTER || uid == 0 || uid == geteuid();
}

static void
refuse(const struct method *method, struct varlink_call *call)
{
	varlink_fail(call, "io.rwriter.PermissionDenied",
	    "%s is for root and for uid %u, which rwriterd runs as: try it with sudo",
	    strrchr(method->name, '.') + 1, (unsigned)geteuid());
}

static bool
are_texts(const json_t *list)
{
	size_t i;
	json_t *item;

	json_array_foreach (list, i, item)
		if (!json_is_string(item))
			return false;
	return json_array_size(list) > 0 && json_array_size(list) <= LIMIT_BATCH;
}

static bool
value_fits(const struct parameter *p, const json_t *value)
{
	json_int_t max = p->max != 0 ? (json_int_t)p->max : INT64_MAX;

	if (p->type == TEXT)
		return json_is_string(value);
	if (p->type == FLAG)
		return json_is_boolean(value);
	if (p->type == TEXTS)
		return are_texts(value);
	return json_is_integer(value) && json_integer_value(value) >= 0 &&
	       json_integer_value(value) <= max;
}

/* The name of the first parameter that is missing or of the wrong type, or that nobody knows; else
 * NULL. */
static const char *
find_bad_parameter(const struct method *method, json_t *parameters)
{
	size_t known = 0;
	const char *key;
	json_t *value;

	for (const struct parameter *p = method->parameters; p->name != NULL; p++) {
		value = json_object_get(parameters, p->name);
		known += value != NULL;
		if (p->optional && (value == NULL || json_is_null(value)))
			continue;
		if (!value_fits(p, value))
			return p->name;
	}
	if (known == json_object_size(parameters))
		return NULL;
	json_object_foreach (parameters, key, value) {
		const struct parameter *p = method->parameters;

		while (p->name != NULL && strcmp(p->name, key) != 0)
			p++;
		if (p->name == NULL)
			return key;
	}
	return NULL;
}

void
methods_call(void *arg, struct varlink_call *call)
{
	const struct method *method = find_method(call->method);
	const char *bad;

	if (method == NULL) {
		not_found(call);
		return;
	}
	if (!permitted(method, call->uid)) {
		refuse(method, call);
		return;
	}
	bad = find_bad_parameter(method, call->parameters);
	if (bad != NULL)
		bad_parameter(call, bad);
	else if (method->descriptor && call->n_fds != 1)
		varlink_fail(call, "io.rwriter.DescriptorMissing",
		    "%s needs one descriptor, with the first byte of the call", method->name);
	else
		method->fn(arg, call);
}
