/* message.h -- the blobs as structs: hello, grant, deny, begin
 *
 * Decoders skip TLVs that they do not know, but return -EPROTONOSUPPORT for one that must be
 * understood, and -EBADMSG for everything malformed: header, lengths, padding, a TLV twice, a
 * required one missing, text that is too long or not clean. They touch *ret only on 0. What the
 * numbers mean is the caller's to judge.
 */

#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/limits.h"

enum rwp_sink { RWP_SINK_MEMORY = 1, RWP_SINK_SPOOL = 2, RWP_SINK_DISCARD = 3 };

struct rwp_hello {
	char writer[LIMIT_NAME + 1], target[LIMIT_NAME + 1], region[LIMIT_NAME + 1];
	uint64_t size, offered, required;
	uint8_t boot_id[8];
	uint32_t generation;
};

struct rwp_grant {
	uint64_t address, size, in_flight, chosen;
	uint32_t rkey, generation, sink, segment, beat_ms, dead_ms, region_id;
	uint32_t buffers; /* 0 as 1 */
	char host[LIMIT_NAME + 1];
};

struct rwp_deny { /* DENY, NOTICE, and RESULT of a transfer that failed */
	uint32_t code, retry_ms;
	uint64_t size, limit;
	char host[LIMIT_NAME + 1], text[LIMIT_TEXT + 1], fix[LIMIT_TEXT + 1];
};

struct rwp_begin { /* BEGIN and ONE; a ONE's CHECK is made and verified by the codec */
	char name[LIMIT_FILE_NAME + 1];
	uint64_t length;  /* UINT64_MAX: not known */
	uint32_t mode;    /* permission bits wanted; 0: as the target likes */
	int64_t mtime_ns; /* modification time wanted; 0: none */
	uint8_t id[16];   /* zeros: cannot be resumed */
};

/* Encoders return the blob's length or -EMSGSIZE; kind is the record type. An optional field that
 * is zero or empty is not sent; one that did not come is zero or empty. */
int rwp_hello_encode(const struct rwp_hello *h, uint64_t seq, void *buf, size_t size);
int rwp_hello_decode(const void *blob, size_t len, uint64_t seq, struct rwp_hello *ret);
int rwp_grant_encode(const struct rwp_grant *g, uint64_t seq, void *buf, size_t size);
int rwp_grant_decode(const void *blob, size_t len, uint64_t seq, struct rwp_grant *ret);
int rwp_deny_encode(const struct rwp_deny *d, unsigned kind, uint64_t seq, void *buf, size_t size);
int rwp_deny_decode(
    const void *blob, size_t len, unsigned kind, uint64_t seq, struct rwp_deny *ret);
int rwp_begin_encode(
    const struct rwp_begin *b, unsigned kind, uint64_t seq, void *buf, size_t size);
int rwp_begin_decode(
    const void *blob, size_t len, unsigned kind, uint64_t seq, struct rwp_begin *ret);
