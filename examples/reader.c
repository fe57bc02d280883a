/* reader.c -- every arrival in a region of rwriterd, as it comes: rwriter-region(7)
 *
 *     cc -O2 -o reader reader.c
 *     ./reader SOCKET ID|PEER [COUNT]
 *
 * Asks the control socket once for the region's memory. From then on there is no call: the label
 * in the memory says what has arrived. The bytes go to standard output, a line about each arrival
 * to standard error; the end is after COUNT of them, or when nothing more can arrive.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <rwriter/region.h>

/* A Varlink call; the descriptor comes with the first byte of the answer, unless that is an error.
 */
static int
open_region(const char *path, const char *which)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	char call[512], answer[65536], control[CMSG_SPACE(sizeof(int))];
	struct iovec iov = {answer, sizeof(answer) - 1};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control};
	struct cmsghdr *header;
	int fd = -1, s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int length = snprintf(call, sizeof(call),
	    "{\"method\":\"io.rwriter.OpenRegion\",\"parameters\":{\"which\":\"%s\"}}", which);
	ssize_t n;

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	msg.msg_controllen = sizeof(control);
	if (connect(s, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    write(s, call, length + 1) < 0 || (n = recvmsg(s, &msg, MSG_CMSG_CLOEXEC)) <= 0) {
		perror(path);
		exit(1);
	}
	header = CMSG_FIRSTHDR(&msg);
	if (header != NULL && header->cmsg_type == SCM_RIGHTS)
		memcpy(&fd, CMSG_DATA(header), sizeof(fd));
	else
		fprintf(stderr, "%.*s\n", (int)n, answer);
	close(s); /* the rest of the answer is for those who want to know more */
	return fd;
}

static uint32_t
crc32c(const unsigned char *bytes, size_t length)
{
	static uint32_t table[256];
	uint32_t crc = 0xffffffff;

	for (uint32_t i = 0; i < 256 && table[255] == 0; i++) {
		table[i] = i;
		for (int bit = 0; bit < 8; bit++)
			table[i] = table[i] >> 1 ^ (table[i] & 1 ? 0x82f63b78 : 0);
	}
	while (length-- > 0)
		crc = crc >> 8 ^ table[(crc ^ *bytes++) & 0xff];
	return ~crc;
}

int
main(int argc, char **argv)
{
	int fd = argc >= 3 ? open_region(argv[1], argv[2]) : -1;
	long count = argc >= 4 ? atol(argv[3]) : -1;
	const struct rwriter_label *label;
	struct rwriter_label now;
	uint64_t seen = 0;
	unsigned char *copy;
	const char *memory;
	struct stat st;
	int again = 0;

	if (fd < 0 || fstat(fd, &st) < 0)
		return 1;
	memory = mmap(NULL, st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	copy = malloc(st.st_size);
	if (memory == MAP_FAILED || copy == NULL)
		return 1;
	label = rwriter_label_find(memory, st.st_size);
	while (label != NULL && count != 0) {
		int ended = rwriter_label_ended(label);

		if (!rwriter_label_read(label, &now) || now.generation == seen) {
			if (ended)
				break;
			nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
			continue;
		}
		memcpy(copy, memory + now.offset, now.length);
		if (rwriter_label_overwritten(label, &now) ||
		    crc32c(copy, now.length) != now.crc32c) {
			again++; /* the next arrival is on its way */
			if (ended)
				break;
			continue;
		}
		if (fwrite(copy, 1, now.length, stdout) != now.length || fflush(stdout) != 0)
			return 1;
		fprintf(stderr, "%" PRIu64 ": %s, %" PRIu64 " bytes, crc32c %08x, tried again %d\n",
		    now.generation / 2, now.name, now.length, now.crc32c, again);
		seen = now.generation;
		again = 0;
		count -= count > 0;
	}
	free(copy);
	return label == NULL;
}
