/* ops_conv.c - rows of the operator table: images, [batch, channels, height, width],
 * and what is done to them.
 *
 * Rows and columns may be split like a batch.  What slides a window over the image
 * then needs some rows of its neighbours: the operand 'xw' is the part of x that a
 * rank's block of the output reads, filled before use; where nothing is split, or each
 * window stays inside its block, it is x itself.  Channels may come in groups of
 * several (units), which are never split: so grouped convolutions find their groups
 * whole. */
#include "ops_extents.h"
#include "ops_rows.h"

/* ---- sources ----------------------------------------------------------------------- */

static int shape_image(struct topt_op *op, struct topt_error *err)
{
    enum { B, C, H, W };
    const struct topt_attrs *a = op->attrs;
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
    if (op->attrs->features < 1)
        return topt_fail(err, TOPT_ERR_INVAL, "needs features of at least 1");
    op->count[B] = op->model->batch;
    op->count[S] = op->model->seq;
    op->count[D] = op->attrs->features;
    topt_set_dim(op, 0, 2, topt_unit_of(op->attrs->features_unit));
    return 0;
}

/* ---- windows ----------------------------------------------------------------------- */

static int64_t or_one(int64_t x)
{
    return x > 0 ? x : 1;
}

/* What a window of the image does along rows or columns. */
struct slide {
    int64_t kernel, stride, dilation, before, after;
};

static struct slide slide_of(const struct topt_attrs *a, int along_rows)
{
    return along_rows ? (struct slide){a->kernel_h, a->stride_h, a->dilation_h,
                                       a->pad_top, a->pad_bottom}
                      : (struct slide){a->kernel_w, a->stride_w, a->dilation_w,
                                       a->pad_left, a->pad_right};
}

/* Counts from the first to the last that a window reads. */
static int64_t reach(const struct slide *s)
{
    return (s->kernel - 1) * s->dilation + 1;
}

static void window_slide(const struct topt_op *op, int d, int64_t off, int64_t len,
                         int64_t *ret_off, int64_t *ret_len)
{
    enum { X = 0, HEIGHT = 2 };
    struct slide s = slide_of(op->attrs, op->spec->operand[X].dim[HEIGHT] == d);
    *ret_off = off * s.stride - s.before;
    *ret_len = (len - 1) * s.stride + reach(&s);
}

/* Windows along one dimension.  Where 'ceil' lets the last one reach past the padding it
 * still starts inside the image or the padding before it. */
static int count_windows(const struct topt_op *op, int along_rows, int64_t extent,
                         int64_t *ret, struct topt_error *err)
{
    struct slide s = slide_of(op->attrs, along_rows);
    int64_t room = extent + s.before + s.after - reach(&s);
    if (room < 0)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "a window of %lld %s does not fit into %lld and padding of %lld",
                         (long long)reach(&s), along_rows ? "rows" : "columns",
                         (long long)extent, (long long)(s.before + s.after));
    *ret = room / s.stride + 1;
    if (op->attrs->ceil && room % s.stride && *ret * s.stride < extent + s.before)
        ++*ret;
    return 0;
}

/* Strides and dilations of 1 where nothing is said; limits, so that no product
 * overflows. */
static int settle_slides(struct topt_op *op, struct topt_error *err)
{
    enum { MOST = 1 << 15, MOST_AREA = 1 << 16 };
    struct topt_attrs *a = op->attrs;
    a->stride_h = or_one(a->stride_h);
    a->stride_w = or_one(a->stride_w);
    a->dilation_h = or_one(a->dilation_h);
    a->dilation_w = or_one(a->dilation_w);
    for (int rows = 0; rows < 2; rows++) {
        struct slide s = slide_of(a, rows);
        if (s.kernel < 1 || s.kernel > MOST || s.stride > MOST || s.dilation > MOST ||
            s.before > MOST || s.after > MOST)
            return topt_fail(err, TOPT_ERR_INVAL,
                             "kernel, stride, dilation and padding along %s must be at "
                             "most %d, the kernel at least 1",
                             rows ? "rows" : "columns", MOST);
    }
    return a->kernel_h * a->kernel_w <= MOST_AREA
               ? 0
               : topt_fail(err, TOPT_ERR_INVAL, "a kernel of more than %d pixels",
                           MOST_AREA);
}

