/* k_channel.h - channels of images, or features, with numbers of their own: gains, slopes
 * below 0, biases, and the norms of channels and of groups of them.
 *
 * Numbers are seen as [outer, channels, inner]: of an image samples, channels, pixels; of
 * rows of features rows, features, one.  A mean and a variance belong to a channel over the
 * whole batch, or to a group of channels of one sample:
 *     batch norm   s1 = mean of dy,    s2 = mean of dy xhat,    dx = g r (dy - s1 - xhat s2)
 *     group norm   s1 = mean of g dy,  s2 = mean of g dy xhat,  dx = r (g dy - s1 - xhat s2) */
#include "real.h"

DEVICE int64_t channel_numbers(const struct cu_channels *c)
{
    return c->outer * c->channels * c->inner;
}

static inline int64_t channel_size(const struct cu_channels *c)
{
    return c->outer * c->channels * c->inner;
}

DEVICE int64_t channel_of(const struct cu_channels *c, int64_t i)
{
    return rest(quotient(i, c->inner), c->channels);
}

KERNEL gain_get_each(CALL(cu_channels) c)
{
    EACH(i, channel_numbers(&c))
    put(OUT(c.y), i, get(IN(c.x), i) * get(IN(c.gain), channel_of(&c, i)));
}

static int gain_get(void *stream, const struct cu_channels *c)
{
    LAUNCH(gain_get_each, blocks_for(channel_size(c)), stream, c);
    return 0;
}

/* ---- sums of channels -------------------------------------------------------------- */

/* What element 'i' gives to the sum of its channel. */
enum channel_term { TERM_DY, TERM_DY_X, TERM_DY_BELOW };

struct channel_sums {
    struct cu_channels c;
    enum channel_term term;
    void *dst;
    int is_wide;
};

DEVICE wide term_of(const struct channel_sums *s, int64_t i)
{
    num dy = get(IN(s->c.dy), i);
    if (s->term == TERM_DY)
        return W(dy);
    num x = get(IN(s->c.x), i);
    return s->term == TERM_DY_BELOW && x > 0 ? W(0) : W(dy) * W(x);
}

KERNEL channel_sums_rows(CALL(channel_sums) s)
{
    SHARED wide sum[THREADS];
    BLOCKS(k, s.c.channels)
    {
        PHASE
        {
            sum[t] = 0;
            for (int64_t at = t; at < s.c.outer * s.c.inner; at += THREADS)
                sum[t] +=
                    term_of(&s, (quotient(at, s.c.inner) * s.c.channels + k) * s.c.inner +
                                    rest(at, s.c.inner));
        }
        BLOCK_FOLD(sum, plus)
        PHASE
        {
            if (t == 0)
                accumulate(s.dst, s.is_wide, k, sum[0]);
        }
    }
}

/* dst[channel] += its sum; all channels are one where each has no number of its own. */
static int add_channel_sums(void *stream, const struct cu_channels *c,
                            enum channel_term term, void *dst, int is_wide)
{
    struct channel_sums s = {*c, term, dst, is_wide};
    if (!c->each) {
        s.c.inner *= s.c.channels;
        s.c.channels = 1;
    }
    if (dst)
        LAUNCH(channel_sums_rows, s.c.channels, stream, &s);
    return 0;
}

KERNEL gain_put_each(CALL(cu_channels) c)
{
    EACH(i, channel_numbers(&c))
    put(OUT(c.y), i, get(IN(c.dy), i) * get(IN(c.gain), channel_of(&c, i)));
}

static int gain_put(void *stream, const struct cu_channels *c)
{
    if (c->y)
        LAUNCH(gain_put_each, blocks_for(channel_size(c)), stream, c);
    return add_channel_sums(stream, c, TERM_DY_X, c->dgain, c->wide_gain);
}

KERNEL prelu_get_each(CALL(cu_channels) c)
{
    EACH(i, channel_numbers(&c))
    {
        num x = get(IN(c.x), i), below = get(IN(c.gain), c.each * channel_of(&c, i));
        put(OUT(c.y), i, x > 0 ? x : below * x);
    }
}

