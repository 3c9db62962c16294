/* k_attention.h - what attention does between its matrix products (attention.c): turning
 * heads by their positions, and softmax over rows of scores, forward and backward.
 *
 * Scores come from the products in 'stat' and become numbers of the type where they are:
 * a row keeps its place, so that numbers of half the size stand in the first half of it,
 * and rows are ratio() times as far apart as they are wide. */
#include "real.h"

/* ---- rotary positions -------------------------------------------------------------- */

DEVICE double clamped(double x, double low, double high)
{
    return x < low ? low : x > high ? high : x;
}

/* How much of the unscaled angle is kept, of pair j. */
DEVICE double share_kept(const struct cu_rotate *c, double j, double step)
{
    const double whole = 6.28318530717958647692;
    double width = 2 * (double)c->pairs;
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
    double step = pow(c->theta, -(double)j / (double)c->pairs);
    double kept = c->factor > 0 ? share_kept(c, (double)j, step) : 1;
    return kept < 1 ? step * (kept + (1 - kept) / c->factor) : step;
}

DEVICE double rotate_source(const struct cu_rotate *c, int64_t i)
{
    return c->wide_src ? (double)STAT(c->src)[i] : (double)get(IN(c->src), i);
}

BOTH int64_t rotated_heads(const struct cu_rotate *c)
{
    return c->heads * (c->groups > 0 ? c->groups : 1);
}

/* Number j of the rotated part of a head and its partner, or one that stays.  May be in
 * place. */
KERNEL rotate_each(CALL(cu_rotate) c)
{
    int64_t parts = c.width - c.pairs, all = rotated_heads(&c), per_row = all * parts;
    EACH(i, c.rows * per_row)
    {
        int64_t r = quotient(i, per_row), head = quotient(rest(i, per_row), parts);
        int64_t g = quotient(head, c.heads), h = rest(head, c.heads);
        int64_t j = rest(i, parts), src = r * c.lds + g * c.src_group + h * c.width;
        int64_t dst = r * c.ldd + g * c.dst_group + h * c.width;
        if (j >= c.pairs) {
            put(OUT(c.dst), dst + c.pairs + j, N(rotate_source(&c, src + c.pairs + j)));
            continue;
        }
        double position = (double)(c.first + rest(r, c.period));
        double angle = c.sign * position * rope_step(&c, j);
        double a = c.scale * rotate_source(&c, src + j);
        double b = c.scale * rotate_source(&c, src + j + c.pairs);
        put(OUT(c.dst), dst + j, N(a * cos(angle) - b * sin(angle)));
        put(OUT(c.dst), dst + j + c.pairs, N(a * sin(angle) + b * cos(angle)));
    }
}

static int rotate(void *stream, const struct cu_rotate *c)
{
    LAUNCH(rotate_each, blocks_for(c->rows * rotated_heads(c) * (c->width - c->pairs)),
           stream, c);
    return 0;
}

/* ---- which keys a row sees, and what is added to its scores ------------------------ */

DEVICE int64_t ratio(void)
{
    return (int64_t)(sizeof(stat) / sizeof(real));
}

DEVICE int64_t between(int64_t x, int64_t low, int64_t high)
{
    return x < low ? low : x > high ? high : x;
}

/* Query 'i' sees the local keys [from, to). */
DEVICE void mask_keys(const struct cu_mask *m, int64_t i, int64_t *from, int64_t *to)
{
    int64_t end = i + m->behind + 1, after = m->causal ? 0 : m->window - 1;
    *to = m->causal || m->window ? between(end + after, 0, m->keys) : m->keys;
    *from = m->window ? between(end - m->window, 0, *to) : 0;
    if (m->chunk) {
        int64_t run = (end - 1 + m->first_key) / m->chunk * m->chunk - m->first_key;
        *from = between(run, *from, *to);
    }
    *from = between(*from, m->filled, m->end);
    *to = between(*to, *from, m->end);
}

