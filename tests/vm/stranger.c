/* stranger.c -- a client of the rwriter protocol that shares no code with rwriter: it is written
 * from rwriter-protocol(7) alone, over librdmacm's blocking calls, and can also misbehave
 *
 *   stranger MODE ADDRESS PORT TEXT
 *
 * minimal   the minimal writer of the manual: HELLO, GRANT, payload, ONE, RESULT, BYE
 * stale     says HELLO with another boot id: must be denied
 * outside   writes one byte beyond the region that it was granted
 * send      sends a message, which takes a receive at the target where there is one, then goes on
 *
 * Prints what it sees, one line each; exit status 0 unless it could not play its part.
 */

#include <arpa/inet.h>
#include <endian.h>
#include <err.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

enum { HELLO = 1, ONE = 6, BYE = 9, GRANT = 65, DENY = 66, RESULT = 68 };
enum { T_WRITER = 1, T_SIZE = 4, T_ECHO = 7, T_ADDRESS = 16, T_RKEY = 17, T_GENERATION = 18 };
enum { T_CODE = 32, T_TEXT = 33, T_NAME = 48, T_LENGTH = 49, T_CHECK = 63 };
enum { RING = 128, RECORD = 64, MAILBOX_BLOBS = 1152 };

struct stranger {
	struct rdma_cm_id *id;
	struct ibv_mr *mailbox_mr, *source_mr;
	uint8_t mailbox[4096] __attribute__((aligned(4096)));
	uint8_t source[8192] __attribute__((aligned(4096)));
	/* from the reply */
	uint8_t boot_id[8];
	uint32_t connection_generation, tail_rkey, ring, blob_used;
	uint64_t tail_addr, seq, mailbox_seq, beat;
	/* from the GRANT */
	uint64_t region_addr, region_size;
	uint32_t region_rkey, grant;
};

static uint32_t
crc32c(uint32_t crc, const void *data, size_t len)
{
	const uint8_t *p = data;

	crc = ~crc;
	while (len--) {
		crc ^= *p++;
		for (int bit = 0; bit < 8; bit++)
			crc = (crc >> 1) ^ (crc & 1 ? 0x82f63b78u : 0);
	}
	return ~crc;
}

static void
put16(uint8_t *p, uint16_t v)
{
	v = htole16(v);
	memcpy(p, &v, 2);
}

static void
put32(uint8_t *p, uint32_t v)
{
	v = htole32(v);
	memcpy(p, &v, 4);
}

static void
put64(uint8_t *p, uint64_t v)
{
	v = htole64(v);
	memcpy(p, &v, 8);
}

static uint16_t
get16(const uint8_t *p)
{
	uint16_t v;

	memcpy(&v, p, 2);
	return le16toh(v);
}

static uint32_t
get32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, 4);
	return le32toh(v);
}

static uint64_t
get64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, 8);
	return le64toh(v);
}

/* ---- blobs ---- */

static size_t
blob_start(uint8_t *blob, unsigned kind, uint64_t seq)
{
	memset(blob, 0, 16);
	put16(blob, (uint16_t)kind);
	put64(blob + 8, seq);
	return 16;
}

static size_t
blob_put(uint8_t *blob, size_t at, unsigned type, const void *value, size_t len)
{
	size_t padded = (4 + len + 7) / 8 * 8;

	memset(blob + at, 0, padded);
	put16(blob + at, (uint16_t)type);
	put16(blob + at + 2, (uint16_t)len);
	memcpy(blob + at + 4, value, len);
	put32(blob + 4, (uint32_t)(at + padded));
	return at + padded;
}

static size_t
blob_put64(uint8_t *blob, size_t at, unsigned type, uint64_t value)
{
	uint8_t v[8];

	put64(v, value);
	return blob_put(blob, at, type, v, sizeof(v));
}

