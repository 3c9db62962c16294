/* onnx_map_image.c - operators of nodes on images: windows, means, norms of channels. */
#include "onnx_table.h"

#include <string.h>

/* ---- images ---------------------------------------------------------------------------- */

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

/* The output is an image of its own. */
int topt_onnx_put_image(struct onnx *x, const struct onnx_node *n, int tensor)
{
    static const int8_t two[] = {0, 1, 2, 3}, one[] = {0, 1, 3};
    if (tensor < 0)
        return -1;
    topt_onnx_view_fresh(onnx_out(x, n, 0), tensor,
                         onnx_out(x, n, 0)->shape.ndim == 4 ? two : one);
    return 0;
}

/* Groups of channels are the units of the image's.  The tensor that is convolved, or -1. */
static int group_channels(struct onnx *x, const struct onnx_node *n,
                          const struct onnx_value *a, struct topt_attrs *attrs)
{
    int64_t groups = topt_onnx_int(n, "group", 1);
    int64_t features = topt_onnx_in(x, n, 1)->shape.dim[0];
    if (groups == 1) {
        attrs->features = features;
        return a->view.tensor;
    }
    attrs->groups = groups;
    attrs->features_unit = features / groups;
    return topt_onnx_regroup(x, n, a->view.tensor, groups, a->shape.dim[1] / groups);
}

int topt_onnx_map_conv(struct onnx *x, const struct onnx_node *n)
{
    const struct onnx_value *a = topt_onnx_sample(x, n, 0), *w = topt_onnx_in(x, n, 1);
    int bias = topt_onnx_in(x, n, 2) != NULL;
    struct onnx_window win;
    if (!a || topt_onnx_window(x, n, &win))
        return -1;
    if (!w->constant)
        return topt_onnx_fail(x, n, "its weights depend on samples");
    struct topt_attrs attrs = slide(&win);
    if (!topt_onnx_is_image(x, a)) {
        int64_t pixels =
            topt_onnx_elements(&a->shape) / a->shape.dim[0] / a->shape.dim[1];
        return pixels == 1 && topt_onnx_int(n, "group", 1) == 1 &&
                       topt_onnx_elements(&onnx_out(x, n, 0)->shape) ==
                           onnx_out(x, n, 0)->shape.dim[0] * w->shape.dim[0] &&
                       win.kernel[0] * win.kernel[1] == 1
                   ? topt_onnx_product(x, n, a, 1, w->shape.dim[0], bias, 1)
                   : topt_onnx_fail(x, n, "a convolution over a sequence, not an image");
    }
    int t = group_channels(x, n, a, &attrs);
    if (t >= 0)
        t = topt_onnx_emit(x, n, attrs.groups ? "conv_grouped" : "conv",
                           bias ? ".conv" : "", t, -1, &attrs);
    if (t >= 0 && bias)
        t = topt_onnx_emit(x, n, "bias", "", t, -1, NULL);
    return topt_onnx_put_image(x, n, t);
}

int topt_onnx_mean_of_image(struct onnx *x, const struct onnx_node *n,
                            const struct onnx_value *a)
{
    static const int8_t axes[] = {0, 2, -1, -1};
    int t = topt_onnx_emit(x, n, "global_pool", "", a->view.tensor, -1, NULL);
    if (t < 0)
        return -1;
    topt_onnx_view_fresh(onnx_out(x, n, 0), t, axes);
    return 0;
}

int topt_onnx_map_pool(struct onnx *x, const struct onnx_node *n)
{
    const struct onnx_value *a = topt_onnx_sample(x, n, 0);
    int average = !strcmp(n->kind->name, "AveragePool");
    struct onnx_window w;
    if (!a || topt_onnx_window(x, n, &w))
        return -1;
    if (!topt_onnx_is_image(x, a))
        return topt_onnx_fail(x, n, "it pools no image");
    if (n->nout > 1 && n->out[1] >= 0 && x->value[n->out[1]].uses)
        return topt_onnx_fail(x, n, "the places of the largest are used");
    if (topt_onnx_int(n, "storage_order", 0))
        return topt_onnx_fail(x, n, "storage_order is not 0");
    const struct topt_tensor *t = tensor_of(x, &a->view);
    if (average && w.kernel[0] == topt_onnx_extent_of(t, 2) &&
        w.kernel[1] == topt_onnx_extent_of(t, 3) &&
        w.before[0] + w.before[1] + w.after[0] + w.after[1] == 0)
        return topt_onnx_mean_of_image(x, n, a);
    struct topt_attrs attrs = slide(&w);
    attrs.average = average;
    attrs.count_pad = topt_onnx_int(n, "count_include_pad", 0) != 0;
    return topt_onnx_put_image(
        x, n, topt_onnx_emit(x, n, "pool", "", a->view.tensor, -1, &attrs));
}

int topt_onnx_map_global_pool(struct onnx *x, const struct onnx_node *n)
{
    const struct onnx_value *a = topt_onnx_sample(x, n, 0);
    if (!a)
        return -1;
    return topt_onnx_is_image(x, a) ? topt_onnx_mean_of_image(x, n, a)
                                    : topt_onnx_fail(x, n, "it pools no image");
}

int topt_onnx_map_batch_norm(struct onnx *x, const struct onnx_node *n)
{
    const struct onnx_value *a = topt_onnx_sample(x, n, 0);
    struct topt_attrs attrs = {.eps = topt_onnx_real(n, "epsilon", 1e-5)};
    if (!a)
        return -1;
    onnx_out(x, n, 0)->own_weights = onnx_out(x, n, 0)->uses == 1 ? 3 : 0;
    return topt_onnx_is_image(x, a)
               ? topt_onnx_put(
                     x, n, &a->view,
                     topt_onnx_emit(x, n, "batch_norm", "", a->view.tensor, -1, &attrs))
               : topt_onnx_fail(x, n, "it normalises no image");
}

int topt_onnx_map_lrn(struct onnx *x, const struct onnx_node *n)
{
    const struct onnx_value *a = topt_onnx_sample(x, n, 0);
    struct topt_attrs attrs = {.size = topt_onnx_int(n, "size", 0),
                               .alpha = topt_onnx_real(n, "alpha", 1e-4),
                               .beta = topt_onnx_real(n, "beta", 0.75),
                               .bias = topt_onnx_real(n, "bias", 1)};
    if (!a)
        return -1;
    if (!topt_onnx_is_image(x, a))
        return topt_onnx_fail(x, n, "it normalises no image");
    int t = topt_onnx_regroup(x, n, a->view.tensor, a->shape.dim[1], 1);
    t = t < 0 ? -1 : topt_onnx_emit(x, n, "lrn", "", t, -1, &attrs);
    return topt_onnx_put(x, n, &a->view, t);
}
