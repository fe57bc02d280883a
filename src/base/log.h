/* log.h -- one line per event, to standard error; the journal gets the priority as a "<N>" prefix
 *
 * A line names the object first ("region 3: ..."). Foreign text must have gone through
 * text_clean(). Codecs and other pure modules do not log: the caller that knows the context does,
 * once.
 */

#pragma once

#include <stdarg.h>
#include <stdbool.h>

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

/* Receives every line that passes the level; tests and fuzzers put their own in (NULL: the
 * default). */
typedef void log_sink(enum log_level level, const char *line);

void log_set_level(enum log_level level);
void log_set_sink(log_sink *sink);
bool log_enabled(enum log_level level);

/* "error", "warning", "info", "debug" and back; -EINVAL for any other word. */
const char *log_level_name(enum log_level level);
int log_level_parse(const char *word, enum log_level *ret);

void log_line(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...)   log_line(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_line(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_info(...)    log_line(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...)   log_line(LOG_LEVEL_DEBUG, __VA_ARGS__)
