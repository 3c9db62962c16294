/* rates.c - what a rank computes a second, by the kernels that training runs.
 *
 * Measured by one rank of a node while the others wait: of the host by its processor's
 * time, since the profile says apart from this how many cores the ranks of a node share;
 * of a GPU by the clock, until all that was started is done.  Products are
 * measured in the shapes that shards have: a product of s x s x s, and with four times
 * the rows the same whose features, or inputs, are split over four; the time of so many
 * operations is the middle one of the three. */
#include "profile.h"
#include "alone.h"
#include "number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BATCH = 4, SEQ = 128, WIDTH = 512, HEADS = 8, SAMPLES = 9, MOST_EXTRA = 6 };
static const double ENOUGH_NS = 150e6, DISAGREE = 0.15;
/* Rows of products and lengths of attention: powers of two up to the most that is asked for. */
enum { LEAST_ROWS = 8, LEAST_LENGTH = 16, GPU_LEAST = 64, GPU_LONGEST = 2048 };

/* One operator, its blocks filled with small numbers. */
struct bench {
    const struct topt_rated *on;
    struct topt_device dev;
    struct topt_kernel_call call;
};

static void bench_fini(struct bench *b)
{
    for (int o = 0; o < TOPT_MAX_OPERANDS; o++) {
        b->dev.ops->release(&b->dev, b->call.value[o]);
        b->dev.ops->release(&b->dev, b->call.grad[o]);
    }
    topt_device_close(&b->dev);
}

static int open_rated(const struct topt_rated *on, enum topt_dtype dtype,
                      struct topt_device *ret, struct topt_error *err)
{
    uint64_t identity;
    return on->module ? on->module->open(dtype, on->index, ret, &identity, err)
                      : topt_device_open_host(dtype, ret, err);
}

static int fill(struct bench *b, void *p, int64_t n, struct topt_error *err)
{
    void *x = malloc((size_t)(n + 1) * 8);
    if (!x)
        return topt_nomem(err, NULL);
    for (int64_t i = 0; i < n; i++)
        topt_number_put(b->dev.dtype, x, i, (double)(i % 13) / 13 - 0.5);
    int rc = b->dev.ops->write(&b->dev, p, x, n * b->dev.real_bytes, err);
    free(x);
    return rc;
}

static int bench_init(struct bench *b, const struct topt_rated *on,
                      const struct topt_op *op, enum topt_dtype dtype,
                      struct topt_error *err)
{
    *b = (struct bench){.on = on, .call = {.op = op, .micro_batches = 1}};
    if (open_rated(on, dtype, &b->dev, err))
        return -1;
    memcpy(b->call.len, op->count, sizeof b->call.len);
    for (int o = 0; o < op->spec->noperands; o++) {
        int64_t n = 1;
        for (int i = 0; i < op->spec->operand[o].ndim; i++) {
            b->call.box[o].len[i] = op->operand[o].dim[i].count;
            n *= op->operand[o].dim[i].count * op->operand[o].dim[i].unit;
        }
        int64_t bytes =
            op->spec->operand[o].wide ? b->dev.state_bytes : b->dev.real_bytes;
        if (b->dev.ops->alloc(&b->dev, n * bytes, &b->call.value[o], err) ||
            fill(b, b->call.value[o], n, err)) {
            bench_fini(b);
            return -1;
        }
    }
    return 0;
}

/* Of this thread, which computes alone: what else the machine does is not in it. */
static double processor_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static double now_ns(const struct topt_rated *on)
{
    return on->module ? (double)topt_clock_ns() : processor_ns();
}

static int time_calls(struct bench *b, int n, double *ret, struct topt_error *err)
{
    if (b->dev.ops->sync(&b->dev, err))
        return -1;
    double t = now_ns(b->on);
    for (int i = 0; i < n; i++)
        if (b->dev.ops->kernel(&b->dev, &b->call, err))
            return -1;
    if (b->dev.ops->sync(&b->dev, err))
        return -1;
    *ret = (now_ns(b->on) - t) / n;
    return 0;
}

