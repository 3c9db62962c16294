/* k_resample.h - images in other extents: resizing, transposed convolution, positions
 * as pixels.
 *
 * A transposed convolution is the gradient of a convolution run forward: each pixel of
 * the input is spread over a window of the output.  Where rows or columns are split,
 * this rank takes the pixels whose windows touch its block of the output, and what
 * falls outside of the block is another rank's.  So in backward as well each pair of
 * pixels is one rank's. */
#include "real.h"

/* ---- resize ------------------------------------------------------------------------ */

/* Taps of the local output row or column 'i' among the local ones of the window. */
static struct topt_taps local_taps(const struct topt_kernel_call *c, int window,
                                   int along_rows, int64_t i)
{
    int d = along_rows ? 2 : 3;
    struct topt_taps t = topt_resize_taps(c->op, along_rows, c->off[d] + i);
    t.low -= c->box[window].off[d];
    t.high -= c->box[window].off[d];
    return t;
}

static void resize_fwd(const struct topt_kernel_call *c)
{
    const real *x = c->value[RESIZE_XW];
    real *y = c->value[RESIZE_Y];
    int64_t rows = c->len[2], cols = c->len[3], width = c->box[RESIZE_XW].len[3];
    int64_t planes = extent(c, RESIZE_Y, 0) * extent(c, RESIZE_Y, 1),
            plane = plane_of(c, RESIZE_XW);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++) {
            struct topt_taps r = local_taps(c, RESIZE_XW, 1, i),
                             q = local_taps(c, RESIZE_XW, 0, j);
            for (int64_t p = 0; p < planes; p++) {
                const real *low = x + p * plane + r.low * width,
                           *high = x + p * plane + r.high * width;
                double top = (double)low[q.low] * (1 - q.share) +
                             (double)low[q.high] * q.share,
                       bottom = (double)high[q.low] * (1 - q.share) +
                                (double)high[q.high] * q.share;
                y[(p * rows + i) * cols + j] = R(top * (1 - r.share) + bottom * r.share);
            }
        }
}

static void resize_bwd(const struct topt_kernel_call *c)
{
    const real *dy = c->grad[RESIZE_Y];
    real *dx = c->value[RESIZE_DXW];
    int64_t rows = c->len[2], cols = c->len[3], width = c->box[RESIZE_DXW].len[3];
    int64_t planes = extent(c, RESIZE_Y, 0) * extent(c, RESIZE_Y, 1),
            plane = plane_of(c, RESIZE_DXW);
    if (!dx)
        return;
    memset(dx, 0, (size_t)(planes * plane) * sizeof *dx);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++) {
            struct topt_taps r = local_taps(c, RESIZE_DXW, 1, i),
                             q = local_taps(c, RESIZE_DXW, 0, j);
            for (int64_t p = 0; p < planes; p++) {
                real *low = dx + p * plane + r.low * width,
                     *high = dx + p * plane + r.high * width;
                double d = (double)dy[(p * rows + i) * cols + j];
                low[q.low] += R(d * (1 - r.share) * (1 - q.share));
                low[q.high] += R(d * (1 - r.share) * q.share);
                high[q.low] += R(d * r.share * (1 - q.share));
                high[q.high] += R(d * r.share * q.share);
            }
        }
}

/* ---- transposed convolution -------------------------------------------------------- */

/* Windows over this rank's block of the output, one for each pixel of the part of the
 * input; 'in' and 'out' channels. */
struct spread {
    struct windows w;
    int64_t batch, in, out, area;
};

static struct spread spread_of(const struct topt_kernel_call *c, int input)
{
    const struct topt_attrs *a = c->op->attrs;
    return (struct spread){.w = windows_over_output(c, input),
                           .batch = extent(c, CT_Y, 0),
                           .in = extent(c, input, 1),
                           .out = extent(c, CT_Y, 1),
                           .area = a->kernel_h * a->kernel_w};
}

/* What a place of the window makes of a channel of the input and one of the output. */
typedef void spread_place(const struct windows *w, int64_t r, int64_t q, real *x, real *y,
                          real *weight);

