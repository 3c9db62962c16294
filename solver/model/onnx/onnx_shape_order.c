/* onnx_shape_order.c - shapes of what rearranges, cuts, joins and reduces. */
#include "onnx_shape_order.h"
#include "onnx_node.h"
#include "onnx_shape.h"

#include <string.h>

/* ---- arrangement ------------------------------------------------------------------- */

int topt_onnx_infer_reshape(struct onnx *x, const struct onnx_node *n)
{
    int64_t want[ONNX_MAX_RANK], rest = -1;
    double volume = 1, total;
    if (topt_onnx_need(x, n, 1))
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
    return topt_onnx_set(x, n, &s, a->integer);
}

int topt_onnx_infer_flatten(struct onnx *x, const struct onnx_node *n)
{
    if (topt_onnx_need(x, n, 1))
        return -1;
    const struct onnx_value *a = topt_onnx_in(x, n, 0);
    int axis = topt_onnx_axis(n, a->shape.ndim, 1);
    struct onnx_shape s = {2, {1, 1}};
    if (axis < 0)
        return topt_onnx_fail(x, n, "its axis is not there");
    for (int d = 0; d < a->shape.ndim; d++)
        s.dim[d >= axis] *= a->shape.dim[d];
    return topt_onnx_set(x, n, &s, a->integer);
}

void topt_onnx_perm(const struct onnx *x, const struct onnx_node *n, int64_t *ret)
{
    int ndim = topt_onnx_in(x, n, 0)->shape.ndim;
    for (int d = 0; d < ndim; d++)
        ret[d] = ndim - 1 - d;
    topt_onnx_ints(n, "perm", ret, ndim);
}

int topt_onnx_infer_transpose(struct onnx *x, const struct onnx_node *n)
{
    int64_t perm[ONNX_MAX_RANK];
    int seen = 0;
    if (topt_onnx_need(x, n, 1))
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
    return topt_onnx_set(x, n, &s, a->integer);
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

int topt_onnx_infer_squeeze(struct onnx *x, const struct onnx_node *n)
{
    int64_t axes[ONNX_MAX_RANK];
    if (topt_onnx_need(x, n, 1))
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
    return topt_onnx_set(x, n, &s, a->integer);
}

int topt_onnx_infer_unsqueeze(struct onnx *x, const struct onnx_node *n)
{
    int64_t axes[ONNX_MAX_RANK];
    if (topt_onnx_need(x, n, 1))
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
                    : topt_onnx_set(x, n, &s, a->integer);
}

int topt_onnx_infer_concat(struct onnx *x, const struct onnx_node *n)
{
    if (topt_onnx_need(x, n, n->nin) || topt_onnx_need(x, n, 1))
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
    return axis < 0 || axis >= s.ndim
               ? topt_onnx_fail(x, n, "its axis is not there")
               : topt_onnx_set(x, n, &s, topt_onnx_in(x, n, 0)->integer);
}

int topt_onnx_infer_split(struct onnx *x, const struct onnx_node *n)
{
    int64_t part[ONNX_MAX_RANK];
    if (topt_onnx_need(x, n, 1))
        return -1;
    const struct onnx_value *a = topt_onnx_in(x, n, 0);
    int axis = topt_onnx_axis(n, a->shape.ndim, 0);
    int count = topt_onnx_list(x, n, "split", 1, part);
    if (axis < 0 || axis >= a->shape.ndim || count == -2)
        return topt_onnx_fail(x, n, "its axis is not there or its parts not constant");
    int64_t extent = a->shape.dim[axis],
            even = n->nout ? (extent + n->nout - 1) / n->nout : 0;
    for (int i = 0; i < n->nout; i++) {
        struct onnx_value *y = onnx_out(x, n, i);
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

int topt_onnx_infer_slice(struct onnx *x, const struct onnx_node *n)
{
    int64_t start[ONNX_MAX_RANK], step[ONNX_MAX_RANK];
    if (topt_onnx_need(x, n, 1))
        return -1;
    struct onnx_shape s = topt_onnx_in(x, n, 0)->shape;
    if (read_slices(x, n, start, step, s.dim))
        return topt_onnx_fail(x, n,
                              "its starts, ends, axes or steps are not constant or "
                              "do not fit its input");
    return topt_onnx_set(x, n, &s, topt_onnx_in(x, n, 0)->integer);
}

int topt_onnx_infer_gather(struct onnx *x, const struct onnx_node *n)
{
    if (topt_onnx_need(x, n, 2))
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
    return topt_onnx_set(x, n, &s, a->integer);
}

int topt_onnx_reduced(const struct onnx *x, const struct onnx_node *n)
{
    int64_t axes[ONNX_MAX_RANK];
    int ndim = topt_onnx_in(x, n, 0)->shape.ndim, all = (1 << ndim) - 1;
    int count = topt_onnx_list(x, n, "axes", 1, axes);
    if (count == -2)
        return -1;
    if (count > 0)
        return axes_of(axes, count, ndim);
    return topt_onnx_int(n, "noop_with_empty_axes", 0) ? 0 : all;
}

int topt_onnx_infer_reduce(struct onnx *x, const struct onnx_node *n)
{
    if (topt_onnx_need(x, n, 1))
        return -1;
    const struct onnx_value *a = topt_onnx_in(x, n, 0);
    int keep = topt_onnx_int(n, "keepdims", 1) != 0, bits = topt_onnx_reduced(x, n);
    struct onnx_shape s = {0};
    if (bits < 0)
        return topt_onnx_fail(x, n, "an axis is not there or not constant");
    for (int d = 0; d < a->shape.ndim; d++)
        if (!(bits >> d & 1))
            s.dim[s.ndim++] = a->shape.dim[d];
        else if (keep)
            s.dim[s.ndim++] = 1;
    return topt_onnx_set(x, n, &s, a->integer);
}
