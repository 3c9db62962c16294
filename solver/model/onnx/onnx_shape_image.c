/* onnx_shape_image.c - shapes of what slides a window over images. */
#include "onnx_shape_image.h"
#include "onnx_node.h"
#include "onnx_shape.h"

#include <math.h>
#include <string.h>

/* ---- windows ----------------------------------------------------------------------- */

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
    int64_t kernel[6], stride[6] = {1, 1, 1}, dilation[6] = {1, 1, 1}, pad[6] = {0};
    int rank = a ? a->shape.ndim - 2 : 0, lower, first = rank == 1;
    if (rank < 1 || rank > 3)
        return topt_onnx_fail(x, n, "windows over %d dimensions; 1 to 3 are done", rank);
    int given = topt_onnx_ints(n, "kernel_shape", kernel, 6);
    for (int i = 0; i < rank && given < 0 && w && w->shape.ndim == rank + 2; i++)
        kernel[i] = w->shape.dim[2 + i];
    if (given < 0 && (!w || w->shape.ndim != rank + 2))
        return topt_onnx_fail(x, n, "kernel_shape is missing");
    topt_onnx_ints(n, "strides", stride, 6);
    topt_onnx_ints(n, "dilations", dilation, 6);
    topt_onnx_ints(n, "pads", pad, 6);
    *ret = (struct onnx_window){.kernel = {1, 1, 1},
                                .stride = {1, 1, 1},
                                .dilation = {1, 1, 1},
                                .ceil = (int)topt_onnx_int(n, "ceil_mode", 0)};
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
        int k = i - 2 + (s.ndim == 3);
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

/* ---- what makes images larger ------------------------------------------------------ */

/* Padding that leaves an output of 'want'. */
static void pad_to_output(struct onnx_window *w, int k, int64_t whole, int64_t want,
                          int lower)
{
    int64_t total = whole > want ? whole - want : 0;
    w->before[k] = lower ? total - total / 2 : total / 2;
    w->after[k] = total - w->before[k];
}

/* Extents of the output of a transposed convolution; pads where they follow from
 * those. */
static int spread_extents(const struct onnx *x, const struct onnx_node *n,
                          struct onnx_window *w, int64_t *ret)
{
    const struct onnx_shape *a = &topt_onnx_in(x, n, 0)->shape;
    int64_t more[6] = {0}, want[6];
    int rank = a->ndim - 2, lower, same = same_padding(n, &lower);
    int given = topt_onnx_ints(n, "output_shape", want, 6);
    topt_onnx_ints(n, "output_padding", more, 6);
    for (int i = 0; i < rank; i++) {
        int k = (rank == 1) + i;
        int64_t reach = (w->kernel[k] - 1) * w->dilation[k] + 1;
        if (more[i] < 0 || more[i] > 1 << 15 || a->dim[2 + i] > (int64_t)1 << 30)
            return topt_onnx_fail(x, n, "output_padding must be 0..32768");
        int64_t whole = (a->dim[2 + i] - 1) * w->stride[k] + reach + more[i];
        if (given >= rank) /* with samples and channels before them, or without */
            pad_to_output(w, k, whole, want[given - rank + i], lower || !same);
        else if (same)
            pad_to_output(w, k, whole, a->dim[2 + i] * w->stride[k], lower);
        ret[i] = given >= rank ? want[given - rank + i]
                 : same        ? a->dim[2 + i] * w->stride[k]
                               : whole - w->before[k] - w->after[k];
    }
    return 0;
}

int topt_onnx_spread(const struct onnx *x, const struct onnx_node *n,
                     struct onnx_window *ret)
{
    int64_t extent[6];
    return topt_onnx_window(x, n, ret) || spread_extents(x, n, ret, extent) ? -1 : 0;
}

int topt_onnx_infer_conv_transpose(struct onnx *x, const struct onnx_node *n)
{
    struct onnx_window w;
    int64_t extent[6];
    if (topt_onnx_need(x, n, 2))
        return -1;
    const struct onnx_shape *a = &topt_onnx_in(x, n, 0)->shape,
                            *f = &topt_onnx_in(x, n, 1)->shape;
    int64_t groups = topt_onnx_int(n, "group", 1);
    if (f->ndim != a->ndim || a->ndim < 3 || a->dim[1] != f->dim[0] || groups < 1 ||
        groups > 1 << 20 || f->dim[1] > (int64_t)1 << 40)
        return topt_onnx_fail(x, n, "its weights do not fit its image");
    if (topt_onnx_window(x, n, &w) || spread_extents(x, n, &w, extent))
        return -1;
    struct onnx_shape s = *a;
    s.dim[1] = f->dim[1] * groups;
    for (int i = 2; i < s.ndim; i++)
        s.dim[i] = extent[i - 2];
    return topt_onnx_set(x, n, &s, 0);
}

