/* test_conf_errors.c -- every mistake a configuration can hold, by its exact message */

#include "config.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "unit/conf_file.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define NAMES "takes 1 to 64 letters, digits, '.', '_' and '-', the first neither '.' nor '-'"
#define SECTIONS                                                                         \
	"there are [rwriter], [listen NAME], [peer NAME], [group NAME], [region NAME], " \
	"[limits], [arrival], [iwarp]\n"
#define ALLOWS                                                                                \
	"takes host, any, an address, a network as 10.0.0.0/8, or the name of a [peer]; for " \
	"example: allow = host\n"
#define PATHS                                                                                      \
	"takes an absolute path of at most 107 bytes; %t/ is the runtime directory; for example: " \
	"control = %t/rwriter/io.rwriter\n"
#define ADDRESSES "takes an address of this machine, or any; for example: address = any\n"

static void
check_mistakes(const char *text, size_t len, const char *expected)
{
	struct conf untouched, *conf = &untouched;
	int r;

	write_file("x.conf", text, len);
	r = load("x.conf", &conf);
	if (r != -EINVAL || strcmp(printed, expected) != 0)
		fail_msg("for:\n%s\nexpected:\n%s\ngot %d:\n%s", text, expected, r, printed);
	assert_ptr_equal(conf, &untouched);
}

