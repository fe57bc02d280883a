/* failure.c -- why something did not work, in words */

#include "config.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/page.h"
#include "base/text.h"
#include "core/failure.h"
#include "core/pool.h"
#include "fabric/fabric.h"
#include "wire/message.h"

/* A target does not tell what is wrong about a key, so that nobody can find out by trying. */
#define KEY_FIX                                                                                   \
	"both machines need the same key under [peer NAME], where NAME is [rwriter] name of the " \
	"other; journalctl -u rwriter says what it is"

struct failure
failure_make(unsigned code, const char *fmt, ...)
{
	struct failure f = {.state = TRANSFER_FAILED, .code = code};
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(f.text, sizeof(f.text), fmt, ap);
	va_end(ap);
	return f;
}

void
failure_add(struct failure *f, const char *fmt, ...)
{
	size_t used = strlen(f->text);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(f->text + used, sizeof(f->text) - used, fmt, ap);
	va_end(ap);
}

void
failure_fix(struct failure *f, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(f->fix, sizeof(f->fix), fmt, ap);
	va_end(ap);
}

/* ---- what the target says ---- */

struct failure
failure_refused(unsigned code, const char *text, const char *fix)
{
	struct failure f = {.state = TRANSFER_REFUSED, .code = code, .fix_on_peer = true};
	const char *said = text[0] != '\0' ? text : rwp_code_text(code);

	if (said == NULL)
		said = "for a reason that is not known here";
	/* A target that refuses a size says so itself: "refused 2.0 GiB for ...". */
	snprintf(f.text, sizeof(f.text), "%s%s",
	    strncmp(said, "refused ", 8) == 0 ? "" : "refused us: ", said);
	if (code == RWP_E_KEY && fix[0] == '\0')
		fix = KEY_FIX;
	failure_fix(&f, "%s", fix);
	return f;
}

struct failure
failure_notice(const struct rwp_deny *notice)
{
	struct failure f = failure_make(notice->code, "ended the connection: %s", notice->text);

	failure_fix(&f, "%s", notice->fix);
	f.fix_on_peer = true;
	return f;
}

struct failure
failure_result(unsigned code, const struct rwp_deny *told)
{
	bool text = told != NULL && told->text[0] != '\0';
	struct failure f = text ? failure_make(code, "%s", told->text)
				: failure_make(code, "failed there with code %u", code);

	if (told != NULL)
		failure_fix(&f, "%s", told->fix);
	f.fix_on_peer = true;
	return f;
}

struct failure
failure_protocol(const char *text)
{
	return failure_make(RWP_E_PROTOCOL, "broke the protocol: %s", text);
}

/* ---- what happens here ---- */

struct failure
failure_setup(int error, const char *detail)
{
	return failure_make(error == -ENOMEM ? RWP_E_MEMORY : 0,
	    "cannot be connected to from here: %s", detail != NULL ? detail : strerror(-error));
}

/* A reject without our private data came from the fabric: no daemon had a say. */
static struct failure
rejected(const struct fabric_event *event, const struct sockaddr *local)
{
	struct rwp_reject reject;
	struct failure f;
	char text[LIMIT_REASON + 1], address[TEXT_ADDRESS_MAX], fix[LIMIT_TEXT + 1] = "";

	if (rwp_reject_decode(event->data, event->data_len, &reject) < 0) {
		f = failure_make(0, "nobody listens there");
		failure_fix(&f, "sudo systemctl start rwriter");
		f.fix_on_peer = true;
		return f;
	}
	text_clean(text, sizeof(text), reject.text, reject.text_len);
	if (reject.reason == RWP_E_ADDRESS)
		snprintf(fix, sizeof(fix),
		    "add \"allow = %s\" to that section of /etc/rwriter/rwriter.conf, then: "
		    "sudo systemctl reload rwriter",
		    text_address(address, local));
	return failure_refused(reject.reason, text, fix);
}

struct failure
failure_closed(const struct fabric_event *event, bool open, const struct sockaddr *local)
{
	if (event->cause == FABRIC_CAUSE_REFUSED)
		return rejected(event, local);
	return failure_make(0, "%s: %s%s%s", open ? "the connection broke" : "cannot be reached",
	    fabric_cause_name(event->cause), event->detail != NULL ? ": " : "",
	    event->detail != NULL ? event->detail : "");
}

struct failure
failure_staging(uint64_t size, const struct pool *pool, int error, const char *detail)
{
	char want[TEXT_SIZE_MAX], room[TEXT_SIZE_MAX], limit[TEXT_SIZE_MAX], more[TEXT_SIZE_MAX];
	struct failure f =
	    failure_make(RWP_E_MEMORY, "%s for sending: ", text_human_size(want, size));

	if (error != -ENOBUFS) {
		failure_add(&f, "%s", detail != NULL ? detail : strerror(-error));
		return f;
	}
	failure_add(&f, "%s of the %s of pinned memory here are free",
	    text_human_size(room, pool_room(pool)), text_human_size(limit, pool_limit(pool)));
	failure_fix(&f, "pinned-memory = %s in [limits]",
	    text_print_size(more, pool_used(pool) + page_round(size)));
	return f;
}

struct failure
failure_read(int error)
{
	struct failure f;

	if (error == -EPIPE)
		return failure_make(RWP_E_ABORTED, "the input was cut off");
	if (error != -ESTALE)
		return failure_make(RWP_E_ABORTED, "%s", strerror(-error));
	f = failure_make(RWP_E_ABORTED, "the file changed while it was sent");
	failure_fix(&f, "write it again when nobody changes it");
	return f;
}

/* ---- what it means ---- */

bool
failure_is_passing(const struct failure *f)
{
	switch (f->code) {
	case 0:
	case RWP_E_BUSY:
	case RWP_E_STALE:
	case RWP_E_MEMORY:
	case RWP_E_TIMEOUT:
	case RWP_E_SHUTDOWN:
	case RWP_E_IDLE:
		return true;
	default:
		return false;
	}
}

bool
failure_is_fault(const struct failure *f)
{
	return f->text[0] != '\0' && f->code != RWP_E_IDLE && f->code != RWP_E_ABORTED &&
	       f->code != RWP_E_SHUTDOWN && f->code != RWP_E_RELEASED;
}