/* Row 'r' sees the keys [from, to) of those that have scores. */
DEVICE void seen_keys(const struct cu_scores *c, int64_t r, int64_t *from, int64_t *to)
{
    mask_keys(&c->mask, c->first + r, from, to);
    *from = between(*from - c->from, 0, c->width);
    *to = between(*to - c->from, *from, c->width);
}

/* The distance from which on bucket k of a side holds. */
DEVICE int64_t bucket_start(const struct cu_scores *c, int64_t k)
{
    int64_t exact = c->side / 2;
    if (k < exact)
        return k;
    double part = (double)(k - exact) / (double)(c->side - exact);
    double power = pow((double)c->distance / (double)exact, part);
    return (int64_t)ceil((double)exact * power - 1e-6);
}

/* The bucket of a key 'apart' positions after the query. */
DEVICE int64_t bucket_of(const struct cu_scores *c, int64_t apart)
{
    int64_t far = apart < 0 ? -apart : c->mask.causal ? 0 : apart, exact = c->side / 2;
    int64_t other = !c->mask.causal && apart > 0 ? c->side : 0;
    if (far < exact)
        return far + other;
    double power =
        log((double)far / (double)exact) / log((double)c->distance / (double)exact);
    int64_t k = exact + (int64_t)(power * (double)(c->side - exact));
    k = between(k, exact, c->side - 1);
    while (k + 1 < c->side && far >= bucket_start(c, k + 1))
        k++;
    while (k > exact && far < bucket_start(c, k))
        k--;
    return k + other;
}

/* Key of column 0 less the query of row 'r'. */
DEVICE int64_t apart_at(const struct cu_scores *c, int64_t r)
{
    return c->from - (c->first + r + c->mask.behind);
}

DEVICE stat adjusted(const struct cu_scores *c, int64_t r, int64_t j, stat x)
{
    if (c->side)
        x += (stat)get(IN(c->rp), bucket_of(c, apart_at(c, r) + j) * c->ldrp);
    if (c->slope > 0)
        x += (stat)(c->slope * (double)(apart_at(c, r) + j));
    return c->cap > 0 ? (stat)c->cap * (stat)TANH(N(x / (stat)c->cap)) : x;
}

/* ---- softmax ----------------------------------------------------------------------- */

/* A row's 'n' numbers become 'real' in its first part: threads read before any of them
 * writes there, since no chunk writes what a later one reads. */
#define NARROW_ROW(row, n, expression)                                                   \
    for (int64_t chunk_ = 0; chunk_ < (n); chunk_ += THREADS) {                          \
        PHASE                                                                            \
        {                                                                                \
            int64_t j = chunk_ + t;                                                      \
            if (j < (n))                                                                 \
                held[t] = (expression);                                                  \
        }                                                                                \
        PHASE                                                                            \
        {                                                                                \
            if (chunk_ + t < (n))                                                        \
                put(OUT(row), chunk_ + t, N(held[t]));                                   \
        }                                                                                \
    }

/* p = softmax of what the row sees, 0 elsewhere, and its log-sum-exp: -infinity where
 * that is nothing. */
KERNEL softmax_rows(CALL(cu_scores) c)
{
    SHARED wide part[THREADS];
    SHARED stat held[THREADS];
    BLOCKS(r, c.n)
    {
        stat *p = STAT(c.p) + r * c.width;
        int64_t from, to;
        seen_keys(&c, r, &from, &to);
        PHASE
        {
            part[t] = W(-INFINITY);
            for (int64_t j = from + t; j < to; j += THREADS) {
                p[j] = adjusted(&c, r, j, p[j]);
                part[t] = larger(part[t], W(p[j]));
            }
        }
        BLOCK_FOLD(part, larger)
        num max = N(part[0]);
        WAIT;
        PHASE
        {
            part[t] = 0;
            for (int64_t j = from + t; j < to; j += THREADS)
                part[t] += W(EXP(N(p[j]) - max));
        }
        BLOCK_FOLD(part, plus)
        num inverse = N(1 / part[0]);
        PHASE
        {
            if (t == 0)
                STAT(c.lse)
            [r * c.ldl] =
                from < to ? (stat)(log((double)part[0]) + (double)max) : (stat)-INFINITY;
        }
        NARROW_ROW(p, c.width, j >= from && j < to ? EXP(N(p[j]) - max) * inverse : N(0))
    }
}

