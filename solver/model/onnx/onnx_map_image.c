/* onnx_map_image.c - operators of nodes on images: windows, means, norms of channels. */
#include "onnx_map_image.h"
#include "onnx_map.h"
#include "onnx_map_product.h"
#include "onnx_map_unary.h"
#include "onnx_node.h"
#include "onnx_shape_image.h"
#include "onnx_view.h"

#include <math.h>
#include <string.h>

/* ---- images ------------------------------------------------------------------------ */

static struct topt_attrs slide(const struct onnx_window *w)
{
    return (struct topt_attrs){.kernel_h = w->kernel[0],
                               .kernel_w = w->kernel[1],
                               .stride_h = w->stride[0],
                               .stride_w = w->stride[1],
                               .dilation_h = w->dilation[0],
                               .dilation_w = w->dilation[1],
                               .pad_top = w->before[0],
                               .pad_left = w->before[1],
                               .pad_bottom = w->after[0],
                               .pad_right = w->after[1],
                               .ceil = w->ceil};
}

/* Windows over three dimensions: the last two are columns here, of which there are as many windows
 * of as many numbers. */
static int fold_columns(struct onnx *x, const struct onnx_node *n, int transposed,
                        const struct onnx_window *w, struct topt_attrs *a)
{
    const struct onnx_shape *from = &topt_onnx_in(x, n, 0)->shape,
                            *to = &onnx_out(x, n, 0)->shape;
    if (from->ndim != 5)
        return 0;
    int64_t in = from->dim[3] * from->dim[4], out = to->dim[3] * to->dim[4];
    int64_t size = w->kernel[1] * w->kernel[2], by = w->stride[1] * w->stride[2], pad;
    if (transposed) {
        by = out > (in - 1) * by + size ? (out + in - 1) / in : by;
        pad = (in - 1) * by + size - out;
    } else {
        if (out > 1 && out * by <= in - size)
            by = (in - size + out - 2) / (out - 1);
        else if (out == 1 && in >= size + by)
            by = in - size + 1;
        pad = (out - 1) * by + size - in;
    }
    pad = pad > 0 ? pad : 0;
    a->kernel_w = size;
    a->stride_w = by;
    a->dilation_w = 1;
    a->pad_left = pad / 2;
    a->pad_right = pad - pad / 2;
    return topt_model_plan_only(x->model, "windows over three dimensions", x->err);
}

/* Groups of channels are the units of the image's.  The tensor that is convolved, or
 * -1. */
static int group_channels(struct onnx *x, const struct onnx_node *n, int tensor,
                          struct topt_attrs *attrs)
{
    int64_t channels = topt_onnx_in(x, n, 0)->shape.dim[1];
    int64_t groups = topt_onnx_int(n, "group", 1);
    int64_t features = topt_onnx_in(x, n, 1)->shape.dim[0];
    if (groups == 1) {
        attrs->features = features;
        return tensor;
    }
    attrs->groups = groups;
    attrs->features_unit = features / groups;
    return topt_onnx_regroup(x, n, tensor, groups, channels / groups);
}

/* A convolution of one pixel is a matrix product. */
static int is_product(const struct onnx *x, const struct onnx_node *n,
                      const struct onnx_value *a, const struct onnx_window *w)
{
    const struct onnx_shape *y = &onnx_out(x, n, 0)->shape;
    return !topt_onnx_is_image(x, a) && topt_onnx_int(n, "group", 1) == 1 &&
           w->kernel[0] * w->kernel[1] * w->kernel[2] == 1 &&
           topt_onnx_elements(&a->shape) == a->shape.dim[0] * a->shape.dim[1] &&
           topt_onnx_elements(y) == y->dim[0] * y->dim[1];
}

static int with_bias(struct onnx *x, const struct onnx_node *n, const char *kind,
                     int tensor, const struct topt_attrs *attrs)
{
    int bias = topt_onnx_in(x, n, 2) != NULL, t = tensor;
    t = t < 0 ? -1 : topt_onnx_emit(x, n, kind, bias ? ".conv" : "", t, -1, attrs);
    if (t >= 0 && bias)
        t = topt_onnx_emit(x, n, "bias", "", t, -1, NULL);
    return topt_onnx_put_image(x, n, t);
}

