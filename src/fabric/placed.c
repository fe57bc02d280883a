/* placed.c -- checksums of what has been placed */

#include "config.h"

#include "base/crc32c.h"
#include "fabric/placed.h"

/* Of a shorter frame summing the payload again takes less than reckoning does. */
#define WORTH ((size_t)16 << 10)

static bool
overlaps(const struct placed_run *run, const uint8_t *at, size_t len)
{
	return at < run->at + run->len && run->at < at + len;
}

static void
forget(struct placed *p, const uint8_t *at, size_t len)
{
	for (unsigned i = 0; i < PLACED_RUNS; i++)
		if (overlaps(&p->runs[i], at, len))
			p->runs[i].len = 0;
}

static uint32_t
factor(struct placed *p, size_t len)
{
	if (p->factor_len != len) {
		p->factor_len = len;
		p->factor = crc32c_factor(len);
	}
	return p->factor;
}

/* Joining is linear: what joins the run to the payload, and takes off what came before the payload,
 * is one step. */
static void
extend(struct placed *p, struct placed_run *run, size_t len, const struct placed_frame *frame)
{
	run->crc = crc32c_join(run->crc ^ frame->before, frame->whole, factor(p, len));
	run->len += len;
}

void
placed_add(struct placed *p, const void *at, size_t len, const struct placed_frame *frame)
{
	struct placed_run *run = &p->runs[p->newest];

	forget(p, at, len);
	if (frame->goes_on) {
		if (run->len > 0 && run->at + run->len == at)
			extend(p, run, len, frame);
	} else if (len >= WORTH) {
		p->newest = (p->newest + 1) % PLACED_RUNS;
		run = &p->runs[p->newest];
		*run = (struct placed_run){.at = at};
		extend(p, run, len, frame);
	}
}

bool
placed_take(struct placed *p, const void *at, size_t len, uint32_t *ret_crc)
{
	bool known = false;

	for (unsigned i = 0; i < PLACED_RUNS && len > 0; i++)
		if (p->runs[i].at == at && p->runs[i].len == len) {
			*ret_crc = p->runs[i].crc;
			known = true;
		}
	forget(p, at, len);
	return known;
}