static int softmax(void *stream, const struct cu_scores *c)
{
    LAUNCH(softmax_rows, c->n, stream, c);
    return 0;
}

/* p = e^(scores - lse), not yet rounded. */
KERNEL again_rows(CALL(cu_scores) c)
{
    BLOCKS(r, c.n)
    {
        stat *p = STAT(c.p) + r * c.width;
        num lse = N(STAT(c.lse)[r * c.ldl]);
        int64_t from, to;
        seen_keys(&c, r, &from, &to);
        PHASE
        {
            for (int64_t j = t; j < c.width; j += THREADS)
                p[j] = j >= from && j < to ? (stat)EXP(N(adjusted(&c, r, j, p[j])) - lse)
                                           : 0;
        }
    }
}

static int again(void *stream, const struct cu_scores *c)
{
    LAUNCH(again_rows, c->n, stream, c);
    return 0;
}

/* The row's sum of p dp goes to delta where that is asked for; else dp becomes the
 * gradient of the scores as the softmax saw them and, by way of the cap, of those of the
 * product: p (dp - that sum, over all keys). */
KERNEL slopes_rows(CALL(cu_scores) c)
{
    SHARED wide sum[THREADS];
    BLOCKS(r, c.n)
    {
        const stat *p = STAT(c.p) + r * c.width;
        stat *dp = STAT(c.dp) + r * c.width;
        PHASE
        {
            sum[t] = 0;
            for (int64_t j = t; j < c.width && (c.sums_only || c.whole); j += THREADS)
                sum[t] += W(p[j]) * W(dp[j]);
        }
        BLOCK_FOLD(sum, plus)
        num mean = c.whole || c.sums_only ? N(sum[0]) : N(STAT(c.delta)[r * c.ldl]);
        num lse = N(STAT(c.lse)[r * c.ldl]);
        PHASE
        {
            if (c.sums_only && t == 0)
                STAT(c.delta)[r * c.ldl] = (stat)mean;
            for (int64_t j = t; j < c.width && !c.sums_only; j += THREADS) {
                num pj = N(p[j]);
                num score = c.cap > 0 && pj > 0
                                ? N((log((double)pj) + (double)lse) / c.cap)
                                : N(0);
                dp[j] = (stat)(pj * (N(dp[j]) - mean) * (1 - score * score));
            }
        }
    }
}

static int slopes(void *stream, const struct cu_scores *c)
{
    LAUNCH(slopes_rows, c->n, stream, c);
    return 0;
}

/* A block a bucket, a thread a row: the keys of a bucket stand in one run on each side of
 * the query. */
DEVICE wide bucket_sum(const struct cu_scores *c, int64_t r, int64_t bucket)
{
    int after = bucket >= c->side;
    int64_t k = after ? bucket - c->side : bucket, from, to;
    int64_t near = bucket_start(c, k),
            far = k + 1 < c->side ? bucket_start(c, k + 1) : -1;
    int64_t query = -apart_at(c, r), low, high;
    if (after) {
        low = query + (near > 1 ? near : 1);
        high = far < 0 ? c->width : query + far;
    } else {
        low = far < 0 ? 0 : query - far + 1;
        high = c->mask.causal && k == 0 ? c->width : query - near + 1;
    }
    seen_keys(c, r, &from, &to);
    low = low > from ? low : from;
    high = high < to ? high : to;
    wide sum = 0;
    for (int64_t j = low; j < high; j++)
        sum += W(STAT(c->dp)[r * c->width + j]);
    return sum;
}

