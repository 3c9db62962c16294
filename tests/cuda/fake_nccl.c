/* fake_nccl.c - NCCL over MPI, on the device's memory of fake_cuda.c.
 *
 * Beside moving numbers it checks what NCCL would hang or fail on without a word: that all
 * members of a communicator make the same calls in the same order (kind, type, count, root),
 * that sends meet receives of the same size, and that grouped calls end. */
#include "emulate.h"
#include "nccl_api.h"

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct ncclComm {
    MPI_Comm mpi;
    int rank, size;
    int64_t calls;
    int pending; /* so often it is not done yet when it is asked after */
};

enum kind { ALL_REDUCE, REDUCE, BROADCAST, REDUCE_SCATTER, ALL_GATHER, SEND, RECV };

/* A call; inside a group they wait for its end. */
struct call {
    enum kind kind;
    const void *src;
    void *dst;
    size_t n;
    ncclDataType_t type;
    ncclRedOp_t op;
    int peer;
    ncclComm_t comm;
    cudaStream_t stream;
};

enum { MAX_CALLS = 4096 };
static struct call waiting[MAX_CALLS];
static int nwaiting, depth;

static void need(int good, const char *what)
{
    if (good)
        return;
    printf("Bail out! fake NCCL: %s\n", what);
    fflush(stdout);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static size_t bytes_of(ncclDataType_t t)
{
    return t == ncclInt8                        ? 1
           : t == ncclBfloat16                  ? 2
           : t == ncclInt32 || t == ncclFloat32 ? 4
                                                : 8;
}

/* The same call on every member? */
static void check_order(const struct call *c)
{
    int64_t mine[6] = {c->kind, (int64_t)c->n, c->type, c->op, c->peer, c->comm->calls++};
    int64_t most[12], all[12];
    for (int i = 0; i < 6; i++) {
        most[i] = mine[i];
        most[6 + i] = -mine[i];
    }
    MPI_Allreduce(most, all, 12, MPI_INT64_T, MPI_MAX, c->comm->mpi);
    for (int i = 0; i < 6; i++)
        need(all[i] == -all[6 + i], "members of a communicator make different calls");
    need(c->stream != NULL, "a call on no stream");
}

static float from_bf16(uint16_t x)
{
    uint32_t bits = (uint32_t)x << 16;
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static uint16_t to_bf16(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static double number(const void *p, ncclDataType_t t, size_t i)
{
    return t == ncclFloat64   ? ((const double *)p)[i]
           : t == ncclFloat32 ? (double)((const float *)p)[i]
           : t == ncclInt32   ? ((const int32_t *)p)[i]
                              : (double)from_bf16(((const uint16_t *)p)[i]);
}

static void set_number(void *p, ncclDataType_t t, size_t i, double x)
{
    if (t == ncclFloat64)
        ((double *)p)[i] = x;
    else if (t == ncclFloat32)
        ((float *)p)[i] = (float)x;
    else if (t == ncclInt32)
        ((int32_t *)p)[i] = (int32_t)x;
    else
        ((uint16_t *)p)[i] = to_bf16((float)x);
}

/* 'n' numbers from element 'first' of what every member has, added up in order of members. */
static void fold(const struct call *c, const char *all, size_t each, size_t first,
                 size_t n, void *dst)
{
    size_t bytes = bytes_of(c->type);
    for (size_t i = 0; i < n; i++) {
        double x = number(all, c->type, first + i);
        for (int r = 1; r < c->comm->size; r++) {
            double y = number(all + (size_t)r * each * bytes, c->type, first + i);
            x = c->op == ncclMax ? (y > x ? y : x) : x + y;
        }
        set_number(dst, c->type, i, x);
    }
}

static void collective(const struct call *c)
{
    int scatter = c->kind == REDUCE_SCATTER, size = c->comm->size, rank = c->comm->rank;
    size_t each = scatter ? c->n * (size_t)size : c->n, bytes = each * bytes_of(c->type);
    char *all = malloc(bytes * (size_t)size + 1), *mine = malloc(bytes + 1);
    check_order(c);
    int sends = c->kind != BROADCAST || rank == c->peer;
    cu_emulated_enter();
    if (sends)
        memcpy(mine, c->src, bytes);
    cu_emulated_leave();
    MPI_Allgather(mine, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, c->comm->mpi);
    cu_emulated_enter();
    if (c->kind == ALL_GATHER)
        memcpy(c->dst, all, bytes * (size_t)size);
    else if (c->kind == BROADCAST)
        memcpy(c->dst, all + (size_t)c->peer * bytes, bytes);
    else if (c->kind != REDUCE || rank == c->peer)
        fold(c, all, each, scatter ? (size_t)rank * c->n : 0, c->n, c->dst);
    cu_emulated_leave();
    free(all);
    free(mine);
}

/* All sends and receives of a group at once, through buffers of the host. */
static void pass_messages(const struct call *call, int n)
{
    MPI_Request *request = calloc((size_t)n + 1, sizeof(MPI_Request));
    char **room = calloc((size_t)n + 1, sizeof(char *));
    for (int i = 0; i < n; i++) {
        const struct call *c = &call[i];
        int bytes = (int)(c->n * bytes_of(c->type));
        request[i] = MPI_REQUEST_NULL;
        if (c->kind != SEND && c->kind != RECV)
            continue;
        room[i] = malloc((size_t)bytes + 1);
        cu_emulated_enter();
        if (c->kind == SEND)
            memcpy(room[i], c->src, (size_t)bytes);
        cu_emulated_leave();
        if (c->kind == SEND)
            MPI_Isend(room[i], bytes, MPI_BYTE, c->peer, 7, c->comm->mpi, &request[i]);
        else
            MPI_Irecv(room[i], bytes, MPI_BYTE, c->peer, 7, c->comm->mpi, &request[i]);
    }
    for (int i = 0; i < n; i++) {
        MPI_Status status;
        int got, receives = call[i].kind == RECV;
        size_t bytes = call[i].n * bytes_of(call[i].type);
        MPI_Wait(&request[i], &status);
        if (receives) {
            MPI_Get_count(&status, MPI_BYTE, &got);
            need((size_t)got == bytes, "a receive of another size than its send");
            cu_emulated_enter();
            memcpy(call[i].dst, room[i], bytes);
            cu_emulated_leave();
        }
        free(room[i]);
    }
    free(room);
    free(request);
}

static void collective_of(const void *ctx)
{
    collective(ctx);
}

static ncclResult_t add(struct call c)
{
    need(nwaiting < MAX_CALLS, "too many calls in a group");
    need(c.comm != NULL, "a call on no communicator");
    ncclGroupStart();
    waiting[nwaiting++] = c;
    return ncclGroupEnd();
}

ncclResult_t ncclGroupStart(void)
{
    depth++;
    return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void)
{
    need(depth > 0, "a group that ends without a start");
    if (--depth > 0)
        return ncclSuccess;
    for (int i = 0; i < nwaiting; i++)
        if (waiting[i].kind < SEND)
            cu_emulated_put(waiting[i].stream, collective_of, &waiting[i],
                            sizeof waiting[i]);
    pass_messages(waiting, nwaiting);
    nwaiting = 0;
    return ncclSuccess;
}

ncclResult_t ncclAllReduce(const void *src, void *dst, size_t n, ncclDataType_t t,
                           ncclRedOp_t op, ncclComm_t c, cudaStream_t s)
{
    return add((struct call){ALL_REDUCE, src, dst, n, t, op, 0, c, s});
}

ncclResult_t ncclReduce(const void *src, void *dst, size_t n, ncclDataType_t t,
                        ncclRedOp_t op, int root, ncclComm_t c, cudaStream_t s)
{
    return add((struct call){REDUCE, src, dst, n, t, op, root, c, s});
}

ncclResult_t ncclBroadcast(const void *src, void *dst, size_t n, ncclDataType_t t,
                           int root, ncclComm_t c, cudaStream_t s)
{
    return add((struct call){BROADCAST, src, dst, n, t, ncclSum, root, c, s});
}

ncclResult_t ncclReduceScatter(const void *src, void *dst, size_t n, ncclDataType_t t,
                               ncclRedOp_t op, ncclComm_t c, cudaStream_t s)
{
    return add((struct call){REDUCE_SCATTER, src, dst, n, t, op, 0, c, s});
}

ncclResult_t ncclAllGather(const void *src, void *dst, size_t n, ncclDataType_t t,
                           ncclComm_t c, cudaStream_t s)
{
    return add((struct call){ALL_GATHER, src, dst, n, t, ncclSum, 0, c, s});
}

ncclResult_t ncclSend(const void *src, size_t n, ncclDataType_t t, int peer, ncclComm_t c,
                      cudaStream_t s)
{
    return add((struct call){SEND, src, NULL, n, t, ncclSum, peer, c, s});
}

ncclResult_t ncclRecv(void *dst, size_t n, ncclDataType_t t, int peer, ncclComm_t c,
                      cudaStream_t s)
{
    return add((struct call){RECV, NULL, dst, n, t, ncclSum, peer, c, s});
}

/* ---- communicators ------------------------------------------------------------------------- */

static ncclResult_t wrap(MPI_Comm mpi, ncclComm_t *ret)
{
    ncclComm_t c = calloc(1, sizeof *c);
    c->mpi = mpi;
    MPI_Comm_rank(mpi, &c->rank);
    MPI_Comm_size(mpi, &c->size);
    *ret = c;
    return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *ret)
{
    memset(ret, 0x5a, sizeof *ret);
    return ncclSuccess;
}

/* The world's communicator is made without blocking, those that run collectives block; each takes
 * a few questions to be there. */
static int is_config(const ncclConfig_t *c, int blocking)
{
    return c && c->magic == 0xcafebeef && c->size == sizeof *c && c->blocking == blocking;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t c, ncclResult_t *ret)
{
    need(c != NULL, "asked after no communicator");
    *ret = c->pending > 0 ? ncclInProgress : ncclSuccess;
    c->pending -= c->pending > 0;
    return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t c)
{
    need(c->pending == 0, "a communicator that goes before it is there");
    return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t c)
{
    free(c);
    return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *ret, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t *config)
{
    need(is_config(config, 0), "a communicator of the world that blocks");
    MPI_Comm mpi;
    for (size_t i = 0; i < sizeof id; i++)
        need(id.internal[i] == 0x5a, "an id that nobody drew");
    MPI_Comm_dup(MPI_COMM_WORLD, &mpi);
    wrap(mpi, ret);
    need((*ret)->rank == rank && (*ret)->size == ranks, "ranks that are not MPI's");
    (*ret)->pending = 3;
    return ncclInProgress;
}

ncclResult_t ncclCommSplit(ncclComm_t c, int color, int key, ncclComm_t *ret,
                           ncclConfig_t *config)
{
    MPI_Comm mpi;
    need(is_config(config, 1), "a split whose calls start threads");
    need(c->pending == 0, "a split of what is not there yet");
    need(depth == 0, "a split inside a group");
    MPI_Comm_split(c->mpi, color, key, &mpi);
    wrap(mpi, ret);
    (*ret)->pending = 2;
    return ncclInProgress;
}

ncclResult_t ncclCommDestroy(ncclComm_t c)
{
    MPI_Comm_free(&c->mpi);
    free(c);
    return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t rc)
{
    return rc == ncclSuccess ? "no error" : "an error";
}
