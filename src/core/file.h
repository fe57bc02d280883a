/* file.h -- regular files that are sent, each read once for all transfers that are abreast
 *
 * Transfers of one user that send the same file, unchanged, share it. While there are several, what
 * one of them reads is kept for the others for a while, in segments: those that come to the same
 * place copy it, with its checksum, and those that are there at the same time wait for it. What
 * nobody shares is read right into its place. All of this on the loop but the reading and copying,
 * which are jobs.
 */

#pragma once

#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

struct file;
struct files; /* all that are being sent */
struct share;
struct source_read;

int files_new(struct share *share, struct files **ret); /* 0 or -ENOMEM */
/* No file is held any more. Accepts NULL, returns NULL. */
struct files *files_free(struct files *files);
/* Bytes that are kept for others now; at most LIMIT_SHARED. */
uint64_t files_kept(const struct files *files);

/* A hold on the file that fd is open on, which stays the caller's; st: what it is like now. uid has
 * joined the share for as long. 0; -EBADF: fd is not open for reading; -ENOMEM, or what the system
 * said. */
int file_hold(struct files *files, uid_t uid, int fd, const struct stat *st, struct file **ret);
/* Every read begun under the hold is done. Accepts NULL, returns NULL. */
struct file *file_release(struct file *file);

/* As it was when the first of its transfers began. */
const struct stat *file_stat(const struct file *file);

/* read->job is submitted, at once or when another has read these bytes; its done() calls
 * file_read_done() first. */
void file_read(struct file *file, struct source_read *read);
void file_read_done(struct file *file, struct source_read *read);
