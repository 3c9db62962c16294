/* host.c - the CPU as a device: plain memory, and the kernels by number. */
#include "host.h"
#include "host_math.h"
#include "places.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#if TOPT_HAVE_BLAS
void openblas_set_num_threads(int n); /* not in every cblas.h */
#endif

static void host_close(struct topt_device *d)
{
    (void)d;
}

static int host_alloc(struct topt_device *d, int64_t bytes, void **ret,
                      struct topt_error *err)
{
    (void)d;
    size_t size = ((size_t)(bytes > 0 ? bytes : 1) + 63) / 64 * 64;
    void *p = aligned_alloc(64, size);
    if (!p)
        return topt_fail(err, TOPT_ERR_NOMEM, "out of memory for %lld bytes",
                         (long long)bytes);
    *ret = p;
    return 0;
}

static void host_release(struct topt_device *d, void *p)
{
    (void)d;
    free(p);
}

static int host_zero(struct topt_device *d, void *p, int64_t bytes,
                     struct topt_error *err)
{
    (void)d, (void)err;
    memset(p, 0, (size_t)bytes);
    return 0;
}

static int host_write(struct topt_device *d, void *dst, const void *host, int64_t bytes,
                      struct topt_error *err)
{
    (void)d, (void)err;
    memcpy(dst, host, (size_t)bytes);
    return 0;
}

/* Offset in elements of the first element of 'region' inside the block of 'box'. */
static int64_t region_start(const struct topt_shape *s, const struct topt_box *box,
                            const struct topt_box *region)
{
    int64_t at = 0;
    for (int i = 0; i < s->ndim; i++)
        at = at * box->len[i] * s->dim[i].unit +
             (region->off[i] - box->off[i]) * s->dim[i].unit;
    return at;
}

/* Work on a row: destination, source, elements. */
typedef void row_fn(void *dst, const void *src, int64_t n);

/* Call 'row' for each row of a region, along its last dimension; an odometer counts
 * the others. */
static void plain_rows(const struct topt_box_copy *c, row_fn *row)
{
    const struct topt_shape *s = c->shape;
    int64_t step_src[TOPT_MAX_RANK], step_dst[TOPT_MAX_RANK], at[TOPT_MAX_RANK] = {0};
    int64_t extent[TOPT_MAX_RANK], src_step = c->element_bytes,
                                   dst_step = c->element_bytes;
    for (int i = s->ndim - 1; i >= 0; i--) {
        step_src[i] = src_step;
        step_dst[i] = dst_step;
        src_step *= c->src_box.len[i] * s->dim[i].unit;
        dst_step *= c->dst_box.len[i] * s->dim[i].unit;
        extent[i] = c->region.len[i] * s->dim[i].unit;
        if (extent[i] <= 0)
            return;
    }
    const char *src = (const char *)c->src +
                      region_start(s, &c->src_box, &c->region) * c->element_bytes;
    char *dst =
        (char *)c->dst + region_start(s, &c->dst_box, &c->region) * c->element_bytes;
    int last = s->ndim - 1;
    for (;;) {
        int64_t a = 0, b = 0;
        for (int i = 0; i < last; i++) {
            a += at[i] * step_src[i];
            b += at[i] * step_dst[i];
        }
        row(dst + b, src + a, extent[last]);
        int i = last - 1;
        while (i >= 0 && ++at[i] == extent[i])
            at[i--] = 0;
        if (i < 0)
            return;
    }
}

static void box_rows(const struct topt_box_copy *c, row_fn *row)
{
    const struct topt_shape *s = c->shape;
    int64_t n, first = topt_box_tables(s, &c->region, &n);
    if (!s->rows) {
        plain_rows(c, row);
        return;
    }
    for (int64_t k = first; k < first + n; k++) {
        struct topt_shape one;
        struct topt_box_copy t = copy_of_table(c, k, &one);
        plain_rows(&t, row);
    }
}

static void copy_2(void *dst, const void *src, int64_t n)
{
    memcpy(dst, src, 2 * (size_t)n);
}

static void copy_4(void *dst, const void *src, int64_t n)
{
    memcpy(dst, src, 4 * (size_t)n);
}

