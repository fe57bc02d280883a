/* iwarp.c -- the fabric over TCP, without any device: operations, opening and closing, socket
 * options */

#include "config.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/iwarp.h"

#define PROBES 3 /* of a silent peer before it counts as dead */

static const struct fabric_options DEFAULTS = FABRIC_OPTIONS_DEFAULTS;

void
iwarp_emit(struct iwarp *w, const struct fabric_event *event)
{
	w->base.env.event(w->base.env.arg, event);
}

void
iwarp_defer(struct iwarp *w, struct loop_task *task)
{
	loop_defer(w->base.env.loop, task);
}

void
iwarp_bury(struct iwarp *w, struct loop_task *task)
{
	loop_bury(w->base.env.loop, task);
}

socklen_t
iwarp_address_size(const struct sockaddr *sa)
{
	return sa->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

/* All of these are wishes: a kernel that knows one of them not is none to fail on. */
static void
set_tcp(int fd, int option, int value)
{
	(void)setsockopt(fd, IPPROTO_TCP, option, &value, sizeof(value));
}

/* A peer that answers nothing for dead_ms is dead, whether we are silent (probes) or not (user
 * timeout). */
void
iwarp_tune(const struct iwarp *w, int fd)
{
	int one = 1, dead_ms = (int)w->options.dead_ms;
	int period = dead_ms / 1000 / (PROBES + 1) > 0 ? dead_ms / 1000 / (PROBES + 1) : 1;

	set_tcp(fd, TCP_NODELAY, 1);
	set_tcp(fd, TCP_USER_TIMEOUT, dead_ms);
	set_tcp(fd, TCP_KEEPIDLE, period);
	set_tcp(fd, TCP_KEEPINTVL, period);
	set_tcp(fd, TCP_KEEPCNT, PROBES);
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
}

/* There is nobody to share a wire with. Where the kernel paces what it sends (bbr), that would
 * halve the speed; reno does not, and is in every kernel. */
void
iwarp_tune_local(int fd)
{
	(void)setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", strlen("reno"));
}

static void
iwarp_close(struct fabric *f)
{
	struct iwarp *w = (struct iwarp *)f;

	if (w == NULL)
		return;
	assert(list_empty(&w->ports) && list_empty(&w->greeting) && w->n_conns == 0);
	farewell_end_all(w);
	stag_table_free(w->stags);
	free(w->buffer);
	free(w);
}

static int
iwarp_open(const struct fabric_env *env, struct fabric **ret, const char **detail)
{
	struct iwarp *w = calloc(1, sizeof(*w));

	*detail = "no memory";
	if (w == NULL)
		return -ENOMEM;
	w->base = (struct fabric){.ops = &fabric_iwarp, .env = *env};
	w->options = env->options != NULL ? *env->options : DEFAULTS;
	list_init(&w->ports);
	list_init(&w->greeting);
	list_init(&w->farewells);
	w->buffer = calloc(1, IWARP_BUFFER);
	if (w->buffer == NULL || stag_table_new(&w->stags) < 0) {
		iwarp_close(&w->base);
		return -ENOMEM;
	}
	*ret = &w->base;
	return 0;
}

const struct fabric_ops fabric_iwarp = {
    .name = "iwarp",
    .open = iwarp_open,
    .close = iwarp_close,
    .listen = iwarp_listen,
    .unlisten = iwarp_unlisten,
    .connect = iwarp_connect,
    .request = iwarp_request,
    .accept = iwarp_accept,
    .reject = iwarp_reject,
    .mem_add = iwarp_mem_add,
    .mem_drop = iwarp_mem_drop,
    .placed_crc = iwarp_placed_crc,
    .write = iwarp_write,
    .stop = iwarp_stop,
    .conn_free = iwarp_conn_free,
    .describe = iwarp_describe,
};
