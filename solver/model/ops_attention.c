/* ops_attention.c - rows of the operator table: attention and what belongs to it. */
#include "ops.h"

/* ---- attention ------------------------------------------------------------------------- */

static int shape_attention(struct topt_op *op, struct topt_error *err)
{
    struct topt_attrs *a = &op->attrs;
    if (a->kv_heads == 0)
        a->kv_heads = a->heads;
    if (a->heads < 1 || a->kv_heads < 1 || a->head_dim < 1 || a->heads % a->kv_heads)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "heads %lld, kv_heads %lld, head_dim %lld do not fit together",
                         (long long)a->heads, (long long)a->kv_heads,
                         (long long)a->head_dim);
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
    {.name = NULL},
};
