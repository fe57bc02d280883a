/* slices.c -- long work as jobs of a few MiB each */

#include "config.h"

#include <stdbool.h>

#include "loop/slices.h"

static void
run_slice(struct job *job)
{
	struct slice *slice = container_of(job, struct slice, job);

	slice->error = slice->slices->run(slice->slices, slice->at, slice->len);
}

static void done_slice(struct job *job);

/* False: there is nothing left to begin. */
static bool
begin_slice(struct slice *slice)
{
	struct slices *s = slice->slices;
	size_t left = s->end - s->next;

	if (left == 0)
		return false;
	slice->at = s->next;
	slice->len = left < SLICE_SIZE ? left : SLICE_SIZE;
	s->next += slice->len;
	s->under_way++;
	slice->job = (struct job){.run = run_slice, .done = done_slice};
	work_submit(s->work, &slice->job);
	return true;
}

static void
done_slice(struct job *job)
{
	struct slice *slice = container_of(job, struct slice, job);
	struct slices *s = slice->slices;

	s->under_way--;
	if (slice->error < 0) {
		if (s->error == 0)
			s->error = slice->error;
		slices_cut(s);
	}
	if (!begin_slice(slice) && s->under_way == 0)
		s->over(s, s->error);
}

void
slices_start(struct slices *s, struct work *work, size_t from, size_t end, unsigned abreast)
{
	s->work = work;
	s->next = from;
	s->end = end;
	s->under_way = 0;
	s->error = 0;
	for (unsigned i = 0; i < abreast; i++) {
		s->each[i].slices = s;
		if (!begin_slice(&s->each[i]))
			break;
	}
}

void
slices_cut(struct slices *s)
{
	s->next = s->end;
}
