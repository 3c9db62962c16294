/* ops_mixers.c - rows of the operator table: convolutions along the sequence; and what
 * costs as other operators do that no backend computes yet.
 *
 * A model that has one of the latter can be planned, and says why it can't be run.  Their
 * parameters, operations and bytes are those of what they stand for. */
#include "ops_extents.h"
#include "ops_rows.h"

/* ---- convolution along the sequence ------------------------------------------------ */

static int shape_causal_conv(struct topt_op *op, struct topt_error *err)
{
    enum { X, W, BIAS, Y, KERNEL_DIM = 3 };
    int64_t unit = op->operand[X].dim[2].unit;
    if (op->attrs->kernel_w < 1 || op->attrs->kernel_w > 1 << 16)
        return topt_fail(err, TOPT_ERR_INVAL, "needs a kernel_w of 1 to 65536");
    topt_counts_from_input(op, X);
    op->count[KERNEL_DIM] = op->attrs->kernel_w;
    op->operand[BIAS].present = !op->attrs->plain;
    topt_set_dim(op, W, 0, unit);
    topt_set_dim(op, BIAS, 0, unit);
    topt_set_dim(op, Y, 2, unit);
    return 0;
}

static int64_t flops_causal_conv(const struct topt_op *op, enum topt_kernel k,
                                 const int64_t *len)
{
    int64_t once = 2 * len[0] * len[1] * len[2] * op->operand[0].dim[2].unit;
    return once * op->attrs->kernel_w * (k == TOPT_K_CAUSAL_CONV_FWD ? 1 : 2);
}

/* ---- scan -------------------------------------------------------------------------- */

static int shape_scan(struct topt_op *op, struct topt_error *err)
{
    enum { X, SHARED, P, Y, STATES, G = 3, ONE = 4 };
    const struct topt_attrs *a = op->attrs;
    int64_t chunks, width = topt_unit_of(a->features_unit);
    if (a->state < 1 || a->state > 1 << 20 || width > 1 << 20)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "needs a state of 1 to 2^20 numbers, and units of no more");
    topt_counts_from_input(op, X);
    if (op->operand[SHARED].present)
        op->count[G] = op->operand[SHARED].dim[2].count;
    else
        op->count[G] = 1;
    op->operand[P].present = a->extra > 0;
    topt_set_dim(op, P, 0, topt_unit_of(a->extra));
    topt_set_dim(op, Y, 2, width);
    /* a state at the start of each chunk is kept for backward */
    chunks = a->chunk > 0 ? (op->count[1] + a->chunk - 1) / a->chunk : op->count[1];
    op->count[ONE] = chunks;
    topt_set_dim(op, STATES, 2, a->state * width);
    return 0;
}

/* By chunks (Dao and Gu 2024): scores and weighted sum within one as attention has them,
 * of half of all pairs, what a chunk adds to the state and what it reads of it. */
static int64_t flops_scan(const struct topt_op *op, enum topt_kernel k,
                          const int64_t *len)
{
    const struct topt_attrs *a = op->attrs;
    int64_t width = topt_unit_of(a->features_unit), state = a->state;
    int64_t chunk = a->chunk < op->count[1] ? a->chunk : op->count[1];
    int64_t token = chunk * (state + width) + 4 * state * width;
    return len[0] * len[1] * len[2] * token * (k == TOPT_K_SCAN_FWD ? 1 : 2);
}

/* ---- beside ------------------------------------------------------------------------ */

static int shape_beside(struct topt_op *op, struct topt_error *err)
{
    enum { X, P, Y };
    if (op->attrs->extra < 1)
        return topt_fail(err, TOPT_ERR_INVAL, "needs an extra of at least 1");
    if (topt_shape_same(op, err))
        return -1;
    topt_set_dim(op, P, 0, op->attrs->extra);
    return 0;
}

/* Megatron-LM adds the first product's bias in the product, but clamps gates and values by a kernel each and joins them by a
 * third before the activation; and it adds the second's, times a token's weight, by a product and a sum of each expert,
 * which a copy joins (core/transformer/moe/experts.py and core/fusions/fused_bias_geglu.py at 92c8482, 2025-11).  Forward
 * two clamps and a copy read and write 4 of each number, a product, a sum and a copy 1 + 3 + 2; backward, as autograd does
 * it (PyTorch v2.14.1, torch/csrc/autograd/FunctionsManual.cpp), comparisons make masks of bytes, by which gradients are
 * chosen and joined again, and those of biases and weights are products and sums.  Recipes make the activation again
 * (moe_act), and what it keeps besides is not counted. */
