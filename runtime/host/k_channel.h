/* k_channel.h - channels of images, or features, with numbers of their own: gains,
 * slopes below 0, and the norms of groups of channels.
 *
 * Numbers are seen as [outer, channels, inner]: of an image samples, channels, pixels;
 * of rows of features rows, features, one. */
#include "real.h"

struct channels {
    int64_t outer, channels, inner;
};

static struct channels channels_of(const struct topt_kernel_call *c, int operand)
{
    int rank = c->op->spec->operand[operand].ndim;
    return rank == 4 ? (struct channels){extent(c, operand, 0), extent(c, operand, 1),
                                         plane_of(c, operand)}
                     : (struct channels){rows_of(c, operand), cols_of(c, operand), 1};
}

static void gain_fwd(const struct topt_kernel_call *c)
{
    struct channels s = channels_of(c, CH_X);
    const real *x = c->value[CH_X], *g = c->value[CH_W];
    real *y = c->value[CH_Y];
    for (int64_t o = 0; o < s.outer; o++)
        for (int64_t k = 0; k < s.channels; k++)
            for (int64_t i = 0; i < s.inner; i++, x++, y++)
                *y = *x * g[k];
}

static void gain_bwd(const struct topt_kernel_call *c)
{
    struct channels s = channels_of(c, CH_X);
    const real *x = c->value[CH_X], *g = c->value[CH_W], *dy = c->grad[CH_Y];
    real *dx = c->grad[CH_X], *dg = c->grad[CH_W];
    int64_t row = s.channels * s.inner;
    for (int64_t k = 0; k < s.channels; k++) {
        double sum = 0;
        for (int64_t o = 0; o < s.outer; o++)
            for (int64_t i = 0; i < s.inner; i++) {
                int64_t at = o * row + k * s.inner + i;
                sum += (double)dy[at] * (double)x[at];
                if (dx)
                    dx[at] = dy[at] * g[k];
            }
        if (dg)
            dg[k] = R((double)dg[k] + sum);
    }
}

/* Slopes below 0: one for each channel here, or one. */
static void prelu_fwd(const struct topt_kernel_call *c)
{
    struct channels s = channels_of(c, CH_X);
    const real *x = c->value[CH_X], *a = c->value[CH_W];
    real *y = c->value[CH_Y];
    const struct topt_dim *slopes = &c->op->operand[CH_W].dim[0];
    int64_t each = slopes->count * slopes->unit > 1;
    for (int64_t o = 0; o < s.outer; o++)
        for (int64_t k = 0; k < s.channels; k++)
            for (int64_t i = 0; i < s.inner; i++, x++, y++)
                *y = *x > 0 ? *x : a[each * k] * *x;
}

static void prelu_bwd(const struct topt_kernel_call *c)
{
    struct channels s = channels_of(c, CH_X);
    const real *x = c->value[CH_X], *a = c->value[CH_W], *dy = c->grad[CH_Y];
    real *dx = c->grad[CH_X], *da = c->grad[CH_W];
    const struct topt_dim *slopes = &c->op->operand[CH_W].dim[0];
    int64_t row = s.channels * s.inner, each = slopes->count * slopes->unit > 1;
    for (int64_t k = 0; k < s.channels; k++) {
        double sum = 0;
        for (int64_t o = 0; o < s.outer; o++)
            for (int64_t i = 0; i < s.inner; i++) {
                int64_t at = o * row + k * s.inner + i;
                sum += x[at] > 0 ? 0 : (double)dy[at] * (double)x[at];
                if (dx)
                    dx[at] = dy[at] * (x[at] > 0 ? 1 : a[each * k]);
            }
        if (da)
            da[each * k] = R((double)da[each * k] + sum);
    }
}

/* ---- norms of groups --------------------------------------------------------------- */

/* Each group of channels of each sample has the mean and variance of all its pixels,
 * around partial sums where rows or columns are split, as batch norm's
 * (k_batch_norm.h).  With t = g dy:
 *     s1 = mean of t,  s2 = mean of t xhat,  dx = r (t - s1 - xhat s2) */
enum { GN_X, GN_G, GN_B, GN_Y, GN_MU, GN_V, GN_S1, GN_S2 };

struct groups {
    int64_t rows, groups, unit, plane;
    double numbers; /* of a group, on all ranks */
};