static void copy_8(void *dst, const void *src, int64_t n)
{
    memcpy(dst, src, 8 * (size_t)n);
}

void topt_host_copy_box(const struct topt_box_copy *c)
{
    box_rows(c, c->element_bytes == 8 ? copy_8 : c->element_bytes == 2 ? copy_2 : copy_4);
}

static int host_copy_box(struct topt_device *d, const struct topt_box_copy *c,
                         struct topt_error *err)
{
    (void)d, (void)err;
    topt_host_copy_box(c);
    return 0;
}

static const struct topt_host_math *math_of(const struct topt_device *d)
{
    return d->impl;
}

#if TOPT_HOST_LEVELS
/* What a level needs beside the one below, as the compiler takes it (x86-64-v3, -v4). */
static int runs_level(enum topt_host_level l)
{
    if (l == TOPT_HOST_V3)
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
               __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
    return l == TOPT_HOST_BASE ||
           (runs_level(TOPT_HOST_V3) && __builtin_cpu_supports("avx512f") &&
            __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
            __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512cd"));
}
#endif

const struct topt_host_math *topt_host_math_at(enum topt_dtype dtype,
                                               enum topt_host_level l)
{
    int wide = dtype == TOPT_F64;
#if TOPT_HOST_LEVELS
    static const struct topt_host_math *const table[TOPT_HOST_LEVEL_COUNT][2] = {
        {&topt_host_math_f32, &topt_host_math_f64},
        {&topt_host_math_f32_v3, &topt_host_math_f64_v3},
        {&topt_host_math_f32_v4, &topt_host_math_f64_v4}};
    return runs_level(l) ? table[l][wide] : NULL;
#else
    return l != TOPT_HOST_BASE ? NULL : wide ? &topt_host_math_f64 : &topt_host_math_f32;
#endif
}

static const struct topt_host_math *best_math(enum topt_dtype dtype)
{
    const struct topt_host_math *m = NULL;
    for (int l = TOPT_HOST_LEVEL_COUNT - 1; l >= 0 && !m; l--)
        m = topt_host_math_at(dtype, (enum topt_host_level)l);
    return m;
}

void topt_host_normal(double *dst, int64_t n, uint64_t stream, uint64_t first)
{
    best_math(TOPT_F64)->normal(dst, n, stream, first);
}

static int host_add_box(struct topt_device *d, const struct topt_box_copy *c,
                        struct topt_error *err)
{
    (void)err;
    box_rows(c, math_of(d)->add);
    return 0;
}

static int host_add(struct topt_device *d, void *dst, const void *src, int64_t n,
                    int wide, struct topt_error *err)
{
    (void)wide, (void)err; /* f32 and f64 are wide enough */
    math_of(d)->add(dst, src, n);
    return 0;
}

/* BLAS takes 32-bit sizes: a local block as a matrix has to fit them. */
static int check_sizes(const struct topt_kernel_call *c, struct topt_error *err)
{
    const struct topt_op_spec *spec = c->op->spec;
    for (int o = 0; o < spec->noperands; o++) {
        int64_t rows = 1, cols = 1;
        for (int i = 0; i < spec->operand[o].ndim; i++) {
            rows *= cols;
            cols = c->box[o].len[i] * c->op->operand[o].dim[i].unit;
        }
        if (rows > INT_MAX || cols > INT_MAX)
            return topt_fail(err, TOPT_ERR_LIMIT,
                             "%s: local block of %lld x %lld is too large", c->op->name,
                             (long long)rows, (long long)cols);
    }
    return 0;
}

static int host_kernel(struct topt_device *d, const struct topt_kernel_call *c,
                       struct topt_error *err)
{
    topt_host_kernel *f = math_of(d)->kernel[c->kernel];
    if (!f)
        return topt_fail(err, TOPT_ERR_INTERNAL, "no host kernel '%s'",
                         topt_kernel_name(c->kernel));
    f(c);
    return 0;
}

static int host_together(struct topt_device *d, const struct topt_kernel_call *c, int n)
{
    return math_of(d)->together(c, n);
}

static int host_kernels(struct topt_device *d, const struct topt_kernel_call *c, int n,
                        struct topt_error *err)
{
    (void)err;
    math_of(d)->run_together(c, n);
    return 0;
}

/* Kernels keep nothing: what is left is to refuse what they can't do. */
static int host_prepare(struct topt_device *d, const struct topt_device_program *p,
                        struct topt_error *err)
{
    for (int i = 0; i < p->ncalls; i++) {
        struct topt_kernel_call c;
        p->call(p->ctx, i, &c);
        if (!math_of(d)->kernel[c.kernel])
            return topt_fail(err, TOPT_ERR_INTERNAL, "no host kernel '%s'",
                             topt_kernel_name(c.kernel));
        if (check_sizes(&c, err))
            return -1;
    }
    return 0;
}

/* The host computes while it is called, so that the queue of computation has always run up to
 * its end, and what is put on the other one after that needs no event of it.  That of
 * communication is the communicator's: an event is the number of a call there. */
struct topt_event {
    int64_t call;
};

static int host_event_create(struct topt_device *d, struct topt_event **ret,
                             struct topt_error *err)
{
    (void)d;
    *ret = calloc(1, sizeof **ret);
    return *ret ? 0 : topt_nomem(err, "an event");
}

static void host_event_destroy(struct topt_device *d, struct topt_event *e)
{
    (void)d;
    free(e);
}

static int host_event_record(struct topt_device *d, struct topt_event *e,
                             enum topt_queue q, struct topt_error *err)
{
    (void)err;
    int beside = q == TOPT_QUEUE_COMMUNICATION && d->engine.last;
    e->call = beside ? d->engine.last(d->engine.ctx) : 0;
    return 0;
}

static int host_event_wait(struct topt_device *d, struct topt_event *e, enum topt_queue q,
                           struct topt_error *err)
{
    return q == TOPT_QUEUE_COMPUTE && e->call
               ? d->engine.advance(d->engine.ctx, e->call, err)
               : 0;
}

static int host_advance(struct topt_device *d, struct topt_error *err)
{
    return d->engine.advance ? d->engine.advance(d->engine.ctx, 0, err) : 0;
}

static int host_update(struct topt_device *d, const struct topt_update_call *c,
                       struct topt_error *err)
{
    (void)err;
    math_of(d)->update(c);
    return 0;
}

static int host_sync(struct topt_device *d, struct topt_error *err)
{
    (void)d, (void)err;
    return 0;
}

static const struct topt_device_ops host_ops = {
    .name = "host",
    .abi = TOPT_DEVICE_ABI,
    .close = host_close,
    .alloc = host_alloc,
    .release = host_release,
    .zero = host_zero,
    .write = host_write,
    .read = host_write,
    .copy_box = host_copy_box,
    .add_box = host_add_box,
    .add = host_add,
    .kernel = host_kernel,
    .prepare = host_prepare,
    .event_create = host_event_create,
    .event_record = host_event_record,
    .event_wait = host_event_wait,
    .event_destroy = host_event_destroy,
    .advance = host_advance,
    .together = host_together,
    .kernels = host_kernels,
    .update = host_update,
    .sync = host_sync,
};

int topt_device_open_host(enum topt_dtype dtype, struct topt_device *ret,
                          struct topt_error *err)
{
    if (dtype != TOPT_F32 && dtype != TOPT_F64)
        return topt_fail(
            err, TOPT_ERR_INVAL,
            "the host backend computes in f32 and f64, not %s; use --dtype f32",
            topt_dtype_name(dtype));
#if TOPT_HAVE_BLAS
    openblas_set_num_threads(1); /* ranks are the parallelism */
#endif
    int bytes = topt_dtype_bytes(dtype);
    *ret = (struct topt_device){.ops = &host_ops,
                                .dtype = dtype,
                                .real_bytes = bytes,
                                .state_bytes = bytes,
                                .impl = (void *)(uintptr_t)best_math(dtype)};
    return 0;
}

void topt_device_close(struct topt_device *d)
{
    if (d && d->ops)
        d->ops->close(d);
}
