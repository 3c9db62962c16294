/* kernels_conv.c - the host kernels of images: elementwise operators, convolutions, pooling,
 * normalisation, changes of shape. */
#include "conv_fixtures.h"

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

/* Place (r, q) of the window of output (i, j). */
static void place_of(const struct topt_attrs *a, const int64_t at[4], int64_t r,
                     int64_t q, int64_t *ret_i, int64_t *ret_j)
{
    *ret_i = at[2] * a->stride_h + r * a->dilation_h - a->pad_top;
    *ret_j = at[3] * a->stride_w + q * a->dilation_w - a->pad_left;
}

/* Weights are [output][input channel of the group][r][q]. */
static double conv_at(const struct topt_op *op, const struct whole *w,
                      const struct image *x, const int64_t at[4])
{
    enum { X, W, Y };
    const struct topt_attrs *a = op->attrs;
    const struct topt_dim *y = op->operand[Y].dim;
    int grouped = !strcmp(op->spec->name, "conv_grouped");
    int64_t in = grouped ? op->operand[X].dim[1].unit : x->channels;
    int64_t first = grouped ? at[1] / y[1].unit * in : 0, i, j;
    double sum = 0;
    for (int64_t k = 0; k < in; k++)
        for (int64_t r = 0; r < a->kernel_h; r++)
            for (int64_t q = 0; q < a->kernel_w; q++) {
                place_of(a, at, r, q, &i, &j);
                sum +=
                    w->value[W][((at[1] * in + k) * a->kernel_h + r) * a->kernel_w + q] *
                    pixel(x, at[0], first + k, i, j);
            }
    return sum;
}

static double pool_at(const struct topt_op *op, const struct whole *w,
                      const struct image *x, const int64_t at[4])
{
    const struct topt_attrs *a = op->attrs;
    double sum = 0, most = -INFINITY, n = 0;
    (void)w;
    for (int64_t r = 0; r < a->kernel_h; r++)
        for (int64_t q = 0; q < a->kernel_w; q++) {
            int64_t i, j, pad = a->count_pad;
            place_of(a, at, r, q, &i, &j);
            int inside_image = i >= 0 && j >= 0 && i < x->height && j < x->width;
            n += inside_image ||
                 (pad && i < x->height + a->pad_bottom && j < x->width + a->pad_right);
            sum += pixel(x, at[0], at[1], i, j);
            if (inside_image)
                most = fmax(most, pixel(x, at[0], at[1], i, j));
        }
    if (a->average)
        return n > 0 ? sum / n : 0;
    return isfinite(most) ? most : 0;
}

/* Weights are [input][output][r][q]; every pixel of the input whose window has this one. */
static double conv_transpose_at(const struct topt_op *op, const struct whole *w,
                                const struct image *x, const int64_t at[4])
{
    enum { X, W, Y };
    const struct topt_attrs *a = op->attrs;
    const struct topt_dim *y = op->operand[Y].dim;
    double sum = 0;
    for (int64_t k = 0; k < x->channels; k++)
        for (int64_t i = 0; i < x->height; i++)
            for (int64_t j = 0; j < x->width; j++)
                for (int64_t r = 0; r < a->kernel_h; r++)
                    for (int64_t q = 0; q < a->kernel_w; q++)
                        if (i * a->stride_h + r * a->dilation_h - a->pad_top == at[2] &&
                            j * a->stride_w + q * a->dilation_w - a->pad_left == at[3])
                            sum += pixel(x, at[0], k, i, j) *
                                   w->value[W][((k * y[1].count * y[1].unit + at[1]) *
                                                    a->kernel_h +
                                                r) *
                                                   a->kernel_w +
                                               q];
    return sum;
}

/* A weight for each pixel by its distance, as a tent over two; or the pixel that holds the
 * centre. */
static double resize_at(const struct topt_op *op, const struct whole *w,
                        const struct image *x, const int64_t at[4])
{
    const struct topt_attrs *a = op->attrs;
    double in[2] = {(double)x->height, (double)x->width}, place[2], sum = 0;
    double out[2] = {(double)a->height, (double)a->width};
    (void)w;
    for (int d = 0; d < 2; d++) {
        place[d] = a->corners ? (double)at[2 + d] * (in[d] - 1) / fmax(out[d] - 1, 1)
                              : ((double)at[2 + d] + 0.5) * in[d] / out[d] - 0.5;
        place[d] = fmin(fmax(place[d], 0), in[d] - 1);
        if (!a->linear)
            place[d] = floor(((double)at[2 + d] + 0.5) * in[d] / out[d] + 1e-9);
    }
    for (int64_t i = 0; i < x->height; i++)
        for (int64_t j = 0; j < x->width; j++)
            sum += fmax(0, 1 - fabs((double)i - place[0])) *
                   fmax(0, 1 - fabs((double)j - place[1])) * pixel(x, at[0], at[1], i, j);
    return sum;
}

