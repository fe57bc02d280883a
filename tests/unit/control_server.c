/* control_server.c -- tests: the control socket over the fake core, as a process for rwctl to talk
 * to
 *
 * control_server SOCKET [FAULT]: with FAULT, Reload fails and says it. Ends at the end of its
 * standard input.
 */

#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/log.h"
#include "control/control.h"
#include "loop/loop.h"
#include "unit/fake_core.h"

static int
on_reload(void *arg, char *errors, size_t size)
{
	const char *fault = arg;

	snprintf(errors, size, "%s\n", fault != NULL ? fault : "");
	return fault != NULL ? -EINVAL : 0;
}

static void
on_stdin(void *arg, unsigned events)
{
	char byte;

	(void)events;
	if (read(STDIN_FILENO, &byte, 1) <= 0)
		loop_stop(arg);
}

int
main(int argc, char **argv)
{
	static struct core core;
	struct control_env env = {
	    .core = &core,
	    .path = argv[1],
	    .version = "0.1.0",
	    .conf_file = "/etc/rwriter/rwriter.conf",
	    .reload = on_reload,
	    .arg = argc > 2 ? argv[2] : NULL,
	};
	struct control *control;
	struct loop_io *io;

	if (argc < 2 || crc32c_init() < 0 || loop_new(&core.loop) < 0)
		return 1;
	env.loop = core.loop;
	fake_core_fill(&core);
	if (loop_io_new(core.loop, STDIN_FILENO, LOOP_READ, on_stdin, core.loop, &io) < 0)
		return 1;
	if (control_new(&env, -1, &control) < 0)
		return 1;
	puts("ready");
	fflush(stdout);
	loop_run(core.loop);
	printf("writes %u cancelled %u last %s size %llu region %s\n", core.writes, core.cancelled,
	    core.name, (unsigned long long)core.size, core.region);
	control_free(control);
	loop_io_free(io);
	loop_free(core.loop);
	return 0;
}
