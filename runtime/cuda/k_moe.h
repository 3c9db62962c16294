/* k_moe.h - mixtures of experts: routing, dispatch, combine, and activations between products.
 *
 * An expert's slots are given out in order of position among the tokens that chose it, so
 * one thread walks along the positions of a sample for each expert; all else is a block or
 * a thread for each token, slot or number. */
#include "real.h"

DEVICE double plus_double(double a, double b)
{
    return a + b;
}

/* The better of two experts by score, the first where they are equal; -1: none. */
DEVICE int better_of(const double *score, int a, int b)
{
    if (a < 0 || b < 0)
        return a < 0 ? b : a;
    return score[b] > score[a] || (score[b] == score[a] && b < a) ? b : a;
}

DEVICE double sum_of_best_two(const double *score, int64_t n)
{
    double first = score[0], second = n > 1 ? -INFINITY : 0;
    for (int64_t e = 1; e < n; e++) {
        second = score[e] > first ? first : score[e] > second ? score[e] : second;
        first = score[e] > first ? score[e] : first;
    }
    return first + second;
}

/* Where sigmoids alone would decide their logits do, which are never the same 1. */
DEVICE double score_of(const struct cu_route *c, double x, double share, int64_t e)
{
    int by_logit = !c->sigmoid || (!c->correction && c->groups == 1);
    return (by_logit ? x : share) +
           (c->correction ? (double)get(IN(c->correction), e) : 0);
}

/* Close the groups whose two largest scores do not add up to the most; one thread. */
DEVICE void close_groups(const struct cu_route *c, const double *score, uint8_t *open)
{
    int64_t size = c->experts / c->groups;
    for (int64_t g = 0; g < c->groups && c->top_groups < c->groups; g++) {
        double mine = sum_of_best_two(score + g * size, size);
        int64_t before = 0;
        for (int64_t h = 0; h < c->groups; h++) {
            double other = sum_of_best_two(score + h * size, size);
            before += other > mine || (other == mine && h < g);
        }
        for (int64_t e = g * size; e < (g + 1) * size; e++)
            open[e] = before < c->top_groups;
    }
}

/* A block a token: which experts are chosen, and the weights that they would have with a slot. */
KERNEL route_tokens_rows(CALL(cu_route) c)
{
    SHARED double score[CU_EXPERTS];
    SHARED double weight[CU_EXPERTS];
    SHARED double part[THREADS];
    SHARED uint8_t open[CU_EXPERTS];
    SHARED int best[THREADS];
    BLOCKS(token, c.batch * c.seq)
    {
        int64_t at = token * c.experts;
        PHASE
        {
            part[t] = -INFINITY;
            for (int64_t e = t; e < c.experts; e += THREADS) {
                double x = (double)get(IN(c.logit), at + e);
                part[t] = x > part[t] ? x : part[t];
                open[e] = 1;
                c.kept[at + e] = 0;
            }
        }
        for (int half = THREADS / 2; half > 0; half /= 2)
            PHASE
            {
                if (t < half && part[t + half] > part[t])
                    part[t] = part[t + half];
            }
        double most = part[0];
        WAIT;
        PHASE
        {
            for (int64_t e = t; e < c.experts; e += THREADS) {
                double x = (double)get(IN(c.logit), at + e);
                weight[e] = route_share(c.sigmoid, x, most);
                score[e] = score_of(&c, x, weight[e], e);
            }
        }
        PHASE
        {
            if (t == 0)
                close_groups(&c, score, open);
        }
        for (int64_t k = 0; k < c.top_k; k++) {
            PHASE
            {
                best[t] = -1;
                for (int e = t; e < c.experts; e += THREADS)
                    best[t] = open[e] ? better_of(score, best[t], e) : best[t];
            }
            for (int half = THREADS / 2; half > 0; half /= 2)
                PHASE
                {
                    if (t < half)
                        best[t] = better_of(score, best[t], best[t + half]);
                }
            PHASE
            {
                if (t == 0 && best[0] >= 0) {
                    open[best[0]] = 0;
                    c.kept[at + best[0]] = 1;
                }
            }
        }
        PHASE
        {
            part[t] = 0;
            for (int64_t e = t; e < c.experts; e += THREADS) {
                weight[e] *= c.kept[at + e] || c.unnormalized;
                part[t] += weight[e];
            }
        }
        BLOCK_FOLD(part, plus_double)
        double sum = c.sigmoid && c.unnormalized ? 1 : part[0];
        WAIT;
        PHASE
        {
            for (int64_t e = t; e < c.experts; e += THREADS)
                STAT(c.weight)[at + e] = (stat)(weight[e] * c.factor / sum);
        }
    }
}

/* Tokens beyond an expert's capacity are dropped there; the weights of the others are the
 * output. */
