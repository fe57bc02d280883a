/* filelist.h -- the names of files, from a file or from standard input */

#pragma once

struct filelist {
	char *text;
	char **names; /* ended by NULL; they point into text */
};

/* list: "-" for standard input. The names end with NULs if there is one among them, else with
 * line feeds. 0 or a negative errno. */
int filelist_read(const char *list, struct filelist *ret);
void filelist_free(struct filelist *l);
