/* k_pool.h - what slides over an image without weights: pooling; and normalisation by
 * the neighbouring channels.
 *
 * The largest of a window is remembered by its place in the window, so that backward
 * needs neither the input nor a search. */
#include "real.h"

struct pool {
    struct windows w;
    int64_t planes;
    /* Divisors of means: with padding counted, extents are those of the padded image,
     * where this rank's first window starts at 'first'. */
    int count_pad;
    int64_t first_row, first_col, padded_h, padded_w;
};

static struct pool pool_of(const struct topt_kernel_call *c, int input)
{
    const struct topt_attrs *a = c->op->attrs;
    const struct topt_dim *x = c->op->operand[input].dim;
    const int8_t *d = c->op->spec->operand[input].dim;
    return (struct pool){.w = windows_of(c, input),
                         .planes = extent(c, input, 0) * extent(c, input, 1),
                         .count_pad = a->count_pad,
                         .first_row = c->off[d[2]] * a->stride_h,
                         .first_col = c->off[d[3]] * a->stride_w,
                         .padded_h = a->pad_top + x[2].count + a->pad_bottom,
                         .padded_w = a->pad_left + x[3].count + a->pad_right};
}

/* Places [from, to) of one window that are inside the image. */
struct places {
    int64_t row, col; /* of place (0, 0) */
    int64_t r_from, r_to, q_from, q_to;
};

static struct places places_of(const struct windows *w, int64_t i, int64_t j)
{
    struct places p = {.row = w->first_row + i * w->stride_h,
                       .col = w->first_col + j * w->stride_w};
    inside(p.row, w->dilation_h, w->height, w->kernel_h, &p.r_from, &p.r_to);
    inside(p.col, w->dilation_w, w->width, w->kernel_w, &p.q_from, &p.q_to);
    return p;
}

static int64_t pixel_of(const struct windows *w, const struct places *p, int64_t r,
                        int64_t q)
{
    return (p->row + r * w->dilation_h) * w->width + p->col + q * w->dilation_w;
}

/* What each pixel of the window of output (i, j) adds to the mean. */
static double pool_share(const struct pool *p, const struct places *at, int64_t i,
                         int64_t j)
{
    int64_t r_from = at->r_from, r_to = at->r_to, q_from = at->q_from, q_to = at->q_to;
    if (p->count_pad) {
        inside(p->first_row + i * p->w.stride_h, p->w.dilation_h, p->padded_h,
               p->w.kernel_h, &r_from, &r_to);
        inside(p->first_col + j * p->w.stride_w, p->w.dilation_w, p->padded_w,
               p->w.kernel_w, &q_from, &q_to);
    }
    int64_t n = (r_to - r_from) * (q_to - q_from);
    return n > 0 ? 1 / (double)n : 0;
}

/* One place of the window over outputs of a row: what is larger there, and from which
 * place. */
static void take_larger(const real *x, int64_t stride, int64_t n, real place, real *y,
                        real *which)
{
    for (int64_t j = 0; j < n; j++) {
        real v = x[j * stride];
        int better = which[j] < 0 || v > y[j];
        y[j] = better ? v : y[j];
        which[j] = better ? place : which[j];
    }
}

static void add_strided(const real *x, int64_t stride, int64_t n, real *y)
{
    for (int64_t j = 0; j < n; j++)
        y[j] += x[j * stride];
}

/* Row i of the output, place by place.  A window of nothing but padding gives 0, from
 * none. */
