/* comeback.c -- a daemon that goes while a call is under way, and comes back */

#include "config.h"

#include <errno.h>
#include <string.h>

#include "rwctl/comeback.h"
#include "rwctl/interrupt.h"

#define PATIENCE_NS  (30 * UINT64_C(1000000000)) /* without --timeout */
#define PAUSE_MIN_MS 50
#define PAUSE_MAX_MS 1000
#define LAST_WORD_MS 2000 /* from a stopping daemon's last answer to its end */

bool
comeback_needed(int error)
{
	return error == -EPIPE || error == -ECONNRESET;
}

bool
comeback_likely(const json_t *transfer)
{
	return strcmp(text_at(transfer, "code"), "shutdown") == 0;
}

bool
comeback_follows(struct call *call)
{
	struct answer more;
	int r = call_receive(call, NULL, LAST_WORD_MS, &more);

	if (r == 0)
		answer_done(&more);
	return comeback_needed(r);
}

static int
shorter(int a, int b)
{
	return a < b ? a : b;
}

static int
give_up(struct deadline deadline)
{
	if (deadline.at_ms != 0) {
		complain("rwriterd was not back in time");
		return STATUS_DEADLINE;
	}
	complain("rwriterd does not come back");
	advise("it says why in its log: journalctl -u rwriter");
	return STATUS_UNREACHABLE;
}

int
comeback_await(struct comeback *c, struct call *call, struct deadline deadline)
{
	int pause = PAUSE_MIN_MS, left;

	if (c->give_up.at_ms == 0) {
		c->give_up = deadline.at_ms != 0 ? deadline : deadline_in(PATIENCE_NS);
		complain("rwriterd has gone; trying again when it is back ...");
	}
	while ((left = deadline_left_ms(c->give_up)) != 0) {
		if (interrupt_poll(NULL, 0, shorter(pause, left)) == -EINTR)
			return interrupt_explain();
		if (call_reopen(call) == 0)
			return STATUS_DONE;
		pause = shorter(2 * pause, PAUSE_MAX_MS);
	}
	return give_up(deadline);
}

void
comeback_over(struct comeback *c)
{
	c->give_up = (struct deadline){0};
}