int topt_onnx_pads(const struct onnx *x, const struct onnx_node *n, int64_t *ret)
{
    int ndim = topt_onnx_in(x, n, 0)->shape.ndim;
    const char *name = topt_onnx_attr(n, "paddings") ? "paddings" : "pads";
    int count = topt_onnx_list(x, n, name, 1, ret);
    return count >= 0 && count == 2 * ndim && !topt_onnx_in(x, n, 3)
               ? 0
               : topt_onnx_fail(
                     x, n,
                     "its pads are not constant, of some axes, or of more than "
                     "4 dimensions");
}

int topt_onnx_infer_pad(struct onnx *x, const struct onnx_node *n)
{
    int64_t pad[ONNX_MAX_RANK];
    if (topt_onnx_need(x, n, 1) || topt_onnx_pads(x, n, pad))
        return -1;
    const struct onnx_value *a = topt_onnx_in(x, n, 0);
    struct onnx_shape s = a->shape;
    for (int d = 0; d < s.ndim; d++) {
        int64_t most = (int64_t)1 << 40;
        if (pad[d] > most || pad[s.ndim + d] > most || pad[d] < -most ||
            pad[s.ndim + d] < -most)
            return topt_onnx_fail(x, n, "a pad is over 2^40");
        s.dim[d] += pad[d] + pad[s.ndim + d];
    }
    return topt_onnx_set(x, n, &s, a->integer);
}

/* Scales, or sizes, are inputs; scales are an attribute of Upsample before set 9. */
int topt_onnx_scales(const struct onnx *x, const struct onnx_node *n, double *ret)
{
    const struct onnx_shape *a = &topt_onnx_in(x, n, 0)->shape;
    int first =
        n->nin > 2 || (x->opset > 10 && strcmp(n->kind->name, "Upsample")) ? 2 : 1;
    const struct onnx_value *scale = topt_onnx_in(x, n, first),
                            *size = topt_onnx_in(x, n, 3);
    const Onnx__AttributeProto *attr = topt_onnx_attr(n, "scales");
    int by_scale = scale && topt_onnx_elements(&scale->shape) == a->ndim && scale->held;
    int by_size =
        !by_scale && size && topt_onnx_elements(&size->shape) == a->ndim && size->held;
    if (topt_onnx_attr(n, "axes") || topt_onnx_attr(n, "keep_aspect_ratio_policy"))
        return topt_onnx_fail(x, n, "axes or keep_aspect_ratio_policy is set");
    if (!by_scale && !by_size && !(attr && attr->n_floats == (size_t)a->ndim))
        return topt_onnx_fail(x, n, "its scales or sizes are not constant");
    for (int d = 0; d < a->ndim; d++) {
        ret[d] = by_scale  ? scale->held[d]
                 : by_size ? size->held[d] / (double)(a->dim[d] ? a->dim[d] : 1)
                           : (double)attr->floats[d];
        if (!(ret[d] > 0 && ret[d] < 1e6))
            return topt_onnx_fail(x, n, "a scale is not above 0 and below 1e6");
    }
    return 0;
}

int topt_onnx_infer_resize(struct onnx *x, const struct onnx_node *n)
{
    double scale[ONNX_MAX_RANK];
    if (topt_onnx_need(x, n, 1) || topt_onnx_scales(x, n, scale))
        return -1;
    struct onnx_shape s = topt_onnx_in(x, n, 0)->shape;
    for (int d = 0; d < s.ndim; d++)
        s.dim[d] = (int64_t)floor((double)s.dim[d] * scale[d] * (1 + 1e-12));
    return topt_onnx_set(x, n, &s, 0);
}

/* Blocks of channels become pixels, or pixels channels. */
static int infer_blocks(struct onnx *x, const struct onnx_node *n, int to_space)
{
    int64_t size = topt_onnx_int(n, "blocksize", 0);
    if (topt_onnx_need(x, n, 1))
        return -1;
    struct onnx_shape s = topt_onnx_in(x, n, 0)->shape;
    if (s.ndim != 4 || size < 1 || size > 1 << 12)
        return topt_onnx_fail(x, n,
                              "its input is no image, or its blocksize not 1..4096");
    if (to_space ? s.dim[1] % (size * size) : s.dim[2] % size || s.dim[3] % size)
        return topt_onnx_fail(x, n, "its blocks do not divide the image");
    s.dim[1] = to_space ? s.dim[1] / size / size : s.dim[1] * size * size;
    for (int d = 2; d < 4; d++)
        s.dim[d] = to_space ? s.dim[d] * size : s.dim[d] / size;
    return topt_onnx_set(x, n, &s, 0);
}

int topt_onnx_infer_depth_to_space(struct onnx *x, const struct onnx_node *n)
{
    return infer_blocks(x, n, 1);
}

int topt_onnx_infer_space_to_depth(struct onnx *x, const struct onnx_node *n)
{
    return infer_blocks(x, n, 0);
}
