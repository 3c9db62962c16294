/* collectives.c - each collective between devices against what it means.
 *
 * usage: [mpirun -n N] cuda_collectives nccl|staged
 *
 * All groups of the mesh of the ranks, blocks alike, short and empty, every type of number.
 * Numbers are small and whole, so that all results are exact, in bf16, too; every rank knows
 * what every other sends, and works out what it should get. */
#include "device.h"

#include "comm_staged.h"
#include "number.h"
#include "topt_runtime.h"

#include <string.h>

enum { MAX_RANKS = 16, MAX_NUMBERS = 4096 };

struct world {
    struct topt_comm *host, *comm;
    struct topt_device dev;
    enum topt_comm_number number;
    int64_t counts[MAX_RANKS], to_counts[MAX_RANKS];
    struct topt_comm_group g;
    uint32_t axes;
    int shape, wrong;
};

static void must(const struct world *w, int rc, const struct topt_error *err)
{
    if (!rc)
        return;
    printf("Bail out! rank %d: %s\n", w->host->rank, err->text);
    fflush(stdout);
    w->host->ops->abort(w->host, 1);
}

/* What 'from' sends at place i. */
static double sent(int from, int64_t i)
{
    return (double)((from * 7 + i * 3) % 11 - 4);
}

static void put(const struct world *w, void *p, int64_t i, double x)
{
    if (w->number == TOPT_COMM_32)
        ((int32_t *)p)[i] = (int32_t)x;
    else
        topt_number_put(w->dev.dtype, p, i, x);
}

static double get(const struct world *w, const void *p, int64_t i)
{
    return w->number == TOPT_COMM_32 ? ((const int32_t *)p)[i]
                                     : topt_number_get(w->dev.dtype, p, i);
}

/* Elements that member 'a' has for member 'b': alike, uneven, or hardly any. */
static int64_t share(const struct world *w, int a, int b)
{
    return w->shape == 0 ? 5 : w->shape == 1 ? (a * 3 + b * 5) % 7 : a == b + 1 ? 3 : 0;
}

/* Run one collective on 'out' numbers of this rank; 'in' numbers in 'got'. */
static void collective(struct world *w,
                       int (*run)(struct topt_comm *, const struct topt_comm_call *,
                                  struct topt_error *),
                       enum topt_comm_reduce reduce, int64_t out, int64_t in, double *got)
{
    struct topt_error err = {0};
    int64_t bytes = MAX_NUMBERS * 8;
    char raw[MAX_NUMBERS * 8];
    void *src = NULL, *dst = NULL;
    for (int64_t i = 0; i < out; i++)
        put(w, raw, i, sent(w->host->rank, i));
    must(w,
         w->dev.ops->alloc(&w->dev, bytes, &src, &err) ||
             w->dev.ops->alloc(&w->dev, bytes, &dst, &err) ||
             w->dev.ops->write(&w->dev, src, raw, bytes, &err),
         &err);
    struct topt_comm_call k = {.axes = w->axes,
                               .number = w->number,
                               .reduce = reduce,
                               .src = src,
                               .dst = dst,
                               .n = out,
                               .counts = w->counts,
                               .to_counts = w->to_counts};
    must(w, run(w->comm, &k, &err) || w->dev.ops->read(&w->dev, raw, dst, bytes, &err),
         &err);
    for (int64_t i = 0; i < in; i++)
        got[i] = get(w, raw, i);
    w->dev.ops->release(&w->dev, src);
    w->dev.ops->release(&w->dev, dst);
}

/* What the group makes of the numbers at place i. */
static double folded(const struct world *w, enum topt_comm_reduce reduce, int64_t i)
{
    double x = sent(w->g.device[0], i);
    for (int m = 1; m < w->g.size; m++) {
        double y = sent(w->g.device[m], i);
        x = reduce == TOPT_COMM_SUM ? x + y : y > x ? y : x;
    }
    return x;
}

static void check_reduce(struct world *w, enum topt_comm_reduce reduce)
{
    double got[MAX_NUMBERS];
    collective(w, w->comm->ops->all_reduce, reduce, 37, 37, got);
    for (int64_t i = 0; i < 37; i++)
        w->wrong += got[i] != folded(w, reduce, i);
}

