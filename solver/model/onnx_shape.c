/* onnx_shape.c - the shape of every value that the output needs.
 *
 * One function a way of inferring, one row a type of node.  Constants are folded on the way,
 * since shapes are computed from them.  The rules are those of the operators' documentation,
 * sets 6 to 19. */
#include "onnx.h"

#include <string.h>

/* ---- helpers --------------------------------------------------------------------------- */

static struct onnx_value *out(struct onnx *x, const struct onnx_node *n, int i)
{
    return i < n->nout && n->out[i] >= 0 ? &x->value[n->out[i]] : NULL;
}

static int set(struct onnx *x, const struct onnx_node *n, const struct onnx_shape *s,
               int integer)
{
    struct onnx_value *y = out(x, n, 0);
    double volume = 1;
    if (!y)
        return topt_onnx_fail(x, n, "it has no output");
    for (int d = 0; d < s->ndim; d++) {
        if (s->dim[d] < 0)
            return topt_onnx_fail(x, n, "dimension %d of its output would be negative",
                                  d);
        volume *= (double)s->dim[d];
    }
    if (volume >= 0x1p46)
        return topt_onnx_fail(x, n, "its output would have %.3g elements, over 2^46",
                              volume);
    y->shape = *s;
    y->known = 1;
    y->integer = integer;
    return 0;
}

int topt_onnx_axis(const struct onnx_node *n, int ndim, int64_t otherwise)
{
    int64_t axis = topt_onnx_int(n, "axis", otherwise);
    axis += axis < 0 ? ndim : 0;
    return axis < 0 || axis > ndim ? -1 : (int)axis;
}

int topt_onnx_list(const struct onnx *x, const struct onnx_node *n, const char *name,
                   int i, int64_t *ret)
{
    const struct onnx_value *v = topt_onnx_in(x, n, i);
    if (!v)
        return topt_onnx_ints(n, name, ret, ONNX_MAX_RANK);
    int64_t count = topt_onnx_elements(&v->shape);
    if (!v->held || count > ONNX_MAX_RANK)
        return -2;
    for (int64_t k = 0; k < count; k++)
        ret[k] = v->held[k] > 0x1p60    ? (int64_t)1 << 60
                 : v->held[k] < -0x1p60 ? -((int64_t)1 << 60)
                                        : (int64_t)v->held[k];
    return (int)count;
}

/* The first inputs must be there. */
static int need_input(const struct onnx *x, const struct onnx_node *n, int count)
{
    for (int i = 0; i < count; i++)
        if (!topt_onnx_in(x, n, i))
            return topt_onnx_fail(x, n, "input %d is missing", i);
    return 0;
}

/* ---- elementwise ----------------------------------------------------------------------- */

static int infer_same(struct onnx *x, const struct onnx_node *n)
{
    if (need_input(x, n, 1))
        return -1;
    const struct onnx_value *a = topt_onnx_in(x, n, 0);
    return set(x, n, &a->shape, a->integer);
}

static int infer_cast(struct onnx *x, const struct onnx_node *n)
{
    int64_t to = topt_onnx_int(n, "to", ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT);
    if (need_input(x, n, 1))
        return -1;
    return set(x, n, &topt_onnx_in(x, n, 0)->shape,
               to != ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT &&
                   to != ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE &&
                   to != ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16 &&
                   to != ONNX__TENSOR_PROTO__DATA_TYPE__BFLOAT16);
}

static int broadcast(const struct onnx_shape *a, struct onnx_shape *ret)
{
    struct onnx_shape s = {.ndim = a->ndim > ret->ndim ? a->ndim : ret->ndim};
    for (int d = 1; d <= s.ndim; d++) {
        int64_t p = d <= a->ndim ? a->dim[a->ndim - d] : 1;
        int64_t q = d <= ret->ndim ? ret->dim[ret->ndim - d] : 1;
        if (p != q && p != 1 && q != 1)
            return -1;
        s.dim[s.ndim - d] = p == 1 ? q : p;
    }
    *ret = s;
    return 0;
}