int topt_onnx_map_conv(struct onnx *x, const struct onnx_node *n)
{
    const struct onnx_value *a = topt_onnx_sample(x, n, 0), *w = topt_onnx_in(x, n, 1);
    struct onnx_window win;
    if (!a || topt_onnx_window(x, n, &win))
        return -1;
    if (!w->constant)
        return topt_onnx_fail(x, n, "its weights depend on samples");
    if (is_product(x, n, a, &win))
        return topt_onnx_product(x, n, a, 1, w->shape.dim[0],
                                 topt_onnx_in(x, n, 2) != NULL, 1);
    struct topt_attrs attrs = slide(&win);
    if (fold_columns(x, n, 0, &win, &attrs))
        return -1;
    int t = topt_onnx_image(x, n, a);
    t = t < 0 ? -1 : group_channels(x, n, t, &attrs);
    return with_bias(x, n, attrs.groups ? "conv_grouped" : "conv", t, &attrs);
}

int topt_onnx_map_conv_transpose(struct onnx *x, const struct onnx_node *n)
{
    const struct onnx_value *a = topt_onnx_sample(x, n, 0), *w = topt_onnx_in(x, n, 1);
    const struct onnx_shape *y = &onnx_out(x, n, 0)->shape;
    struct onnx_window win;
    if (!a || topt_onnx_spread(x, n, &win))
        return -1;
    if (!w->constant)
        return topt_onnx_fail(x, n, "its weights depend on samples");
    if (topt_onnx_int(n, "group", 1) != 1)
        return topt_onnx_fail(x, n, "it is in groups: no row transposes those");
    struct topt_attrs attrs = slide(&win);
    attrs.features = w->shape.dim[1];
    attrs.height = y->ndim >= 4 ? y->dim[2] : 1;
    attrs.width = y->dim[y->ndim - 1] * (y->ndim == 5 ? y->dim[3] : 1);
    if (fold_columns(x, n, 1, &win, &attrs))
        return -1;
    return with_bias(x, n, "conv_transpose", topt_onnx_image(x, n, a), &attrs);
}

/* Zeros around the image, as the mean of windows of one pixel that counts padding;
 * another number by way of its difference to zero. */
int topt_onnx_map_pad(struct onnx *x, const struct onnx_node *n)
{
    const struct onnx_value *a = topt_onnx_sample(x, n, 0), *v = topt_onnx_in(x, n, 2);
    const Onnx__AttributeProto *mode = topt_onnx_attr(n, "mode");
    struct topt_attrs attrs = {
        .kernel_h = 1, .kernel_w = 1, .average = 1, .count_pad = 1};
    int64_t pad[ONNX_MAX_RANK];
    int any = 0, none = 0;
    if (!a)
        return -1;
    int ndim = a->shape.ndim, rows = ndim == 4 ? 2 : -1, cols = ndim - 1;
    if (topt_onnx_pads(x, n, pad))
        return -1;
    for (int i = 0; i < 2 * ndim; i++) {
        any |= pad[i] != 0;
        none |= pad[i] < 0 || (pad[i] && i % ndim != rows && i % ndim != cols);
    }
    if (!any)
        return topt_onnx_map_same(x, n);
    if (mode && mode->has_s && (mode->s.len != 8 || memcmp(mode->s.data, "constant", 8)))
        return topt_onnx_fail(x, n, "it repeats pixels of the image: no row does that");
    if (v && (!v->held || topt_onnx_elements(&v->shape) != 1))
        return topt_onnx_fail(x, n, "it pads with no constant number");
    double value = v ? v->held[0] : topt_onnx_real(n, "value", 0);
    if (none || ndim < 3 || ndim > 4)
        return topt_onnx_fail(x, n, "it pads other than rows and columns, or cuts them");
    attrs.pad_top = rows < 0 ? 0 : pad[rows];
    attrs.pad_bottom = rows < 0 ? 0 : pad[ndim + rows];
    attrs.pad_left = pad[cols];
    attrs.pad_right = pad[ndim + cols];
    struct topt_attrs less = {.factor = 1, .shift = -value};
    int t = topt_onnx_image(x, n, a), zero = !(value < 0 || value > 0);
    if (t >= 0 && !zero) /* less the number, zeros, and the number back */
        t = topt_onnx_emit(x, n, "scale", ".less", t, -1, &less);
    t = t < 0 ? -1 : topt_onnx_emit(x, n, "pool", zero ? "" : ".pad", t, -1, &attrs);
    if (topt_onnx_put_image(x, n, t))
        return -1;
    return zero ? 0 : topt_onnx_put_scaled(x, n, onnx_out(x, n, 0), 1, value);
}

