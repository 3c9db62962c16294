/* ops_conv.c - rows of the operator table: images, [batch, channels, height, width], and what
 * is done to them.
 *
 * Rows and columns may be split like a batch.  What slides a window over the image then needs
 * some rows of its neighbours: the operand 'xw' is the part of x that a rank's block of the
 * output reads, filled before use; where nothing is split, or each window stays inside its
 * block, it is x itself.  Channels may come in groups of several (units), which are never
 * split: so grouped convolutions find their groups whole. */
#include "ops.h"

/* ---- sources --------------------------------------------------------------------------- */

static int shape_image(struct topt_op *op, struct topt_error *err)
{
    enum { B, C, H, W };
    const struct topt_attrs *a = &op->attrs;
    if (a->channels < 1 || a->height < 1 || a->width < 1)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "needs channels, height and width of at least 1");
    op->count[B] = op->model->batch;
    op->count[C] = a->channels;
    op->count[H] = a->height;
    op->count[W] = a->width;
    topt_set_dim(op, 0, 1, topt_unit_of(a->features_unit));
    return 0;
}

static int shape_input(struct topt_op *op, struct topt_error *err)
{
    enum { B, S, D };
    if (op->attrs.features < 1)
        return topt_fail(err, TOPT_ERR_INVAL, "needs features of at least 1");
    op->count[B] = op->model->batch;
    op->count[S] = op->model->seq;
    op->count[D] = op->attrs.features;
    topt_set_dim(op, 0, 2, topt_unit_of(op->attrs.features_unit));
    return 0;
}

/* ---- between images and features ------------------------------------------------------- */

static int shape_global_pool(struct topt_op *op, struct topt_error *err)
{
    enum { S = 4 };
    (void)err;
    topt_counts_from_input(op, 0);
    op->count[S] = 1;
    topt_set_dim(op, 1, 2, op->operand[0].dim[1].unit);
    return 0;
}

static int shape_flatten(struct topt_op *op, struct topt_error *err)
{
    enum { H = 2, W, S };
    (void)err;
    topt_counts_from_input(op, 0);
    op->count[S] = 1;
    topt_set_dim(op, 1, 2, op->operand[0].dim[1].unit * op->count[H] * op->count[W]);
    return 0;
}

static int shape_tokens(struct topt_op *op, struct topt_error *err)
{
    enum { H = 2, W };
    (void)err;
    topt_counts_from_input(op, 0);
    op->operand[1].dim[1] = (struct topt_dim){op->count[H] * op->count[W], 1};
    topt_set_dim(op, 1, 2, op->operand[0].dim[1].unit);
    return 0;
}

/* ---- rows ------------------------------------------------------------------------------ */

/* clang-format off */
#define CHANNELS {"c", TOPT_SPLIT_FEATURE}
#define ROWS     {"h", TOPT_SPLIT_SPATIAL}
#define COLS     {"w", TOPT_SPLIT_SPATIAL}
/* clang-format on */

