/* comm_open.c - which communicator a process gets, and the one of a single process. */
#include "topt_comm.h"

#include <limits.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int topt_comm_launched(void)
{
    static const char *const sign[] = {"TOPT_RENDEZVOUS", "OMPI_COMM_WORLD_SIZE",
                                       "PMIX_RANK",       "PMI_RANK",
                                       "PMI_SIZE",        NULL};
    for (int i = 0; sign[i]; i++)
        if (getenv(sign[i]))
            return 1;
    return 0;
}

/* Large buffers, and temporaries of MPI's reductions, are mmapped, faulted and
 * unmapped at every use unless the allocator is told to keep them: a 16 MB
 * reduce-scatter takes 2.4 ms instead of 17. */
static void keep_memory(void)
{
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    mallopt(M_TRIM_THRESHOLD, INT_MAX);
    mallopt(M_TOP_PAD, 16 << 20);
}

int topt_comm_open(int *argc, char ***argv, struct topt_comm **ret,
                   struct topt_error *err)
{
    keep_memory();
    if (getenv("TOPT_RENDEZVOUS"))
        return topt_comm_sockets(ret, err);
    return topt_comm_launched() ? topt_comm_mpi_world(argc, argv, ret, err)
                                : topt_comm_single(ret, err);
}

/* ---- a single process -------------------------------------------------------------- */

static void single_destroy(struct topt_comm *c)
{
    (void)c;
}

static int single_group(struct topt_comm *c, uint32_t axes, struct topt_comm_group *ret,
                        struct topt_error *err)
{
    static const int zero;
    (void)c, (void)axes, (void)err;
    *ret = (struct topt_comm_group){.size = 1, .me = 0, .device = &zero};
    return 0;
}

static int single_all_reduce(struct topt_comm *c, const struct topt_comm_call *k,
                             struct topt_error *err)
{
    (void)c, (void)err;
    if (k->dst != k->src)
        memcpy(k->dst, k->src, (size_t)(k->n * topt_comm_number_bytes(k->number)));
    return 0;
}

static int single_copy(struct topt_comm *c, const struct topt_comm_call *k,
                       struct topt_error *err)
{
    (void)c, (void)err;
    memcpy(k->dst, k->src, (size_t)(k->counts[0] * topt_comm_number_bytes(k->number)));
    return 0;
}

static int single_broadcast(struct topt_comm *c, void *data, int64_t bytes,
                            struct topt_error *err)
{
    (void)c, (void)data, (void)bytes, (void)err;
    return 0;
}

static int single_send(struct topt_comm *c, int to, const void *data, int64_t bytes,
                       struct topt_error *err)
{
    (void)c, (void)data, (void)bytes;
    return topt_fail(err, TOPT_ERR_INTERNAL, "send to rank %d of a single process", to);
}

static int single_receive(struct topt_comm *c, int from, void *data, int64_t bytes,
                          struct topt_error *err)
{
    (void)c, (void)data, (void)bytes;
    return topt_fail(err, TOPT_ERR_INTERNAL, "receive from rank %d of a single process",
                     from);
}

static int single_reduce_world(struct topt_comm *c, double *values, int n,
                               struct topt_error *err)
{
    (void)c, (void)values, (void)n, (void)err;
    return 0;
}

static void single_abort(struct topt_comm *c, int status)
{
    (void)c;
    fflush(NULL);
    _exit(status);
}

int topt_comm_single(struct topt_comm **ret, struct topt_error *err)
{
    static const struct topt_comm_ops ops = {
        .name = "single",
        .destroy = single_destroy,
        .forget = single_destroy,
        .group = single_group,
        .all_reduce = single_all_reduce,
        .reduce_scatter = single_copy,
        .all_gather = single_copy,
        .all_to_all = single_copy,
        .broadcast = single_broadcast,
        .send = single_send,
        .receive = single_receive,
        .sum = single_reduce_world,
        .max = single_reduce_world,
        .abort = single_abort,
    };
    struct topt_comm *c = calloc(1, sizeof *c);
    if (!c)
        return topt_nomem(err, NULL);
    c->ops = &ops;
    c->size = 1;
    *ret = c;
    return 0;
}

#if !TOPT_HAVE_MPI
int topt_comm_mpi_world(int *argc, char ***argv, struct topt_comm **ret,
                        struct topt_error *err)
{
    (void)argc, (void)argv, (void)ret;
    return topt_fail(err, TOPT_ERR_DEVICE,
                     "this build has no MPI: it runs on one process");
}

void topt_comm_mpi_finish(void)
{
}
#endif
