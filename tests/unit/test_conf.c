/* test_conf.c -- what comes of a good configuration, and of one that memory fails */

#include "config.h"

#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/text.h"
#include "conf/conf.h"
#include "conf/option.h"
#include "unit/conf_file.h"
#include "unit/scarce.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Free the result. */
static char *
print(const struct conf *conf)
{
	char *text;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	assert_non_null(out);
	conf_print(conf, out);
	fclose(out);
	return text;
}

#define MIB (UINT64_C(1) << 20)
#define MS  UINT64_C(1000000)
#define S   (1000 * MS)

static void
defaults(void **state)
{
	struct conf *conf = load_good("");
	const struct conf_listen *listen = conf_find_listen(conf, "default");
	const struct conf_region *region = conf_find_region(conf, "default");

	(void)state;
	assert_string_equal(conf->name, "testhost");
	assert_string_equal(conf->control, "/run/user/1000/rwriter/io.rwriter");
	assert_int_equal(conf->log_level, LOG_LEVEL_INFO);
	assert_int_equal(conf->connections, 256);
	assert_int_equal(conf->pinned_memory, 1024 * MIB);
	assert_int_equal(conf->beat_ns, S);
	assert_int_equal(conf->dead_ns, 5 * S);
	assert_int_equal(conf->setup_ns, 10 * S);
	assert_int_equal(conf->idle_ns, 60 * S);
	assert_int_equal(conf->stall_ns, 30 * S);
	assert_int_equal(conf->reconnect_ns, 60 * S);
	assert_int_equal(conf->stop_ns, 30 * S);
	assert_int_equal(conf->retry_ns, 30 * S);
	assert_int_equal(conf->spin_ns, 200000);
	assert_int_equal(conf->interval_min_ns, 100000);
	assert_int_equal(conf->interval_max_ns, 20 * MS);
	assert_non_null(listen);
	assert_true(list_empty(&listen->addresses));
	assert_int_equal(listen->port, 7471);
	assert_int_equal(listen->fabric, CONF_FABRIC_AUTO);
	assert_string_equal(listen->device, "");
	assert_int_equal(
	    list_first(&listen->allow, struct conf_allow, node)->kind, CONF_ALLOW_HOST);
	assert_non_null(region);
	assert_int_equal(region->size, 4 * MIB);
	assert_int_equal(region->max_size, 1024 * MIB);
	assert_int_equal(region->linger_ns, 3600 * S);
	assert_int_equal(region->keep, 16);
	assert_false(region->require_key);
	assert_int_equal(conf->unproven, 64);
	assert_int_equal(conf->hello_ns, 5 * S);
	assert_true(list_empty(&conf->peers));
	conf_free(conf);
}

static void
check_control(uid_t uid, const char *runtime, const char *expected)
{
	struct conf *conf;

	user = uid;
	if (runtime != NULL)
		setenv("XDG_RUNTIME_DIR", runtime, 1);
	else
		unsetenv("XDG_RUNTIME_DIR");
	conf = load_good("");
	assert_string_equal(conf->control, expected);
	conf_free(conf);
	user = 1000;
	setenv("XDG_RUNTIME_DIR", "/run/user/1000", 1);
}

static void
control_socket_of_root_services_and_users(void **state)
{
	(void)state;
	check_control(0, "/run/user/0", RUNSTATEDIR "/rwriter/io.rwriter");
	check_control(0, NULL, RUNSTATEDIR "/rwriter/io.rwriter");
	check_control(998, NULL, RUNSTATEDIR "/rwriter/io.rwriter");
	check_control(998, "", RUNSTATEDIR "/rwriter/io.rwriter");
	check_control(1000, "/run/user/1000", "/run/user/1000/rwriter/io.rwriter");
}

