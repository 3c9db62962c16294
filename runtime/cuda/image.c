/* image.c - what is asked of kernels for images and channels: where windows lie in a rank's
 * block, and convolutions as products of matrices, an image at a time.
 *
 * The patches of an image that the windows see, as columns of a matrix ("col"), make the
 * output by one product with the weights; backward is two products, and the patches'
 * gradients added up where they came from.  With groups there is such a product for each. */
#include "cuda.h"

static char *at(const struct topt_device *d, const void *p, int64_t i, int wide)
{
    return (char *)(uintptr_t)p + i * (wide ? d->state_bytes : d->real_bytes);
}

#define RUN(name, args)                                                                  \
    topt_cuda_launched(dev_of(d)->math->name(dev_of(d)->stream, args), c, err)

/* ---- convolution ------------------------------------------------------------------- */

/* Sizes of the products, by group: patches are 'inner' x 'pixels', weights 'out' x
 * 'inner'. */
struct conv {
    struct windows w;
    int64_t batch, groups, in, out, inner, pixels, image;
};

/* Input and output have the same dimension of channels where those come in groups. */
static struct conv conv_of(const struct topt_kernel_call *c, int input)
{
    const struct topt_operand_spec *spec = c->op->spec->operand;
    int grouped = spec[CONV_X].dim[1] == spec[CONV_Y].dim[1];
    int64_t groups = grouped ? c->box[CONV_X].len[1] : 1;
    struct conv v = {.w = windows_of(c, input),
                     .batch = extent(c, CONV_Y, 0),
                     .groups = groups,
                     .in = groups ? extent(c, CONV_X, 1) / groups : 0,
                     .out = groups ? extent(c, CONV_Y, 1) / groups : 0};
    v.inner = v.in * v.w.kernel_h * v.w.kernel_w;
    v.pixels = v.w.rows * v.w.cols;
    v.image = v.in * v.w.height * v.w.width;
    return v;
}

/* Patches of one group of an image; where windows are single pixels, the image itself. */
static int patches(struct topt_device *d, const struct topt_kernel_call *c,
                   const struct conv *v, const char *x, void *col, const void **ret,
                   struct topt_error *err)
{
    struct cu_patches p = {col, (void *)(uintptr_t)x, v->in, v->w};
    *ret = col ? col : x;
    return col ? RUN(patches_get, &p) : 0;
}

int topt_cuda_conv_fwd(struct topt_device *d, const struct topt_kernel_call *c,
                       const struct cu_call *f, struct topt_error *err)
{
    struct conv v = conv_of(c, CONV_XW);
    const void *col;
    (void)f;
    for (int64_t i = 0; i < v.batch * v.groups; i++) {
        struct cuda_gemm g = {
            .m = v.out,
            .n = v.pixels,
            .k = v.inner,
            .alpha = 1,
            .a = at(d, c->value[CONV_W], i % v.groups * v.out * v.inner, 0),
            .lda = v.inner,
            .ldb = v.pixels,
            .c = at(d, c->value[CONV_Y], i * v.out * v.pixels, 0),
            .ldc = v.pixels};
        if (patches(d, c, &v, at(d, c->value[CONV_XW], i * v.image, 0),
                    c->value[CONV_COL], &col, err))
            return -1;
        g.b = col;
        if (topt_cuda_gemm(d, &g, err))
            return -1;
    }
    return 0;
}

int topt_cuda_conv_bwd_w(struct topt_device *d, const struct topt_kernel_call *c,
                         const struct cu_call *f, struct topt_error *err)
{
    struct conv v = conv_of(c, CONV_XW_BWD);
    int wide = (int)(f->wide_grads >> CONV_W & 1);
    const void *col;
    for (int64_t i = 0; c->grad[CONV_W] && i < v.batch * v.groups; i++) {
        struct cuda_gemm g = {
            .tb = 1,
            .m = v.out,
            .n = v.inner,
            .k = v.pixels,
            .alpha = 1,
            .beta = 1,
            .a = at(d, c->grad[CONV_Y], i * v.out * v.pixels, 0),
            .lda = v.pixels,
            .ldb = v.pixels,
            .c = at(d, c->grad[CONV_W], i % v.groups * v.out * v.inner, wide),
            .ldc = v.inner,
            .wide = wide};
        if (patches(d, c, &v, at(d, c->value[CONV_XW_BWD], i * v.image, 0),
                    c->value[CONV_COL_BWD], &col, err))
            return -1;
        g.b = col;
        if (topt_cuda_gemm(d, &g, err))
            return -1;
    }
    return 0;
}

