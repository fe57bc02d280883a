/* page.h -- whole pages */

#pragma once

#include <stdint.h>
#include <unistd.h>

/* size in whole pages of this machine, at least one. */
static inline uint64_t
page_round(uint64_t size)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	return size == 0 ? page : (size + page - 1) / page * page;
}
