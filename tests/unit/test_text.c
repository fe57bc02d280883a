/* test_text.c -- sizes, times, addresses and foreign text, to and from words */

#include "config.h"

#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/limits.h"
#include "base/text.h"

#define UNTOUCHED    UINT64_C(0xdead)
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define K   (UINT64_C(1) << 10)
#define M   (UINT64_C(1) << 20)
#define G   (UINT64_C(1) << 30)
#define T   (UINT64_C(1) << 40)
#define US  UINT64_C(1000)
#define MS  (1000 * US)
#define S   (1000 * MS)
#define DAY (86400 * S)

struct parse_case {
	const char *s;
	int result;
	uint64_t value;
};

static void
check_parser(int (*parse)(const char *, uint64_t *), const struct parse_case *c, size_t n)
{
	for (; n > 0; n--, c++) {
		uint64_t value = UNTOUCHED;
		int r = parse(c->s, &value);

		if (r != c->result || value != (r < 0 ? UNTOUCHED : c->value))
			fail_msg("\"%s\": %d, %llu", c->s, r, (unsigned long long)value);
	}
}

static void
test_parse_size(void **state)
{
	static const struct parse_case cases[] = {
	    {"0", 0, 0},
	    {"1", 0, 1},
	    {"4096", 0, 4096},
	    {"007", 0, 7},
	    {"17 B", 0, 17},
	    {"17B", 0, 17},
	    {"64K", 0, 64 * K},
	    {"64KiB", 0, 64 * K},
	    {"64M", 0, 64 * M},
	    {"64MiB", 0, 64 * M},
	    {"64 MiB", 0, 64 * M},
	    {"2G", 0, 2 * G},
	    {"1T", 0, T},
	    {"16777215T", 0, 16777215 * T},
	    {"18446744073709551615", 0, UINT64_MAX},
	    {"18446744073709551616", -ERANGE, 0},
	    {"16777216T", -ERANGE, 0},
	    {"99999999999999999999999", -ERANGE, 0},
	    {"", -EINVAL, 0},
	    {"M", -EINVAL, 0},
	    {"-1", -EINVAL, 0},
	    {"+1", -EINVAL, 0},
	    {" 1", -EINVAL, 0},
	    {"1 ", -EINVAL, 0},
	    {"1  M", -EINVAL, 0},
	    {"1M ", -EINVAL, 0},
	    {"1m", -EINVAL, 0},
	    {"1MB", -EINVAL, 0},
	    {"1.5G", -EINVAL, 0},
	    {"0x10", -EINVAL, 0},
	    {"1Mi", -EINVAL, 0},
	    {"1KM", -EINVAL, 0},
	    {"1s", -EINVAL, 0},
	};

	(void)state;
	check_parser(text_parse_size, cases, COUNT(cases));
}

static void
test_parse_time(void **state)
{
	static const struct parse_case cases[] = {
	    {"0", 0, 0},
	    {"7", 0, 7 * S},
	    {"1ns", 0, 1},
	    {"50us", 0, 50 * US},
	    {"20ms", 0, 20 * MS},
	    {"10s", 0, 10 * S},
	    {"5min", 0, 300 * S},
	    {"5 min", 0, 300 * S},
	    {"1h", 0, 3600 * S},
	    {"1d", 0, DAY},
	    {"213503d", 0, 213503 * DAY},
	    {"213504d", -ERANGE, 0},
	    {"18446744074", -ERANGE, 0},
	    {"", -EINVAL, 0},
	    {"s", -EINVAL, 0},
	    {"-1s", -EINVAL, 0},
	    {"1m", -EINVAL, 0},
	    {"1.5s", -EINVAL, 0},
	    {"1h30min", -EINVAL, 0},
	    {"1S", -EINVAL, 0},
	    {"1M", -EINVAL, 0},
	};

	(void)state;
	check_parser(text_parse_time, cases, COUNT(cases));
}

