/* stranger.c -- a client of the rwriter protocol that shares no code with rwriter, and can
 * misbehave
 *
 *   stranger ADDRESS PORT STEP ...
 *
 * Connects and takes the steps one after the other (STEPS, below, has them all), printing what it
 * sees, a line for each thing. The minimal writer of the manual is: hello one=TEXT answer bye. Exit
 * status 0 unless it could not play its part.
 */

#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "stranger.h"

enum { T_CODE = 32, T_TEXT = 33, CROWD_MAX = 256 };

static const char *address, *port;
static struct stranger self, crowd[CROWD_MAX];

/* ---- looking ---- */

static const char *
word_of(unsigned type)
{
	return type == DENY ? "denied" : type == NOTICE ? "notice" : "result";
}

/* False: the connection has ended. */
static bool
take_answer(struct stranger *s)
{
	const uint8_t *record, *blob, *text;
	size_t len;

	if (!stranger_read(s, &record, &blob)) {
		puts("ended by the target");
		return false;
	}
	if (record[0] == GRANT) {
		stranger_take_grant(s, record, blob);
		printf("granted %llu bytes at %#x,%#llx\n", (unsigned long long)s->region_size,
		    s->region_rkey, (unsigned long long)s->region_addr);
	} else if (record[0] == RESULT && stranger_get32(record + 24) == 0) {
		puts("result 0");
	} else {
		text = stranger_tlv(record, blob, T_TEXT, &len);
		printf("%s %u: %.*s\n", word_of(record[0]),
		    stranger_get32(stranger_tlv(record, blob, T_CODE, &(size_t){0})), (int)len,
		    text);
	}
	return true;
}

static void
answer(struct stranger *s, const char *arg)
{
	(void)arg;
	take_answer(s);
}

/* All that the target still says, and that it ends the connection. */
static void
end(struct stranger *s, const char *arg)
{
	(void)arg;
	while (take_answer(s))
		;
}

static void
wait_for_input(struct stranger *s, const char *arg)
{
	(void)arg;
	printf("waiting, tail at %#x,%#llx\n", s->tail_rkey, (unsigned long long)s->tail_addr);
	while (getchar() != EOF)
		;
}

/* ---- as the manual has it ---- */

static void
hello(struct stranger *s, const char *size)
{
	stranger_hello(s, size ? strtoull(size, NULL, 0) : 0);
	take_answer(s);
}

static void
bye(struct stranger *s, const char *arg)
{
	(void)arg;
	stranger_record(s, &(struct record){.value[TYPE] = BYE});
}

static void
begin(struct stranger *s, const char *arg)
{
	(void)arg;
	stranger_begin(s);
}

/* ---- and not ---- */

static void
stale(struct stranger *s, const char *arg)
{
	(void)arg;
	s->boot_id[0] ^= 1;
}

static void
message(struct stranger *s, const char *arg)
{
	(void)arg;
	printf("completion: %s\n", stranger_message(s));
}

/* RKEY,ADDRESS,LENGTH */
static void
write_there(struct stranger *s, const char *arg)
{
	char *rest;
	uint32_t rkey = (uint32_t)strtoul(arg, &rest, 0);
	uint64_t addr = strtoull(rest + 1, &rest, 0);
	size_t len = strtoul(rest + 1, NULL, 0);

	memset(s->source, 0xee, len);
	printf("completion: %s\n", stranger_write(s, rkey, addr, s->source, len));
}

/* OFFSET,LENGTH in its own region, or outside of it */
static void
write_at(struct stranger *s, const char *arg)
{
	char *rest;
	long long offset = strtoll(arg, &rest, 0);
	size_t len = strtoul(rest + 1, NULL, 0);

	memset(s->source, 0xee, len);
	printf("completion: %s\n",
	    stranger_write(s, s->region_rkey, s->region_addr + (uint64_t)offset, s->source, len));
}

/* FIELD:VALUE,... of a record without a blob */
static void
record(struct stranger *s, const char *arg)
{
	struct record r = {.value[TYPE] = 0};
	char *all = strdup(arg), *next = all, *item;

	while ((item = strsep(&next, ","))) {
		char *colon = strchr(item, ':');
		unsigned f = 0;

		*colon = '\0';
		while (f < FIELDS && strcmp(item, FIELD_NAMES[f]))
			f++;
		if (f == FIELDS)
			errx(2, "%s: a record has no such field", item);
		r.value[f] = strtoull(colon + 1, NULL, 0);
		r.set[f] = true;
	}
	stranger_record(s, &r);
	free(all);
}

/* A record of which the flag is there and the rest never comes. */
static void
torn(struct stranger *s, const char *arg)
{
	uint64_t slot = s->tail_addr + RING + RECORD * (s->seq++ % s->ring);

	(void)arg;
	memset(s->source, 0, 8);
	s->source[0] = (uint8_t)s->seq;
	stranger_write(s, s->tail_rkey, slot + 56, s->source, 8);
}

