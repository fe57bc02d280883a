/* request.c -- what one `rwctl write` asks for: checked, and made a transfer of its peer */

#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "core/peer.h"
#include "core/priv.h"
#include "core/source.h"
#include "core/transfer.h"

static int
check_request(const struct write_request *r, char *error, size_t size)
{
	if (r->region != NULL && !text_is_name(r->region)) {
		snprintf(error, size, "\"%s\" is no region name: at most %d of A-Z a-z 0-9 . _ -",
		    r->region, LIMIT_NAME);
		return -EINVAL;
	}
	if (r->name == NULL || r->name[0] == '\0' || strlen(r->name) > LIMIT_FILE_NAME ||
	    !text_is_clean(r->name, strlen(r->name))) {
		snprintf(error, size,
		    "the name must be 1 to %d bytes of UTF-8 without control characters",
		    LIMIT_FILE_NAME);
		return -EINVAL;
	}
	return 0;
}

static int
check_core(struct core *core, char *error, size_t size)
{
	unsigned n = list_length(&core->transfers);

	if (core->stopping) {
		snprintf(error, size, "the daemon stops");
		return -ESHUTDOWN;
	}
	if (n < LIMIT_TRANSFERS)
		return 0;
	snprintf(
	    error, size, "%u transfers are queued already, the limit is %d", n, LIMIT_TRANSFERS);
	return -EBUSY;
}

static const char *
region_of(const struct write_request *r)
{
	return r->region != NULL ? r->region : "default";
}

static void
fill_in(struct transfer *t, const struct write_request *r)
{
	t->update = r->update;
	t->arg = r->arg;
	t->started = loop_now();
	flight_begin(&t->flight, t->started);
	t->preserve = r->preserve;
	if (r->again)
		reconnect_granted(&t->reconnect);
	snprintf(t->region, sizeof(t->region), "%s", region_of(r));
	t->view = (struct transfer_view){
	    .id = ++t->core->last_transfer,
	    .length = source_length(t->source),
	    .fabric = "",
	};
	t->wanted = source_is_stream(t->source) ? r->size : t->view.length;
	snprintf(t->view.peer, sizeof(t->view.peer), "%s", r->peer);
	snprintf(t->view.name, sizeof(t->view.name), "%s", r->name);
	memcpy(t->view.region, t->region, sizeof(t->view.region));
	if (r->timeout_ns > 0)
		loop_timer_set(t->deadline, r->timeout_ns);
}

static int
make(struct core *core, const struct write_request *r, struct transfer **ret, char *error,
    size_t size)
{
	struct transfer *t;
	int result = transfer_new(core, &t);

	if (result < 0)
		return result;
	result = source_new(&core->sources, r->uid, r->fd, &t->source);
	if (result == -EINVAL)
		snprintf(
		    error, size, "the descriptor is neither a regular file nor a stream socket");
	if (result == -EBADF)
		snprintf(error, size, "the descriptor is not open for reading");
	if (result == 0)
		result = source_id(t->source, region_of(r), r->name, t->id);
	if (result == 0)
		result = peer_get(core, r->peer, &t->peer, error, size);
	if (result < 0) {
		transfer_free(t);
		return result;
	}
	fill_in(t, r);
	*ret = t;
	return 0;
}

int
core_write(struct core *core, const struct write_request *request, struct transfer **ret,
    char *error, size_t size)
{
	struct transfer *t;
	int result;

	error[0] = '\0';
	result = check_request(request, error, size);
	if (result == 0)
		result = check_core(core, error, size);
	if (result == 0)
		result = make(core, request, &t, error, size);
	if (result < 0) {
		if (error[0] == '\0')
			snprintf(error, size, "%s", strerror(-result));
		return result;
	}
	list_add_tail(&core->transfers, &t->node);
	peer_submit(t->peer, t);
	core_changed(core);
	*ret = t;
	return 0;
}
