/* ops_attention.c - rows of the operator table: attention and what belongs to it.
 *
 * 'attention' takes queries, keys and values of one sequence in one tensor and rotates them
 * itself; 'attend' takes queries of one sequence and keys and values of the same or another.
 * There both sequences may be split: queries freely, keys by merging what each part makes
 * of its own softmax (as Dao et al. 2022 merge tiles):
 *
 *     m = max of the parts' log-sum-exps, w = sum of e^(lse - m), y = sum of e^(lse - m) / w y
 */
#include "ops.h"

/* Heads of one size in whole groups; products of these are far from overflowing. */
static int check_heads(struct topt_attrs *a, struct topt_error *err)
{
    enum { MOST = 1 << 20 };
    if (a->kv_heads == 0)
        a->kv_heads = a->heads;
    if (a->heads < 1 || a->kv_heads < 1 || a->head_dim < 1 || a->heads % a->kv_heads)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "heads %lld, kv_heads %lld, head_dim %lld do not fit together",
                         (long long)a->heads, (long long)a->kv_heads,
                         (long long)a->head_dim);
    if (a->heads > MOST || a->head_dim > MOST || a->v_head_dim > MOST)
        return topt_fail(err, TOPT_ERR_LIMIT,
                         "more than 2^20 heads, or numbers of a head");
    return 0;
}

/* ---- attention ------------------------------------------------------------------------- */

static int shape_attention(struct topt_op *op, struct topt_error *err)
{
    struct topt_attrs *a = &op->attrs;
    if (check_heads(a, err))
        return -1;
    if (a->rope_theta > 0 && a->head_dim % 2)
        return topt_fail(err, TOPT_ERR_INVAL, "rotary embedding needs an even head_dim");
    topt_counts_from_input(op, 0);
    if (op->count[2] > 1 << 22)
        return topt_fail(err, TOPT_ERR_LIMIT, "attention over more than 2^22 positions");
    int64_t q = a->heads / a->kv_heads;
    if (op->count[1] != a->kv_heads)
        return topt_fail(err, TOPT_ERR_INVAL, "input has %lld key-value heads, not %lld",
                         (long long)op->count[1], (long long)a->kv_heads);
    if (topt_refuse_units(op, 0, (q + 2) * a->head_dim, err))
        return -1;
    topt_set_dim(op, 1, 2, q * a->head_dim);
    topt_set_dim(op, 2, 2, q);
    return 0;
}

/* Scores and weighted sum forward; backward does both again and three more products. */
static int64_t flops_attention(const struct topt_op *op, enum topt_kernel k,
                               const int64_t *len)
{
    int64_t q = op->attrs.heads / op->attrs.kv_heads;
    int64_t product = 2 * len[0] * len[1] * q * len[2] * len[2] * op->attrs.head_dim;
    int64_t products = k == TOPT_K_ATTENTION_FWD ? 2 : 5;
    return op->attrs.causal ? products * product / 2 : products * product;
}

/* ---- attend ---------------------------------------------------------------------------- */

enum { ATTEND_ROWS = 64 };

/* Dimensions and operands of 'attend'. */
enum { B, H, S, T, ONE };
enum { Q, KV, KR, Y, LSE, MOST, WEIGHT, SCORES, P, DP, DELTA };

static int attend_lengths(const struct topt_op *op, struct topt_error *err)
{
    int64_t s = op->count[S], t = op->count[T];
    if (op->attrs.causal && t < s)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "a causal mask over %lld queries needs as many keys, not %lld",
                         (long long)s, (long long)t);
    if (s > 1 << 22 || t > 1 << 22)
        return topt_fail(err, TOPT_ERR_LIMIT, "attention over more than 2^22 positions");
    return 0;
}