/* The mean of an image's pixels, or its only one, as features. */
static int put_pixel(struct onnx *x, const struct onnx_node *n, const char *kind,
                     int tensor)
{
    static const int8_t axes[] = {0, 2, -1, -1, -1};
    int t = tensor < 0 ? -1 : topt_onnx_emit(x, n, kind, "", tensor, -1, NULL);
    if (t < 0)
        return -1;
    topt_onnx_view_fresh(onnx_out(x, n, 0), t, axes);
    return 0;
}

static int pooled(struct onnx *x, const struct onnx_node *n, int tensor,
                  const struct topt_attrs *attrs)
{
    int t = tensor < 0 ? -1 : topt_onnx_emit(x, n, "pool", "", tensor, -1, attrs);
    return topt_onnx_put_image(x, n, t);
}

int topt_onnx_map_pool(struct onnx *x, const struct onnx_node *n)
{
    const struct onnx_value *a = topt_onnx_sample(x, n, 0);
    int average = !strcmp(n->kind->name, "AveragePool");
    struct onnx_window w;
    if (!a || topt_onnx_window(x, n, &w))
        return -1;
    if (onnx_out(x, n, 1) && onnx_out(x, n, 1)->uses)
        return topt_onnx_fail(x, n, "the places of the largest are used");
    if (topt_onnx_int(n, "storage_order", 0))
        return topt_onnx_fail(x, n, "storage_order is not 0");
    int t = topt_onnx_image(x, n, a);
    const struct topt_tensor *image = t < 0 ? NULL : &x->model->tensor[t];
    if (image && average && w.kernel[0] == topt_onnx_extent_of(image, 2) &&
        w.kernel[1] * w.kernel[2] == topt_onnx_extent_of(image, 3) &&
        w.before[0] + w.before[1] + w.before[2] + w.after[0] + w.after[1] + w.after[2] ==
            0)
        return put_pixel(x, n, "global_pool", t);
    struct topt_attrs attrs = slide(&w);
    if (fold_columns(x, n, 0, &w, &attrs))
        return -1;
    attrs.average = average;
    attrs.count_pad = topt_onnx_int(n, "count_include_pad", 0) != 0;
    return pooled(x, n, t, &attrs);
}

/* The mean, or the largest, of all pixels. */
int topt_onnx_map_global_pool(struct onnx *x, const struct onnx_node *n)
{
    const struct onnx_value *a = topt_onnx_sample(x, n, 0);
    int t = a ? topt_onnx_image(x, n, a) : -1;
    if (t < 0 || !strcmp(n->kind->name, "GlobalAveragePool"))
        return put_pixel(x, n, "global_pool", t);
    struct topt_attrs attrs = {.kernel_h = x->model->tensor[t].dim[2].count,
                               .kernel_w = x->model->tensor[t].dim[3].count};
    return put_pixel(x, n, "flatten",
                     topt_onnx_emit(x, n, "pool", ".largest", t, -1, &attrs));
}

/* Of an image's channels, or of features. */
int topt_onnx_map_batch_norm(struct onnx *x, const struct onnx_node *n)
{
    const struct onnx_value *a = topt_onnx_sample(x, n, 0);
    struct topt_attrs attrs = {.eps = topt_onnx_real(n, "epsilon", 1e-5)};
    if (!a)
        return -1;
    struct onnx_view v = a->view;
    if (!topt_onnx_is_image(x, a) && tensor_of(x, &v)->ndim == 3 && a->shape.ndim > 1 &&
        topt_onnx_features(x, n, a, 1, &v))
        return -1;
    if (tensor_of(x, &v)->ndim == 4) {
        v.tensor = topt_onnx_image(x, n, a);
        if (v.tensor < 0 || topt_onnx_put_image(x, n, v.tensor))
            return -1;
        v = onnx_out(x, n, 0)->view;
    }
    onnx_out(x, n, 0)->own_weights = onnx_out(x, n, 0)->uses == 1 ? 3 : 0;
    return topt_onnx_put(x, n, &v,
                         topt_onnx_emit(x, n, "batch_norm", "", v.tensor, -1, &attrs));
}

