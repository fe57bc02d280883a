/* control_fixture.c -- a control socket over a fake core, and a client of it */

#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "unit/control_fixture.h"

char last_log[1024];

static void
on_log(enum log_level level, const char *line)
{
	(void)level;
	snprintf(last_log, sizeof(last_log), "%s", line);
}

static int
on_reload(void *arg, char *errors, size_t size)
{
	struct fixture *f = arg;

	if (f->reload_result < 0)
		snprintf(errors, size, "rwriter.conf:3: listen.port: what is a port?\n");
	return f->reload_result;
}

int
setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	client_uid = -1;
	last_log[0] = '\0';
	log_set_sink(on_log);
	snprintf(f->path, sizeof(f->path), "test_control.%d", (int)getpid());
	assert_int_equal(loop_new(&f->core.loop), 0);
	fake_core_fill(&f->core);
	f->env = (struct control_env){
	    .loop = f->core.loop,
	    .core = &f->core,
	    .path = f->path,
	    .version = "0.1.0",
	    .conf_file = "/etc/rwriter/rwriter.conf",
	    .reload = on_reload,
	    .arg = f,
	};
	assert_int_equal(control_new(&f->env, -1, &f->control), 0);
	f->client = client_new(f->core.loop, f->path);
	*state = f;
	return 0;
}

int
teardown(void **state)
{
	struct fixture *f = *state;

	client_free(f->client);
	control_free(f->control);
	assert_int_equal(access(f->path, F_OK), -1);
	loop_free(f->core.loop);
	log_set_sink(NULL);
	free(f);
	return 0;
}

int
memory_file(size_t size)
{
	int fd = memfd_create("test", MFD_CLOEXEC);

	assert_int_equal(ftruncate(fd, size), 0);
	return fd;
}

const char *
text_at(json_t *answer, const char *object, const char *key)
{
	json_t *o = json_object_get(json_object_get(answer, "parameters"), object);

	return json_string_value(json_object_get(o, key));
}
