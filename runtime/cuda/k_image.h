/* k_image.h - windows over images: patches for convolutions, pooling, norms by neighbouring
 * channels, transposed convolutions, resizing.
 *
 * What a host program adds to where it came from is asked for here by who gets it: each
 * pixel looks for the windows that it is in, so no two threads write the same number. */
#include "real.h"

/* Pixel 'at' is place 'k' of the window of which output along one side; -1: of none. */
DEVICE int64_t output_of(int64_t at, int64_t first, int64_t k, int64_t dilation,
                         int64_t stride, int64_t n)
{
    int64_t from = at - first - k * dilation;
    return from >= 0 && from % stride == 0 && from / stride < n ? from / stride : -1;
}

/* ---- patches ----------------------------------------------------------------------- */

KERNEL patches_get_each(CALL(cu_patches) c)
{
    int64_t pixels = c.w.rows * c.w.cols, area = c.w.kernel_h * c.w.kernel_w;
    EACH(e, c.channels * area * pixels)
    {
        int64_t row = quotient(e, pixels), at = rest(e, pixels);
        int64_t channel = quotient(row, area), place = rest(row, area);
        int64_t i = quotient(at, c.w.cols), j = rest(at, c.w.cols);
        int64_t r = c.w.first_row + i * c.w.stride_h +
                    quotient(place, c.w.kernel_w) * c.w.dilation_h;
        int64_t q =
            c.w.first_col + j * c.w.stride_w + rest(place, c.w.kernel_w) * c.w.dilation_w;
        int inside = r >= 0 && r < c.w.height && q >= 0 && q < c.w.width;
        put(OUT(c.col), e,
            inside ? get(IN(c.x), (channel * c.w.height + r) * c.w.width + q) : N(0));
    }
}

static int patches_get(void *stream, const struct cu_patches *c)
{
    int64_t n = c->channels * c->w.kernel_h * c->w.kernel_w * c->w.rows * c->w.cols;
    LAUNCH(patches_get_each, blocks_for(n), stream, c);
    return 0;
}

/* x is what its pixels have in all patches. */
KERNEL patches_add_each(CALL(cu_patches) c)
{
    int64_t plane = c.w.height * c.w.width, pixels = c.w.rows * c.w.cols;
    EACH(e, c.channels * plane)
    {
        int64_t channel = quotient(e, plane), at = rest(e, plane);
        int64_t row = quotient(at, c.w.width), col = rest(at, c.w.width);
        wide sum = 0;
        for (int64_t r = 0; r < c.w.kernel_h; r++) {
            int64_t i =
                output_of(row, c.w.first_row, r, c.w.dilation_h, c.w.stride_h, c.w.rows);
            for (int64_t q = 0; q < c.w.kernel_w && i >= 0; q++) {
                int64_t j = output_of(col, c.w.first_col, q, c.w.dilation_w, c.w.stride_w,
                                      c.w.cols);
                int64_t line = (channel * c.w.kernel_h + r) * c.w.kernel_w + q;
                sum += j < 0 ? W(0) : W(get(IN(c.col), line * pixels + i * c.w.cols + j));
            }
        }
        put(OUT(c.x), e, N(sum));
    }
}

static int patches_add(void *stream, const struct cu_patches *c)
{
    LAUNCH(patches_add_each, blocks_for(c->channels * c->w.height * c->w.width), stream,
           c);
    return 0;
}

/* ---- pooling ----------------------------------------------------------------------- */

/* How many of 'kernel' places from 'first' on are inside. */
DEVICE int64_t places_inside(int64_t first, int64_t dilation, int64_t extent,
                             int64_t kernel)
{
    int64_t n = 0;
    for (int64_t k = 0; k < kernel; k++)
        n += first + k * dilation >= 0 && first + k * dilation < extent;
    return n;
}

/* What each pixel of the window of output (i, j) adds to the mean. */
DEVICE double pool_share(const struct cu_pool *c, int64_t i, int64_t j)
{
    const struct windows *w = &c->w;
    int64_t r = c->count_pad ? places_inside(c->first_row + i * w->stride_h,
                                             w->dilation_h, c->padded_h, w->kernel_h)
                             : places_inside(w->first_row + i * w->stride_h,
                                             w->dilation_h, w->height, w->kernel_h);
    int64_t q = c->count_pad ? places_inside(c->first_col + j * w->stride_w,
                                             w->dilation_w, c->padded_w, w->kernel_w)
                             : places_inside(w->first_col + j * w->stride_w,
                                             w->dilation_w, w->width, w->kernel_w);
    return r * q > 0 ? 1 / (double)(r * q) : 0;
}

