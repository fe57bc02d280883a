/* test_keyed.c -- connections with keys: who is let in, what is bound, and what somebody on the
 * network achieves who alters what he sees
 */

#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/crc32c.h"
#include "base/log.h"
#include "base/text.h"
#include "fake/fake.h"
#include "unit/world.h"
#include "wire/rwp.h"

#define KEY_TEXT "the key is missing, unknown, wrong, or not for this: the log there says which"

/* Key files for the configurations: 1 and 2. */
static char directory[] = "/tmp/rwriter-keys-XXXXXX";
static char lines_a[512], lines_b[1024];
static char logged[512]; /* b's last line about a refusal */

static void
remember(enum log_level level, const char *line)
{
	if (level == LOG_LEVEL_WARNING && strstr(line, ".0.0.1: refused: ") != NULL)
		snprintf(logged, sizeof(logged), "%s", line);
}

static void
write_key(int n)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "%s/%d", directory, n);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(
	    dprintf(fd, "%cAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n", 'A' + n), 45);
	close(fd);
}

static int
make_keys(void **state)
{
	(void)state;
	if (mkdtemp(directory) == NULL)
		return -1;
	write_key(1);
	write_key(2);
	return 0;
}

static int
remove_keys(void **state)
{
	char path[64];

	(void)state;
	for (int n = 1; n <= 2; n++) {
		snprintf(path, sizeof(path), "%s/%d", directory, n);
		unlink(path);
	}
	return rmdir(directory);
}

/* a's [peer b] gets a key (0: none); b has [peer a] with one, and more lines. The world's lines go
 * on from [peer b] in both. */
static void
configure(int key_a, int key_b, const char *more_b)
{
	snprintf(
	    lines_a, sizeof(lines_a), "%skey = %s/%d\n", key_a == 0 ? ";" : "", directory, key_a);
	snprintf(lines_b, sizeof(lines_b),
	    "[peer a]\naddress = 127.0.0.1\nport = 7471\n"
	    "%skey = %s/%d\n%s",
	    key_b == 0 ? ";" : "", directory, key_b, more_b != NULL ? more_b : "");
	world_lines_a = lines_a;
	world_lines_b = lines_b;
}

/* The world's own sink is quiet. */
static void
open_world(struct world *w)
{
	assert_int_equal(world_open(w), 0);
	log_set_sink(remember);
}

static void
reopen(struct world *w, int key_a, int key_b, const char *more_b)
{
	world_close(w);
	configure(key_a, key_b, more_b);
	open_world(w);
}

static int
setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	fake = FAKE_DEFAULTS;
	logged[0] = '\0';
	configure(1, 1, NULL);
	*state = w;
	open_world(w);
	return 0;
}

static int
teardown(void **state)
{
	world_name_b = "b";
	world_allow = "any";
	return world_teardown(state);
}

static uint64_t
refused(struct world *w, enum refused cause)
{
	struct status_view v;

	core_status(w->b, &v);
	return v.refused[cause];
}

/* A write that is refused for its key: for which reason is known to b alone. */
static void
check_refused(struct world *w, const char *region, enum refused cause)
{
	uint64_t before = refused(w, cause);
	int fd = world_file(10);
	struct outcome o;

	assert_int_equal(
	    world_write_request(w, &o,
		(struct write_request){.peer = "b", .region = region, .name = "file", .fd = fd}),
	    0);
	close(fd);
	world_wait(w, &o.done, "the refusal", 10);
	assert_int_equal(o.view.state, TRANSFER_REFUSED);
	assert_int_equal(o.view.code, RWP_E_KEY);
	assert_string_equal(o.view.text, "refused us: " KEY_TEXT);
	assert_int_equal(refused(w, cause), before + 1);
	assert_int_equal(w->arrivals, 0);
}

/* A write that a itself gives up, because b does not prove the key. */
static void
check_distrusted(struct world *w)
{
	struct outcome o;

	world_write(w, &o, "b", 10);
	assert_int_equal(o.view.state, TRANSFER_FAILED);
	assert_int_equal(o.view.code, RWP_E_KEY);
	assert_string_equal(o.view.text, "does not prove that it has our key");
	assert_int_equal(w->arrivals, 0);
}

static void
check_arrives(struct world *w, uint64_t size)
{
	struct outcome o;

	world_write(w, &o, "b", size);
	if (o.view.state != TRANSFER_ARRIVED)
		fail_msg("%s %s", transfer_state_name(o.view.state), o.view.text);
	world_check(w, size);
}

