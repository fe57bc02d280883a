/* report.c -- views as JSON: the types of io.rwriter.varlink */

#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "control/report.h"
#include "wire/rwp.h"

/* Words for programs; people read the text. */
static const char *const CODE_WORDS[] = {
    [RWP_E_VERSION] = "version",
    [RWP_E_ADDRESS] = "address",
    [RWP_E_BUSY] = "busy",
    [RWP_E_KEY] = "key",
    [RWP_E_STALE] = "stale",
    [RWP_E_REGION] = "region",
    [RWP_E_SIZE] = "size",
    [RWP_E_MEMORY] = "memory",
    [RWP_E_UNSUPPORTED] = "unsupported",
    [RWP_E_PROTOCOL] = "protocol",
    [RWP_E_CHECKSUM] = "checksum",
    [RWP_E_TIMEOUT] = "timeout",
    [RWP_E_SHUTDOWN] = "shutdown",
    [RWP_E_RELEASED] = "released",
    [RWP_E_IDLE] = "idle",
    [RWP_E_STORAGE] = "storage",
    [RWP_E_ABORTED] = "aborted",
    [RWP_E_INTERNAL] = "internal",
};

json_t *
report_text(const char *s)
{
	char clean[1024];

	if (s == NULL || s[0] == '\0')
		return json_null();
	return json_string(text_clean(clean, sizeof(clean), s, strlen(s)));
}

static json_t *
number(uint64_t n)
{
	return json_integer(n <= INT64_MAX ? (json_int_t)n : INT64_MAX);
}

static json_t *
time_of(uint64_t realtime_ns)
{
	char buf[32];

	return realtime_ns == 0 ? json_null() : json_string(text_rfc3339(buf, realtime_ns));
}

static json_t *
checksum(uint32_t crc)
{
	char buf[9];

	snprintf(buf, sizeof(buf), "%08" PRIx32, crc);
	return json_string(buf);
}

static json_t *
code_word(unsigned code)
{
	char buf[16];

	if (code == 0)
		return json_null();
	if (code < sizeof(CODE_WORDS) / sizeof(CODE_WORDS[0]) && CODE_WORDS[code] != NULL)
		return json_string(CODE_WORDS[code]);
	snprintf(buf, sizeof(buf), "code %u", code);
	return json_string(buf);
}

/* Takes object and value over; what is NULL for want of memory stays NULL. */
static json_t *
set(json_t *object, const char *key, json_t *value)
{
	if (json_object_set_new(object, key, value) == 0)
		return object;
	json_decref(object);
	return NULL;
}

static json_t *
arrival(const struct arrival_view *v)
{
	json_t *o = json_object();

	o = set(o, "name", report_text(v->name));
	o = set(o, "offset", number(v->offset));
	o = set(o, "length", number(v->length));
	o = set(o, "crc32c", checksum(v->crc32c));
	o = set(o, "time", time_of(v->at));
	o = set(o, "path", report_text(v->path));
	return o;
}

json_t *
report_region(const struct region_view *v, const char *last_hook)
{
	json_t *o = json_object();

	o = set(o, "id", number(v->id));
	o = set(o, "region", report_text(v->region));
	o = set(o, "peer", report_text(v->peer));
	o = set(o, "claimedName", report_text(v->claimed_name));
	o = set(o, "address", report_text(v->address));
	o = set(o, "fabric", report_text(v->fabric));
	o = set(o, "device", report_text(v->device));
	o = set(o, "keyed", json_boolean(v->keyed));
	o = set(o, "fabricWhy", report_text(v->fabric_why));
	o = set(o, "state", report_text(v->state));
	o = set(o, "sink", report_text(v->sink));
	o = set(o, "size", number(v->size));
	o = set(o, "buffers", number(v->buffers));
	o = set(o, "generation", number(v->generation));
	o = set(o, "arrivals", number(v->arrivals));
	o = set(o, "bytes", number(v->bytes));
	o = set(o, "receiveCompletions", number(v->receive_completions));
	o = set(o, "grantedAt", time_of(v->granted_at));
	o = set(o, "lastArrival", v->has_arrival ? arrival(&v->last) : json_null());
	o = set(o, "lastHook", report_text(last_hook));
	return o;
}

