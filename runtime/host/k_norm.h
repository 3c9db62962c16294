/* k_norm.h - layer norm and RMS norm, of rows and of heads, around partial sums.
 *
 * The features may be split, so each reduction over them is a kernel that leaves this
 * rank's share (already divided by the whole width) and an all-reduce between two
 * kernels.  With xhat = (x - mean) r, r = 1/sqrt(var + eps):
 *     s1 = mean of g dy,  s2 = mean of g dy xhat,  dx = r (g dy - s1 - xhat s2)
 * and for RMS norm the same with mean = 0 and s1 = 0. */
#include "real.h"

static double norm_width(const struct topt_kernel_call *c)
{
    return (double)(c->op->operand[NORM_G].dim[0].count *
                    c->op->operand[NORM_G].dim[0].unit);
}

/* What is normalised at once: a row of x, or one head of it, as wide as g. */
static int64_t norm_rows(const struct topt_kernel_call *c)
{
    return elements_of(c, NORM_V);
}

static int64_t norm_cols(const struct topt_kernel_call *c)
{
    return elements_of(c, NORM_G);
}

static double norm_mu(const struct topt_kernel_call *c, int64_t row)
{
    const real *mean = c->value[NORM_MU];
    return mean && !c->op->attrs->rms ? (double)mean[row] : 0;
}

static double norm_rstd(const struct topt_kernel_call *c, int64_t row)
{
    const real *var = c->value[NORM_V];
    return rstd_of((double)var[row], c->op->attrs->eps);
}

INLINE void norm_mean_row(const struct topt_kernel_call *c, int64_t r, int64_t d,
                          double width)
{
    const real *x = c->value[NORM_X];
    ((real *)c->value[NORM_MU])[r] =
        c->op->attrs->rms ? 0 : R(sum_of(x + r * d, d) / width);
}

INLINE void norm_mean_rows(const struct topt_kernel_call *c, int64_t from, int64_t to)
{
    int64_t d = norm_cols(c);
    double width = norm_width(c);
    for (int64_t r = from; r < to; r++)
        norm_mean_row(c, r, d, width);
}

static void norm_mean(const struct topt_kernel_call *c)
{
    norm_mean_rows(c, 0, c->value[NORM_MU] ? norm_rows(c) : 0);
}

/* Squares of what is 'mu' less. */
static double norm_squares(const real *x, int64_t n, double mu)
{
    double lane[LANES] = {0};
    int64_t j = 0;
    for (; j + LANES <= n; j += LANES)
        for (int k = 0; k < LANES; k++) {
            double t = (double)x[j + k] - mu;
            lane[k] += t * t;
        }
    for (int k = 0; j < n; j++, k++) {
        double t = (double)x[j] - mu;
        lane[k] += t * t;
    }
    return add_lanes(lane);
}

INLINE void norm_var_row(const struct topt_kernel_call *c, int64_t r, int64_t d,
                         double width)
{
    const real *x = c->value[NORM_X];
    ((real *)c->value[NORM_V])[r] = R(norm_squares(x + r * d, d, norm_mu(c, r)) / width);
}

INLINE void norm_var_rows(const struct topt_kernel_call *c, int64_t from, int64_t to)
{
    int64_t d = norm_cols(c);
    double width = norm_width(c);
    for (int64_t r = from; r < to; r++)
        norm_var_row(c, r, d, width);
}

static void norm_var(const struct topt_kernel_call *c)
{
    norm_var_rows(c, 0, norm_rows(c));
}

INLINE void norm_apply_row(const struct topt_kernel_call *c, int64_t r, int64_t d)
{
    const real *x = (const real *)c->value[NORM_X] + r * d;
    const real *g = c->value[NORM_G], *b = c->value[NORM_B];
    real *y = (real *)c->value[NORM_Y] + r * d;
    real mu = R(norm_mu(c, r)), rstd = R(norm_rstd(c, r));
    if (g && b)
        for (int64_t j = 0; j < d; j++)
            y[j] = normed(x[j], mu, rstd) * g[j] + b[j];
    else
        for (int64_t j = 0; j < d; j++)
            y[j] = normed(x[j], mu, rstd) * (g ? g[j] : 1) + (b ? b[j] : 0);
}

