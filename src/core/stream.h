/* stream.h -- an input that can be read only once, and the last of it that is kept
 *
 * What was received stays here until it may be forgotten and its room is needed, so that a transfer
 * which has lost its connection can be sent again from there: at most STREAM_KEEP bytes. A stream
 * whose kept bytes may not be forgotten is not read on.
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STREAM_KEEP (UINT64_C(8) << 20)

struct loop;
struct stream;

/* fd: a stream socket, borrowed. ready: what was awaited is there, or the stream is over. 0 or a
 * negative errno. */
int stream_new(struct loop *loop, int fd, void (*ready)(void *arg), void *arg, struct stream **ret);
/* Accepts NULL, returns NULL. */
struct stream *stream_free(struct stream *stream);

/* Waits until the bytes before `end` (at most STREAM_KEEP behind what may be forgotten) are there,
 * or the stream is over: ready() follows, perhaps at once. A later call takes the place of an
 * earlier one. */
void stream_await(struct stream *stream, uint64_t end);
void stream_await_nothing(struct stream *stream);
/* The bytes before `offset` may be forgotten. */
void stream_forget(struct stream *stream, uint64_t offset);

/* What is kept: from start up to end. */
uint64_t stream_start(const struct stream *stream);
uint64_t stream_end(const struct stream *stream);
/* Nothing comes behind end: 1, or -EPIPE (it was cut off) or what the system said; else 0. */
int stream_over(const struct stream *stream);
/* Kept bytes. May be called on any thread, if they are not forgotten meanwhile. */
void stream_copy(const struct stream *stream, uint64_t offset, void *buf, size_t len);
/* CRC32C of the first bytes of the stream, up to a kept place; false: it is not kept. */
bool stream_crc(const struct stream *stream, uint64_t offset, uint32_t *ret);
