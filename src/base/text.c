/* text.c -- sizes, times, addresses and foreign text, to and from words */

#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/limits.h"
#include "base/text.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define DIGITS  "0123456789"
#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

#define NS_US  UINT64_C(1000)
#define NS_MS  (1000 * NS_US)
#define NS_S   (1000 * NS_MS)
#define NS_MIN (60 * NS_S)
#define NS_H   (60 * NS_MIN)
#define NS_D   (24 * NS_H)

/* ---- numbers, sizes and times ---- */

struct unit {
	const char *name;
	uint64_t factor;
};

/* Printing takes the first unit that divides: the greatest first, the shorter name first. */
static const struct unit SIZES[] = {
    {"T", UINT64_C(1) << 40},
    {"TiB", UINT64_C(1) << 40},
    {"G", UINT64_C(1) << 30},
    {"GiB", UINT64_C(1) << 30},
    {"M", UINT64_C(1) << 20},
    {"MiB", UINT64_C(1) << 20},
    {"K", UINT64_C(1) << 10},
    {"KiB", UINT64_C(1) << 10},
    {"", 1},
    {"B", 1},
};

static const struct unit TIMES[] = {
    {"d", NS_D},
    {"h", NS_H},
    {"min", NS_MIN},
    {"s", NS_S},
    {"ms", NS_MS},
    {"us", NS_US},
    {"ns", 1},
    {"", NS_S},
};

/* Reads the digits at *s and moves *s behind them. */
static int
parse_digits(const char **s, uint64_t *ret)
{
	size_t len = strspn(*s, DIGITS);
	uint64_t value = 0;

	if (len == 0)
		return -EINVAL;
	for (size_t i = 0; i < len; i++)
		if (__builtin_mul_overflow(value, UINT64_C(10), &value) ||
		    __builtin_add_overflow(value, (uint64_t)((*s)[i] - '0'), &value))
			return -ERANGE;
	*s += len;
	*ret = value;
	return 0;
}

/* Digits, at most one space, a unit. */
static int
parse_quantity(const char *s, const struct unit *units, size_t n, uint64_t *ret)
{
	uint64_t count, value;
	int r = parse_digits(&s, &count);

	if (r < 0)
		return r;
	if (s[0] == ' ' && s[1] != '\0')
		s++;
	for (size_t i = 0; i < n; i++)
		if (strcmp(s, units[i].name) == 0) {
			if (__builtin_mul_overflow(count, units[i].factor, &value))
				return -ERANGE;
			*ret = value;
			return 0;
		}
	return -EINVAL;
}

static char *
print_quantity(char *buf, size_t size, uint64_t value, const struct unit *units)
{
	const struct unit *u = units;

	while (value % u->factor != 0)
		u++;
	if (value == 0)
		snprintf(buf, size, "0");
	else
		snprintf(buf, size, "%" PRIu64 "%s", value / u->factor, u->name);
	return buf;
}

int
text_parse_size(const char *s, uint64_t *ret)
{
	return parse_quantity(s, SIZES, COUNT(SIZES), ret);
}

char *
text_print_size(char buf[TEXT_SIZE_MAX], uint64_t bytes)
{
	return print_quantity(buf, TEXT_SIZE_MAX, bytes, SIZES);
}

int
text_parse_time(const char *s, uint64_t *ret_ns)
{
	return parse_quantity(s, TIMES, COUNT(TIMES), ret_ns);
}

char *
text_print_time(char buf[TEXT_TIME_MAX], uint64_t ns)
{
	return print_quantity(buf, TEXT_TIME_MAX, ns, TIMES);
}

int
text_parse_uint(const char *s, uint64_t max, uint64_t *ret)
{
	uint64_t value;
	int r = parse_digits(&s, &value);

	if (r < 0)
		return r;
	if (*s != '\0')
		return -EINVAL;
	if (value > max)
		return -ERANGE;
	*ret = value;
	return 0;
}