INLINE void norm_apply_rows(const struct topt_kernel_call *c, int64_t from, int64_t to)
{
    int64_t d = norm_cols(c);
    for (int64_t r = from; r < to; r++)
        norm_apply_row(c, r, d);
}

static void norm_apply(const struct topt_kernel_call *c)
{
    norm_apply_rows(c, 0, norm_rows(c));
}

/* So many rows stay in the nearest cache, and are enough for one not to wait for another. */
static int64_t norm_near(const struct topt_kernel_call *c)
{
    enum { NUMBERS = 4096 };
    int64_t d = norm_cols(c), rows = d > 0 ? NUMBERS / d / 4 * 4 : 4;
    return rows < 4 ? 4 : rows;
}

/* All of it for some rows, then for the next; 'mean' NULL: there is none. */
static void norm_together(const struct topt_kernel_call *mean,
                          const struct topt_kernel_call *var,
                          const struct topt_kernel_call *apply)
{
    int64_t rows = norm_rows(var), some = norm_near(var);
    for (int64_t from = 0; from < rows; from += some) {
        int64_t to = from + some < rows ? from + some : rows;
        if (mean)
            norm_mean_rows(mean, from, to);
        norm_var_rows(var, from, to);
        norm_apply_rows(apply, from, to);
    }
}

/* What rows [from, to) add to the gradient of the scale, in columns [j0, j0 + n). */
INLINE void norm_scale_rows(const struct topt_kernel_call *c, int64_t from, int64_t to,
                            int64_t j0, int64_t n, double *sum)
{
    const real *x = c->value[NORM_X], *dy = c->grad[NORM_Y];
    int64_t d = norm_cols(c);
    for (int64_t r = from; r < to; r++) {
        const real *xr = x + r * d + j0, *dr = dy + r * d + j0;
        double mu = norm_mu(c, r), rstd = norm_rstd(c, r);
        for (int64_t j = 0; j < n; j++)
            sum[j] += (double)dr[j] * ((double)xr[j] - mu) * rstd;
    }
}

/* Gradient of the scale, by strips of columns as in add_column_sums. */
static void norm_scale_grad(const struct topt_kernel_call *c)
{
    enum { STRIP = 512 };
    double sum[STRIP];
    int64_t rows = norm_rows(c), d = norm_cols(c);
    for (int64_t j0 = 0; j0 < d; j0 += STRIP) {
        int64_t n = d - j0 < STRIP ? d - j0 : STRIP;
        memset(sum, 0, sizeof sum);
        norm_scale_rows(c, 0, rows, j0, n, sum);
        add_to((real *)c->grad[NORM_G] + j0, sum, n);
    }
}

/* Of one row: g dy, and g dy (x - mu). */
static void norm_sums(const real *g, const real *dy, const real *x, int64_t n, double mu,
                      double *ret1, double *ret2)
{
    double lane1[LANES] = {0}, lane2[LANES] = {0};
    int64_t j = 0;
    for (; j + LANES <= n; j += LANES)
        for (int k = 0; k < LANES; k++) {
            double t = (g ? (double)g[j + k] : 1) * (double)dy[j + k];
            lane1[k] += t;
            lane2[k] += t * ((double)x[j + k] - mu);
        }
    for (int k = 0; j < n; j++, k++) {
        double t = (g ? (double)g[j] : 1) * (double)dy[j];
        lane1[k] += t;
        lane2[k] += t * ((double)x[j] - mu);
    }
    *ret1 = add_lanes(lane1);
    *ret2 = add_lanes(lane2);
}

