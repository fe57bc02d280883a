/* test_conf_key.c -- [peer NAME] key: where the file is looked for, and what is taken */

#include "config.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "unit/conf_file.h"

#define KEY_A "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=" /* 0 to 31 */
#define KEY_B "//////////////////////////////////////////8="
#define PEER  "[peer b]\naddress = b\nkey = "

static void
write_key(const char *path, const char *text, mode_t mode)
{
	write_file(path, text, strlen(text));
	assert_int_equal(chmod(path, mode), 0);
}

static void
check_key(const char *text)
{
	struct conf *conf = load_good(text);
	const struct conf_peer *peer = conf_find_peer(conf, "b");

	for (int i = 0; i < CONF_KEY_SIZE; i++)
		assert_int_equal(peer->key[i], i);
	conf_free(conf);
}

static void
keys_are_read(void **state)
{
	char text[300], directory[200];
	struct conf *conf;

	(void)state;
	write_key("b.key", KEY_A "\n", 0600);
	check_key(PEER "b.key\n");
	write_key("b.key", KEY_A, 0400); /* without a newline, and not writable */
	check_key(PEER "b.key\n");
	snprintf(text, sizeof(text), PEER "%s/b.key\n", getcwd(directory, sizeof(directory)));
	check_key(text);
	conf = load_good(PEER "none\n");
	assert_string_equal(conf_find_peer(conf, "b")->key_file, "");
	conf_free(conf);
	unlink("b.key");
}

/* Relative to the main file, wherever the line stands and whoever calls. */
static void
paths_start_at_the_main_file(void **state)
{
	static const char line[] = PEER "../x.key\n";
	struct conf *conf = NULL;

	(void)state;
	assert_int_equal(mkdir("etc", 0700), 0);
	assert_int_equal(mkdir("etc/conf.d", 0700), 0);
	write_file("etc/x.conf", "", 0);
	write_file("etc/conf.d/1.conf", line, sizeof(line) - 1);
	write_key("x.key", KEY_A "\n", 0600);
	assert_int_equal(load("etc/x.conf", &conf), 0);
	assert_int_equal(printed_len, 0);
	assert_int_equal(conf_find_peer(conf, "b")->key[31], 31);
	conf_free(conf);
	unlink("etc/conf.d/1.conf");
	unlink("etc/x.conf");
	unlink("x.key");
	rmdir("etc/conf.d");
	rmdir("etc");
}

static void
check_mistake(const char *expected)
{
	struct conf untouched, *conf = &untouched;
	char whole[300];

	snprintf(whole, sizeof(whole), "x.conf:3: [peer b] key: b.key %s\n", expected);
	assert_int_equal(load_text(PEER "b.key\n", &conf), -EINVAL);
	assert_string_equal(printed, whole);
	assert_ptr_equal(conf, &untouched);
}

#define NO_KEY "holds no key, which is 32 bytes as base64 on one line; make one with rwctl genkey"

static void
files_that_are_not_taken(void **state)
{
	static const char *const TEXTS[] = {"", "\n", "\n" KEY_A, KEY_A "\n\n", KEY_A "x",
	    KEY_A KEY_A, "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh=="};

	(void)state;
	check_mistake("cannot be opened: No such file or directory");
	for (size_t i = 0; i < sizeof(TEXTS) / sizeof(TEXTS[0]); i++) {
		write_key("b.key", TEXTS[i], 0600);
		check_mistake(NO_KEY);
	}
	write_key("b.key", KEY_A "\n", 0640);
	check_mistake("has mode 0640: others may get at the key; chmod 0600");
	write_key("b.key", KEY_A "\n", 0604);
	check_mistake("has mode 0604: others may get at the key; chmod 0600");
	unlink("b.key");
	assert_int_equal(mkdir("b.key", 0700), 0);
	check_mistake("is no regular file");
	rmdir("b.key");
	assert_int_equal(mkfifo("b.key", 0600), 0);
	check_mistake("is no regular file");
	unlink("b.key");
}

static void
files_of_others(void **state)
{
	char text[200];
	uid_t owner = getuid() == 0 ? 4242 : getuid();

	(void)state;
	write_key("b.key", KEY_A "\n", 0600);
	if (getuid() == 0)
		assert_int_equal(chown("b.key", owner, (gid_t)-1), 0);
	user = owner + 1;
	snprintf(text, sizeof(text),
	    "belongs to user %u, neither to root nor to user %u, which runs this; chown it", owner,
	    user);
	check_mistake(text);
	user = owner;
	check_key(PEER "b.key\n");
	user = 0; /* checks for the service's user */
	check_key(PEER "b.key\n");
	user = 1000;
	unlink("b.key");
}

static void
shared_keys_are_warned_of(void **state)
{
	struct conf *conf = NULL;

	(void)state;
	write_key("a.key", KEY_A "\n", 0600);
	write_key("b.key", KEY_A, 0600);
	write_key("c.key", KEY_B, 0600);
	assert_int_equal(load_text("[peer a]\naddress = a\nkey = a.key\n"
				   "[peer c]\naddress = c\nkey = c.key\n"
				   "[peer b]\naddress = b\nkey = b.key\n",
			     &conf),
	    0);
	assert_string_equal(printed,
	    "x.conf:9: [peer b] key: warning: [peer a] has the same key, so each can pass for the "
	    "other; give every peer its own\n");
	conf_free(conf);
	unlink("a.key");
	unlink("b.key");
	unlink("c.key");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(keys_are_read),
	    cmocka_unit_test(paths_start_at_the_main_file),
	    cmocka_unit_test(files_that_are_not_taken),
	    cmocka_unit_test(files_of_others),
	    cmocka_unit_test(shared_keys_are_warned_of),
	};

	return cmocka_run_group_tests(tests, conf_file_enter, conf_file_leave);
}