static void check_scatter(struct world *w)
{
    double got[MAX_NUMBERS];
    int64_t total = 0, first = 0;
    for (int m = 0; m < w->g.size; m++) {
        first = m == w->g.me ? total : first;
        total += w->counts[m] = share(w, m, 0);
    }
    int64_t mine = w->counts[w->g.me];
    collective(w, w->comm->ops->reduce_scatter, TOPT_COMM_SUM, total, mine, got);
    for (int64_t i = 0; i < mine; i++)
        w->wrong += got[i] != folded(w, TOPT_COMM_SUM, first + i);
}

static void check_gather(struct world *w)
{
    double got[MAX_NUMBERS];
    int64_t total = 0, at = 0;
    for (int m = 0; m < w->g.size; m++)
        total += w->counts[m] = share(w, m, 0);
    collective(w, w->comm->ops->all_gather, TOPT_COMM_SUM, w->counts[w->g.me], total,
               got);
    for (int m = 0; m < w->g.size; m++)
        for (int64_t i = 0; i < w->counts[m]; i++)
            w->wrong += got[at++] != sent(w->g.device[m], i);
}

static void check_exchange(struct world *w)
{
    double got[MAX_NUMBERS];
    int64_t out = 0, in = 0, at = 0;
    for (int m = 0; m < w->g.size; m++) {
        out += w->counts[m] = share(w, w->g.me, m);
        in += w->to_counts[m] = share(w, m, w->g.me);
    }
    collective(w, w->comm->ops->all_to_all, TOPT_COMM_SUM, out, in, got);
    for (int m = 0; m < w->g.size; m++) {
        int64_t first = 0;
        for (int k = 0; k < w->g.me; k++)
            first += share(w, m, k);
        for (int64_t i = 0; i < share(w, m, w->g.me); i++)
            w->wrong += got[at++] != sent(w->g.device[m], first + i);
    }
}

static void check_group(struct world *w)
{
    struct topt_error err = {0};
    must(w, w->comm->ops->group(w->comm, w->axes, &w->g, &err), &err);
    for (w->shape = 0; w->shape < 3; w->shape++) {
        check_scatter(w);
        check_gather(w);
        check_exchange(w);
    }
    check_reduce(w, TOPT_COMM_SUM);
    check_reduce(w, TOPT_COMM_MAX);
}

static void check_numbers(struct world *w, const char *kind, enum topt_comm_number number)
{
    struct topt_error err = {0};
    w->number = number;
    w->wrong = 0;
    for (w->axes = 0; w->axes < 1u << w->comm->mesh.naxes; w->axes++)
        check_group(w);
    double wrong = w->wrong;
    must(w, w->comm->ops->sum(w->comm, &wrong, 1, &err), &err);
    if (!w->host->rank)
        ok(wrong == 0, "%s on %d ranks, %s: %d groups, every collective", kind,
           w->host->size, number == TOPT_COMM_32 ? "i32" : topt_dtype_name(w->dev.dtype),
           1 << w->comm->mesh.naxes);
}

static void check_device(struct world *w, const struct topt_module *m, const char *kind,
                         enum topt_dtype dtype)
{
    static const enum topt_comm_number number[] = {[TOPT_F32] = TOPT_COMM_F32,
                                                   [TOPT_F64] = TOPT_COMM_F64,
                                                   [TOPT_BF16] = TOPT_COMM_BF16};
    struct topt_error err = {0};
    open_device(m, dtype, w->host->rank, &w->dev);
    must(w,
         !strcmp(kind, "nccl") ? m->communicator(w->host, &w->dev, &w->comm, &err)
                               : topt_comm_staged(w->host, &w->dev, &w->comm, &err),
         &err);
    check_numbers(w, kind, number[dtype]);
    if (dtype == TOPT_F32)
        check_numbers(w, kind, TOPT_COMM_32);
    topt_comm_destroy(w->comm);
    topt_device_close(&w->dev);
}

int main(int argc, char **argv)
{
    struct topt_error err = {0};
    struct topt_mesh mesh;
    struct world w = {.host = NULL};
    const char *kind = argc > 1 ? argv[1] : "staged";
    const struct topt_module *m = the_module();
    if (topt_comm_open(&argc, &argv, &w.host, &err)) {
        printf("Bail out! %s\n", err.text);
        return 1;
    }
    must(&w,
         topt_mesh_init(&mesh, 1, w.host->size, &err) ||
             topt_comm_bind(w.host, &mesh, &err),
         &err);
    for (int t = TOPT_F32; t <= TOPT_BF16; t++)
        check_device(&w, m, kind, (enum topt_dtype)t);
    int rank = w.host->rank;
    topt_comm_destroy(w.host);
    topt_comm_mpi_finish();
    return rank ? 0 : done_testing();
}
