/* k_batch_norm.h - batch norm around partial sums: each channel has the mean and
 * variance of all its pixels in the whole batch, so where those are split each
 * reduction is a kernel that leaves this rank's share, divided by the whole number of
 * pixels, and an all-reduce between two kernels.  With xhat = (x - mean) r, r =
 * 1/sqrt(var + eps):
 *     s1 = mean of dy,  s2 = mean of dy xhat,  dx = g r (dy - s1 - xhat s2) */
#include "real.h"

enum { BN_X, BN_G, BN_B, BN_Y, BN_MU, BN_V, BN_S1, BN_S2 };

struct batch_norm {
    int64_t batch, channels, plane;
    double pixels; /* of a channel, on all ranks */
};

/* Channels and their pixels; of rows of features, features and their rows. */
static struct batch_norm batch_norm_of(const struct topt_kernel_call *c)
{
    struct channels s = channels_of(c, BN_X);
    const struct topt_operand_spec *x = &c->op->spec->operand[BN_X];
    int channel = x->ndim == 4 ? 1 : 2;
    double pixels = 1;
    for (int i = 0; i < x->ndim; i++)
        pixels *= i == channel ? 1 : (double)c->op->count[x->dim[i]];
    return (struct batch_norm){
        .batch = s.outer, .channels = s.channels, .plane = s.inner, .pixels = pixels};
}

/* Pixels of a channel in one image of this rank's block. */
static int64_t bn_row(const struct batch_norm *n, int64_t b, int64_t channel)
{
    return (b * n->channels + channel) * n->plane;
}

static double bn_rstd(const struct topt_kernel_call *c, int64_t channel)
{
    const real *var = c->value[BN_V];
    return rstd_of((double)var[channel], c->op->attrs->eps);
}

static void bn_mean(const struct topt_kernel_call *c)
{
    struct batch_norm n = batch_norm_of(c);
    real *mean = c->value[BN_MU];
    for (int64_t k = 0; k < n.channels; k++)
        mean[k] =
            R(channel_sum(c->value[BN_X], n.batch, n.channels, n.plane, k) / n.pixels);
}

static void bn_var(const struct topt_kernel_call *c)
{
    struct batch_norm n = batch_norm_of(c);
    const real *x = c->value[BN_X], *mean = c->value[BN_MU];
    real *var = c->value[BN_V];
    for (int64_t k = 0; k < n.channels; k++) {
        double mu = (double)mean[k], sum = 0;
        for (int64_t b = 0; b < n.batch; b++) {
            const real *row = x + bn_row(&n, b, k);
            for (int64_t i = 0; i < n.plane; i++)
                sum += ((double)row[i] - mu) * ((double)row[i] - mu);
        }
        var[k] = R(sum / n.pixels);
    }
}

static void bn_apply(const struct topt_kernel_call *c)
{
    struct batch_norm n = batch_norm_of(c);
    const real *x = c->value[BN_X], *g = c->value[BN_G], *bias = c->value[BN_B];
    const real *mean = c->value[BN_MU];
    real *y = c->value[BN_Y];
    for (int64_t k = 0; k < n.channels; k++) {
        real mu = mean[k], scale = R((double)g[k] * bn_rstd(c, k)), shift = bias[k];
        for (int64_t b = 0; b < n.batch; b++) {
            int64_t at = bn_row(&n, b, k);
            for (int64_t i = at; i < at + n.plane; i++)
                y[i] = (x[i] - mu) * scale + shift;
        }
    }
}

static void bn_bwd_sum(const struct topt_kernel_call *c)
{
    struct batch_norm n = batch_norm_of(c);
    const real *x = c->value[BN_X], *mean = c->value[BN_MU], *dy = c->grad[BN_Y];
    real *s1 = c->value[BN_S1], *s2 = c->value[BN_S2];
    real *dg = c->grad[BN_G], *dbias = c->grad[BN_B];
    for (int64_t k = 0; k < n.channels; k++) {
        double mu = (double)mean[k], rstd = bn_rstd(c, k), sum1 = 0, sum2 = 0;
        for (int64_t b = 0; b < n.batch; b++) {
            int64_t at = bn_row(&n, b, k);
            for (int64_t i = at; i < at + n.plane; i++) {
                sum1 += (double)dy[i];
                sum2 += (double)dy[i] * ((double)x[i] - mu) * rstd;
            }
        }
        s1[k] = R(sum1 / n.pixels);
        s2[k] = R(sum2 / n.pixels);
        if (dg)
            dg[k] = R((double)dg[k] + sum2);
        if (dbias)
            dbias[k] = R((double)dbias[k] + sum1);
    }
}

static void bn_bwd_apply(const struct topt_kernel_call *c)
{
    struct batch_norm n = batch_norm_of(c);
    const real *x = c->value[BN_X], *g = c->value[BN_G], *mean = c->value[BN_MU];
    const real *s1 = c->value[BN_S1], *s2 = c->value[BN_S2], *dy = c->grad[BN_Y];
    real *dx = c->grad[BN_X];
    for (int64_t k = 0; dx && k < n.channels; k++) {
        double rstd = bn_rstd(c, k);
        real mu = mean[k], scale = R((double)g[k] * rstd), a = s1[k];
        real slope = R((double)s2[k] * rstd);
        for (int64_t b = 0; b < n.batch; b++) {
            int64_t at = bn_row(&n, b, k);
            for (int64_t i = at; i < at + n.plane; i++)
                dx[i] = scale * (dy[i] - a - (x[i] - mu) * slope);
        }
    }
}
