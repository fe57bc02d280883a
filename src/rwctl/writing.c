/* writing.c -- what writing one file and writing many have in common */

#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "rwctl/progress.h"
#include "rwctl/writing.h"

#define RATE_FROM        (UINT64_C(64) << 10) /* bytes from which on a rate means something */
#define TIMEOUT_GRACE_MS 2000 /* the daemon keeps the deadline; we only see to it that it does */

json_t *
writing_parameters(const struct writing *w)
{
	json_t *parameters = json_object();
	int left = deadline_left_ms(w->deadline);

	if (w->o->region != NULL)
		json_object_set_new(parameters, "region", call_text(w->o->region));
	if (left >= 0)
		json_object_set_new(parameters, "timeoutMs", json_integer(left > 0 ? left : 1));
	if (w->o->preserve)
		json_object_set_new(parameters, "preserve", json_true());
	if (w->o->discard)
		json_object_set_new(parameters, "discard", json_true());
	if (w->again)
		json_object_set_new(parameters, "again", json_true());
	return parameters;
}

int
writing_receive(struct writing *w, struct pump *pump, struct answer *ret)
{
	struct deadline late = w->deadline;
	int left, r;

	if (late.at_ms != 0)
		late.at_ms += TIMEOUT_GRACE_MS;
	left = deadline_left_ms(late);
	r = left == 0 ? -ETIME : call_receive(w->call, pump, left, ret);
	if (r == 0)
		comeback_over(&w->comeback);
	return r;
}

void
writing_show(struct writing *w, struct member *member, const json_t *transfer)
{
	bool lost = strcmp(text_at(transfer, "state"), "reconnecting") == 0;

	progress_draw(w->progress, member - w->fleet.members, transfer);
	if (lost && !member->lost && w->progress == NULL)
		complain("%s: %s; trying again ...", member->name, text_at(transfer, "text"));
	member->lost = lost;
}

int
writing_await_daemon(struct writing *w)
{
	progress_clear(w->progress);
	w->again = true;
	return comeback_await(&w->comeback, w->call, w->deadline);
}

/* ---- results ---- */

static void
print_bad(const json_t *t)
{
	const char *fix = text_at(t, "fix"), *host = text_at(t, "host");
	bool there = json_is_true(json_object_get(t, "fixOnPeer"));

	printf("%s -> %s: %s: %s", text_at(t, "name"), text_at(t, "peer"), text_at(t, "state"),
	    text_at(t, "text"));
	if (fix[0] != '\0')
		printf("; %s%s: %s", there ? "on " : "here",
		    !there            ? ""
		    : host[0] != '\0' ? host
				      : text_at(t, "peer"),
		    fix);
	putchar('\n');
}

/* How much in what time; what was there already took none. */
static void
print_amount(const json_t *t)
{
	uint64_t bytes = number_at(t, "length"), resumed = number_at(t, "resumed");
	uint64_t ns = number_at(t, "sendingNs"), sent = bytes > resumed ? bytes - resumed : 0;
	char took[TEXT_TIME_MAX], rate[TEXT_SIZE_MAX], from[TEXT_SIZE_MAX];

	if (ns == 0)
		ns = number_at(t, "durationNs");
	printf("%" PRIu64 " byte%s in %s", bytes, bytes == 1 ? "" : "s", text_human_time(took, ns));
	if (sent >= RATE_FROM && ns > 0)
		printf(" (%s/s)", text_human_size(rate, (uint64_t)(sent * 1e9 / ns)));
	if (resumed > 0)
		printf(", resumed at %s", text_human_size(from, resumed));
}

static void
print_good(const json_t *t, const char *word)
{
	const char *device = text_at(t, "device"), *why = text_at(t, "fabricWhy");

	printf("%s -> %s: %s, ", text_at(t, "name"), text_at(t, "peer"), word);
	print_amount(t);
	if (number_at(t, "regionId") != 0)
		printf(", region %" PRIu64, number_at(t, "regionId"));
	printf(", %s%s%s", text_at(t, "fabric"), device[0] != '\0' ? " " : "", device);
	if (why[0] != '\0')
		printf(" (%s)", why);
	printf(", crc32c %s\n", text_at(t, "crc32c"));
}

void
writing_print(const json_t *t)
{
	const char *state = text_at(t, "state");

	if (strcmp(state, "arrived") == 0)
		print_good(t, state);
	else if (strcmp(state, "stored") == 0)
		print_good(t, "stored durably");
	else
		print_bad(t);
}
