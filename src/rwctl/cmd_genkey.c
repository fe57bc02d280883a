/* cmd_genkey.c -- rwctl genkey: a key for two peers, printed or into a new file */

#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/random.h"
#include "rwctl/call.h"

#define KEY_SIZE 32
#define TEXT_LEN (BASE64_SIZE(KEY_SIZE) - 1)

static void
make_key(char text[TEXT_LEN + 1])
{
	uint8_t key[KEY_SIZE];

	random_bytes(key, sizeof(key));
	base64_encode(text, key, sizeof(key));
	explicit_bzero(key, sizeof(key));
}

static int
print_key(const struct options *o, const char *text)
{
	printf(o->json ? "{\"key\": \"%s\"}\n" : "%s\n", text);
	return STATUS_DONE;
}

/* Others cannot read it at any moment; and a file that is there stays, since the peer has that key
 * too. */
static int
write_key(const struct options *o, const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	bool written;

	if (fd < 0) {
		complain("%s: %s", path, strerror(errno));
		return STATUS_FAILED;
	}
	written = dprintf(fd, "%s\n", text) == TEXT_LEN + 1;
	if (close(fd) < 0 || !written) {
		complain("%s: %s", path, strerror(errno));
		unlink(path);
		return STATUS_FAILED;
	}
	if (o->json)
		puts("{}");
	return STATUS_DONE;
}

int
cmd_genkey(const struct options *o, char **args)
{
	char text[TEXT_LEN + 1];
	int r;

	make_key(text);
	r = args[0] != NULL ? write_key(o, args[0], text) : print_key(o, text);
	explicit_bzero(text, sizeof(text));
	return r;
}
