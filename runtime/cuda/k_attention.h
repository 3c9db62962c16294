/* k_attention.h - what attention does between its matrix products (products.c):
 * turning heads by their positions, and softmax over rows of scores, forward and
 * backward. */
#include "real.h"

DEVICE double clamped(double x, double low, double high)
{
    return x < low ? low : x > high ? high : x;
}

/* How much of the unscaled angle is kept, of pair j. */
DEVICE double share_kept(const struct cu_rotate *c, double j, double step)
{
    const double whole = 6.28318530717958647692;
    double width = (double)c->head;
    if (c->context < 1)
        return 0;
    if (!c->by_pair) {
        double turns = c->context * step / whole;
        return c->fast > c->slow ? clamped((turns - c->slow) / (c->fast - c->slow), 0, 1)
                                 : turns > c->slow;
    }
    double per_turn = width / (2 * log(c->theta));
    double from = clamped(floor(per_turn * log(c->context / (c->fast * whole))), 0, 1e9);
    double to = ceil(per_turn * log(c->context / (c->slow * whole)));
    to = to < width - 1 ? to : width - 1;
    return 1 - clamped((j - from) / (to > from ? to - from : 0.001), 0, 1);
}

DEVICE double rope_step(const struct cu_rotate *c, int64_t j)
{
    double step = pow(c->theta, -(double)(2 * j) / (double)c->head);
    double kept = c->factor > 0 ? share_kept(c, (double)j, step) : 1;
    return kept < 1 ? step * (kept + (1 - kept) / c->factor) : step;
}

/* Element j of the first half of a head and its partner in the second.  May be in
 * place. */
KERNEL rotate_each(CALL(cu_rotate) c)
{
    int64_t half = c.head / 2;
    EACH(i, c.rows * half)
    {
        int64_t r = quotient(i, half), j = rest(i, half);
        const real *x = IN(c.src) + r * c.lds;
        real *y = OUT(c.dst) + r * c.ldd;
        double angle = c.sign * (double)r * rope_step(&c, j);
        double a = (double)get(x, j), b = (double)get(x, j + half);
        put(y, j, N(a * cos(angle) - b * sin(angle)));
        put(y, j + half, N(a * sin(angle) + b * cos(angle)));
    }
}

static int rotate(void *stream, const struct cu_rotate *c)
{
    LAUNCH(rotate_each, blocks_for(c->rows * (c->head / 2)), stream, c);
    return 0;
}

DEVICE int64_t seen_from(const struct cu_softmax *c, int64_t row)
{
    return c->causal ? row + 1 : c->s;
}

/* p = softmax(scale p) by rows, and log-sum-exp of each. */
KERNEL softmax_rows(CALL(cu_softmax) c)
{
    SHARED wide part[THREADS];
    num scale = N(c.scale);
    BLOCKS(r, c.s)
    {
        real *p = OUT(c.p) + r * c.s;
        int64_t n = seen_from(&c, r);
        PHASE
        {
            part[t] = W(-INFINITY);
            for (int64_t j = t; j < n; j += THREADS)
                part[t] = larger(part[t], W(get(p, j)));
        }
        BLOCK_FOLD(part, larger)
        num max = N(part[0]);
        WAIT;
        PHASE
        {
            part[t] = 0;
            for (int64_t j = t; j < n; j += THREADS)
                part[t] += W(EXP(scale * (get(p, j) - max)));
        }
        BLOCK_FOLD(part, plus)
        PHASE
        {
            for (int64_t j = t; j < c.s; j += THREADS)
                put(p, j, j < n ? EXP(scale * (get(p, j) - max)) / N(part[0]) : N(0));
            if (t == 0)
                put(OUT(c.lse), r * c.ldl,
                    N(log((double)part[0]) + c.scale * (double)max));
        }
    }
}

static int softmax(void *stream, const struct cu_softmax *c)
{
    LAUNCH(softmax_rows, c->s, stream, c);
    return 0;
}

/* p = e^(p - lse), p being scaled scores. */
KERNEL probabilities_each(CALL(cu_softmax) c)
{
    EACH(i, c.s * c.s)
    {
        int64_t r = quotient(i, c.s);
        num lse = get(IN(c.lse), r * c.ldl);
        put(OUT(c.p), i,
            rest(i, c.s) < seen_from(&c, r) ? EXP(get(IN(c.p), i) - lse) : N(0));
    }
}

static int probabilities(void *stream, const struct cu_softmax *c)
{
    LAUNCH(probabilities_each, blocks_for(c->s * c->s), stream, c);
    return 0;
}

/* dp becomes the gradient of the unscaled scores: scale p (dp - sum of p dp in the
 * row). */
KERNEL softmax_bwd_rows(CALL(cu_softmax) c)
{
    SHARED wide sum[THREADS];
    BLOCKS(r, c.s)
    {
        const real *p = IN(c.p) + r * c.s;
        real *dp = OUT(c.dp) + r * c.s;
        PHASE
        {
            sum[t] = 0;
            for (int64_t j = t; j < c.s; j += THREADS)
                sum[t] += W(get(p, j)) * W(get(dp, j));
        }
        BLOCK_FOLD(sum, plus)
        PHASE
        {
            for (int64_t j = t; j < c.s; j += THREADS)
                put(dp, j, N(c.scale) * get(p, j) * (get(dp, j) - N(sum[0])));
        }
    }
}

static int softmax_bwd(void *stream, const struct cu_softmax *c)
{
    LAUNCH(softmax_bwd_rows, c->s, stream, c);
    return 0;
}
