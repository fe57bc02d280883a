/* addresses.c -- the addresses of this machine: which are here, and word of those that come and go
 */

#include "config.h"

#include <errno.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#include "base/text.h"
#include "core/addresses.h"
#include "loop/loop.h"

struct addresses {
	addresses_fn *fn;
	void *arg;
	int fd;
	struct loop_io *io;
};

bool
addresses_has(const struct sockaddr *address)
{
	struct ifaddrs *all, *it;
	bool own = false;

	if (getifaddrs(&all) < 0)
		return false;
	for (it = all; it != NULL && !own; it = it->ifa_next)
		own = it->ifa_addr != NULL && text_address_equal(it->ifa_addr, address);
	freeifaddrs(all);
	return own;
}

/* ---- what the kernel tells ---- */

static void
tell(struct addresses *a, const struct ifaddrmsg *about, const void *bytes, size_t len, bool here)
{
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} address = {0};

	address.any.sa_family = about->ifa_family;
	if (about->ifa_family == AF_INET && len == sizeof(address.v4.sin_addr)) {
		memcpy(&address.v4.sin_addr, bytes, len);
	} else if (about->ifa_family == AF_INET6 && len == sizeof(address.v6.sin6_addr)) {
		memcpy(&address.v6.sin6_addr, bytes, len);
		if (IN6_IS_ADDR_LINKLOCAL(&address.v6.sin6_addr))
			address.v6.sin6_scope_id = about->ifa_index;
	} else {
		return;
	}
	a->fn(a->arg, &address.any, here);
}

/* On a point-to-point link IFA_ADDRESS is the other end's; where there is an IFA_LOCAL, it is ours.
 */
static void
take(struct addresses *a, struct nlmsghdr *message)
{
	const struct ifaddrmsg *about = NLMSG_DATA(message);
	const struct rtattr *ours = NULL;
	int left = (int)IFA_PAYLOAD(message);

	for (struct rtattr *r = IFA_RTA(about); RTA_OK(r, left); r = RTA_NEXT(r, left))
		if (r->rta_type == IFA_LOCAL || (r->rta_type == IFA_ADDRESS && ours == NULL))
			ours = r;
	if (ours != NULL)
		tell(a, about, RTA_DATA(ours), RTA_PAYLOAD(ours),
		    message->nlmsg_type == RTM_NEWADDR);
}

static void
on_news(void *arg, unsigned events)
{
	struct addresses *a = arg;
	_Alignas(struct nlmsghdr) char buf[8192];
	ssize_t n;

	(void)events;
	while ((n = recv(a->fd, buf, sizeof(buf), MSG_DONTWAIT)) > 0) {
		size_t left = (size_t)n;

		for (struct nlmsghdr *m = (struct nlmsghdr *)buf; NLMSG_OK(m, left);
		     m = NLMSG_NEXT(m, left))
			if (m->nlmsg_type == RTM_NEWADDR || m->nlmsg_type == RTM_DELADDR)
				take(a, m);
	}
	if (n < 0 && errno == ENOBUFS)
		a->fn(a->arg, NULL, true);
}

/* ---- life ---- */

int
addresses_new(struct loop *loop, addresses_fn *fn, void *arg, struct addresses **ret)
{
	struct sockaddr_nl groups = {
	    .nl_family = AF_NETLINK, .nl_groups = RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR};
	struct addresses *a = calloc(1, sizeof(*a));
	int r = 0;

	if (a == NULL)
		return -ENOMEM;
	a->fn = fn;
	a->arg = arg;
	a->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	if (a->fd < 0 || bind(a->fd, (struct sockaddr *)&groups, sizeof(groups)) < 0)
		r = -errno;
	if (r == 0)
		r = loop_io_new(loop, a->fd, LOOP_READ, on_news, a, &a->io);
	if (r < 0) {
		addresses_free(a);
		return r;
	}
	*ret = a;
	return 0;
}

struct addresses *
addresses_free(struct addresses *a)
{
	if (a == NULL)
		return NULL;
	loop_io_free(a->io);
	if (a->fd >= 0)
		close(a->fd);
	free(a);
	return NULL;
}