int topt_cuda_conv_bwd_x(struct topt_device *d, const struct topt_kernel_call *c,
                         const struct cu_call *f, struct topt_error *err)
{
    struct conv v = conv_of(c, CONV_DXW);
    void *dx = c->value[CONV_DXW], *col = c->value[CONV_COL_BWD];
    (void)f;
    for (int64_t i = 0; dx && i < v.batch * v.groups; i++) {
        char *image = at(d, dx, i * v.image, 0);
        struct cu_patches p = {col, image, v.in, v.w};
        struct cuda_gemm g = {
            .ta = 1,
            .m = v.inner,
            .n = v.pixels,
            .k = v.out,
            .alpha = 1,
            .a = at(d, c->value[CONV_W], i % v.groups * v.out * v.inner, 0),
            .lda = v.inner,
            .b = at(d, c->grad[CONV_Y], i * v.out * v.pixels, 0),
            .ldb = v.pixels,
            .c = col ? col : image,
            .ldc = v.pixels};
        if (topt_cuda_gemm(d, &g, err) || (col && RUN(patches_add, &p)))
            return -1;
    }
    return 0;
}

/* ---- pooling, neighbouring channels, resizing, transposed convolution -------------- */

/* Places are numbers of the type: bf16 holds whole ones up to 256. */
static int pool_of(const struct topt_device *d, const struct topt_kernel_call *c,
                   int input, struct cu_pool *ret, struct topt_error *err)
{
    const struct topt_attrs *a = c->op->attrs;
    const struct topt_dim *x = c->op->operand[input].dim;
    const int8_t *dim = c->op->spec->operand[input].dim;
    *ret = (struct cu_pool){.x = c->value[input],
                            .which = c->value[POOL_WHICH],
                            .planes = extent(c, input, 0) * extent(c, input, 1),
                            .w = windows_of(c, input),
                            .count_pad = a->count_pad,
                            .first_row = c->off[dim[2]] * a->stride_h,
                            .first_col = c->off[dim[3]] * a->stride_w,
                            .padded_h = a->pad_top + x[2].count + a->pad_bottom,
                            .padded_w = a->pad_left + x[3].count + a->pad_right};
    return ret->which && d->dtype == TOPT_BF16 && a->kernel_h * a->kernel_w > 257
               ? topt_fail(err, TOPT_ERR_LIMIT,
                           "%s: the place in a window of %lld pixels does not fit bf16",
                           c->op->name, (long long)(a->kernel_h * a->kernel_w))
               : 0;
}

int topt_cuda_pool_fwd(struct topt_device *d, const struct topt_kernel_call *c,
                       const struct cu_call *f, struct topt_error *err)
{
    struct cu_pool p;
    (void)f;
    if (pool_of(d, c, POOL_XW, &p, err))
        return -1;
    p.y = c->value[POOL_Y];
    return RUN(pool_get, &p);
}

int topt_cuda_pool_bwd(struct topt_device *d, const struct topt_kernel_call *c,
                       const struct cu_call *f, struct topt_error *err)
{
    struct cu_pool p;
    (void)f;
    if (pool_of(d, c, POOL_DXW, &p, err))
        return -1;
    p.y = c->grad[POOL_Y];
    return p.x ? RUN(pool_put, &p) : 0;
}

static struct cu_lrn lrn_of(const struct topt_kernel_call *c, int input)
{
    const struct topt_attrs *a = c->op->attrs;
    return (struct cu_lrn){.x = c->value[input == LRN_DXW ? LRN_XW_BWD : LRN_XW],
                           .dy = c->grad[LRN_Y],
                           .y = c->value[input == LRN_DXW ? LRN_DXW : LRN_Y],
                           .alpha = a->alpha / (double)a->size,
                           .beta = a->beta,
                           .bias = a->bias,
                           .batch = extent(c, LRN_Y, 0),
                           .channels = extent(c, LRN_Y, 1),
                           .seen = extent(c, input, 1),
                           .plane = plane_of(c, LRN_Y),
                           .own = c->off[1] - c->box[input].off[1],
                           .before = (a->size - 1) / 2,
                           .after = a->size / 2};
}