/* So many groups of channels of each sample. */
static int put_group_norm(struct onnx *x, const struct onnx_node *n,
                          const struct onnx_value *a, int64_t groups)
{
    struct topt_attrs attrs = {.eps = topt_onnx_real(n, "epsilon", 1e-5)};
    int t = topt_onnx_image(x, n, a);
    t = t < 0 ? -1 : topt_onnx_regroup(x, n, t, groups, a->shape.dim[1] / groups);
    if (t >= 0)
        onnx_out(x, n, 0)->own_weights = onnx_out(x, n, 0)->uses == 1 ? 3 : 0;
    t = t < 0 ? -1 : topt_onnx_emit(x, n, "group_norm", "", t, -1, &attrs);
    return topt_onnx_put_image(x, n, t);
}

/* Each channel of each sample by itself. */
int topt_onnx_map_instance_norm(struct onnx *x, const struct onnx_node *n)
{
    const struct onnx_value *a = topt_onnx_sample(x, n, 0);
    return a ? put_group_norm(x, n, a, a->shape.dim[1]) : -1;
}

/* Since set 21 gains and shifts are of channels, as the row has them; before, of groups. */
int topt_onnx_map_group_norm(struct onnx *x, const struct onnx_node *n)
{
    const struct onnx_value *a = topt_onnx_sample(x, n, 0);
    int64_t groups = topt_onnx_int(n, "num_groups", 0);
    if (!a)
        return -1;
    if (groups < 1 || a->shape.ndim < 3 || a->shape.dim[1] % groups)
        return topt_onnx_fail(x, n, "its groups do not divide the channels");
    if (x->opset < 21)
        return topt_onnx_fail(x, n, "its gains are those of groups: no row does that");
    return put_group_norm(x, n, a, groups);
}

/* Channels become pixels, or the other way round: in a plan all numbers are moved twice. */
int topt_onnx_map_depth_to_space(struct onnx *x, const struct onnx_node *n)
{
    const struct onnx_value *a = topt_onnx_sample(x, n, 0);
    const struct onnx_shape *y = &onnx_out(x, n, 0)->shape;
    struct topt_attrs attrs = {.height = y->dim[2], .width = y->dim[3]};
    int t = a ? topt_onnx_image(x, n, a) : -1;
    t = t < 0 ? -1 : topt_onnx_emit(x, n, "flatten", ".flat", t, -1, NULL);
    t = t < 0 ? -1 : topt_onnx_regroup(x, n, t, y->dim[1], y->dim[2] * y->dim[3]);
    t = t < 0 ? -1 : topt_onnx_emit(x, n, "unflatten", "", t, -1, &attrs);
    if (t >= 0 && topt_model_plan_only(x->model, "blocks of channels as pixels", x->err))
        return -1;
    return topt_onnx_put_image(x, n, t);
}

int topt_onnx_map_lrn(struct onnx *x, const struct onnx_node *n)
{
    const struct onnx_value *a = topt_onnx_sample(x, n, 0);
    struct topt_attrs attrs = {.size = topt_onnx_int(n, "size", 0),
                               .alpha = topt_onnx_real(n, "alpha", 1e-4),
                               .beta = topt_onnx_real(n, "beta", 0.75),
                               .bias = topt_onnx_real(n, "bias", 1)};
    int t = a ? topt_onnx_image(x, n, a) : -1;
    t = t < 0 ? -1 : topt_onnx_regroup(x, n, t, a->shape.dim[1], 1);
    t = t < 0 ? -1 : topt_onnx_emit(x, n, "lrn", "", t, -1, &attrs);
    return topt_onnx_put_image(x, n, t);
}