static int prelu_get(void *stream, const struct cu_channels *c)
{
    LAUNCH(prelu_get_each, blocks_for(channel_size(c)), stream, c);
    return 0;
}

KERNEL prelu_put_each(CALL(cu_channels) c)
{
    EACH(i, channel_numbers(&c))
    {
        num below = get(IN(c.gain), c.each * channel_of(&c, i));
        put(OUT(c.y), i, get(IN(c.dy), i) * (get(IN(c.x), i) > 0 ? N(1) : below));
    }
}

static int prelu_put(void *stream, const struct cu_channels *c)
{
    if (c->y)
        LAUNCH(prelu_put_each, blocks_for(channel_size(c)), stream, c);
    return add_channel_sums(stream, c, TERM_DY_BELOW, c->dgain, c->wide_gain);
}

KERNEL channel_bias_each(CALL(cu_channels) c)
{
    EACH(i, channel_numbers(&c))
    put(OUT(c.y), i, get(IN(c.x), i) + get(IN(c.bias), channel_of(&c, i)));
}

static int channel_bias_get(void *stream, const struct cu_channels *c)
{
    LAUNCH(channel_bias_each, blocks_for(channel_size(c)), stream, c);
    return 0;
}

static int channel_bias_put(void *stream, const struct cu_channels *c)
{
    int rc = c->y ? copy(stream, c->y, c->dy, channel_size(c)) : 0;
    return rc ? rc : add_channel_sums(stream, c, TERM_DY, c->dbias, c->wide_bias);
}

/* ---- norms ------------------------------------------------------------------------- */

/* Number 'e' of those of which mean 'r' is. */
DEVICE int64_t mean_member(const struct cu_channels *c, int64_t r, int64_t e)
{
    return c->groups
               ? r * c->unit * c->inner + e
               : (quotient(e, c->inner) * c->channels + r) * c->inner + rest(e, c->inner);
}

BOTH int64_t mean_members(const struct cu_channels *c)
{
    return c->groups ? c->unit * c->inner : c->outer * c->inner;
}

BOTH int64_t means(const struct cu_channels *c)
{
    return c->groups ? c->outer * c->groups : c->channels;
}

/* The mean that number 'i' is of. */
DEVICE int64_t mean_of(const struct cu_channels *c, int64_t i)
{
    return c->groups ? quotient(i, c->unit * c->inner) : channel_of(c, i);
}

DEVICE wide mean_rstd(const struct cu_channels *c, int64_t r)
{
    return W(rstd_of((double)STAT(c->var)[r], c->eps));
}

KERNEL channels_mean_rows(CALL(cu_channels) c)
{
    SHARED wide sum[THREADS];
    int64_t n = mean_members(&c);
    BLOCKS(r, means(&c))
    {
        PHASE
        {
            sum[t] = 0;
            for (int64_t e = t; e < n; e += THREADS)
                sum[t] += W(get(IN(c.x), mean_member(&c, r, e)));
        }
        BLOCK_FOLD(sum, plus)
        PHASE
        {
            if (t == 0)
                STAT(c.mean)[r] = (stat)(sum[0] / W(c.numbers));
        }
    }
}

static int channels_mean(void *stream, const struct cu_channels *c)
{
    LAUNCH(channels_mean_rows, means(c), stream, c);
    return 0;
}

KERNEL channels_var_rows(CALL(cu_channels) c)
{
    SHARED wide sum[THREADS];
    int64_t n = mean_members(&c);
    BLOCKS(r, means(&c))
    {
        wide mu = W(STAT(c.mean)[r]);
        PHASE
        {
            sum[t] = 0;
            for (int64_t e = t; e < n; e += THREADS) {
                wide x = W(get(IN(c.x), mean_member(&c, r, e))) - mu;
                sum[t] += x * x;
            }
        }
        BLOCK_FOLD(sum, plus)
        PHASE
        {
            if (t == 0)
                STAT(c.var)[r] = (stat)(sum[0] / W(c.numbers));
        }
    }
}