static int infer_broadcast(struct onnx *x, const struct onnx_node *n)
{
    struct onnx_shape s = {0};
    static const char *const any[] = {"Sum", "Max", "Min", NULL};
    int integer = 1, count = !strcmp(n->kind->name, "Where") ? 3 : 2;
    for (int i = 0; any[i]; i++)
        if (!strcmp(n->kind->name, any[i]))
            count = n->nin;
    if (need_input(x, n, n->nin))
        return -1;
    if (n->nin != count || !count)
        return topt_onnx_fail(x, n, "it has %d inputs", n->nin);
    if (topt_onnx_attr(n, "axis")) /* before set 7 */
        return topt_onnx_fail(x, n, "it aligns its inputs by an axis");
    for (int i = 0; i < n->nin; i++) {
        const struct onnx_value *a = topt_onnx_in(x, n, i);
        integer &= a->integer;
        if (broadcast(&a->shape, &s))
            return topt_onnx_fail(x, n, "the shapes of its inputs do not fit together");
    }
    return set(x, n, &s, integer);
}

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
    return set(x, n, &s, 0);
}

static int infer_conv(struct onnx *x, const struct onnx_node *n)
{
    if (need_input(x, n, 2))
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

static int infer_pool(struct onnx *x, const struct onnx_node *n)
{
    if (need_input(x, n, 1))
        return -1;
    const struct onnx_value *a = topt_onnx_in(x, n, 0);
    return a->shape.ndim < 3 ? topt_onnx_fail(x, n, "its input is no image")
                             : infer_windows(x, n, a->shape.dim[1]);
}

static int infer_global_pool(struct onnx *x, const struct onnx_node *n)
{
    if (need_input(x, n, 1))
        return -1;
    struct onnx_shape s = topt_onnx_in(x, n, 0)->shape;
    for (int d = 2; d < s.ndim; d++)
        s.dim[d] = 1;
    return set(x, n, &s, 0);
}

/* ---- products -------------------------------------------------------------------------- */

static int infer_matmul(struct onnx *x, const struct onnx_node *n)
{
    if (need_input(x, n, 2))
        return -1;
    struct onnx_shape a = topt_onnx_in(x, n, 0)->shape, b = topt_onnx_in(x, n, 1)->shape;
    if (a.ndim < 2 || b.ndim < 2)
        return topt_onnx_fail(x, n, "a factor has one dimension");
    int64_t rows = a.dim[a.ndim - 2], k = a.dim[a.ndim - 1], cols = b.dim[b.ndim - 1];
    if (k != b.dim[b.ndim - 2])
        return topt_onnx_fail(x, n, "%lld columns times %lld rows", (long long)k,
                              (long long)b.dim[b.ndim - 2]);
    a.ndim -= 2;
    b.ndim -= 2;
    if (broadcast(&a, &b) || b.ndim > ONNX_MAX_RANK - 2)
        return topt_onnx_fail(x, n, "the batches of its factors do not fit together");
    b.dim[b.ndim++] = rows;
    b.dim[b.ndim++] = cols;
    return set(x, n, &b, 0);
}

static int infer_gemm(struct onnx *x, const struct onnx_node *n)
{
    if (need_input(x, n, 2))
        return -1;
    const struct onnx_shape *a = &topt_onnx_in(x, n, 0)->shape,
                            *b = &topt_onnx_in(x, n, 1)->shape;
    int ta = topt_onnx_int(n, "transA", 0) != 0, tb = topt_onnx_int(n, "transB", 0) != 0;
    if (a->ndim != 2 || b->ndim != 2 || a->dim[!ta] != b->dim[tb])
        return topt_onnx_fail(x, n, "its factors do not fit together");
    struct onnx_shape s = {2, {a->dim[ta], b->dim[!tb]}};
    return set(x, n, &s, 0);
}

/* x is [steps, samples, features], or samples first; y has directions behind the steps. */
static int infer_recurrent(struct onnx *x, const struct onnx_node *n)
{
    if (need_input(x, n, 3))
        return -1;
    const struct onnx_shape *a = &topt_onnx_in(x, n, 0)->shape,
                            *r = &topt_onnx_in(x, n, 2)->shape;
    int first = topt_onnx_int(n, "layout", 0) != 0;
    if (a->ndim != 3 || r->ndim != 3)
        return topt_onnx_fail(x, n, "its inputs must have 3 dimensions");
    struct onnx_shape s = {4, {a->dim[0], r->dim[0], a->dim[1], r->dim[2]}};
    struct onnx_shape last = {3, {r->dim[0], a->dim[1], r->dim[2]}};
    if (first) {
        s = (struct onnx_shape){4, {a->dim[0], a->dim[1], r->dim[0], r->dim[2]}};
        last = (struct onnx_shape){3, {a->dim[0], r->dim[0], r->dim[2]}};
    }
    for (int i = 1; i < 3; i++)
        if (out(x, n, i)) {
            out(x, n, i)->shape = last;
            out(x, n, i)->known = 1;
        }
    return out(x, n, 0) ? set(x, n, &s, 0) : 0;
}

/* ---- arrangement ----------------------------------------------------------------------- */

static int infer_reshape(struct onnx *x, const struct onnx_node *n)
{
    int64_t want[ONNX_MAX_RANK], rest = -1;
    double volume = 1, total;
    if (need_input(x, n, 2))
        return -1;
    const struct onnx_value *a = topt_onnx_in(x, n, 0);
    int count = topt_onnx_list(x, n, "shape", 1, want);
    if (count < 0)
        return topt_onnx_fail(x, n, "its shape is not constant");
    struct onnx_shape s = {.ndim = count};
    for (int d = 0; d < count; d++) {
        s.dim[d] = want[d];
        if (want[d] == 0 && !topt_onnx_int(n, "allowzero", 0)) {
            if (d >= a->shape.ndim)
                return topt_onnx_fail(x, n, "0 stands for a dimension that is not there");
            s.dim[d] = a->shape.dim[d];
        }
        if (s.dim[d] == -1 && rest < 0)
            rest = d;
        else if (s.dim[d] < 0 || s.dim[d] > (int64_t)1 << 46)
            return topt_onnx_fail(x, n, "%lld is no extent", (long long)s.dim[d]);
        else
            volume *= (double)s.dim[d];
    }
    total = (double)topt_onnx_elements(&a->shape);
    if (rest >= 0) {
        s.dim[rest] = volume > 0 ? (int64_t)(total / volume) : 0;
        volume *= (double)s.dim[rest];
    }
    if (volume < total || volume > total)
        return topt_onnx_fail(x, n, "%.0f elements can't have its shape", total);
    return set(x, n, &s, a->integer);
}

static int infer_flatten(struct onnx *x, const struct onnx_node *n)
{
    if (need_input(x, n, 1))
        return -1;
    const struct onnx_value *a = topt_onnx_in(x, n, 0);
    int axis = topt_onnx_axis(n, a->shape.ndim, 1);
    struct onnx_shape s = {2, {1, 1}};
    if (axis < 0)
        return topt_onnx_fail(x, n, "its axis is not there");
    for (int d = 0; d < a->shape.ndim; d++)
        s.dim[d >= axis] *= a->shape.dim[d];
    return set(x, n, &s, a->integer);
}

void topt_onnx_perm(const struct onnx *x, const struct onnx_node *n, int64_t *ret)
{
    int ndim = topt_onnx_in(x, n, 0)->shape.ndim;
    for (int d = 0; d < ndim; d++)
        ret[d] = ndim - 1 - d;
    topt_onnx_ints(n, "perm", ret, ndim);
}

static int infer_transpose(struct onnx *x, const struct onnx_node *n)
{
    int64_t perm[ONNX_MAX_RANK];
    int seen = 0;
    if (need_input(x, n, 1))
        return -1;
    const struct onnx_value *a = topt_onnx_in(x, n, 0);
    struct onnx_shape s = {.ndim = a->shape.ndim};
    topt_onnx_perm(x, n, perm);
    for (int d = 0; d < s.ndim; d++) {
        if (perm[d] < 0 || perm[d] >= s.ndim || seen >> perm[d] & 1)
            return topt_onnx_fail(x, n, "perm is no permutation");
        seen |= 1 << perm[d];
        s.dim[d] = a->shape.dim[perm[d]];
    }
    return set(x, n, &s, a->integer);
}

/* Bits of the axes that a list names; -1 where one is not there. */
static int axes_of(const int64_t *list, int count, int ndim)
{
    int bits = 0;
    for (int i = 0; i < count; i++) {
        int64_t axis = list[i] < 0 ? list[i] + ndim : list[i];
        if (axis < 0 || axis >= ndim)
            return -1;
        bits |= 1 << axis;
    }
    return bits;
}

static int infer_squeeze(struct onnx *x, const struct onnx_node *n)
{
    int64_t axes[ONNX_MAX_RANK];
    if (need_input(x, n, 1))
        return -1;
    const struct onnx_value *a = topt_onnx_in(x, n, 0);
    int count = topt_onnx_list(x, n, "axes", 1, axes), bits = 0;
    struct onnx_shape s = {0};
    if (count == -2)
        return topt_onnx_fail(x, n, "its axes are not constant");
    for (int d = 0; d < a->shape.ndim && count < 0; d++)
        bits |= (a->shape.dim[d] == 1) << d;
    if (count >= 0)
        bits = axes_of(axes, count, a->shape.ndim);
    if (bits < 0)
        return topt_onnx_fail(x, n, "an axis is not there");
    for (int d = 0; d < a->shape.ndim; d++) {
        if (!(bits >> d & 1))
            s.dim[s.ndim++] = a->shape.dim[d];
        else if (a->shape.dim[d] != 1)
            return topt_onnx_fail(x, n, "dimension %d is %lld, not 1", d,
                                  (long long)a->shape.dim[d]);
    }
    return set(x, n, &s, a->integer);
}

static int infer_unsqueeze(struct onnx *x, const struct onnx_node *n)
{
    int64_t axes[ONNX_MAX_RANK];
    if (need_input(x, n, 1))
        return -1;
    const struct onnx_value *a = topt_onnx_in(x, n, 0);
    int count = topt_onnx_list(x, n, "axes", 1, axes);
    struct onnx_shape s = {.ndim = a->shape.ndim + count};
    if (count < 0 || s.ndim > ONNX_MAX_RANK)
        return topt_onnx_fail(x, n, "its axes are not constant or too many");
    int bits = axes_of(axes, count, s.ndim);
    for (int d = 0, from = 0; d < s.ndim && bits >= 0; d++)
        if (bits >> d & 1)
            s.dim[d] = 1;
        else if (from < a->shape.ndim)
            s.dim[d] = a->shape.dim[from++];
        else
            bits = -1;
    return bits < 0 ? topt_onnx_fail(x, n, "an axis is not there, or there twice")
                    : set(x, n, &s, a->integer);
}

static int infer_concat(struct onnx *x, const struct onnx_node *n)
{
    if (need_input(x, n, n->nin) || need_input(x, n, 1))
        return -1;
    struct onnx_shape s = topt_onnx_in(x, n, 0)->shape;
    int axis = topt_onnx_axis(n, s.ndim, 1);
    for (int i = 1; i < n->nin; i++) {
        const struct onnx_shape *a = &topt_onnx_in(x, n, i)->shape;
        for (int d = 0; d < s.ndim; d++)
            if (a->ndim != s.ndim || (d != axis && a->dim[d] != s.dim[d]))
                return topt_onnx_fail(x, n,
                                      "the shapes of its inputs do not fit together");
        if (axis >= 0 && axis < s.ndim)
            s.dim[axis] += a->dim[axis];
    }
    return axis < 0 || axis >= s.ndim ? topt_onnx_fail(x, n, "its axis is not there")
                                      : set(x, n, &s, topt_onnx_in(x, n, 0)->integer);
}

static int infer_split(struct onnx *x, const struct onnx_node *n)
{
    int64_t part[ONNX_MAX_RANK];
    if (need_input(x, n, 1))
        return -1;
    const struct onnx_value *a = topt_onnx_in(x, n, 0);
    int axis = topt_onnx_axis(n, a->shape.ndim, 0);
    int count = topt_onnx_list(x, n, "split", 1, part);
    if (axis < 0 || axis >= a->shape.ndim || count == -2)
        return topt_onnx_fail(x, n, "its axis is not there or its parts not constant");
    int64_t extent = a->shape.dim[axis],
            even = n->nout ? (extent + n->nout - 1) / n->nout : 0;
    for (int i = 0; i < n->nout; i++) {
        struct onnx_value *y = out(x, n, i);
        if (count >= 0 && i >= count)
            return topt_onnx_fail(x, n, "it has %d parts and %d outputs", count, n->nout);
        if (!y)
            continue;
        y->shape = a->shape;
        y->shape.dim[axis] = count > i         ? part[i]
                             : i + 1 < n->nout ? even
                                               : extent - even * (n->nout - 1);
        if (y->shape.dim[axis] < 0 || y->shape.dim[axis] > extent)
            return topt_onnx_fail(x, n, "part %d has %lld of %lld", i,
                                  (long long)y->shape.dim[axis], (long long)extent);
        y->known = 1;
        y->integer = a->integer;
    }
    return 0;
}

/* Clamp to what a slice may start or end at. */
static int64_t clamp(int64_t at, int64_t low, int64_t high)
{
    return at < low ? low : at > high ? high : at;
}

/* First place, step and count in each dimension; -1 where they are not constant. */
static int read_slices(const struct onnx *x, const struct onnx_node *n, int64_t *start,
                       int64_t *step, int64_t *count)
{
    int64_t from[ONNX_MAX_RANK], to[ONNX_MAX_RANK], axes[ONNX_MAX_RANK],
        jump[ONNX_MAX_RANK];
    const struct onnx_shape *a = &topt_onnx_in(x, n, 0)->shape;
    int given = topt_onnx_list(x, n, "starts", 1, from);
    int ends = topt_onnx_list(x, n, "ends", 2, to),
        naxes = topt_onnx_list(x, n, "axes", 3, axes),
        njumps = topt_onnx_list(x, n, "steps", 4, jump);
    if (given < 0 || ends != given || naxes == -2 || njumps == -2 || given > a->ndim ||
        (naxes >= 0 && naxes != given) || (njumps >= 0 && njumps != given))
        return -1;
    for (int d = 0; d < a->ndim; d++)
        start[d] = 0, step[d] = 1, count[d] = a->dim[d];
    for (int i = 0; i < given; i++) {
        int64_t d = naxes >= 0 ? axes[i] : i, by = njumps >= 0 ? jump[i] : 1;
        d += d < 0 ? a->ndim : 0;
        if (d < 0 || d >= a->ndim || by == 0 || by > 1 << 30 || by < -(1 << 30))
            return -1;
        int64_t extent = a->dim[d], low = by < 0 ? -1 : 0,
                high = by < 0 ? extent - 1 : extent;
        int64_t first = clamp(from[i] < 0 ? from[i] + extent : from[i], 0, high);
        int64_t last = clamp(to[i] < 0 ? to[i] + extent : to[i], low, high);
        int64_t span = by > 0 ? last - first : first - last;
        int64_t size = by > 0 ? by : -by;
        start[d] = first;
        step[d] = by;
        count[d] = span > 0 ? (span + size - 1) / size : 0;
    }
    return 0;
}

void topt_onnx_slices(const struct onnx *x, const struct onnx_node *n, int64_t *start,
                      int64_t *step)
{
    int64_t count[ONNX_MAX_RANK];
    if (read_slices(x, n, start, step, count))
        memset(start, 0, sizeof(int64_t) * ONNX_MAX_RANK);
}

static int infer_slice(struct onnx *x, const struct onnx_node *n)
{
    int64_t start[ONNX_MAX_RANK], step[ONNX_MAX_RANK];
    if (need_input(x, n, 1))
        return -1;
    struct onnx_shape s = topt_onnx_in(x, n, 0)->shape;
    if (read_slices(x, n, start, step, s.dim))
        return topt_onnx_fail(x, n,
                              "its starts, ends, axes or steps are not constant or "
                              "do not fit its input");
    return set(x, n, &s, topt_onnx_in(x, n, 0)->integer);
}

static int infer_gather(struct onnx *x, const struct onnx_node *n)
{
    if (need_input(x, n, 2))
        return -1;
    const struct onnx_value *a = topt_onnx_in(x, n, 0), *at = topt_onnx_in(x, n, 1);
    int axis = topt_onnx_axis(n, a->shape.ndim, 0);
    struct onnx_shape s = {0};
    if (axis < 0 || axis >= a->shape.ndim ||
        a->shape.ndim + at->shape.ndim - 1 > ONNX_MAX_RANK)
        return topt_onnx_fail(x, n,
                              "its axis is not there or it has too many dimensions");
    for (int d = 0; d < a->shape.ndim; d++) {
        if (d != axis)
            s.dim[s.ndim++] = a->shape.dim[d];
        for (int k = 0; d == axis && k < at->shape.ndim; k++)
            s.dim[s.ndim++] = at->shape.dim[k];
    }
    return set(x, n, &s, a->integer);
}

static int infer_reduce(struct onnx *x, const struct onnx_node *n)
{
    int64_t axes[ONNX_MAX_RANK];
    if (need_input(x, n, 1))
        return -1;
    const struct onnx_value *a = topt_onnx_in(x, n, 0);
    int keep = topt_onnx_int(n, "keepdims", 1) != 0;
    int count = topt_onnx_list(x, n, "axes", 1, axes);
    int all = (1 << a->shape.ndim) - 1;
    int bits = count < 0                                                    ? all
               : count == 0 && !topt_onnx_int(n, "noop_with_empty_axes", 0) ? all
                                                                            : 0;
    struct onnx_shape s = {0};
    if (count > 0)
        bits = axes_of(axes, count, a->shape.ndim);
    if (bits < 0 || count == -2)
        return topt_onnx_fail(x, n, "an axis is not there or not constant");
    for (int d = 0; d < a->shape.ndim; d++)
        if (!(bits >> d & 1))
            s.dim[s.ndim++] = a->shape.dim[d];
        else if (keep)
            s.dim[s.ndim++] = 1;
    return set(x, n, &s, a->integer);
}

/* ---- shapes and constants -------------------------------------------------------------- */

static int infer_shape(struct onnx *x, const struct onnx_node *n)
{
    if (need_input(x, n, 1))
        return -1;
    struct onnx_shape s = {1, {topt_onnx_in(x, n, 0)->shape.ndim}};
    return set(x, n, &s, 1);
}

static int infer_expand(struct onnx *x, const struct onnx_node *n)
{
    int64_t want[ONNX_MAX_RANK];
    if (need_input(x, n, 2))
        return -1;
    const struct onnx_value *a = topt_onnx_in(x, n, 0);
    int count = topt_onnx_list(x, n, "shape", 1, want);
    struct onnx_shape s = {.ndim = count};
    if (count < 0)
        return topt_onnx_fail(x, n, "its shape is not constant");
    memcpy(s.dim, want, sizeof s.dim[0] * (size_t)count);
    return broadcast(&a->shape, &s) ? topt_onnx_fail(x, n, "its shape does not fit")
                                    : set(x, n, &s, a->integer);
}

static int infer_range(struct onnx *x, const struct onnx_node *n)
{
    double v[3];
    for (int i = 0; i < 3; i++) {
        const struct onnx_value *a = topt_onnx_in(x, n, i);
        if (!a || !a->held || topt_onnx_elements(&a->shape) < 1)
            return topt_onnx_fail(x, n, "its ends are not constant");
        v[i] = a->held[0];
    }
    double count = (v[1] - v[0]) / v[2];
    if (!(count < 0x1p40))
        return topt_onnx_fail(x, n, "it never ends");
    struct onnx_shape s = {
        1, {count > 0 ? (int64_t)count + (count > (double)(int64_t)count) : 0}};
    return set(x, n, &s, topt_onnx_in(x, n, 0)->integer);
}

static int infer_constant(struct onnx *x, const struct onnx_node *n)
{
    const Onnx__AttributeProto *t = topt_onnx_attr(n, "value"),
                               *f = topt_onnx_attr(n, "value_float"),
                               *i = topt_onnx_attr(n, "value_int"),
                               *list = topt_onnx_attr(n, "value_ints");
    struct onnx_shape s = {0};
    double *held = NULL;
    int integer = i || list;
    if (t && t->t && t->t->n_dims <= ONNX_MAX_RANK) {
        s.ndim = (int)t->t->n_dims;
        for (int d = 0; d < s.ndim; d++)
            s.dim[d] = t->t->dims[d];
        held = topt_onnx_numbers(x, t->t);
        integer = t->t->data_type != ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT &&
                  t->t->data_type != ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE &&
                  t->t->data_type != ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16;
    } else if ((f && f->has_f) || (i && i->has_i)) {
        held = TOPT_NEW(x->arena, 1, double);
        if (held)
            *held = f ? (double)f->f : (double)i->i;
    } else if (list && list->n_ints <= ONNX_MAX_HELD) {
        s = (struct onnx_shape){1, {(int64_t)list->n_ints}};
        held = TOPT_NEW(x->arena, list->n_ints, double);
        for (size_t k = 0; held && k < list->n_ints; k++)
            held[k] = (double)list->ints[k];
    } else {
        return topt_onnx_fail(x, n, "its value is of a type that is not read");
    }
    if (set(x, n, &s, integer))
        return -1;
    out(x, n, 0)->held = held;
    return 0;
}

static int infer_constant_of_shape(struct onnx *x, const struct onnx_node *n)
{
    int64_t want[ONNX_MAX_RANK];
    const Onnx__AttributeProto *a = topt_onnx_attr(n, "value");
    int count = topt_onnx_list(x, n, "shape", 0, want);
    struct onnx_shape s = {.ndim = count};
    double *value = a && a->t ? topt_onnx_numbers(x, a->t) : NULL;
    if (count < 0)
        return topt_onnx_fail(x, n, "its shape is not constant");
    memcpy(s.dim, want, sizeof s.dim[0] * (size_t)count);
    if (set(x, n, &s,
            a && a->t && a->t->data_type == ONNX__TENSOR_PROTO__DATA_TYPE__INT64))
        return -1;
    int64_t total = topt_onnx_elements(&s);
    double *held = total <= ONNX_MAX_HELD ? TOPT_NEW(x->arena, total, double) : NULL;
    for (int64_t i = 0; held && i < total; i++)
        held[i] = value ? value[0] : 0;
    out(x, n, 0)->held = held;
    return 0;
}

/* ---- all ------------------------------------------------------------------------------- */

static const struct onnx_kind kinds[] = {
    {"Abs", infer_same},
    {"Add", infer_broadcast},
    {"And", infer_broadcast},
    {"AveragePool", infer_pool},
    {"BatchNormalization", infer_same},
    {"Cast", infer_cast},
    {"Ceil", infer_same},
    {"Concat", infer_concat},
    {"Constant", infer_constant},
    {"ConstantOfShape", infer_constant_of_shape},
    {"Conv", infer_conv},
    {"Div", infer_broadcast},
    {"Dropout", infer_same},
    {"Elu", infer_same},
    {"Equal", infer_broadcast},
    {"Erf", infer_same},
    {"Exp", infer_same},
    {"Expand", infer_expand},
    {"Flatten", infer_flatten},
    {"Floor", infer_same},
    {"GRU", infer_recurrent},
    {"Gather", infer_gather},
    {"Gemm", infer_gemm},
    {"GlobalAveragePool", infer_global_pool},
    {"Greater", infer_broadcast},
    {"Identity", infer_same},
    {"LRN", infer_same},
    {"LSTM", infer_recurrent},
    {"LayerNormalization", infer_same},
    {"LeakyRelu", infer_same},
    {"Less", infer_broadcast},
    {"LogSoftmax", infer_same},
    {"MatMul", infer_matmul},
    {"Max", infer_broadcast},
    {"MaxPool", infer_pool},
    {"Min", infer_broadcast},
    {"Mod", infer_broadcast},
    {"Mul", infer_broadcast},
    {"Neg", infer_same},
    {"Not", infer_same},
    {"Pow", infer_broadcast},
    {"Range", infer_range},
    {"Reciprocal", infer_same},
    {"ReduceMean", infer_reduce},
    {"ReduceSum", infer_reduce},
    {"Relu", infer_same},
    {"Reshape", infer_reshape},
    {"Shape", infer_shape},
    {"Sigmoid", infer_same},
    {"Slice", infer_slice},
    {"Softmax", infer_same},
    {"Softplus", infer_same},
    {"Split", infer_split},
    {"Sqrt", infer_same},
    {"Squeeze", infer_squeeze},
    {"Sub", infer_broadcast},
    {"Sum", infer_broadcast},
    {"Tanh", infer_same},
    {"Transpose", infer_transpose},
    {"Unsqueeze", infer_unsqueeze},
    {"Where", infer_broadcast},
};

const struct onnx_kind *topt_onnx_kind(const char *name)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(kinds[i].name, name))
            return &kinds[i];
    return NULL;
}

static int infer_node(struct onnx *x, const struct onnx_node *n)
{
    int constant = 1;
    for (int i = 0; i < n->nin; i++) {
        const struct onnx_value *a = topt_onnx_in(x, n, i);
        if (a && !a->known)
            return topt_onnx_fail(x, n, "the shape of '%.60s' is not known%s", a->name,
                                  a->input ? "; --seq fills what an input leaves open"
                                           : "");
        constant &= !a || a->constant;
    }
    if (n->kind->infer(x, n))
        return -1;
    for (int i = 0; i < n->nout; i++)
        if (out(x, n, i))
            out(x, n, i)->constant = constant || n->kind->infer == infer_shape;
    return topt_onnx_fold(x, n);
}

int topt_onnx_infer(struct onnx *x)
{
    for (int i = 0; i < x->nnodes; i++)
        if (x->node[i].needed && infer_node(x, &x->node[i]))
            return -1;
    return 0;
}