/* The largest, and its place: -1 and 0 where there is nothing but padding. */
KERNEL pool_get_each(CALL(cu_pool) c)
{
    const struct windows *w = &c.w;
    int64_t pixels = w->rows * w->cols;
    EACH(e, c.planes * pixels)
    {
        int64_t plane = quotient(e, pixels) * w->height * w->width, at = rest(e, pixels);
        int64_t i = quotient(at, w->cols), j = rest(at, w->cols), best = -1;
        num most = 0;
        wide sum = 0;
        for (int64_t r = 0; r < w->kernel_h; r++)
            for (int64_t q = 0; q < w->kernel_w; q++) {
                int64_t row = w->first_row + i * w->stride_h + r * w->dilation_h;
                int64_t col = w->first_col + j * w->stride_w + q * w->dilation_w;
                if (row < 0 || row >= w->height || col < 0 || col >= w->width)
                    continue;
                num x = get(IN(c.x), plane + row * w->width + col);
                int better = best < 0 || x > most;
                most = better ? x : most;
                best = better ? r * w->kernel_w + q : best;
                sum += W(x);
            }
        put(OUT(c.y), e, c.which ? most : N((double)sum * pool_share(&c, i, j)));
        if (c.which)
            put(OUT(c.which), e, N(best));
    }
}

static int pool_get(void *stream, const struct cu_pool *c)
{
    LAUNCH(pool_get_each, blocks_for(c->planes * c->w.rows * c->w.cols), stream, c);
    return 0;
}

/* Backward: y is the gradient of the output, x gets that of the window. */
KERNEL pool_put_each(CALL(cu_pool) c)
{
    const struct windows *w = &c.w;
    int64_t area = w->height * w->width;
    EACH(e, c.planes * area)
    {
        int64_t plane = quotient(e, area) * w->rows * w->cols, at = rest(e, area);
        int64_t row = quotient(at, w->width), col = rest(at, w->width);
        wide sum = 0;
        for (int64_t r = 0; r < w->kernel_h; r++) {
            int64_t i =
                output_of(row, w->first_row, r, w->dilation_h, w->stride_h, w->rows);
            for (int64_t q = 0; q < w->kernel_w && i >= 0; q++) {
                int64_t j =
                    output_of(col, w->first_col, q, w->dilation_w, w->stride_w, w->cols);
                int64_t from = plane + i * w->cols + j, place = r * w->kernel_w + q;
                if (j < 0)
                    continue;
                if (!c.which)
                    sum += W((double)get(IN(c.y), from) * pool_share(&c, i, j));
                else if ((int64_t)get(IN(c.which), from) == place)
                    sum += W(get(IN(c.y), from));
            }
        }
        put(OUT(c.x), e, N(sum));
    }
}

static int pool_put(void *stream, const struct cu_pool *c)
{
    LAUNCH(pool_put_each, blocks_for(c->planes * c->w.height * c->w.width), stream, c);
    return 0;
}

/* ---- norm by neighbouring channels ------------------------------------------------- */

/* Number of channel 'k' of those seen, in an image that starts at 'image'. */
DEVICE double lrn_seen(const struct cu_lrn *c, int64_t image, int64_t k, int64_t i)
{
    return (double)get(IN(c->x), (image * c->seen + k) * c->plane + i);
}

DEVICE double lrn_scale(const struct cu_lrn *c, int64_t image, int64_t channel, int64_t i)
{
    int64_t at = c->own + channel, from = at > c->before ? at - c->before : 0;
    int64_t to = at + c->after + 1 < c->seen ? at + c->after + 1 : c->seen;
    double sum = 0;
    for (int64_t k = from; k < to; k++)
        sum += lrn_seen(c, image, k, i) * lrn_seen(c, image, k, i);
    return c->bias + c->alpha * sum;
}

KERNEL lrn_get_each(CALL(cu_lrn) c)
{
    int64_t size = c.channels * c.plane;
    EACH(e, c.batch * size)
    {
        int64_t image = quotient(e, size), channel = quotient(rest(e, size), c.plane);
        int64_t i = rest(e, c.plane);
        double x = lrn_seen(&c, image, c.own + channel, i);
        put(OUT(c.y), e, N(x * pow(lrn_scale(&c, image, channel, i), -c.beta)));
    }
}

static int lrn_get(void *stream, const struct cu_lrn *c)
{
    LAUNCH(lrn_get_each, blocks_for(c->batch * c->channels * c->plane), stream, c);
    return 0;
}