static void
test_parse_uint(void **state)
{
	uint64_t value = UNTOUCHED;

	(void)state;
	assert_int_equal(text_parse_uint("256", 255, &value), -ERANGE);
	assert_int_equal(text_parse_uint("18446744073709551616", UINT64_MAX, &value), -ERANGE);
	assert_int_equal(text_parse_uint("", 255, &value), -EINVAL);
	assert_int_equal(text_parse_uint("1K", 255, &value), -EINVAL);
	assert_int_equal(text_parse_uint("1 ", 255, &value), -EINVAL);
	assert_int_equal(text_parse_uint("-1", 255, &value), -EINVAL);
	assert_true(value == UNTOUCHED);
	assert_int_equal(text_parse_uint("255", 255, &value), 0);
	assert_true(value == 255);
	assert_int_equal(text_parse_uint("18446744073709551615", UINT64_MAX, &value), 0);
	assert_true(value == UINT64_MAX);
}

struct print_case {
	uint64_t value;
	const char *exact, *human;
};

static void
test_print_size(void **state)
{
	static const struct print_case cases[] = {
	    {0, "0", "0 B"},
	    {1, "1", "1 B"},
	    {17, "17", "17 B"},
	    {1000, "1000", "1000 B"},
	    {1023, "1023", "1023 B"},
	    {1024, "1K", "1.0 KiB"},
	    {1025, "1025", "1.0 KiB"},
	    {10188, "10188", "9.9 KiB"},
	    {10189, "10189", "10 KiB"},
	    {M - 1, "1048575", "1.0 MiB"},
	    {M, "1M", "1.0 MiB"},
	    {64 * M, "64M", "64 MiB"},
	    {640 * M, "640M", "640 MiB"},
	    {1536 * M, "1536M", "1.5 GiB"},
	    {G, "1G", "1.0 GiB"},
	    {1023 * T, "1023T", "1023 TiB"},
	    {2048 * T, "2048T", "2.0 PiB"},
	    {UINT64_MAX, "18446744073709551615", "16 EiB"},
	};
	char buf[TEXT_SIZE_MAX];

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		uint64_t back;

		assert_string_equal(text_human_size(buf, cases[i].value), cases[i].human);
		assert_string_equal(text_print_size(buf, cases[i].value), cases[i].exact);
		assert_int_equal(text_parse_size(buf, &back), 0);
		assert_true(back == cases[i].value);
	}
}

static void
test_print_time(void **state)
{
	static const struct print_case cases[] = {
	    {0, "0", "0 us"},
	    {1, "1ns", "0.001 us"},
	    {50 * US, "50us", "50 us"},
	    {900 * US, "900us", "0.9 ms"},
	    {4200 * US, "4200us", "4.2 ms"},
	    {20 * MS, "20ms", "20 ms"},
	    {99999 * US, "99999us", "100 ms"},
	    {130 * MS, "130ms", "0.13 s"},
	    {8 * S, "8s", "8 s"},
	    {8300 * MS, "8300ms", "8.3 s"},
	    {59 * S, "59s", "59 s"},
	    {60 * S, "1min", "1 min"},
	    {90 * S, "90s", "1.5 min"},
	    {240 * S, "4min", "4 min"},
	    {3600 * S, "1h", "1 h"},
	    {DAY, "1d", "1 d"},
	    {365 * DAY, "365d", "365 d"},
	    {UINT64_MAX, "18446744073709551615ns", "213504 d"},
	};
	char buf[TEXT_TIME_MAX];

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		uint64_t back;

		assert_string_equal(text_human_time(buf, cases[i].value), cases[i].human);
		assert_string_equal(text_print_time(buf, cases[i].value), cases[i].exact);
		assert_int_equal(text_parse_time(buf, &back), 0);
		assert_true(back == cases[i].value);
	}
}

static void
test_rfc3339(void **state)
{
	char buf[32];

	(void)state;
	assert_string_equal(text_rfc3339(buf, 0), "1970-01-01T00:00:00.000Z");
	assert_string_equal(
	    text_rfc3339(buf, UINT64_C(1795971280) * S + 123999999), "2026-11-29T16:54:40.123Z");
	assert_string_equal(text_rfc3339(buf, UINT64_MAX), "2554-07-21T23:34:33.709Z");
}

