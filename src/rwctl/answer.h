/* answer.h -- what the daemon has answered */

#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "rwctl/rwctl.h"

struct answer {
	json_t *message;    /* all of it: owned, see answer_done() */
	json_t *parameters; /* part of message; never NULL */
	const char *error;  /* part of message; NULL: none */
	bool continues;
	int fd; /* came with it, or -1; owned */
};

void answer_done(struct answer *answer);

/* The parameters as JSON, on standard output. */
void answer_print(const struct answer *answer);
/* Says what an answer with an error means, with --json as JSON too; the status. */
int answer_failed(const struct answer *answer, const struct options *o);

/* A member of an object: "" or 0 when it is null, absent or of another type. */
const char *text_at(const json_t *object, const char *key);
uint64_t number_at(const json_t *object, const char *key);
const char *yes_no_at(const json_t *object, const char *key);
