/* comm_mpi.c - the communicator over MPI.
 *
 * Groups are sub-communicators, split once per set of axes and kept.  Errors are
 * returned (MPI_ERRORS_RETURN) and every return is looked at.  Counts are 32-bit in
 * MPI 3, so a call above that is refused rather than wrapped. */
#include "comm_mpi.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct subgroup {
    uint32_t axes;
    MPI_Comm comm;
    struct topt_comm_group g;
    int *device; /* owned */
    struct subgroup *next;
};

/* Calls on the queue of communication; where there are more, the oldest is waited for. */
enum { MOST_PENDING = 256 };

struct world {
    MPI_Comm comm;
    struct subgroup *groups;
    int *scratch;       /* 4 * size counts and displacements */
    int64_t put, ended; /* calls on the queue so far; those of them that are done */
    MPI_Request pending[MOST_PENDING]; /* call n at n modulo their number */
};

static int fail(int rc, const char *what, struct topt_error *err)
{
    char text[MPI_MAX_ERROR_STRING];
    int len = 0;
    if (MPI_Error_string(rc, text, &len))
        len = 0;
    text[len] = '\0';
    return topt_fail(err, TOPT_ERR_DEVICE, "%s: %s", what, text);
}

static MPI_Datatype type_of(enum topt_comm_number n)
{
    switch (n) {
    case TOPT_COMM_32:
        return MPI_INT32_T;
    case TOPT_COMM_64:
        return MPI_INT64_T;
    case TOPT_COMM_F32:
        return MPI_FLOAT;
    case TOPT_COMM_F64:
        return MPI_DOUBLE;
    case TOPT_COMM_BF16:
        return MPI_UINT16_T;
    default:
        return MPI_BYTE;
    }
}

static void group_free(struct subgroup *s)
{
    if (s->comm != MPI_COMM_NULL)
        MPI_Comm_free(&s->comm);
    free(s->device);
    free(s);
}

static void mpi_forget(struct topt_comm *c)
{
    struct world *w = c->impl;
    for (struct subgroup *s = w->groups, *next; s; s = next) {
        next = s->next;
        group_free(s);
    }
    w->groups = NULL;
}

static void mpi_destroy(struct topt_comm *c)
{
    struct world *w = c->impl;
    mpi_forget(c);
    if (w->comm != MPI_COMM_NULL)
        MPI_Comm_free(&w->comm);
    free(w->scratch);
    free(w);
}

static int group_make(struct topt_comm *c, uint32_t axes, struct subgroup **ret,
                      struct topt_error *err)
{
    struct world *w = c->impl;
    struct subgroup *s = calloc(1, sizeof *s);
    if (!s)
        return topt_nomem(err, NULL);
    s->axes = axes;
    s->comm = MPI_COMM_NULL;
    s->device = calloc((size_t)c->size, sizeof *s->device);
    if (!s->device) {
        group_free(s);
        return topt_nomem(err, NULL);
    }
    s->g.size = topt_comm_members(&c->mesh, axes, c->rank, s->device);
    s->g.device = s->device;
    while (s->device[s->g.me] != c->rank)
        s->g.me++;
    /* the smallest member names the group */
    int rc = MPI_Comm_split(w->comm, s->device[0], c->rank, &s->comm);
    if (!rc)
        rc = MPI_Comm_set_errhandler(s->comm, MPI_ERRORS_RETURN);
    if (rc) {
        group_free(s);
        return fail(rc, "MPI_Comm_split", err);
    }
    s->next = w->groups;
    w->groups = s;
    *ret = s;
    return 0;
}

static int find(struct topt_comm *c, uint32_t axes, struct subgroup **ret,
                struct topt_error *err)
{
    for (struct subgroup *s = ((struct world *)c->impl)->groups; s; s = s->next)
        if (s->axes == axes) {
            *ret = s;
            return 0;
        }
    return group_make(c, axes, ret, err);
}

static int mpi_group(struct topt_comm *c, uint32_t axes, struct topt_comm_group *ret,
                     struct topt_error *err)
{
    struct subgroup *s;
    if (find(c, axes, &s, err))
        return -1;
    *ret = s->g;
    return 0;
}

static int fits(int64_t n, struct topt_error *err)
{
    return n <= INT_MAX ? 0
                        : topt_fail(err, TOPT_ERR_LIMIT,
                                    "a collective of %lld elements; MPI takes 2^31 - 1",
                                    (long long)n);
}

/* MPI has no bf16: it can be sent, not added up. */
static int adds(enum topt_comm_number n, struct topt_error *err)
{
    return n == TOPT_COMM_BF16
               ? topt_fail(err, TOPT_ERR_INTERNAL, "MPI can't add up bf16 numbers")
               : 0;
}