/* Output extents of the image in dimensions 'h' and 'h' + 1 of the operator. */
static int slide_over(struct topt_op *op, int h, struct topt_error *err)
{
    const struct topt_dim *x = op->operand[0].dim;
    return settle_slides(op, err) ||
                   count_windows(op, 1, x[2].count, &op->count[h], err) ||
                   count_windows(op, 0, x[3].count, &op->count[h + 1], err)
               ? -1
               : 0;
}

/* Rows and columns of the input, which are the operand's own counts. */
static void set_image(struct topt_op *op, int operand, int64_t unit)
{
    topt_set_dim(op, operand, 1, unit);
    op->operand[operand].dim[2] = op->operand[0].dim[2];
    op->operand[operand].dim[3] = op->operand[0].dim[3];
}

/* ---- convolution ------------------------------------------------------------------- */

/* Patches are the image itself: a matrix product of pixels. */
static int is_pointwise(const struct topt_attrs *a)
{
    return a->kernel_h * a->kernel_w == 1 && a->stride_h * a->stride_w == 1 &&
           a->pad_top + a->pad_bottom + a->pad_left + a->pad_right == 0;
}

enum { CONV_X, CONV_W, CONV_Y, CONV_XW, CONV_XW_BWD, CONV_DXW, CONV_COL, CONV_COL_BWD };

static int shape_conv(struct topt_op *op, struct topt_error *err)
{
    enum { B, K, N, H };
    const struct topt_attrs *a = op->attrs;
    int64_t k_unit = op->operand[CONV_X].dim[1].unit,
            n_unit = topt_unit_of(a->features_unit);
    op->count[B] = op->operand[CONV_X].dim[0].count;
    op->count[K] = op->operand[CONV_X].dim[1].count;
    op->count[N] = a->features;
    if (a->features < 1)
        return topt_fail(err, TOPT_ERR_INVAL, "needs features of at least 1");
    if (slide_over(op, H, err))
        return -1;
    topt_set_dim(op, CONV_W, 0, n_unit);
    topt_set_dim(op, CONV_W, 1, k_unit * a->kernel_h * a->kernel_w);
    topt_set_dim(op, CONV_Y, 1, n_unit);
    for (int o = CONV_XW; o <= CONV_DXW; o++)
        set_image(op, o, k_unit);
    for (int o = CONV_COL; o <= CONV_COL_BWD; o++) {
        topt_set_dim(op, o, 0, k_unit * a->kernel_h * a->kernel_w);
        op->operand[o].present = !is_pointwise(a);
    }
    return 0;
}

static int shape_conv_grouped(struct topt_op *op, struct topt_error *err)
{
    enum { B, G, H, W, R };
    const struct topt_attrs *a = op->attrs;
    struct topt_dim x = op->operand[CONV_X].dim[1];
    int64_t n_unit = topt_unit_of(a->features_unit);
    if (a->groups && a->groups != x.count)
        return topt_fail(
            err, TOPT_ERR_INVAL,
            "x has channels in %lld groups of %lld, %lld groups are asked for",
            (long long)x.count, (long long)x.unit, (long long)a->groups);
    op->count[B] = op->operand[CONV_X].dim[0].count;
    op->count[G] = x.count;
    if (slide_over(op, H, err))
        return -1;
    op->count[R] = x.unit * a->kernel_h * a->kernel_w;
    topt_set_dim(op, CONV_W, 0, n_unit);
    topt_set_dim(op, CONV_Y, 1, n_unit);
    for (int o = CONV_XW; o <= CONV_DXW; o++)
        set_image(op, o, x.unit);
    for (int o = CONV_COL; o <= CONV_COL_BWD; o++)
        op->operand[o].present = !is_pointwise(a);
    return 0;
}

/* ---- transposed convolution -------------------------------------------------------- */

/* Inputs whose window touches counts [off, off + len) of the output. */
static void window_spread(const struct topt_op *op, int d, int64_t off, int64_t len,
                          int64_t *ret_off, int64_t *ret_len)
{
    struct slide s = slide_of(op->attrs, op->spec->operand[0].dim[2] == d);
    int64_t first = off + s.before - reach(&s) + 1, last = off + len - 1 + s.before;
    first = first > 0 ? (first + s.stride - 1) / s.stride : 0;
    *ret_off = first;
    *ret_len = last / s.stride + 1 - first;
}