/* The best of a few runs, each long enough for the clock: what disturbs only ever adds. */
static int best_ns(struct bench *b, enum topt_kernel kernel, double *ret,
                   struct topt_error *err)
{
    static const double LONG_NS = 50e3;
    double best = 0, sum = 0, ns;
    int calls = 1;
    b->call.kernel = kernel;
    if (time_calls(b, 1, &ns, err))
        return -1;
    calls = ns < LONG_NS ? (int)(LONG_NS / (ns + 100)) + 1 : 1;
    for (int i = 0; i < SAMPLES && (i < 2 || sum < ENOUGH_NS); i++) {
        if (time_calls(b, calls, &ns, err))
            return -1;
        best = i == 0 || ns < best ? ns : best;
        sum += ns * calls;
    }
    *ret = best + 1;
    return 0;
}

/* Operations of the operator's row, and nanoseconds. */
static int time_of(const struct topt_rated *on, const struct topt_op *op,
                   enum topt_kernel kernel, enum topt_dtype dtype, double *ret_ops,
                   double *ret_ns, struct topt_error *err)
{
    struct bench b;
    if (bench_init(&b, on, op, dtype, err))
        return -1;
    int rc = best_ns(&b, kernel, ret_ns, err);
    *ret_ops = (double)op->spec->flops(op, kernel, op->count);
    bench_fini(&b);
    return rc;
}

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
    int rc = y < 0
                 ? -1
                 : time_of(on, &m->op[y], TOPT_K_LINEAR_FWD, dtype, ret_ops, ret_ns, err);
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
    int rc =
        z < 0 ? -1
              : time_of(on, &m->op[z], TOPT_K_ATTENTION_FWD, dtype, ret_ops, ret_ns, err);
    topt_model_destroy(m);
    return rc;
}