static const char everything[] = "\xef\xbb\xbf[rwriter] ; with a byte order mark and a comment\r\n"
				 "; comment\n"
				 "\t# comment\n"
				 "  name   =   node-1  \r\n"
				 "\tcontrol=/run/a=b:c.sock ; comment\n"
				 "log-level = debug\n"
				 "[ listen   b ]\n"
				 "address = 10.0.0.1\n"
				 "address = fe80::1%lo\n"
				 "port = 1\n"
				 "fabric = iwarp\n"
				 "device = mlx5_0\n"
				 "allow = host\n"
				 "allow = any\n"
				 "allow = c\n"
				 "allow = 10.0.0.1\n"
				 "allow = 10.0.0.0/8\n"
				 "allow = 2001:db8::/32\n"
				 "allow = ::1\n"
				 "allow = 0.0.0.0/0\n"
				 "[peer c]\n"
				 "address = c.example.org\n"
				 "[peer d]\n"
				 "address = [fe80::2%lo]\n"
				 "port = 65535\n"
				 "fabric = verbs\n"
				 "[region " TEN TEN TEN TEN TEN TEN "0123]\n"
				 "size = 4 KiB\n"
				 "linger = 0\n"
				 "keep = 0\n"
				 "[limits]\n"
				 "beat = 10ms\n"
				 "dead = 20ms\n"
				 "idle = 90\n"
				 "[peer c] # again\n"
				 "port = 2\n"
				 "[arrival]\n"
				 "spin = 0"; /* no newline */

static void
everything_is_taken(void **state)
{
	struct conf *conf = load_good(everything);
	const struct conf_listen *listen = conf_find_listen(conf, "b");
	const struct conf_address *address =
	    list_first(&listen->addresses, struct conf_address, node);
	char buf[TEXT_ADDRESS_MAX];

	(void)state;
	assert_string_equal(conf->name, "node-1");
	assert_string_equal(conf->control, "/run/a=b:c.sock");
	assert_int_equal(conf->idle_ns, 90 * S);
	assert_int_equal(conf_find_peer(conf, "c")->port, 2);
	assert_string_equal(conf_find_peer(conf, "d")->address, "fe80::2%lo");
	assert_string_equal(
	    text_address_port(buf, (const struct sockaddr *)&address->address), "10.0.0.1:1");
	address = container_of(address->node.next, struct conf_address, node);
	assert_string_equal(
	    text_address_port(buf, (const struct sockaddr *)&address->address), "[fe80::1%lo]:1");
	assert_null(conf_find_listen(conf, "default"));
	assert_non_null(conf_find_region(conf, "default"));
	assert_null(conf_find_peer(conf, "e"));
	conf_free(conf);
}

static void
printing_reads_back(void **state)
{
	struct conf *conf = load_good(everything), *again;
	char *text = print(conf), *text_again;

	(void)state;
	again = load_good(text);
	text_again = print(again);
	assert_string_equal(text, text_again);
	assert_non_null(strstr(text, "\nallow = c\nallow = 10.0.0.1\nallow = 10.0.0.0/8\n"
				     "allow = 2001:db8::/32\nallow = ::1\nallow = 0.0.0.0/0\n"));
	assert_non_null(
	    strstr(text, "\naddress = 10.0.0.1\naddress = fe80::1%lo\nport = 1\n"
			 "fabric = iwarp\ndevice = mlx5_0\nallow = host\nallow = any\n"));
	free(text);
	free(text_again);
	conf_free(conf);
	conf_free(again);
}

static void
lines_of_190_bytes_are_taken(void **state)
{
	(void)state;
	conf_free(load_good("[rwriter]\nname=a ;" HUNDRED TEN TEN TEN TEN TEN TEN TEN TEN "01\n"));
	conf_free(load_good(
	    "#" HUNDRED TEN TEN TEN TEN TEN TEN TEN TEN "012345678\n[rwriter]\nname=a\n"));
}