static enum topt_eager_how eager_expert_biases(const struct topt_op *op,
                                               const int64_t *len, int writes,
                                               struct topt_eager *ret)
{
    int64_t n = topt_output_numbers(op, len), experts = len[1];
    int64_t width = op->count[2] * op->operand[0].dim[2].unit;
    /* that the first product makes */
    int64_t inner = n / width * (op->attrs->extra - width);
    if (!(writes & TOPT_EAGER_BIASES))
        return TOPT_EAGER_ALIKE;
    *ret = (struct topt_eager){
        .moved = {{.real = 6 * n + 4 * inner},
                  {.real = 8 * n + 11 * inner / 2, .bytes = 4 * inner}},
        .kernels = {(int)(2 * experts) + 4, (int)(4 * experts) + 8},
        .work = {{.real = 2 * inner}, {.real = 2 * inner}}};
    return TOPT_EAGER_INSTEAD;
}

/* Tokens of another tower stand at their places among those of a text. */
static int shape_insert(struct topt_op *op, struct topt_error *err)
{
    enum { X, Z, Y, T = 3 };
    topt_counts_from_input(op, X);
    op->count[T] = op->operand[Z].dim[1].count;
    topt_set_dim(op, Y, 2, op->operand[X].dim[2].unit);
    return topt_refuse_units(op, Z, op->operand[X].dim[2].unit, err);
}

/* ---- own --------------------------------------------------------------------------- */

static int shape_own(struct topt_op *op, struct topt_error *err)
{
    enum { X, P, Y, OUT = 3, NUMBERS };
    const struct topt_attrs *a = op->attrs;
    topt_counts_from_input(op, X);
    op->count[OUT] = a->features > 0 ? a->features : op->count[2];
    topt_set_dim(op, Y, 2, a->features > 0 ? 1 : op->operand[X].dim[2].unit);
    op->operand[P].present = a->extra > 0;
    op->count[NUMBERS] = a->extra;
    (void)err;
    return 0;
}

static int64_t flops_own(const struct topt_op *op, enum topt_kernel k, const int64_t *len)
{
    return len[0] * len[1] * op->attrs->flops * (k == TOPT_K_OWN_FWD ? 1 : 2);
}

/* ---- rows -------------------------------------------------------------------------- */

/* clang-format off */
#define WHOLE_SEQ {"s", TOPT_SPLIT_NEVER}
/* clang-format on */

