/* fuzz_private.c -- RWP's private data: request, reply, reject
 *
 * Input: 0 request, 1 reply or 2 reject | what came, padding included
 */

#include "config.h"

#include <errno.h>
#include <string.h>

#include "fuzz/fuzz.h"
#include "wire/rwp.h"

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	return 0;
}

/* What was understood can be said again in the same bytes, but for the length: we know a longer
 * struct no more than a peer of our own version does. */
static void
check_same(uint8_t *again, const uint8_t *data, size_t size)
{
	again[offsetof(struct rwp_request, length)] = data[offsetof(struct rwp_request, length)];
	CHECK(memcmp(again, data, size) == 0);
}

static int
request(const uint8_t *data, size_t size)
{
	struct rwp_request request;
	uint8_t again[sizeof(request)];
	int r = rwp_request_decode(data, size, &request);

	if (r < 0)
		return r;
	rwp_request_encode(&request, again);
	check_same(again, data, sizeof(again));
	return 0;
}

static int
reply(const uint8_t *data, size_t size)
{
	struct rwp_reply reply;
	uint8_t again[sizeof(reply)];
	int r = rwp_reply_decode(data, size, &reply);

	if (r < 0)
		return r;
	rwp_reply_encode(&reply, again);
	check_same(again, data, sizeof(again));
	return 0;
}

/* Of a reject the text counts only as far as it goes. */
static int
reject(const uint8_t *data, size_t size)
{
	struct rwp_reject reject;
	uint8_t again[sizeof(reject)];
	int r = rwp_reject_decode(data, size, &reject);

	if (r < 0)
		return r;
	CHECK(reject.text_len <= sizeof(reject.text));
	rwp_reject_encode(&reject, again);
	check_same(again, data, offsetof(struct rwp_reject, text) + reject.text_len);
	return 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int (*const DECODERS[])(const uint8_t *, size_t) = {request, reply, reject};
	int r = DECODERS[fuzz_take_byte(&data, &size) % 3](data, size);

	CHECK(r == 0 || r == -EBADMSG || r == -EPROTONOSUPPORT);
	return 0;
}