static double shuffle_at(const struct topt_op *op, const struct whole *w,
                         const struct image *x, const int64_t at[4])
{
    int64_t groups = op->attrs->groups, each = x->channels / groups;
    (void)w;
    return pixel(x, at[0], at[1] % groups * each + at[1] / groups, at[2], at[3]);
}

static double group_norm_at(const struct topt_op *op, const struct whole *w,
                            const struct image *x, const int64_t at[4])
{
    enum { X, G, BIAS };
    int64_t unit = op->operand[X].dim[1].unit, first = at[1] / unit * unit;
    double sum = 0, squares = 0, n = (double)(unit * x->height * x->width);
    for (int64_t c = first; c < first + unit; c++)
        for (int64_t i = 0; i < x->height * x->width; i++) {
            double v = pixel(x, at[0], c, i / x->width, i % x->width);
            sum += v;
            squares += v * v;
        }
    double mean = sum / n, var = squares / n - mean * mean;
    return (pixel(x, at[0], at[1], at[2], at[3]) - mean) / sqrt(var + op->attrs->eps) *
               w->value[G][at[1]] +
           w->value[BIAS][at[1]];
}

static double batch_norm_at(const struct topt_op *op, const struct whole *w,
                            const struct image *x, const int64_t at[4])
{
    enum { G = 1, BIAS };
    double sum = 0, squares = 0, n = 0;
    for (int64_t b = 0; b < BATCH; b++)
        for (int64_t i = 0; i < x->height; i++)
            for (int64_t j = 0; j < x->width; j++, n++) {
                double v = pixel(x, b, at[1], i, j);
                sum += v;
                squares += v * v;
            }
    double mean = sum / n, var = squares / n - mean * mean;
    return (pixel(x, at[0], at[1], at[2], at[3]) - mean) / sqrt(var + op->attrs->eps) *
               w->value[G][at[1]] +
           w->value[BIAS][at[1]];
}

static double lrn_at(const struct topt_op *op, const struct whole *w,
                     const struct image *x, const int64_t at[4])
{
    const struct topt_attrs *a = op->attrs;
    double sum = 0;
    (void)w;
    for (int64_t k = 0; k < a->size; k++) {
        int64_t c = at[1] + k - (a->size - 1) / 2;
        double v = c >= 0 && c < x->channels ? pixel(x, at[0], c, at[2], at[3]) : 0;
        sum += v * v;
    }
    return pixel(x, at[0], at[1], at[2], at[3]) /
           pow(a->bias + a->alpha / (double)a->size * sum, a->beta);
}

static const struct by_hand {
    const char *kind;
    double (*at)(const struct topt_op *op, const struct whole *w, const struct image *x,
                 const int64_t at[4]);
} by_hand[] = {{"conv", conv_at},
               {"conv_grouped", conv_at},
               {"pool", pool_at},
               {"batch_norm", batch_norm_at},
               {"group_norm", group_norm_at},
               {"resize", resize_at},
               {"shuffle", shuffle_at},
               {"conv_transpose", conv_transpose_at},
               {"lrn", lrn_at}};

static double worst_value(const struct by_hand *h, const struct topt_op *op,
                          const struct whole *w, const struct whole *ref)
{
    struct image x = image_of(op, 0, w->value[0]);
    struct image y = image_of(op, op->output, ref->value[op->output]);
    double worst = 0;
    for (int64_t n = 0; n < fake_volume(op, op->output); n++) {
        int64_t at[4] = {n / (y.channels * y.height * y.width),
                         n / (y.height * y.width) % y.channels, n / y.width % y.height,
                         n % y.width};
        worst = fmax(worst, fabs(h->at(op, w, &x, at) - y.x[n]));
    }
    return worst;
}

/* Slopes and splits say that an operator agrees with itself; this, that it is the right one. */
static void check_values(const struct fixture *x, const struct by_hand *h)
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
    double worst = worst_value(h, op, &w, &ref);
    ok(worst < 1e-12, "%s: as by hand (off by %.1e)", x->title, worst);
    drop(&w);
    drop(&ref);
    topt_model_destroy(m);
}

int main(void)
{
    for (size_t i = 0; i < sizeof conv_fixtures / sizeof *conv_fixtures; i++) {
        check_operator(&conv_fixtures[i]);
        for (size_t k = 0; k < sizeof by_hand / sizeof *by_hand; k++)
            if (!strcmp(conv_fixtures[i].kind, by_hand[k].kind))
                check_values(&conv_fixtures[i], &by_hand[k]);
    }
    return done_testing();
}
