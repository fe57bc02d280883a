/* conf_load.c -- rwriter.conf(5): files, lines and sections into one checked configuration
 *
 * inih tells keys, values and comments apart. As distributions build it, it cuts long lines and
 * section names, joins an indented line to the one before it, passes no line numbers and is silent
 * about empty sections; so the reader that feeds it looks at every line first and keeps the section
 * headers to itself.
 */

#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <ini.h>

#include "base/text.h"
#include "conf/complete.h"
#include "conf/conf.h"
#include "conf/loader.h"

#define BLANKS " \t\r\n\v\f"
#define BOM    "\xef\xbb\xbf" /* some editors begin files with it */

/* ---- sections and options ---- */

/* What a header names; NULL and an error when it is none. */
static const struct conf_section *
check_header(struct loader *l, const char *word, const char *name, bool more)
{
	const struct conf_section *section = word != NULL ? option_section(word) : NULL;
	char known[OPTION_KEYS_MAX];

	if (section == NULL)
		loader_complain(l, NULL, "[%s] is no section; there are %s",
		    word != NULL ? loader_quote(word).text : "", option_sections(known));
	else if (section->list == 0 && name != NULL)
		loader_complain(l, NULL, "[%s] takes no name; write [%s]", word, word);
	else if (section->list != 0 && (name == NULL || more))
		loader_complain(l, NULL, "[%s] takes one name; write [%s NAME]", word, word);
	else if (section->list != 0 && !text_is_name(name))
		loader_complain(l, NULL, "\"%s\" is no name for [%s NAME]; takes %s",
		    loader_quote(name).text, word, VALUE_NAME_RULE);
	else
		return section;
	return NULL;
}

/* header: what is between the brackets. */
static void
open_section(struct loader *l, char *header)
{
	char *rest, *word = strtok_r(header, BLANKS, &rest), *name = strtok_r(NULL, BLANKS, &rest);
	const struct conf_section *section;

	l->section = NULL;
	section = check_header(l, word, name, strtok_r(NULL, BLANKS, &rest) != NULL);
	l->skipping = section == NULL;
	if (section == NULL)
		return;
	l->object = section->list != 0 ? option_object(loader_list(l, section), name) : l->conf;
	if (l->object == NULL)
		l->object = loader_add_object(l, section, name);
	l->skipping = l->object == NULL || loader_add_place(l, NULL) == NULL;
	l->section = l->skipping ? NULL : section;
}

static void
set_option(struct loader *l, const char *key, const char *value)
{
	const struct conf_option *option = option_find(l->section, key);
	struct place *first, *place;
	char known[OPTION_KEYS_MAX];

	if (option == NULL) {
		loader_complain(l, NULL, "\"%s\" is no key of this section; there are %s",
		    loader_quote(key).text, option_keys(l->section, known));
		return;
	}
	first = loader_find_place(l, l->object, option, NULL);
	place = loader_add_place(l, option);
	if (first != NULL && !option->type->list)
		loader_complain(l, key, "is set already, at %s:%u; keep one of the two",
		    first->path, first->line);
	else if (*value == '\0')
		loader_complain_value(l, option, value, -ENODATA);
	else if (first != NULL && !first->bad && list_empty(option_field(option, l->object)))
		loader_complain_value(l, option, value, -EEXIST); /* the first is "any" */
	else if (place != NULL)
		loader_apply(l, option, value, place);
}

/* ---- lines and files ---- */

/* The next line without its newline, cut at size - 1 bytes of its *len. False at the end. */
static bool
read_line(FILE *in, char *buf, size_t size, size_t *len)
{
	int c = getc(in);
	size_t n = 0;

	if (c == EOF)
		return false;
	for (; c != EOF && c != '\n'; c = getc(in), n++)
		if (n < size - 1)
			buf[n] = (char)c;
	buf[n < size - 1 ? n : size - 1] = '\0';
	*len = n;
	return true;
}

/* "[section name]", perhaps with a comment behind it. */
static void
read_header(struct loader *l, char *line)
{
	char *end = strchr(line, ']');
	const char *behind = end != NULL ? end + 1 + strspn(end + 1, BLANKS) : "";

	if (end == NULL || (*behind != '\0' && *behind != ';' && *behind != '#')) {
		l->section = NULL;
		l->skipping = true;
		loader_complain(l, NULL,
		    "\"%s\" does not end with ']'; write [section] or [section NAME]",
		    loader_quote(line).text);
		return;
	}
	*end = '\0';
	open_section(l, line + 1);
}

