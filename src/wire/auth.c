/* auth.c -- keys, transcripts and MACs, by libcrypto */

#include "config.h"

#include <errno.h>
#include <string.h>

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#include "wire/auth.h"

#define HASH_SIZE 32 /* of SHA-256 */

/* What is hashed: one after the other, as one run of bytes. */
struct part {
	const void *bytes;
	size_t len;
};

#define TEXT(s) ((struct part){s, sizeof(s) - 1})

static int
hash(const struct part *parts, unsigned n, uint8_t ret[HASH_SIZE])
{
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	bool ok = ctx != NULL && EVP_DigestInit_ex(ctx, EVP_sha256(), NULL) == 1;

	for (unsigned i = 0; i < n && ok; i++)
		ok = EVP_DigestUpdate(ctx, parts[i].bytes, parts[i].len) == 1;
	ok = ok && EVP_DigestFinal_ex(ctx, ret, NULL) == 1;
	EVP_MD_CTX_free(ctx);
	return ok ? 0 : -ENOMEM;
}

/* Fetched once, by the one thread that has connections, and kept. */
static EVP_MAC *
hmac_method(void)
{
	static EVP_MAC *method;

	if (method == NULL)
		method = EVP_MAC_fetch(NULL, "HMAC", NULL);
	return method;
}

static int
hmac(const uint8_t *key, const struct part *parts, unsigned n, uint8_t ret[HASH_SIZE])
{
	OSSL_PARAM params[] = {
	    OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, (char *)"SHA256", 0),
	    OSSL_PARAM_construct_end()};
	EVP_MAC *method = hmac_method();
	EVP_MAC_CTX *ctx = method != NULL ? EVP_MAC_CTX_new(method) : NULL;
	bool ok = ctx != NULL && EVP_MAC_init(ctx, key, AUTH_KEY_SIZE, params) == 1;

	for (unsigned i = 0; i < n && ok; i++)
		ok = parts[i].len == 0 || EVP_MAC_update(ctx, parts[i].bytes, parts[i].len) == 1;
	ok = ok && EVP_MAC_final(ctx, ret, NULL, HASH_SIZE) == 1;
	EVP_MAC_CTX_free(ctx);
	return ok ? 0 : -ENOMEM;
}

/* The same, cut to size bytes; *ret is touched only on 0. */
static int
short_hmac(const uint8_t *key, const struct part *parts, unsigned n, void *ret, size_t size)
{
	uint8_t whole[HASH_SIZE];
	int error = hmac(key, parts, n, whole);

	if (error == 0)
		memcpy(ret, whole, size);
	auth_wipe(whole, sizeof(whole));
	return error;
}

/* ---- the request ---- */

int
auth_key_id(const uint8_t *key, uint8_t ret[AUTH_ID_SIZE])
{
	const struct part parts[] = {TEXT("RWP1 key id"), {key, AUTH_KEY_SIZE}};
	uint8_t whole[HASH_SIZE];
	int error = hash(parts, 2, whole);

	if (error == 0)
		memcpy(ret, whole, AUTH_ID_SIZE);
	return error;
}

int
auth_gate(const uint8_t *key, const void *request, uint8_t ret[AUTH_ID_SIZE])
{
	const struct part parts[] = {TEXT("RWP1 gate"), {request, AUTH_GATED}};

	return short_hmac(key, parts, 2, ret, AUTH_ID_SIZE);
}

/* ---- transfers ---- */

int
auth_file_id(const char *region, const char *name, const void *numbers, size_t len,
    uint8_t ret[AUTH_MAC_SIZE])
{
	const struct part parts[] = {TEXT("rwriter file"), {region, strlen(region) + 1},
	    {name, strlen(name) + 1}, {numbers, len}};
	uint8_t whole[HASH_SIZE];
	int error = hash(parts, 4, whole);

	if (error == 0)
		memcpy(ret, whole, AUTH_MAC_SIZE);
	return error;
}

/* ---- tags ---- */

bool
auth_tag(const uint8_t *key, const void *run, size_t run_len, const void *more, size_t more_len,
    void *ret, size_t size)
{
	const struct part parts[] = {{run, run_len}, {more, more_len}};

	memset(ret, 0, size);
	return short_hmac(key, parts, 2, ret, size) == 0;
}

bool
auth_equal(const void *a, const void *b, size_t len)
{
	return CRYPTO_memcmp(a, b, len) == 0;
}

void
auth_wipe(void *secret, size_t len)
{
	OPENSSL_cleanse(secret, len);
}

/* ---- one connection's proof ---- */

static struct auth_private
private_data(const void *bytes, uint8_t len)
{
	struct auth_private p = {.len = len};

	memcpy(p.bytes, bytes, len);
	return p;
}

void
auth_start(struct auth *a, const uint8_t *key, const void *request, uint8_t len)
{
	a->keyed = true;
	memcpy(a->key, key, sizeof(a->key));
	a->request = private_data(request, len);
}

void
auth_reply(struct auth *a, const void *reply, uint8_t len)
{
	a->reply = private_data(reply, len);
}

int
auth_hello(struct auth *a, const void *blob, size_t len, uint8_t mac[AUTH_MAC_SIZE])
{
	const struct part transcript[] = {TEXT("RWP1 hello"), {a->request.bytes, a->request.len},
	    {a->reply.bytes, a->reply.len}, {blob, len}};
	const struct part t1 = {a->t1, sizeof(a->t1)};
	int error = hash(transcript, 4, a->t1);

	if (error == 0)
		error = short_hmac(a->key, &t1, 1, a->hello_mac, AUTH_MAC_SIZE);
	if (error == 0)
		memcpy(mac, a->hello_mac, AUTH_MAC_SIZE);
	return error;
}

/* HKDF (RFC 5869) with SHA-256; as much key as one hash has, so expanding is one step. */
static int
derive(struct auth *a, const uint8_t t2[HASH_SIZE])
{
	const struct part key = {a->key, sizeof(a->key)};
	const struct part writer[] = {TEXT("RWP1 writer"), TEXT("\1")};
	const struct part target[] = {TEXT("RWP1 target"), TEXT("\1")};
	uint8_t extracted[HASH_SIZE];
	int error = hmac(t2, &key, 1, extracted);

	if (error == 0)
		error = hmac(extracted, writer, 2, a->writer_key);
	if (error == 0)
		error = hmac(extracted, target, 2, a->target_key);
	auth_wipe(extracted, sizeof(extracted));
	return error;
}

int
auth_grant(struct auth *a, const void *blob, size_t len, uint8_t mac[AUTH_MAC_SIZE])
{
	const struct part transcript[] = {TEXT("RWP1 grant"), {a->t1, sizeof(a->t1)},
	    {a->hello_mac, sizeof(a->hello_mac)}, {blob, len}};
	uint8_t t2[HASH_SIZE];
	const struct part all = {t2, sizeof(t2)};
	int error = hash(transcript, 4, t2);

	if (error == 0)
		error = derive(a, t2);
	if (error == 0)
		error = short_hmac(a->key, &all, 1, mac, AUTH_MAC_SIZE);
	return error;
}

void
auth_done(struct auth *a)
{
	auth_wipe(a, sizeof(*a));
}
