/* rates.c - what a rank computes a second, by the kernels that training runs.
 *
 * All ranks measure the same at once, since in training all of them compute: cores of one
 * package share its bandwidth, caches and clock, and what one rank reaches while the
 * others wait, no plan reaches.  What counts is the slowest rank.  Each size is measured in a few
 * rounds over all sizes and its best counts, so that a slow second of the machine spoils none.
 * Products are measured in the shapes that shards have: a product of s x s x s, and with four
 * times the rows the same whose features, or inputs, are split over four; the time of
 * so many operations is the middle one of the three. */
#include "profile.h"
#include "alone.h"
#include "bench.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 4, SEQ = 128, WIDTH = 512, HEADS = 8, MOST_EXTRA = 6, ROUNDS = 3 };
static const double DISAGREE = 0.15;
/* Rows of products and lengths of attention: powers of two up to the most that is asked for. */
enum { LEAST_ROWS = 8, LEAST_LENGTH = 16, GPU_LEAST = 64, GPU_LONGEST = 2048 };

/* ---- products and attention ----------------------------------------------------------- */

/* rows x inputs times inputs x features. */
static int time_product(const struct topt_rated *on, int64_t rows, int64_t inputs,
                        int64_t features, enum topt_dtype dtype, double *ret_ops,
                        double *ret_ns, struct topt_error *err)
{
    struct topt_attrs in = {.features = inputs}, out = {.features = features};
    struct topt_model *m = topt_model_create("product", 1, rows, err);
    int x = m ? topt_model_add(m, "input", "x", 0, NULL, &in, err) : -1;
    int y = x < 0 ? -1 : topt_model_add(m, "linear", "y", 1, &x, &out, err);
    int rc = y < 0 ? -1
                   : topt_bench_kernel(on, &m->op[y], TOPT_K_LINEAR_FWD, dtype, ret_ops,
                                       ret_ns, err);
    topt_model_destroy(m);
    return rc;
}

/* Nanoseconds of 'want' operations, by the middle one of the shapes of size 's'. */
static int measure_product(const struct topt_rated *on, int64_t s, double want,
                           enum topt_dtype dtype, double *ret, struct topt_error *err)
{
    int64_t part = s / 4;
    const int64_t shape[3][3] = {{s, s, s}, {4 * s, s, part}, {4 * s, part, s}};
    double ns[3], ops;
    for (int i = 0; i < 3; i++) {
        if (time_product(on, shape[i][0], shape[i][1], shape[i][2], dtype, &ops, &ns[i],
                         err))
            return -1;
        ns[i] *= want / ops;
    }
    double low = fmin(ns[0], ns[1]), high = fmax(ns[0], ns[1]);
    *ret = fmin(fmax(low, ns[2]), high);
    return 0;
}

/* Causal, HEADS heads of 64. */
static int measure_attention(const struct topt_rated *on, int64_t length,
                             enum topt_dtype dtype, double *ret_ops, double *ret_ns,
                             struct topt_error *err)
{
    struct topt_attrs in = {.features = 8};
    struct topt_attrs qkv = {.features = HEADS, .features_unit = 3 * WIDTH / HEADS};
    struct topt_attrs heads = {.heads = HEADS, .head_dim = WIDTH / HEADS, .causal = 1};
    struct topt_model *m = topt_model_create("attention", 1, length, err);
    int x = m ? topt_model_add(m, "input", "x", 0, NULL, &in, err) : -1;
    int y = x < 0 ? -1 : topt_model_add(m, "linear", "y", 1, &x, &qkv, err);
    int z = y < 0 ? -1 : topt_model_add(m, "attention", "z", 1, &y, &heads, err);
    int rc = z < 0 ? -1
                   : topt_bench_kernel(on, &m->op[z], TOPT_K_ATTENTION_FWD, dtype,
                                       ret_ops, ret_ns, err);
    topt_model_destroy(m);
    return rc;
}

/* ---- by size ---------------------------------------------------------------------------- */

/* What is measured by size on all ranks of 'comm'. */
struct by_size {
    const struct topt_rated *on;
    struct topt_comm *comm;
    struct topt_survey *survey;
    char what[384];
    enum topt_dtype dtype;
    int attention;
    double *fastest; /* operations of this rank alone a second, at most */
};

static double operations_of(const struct by_size *w, int64_t size)
{
    double s = (double)size;
    return w->attention ? 4 * s * s * WIDTH : 2 * s * s * s;
}

