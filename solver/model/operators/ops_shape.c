/* ops_shape.c - rows of the operator table: what cuts, joins, rearranges and reduces
 * tensors, drops numbers at random, and what ends a model of real numbers.
 *
 * Features are counts of a unit.  What works inside the unit (slice, concat) leaves
 * the counts as they are, so they may be split as ever; what works on the counts
 * (concat_counts) needs them whole; regroup keeps the numbers' order and gives them
 * other counts, so blocks of both are the same numbers where the parts divide both
 * counts: the dimension is 'even'. */
#include "ops_extents.h"
#include "ops_rows.h"

/* ---- inside the unit --------------------------------------------------------------- */

static int shape_slice(struct topt_op *op, struct topt_error *err)
{
    int i = op->spec->operand[0].ndim == 3 ? 2 : 1;
    int64_t from = op->attrs->offset, width = topt_unit_of(op->attrs->features_unit);
    topt_counts_from_input(op, 0);
    int64_t unit = op->operand[0].dim[i].unit;
    if (from > unit - width)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "numbers %lld to %lld of units of %lld are asked for",
                         (long long)from, (long long)(from + width - 1), (long long)unit);
    topt_set_dim(op, 1, i, width);
    return 0;
}

static int shape_concat(struct topt_op *op, struct topt_error *err)
{
    enum { Y = 4 };
    int64_t unit = 0;
    (void)err;
    topt_counts_from_input(op, 0);
    for (int i = 0; i < op->ninputs; i++)
        unit += op->operand[op->input[i]].dim[2].unit;
    topt_set_dim(op, Y, 2, unit);
    return 0;
}

/* ---- over counts ------------------------------------------------------------------- */

/* Features are the dimension that the rows mark as the operands' own. */
static int shape_concat_counts(struct topt_op *op, struct topt_error *err)
{
    enum { Y = 4 };
    int i = op->spec->operand[Y].ndim == 3 ? 2 : 1, d = op->spec->operand[Y].dim[i];
    int64_t unit = op->operand[0].dim[i].unit, count = 0;
    topt_counts_from_input(op, 0);
    for (int k = 0; k < op->ninputs; k++) {
        const struct topt_dim *x = &op->operand[op->input[k]].dim[i];
        if (x->unit != unit)
            return topt_fail(err, TOPT_ERR_INVAL,
                             "features in groups of %lld and of %lld can't be joined",
                             (long long)unit, (long long)x->unit);
        count += x->count;
    }
    op->count[d] = count;
    topt_set_dim(op, Y, i, unit);
    return 0;
}

