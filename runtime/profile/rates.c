/* rates.c - what a rank computes a second, by the kernels that training runs.
 *
 * Measured by one rank of a node, by its processor's time, while the others wait: the
 * profile says apart from this how many cores the ranks of a node share.  Products are
 * measured in the shapes that shards have: a product of s x s x s, and with four times
 * the rows the same whose features, or inputs, are split over four; the time of so many
 * operations is the middle one of the three. */
#include "profile.h"
#include "alone.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BATCH = 4, SEQ = 128, WIDTH = 512, HEADS = 8, SAMPLES = 9, MOST_EXTRA = 6 };
static const double ENOUGH_NS = 150e6, DISAGREE = 0.15;
static const int64_t product_sizes[] = {8, 16, 32, 64, 128, 256, 512};
static const int64_t attention_lengths[] = {16, 32, 64, 128, 256, 512};
enum {
    NPRODUCTS = sizeof product_sizes / sizeof *product_sizes,
    NLENGTHS = sizeof attention_lengths / sizeof *attention_lengths
};

/* One operator, its blocks filled with small numbers. */
struct bench {
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

static void fill(const struct bench *b, void *p, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        double x = (double)(i % 13) / 13 - 0.5;
        if (b->dev.dtype == TOPT_F64)
            ((double *)p)[i] = x;
        else
            ((float *)p)[i] = (float)x;
    }
}