/* The value of a TLV, or NULL. */
static const uint8_t *
blob_find(const uint8_t *blob, size_t size, unsigned type, size_t *ret_len)
{
	size_t end = get32(blob + 4);

	for (size_t at = 16; at + 4 <= end && end <= size;) {
		size_t len = get16(blob + at + 2);

		if ((get16(blob + at) & 0x7fff) == type && at + 4 + len <= end) {
			*ret_len = len;
			return blob + at + 4;
		}
		at += (4 + len + 7) / 8 * 8;
	}
	return NULL;
}

/* ---- verbs ---- */

/* Posts and waits; the completion's status. */
static enum ibv_wc_status
post(struct stranger *s, struct ibv_send_wr *wr)
{
	struct timespec pause = {.tv_nsec = 100000};
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	wr->send_flags = IBV_SEND_SIGNALED;
	if (ibv_post_send(s->id->qp, wr, &bad))
		errx(1, "ibv_post_send");
	for (int i = 0; i < 100000; i++) {
		if (ibv_poll_cq(s->id->send_cq, 1, &wc) == 1)
			return wc.status;
		nanosleep(&pause, NULL);
	}
	errx(1, "no completion"); /* siw forgets some when the other side ends the connection */
}

/* Writes len bytes that lie in s->source. */
static enum ibv_wc_status
write_to(struct stranger *s, uint32_t rkey, uint64_t addr, const void *from, size_t len)
{
	struct ibv_sge sge = {(uintptr_t)from, (uint32_t)len, s->source_mr->lkey};
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = len > 0};

	wr.wr.rdma.remote_addr = addr;
	wr.wr.rdma.rkey = rkey;
	return post(s, &wr);
}

static void
must_write(struct stranger *s, uint32_t rkey, uint64_t addr, const void *from, size_t len)
{
	enum ibv_wc_status status = write_to(s, rkey, addr, from, len);

	if (status != IBV_WC_SUCCESS)
		errx(1, "write: %s", ibv_wc_status_str(status));
}

static void
send_request(struct stranger *s)
{
	uint8_t request[56] = {'R', 'W', 'P', '1', 1, 1, sizeof(request)};
	struct rdma_conn_param param = {
	    .private_data = request, .private_data_len = sizeof(request), .retry_count = 7};
	const uint8_t *reply;

	request[7] = s->id->verbs->device->transport_type == IBV_TRANSPORT_IWARP ? 2 : 1;
	put32(request + 12, s->mailbox_mr->rkey);
	put64(request + 16, (uintptr_t)s->mailbox);
	if (rdma_connect(s->id, &param))
		err(1, "rdma_connect");

	reply = s->id->event->param.conn.private_data;
	if (!reply || s->id->event->param.conn.private_data_len < 56 || memcmp(reply, "RWP1", 4) ||
	    reply[4] != 1)
		errx(1, "this is no reply of the protocol's version 1");
	s->ring = 1u << reply[5];
	s->tail_rkey = get32(reply + 12);
	s->tail_addr = get64(reply + 16);
	s->connection_generation = get32(reply + 28);
	memcpy(s->boot_id, reply + 32, sizeof(s->boot_id));
}

static void
connect_to(struct stranger *s, const char *address, const char *port)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC,
	    .cap = {.max_send_wr = 8, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};

	if (inet_pton(AF_INET, address, &to.sin_addr) != 1)
		errx(2, "%s is no IPv4 address", address);
	if (rdma_create_id(NULL, &s->id, NULL, RDMA_PS_TCP) ||
	    rdma_resolve_addr(s->id, NULL, (struct sockaddr *)&to, 2000) ||
	    rdma_resolve_route(s->id, 2000) || rdma_create_qp(s->id, NULL, &attr))
		err(1, "no way to %s", address);
	s->mailbox_mr = ibv_reg_mr(s->id->pd, s->mailbox, sizeof(s->mailbox),
	    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	s->source_mr = ibv_reg_mr(s->id->pd, s->source, sizeof(s->source), IBV_ACCESS_LOCAL_WRITE);
	if (!s->mailbox_mr || !s->source_mr)
		err(1, "ibv_reg_mr");
	send_request(s);
}

static void
disconnect(struct stranger *s)
{
	rdma_disconnect(s->id);
	rdma_destroy_qp(s->id);
	ibv_dereg_mr(s->mailbox_mr);
	ibv_dereg_mr(s->source_mr);
	rdma_destroy_id(s->id);
}

