/* test_conf.c -- every mistake a configuration can hold, and what comes of a good one
 *
 * Linked with --wrap: the host's name and the user are the test's, and the Nth allocation can fail.
 */

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
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/text.h"
#include "conf/conf.h"
#include "conf/option.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const char *host_name = "testhost";
static uid_t user = 1000;
static int allocations = -1; /* how many more succeed; -1: all */

int __wrap_gethostname(char *buf, size_t size);
uid_t __wrap_geteuid(void);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
char *__wrap_strdup(const char *s);
void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
char *__real_strdup(const char *s);

int
__wrap_gethostname(char *buf, size_t size)
{
	return snprintf(buf, size, "%s", host_name) < (int)size ? 0 : -1;
}

uid_t
__wrap_geteuid(void)
{
	return user;
}

static bool
may_allocate(void)
{
	if (allocations < 0)
		return true;
	return allocations > 0 && allocations-- > 0;
}

void *
__wrap_malloc(size_t size)
{
	return may_allocate() ? __real_malloc(size) : NULL;
}

void *
__wrap_calloc(size_t n, size_t size)
{
	return may_allocate() ? __real_calloc(n, size) : NULL;
}

char *
__wrap_strdup(const char *s)
{
	return may_allocate() ? __real_strdup(s) : NULL;
}

/* ---- helpers ---- */

/* What conf_load() printed; the tests run in a directory of their own. */
static char *printed;
static size_t printed_len;

static void
write_file(const char *path, const void *bytes, size_t len)
{
	FILE *out = fopen(path, "w");

	assert_non_null(out);
	assert_int_equal(fwrite(bytes, 1, len, out), len);
	assert_int_equal(fclose(out), 0);
}

static int
load(const char *path, struct conf **ret)
{
	FILE *errors;
	int r;

	free(printed);
	printed = NULL;
	errors = open_memstream(&printed, &printed_len);
	assert_non_null(errors);
	r = conf_load(path, errors, ret);
	fclose(errors);
	return r;
}

static int
load_text(const char *text, struct conf **ret)
{
	write_file("x.conf", text, strlen(text));
	return load("x.conf", ret);
}

static struct conf *
load_good(const char *text)
{
	struct conf *conf = NULL;
	int r = load_text(text, &conf);

	if (r != 0 || printed_len > 0)
		fail_msg("%d: %s", r, printed);
	return conf;
}

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

static int
enter(void **state)
{
	static char directory[] = "/tmp/test_conf.XXXXXX";

	*state = directory;
	setenv("XDG_RUNTIME_DIR", "/run/user/1000", 1);
	return mkdtemp(directory) != NULL && chdir(directory) == 0 && mkdir("conf.d", 0700) == 0
		   ? 0
		   : -1;
}

static int
leave(void **state)
{
	free(printed);
	unlink("x.conf");
	return rmdir("conf.d") == 0 && rmdir(*state) == 0 ? 0 : -1;
}

/* ---- what is wrong ---- */

#define NAMES "takes 1 to 64 letters, digits, '.', '_' and '-', the first neither '.' nor '-'"
#define SECTIONS \
	"there are [rwriter], [listen NAME], [peer NAME], [region NAME], [limits], [arrival]\n"
#define ALLOWS                                                                                \
	"takes host, any, an address, a network as 10.0.0.0/8, or the name of a [peer]; for " \
	"example: allow = host\n"
#define PATHS                                                                                      \
	"takes an absolute path of at most 107 bytes; %t/ is the runtime directory; for example: " \
	"control = %t/rwriter/io.rwriter\n"
#define ADDRESSES "takes an address of this machine, or any; for example: address = any\n"
#define TEN       "0123456789"
#define HUNDRED   TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN

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
	    {"[region a]\nspool = /x", "x.conf:2: [region a] \"spool\" is no key of this section; "
				       "there are size, max-size, linger, keep\n"},
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
	    "pinned-memory, beat, "
	    "dead, setup, idle, stall, stop, retry\n"
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

/* ---- what is right ---- */

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
	assert_non_null(strstr(text, "\nallow = host\nallow = 10.0.0.1\nallow = 10.0.0.2\n["));
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
	for (const struct section *s = OPTION_SECTIONS; s->word != NULL; s++)
		for (const struct option *o = s->options; o->key != NULL; o++) {
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
	int n, r = -ENOMEM;

	(void)state;
	write_file("conf.d/1.conf", "[region x]\n", 11);
	for (n = 0; r == -ENOMEM; n++) {
		assert_null(conf);
		write_file("x.conf", everything, strlen(everything));
		allocations = n;
		r = load("x.conf", &conf);
		allocations = -1;
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
	    cmocka_unit_test(lines_that_are_wrong),
	    cmocka_unit_test(headers_that_are_wrong),
	    cmocka_unit_test(values_that_are_wrong),
	    cmocka_unit_test(errors_point_at_lines),
	    cmocka_unit_test(all_mistakes_are_told),
	    cmocka_unit_test(host_name_that_is_no_name),
	    cmocka_unit_test(files_that_cannot_be_read),
	    cmocka_unit_test(defaults),
	    cmocka_unit_test(control_socket_of_root_services_and_users),
	    cmocka_unit_test(everything_is_taken),
	    cmocka_unit_test(printing_reads_back),
	    cmocka_unit_test(lines_of_190_bytes_are_taken),
	    cmocka_unit_test(directory_is_read_in_order),
	    cmocka_unit_test(table_is_sound),
	    cmocka_unit_test(every_allocation_may_fail),
	};

	return cmocka_run_group_tests(tests, enter, leave);
}