int topt_cuda_lrn_fwd(struct topt_device *d, const struct topt_kernel_call *c,
                      const struct cu_call *f, struct topt_error *err)
{
    struct cu_lrn l = lrn_of(c, LRN_XW);
    (void)f;
    return RUN(lrn_get, &l);
}

int topt_cuda_lrn_bwd(struct topt_device *d, const struct topt_kernel_call *c,
                      const struct cu_call *f, struct topt_error *err)
{
    struct cu_lrn l = lrn_of(c, LRN_DXW);
    (void)f;
    return l.y ? RUN(lrn_put, &l) : 0;
}

static struct cu_resize resize_of(const struct topt_kernel_call *c, int window)
{
    struct cu_resize r = {.planes = extent(c, RESIZE_Y, 0) * extent(c, RESIZE_Y, 1),
                          .linear = c->op->attrs->linear,
                          .corners = c->op->attrs->corners};
    for (int side = 0; side < 2; side++) {
        r.in[side] = c->op->operand[RESIZE_X].dim[2 + side].count;
        r.out[side] = c->op->operand[RESIZE_Y].dim[2 + side].count;
        r.seen[side] = c->box[window].len[2 + side];
        r.first_seen[side] = c->box[window].off[2 + side];
        r.made[side] = c->len[2 + side];
        r.first_made[side] = c->off[2 + side];
    }
    return r;
}

int topt_cuda_resize_fwd(struct topt_device *d, const struct topt_kernel_call *c,
                         const struct cu_call *f, struct topt_error *err)
{
    struct cu_resize r = resize_of(c, RESIZE_XW);
    (void)f;
    r.x = c->value[RESIZE_XW];
    r.y = c->value[RESIZE_Y];
    return RUN(resize_get, &r);
}

int topt_cuda_resize_bwd(struct topt_device *d, const struct topt_kernel_call *c,
                         const struct cu_call *f, struct topt_error *err)
{
    struct cu_resize r = resize_of(c, RESIZE_DXW);
    (void)f;
    r.x = c->value[RESIZE_DXW];
    r.y = c->grad[RESIZE_Y];
    return r.x ? RUN(resize_put, &r) : 0;
}

/* Windows over this rank's block of the output, one for each pixel of the part of the
 * input. */
static struct cu_spread spread_of(const struct topt_kernel_call *c, int input)
{
    return (struct cu_spread){.x = c->value[input],
                              .y = c->grad[CT_Y],
                              .weight = c->value[CT_W],
                              .w = windows_over_output(c, input),
                              .batch = extent(c, CT_Y, 0),
                              .in = extent(c, input, 1),
                              .out = extent(c, CT_Y, 1)};
}

int topt_cuda_conv_transpose_fwd(struct topt_device *d, const struct topt_kernel_call *c,
                                 const struct cu_call *f, struct topt_error *err)
{
    struct cu_spread s = spread_of(c, CT_XW);
    (void)f;
    s.y = c->value[CT_Y];
    return RUN(spread_y, &s);
}

int topt_cuda_conv_transpose_bwd_w(struct topt_device *d,
                                   const struct topt_kernel_call *c,
                                   const struct cu_call *f, struct topt_error *err)
{
    struct cu_spread s = spread_of(c, CT_XW_BWD);
    s.weight = c->grad[CT_W];
    s.wide_weight = (int)(f->wide_grads >> CT_W & 1);
    return s.weight ? RUN(spread_weight, &s) : 0;
}

int topt_cuda_conv_transpose_bwd_x(struct topt_device *d,
                                   const struct topt_kernel_call *c,
                                   const struct cu_call *f, struct topt_error *err)
{
    struct cu_spread s = spread_of(c, CT_DXW);
    (void)f;
    return s.x ? RUN(spread_x, &s) : 0;
}

/* ---- channels ---------------------------------------------------------------------- */

static struct cu_channels channels_of(const struct topt_kernel_call *c,
                                      const struct cu_call *f)
{
    int image = c->op->spec->operand[CH_X].ndim == 4;
    return (struct cu_channels){.x = c->value[CH_X],
                                .outer = image ? extent(c, CH_X, 0) : f->rows[CH_X],
                                .channels = image ? extent(c, CH_X, 1) : f->cols[CH_X],
                                .inner = image ? plane_of(c, CH_X) : 1,
                                .each = 1};
}

