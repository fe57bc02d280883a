/* progress.h -- a line on a terminal that is drawn over and over, or one for each of several peers
 */

#pragma once

#include <jansson.h>
#include <stddef.h>

struct progress;

/* NULL when standard error is no terminal: all functions accept that and do nothing. */
struct progress *progress_new(size_t peers);
/* transfer: as the daemon reports it, to the peer of this number. */
void progress_draw(struct progress *p, size_t peer, const json_t *transfer);
/* Of several files: so many are done. */
void progress_count(struct progress *p, size_t done, size_t files);
/* Erases all lines, for something else to be printed. */
void progress_clear(struct progress *p);
/* The same, for good. Returns NULL. */
struct progress *progress_free(struct progress *p);
