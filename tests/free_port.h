/* free_port.h -- a TCP port that nobody uses, so that tests may run side by side */

#pragma once

#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

/* Puts it into the address, in network order. */
static inline void
choose_free_port(struct sockaddr_storage *address)
{
	uint16_t *port = address->ss_family == AF_INET6
			     ? &((struct sockaddr_in6 *)address)->sin6_port
			     : &((struct sockaddr_in *)address)->sin_port;
	int fd = socket(address->ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_storage bound = *address;
	socklen_t size = sizeof(bound);

	*port = 0;
	if (fd < 0 || bind(fd, (const void *)address, sizeof(*address)) < 0 ||
	    getsockname(fd, (void *)&bound, &size) < 0)
		abort();
	*port = bound.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&bound)->sin6_port
					    : ((struct sockaddr_in *)&bound)->sin_port;
	close(fd);
}