/* Records that nobody knows, as fast as they go, until the target has had enough. */
static void
endless(struct stranger *s, const char *arg)
{
	(void)arg;
	while (stranger_record(s, &(struct record){.value[TYPE] = 200}))
		;
}

/* A HELLO that comes byte by byte: ten a second. */
static void
slow(struct stranger *s, const char *arg)
{
	struct timespec pause = {.tv_nsec = 100000000};
	uint64_t at = s->tail_addr + RING;

	(void)arg;
	s->source[0] = HELLO;
	for (unsigned i = 0; i < 200 && !stranger_gone(s); i++) {
		stranger_write(s, s->tail_rkey, at + i % 56, s->source, 1);
		nanosleep(&pause, NULL);
	}
	puts(s->gone ? "ended by the target" : "left alone");
}

/* What to try to hit an rkey: itself, those near it in both of its parts, any. */
static uint32_t
guess(uint32_t rkey, unsigned n)
{
	const uint32_t guesses[] = {rkey, rkey + 1 + n, rkey - 1 - n, rkey + (n << 8),
	    rkey - (n << 8), rkey ^ 1u << n % 32, n, (uint32_t)random()};

	return guesses[n % (sizeof(guesses) / sizeof(guesses[0]))];
}

/* NUMBER,RKEY,ADDRESS: a connection to each guess, for it is the last thing to be done on one:
 * either it fails, or (siw) the target ends the connection afterwards. */
static void
guesses(struct stranger *s, const char *arg)
{
	struct stranger *other = &crowd[0];
	char *rest;
	unsigned number = (unsigned)strtoul(arg, &rest, 0), ended = 0;
	uint32_t rkey = (uint32_t)strtoul(rest + 1, &rest, 0);
	uint64_t addr = strtoull(rest + 1, NULL, 0);

	(void)s;
	for (unsigned i = 0; i < number; i++) {
		const uint8_t *said, *blob;

		memset(other, 0, sizeof(*other));
		if (!stranger_connect(other, address, port))
			errx(1, "rejected");
		memset(other->source, 0xee, 8);
		if (stranger_write(other, guess(rkey, i), addr, other->source, 8) == SUCCESS) {
			if (stranger_read(other, &said, &blob))
				errx(1, "guess %u: the target speaks", i);
			ended++;
		}
		stranger_disconnect(other);
	}
	printf("%u guesses failed, %u were ended by the target\n", number - ended, ended);
}

/* NUMBER more connections, which say nothing (or HELLO, after "hello") and stay until all have
 * come. */
static void
come(struct stranger *s, const char *arg, bool with_hello)
{
	unsigned number = (unsigned)atoi(arg), accepted = 0;
	bool open[CROWD_MAX];

	(void)s;
	for (unsigned i = 0; i < number; i++) {
		open[i] = stranger_connect(&crowd[i], address, port);
		accepted += open[i];
		if (open[i] && with_hello)
			hello(&crowd[i], NULL);
	}
	printf("%u accepted, %u rejected\n", accepted, number - accepted);
	wait_for_input(&self, NULL);
	for (unsigned i = 0; i < number; i++)
		stranger_disconnect(&crowd[i]);
}

static void
silent_crowd(struct stranger *s, const char *arg)
{
	come(s, arg, false);
}

static void
talking_crowd(struct stranger *s, const char *arg)
{
	come(s, arg, true);
}

static const struct {
	const char *name;
	void (*take)(struct stranger *s, const char *arg);
} STEPS[] = {
    {"hello", hello}, /* =SIZE */
    {"one", stranger_one},
    {"begin", begin},
    {"bye", bye},
    {"answer", answer},
    {"end", end},
    {"wait", wait_for_input},
    {"stale", stale},
    {"message", message},
    {"write", write_there},
    {"write-at", write_at},
    {"record", record},
    {"torn", torn},
    {"endless", endless},
    {"slow", slow},
    {"guess", guesses},
    {"silent-crowd", silent_crowd},
    {"crowd", talking_crowd},
};

static void
take(struct stranger *s, char *step)
{
	char *arg = strchr(step, '=');

	if (arg)
		*arg++ = '\0';
	for (size_t i = 0; i < sizeof(STEPS) / sizeof(STEPS[0]); i++)
		if (strcmp(step, STEPS[i].name) == 0) {
			STEPS[i].take(s, arg);
			return;
		}
	errx(2, "%s: no such step", step);
}

int
main(int argc, char **argv)
{
	if (argc < 4)
		errx(2, "usage: stranger ADDRESS PORT STEP ...");
	address = argv[1];
	port = argv[2];
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!stranger_connect(&self, address, port))
		errx(1, "rejected");
	for (int i = 3; i < argc; i++)
		take(&self, argv[i]);
	stranger_disconnect(&self);
	return 0;
}