/* The size of so many operations. */
static int64_t size_of(const struct by_size *w, double ops)
{
    return w->attention ? (int64_t)sqrt(ops / (4.0 * WIDTH))
                        : (int64_t)(cbrt(ops / 2) / 4 + 0.5) * 4; /* it is split */
}

static int measure_size(const struct by_size *w, int64_t size, double *ret,
                        struct topt_error *err)
{
    double counted, ops = operations_of(w, size);
    if (!w->attention)
        return measure_product(w->on, size, ops, w->dtype, ret, err);
    if (measure_attention(w->on, size, w->dtype, &counted, ret, err))
        return -1;
    *ret *= ops / counted;
    return 0;
}

/* Sizes that are measured next, each with the time of the slowest rank. */
struct sizes {
    int n;
    int64_t at[TOPT_MOST_POINTS];
    double ns[TOPT_MOST_POINTS];
};

static int measure_rounds(const struct by_size *w, struct sizes *z,
                          struct topt_error *err)
{
    for (int r = 0; r < ROUNDS; r++)
        for (int i = 0; i < z->n; i++) {
            double ns;
            if (measure_size(w, z->at[i], &ns, err))
                return -1;
            z->ns[i] = r ? fmin(z->ns[i], ns) : ns;
        }
    return 0;
}

/* Attention's sizes are kept by length, products' by operations. */
static int64_t kept_as(const struct by_size *w, int64_t size)
{
    return w->attention ? size : (int64_t)operations_of(w, size);
}

/* All of 'z', whose times become points: each kept once the rounds over all are done. */
static int measure_points(const struct by_size *w, struct sizes *z, struct topt_points *p,
                          struct topt_error *err)
{
    if (topt_comm_agree(w->comm, measure_rounds(w, z, err), err))
        return -1;
    for (int i = 0; i < z->n; i++)
        *w->fastest = fmax(*w->fastest, operations_of(w, z->at[i]) * 1e9 / z->ns[i]);
    if (z->n && w->comm->ops->max(w->comm, z->ns, z->n, err))
        return -1;
    for (int i = 0; i < z->n; i++) {
        int64_t at = kept_as(w, z->at[i]);
        if (topt_comm_agree(w->comm,
                            topt_survey_keep(w->survey, w->what, at, z->ns[i], err), err))
            return -1;
        topt_points_add(p, (int64_t)operations_of(w, z->at[i]), z->ns[i]);
    }
    return 0;
}

/* Known ones are taken; they are the same on all ranks. */
static void add_size(const struct by_size *w, int64_t size, struct sizes *z,
                     struct topt_points *p)
{
    double ns;
    if (topt_survey_known(w->survey, w->what, kept_as(w, size), &ns))
        topt_points_add(p, (int64_t)operations_of(w, size), ns);
    else
        z->at[z->n++] = size;
}

static int64_t least_size(const struct topt_rated *on, int attention)
{
    int64_t least = attention ? LEAST_LENGTH : LEAST_ROWS;
    if (!on->module)
        return least;
    return on->most / 4 < GPU_LEAST ? on->most / 4 : GPU_LEAST;
}

static int64_t most_size(const struct topt_rated *on, int attention)
{
    return attention && on->most > GPU_LONGEST ? GPU_LONGEST : on->most;
}

static int measure_sizes(const struct by_size *w, struct topt_points *p,
                         struct topt_error *err)
{
    struct sizes z = {0};
    int64_t least = least_size(w->on, w->attention);
    for (int64_t s = least; s <= most_size(w->on, w->attention); s *= 2)
        add_size(w, s, &z, p);
    if (measure_points(w, &z, p, err))
        return -1;
    for (int i = 0; i < MOST_EXTRA; i++) {
        int64_t ops = topt_points_next(p, DISAGREE);
        int before = p->n;
        z.n = 0;
        if (ops)
            add_size(w, size_of(w, (double)ops), &z, p);
        if (measure_points(w, &z, p, err))
            return -1;
        if (p->n == before)
            return 0;
    }
    return 0;
}

/* The host's attention is known in f32 alone, and goes by words without a type. */
static int measure_type(struct by_size *w, const char *where, struct topt_rates *ret,
                        struct topt_error *err)
{
    const char *type = topt_dtype_name(w->dtype);
    w->attention = 0;
    snprintf(w->what, sizeof w->what, "%.300s: products in %s", where, type);
    if (measure_sizes(w, &ret->product[w->dtype], err))
        return -1;
    if (w->dtype == TOPT_F64)
        return 0;
    w->attention = 1;
    snprintf(w->what, sizeof w->what, "%.300s: attention by length%s%s", where,
             w->on->module ? " in " : "", w->on->module ? type : "");
    return measure_sizes(w, &ret->attention[w->dtype], err);
}