/* ---- records ---- */

struct record {
	unsigned type;
	uint32_t transfer, length, data_crc, grant;
	size_t blob_len; /* the blob lies at the start of s->source */
};

/* The blob first, then the record whose last word is the flag. */
static void
write_record(struct stranger *s, const struct record *r)
{
	uint64_t blobs = s->tail_addr + RING + (uint64_t)RECORD * s->ring;
	uint8_t *out = s->source + sizeof(s->source) - RECORD;
	uint32_t tag;

	s->seq++;
	if (r->blob_len)
		must_write(s, s->tail_rkey, blobs + s->blob_used, s->source, r->blob_len);

	memset(out, 0, RECORD);
	out[0] = (uint8_t)r->type;
	put16(out + 2, (uint16_t)r->blob_len);
	put32(out + 4, r->transfer);
	put32(out + 24, r->length);
	put32(out + 28, r->data_crc);
	put32(out + 32, r->grant);
	put32(out + 36, s->blob_used);
	put64(out + 56, s->seq);
	tag = crc32c(crc32c(0, out, 40), out + 56, 8);
	put32(out + 40, tag);
	must_write(
	    s, s->tail_rkey, s->tail_addr + RING + RECORD * ((s->seq - 1) % s->ring), out, RECORD);
	s->blob_used += (uint32_t)r->blob_len;
}

static void
write_line(struct stranger *s)
{
	uint8_t *out = s->source + sizeof(s->source) - RECORD;

	memset(out, 0, RECORD);
	put32(out, 1);
	put32(out + 4, s->grant);
	put64(out + 8, s->mailbox_seq);
	put64(out + 56, ++s->beat);
	put32(out + 44, crc32c(crc32c(0, out, 44), out + 56, 8));
	must_write(s, s->tail_rkey, s->tail_addr, out, RECORD);
}

/* Waits for the target's next record, and beats meanwhile; *ret_blob points into the mailbox. */
static const uint8_t *
read_record(struct stranger *s, const uint8_t **ret_blob)
{
	const uint8_t *slot = s->mailbox + RING + RECORD * (s->mailbox_seq % 16);
	struct timespec pause = {.tv_nsec = 1000000};

	for (int ms = 1; ms < 20000; ms++) {
		uint64_t flag = __atomic_load_n((const uint64_t *)(slot + 56), __ATOMIC_ACQUIRE);

		if (le64toh(flag) == s->mailbox_seq + 1) {
			if (get32(slot + 40) != crc32c(crc32c(0, slot, 40), slot + 56, 8))
				errx(1, "the target's record has a wrong tag");
			*ret_blob = s->mailbox + MAILBOX_BLOBS + get32(slot + 36);
			s->mailbox_seq++;
			return slot;
		}
		if (ms % 100 == 0)
			write_line(s);
		nanosleep(&pause, NULL);
	}
	errx(1, "the target's record %llu did not come", (unsigned long long)s->mailbox_seq + 1);
}

/* ---- the conversation ---- */

static void
write_hello(struct stranger *s, uint64_t wanted)
{
	struct record hello = {.type = HELLO};
	uint8_t echo[12];
	size_t at = blob_start(s->source, HELLO, 1);

	memcpy(echo, s->boot_id, 8);
	put32(echo + 8, s->connection_generation);
	at = blob_put(s->source, at, T_WRITER, "stranger", 8);
	at = blob_put64(s->source, at, T_SIZE, wanted);
	hello.blob_len = blob_put(s->source, at, T_ECHO, echo, sizeof(echo));
	hello.data_crc = crc32c(0, s->source, hello.blob_len);
	write_record(s, &hello);
}

/* The value of a TLV that must be there, len bytes long. */
static const uint8_t *
need(const uint8_t *blob, size_t size, unsigned type, size_t len)
{
	size_t found;
	const uint8_t *value = blob_find(blob, size, type, &found);

	if (!value || found != len)
		errx(1, "TLV %u is missing or has not %zu bytes", type, len);
	return value;
}

