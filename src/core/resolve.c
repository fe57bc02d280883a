/* resolve.c -- a peer's host name and the addresses behind it */

#include "config.h"

#include <netdb.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "core/priv.h"
#include "core/resolve.h"

#define KEEP_NS  (60 * NSEC_PER_SEC)
#define RETRY_NS (2 * NSEC_PER_SEC)

static void
run(struct job *job)
{
	struct resolve_job *j = container_of(job, struct resolve_job, job);
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG}, *all, *it;
	char port[8];

	snprintf(port, sizeof(port), "%u", j->port);
	j->n = 0;
	j->error = getaddrinfo(j->host, port, &hints, &all);
	if (j->error != 0)
		return;
	for (it = all; it != NULL && j->n < RESOLVE_MAX; it = it->ai_next)
		memcpy(&j->found[j->n++], it->ai_addr, it->ai_addrlen);
	freeaddrinfo(all);
}

static void
start(void *arg)
{
	struct resolve *r = arg;

	if (r->running)
		return;
	r->running = true;
	memcpy(r->job.host, r->host, sizeof(r->job.host));
	r->job.port = r->port;
	work_submit(r->core->env.resolve, &r->job.job);
}

static void
take(struct resolve *r)
{
	memset(r->addresses, 0, sizeof(r->addresses));
	memcpy(r->addresses, r->job.found, r->job.n * sizeof(r->addresses[0]));
	r->n = r->job.n;
	r->at = loop_now();
}

static void
ended(struct job *job)
{
	struct resolve *r = container_of(job, struct resolve, job.job);
	bool same = strcmp(r->host, r->job.host) == 0 && r->port == r->job.port;
	int error = r->job.error;

	r->running = false;
	if (!same) { /* the configuration has changed meanwhile */
		start(r);
		return;
	}
	if (error == 0)
		take(r);
	if (r->keep)
		loop_timer_set(r->timer, error == 0 ? KEEP_NS : RETRY_NS);
	r->done(r, error == 0 ? NULL : gai_strerror(error));
}

int
resolve_init(struct resolve *r, struct core *core, void (*done)(struct resolve *, const char *))
{
	r->core = core;
	r->done = done;
	r->job.job = (struct job){.run = run, .done = ended};
	return loop_timer_new(core->env.loop, start, r, &r->timer);
}

void
resolve_done(struct resolve *r)
{
	r->timer = loop_timer_free(r->timer);
}

static bool
is_numeric(struct resolve *r)
{
	if (text_parse_address(r->host, r->port, &r->addresses[0]) < 0)
		return false;
	r->n = 1;
	return true;
}

void
resolve_set(struct resolve *r, const char *host, uint16_t port)
{
	if (strcmp(r->host, host) == 0 && r->port == port)
		return;
	snprintf(r->host, sizeof(r->host), "%s", host);
	r->port = port;
	r->n = 0;
	r->at = 0;
	is_numeric(r); /* then it is known at once */
}

void
resolve_keep(struct resolve *r, bool keep)
{
	r->keep = keep && !is_numeric(r);
	if (r->keep)
		resolve_ready(r);
	else
		loop_timer_clear(r->timer);
}

bool
resolve_ready(struct resolve *r)
{
	if (is_numeric(r) || (r->at != 0 && loop_now() - r->at < KEEP_NS))
		return true;
	start(r);
	return false;
}

bool
resolve_has(const struct resolve *r, const struct sockaddr *address)
{
	for (unsigned i = 0; i < r->n; i++)
		if (text_address_equal((const struct sockaddr *)&r->addresses[i], address))
			return true;
	return false;
}