static struct groups groups_of(const struct topt_kernel_call *c)
{
    enum { H = 2, W };
    const int64_t *count = c->op->count;
    struct groups s = {.groups = c->box[GN_X].len[1],
                       .unit = c->op->operand[GN_X].dim[1].unit,
                       .plane = plane_of(c, GN_X)};
    s.rows = extent(c, GN_X, 0) * s.groups;
    s.numbers = (double)s.unit * (double)count[H] * (double)count[W];
    return s;
}

static double gn_rstd(const struct topt_kernel_call *c, int64_t row)
{
    const real *var = c->value[GN_V];
    return rstd_of((double)var[row], c->op->attrs->eps);
}

static void gn_mean(const struct topt_kernel_call *c)
{
    struct groups s = groups_of(c);
    const real *x = c->value[GN_X];
    real *mean = c->value[GN_MU];
    for (int64_t r = 0; r < s.rows; r++)
        mean[r] = R(channel_sum(x, 1, s.rows, s.unit * s.plane, r) / s.numbers);
}

static void gn_var(const struct topt_kernel_call *c)
{
    struct groups s = groups_of(c);
    const real *x = c->value[GN_X], *mean = c->value[GN_MU];
    real *var = c->value[GN_V];
    for (int64_t r = 0; r < s.rows; r++) {
        double mu = (double)mean[r], sum = 0;
        for (int64_t i = 0; i < s.unit * s.plane; i++, x++)
            sum += ((double)*x - mu) * ((double)*x - mu);
        var[r] = R(sum / s.numbers);
    }
}

static void gn_apply(const struct topt_kernel_call *c)
{
    struct groups s = groups_of(c);
    const real *x = c->value[GN_X], *g = c->value[GN_G], *b = c->value[GN_B];
    const real *mean = c->value[GN_MU];
    real *y = c->value[GN_Y];
    for (int64_t r = 0; r < s.rows; r++)
        for (int64_t u = 0; u < s.unit; u++) {
            int64_t k = r % s.groups * s.unit + u;
            real scale = R((double)g[k] * gn_rstd(c, r));
            for (int64_t i = 0; i < s.plane; i++, x++, y++)
                *y = (*x - mean[r]) * scale + b[k];
        }
}

/* Shares of the sums over a group, and the gradients of its channels' parameters. */
static void gn_bwd_sum(const struct topt_kernel_call *c)
{
    struct groups s = groups_of(c);
    const real *x = c->value[GN_X], *g = c->value[GN_G], *mean = c->value[GN_MU];
    const real *dy = c->grad[GN_Y];
    real *s1 = c->value[GN_S1], *s2 = c->value[GN_S2];
    real *dg = c->grad[GN_G], *db = c->grad[GN_B];
    for (int64_t r = 0; r < s.rows; r++) {
        double mu = (double)mean[r], rstd = gn_rstd(c, r), total1 = 0, total2 = 0;
        for (int64_t u = 0; u < s.unit; u++) {
            int64_t k = r % s.groups * s.unit + u;
            double sum1 = 0, sum2 = 0;
            for (int64_t i = 0; i < s.plane; i++, x++, dy++) {
                sum1 += (double)*dy;
                sum2 += (double)*dy * ((double)*x - mu) * rstd;
            }
            total1 += sum1 * (double)g[k];
            total2 += sum2 * (double)g[k];
            if (dg)
                dg[k] = R((double)dg[k] + sum2);
            if (db)
                db[k] = R((double)db[k] + sum1);
        }
        s1[r] = R(total1 / s.numbers);
        s2[r] = R(total2 / s.numbers);
    }
}

static void gn_bwd_apply(const struct topt_kernel_call *c)
{
    struct groups s = groups_of(c);
    const real *x = c->value[GN_X], *g = c->value[GN_G], *mean = c->value[GN_MU];
    const real *s1 = c->value[GN_S1], *s2 = c->value[GN_S2], *dy = c->grad[GN_Y];
    real *dx = c->grad[GN_X];
    for (int64_t r = 0; dx && r < s.rows; r++) {
        double mu = (double)mean[r], rstd = gn_rstd(c, r);
        for (int64_t u = 0; u < s.unit; u++) {
            double gain = (double)g[r % s.groups * s.unit + u];
            for (int64_t i = 0; i < s.plane; i++, x++, dy++, dx++)
                *dx = R(rstd * (gain * (double)*dy - (double)s1[r] -
                                ((double)*x - mu) * rstd * (double)s2[r]));
        }
    }
}
