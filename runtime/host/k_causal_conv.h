/* k_causal_conv.h - a convolution along the sequence, of each feature by itself over its
 * last positions: w has a row of weights for each feature, the last for the position
 * itself. */
#include "real.h"

static void causal_conv_fwd(const struct topt_kernel_call *c)
{
    struct causal s = causal_of(c);
    const real *x = c->value[CAUSAL_X], *w = c->value[CAUSAL_W];
    const real *bias = c->value[CAUSAL_BIAS];
    real *y = c->value[CAUSAL_Y];
    for (int64_t r = 0; r < s.batch * s.seq; r++) {
        int64_t t = c->at + r % s.seq, reach = t + 1 < s.kernel ? t + 1 : s.kernel;
        for (int64_t i = 0; i < s.d; i++)
            y[r * s.d + i] = bias ? bias[i] : 0;
        for (int64_t k = 0; k < reach; k++)
            for (int64_t i = 0; i < s.d; i++)
                y[r * s.d + i] +=
                    w[i * s.kernel + s.kernel - 1 - k] * x[(r - k) * s.d + i];
    }
}

static void causal_conv_dx(const struct causal *s, const real *w, const real *dy,
                           real *dx)
{
    for (int64_t r = 0; r < s->batch * s->seq; r++) {
        int64_t left = s->seq - r % s->seq, reach = left < s->kernel ? left : s->kernel;
        memset(dx + r * s->d, 0, (size_t)s->d * sizeof *dx);
        for (int64_t k = 0; k < reach; k++)
            for (int64_t i = 0; i < s->d; i++)
                dx[r * s->d + i] +=
                    w[i * s->kernel + s->kernel - 1 - k] * dy[(r + k) * s->d + i];
    }
}

/* By strips of features, so that the sums are in double. */
static void causal_conv_dw(const struct causal *s, const real *x, const real *dy,
                           real *dw)
{
    enum { STRIP = 128 };
    double sum[STRIP];
    for (int64_t k = 0; k < s->kernel; k++)
        for (int64_t i0 = 0; i0 < s->d; i0 += STRIP) {
            int64_t n = s->d - i0 < STRIP ? s->d - i0 : STRIP;
            memset(sum, 0, sizeof sum);
            for (int64_t r = 0; r < s->batch * s->seq; r++)
                for (int64_t i = 0; r % s->seq >= k && i < n; i++)
                    sum[i] += (double)dy[r * s->d + i0 + i] *
                              (double)x[(r - k) * s->d + i0 + i];
            for (int64_t i = 0; i < n; i++) {
                real *to = &dw[(i0 + i) * s->kernel + s->kernel - 1 - k];
                *to = R((double)*to + sum[i]);
            }
        }
}

static void causal_conv_bwd(const struct topt_kernel_call *c)
{
    struct causal s = causal_of(c);
    const real *x = c->value[CAUSAL_X], *w = c->value[CAUSAL_W], *dy = c->grad[CAUSAL_Y];
    real *dx = c->grad[CAUSAL_X], *dw = c->grad[CAUSAL_W], *db = c->grad[CAUSAL_BIAS];
    if (dx)
        causal_conv_dx(&s, w, dy, dx);
    if (dw)
        causal_conv_dw(&s, x, dy, dw);
    if (db)
        add_column_sums(db, dy, s.batch * s.seq, s.d);
}
