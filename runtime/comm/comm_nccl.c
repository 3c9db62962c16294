/* comm_nccl.c - the communicator between GPUs over NCCL; part of the CUDA backend's
 * module.
 *
 * One communicator of the world is made from an id that rank 0 draws and the control
 * communicator spreads; groups are split off it once per set of axes and kept.
 * Everything is enqueued on the device's stream, so a collective waits for the kernels
 * before it and the kernels after it for the collective.  What NCCL has for equal
 * blocks only is made of grouped calls where blocks differ.  What is in the hosts'
 * memory (losses, texts, failures) goes by the control communicator. */
#include "cuda.h"
#include "topt_clock.h"
#include "nccl_api.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

/* How long a communicator may take to be made, and a call to be taken. */
enum { PATIENCE_S = 120 };

struct split {
    uint32_t axes;
    ncclComm_t comm;
    struct split *next;
};

struct world {
    struct topt_comm *control;
    struct cuda_device *device;
    struct nccl_api api;
    ncclComm_t comm;
    struct split *splits;
};

/* A collective as NCCL wants it. */
struct nccl_call {
    const struct nccl_api *api;
    ncclComm_t comm;
    cudaStream_t stream;
    ncclDataType_t type;
    int64_t bytes; /* of a number */
    struct topt_comm_group g;
};

static struct world *world_of(struct topt_comm *c)
{
    return c->impl;
}

static int check(const struct nccl_api *api, ncclResult_t rc, const char *what,
                 struct topt_error *err)
{
    return rc == ncclSuccess
               ? 0
               : topt_fail(err, TOPT_ERR_DEVICE, "%s: %s", what, api->GetErrorString(rc));
}

/* A call that is not done yet is asked after until it is, or fails, so that a rank that is gone
 * ends in an error here instead of in silence. */
static int settled(const struct nccl_api *api, ncclComm_t comm, ncclResult_t rc,
                   const char *what, struct topt_error *err)
{
    const struct timespec pause = {0, 200000};
    int64_t until_ms = topt_clock_ms() + PATIENCE_S * 1000;
    while (rc == ncclInProgress) {
        ncclResult_t state = ncclSuccess;
        if (check(api, api->CommGetAsyncError(comm, &state), what, err))
            return -1;
        rc = state;
        if (rc == ncclInProgress && topt_clock_ms() > until_ms)
            return topt_fail(err, TOPT_ERR_DEVICE,
                             "%s: still not done after %d seconds: is a rank missing?",
                             what, (int)PATIENCE_S);
        if (rc == ncclInProgress)
            nanosleep(&pause, NULL);
    }
    return check(api, rc, what, err);
}

/* The world's communicator is made without blocking, so that a missing rank is seen; it runs no
 * collective.  Those that do block: on one that does not, NCCL starts a thread for each call
 * (groupLaunchNonBlocking in its src/group.cc, from 2.14 on). */
static ncclConfig_t config_of(int blocking)
{
    ncclConfig_t c = NCCL_CONFIG_INITIALIZER;
    c.blocking = blocking;
    c.splitShare = 1; /* splits use what their parent has */
    return c;
}

static ncclDataType_t type_of(enum topt_comm_number n)
{
    static const ncclDataType_t type[TOPT_COMM_NUMBER_COUNT] = {
        [TOPT_COMM_BYTE] = ncclInt8,   [TOPT_COMM_32] = ncclInt32,
        [TOPT_COMM_64] = ncclInt64,    [TOPT_COMM_F32] = ncclFloat32,
        [TOPT_COMM_F64] = ncclFloat64, [TOPT_COMM_BF16] = ncclBfloat16};
    return type[n];
}

/* ---- groups ------------------------------------------------------------------------ */

/* What it was asked for is done, or nobody waits for it any more. */
static void let_go(struct world *w, ncclComm_t comm)
{
    struct topt_error err = {0};
    if (settled(&w->api, comm, w->api.CommFinalize(comm), "ncclCommFinalize", &err))
        w->api.CommAbort(comm);
    else
        w->api.CommDestroy(comm);
}

