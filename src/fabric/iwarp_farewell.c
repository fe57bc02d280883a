/* iwarp_farewell.c -- closing a socket so that the last words arrive
 *
 * close() on a socket with unread bytes makes TCP reset the connection, and a reset may overtake
 * what was sent before it: a Terminate, a reject, the last write. So: send, end our stream, throw
 * away what still comes, and close when the peer has ended its stream.
 */

#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fabric/iwarp.h"

#define PATIENCE (2 * NSEC_PER_SEC)
#define GULP     ((size_t)1 << 20) /* thrown away in one turn */

struct farewell {
	struct list node; /* in iwarp.farewells */
	int fd;
	struct loop_io *io;
	struct loop_timer *timer;
	uint8_t *words;
	size_t len, said;
};

static struct farewell *
farewell_free(struct farewell *f)
{
	list_del(&f->node);
	loop_io_free(f->io);
	loop_timer_free(f->timer);
	close(f->fd);
	free(f->words);
	free(f);
	return NULL;
}

/* False: there is nobody to talk to any more. */
static bool
talk(struct farewell *f)
{
	ssize_t n = f->len - f->said > 0
			? send(f->fd, f->words + f->said, f->len - f->said, MSG_NOSIGNAL)
			: 0;

	if (n < 0 && errno != EAGAIN && errno != EINTR)
		return false;
	f->said += n > 0 ? (size_t)n : 0;
	if (f->said < f->len)
		return true;
	loop_io_set(f->io, LOOP_READ);
	return shutdown(f->fd, SHUT_WR) == 0;
}

/* MSG_TRUNC: TCP throws away instead of copying. */
static bool
ignore(struct farewell *f)
{
	ssize_t n = recv(f->fd, NULL, GULP, MSG_TRUNC);

	return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

static void
on_io(void *arg, unsigned events)
{
	struct farewell *f = arg;
	bool alive = true;

	if (events & LOOP_READ)
		alive = ignore(f);
	if (alive && events & LOOP_WRITE)
		alive = talk(f);
	if (!alive)
		farewell_free(f);
}

static void
on_timer(void *arg)
{
	farewell_free(arg);
}

void
farewell_begin(struct iwarp *w, int fd, uint8_t *words, size_t len)
{
	struct farewell *f = calloc(1, sizeof(*f));

	if (f == NULL) {
		close(fd);
		free(words);
		return;
	}
	*f = (struct farewell){.fd = fd, .words = words, .len = len};
	if (list_length(&w->farewells) >= LIMIT_FAREWELLS)
		farewell_free(list_first(&w->farewells, struct farewell, node));
	list_add_tail(&w->farewells, &f->node);
	if (loop_timer_new(w->base.env.loop, on_timer, f, &f->timer) < 0 ||
	    loop_io_new(w->base.env.loop, fd, LOOP_READ | LOOP_WRITE, on_io, f, &f->io) < 0) {
		farewell_free(f);
		return;
	}
	loop_timer_set(f->timer, PATIENCE);
	if (!talk(f))
		farewell_free(f);
}

void
farewell_end_all(struct iwarp *w)
{
	while (!list_empty(&w->farewells))
		farewell_free(list_first(&w->farewells, struct farewell, node));
}
