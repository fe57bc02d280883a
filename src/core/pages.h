/* pages.h -- a file of memory: zeroed, reserved, mapped for writing and sealed, of huge pages if
 * they can be had
 *
 *   pages_open > pages_reserve ... > pages_seal > pages_drop
 *
 * First those that the administrator has set aside (vm.nr_hugepages), then transparent ones, which
 * the kernel puts together as far as it finds memory in one piece. All of it takes long, but for
 * sealing: it belongs in jobs.
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pages {
	uint8_t *addr;
	size_t size; /* whole pages, of whichever size they are */
	int fd;
	size_t huge;   /* of a transparent huge page; 0: none fits */
	bool reserved; /* all of it */
};

/* At least size bytes, mapped. 0, or what the system said: -ENOMEM, -EMFILE, ... */
int pages_open(size_t size, struct pages *ret);
/* len bytes at at have their memory from now on, so that using them cannot fail. at: a multiple of
 * huge, unless len is less than one. On several threads at once, for different bytes. */
int pages_reserve(const struct pages *p, size_t at, size_t len);
/* Nobody can map it for writing any more, or change its size; the mapping stays. */
int pages_seal(const struct pages *p);
/* Accepts what pages_open() did not make, with fd -1. A descriptor that has been given out keeps
 * them. */
void pages_drop(struct pages *p);
