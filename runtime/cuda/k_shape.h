/* k_shape.h - reducing and spreading, dropout, weights of rows, softmax, mean squares.  What
 * only cuts, joins and rearranges is a copy of boxes (shape.c). */
#include "real.h"

KERNEL reduce_get_rows(CALL(cu_reduce) c)
{
    SHARED wide sum[THREADS];
    BLOCKS(r, c.outer * c.inner)
    {
        int64_t from = quotient(r, c.inner) * c.n * c.inner + rest(r, c.inner);
        PHASE
        {
            sum[t] = 0;
            for (int64_t k = t; k < c.n; k += THREADS)
                sum[t] += W(get(IN(c.x), from + k * c.inner));
        }
        BLOCK_FOLD(sum, plus)
        PHASE
        {
            if (t == 0)
                put(OUT(c.y), r, N(sum[0] * W(c.factor)));
        }
    }
}

static int reduce_get(void *stream, const struct cu_reduce *c)
{
    LAUNCH(reduce_get_rows, c->outer * c->inner, stream, c);
    return 0;
}

/* x of all k is 'factor' times y. */
KERNEL reduce_put_each(CALL(cu_reduce) c)
{
    EACH(i, c.outer * c.n * c.inner)
    {
        int64_t y = quotient(i, c.n * c.inner) * c.inner + rest(i, c.inner);
        put(OUT(c.x), i, N(c.factor) * get(IN(c.y), y));
    }
}

static int reduce_put(void *stream, const struct cu_reduce *c)
{
    if (c->x)
        LAUNCH(reduce_put_each, blocks_for(c->outer * c->n * c->inner), stream, c);
    return 0;
}

/* ---- weights of rows --------------------------------------------------------------- */

KERNEL weigh_fwd_each(CALL(cu_call) c)
{
    enum { X, WEIGHT, Y };
    int64_t width = quotient(elements(&c, X), elements(&c, WEIGHT));
    EACH(i, elements(&c, X))
    put(OUT(c.value[Y]), i,
        get(IN(c.value[WEIGHT]), quotient(i, width)) * get(IN(c.value[X]), i));
}

static int weigh_fwd(void *stream, const struct cu_call *c)
{
    LAUNCH(weigh_fwd_each, blocks_for(size_of(c, 0)), stream, c);
    return 0;
}

KERNEL weigh_bwd_rows(CALL(cu_call) c)
{
    enum { X, WEIGHT, Y };
    SHARED wide sum[THREADS];
    int64_t width = quotient(elements(&c, X), elements(&c, WEIGHT));
    BLOCKS(r, elements(&c, WEIGHT))
    {
        PHASE
        {
            sum[t] = 0;
            for (int64_t i = r * width + t; i < (r + 1) * width; i += THREADS) {
                num dy = get(IN(c.grad[Y]), i);
                sum[t] += W(dy) * W(get(IN(c.value[X]), i));
                if (c.grad[X])
                    put(OUT(c.grad[X]), i, dy * get(IN(c.value[WEIGHT]), r));
            }
        }
        BLOCK_FOLD(sum, plus)
        PHASE
        {
            if (t == 0 && c.grad[WEIGHT])
                put(OUT(c.grad[WEIGHT]), r, N(sum[0]));
        }
    }
}

static int weigh_bwd(void *stream, const struct cu_call *c)
{
    LAUNCH(weigh_bwd_rows, size_of(c, 1), stream, c);
    return 0;
}

/* ---- dropout ----------------------------------------------------------------------- */

/* Global number of a local element; samples are counted over the batch of the step. */
DEVICE uint64_t global_number(const struct cu_drop *c, int64_t i)
{
    int64_t index[CU_RANK];
    for (int d = CU_RANK - 1; d >= 0; d--) {
        index[d] = c->first[d] + rest(i, c->extent[d]);
        i = quotient(i, c->extent[d]);
    }
    uint64_t at = (uint64_t)c->first_sample;
    for (int d = 0; d < CU_RANK; d++)
        at = at * (d ? (uint64_t)c->whole[d] : 1) + (uint64_t)index[d];
    return at;
}

KERNEL drop_out_each(CALL(cu_drop) c)
{
    EACH(i, c.n)
    put(OUT(c.to), i,
        drop_stays(c.stream, c.limit, global_number(&c, i))
            ? get(IN(c.from), i) * N(c.scale)
            : N(0));
}

static int drop_out(void *stream, const struct cu_drop *c)
{
    LAUNCH(drop_out_each, blocks_for(c->n), stream, c);
    return 0;
}

/* ---- softmax ----------------------------------------------------------------------- */

enum { SOFTMAX_X, SOFTMAX_Y, SOFTMAX_D, SOFTMAX_M, SOFTMAX_S };

KERNEL softmax_sum_rows(CALL(cu_call) c)
{
    SHARED wide sum[THREADS];
    int64_t n = c.cols[SOFTMAX_X];
    BLOCKS(r, c.rows[SOFTMAX_X])
    {
        num max = N(STAT(c.value[SOFTMAX_M])[r]);
        PHASE
        {
            sum[t] = 0;
            for (int64_t j = t; j < n; j += THREADS)
                sum[t] += W(EXP(get(IN(c.value[SOFTMAX_X]), r * n + j) - max));
        }
        BLOCK_FOLD(sum, plus)
        PHASE
        {
            if (t == 0)
                STAT(c.value[SOFTMAX_S])[r] = (stat)sum[0];
        }
    }
}