char *
text_human_size(char buf[TEXT_SIZE_MAX], uint64_t bytes)
{
	static const char *const UNITS[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	double value = bytes;
	size_t i = 0;

	for (; value >= 1023.5 && i + 1 < COUNT(UNITS); i++) /* what would be printed as 1024 */
		value /= 1024;
	snprintf(buf, TEXT_SIZE_MAX, "%.*f %s", i > 0 && value < 9.95 ? 1 : 0, value, UNITS[i]);
	return buf;
}

/* Each unit up to where the next one reads better; two digits, more only before the point. */
char *
text_human_time(char buf[TEXT_TIME_MAX], uint64_t ns)
{
	static const struct {
		uint64_t below, factor;
		const char *name;
	} UNITS[] = {
	    {100 * NS_US, NS_US, "us"},
	    {100 * NS_MS, NS_MS, "ms"},
	    {NS_MIN, NS_S, "s"},
	    {NS_H, NS_MIN, "min"},
	    {NS_D, NS_H, "h"},
	    {UINT64_MAX, NS_D, "d"},
	};
	size_t i = 0;
	double value;

	while (ns >= UNITS[i].below && i + 1 < COUNT(UNITS))
		i++;
	value = (double)ns / (double)UNITS[i].factor;
	snprintf(buf, TEXT_TIME_MAX, value < 10 ? "%.2g %s" : "%.0f %s", value, UNITS[i].name);
	return buf;
}

char *
text_rfc3339(char buf[32], uint64_t realtime_ns)
{
	time_t seconds = (time_t)(realtime_ns / NS_S);
	unsigned ms = (unsigned)(realtime_ns % NS_S / NS_MS);
	struct tm tm;
	size_t len;

	gmtime_r(&seconds, &tm);
	len = strftime(buf, 32, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(buf + len, 32 - len, ".%03uZ", ms);
	return buf;
}

/* ---- addresses ---- */

/* Where host and port are in s; *port_text is NULL when there is none. */
static int
find_host(const char *s, const char **host, size_t *len, const char **port_text)
{
	const char *end, *colon = strchr(s, ':');

	*port_text = NULL;
	if (*s == '[') {
		*host = s + 1;
		end = strchr(s, ']');
		if (end == NULL || (end[1] != '\0' && end[1] != ':'))
			return -EINVAL;
		if (end[1] == ':')
			*port_text = end + 2;
	} else {
		*host = s;
		end = s + strlen(s);
		if (colon != NULL &&
		    strchr(colon + 1, ':') == NULL) { /* two colons: IPv6 without a port */
			end = colon;
			*port_text = colon + 1;
		}
	}
	*len = (size_t)(end - *host);
	return 0;
}

int
text_split_host(const char *s, char *host, size_t host_size, uint16_t *port)
{
	const char *start, *port_text;
	uint64_t number = *port;
	size_t len;
	int r = find_host(s, &start, &len, &port_text);

	if (r < 0)
		return r;
	if (len == 0 || strspn(start, LETTERS DIGITS ".-_:%") < len)
		return -EINVAL;
	if (len >= host_size)
		return -ERANGE;
	if (port_text != NULL) {
		r = text_parse_uint(port_text, UINT16_MAX, &number);
		if (r < 0)
			return r;
		if (number == 0)
			return -ERANGE;
	}
	memcpy(host, start, len);
	host[len] = '\0';
	*port = (uint16_t)number;
	return 0;
}

/* Splits "fe80::1%eth0" into the address and the number of the interface (0 when none is given). */
static int
split_scope(const char *host, char *plain, size_t size, uint32_t *scope)
{
	size_t len = strcspn(host, "%");
	uint64_t number = 0;

	if (len >= size)
		return -EINVAL;
	if (host[len] == '%') {
		number = if_nametoindex(host + len + 1);
		if (number == 0 && text_parse_uint(host + len + 1, UINT32_MAX, &number) < 0)
			return -ENODEV;
	}
	memcpy(plain, host, len);
	plain[len] = '\0';
	*scope = (uint32_t)number;
	return 0;
}

int
text_parse_address(const char *host, uint16_t port, struct sockaddr_storage *ret)
{
	struct sockaddr_storage address = {0};
	struct sockaddr_in *in = (struct sockaddr_in *)&address;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&address;
	char plain[INET6_ADDRSTRLEN];
	int r;

	if (inet_pton(AF_INET, host, &in->sin_addr) == 1) {
		in->sin_family = AF_INET;
		in->sin_port = htons(port);
	} else {
		r = split_scope(host, plain, sizeof(plain), &in6->sin6_scope_id);
		if (r < 0)
			return r;
		if (inet_pton(AF_INET6, plain, &in6->sin6_addr) != 1)
			return -EINVAL;
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(port);
	}
	*ret = address;
	return 0;
}

/* The bytes that tell one address from another: those of the IPv4 address in a v4-mapped one. */
struct address {
	int family; /* AF_INET, AF_INET6; else no address */
	const unsigned char *bytes;
	size_t len;
	uint32_t scope;
	uint16_t port;
};

static struct address
look(const struct sockaddr *sa)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)sa;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)sa;
	struct address a = {.family = sa->sa_family};

	if (a.family == AF_INET) {
		a.bytes = (const unsigned char *)&in->sin_addr;
		a.len = 4;
		a.port = ntohs(in->sin_port);
	} else if (a.family == AF_INET6) {
		a.bytes = in6->sin6_addr.s6_addr;
		a.len = 16;
		a.scope = in6->sin6_scope_id;
		a.port = ntohs(in6->sin6_port);
	}
	if (a.family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr)) {
		a.family = AF_INET;
		a.bytes += 12;
		a.len = 4;
	}
	return a;
}

