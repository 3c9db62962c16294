/* kernels_conv.c - the host kernels of images: elementwise operators, convolutions, changes
 * of shape. */
#include "kernel_checks.h"

/* clang-format off */
#define SHAPE(c, unit, h, w) {4, {{BATCH, 1}, {(c), (unit)}, {(h), 1}, {(w), 1}}}
/* An operator with attributes on images of c channels of 'unit' numbers. */
#define ON_IMAGE(kind, title, c, unit, h, w, ...) \
    {title, kind, 1, 1, 1, {__VA_ARGS__}, .shape = {SHAPE(c, unit, h, w)}}
#define ON_TWO(kind, title, c, unit, h, w) \
    {title, kind, 2, 1, 1, {0}, .shape = {SHAPE(c, unit, h, w), SHAPE(c, unit, h, w)}}
/* clang-format on */

static const struct fixture fixtures[] = {
    ON_IMAGE("bias", "bias of channels", 3, 2, 5, 4, 0),
    ON_IMAGE("unary", "elu of images", 2, 1, 5, 3, .activation = TOPT_ACT_ELU,
             .alpha = 0.7),
    ON_TWO("add", "sum of images", 2, 2, 4, 3),
    ON_TWO("mul", "product of images", 3, 1, 5, 2),
    ON_IMAGE("conv", "conv 3x3", 2, 1, 7, 6, .features = 3, .kernel_h = 3, .kernel_w = 3,
             .pad_top = 1, .pad_left = 1, .pad_bottom = 1, .pad_right = 1),
    ON_IMAGE("conv", "conv 1x1", 3, 2, 5, 4, .features = 2, .features_unit = 2,
             .kernel_h = 1, .kernel_w = 1),
    ON_IMAGE("conv", "conv 1x1 of stride 2", 2, 1, 5, 6, .features = 2, .kernel_h = 1,
             .kernel_w = 1, .stride_h = 2, .stride_w = 2),
    ON_IMAGE("conv", "conv of patches", 2, 1, 6, 4, .features = 2, .kernel_h = 3,
             .kernel_w = 2, .stride_h = 3, .stride_w = 2),
    ON_IMAGE("conv", "conv with everything", 2, 1, 9, 8, .features = 3, .kernel_h = 3,
             .kernel_w = 2, .stride_h = 2, .stride_w = 3, .dilation_h = 2,
             .dilation_w = 3, .pad_top = 3, .pad_bottom = 1, .pad_right = 2),
    ON_IMAGE("conv", "conv wider than blocks", 1, 1, 7, 5, .features = 2, .kernel_h = 5,
             .kernel_w = 4, .pad_top = 2, .pad_left = 1, .pad_bottom = 2, .pad_right = 2),
    ON_IMAGE("conv", "conv that skips pixels", 2, 1, 8, 7, .features = 1, .kernel_h = 1,
             .kernel_w = 2, .stride_h = 4, .stride_w = 3),
    ON_IMAGE("conv", "conv along a line", 2, 1, 1, 9, .features = 2, .kernel_h = 1,
             .kernel_w = 3, .pad_right = 2),
    ON_IMAGE("conv_grouped", "grouped conv", 3, 2, 6, 5, .features_unit = 3,
             .kernel_h = 3, .kernel_w = 3, .pad_top = 1, .pad_left = 1, .stride_h = 2),
    ON_IMAGE("conv_grouped", "depthwise conv", 4, 1, 5, 5, .groups = 4, .kernel_h = 3,
             .kernel_w = 3, .pad_top = 1, .pad_left = 1, .pad_bottom = 1, .pad_right = 1),
    ON_IMAGE("conv_grouped", "grouped conv 1x1", 3, 2, 4, 3, .features_unit = 2,
             .kernel_h = 1, .kernel_w = 1),
    ON_IMAGE("global_pool", "global pool", 3, 2, 5, 4, 0),
    ON_IMAGE("flatten", "flatten", 5, 2, 3, 2, 0),
    ON_IMAGE("tokens", "tokens", 5, 2, 5, 4, 0),
    ON_IMAGE("tokens", "tokens of many channels", 19, 1, 3, 6, 0),
};

/* ---- values, by the plainest loops ------------------------------------------------------- */

struct image {
    const double *x;
    int64_t channels, height, width;
};

static struct image image_of(const struct topt_op *op, int operand, const double *x)
{
    const struct topt_dim *d = op->operand[operand].dim;
    return (struct image){x, d[1].count * d[1].unit, d[2].count, d[3].count};
}

static double pixel(const struct image *m, int64_t b, int64_t c, int64_t i, int64_t j)
{
    if (i < 0 || j < 0 || i >= m->height || j >= m->width)
        return 0;
    return m->x[((b * m->channels + c) * m->height + i) * m->width + j];
}

/* Output (b, n, i, j) of a convolution with weights [n][channel of the group][r][q]. */
static double conv_at(const struct topt_op *op, const struct image *x, const double *w,
                      int64_t groups, int64_t outs, const int64_t at[4])
{
    const struct topt_attrs *a = &op->attrs;
    int64_t in = x->channels / groups, first = at[1] / (outs / groups) * in;
    double sum = 0;
    for (int64_t k = 0; k < in; k++)
        for (int64_t r = 0; r < a->kernel_h; r++)
            for (int64_t q = 0; q < a->kernel_w; q++) {
                int64_t i = at[2] * a->stride_h + r * a->dilation_h - a->pad_top;
                int64_t j = at[3] * a->stride_w + q * a->dilation_w - a->pad_left;
                double weight = w[((at[1] * in + k) * a->kernel_h + r) * a->kernel_w + q];
                sum += weight * pixel(x, at[0], first + k, i, j);
            }
    return sum;
}

static double worst_of_conv(const struct topt_op *op, const struct whole *w,
                            const struct whole *ref)
{
    enum { X, W, Y };
    struct image x = image_of(op, X, w->value[X]), y = image_of(op, Y, ref->value[Y]);
    int64_t groups =
        !strcmp(op->spec->name, "conv_grouped") ? op->operand[X].dim[1].count : 1;
    double worst = 0;
    for (int64_t n = 0; n < fake_volume(op, Y); n++) {
        int64_t at[4] = {n / (y.channels * y.height * y.width),
                         n / (y.height * y.width) % y.channels, n / y.width % y.height,
                         n % y.width};
        double want = conv_at(op, &x, w->value[W], groups, y.channels, at);
        worst = fmax(worst, fabs(want - y.x[n]));
    }
    return worst;
}

/* Slopes and splits say that an operator agrees with itself; this, that it is the right one. */
static void check_values(const struct fixture *x)
{
    struct topt_model *m = build(x);
    const struct topt_op *op = &m->op[m->nops - 1];
    struct topt_config none = topt_config_none();
    struct topt_mesh one;
    struct whole w, ref;
    if (topt_mesh_init(&one, 1, 1, NULL))
        abort();
    fill(x, op, &w);
    whole_run(op, &one, &none, &w, &ref);
    double worst = worst_of_conv(op, &w, &ref);
    ok(worst < 1e-12, "%s: as by hand (off by %.1e)", x->title, worst);
    drop(&w);
    drop(&ref);
    topt_model_destroy(m);
}

int main(void)
{
    for (size_t i = 0; i < sizeof fixtures / sizeof *fixtures; i++) {
        check_operator(&fixtures[i]);
        if (!strncmp(fixtures[i].kind, "conv", 4))
            check_values(&fixtures[i]);
    }
    return done_testing();
}