/* ---- other extents ----------------------------------------------------------------- */

/* The attribute, a string. */
static int says(const struct onnx_node *n, const char *name, const char *value,
                int otherwise)
{
    const Onnx__AttributeProto *a = topt_onnx_attr(n, name);
    return a && a->has_s
               ? a->s.len == strlen(value) && !memcmp(a->s.data, value, a->s.len)
               : otherwise;
}

/* Where the centre of output 'i' is among the input's pixels, as the node says. */
static double place_of(const struct onnx_node *n, double i, double in, double out,
                       double scale)
{
    const char *name = "coordinate_transformation_mode";
    int plain = !strcmp(n->kind->name, "Upsample");
    if (says(n, name, "asymmetric", plain))
        return i / scale;
    if (says(n, name, "align_corners", 0))
        return out > 1 ? i * (in - 1) / (out - 1) : 0;
    return (i + 0.5) / scale - 0.5;
}

static double nearest_of(const struct onnx_node *n, double place)
{
    if (says(n, "nearest_mode", "floor", !strcmp(n->kind->name, "Upsample")))
        return floor(place);
    if (says(n, "nearest_mode", "ceil", 0))
        return ceil(place);
    return says(n, "nearest_mode", "round_prefer_ceil", 0) ? floor(place + 0.5)
                                                           : ceil(place - 0.5);
}

/* Is each output, along dimension 'd', made of the pixels that the row takes? */
static int resized_alike(const struct onnx *x, const struct onnx_node *n, int t, int d,
                         double scale)
{
    const struct topt_op *op = &x->model->op[x->model->tensor[t].producer];
    int rows = d == 2;
    double in = (double)op->operand[0].dim[d].count;
    int64_t out = op->operand[1].dim[d].count;
    for (int64_t i = 0; i < out; i++) {
        struct topt_taps taps = topt_resize_taps(op, rows, i);
        double place = place_of(n, (double)i, in, (double)out, scale);
        double want = op->attrs->linear ? place : nearest_of(n, place);
        want = want < 0 ? 0 : want > in - 1 ? in - 1 : want;
        if (fabs((double)taps.low + taps.share - want) > 1e-5)
            return 0;
    }
    return 1;
}

int topt_onnx_map_resize(struct onnx *x, const struct onnx_node *n)
{
    const struct onnx_value *a = topt_onnx_sample(x, n, 0);
    const struct onnx_shape *y = &onnx_out(x, n, 0)->shape;
    double scale[ONNX_MAX_RANK];
    if (!a || topt_onnx_scales(x, n, scale))
        return -1;
    int ndim = a->shape.ndim, t = topt_onnx_image(x, n, a);
    if (t < 0)
        return -1;
    if (y->dim[0] != a->shape.dim[0] || y->dim[1] != a->shape.dim[1] || ndim > 4)
        return topt_onnx_fail(x, n,
                              ndim > 4 ? "it resizes three dimensions"
                                       : "it resizes samples or channels");
    struct topt_attrs attrs = {
        .height = ndim == 4 ? y->dim[2] : 1,
        .width = y->dim[ndim - 1],
        .linear = says(n, "mode", "linear", 0) || says(n, "mode", "bilinear", 0),
        .corners = says(n, "coordinate_transformation_mode", "align_corners", 0)};
    if (!attrs.linear && !says(n, "mode", "nearest", 1))
        return topt_onnx_fail(x, n, "its mode is neither nearest nor linear");
    if (topt_onnx_int(n, "antialias", 0) || topt_onnx_int(n, "exclude_outside", 0))
        return topt_onnx_fail(x, n, "antialias or exclude_outside is set");
    attrs.corners = attrs.corners && attrs.linear;
    t = topt_onnx_emit(x, n, "resize", "", t, -1, &attrs);
    if (t < 0)
        return -1;
    if ((ndim == 4 && !resized_alike(x, n, t, 2, scale[2])) ||
        !resized_alike(x, n, t, 3, scale[ndim - 1]))
        return topt_onnx_fail(x, n,
                              "its pixels lie otherwise than where the row has them: at "
                              "their centres, or, if linear, at the corners");
    return topt_onnx_put_image(x, n, t);
}