/* Communicators go once their work is done. */
static void nccl_forget(struct topt_comm *c)
{
    struct world *w = world_of(c);
    cudaStreamSynchronize(w->device->stream);
    if (w->device->beside)
        cudaStreamSynchronize(w->device->beside);
    for (struct split *s = w->splits, *next; s; s = next) {
        next = s->next;
        let_go(w, s->comm);
        free(s);
    }
    w->splits = NULL;
    w->control->ops->forget(w->control);
}

static void nccl_destroy(struct topt_comm *c)
{
    struct world *w = world_of(c);
    nccl_forget(c);
    if (w->comm)
        let_go(w, w->comm);
    free(w);
}

static int group_of(struct topt_comm *c, uint32_t axes, struct topt_comm_group *ret,
                    struct topt_error *err)
{
    struct topt_comm *control = world_of(c)->control;
    return topt_comm_bind(control, &c->mesh, err) ||
                   control->ops->group(control, axes, ret, err)
               ? -1
               : 0;
}

/* Every rank splits at the same place of its program; the smallest member names a
 * group. */
static int split_off(struct topt_comm *c, uint32_t axes, const struct topt_comm_group *g,
                     ncclComm_t *ret, struct topt_error *err)
{
    struct world *w = world_of(c);
    for (struct split *s = w->splits; s; s = s->next)
        if (s->axes == axes) {
            *ret = s->comm;
            return 0;
        }
    struct split *s = calloc(1, sizeof *s);
    if (!s)
        return topt_nomem(err, NULL);
    ncclConfig_t config = config_of(1);
    ncclResult_t rc = w->api.CommSplit(w->comm, g->device[0], c->rank, &s->comm, &config);
    if (settled(&w->api, w->comm, rc, "ncclCommSplit", err) ||
        settled(&w->api, s->comm, ncclInProgress, "ncclCommSplit", err)) {
        free(s);
        return -1;
    }
    s->axes = axes;
    s->next = w->splits;
    w->splits = s;
    *ret = s->comm;
    return 0;
}

/* With its communicator: who asks for all groups before the first step makes none in one. */
static int nccl_group(struct topt_comm *c, uint32_t axes, struct topt_comm_group *ret,
                      struct topt_error *err)
{
    ncclComm_t comm;
    return group_of(c, axes, ret, err) || split_off(c, axes, ret, &comm, err) ? -1 : 0;
}

static int prepare(struct topt_comm *c, const struct topt_comm_call *k,
                   struct nccl_call *ret, struct topt_error *err)
{
    struct world *w = world_of(c);
    *ret = (struct nccl_call){.api = &w->api,
                              .stream = k->queue == TOPT_QUEUE_COMMUNICATION
                                            ? w->device->beside
                                            : w->device->stream,
                              .type = type_of(k->number),
                              .bytes = topt_comm_number_bytes(k->number)};
    return group_of(c, k->axes, &ret->g, err) ||
                   split_off(c, k->axes, &ret->g, &ret->comm, err)
               ? -1
               : 0;
}

/* ---- collectives ------------------------------------------------------------------- */

static int all_equal(const int64_t *counts, int n)
{
    for (int i = 1; i < n; i++)
        if (counts[i] != counts[0])
            return 0;
    return 1;
}

static char *at(const struct nccl_call *n, const void *p, int64_t i)
{
    return (char *)(uintptr_t)p + i * n->bytes;
}

static int nccl_all_reduce(struct topt_comm *c, const struct topt_comm_call *k,
                           struct topt_error *err)
{
    struct nccl_call n;
    if (prepare(c, k, &n, err))
        return -1;
    if (k->n <= 0)
        return 0;
    return settled(n.api, n.comm,
                   n.api->AllReduce(k->src, k->dst, (size_t)k->n, n.type,
                                    k->reduce == TOPT_COMM_MAX ? ncclMax : ncclSum,
                                    n.comm, n.stream),
                   "ncclAllReduce", err);
}

/* The device moves its queues by itself. */
static struct topt_engine nccl_engine(struct topt_comm *c)
{
    (void)c;
    return (struct topt_engine){.last = NULL};
}

static int goes_on(ncclResult_t rc)
{
    return rc == ncclSuccess || rc == ncclInProgress;
}

