/* device_files.h -- the files of this machine's RDMA devices: word of those that come and go
 *
 * A device can be used through its file alone, and the connection manager has one beside them. All
 * are in one directory, which need not be there: it comes with the first file.
 */

#pragma once

#include <stdbool.h>

#define DEVICE_FILES "/dev/infiniband"

struct device_files;
struct loop;

/* Some file has come (or the directory, with files in it); else one has gone. */
typedef void device_files_fn(void *arg, bool come);

/* dir: DEVICE_FILES, its parent must exist; borrowed. 0 or a negative errno. Free accepts NULL and
 * returns NULL; fn may not call it. */
int device_files_watch(
    struct loop *loop, const char *dir, device_files_fn *fn, void *arg, struct device_files **ret);
struct device_files *device_files_free(struct device_files *files);

/* Calls fn now for what has happened by now. Accepts NULL. */
void device_files_poll(struct device_files *files);
