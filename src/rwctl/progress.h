/* progress.h -- one line on a terminal that is drawn over and over */

#pragma once

#include <jansson.h>

struct progress;

/* NULL when standard error is no terminal: all functions accept that and do nothing. */
struct progress *progress_new(void);
/* transfer: as the daemon reports it. */
void progress_draw(struct progress *p, const json_t *transfer);
/* Erases the line. Returns NULL. */
struct progress *progress_free(struct progress *p);