static void
directory_is_read_in_order(void **state)
{
	static const char b[] = "[listen default]\nallow = 10.0.0.2\n",
			  a[] = "[listen default]\nallow = 10.0.0.1\n";
	static const char bad[] = "foo\n", twice[] = "[rwriter]\nname = b\n[region a]\nsize = 2G\n";
	struct conf *conf, *untouched = NULL;
	char *text;

	(void)state;
	write_file("conf.d/20.conf", b, strlen(b));
	write_file("conf.d/10.conf", a, strlen(a));
	write_file("conf.d/.hidden.conf", bad, strlen(bad));
	write_file("conf.d/10.conf~", bad, strlen(bad));
	write_file("conf.d/README", bad, strlen(bad));
	conf = load_good("[listen default]\nallow = host\n");
	text = print(conf);
	assert_non_null(strstr(text, "\nallow = host\nallow = 10.0.0.1\nallow = 10.0.0.2\n\n["));
	free(text);
	conf_free(conf);

	write_file("conf.d/20.conf", twice, strlen(twice));
	assert_int_equal(load_text("[rwriter]\nname = a\n", &untouched), -EINVAL);
	assert_null(untouched);
	assert_string_equal(printed,
	    "conf.d/20.conf:2: [rwriter] name: is set already, at x.conf:2; keep one of the two\n"
	    "conf.d/20.conf:4: [region a] size: 2G is more than max-size = 1G; raise max-size or "
	    "lower size\n");
	unlink("conf.d/20.conf");
	unlink("conf.d/10.conf");
	unlink("conf.d/.hidden.conf");
	unlink("conf.d/10.conf~");
	unlink("conf.d/README");
}

/* The table's texts are what conf_print() would print, and its defaults lie within its ranges. */
static void
table_is_sound(void **state)
{
	(void)state;
	for (const struct conf_section *s = OPTION_SECTIONS; s->word != NULL; s++)
		for (const struct conf_option *o = s->options; o->key != NULL; o++) {
			const char *const texts[] = {o->default_text, o->min, o->max};

			assert_ptr_equal(option_find(s, o->key), o);
			assert_true(strlen(o->help) > 0);
			assert_int_equal(o->min != NULL && o->max != NULL, o->type->read != NULL);
			for (size_t i = 0; i < COUNT(texts) && o->type->read != NULL; i++) {
				union {
					struct conf conf;
					struct conf_listen listen;
					struct conf_peer peer;
					struct conf_region region;
				} object;
				char number[VALUE_NUMBER_MAX];

				assert_int_equal(option_parse(o, texts[i], &object), 0);
				assert_string_equal(
				    o->type->write(number, option_number(o, &object)), texts[i]);
			}
		}
}

static void
every_allocation_may_fail(void **state)
{
	struct conf *conf = NULL;
	int r = -ENOMEM;
	unsigned n;

	(void)state;
	write_file("conf.d/1.conf", "[region x]\n", 11);
	for (n = 0; r == -ENOMEM; n++) {
		assert_null(conf);
		write_file("x.conf", everything, strlen(everything));
		scarce_begin(n + 1);
		r = load("x.conf", &conf);
		(void)scarce_end();
		assert_int_equal(printed_len, 0);
	}
	assert_int_equal(r, 0);
	assert_true(n > 50); /* lines, sections, list items */
	conf_free(conf);
	unlink("conf.d/1.conf");
	assert_null(conf_free(NULL));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(defaults),
	    cmocka_unit_test(control_socket_of_root_services_and_users),
	    cmocka_unit_test(everything_is_taken),
	    cmocka_unit_test(printing_reads_back),
	    cmocka_unit_test(lines_of_190_bytes_are_taken),
	    cmocka_unit_test(directory_is_read_in_order),
	    cmocka_unit_test(table_is_sound),
	    cmocka_unit_test(every_allocation_may_fail),
	};

	return cmocka_run_group_tests(tests, conf_file_enter, conf_file_leave);
}
