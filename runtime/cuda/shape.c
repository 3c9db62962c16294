/* shape.c - cutting, joining, rearranging and reducing: most of it copies of boxes between
 * blocks, whose extents and steps are worked out here. */
#include "cuda.h"

#include "random.h"

static char *at(const struct topt_device *d, const void *p, int64_t i)
{
    return p ? (char *)(uintptr_t)p + i * d->real_bytes : NULL;
}

#define RUN(name, args)                                                                  \
    topt_cuda_launched(dev_of(d)->math->name(dev_of(d)->stream, args), c, err)

/* A box of up to three extents, with the steps of both sides. */
struct steps {
    int64_t n[3], dst[3], src[3];
};

static int copy_steps(struct topt_device *d, const struct topt_kernel_call *c, void *dst,
                      const void *src, const struct steps *s, struct topt_error *err)
{
    struct cu_box b = {.dst = dst, .src = src, .n = 1, .extent = {1}};
    for (int i = 0; i < 3; i++) {
        b.extent[CU_RANK - 3 + i] = s->n[i];
        b.dst_step[CU_RANK - 3 + i] = s->dst[i];
        b.src_step[CU_RANK - 3 + i] = s->src[i];
        b.n *= s->n[i];
    }
    return dst && b.n > 0 ? RUN(copy_box, &b) : 0;
}

/* 'n' runs of 'width' numbers, 'ldd' and 'lds' apart. */
static int copy_runs(struct topt_device *d, const struct topt_kernel_call *c, void *dst,
                     int64_t ldd, const void *src, int64_t lds, int64_t n, int64_t width,
                     struct topt_error *err)
{
    return copy_steps(d, c, dst, src,
                      &(struct steps){{1, n, width}, {0, ldd, 1}, {0, lds, 1}}, err);
}

static int clear(struct topt_device *d, void *p, int64_t n, struct topt_error *err)
{
    return p ? d->ops->zero(d, p, n * d->real_bytes, err) : 0;
}

static int64_t size_of(const struct cu_call *f, int operand)
{
    return f->rows[operand] * f->cols[operand];
}

/* ---- inside and over counts -------------------------------------------------------- */

enum { X, Y };

/* Numbers that a count of the features holds side by side; of channels, whole planes. */
static int64_t counted_run(const struct topt_kernel_call *c, int operand)
{
    int rank = c->op->spec->operand[operand].ndim;
    const struct topt_dim *d = c->op->operand[operand].dim;
    return rank == 3 ? d[2].unit : d[1].unit * plane_of(c, operand);
}

static int64_t offset_run(const struct topt_kernel_call *c)
{
    int64_t plane = c->op->spec->operand[X].ndim == 3 ? 1 : plane_of(c, X);
    return c->op->attrs->offset * plane;
}

int topt_cuda_slice_fwd(struct topt_device *d, const struct topt_kernel_call *c,
                        const struct cu_call *f, struct topt_error *err)
{
    int64_t width = counted_run(c, Y), n = width ? size_of(f, Y) / width : 0;
    return copy_runs(d, c, c->value[Y], width, at(d, c->value[X], offset_run(c)),
                     counted_run(c, X), n, width, err);
}

int topt_cuda_slice_bwd(struct topt_device *d, const struct topt_kernel_call *c,
                        const struct cu_call *f, struct topt_error *err)
{
    int64_t width = counted_run(c, Y), n = width ? size_of(f, Y) / width : 0;
    return clear(d, c->grad[X], size_of(f, X), err) ||
                   copy_runs(d, c, at(d, c->grad[X], offset_run(c)), counted_run(c, X),
                             c->grad[Y], width, n, width, err)
               ? -1
               : 0;
}

