/* control_fixture.h -- a control socket over a fake core, and a client of it */

#pragma once

#include <jansson.h>

#include "control/control.h"
#include "unit/client.h"
#include "unit/fake_core.h"

struct fixture {
	struct control_env env;
	struct core core;
	struct control *control;
	struct test_client *client;
	char path[64];
	int reload_result;
};

extern char last_log[1024];

int setup(void **state);
int teardown(void **state);

/* A file of zeros. */
int memory_file(size_t size);
/* The text of a member of this parameter of the answer, or NULL. */
const char *text_at(json_t *answer, const char *object, const char *key);
