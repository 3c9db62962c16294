/* k_xent.h - softmax cross-entropy over a vocabulary that may be split, a block a
 * token: maximum, sum and the label's logit are each one rank's share, reduced between
 * kernels. */
#include "real.h"

enum { XENT_X, XENT_LABEL, XENT_Y, XENT_M, XENT_S, XENT_T };

KERNEL xent_max_rows(CALL(cu_call) c)
{
    SHARED wide max[THREADS];
    int64_t n = c.cols[XENT_X];
    BLOCKS(r, c.rows[XENT_X])
    {
        PHASE
        {
            max[t] = W(-INFINITY);
            for (int64_t j = t; j < n; j += THREADS)
                max[t] = larger(max[t], W(get(IN(c.value[XENT_X]), r * n + j)));
        }
        BLOCK_FOLD(max, larger)
        PHASE
        {
            if (t == 0)
                STAT(c.value[XENT_M])[r] = (stat)max[0];
        }
    }
}

static int xent_max(void *stream, const struct cu_call *c)
{
    LAUNCH(xent_max_rows, c->rows[XENT_X], stream, c);
    return 0;
}

KERNEL xent_sum_rows(CALL(cu_call) c)
{
    SHARED wide sum[THREADS];
    const real *x = IN(c.value[XENT_X]);
    int64_t n = c.cols[XENT_X];
    BLOCKS(r, c.rows[XENT_X])
    {
        num max = N(STAT(c.value[XENT_M])[r]);
        PHASE
        {
            sum[t] = 0;
            for (int64_t j = t; j < n; j += THREADS)
                sum[t] += W(EXP(get(x, r * n + j) - max));
        }
        BLOCK_FOLD(sum, plus)
        PHASE
        {
            int64_t j = IDS(c.value[XENT_LABEL])[r] - c.off[2];
            if (t > 0)
                continue;
            STAT(c.value[XENT_S])[r] = IDS(c.value[XENT_LABEL])[r] < 0 ? 0 : (stat)sum[0];
            STAT(c.value[XENT_T])[r] = j >= 0 && j < n ? (stat)get(x, r * n + j) : 0;
        }
    }
}

static int xent_sum(void *stream, const struct cu_call *c)
{
    LAUNCH(xent_sum_rows, c->rows[XENT_X], stream, c);
    return 0;
}

KERNEL xent_loss_each(CALL(cu_call) c)
{
    EACH(i, elements(&c, XENT_Y))
    STAT(c.value[XENT_Y])
    [i] = (stat)xent_loss_of((double)STAT(c.value[XENT_S])[i],
                             (double)STAT(c.value[XENT_M])[i],
                             (double)STAT(c.value[XENT_T])[i]);
}

static int xent_loss(void *stream, const struct cu_call *c)
{
    LAUNCH(xent_loss_each, blocks_for(size_of(c, XENT_Y)), stream, c);
    return 0;
}

KERNEL xent_bwd_rows(CALL(cu_call) c)
{
    const real *x = IN(c.value[XENT_X]);
    int64_t n = c.cols[XENT_X];
    BLOCKS(r, c.rows[XENT_X])
    {
        num max = N(STAT(c.value[XENT_M])[r]), inverse = 1 / N(STAT(c.value[XENT_S])[r]);
        int64_t id = IDS(c.value[XENT_LABEL])[r], label = id - c.off[2];
        PHASE
        {
            for (int64_t j = t; j < n; j += THREADS) {
                num p = id < 0 ? N(0) : softmax_share(get(x, r * n + j), max, inverse);
                put(OUT(c.grad[XENT_X]), r * n + j, N(c.each) * (j == label ? p - 1 : p));
            }
        }
    }
}

static int xent_bwd(void *stream, const struct cu_call *c)
{
    if (c->grad[XENT_X])
        LAUNCH(xent_bwd_rows, c->rows[XENT_X], stream, c);
    return 0;
}