/* Of the calls in a group and of its end: what failed, else what the end says. */
static ncclResult_t worse(ncclResult_t calls, ncclResult_t end)
{
    return goes_on(calls) ? end : calls;
}

/* One call for each block that is not empty, 'block', inside one group of calls. */
static int each_block(const struct nccl_call *n, const struct topt_comm_call *k,
                      ncclResult_t (*block)(const struct nccl_call *,
                                            const struct topt_comm_call *, int, int64_t),
                      const char *what, struct topt_error *err)
{
    int64_t first = 0;
    ncclResult_t rc = n->api->GroupStart();
    for (int i = 0; i < n->g.size; first += k->counts[i++])
        if (goes_on(rc) && k->counts[i] > 0)
            rc = block(n, k, i, first);
    ncclResult_t end = n->api->GroupEnd();
    return settled(n->api, n->comm, worse(rc, end), what, err);
}

static ncclResult_t reduce_block(const struct nccl_call *n,
                                 const struct topt_comm_call *k, int i, int64_t first)
{
    return n->api->Reduce(at(n, k->src, first), k->dst, (size_t)k->counts[i], n->type,
                          ncclSum, i, n->comm, n->stream);
}

static int nccl_reduce_scatter(struct topt_comm *c, const struct topt_comm_call *k,
                               struct topt_error *err)
{
    struct nccl_call n;
    if (prepare(c, k, &n, err))
        return -1;
    if (!all_equal(k->counts, n.g.size))
        return each_block(&n, k, reduce_block, "ncclReduce", err);
    if (k->counts[0] <= 0)
        return 0;
    return settled(n.api, n.comm,
                   n.api->ReduceScatter(k->src, k->dst, (size_t)k->counts[0], n.type,
                                        ncclSum, n.comm, n.stream),
                   "ncclReduceScatter", err);
}

static ncclResult_t spread_block(const struct nccl_call *n,
                                 const struct topt_comm_call *k, int i, int64_t first)
{
    char *to = at(n, k->dst, first);
    return n->api->Broadcast(i == n->g.me ? k->src : to, to, (size_t)k->counts[i],
                             n->type, i, n->comm, n->stream);
}

static int nccl_all_gather(struct topt_comm *c, const struct topt_comm_call *k,
                           struct topt_error *err)
{
    struct nccl_call n;
    if (prepare(c, k, &n, err))
        return -1;
    if (!all_equal(k->counts, n.g.size))
        return each_block(&n, k, spread_block, "ncclBroadcast", err);
    if (k->counts[0] <= 0)
        return 0;
    return settled(
        n.api, n.comm,
        n.api->AllGather(k->src, k->dst, (size_t)k->counts[0], n.type, n.comm, n.stream),
        "ncclAllGather", err);
}

static int nccl_all_to_all(struct topt_comm *c, const struct topt_comm_call *k,
                           struct topt_error *err)
{
    struct nccl_call n;
    int64_t from = 0, to = 0;
    if (prepare(c, k, &n, err))
        return -1;
    ncclResult_t rc = n.api->GroupStart();
    for (int i = 0; i < n.g.size; i++) {
        if (goes_on(rc) && k->counts[i] > 0)
            rc = n.api->Send(at(&n, k->src, from), (size_t)k->counts[i], n.type, i,
                             n.comm, n.stream);
        if (goes_on(rc) && k->to_counts[i] > 0)
            rc = n.api->Recv(at(&n, k->dst, to), (size_t)k->to_counts[i], n.type, i,
                             n.comm, n.stream);
        from += k->counts[i];
        to += k->to_counts[i];
    }
    ncclResult_t end = n.api->GroupEnd();
    return settled(n.api, n.comm, worse(rc, end), "ncclSend and ncclRecv", err);
}

/* ---- the hosts' memory ------------------------------------------------------------- */

static int nccl_broadcast(struct topt_comm *c, void *data, int64_t bytes,
                          struct topt_error *err)
{
    struct topt_comm *control = world_of(c)->control;
    return control->ops->broadcast(control, data, bytes, err);
}

static int nccl_send(struct topt_comm *c, int to, const void *data, int64_t bytes,
                     struct topt_error *err)
{
    struct topt_comm *control = world_of(c)->control;
    return control->ops->send(control, to, data, bytes, err);
}

