/* socket.h -- the control socket's place in the file system */

#pragma once

/* Listens on path: a stale socket is replaced, a missing directory named "rwriter" is made. Mode
 * 0660 and group rwriter where that group exists and we may give it, else 0600. 0, or a negative
 * errno that has been logged with what to do about it. */
int control_socket_listen(const char *path, int *ret_fd);