/* The output's extent where nobody says, and the most that anybody may: whose last
 * windows start before the next stride. */
static int count_spread(const struct topt_op *op, int along_rows, int64_t extent,
                        int64_t *ret, struct topt_error *err)
{
    struct slide s = slide_of(op->attrs, along_rows);
    int64_t given = along_rows ? op->attrs->height : op->attrs->width;
    int64_t least = (extent - 1) * s.stride + reach(&s) - s.before - s.after;
    *ret = given ? given : least;
    return *ret >= 1 && *ret >= least && *ret < least + s.stride + s.after
               ? 0
               : topt_fail(err, TOPT_ERR_INVAL,
                           "%lld %s of windows of %lld can't become %lld",
                           (long long)extent, along_rows ? "rows" : "columns",
                           (long long)reach(&s), (long long)*ret);
}

static int shape_conv_transpose(struct topt_op *op, struct topt_error *err)
{
    enum { B, K, N, H, W, MOST = 1 << 24 };
    const struct topt_attrs *a = op->attrs;
    const struct topt_dim *x = op->operand[CONV_X].dim;
    int64_t k_unit = x[1].unit, n_unit = topt_unit_of(a->features_unit);
    op->count[B] = x[0].count;
    op->count[K] = x[1].count;
    op->count[N] = a->features;
    if (a->features < 1 || x[2].count > MOST || x[3].count > MOST)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "needs features of at least 1, and rows and columns of at most "
                         "%d",
                         MOST);
    if (settle_slides(op, err) || count_spread(op, 1, x[2].count, &op->count[H], err) ||
        count_spread(op, 0, x[3].count, &op->count[W], err))
        return -1;
    topt_set_dim(op, CONV_W, 0, k_unit);
    topt_set_dim(op, CONV_W, 1, n_unit * a->kernel_h * a->kernel_w);
    topt_set_dim(op, CONV_Y, 1, n_unit);
    for (int o = CONV_XW; o <= CONV_DXW; o++)
        set_image(op, o, k_unit);
    return 0;
}

/* Pixels of the input that a block of 'len' of the output's rows or columns is made of:
 * its share of them, rounded up. */
static int64_t spread_from(const struct topt_op *op, int d, int64_t len, int i)
{
    int64_t in = op->operand[CONV_X].dim[i].count, out = op->count[d];
    return (len * in + out - 1) / out;
}

/* Each weight once for each pixel of the input. */
static int64_t flops_conv_transpose(const struct topt_op *op, enum topt_kernel k,
                                    const int64_t *len)
{
    enum { B, K, N, H, W };
    const struct topt_dim *weight = op->operand[CONV_W].dim;
    (void)k;
    return 2 * len[B] * spread_from(op, H, len[H], 2) * spread_from(op, W, len[W], 3) *
           len[K] * weight[0].unit * len[N] * weight[1].unit;
}

/* Each weight once for each pixel of the output. */
static int64_t flops_conv(const struct topt_op *op, enum topt_kernel k,
                          const int64_t *len)
{
    (void)k;
    const int8_t *w = op->spec->operand[CONV_W].dim, *y = op->spec->operand[CONV_Y].dim;
    const struct topt_dim *weight = op->operand[CONV_W].dim;
    return 2 * len[y[0]] * len[y[2]] * len[y[3]] * len[w[0]] * weight[0].unit *
           len[w[1]] * weight[1].unit;
}

/* ---- pooling and normalisation ----------------------------------------------------- */

static int shape_pool(struct topt_op *op, struct topt_error *err)
{
    enum { B, C, H, X = 0, Y, WHICH, XW, DXW };
    struct topt_dim x = op->operand[X].dim[1];
    op->count[B] = op->operand[X].dim[0].count;
    op->count[C] = x.count;
    if (slide_over(op, H, err))
        return -1;
    op->operand[WHICH].present = !op->attrs->average;
    topt_set_dim(op, Y, 1, x.unit);
    topt_set_dim(op, WHICH, 1, x.unit);
    set_image(op, XW, x.unit);
    set_image(op, DXW, x.unit);
    return 0;
}