int64_t topt_common_divisor(int64_t a, int64_t b)
{
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static int shape_regroup(struct topt_op *op, struct topt_error *err)
{
    int i = op->spec->operand[0].ndim == 3 ? 2 : 1, d = op->spec->operand[0].dim[i];
    const struct topt_dim x = op->operand[0].dim[i];
    struct topt_dim y = {op->attrs->features, topt_unit_of(op->attrs->features_unit)};
    if (y.count < 1 || x.count * x.unit % y.count || x.count * x.unit / y.count != y.unit)
        return topt_fail(
            err, TOPT_ERR_INVAL, "%lld features of %lld numbers can't be %lld of %lld",
            (long long)x.count, (long long)x.unit, (long long)y.count, (long long)y.unit);
    topt_counts_from_input(op, 0);
    op->count[d] = topt_common_divisor(x.count, y.count);
    op->operand[1].dim[i] = y;
    return 0;
}

static int shape_shuffle(struct topt_op *op, struct topt_error *err)
{
    const struct topt_dim *c = &op->operand[0].dim[1];
    int64_t groups = op->attrs->groups;
    if (groups < 1 || c->count * c->unit % groups)
        return topt_fail(err, TOPT_ERR_INVAL, "%lld channels can't be %lld groups",
                         (long long)(c->count * c->unit), (long long)groups);
    return topt_shape_same(op, err);
}

static int shape_transpose(struct topt_op *op, struct topt_error *err)
{
    topt_counts_from_input(op, 0);
    return topt_refuse_units(op, 0, 1, err);
}

static int shape_reduce_sequence(struct topt_op *op, struct topt_error *err)
{
    enum { ONE = 3 };
    (void)err;
    topt_counts_from_input(op, 0);
    op->count[ONE] = 1;
    topt_set_dim(op, 1, 2, op->operand[0].dim[2].unit);
    return 0;
}

static int shape_reduce_features(struct topt_op *op, struct topt_error *err)
{
    enum { ONE = 3 };
    (void)err;
    topt_counts_from_input(op, 0);
    op->count[ONE] = 1;
    return 0;
}

static int shape_select(struct topt_op *op, struct topt_error *err)
{
    if (shape_reduce_sequence(op, err))
        return -1;
    return op->attrs->offset < op->count[1]
               ? 0
               : topt_fail(err, TOPT_ERR_INVAL, "position %lld of %lld is asked for",
                           (long long)op->attrs->offset, (long long)op->count[1]);
}

static int shape_prepend(struct topt_op *op, struct topt_error *err)
{
    enum { S = 1, ONE = 3 };
    int64_t unit = op->operand[0].dim[2].unit;
    (void)err;
    topt_counts_from_input(op, 0);
    op->count[S]++;
    op->count[ONE] = 1;
    topt_set_dim(op, 1, 1, unit);
    topt_set_dim(op, 2, 2, unit);
    return 0;
}

/* ---- numbers ----------------------------------------------------------------------- */

/* The output, and a byte a number that says what was dropped. */
static enum topt_eager_how eager_dropout(const struct topt_op *op, const int64_t *len,
                                         int writes, struct topt_eager *ret)
{
    struct topt_numbers once = {.real = 2 * topt_output_numbers(op, len),
                                .bytes = topt_output_numbers(op, len)};
    (void)writes;
    *ret = (struct topt_eager){
        .moved = {once, once}, .kernels = {1, 1}, .kept.bytes = once.bytes};
    return TOPT_EAGER_INSTEAD;
}

static int shape_dropout(struct topt_op *op, struct topt_error *err)
{
    if (!(op->attrs->rate < 1))
        return topt_fail(err, TOPT_ERR_INVAL, "rate must be less than 1, not %g",
                         op->attrs->rate);
    return topt_shape_same(op, err);
}

/* Where the output has lost the features, or the positions: by the input's elements. */
static int64_t flops_of_input(const struct topt_op *op, enum topt_kernel k,
                              const int64_t *len)
{
    (void)k;
    return 8 * len[0] * len[1] * len[2] * op->operand[0].dim[2].unit;
}

/* ---- rows -------------------------------------------------------------------------- */

/* clang-format off */
#define WHOLE     {"d", TOPT_SPLIT_NEVER}
#define ONE       {"one", TOPT_SPLIT_NEVER}
#define IN(n, o)  OPERAND(n, INPUT, OVER(0, 1, 2), .optional = (o))
#define OWN(n, o) OPERAND(n, INPUT, OVER(0, 1, 2), \
                   .own = 1 << 2, .optional = (o))
#define OWN4(n, o) OPERAND(n, INPUT, IMAGE, \
                    .own = 1 << 1, .optional = (o))
#define OUT       OPERAND("y", OUTPUT, OVER(0, 1, 2))
#define JOIN      .noperands = 5,                                                          \
                  .forward = {KERNEL(CONCAT_FWD, V(0) | V(1) | V(2) | V(3), V(4))},        \
                  .backward = {KERNEL(CONCAT_BWD, G(4), G(0) | G(1) | G(2) | G(3))}
/* clang-format on */

