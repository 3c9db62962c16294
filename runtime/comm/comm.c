/* comm.c - what all communicators share, and the one of a single process. */
#include "topt_comm.h"

#include <limits.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

int topt_comm_bind(struct topt_comm *c, const struct topt_mesh *mesh,
                   struct topt_error *err)
{
    if (mesh->devices != c->size)
        return topt_fail(
            err, TOPT_ERR_INVAL,
            "the plan is for %d devices, but %d process%s started; start it with "
            "mpirun -n %d or srun --mpi=pmix -n %d",
            mesh->devices, c->size, c->size == 1 ? " was" : "es were", mesh->devices,
            mesh->devices);
    if (memcmp(&c->mesh, mesh, sizeof *mesh))
        c->ops->forget(c);
    c->mesh = *mesh;
    return 0;
}

void topt_comm_destroy(struct topt_comm *c)
{
    if (!c)
        return;
    c->ops->destroy(c);
    free(c);
}

enum { ELSEWHERE = -1, CODES = 64 };

int topt_comm_agree(struct topt_comm *c, int failed, struct topt_error *err)
{
    struct topt_error none = {.code = TOPT_ERR_INTERNAL};
    enum topt_err code = (err && err->code ? err : &none)->code;
    double first = failed ? (double)(c->size - c->rank) * CODES + (double)code : 0;
    if (c->ops->max(c, &first, 1, err))
        return -1;
    int rank = c->size - (int)(first / CODES);
    if (!(first > 0) || rank == c->rank)
        return first > 0 ? -1 : 0;
    topt_fail(err, (enum topt_err)((int)first % CODES), "rank %d failed", rank);
    if (err)
        err->sys = ELSEWHERE;
    return -1;
}

int topt_comm_failed_elsewhere(const struct topt_error *err)
{
    return err->sys == ELSEWHERE;
}

int topt_comm_share_text(struct topt_comm *c, int failed, char **text, size_t *len,
                         struct topt_error *err)
{
    int64_t n = (int64_t)*len;
    if (topt_comm_agree(c, failed, err) || c->ops->broadcast(c, &n, sizeof n, err))
        return -1;
    failed = 0;
    if (c->rank) {
        *len = (size_t)n;
        *text = calloc(1, *len + 1);
        failed = *text ? 0 : topt_fail(err, TOPT_ERR_NOMEM, "out of memory");
    }
    return topt_comm_agree(c, failed, err) || c->ops->broadcast(c, *text, n, err) ? -1
                                                                                  : 0;
}

int topt_comm_launched(void)
{
    static const char *const sign[] = {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK",
                                       "PMI_SIZE", NULL};
    for (int i = 0; sign[i]; i++)
        if (getenv(sign[i]))
            return 1;
    return 0;
}

/* Large buffers, and temporaries of MPI's reductions, are mmapped, faulted and unmapped at
 * every use unless the allocator is told to keep them: a 16 MB reduce-scatter takes 2.4 ms
 * instead of 17. */
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
    return topt_comm_launched() ? topt_comm_mpi_world(argc, argv, ret, err)
                                : topt_comm_single(ret, err);
}

int topt_comm_number_bytes(enum topt_comm_number n)
{
    static const int bytes[TOPT_COMM_NUMBER_COUNT] = {1, 4, 8, 4, 8, 2};
    return bytes[n];
}

/* ---- a single process ------------------------------------------------------------------ */

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
    exit(status);
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
        return topt_fail(err, TOPT_ERR_NOMEM, "out of memory");
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
