/* log.c -- leveled lines to standard error */

#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

static const struct {
	const char *name;
	int priority; /* syslog(3) */
} LEVELS[] = {
    [LOG_LEVEL_ERROR] = {"error", 3},
    [LOG_LEVEL_WARNING] = {"warning", 4},
    [LOG_LEVEL_INFO] = {"info", 6},
    [LOG_LEVEL_DEBUG] = {"debug", 7},
};

static void default_sink(enum log_level level, const char *line);

static enum log_level max_level = LOG_LEVEL_INFO;
static log_sink *current_sink = default_sink;

static void
default_sink(enum log_level level, const char *line)
{
	/* systemd sets JOURNAL_STREAM when standard error is the journal: see sd-daemon(3) for the
	 * prefix. */
	if (getenv("JOURNAL_STREAM") != NULL)
		fprintf(stderr, "<%d>%s\n", LEVELS[level].priority, line);
	else
		fprintf(stderr, "rwriterd: %s: %s\n", LEVELS[level].name, line);
}

void
log_set_level(enum log_level level)
{
	max_level = level;
}

void
log_set_sink(log_sink *sink)
{
	current_sink = sink != NULL ? sink : default_sink;
}

bool
log_enabled(enum log_level level)
{
	return level <= max_level;
}

const char *
log_level_name(enum log_level level)
{
	return LEVELS[level].name;
}

int
log_level_parse(const char *word, enum log_level *ret)
{
	for (size_t i = 0; i < sizeof(LEVELS) / sizeof(LEVELS[0]); i++)
		if (strcmp(word, LEVELS[i].name) == 0) {
			*ret = i;
			return 0;
		}
	return -EINVAL;
}

void
log_line(enum log_level level, const char *fmt, ...)
{
	char line[1024];
	va_list ap;

	if (!log_enabled(level))
		return;
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	current_sink(level, line);
}
