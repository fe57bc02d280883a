/* failure.c -- why something did not work, in words */

#include "config.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "core/failure.h"
#include "fabric/fabric.h"

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
	snprintf(f.fix, sizeof(f.fix), "%s", fix);
	return f;
}

struct failure
failure_protocol(const char *text)
{
	return failure_make(RWP_E_PROTOCOL, "broke the protocol: %s", text);
}

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
		snprintf(f.fix, sizeof(f.fix), "sudo systemctl start rwriter");
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
