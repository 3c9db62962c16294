/* onnx_shape_image.c - shapes of what slides a window over images. */
#include "onnx_table.h"

#include <string.h>

/* ---- windows --------------------------------------------------------------------------- */

static int same_padding(const struct onnx_node *n, int *ret_lower)
{
    const Onnx__AttributeProto *a = topt_onnx_attr(n, "auto_pad");
    size_t len = a && a->has_s ? a->s.len : 0;
    const char *s = len ? (const char *)a->s.data : "";
    *ret_lower = len == 10 && !memcmp(s, "SAME_LOWER", 10);
    return *ret_lower || (len == 10 && !memcmp(s, "SAME_UPPER", 10));
}

/* Padding so that there is a window for each 'stride' of the extent. */
static void pad_to_same(struct onnx_window *w, int i, int64_t extent, int lower)
{
    int64_t count = (extent + w->stride[i] - 1) / w->stride[i];
    int64_t reach = (w->kernel[i] - 1) * w->dilation[i] + 1;
    int64_t total = (count - 1) * w->stride[i] + reach - extent;
    total = total > 0 ? total : 0;
    w->before[i] = lower ? total - total / 2 : total / 2;
    w->after[i] = total - w->before[i];
}

int topt_onnx_window(const struct onnx *x, const struct onnx_node *n,
                     struct onnx_window *ret)
{
    const struct onnx_value *a = topt_onnx_in(x, n, 0), *w = topt_onnx_in(x, n, 1);
    int64_t kernel[4], stride[4] = {1, 1, 1, 1}, dilation[4] = {1, 1, 1, 1}, pad[4] = {0};
    int rank = a ? a->shape.ndim - 2 : 0, lower, first = 2 - rank;
    if (rank < 1 || rank > 2)
        return topt_onnx_fail(x, n, "windows over %d dimensions; 1 and 2 are done", rank);
    int given = topt_onnx_ints(n, "kernel_shape", kernel, 4);
    for (int i = 0; i < rank && given < 0 && w && w->shape.ndim == rank + 2; i++)
        kernel[i] = w->shape.dim[2 + i];
    if (given < 0 && (!w || w->shape.ndim != rank + 2))
        return topt_onnx_fail(x, n, "kernel_shape is missing");
    topt_onnx_ints(n, "strides", stride, 4);
    topt_onnx_ints(n, "dilations", dilation, 4);
    topt_onnx_ints(n, "pads", pad, 4);
    *ret = (struct onnx_window){{1, 1}, {1, 1}, {1, 1},
                                {0, 0}, {0, 0}, (int)topt_onnx_int(n, "ceil_mode", 0)};
    int same = same_padding(n, &lower);
    for (int i = 0; i < rank; i++) {
        int k = first + i;
        ret->kernel[k] = kernel[i];
        ret->stride[k] = stride[i];
        ret->dilation[k] = dilation[i];
        if (kernel[i] < 1 || stride[i] < 1 || dilation[i] < 1 || kernel[i] > 1 << 15 ||
            stride[i] > 1 << 15 || dilation[i] > 1 << 15)
            return topt_onnx_fail(x, n, "kernel, strides and dilations must be 1..32768");
        ret->before[k] = pad[i];
        ret->after[k] = pad[rank + i];
        if (same)
            pad_to_same(ret, k, a->shape.dim[2 + i], lower);
        if (ret->before[k] < 0 || ret->after[k] < 0 || ret->before[k] > 1 << 15 ||
            ret->after[k] > 1 << 15)
            return topt_onnx_fail(x, n, "pads must be 0..32768");
    }
    return 0;
}

/* Windows along the spatial dimensions, behind 'channels'. */
static int infer_windows(struct onnx *x, const struct onnx_node *n, int64_t channels)
{
    const struct onnx_value *a = topt_onnx_in(x, n, 0);
    struct onnx_shape s = a->shape;
    struct onnx_window w;
    if (topt_onnx_window(x, n, &w))
        return -1;
    s.dim[1] = channels;
    for (int i = 2; i < s.ndim; i++) {
        int k = i - 2 + 4 - s.ndim;
        int64_t reach = (w.kernel[k] - 1) * w.dilation[k] + 1;
        int64_t room = a->shape.dim[i] + w.before[k] + w.after[k] - reach;
        if (room < 0)
            return topt_onnx_fail(x, n, "its window is larger than the image");
        s.dim[i] = room / w.stride[k] + 1;
        if (w.ceil && room % w.stride[k] &&
            s.dim[i] * w.stride[k] < a->shape.dim[i] + w.before[k])
            s.dim[i]++;
    }
    return topt_onnx_set(x, n, &s, 0);
}

int topt_onnx_infer_conv(struct onnx *x, const struct onnx_node *n)
{
    if (topt_onnx_need(x, n, 2))
        return -1;
    const struct onnx_value *a = topt_onnx_in(x, n, 0), *w = topt_onnx_in(x, n, 1);
    int64_t groups = topt_onnx_int(n, "group", 1);
    if (w->shape.ndim != a->shape.ndim || a->shape.ndim < 3)
        return topt_onnx_fail(x, n, "its weights have %d dimensions, the image %d",
                              w->shape.ndim, a->shape.ndim);
    if (groups < 1 || a->shape.dim[1] != w->shape.dim[1] * groups ||
        w->shape.dim[0] % groups)
        return topt_onnx_fail(x, n, "%lld channels do not fit %lld groups of %lld",
                              (long long)a->shape.dim[1], (long long)groups,
                              (long long)w->shape.dim[1]);
    return infer_windows(x, n, w->shape.dim[0]);
}

int topt_onnx_infer_pool(struct onnx *x, const struct onnx_node *n)
{
    if (topt_onnx_need(x, n, 1))
        return -1;
    const struct onnx_value *a = topt_onnx_in(x, n, 0);
    return a->shape.ndim < 3 ? topt_onnx_fail(x, n, "its input is no image")
                             : infer_windows(x, n, a->shape.dim[1]);
}

int topt_onnx_infer_global_pool(struct onnx *x, const struct onnx_node *n)
{
    if (topt_onnx_need(x, n, 1))
        return -1;
    struct onnx_shape s = topt_onnx_in(x, n, 0)->shape;
    for (int d = 2; d < s.ndim; d++)
        s.dim[d] = 1;
    return topt_onnx_set(x, n, &s, 0);
}
