/* flight.c -- where the time of a transfer or of an arrival went; pure bookkeeping */

#include "config.h"

#include <string.h>

#include "core/flight.h"

static const char *const PHASES[] = {
    [FLIGHT_RESOLVE] = "resolve",
    [FLIGHT_CONNECT] = "connect",
    [FLIGHT_HELLO] = "hello",
    [FLIGHT_GRANT] = "grant",
    [FLIGHT_REGISTER] = "register",
    [FLIGHT_FIRST_BYTE] = "first byte",
    [FLIGHT_LAST_BYTE] = "last byte",
    [FLIGHT_VERIFY] = "verify",
    [FLIGHT_FSYNC] = "fsync",
    [FLIGHT_RESULT] = "result",
};

static const char *const WAITS[] = {
    [FLIGHT_NOTHING] = "nothing",
    [FLIGHT_SOURCE] = "source",
    [FLIGHT_WINDOW] = "window",
    [FLIGHT_DEVICE] = "device",
    [FLIGHT_POLL] = "poll",
    [FLIGHT_DISK] = "disk",
};

const char *
flight_phase_name(enum flight_phase phase)
{
	return PHASES[phase];
}

const char *
flight_wait_name(enum flight_wait wait)
{
	return WAITS[wait];
}

void
flight_begin(struct flight *f, uint64_t now)
{
	*f = (struct flight){.begun = now};
}

void
flight_mark(struct flight *f, enum flight_phase phase, uint64_t now)
{
	if (f->at[phase] == 0)
		f->at[phase] = now;
}

void
flight_wait(struct flight *f, enum flight_wait wait, uint64_t now)
{
	if (f->waiting == wait)
		return;
	if (f->waiting != FLIGHT_NOTHING)
		f->waited[f->waiting] += now - f->waiting_since;
	f->waiting = wait;
	f->waiting_since = now;
}

void
flight_join(struct flight *f, const struct flight *connection)
{
	for (int i = 0; i < FLIGHT_PHASES; i++)
		if (connection->at[i] >= f->begun && connection->at[i] != 0)
			flight_mark(f, i, connection->at[i]);
}

uint64_t
flight_took(const struct flight *f, enum flight_phase phase)
{
	uint64_t before = f->begun;

	if (f->at[phase] == 0)
		return 0;
	for (int i = 0; i < FLIGHT_PHASES; i++)
		if (f->at[i] > before &&
		    (f->at[i] < f->at[phase] || (i < (int)phase && f->at[i] == f->at[phase])))
			before = f->at[i];
	return f->at[phase] - before;
}

struct flight_record *
flight_log_add(struct flight_log *log)
{
	struct flight_record *r = &log->kept[log->next++ % LIMIT_FLIGHTS];

	memset(r, 0, sizeof(*r));
	return r;
}

void
flight_log_each(
    const struct flight_log *log, void (*fn)(void *arg, const struct flight_record *r), void *arg)
{
	uint64_t n = log->next > LIMIT_FLIGHTS ? log->next - LIMIT_FLIGHTS : 0;

	for (; n < log->next; n++)
		fn(arg, &log->kept[n % LIMIT_FLIGHTS]);
}
