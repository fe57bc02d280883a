/* fuzz_conf.c -- the configuration file
 *
 * Input: the file
 */

#include "config.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "conf/conf.h"
#include "fuzz/fuzz.h"

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	return setenv("XDG_RUNTIME_DIR", "/run/user/1000", 1);
}

/* As conf_load(); *ret_errors: what was complained of, to be freed. */
static int
load(const void *text, size_t size, struct conf **ret, char **ret_errors)
{
	int fd = memfd_create("conf", MFD_CLOEXEC), r;
	size_t errors_size;
	FILE *errors = open_memstream(ret_errors, &errors_size);
	char path[40];

	CHECK(fd >= 0 && errors != NULL && write(fd, text, size) == (ssize_t)size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	r = conf_load(path, errors, ret);
	fclose(errors);
	close(fd);
	CHECK((r == 0) == (errors_size == 0));
	return r;
}

static char *
print(const struct conf *conf)
{
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	CHECK(out != NULL);
	conf_print(conf, out);
	fclose(out);
	return text;
}

/* What `rwriterd -t` prints is a configuration, and the same one. */
static void
check_again(const struct conf *conf)
{
	char *text = print(conf), *again, *errors;
	struct conf *same;

	if (load(text, strlen(text), &same, &errors) < 0)
		fprintf(stderr, "%s%s", text, errors);
	CHECK(errors[0] == '\0');
	again = print(same);
	CHECK(strcmp(again, text) == 0);
	conf_free(same);
	free(again);
	free(errors);
	free(text);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct conf *conf;
	char *errors;

	if (load(data, size, &conf, &errors) == 0) {
		check_again(conf);
		conf_free(conf);
	}
	free(errors);
	return 0;
}