/* Gains, slopes, biases: one operand with a number for each channel. */
static struct cu_channels one_each(const struct topt_kernel_call *c,
                                   const struct cu_call *f, int backward)
{
    struct cu_channels s = channels_of(c, f);
    s.gain = s.bias = c->value[CH_W];
    s.dy = c->grad[CH_Y];
    s.y = backward ? c->grad[CH_X] : c->value[CH_Y];
    s.dgain = s.dbias = c->grad[CH_W];
    s.wide_gain = s.wide_bias = (int)(f->wide_grads >> CH_W & 1);
    s.each = c->op->operand[CH_W].dim[0].count * c->op->operand[CH_W].dim[0].unit > 1;
    return s;
}

#define ONE_EACH(kernel, forward, backward)                                              \
    int topt_cuda_##kernel##_fwd(struct topt_device *d,                                  \
                                 const struct topt_kernel_call *c,                       \
                                 const struct cu_call *f, struct topt_error *err)        \
    {                                                                                    \
        struct cu_channels s = one_each(c, f, 0);                                        \
        return RUN(forward, &s);                                                         \
    }                                                                                    \
    int topt_cuda_##kernel##_bwd(struct topt_device *d,                                  \
                                 const struct topt_kernel_call *c,                       \
                                 const struct cu_call *f, struct topt_error *err)        \
    {                                                                                    \
        struct cu_channels s = one_each(c, f, 1);                                        \
        return RUN(backward, &s);                                                        \
    }

ONE_EACH(gain, gain_get, gain_put)
ONE_EACH(prelu, prelu_get, prelu_put)
ONE_EACH(channel_bias, channel_bias_get, channel_bias_put)

/* Batch norm of channels, or the norm of groups of them. */
static struct cu_channels norms_of(const struct topt_kernel_call *c,
                                   const struct cu_call *f, int groups, int backward)
{
    struct cu_channels s = channels_of(c, f);
    const struct topt_operand_spec *x = &c->op->spec->operand[NORM_X];
    int channel = x->ndim == 4 ? 1 : 2;
    s.gain = c->value[NORM_G];
    s.bias = c->value[NORM_B];
    s.dy = c->grad[NORM_Y];
    s.y = backward ? c->grad[NORM_X] : c->value[NORM_Y];
    s.mean = c->value[NORM_MU];
    s.var = c->value[NORM_V];
    s.s1 = c->value[NORM_S1];
    s.s2 = c->value[NORM_S2];
    s.dgain = c->grad[NORM_G];
    s.dbias = c->grad[NORM_B];
    s.wide_gain = (int)(f->wide_grads >> NORM_G & 1);
    s.wide_bias = (int)(f->wide_grads >> NORM_B & 1);
    s.eps = c->op->attrs->eps;
    s.unit = c->op->operand[NORM_X].dim[1].unit;
    s.groups = groups ? c->box[NORM_X].len[1] : 0;
    s.numbers = groups ? (double)s.unit : 1;
    for (int i = 0; i < x->ndim; i++)
        if (groups ? i >= 2 : i != channel)
            s.numbers *= (double)c->op->count[x->dim[i]];
    return s;
}

#define NORM(kernel, by_group, back, run)                                                \
    int topt_cuda_##kernel(struct topt_device *d, const struct topt_kernel_call *c,      \
                           const struct cu_call *f, struct topt_error *err)              \
    {                                                                                    \
        struct cu_channels s = norms_of(c, f, by_group, back);                           \
        return s.groups || !(by_group) ? RUN(run, &s) : 0;                               \
    }

NORM(bn_mean, 0, 0, channels_mean)
NORM(bn_var, 0, 0, channels_var)
NORM(bn_apply, 0, 0, channels_apply)
NORM(bn_bwd_sum, 0, 1, channels_sums)
NORM(bn_bwd_apply, 0, 1, channels_slopes)
NORM(gn_mean, 1, 0, channels_mean)
NORM(gn_var, 1, 0, channels_var)
NORM(gn_apply, 1, 0, channels_apply)
NORM(gn_bwd_sum, 1, 1, channels_sums)
NORM(gn_bwd_apply, 1, 1, channels_slopes)
