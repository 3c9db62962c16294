/* k_conv.h - convolution as products of matrices, an image at a time.
 *
 * The patches of an image that the windows see, as columns of a matrix ("col": a row
 * for each channel and place in the window, a column for each pixel of the output),
 * make the output by one product with the weights; backward is two products, and the
 * patches' gradients added up where they came from.  With groups there is such a
 * product for each.  x is what this rank's block of the output reads; pixels outside
 * of it are padding. */
#include "real.h"

/* n / stride; a division is slow beside what is done for one pixel. */
static inline int64_t steps(int64_t n, int64_t stride)
{
    return stride == 1 ? n : n / stride;
}

/* Outputs [from, to) whose place at 'first' + i stride is inside [0, extent). */
static inline void inside(int64_t first, int64_t stride, int64_t extent, int64_t count,
                          int64_t *ret_from, int64_t *ret_to)
{
    int64_t from = first < 0 ? steps(-first + stride - 1, stride) : 0;
    int64_t to = first < extent ? steps(extent - 1 - first, stride) + 1 : 0;
    to = to < count ? to : count;
    *ret_from = from < to ? from : to;
    *ret_to = to;
}

/* One place of the window over all output pixels, as a row of patches. */
static void gather_place(const struct windows *w, const real *x, int64_t r, int64_t q,
                         real *row)
{
    int64_t from, to, first = w->first_col + q * w->dilation_w;
    inside(first, w->stride_w, w->width, w->cols, &from, &to);
    for (int64_t i = 0; i < w->rows; i++, row += w->cols) {
        int64_t at = w->first_row + i * w->stride_h + r * w->dilation_h;
        int64_t lo = at < 0 || at >= w->height ? w->cols : from;
        int64_t hi = lo == w->cols ? w->cols : to;
        int64_t start = at * w->width + first;
        memset(row, 0, (size_t)lo * sizeof *row);
        if (w->stride_w == 1)
            copy(row + lo, x + start + lo, hi - lo);
        else
            for (int64_t j = lo; j < hi; j++)
                row[j] = x[start + j * w->stride_w];
        memset(row + hi, 0, (size_t)(w->cols - hi) * sizeof *row);
    }
}

/* The reverse: a row of patches' gradients added to where it came from. */
static void scatter_place(const struct windows *w, real *dx, int64_t r, int64_t q,
                          const real *row)
{
    int64_t from, to, first = w->first_col + q * w->dilation_w;
    inside(first, w->stride_w, w->width, w->cols, &from, &to);
    for (int64_t i = 0; i < w->rows; i++, row += w->cols) {
        int64_t at = w->first_row + i * w->stride_h + r * w->dilation_h;
        int64_t start = at * w->width + first;
        if (at < 0 || at >= w->height)
            continue;
        for (int64_t j = from; j < to; j++)
            dx[start + j * w->stride_w] += row[j];
    }
}

/* Sizes of the products, by group: patches are 'inner' x 'pixels', weights 'out' x
 * 'inner'. */
struct conv {
    struct windows w;
    int64_t batch, groups, in, out, inner, pixels;
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
    return v;
}

/* Patches of one group of an image; where windows are single pixels, the image itself. */
static const real *patches(const struct conv *v, const real *x, real *col)
{
    if (!col)
        return x;
    real *row = col;
    for (int64_t k = 0; k < v->in; k++)
        for (int64_t r = 0; r < v->w.kernel_h; r++)
            for (int64_t q = 0; q < v->w.kernel_w; q++, row += v->pixels)
                gather_place(&v->w, x + k * v->w.height * v->w.width, r, q, row);
    return col;
}

static void add_patches(const struct conv *v, real *dx, const real *col)
{
    for (int64_t k = 0; k < v->in; k++)
        for (int64_t r = 0; r < v->w.kernel_h; r++)
            for (int64_t q = 0; q < v->w.kernel_w; q++, col += v->pixels)
                scatter_place(&v->w, dx + k * v->w.height * v->w.width, r, q, col);
}

static void conv_fwd(const struct topt_kernel_call *c)
{
    struct conv v = conv_of(c, CONV_XW);
    const real *x = c->value[CONV_XW], *w = c->value[CONV_W];
    real *y = c->value[CONV_Y];
    int64_t image = v.in * v.w.height * v.w.width;
    for (int64_t i = 0; i < v.batch * v.groups; i++)
        gemm(&(struct gemm){.m = v.out,
                            .n = v.pixels,
                            .k = v.inner,
                            .alpha = 1,
                            .a = w + i % v.groups * v.out * v.inner,
                            .lda = v.inner,
                            .b = patches(&v, x + i * image, c->value[CONV_COL]),
                            .ldb = v.pixels,
                            .c = y + i * v.out * v.pixels,
                            .ldc = v.pixels});
}

static void conv_bwd_w(const struct topt_kernel_call *c)
{
    struct conv v = conv_of(c, CONV_XW_BWD);
    const real *x = c->value[CONV_XW_BWD], *dy = c->grad[CONV_Y];
    real *dw = c->grad[CONV_W];
    int64_t image = v.in * v.w.height * v.w.width;
    for (int64_t i = 0; dw && i < v.batch * v.groups; i++)
        gemm(&(struct gemm){.tb = 1,
                            .m = v.out,
                            .n = v.inner,
                            .k = v.pixels,
                            .alpha = 1,
                            .beta = 1,
                            .a = dy + i * v.out * v.pixels,
                            .lda = v.pixels,
                            .b = patches(&v, x + i * image, c->value[CONV_COL_BWD]),
                            .ldb = v.pixels,
                            .c = dw + i % v.groups * v.out * v.inner,
                            .ldc = v.inner});
}

static void conv_bwd_x(const struct topt_kernel_call *c)
{
    struct conv v = conv_of(c, CONV_DXW);
    const real *w = c->value[CONV_W], *dy = c->grad[CONV_Y];
    real *dx = c->value[CONV_DXW], *col = c->value[CONV_COL_BWD];
    int64_t image = v.in * v.w.height * v.w.width;
    if (dx && col)
        memset(dx, 0, (size_t)elements_of(c, CONV_DXW) * sizeof *dx);
    for (int64_t i = 0; dx && i < v.batch * v.groups; i++) {
        gemm(&(struct gemm){.ta = 1,
                            .m = v.inner,
                            .n = v.pixels,
                            .k = v.out,
                            .alpha = 1,
                            .a = w + i % v.groups * v.out * v.inner,
                            .lda = v.inner,
                            .b = dy + i * v.out * v.pixels,
                            .ldb = v.pixels,
                            .c = col ? col : dx + i * image,
                            .ldc = v.pixels});
        if (col)
            add_patches(&v, dx + i * image, col);
    }
}