/* ---- what works ---- */

static void
count_keyed(void *arg, const struct peer_view *v)
{
	*(unsigned *)arg += v->keyed;
	if (v->keyed)
		assert_true(strcmp(v->name, "a") == 0 || strcmp(v->name, "b") == 0);
}

static unsigned
keyed_connections(struct world *w)
{
	unsigned n = 0;

	core_each_peer(w->a, count_keyed, &n);
	core_each_peer(w->b, count_keyed, &n);
	return n;
}

static bool
region_is_keyed(struct world *w)
{
	struct region_view v;
	int fd;

	assert_int_equal(core_open_region(w->b, "", &v, &fd), 0);
	close(fd);
	return v.keyed;
}

static void
both_prove_it(void **state)
{
	struct world *w = *state;

	check_arrives(w, 17);
	check_arrives(w, 3 << 20);
	assert_int_equal(keyed_connections(w), 2);
	assert_true(region_is_keyed(w));
	world_turns(w, 0.05);
	assert_int_equal(keyed_connections(w), 2);
}

/* Beats are keyed too: without them the connection would have ended. */
static void
beats_are_heard(void **state)
{
	struct world *w = *state;

	reopen(w, 1, 1, "[limits]\nbeat = 50ms\ndead = 500ms\n");
	check_arrives(w, 17);
	world_turns(w, 1.2);
	assert_int_equal(keyed_connections(w), 2);
}

static void
key_opens_a_region(void **state)
{
	struct world *w = *state;

	reopen(w, 1, 1, "[region default]\nrequire-key = yes\n");
	check_arrives(w, 100);
}

/* ---- who is let in ---- */

static struct sockaddr_in elsewhere = {.sin_family = AF_INET};

static void
come_from(uint32_t address)
{
	elsewhere.sin_addr.s_addr = htonl(address);
	fake.from = (struct sockaddr *)&elsewhere;
}

/* b allows only this, and a comes from 10.0.0.1. */
static void
restrict_b(struct world *w, int key_a, const char *allow)
{
	char more[128];

	world_allow = allow;
	snprintf(more, sizeof(more), "[peer c]\naddress = 10.9.9.9\nkey = %s/2\n", directory);
	world_close(w);
	configure(key_a, 1, more);
	snprintf(lines_a + strlen(lines_a), sizeof(lines_a) - strlen(lines_a),
	    "[peer a]\naddress = 127.0.0.1\n[peer c]\naddress = 10.9.9.9\n");
	open_world(w);
	come_from(0x0a000001);
}

static void
allowed_by_name(void **state)
{
	struct world *w = *state;

	restrict_b(w, 1, "a");
	check_arrives(w, 17);
	assert_true(region_is_keyed(w));
}

static void
allowed_by_address_without_the_key(void **state)
{
	struct world *w = *state;

	restrict_b(w, 0, "10.0.0.0/8");
	check_arrives(w, 17);
	assert_false(region_is_keyed(w));
}

static void
key_that_is_not_allowed_here(void **state)
{
	struct world *w = *state;

	restrict_b(w, 1, "c");
	check_refused(w, NULL, REFUSED_KEY_NAMES);
}

static void
name_is_not_allowed_without_the_key(void **state)
{
	struct world *w = *state;
	struct outcome o;

	restrict_b(w, 0, "a");
	world_write(w, &o, "b", 17);
	assert_int_equal(o.view.code, RWP_E_ADDRESS);
	assert_int_equal(refused(w, REFUSED_ADDRESS), 1);
}

/* ---- one side only, or another key ---- */

static void
only_the_writer_has_one(void **state)
{
	struct world *w = *state;

	reopen(w, 1, 0, NULL);
	check_refused(w, NULL, REFUSED_KEY_UNKNOWN);
	assert_non_null(strstr(logged, "its key is that of no [peer]"));
}

static void
only_the_target_has_one(void **state)
{
	struct world *w = *state;

	reopen(w, 0, 1, "[region vault]\nrequire-key = yes\n");
	check_refused(w, "vault", REFUSED_KEY_MISSING);
	assert_non_null(strstr(logged, "[region vault] requires a key, and \"a\" has none"));
	check_arrives(w, 17); /* into what requires none */
	assert_int_equal(keyed_connections(w), 0);
	assert_false(region_is_keyed(w));
}