static void spread_fwd(const struct windows *w, int64_t r, int64_t q, real *x, real *y,
                       real *weight)
{
    int64_t from, to, first = w->first_col + q * w->dilation_w;
    inside(first, w->stride_w, w->width, w->cols, &from, &to);
    for (int64_t i = 0; i < w->rows; i++) {
        int64_t at = w->first_row + i * w->stride_h + r * w->dilation_h;
        for (int64_t j = from; j < to && at >= 0 && at < w->height; j++)
            y[at * w->width + first + j * w->stride_w] += *weight * x[i * w->cols + j];
    }
}

static void spread_bwd_x(const struct windows *w, int64_t r, int64_t q, real *x, real *y,
                         real *weight)
{
    int64_t from, to, first = w->first_col + q * w->dilation_w;
    inside(first, w->stride_w, w->width, w->cols, &from, &to);
    for (int64_t i = 0; i < w->rows; i++) {
        int64_t at = w->first_row + i * w->stride_h + r * w->dilation_h;
        for (int64_t j = from; j < to && at >= 0 && at < w->height; j++)
            x[i * w->cols + j] += *weight * y[at * w->width + first + j * w->stride_w];
    }
}

static void spread_bwd_w(const struct windows *w, int64_t r, int64_t q, real *x, real *y,
                         real *weight)
{
    int64_t from, to, first = w->first_col + q * w->dilation_w;
    double sum = 0;
    inside(first, w->stride_w, w->width, w->cols, &from, &to);
    for (int64_t i = 0; i < w->rows; i++) {
        int64_t at = w->first_row + i * w->stride_h + r * w->dilation_h;
        for (int64_t j = from; j < to && at >= 0 && at < w->height; j++)
            sum += (double)x[i * w->cols + j] *
                   (double)y[at * w->width + first + j * w->stride_w];
    }
    *weight = R((double)*weight + sum);
}

/* Weights are [input][output][row][column]. */
static void spread_all(const struct spread *s, spread_place *place, real *x, real *y,
                       real *weight)
{
    int64_t in_plane = s->w.rows * s->w.cols, out_plane = s->w.height * s->w.width;
    for (int64_t b = 0; b < s->batch; b++)
        for (int64_t k = 0; k < s->in; k++)
            for (int64_t n = 0; n < s->out; n++)
                for (int64_t p = 0; p < s->area; p++)
                    place(&s->w, p / s->w.kernel_w, p % s->w.kernel_w,
                          x + (b * s->in + k) * in_plane,
                          y + (b * s->out + n) * out_plane,
                          weight + (k * s->out + n) * s->area + p);
}

static void conv_transpose_fwd(const struct topt_kernel_call *c)
{
    struct spread s = spread_of(c, CT_XW);
    real *y = c->value[CT_Y];
    memset(y, 0, (size_t)elements_of(c, CT_Y) * sizeof *y);
    spread_all(&s, spread_fwd, c->value[CT_XW], y, c->value[CT_W]);
}

static void conv_transpose_bwd_w(const struct topt_kernel_call *c)
{
    struct spread s = spread_of(c, CT_XW_BWD);
    if (c->grad[CT_W])
        spread_all(&s, spread_bwd_w, c->value[CT_XW_BWD], c->grad[CT_Y], c->grad[CT_W]);
}

static void conv_transpose_bwd_x(const struct topt_kernel_call *c)
{
    struct spread s = spread_of(c, CT_DXW);
    real *dx = c->value[CT_DXW];
    if (!dx)
        return;
    memset(dx, 0, (size_t)elements_of(c, CT_DXW) * sizeof *dx);
    spread_all(&s, spread_bwd_x, dx, c->grad[CT_Y], c->value[CT_W]);
}

/* ---- positions as pixels ----------------------------------------------------------- */

static void untokens_fwd(const struct topt_kernel_call *c)
{
    enum { X, Y };
    const real *x = c->value[X];
    real *y = c->value[Y];
    int64_t batch = extent(c, Y, 0), channels = extent(c, Y, 1), plane = plane_of(c, Y);
    for (int64_t b = 0; b < batch; b++)
        transpose(y + b * channels * plane, x + b * channels * plane, plane, channels);
}

static void untokens_bwd(const struct topt_kernel_call *c)
{
    enum { X, Y };
    const real *dy = c->grad[Y];
    real *dx = c->grad[X];
    int64_t batch = dx ? extent(c, Y, 0) : 0, channels = extent(c, Y, 1);
    int64_t plane = plane_of(c, Y);
    for (int64_t b = 0; b < batch; b++)
        transpose(dx + b * channels * plane, dy + b * channels * plane, channels, plane);
}