KERNEL route_slots_each(CALL(cu_route) c)
{
    EACH(i, c.batch * c.experts)
    {
        int64_t b = quotient(i, c.experts), e = rest(i, c.experts), used = 0;
        for (int64_t s = 0; s < c.seq; s++) {
            int64_t at = (b * c.seq + s) * c.experts + e;
            c.kept[at] = c.kept[at] && used++ < c.slots;
            if (c.g)
                put(OUT(c.g), at, c.kept[at] ? N(STAT(c.weight)[at]) : N(0));
        }
    }
}

static int route_tokens(void *stream, const struct cu_route *c)
{
    LAUNCH(route_tokens_rows, c->batch * c->seq, stream, c);
    LAUNCH(route_slots_each, blocks_for(c->batch * c->experts), stream, c);
    return 0;
}

/* dlogit = w (kept dg - sum of w / factor kept dg), of a sigmoid times what is left of 1 by
 * it and without the sum where sigmoids stand by themselves. */
KERNEL route_slopes_rows(CALL(cu_route) c)
{
    SHARED double sum[THREADS];
    int shared = !(c.sigmoid && c.unnormalized);
    BLOCKS(token, c.batch * c.seq)
    {
        int64_t at = token * c.experts;
        PHASE
        {
            sum[t] = 0;
            for (int64_t e = t; e < c.experts && shared; e += THREADS)
                if (c.kept[at + e])
                    sum[t] += (double)STAT(c.weight)[at + e] / c.factor *
                              (double)get(IN(c.dg), at + e);
        }
        BLOCK_FOLD(sum, plus_double)
        double mean = sum[0];
        WAIT;
        PHASE
        {
            for (int64_t e = t; e < c.experts; e += THREADS) {
                double x = (double)get(IN(c.logit), at + e);
                double left = route_left(c.sigmoid, x);
                double dg = c.kept[at + e] ? (double)get(IN(c.dg), at + e) : 0;
                put(OUT(c.dlogit), at + e,
                    N((double)STAT(c.weight)[at + e] * left * (dg - mean)));
            }
        }
    }
}

static int route_slopes(void *stream, const struct cu_route *c)
{
    LAUNCH(route_slopes_rows, c->batch * c->seq, stream, c);
    return 0;
}

/* ---- dispatch and combine ---------------------------------------------------------- */

KERNEL slots_find_each(CALL(cu_slots) c)
{
    EACH(i, c.batch * c.experts)
    {
        int64_t b = quotient(i, c.experts), e = rest(i, c.experts), used = 0;
        for (int64_t s = 0; s < c.seq; s++) {
            int64_t at = (b * c.seq + s) * c.experts + e;
            int has = used < c.slots && get(IN(c.g), at) != 0;
            c.slot[at] = has ? (int32_t)used : -1;
            if (has)
                c.token[i * c.slots + used++] = (int32_t)s;
        }
        for (; used < c.slots; used++)
            c.token[i * c.slots + used] = -1;
    }
}

static int slots_find(void *stream, const struct cu_slots *c)
{
    LAUNCH(slots_find_each, blocks_for(c->batch * c->experts), stream, c);
    return 0;
}

static inline int64_t slot_numbers(const struct cu_slots *c)
{
    return c->batch * c->experts * c->slots * c->d;
}

/* Number of the slot's token in an operand of tokens; -1: the slot has no token. */
DEVICE int64_t token_number(const struct cu_slots *c, int64_t i)
{
    int64_t slot = quotient(i, c->d), b = quotient(slot, c->slots * c->experts);
    int32_t s = c->token[slot];
    return s < 0 ? -1 : (b * c->seq + s) * c->d + rest(i, c->d);
}

/* Slots get their tokens; those without a token are 0. */
KERNEL slots_fill_each(CALL(cu_slots) c)
{
    EACH(i, c.batch * c.experts * c.slots * c.d)
    {
        int64_t from = token_number(&c, i);
        put(OUT(c.to), i, from < 0 ? N(0) : get(IN(c.from), from));
    }
}

static int slots_fill(void *stream, const struct cu_slots *c)
{
    LAUNCH(slots_fill_each, blocks_for(slot_numbers(c)), stream, c);
    return 0;
}

/* The sum over a token's slots, times their weights where 'weighed'. */
DEVICE num over_slots(const struct cu_slots *c, int64_t i, int weighed)
{
    int64_t token = quotient(i, c->d), b = quotient(token, c->seq);
    wide sum = 0;
    for (int64_t e = 0; e < c->experts; e++) {
        int64_t at = token * c->experts + e, slot = c->slot[at];
        int64_t row = (b * c->experts + e) * c->slots + slot;
        if (slot >= 0)
            sum += W(get(IN(c->from), row * c->d + rest(i, c->d))) *
                   (weighed ? W(get(IN(c->g), at)) : W(1));
    }
    return N(sum);
}