static void
they_have_different_ones(void **state)
{
	struct world *w = *state;

	reopen(w, 2, 1, NULL);
	check_refused(w, NULL, REFUSED_KEY_UNKNOWN);
}

static void
writer_has_another_name(void **state)
{
	struct world *w = *state;
	char more[128];

	snprintf(more, sizeof(more), "[peer z]\naddress = 127.0.0.1\nkey = %s/1\n", directory);
	reopen(w, 1, 0, more);
	check_refused(w, NULL, REFUSED_KEY_NAMES);
	assert_non_null(strstr(logged, "it calls itself \"a\", which is no [peer]"));
}

static void
target_has_another_name(void **state)
{
	struct world *w = *state;

	world_name_b = "other";
	reopen(w, 1, 1, NULL);
	check_refused(w, NULL, REFUSED_KEY_NAMES);
	assert_non_null(strstr(logged, "\"a\" means to write to \"b\", and this is \"other\""));
}

/* Either passes for the other, but for nobody else. */
static void
shared_key(void **state)
{
	struct world *w = *state;
	char more[256];

	snprintf(more, sizeof(more), "[peer a2]\naddress = 10.0.0.2\nkey = %s/1\n", directory);
	reopen(w, 1, 1, more);
	check_arrives(w, 17);
	assert_int_equal(keyed_connections(w), 2); /* as a, which is not the first with it */
}

/* ---- somebody on the network ---- */

/* One thing that he alters: the nth landing that has this form, or a byte of private data. */
static struct attack {
	enum fabric_event_type event; /* private data, if not 0 */
	size_t at;                    /* the byte there; of landed bytes as well */
	bool by_target;
	size_t offset, len; /* len 0: any */
	unsigned nth;       /* counted from 1; of blobs: seq */
	unsigned seen;
	uint8_t bits;
} attack;

static void
alter_private(enum fabric_event_type type, uint8_t *data, size_t len)
{
	if (type == attack.event && attack.at < len && attack.seen++ == 0)
		data[attack.at] ^= attack.bits;
}

static void
alter_landed(bool by_target, size_t offset, uint8_t *bytes, size_t len)
{
	if (by_target == attack.by_target && offset == attack.offset &&
	    (attack.len == 0 || len == attack.len) && ++attack.seen == attack.nth)
		bytes[attack.at] ^= attack.bits;
}

static void
attack_private(enum fabric_event_type event, size_t at, uint8_t bits)
{
	attack = (struct attack){.event = event, .at = at, .bits = bits};
	fake.private_data = alter_private;
}

static void
attack_landed(bool by_target, size_t offset, size_t at, unsigned nth)
{
	attack = (struct attack){
	    .by_target = by_target, .offset = offset, .at = at, .nth = nth, .bits = 1};
	fake.landed = alter_landed;
}

static void
request_is_altered(void **state)
{
	static const size_t AT[] = {12, 16, 32, 47, 48, 55}; /* rkey, address, nonce, gate */
	struct world *w = *state;

	for (unsigned i = 0; i < sizeof(AT) / sizeof(AT[0]); i++) {
		come_from(0x0a000001 + (i << 8)); /* not to be slowed */
		attack_private(FABRIC_REQUEST, AT[i], 0x40);
		check_refused(w, NULL, REFUSED_KEY_WRONG);
		assert_non_null(strstr(logged, "refused: it speaks of the key of [peer a]"));
	}
	attack_private(FABRIC_REQUEST, 24, 1); /* key_id */
	check_refused(w, NULL, REFUSED_KEY_UNKNOWN);
}

/* The key's flag taken off the request: b would do without, a does not. */
static void
downgrade(void **state)
{
	attack_private(FABRIC_REQUEST, 8, RWP_KEYED);
	check_distrusted(*state);
	/* ... and to take it off the reply as well cannot help. */
	attack_private(FABRIC_ESTABLISHED, 8, RWP_KEYED);
	check_distrusted(*state);
}

static void
reply_is_altered(void **state)
{
	struct world *w = *state;

	attack_private(FABRIC_ESTABLISHED, 40, 1); /* nonce */
	check_refused(w, NULL, REFUSED_KEY_WRONG);
	assert_non_null(strstr(logged, "its HELLO does not prove"));
	attack_private(FABRIC_ESTABLISHED, 28, 1); /* generation */
	check_refused(w, NULL, REFUSED_KEY_WRONG);
}

