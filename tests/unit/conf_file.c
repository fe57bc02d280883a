/* conf_file.c -- configurations under test, in a directory of their own */

#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "unit/conf_file.h"

const char *host_name = "testhost";
uid_t user = 1000;

int __wrap_gethostname(char *buf, size_t size);
uid_t __wrap_geteuid(void);

int
__wrap_gethostname(char *buf, size_t size)
{
	return snprintf(buf, size, "%s", host_name) < (int)size ? 0 : -1;
}

uid_t
__wrap_geteuid(void)
{
	return user;
}

char *printed;
size_t printed_len;

void
write_file(const char *path, const void *bytes, size_t len)
{
	FILE *out = fopen(path, "w");

	assert_non_null(out);
	assert_int_equal(fwrite(bytes, 1, len, out), len);
	assert_int_equal(fclose(out), 0);
}

int
load(const char *path, struct conf **ret)
{
	FILE *errors;
	int r;

	free(printed);
	printed = NULL;
	errors = open_memstream(&printed, &printed_len);
	assert_non_null(errors);
	r = conf_load(path, errors, ret);
	fclose(errors);
	return r;
}

int
load_text(const char *text, struct conf **ret)
{
	write_file("x.conf", text, strlen(text));
	return load("x.conf", ret);
}

struct conf *
load_good(const char *text)
{
	struct conf *conf = NULL;
	int r = load_text(text, &conf);

	if (r != 0 || printed_len > 0)
		fail_msg("%d: %s", r, printed);
	return conf;
}

int
conf_file_enter(void **state)
{
	static char directory[] = "/tmp/test_conf.XXXXXX";

	*state = directory;
	setenv("XDG_RUNTIME_DIR", "/run/user/1000", 1);
	return mkdtemp(directory) != NULL && chdir(directory) == 0 && mkdir("conf.d", 0700) == 0
		   ? 0
		   : -1;
}

int
conf_file_leave(void **state)
{
	free(printed);
	unlink("x.conf");
	return rmdir("conf.d") == 0 && rmdir(*state) == 0 ? 0 : -1;
}