/* Each pixel of each window once. */
static int64_t flops_pool(const struct topt_op *op, enum topt_kernel k,
                          const int64_t *len)
{
    (void)k;
    return len[0] * len[1] * op->operand[op->output].dim[1].unit * len[2] * len[3] *
           op->attrs->kernel_h * op->attrs->kernel_w;
}

static int shape_lrn(struct topt_op *op, struct topt_error *err)
{
    struct topt_attrs *a = op->attrs;
    if (op->operand[0].dim[1].unit != 1)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "channels in groups of %lld are not handled",
                         (long long)op->operand[0].dim[1].unit);
    if (a->alpha < 0 || a->beta < 0)
        return topt_fail(err, TOPT_ERR_INVAL, "needs alpha and beta not below 0");
    if (a->size < 1 || a->size > 1 << 15)
        return topt_fail(err, TOPT_ERR_INVAL, "needs a size of 1 to 32768 channels");
    a->alpha = a->alpha > 0 ? a->alpha : 1e-4;
    a->beta = a->beta > 0 ? a->beta : 0.75;
    a->bias = a->bias > 0 ? a->bias : 1;
    if (topt_shape_same(op, err))
        return -1;
    for (int o = 0; o < op->spec->noperands; o++)
        topt_set_dim(op, o, 1, 1);
    return 0;
}

/* The neighbours of a channel, half of them before it. */
static void window_lrn(const struct topt_op *op, int d, int64_t off, int64_t len,
                       int64_t *ret_off, int64_t *ret_len)
{
    (void)d;
    *ret_off = off - (op->attrs->size - 1) / 2;
    *ret_len = len + op->attrs->size - 1;
}

static int64_t flops_lrn(const struct topt_op *op, enum topt_kernel k, const int64_t *len)
{
    return topt_flops_elementwise(op, k, len) +
           2 * op->attrs->size * len[0] * len[1] * len[2] * len[3];
}

/* ---- between images and features --------------------------------------------------- */

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

/* ---- rows -------------------------------------------------------------------------- */

/* clang-format off */
#define SLIDE (A(KERNEL_H) | A(KERNEL_W) | A(STRIDE_H) | A(STRIDE_W) | A(DILATION_H) | \
               A(DILATION_W) | A(PAD_TOP) | A(PAD_LEFT) | A(PAD_BOTTOM) | A(PAD_RIGHT))
#define IMAGE_OWN (1 << 2 | 1 << 3) /* rows and columns of the input are not those of the output */
#define CHANNEL_OWN (1 << 1)
/* The window of operand 0, over dimensions that are its own; and of its gradient. */
#define WINDOW(n, when, over, ...) \
    OPERAND(n, when, OVER(__VA_ARGS__), .made = 1, .own = (over), .window_of = 1)
#define GRAD_WINDOW(n, over, ...) \
    OPERAND(n, WORK_BWD, OVER(__VA_ARGS__), .own = (over), .window_of = 1, .of_grad = 1, \
            .partial = 1)
/* Operands and steps of a convolution, by the operator's dimensions that its image, its
 * weights, its output and its columns (patches side by side, for a product) have. */
#define LIST(...) __VA_ARGS__
#define COLUMNS(n, when, ...) OPERAND(n, when, OVER(__VA_ARGS__), .optional = 1)
#define CONVOLUTION(image, weights, output, columns)                                     \
    .noperands = 8,                                                                      \
    .operand = {OPERAND("x", INPUT, OVER(LIST image), .own = IMAGE_OWN),                 \
                OPERAND("w", PARAM, OVER(LIST weights), .start = TOPT_START_FAN_IN),     \
                OPERAND("y", OUTPUT, OVER(LIST output)),                                 \
                WINDOW("xw", WORK_FWD, IMAGE_OWN, LIST image),                           \
                WINDOW("xw_bwd", WORK_BWD, IMAGE_OWN, LIST image),                       \
                GRAD_WINDOW("dxw", IMAGE_OWN, LIST image),                               \
                COLUMNS("col", WORK_FWD, LIST columns),                                  \
                COLUMNS("col_bwd", WORK_BWD, LIST columns)},                             \
    .forward = {HALO(0, 3), KERNEL(CONV_FWD, V(1) | V(3) | V(6), V(2))},                 \
    .backward = {HALO(0, 4), KERNEL(CONV_BWD_W, V(4) | V(7) | G(2), G(1)),               \
                 KERNEL(CONV_BWD_X, V(1) | V(7) | G(2), V(5)), HALO_ADD(5, 0)}