static int bench_init(struct bench *b, const struct topt_op *op, enum topt_dtype dtype,
                      struct topt_error *err)
{
    *b = (struct bench){.call = {.op = op, .micro_batches = 1}};
    if (topt_device_open_host(dtype, &b->dev, err))
        return -1;
    memcpy(b->call.len, op->count, sizeof b->call.len);
    for (int o = 0; o < op->spec->noperands; o++) {
        int64_t n = 1;
        for (int i = 0; i < op->spec->operand[o].ndim; i++) {
            b->call.box[o].len[i] = op->operand[o].dim[i].count;
            n *= op->operand[o].dim[i].count * op->operand[o].dim[i].unit;
        }
        if (b->dev.ops->alloc(&b->dev, n * b->dev.real_bytes, &b->call.value[o], err)) {
            bench_fini(b);
            return -1;
        }
        fill(b, b->call.value[o], n);
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

static int time_calls(struct bench *b, int n, double *ret, struct topt_error *err)
{
    double t = processor_ns();
    for (int i = 0; i < n; i++)
        if (b->dev.ops->kernel(&b->dev, &b->call, err))
            return -1;
    *ret = (processor_ns() - t) / n;
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
static int time_of(const struct topt_op *op, enum topt_kernel kernel,
                   enum topt_dtype dtype, double *ret_ops, double *ret_ns,
                   struct topt_error *err)
{
    struct bench b;
    if (bench_init(&b, op, dtype, err))
        return -1;
    int rc = best_ns(&b, kernel, ret_ns, err);
    *ret_ops = (double)op->spec->flops(op, kernel, op->count);
    bench_fini(&b);
    return rc;
}

/* ---- products and attention ----------------------------------------------------------- */

/* rows x inputs times inputs x features. */
static int time_product(int64_t rows, int64_t inputs, int64_t features,
                        enum topt_dtype dtype, double *ret_ops, double *ret_ns,
                        struct topt_error *err)
{
    struct topt_attrs in = {.features = inputs}, out = {.features = features};
    struct topt_model *m = topt_model_create("product", 1, rows, err);
    int x = m ? topt_model_add(m, "input", "x", 0, NULL, &in, err) : -1;
    int y = x < 0 ? -1 : topt_model_add(m, "linear", "y", 1, &x, &out, err);
    int rc =
        y < 0 ? -1 : time_of(&m->op[y], TOPT_K_LINEAR_FWD, dtype, ret_ops, ret_ns, err);
    topt_model_destroy(m);
    return rc;
}

/* Nanoseconds of 'want' operations, by the middle one of the shapes of size 's'. */
static int measure_product(int64_t s, double want, enum topt_dtype dtype, double *ret,
                           struct topt_error *err)
{
    int64_t part = s / 4;
    const int64_t shape[3][3] = {{s, s, s}, {4 * s, s, part}, {4 * s, part, s}};
    double ns[3], ops;
    for (int i = 0; i < 3; i++) {
        if (time_product(shape[i][0], shape[i][1], shape[i][2], dtype, &ops, &ns[i], err))
            return -1;
        ns[i] *= want / ops;
    }
    double low = fmin(ns[0], ns[1]), high = fmax(ns[0], ns[1]);
    *ret = fmin(fmax(low, ns[2]), high);
    return 0;
}

/* Causal, HEADS heads of 64. */
static int measure_attention(int64_t length, double *ret_ops, double *ret_ns,
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
              : time_of(&m->op[z], TOPT_K_ATTENTION_FWD, TOPT_F32, ret_ops, ret_ns, err);
    topt_model_destroy(m);
    return rc;
}

/* One point of 's' rows; known ones are taken. */
static int add_product(struct topt_survey *survey, const char *what, int64_t s,
                       enum topt_dtype dtype, struct topt_points *p,
                       struct topt_error *err)
{
    int64_t ops = 2 * s * s * s;
    double ns;
    if (!topt_survey_known(survey, what, ops, &ns) &&
        (measure_product(s, (double)ops, dtype, &ns, err) ||
         topt_survey_keep(survey, what, ops, ns, err)))
        return -1;
    topt_points_add(p, ops, ns);
    return 0;
}

static int measure_products(struct topt_survey *survey, const char *host,
                            enum topt_dtype dtype, struct topt_points *p,
                            struct topt_error *err)
{
    char what[128];
    snprintf(what, sizeof what, "%.64s: products in %s", host, topt_dtype_name(dtype));
    for (int i = 0; i < NPRODUCTS; i++)
        if (add_product(survey, what, product_sizes[i], dtype, p, err))
            return -1;
    for (int i = 0; i < MOST_EXTRA; i++) {
        int64_t ops = topt_points_next(p, DISAGREE);
        int64_t s = (int64_t)(cbrt((double)ops / 2) / 4 + 0.5) * 4; /* it is split */
        int before = p->n;
        if (ops && add_product(survey, what, s, dtype, p, err))
            return -1;
        if (p->n == before)
            return 0;
    }
    return 0;
}

/* Its size is kept by length. */
static int add_length(struct topt_survey *survey, const char *what, int64_t length,
                      struct topt_points *p, struct topt_error *err)
{
    double ops = 4.0 * (double)length * (double)length * WIDTH, ns;
    if (!topt_survey_known(survey, what, length, &ns)) {
        double counted;
        if (measure_attention(length, &counted, &ns, err))
            return -1;
        ns *= ops / counted;
        if (topt_survey_keep(survey, what, length, ns, err))
            return -1;
    }
    topt_points_add(p, (int64_t)ops, ns);
    return 0;
}

static int measure_lengths(struct topt_survey *survey, const char *host,
                           struct topt_points *p, struct topt_error *err)
{
    char what[128];
    snprintf(what, sizeof what, "%.64s: attention by length", host);
    for (int i = 0; i < NLENGTHS; i++)
        if (add_length(survey, what, attention_lengths[i], p, err))
            return -1;
    for (int i = 0; i < MOST_EXTRA; i++) {
        int64_t ops = topt_points_next(p, DISAGREE);
        int before = p->n;
        if (ops &&
            add_length(survey, what, (int64_t)sqrt((double)ops / (4.0 * WIDTH)), p, err))
            return -1;
        if (p->n == before)
            return 0;
    }
    return 0;
}

/* ---- all else -------------------------------------------------------------------------- */

/* One figure stands for all elementwise kernels: between the dearest and the cheapest. */
static int measure_elementwise(double *ret, struct topt_error *err)
{
    struct topt_attrs in = {.features = WIDTH};
    struct topt_attrs gelu = {.activation = TOPT_ACT_GELU};
    struct topt_model *m = topt_model_create("elementwise", BATCH, SEQ, err);
    double ops, gelu_ns, add_ns;
    int x = m ? topt_model_add(m, "input", "x", 0, NULL, &in, err) : -1;
    int y = x < 0 ? -1 : topt_model_add(m, "unary", "y", 1, &x, &gelu, err);
    int two[2] = {x, y};
    int z = y < 0 ? -1 : topt_model_add(m, "add", "z", 2, two, NULL, err);
    int rc = z < 0 ||
             time_of(&m->op[y], TOPT_K_UNARY_FWD, TOPT_F32, &ops, &gelu_ns, err) ||
             time_of(&m->op[z], TOPT_K_ADD_FWD, TOPT_F32, &ops, &add_ns, err);
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

static int measure_launch(double *ret, struct topt_error *err)
{
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
static int measure_bandwidth(double *ret, struct topt_error *err)
{
    enum { BYTES = 32 << 20 };
    struct topt_device dev;
    void *a = NULL, *b = NULL;
    double best = 0;
    if (topt_device_open_host(TOPT_F32, &dev, err))
        return -1;
    int rc = dev.ops->alloc(&dev, BYTES, &a, err) ||
             dev.ops->alloc(&dev, BYTES, &b, err) || dev.ops->zero(&dev, a, BYTES, err) ||
             dev.ops->zero(&dev, b, BYTES, err);
    for (int i = 0; i < 5 && !rc; i++) {
        double t = processor_ns();
        rc = dev.ops->add(&dev, a, b, BYTES / 4, 0, err);
        t = processor_ns() - t;
        best = i == 0 || t < best ? t : best;
    }
    *ret = 3.0 * BYTES * 1e9 / (best + 1); /* two read, one written */
    dev.ops->release(&dev, a);
    dev.ops->release(&dev, b);
    return rc;
}

static int figure(struct topt_survey *survey, const char *host, const char *name,
                  int (*measure)(double *, struct topt_error *), double *ret,
                  struct topt_error *err)
{
    char what[128];
    snprintf(what, sizeof what, "%.64s: %s", host, name);
    if (topt_survey_known(survey, what, 0, ret))
        return 0;
    return measure(ret, err) || topt_survey_keep(survey, what, 0, *ret, err) ? -1 : 0;
}

int topt_measure_rates(struct topt_survey *survey, const char *host,
                       struct topt_rates *ret, struct topt_error *err)
{
    *ret = (struct topt_rates){.launch_ns = 0};
    topt_survey_expect(survey, 2 * NPRODUCTS + NLENGTHS + 3);
    return measure_products(survey, host, TOPT_F32, &ret->product[0], err) ||
                   measure_products(survey, host, TOPT_F64, &ret->product[1], err) ||
                   measure_lengths(survey, host, &ret->attention, err) ||
                   figure(survey, host, "elementwise operations", measure_elementwise,
                          &ret->elementwise, err) ||
                   figure(survey, host, "bandwidth of memory", measure_bandwidth,
                          &ret->memory_bandwidth, err) ||
                   figure(survey, host, "what an instruction costs", measure_launch,
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