/* The part of the line that is for inih: "key = value", or nothing. */
static const char *
check_line(struct loader *l, char *line, size_t len)
{
	char *start = line + (l->line == 1 && len >= 3 && memcmp(line, BOM, 3) == 0 ? 3 : 0);
	char known[OPTION_KEYS_MAX];

	start += strspn(start, BLANKS);
	if (len > LOADER_LINE_MAX)
		loader_complain(l, NULL, "the line has %zu bytes; at most %d; shorten it", len,
		    LOADER_LINE_MAX);
	else if (strlen(line) < len)
		loader_complain(
		    l, NULL, "the line holds a NUL byte; this is a text file; remove it");
	else if (*start == '[')
		read_header(l, start);
	else if (*start == '\0' || *start == '#' || *start == ';' || l->skipping)
		return "";
	else if (start[strcspn(start, "=:;")] != '=')
		loader_complain(
		    l, NULL, "\"%s\" has no '='; write key = value", loader_quote(start).text);
	else if (l->section == NULL)
		loader_complain(l, NULL, "\"%s\" stands before any section; there are %s",
		    loader_quote(start).text, option_sections(known));
	else
		return start;
	return "";
}

/* ini_reader: size is inih's, 200 where nobody changed it. */
static char *
next_line(char *buf, int size, void *user)
{
	char line[LOADER_LINE_MAX + 2];
	struct loader *l = user;
	size_t len;

	if (!read_line(l->in, line, sizeof(line), &len))
		return NULL;
	l->line++;
	snprintf(buf, (size_t)size, "%s\n", check_line(l, line, len));
	return buf;
}

/* ini_handler */
static int
take_pair(void *user, const char *section, const char *key, const char *value)
{
	(void)section;
	set_option(user, key, value);
	return 1;
}

static int
parse_stream(struct loader *l)
{
	int r;

	errno = 0;
	r = ini_parse_stream(next_line, l, take_pair, l);
	if (ferror(l->in))
		return errno != 0 ? -errno : -EIO;
	if (r > 0) { /* next_line() should have seen it */
		l->line = (unsigned)r;
		loader_complain(l, NULL, "the line is not understood; write key = value");
	}
	return r == -2 ? -ENOMEM : 0;
}

static void
read_file(struct loader *l, const char *path, bool required)
{
	struct source *source = calloc(1, sizeof(*source) + strlen(path) + 1);
	int r = 0;

	if (source == NULL) {
		loader_fail(l, -ENOMEM);
		return;
	}
	strcpy(source->path, path);
	list_add_tail(&l->sources, &source->node);
	l->path = source->path;
	l->line = 0;
	l->section = NULL;
	l->skipping = false;
	l->in = fopen(path, "re");
	if (l->in != NULL) {
		r = parse_stream(l);
		fclose(l->in);
	} else if (errno != ENOENT || required)
		r = -errno;
	if (r < 0) {
		l->line = 0;
		l->section = NULL;
		loader_complain(l, NULL, "cannot be read: %s", strerror(-r));
		loader_fail(l, r);
	}
}

static int
is_conf(const struct dirent *entry)
{
	const char *dot = strrchr(entry->d_name, '.');

	return entry->d_name[0] != '.' && dot != NULL && strcmp(dot, ".conf") == 0;
}

static int
by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

/* conf.d beside the file; it may be missing. */
static void
read_directory(struct loader *l, const char *file)
{
	const char *slash = strrchr(file, '/');
	struct dirent **entries;
	char path[PATH_MAX];
	int before = slash != NULL ? (int)(slash - file) + 1 : 0, n;

	snprintf(path, sizeof(path), "%.*sconf.d", before, file);
	n = scandir(path, &entries, is_conf, by_name);
	if (n < 0 && errno != ENOENT && errno != ENOTDIR) {
		int r = -errno;

		fprintf(l->errors, "%s: cannot be read: %s\n", path, strerror(-r));
		loader_fail(l, r);
	}
	for (int i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%.*sconf.d/%s", before, file, entries[i]->d_name);
		read_file(l, path, true);
		free(entries[i]);
	}
	if (n >= 0)
		free(entries);
}

int
conf_load(const char *file, FILE *errors, struct conf **ret)
{
	struct loader l = {.conf = calloc(1, sizeof(*l.conf)), .errors = errors};
	const char *path = file != NULL ? file : CONF_FILE;

	if (l.conf == NULL)
		return -ENOMEM;
	list_init(&l.conf->listens);
	list_init(&l.conf->peers);
	list_init(&l.conf->groups);
	list_init(&l.conf->regions);
	list_init(&l.places);
	list_init(&l.sources);
	read_file(&l, path, file != NULL);
	read_directory(&l, path);
	if (l.result != -ENOMEM)
		complete(&l);
	loader_free_notes(&l);
	if (l.result == 0)
		*ret = l.conf;
	else
		conf_free(l.conf);
	return l.result;
}