static int softmax_sum(void *stream, const struct cu_call *c)
{
    LAUNCH(softmax_sum_rows, c->rows[SOFTMAX_X], stream, c);
    return 0;
}

DEVICE num share_at(const struct cu_call *c, int64_t i, int64_t r)
{
    return softmax_share(get(IN(c->value[SOFTMAX_X]), i), N(STAT(c->value[SOFTMAX_M])[r]),
                         1 / N(STAT(c->value[SOFTMAX_S])[r]));
}

KERNEL softmax_fwd_each(CALL(cu_call) c)
{
    EACH(i, elements(&c, SOFTMAX_X))
    {
        int64_t r = quotient(i, c.cols[SOFTMAX_X]);
        double shift = (double)STAT(c.value[SOFTMAX_M])[r] +
                       (c.log_of ? log((double)STAT(c.value[SOFTMAX_S])[r]) : 0);
        put(OUT(c.value[SOFTMAX_Y]), i,
            c.log_of ? N((double)get(IN(c.value[SOFTMAX_X]), i) - shift)
                     : share_at(&c, i, r));
    }
}

static int softmax_fwd(void *stream, const struct cu_call *c)
{
    LAUNCH(softmax_fwd_each, blocks_for(size_of(c, SOFTMAX_X)), stream, c);
    return 0;
}

/* This rank's share of the sum of y dy; of its logarithm, of the sum of dy. */
KERNEL softmax_dot_rows(CALL(cu_call) c)
{
    SHARED wide sum[THREADS];
    int64_t n = c.cols[SOFTMAX_X];
    BLOCKS(r, c.rows[SOFTMAX_X])
    {
        PHASE
        {
            sum[t] = 0;
            for (int64_t j = t; j < n; j += THREADS) {
                wide dy = W(get(IN(c.grad[SOFTMAX_Y]), r * n + j));
                sum[t] += c.log_of ? dy : dy * W(share_at(&c, r * n + j, r));
            }
        }
        BLOCK_FOLD(sum, plus)
        PHASE
        {
            if (t == 0)
                STAT(c.value[SOFTMAX_D])[r] = (stat)sum[0];
        }
    }
}

static int softmax_dot(void *stream, const struct cu_call *c)
{
    LAUNCH(softmax_dot_rows, c->rows[SOFTMAX_X], stream, c);
    return 0;
}

KERNEL softmax_bwd_each(CALL(cu_call) c)
{
    EACH(i, elements(&c, SOFTMAX_X))
    {
        int64_t r = quotient(i, c.cols[SOFTMAX_X]);
        num p = share_at(&c, i, r), dy = get(IN(c.grad[SOFTMAX_Y]), i);
        num dot = N(STAT(c.value[SOFTMAX_D])[r]);
        put(OUT(c.grad[SOFTMAX_X]), i, softmax_slope(p, dy, dot, c.log_of));
    }
}

static int softmax_bwd(void *stream, const struct cu_call *c)
{
    if (c->grad[SOFTMAX_X])
        LAUNCH(softmax_bwd_each, blocks_for(size_of(c, SOFTMAX_X)), stream, c);
    return 0;
}

/* ---- mean of squares --------------------------------------------------------------- */

enum { MSE_X, MSE_TARGET, MSE_Y };

KERNEL mse_fwd_rows(CALL(cu_call) c)
{
    SHARED wide sum[THREADS];
    int64_t n = c.cols[MSE_X];
    BLOCKS(r, c.rows[MSE_X])
    {
        PHASE
        {
            sum[t] = 0;
            for (int64_t j = t; j < n; j += THREADS) {
                wide off = W(get(IN(c.value[MSE_X]), r * n + j)) -
                           W(get(IN(c.value[MSE_TARGET]), r * n + j));
                sum[t] += off * off;
            }
        }
        BLOCK_FOLD(sum, plus)
        PHASE
        {
            if (t == 0)
                STAT(c.value[MSE_Y])[r] = (stat)(sum[0] / W(c.features));
        }
    }
}

static int mse_fwd(void *stream, const struct cu_call *c)
{
    LAUNCH(mse_fwd_rows, c->rows[MSE_X], stream, c);
    return 0;
}

/* Of the mean over all positions of the step's batch. */
KERNEL mse_bwd_each(CALL(cu_call) c)
{
    EACH(i, elements(&c, MSE_X))
    put(OUT(c.grad[MSE_X]), i,
        N(2 * c.each / c.features) *
            (get(IN(c.value[MSE_X]), i) - get(IN(c.value[MSE_TARGET]), i)));
}

static int mse_bwd(void *stream, const struct cu_call *c)
{
    if (c->grad[MSE_X])
        LAUNCH(mse_bwd_each, blocks_for(size_of(c, MSE_X)), stream, c);
    return 0;
}