static void pool_row(const struct pool *p, const real *x, int64_t i, real *y, real *which)
{
    const struct windows *w = &p->w;
    struct places at = places_of(w, i, 0);
    for (int64_t j = 0; j < w->cols; j++) {
        y[j] = 0;
        if (which)
            which[j] = -1;
    }
    for (int64_t r = at.r_from; r < at.r_to; r++)
        for (int64_t q = 0; q < w->kernel_w; q++) {
            int64_t from, to, first = w->first_col + q * w->dilation_w;
            inside(first, w->stride_w, w->width, w->cols, &from, &to);
            if (from == to)
                continue;
            const real *src = x + (pixel_of(w, &at, r, q) + from * w->stride_w);
            if (which)
                take_larger(src, w->stride_w, to - from, R((double)(r * w->kernel_w + q)),
                            y + from, which + from);
            else
                add_strided(src, w->stride_w, to - from, y + from);
        }
    for (int64_t j = 0; j < w->cols && !which; j++) {
        at = places_of(w, i, j);
        y[j] = R((double)y[j] * pool_share(p, &at, i, j));
    }
}

static void pool_fwd(const struct topt_kernel_call *c)
{
    struct pool p = pool_of(c, POOL_XW);
    const real *x = c->value[POOL_XW];
    real *y = c->value[POOL_Y], *which = c->value[POOL_WHICH];
    int64_t plane = p.w.height * p.w.width;
    for (int64_t k = 0; k < p.planes * p.w.rows; k++)
        pool_row(&p, x + k / p.w.rows * plane, k % p.w.rows, y + k * p.w.cols,
                 which ? which + k * p.w.cols : NULL);
}

static void spread_largest(const struct windows *w, real *dx, int64_t i, int64_t j,
                           real dy, real which)
{
    struct places p = places_of(w, i, j);
    int64_t best = (int64_t)which;
    if (best >= 0)
        dx[pixel_of(w, &p, best / w->kernel_w, best % w->kernel_w)] += dy;
}

static void spread_mean(const struct pool *p, real *dx, int64_t i, int64_t j, real dy)
{
    struct places at = places_of(&p->w, i, j);
    real share = R((double)dy * pool_share(p, &at, i, j));
    for (int64_t r = at.r_from; r < at.r_to; r++)
        for (int64_t q = at.q_from; q < at.q_to; q++)
            dx[pixel_of(&p->w, &at, r, q)] += share;
}

static void pool_bwd(const struct topt_kernel_call *c)
{
    struct pool p = pool_of(c, POOL_DXW);
    const real *dy = c->grad[POOL_Y], *which = c->value[POOL_WHICH];
    real *dx = c->value[POOL_DXW];
    int64_t at = 0, plane = p.w.height * p.w.width;
    if (!dx)
        return;
    memset(dx, 0, (size_t)elements_of(c, POOL_DXW) * sizeof *dx);
    for (int64_t k = 0; k < p.planes; k++)
        for (int64_t i = 0; i < p.w.rows; i++)
            for (int64_t j = 0; j < p.w.cols; j++, at++)
                if (which)
                    spread_largest(&p.w, dx + k * plane, i, j, dy[at], which[at]);
                else
                    spread_mean(&p, dx + k * plane, i, j, dy[at]);
}

/* ---- local response normalisation -------------------------------------------------- */

/* y = x / s^beta, s = bias + alpha / size (sum of x^2 over the neighbouring channels).
 * With t = -2 alpha beta / size dy x s^(-beta - 1) the gradient of x is dy / s^beta,
 * and x t' summed over the channels whose neighbour it is. */
enum { LRN_STRIP = 64 };

struct lrn {
    double alpha, beta, bias; /* alpha: over the size */
    int64_t batch, channels, seen, plane;
    int64_t own; /* place of this rank's first channel among those it sees */
    int64_t before, after;
};

static struct lrn lrn_of(const struct topt_kernel_call *c, int input)
{
    const struct topt_attrs *a = c->op->attrs;
    return (struct lrn){.alpha = a->alpha / (double)a->size,
                        .beta = a->beta,
                        .bias = a->bias,
                        .batch = extent(c, LRN_Y, 0),
                        .channels = extent(c, LRN_Y, 1),
                        .seen = extent(c, input, 1),
                        .plane = extent(c, LRN_Y, 2) * extent(c, LRN_Y, 3),
                        .own = c->off[1] - c->box[input].off[1],
                        .before = (a->size - 1) / 2,
                        .after = a->size / 2};
}