static void
lines_that_are_wrong(void **state)
{
	static const struct {
		const char *text, *errors;
	} cases[] = {
	    {"name = a", "x.conf:1: \"name = a\" stands before any section; " SECTIONS},
	    {"[rwriter]\n\nname a",
		"x.conf:3: [rwriter] \"name a\" has no '='; write key = value\n"},
	    {"[rwriter]\nname: a",
		"x.conf:2: [rwriter] \"name: a\" has no '='; write key = value\n"},
	    {"[rwriter]\nname ; = a",
		"x.conf:2: [rwriter] \"name ; = a\" has no '='; write key = value\n"},
	    {"[rwriter]\nname = a\n b",
		"x.conf:3: [rwriter] \"b\" has no '='; write key = value\n"},
	    {"[rwriter]\n\x1b[2J", "x.conf:2: [rwriter] \"?[2J\" has no '='; write key = value\n"},
	    {"[rwriter]\n= a", "x.conf:2: [rwriter] \"\" is no key of this section; there are "
			       "name, control, log-level\n"},
	    {"[rwriter]\nnmae = a", "x.conf:2: [rwriter] \"nmae\" is no key of this section; there "
				    "are name, control, log-level\n"},
	    {"[rwriter]\nName = a", "x.conf:2: [rwriter] \"Name\" is no key of this section; there "
				    "are name, control, log-level\n"},
	    {"[region a]\nspool = /x",
		"x.conf:2: [region a] \"spool\" is no key of this section; "
		"there are sink, directory, mode, owner, conflict, free, keep-partial, size, "
		"max-size, buffers, linger, keep, require-key, program, argument\n"},
	    {"[rwriter]\nname =", "x.conf:2: [rwriter] name: \"\" is empty; " NAMES
				  ", or %H, the name of the host; for example: name = %H\n"},
	    {"[rwriter]\nname = ; a", "x.conf:2: [rwriter] name: \"\" is empty; " NAMES
				      ", or %H, the name of the host; for example: name = %H\n"},
	    {"[rwriter]\nname = a\n[limits]\n[rwriter]\nname = a",
		"x.conf:5: [rwriter] name: is set already, at x.conf:2; keep one of the two\n"},
	    {"[rwriter]\nname=" HUNDRED TEN TEN TEN TEN TEN TEN TEN TEN "012345",
		"x.conf:2: [rwriter] the line has 191 bytes; at most 190; shorten it\n"},
	    {"#" HUNDRED HUNDRED "\n[rwriter]\nname = a",
		"x.conf:1: the line has 201 bytes; at most 190; shorten it\n"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		check_mistakes(cases[i].text, strlen(cases[i].text), cases[i].errors);
	check_mistakes("[rwriter]\nname = a\0b\n", 21,
	    "x.conf:2: [rwriter] the line holds a NUL byte; this is a text file; remove it\n");
}

static void
headers_that_are_wrong(void **state)
{
	static const struct {
		const char *text, *errors;
	} cases[] = {
	    {"[listn a]\nfoo\nbar = 1", "x.conf:1: [listn] is no section; " SECTIONS},
	    {"[]", "x.conf:1: [] is no section; " SECTIONS},
	    {"[ ]", "x.conf:1: [] is no section; " SECTIONS},
	    {"[RWRITER]", "x.conf:1: [RWRITER] is no section; " SECTIONS},
	    {"[rwriter a]", "x.conf:1: [rwriter] takes no name; write [rwriter]\n"},
	    {"[peer]", "x.conf:1: [peer] takes one name; write [peer NAME]\n"},
	    {"[peer a b]", "x.conf:1: [peer] takes one name; write [peer NAME]\n"},
	    {"[peer a/b]", "x.conf:1: \"a/b\" is no name for [peer NAME]; " NAMES "\n"},
	    {"[peer -a]", "x.conf:1: \"-a\" is no name for [peer NAME]; " NAMES "\n"},
	    {"[peer " TEN TEN TEN TEN TEN TEN "01234]",
		"x.conf:1: \"" TEN TEN TEN TEN TEN TEN "01234\" is no name for [peer NAME]; " NAMES
		"\n"},
	    {"[rwriter\nname = a", "x.conf:1: \"[rwriter\" does not end with ']'; write [section] "
				   "or [section NAME]\n"},
	    {"[rwriter] name = a", "x.conf:1: \"[rwriter] name = a\" does not end with ']'; write "
				   "[section] or [section NAME]\n"},
	    {"[peer a]", "x.conf:1: [peer a] address: is missing; takes a host name or an address, "
			 "without a port\n"},
	    {"[group g]", "x.conf:1: [group g] peer: is missing; takes the name of a [peer]\n"},
	    {"[group all]\npeer = a\n[peer a]\naddress = a",
		"x.conf:1: [group all] @all is every peer already; choose another name for the "
		"group\n"},
	    {"[peer any]\naddress = b", "x.conf:1: [peer any] \"any\" means something else in "
					"allow; choose another name\n"},
	    {"[peer host]\naddress = b", "x.conf:1: [peer host] \"host\" means something else in "
					 "allow; choose another name\n"},
	    {"[peer 10.0.0.1]\naddress = b", "x.conf:1: [peer 10.0.0.1] \"10.0.0.1\" means "
					     "something else in allow; choose another name\n"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		check_mistakes(cases[i].text, strlen(cases[i].text), cases[i].errors);
}

static void
values_that_are_wrong(void **state)
{
	static const struct {
		const char *section, *line, *error;
	} cases[] = {
	    {"rwriter", "name = a b",
		"name: \"a b\" is not understood; " NAMES
		", or %H, the name of the host; for example: name = %H\n"},
	    {"rwriter", "control = io", "control: \"io\" is not understood; " PATHS},
	    {"rwriter", "control = %t", "control: \"%t\" is not understood; " PATHS},
	    {"rwriter", "control = /a\tb", "control: \"/a?b\" is not understood; " PATHS},
	    {"rwriter", "control = /" HUNDRED "1234567",
		"control: \"/" HUNDRED "1234567\" is out of range; " PATHS},
	    {"rwriter", "control = %t/" HUNDRED,
		"control: \"%t/" HUNDRED "\" stands for something that does not fit; " PATHS},
	    {"rwriter", "log-level = loud",
		"log-level: \"loud\" is not understood; takes error, warning, info or debug; for "
		"example: log-level = info\n"},
	    {"listen a", "address = b", "address: \"b\" is not understood; " ADDRESSES},
	    {"listen a", "address = 10.0.0.1:7471",
		"address: \"10.0.0.1:7471\" is not understood; " ADDRESSES},
	    {"listen a", "address = fe80::1%no-such-if",
		"address: \"fe80::1%no-such-if\" names an interface that this machine does not "
		"have; " ADDRESSES},
	    {"listen a", "port = 0",
		"port: \"0\" is out of range; takes a number from 1 to 65535; for example: port = "
		"7471\n"},
	    {"listen a", "port = 65536",
		"port: \"65536\" is out of range; takes a number from 1 to 65535; for example: "
		"port = 7471\n"},
	    {"listen a", "port = http",
		"port: \"http\" is not understood; takes a number from 1 to 65535; for example: "
		"port = 7471\n"},
	    {"listen a", "fabric = tcp",
		"fabric: \"tcp\" is not understood; takes auto, verbs or iwarp; for example: "
		"fabric = auto\n"},
	    {"listen a", "device = /dev/x",
		"device: \"/dev/x\" is not understood; takes the name of an RDMA device, or any; "
		"for example: device = any\n"},
	    {"listen a", "allow = 10.0.0.0/33", "allow: \"10.0.0.0/33\" is out of range; " ALLOWS},
	    {"listen a", "allow = ::/129", "allow: \"::/129\" is out of range; " ALLOWS},
	    {"listen a", "allow = 10.0.0.0/", "allow: \"10.0.0.0/\" is not understood; " ALLOWS},
	    {"listen a", "allow = b/8", "allow: \"b/8\" is not understood; " ALLOWS},
	    {"listen a", "allow = " HUNDRED "/8",
		"allow: \"" HUNDRED "/8\" is not understood; " ALLOWS},
	    {"listen a", "allow = fe80::1%no-such-if",
		"allow: \"fe80::1%no-such-if\" names an interface that this machine does not "
		"have; " ALLOWS},
	    {"listen a", "allow = b",
		"allow: \"b\" is neither an address nor a [peer]; correct it or add [peer b]\n"},
	    {"group g", "peer = b", "peer: \"b\" is no [peer]; correct it or add [peer b]\n"},
	    {"group g", "peer = @all",
		"peer: \"@all\" is not understood; takes the name of a [peer]\n"},
	    {"limits", "width = 129",
		"width: \"129\" is out of range; takes a number from 1 to 128; for example: width "
		"= 8\n"},
	    {"region a", "size = 4m",
		"size: \"4m\" is not understood; takes a size from 4K to 1T; for example: size = "
		"4M\n"},
	    {"region a", "size = 4095",
		"size: \"4095\" is out of range; takes a size from 4K to 1T; for example: size = "
		"4M\n"},
	    {"region a", "size = 4M # four",
		"size: \"4M # four\" is not understood; takes a size from 4K to 1T; for example: "
		"size = 4M\n"},
	    {"region a", "max-size = 2T",
		"max-size: \"2T\" is out of range; takes a size from 4K to 1T; for example: "
		"max-size = 1G\n"},
	    {"region a", "linger = 366d",
		"linger: \"366d\" is out of range; takes a time from 0 to 365d; for example: "
		"linger = 1h\n"},
	    {"region a", "keep = -1",
		"keep: \"-1\" is not understood; takes a number from 0 to 65536; for example: keep "
		"= 16\n"},
	    {"limits", "beat = 9ms",
		"beat: \"9ms\" is out of range; takes a time from 10ms to 1h; for example: beat = "
		"1s\n"},
	    {"limits", "connections = 99999999999999999999",
		"connections: \"99999999999999999999\" is out of range; takes a number from 1 to "
		"65536; for example: connections = 256\n"},

	    {"region a", "size = 2M\nmax-size = 1M",
		"size: 2M is more than max-size = 1M; raise max-size or lower size\n"},
	    {"region a", "max-size = 1M",
		"size: 4M is more than max-size = 1M; raise max-size or lower size\n"},
	    {"region a", "max-size = 2G",
		"max-size: 2G is more than pinned-memory = 1G; raise pinned-memory or lower "
		"max-size\n"},
	    {"region a", "buffers = 2",
		"max-size: twice 1G is more than pinned-memory = 1G; raise pinned-memory or lower "
		"max-size\n"},
	    {"region a", "max-size = 600M\nbuffers = 2",
		"max-size: twice 600M is more than pinned-memory = 1G; raise pinned-memory or "
		"lower max-size\n"},
	    {"region a", "buffers = 2\nsink = discard",
		"buffers: is for sink = memory, where bytes stay; remove one of both\n"},
	    {"limits", "dead = 1s",
		"beat: twice 1s is more than dead = 1s; raise dead or lower beat\n"},
	    {"limits", "beat = 3s",
		"beat: twice 3s is more than dead = 5s; raise dead or lower beat\n"},
	    {"arrival", "interval-min = 1s",
		"interval-min: 1s is more than interval-max = 20ms; raise interval-max or lower "
		"interval-min\n"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		char text[256], expected[512];

		snprintf(text, sizeof(text), "[%s]\n%s\n", cases[i].section, cases[i].line);
		snprintf(expected, sizeof(expected), "x.conf:2: [%s] %s", cases[i].section,
		    cases[i].error);
		check_mistakes(text, strlen(text), expected);
	}
}

/* An error points at the line to change, also when another line or a default is half of it. */
static void
errors_point_at_lines(void **state)
{
	static const char any_first[] = "[listen a]\naddress = any\naddress = 10.0.0.1\n";
	static const char any_last[] = "[listen a]\naddress = 10.0.0.1\naddress = any\n";
	static const char pinned[] =
	    "[region b]\nsize = 4K\nmax-size = 4K\n[limits]\npinned-memory = 512M\n";
	static const char third[] =
	    "[listen a]\nallow = host\nallow = 1.2.3.4\nallow = b\nallow = c\n"
	    "[peer c]\naddress = c\n";

	(void)state;
	check_mistakes(any_first, strlen(any_first),
	    "x.conf:3: [listen a] address: \"10.0.0.1\" does not go together with "
	    "another; " ADDRESSES);
	check_mistakes(any_last, strlen(any_last),
	    "x.conf:3: [listen a] address: \"any\" does not go together with another; " ADDRESSES);
	check_mistakes(pinned, strlen(pinned),
	    "x.conf:5: [region default] max-size: 1G is more than pinned-memory = 512M; "
	    "raise pinned-memory or lower max-size\n");
	check_mistakes(third, strlen(third),
	    "x.conf:4: [listen a] allow: \"b\" is neither an address nor a [peer]; "
	    "correct it or add [peer b]\n");
}

static void
all_mistakes_are_told(void **state)
{
	static const char text[] =
	    "[listen]\nport = 1\n[limits]\nbeat = 10s\ndead = x\nfoo = 1\n[peer b]\n";

	(void)state;
	check_mistakes(text, strlen(text),
	    "x.conf:1: [listen] takes one name; write [listen NAME]\n"
	    "x.conf:5: [limits] dead: \"x\" is not understood; takes a time from 20ms to 1d; for "
	    "example: dead = 5s\n"
	    "x.conf:6: [limits] \"foo\" is no key of this section; there are connections, "
	    "unproven, pinned-memory, beat, "
	    "dead, hello, setup, idle, stall, width, reconnect, stop, hooks, hook-time, retry\n"
	    "x.conf:7: [peer b] address: is missing; takes a host name or an address, without a "
	    "port\n");
}

static void
host_name_that_is_no_name(void **state)
{
	(void)state;
	host_name = "(none)";
	check_mistakes("", 0,
	    "x.conf: [rwriter] name: \"%H\" stands for something that does not fit; " NAMES
	    ", or %H, the name of the host; for example: name = %H\n");
	conf_free(load_good("[rwriter]\nname = a\n"));
	host_name = "testhost";
}

static void
files_that_cannot_be_read(void **state)
{
	struct conf untouched, *conf = &untouched;

	(void)state;
	assert_int_equal(load("none.conf", &conf), -ENOENT);
	assert_string_equal(printed, "none.conf: cannot be read: No such file or directory\n");
	assert_int_equal(load("conf.d", &conf), -EISDIR);
	assert_string_equal(printed, "conf.d: cannot be read: Is a directory\n");
	assert_int_equal(symlink("gone", "conf.d/1.conf"), 0);
	assert_int_equal(load_text("[limits]\nfoo = 1\n", &conf), -ENOENT);
	assert_non_null(
	    strstr(printed, "conf.d/1.conf: cannot be read: No such file or directory\n"));
	assert_int_equal(unlink("conf.d/1.conf"), 0);
	assert_ptr_equal(conf, &untouched);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(lines_that_are_wrong),
	    cmocka_unit_test(headers_that_are_wrong),
	    cmocka_unit_test(values_that_are_wrong),
	    cmocka_unit_test(errors_point_at_lines),
	    cmocka_unit_test(all_mistakes_are_told),
	    cmocka_unit_test(host_name_that_is_no_name),
	    cmocka_unit_test(files_that_cannot_be_read),
	};

	return cmocka_run_group_tests(tests, conf_file_enter, conf_file_leave);
}
