/* k_image.h - images, [batch, channels, height, width], as planes of pixels: biases of
 * channels, means over the image, changes of shape. */
#include "real.h"

static void channel_bias_fwd(const struct topt_kernel_call *c)
{
    enum { X, B, Y };
    const real *x = c->value[X], *bias = c->value[B];
    real *y = c->value[Y];
    int64_t channels = elements_of(c, B), plane = plane_of(c, X);
    int64_t planes = extent(c, X, 0) * channels;
    for (int64_t p = 0; p < planes; p++)
        for (int64_t i = 0; i < plane; i++)
            y[p * plane + i] = x[p * plane + i] + bias[p % channels];
}

/* Sum of a channel's pixels over the images. */
static double channel_sum(const real *x, int64_t batch, int64_t channels, int64_t plane,
                          int64_t channel)
{
    double sum = 0;
    for (int64_t b = 0; b < batch; b++) {
        const real *row = x + (b * channels + channel) * plane;
        for (int64_t i = 0; i < plane; i++)
            sum += (double)row[i];
    }
    return sum;
}

static void channel_bias_bwd(const struct topt_kernel_call *c)
{
    enum { X, B, Y };
    const real *dy = c->grad[Y];
    real *db = c->grad[B];
    int64_t channels = elements_of(c, B), plane = plane_of(c, Y);
    copy(c->grad[X], dy, elements_of(c, Y));
    for (int64_t j = 0; db && j < channels; j++)
        db[j] = R((double)db[j] + channel_sum(dy, extent(c, Y, 0), channels, plane, j));
}

/* Each rank's share of the mean: its sum over the whole image's pixels. */
static void global_pool_fwd(const struct topt_kernel_call *c)
{
    enum { X, Y, H = 2, W };
    const real *x = c->value[X];
    real *y = c->value[Y];
    int64_t planes = elements_of(c, Y), plane = plane_of(c, X);
    double pixels = (double)c->op->count[H] * (double)c->op->count[W];
    for (int64_t p = 0; p < planes; p++)
        y[p] = R(channel_sum(x, 1, planes, plane, p) / pixels);
}

static void global_pool_bwd(const struct topt_kernel_call *c)
{
    enum { X, Y, H = 2, W };
    const real *dy = c->grad[Y];
    real *dx = c->grad[X];
    int64_t planes = dx ? elements_of(c, Y) : 0, plane = plane_of(c, X);
    double pixels = (double)c->op->count[H] * (double)c->op->count[W];
    for (int64_t p = 0; p < planes; p++) {
        real share = R((double)dy[p] / pixels);
        for (int64_t i = 0; i < plane; i++)
            dx[p * plane + i] = share;
    }
}

/* The same numbers in the same order under another shape. */
static void copy_fwd(const struct topt_kernel_call *c)
{
    enum { X, Y };
    copy(c->value[Y], c->value[X], elements_of(c, X));
}

static void copy_bwd(const struct topt_kernel_call *c)
{
    enum { X, Y };
    copy(c->grad[X], c->grad[Y], elements_of(c, X));
}

/* dst[cols, rows] = src[rows, cols], by tiles that stay in the cache. */
static void transpose(real *dst, const real *src, int64_t rows, int64_t cols)
{
    enum { TILE = 16 };
    for (int64_t i0 = 0; i0 < rows; i0 += TILE)
        for (int64_t j0 = 0; j0 < cols; j0 += TILE)
            for (int64_t i = i0; i < rows && i < i0 + TILE; i++)
                for (int64_t j = j0; j < cols && j < j0 + TILE; j++)
                    dst[j * rows + i] = src[i * cols + j];
}

static void tokens_fwd(const struct topt_kernel_call *c)
{
    enum { X, Y };
    const real *x = c->value[X];
    real *y = c->value[Y];
    int64_t batch = extent(c, X, 0), channels = extent(c, X, 1), plane = plane_of(c, X);
    for (int64_t b = 0; b < batch; b++)
        transpose(y + b * channels * plane, x + b * channels * plane, channels, plane);
}

static void tokens_bwd(const struct topt_kernel_call *c)
{
    enum { X, Y };
    const real *dy = c->grad[Y];
    real *dx = c->grad[X];
    int64_t batch = dx ? extent(c, X, 0) : 0, channels = extent(c, X, 1);
    int64_t plane = plane_of(c, X);
    for (int64_t b = 0; b < batch; b++)
        transpose(dx + b * channels * plane, dy + b * channels * plane, plane, channels);
}
