/* ops_resample.c - rows of the operator table: images in other extents, and images
 * made of features or positions.
 *
 * What a block of the output reads of the input is a window of it, as in ops_conv.c. */
#include "ops_extents.h"
#include "ops_rows.h"

/* ---- resize ------------------------------------------------------------------------ */

struct topt_taps topt_resize_taps(const struct topt_op *op, int along_rows, int64_t at)
{
    enum { X, Y };
    int i = along_rows ? 2 : 3;
    int64_t in = op->operand[X].dim[i].count, out = op->operand[Y].dim[i].count;
    const struct topt_attrs *a = op->attrs;
    int64_t over = a->corners ? (2 * at * (in - 1)) : (2 * at + 1) * in - out,
            under = a->corners ? 2 * (out > 1 ? out - 1 : 1) : 2 * out;
    if (!a->linear) /* the pixel that holds the centre, or the nearest to a corner's */
        over += under / 2;
    over = over > 0 ? over : 0;
    struct topt_taps t = {.low = over / under};
    t.high = t.low + 1 < in ? t.low + 1 : in - 1;
    t.share = a->linear && t.high > t.low ? (double)(over % under) / (double)under : 0;
    t.low = t.low < in ? t.low : in - 1;
    return t;
}

static void window_resize(const struct topt_op *op, int d, int64_t off, int64_t len,
                          int64_t *ret_off, int64_t *ret_len)
{
    int rows = op->spec->operand[0].dim[2] == d;
    *ret_off = topt_resize_taps(op, rows, off).low;
    *ret_len = topt_resize_taps(op, rows, off + len - 1).high + 1 - *ret_off;
}

/* The extents of operand 0, which are its own, for its windows. */
static void set_own_image(struct topt_op *op, int operand)
{
    for (int i = 1; i < 4; i++)
        op->operand[operand].dim[i] = op->operand[0].dim[i];
}

/* Limits, so that no product overflows. */
static int check_extents(int64_t height, int64_t width, struct topt_error *err)
{
    enum { MOST = 1 << 20 };
    return height >= 1 && width >= 1 && height <= MOST && width <= MOST
               ? 0
               : topt_fail(err, TOPT_ERR_INVAL, "needs height and width of 1 to %d",
                           MOST);
}

static int shape_resize(struct topt_op *op, struct topt_error *err)
{
    enum { B, C, H, W, X = 0, Y, XW, DXW };
    const struct topt_attrs *a = op->attrs;
    if (check_extents(a->height, a->width, err) ||
        check_extents(op->operand[X].dim[2].count, op->operand[X].dim[3].count, err))
        return -1;
    topt_counts_from_input(op, X);
    op->count[H] = a->height;
    op->count[W] = a->width;
    topt_set_dim(op, Y, 1, op->operand[X].dim[1].unit);
    set_own_image(op, XW);
    set_own_image(op, DXW);
    return 0;
}

/* ---- images from features and positions -------------------------------------------- */

static int shape_unflatten(struct topt_op *op, struct topt_error *err)
{
    enum { B, C, H, W, S };
    const struct topt_dim *x = op->operand[0].dim;
    int64_t pixels = op->attrs->height * op->attrs->width;
    if (check_extents(op->attrs->height, op->attrs->width, err))
        return -1;
    if (x[1].count != 1 || x[2].unit % pixels)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "needs one position with features in units of whole images of "
                         "%lld pixels",
                         (long long)pixels);
    topt_counts_from_input(op, 0);
    op->count[H] = op->attrs->height;
    op->count[W] = op->attrs->width;
    topt_set_dim(op, 1, 1, x[2].unit / pixels);
    return 0;
}

static int shape_untokens(struct topt_op *op, struct topt_error *err)
{
    enum { B, C, H, W };
    const struct topt_dim *x = op->operand[0].dim;
    if (check_extents(op->attrs->height, op->attrs->width, err))
        return -1;
    if (x[1].count != op->attrs->height * op->attrs->width)
        return topt_fail(
            err, TOPT_ERR_INVAL, "%lld positions are no image of %lld pixels",
            (long long)x[1].count, (long long)(op->attrs->height * op->attrs->width));
    topt_counts_from_input(op, 0);
    op->count[H] = op->attrs->height;
    op->count[W] = op->attrs->width;
    topt_set_dim(op, 1, 1, x[2].unit);
    return 0;
}

/* ---- rows -------------------------------------------------------------------------- */

/* clang-format off */
#define WHOLE(n) {n, TOPT_SPLIT_NEVER}
#define OWN      .own = 1 << 2 | 1 << 3
/* clang-format on */

const struct topt_op_spec topt_ops_resample[] = {
    {.name = "resize",
     .attrs = A(HEIGHT) | A(WIDTH) | A(LINEAR) | A(CORNERS),
     .ndims = 4,
     .dim = {BATCH, CHANNELS, IMAGE_ROWS, IMAGE_COLS},
     .noperands = 4,
     .operand = {OPERAND("x", INPUT, IMAGE, OWN),
                 OPERAND("y", OUTPUT, IMAGE),
                 OPERAND("xw", WORK_FWD, IMAGE, OWN, .made = 1, .window_of = 1),
                 {.name = "dxw",
                  .role = TOPT_WORK_BWD,
                  IMAGE,
                  OWN,
                  .window_of = 1,
                  .of_grad = 1}},
     .forward = {HALO(0, 2), KERNEL(RESIZE_FWD, V(2), V(1))},
     .backward = {KERNEL(RESIZE_BWD, G(1), V(3)), HALO_ADD(3, 0)},
     .shape = shape_resize,
     .flops = topt_flops_elementwise,
     .window = window_resize},
    /* The reverse of "flatten": units of whole channels. */
    {.name = "unflatten",
     .attrs = A(HEIGHT) | A(WIDTH),
     .ndims = 5,
     .dim = {BATCH, CHANNELS, WHOLE("h"), WHOLE("w"), WHOLE("s")},
     .noperands = 2,
     .operand = {OPERAND("x", INPUT, OVER(0, 4, 1)), OPERAND("y", OUTPUT, IMAGE)},
     .forward = {KERNEL(COPY_FWD, V(0), V(1))},
     .backward = {KERNEL(COPY_BWD, G(1), G(0))},
     .shape = shape_unflatten,
     .flops = topt_flops_none},
    {.name = "untokens", /* the reverse of "tokens" */
     .attrs = A(HEIGHT) | A(WIDTH),
     .ndims = 4,
     .dim = {BATCH, CHANNELS, WHOLE("h"), WHOLE("w")},
     .noperands = 2,
     .operand = {OPERAND("x", INPUT, OVER(0, 2, 1), .own = 1 << 1),
                 OPERAND("y", OUTPUT, IMAGE)},
     .forward = {KERNEL(UNTOKENS_FWD, V(0), V(1))},
     .backward = {KERNEL(UNTOKENS_BWD, G(1), G(0))},
     .shape = shape_untokens,
     .flops = topt_flops_none},
    {.name = NULL},
};