/* ---- all else -------------------------------------------------------------------------- */

/* One figure stands for all elementwise kernels: between the dearest and the cheapest. */
static int measure_elementwise(const struct topt_rated *on, double *ret,
                               struct topt_error *err)
{
    int64_t rows = on->module && on->most > SEQ ? on->most : SEQ; /* fill a GPU */
    struct topt_attrs in = {.features = WIDTH};
    struct topt_attrs gelu = {.activation = TOPT_ACT_GELU};
    struct topt_model *m = topt_model_create("elementwise", BATCH, rows, err);
    double ops, gelu_ns, add_ns;
    int x = m ? topt_model_add(m, "input", "x", 0, NULL, &in, err) : -1;
    int y = x < 0 ? -1 : topt_model_add(m, "unary", "y", 1, &x, &gelu, err);
    int two[2] = {x, y};
    int z = y < 0 ? -1 : topt_model_add(m, "add", "z", 2, two, NULL, err);
    int rc =
        z < 0 ||
        topt_bench_kernel(on, &m->op[y], TOPT_K_UNARY_FWD, TOPT_F32, &ops, &gelu_ns,
                          err) ||
        topt_bench_kernel(on, &m->op[z], TOPT_K_ADD_FWD, TOPT_F32, &ops, &add_ns, err);
    if (!rc)
        *ret = ops * 1e9 / ((gelu_ns + add_ns) / 2);
    topt_model_destroy(m);
    return rc ? -1 : 0;
}

/* What an instruction costs the host: a step of a model whose kernels have next to nothing to
 * do, over its kernels. */
static int time_steps(const struct topt_rated *on, struct topt_session *session,
                      double *ret, struct topt_error *err)
{
    enum { STEPS = 200 };
    double loss;
    int64_t calls = 0;
    double t = topt_bench_now_ns(on);
    for (int i = 0; i < STEPS; i++)
        if (topt_session_step(session, &loss, err))
            return -1;
    t = topt_bench_now_ns(on) - t;
    struct topt_session_times times = topt_session_times(session);
    for (int k = 0; k < TOPT_KERNEL_COUNT; k++)
        calls += times.kernel_calls[k];
    *ret = t / (double)(calls > 0 ? calls : 1);
    return 0;
}

static struct topt_model *chain_model(struct topt_error *err)
{
    enum { LENGTH = 16 };
    struct topt_attrs in = {.features = 4}, relu = {.activation = TOPT_ACT_RELU};
    struct topt_model *m = topt_model_create("launch", 1, 1, err);
    int x = m ? topt_model_add(m, "input", "x", 0, NULL, &in, err) : -1;
    x = x < 0 ? -1 : topt_model_add(m, "bias", "b", 1, &x, NULL, err);
    for (int i = 0; i < LENGTH && x >= 0; i++) {
        char name[16];
        snprintf(name, sizeof name, "u%d", i);
        x = topt_model_add(m, "unary", name, 1, &x, &relu, err);
    }
    if (x < 0 || topt_model_add(m, "mse", "loss", 1, &x, NULL, err) < 0 ||
        topt_model_finish(m, err)) {
        topt_model_destroy(m);
        return NULL;
    }
    return m;
}

/* Of a GPU, from one kernel of next to nothing to the next. */
static int measure_small(const struct topt_rated *on, double *ret, struct topt_error *err)
{
    struct topt_model *m = chain_model(err);
    double ops;
    int rc = !m ||
             topt_bench_kernel(on, &m->op[2], TOPT_K_UNARY_FWD, TOPT_F32, &ops, ret, err);
    topt_model_destroy(m);
    return rc ? -1 : 0;
}

static int measure_launch(const struct topt_rated *on, double *ret,
                          struct topt_error *err)
{
    if (on->module)
        return measure_small(on, ret, err);

    struct topt_session_options o = {.seed = 1};
    struct topt_alone alone = {.hw = NULL};
    struct topt_model *m = chain_model(err);
    int rc = !m || topt_feed_synthetic(m, 1, &o.feed, err) ||
             topt_alone_open(m, &o, &alone, err) ||
             time_steps(on, alone.session, ret, err);
    topt_alone_close(&alone);
    topt_feed_close(&o.feed);
    topt_model_destroy(m);
    return rc ? -1 : 0;
}

