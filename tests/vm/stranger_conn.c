/* stranger_conn.c -- the stranger's connection: librdmacm's blocking calls, and writes one by one
 */

#include <arpa/inet.h>
#include <endian.h>
#include <err.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "stranger.h"

const char SUCCESS[] = "success";

static void
read_reply(struct stranger *s)
{
	const uint8_t *reply = s->id->event->param.conn.private_data;
	uint64_t addr;

	if (!reply || s->id->event->param.conn.private_data_len < 56 || memcmp(reply, "RWP1", 4) ||
	    reply[4] != 1)
		errx(1, "this is no reply of the protocol's version 1");
	s->ring = 1u << reply[5];
	s->tail_rkey = stranger_get32(reply + 12);
	memcpy(&addr, reply + 16, sizeof(addr));
	s->tail_addr = le64toh(addr);
	s->connection_generation = stranger_get32(reply + 28);
	memcpy(s->boot_id, reply + 32, sizeof(s->boot_id));
}

static bool
send_request(struct stranger *s)
{
	uint8_t request[56] = {'R', 'W', 'P', '1', 1, 1, sizeof(request)};
	struct rdma_conn_param param = {
	    .private_data = request, .private_data_len = sizeof(request), .retry_count = 7};
	uint32_t rkey = htole32(s->mailbox_mr->rkey);
	uint64_t addr = htole64((uintptr_t)s->mailbox);

	request[7] = s->id->verbs->device->transport_type == IBV_TRANSPORT_IWARP ? 2 : 1;
	memcpy(request + 12, &rkey, sizeof(rkey));
	memcpy(request + 16, &addr, sizeof(addr));
	if (rdma_connect(s->id, &param)) {
		if (errno != ECONNREFUSED)
			err(1, "rdma_connect");
		s->gone = true;
		return false;
	}
	read_reply(s);
	return true;
}

bool
stranger_connect(struct stranger *s, const char *address, const char *port)
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
	return send_request(s);
}

bool
stranger_gone(struct stranger *s)
{
	struct pollfd news = {s->id->channel->fd, POLLIN, 0};
	struct rdma_cm_event *event;

	while (
	    !s->gone && poll(&news, 1, 0) == 1 && rdma_get_cm_event(s->id->channel, &event) == 0) {
		s->gone = event->event == RDMA_CM_EVENT_DISCONNECTED;
		rdma_ack_cm_event(event);
	}
	return s->gone;
}

/* Who was left first has nothing to wait for. */
void
stranger_disconnect(struct stranger *s)
{
	if (!stranger_gone(s))
		rdma_disconnect(s->id);
	rdma_destroy_qp(s->id);
	ibv_dereg_mr(s->mailbox_mr);
	ibv_dereg_mr(s->source_mr);
	rdma_destroy_id(s->id);
}

/* siw forgets completions when the other side ends the connection. */
static const char *
post(struct stranger *s, struct ibv_send_wr *wr)
{
	struct timespec pause = {.tv_nsec = 100000};
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	wr->send_flags = IBV_SEND_SIGNALED;
	if (ibv_post_send(s->id->qp, wr, &bad))
		return "cannot be posted";
	for (int i = 0; i < 100000; i++) {
		if (ibv_poll_cq(s->id->send_cq, 1, &wc) == 1)
			return wc.status == IBV_WC_SUCCESS ? SUCCESS : ibv_wc_status_str(wc.status);
		if (stranger_gone(s))
			return "none, the connection has ended";
		nanosleep(&pause, NULL);
	}
	errx(1, "no completion");
}

const char *
stranger_write(struct stranger *s, uint32_t rkey, uint64_t addr, const void *from, size_t len)
{
	struct ibv_sge sge = {(uintptr_t)from, (uint32_t)len, s->source_mr->lkey};
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = len > 0};

	wr.wr.rdma.remote_addr = addr;
	wr.wr.rdma.rkey = rkey;
	return post(s, &wr);
}

const char *
stranger_message(struct stranger *s)
{
	struct ibv_send_wr empty = {.opcode = IBV_WR_SEND}; /* takes a receive without memory */

	return post(s, &empty);
}