#define TAIL_BLOBS    (128 + 64 * 64)
#define MAILBOX_BLOBS 1152

/* Checksums are put right, as an attacker would. */
static void
alter_blob(bool by_target, size_t offset, uint8_t *bytes, size_t len)
{
	uint8_t *blobs = bytes - offset + (by_target ? MAILBOX_BLOBS : TAIL_BLOBS), *blob;
	struct rwp_record r;
	uint32_t crc;

	if (by_target != attack.by_target || len != 64 || offset != attack.offset ||
	    attack.seen++ > 0)
		return;
	assert_int_equal(rwp_record_load(bytes, attack.nth, &r), 0);
	blob = blobs + r.blob_off;
	blob[attack.at] ^= attack.bits;
	if (r.type == RWP_ONE) { /* its CHECK is last; its record is good as it is */
		crc = crc32c(0, blob, r.blob_len - 8);
		memcpy(blob + r.blob_len - 4, &crc, sizeof(crc));
	} else {
		r.data_crc = crc32c(0, blob, r.blob_len);
		rwp_record_encode(&r, bytes);
	}
}

/* The blob of record seq, which is not behind the end of the ring. */
static void
attack_blob(bool by_target, unsigned seq, size_t at)
{
	attack = (struct attack){.by_target = by_target,
	    .offset = 128 + 64 * (seq - 1),
	    .at = at,
	    .nth = seq,
	    .bits = 1};
	fake.landed = alter_blob;
}

static void
hello_is_altered(void **state)
{
	struct world *w = *state;

	attack_blob(false, 1, 20); /* a is called ` */
	check_refused(w, NULL, REFUSED_KEY_WRONG);
}

static void
grant_is_altered(void **state)
{
	struct world *w = *state;

	attack_blob(true, 1, 36); /* the region's key */
	check_distrusted(w);
}

static void
check_breaks(struct world *w, uint64_t size)
{
	struct outcome o;

	world_write(w, &o, "b", size);
	assert_int_equal(o.view.state, TRANSFER_FAILED);
	assert_int_equal(w->arrivals, 0);
	assert_true(attack.seen > 0);
}

/* Its checksum is right, and its record untouched: the record's tag speaks of the blob. */
static void
name_is_altered(void **state)
{
	attack_blob(false, 2, 20);
	check_breaks(*state, 17);
}

static void
record_is_altered(void **state)
{
	struct world *w = *state;

	attack_landed(false, 128 + 64, 24, 1); /* ONE: length */
	check_breaks(w, 17);
}

static void
result_is_altered(void **state)
{
	struct outcome o;

	attack_landed(true, 128 + 64, 40, 1); /* RESULT: tag */
	world_write(*state, &o, "b", 17);
	assert_int_equal(o.view.state, TRANSFER_FAILED);
	assert_string_equal(o.view.text, "broke the protocol: a record or its blob is damaged");
}

/* A keyless tag that is right is wrong here: nobody can put in a record of his own. */
static void
forge_result(bool by_target, size_t offset, uint8_t *bytes, size_t len)
{
	struct rwp_record r;

	if (!by_target || offset != 128 + 64 || len != 64)
		return;
	attack.seen++;
	assert_int_equal(rwp_record_load(bytes, 2, &r), 0);
	rwp_record_encode(&r, bytes);
}

static void
result_is_forged(void **state)
{
	struct outcome o;

	attack = (struct attack){0};
	fake.landed = forge_result;
	world_write(*state, &o, "b", 17);
	assert_int_equal(o.view.state, TRANSFER_FAILED);
	assert_int_equal(attack.seen, 1);
}

static unsigned forged_lines;

/* The target is dead, and somebody beats in its place, with a tag that anybody can make. */
static void
forge_line(bool by_target, size_t offset, uint8_t *bytes, size_t len)
{
	struct rwp_line l;

	if (!by_target || offset != 0 || len != 64)
		return;
	memcpy(&l, bytes, sizeof(l)); /* this machine's order is the wire's */
	rwp_line_encode(&l, bytes);
	forged_lines++;
}

static void
beats_are_forged(void **state)
{
	struct world *w = *state;

	reopen(w, 1, 1, "[limits]\nbeat = 50ms\ndead = 500ms\n");
	check_arrives(w, 17);
	assert_int_equal(keyed_connections(w), 2);
	forged_lines = 0;
	fake.landed = forge_line;
	WORLD_UNTIL(w, keyed_connections(w) == 0);
	assert_true(forged_lines > 2);
}

