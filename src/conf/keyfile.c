/* keyfile.c -- the file that holds a peer's key */

#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base64.h"
#include "conf/keyfile.h"

#define TEXT_LEN (BASE64_SIZE(CONF_KEY_SIZE) - 1)

static int
check_file(int fd, char *why, size_t size)
{
	struct stat st;
	uid_t uid = geteuid();

	if (fstat(fd, &st) < 0)
		snprintf(why, size, "cannot be looked at: %s", strerror(errno));
	else if (!S_ISREG(st.st_mode))
		snprintf(why, size, "is no regular file");
	else if (st.st_mode & (S_IRWXG | S_IRWXO))
		snprintf(why, size, "has mode %04o: others may get at the key; chmod 0600",
		    st.st_mode & 07777);
	else if (st.st_uid != 0 && st.st_uid != uid && uid != 0)
		snprintf(why, size,
		    "belongs to user %u, neither to root nor to user %u, which runs "
		    "this; chown it",
		    st.st_uid, uid);
	else
		return 0;
	return -EINVAL;
}

static int
read_key(int fd, uint8_t key[CONF_KEY_SIZE], char *why, size_t size)
{
	char text[TEXT_LEN + 2]; /* a newline, and a byte too many */
	ssize_t len = read(fd, text, sizeof(text));
	int r = -EINVAL;

	if (len < 0) {
		snprintf(why, size, "cannot be read: %s", strerror(errno));
		return -EINVAL;
	}
	if (len == TEXT_LEN || (len == TEXT_LEN + 1 && text[TEXT_LEN] == '\n'))
		r = base64_decode(text, TEXT_LEN, key, CONF_KEY_SIZE);
	if (r < 0)
		snprintf(why, size,
		    "holds no key, which is %d bytes as base64 on one line; make one with rwctl "
		    "genkey",
		    CONF_KEY_SIZE);
	explicit_bzero(text, sizeof(text));
	return r;
}

int
keyfile_read(const char *path, uint8_t key[CONF_KEY_SIZE], char *why, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), r;

	if (fd < 0) {
		snprintf(why, size, "cannot be opened: %s", strerror(errno));
		return -EINVAL;
	}
	r = check_file(fd, why, size);
	if (r == 0)
		r = read_key(fd, key, why, size);
	close(fd);
	return r;
}