char *
text_address(char buf[TEXT_ADDRESS_MAX], const struct sockaddr *sa)
{
	struct address a = look(sa);
	char interface[IF_NAMESIZE];
	size_t len;

	if (a.bytes == NULL || inet_ntop(a.family, a.bytes, buf, TEXT_ADDRESS_MAX) == NULL) {
		strcpy(buf, "?");
		return buf;
	}
	len = strlen(buf);
	if (a.scope != 0 && if_indextoname(a.scope, interface) != NULL)
		snprintf(buf + len, TEXT_ADDRESS_MAX - len, "%%%s", interface);
	else if (a.scope != 0)
		snprintf(buf + len, TEXT_ADDRESS_MAX - len, "%%%u", a.scope);
	return buf;
}

char *
text_address_port(char buf[TEXT_ADDRESS_MAX], const struct sockaddr *sa)
{
	struct address a = look(sa);
	char host[TEXT_ADDRESS_MAX];

	text_address(host, sa);
	snprintf(buf, TEXT_ADDRESS_MAX, a.family == AF_INET6 ? "[%s]:%u" : "%s:%u", host, a.port);
	return buf;
}

bool
text_address_equal(const struct sockaddr *a, const struct sockaddr *b)
{
	struct address x = look(a), y = look(b);

	return x.bytes != NULL && x.family == y.family && x.scope == y.scope &&
	       memcmp(x.bytes, y.bytes, x.len) == 0;
}

bool
text_address_match(const struct sockaddr *a, const struct sockaddr *network, unsigned prefix)
{
	struct address x = look(a), n = look(network);
	size_t whole = prefix / 8;
	unsigned rest = 8 - prefix % 8;

	if (x.bytes == NULL || x.family != n.family || prefix > 8 * x.len)
		return false;
	if (n.scope != 0 && n.scope != x.scope)
		return false;
	if (memcmp(x.bytes, n.bytes, whole) != 0)
		return false;
	return prefix % 8 == 0 || (x.bytes[whole] ^ n.bytes[whole]) >> rest == 0;
}

/* ---- foreign text and names ---- */

static bool
is_control(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0);
}

/* The length of the character at s when it is whole, in its shortest form and not a control; else
 * 0. */
static size_t
good_character(const unsigned char *s, size_t len)
{
	static const uint32_t LEAST[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t n = s[0] < 0x80       ? 1
		   : s[0] >> 5 == 6  ? 2
		   : s[0] >> 4 == 14 ? 3
		   : s[0] >> 3 == 30 ? 4
				     : 0;
	uint32_t c = n == 1 ? s[0] : s[0] & 0x7fU >> n;

	if (n == 0 || n > len)
		return 0;
	for (size_t i = 1; i < n; i++) {
		if (s[i] >> 6 != 2)
			return 0;
		c = c << 6 | (s[i] & 0x3fU);
	}
	if (c < LEAST[n] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff) || is_control(c))
		return 0;
	return n;
}

char *
text_clean(char *buf, size_t size, const void *foreign, size_t len)
{
	const unsigned char *s = foreign, *end = s + len;
	size_t used = 0, n;

	for (; s < end; s += n) {
		bool good = (n = good_character(s, (size_t)(end - s))) > 0;

		if (!good)
			n = 1;
		if (n >= size - used)
			break;
		memcpy(buf + used, good ? (const char *)s : "?", n);
		used += n;
	}
	buf[used] = '\0';
	return buf;
}

bool
text_is_clean(const void *foreign, size_t len)
{
	const unsigned char *s = foreign, *end = s + len;
	size_t n;

	for (; s < end; s += n)
		if ((n = good_character(s, (size_t)(end - s))) == 0)
			return false;
	return true;
}

bool
text_is_name(const char *s)
{
	size_t len = strlen(s);

	return len >= 1 && len <= LIMIT_NAME && strspn(s, LETTERS DIGITS "._-") == len &&
	       s[0] != '.' && s[0] != '-';
}
