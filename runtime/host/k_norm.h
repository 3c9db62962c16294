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
    return mean && !c->op->attrs.rms ? (double)mean[row] : 0;
}

static double norm_rstd(const struct topt_kernel_call *c, int64_t row)
{
    const real *var = c->value[NORM_V];
    return 1 / sqrt((double)var[row] + c->op->attrs.eps);
}

static void norm_mean(const struct topt_kernel_call *c)
{
    const real *x = c->value[NORM_X];
    real *mean = c->value[NORM_MU];
    int64_t rows = mean ? norm_rows(c) : 0, d = norm_cols(c);
    double width = norm_width(c);
    for (int64_t r = 0; r < rows; r++)
        mean[r] = c->op->attrs.rms ? 0 : R(sum_of(x + r * d, d) / width);
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

static void norm_var(const struct topt_kernel_call *c)
{
    const real *x = c->value[NORM_X];
    real *var = c->value[NORM_V];
    int64_t rows = norm_rows(c), d = norm_cols(c);
    double width = norm_width(c);
    for (int64_t r = 0; r < rows; r++)
        var[r] = R(norm_squares(x + r * d, d, norm_mu(c, r)) / width);
}

static void norm_apply(const struct topt_kernel_call *c)
{
    const real *x = c->value[NORM_X], *g = c->value[NORM_G], *b = c->value[NORM_B];
    real *y = c->value[NORM_Y];
    int64_t rows = norm_rows(c), d = norm_cols(c);
    for (int64_t r = 0; r < rows; r++) {
        real mu = R(norm_mu(c, r)), rstd = R(norm_rstd(c, r));
        for (int64_t j = 0; j < d; j++)
            y[r * d + j] = (x[r * d + j] - mu) * rstd * (g ? g[j] : 1) + (b ? b[j] : 0);
    }
}

/* Gradient of the scale, by strips of columns as in add_column_sums. */
static void norm_scale_grad(const struct topt_kernel_call *c)
{
    enum { STRIP = 128 };
    const real *x = c->value[NORM_X], *dy = c->grad[NORM_Y];
    real *dg = c->grad[NORM_G];
    int64_t rows = norm_rows(c), d = norm_cols(c);
    double sum[STRIP];
    for (int64_t j0 = 0; j0 < d; j0 += STRIP) {
        int64_t n = d - j0 < STRIP ? d - j0 : STRIP;
        memset(sum, 0, sizeof sum);
        for (int64_t r = 0; r < rows; r++) {
            double mu = norm_mu(c, r), rstd = norm_rstd(c, r);
            for (int64_t j = 0; j < n; j++) {
                int64_t at = r * d + j0 + j;
                sum[j] += (double)dy[at] * ((double)x[at] - mu) * rstd;
            }
        }
        for (int64_t j = 0; j < n; j++)
            dg[j0 + j] = R((double)dg[j0 + j] + sum[j]);
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

static void norm_bwd_sum(const struct topt_kernel_call *c)
{
    const real *x = c->value[NORM_X], *g = c->value[NORM_G], *dy = c->grad[NORM_Y];
    real *s1 = c->value[NORM_S1], *s2 = c->value[NORM_S2];
    int64_t rows = norm_rows(c), d = norm_cols(c);
    double width = norm_width(c);
    for (int64_t r = 0; r < rows; r++) {
        double sum1, sum2;
        norm_sums(g, dy + r * d, x + r * d, d, norm_mu(c, r), &sum1, &sum2);
        sum2 *= norm_rstd(c, r);
        if (s1)
            s1[r] = c->op->attrs.rms ? 0 : R(sum1 / width);
        s2[r] = R(sum2 / width);
    }
    if (c->grad[NORM_G])
        norm_scale_grad(c);
    if (c->grad[NORM_B])
        add_column_sums(c->grad[NORM_B], dy, rows, d);
}

static void norm_bwd_apply(const struct topt_kernel_call *c)
{
    const real *x = c->value[NORM_X], *g = c->value[NORM_G], *dy = c->grad[NORM_Y];
    const real *s1 = c->value[NORM_S1], *s2 = c->value[NORM_S2];
    real *dx = c->grad[NORM_X];
    int64_t rows = dx ? norm_rows(c) : 0, d = norm_cols(c);
    for (int64_t r = 0; r < rows; r++) {
        real mu = R(norm_mu(c, r)), rstd = R(norm_rstd(c, r));
        real a = s1 ? s1[r] : 0, b = s2[r];
        for (int64_t j = 0; j < d; j++) {
            int64_t at = r * d + j;
            dx[at] = rstd * ((g ? g[j] : 1) * dy[at] - a - (x[at] - mu) * rstd * b);
        }
    }
}