KERNEL table_buckets(CALL(cu_scores) c)
{
    SHARED wide sum[THREADS];
    BLOCKS(bucket, c.mask.causal ? c.side : 2 * c.side)
    {
        PHASE
        {
            sum[t] = 0;
            for (int64_t r = t; r < c.n; r += THREADS)
                sum[t] += bucket_sum(&c, r, bucket);
        }
        BLOCK_FOLD(sum, plus)
        PHASE
        {
            if (t == 0)
                STAT(c.drp)[bucket * c.ldrp] += (stat)sum[0];
        }
    }
}

static int table_slopes(void *stream, const struct cu_scores *c)
{
    LAUNCH(table_buckets, c->mask.causal ? c->side : 2 * c->side, stream, c);
    return 0;
}

/* p, and dp times the scale of scores, as the products take them. */
KERNEL narrow_rows(CALL(cu_scores) c)
{
    SHARED stat held[THREADS];
    BLOCKS(r, c.n)
    {
        stat *p = STAT(c.p) + r * c.width, *dp = STAT(c.dp) + r * c.width;
        NARROW_ROW(p, c.width, p[j])
        NARROW_ROW(dp, c.width, (stat)(c.scale * (double)dp[j]))
    }
}

static int narrow(void *stream, const struct cu_scores *c)
{
    LAUNCH(narrow_rows, c->n, stream, c);
    return 0;
}

/* Sums that were carried in 'stat', as gradients have them. */
KERNEL settle_each(CALL(cu_settle) c)
{
    EACH(i, c.rows * c.cols)
    {
        int64_t r = quotient(i, c.cols), j = rest(i, c.cols);
        put(OUT(c.dst), r * c.ldd + j, N(STAT(c.src)[r * c.lds + j]));
    }
}

static int settle(void *stream, const struct cu_settle *c)
{
    LAUNCH(settle_each, blocks_for(c->rows * c->cols), stream, c);
    return 0;
}

/* ---- where ranks have a part of the keys ------------------------------------------- */

enum { MERGE_Y = 4, MERGE_LSE, MERGE_MOST, MERGE_WEIGHT };

KERNEL attention_weight_each(CALL(cu_call) c)
{
    EACH(i, elements(&c, MERGE_LSE))
    STAT(c.value[MERGE_WEIGHT])
    [i] = STAT(c.value[MERGE_LSE])[i] > -INFINITY
              ? (stat)exp((double)STAT(c.value[MERGE_LSE])[i] -
                          (double)STAT(c.value[MERGE_MOST])[i])
              : 0;
}

static int attention_weight(void *stream, const struct cu_call *c)
{
    LAUNCH(attention_weight_each, blocks_for(size_of(c, MERGE_LSE)), stream, c);
    return 0;
}

/* This part's share of the whole softmax: its values times that, and the whole's lse. */
KERNEL attention_merge_rows(CALL(cu_call) c)
{
    int64_t width = quotient(c.cols[MERGE_Y], c.cols[MERGE_LSE]);
    BLOCKS(i, elements(&c, MERGE_LSE))
    {
        double whole = (double)STAT(c.value[MERGE_MOST])[i] +
                       log((double)STAT(c.value[MERGE_WEIGHT])[i]);
        num share = STAT(c.value[MERGE_LSE])[i] > -INFINITY
                        ? N(exp((double)STAT(c.value[MERGE_LSE])[i] - whole))
                        : 0;
        WAIT;
        PHASE
        {
            for (int64_t j = t; j < width; j += THREADS)
                put(OUT(c.value[MERGE_Y]), i * width + j,
                    share * get(IN(c.value[MERGE_Y]), i * width + j));
            if (t == 0)
                STAT(c.value[MERGE_LSE])[i] = (stat)whole;
        }
    }
}

static int attention_merge(void *stream, const struct cu_call *c)
{
    if (size_of(c, MERGE_Y) > 0)
        LAUNCH(attention_merge_rows, size_of(c, MERGE_LSE), stream, c);
    return 0;
}