static int shape_attend(struct topt_op *op, struct topt_error *err)
{
    static const int by_head[] = {LSE, MOST, WEIGHT, DELTA}, by_key[] = {SCORES, P, DP};
    struct topt_attrs *a = &op->attrs;
    if (check_heads(a, err))
        return -1;
    if (a->v_head_dim == 0)
        a->v_head_dim = a->head_dim;
    if (a->window && !a->causal)
        return topt_fail(err, TOPT_ERR_INVAL, "a window of keys needs a causal mask");
    int64_t group = a->heads / a->kv_heads;
    int64_t shared = op->operand[KR].present ? op->operand[KR].dim[2].unit : 0;
    topt_counts_from_input(op, KV);
    topt_counts_from_input(op, Q);
    op->count[ONE] = 1;
    if (op->count[H] != a->kv_heads)
        return topt_fail(err, TOPT_ERR_INVAL, "input has %lld key-value heads, not %lld",
                         (long long)op->count[H], (long long)a->kv_heads);
    if (shared >= a->head_dim)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "%lld numbers of a key are shared, of a head_dim of %lld",
                         (long long)shared, (long long)a->head_dim);
    if (topt_refuse_units(op, Q, group * a->head_dim, err) ||
        topt_refuse_units(op, KV, a->head_dim - shared + a->v_head_dim, err) ||
        attend_lengths(op, err))
        return -1;
    topt_set_dim(op, Y, 2, group * a->v_head_dim);
    for (int i = 0; i < 4; i++)
        topt_set_dim(op, by_head[i], 2, group);
    for (int i = 0; i < 3; i++)
        topt_set_dim(op, by_key[i], 0,
                     op->count[S] < ATTEND_ROWS ? op->count[S] : ATTEND_ROWS);
    return 0;
}

/* Pairs of a query and a key in a box: the mask's mean share of them all. */
static double pairs_of(const struct topt_op *op, const int64_t *len)
{
    double s = (double)op->count[S], t = (double)op->count[T];
    double w = (double)op->attrs.window, share = 1;
    if (op->attrs.causal)
        share = w > 0 && w < t ? w * (2 * t - w) / (2 * t * t) : 1 - s / (2 * t);
    return (double)len[S] * (double)len[T] * share;
}

/* Scores and weighted sum forward; backward does both again and three more products, and
 * where keys are split also the rows' sums before them. */
static int64_t flops_attend(const struct topt_op *op, enum topt_kernel k,
                            const int64_t *len)
{
    int64_t heads = len[B] * len[H] * (op->attrs.heads / op->attrs.kv_heads);
    int64_t keys = op->attrs.head_dim, values = op->attrs.v_head_dim, width;
    switch (k) {
    case TOPT_K_ATTEND_FWD:
        width = keys + values;
        break;
    case TOPT_K_ATTEND_BWD:
        width = 3 * keys + 2 * values;
        break;
    case TOPT_K_ATTEND_DELTA:
        width = len[T] < op->count[T] ? keys + values : 0;
        break;
    default:
        return 8 * heads * len[S] * values;
    }
    return 2 * heads * (int64_t)(pairs_of(op, len) * (double)width);
}

/* ---- rotary ---------------------------------------------------------------------------- */

static int shape_rotary(struct topt_op *op, struct topt_error *err)
{
    enum { MOST_ROTATED = 1024 };
    struct topt_attrs *a = &op->attrs;
    int64_t unit = op->operand[0].dim[2].unit;
    if (a->head_dim == 0)
        a->head_dim = unit;
    if (a->rope_dim == 0)
        a->rope_dim = a->head_dim;
    if (!(a->rope_theta > 0))
        a->rope_theta = 10000;
    if (unit % a->head_dim || a->rope_dim > a->head_dim || a->rope_dim % 2)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "rope_dim %lld and head_dim %lld do not fit units of %lld",
                         (long long)a->rope_dim, (long long)a->head_dim, (long long)unit);
    if (a->rope_dim > MOST_ROTATED)
        return topt_fail(err, TOPT_ERR_LIMIT, "rope_dim %lld is more than %d",
                         (long long)a->rope_dim, MOST_ROTATED);
    return topt_shape_same(op, err);
}

/* ---- rows ------------------------------------------------------------------------------ */

