/* bench.c - see bench.h. */
#include "bench.h"
#include "topt_clock.h"
#include "number.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SAMPLES = 5 };
static const double ENOUGH_NS = 60e6;

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

int topt_bench_open(const struct topt_rated *on, enum topt_dtype dtype,
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
    if (topt_bench_open(on, dtype, &b->dev, err))
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

double topt_bench_now_ns(const struct topt_rated *on)
{
    return on->module ? (double)topt_clock_ns() : topt_thread_ns();
}

static int time_calls(struct bench *b, int n, double *ret, struct topt_error *err)
{
    if (b->dev.ops->sync(&b->dev, err))
        return -1;
    double t = topt_bench_now_ns(b->on);
    for (int i = 0; i < n; i++)
        if (b->dev.ops->kernel(&b->dev, &b->call, err))
            return -1;
    if (b->dev.ops->sync(&b->dev, err))
        return -1;
    *ret = (topt_bench_now_ns(b->on) - t) / n;
    return 0;
}

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

int topt_bench_kernel(const struct topt_rated *on, const struct topt_op *op,
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
