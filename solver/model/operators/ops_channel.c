/* ops_channel.c - rows of the operator table: what is done to each channel of an
 * image, or to each feature, with numbers of its own.
 *
 * Both ranks of a kind share their kernels, which see numbers as [outer, channels,
 * inner]. */
#include "ops_extents.h"
#include "ops_rows.h"

static int shape_shared(struct topt_op *op, struct topt_error *err)
{
    op->count[op->spec->ndims - 1] = 1;
    if (topt_shape_same(op, err))
        return -1;
    op->operand[1].dim[0].unit = 1;
    return 0;
}

/* A group's statistics are one number, whatever its unit holds. */
static int shape_group_norm(struct topt_op *op, struct topt_error *err)
{
    enum { MEAN = 4, S2 = 7 };
    if (topt_shape_normed(op, err))
        return -1;
    for (int o = MEAN; o <= S2; o++)
        topt_set_dim(op, o, 1, 1);
    return 0;
}

/* clang-format off */
#define ONE      {"one", TOPT_SPLIT_NEVER}
#define ROW      OVER(0, 1, 2)
#define IN(...)  OPERAND("x", INPUT, __VA_ARGS__)
#define OUT(...) OPERAND("y", OUTPUT, __VA_ARGS__)
/* A parameter for each count of dimension d. */
#define EACH(n, d, at) \
    OPERAND(n, PARAM, OVER(d), .start = TOPT_START_##at)
#define STATS(n, r, d) OPERAND(n, r, OVER(d), .wide = 1)
#define GROUPS(n, r)   OPERAND(n, r, OVER(0, 1), .wide = 1)

#define GAIN  .noperands = 3,                                                              \
              .forward = {KERNEL(GAIN_FWD, V(0) | V(1), V(2))},                            \
              .backward = {KERNEL(GAIN_BWD, V(0) | V(1) | G(2), G(0) | G(1))},             \
              .flops = topt_flops_elementwise
#define PRELU .noperands = 3,                                                              \
              .forward = {KERNEL(PRELU_FWD, V(0) | V(1), V(2))},                           \
              .backward = {KERNEL(PRELU_BWD, V(0) | V(1) | G(2), G(0) | G(1))},            \
              .flops = topt_flops_elementwise
/* clang-format on */

const struct topt_op_spec topt_ops_channel[] = {
    {.name = "scale",
     .attrs = A(FACTOR) | A(SHIFT),
     .ndims = 4,
     .dim = {BATCH, CHANNELS, IMAGE_ROWS, IMAGE_COLS},
     .noperands = 2,
     .operand = {OPERAND("x", INPUT, IMAGE), OUT(IMAGE)},
     .forward = {KERNEL(SCALE_FWD, V(0), V(1))},
     .backward = {KERNEL(SCALE_BWD, G(1), G(0))},
     .shape = topt_shape_same,
     .flops = topt_flops_elementwise},
    /* y = x g, a number for each feature or channel. */
    {.name = "gain",
     .ndims = 3,
     .dim = {BATCH, SEQ, FEATURES},
     .operand = {IN(ROW), EACH("g", 2, ONE), OUT(ROW)},
     GAIN,
     .shape = topt_shape_same},
    {.name = "gain",
     .ndims = 4,
     .dim = {BATCH, CHANNELS, IMAGE_ROWS, IMAGE_COLS},
     .operand = {IN(IMAGE), EACH("g", 1, ONE), OUT(IMAGE)},
     GAIN,
     .shape = topt_shape_same},
    /* x above 0, a x below (He et al. 2015): with a number for each channel, or one
     * for all. */
    {.name = "prelu",
     .attrs = A(INIT_STD),
     .ndims = 3,
     .dim = {BATCH, SEQ, FEATURES},
     .operand = {IN(ROW), EACH("a", 2, NORMAL), OUT(ROW)},
     PRELU,
     .shape = topt_shape_same},
    {.name = "prelu",
     .attrs = A(INIT_STD),
     .ndims = 4,
     .dim = {BATCH, CHANNELS, IMAGE_ROWS, IMAGE_COLS},
     .operand = {IN(IMAGE), EACH("a", 1, NORMAL), OUT(IMAGE)},
     PRELU,
     .shape = topt_shape_same},
    {.name = "prelu_shared",
     .attrs = A(INIT_STD),
     .ndims = 4,
     .dim = {BATCH, SEQ, FEATURES, ONE},
     .operand = {IN(ROW), EACH("a", 3, NORMAL), OUT(ROW)},
     PRELU,
     .shape = shape_shared},
    {.name = "prelu_shared",
     .attrs = A(INIT_STD),
     .ndims = 5,
     .dim = {BATCH, CHANNELS, IMAGE_ROWS, IMAGE_COLS, ONE},
     .operand = {IN(IMAGE), EACH("a", 4, NORMAL), OUT(IMAGE)},
     PRELU,
     .shape = shape_shared},
    /* Over the batch and all positions; that of images is with them. */
    {.name = "batch_norm",
     .attrs = A(EPS),
     .coupled = 1,
     .ndims = 3,
     .dim = {BATCH, SEQ, FEATURES},
     .noperands = 8,
     .operand = {IN(ROW), EACH("g", 2, ONE), EACH("bias", 2, ZERO), OUT(ROW),
                 STATS("mean", SAVED, 2), STATS("var", SAVED, 2),
                 STATS("s1", WORK_BWD, 2), STATS("s2", WORK_BWD, 2)},
     .forward = {KERNEL(BN_MEAN, V(0), V(4)), SUM(4, D(0) | D(1)),
                 KERNEL(BN_VAR, V(0) | V(4), V(5)), SUM(5, D(0) | D(1)),
                 KERNEL(BN_APPLY, V(0) | V(1) | V(2) | V(4) | V(5), V(3))},
     .backward = {KERNEL(BN_BWD_SUM, V(0) | V(4) | V(5) | G(3),
                         G(1) | G(2) | V(6) | V(7)),
                  SUM(6, D(0) | D(1)), SUM(7, D(0) | D(1)),
                  KERNEL(BN_BWD_APPLY, V(0) | V(1) | V(4) | V(5) | V(6) | V(7) | G(3),
                         G(0))},
     .shape = topt_shape_normed,
     .flops = topt_flops_elementwise},
    /* Each group of channels of each sample by itself (Wu and He 2018): the units are the
     * groups, so units of 1 make it the norm of instances. */
    {.name = "group_norm",
     .attrs = A(EPS),
     .ndims = 4,
     .dim = {BATCH, CHANNELS, IMAGE_ROWS, IMAGE_COLS},
     .noperands = 8,
     .operand = {IN(IMAGE), EACH("g", 1, ONE), EACH("bias", 1, ZERO), OUT(IMAGE),
                 GROUPS("mean", SAVED), GROUPS("var", SAVED), GROUPS("s1", WORK_BWD),
                 GROUPS("s2", WORK_BWD)},
     .forward = {KERNEL(GN_MEAN, V(0), V(4)), SUM(4, D(2) | D(3)),
                 KERNEL(GN_VAR, V(0) | V(4), V(5)), SUM(5, D(2) | D(3)),
                 KERNEL(GN_APPLY, V(0) | V(1) | V(2) | V(4) | V(5), V(3))},
     .backward = {KERNEL(GN_BWD_SUM, V(0) | V(1) | V(4) | V(5) | G(3),
                         G(1) | G(2) | V(6) | V(7)),
                  SUM(6, D(2) | D(3)), SUM(7, D(2) | D(3)),
                  KERNEL(GN_BWD_APPLY, V(0) | V(1) | V(4) | V(5) | V(6) | V(7) | G(3),
                         G(0))},
     .shape = shape_group_norm,
     .flops = topt_flops_elementwise},
    {.name = NULL},
};