static bool
read_grant(struct stranger *s)
{
	const uint8_t *blob, *record = read_record(s, &blob);
	size_t size = get16(record + 2), len = 0;

	if (record[0] == DENY) {
		const uint8_t *text = blob_find(blob, size, T_TEXT, &len);

		printf("denied %u: %.*s\n", get32(need(blob, size, T_CODE, 4)), (int)len,
		    text ? (const char *)text : "");
		return false;
	}
	if (record[0] != GRANT)
		errx(1, "record type %u is no GRANT", record[0]);
	s->region_addr = get64(need(blob, size, T_ADDRESS, 8));
	s->region_rkey = get32(need(blob, size, T_RKEY, 4));
	s->region_size = get64(need(blob, size, T_SIZE, 8));
	s->grant = get32(need(blob, size, T_GENERATION, 4));
	printf("granted %llu bytes\n", (unsigned long long)s->region_size);
	return true;
}

static bool
hello(struct stranger *s, size_t wanted)
{
	write_hello(s, wanted);
	return read_grant(s);
}

static void
write_one(struct stranger *s, const char *text)
{
	size_t length = strlen(text), at = blob_start(s->source, ONE, 2);
	struct record one = {
	    .type = ONE, .transfer = 1, .grant = s->grant, .length = (uint32_t)length};
	uint8_t *payload = s->source + 4096, check[4];

	memcpy(payload, text, length);
	one.data_crc = crc32c(0, payload, length);
	must_write(s, s->region_rkey, s->region_addr, payload, length);

	at = blob_put(s->source, at, T_NAME, "from-a-stranger", 15);
	at = blob_put64(s->source, at, T_LENGTH, length);
	put32(s->source + 4, (uint32_t)at + 8); /* the check covers the final length too */
	put32(check, crc32c(0, s->source, at));
	one.blob_len = blob_put(s->source, at, T_CHECK, check, sizeof(check));
	write_record(s, &one);
}

static void
transfer(struct stranger *s, const char *text)
{
	const uint8_t *blob, *record;

	write_one(s, text);
	record = read_record(s, &blob);
	if (record[0] != RESULT)
		errx(1, "record type %u is no RESULT", record[0]);
	printf("result %u\n", get32(record + 24));
	write_record(s, &(struct record){.type = BYE});
}

static void
minimal(struct stranger *s, const char *text)
{
	if (!hello(s, strlen(text)))
		errx(1, "no grant");
	transfer(s, text);
}

static void
stale(struct stranger *s, const char *text)
{
	s->boot_id[0] ^= 1;
	hello(s, strlen(text));
}

static void
outside(struct stranger *s, const char *text)
{
	if (!hello(s, strlen(text)))
		errx(1, "no grant");
	printf("completion: %s\n", ibv_wc_status_str(write_to(s, s->region_rkey,
				       s->region_addr + s->region_size, s->source, 1)));
}

static void
send_message(struct stranger *s, const char *text)
{
	struct ibv_send_wr empty = {.opcode = IBV_WR_SEND}; /* takes a receive without memory */
	enum ibv_wc_status status;

	if (!hello(s, strlen(text)))
		errx(1, "no grant");
	status = post(s, &empty);
	printf("completion: %s\n", ibv_wc_status_str(status));
	if (status == IBV_WC_SUCCESS)
		transfer(s, text);
}

static const struct {
	const char *name;
	void (*play)(struct stranger *s, const char *text);
} modes[] = {
    {"minimal", minimal},
    {"stale", stale},
    {"outside", outside},
    {"send", send_message},
};

int
main(int argc, char **argv)
{
	static struct stranger s;

	if (argc != 5 || strlen(argv[4]) > 2048)
		errx(2, "usage: stranger MODE ADDRESS PORT TEXT");
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		if (strcmp(argv[1], modes[i].name))
			continue;
		connect_to(&s, argv[2], argv[3]);
		modes[i].play(&s, argv[4]);
		disconnect(&s);
		return 0;
	}
	errx(2, "%s: no such mode", argv[1]);
}