const struct topt_op_spec topt_ops_mixers[] = {
    /* Each feature by itself, over its kernel_w last positions. */
    {.name = "causal_conv",
     .attrs = A(KERNEL_W) | A(PLAIN) | A(INIT_STD),
     .ndims = 4,
     .dim = {BATCH, WHOLE_SEQ, FEATURES, {"k", TOPT_SPLIT_NEVER}},
     .noperands = 4,
     .operand = {OPERAND("x", INPUT, OVER(0, 1, 2)),
                 OPERAND("w", PARAM, OVER(2, 3), .start = TOPT_START_FAN_LAST),
                 OPERAND("b", PARAM, OVER(2), .optional = 1, .start = TOPT_START_ZERO),
                 OPERAND("y", OUTPUT, OVER(0, 1, 2))},
     .forward = {KERNEL(CAUSAL_CONV_FWD, V(0) | V(1) | V(2), V(3))},
     .backward = {KERNEL(CAUSAL_CONV_BWD, V(0) | V(1) | G(3), G(0) | G(1) | G(2))},
     .shape = shape_causal_conv,
     .flops = flops_causal_conv},
    /* A recurrence that is linear in its state, [state, unit] numbers of each head: what
     * lightning attention and RWKV cost.  A count of x holds what a head adds, 'shared'
     * what several read alike. */
    {.name = "scan",
     .attrs = A(FEATURES_UNIT) | A(STATE) | A(CHUNK) | A(EXTRA) | A(INIT_STD),
     .plan_only = "lightning attention or RWKV",
     .ndims = 5,
     .dim = {BATCH,
             WHOLE_SEQ,
             {"h", TOPT_SPLIT_FEATURE},
             {"g", TOPT_SPLIT_NEVER},
             {"c", TOPT_SPLIT_NEVER}},
     .noperands = 5,
     .operand = {OPERAND("x", INPUT, OVER(0, 1, 2)),
                 OPERAND("shared", INPUT, OVER(0, 1, 3), .optional = 1),
                 OPERAND("p", PARAM, OVER(2), .optional = 1),
                 OPERAND("y", OUTPUT, OVER(0, 1, 2)),
                 OPERAND("states", SAVED, OVER(0, 4, 2))},
     .forward = {KERNEL(SCAN_FWD, V(0) | V(1) | V(2), V(3) | V(4))},
     .backward = {KERNEL(SCAN_BWD, V(0) | V(1) | V(2) | V(4) | G(3), G(0) | G(1) | G(2))},
     .shape = shape_scan,
     .flops = flops_scan},
    /* x as it is, and 'extra' numbers of each feature that the operator after it reads. */
    {.name = "beside",
     .attrs = A(EXTRA) | A(INIT_STD),
     .plan_only = "attention sinks or other extra parameters of operators",
     .ndims = 3,
     .dim = {BATCH, SEQ, FEATURES},
     .noperands = 3,
     .operand = {OPERAND("x", INPUT, OVER(0, 1, 2)), OPERAND("p", PARAM, OVER(2)),
                 OPERAND("y", OUTPUT, OVER(0, 1, 2))},
     .forward = {KERNEL(BESIDE_FWD, V(0), V(2))},
     .backward = {KERNEL(BESIDE_BWD, G(2), G(0) | G(1))},
     .shape = shape_beside,
     .flops = topt_flops_none},
    /* The same of experts, where they are the middle dimension. */
    {.name = "beside_experts",
     .attrs = A(EXTRA) | A(INIT_STD),
     .plan_only = "biases of experts",
     .ndims = 3,
     .dim = {BATCH, {"e", TOPT_SPLIT_FEATURE}, FEATURES},
     .noperands = 3,
     .operand = {OPERAND("x", INPUT, OVER(0, 1, 2), .slots = 1),
                 OPERAND("p", PARAM, OVER(1)), OPERAND("y", OUTPUT, OVER(0, 1, 2))},
     .forward = {KERNEL(BESIDE_FWD, V(0), V(2))},
     .backward = {KERNEL(BESIDE_BWD, G(2), G(0) | G(1))},
     .shape = shape_beside,
     .flops = topt_flops_none,
     .eager = eager_expert_biases},
    /* x with rows of z at the places that are theirs. */
    {.name = "insert",
     .plan_only = "image or audio tokens among text tokens",
     .ndims = 4,
     .dim = {BATCH, WHOLE_SEQ, FEATURES, {"t", TOPT_SPLIT_NEVER}},
     .noperands = 3,
     .operand = {OPERAND("x", INPUT, OVER(0, 1, 2)), OPERAND("z", INPUT, OVER(0, 3, 2)),
                 OPERAND("y", OUTPUT, OVER(0, 1, 2))},
     .forward = {KERNEL(INSERT_FWD, V(0) | V(1), V(2))},
     .backward = {KERNEL(INSERT_BWD, G(2), G(0) | G(1))},
     .shape = shape_insert,
     .flops = topt_flops_none},
    /* What a program makes itself of each position, by 'extra' numbers that all share. */
    {.name = "own",
     .attrs = A(FEATURES) | A(EXTRA) | A(FLOPS) | A(INIT_STD),
     .ndims = 5,
     .dim = {BATCH,
             SEQ,
             {"d", TOPT_SPLIT_NEVER},
             {"n", TOPT_SPLIT_NEVER},
             {"p", TOPT_SPLIT_NEVER}},
     .noperands = 3,
     .operand = {OPERAND("x", INPUT, OVER(0, 1, 2)),
                 OPERAND("p", PARAM, OVER(4), .optional = 1),
                 OPERAND("y", OUTPUT, OVER(0, 1, 3))},
     .forward = {KERNEL(OWN_FWD, V(0) | V(1), V(2))},
     .backward = {KERNEL(OWN_BWD, V(0) | V(1) | G(2), G(0) | G(1))},
     .shape = shape_own,
     .flops = flops_own},
    {.name = NULL},
};
