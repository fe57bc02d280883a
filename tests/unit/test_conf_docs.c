/* test_conf_docs.c -- etc/rwriter.conf and rwriter.conf(5) say what the table of options says
 *
 * Both ways: an option that a text lacks, and one that only a text has, are failures.
 */

#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "conf/conf.h"
#include "conf/option.h"

#define MAX_ENTRIES 64

/* What a text says of one option. */
struct entry {
	char section[16], key[32], default_text[64];
	char body[1024]; /* of the man page: the text lines of the item, joined */
};

struct text {
	struct entry entries[MAX_ENTRIES];
	size_t n;
};

static struct entry *
add_entry(struct text *t, const char *section, const char *key, const char *default_text)
{
	struct entry *e = &t->entries[t->n++];

	assert_true(t->n < MAX_ENTRIES);
	snprintf(e->section, sizeof(e->section), "%s", section);
	snprintf(e->key, sizeof(e->key), "%s", key);
	snprintf(e->default_text, sizeof(e->default_text), "%s", default_text);
	return e;
}

static FILE *
open_text(const char *path)
{
	FILE *in = fopen(path, "r");

	if (in == NULL)
		fail_msg("cannot open %s", path);
	return in;
}

/* Options stand in etc/rwriter.conf as "#key = default"; prose has a blank behind the '#'. */
static void
read_etc(struct text *t)
{
	char line[256], section[16] = "", key[32], value[64];
	FILE *in = open_text(ETC_FILE);

	while (fgets(line, sizeof(line), in) != NULL) {
		if (sscanf(line, "[%15[a-z]", section) == 1 ||
		    sscanf(line, "#[%15[a-z]", section) == 1)
			continue;
		if (sscanf(line, "#%31[a-z-] = %63[^\n]", key, value) == 2)
			add_entry(t, section, key, value);
		else if (line[0] != '\n' && strncmp(line, "# ", 2) != 0 && strcmp(line, "#\n") != 0)
			fail_msg("%s: neither prose nor \"#key = default\": %s", ETC_FILE, line);
	}
	fclose(in);
}

/* ".Ss Bq section" and ".It Ic key = default" lines, with the item's prose behind. */
static void
read_page(struct text *t)
{
	char line[256], section[16] = "", key[32], value[64];
	FILE *in = open_text(MAN_PAGE);
	struct entry *e = NULL;

	while (fgets(line, sizeof(line), in) != NULL) {
		int found = sscanf(line, ".It Ic %31[a-z-] = %63[^\n]", key, value);

		if (strncmp(line, ".Sh", 3) == 0 || sscanf(line, ".Ss Bq %15[a-z]", section) == 1)
			e = NULL;
		else if (found >= 1)
			e = add_entry(t, section, key, found == 2 ? value : "");
		else if (e != NULL && line[0] != '.') {
			size_t used = strlen(e->body);

			snprintf(e->body + used, sizeof(e->body) - used, "%.*s ",
			    (int)strcspn(line, "\n"), line);
		}
	}
	fclose(in);
}

static const struct entry *
find_entry(const struct text *t, const char *path, const struct conf_section *s,
    const struct conf_option *o)
{
	const struct entry *found = NULL;

	for (const struct entry *e = t->entries; e < t->entries + t->n; e++) {
		if (strcmp(e->section, s->word) != 0 || strcmp(e->key, o->key) != 0)
			continue;
		if (found != NULL)
			fail_msg("%s has [%s] %s twice", path, s->word, o->key);
		found = e;
	}
	if (found == NULL)
		fail_msg("%s lacks [%s] %s", path, s->word, o->key);
	return found;
}

/* Every option is in the text with its default, and the text has no other. */
static void
compare(const struct text *t, const char *path)
{
	size_t options = 0;

	for (const struct conf_section *s = OPTION_SECTIONS; s->word != NULL; s++)
		for (const struct conf_option *o = s->options; o->key != NULL; o++, options++) {
			const struct entry *e = find_entry(t, path, s, o);

			if (o->default_text != NULL &&
			    strcmp(e->default_text, o->default_text) != 0)
				fail_msg("%s: the default of [%s] %s is %s, not \"%s\"", path,
				    s->word, o->key, o->default_text, e->default_text);
		}
	for (const struct entry *e = t->entries; e < t->entries + t->n; e++) {
		const struct conf_section *s = option_section(e->section);

		if (s == NULL || option_find(s, e->key) == NULL)
			fail_msg("%s has [%s] %s, which is no option", path, e->section, e->key);
	}
	assert_int_equal(t->n, options);
}

