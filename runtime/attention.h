/* attention.h - where attention's operands lie on one rank and which keys a query sees: what
 * every backend works out of a call before it computes.
 *
 * Queries, keys and values of a group of heads lie in one tensor, or queries in one and keys
 * with their values in another; from here on that is a matter of offsets and distances.
 * Numbers are counted in elements. */
#ifndef RUNTIME_ATTENTION_H
#define RUNTIME_ATTENTION_H

#include "places.h"

#include <math.h>

/* Local sizes.  A key is 'shared' numbers of kr, then 'own' of kv; its value follows there. */
struct attention {
    const struct topt_attrs *attrs;
    int64_t batch, groups,
        group; /* of heads, which share a key and a value; heads of one */
    int64_t s, t, shared, own, vd;
    int64_t rows;                            /* queries at a time */
    int64_t ldq, ldkv, ldkr, ldy, ldl, ldrp; /* from one position to the next */
    int q, kv; /* operands: kv is q where all are in one tensor */
    int64_t q_sample, q_group, kv_group; /* from one sample, one group to the next */
    int64_t q_first, kv_first; /* the first query and key of a sample's first group */
    int64_t first_query, first_key; /* positions */
    int64_t behind;                 /* query i sees the local keys up to i + behind */
    int64_t first_head;             /* of all the model's */
    int64_t table,
        side;  /* rows of the table of relative positions, and of one of its sides */
    int whole; /* all keys are here */
    const int32_t *filled; /* by sample: keys that are no padding, or NULL */
    double scale;
};

static inline struct attention attention_of(const struct topt_kernel_call *c)
{
    enum { H = 1, S, T };
    const struct topt_op *op = c->op;
    const struct topt_attrs *x = op->attrs;
    int packed = !op->operand[ATTENTION_KV].present;
    int has_table = op->operand[ATTENTION_RP].present;
    int64_t group = x->heads / x->kv_heads, hd = x->head_dim;
    struct attention a = {
        .attrs = x,
        .batch = c->len[0],
        .groups = c->len[H],
        .group = group,
        .s = c->len[S],
        .t = c->len[T],
        .shared = op->operand[ATTENTION_KR].present ? extent(c, ATTENTION_KR, 2) : 0,
        .vd = x->v_head_dim ? x->v_head_dim : hd,
        .rows = op->operand[ATTENTION_DP].dim[0].unit,
        .ldq = extent(c, ATTENTION_Q, 2),
        .ldy = extent(c, ATTENTION_Y, 2),
        .ldl = extent(c, ATTENTION_LSE, 2),
        .q = ATTENTION_Q,
        .kv = packed ? ATTENTION_Q : ATTENTION_KV,
        .first_query = c->off[S],
        .first_key = c->off[T],
        .behind = c->off[S] - c->off[T] + op->count[T] - op->count[S],
        .first_head = c->off[H] * group,
        .table = has_table ? op->operand[ATTENTION_RP].dim[0].count : 0,
        .ldrp = has_table ? extent(c, ATTENTION_RP, 1) : 0,
        .whole = c->len[T] == op->count[T],
        .filled = c->filled,
        .scale = x->scale > 0 ? x->scale : 1 / sqrt((double)hd)};
    a.own = hd - a.shared;
    a.ldkr = a.shared;
    a.ldkv = extent(c, a.kv, 2);
    a.side = x->causal ? a.table : a.table / 2;
    a.q_group = packed ? (group + 1) * hd + a.vd : group * hd;
    a.kv_group = packed ? a.q_group : a.own + a.vd;
    a.q_sample = (packed ? a.t : a.s) * a.ldq;
    a.q_first = packed ? (c->off[S] - c->off[T]) * a.ldq : 0;
    a.kv_first = packed ? group * hd : 0;
    return a;
}

/* Query 'i' of head 'h' of group 'g' in sample 'b', and the group's first key. */
static inline int64_t query_at(const struct attention *a, int64_t b, int64_t g, int64_t h,
                               int64_t i)
{
    return b * a->q_sample + a->q_first + i * a->ldq + g * a->q_group +
           h * a->attrs->head_dim;
}

static inline int64_t key_at(const struct attention *a, int64_t b, int64_t g)
{
    return b * a->t * a->ldkv + a->kv_first + g * a->kv_group;
}

static inline int64_t limited(int64_t x, int64_t low, int64_t high)
{
    return x < low ? low : x > high ? high : x;
}

/* Local keys [from, to) of sample 'b' that are no padding. */
static inline void keys_filled(const struct attention *a, int64_t b, int64_t *from,
                               int64_t *to)
{
    *from = a->filled ? limited(a->filled[2 * b] - a->first_key, 0, a->t) : 0;
    *to = a->filled ? limited(a->filled[2 * b + 1] - a->first_key, *from, a->t) : a->t;
}

/* Local keys [from, to) that query 'i' of sample 'b' sees. */
static inline void keys_seen(const struct attention *a, int64_t b, int64_t i,
                             int64_t *from, int64_t *to)
{
    const struct topt_attrs *x = a->attrs;
    int64_t end = i + a->behind + 1, after = x->causal ? 0 : x->window - 1;
    *to = x->causal || x->window ? limited(end + after, 0, a->t) : a->t;
    *from = x->window ? limited(end - x->window, 0, *to) : 0;
    if (x->chunk) {
        int64_t start = (end - 1 + a->first_key) / x->chunk * x->chunk - a->first_key;
        *from = limited(start, *from, *to);
    }
    int64_t first, last;
    keys_filled(a, b, &first, &last);
    *from = limited(*from, first, last);
    *to = limited(*to, *from, last);
}

/* ALiBi's slope of a local head: what a distance of 1 takes off its scores (Press et al., 2022):
 * powers of 2^(-8/n), n the largest power of two that is no more than the heads; beyond, the odd
 * ones of 2^(-8/2n). */
static inline double slope_of_head(const struct attention *a, int64_t head)
{
    int64_t n = 1, k = a->first_head + head;
    while (2 * n <= a->attrs->heads)
        n *= 2;
    double power =
        k < n ? (double)(k + 1) / (double)n : ((double)(k - n) + 0.5) / (double)n;
    return a->attrs->factor > 0 ? a->attrs->factor * pow(2, -8 * power) : 0;
}

#endif