KERNEL slots_return_each(CALL(cu_slots) c)
{
    EACH(i, c.batch * c.seq * c.d)
    put(OUT(c.to), i, over_slots(&c, i, 0));
}

static int slots_return(void *stream, const struct cu_slots *c)
{
    LAUNCH(slots_return_each, blocks_for(c->batch * c->seq * c->d), stream, c);
    return 0;
}

KERNEL slots_combine_each(CALL(cu_slots) c)
{
    EACH(i, c.batch * c.seq * c.d)
    put(OUT(c.to), i, over_slots(&c, i, 1));
}

static int slots_combine(void *stream, const struct cu_slots *c)
{
    LAUNCH(slots_combine_each, blocks_for(c->batch * c->seq * c->d), stream, c);
    return 0;
}

/* Gradients of slots: their weight times that of their token. */
KERNEL slots_weigh_each(CALL(cu_slots) c)
{
    EACH(i, c.batch * c.experts * c.slots * c.d)
    {
        int64_t from = token_number(&c, i), slot = quotient(i, c.d);
        int64_t e = rest(quotient(slot, c.slots), c.experts);
        int64_t weight = from < 0 ? 0 : quotient(from, c.d) * c.experts + e;
        put(OUT(c.to), i, from < 0 ? N(0) : get(IN(c.g), weight) * get(IN(c.dz), from));
    }
}

static int slots_weigh(void *stream, const struct cu_slots *c)
{
    LAUNCH(slots_weigh_each, blocks_for(slot_numbers(c)), stream, c);
    return 0;
}

/* Gradients of weights: a slot's numbers times the gradients of its token. */
KERNEL slots_weights_rows(CALL(cu_slots) c)
{
    SHARED wide sum[THREADS];
    BLOCKS(at, c.batch * c.seq * c.experts)
    {
        int64_t token = quotient(at, c.experts), e = rest(at, c.experts);
        int64_t slot = c.slot[at], b = quotient(token, c.seq);
        int64_t row = (b * c.experts + e) * c.slots + slot;
        PHASE
        {
            sum[t] = 0;
            for (int64_t j = t; j < c.d && slot >= 0; j += THREADS)
                sum[t] +=
                    W(get(IN(c.from), row * c.d + j)) * W(get(IN(c.dz), token * c.d + j));
        }
        BLOCK_FOLD(sum, plus)
        PHASE
        {
            if (t == 0)
                put(OUT(c.dg), at, N(sum[0]));
        }
    }
}

static int slots_weights(void *stream, const struct cu_slots *c)
{
    LAUNCH(slots_weights_rows, c->batch * c->seq * c->experts, stream, c);
    return 0;
}

/* ---- experts ----------------------------------------------------------------------- */

enum { EXPERTS_H = 4, EXPERTS_A, EXPERTS_DA, EXPERTS_DH };

/* Of h, or of the first in each of its pairs, times the second. */
DEVICE void activate_experts(const struct cu_call *c, int to)
{
    const real *h = IN(c->value[EXPERTS_H]);
    EACH(i, elements(c, to))
    put(OUT(c->value[to]), i,
        c->gated ? activated(c, get(h, 2 * i)) * get(h, 2 * i + 1)
                 : activated(c, get(h, i)));
}

KERNEL experts_act_each(CALL(cu_call) c)
{
    activate_experts(&c, EXPERTS_A);
}

static int experts_act(void *stream, const struct cu_call *c)
{
    LAUNCH(experts_act_each, blocks_for(size_of(c, EXPERTS_A)), stream, c);
    return 0;
}

KERNEL experts_remake_each(CALL(cu_call) c)
{
    activate_experts(&c, EXPERTS_DA);
}

static int experts_bwd_remake(void *stream, const struct cu_call *c)
{
    LAUNCH(experts_remake_each, blocks_for(size_of(c, EXPERTS_DA)), stream, c);
    return 0;
}

KERNEL experts_slopes_each(CALL(cu_call) c)
{
    const real *h = IN(c.value[EXPERTS_H]);
    real *dh = OUT(c.value[EXPERTS_DH]);
    EACH(i, elements(&c, EXPERTS_DA))
    {
        num da = get(IN(c.value[EXPERTS_DA]), i);
        if (!c.gated) {
            put(dh, i, da * slope(&c, get(h, i)));
            continue;
        }
        num gate = get(h, 2 * i), up = get(h, 2 * i + 1);
        put(dh, 2 * i, da * up * slope(&c, gate));
        put(dh, 2 * i + 1, da * activated(&c, gate));
    }
}

static int experts_bwd_act(void *stream, const struct cu_call *c)
{
    LAUNCH(experts_slopes_each, blocks_for(size_of(c, EXPERTS_DA)), stream, c);
    return 0;
}