/* One count is left of positions or of features: 'd1' and 'd2' are those of the output. */
#define ONE_LEFT(n, attr, k, d1, d2)                                                     \
    .name = (n), .attrs = A(attr), .ndims = 4, .dim = {BATCH, SEQ, FEATURES, ONE},       \
    .noperands = 2, .operand = {IN("x", 0), OPERAND("y", OUTPUT, OVER(0, d1, d2))},      \
    .forward = {KERNEL(k##_FWD, V(0), V(1))}, .backward = {KERNEL(k##_BWD, G(1), G(0))}

const struct topt_op_spec topt_ops_shape[] = {
    {.name = "slice",
     .attrs = A(OFFSET) | A(FEATURES_UNIT),
     .ndims = 3,
     .dim = {BATCH, SEQ, FEATURES},
     .noperands = 2,
     .operand = {IN("x", 0), OUT},
     .forward = {KERNEL(SLICE_FWD, V(0), V(1))},
     .backward = {KERNEL(SLICE_BWD, G(1), G(0))},
     .shape = shape_slice,
     .flops = topt_flops_none},
    {.name = "slice",
     .attrs = A(OFFSET) | A(FEATURES_UNIT),
     .ndims = 4,
     .dim = {BATCH, CHANNELS, IMAGE_ROWS, IMAGE_COLS},
     .noperands = 2,
     .operand = {OPERAND("x", INPUT, IMAGE), OPERAND("y", OUTPUT, IMAGE)},
     .forward = {KERNEL(SLICE_FWD, V(0), V(1))},
     .backward = {KERNEL(SLICE_BWD, G(1), G(0))},
     .shape = shape_slice,
     .flops = topt_flops_none},
    /* Channels from [groups][channels of a group] to the other way round (Zhang et al.
     * 2018). */
    {.name = "shuffle",
     .attrs = A(GROUPS),
     .ndims = 4,
     .dim = {BATCH, {"c", TOPT_SPLIT_NEVER}, IMAGE_ROWS, IMAGE_COLS},
     .noperands = 2,
     .operand = {OPERAND("x", INPUT, IMAGE), OPERAND("y", OUTPUT, IMAGE)},
     .forward = {KERNEL(SHUFFLE_FWD, V(0), V(1))},
     .backward = {KERNEL(SHUFFLE_BWD, G(1), G(0))},
     .shape = shape_shuffle,
     .flops = topt_flops_none},
    {.name = "concat",
     .ndims = 3,
     .dim = {BATCH, SEQ, FEATURES},
     .operand = {IN("x0", 0), IN("x1", 0), IN("x2", 1), IN("x3", 1), OUT},
     JOIN,
     .shape = shape_concat,
     .flops = topt_flops_none},
    {.name = "concat_counts",
     .ndims = 3,
     .dim = {BATCH, SEQ, WHOLE},
     .operand = {OWN("x0", 0), OWN("x1", 0), OWN("x2", 1), OWN("x3", 1), OUT},
     JOIN,
     .shape = shape_concat_counts,
     .flops = topt_flops_none},
    {.name = "concat_counts",
     .ndims = 4,
     .dim = {BATCH, {"c", TOPT_SPLIT_NEVER}, IMAGE_ROWS, IMAGE_COLS},
     .operand = {OWN4("x0", 0), OWN4("x1", 0), OWN4("x2", 1), OWN4("x3", 1),
                 OPERAND("y", OUTPUT, IMAGE)},
     JOIN,
     .shape = shape_concat_counts,
     .flops = topt_flops_none},
    {.name = "regroup",
     .attrs = A(FEATURES) | A(FEATURES_UNIT),
     .ndims = 3,
     .dim = {BATCH, SEQ, FEATURES},
     .even = D(2),
     .noperands = 2,
     .operand = {OWN("x", 0), OPERAND("y", OUTPUT, OVER(0, 1, 2), .own = 1 << 2)},
     .forward = {KERNEL(COPY_FWD, V(0), V(1))},
     .backward = {KERNEL(COPY_BWD, G(1), G(0))},
     .shape = shape_regroup,
     .flops = topt_flops_none},
    {.name = "regroup",
     .attrs = A(FEATURES) | A(FEATURES_UNIT),
     .ndims = 4,
     .dim = {BATCH, CHANNELS, IMAGE_ROWS, IMAGE_COLS},
     .even = D(1),
     .noperands = 2,
     .operand = {OWN4("x", 0), OPERAND("y", OUTPUT, IMAGE, .own = 1 << 1)},
     .forward = {KERNEL(COPY_FWD, V(0), V(1))},
     .backward = {KERNEL(COPY_BWD, G(1), G(0))},
     .shape = shape_regroup,
     .flops = topt_flops_none},
    /* Positions become features and features positions. */
    {.name = "transpose",
     .ndims = 3,
     .dim = {BATCH, SEQ, FEATURES},
     .noperands = 2,
     .operand = {IN("x", 0), OPERAND("y", OUTPUT, OVER(0, 2, 1))},
     .forward = {KERNEL(TRANSPOSE_FWD, V(0), V(1))},
     .backward = {KERNEL(TRANSPOSE_BWD, G(1), G(0))},
     .shape = shape_transpose,
     .flops = topt_flops_none},
    /* Sum or mean over all positions, or over all features; one is left. */
    {ONE_LEFT("reduce_sequence", MEAN, REDUCE_SEQUENCE, 3, 2),
     .shape = shape_reduce_sequence, .flops = flops_of_input},
    {ONE_LEFT("reduce_features", MEAN, REDUCE_FEATURES, 1, 3),
     .shape = shape_reduce_features, .flops = flops_of_input},
    /* One position; ranks that have others give 0. */
    {ONE_LEFT("select", OFFSET, SELECT, 3, 2), .shape = shape_select,
     .flops = topt_flops_none},
    /* One more position before all others: a trained one, the same for each sample. */
    {.name = "prepend",
     .attrs = A(INIT_STD),
     .ndims = 4,
     .dim = {BATCH, {"s", TOPT_SPLIT_NEVER}, FEATURES, ONE},
     .noperands = 3,
     .operand = {OPERAND("x", INPUT, OVER(0, 1, 2), .own = 1 << 1),
                 OPERAND("token", PARAM, OVER(3, 2)), OUT},
     .forward = {KERNEL(PREPEND_FWD, V(0) | V(1), V(2))},
     .backward = {KERNEL(PREPEND_BWD, G(2), G(0) | G(1))},
     .shape = shape_prepend,
     .flops = topt_flops_none},
    /* Positions in reverse: a recurrence between two of them goes backwards. */
    {.name = "reverse",
     .ndims = 3,
     .dim = {BATCH, {"s", TOPT_SPLIT_NEVER}, FEATURES},
     .noperands = 2,
     .operand = {IN("x", 0), OUT},
     .forward = {KERNEL(REVERSE_FWD, V(0), V(1))},
     .backward = {KERNEL(REVERSE_BWD, G(1), G(0))},
     .shape = topt_shape_same,
     .flops = topt_flops_none},
    /* The mask is a function of (seed, step, operator, global index): every split and
     * every micro-batch drops the same numbers, and backward finds them again. */
    {.name = "dropout",
     .attrs = A(RATE),
     .ndims = 3,
     .dim = {BATCH, SEQ, FEATURES},
     .noperands = 2,
     .operand = {IN("x", 0), OUT},
     .forward = {KERNEL(DROPOUT_FWD, V(0), V(1))},
     .backward = {KERNEL(DROPOUT_BWD, G(1), G(0))},
     .shape = shape_dropout,
     .flops = topt_flops_elementwise,
     .eager = eager_dropout},
    {.name = "dropout",
     .attrs = A(RATE),
     .ndims = 4,
     .dim = {BATCH, CHANNELS, IMAGE_ROWS, IMAGE_COLS},
     .noperands = 2,
     .operand = {OPERAND("x", INPUT, IMAGE), OPERAND("y", OUTPUT, IMAGE)},
     .forward = {KERNEL(DROPOUT_FWD, V(0), V(1))},
     .backward = {KERNEL(DROPOUT_BWD, G(1), G(0))},
     .shape = shape_dropout,
     .flops = topt_flops_elementwise,
     .eager = eager_dropout},
    {.name = "softmax",
     .attrs = A(LOG),
     .ndims = 3,
     .dim = {BATCH, SEQ, {"d", TOPT_SPLIT_STAT}},
     .noperands = 5,
     .operand = {OPERAND("x", INPUT, OVER(0, 1, 2)), OUT,
                 OPERAND("dot", WORK_BWD, OVER(0, 1), .wide = 1),
                 OPERAND("max", SAVED, OVER(0, 1), .wide = 1),
                 OPERAND("sum", SAVED, OVER(0, 1), .wide = 1)},
     .forward = {KERNEL(XENT_MAX, V(0), V(3)), MAX(3, D(2)),
                 KERNEL(SOFTMAX_SUM, V(0) | V(3), V(4)), SUM(4, D(2)),
                 KERNEL(SOFTMAX_FWD, V(0) | V(3) | V(4), V(1))},
     .backward = {KERNEL(SOFTMAX_DOT, V(0) | V(3) | V(4) | G(1), V(2)), SUM(2, D(2)),
                  KERNEL(SOFTMAX_BWD, V(0) | V(2) | V(3) | V(4) | G(1), G(0))},
     .shape = topt_shape_same,
     .flops = topt_flops_elementwise},
    /* Mean of the squares over the features, for each position. */
    {.name = "mse",
     .loss = 1,
     .ndims = 3,
     .dim = {BATCH, SEQ, {"d", TOPT_SPLIT_STAT}},
     .noperands = 3,
     .operand = {OPERAND("prediction", INPUT, OVER(0, 1, 2)),
                 OPERAND("target", DATA, OVER(0, 1, 2), .real = 1),
                 OPERAND("loss", OUTPUT, OVER(0, 1), .wide = 1)},
     .forward = {KERNEL(LOAD, 0, V(1)), KERNEL(MSE_FWD, V(0) | V(1), V(2)), SUM(2, D(2))},
     .backward = {KERNEL(MSE_BWD, V(0) | V(1), G(0))},
     .shape = topt_shape_same,
     .flops = flops_of_input},
    {.name = NULL},
};
