/* k_norm.h - layer norm and RMS norm around partial sums, a block a row; of heads, a
 * block a head.
 *
 * With xhat = (x - mean) r, r = 1/sqrt(var + eps):
 *     s1 = mean of g dy,  s2 = mean of g dy xhat,  dx = r (g dy - s1 - xhat s2)
 * and for RMS norm the same with mean = 0 and s1 = 0.  The features may be split: what
 * is summed here is this rank's share, already divided by the whole width. */
#include "real.h"

/* What is normalised at once: a row of x, or one head of it, as wide as g. */
DEVICE int64_t norm_rows(const struct cu_call *c)
{
    return elements(c, NORM_V);
}

DEVICE int64_t norm_cols(const struct cu_call *c)
{
    return elements(c, NORM_G);
}

static inline int64_t norm_blocks(const struct cu_call *c)
{
    return size_of(c, NORM_V);
}

/* 1 where nothing is trained. */
DEVICE num norm_gain(const struct cu_call *c, int64_t j)
{
    return c->value[NORM_G] ? get(IN(c->value[NORM_G]), j) : N(1);
}

DEVICE wide norm_mu(const struct cu_call *c, int64_t row)
{
    return c->value[NORM_MU] && !c->rms ? W(STAT(c->value[NORM_MU])[row]) : W(0);
}

DEVICE wide norm_rstd(const struct cu_call *c, int64_t row)
{
    return W(rstd_of((double)STAT(c->value[NORM_V])[row], c->eps));
}

KERNEL norm_mean_rows(CALL(cu_call) c)
{
    SHARED wide sum[THREADS];
    int64_t d = norm_cols(&c);
    BLOCKS(r, norm_rows(&c))
    {
        PHASE
        {
            sum[t] = 0;
            for (int64_t j = t; j < d && !c.rms; j += THREADS)
                sum[t] += W(get(IN(c.value[NORM_X]), r * d + j));
        }
        BLOCK_FOLD(sum, plus)
        PHASE
        {
            if (t == 0)
                STAT(c.value[NORM_MU])[r] = (stat)(sum[0] / W(c.width));
        }
    }
}

static int norm_mean(void *stream, const struct cu_call *c)
{
    if (c->value[NORM_MU])
        LAUNCH(norm_mean_rows, norm_blocks(c), stream, c);
    return 0;
}

KERNEL norm_var_rows(CALL(cu_call) c)
{
    SHARED wide sum[THREADS];
    int64_t d = norm_cols(&c);
    BLOCKS(r, norm_rows(&c))
    {
        wide mu = norm_mu(&c, r);
        PHASE
        {
            sum[t] = 0;
            for (int64_t j = t; j < d; j += THREADS) {
                wide x = W(get(IN(c.value[NORM_X]), r * d + j)) - mu;
                sum[t] += x * x;
            }
        }
        BLOCK_FOLD(sum, plus)
        PHASE
        {
            if (t == 0)
                STAT(c.value[NORM_V])[r] = (stat)(sum[0] / W(c.width));
        }
    }
}

static int norm_var(void *stream, const struct cu_call *c)
{
    LAUNCH(norm_var_rows, norm_blocks(c), stream, c);
    return 0;
}

KERNEL norm_apply_rows(CALL(cu_call) c)
{
    int64_t d = norm_cols(&c);
    BLOCKS(r, norm_rows(&c))
    {
        num mu = N(norm_mu(&c, r)), rstd = N(norm_rstd(&c, r));
        PHASE
        {
            for (int64_t j = t; j < d; j += THREADS) {
                num y = normed(get(IN(c.value[NORM_X]), r * d + j), mu, rstd) *
                        norm_gain(&c, j);
                put(OUT(c.value[NORM_Y]), r * d + j,
                    c.value[NORM_B] ? y + get(IN(c.value[NORM_B]), j) : y);
            }
        }
    }
}

static int norm_apply(void *stream, const struct cu_call *c)
{
    LAUNCH(norm_apply_rows, norm_blocks(c), stream, c);
    return 0;
}

KERNEL norm_bwd_sum_rows(CALL(cu_call) c)
{
    SHARED wide sum1[THREADS];
    SHARED wide sum2[THREADS];
    int64_t d = norm_cols(&c);
    BLOCKS(r, norm_rows(&c))
    {
        wide mu = norm_mu(&c, r), rstd = norm_rstd(&c, r);
        PHASE
        {
            sum1[t] = sum2[t] = 0;
            for (int64_t j = t; j < d; j += THREADS) {
                wide g = W(norm_gain(&c, j)) * W(get(IN(c.grad[NORM_Y]), r * d + j));
                sum1[t] += g;
                sum2[t] += g * (W(get(IN(c.value[NORM_X]), r * d + j)) - mu) * rstd;
            }
        }
        BLOCK_FOLD(sum1, plus)
        BLOCK_FOLD(sum2, plus)
        PHASE
        {
            if (t == 0 && c.value[NORM_S1])
                STAT(c.value[NORM_S1])[r] = c.rms ? 0 : (stat)(sum1[0] / W(c.width));
            if (t == 0)
                STAT(c.value[NORM_S2])[r] = (stat)(sum2[0] / W(c.width));
        }
    }
}

static int norm_bwd_sum(void *stream, const struct cu_call *c)
{
    struct column_sums s = {.dst = c->grad[NORM_G],
                            .x = c->grad[NORM_Y],
                            .v = c->value[NORM_X],
                            .mean = c->rms ? NULL : c->value[NORM_MU],
                            .var = c->value[NORM_V],
                            .rows = norm_blocks(c),
                            .cols = size_of(c, NORM_G),
                            .eps = c->eps,
                            .wide_dst = wide_grad(c, NORM_G)};
    int rc = add_column_sums(stream, &s);
    s.dst = c->grad[NORM_B];
    s.v = NULL;
    s.wide_dst = wide_grad(c, NORM_B);
    if (!rc)
        rc = add_column_sums(stream, &s);
    if (rc)
        return rc;
    LAUNCH(norm_bwd_sum_rows, norm_blocks(c), stream, c);
    return 0;
}

KERNEL norm_bwd_apply_rows(CALL(cu_call) c)
{
    int64_t d = norm_cols(&c);
    BLOCKS(r, norm_rows(&c))
    {
        num mu = N(norm_mu(&c, r)), rstd = N(norm_rstd(&c, r));
        num s1 = c.value[NORM_S1] ? N(STAT(c.value[NORM_S1])[r]) : N(0);
        num s2 = N(STAT(c.value[NORM_S2])[r]);
        PHASE
        {
            for (int64_t j = t; j < d; j += THREADS) {
                int64_t at = r * d + j;
                num g = norm_gain(&c, j) * get(IN(c.grad[NORM_Y]), at);
                put(OUT(c.grad[NORM_X]), at,
                    norm_slope(g, get(IN(c.value[NORM_X]), at), mu, rstd, s1, s2));
            }
        }
    }
}

static int norm_bwd_apply(void *stream, const struct cu_call *c)
{
    if (c->grad[NORM_X])
        LAUNCH(norm_bwd_apply_rows, norm_blocks(c), stream, c);
    return 0;
}