static void
test_split_host(void **state)
{
	static const struct {
		const char *s;
		int result;
		const char *host;
		uint16_t port;
	} cases[] = {
	    {"b", 0, "b", 7471},
	    {"b.example.org:1", 0, "b.example.org", 1},
	    {"10.0.0.1", 0, "10.0.0.1", 7471},
	    {"10.0.0.1:65535", 0, "10.0.0.1", 65535},
	    {"::1", 0, "::1", 7471},
	    {"fe80::1%eth0", 0, "fe80::1%eth0", 7471},
	    {"[::1]", 0, "::1", 7471},
	    {"[fe80::1%eth0.5]:9", 0, "fe80::1%eth0.5", 9},
	    {"[b]:9", 0, "b", 9},
	    {"fifteen-letters", 0, "fifteen-letters", 7471},
	    {"sixteen--letters", -ERANGE, NULL, 0},
	    {"b:0", -ERANGE, NULL, 0},
	    {"b:65536", -ERANGE, NULL, 0},
	    {"", -EINVAL, NULL, 0},
	    {":7471", -EINVAL, NULL, 0},
	    {"b:", -EINVAL, NULL, 0},
	    {"b:port", -EINVAL, NULL, 0},
	    {"b:1 ", -EINVAL, NULL, 0},
	    {"b c", -EINVAL, NULL, 0},
	    {"b/24", -EINVAL, NULL, 0},
	    {"[::1", -EINVAL, NULL, 0},
	    {"[::1]9", -EINVAL, NULL, 0},
	    {"[]:9", -EINVAL, NULL, 0},
	    {"[::1]:", -EINVAL, NULL, 0},
	    {"::1]", -EINVAL, NULL, 0},
	    {"\xc3\xa4", -EINVAL, NULL, 0},
	    {"a\tb", -EINVAL, NULL, 0},
	    {"[[::1]]", -EINVAL, NULL, 0},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		char host[16] = "untouched";
		uint16_t port = 7471;
		int r = text_split_host(cases[i].s, host, sizeof(host), &port);

		if (r != cases[i].result)
			fail_msg("\"%s\": %d", cases[i].s, r);
		assert_string_equal(host, r < 0 ? "untouched" : cases[i].host);
		assert_int_equal(port, r < 0 ? 7471 : cases[i].port);
	}
}

static const struct sockaddr *
address(struct sockaddr_storage *storage, const char *host, uint16_t port)
{
	memset(storage, 0xff, sizeof(*storage));
	assert_int_equal(text_parse_address(host, port, storage), 0);
	return (const struct sockaddr *)storage;
}

static void
test_address(void **state)
{
	static const struct {
		const char *host, *plain, *with_port;
	} cases[] = {
	    {"10.0.0.1", "10.0.0.1", "10.0.0.1:7471"},
	    {"0.0.0.0", "0.0.0.0", "0.0.0.0:7471"},
	    {"::", "::", "[::]:7471"},
	    {"2001:DB8:0::1", "2001:db8::1", "[2001:db8::1]:7471"},
	    {"fe80::1%lo", "fe80::1%lo", "[fe80::1%lo]:7471"},
	    {"fe80::1%1", "fe80::1%lo", "[fe80::1%lo]:7471"},
	    {"fe80::1%4294967295", "fe80::1%4294967295", "[fe80::1%4294967295]:7471"},
	    {"::ffff:10.0.0.1", "10.0.0.1", "10.0.0.1:7471"},
	    {"1111:2222:3333:4444:5555:6666:7777:8888", "1111:2222:3333:4444:5555:6666:7777:8888",
		"[1111:2222:3333:4444:5555:6666:7777:8888]:7471"},
	};
	char buf[TEXT_ADDRESS_MAX];
	struct sockaddr_storage sa, back;
	struct sockaddr other = {.sa_family = AF_UNIX};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		const struct sockaddr *a = address(&sa, cases[i].host, 7471);

		assert_string_equal(text_address_port(buf, a), cases[i].with_port);
		assert_string_equal(text_address(buf, a), cases[i].plain);
		assert_true(text_address_equal(a, address(&back, buf, 1)));
	}
	assert_string_equal(text_address(buf, &other), "?");
	assert_string_equal(text_address_port(buf, &other), "?:0");
	assert_false(text_address_equal(&other, &other));
}