/* ---- strangers ---- */

static double
seconds_of_refusal(struct world *w)
{
	uint64_t before = loop_now();

	check_refused(w, NULL, REFUSED_KEY_UNKNOWN);
	return (double)(loop_now() - before) / NSEC_PER_SEC;
}

static void
refusals_are_slowed(void **state)
{
	struct world *w = *state;

	reopen(w, 2, 1, NULL);
	for (int i = 0; i < 3; i++)
		check_refused(w, NULL, REFUSED_KEY_UNKNOWN);
	logged[0] = '\0';
	assert_true(seconds_of_refusal(w) >= 0.1);
	assert_true(seconds_of_refusal(w) >= 0.2);
	assert_string_equal(logged, ""); /* not more than once a minute */
	come_from(0x0a000001);
	check_refused(w, NULL, REFUSED_KEY_UNKNOWN);
	assert_non_null(strstr(logged, "10.0.0.1: refused: its key"));
}

/* The writer does not wait for the answer; and a stopping target does not let it wait. */
static void
held_refusals_end(void **state)
{
	struct world *w = *state;
	struct outcome o;
	int fd = world_file(10);

	world_close(w);
	configure(2, 1, NULL);
	strcat(lines_a, "[limits]\nsetup = 1s\n");
	open_world(w);
	for (int i = 0; i < 7; i++) /* the next waits for 1.6 s */
		check_refused(w, NULL, REFUSED_KEY_UNKNOWN);
	assert_int_equal(world_write_fd(w, &o, "b", "file", fd), 0);
	world_wait(w, &o.done, "the writer's deadline", 1.5);
	assert_int_equal(o.view.state, TRANSFER_FAILED);
	assert_int_equal(world_write_fd(w, &o, "b", "file", fd), 0);
	world_turns(w, 0.05);
	core_stop(w->b);
	world_wait(w, &o.done, "the refusal of a stopping target", 0.9);
	assert_int_equal(o.view.code, RWP_E_KEY);
	close(fd);
}

/* ---- the Nth of everything fails, until nothing does ---- */

static bool
scenario(void)
{
	struct world w;
	struct outcome o = {0};
	int fd = world_file(2000);
	uint64_t until;

	configure(1, 1, "[limits]\nsetup = 200ms\nhello = 200ms\nstall = 200ms\n");
	if (world_open(&w) == 0 && world_write_fd(&w, &o, "b", "file", fd) == 0) {
		until = loop_now() + 2 * NSEC_PER_SEC;
		while (!o.done && loop_now() < until)
			loop_turn(w.loop, NSEC_PER_MSEC);
		assert_true(o.done);
	}
	close(fd);
	world_close(&w);
	return o.view.state == TRANSFER_ARRIVED;
}

static void
nth_failure(void **state)
{
	(void)state;
	assert_true(world_each_allocation_fails(scenario) > 10);
	assert_true(world_each_operation_fails(scenario, false) > 5);
	assert_true(scenario());
}

#define KEYED(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    KEYED(both_prove_it),
	    KEYED(beats_are_heard),
	    KEYED(key_opens_a_region),
	    KEYED(allowed_by_name),
	    KEYED(allowed_by_address_without_the_key),
	    KEYED(key_that_is_not_allowed_here),
	    KEYED(name_is_not_allowed_without_the_key),
	    KEYED(only_the_writer_has_one),
	    KEYED(only_the_target_has_one),
	    KEYED(they_have_different_ones),
	    KEYED(writer_has_another_name),
	    KEYED(target_has_another_name),
	    KEYED(shared_key),
	    KEYED(request_is_altered),
	    KEYED(downgrade),
	    KEYED(reply_is_altered),
	    KEYED(hello_is_altered),
	    KEYED(grant_is_altered),
	    KEYED(name_is_altered),
	    KEYED(record_is_altered),
	    KEYED(result_is_altered),
	    KEYED(result_is_forged),
	    KEYED(beats_are_forged),
	    KEYED(refusals_are_slowed),
	    KEYED(held_refusals_end),
	    cmocka_unit_test(nth_failure),
	};

	return cmocka_run_group_tests(tests, make_keys, remove_keys);
}
