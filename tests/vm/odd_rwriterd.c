/* odd_rwriterd.c -- rwriterd with a twist in its verbs, to see what writers make of such a target
 *
 *   odd_rwriterd TWIST [rwriterd's options]
 *
 * --no-remote-write  data regions are registered without the right to be written from afar
 * --post-receive     every queue pair has one receive posted, so that a peer's message completes it
 */

#include <err.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include "daemon/daemon.h"
#include "fabric/fabric.h"

static struct fabric_ops odd_verbs;
static const struct fabric_conn
    *accepted; /* the newest one: the tests connect one writer at a time */
static bool post_receive;

/* The seam finds its operations in the fabric, so the fabric gets the twisted table. */
static int
odd_open(const struct fabric_env *env, struct fabric **ret, const char **detail)
{
	int e = fabric_verbs.open(env, ret, detail);

	if (e == 0)
		(*ret)->ops = &odd_verbs;
	return e;
}

static int
odd_accept(struct fabric_conn *c, const void *data, size_t len)
{
	accepted = c;
	return fabric_verbs.accept(c, data, len);
}

/* The tail area is added before accept, the data region after it. */
static int
odd_mem_add(struct fabric_conn *c, void *addr, size_t len, unsigned access, void *owner,
    struct fabric_mem **ret)
{
	if (c == accepted)
		access &= ~(unsigned)FABRIC_REMOTE_WRITE;
	return fabric_verbs.mem_add(c, addr, len, access, owner, ret);
}

/* The linker puts these in place of librdmacm's function (--wrap). */
int __real_rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
int __wrap_rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *attr);

int
__wrap_rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	/* For an empty message: no memory is needed, but libsiw insists on one element. */
	struct ibv_sge nothing = {.length = 0};
	struct ibv_recv_wr receive = {.sg_list = &nothing, .num_sge = 1}, *bad;
	int e;

	if (post_receive && attr->cap.max_recv_wr == 0)
		attr->cap.max_recv_wr = 1;
	e = __real_rdma_create_qp(id, pd, attr);
	if (e == 0 && post_receive && (e = ibv_post_recv(id->qp, &receive, &bad)) != 0)
		errx(1, "ibv_post_recv: %d", e);
	return e;
}

int
main(int argc, char **argv)
{
	static const struct fabric_ops *const fabrics[] = {&odd_verbs, NULL};

	if (argc < 2)
		errx(2, "usage: odd_rwriterd TWIST [OPTION ...]");
	odd_verbs = fabric_verbs;
	odd_verbs.open = odd_open;
	if (strcmp(argv[1], "--no-remote-write") == 0) {
		odd_verbs.accept = odd_accept;
		odd_verbs.mem_add = odd_mem_add;
	} else if (strcmp(argv[1], "--post-receive") == 0) {
		post_receive = true;
	} else {
		errx(2, "%s: no such twist", argv[1]);
	}
	argv[1] = argv[0];
	return daemon_main(argc - 1, argv + 1, fabrics);
}
