/* suspects.c -- addresses that were refused lately */

#include "config.h"

#include <netinet/in.h>
#include <string.h>

#include "base/text.h"
#include "core/suspects.h"
#include "loop/loop.h"

#define FORGET_NS    (600 * NSEC_PER_SEC)
#define LOG_EVERY_NS (60 * NSEC_PER_SEC)
#define FREE_TRIES   3
#define FIRST_WAIT   (100 * NSEC_PER_MSEC)
#define MOST_WAIT    (5 * NSEC_PER_SEC)

static void
copy_address(struct sockaddr_storage *to, const struct sockaddr *from)
{
	memset(to, 0, sizeof(*to));
	memcpy(to, from,
	    from->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in));
}

static bool
is_of(const struct suspect *suspect, const struct sockaddr *address)
{
	const struct sockaddr *own = (const struct sockaddr *)&suspect->address;

	if (own->sa_family != address->sa_family)
		return false;
	return text_address_match(address, own, own->sa_family == AF_INET6 ? 64 : 32);
}

struct suspect *
suspects_find(struct suspects *s, const struct sockaddr *address, uint64_t now)
{
	struct suspect *oldest = &s->all[0];

	for (struct suspect *it = s->all; it < s->all + LIMIT_SUSPECTS; it++) {
		if (is_of(it, address)) {
			oldest = it;
			break;
		}
		if (it->refused_at < oldest->refused_at)
			oldest = it;
	}
	if (!is_of(oldest, address) || now - oldest->refused_at > FORGET_NS) {
		memset(oldest, 0, sizeof(*oldest));
		copy_address(&oldest->address, address);
	}
	oldest->refused_at = now;
	return oldest;
}

uint64_t
suspect_failed(struct suspect *suspect)
{
	uint64_t wait = FIRST_WAIT;

	if (++suspect->failures <= FREE_TRIES)
		return 0;
	for (unsigned i = FREE_TRIES + 1; i < suspect->failures && wait < MOST_WAIT; i++)
		wait *= 2;
	return wait < MOST_WAIT ? wait : MOST_WAIT;
}

bool
suspect_may_log(struct suspect *suspect, uint64_t now, unsigned *ret_unlogged)
{
	if (suspect->logged_at != 0 && now - suspect->logged_at < LOG_EVERY_NS) {
		suspect->unlogged++;
		return false;
	}
	*ret_unlogged = suspect->unlogged;
	suspect->unlogged = 0;
	suspect->logged_at = now;
	return true;
}