static void
etc_has_every_option(void **state)
{
	static struct text etc;

	(void)state;
	read_etc(&etc);
	compare(&etc, ETC_FILE);
}

static void
page_has_every_option_and_its_range(void **state)
{
	static struct text page;

	(void)state;
	read_page(&page);
	compare(&page, MAN_PAGE);
	for (const struct conf_section *s = OPTION_SECTIONS; s->word != NULL; s++)
		for (const struct conf_option *o = s->options; o->key != NULL; o++) {
			const struct entry *e = find_entry(&page, MAN_PAGE, s, o);
			char takes[OPTION_TAKES_MAX];

			if (strstr(e->body, option_takes(o, takes)) == NULL)
				fail_msg("%s: [%s] %s does not say \"takes %s\"", MAN_PAGE, s->word,
				    o->key, takes);
			if (o->default_text == NULL && e->default_text[0] != '\0')
				fail_msg("%s: [%s] %s has no default", MAN_PAGE, s->word, o->key);
		}
}

/* ---- what the texts show can be loaded ---- */

static const char file[] = "test_conf_docs.tmp";

/* What `rwriterd -t` says of the text. Free the result. */
static char *
effective(const char *text)
{
	FILE *out = fopen(file, "w");
	struct conf *conf;
	char *printed;
	size_t len;
	int r;

	assert_non_null(out);
	fputs(text, out);
	fclose(out);
	r = conf_load(file, stderr, &conf);
	unlink(file);
	if (r < 0)
		fail_msg("not taken:\n%s", text);
	out = open_memstream(&printed, &len);
	conf_print(conf, out);
	fclose(out);
	conf_free(conf);
	return printed;
}

/* etc/rwriter.conf, as it is or with all its options uncommented. */
static void
etc_text(char *buf, size_t size, bool uncomment)
{
	char line[256];
	FILE *in = open_text(ETC_FILE);
	size_t used = 0;

	while (fgets(line, sizeof(line), in) != NULL) {
		bool option = line[0] == '#' && line[1] != ' ' && line[1] != '\n';

		used += (size_t)snprintf(
		    buf + used, size - used, "%s", uncomment && option ? line + 1 : line);
		assert_true(used < size);
	}
	fclose(in);
}

static void
etc_is_the_defaults(void **state)
{
	static char text[16384];
	char *expected = effective("[peer b]\naddress = b.example.org\n[group g]\npeer = b\n"),
	     *got;

	(void)state;
	etc_text(text, sizeof(text), true);
	got = effective(text);
	assert_string_equal(got, expected);
	free(got);
	free(expected);

	expected = effective("");
	etc_text(text, sizeof(text), false);
	got = effective(text);
	assert_string_equal(got, expected);
	free(got);
	free(expected);
}

static void
examples_of_the_page_are_taken(void **state)
{
	char line[256], text[1024] = "";
	bool inside = false;
	FILE *in = open_text(MAN_PAGE);
	int taken = 0;

	(void)state;
	while (fgets(line, sizeof(line), in) != NULL) {
		if (strncmp(line, ".Bd -literal", 12) == 0) {
			inside = true;
			text[0] = '\0';
		} else if (strncmp(line, ".Ed", 3) == 0 && inside) {
			inside = false;
			if (text[0] == '[') {
				free(effective(text));
				taken++;
			}
		} else if (inside)
			snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s", line);
	}
	fclose(in);
	assert_true(taken >= 3);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(etc_has_every_option),
	    cmocka_unit_test(page_has_every_option_and_its_range),
	    cmocka_unit_test(etc_is_the_defaults),
	    cmocka_unit_test(examples_of_the_page_are_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