static void
test_bad_address(void **state)
{
	static const char *const bad[] = {"", "b", "10.0.0", "10.0.0.256", "10.0.0.1:7471", "10.1",
	    "0x7f.0.0.1", "10.0.0.1%lo", ":::", "[::1]", "1:2:3:4:5:6:7:8:9", "::1 ", "localhost",
	    "1111:2222:3333:4444:5555:6666:7777:8888:9999:1111:2222"};
	struct sockaddr_storage sa = {.ss_family = AF_UNIX};

	(void)state;
	for (size_t i = 0; i < COUNT(bad); i++)
		if (text_parse_address(bad[i], 1, &sa) != -EINVAL)
			fail_msg("\"%s\" was taken", bad[i]);
	assert_int_equal(text_parse_address("fe80::1%no-such-if", 1, &sa), -ENODEV);
	assert_int_equal(text_parse_address("fe80::1%", 1, &sa), -ENODEV);
	assert_int_equal(text_parse_address("fe80::1%4294967296", 1, &sa), -ENODEV);
	assert_int_equal(sa.ss_family, AF_UNIX);
}

static bool
equal(const char *a, const char *b)
{
	struct sockaddr_storage x, y;

	return text_address_equal(address(&x, a, 1), address(&y, b, 2));
}

static bool
match(const char *a, const char *network, unsigned prefix)
{
	struct sockaddr_storage x, y;

	return text_address_match(address(&x, a, 1), address(&y, network, 2), prefix);
}

static void
test_compare(void **state)
{
	(void)state;
	assert_true(equal("10.0.0.1", "10.0.0.1"));
	assert_true(equal("10.0.0.1", "::ffff:10.0.0.1"));
	assert_true(equal("fe80::1%1", "fe80::1%1"));
	assert_false(equal("10.0.0.1", "10.0.0.2"));
	assert_false(equal("10.0.0.1", "::10.0.0.1"));
	assert_false(equal("fe80::1%1", "fe80::1%2"));

	assert_true(match("10.1.2.3", "10.1.2.3", 32));
	assert_false(match("10.1.2.3", "10.1.2.2", 32));
	assert_true(match("10.1.2.3", "10.1.2.2", 31));
	assert_true(match("10.1.2.3", "10.0.0.0", 8));
	assert_true(match("10.127.2.3", "10.0.0.0", 9));
	assert_false(match("10.128.2.3", "10.0.0.0", 9));
	assert_true(match("::ffff:10.1.2.3", "10.0.0.0", 8));
	assert_true(match("1.2.3.4", "0.0.0.0", 0));
	assert_false(match("::1", "0.0.0.0", 0));
	assert_false(match("1.2.3.4", "1.2.3.4", 33));
	assert_true(match("2001:db8::1", "2001:db8::", 32));
	assert_true(match("2001:db8::1", "2001:db8::1", 128));
	assert_false(match("2001:db8::1", "2001:db8::1", 129));
	assert_true(match("fe80::1%1", "fe80::1%1", 128));
	assert_true(match("fe80::1%1", "fe80::", 10));
	assert_false(match("fe80::1%1", "fe80::1%2", 128));
	assert_false(match("2001:db9::1", "2001:db8::", 32));
	assert_true(match("2001:db9::1", "2001:db8::", 31));
}