const struct topt_op_spec topt_ops_attention[] = {
    {.name = "attention",
     .attrs = A(HEADS) | A(KV_HEADS) | A(HEAD_DIM) | A(CAUSAL) | A(ROPE_THETA),
     .ndims = 3,
     .dim = {BATCH, {"h", TOPT_SPLIT_FEATURE}, {"s", TOPT_SPLIT_NEVER}},
     .noperands = 6,
     .operand =
         {{.name = "qkv", .role = TOPT_INPUT, .ndim = 3, .dim = {0, 2, 1}, .needed = 1},
          {.name = "y", .role = TOPT_OUTPUT, .ndim = 3, .dim = {0, 2, 1}},
          {.name = "lse", .role = TOPT_SAVED, .ndim = 3, .dim = {0, 2, 1}},
          {.name = "scores", .role = TOPT_WORK_FWD, .ndim = 2, .dim = {2, 2}},
          {.name = "p", .role = TOPT_WORK_BWD, .ndim = 2, .dim = {2, 2}},
          {.name = "dp", .role = TOPT_WORK_BWD, .ndim = 2, .dim = {2, 2}}},
     .forward = {KERNEL(ATTENTION_FWD, V(0) | V(3), V(1) | V(2))},
     .backward = {KERNEL(ATTENTION_BWD, V(0) | V(2) | V(4) | V(5) | G(1), G(0))},
     .shape = shape_attention,
     .flops = flops_attention},
    /* A count of q holds the heads of a group, one of kv the key and then the value that they
     * share.  With 'kr' the first numbers of each key come from there and are the same for all
     * heads (multi-head latent attention).  Query i sees the keys up to i + t - s where
     * causal, the last 'window' of them where that is set.  Scores are kept for a few queries
     * at a time. */
    {.name = "attend",
     .attrs = A(HEADS) | A(KV_HEADS) | A(HEAD_DIM) | A(V_HEAD_DIM) | A(CAUSAL) |
              A(WINDOW) | A(SCALE),
     .ndims = 5,
     .dim = {BATCH,
             {"h", TOPT_SPLIT_FEATURE},
             SEQ,
             {"t", TOPT_SPLIT_SEQUENCE},
             {"one", TOPT_SPLIT_NEVER}},
     .noperands = 11,
     .operand =
         {{.name = "q", .role = TOPT_INPUT, .ndim = 3, .dim = {B, S, H}, .needed = 1},
          {.name = "kv", .role = TOPT_INPUT, .ndim = 3, .dim = {B, T, H}, .needed = 1},
          {.name = "kr",
           .role = TOPT_INPUT,
           .ndim = 3,
           .dim = {B, T, ONE},
           .needed = 1,
           .optional = 1},
          {.name = "y", .role = TOPT_OUTPUT, .ndim = 3, .dim = {B, S, H}},
          {.name = "lse", .role = TOPT_SAVED, .ndim = 3, .dim = {B, S, H}},
          {.name = "most", .role = TOPT_WORK_FWD, .ndim = 3, .dim = {B, S, H}},
          {.name = "weight", .role = TOPT_WORK_FWD, .ndim = 3, .dim = {B, S, H}},
          {.name = "scores", .role = TOPT_WORK_FWD, .ndim = 1, .dim = {T}},
          {.name = "p", .role = TOPT_WORK_BWD, .ndim = 1, .dim = {T}},
          {.name = "dp", .role = TOPT_WORK_BWD, .ndim = 1, .dim = {T}},
          {.name = "delta", .role = TOPT_WORK_BWD, .ndim = 3, .dim = {B, S, H}}},
     .forward = {KERNEL(ATTEND_FWD, V(Q) | V(KV) | V(KR) | V(SCORES),
                        V(Y) | V(LSE) | V(MOST)),
                 MAX(MOST, D(T)), KERNEL(ATTEND_WEIGHT, V(LSE) | V(MOST), V(WEIGHT)),
                 SUM(WEIGHT, D(T)),
                 KERNEL(ATTEND_MERGE, V(Y) | V(LSE) | V(MOST) | V(WEIGHT),
                        V(Y) | V(LSE))},
     .backward = {KERNEL(ATTEND_DELTA,
                         V(Q) | V(KV) | V(KR) | V(LSE) | V(P) | V(DP) | G(Y), V(DELTA)),
                  SUM(DELTA, D(T)),
                  KERNEL(ATTEND_BWD,
                         V(Q) | V(KV) | V(KR) | V(LSE) | V(P) | V(DP) | V(DELTA) | G(Y),
                         G(Q) | G(KV) | G(KR))},
     .shape = shape_attend,
     .flops = flops_attend},
    /* The first rope_dim of each head_dim numbers are turned by their position, number j with
     * number j + rope_dim / 2. */
    {.name = "rotary",
     .attrs = A(HEAD_DIM) | A(ROPE_DIM) | A(ROPE_THETA),
     .ndims = 3,
     .dim = {BATCH, SEQ, {"d", TOPT_SPLIT_FEATURE}},
     .noperands = 2,
     .operand = {{.name = "x", .role = TOPT_INPUT, .ndim = 3, .dim = {0, 1, 2}},
                 {.name = "y", .role = TOPT_OUTPUT, .ndim = 3, .dim = {0, 1, 2}}},
     .forward = {KERNEL(ROTARY_FWD, V(0), V(1))},
     .backward = {KERNEL(ROTARY_BWD, G(1), G(0))},
     .shape = shape_rotary,
     .flops = topt_flops_elementwise},
    {.name = NULL},
};
