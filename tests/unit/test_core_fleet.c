/* test_core_fleet.c -- the peers that a word names */

#include "config.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/limits.h"
#include "unit/world.h"

#define PEER(name) "[peer " name "]\naddress = 10.0.0.1\n"

static const char LINES[] = PEER("x") PEER("y") PEER("z") "[group rack]\npeer = y\npeer = x\n"
							  "peer = y\n[group one]\npeer = z\n";

static void
add(void *arg, const char *peer)
{
	char *names = arg;

	strcat(strcat(names, peer), " ");
}

static void
names(struct world *w, const char *word, const char *expected)
{
	char got[256] = "", error[LIMIT_TEXT] = "";

	if (core_each_named(w->a, word, add, got, error, sizeof(error)) < 0)
		fail_msg("%s: %s", word, error);
	assert_string_equal(got, expected);
}

static void
fails(struct world *w, const char *word, const char *expected)
{
	char got[256] = "", error[LIMIT_TEXT] = "";

	assert_int_equal(core_each_named(w->a, word, add, got, error, sizeof(error)), -EINVAL);
	assert_string_equal(got, "");
	assert_string_equal(error, expected);
}

static void
words(void **state)
{
	struct world *w = *state;

	world_reopen(w, LINES, NULL);
	names(w, "x", "x ");
	names(w, "x,z", "x z ");
	names(w, "z,x,z", "z x ");
	names(w, "@rack", "y x ");
	names(w, "@one,@rack,z", "z y x ");
	names(w, "@all", "b x y z ");
	names(
	    w, "host.example.org:7471,[fe80::1%lo]:1,x", "host.example.org:7471 [fe80::1%lo]:1 x ");
}

static void
wrong_words(void **state)
{
	struct world *w = *state;

	world_reopen(w, LINES, NULL);
	fails(w, "@racks", "@racks: there is no such group; there are @all, @rack, @one");
	fails(w, "x,@", "@: there is no such group; there are @all, @rack, @one");
	fails(w, "x,,y", "a peer without a name: write a,b,c with no blank between");
	fails(w, "", "a peer without a name: write a,b,c with no blank between");
	fails(w, "x,", "a peer without a name: write a,b,c with no blank between");
}

static void
too_many(void **state)
{
	static char word[LIMIT_FLEET * 8];
	struct world *w = *state;

	for (unsigned i = 0; i <= LIMIT_FLEET; i++)
		sprintf(word + strlen(word), "%sp%u", i > 0 ? "," : "", i);
	fails(w, word, "more than 1024 peers: write to some of them at a time");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {TEST(words), TEST(wrong_words), TEST(too_many)};

	return cmocka_run_group_tests_name("core_fleet", tests, NULL, NULL);
}
