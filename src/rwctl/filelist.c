/* filelist.c -- the names of files, from a file or from standard input */

#include "config.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rwctl/filelist.h"
#include "rwctl/interrupt.h"

/* All of in, and a NUL. 0 or a negative errno. */
static int
read_all(FILE *in, char **ret, size_t *ret_len)
{
	size_t len = 0, size = 0;
	char *text = NULL;

	while (!feof(in)) {
		if (size - len < 2) {
			char *more = realloc(text, size = 2 * size + 65536);

			if (more == NULL)
				goto fail;
			text = more;
		}
		errno = 0;
		len += fread(text + len, 1, size - len - 1, in);
		if (ferror(in) || interrupted())
			goto fail;
	}
	text[len] = '\0';
	*ret = text;
	*ret_len = len;
	return 0;
fail:
	free(text);
	return errno != 0 ? -errno : -ENOMEM;
}

/* Cuts text into names; empty ones do not count. */
static int
split(struct filelist *l, size_t len)
{
	char end = memchr(l->text, '\0', len) != NULL ? '\0' : '\n';
	size_t most = 2, n = 0;

	for (size_t i = 0; i < len; i++)
		most += l->text[i] == end;
	l->names = calloc(most, sizeof(l->names[0]));
	if (l->names == NULL)
		return -ENOMEM;
	for (char *name = l->text, *next; name < l->text + len; name = next + 1) {
		next = memchr(name, end, l->text + len - name);
		if (next == NULL)
			next = l->text + len;
		*next = '\0';
		if (next > name)
			l->names[n++] = name;
	}
	return 0;
}

int
filelist_read(const char *list, struct filelist *ret)
{
	FILE *in = strcmp(list, "-") == 0 ? stdin : fopen(list, "re");
	size_t len;
	int r;

	*ret = (struct filelist){NULL, NULL};
	if (in == NULL)
		return -errno;
	r = read_all(in, &ret->text, &len);
	if (r == 0)
		r = split(ret, len);
	if (in != stdin)
		fclose(in);
	return r;
}

void
filelist_free(struct filelist *l)
{
	free(l->names);
	free(l->text);
}