KERNEL lrn_put_each(CALL(cu_lrn) c)
{
    int64_t size = c.seen * c.plane;
    EACH(e, c.batch * size)
    {
        int64_t image = quotient(e, size), k = quotient(rest(e, size), c.plane);
        int64_t i = rest(e, c.plane), from = k - c.own - c.after;
        int64_t to = k - c.own + c.before + 1;
        double x = lrn_seen(&c, image, k, i), sum = 0;
        from = from > 0 ? from : 0;
        to = to < c.channels ? to : c.channels;
        for (int64_t channel = from; channel < to; channel++) {
            double s = lrn_scale(&c, image, channel, i);
            double dy =
                (double)get(IN(c.dy), (image * c.channels + channel) * c.plane + i);
            double share = dy * pow(s, -c.beta);
            double own = lrn_seen(&c, image, c.own + channel, i);
            sum += c.own + channel == k ? share : 0;
            sum -= x * 2 * c.alpha * c.beta * share * own / s;
        }
        put(OUT(c.y), e, N(sum));
    }
}

static int lrn_put(void *stream, const struct cu_lrn *c)
{
    LAUNCH(lrn_put_each, blocks_for(c->batch * c->seen * c->plane), stream, c);
    return 0;
}

/* ---- transposed convolution -------------------------------------------------------- */

DEVICE num spread_weight_at(const struct cu_spread *c, int64_t k, int64_t n,
                            int64_t place)
{
    return get(IN(c->weight), (k * c->out + n) * c->w.kernel_h * c->w.kernel_w + place);
}

KERNEL spread_y_each(CALL(cu_spread) c)
{
    const struct windows *w = &c.w;
    int64_t plane = w->height * w->width, pixels = w->rows * w->cols;
    EACH(e, c.batch * c.out * plane)
    {
        int64_t b = quotient(e, c.out * plane),
                n = quotient(rest(e, c.out * plane), plane);
        int64_t row = quotient(rest(e, plane), w->width), col = rest(e, w->width);
        wide sum = 0;
        for (int64_t p = 0; p < w->kernel_h * w->kernel_w; p++) {
            int64_t i = output_of(row, w->first_row, p / w->kernel_w, w->dilation_h,
                                  w->stride_h, w->rows);
            int64_t j = output_of(col, w->first_col, p % w->kernel_w, w->dilation_w,
                                  w->stride_w, w->cols);
            for (int64_t k = 0; k < c.in && i >= 0 && j >= 0; k++)
                sum += W(spread_weight_at(&c, k, n, p)) *
                       W(get(IN(c.x), (b * c.in + k) * pixels + i * w->cols + j));
        }
        put(OUT(c.y), e, N(sum));
    }
}

static int spread_y(void *stream, const struct cu_spread *c)
{
    LAUNCH(spread_y_each, blocks_for(c->batch * c->out * c->w.height * c->w.width),
           stream, c);
    return 0;
}

KERNEL spread_x_each(CALL(cu_spread) c)
{
    const struct windows *w = &c.w;
    int64_t plane = w->height * w->width, pixels = w->rows * w->cols;
    EACH(e, c.batch * c.in * pixels)
    {
        int64_t b = quotient(e, c.in * pixels),
                k = quotient(rest(e, c.in * pixels), pixels);
        int64_t i = quotient(rest(e, pixels), w->cols), j = rest(e, w->cols);
        wide sum = 0;
        for (int64_t p = 0; p < w->kernel_h * w->kernel_w; p++) {
            int64_t row =
                w->first_row + i * w->stride_h + p / w->kernel_w * w->dilation_h;
            int64_t col =
                w->first_col + j * w->stride_w + p % w->kernel_w * w->dilation_w;
            int inside = row >= 0 && row < w->height && col >= 0 && col < w->width;
            for (int64_t n = 0; n < c.out && inside; n++)
                sum += W(spread_weight_at(&c, k, n, p)) *
                       W(get(IN(c.y), (b * c.out + n) * plane + row * w->width + col));
        }
        put(OUT(c.x), e, N(sum));
    }
}

static int spread_x(void *stream, const struct cu_spread *c)
{
    LAUNCH(spread_x_each, blocks_for(c->batch * c->in * c->w.rows * c->w.cols), stream,
           c);
    return 0;
}

/* A block a weight: weight += the sum over all pixels of all images. */
KERNEL spread_weight_rows(CALL(cu_spread) c)
{
    SHARED wide sum[THREADS];
    const struct windows *w = &c.w;
    int64_t area = w->kernel_h * w->kernel_w, pixels = w->rows * w->cols;
    BLOCKS(e, c.in * c.out * area)
    {
        int64_t k = e / area / c.out, n = e / area % c.out, p = e % area;
        PHASE
        {
            sum[t] = 0;
            for (int64_t at = t; at < c.batch * pixels; at += THREADS) {
                int64_t b = quotient(at, pixels), i = quotient(rest(at, pixels), w->cols);
                int64_t j = rest(at, w->cols);
                int64_t row =
                    w->first_row + i * w->stride_h + p / w->kernel_w * w->dilation_h;
                int64_t col =
                    w->first_col + j * w->stride_w + p % w->kernel_w * w->dilation_w;
                if (row < 0 || row >= w->height || col < 0 || col >= w->width)
                    continue;
                int64_t y = ((b * c.out + n) * w->height + row) * w->width + col;
                sum[t] += W(get(IN(c.x), (b * c.in + k) * pixels + i * w->cols + j)) *
                          W(get(IN(c.y), y));
            }
        }
        BLOCK_FOLD(sum, plus)
        PHASE
        {
            if (t == 0)
                accumulate(c.weight, c.wide_weight, e, sum[0]);
        }
    }
}

