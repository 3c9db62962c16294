/* k_causal_conv.h - a convolution along the sequence, of each feature by itself over its last
 * positions; neighbouring threads have neighbouring features. */
#include "real.h"

/* The weight that position r has for the one 'back' positions after it. */
DEVICE num causal_weight(const struct cu_causal *c, int64_t i, int64_t back)
{
    return get(IN(c->w), (i + 1) * c->s.kernel - 1 - back);
}

KERNEL causal_conv_get_each(CALL(cu_causal) c)
{
    EACH(at, c.s.batch * c.s.seq * c.s.d)
    {
        int64_t i = rest(at, c.s.d), t = rest(quotient(at, c.s.d), c.s.seq);
        int64_t reach = t + 1 < c.s.kernel ? t + 1 : c.s.kernel;
        num sum = c.bias ? get(IN(c.bias), i) : N(0);
        for (int64_t k = 0; k < reach; k++)
            sum += causal_weight(&c, i, k) * get(IN(c.x), at - k * c.s.d);
        put(OUT(c.y), at, sum);
    }
}

static int causal_conv_get(void *stream, const struct cu_causal *c)
{
    LAUNCH(causal_conv_get_each, blocks_for(c->s.batch * c->s.seq * c->s.d), stream, c);
    return 0;
}

KERNEL causal_conv_put_each(CALL(cu_causal) c)
{
    EACH(at, c.s.batch * c.s.seq * c.s.d)
    {
        int64_t i = rest(at, c.s.d), left = c.s.seq - rest(quotient(at, c.s.d), c.s.seq);
        int64_t reach = left < c.s.kernel ? left : c.s.kernel;
        num sum = 0;
        for (int64_t k = 0; k < reach; k++)
            sum += causal_weight(&c, i, k) * get(IN(c.dy), at + k * c.s.d);
        put(OUT(c.dx), at, sum);
    }
}

static int causal_conv_put(void *stream, const struct cu_causal *c)
{
    LAUNCH(causal_conv_put_each, blocks_for(c->s.batch * c->s.seq * c->s.d), stream, c);
    return 0;
}

/* A block has a strip of features and one of their weights, as column sums have. */
KERNEL causal_conv_weights_strips(CALL(cu_causal) c)
{
    SHARED wide sum[THREADS];
    int64_t strips = (c.s.d + STRIP - 1) / STRIP;
    BLOCKS(block, strips * c.s.kernel)
    {
        int64_t back = quotient(block, strips), first = rest(block, strips) * STRIP;
        PHASE
        {
            int64_t i = first + t % STRIP;
            sum[t] = 0;
            for (int64_t r = t / STRIP; r < c.s.batch * c.s.seq && i < c.s.d; r += LANES)
                if (rest(r, c.s.seq) >= back)
                    sum[t] += W(get(IN(c.dy), r * c.s.d + i)) *
                              W(get(IN(c.x), (r - back) * c.s.d + i));
        }
        PHASE
        {
            int64_t i = first + t;
            if (t >= STRIP || i >= c.s.d)
                continue;
            wide total = 0;
            for (int lane = 0; lane < LANES; lane++)
                total += sum[lane * STRIP + t];
            accumulate(c.dw, c.wide_w, (i + 1) * c.s.kernel - 1 - back, total);
        }
    }
}

static int causal_conv_weights(void *stream, const struct cu_causal *c)
{
    int64_t strips = (c->s.d + STRIP - 1) / STRIP;
    LAUNCH(causal_conv_weights_strips, strips * c->s.kernel, stream, c);
    return 0;
}
