/* age.c -- how long ago something was, in a table's few columns */

#include "config.h"

#include <stdio.h>
#include <time.h>

#include "rwctl/age.h"

static const struct {
	char unit;
	long seconds;
} UNITS[] = {{'d', 86400}, {'h', 3600}, {'m', 60}, {'s', 1}};

const char *
age_since(char buf[AGE_MAX], const char *text)
{
	struct tm tm = {0};
	const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
	long age;
	size_t i = 0;

	buf[0] = '\0';
	if (rest == NULL || (*rest != '.' && *rest != 'Z'))
		return buf;
	age = time(NULL) - timegm(&tm);
	if (age < 0)
		age = 0;
	while (UNITS[i].seconds > 1 && age < UNITS[i].seconds)
		i++;
	snprintf(buf, AGE_MAX, "%ld%c", age / UNITS[i].seconds, UNITS[i].unit);
	return buf;
}