/* Planes of channels from [outer][inner] to [inner][outer], image by image. */
static int swap_planes(struct topt_device *d, const struct topt_kernel_call *c, void *to,
                       const void *from, int64_t outer, struct topt_error *err)
{
    int64_t channels = extent(c, X, 1), plane = plane_of(c, X), inner = channels / outer;
    for (int64_t b = 0; to && b < extent(c, X, 0); b++)
        if (copy_steps(d, c, at(d, to, b * channels * plane),
                       at(d, from, b * channels * plane),
                       &(struct steps){{outer, inner, plane},
                                       {plane, outer * plane, 1},
                                       {inner * plane, plane, 1}},
                       err))
            return -1;
    return 0;
}

int topt_cuda_shuffle_fwd(struct topt_device *d, const struct topt_kernel_call *c,
                          const struct cu_call *f, struct topt_error *err)
{
    (void)f;
    return swap_planes(d, c, c->value[Y], c->value[X], c->op->attrs->groups, err);
}

int topt_cuda_shuffle_bwd(struct topt_device *d, const struct topt_kernel_call *c,
                          const struct cu_call *f, struct topt_error *err)
{
    (void)f;
    return swap_planes(d, c, c->grad[X], c->grad[Y],
                       extent(c, X, 1) / c->op->attrs->groups, err);
}

static int join(struct topt_device *d, const struct topt_kernel_call *c,
                const struct cu_call *f, int backward, struct topt_error *err)
{
    int64_t run = joined_run(c, JOINED), n = run ? size_of(f, JOINED) / run : 0, from = 0;
    for (int o = 0; o < JOINED && c->op->operand[o].present; o++) {
        int64_t part = joined_run(c, o);
        void *whole = at(d, backward ? c->grad[JOINED] : c->value[JOINED], from);
        if (backward ? copy_runs(d, c, c->grad[o], part, whole, run, n, part, err)
                     : copy_runs(d, c, whole, run, c->value[o], part, n, part, err))
            return -1;
        from += part;
    }
    return 0;
}

int topt_cuda_concat_fwd(struct topt_device *d, const struct topt_kernel_call *c,
                         const struct cu_call *f, struct topt_error *err)
{
    return join(d, c, f, 0, err);
}

int topt_cuda_concat_bwd(struct topt_device *d, const struct topt_kernel_call *c,
                         const struct cu_call *f, struct topt_error *err)
{
    return join(d, c, f, 1, err);
}

/* ---- rearranging ------------------------------------------------------------------- */

/* dst[b, cols, rows] = src[b, rows, cols]. */
static int transpose(struct topt_device *d, const struct topt_kernel_call *c, void *dst,
                     const void *src, int64_t batch, int64_t rows, int64_t cols,
                     struct topt_error *err)
{
    return copy_steps(d, c, dst, src,
                      &(struct steps){{batch, cols, rows},
                                      {rows * cols, rows, 1},
                                      {rows * cols, 1, cols}},
                      err);
}

int topt_cuda_transpose_fwd(struct topt_device *d, const struct topt_kernel_call *c,
                            const struct cu_call *f, struct topt_error *err)
{
    (void)f;
    return transpose(d, c, c->value[Y], c->value[X], extent(c, X, 0), extent(c, X, 1),
                     extent(c, X, 2), err);
}

int topt_cuda_transpose_bwd(struct topt_device *d, const struct topt_kernel_call *c,
                            const struct cu_call *f, struct topt_error *err)
{
    (void)f;
    return transpose(d, c, c->grad[X], c->grad[Y], extent(c, X, 0), extent(c, X, 2),
                     extent(c, X, 1), err);
}

/* Channels of pixels become pixels of channels. */
int topt_cuda_tokens_fwd(struct topt_device *d, const struct topt_kernel_call *c,
                         const struct cu_call *f, struct topt_error *err)
{
    (void)f;
    return transpose(d, c, c->value[Y], c->value[X], extent(c, X, 0), extent(c, X, 1),
                     plane_of(c, X), err);
}

int topt_cuda_tokens_bwd(struct topt_device *d, const struct topt_kernel_call *c,
                         const struct cu_call *f, struct topt_error *err)
{
    (void)f;
    return transpose(d, c, c->grad[X], c->grad[Y], extent(c, X, 0), plane_of(c, X),
                     extent(c, X, 1), err);
}

