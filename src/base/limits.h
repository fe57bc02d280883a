/* limits.h -- every number that a stranger (a peer, a local client) can influence, in one place */

#pragma once

/* Names and texts, in bytes without the terminating NUL (protocol rule 1). */
#define LIMIT_NAME      64  /* daemon, peer, region and listen names */
#define LIMIT_FILE_NAME 255 /* the name of a file that travels */
#define LIMIT_PATH      512 /* the path of a stored file: directory and name */
#define LIMIT_REASON    112 /* the text of a rejected connection */
#define LIMIT_TEXT      512 /* texts in DENY, NOTICE and RESULT */

/* Connections (defaults and ceilings of [limits] are in conf/option.c). */
#define LIMIT_LISTEN_BACKLOG   128 /* connection requests not read yet; neither 0 nor 1: iWARP */
#define LIMIT_RECORDS_PER_POLL 32  /* records taken from one connection before others get a turn */
#define LIMIT_HALF_OPEN        64  /* iwarp: TCP connections that have not said what they want */
#define LIMIT_FAREWELLS        256 /* iwarp: sockets whose end the peer has not confirmed */
#define LIMIT_SUSPECTS         256 /* addresses that were refused lately and are remembered */
#define LIMIT_HELD_REJECTS     64  /* rejects held back; more leave at once */
#define LIMIT_PEER_CONNECTIONS 32  /* that we open to one peer; more transfers wait */

/* Payload. */
#define LIMIT_SEGMENT         (UINT64_C(1) << 20) /* bytes of one DATA */
#define LIMIT_WRITE           (UINT64_C(1) << 30) /* bytes of one work request, device permitting */
#define LIMIT_PIPELINE        64 /* transfers that await their results on a connection */
#define LIMIT_STAGING_CHUNKS  8  /* segments read ahead per connection */
#define LIMIT_SHARED_SEGMENTS 16 /* of a file, kept for other transfers that send it */
#define LIMIT_SHARED          (UINT64_C(32) << 20) /* bytes of them, of all files */
#define LIMIT_INLINE_VERIFY   (UINT64_C(64) << 10) /* bytes fetched to be checksummed on the loop */

/* Storing. */
#define LIMIT_FINISHED        1024                 /* files whose results are remembered */
#define LIMIT_CHECKPOINT      (UINT64_C(64) << 20) /* bytes that may be lost to a crash ... */
#define LIMIT_CHECKPOINT_TIME 2                    /* ... and seconds, unless the disk is slower */

/* Flight recorder. */
#define LIMIT_FLIGHTS 256 /* transfers, and arrivals, whose course is kept when they have ended */

/* Control socket. */
#define LIMIT_CONTROL_CLIENTS         256
#define LIMIT_CONTROL_CLIENTS_PER_UID 64
#define LIMIT_CONTROL_MESSAGE         (64U << 10) /* bytes of one request */
#define LIMIT_CONTROL_OUTPUT          (16U << 20) /* unsent reply bytes before a client is dropped */
#define LIMIT_CONTROL_DEPTH           16          /* nesting of JSON */
#define LIMIT_HOOKS                   256         /* arrivals whose program waits for its turn */
#define LIMIT_TRANSFERS               256         /* rwctl writes queued or running at once */
#define LIMIT_FLEET                   1024        /* peers that one word names */
#define LIMIT_BATCH                   128         /* files, so descriptors, of one call */
#define LIMIT_EVENTS                  512         /* kept for those who read them */
#define LIMIT_BATCH_RUNNING           16          /* of them at once to one peer */