json_t *
report_peer(const struct peer_view *v)
{
	json_t *o = json_object();

	o = set(o, "name", report_text(v->name));
	o = set(o, "claimedName", report_text(v->claimed_name));
	o = set(o, "address", report_text(v->address));
	o = set(o, "configured", json_boolean(v->configured));
	o = set(o, "direction", report_text(v->direction));
	o = set(o, "state", report_text(v->state));
	o = set(o, "fabric", report_text(v->fabric));
	o = set(o, "device", report_text(v->device));
	o = set(o, "keyed", json_boolean(v->keyed));
	o = set(o, "fabricWhy", report_text(v->fabric_why));
	o = set(o, "since", time_of(v->since));
	o = set(o, "transfers", number(v->transfers));
	o = set(o, "queued", number(v->queued));
	o = set(o, "lastError", report_text(v->last_error));
	return o;
}

json_t *
report_listener(const struct listen_view *v)
{
	json_t *o = json_object();

	o = set(o, "name", report_text(v->name));
	o = set(o, "address", report_text(v->address));
	o = set(o, "fabric", report_text(v->fabric));
	o = set(o, "up", json_boolean(v->up));
	o = set(o, "detail", report_text(v->detail));
	o = set(o, "hostOnly", json_boolean(v->host_only));
	return o;
}

json_t *
report_transfer(const struct transfer_view *v)
{
	bool done = v->state == TRANSFER_ARRIVED || v->state == TRANSFER_STORED;

	json_t *o = json_object();

	o = set(o, "id", number(v->id));
	o = set(o, "state", json_string(transfer_state_name(v->state)));
	o = set(o, "peer", report_text(v->peer));
	o = set(o, "address", report_text(v->address));
	o = set(o, "host", report_text(v->host));
	o = set(o, "name", report_text(v->name));
	o = set(o, "length", v->length == UINT64_MAX ? json_null() : number(v->length));
	o = set(o, "sent", number(v->sent));
	o = set(o, "arrived", number(v->arrived));
	o = set(o, "durable", number(v->durable));
	o = set(o, "resumed", number(v->resumed));
	o = set(o, "checked", number(v->checked));
	o = set(o, "sentAgain", number(v->sent_again));
	o = set(o, "reconnects", number(v->reconnects));
	o = set(o, "durationNs", number(v->duration_ns));
	o = set(o, "sendingNs", number(v->sending_ns));
	o = set(o, "regionId", v->region_id == 0 ? json_null() : number(v->region_id));
	o = set(o, "region", report_text(v->region));
	o = set(o, "fabric", report_text(v->fabric));
	o = set(o, "device", report_text(v->device));
	o = set(o, "fabricWhy", report_text(v->fabric_why));
	o = set(o, "crc32c", done ? checksum(v->crc32c) : json_null());
	o = set(o, "code", code_word(v->code));
	o = set(o, "text", report_text(v->text));
	o = set(o, "fix", report_text(v->fix));
	o = set(o, "fixOnPeer", json_boolean(v->fix_on_peer));
	return o;
}

static json_t *
phases(const struct flight *f)
{
	json_t *list = json_array();

	for (int i = 0; i < FLIGHT_PHASES; i++) {
		json_t *o;

		if (f->at[i] == 0)
			continue;
		o = json_pack("{s:s, s:I, s:I}", "phase", flight_phase_name(i), "atNs",
		    (json_int_t)(f->at[i] - f->begun), "tookNs", (json_int_t)flight_took(f, i));
		if (json_array_append_new(list, o) < 0)
			return json_decref(list), NULL;
	}
	return list;
}

static json_t *
waits(const struct flight *f)
{
	json_t *list = json_array();

	for (int i = FLIGHT_NOTHING + 1; i < FLIGHT_WAITS; i++)
		if (json_array_append_new(list, json_pack("{s:s, s:I}", "for", flight_wait_name(i),
						    "ns", (json_int_t)f->waited[i])) < 0)
			return json_decref(list), NULL;
	return list;
}