static int spread_weight(void *stream, const struct cu_spread *c)
{
    LAUNCH(spread_weight_rows, c->in * c->out * c->w.kernel_h * c->w.kernel_w, stream, c);
    return 0;
}

/* ---- resizing ---------------------------------------------------------------------- */

/* Output 'at' of a side is (1 - share) of pixel 'low' and 'share' of pixel 'high', both
 * counted from this rank's first; as topt_resize_taps() has it. */
DEVICE void resize_taps(const struct cu_resize *c, int side, int64_t at, int64_t *low,
                        int64_t *high, double *share)
{
    int64_t in = c->in[side], out = c->out[side];
    at += c->first_made[side];
    int64_t over = c->corners ? 2 * at * (in - 1) : (2 * at + 1) * in - out;
    int64_t under = c->corners ? 2 * (out > 1 ? out - 1 : 1) : 2 * out;
    over += c->linear ? 0 : under / 2;
    over = over > 0 ? over : 0;
    *low = over / under;
    *high = *low + 1 < in ? *low + 1 : in - 1;
    *share = c->linear && *high > *low ? (double)(over % under) / (double)under : 0;
    *low = (*low < in ? *low : in - 1) - c->first_seen[side];
    *high -= c->first_seen[side];
}

KERNEL resize_get_each(CALL(cu_resize) c)
{
    int64_t pixels = c.made[0] * c.made[1], plane = c.seen[0] * c.seen[1];
    EACH(e, c.planes * pixels)
    {
        int64_t low, high, left, right, from = quotient(e, pixels) * plane;
        double down, across;
        resize_taps(&c, 0, quotient(rest(e, pixels), c.made[1]), &low, &high, &down);
        resize_taps(&c, 1, rest(e, c.made[1]), &left, &right, &across);
        low = from + low * c.seen[1];
        high = from + high * c.seen[1];
        double top = (double)get(IN(c.x), low + left) * (1 - across) +
                     (double)get(IN(c.x), low + right) * across;
        double bottom = (double)get(IN(c.x), high + left) * (1 - across) +
                        (double)get(IN(c.x), high + right) * across;
        put(OUT(c.y), e, N(top * (1 - down) + bottom * down));
    }
}

static int resize_get(void *stream, const struct cu_resize *c)
{
    LAUNCH(resize_get_each, blocks_for(c->planes * c->made[0] * c->made[1]), stream, c);
    return 0;
}

/* The first output of a side that may read pixel 'at': taps only grow. */
DEVICE int64_t first_reader(const struct cu_resize *c, int side, int64_t at)
{
    int64_t from = 0, to = c->made[side], low, high;
    double share;
    while (from < to) {
        int64_t middle = from + (to - from) / 2;
        resize_taps(c, side, middle, &low, &high, &share);
        if (high < at)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

/* What output 'i' reads of pixel 'at'; -1: it and all after it read only later ones. */
DEVICE double read_share(const struct cu_resize *c, int side, int64_t i, int64_t at)
{
    int64_t low, high;
    double share;
    resize_taps(c, side, i, &low, &high, &share);
    return low > at ? -1 : (low == at ? 1 - share : 0) + (high == at ? share : 0);
}

KERNEL resize_put_each(CALL(cu_resize) c)
{
    int64_t plane = c.seen[0] * c.seen[1], pixels = c.made[0] * c.made[1];
    EACH(e, c.planes * plane)
    {
        int64_t from = quotient(e, plane) * pixels;
        int64_t row = quotient(rest(e, plane), c.seen[1]), col = rest(e, c.seen[1]);
        int64_t first = first_reader(&c, 1, col);
        double sum = 0;
        for (int64_t i = first_reader(&c, 0, row); i < c.made[0]; i++) {
            double down = read_share(&c, 0, i, row);
            if (down < 0)
                break;
            for (int64_t j = first; j < c.made[1]; j++) {
                double across = read_share(&c, 1, j, col);
                if (across < 0)
                    break;
                sum += down * across * (double)get(IN(c.y), from + i * c.made[1] + j);
            }
        }
        put(OUT(c.x), e, N(sum));
    }
}

static int resize_put(void *stream, const struct cu_resize *c)
{
    LAUNCH(resize_put_each, blocks_for(c->planes * c->seen[0] * c->seen[1]), stream, c);
    return 0;
}