/* a + b on more than the caches hold. */
static int measure_bandwidth(const struct topt_rated *on, double *ret,
                             struct topt_error *err)
{
    enum { HOST_BYTES = 32 << 20 };
    struct topt_device dev;
    int64_t bytes = on->module ? 16 * on->most * on->most : HOST_BYTES;
    void *a = NULL, *b = NULL;
    double best = 0;
    if (topt_bench_open(on, TOPT_F32, &dev, err))
        return -1;
    int rc = dev.ops->alloc(&dev, bytes, &a, err) ||
             dev.ops->alloc(&dev, bytes, &b, err) || dev.ops->zero(&dev, a, bytes, err) ||
             dev.ops->zero(&dev, b, bytes, err) || dev.ops->sync(&dev, err);
    for (int i = 0; i < 5 && !rc; i++) {
        double t = topt_bench_now_ns(on);
        rc = dev.ops->add(&dev, a, b, bytes / 4, 0, err) || dev.ops->sync(&dev, err);
        t = topt_bench_now_ns(on) - t;
        best = i == 0 || t < best ? t : best;
    }
    *ret = 3.0 * (double)bytes * 1e9 / (best + 1); /* two read, one written */
    dev.ops->release(&dev, a);
    dev.ops->release(&dev, b);
    topt_device_close(&dev);
    return rc ? -1 : 0;
}

typedef int measure_figure(const struct topt_rated *on, double *ret,
                           struct topt_error *err);

/* What one number stands for. */
struct figure {
    const char *name;
    measure_figure *measure;
    int rate; /* more is faster */
    double *ret;
};

/* The best of this rank's rounds, then the slowest rank's. */
static int measure_slowest(const struct by_size *w, const struct figure *f,
                           struct topt_error *err)
{
    double sign = f->rate ? -1 : 1, cost = 0, x = 0;
    int rc = 0;
    for (int r = 0; r < ROUNDS && !rc; r++) {
        rc = f->measure(w->on, &x, err);
        cost = r ? fmin(cost, sign * x) : sign * x;
    }
    if (topt_comm_agree(w->comm, rc, err) || w->comm->ops->max(w->comm, &cost, 1, err))
        return -1;
    *f->ret = sign * cost;
    return 0;
}

static int measure_figures(struct by_size *w, const char *where, const struct figure *f,
                           int n, struct topt_error *err)
{
    for (int i = 0; i < n; i++) {
        snprintf(w->what, sizeof w->what, "%.300s: %s", where, f[i].name);
        if (topt_survey_known(w->survey, w->what, 0, f[i].ret))
            continue;
        if (measure_slowest(w, &f[i], err) ||
            topt_comm_agree(w->comm,
                            topt_survey_keep(w->survey, w->what, 0, *f[i].ret, err), err))
            return -1;
    }
    return 0;
}

static int64_t count_sizes(const struct topt_rated *on, int attention)
{
    int64_t n = 0;
    for (int64_t s = least_size(on, attention); s <= most_size(on, attention); s *= 2)
        n++;
    return n;
}

int topt_measure_rates(struct topt_comm *comm, struct topt_survey *survey,
                       const char *where, const struct topt_rated *on,
                       struct topt_rates *ret, double *ret_alone, struct topt_error *err)
{
    struct by_size w = {.on = on, .comm = comm, .survey = survey, .fastest = ret_alone};
    const struct figure figures[] = {
        {"elementwise operations", measure_elementwise, 1, &ret->elementwise},
        {"bandwidth of memory", measure_bandwidth, 1, &ret->memory_bandwidth},
        {"what an instruction costs", measure_launch, 0, &ret->launch_ns}};
    enum { FIGURES = sizeof figures / sizeof *figures };
    int types = on->module ? TOPT_RATED_TYPES : TOPT_F64 + 1;
    *ret = (struct topt_rates){.launch_ns = 0};
    *ret_alone = 0;
    topt_survey_expect(survey, types * count_sizes(on, 0) +
                                   (types - 1) * count_sizes(on, 1) + FIGURES);
    for (int t = 0; t < types; t++) {
        w.dtype = (enum topt_dtype)t;
        if (measure_type(&w, where, ret, err))
            return -1;
    }
    if (measure_figures(&w, where, figures, FIGURES, err))
        return -1;
    return on->module
               ? 0
               : topt_measure_kernels(comm, survey, where, on->most, &ret->kernels, err);
}

double topt_points_rate(const struct topt_points *p)
{
    double most = 0;
    for (int i = 0; i < p->n; i++)
        most = fmax(most, (double)p->at[i] * 1e9 / p->ns[i]);
    return most;
}
