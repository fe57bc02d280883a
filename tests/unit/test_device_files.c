/* test_device_files.c -- word of files that come and go, in a directory that does so itself */

#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "fabric/device_files.h"
#include "loop/loop.h"

static char parent[] = "/tmp/device-files-XXXXXX", dir[64], file[80];

static struct {
	struct loop *loop;
	struct device_files *files;
	char story[16];
} my;

static void
tell(void *arg, bool come)
{
	(void)arg;
	assert_true(strlen(my.story) + 1 < sizeof(my.story));
	strcat(my.story, come ? "+" : "-");
}

static void
expect(const char *story)
{
	loop_turn(my.loop, 0);
	assert_string_equal(my.story, story);
	my.story[0] = '\0';
}

static void
make(const char *path)
{
	int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	close(fd);
}

static void
make_dir(void)
{
	assert_int_equal(mkdir(dir, 0700), 0);
}

static void
watch(void)
{
	assert_int_equal(device_files_watch(my.loop, dir, tell, NULL, &my.files), 0);
}

static int
setup(void **state)
{
	(void)state;
	strcpy(parent + sizeof(parent) - sizeof("XXXXXX"), "XXXXXX");
	if (mkdtemp(parent) == NULL)
		return -1;
	snprintf(dir, sizeof(dir), "%s/devices", parent);
	snprintf(file, sizeof(file), "%s/one", dir);
	my.story[0] = '\0';
	return loop_new(&my.loop);
}

static int
teardown(void **state)
{
	(void)state;
	my.files = device_files_free(my.files);
	my.loop = loop_free(my.loop);
	unlink(file);
	rmdir(dir);
	return rmdir(parent);
}

static void
files_come_and_go(void **state)
{
	(void)state;
	make_dir();
	watch();
	expect("");
	make(file);
	expect("+");
	unlink(file);
	expect("-");
	make(file);
	unlink(file);
	expect("-+"); /* whatever the order was: what has come is looked at last */
}

static void
the_directory_comes_with_the_first_file(void **state)
{
	(void)state;
	watch();
	make_dir();
	make(file);
	expect("+");
	unlink(file);
	expect("-");
}

static void
the_directory_goes_with_the_last_file_and_comes_back(void **state)
{
	(void)state;
	make_dir();
	make(file);
	watch();
	for (int i = 0; i < 2; i++) {
		unlink(file);
		rmdir(dir);
		expect("-");
		make_dir();
		expect("+");
		make(file);
		expect("+");
	}
}

/* Before we have heard that it went. */
static void
the_directory_is_back_at_once(void **state)
{
	(void)state;
	make_dir();
	watch();
	rmdir(dir);
	make_dir();
	make(file);
	expect("+");
	unlink(file);
	expect("-");
}

static void
others_beside_the_directory_do_not_matter(void **state)
{
	char other[64];

	(void)state;
	watch();
	snprintf(other, sizeof(other), "%s/device", parent);
	make(other);
	unlink(other);
	expect("");
	make(dir); /* no directory */
	expect("");
	unlink(dir);
	make_dir();
	expect("+");
}

static void
a_poll_does_not_wait_for_a_turn(void **state)
{
	(void)state;
	make_dir();
	watch();
	make(file);
	device_files_poll(my.files);
	assert_string_equal(my.story, "+");
	device_files_poll(my.files);
	device_files_poll(NULL);
	expect("+");
}

static void
without_a_parent_there_is_nothing_to_watch(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "%s/none/devices", parent);
	assert_int_equal(device_files_watch(my.loop, dir, tell, NULL, &my.files), -ENOENT);
	assert_null(my.files);
	assert_null(device_files_free(NULL));
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    T(files_come_and_go),
	    T(the_directory_comes_with_the_first_file),
	    T(the_directory_goes_with_the_last_file_and_comes_back),
	    T(the_directory_is_back_at_once),
	    T(others_beside_the_directory_do_not_matter),
	    T(a_poll_does_not_wait_for_a_turn),
	    T(without_a_parent_there_is_nothing_to_watch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