json_t *
report_flight(const struct flight_record *r)
{
	char id[16];
	json_t *o = json_object();

	snprintf(id, sizeof(id), "%s%" PRIu32, r->in ? "a" : "", r->id);
	o = set(o, "id", json_string(id));
	o = set(o, "direction", json_string(r->in ? "in" : "out"));
	o = set(o, "name", report_text(r->name));
	o = set(o, "peer", report_text(r->peer));
	o = set(o, "state", report_text(r->state));
	o = set(o, "length", number(r->length));
	o = set(o, "phases", phases(&r->flight));
	o = set(o, "waits", waits(&r->flight));
	return o;
}

static const char *const EVENT_WORDS[] = {
    [EVENT_CONNECTED] = "connected",
    [EVENT_GRANTED] = "granted",
    [EVENT_ARRIVAL] = "arrival",
    [EVENT_STORED] = "stored",
    [EVENT_FAILED] = "failed",
    [EVENT_REFUSED] = "refused",
    [EVENT_DISCONNECTED] = "disconnected",
    [EVENT_HOOK] = "hook",
};

json_t *
report_event(const struct event_view *v, const char *cursor)
{
	const struct arrival_view *a = v->arrival;
	bool whole = a != NULL && (v->kind == EVENT_ARRIVAL || v->kind == EVENT_STORED);

	json_t *o = json_object();

	o = set(o, "event", json_string(EVENT_WORDS[v->kind]));
	o = set(o, "time", time_of(v->at));
	o = set(o, "cursor", json_string(cursor));
	o = set(o, "direction", report_text(v->direction));
	o = set(o, "peer", report_text(v->peer));
	o = set(o, "address", report_text(v->address));
	o = set(o, "fabric", report_text(v->fabric));
	o = set(o, "device", report_text(v->device));
	o = set(o, "region", report_text(v->region));
	o = set(o, "regionId", v->region_id == 0 ? json_null() : number(v->region_id));
	o = set(o, "transferId", v->transfer_id == 0 ? json_null() : number(v->transfer_id));
	o = set(o, "name", report_text(a != NULL ? a->name : ""));
	o = set(o, "path", report_text(v->path));
	o = set(o, "length", whole ? number(a->length) : json_null());
	o = set(o, "crc32c", whole ? checksum(a->crc32c) : json_null());
	o = set(o, "code", code_word(v->code));
	o = set(o, "text", report_text(v->text));
	return o;
}

static json_t *
boot_id(const uint8_t id[8])
{
	char buf[17];

	for (int i = 0; i < 8; i++)
		snprintf(buf + 2 * i, 3, "%02x", id[i]);
	return json_string(buf);
}

static const char *const REFUSED_WORDS[] = {
    [REFUSED_ADDRESS] = "refusedAddress",
    [REFUSED_BUSY] = "refusedBusy",
    [REFUSED_KEY_UNKNOWN] = "refusedKeyUnknown",
    [REFUSED_KEY_WRONG] = "refusedKeyWrong",
    [REFUSED_KEY_NAMES] = "refusedKeyNames",
    [REFUSED_KEY_MISSING] = "refusedKeyMissing",
    [REFUSED_OTHER] = "refusedOther",
};

json_t *
report_status(const struct status_view *v, const char *version, const char *cursor,
    json_t *listeners, json_t *notes)
{
	json_t *o = json_object();

	o = set(o, "name", report_text(v->name));
	o = set(o, "version", json_string(version));
	o = set(o, "state", json_string(v->stopping ? "stopping" : "ready"));
	o = set(o, "bootId", boot_id(v->boot_id));
	o = set(o, "cursor", json_string(cursor));
	o = set(o, "upNs", number(v->up_ns));
	o = set(o, "memoryUsed", number(v->memory_used));
	o = set(o, "memoryLimit", number(v->memory_limit));
	o = set(o, "regions", number(v->regions));
	o = set(o, "connections", number(v->connections));
	o = set(o, "connectionsLimit", number(v->connections_limit));
	o = set(o, "unproven", number(v->unproven));
	o = set(o, "unprovenLimit", number(v->unproven_limit));
	o = set(o, "transfers", number(v->transfers));
	o = set(o, "reconnects", number(v->reconnects));
	for (unsigned i = 0; i < REFUSED_CAUSES; i++)
		o = set(o, REFUSED_WORDS[i], number(v->refused[i]));
	o = set(o, "listeners", listeners);
	o = set(o, "notes", notes);
	return o;
}
