/* fleet.c -- the peers that a write goes to, and how it did with each */

#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rwctl/call.h"
#include "rwctl/fleet.h"

static int
no_memory(void)
{
	complain("memory is short");
	return STATUS_FAILED;
}

static int
make(struct fleet *f, size_t n)
{
	f->members = calloc(n, sizeof(f->members[0]));
	if (f->members == NULL)
		return no_memory();
	f->n = n;
	return STATUS_DONE;
}

static int
set_name(struct fleet *f, size_t i, const char *name)
{
	f->members[i].name = strdup(name);
	return f->members[i].name != NULL ? STATUS_DONE : no_memory();
}

static int
take(struct fleet *f, const json_t *peers)
{
	int status = make(f, json_array_size(peers));

	for (size_t i = 0; i < f->n && status == STATUS_DONE; i++)
		status = set_name(f, i, json_string_value(json_array_get(peers, i)));
	return status;
}

static int
ask(struct fleet *f, const struct options *o, const char *word)
{
	struct answer answer;
	struct call *call;
	int status = call_open(o, &call);

	if (status != STATUS_DONE)
		return status;
	status = call_simple(call, o, "io.rwriter.ExpandPeers",
	    json_pack("{s:o}", "peers", call_text(word)), &answer);
	if (status == STATUS_DONE) {
		status = take(f, json_object_get(answer.parameters, "peers"));
		answer_done(&answer);
	}
	call_close(call);
	return status;
}

int
fleet_get(struct fleet *f, const struct options *o, const char *word)
{
	int status;

	*f = (struct fleet){.n = 0};
	if (word[0] == '@' || strchr(word, ',') != NULL)
		return ask(f, o, word);
	status = make(f, 1);
	return status == STATUS_DONE ? set_name(f, 0, word) : status;
}

void
fleet_done(struct fleet *f)
{
	for (size_t i = 0; i < f->n; i++)
		free(f->members[i].name);
	free(f->members);
}

char *
fleet_name(char buf[FLEET_NAME_MAX], const struct fleet *f)
{
	if (f->n == 1)
		snprintf(buf, FLEET_NAME_MAX, "%s", f->members[0].name);
	else
		snprintf(buf, FLEET_NAME_MAX, "%zu peers", f->n);
	return buf;
}

void
fleet_print_bad(const struct fleet *f, size_t files)
{
	const char *between = "failed: ";

	for (const struct member *m = f->members; f->n > 1 && m < f->members + f->n; m++) {
		if (m->bad == 0)
			continue;
		printf("%s%s", between, m->name);
		if (files > 1)
			printf(" (%zu of %zu files)", m->bad, files);
		between = ", ";
	}
	if (strcmp(between, ", ") == 0)
		putchar('\n');
}