/* Counts as MPI wants them, with where each block starts. */
static int to_ints(const int64_t *counts, int n, int *ret_counts, int *ret_starts,
                   struct topt_error *err)
{
    int64_t at = 0;
    for (int i = 0; i < n; i++) {
        ret_counts[i] = (int)counts[i];
        ret_starts[i] = (int)at;
        at += counts[i];
        if (fits(at, err))
            return -1;
    }
    return 0;
}

/* ---- the queue of communication: calls that were begun, in the order of their beginning.  MPI
 * moves them when it is called. ---- */

static int64_t queue_last(void *ctx)
{
    return ((struct world *)ctx)->put;
}

static int queue_advance(void *ctx, int64_t upto, struct topt_error *err)
{
    struct world *w = ctx;
    while (w->ended < w->put) {
        MPI_Request *r = &w->pending[w->ended % MOST_PENDING];
        int done = 1, waits = w->ended < upto;
        int rc = waits ? MPI_Wait(r, MPI_STATUS_IGNORE)
                       : MPI_Test(r, &done, MPI_STATUS_IGNORE);
        if (rc)
            return fail(rc, "MPI_Iallreduce", err);
        if (!done)
            break;
        w->ended++;
    }
    return 0;
}

static struct topt_engine mpi_engine(struct topt_comm *c)
{
    return (struct topt_engine){
        .last = queue_last, .advance = queue_advance, .ctx = c->impl};
}

static int mpi_all_reduce(struct topt_comm *c, const struct topt_comm_call *k,
                          struct topt_error *err)
{
    struct world *w = c->impl;
    struct subgroup *s;
    if (find(c, k->axes, &s, err) || fits(k->n, err) || adds(k->number, err))
        return -1;
    const void *src = k->src == k->dst ? MPI_IN_PLACE : k->src;
    MPI_Datatype t = type_of(k->number);
    MPI_Op op = k->reduce == TOPT_COMM_MAX ? MPI_MAX : MPI_SUM;
    int rc;
    if (k->queue == TOPT_QUEUE_COMPUTE) {
        rc = MPI_Allreduce(src, k->dst, (int)k->n, t, op, s->comm);
        return rc ? fail(rc, "MPI_Allreduce", err) : 0;
    }
    if (w->put - w->ended == MOST_PENDING && queue_advance(w, w->ended + 1, err))
        return -1;
    rc = MPI_Iallreduce(src, k->dst, (int)k->n, t, op, s->comm,
                        &w->pending[w->put % MOST_PENDING]);
    w->put += !rc;
    return rc ? fail(rc, "MPI_Iallreduce", err) : 0;
}

static int mpi_reduce_scatter(struct topt_comm *c, const struct topt_comm_call *k,
                              struct topt_error *err)
{
    struct subgroup *s;
    int *scratch = ((struct world *)c->impl)->scratch;
    if (find(c, k->axes, &s, err) || adds(k->number, err) ||
        to_ints(k->counts, s->g.size, scratch, scratch + c->size, err))
        return -1;
    int rc =
        MPI_Reduce_scatter(k->src, k->dst, scratch, type_of(k->number), MPI_SUM, s->comm);
    return rc ? fail(rc, "MPI_Reduce_scatter", err) : 0;
}

static int mpi_all_gather(struct topt_comm *c, const struct topt_comm_call *k,
                          struct topt_error *err)
{
    struct subgroup *s;
    int *scratch = ((struct world *)c->impl)->scratch;
    if (find(c, k->axes, &s, err) ||
        to_ints(k->counts, s->g.size, scratch, scratch + c->size, err))
        return -1;
    MPI_Datatype t = type_of(k->number);
    int rc = MPI_Allgatherv(k->src, scratch[s->g.me], t, k->dst, scratch,
                            scratch + c->size, t, s->comm);
    return rc ? fail(rc, "MPI_Allgatherv", err) : 0;
}

static int mpi_all_to_all(struct topt_comm *c, const struct topt_comm_call *k,
                          struct topt_error *err)
{
    struct subgroup *s;
    int *out = ((struct world *)c->impl)->scratch, *in = out + 2 * c->size;
    if (find(c, k->axes, &s, err) ||
        to_ints(k->counts, s->g.size, out, out + c->size, err) ||
        to_ints(k->to_counts, s->g.size, in, in + c->size, err))
        return -1;
    MPI_Datatype t = type_of(k->number);
    int rc = MPI_Alltoallv(k->src, out, out + c->size, t, k->dst, in, in + c->size, t,
                           s->comm);
    return rc ? fail(rc, "MPI_Alltoallv", err) : 0;
}