int topt_cuda_untokens_fwd(struct topt_device *d, const struct topt_kernel_call *c,
                           const struct cu_call *f, struct topt_error *err)
{
    (void)f;
    return transpose(d, c, c->value[Y], c->value[X], extent(c, Y, 0), plane_of(c, Y),
                     extent(c, Y, 1), err);
}

int topt_cuda_untokens_bwd(struct topt_device *d, const struct topt_kernel_call *c,
                           const struct cu_call *f, struct topt_error *err)
{
    (void)f;
    return transpose(d, c, c->grad[X], c->grad[Y], extent(c, Y, 0), extent(c, Y, 1),
                     plane_of(c, Y), err);
}

/* The wanted position in this rank's block, or -1. */
static int64_t selected(const struct topt_kernel_call *c)
{
    int64_t i = c->op->attrs->offset - c->off[1];
    return i >= 0 && i < c->len[1] ? i : -1;
}

int topt_cuda_select_fwd(struct topt_device *d, const struct topt_kernel_call *c,
                         const struct cu_call *f, struct topt_error *err)
{
    int64_t s = extent(c, X, 1), n = extent(c, X, 2), i = selected(c);
    if (i < 0)
        return clear(d, c->value[Y], size_of(f, Y), err);
    return copy_runs(d, c, c->value[Y], n, at(d, c->value[X], i * n), s * n,
                     extent(c, X, 0), n, err);
}

int topt_cuda_select_bwd(struct topt_device *d, const struct topt_kernel_call *c,
                         const struct cu_call *f, struct topt_error *err)
{
    int64_t s = extent(c, X, 1), n = extent(c, X, 2), i = selected(c);
    if (clear(d, c->grad[X], size_of(f, X), err) || i < 0)
        return i < 0 ? 0 : -1;
    return copy_runs(d, c, at(d, c->grad[X], i * n), s * n, c->grad[Y], n,
                     extent(c, X, 0), n, err);
}

enum { TOKEN = 1, PREPENDED };

int topt_cuda_prepend_fwd(struct topt_device *d, const struct topt_kernel_call *c,
                          const struct cu_call *f, struct topt_error *err)
{
    int64_t n = f->cols[X], row = extent(c, X, 1) * n, batch = extent(c, X, 0);
    void *y = c->value[PREPENDED];
    return copy_runs(d, c, y, row + n, c->value[TOKEN], 0, batch, n, err) ||
                   copy_runs(d, c, at(d, y, n), row + n, c->value[X], row, batch, row,
                             err)
               ? -1
               : 0;
}

int topt_cuda_prepend_bwd(struct topt_device *d, const struct topt_kernel_call *c,
                          const struct cu_call *f, struct topt_error *err)
{
    int64_t n = f->cols[X], row = extent(c, X, 1) * n, batch = extent(c, X, 0);
    struct cu_columns s = {.dst = c->grad[TOKEN],
                           .x = c->grad[PREPENDED],
                           .rows = batch,
                           .cols = n,
                           .ld = row + n,
                           .wide_dst = (int)(f->wide_grads >> TOKEN & 1)};
    return RUN(add_columns, &s) ||
                   copy_runs(d, c, c->grad[X], row, at(d, c->grad[PREPENDED], n), row + n,
                             batch, row, err)
               ? -1
               : 0;
}

static int reverse(struct topt_device *d, const struct topt_kernel_call *c, void *to,
                   const void *from, struct topt_error *err)
{
    int64_t s = extent(c, X, 1), n = extent(c, X, 2);
    return copy_steps(
        d, c, to, at(d, from, (s - 1) * n),
        &(struct steps){{extent(c, X, 0), s, n}, {s * n, n, 1}, {s * n, -n, 1}}, err);
}

int topt_cuda_reverse_fwd(struct topt_device *d, const struct topt_kernel_call *c,
                          const struct cu_call *f, struct topt_error *err)
{
    (void)f;
    return reverse(d, c, c->value[Y], c->value[X], err);
}