/* Neighbours [from, to) of a channel, among those seen. */
static void neighbours(const struct lrn *l, int64_t channel, int64_t *ret_from,
                       int64_t *ret_to)
{
    int64_t at = l->own + channel, to = at + l->after + 1;
    *ret_from = at > l->before ? at - l->before : 0;
    *ret_to = to < l->seen ? to : l->seen;
}

/* s of 'n' pixels of a channel; 'x' is the image's first of them. */
static void lrn_scales(const struct lrn *l, const real *x, int64_t channel, int64_t n,
                       double *ret)
{
    int64_t from, to;
    neighbours(l, channel, &from, &to);
    memset(ret, 0, (size_t)n * sizeof *ret);
    for (int64_t k = from; k < to; k++)
        for (int64_t j = 0; j < n; j++) {
            double v = (double)x[k * l->plane + j];
            ret[j] += v * v;
        }
    for (int64_t j = 0; j < n; j++)
        ret[j] = l->bias + l->alpha * ret[j];
}

static void lrn_fwd(const struct topt_kernel_call *c)
{
    struct lrn l = lrn_of(c, LRN_XW);
    const real *x = c->value[LRN_XW];
    real *y = c->value[LRN_Y];
    double s[LRN_STRIP];
    for (int64_t i = 0; i < l.batch * l.channels; i++) {
        const real *image = x + i / l.channels * l.seen * l.plane;
        int64_t channel = i % l.channels;
        for (int64_t at = 0; at < l.plane; at += LRN_STRIP) {
            int64_t n = l.plane - at < LRN_STRIP ? l.plane - at : LRN_STRIP;
            lrn_scales(&l, image + at, channel, n, s);
            for (int64_t j = 0; j < n; j++) {
                double v = (double)image[(l.own + channel) * l.plane + at + j];
                y[i * l.plane + at + j] = R(v * pow(s[j], -l.beta));
            }
        }
    }
}

/* What 'n' pixels of one channel of the output give to the gradients of its
 * neighbours. */
static void lrn_spread(const struct lrn *l, const real *x, const real *dy, real *dx,
                       int64_t channel, int64_t n)
{
    double s[LRN_STRIP], t[LRN_STRIP];
    int64_t from, to, own = (l->own + channel) * l->plane;
    neighbours(l, channel, &from, &to);
    lrn_scales(l, x, channel, n, s);
    for (int64_t j = 0; j < n; j++) {
        double share = (double)dy[j] * pow(s[j], -l->beta);
        t[j] = -2 * l->alpha * l->beta * share * (double)x[own + j] / s[j];
        dx[own + j] = R((double)dx[own + j] + share);
    }
    for (int64_t k = from; k < to; k++)
        for (int64_t j = 0; j < n; j++) {
            real *d = &dx[k * l->plane + j];
            *d = R((double)*d + (double)x[k * l->plane + j] * t[j]);
        }
}

static void lrn_bwd(const struct topt_kernel_call *c)
{
    struct lrn l = lrn_of(c, LRN_DXW);
    const real *x = c->value[LRN_XW_BWD], *dy = c->grad[LRN_Y];
    real *dx = c->value[LRN_DXW];
    if (!dx)
        return;
    memset(dx, 0, (size_t)elements_of(c, LRN_DXW) * sizeof *dx);
    for (int64_t i = 0; i < l.batch * l.channels; i++) {
        int64_t image = i / l.channels * l.seen * l.plane;
        for (int64_t at = 0; at < l.plane; at += LRN_STRIP)
            lrn_spread(&l, x + image + at, dy + i * l.plane + at, dx + image + at,
                       i % l.channels,
                       l.plane - at < LRN_STRIP ? l.plane - at : LRN_STRIP);
    }
}