static int nccl_receive(struct topt_comm *c, int from, void *data, int64_t bytes,
                        struct topt_error *err)
{
    struct topt_comm *control = world_of(c)->control;
    return control->ops->receive(control, from, data, bytes, err);
}

static int nccl_sum(struct topt_comm *c, double *values, int n, struct topt_error *err)
{
    struct topt_comm *control = world_of(c)->control;
    return control->ops->sum(control, values, n, err);
}

static int nccl_max(struct topt_comm *c, double *values, int n, struct topt_error *err)
{
    struct topt_comm *control = world_of(c)->control;
    return control->ops->max(control, values, n, err);
}

/* What waits on the device for ranks that will not come ends first. */
static void nccl_abort(struct topt_comm *c, int status)
{
    struct world *w = world_of(c);
    struct topt_comm *control = w->control;
    for (struct split *s = w->splits; s; s = s->next)
        w->api.CommAbort(s->comm);
    if (w->comm)
        w->api.CommAbort(w->comm);
    w->comm = NULL;
    w->splits = NULL;
    control->ops->abort(control, status);
}

/* ---- starting ---------------------------------------------------------------------- */

static int open_library(struct nccl_api *api, struct topt_error *err)
{
    const char *name = getenv("TOPT_NCCL"), *missing = NULL;
    void *handle = dlopen(name && *name ? name : "libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        return topt_fail(err, TOPT_ERR_DEVICE,
                         "NCCL can't be loaded: %s; use --comm staged", dlerror());
#define X(name)                                                                          \
    *(void **)&api->name = dlsym(handle, "nccl" #name);                                  \
    missing = api->name ? missing : "nccl" #name;
    TOPT_NCCL_FUNCTIONS(X)
#undef X
    return missing ? topt_fail(err, TOPT_ERR_DEVICE,
                               "NCCL has no %s: at least 2.18 is needed", missing)
                   : 0;
}

/* Rank 0 draws the id of this world; nobody goes on unless all can. */
static int start(struct topt_comm *c, struct topt_error *err)
{
    struct world *w = world_of(c);
    struct topt_comm *control = w->control;
    ncclUniqueId id;
    int failed = open_library(&w->api, err);
    if (!failed && !c->rank)
        failed = check(&w->api, w->api.GetUniqueId(&id), "ncclGetUniqueId", err);
    if (topt_comm_agree(control, failed, err) ||
        control->ops->broadcast(control, &id, sizeof id, err))
        return -1;
    ncclConfig_t config = config_of(0);
    ncclResult_t rc = w->api.CommInitRankConfig(&w->comm, c->size, id, c->rank, &config);
    failed = settled(&w->api, w->comm, rc, "ncclCommInitRank", err);
    return topt_comm_agree(control, failed, err);
}

int topt_cuda_communicator(struct topt_comm *control, struct topt_device *d,
                           struct topt_comm **ret, struct topt_error *err)
{
    static const struct topt_comm_ops ops = {
        .name = "nccl",
        .destroy = nccl_destroy,
        .forget = nccl_forget,
        .group = nccl_group,
        .all_reduce = nccl_all_reduce,
        .engine = nccl_engine,
        .reduce_scatter = nccl_reduce_scatter,
        .all_gather = nccl_all_gather,
        .all_to_all = nccl_all_to_all,
        .broadcast = nccl_broadcast,
        .send = nccl_send,
        .receive = nccl_receive,
        .sum = nccl_sum,
        .max = nccl_max,
        .abort = nccl_abort,
    };
    struct topt_comm *c = calloc(1, sizeof *c);
    struct world *w = calloc(1, sizeof *w);
    if (!c || !w) {
        free(c);
        free(w);
        return topt_nomem(err, NULL);
    }
    *w = (struct world){.control = control, .device = dev_of(d)};
    *c = (struct topt_comm){.ops = &ops,
                            .rank = control->rank,
                            .size = control->size,
                            .mesh = control->mesh,
                            .impl = w};
    if (start(c, err)) {
        topt_comm_destroy(c);
        return -1;
    }
    *ret = c;
    return 0;
}