int topt_cuda_reverse_bwd(struct topt_device *d, const struct topt_kernel_call *c,
                          const struct cu_call *f, struct topt_error *err)
{
    (void)f;
    return reverse(d, c, c->grad[X], c->grad[Y], err);
}

/* ---- reducing ---------------------------------------------------------------------- */

static double mean_factor(const struct topt_kernel_call *c, int i)
{
    const struct topt_dim *x = &c->op->operand[X].dim[i];
    return c->op->attrs->mean ? 1 / (double)(x->count * x->unit) : 1;
}

/* Over positions, features or pixels. */
static struct cu_reduce reduce_of(const struct topt_kernel_call *c,
                                  const struct cu_call *f, int backward)
{
    enum { H = 2, W };
    struct cu_reduce r = {.x = backward ? c->grad[X] : c->value[X],
                          .y = backward ? c->grad[Y] : c->value[Y],
                          .outer = extent(c, X, 0),
                          .n = extent(c, X, 1),
                          .inner = extent(c, X, 2)};
    if (c->kernel == TOPT_K_REDUCE_SEQUENCE_FWD ||
        c->kernel == TOPT_K_REDUCE_SEQUENCE_BWD) {
        r.factor = mean_factor(c, 1);
        return r;
    }
    r.inner = 1;
    if (c->op->spec->operand[X].ndim == 4) {
        r.outer = size_of(f, Y);
        r.n = plane_of(c, X);
        r.factor = 1 / ((double)c->op->count[H] * (double)c->op->count[W]);
    } else {
        r.outer = f->rows[X];
        r.n = f->cols[X];
        r.factor = mean_factor(c, 2);
    }
    return r;
}

int topt_cuda_reduce_fwd(struct topt_device *d, const struct topt_kernel_call *c,
                         const struct cu_call *f, struct topt_error *err)
{
    struct cu_reduce r = reduce_of(c, f, 0);
    return RUN(reduce_get, &r);
}

int topt_cuda_reduce_bwd(struct topt_device *d, const struct topt_kernel_call *c,
                         const struct cu_call *f, struct topt_error *err)
{
    struct cu_reduce r = reduce_of(c, f, 1);
    return RUN(reduce_put, &r);
}

/* ---- dropout ----------------------------------------------------------------------- */

/* The mask of the host's backend: a function of seed, step, operator and number. */
static int drop(struct topt_device *d, const struct topt_kernel_call *c,
                const struct cu_call *f, void *to, const void *from,
                struct topt_error *err)
{
    const struct topt_operand *x = &c->op->operand[X];
    uint64_t number = (uint64_t)(c->op - c->op->model->op);
    int rank = c->op->spec->operand[X].ndim;
    struct cu_drop p = {.to = to,
                        .from = from,
                        .n = size_of(f, X),
                        .first_sample = c->first_sample,
                        .stream = topt_mix(c->seed ^ topt_mix((uint64_t)c->step)) ^
                                  topt_mix(~number),
                        .limit = (uint64_t)(c->op->attrs->rate * 0x1p53),
                        .scale = 1 / (1 - c->op->attrs->rate)};
    for (int i = 0; i < CU_RANK; i++) {
        int has = i < rank;
        p.extent[i] = has ? extent(c, X, i) : 1;
        p.first[i] = has ? c->box[X].off[i] * x->dim[i].unit : 0;
        p.whole[i] = has ? x->dim[i].count * x->dim[i].unit : 1;
    }
    return to ? RUN(drop_out, &p) : 0;
}

int topt_cuda_dropout_fwd(struct topt_device *d, const struct topt_kernel_call *c,
                          const struct cu_call *f, struct topt_error *err)
{
    return drop(d, c, f, c->value[Y], c->value[X], err);
}

int topt_cuda_dropout_bwd(struct topt_device *d, const struct topt_kernel_call *c,
                          const struct cu_call *f, struct topt_error *err)
{
    return drop(d, c, f, c->grad[X], c->grad[Y], err);
}