/* What is measured by size: one point of 'size', whose operations it says. */
struct by_size {
    const struct topt_rated *on;
    struct topt_survey *survey;
    char what[128];
    enum topt_dtype dtype;
    int attention;
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

/* Known ones are taken; attention's are kept by length. */
static int add_size(const struct by_size *w, int64_t size, struct topt_points *p,
                    struct topt_error *err)
{
    int64_t ops = (int64_t)operations_of(w, size), at = w->attention ? size : ops;
    double ns;
    if (!topt_survey_known(w->survey, w->what, at, &ns) &&
        (measure_size(w, size, &ns, err) ||
         topt_survey_keep(w->survey, w->what, at, ns, err)))
        return -1;
    topt_points_add(p, ops, ns);
    return 0;
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
    int64_t least = least_size(w->on, w->attention);
    for (int64_t s = least; s <= most_size(w->on, w->attention); s *= 2)
        if (add_size(w, s, p, err))
            return -1;
    for (int i = 0; i < MOST_EXTRA; i++) {
        int64_t ops = topt_points_next(p, DISAGREE);
        int before = p->n;
        if (ops && add_size(w, size_of(w, (double)ops), p, err))
            return -1;
        if (p->n == before)
            return 0;
    }
    return 0;
}

/* The host's attention is known in f32 alone, and goes by words without a type. */
static int measure_type(struct topt_survey *survey, const char *host,
                        const struct topt_rated *on, enum topt_dtype dtype,
                        struct topt_rates *ret, struct topt_error *err)
{
    struct by_size w = {.on = on, .survey = survey, .dtype = dtype};
    snprintf(w.what, sizeof w.what, "%.64s: products in %s", host,
             topt_dtype_name(dtype));
    if (measure_sizes(&w, &ret->product[dtype], err))
        return -1;
    if (dtype == TOPT_F64)
        return 0;
    w.attention = 1;
    snprintf(w.what, sizeof w.what, "%.64s: attention by length%s%s", host,
             on->module ? " in " : "", on->module ? topt_dtype_name(dtype) : "");
    return measure_sizes(&w, &ret->attention[dtype], err);
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
    int rc = z < 0 ||
             time_of(on, &m->op[y], TOPT_K_UNARY_FWD, TOPT_F32, &ops, &gelu_ns, err) ||
             time_of(on, &m->op[z], TOPT_K_ADD_FWD, TOPT_F32, &ops, &add_ns, err);
    if (!rc)
        *ret = ops * 1e9 / ((gelu_ns + add_ns) / 2);
    topt_model_destroy(m);
    return rc ? -1 : 0;
}

/* What an instruction costs the host: a step of a model whose kernels have next to nothing to
 * do, over its kernels. */
static int time_steps(struct topt_session *session, double *ret, struct topt_error *err)
{
    enum { STEPS = 200 };
    double loss;
    int64_t calls = 0;
    double t = processor_ns();
    for (int i = 0; i < STEPS; i++)
        if (topt_session_step(session, &loss, err))
            return -1;
    t = processor_ns() - t;
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
    int rc = !m || time_of(on, &m->op[2], TOPT_K_UNARY_FWD, TOPT_F32, &ops, ret, err);
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
             topt_alone_open(m, &o, &alone, err) || time_steps(alone.session, ret, err);
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
    if (open_rated(on, TOPT_F32, &dev, err))
        return -1;
    int rc = dev.ops->alloc(&dev, bytes, &a, err) ||
             dev.ops->alloc(&dev, bytes, &b, err) || dev.ops->zero(&dev, a, bytes, err) ||
             dev.ops->zero(&dev, b, bytes, err) || dev.ops->sync(&dev, err);
    for (int i = 0; i < 5 && !rc; i++) {
        double t = now_ns(on);
        rc = dev.ops->add(&dev, a, b, bytes / 4, 0, err) || dev.ops->sync(&dev, err);
        t = now_ns(on) - t;
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

static int figure(struct topt_survey *survey, const char *host,
                  const struct topt_rated *on, const char *name, measure_figure *measure,
                  double *ret, struct topt_error *err)
{
    char what[128];
    snprintf(what, sizeof what, "%.64s: %s", host, name);
    if (topt_survey_known(survey, what, 0, ret))
        return 0;
    return measure(on, ret, err) || topt_survey_keep(survey, what, 0, *ret, err) ? -1 : 0;
}

static int64_t sizes_of(const struct topt_rated *on, int attention)
{
    int64_t n = 0;
    for (int64_t s = least_size(on, attention); s <= most_size(on, attention); s *= 2)
        n++;
    return n;
}

int topt_measure_rates(struct topt_survey *survey, const char *host,
                       const struct topt_rated *on, struct topt_rates *ret,
                       struct topt_error *err)
{
    int types = on->module ? TOPT_RATED_TYPES : TOPT_F64 + 1;
    *ret = (struct topt_rates){.launch_ns = 0};
    topt_survey_expect(survey,
                       types * sizes_of(on, 0) + (types - 1) * sizes_of(on, 1) + 3);
    for (int t = 0; t < types; t++)
        if (measure_type(survey, host, on, (enum topt_dtype)t, ret, err))
            return -1;
    return figure(survey, host, on, "elementwise operations", measure_elementwise,
                  &ret->elementwise, err) ||
                   figure(survey, host, on, "bandwidth of memory", measure_bandwidth,
                          &ret->memory_bandwidth, err) ||
                   figure(survey, host, on, "what an instruction costs", measure_launch,
                          &ret->launch_ns, err)
               ? -1
               : 0;
}

double topt_points_rate(const struct topt_points *p)
{
    double most = 0;
    for (int i = 0; i < p->n; i++)
        most = fmax(most, (double)p->at[i] * 1e9 / p->ns[i]);
    return most;
}