/* clang-format on */

const struct topt_op_spec topt_ops_conv[] = {
    {.name = "image",
     .attrs = A(CHANNELS) | A(HEIGHT) | A(WIDTH) | A(FEATURES_UNIT),
     .ndims = 4,
     .dim = {BATCH, CHANNELS, IMAGE_ROWS, IMAGE_COLS},
     .noperands = 1,
     .operand = {OPERAND("y", OUTPUT, IMAGE)},
     .forward = {KERNEL(LOAD, 0, V(0))},
     .shape = shape_image,
     .flops = topt_flops_none},
    {.name = "input",
     .attrs = A(FEATURES) | A(FEATURES_UNIT),
     .ndims = 3,
     .dim = {BATCH, SEQ, FEATURES},
     .noperands = 1,
     .operand = {OPERAND("y", OUTPUT, OVER(0, 1, 2))},
     .forward = {KERNEL(LOAD, 0, V(0))},
     .shape = shape_input,
     .flops = topt_flops_none},
    {.name = "bias",
     .ndims = 4,
     .dim = {BATCH, CHANNELS, IMAGE_ROWS, IMAGE_COLS},
     .noperands = 3,
     .operand = {OPERAND("x", INPUT, IMAGE),
                 OPERAND("b", PARAM, OVER(1), .start = TOPT_START_ZERO),
                 OPERAND("y", OUTPUT, IMAGE)},
     .forward = {KERNEL(CHANNEL_BIAS_FWD, V(0) | V(1), V(2))},
     .backward = {KERNEL(CHANNEL_BIAS_BWD, G(2), G(0) | G(1))},
     .shape = topt_shape_same,
     .flops = topt_flops_elementwise},
    {.name = "unary",
     .attrs = A(ACT) | A(ALPHA) | A(BETA),
     .ndims = 4,
     .dim = {BATCH, CHANNELS, IMAGE_ROWS, IMAGE_COLS},
     .noperands = 2,
     .operand = {OPERAND("x", INPUT, IMAGE), OPERAND("y", OUTPUT, IMAGE)},
     .forward = {KERNEL(UNARY_FWD, V(0), V(1))},
     .backward = {KERNEL(UNARY_BWD, V(0) | G(1), G(0))},
     .shape = topt_shape_unary,
     .flops = topt_flops_elementwise},
    {.name = "add",
     .ndims = 4,
     .dim = {BATCH, CHANNELS, IMAGE_ROWS, IMAGE_COLS},
     .noperands = 3,
     .operand = {OPERAND("a", INPUT, IMAGE), OPERAND("b", INPUT, IMAGE),
                 OPERAND("y", OUTPUT, IMAGE)},
     .forward = {KERNEL(ADD_FWD, V(0) | V(1), V(2))},
     .backward = {KERNEL(ADD_BWD, G(2), G(0) | G(1))},
     .shape = topt_shape_same,
     .flops = topt_flops_elementwise},
    {.name = "mul",
     .ndims = 4,
     .dim = {BATCH, CHANNELS, IMAGE_ROWS, IMAGE_COLS},
     .noperands = 3,
     .operand = {OPERAND("a", INPUT, IMAGE), OPERAND("b", INPUT, IMAGE),
                 OPERAND("y", OUTPUT, IMAGE)},
     .forward = {KERNEL(MUL_FWD, V(0) | V(1), V(2))},
     .backward = {KERNEL(MUL_BWD, V(0) | V(1) | G(2), G(0) | G(1))},
     .shape = topt_shape_same,
     .flops = topt_flops_elementwise},
    /* Each channel by a number of its own (Hu et al. 2018). */
    {.name = "weigh",
     .ndims = 5,
     .dim = {BATCH, CHANNELS, IMAGE_ROWS, IMAGE_COLS, {"one", TOPT_SPLIT_NEVER}},
     .noperands = 3,
     .operand = {OPERAND("x", INPUT, IMAGE), OPERAND("g", INPUT, OVER(0, 4, 1)),
                 OPERAND("y", OUTPUT, IMAGE)},
     .forward = {KERNEL(WEIGH_FWD, V(0) | V(1), V(2))},
     .backward = {KERNEL(WEIGH_BWD, V(0) | V(1) | G(2), G(0) | G(1))},
     .shape = topt_shape_weigh,
     .flops = topt_flops_elementwise},
    {.name = "conv",
     .attrs = A(FEATURES) | A(FEATURES_UNIT) | SLIDE | A(INIT_STD),
     .ndims = 5,
     .dim = {BATCH,
             {"k", TOPT_SPLIT_FEATURE},
             {"n", TOPT_SPLIT_FEATURE},
             IMAGE_ROWS,
             IMAGE_COLS},
     CONVOLUTION((0, 1, 3, 4), (2, 1), (0, 2, 3, 4), (1, 3, 4)),
     .shape = shape_conv,
     .flops = flops_conv,
     .window = window_slide},
    {.name = "conv_grouped",
     .attrs = A(GROUPS) | A(FEATURES_UNIT) | SLIDE | A(INIT_STD),
     .ndims = 5,
     .dim = {BATCH,
             {"g", TOPT_SPLIT_FEATURE},
             IMAGE_ROWS,
             IMAGE_COLS,
             {"r", TOPT_SPLIT_NEVER}},
     CONVOLUTION((0, 1, 2, 3), (1, 4), (0, 1, 2, 3), (4, 2, 3)),
     .shape = shape_conv_grouped,
     .flops = flops_conv,
     .window = window_slide},
    {.name = "conv_transpose",
     .attrs = A(FEATURES) | A(FEATURES_UNIT) | A(HEIGHT) | A(WIDTH) | SLIDE | A(INIT_STD),
     .ndims = 5,
     .dim = {BATCH,
             {"k", TOPT_SPLIT_FEATURE},
             {"n", TOPT_SPLIT_FEATURE},
             IMAGE_ROWS,
             IMAGE_COLS},
     .noperands = 6,
     .operand = {OPERAND("x", INPUT, OVER(0, 1, 3, 4), .own = IMAGE_OWN),
                 OPERAND("w", PARAM, OVER(1, 2), .start = TOPT_START_FAN_IN),
                 OPERAND("y", OUTPUT, OVER(0, 2, 3, 4)),
                 WINDOW("xw", WORK_FWD, IMAGE_OWN, 0, 1, 3, 4),
                 WINDOW("xw_bwd", WORK_BWD, IMAGE_OWN, 0, 1, 3, 4),
                 GRAD_WINDOW("dxw", IMAGE_OWN, 0, 1, 3, 4)},
     .forward = {HALO(0, 3), KERNEL(CONV_TRANSPOSE_FWD, V(1) | V(3), V(2))},
     .backward = {HALO(0, 4), KERNEL(CONV_TRANSPOSE_BWD_W, V(4) | G(2), G(1)),
                  KERNEL(CONV_TRANSPOSE_BWD_X, V(1) | G(2), V(5)), HALO_ADD(5, 0)},
     .shape = shape_conv_transpose,
     .flops = flops_conv_transpose,
     .window = window_spread},
    {.name = "pool",
     .attrs = SLIDE | A(AVERAGE) | A(COUNT_PAD) | A(CEIL),
     .ndims = 4,
     .dim = {BATCH, CHANNELS, IMAGE_ROWS, IMAGE_COLS},
     .noperands = 5,
     .operand = {OPERAND("x", INPUT, IMAGE, .own = IMAGE_OWN),
                 OPERAND("y", OUTPUT, IMAGE),
                 OPERAND("which", SAVED, IMAGE, .optional = 1),
                 WINDOW("xw", WORK_FWD, IMAGE_OWN, 0, 1, 2, 3),
                 GRAD_WINDOW("dxw", IMAGE_OWN, 0, 1, 2, 3)},
     .forward = {HALO(0, 3), KERNEL(POOL_FWD, V(3), V(1) | V(2))},
     .backward = {KERNEL(POOL_BWD, V(2) | G(1), V(4)), HALO_ADD(4, 0)},
     .shape = shape_pool,
     .flops = flops_pool,
     .window = window_slide},
    {.name = "batch_norm", /* of the batch itself */
     .attrs = A(EPS),
     .coupled = 1,
     .ndims = 4,
     .dim = {BATCH, CHANNELS, IMAGE_ROWS, IMAGE_COLS},
     .noperands = 8,
     .operand = {OPERAND("x", INPUT, IMAGE),
                 OPERAND("g", PARAM, OVER(1), .start = TOPT_START_ONE),
                 OPERAND("bias", PARAM, OVER(1), .start = TOPT_START_ZERO),
                 OPERAND("y", OUTPUT, IMAGE), OPERAND("mean", SAVED, OVER(1), .wide = 1),
                 OPERAND("var", SAVED, OVER(1), .wide = 1),
                 OPERAND("s1", WORK_BWD, OVER(1), .wide = 1),
                 OPERAND("s2", WORK_BWD, OVER(1), .wide = 1)},
     .forward = {KERNEL(BN_MEAN, V(0), V(4)), SUM(4, D(0) | D(2) | D(3)),
                 KERNEL(BN_VAR, V(0) | V(4), V(5)), SUM(5, D(0) | D(2) | D(3)),
                 KERNEL(BN_APPLY, V(0) | V(1) | V(2) | V(4) | V(5), V(3))},
     .backward = {KERNEL(BN_BWD_SUM, V(0) | V(4) | V(5) | G(3),
                         G(1) | G(2) | V(6) | V(7)),
                  SUM(6, D(0) | D(2) | D(3)), SUM(7, D(0) | D(2) | D(3)),
                  KERNEL(BN_BWD_APPLY, V(0) | V(1) | V(4) | V(5) | V(6) | V(7) | G(3),
                         G(0))},
     .shape = topt_shape_normed,
     .flops = topt_flops_elementwise},
    {.name = "lrn", /* by the squares of neighbouring channels */
     .attrs = A(SIZE) | A(ALPHA) | A(BETA) | A(BIAS),
     .ndims = 4,
     .dim = {BATCH, CHANNELS, IMAGE_ROWS, IMAGE_COLS},
     .noperands = 5,
     .operand = {OPERAND("x", INPUT, IMAGE, .own = CHANNEL_OWN),
                 OPERAND("y", OUTPUT, IMAGE),
                 WINDOW("xw", WORK_FWD, CHANNEL_OWN, 0, 1, 2, 3),
                 WINDOW("xw_bwd", WORK_BWD, CHANNEL_OWN, 0, 1, 2, 3),
                 GRAD_WINDOW("dxw", CHANNEL_OWN, 0, 1, 2, 3)},
     .forward = {HALO(0, 2), KERNEL(LRN_FWD, V(2), V(1))},
     .backward = {HALO(0, 3), KERNEL(LRN_BWD, V(3) | G(1), V(4)), HALO_ADD(4, 0)},
     .shape = shape_lrn,
     .flops = flops_lrn,
     .window = window_lrn},
    {.name = "global_pool",
     .ndims = 5,
     .dim = {BATCH, CHANNELS, IMAGE_ROWS, IMAGE_COLS, {"s", TOPT_SPLIT_NEVER}},
     .noperands = 2,
     .operand = {OPERAND("x", INPUT, IMAGE), OPERAND("y", OUTPUT, OVER(0, 4, 1))},
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
     .operand = {OPERAND("x", INPUT, IMAGE), OPERAND("y", OUTPUT, OVER(0, 4, 1))},
     .forward = {KERNEL(COPY_FWD, V(0), V(1))},
     .backward = {KERNEL(COPY_BWD, G(1), G(0))},
     .shape = shape_flatten,
     .flops = topt_flops_none},
    {.name = "tokens", /* positions row by row */
     .ndims = 4,
     .dim = {BATCH, CHANNELS, {"h", TOPT_SPLIT_NEVER}, {"w", TOPT_SPLIT_NEVER}},
     .noperands = 2,
     .operand = {OPERAND("x", INPUT, IMAGE),
                 OPERAND("y", OUTPUT, OVER(0, 2, 1), .own = 1 << 1)},
     .forward = {KERNEL(TOKENS_FWD, V(0), V(1))},
     .backward = {KERNEL(TOKENS_BWD, G(1), G(0))},
     .shape = shape_tokens,
     .flops = topt_flops_none},
    {.name = NULL},
};
