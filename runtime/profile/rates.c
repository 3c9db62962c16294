/* rates.c - what a rank computes a second, by the kernels that training runs.
 *
 * Measured by one rank while the others wait: the profile says apart from this how
 * many cores the ranks of a node share. */
#include "profile.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

int64_t topt_clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

enum { BATCH = 4, SEQ = 128, WIDTH = 512, HEADS = 8, SAMPLES = 9 };

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

/* The best of a few runs: what disturbs only ever adds. */
static int64_t best_ns(struct bench *b, enum topt_kernel kernel)
{
    int64_t best = INT64_MAX;
    b->call.kernel = kernel;
    for (int i = 0; i < SAMPLES; i++) {
        int64_t t = topt_clock_ns();
        if (b->dev.ops->kernel(&b->dev, &b->call, NULL))
            return INT64_MAX;
        t = topt_clock_ns() - t;
        best = t < best ? t : best;
    }
    return best > 0 ? best : 1;
}

/* Flops of the operator's row per second. */
static int rate_of(const struct topt_op *op, enum topt_kernel kernel,
                   enum topt_dtype dtype, double *ret, double *ret_ns,
                   struct topt_error *err)
{
    struct bench b;
    if (bench_init(&b, op, dtype, err))
        return -1;
    int64_t ns = best_ns(&b, kernel);
    *ret = (double)op->spec->flops(op, kernel, op->count) * 1e9 / (double)ns;
    if (ret_ns)
        *ret_ns = (double)ns;
    bench_fini(&b);
    return 0;
}

static struct topt_model *rates_model(struct topt_error *err)
{
    struct topt_attrs table = {.vocab = 8, .features = WIDTH};
    struct topt_attrs square = {.features = WIDTH};
    struct topt_attrs qkv = {.features = HEADS, .features_unit = 3 * WIDTH / HEADS};
    struct topt_attrs heads = {.heads = HEADS, .head_dim = WIDTH / HEADS, .causal = 1};
    struct topt_attrs gelu = {.activation = TOPT_ACT_GELU};
    struct topt_model *m = topt_model_create("rates", BATCH, SEQ, err);
    if (!m)
        return NULL;
    int x = topt_model_add(m, "embedding", "e", 0, NULL, &table, err);
    int y = x < 0 ? -1 : topt_model_add(m, "linear", "l", 1, &x, &square, err);
    int z = y < 0 ? -1 : topt_model_add(m, "linear", "q", 1, &x, &qkv, err);
    int two[2] = {x, y};
    if (z < 0 || topt_model_add(m, "attention", "a", 1, &z, &heads, err) < 0 ||
        topt_model_add(m, "unary", "g", 1, &y, &gelu, err) < 0 ||
        topt_model_add(m, "add", "s", 2, two, NULL, err) < 0) {
        topt_model_destroy(m);
        return NULL;
    }
    return m;
}

/* A kernel on next to nothing, with the buffer of its result: what every instruction
 * costs. */
static int measure_launch(double *ret, struct topt_error *err)
{
    struct topt_attrs table = {.vocab = 8, .features = 8};
    struct topt_model *m = topt_model_create("launch", 1, 1, err);
    int x = m ? topt_model_add(m, "embedding", "e", 0, NULL, &table, err) : -1;
    struct bench b;
    int rc = x < 0 || topt_model_add(m, "bias", "b", 1, &x, NULL, err) < 0 ||
             bench_init(&b, &m->op[1], TOPT_F32, err);
    if (!rc) {
        enum { TIMES = 2000 };
        int64_t t = topt_clock_ns();
        b.call.kernel = TOPT_K_BIAS_FWD;
        for (int i = 0; i < TIMES && !rc; i++) {
            void *p = NULL;
            rc = b.dev.ops->alloc(&b.dev, 64, &p, err) ||
                 b.dev.ops->kernel(&b.dev, &b.call, err);
            b.dev.ops->release(&b.dev, p);
        }
        *ret = (double)(topt_clock_ns() - t) / TIMES;
        bench_fini(&b);
    }
    topt_model_destroy(m);
    return rc ? -1 : 0;
}

/* a + b on more than the caches hold. */
static int measure_bandwidth(double *ret, struct topt_error *err)
{
    enum { BYTES = 32 << 20 };
    struct topt_device dev;
    void *a = NULL, *b = NULL;
    int64_t best = INT64_MAX;
    if (topt_device_open_host(TOPT_F32, &dev, err))
        return -1;
    int rc = dev.ops->alloc(&dev, BYTES, &a, err) ||
             dev.ops->alloc(&dev, BYTES, &b, err) || dev.ops->zero(&dev, a, BYTES, err) ||
             dev.ops->zero(&dev, b, BYTES, err);
    for (int i = 0; i < 5 && !rc; i++) {
        int64_t t = topt_clock_ns();
        rc = dev.ops->add(&dev, a, b, BYTES / 4, 0, err);
        t = topt_clock_ns() - t;
        best = t < best ? t : best;
    }
    *ret = 3.0 * BYTES * 1e9 / (double)best; /* two read, one written */
    dev.ops->release(&dev, a);
    dev.ops->release(&dev, b);
    return rc;
}

int topt_measure_rates(struct topt_rates *ret, struct topt_error *err)
{
    enum { LINEAR = 1, ATTENTION = 3, UNARY = 4, ADD = 5 };
    struct topt_model *m = rates_model(err);
    double gelu_ns = 0, add_ns = 0, ignored;
    if (!m)
        return -1;
    int rc =
        rate_of(&m->op[LINEAR], TOPT_K_LINEAR_FWD, TOPT_F32, &ret->flops[0], NULL, err) ||
        rate_of(&m->op[LINEAR], TOPT_K_LINEAR_FWD, TOPT_F64, &ret->flops[1], NULL, err) ||
        rate_of(&m->op[ATTENTION], TOPT_K_ATTENTION_FWD, TOPT_F32, &ret->attention, NULL,
                err) ||
        rate_of(&m->op[UNARY], TOPT_K_UNARY_FWD, TOPT_F32, &ignored, &gelu_ns, err) ||
        rate_of(&m->op[ADD], TOPT_K_ADD_FWD, TOPT_F32, &ignored, &add_ns, err) ||
        measure_bandwidth(&ret->memory_bandwidth, err) ||
        measure_launch(&ret->launch_ns, err);
    /* one figure stands for all elementwise kernels: between the dearest and the
     * cheapest */
    double flops = rc ? 0
                      : (double)m->op[ADD].spec->flops(&m->op[ADD], TOPT_K_ADD_FWD,
                                                       m->op[ADD].count);
    if (!rc)
        ret->elementwise = flops * 1e9 / ((gelu_ns + add_ns) / 2);
    topt_model_destroy(m);
    return rc ? -1 : 0;
}