INLINE void norm_bwd_sum_row(const struct topt_kernel_call *c, int64_t r, int64_t d,
                             double width)
{
    const real *x = c->value[NORM_X], *g = c->value[NORM_G], *dy = c->grad[NORM_Y];
    real *s1 = c->value[NORM_S1], *s2 = c->value[NORM_S2];
    double sum1, sum2;
    norm_sums(g, dy + r * d, x + r * d, d, norm_mu(c, r), &sum1, &sum2);
    sum2 *= norm_rstd(c, r);
    if (s1)
        s1[r] = c->op->attrs->rms ? 0 : R(sum1 / width);
    s2[r] = R(sum2 / width);
}

INLINE void norm_bwd_sum_rows(const struct topt_kernel_call *c, int64_t from, int64_t to)
{
    int64_t d = norm_cols(c);
    double width = norm_width(c);
    for (int64_t r = from; r < to; r++)
        norm_bwd_sum_row(c, r, d, width);
}

static void norm_bwd_sum(const struct topt_kernel_call *c)
{
    norm_bwd_sum_rows(c, 0, norm_rows(c));
    if (c->grad[NORM_G])
        norm_scale_grad(c);
    if (c->grad[NORM_B])
        add_column_sums(c->grad[NORM_B], c->grad[NORM_Y], norm_rows(c), norm_cols(c));
}

INLINE void norm_bwd_apply_row(const struct topt_kernel_call *c, int64_t r, int64_t d)
{
    const real *x = (const real *)c->value[NORM_X] + r * d, *g = c->value[NORM_G];
    const real *dy = (const real *)c->grad[NORM_Y] + r * d;
    const real *s1 = c->value[NORM_S1], *s2 = c->value[NORM_S2];
    real *dx = (real *)c->grad[NORM_X] + r * d;
    real mu = R(norm_mu(c, r)), rstd = R(norm_rstd(c, r));
    real a = s1 ? s1[r] : 0, b = s2[r];
    if (g)
        for (int64_t j = 0; j < d; j++)
            dx[j] = norm_slope(g[j] * dy[j], x[j], mu, rstd, a, b);
    else
        for (int64_t j = 0; j < d; j++)
            dx[j] = norm_slope(dy[j], x[j], mu, rstd, a, b);
}

INLINE void norm_bwd_apply_rows(const struct topt_kernel_call *c, int64_t from,
                                int64_t to)
{
    int64_t d = norm_cols(c);
    for (int64_t r = from; r < to; r++)
        norm_bwd_apply_row(c, r, d);
}

static void norm_bwd_apply(const struct topt_kernel_call *c)
{
    norm_bwd_apply_rows(c, 0, c->grad[NORM_X] ? norm_rows(c) : 0);
}

/* Both, and the gradients of scale and shift, for some rows, then for the next. */
enum { NORM_BWD_COLS = 4096 };

static void norm_bwd_together(const struct topt_kernel_call *sums,
                              const struct topt_kernel_call *apply)
{
    double scale[NORM_BWD_COLS], shift[NORM_BWD_COLS];
    int64_t rows = norm_rows(sums), d = norm_cols(sums), some = norm_near(sums);
    const real *dy = sums->grad[NORM_Y];
    memset(scale, 0, (size_t)d * sizeof *scale);
    memset(shift, 0, (size_t)d * sizeof *shift);
    for (int64_t from = 0; from < rows; from += some) {
        int64_t to = from + some < rows ? from + some : rows;
        norm_bwd_sum_rows(sums, from, to);
        norm_bwd_apply_rows(apply, from, to);
        if (sums->grad[NORM_G])
            norm_scale_rows(sums, from, to, 0, d, scale);
        if (sums->grad[NORM_B])
            add_rows(shift, dy + from * d, to - from, d, d);
    }
    if (sums->grad[NORM_G])
        add_to(sums->grad[NORM_G], scale, d);
    if (sums->grad[NORM_B])
        add_to(sums->grad[NORM_B], shift, d);
}
