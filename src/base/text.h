/* text.h -- sizes, times, addresses and foreign text, to and from words
 *
 * Parsers return 0 or -EINVAL (not the form) or -ERANGE (out of range), and touch *ret only on 0.
 * Formatters fill buf (always NUL-terminated) and return it.
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/* The longest address text: "[IPv6%interface]:port". */
#define TEXT_ADDRESS_MAX 80
#define TEXT_SIZE_MAX    24
#define TEXT_TIME_MAX    24

/* "4096", "64K", "64M", "2G", "1T" (powers of 1024; "64MiB" and "64 MiB" too): bytes. */
int text_parse_size(const char *s, uint64_t *ret);
/* The shortest exact form that text_parse_size() reads back: "64M", "1000". */
char *text_print_size(char buf[TEXT_SIZE_MAX], uint64_t bytes);
/* For people, at most 4 significant figures: "17 B", "4.8 GiB", "640 MiB". */
char *text_human_size(char buf[TEXT_SIZE_MAX], uint64_t bytes);

/* "50us", "20ms", "10s", "5min", "1h", "1d"; a bare number is seconds; "0" is fine: nanoseconds. */
int text_parse_time(const char *s, uint64_t *ret_ns);
char *text_print_time(char buf[TEXT_TIME_MAX], uint64_t ns);
/* For people: "0.9 ms", "0.13 s", "4 min". */
char *text_human_time(char buf[TEXT_TIME_MAX], uint64_t ns);

/* A decimal number up to max. */
int text_parse_uint(const char *s, uint64_t max, uint64_t *ret);

/* Seconds since 1970 (nanoseconds) as RFC 3339 UTC with milliseconds: "2026-11-29T16:54:40.123Z".
 */
char *text_rfc3339(char buf[32], uint64_t realtime_ns);

/* Splits "host", "host:port", "[v6]:port", "v6" (and "v6%if") into host and port; port stays when
 * none is given. No resolving. host holds at most host_size - 1 bytes: else -ERANGE. */
int text_split_host(const char *s, char *host, size_t host_size, uint16_t *port);

/* A numeric IPv4 or IPv6 address ("fe80::1%eth0" keeps its scope) and a port, as a socket address.
 * -ENODEV: no interface of that name. */
int text_parse_address(const char *host, uint16_t port, struct sockaddr_storage *ret);
/* "10.0.0.1" or "fe80::1%eth0" ("?" for other families; v4-mapped IPv6 as IPv4); with the port
 * "10.0.0.1:7471" or "[fe80::1%eth0]:7471". */
char *text_address(char buf[TEXT_ADDRESS_MAX], const struct sockaddr *sa);
char *text_address_port(char buf[TEXT_ADDRESS_MAX], const struct sockaddr *sa);
/* The same address whatever the port; v4-mapped IPv6 equals its IPv4. */
bool text_address_equal(const struct sockaddr *a, const struct sockaddr *b);
/* The first prefix bits are equal (and the family is, and the scope where the network has one). */
bool text_address_match(const struct sockaddr *a, const struct sockaddr *network, unsigned prefix);

/* Foreign text made safe: valid UTF-8 without control characters, at most size - 1 bytes; each byte
 * that is not becomes '?', a cut never splits a character. Returns buf. */
char *text_clean(char *buf, size_t size, const void *foreign, size_t len);
/* True if text_clean() would change nothing: valid UTF-8, no control characters. */
bool text_is_clean(const void *foreign, size_t len);
/* 1 to 64 bytes of [A-Za-z0-9._-], not starting with '.' or '-': section, peer and region names. */
bool text_is_name(const char *s);
