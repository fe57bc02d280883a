/* input.h -- what is written: a regular file, or anything else through a pump */

#pragma once

struct pump;

struct input {
	int fd; /* the file, or what the pump reads */
	const char *name;
	struct pump *pump; /* NULL: fd itself travels */
	int far_end;       /* of the pump, travels; -1 once it has */
};

/* file: "-" for standard input. name: that it gets, or NULL for its own. STATUS_DONE, or the status
 * when it has been said what is wrong; input_close() in both cases. */
int input_open(struct input *in, const char *file, const char *name);
void input_close(struct input *in);

/* A file that the daemon can read by itself: its descriptor, or a negative errno (-EINVAL: it is of
 * another kind). */
int input_open_regular(const char *file);
/* The last component. */
const char *input_base_name(const char *path);