static int channels_var(void *stream, const struct cu_channels *c)
{
    LAUNCH(channels_var_rows, means(c), stream, c);
    return 0;
}

KERNEL channels_apply_each(CALL(cu_channels) c)
{
    EACH(i, channel_numbers(&c))
    {
        int64_t r = mean_of(&c, i), k = channel_of(&c, i);
        num scale = N(W(get(IN(c.gain), k)) * mean_rstd(&c, r));
        put(OUT(c.y), i,
            (get(IN(c.x), i) - N(STAT(c.mean)[r])) * scale + get(IN(c.bias), k));
    }
}

static int channels_apply(void *stream, const struct cu_channels *c)
{
    LAUNCH(channels_apply_each, blocks_for(channel_size(c)), stream, c);
    return 0;
}

KERNEL channels_sums_rows(CALL(cu_channels) c)
{
    SHARED wide sum1[THREADS];
    SHARED wide sum2[THREADS];
    int64_t n = mean_members(&c);
    BLOCKS(r, means(&c))
    {
        wide mu = W(STAT(c.mean)[r]), rstd = mean_rstd(&c, r);
        PHASE
        {
            sum1[t] = sum2[t] = 0;
            for (int64_t e = t; e < n; e += THREADS) {
                int64_t i = mean_member(&c, r, e);
                wide dy = W(get(IN(c.dy), i));
                dy *= c.groups ? W(get(IN(c.gain), channel_of(&c, i))) : W(1);
                sum1[t] += dy;
                sum2[t] += dy * (W(get(IN(c.x), i)) - mu) * rstd;
            }
        }
        BLOCK_FOLD(sum1, plus)
        BLOCK_FOLD(sum2, plus)
        PHASE
        {
            if (t == 0) {
                STAT(c.s1)[r] = (stat)(sum1[0] / W(c.numbers));
                STAT(c.s2)[r] = (stat)(sum2[0] / W(c.numbers));
            }
        }
    }
}

/* Gradients of the channels' gains. */
KERNEL channel_gains_rows(CALL(cu_channels) c)
{
    SHARED wide sum[THREADS];
    BLOCKS(k, c.channels)
    {
        PHASE
        {
            sum[t] = 0;
            for (int64_t at = t; at < c.outer * c.inner; at += THREADS) {
                int64_t i = (quotient(at, c.inner) * c.channels + k) * c.inner +
                            rest(at, c.inner);
                int64_t r = mean_of(&c, i);
                sum[t] += W(get(IN(c.dy), i)) *
                          (W(get(IN(c.x), i)) - W(STAT(c.mean)[r])) * mean_rstd(&c, r);
            }
        }
        BLOCK_FOLD(sum, plus)
        PHASE
        {
            if (t == 0)
                accumulate(c.dgain, c.wide_gain, k, sum[0]);
        }
    }
}

static int channels_sums(void *stream, const struct cu_channels *c)
{
    LAUNCH(channels_sums_rows, means(c), stream, c);
    if (c->dgain)
        LAUNCH(channel_gains_rows, c->channels, stream, c);
    return add_channel_sums(stream, c, TERM_DY, c->dbias, c->wide_bias);
}

KERNEL channels_slopes_each(CALL(cu_channels) c)
{
    EACH(i, channel_numbers(&c))
    {
        int64_t r = mean_of(&c, i);
        num rstd = N(mean_rstd(&c, r)), gain = get(IN(c.gain), channel_of(&c, i));
        num xhat = (get(IN(c.x), i) - N(STAT(c.mean)[r])) * rstd;
        num dy = get(IN(c.dy), i) * (c.groups ? gain : N(1));
        num d = dy - N(STAT(c.s1)[r]) - xhat * N(STAT(c.s2)[r]);
        put(OUT(c.y), i, rstd * d * (c.groups ? N(1) : gain));
    }
}

static int channels_slopes(void *stream, const struct cu_channels *c)
{
    if (c->y)
        LAUNCH(channels_slopes_each, blocks_for(channel_size(c)), stream, c);
    return 0;
}