const struct topt_op_spec topt_ops_conv[] = {
    {.name = "image",
     .attrs = A(CHANNELS) | A(HEIGHT) | A(WIDTH) | A(FEATURES_UNIT),
     .ndims = 4,
     .dim = {BATCH, CHANNELS, ROWS, COLS},
     .noperands = 1,
     .operand = {{.name = "y", .role = TOPT_OUTPUT, .ndim = 4, .dim = {0, 1, 2, 3}}},
     .forward = {KERNEL(LOAD, 0, V(0))},
     .shape = shape_image,
     .flops = topt_flops_none},
    {.name = "input",
     .attrs = A(FEATURES) | A(FEATURES_UNIT),
     .ndims = 3,
     .dim = {BATCH, SEQ, {"d", TOPT_SPLIT_FEATURE}},
     .noperands = 1,
     .operand = {{.name = "y", .role = TOPT_OUTPUT, .ndim = 3, .dim = {0, 1, 2}}},
     .forward = {KERNEL(LOAD, 0, V(0))},
     .shape = shape_input,
     .flops = topt_flops_none},
    {.name = "bias",
     .ndims = 4,
     .dim = {BATCH, CHANNELS, ROWS, COLS},
     .noperands = 3,
     .operand = {{.name = "x", .role = TOPT_INPUT, .ndim = 4, .dim = {0, 1, 2, 3}},
                 {.name = "b",
                  .role = TOPT_PARAM,
                  .ndim = 1,
                  .dim = {1},
                  .start = TOPT_START_ZERO},
                 {.name = "y", .role = TOPT_OUTPUT, .ndim = 4, .dim = {0, 1, 2, 3}}},
     .forward = {KERNEL(CHANNEL_BIAS_FWD, V(0) | V(1), V(2))},
     .backward = {KERNEL(CHANNEL_BIAS_BWD, G(2), G(0) | G(1))},
     .shape = topt_shape_same,
     .flops = topt_flops_elementwise},
    {.name = "unary",
     .attrs = A(ACT) | A(ALPHA),
     .ndims = 4,
     .dim = {BATCH, CHANNELS, ROWS, COLS},
     .noperands = 2,
     .operand =
         {{.name = "x", .role = TOPT_INPUT, .ndim = 4, .dim = {0, 1, 2, 3}, .needed = 1},
          {.name = "y", .role = TOPT_OUTPUT, .ndim = 4, .dim = {0, 1, 2, 3}}},
     .forward = {KERNEL(UNARY_FWD, V(0), V(1))},
     .backward = {KERNEL(UNARY_BWD, V(0) | G(1), G(0))},
     .shape = topt_shape_unary,
     .flops = topt_flops_elementwise},
    {.name = "add",
     .ndims = 4,
     .dim = {BATCH, CHANNELS, ROWS, COLS},
     .noperands = 3,
     .operand = {{.name = "a", .role = TOPT_INPUT, .ndim = 4, .dim = {0, 1, 2, 3}},
                 {.name = "b", .role = TOPT_INPUT, .ndim = 4, .dim = {0, 1, 2, 3}},
                 {.name = "y", .role = TOPT_OUTPUT, .ndim = 4, .dim = {0, 1, 2, 3}}},
     .forward = {KERNEL(ADD_FWD, V(0) | V(1), V(2))},
     .backward = {KERNEL(ADD_BWD, G(2), G(0) | G(1))},
     .shape = topt_shape_same,
     .flops = topt_flops_elementwise},
    {.name = "mul",
     .ndims = 4,
     .dim = {BATCH, CHANNELS, ROWS, COLS},
     .noperands = 3,
     .operand =
         {{.name = "a", .role = TOPT_INPUT, .ndim = 4, .dim = {0, 1, 2, 3}, .needed = 1},
          {.name = "b", .role = TOPT_INPUT, .ndim = 4, .dim = {0, 1, 2, 3}, .needed = 1},
          {.name = "y", .role = TOPT_OUTPUT, .ndim = 4, .dim = {0, 1, 2, 3}}},
     .forward = {KERNEL(MUL_FWD, V(0) | V(1), V(2))},
     .backward = {KERNEL(MUL_BWD, V(0) | V(1) | G(2), G(0) | G(1))},
     .shape = topt_shape_same,
     .flops = topt_flops_elementwise},
    {.name = "global_pool",
     .ndims = 5,
     .dim = {BATCH, CHANNELS, ROWS, COLS, {"s", TOPT_SPLIT_NEVER}},
     .noperands = 2,
     .operand = {{.name = "x", .role = TOPT_INPUT, .ndim = 4, .dim = {0, 1, 2, 3}},
                 {.name = "y", .role = TOPT_OUTPUT, .ndim = 3, .dim = {0, 4, 1}}},
     .forward = {KERNEL(GLOBAL_POOL_FWD, V(0), V(1))},
     .backward = {KERNEL(GLOBAL_POOL_BWD, G(1), G(0))},
     .shape = shape_global_pool,
     .flops = topt_flops_elementwise},
    {.name = "flatten",
     .ndims = 5,
     .dim = {BATCH,
             CHANNELS,
             {"h", TOPT_SPLIT_NEVER},
             {"w", TOPT_SPLIT_NEVER},
             {"s", TOPT_SPLIT_NEVER}},
     .noperands = 2,
     .operand = {{.name = "x", .role = TOPT_INPUT, .ndim = 4, .dim = {0, 1, 2, 3}},
                 {.name = "y", .role = TOPT_OUTPUT, .ndim = 3, .dim = {0, 4, 1}}},
     .forward = {KERNEL(COPY_FWD, V(0), V(1))},
     .backward = {KERNEL(COPY_BWD, G(1), G(0))},
     .shape = shape_flatten,
     .flops = topt_flops_none},
    {.name = "tokens", /* positions row by row */
     .ndims = 4,
     .dim = {BATCH, CHANNELS, {"h", TOPT_SPLIT_NEVER}, {"w", TOPT_SPLIT_NEVER}},
     .noperands = 2,
     .operand =
         {{.name = "x", .role = TOPT_INPUT, .ndim = 4, .dim = {0, 1, 2, 3}},
          {.name = "y", .role = TOPT_OUTPUT, .ndim = 3, .dim = {0, 2, 1}, .own = 1 << 1}},
     .forward = {KERNEL(TOKENS_FWD, V(0), V(1))},
     .backward = {KERNEL(TOKENS_BWD, G(1), G(0))},
     .shape = shape_tokens,
     .flops = topt_flops_none},
    {.name = NULL},
};