static int mpi_broadcast(struct topt_comm *c, void *data, int64_t bytes,
                         struct topt_error *err)
{
    if (fits(bytes, err))
        return -1;
    int rc = MPI_Bcast(data, (int)bytes, MPI_BYTE, 0, ((struct world *)c->impl)->comm);
    return rc ? fail(rc, "MPI_Bcast", err) : 0;
}

static int mpi_send(struct topt_comm *c, int to, const void *data, int64_t bytes,
                    struct topt_error *err)
{
    if (fits(bytes, err))
        return -1;
    int rc = MPI_Send(data, (int)bytes, MPI_BYTE, to, 0, ((struct world *)c->impl)->comm);
    return rc ? fail(rc, "MPI_Send", err) : 0;
}

static int mpi_receive(struct topt_comm *c, int from, void *data, int64_t bytes,
                       struct topt_error *err)
{
    if (fits(bytes, err))
        return -1;
    int rc = MPI_Recv(data, (int)bytes, MPI_BYTE, from, 0,
                      ((struct world *)c->impl)->comm, MPI_STATUS_IGNORE);
    return rc ? fail(rc, "MPI_Recv", err) : 0;
}

static int mpi_world(struct topt_comm *c, double *values, int n, MPI_Op op,
                     struct topt_error *err)
{
    int rc = MPI_Allreduce(MPI_IN_PLACE, values, n, MPI_DOUBLE, op,
                           ((struct world *)c->impl)->comm);
    return rc ? fail(rc, "MPI_Allreduce", err) : 0;
}

static int mpi_sum(struct topt_comm *c, double *values, int n, struct topt_error *err)
{
    return mpi_world(c, values, n, MPI_SUM, err);
}

static int mpi_max(struct topt_comm *c, double *values, int n, struct topt_error *err)
{
    return mpi_world(c, values, n, MPI_MAX, err);
}

static void mpi_abort(struct topt_comm *c, int status)
{
    fflush(NULL);
    MPI_Abort(((struct world *)c->impl)->comm, status);
    _exit(status);
}

int topt_comm_mpi(MPI_Comm mpi, struct topt_comm **ret, struct topt_error *err)
{
    static const struct topt_comm_ops ops = {
        .name = "mpi",
        .destroy = mpi_destroy,
        .forget = mpi_forget,
        .group = mpi_group,
        .all_reduce = mpi_all_reduce,
        .engine = mpi_engine,
        .reduce_scatter = mpi_reduce_scatter,
        .all_gather = mpi_all_gather,
        .all_to_all = mpi_all_to_all,
        .broadcast = mpi_broadcast,
        .send = mpi_send,
        .receive = mpi_receive,
        .sum = mpi_sum,
        .max = mpi_max,
        .abort = mpi_abort,
    };
    struct topt_comm *c = calloc(1, sizeof *c);
    struct world *w = calloc(1, sizeof *w);
    if (!c || !w) {
        free(c);
        free(w);
        return topt_nomem(err, NULL);
    }
    c->ops = &ops;
    c->impl = w;
    w->comm = MPI_COMM_NULL;
    int rc = MPI_Comm_dup(mpi, &w->comm);
    if (!rc)
        rc = MPI_Comm_set_errhandler(w->comm, MPI_ERRORS_RETURN);
    if (!rc)
        rc = MPI_Comm_rank(w->comm, &c->rank);
    if (!rc)
        rc = MPI_Comm_size(w->comm, &c->size);
    w->scratch = rc ? NULL : calloc(4 * (size_t)c->size, sizeof *w->scratch);
    if (rc || !w->scratch) {
        topt_comm_destroy(c);
        return rc ? fail(rc, "MPI_Comm_dup", err) : topt_nomem(err, NULL);
    }
    *ret = c;
    return 0;
}

static int
    began; /* MPI was started here, so it is ended here, at the latest at the exit */

int topt_comm_mpi_world(int *argc, char ***argv, struct topt_comm **ret,
                        struct topt_error *err)
{
    int started = 0, rc = MPI_Initialized(&started);
    if (!rc && !started) {
        rc = MPI_Init(argc, argv);
        began = !rc;
        if (began)
            atexit(topt_comm_mpi_finish);
    }
    if (rc)
        return fail(rc, "MPI_Init", err);
    return topt_comm_mpi(MPI_COMM_WORLD, ret, err);
}

void topt_comm_mpi_finish(void)
{
    int done = 0;
    if (began && !MPI_Finalized(&done) && !done)
        MPI_Finalize();
}