static void
test_clean(void **state)
{
	static const struct {
		const char *in, *out;
	} cases[] = {
	    {"", ""},
	    {"plain text~", "plain text~"},
	    {"\xc2\xa0 \xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80",
		"\xc2\xa0 \xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80"},
	    {"\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf"}, /* U+10FFFF */
	    {"\xed\x9f\xbf\xee\x80\x80",
		"\xed\x9f\xbf\xee\x80\x80"}, /* both sides of the surrogates */
	    {"a\nb\tc\x1b[31m\x7f", "a?b?c?[31m?"},
	    {"\xc2\x85\xc2\x9f", "????"}, /* C1 controls */
	    {"\xc0\x80\xc1\xbf", "????"}, /* overlong */
	    {"\xe0\x80\x80\xe0\x9f\xbf", "??????"},
	    {"\xf0\x80\x80\x80\xf0\x8f\xbf\xbf", "????????"},
	    {"\xed\xa0\x80\xed\xbf\xbf", "??????"}, /* surrogates */
	    {"\xf4\x90\x80\x80", "????"},
	    {"\xf8\x88\x80\x80\x80", "?????"},
	    {"\xff\xfe", "??"},
	    {"\x80\xbf", "??"},
	    {"\xc3", "?"},
	    {"\xe2\x82", "??"},
	    {"\xf0\x9f\x98", "???"}, /* cut */
	    {"\xe2\x82"
	     "a\xc3\xa4",
		"??a\xc3\xa4"},
	};
	char buf[64];

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		size_t len = strlen(cases[i].in);

		assert_string_equal(text_clean(buf, sizeof(buf), cases[i].in, len), cases[i].out);
		assert_int_equal(
		    text_is_clean(cases[i].in, len), strcmp(cases[i].in, cases[i].out) == 0);
		assert_true(text_is_clean(buf, strlen(buf)));
	}
	assert_string_equal(text_clean(buf, sizeof(buf), "a\0b", 3), "a?b");
	assert_false(text_is_clean("a\0b", 3));
	assert_string_equal(text_clean(buf, sizeof(buf), NULL, 0), "");
}

static void
test_clean_cuts(void **state)
{
	static const char in[] = "a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80z"; /* 1, 2, 3, 4, 1 bytes */
	static const size_t fits[] = {0, 0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11, 11};

	(void)state;
	for (size_t size = 1; size < COUNT(fits); size++) {
		char buf[16];

		memset(buf, '#', sizeof(buf));
		text_clean(buf, size, in, sizeof(in) - 1);
		assert_int_equal(strlen(buf), fits[size]);
		assert_memory_equal(buf, in, fits[size]);
		assert_int_equal(buf[size], '#');
	}
}

static void
test_name(void **state)
{
	char longest[LIMIT_NAME + 2];

	(void)state;
	assert_true(text_is_name("a"));
	assert_true(text_is_name("node-7.example_org"));
	assert_true(text_is_name("_0"));
	assert_false(text_is_name(""));
	assert_false(text_is_name("."));
	assert_false(text_is_name(".a"));
	assert_false(text_is_name("-a"));
	assert_false(text_is_name("a b"));
	assert_false(text_is_name("a/b"));
	assert_false(text_is_name("a\n"));
	assert_false(text_is_name("\xc3\xa4"));
	memset(longest, 'a', sizeof(longest));
	longest[LIMIT_NAME + 1] = '\0';
	assert_false(text_is_name(longest));
	longest[LIMIT_NAME] = '\0';
	assert_true(text_is_name(longest));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_parse_size),
	    cmocka_unit_test(test_parse_time),
	    cmocka_unit_test(test_parse_uint),
	    cmocka_unit_test(test_print_size),
	    cmocka_unit_test(test_print_time),
	    cmocka_unit_test(test_rfc3339),
	    cmocka_unit_test(test_split_host),
	    cmocka_unit_test(test_address),
	    cmocka_unit_test(test_bad_address),
	    cmocka_unit_test(test_compare),
	    cmocka_unit_test(test_clean),
	    cmocka_unit_test(test_clean_cuts),
	    cmocka_unit_test(test_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
