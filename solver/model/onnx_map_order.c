/* onnx_map_order.c - operators of nodes that rearrange, cut, join and reduce. */
#include "onnx_table.h"

#include <stdio.h>
#include <string.h>

/* ---- arrangement ----------------------------------------------------------------------- */

int topt_onnx_map_reshape(struct onnx *x, const struct onnx_node *n)
{
    const struct onnx_value *a = topt_onnx_sample(x, n, 0);
    if (!a)
        return -1;
    return topt_onnx_view_reshape(&a->view, &onnx_out(x, n, 0)->shape,
                                  &onnx_out(x, n, 0)->view)
               ? topt_onnx_fail(x, n,
                                "it cuts dimensions in ways that do not divide them")
               : 0;
}

int topt_onnx_map_transpose(struct onnx *x, const struct onnx_node *n)
{
    const struct onnx_value *a = topt_onnx_sample(x, n, 0);
    int64_t perm[ONNX_MAX_RANK];
    if (!a)
        return -1;
    topt_onnx_perm(x, n, perm);
    topt_onnx_view_transpose(&a->view, perm, a->shape.ndim, &onnx_out(x, n, 0)->view);
    return 0;
}

/* Tensors side by side along features or channels, four at a time. */
int topt_onnx_map_concat(struct onnx *x, const struct onnx_node *n)
{
    const struct onnx_value *a = topt_onnx_sample(x, n, 0);
    int inputs[TOPT_MAX_INPUTS], k = 0, t = -1;
    char name[200];
    if (!a)
        return -1;
    int d = topt_onnx_axis(n, a->shape.ndim, 1);
    int axis = topt_onnx_axis_of_dim(x, a, d),
        features = tensor_of(x, &a->view)->ndim == 4 ? 1 : 2;
    struct onnx_view view = a->view;
    for (int i = 0; i < n->nin; i++) {
        const struct onnx_value *b = topt_onnx_sample(x, n, i);
        if (!b)
            return -1;
        if (topt_onnx_axis_of_dim(x, b, d) != features || axis != features ||
            tensor_of(x, &b->view)->ndim != tensor_of(x, &a->view)->ndim)
            return topt_onnx_fail(x, n,
                                  "it joins other dimensions than features or channels");
        int u = topt_onnx_regroup(x, n, b->view.tensor, b->shape.dim[d], 1);
        if (u < 0)
            return -1;
        inputs[k++] = u;
        if (k == TOPT_MAX_INPUTS || (i + 1 == n->nin && k > 1)) {
            topt_onnx_name(x, onnx_out(x, n, 0)->name, i + 1 < n->nin ? ".part" : "",
                           name, sizeof name);
            t = topt_model_add(x->model, "concat_counts", name, k, inputs, NULL, x->err);
            if (t < 0)
                return topt_wrap(x->err, "Concat");
            inputs[0] = t;
            k = 1;
        }
    }
    if (n->nin == 1)
        return topt_onnx_map_same(x, n);
    for (int i = 0; i < view.natoms; i++)
        if (view.atom[i].dim == d)
            view.atom[i].extent = onnx_out(x, n, 0)->shape.dim[d];
    return topt_onnx_put(x, n, &view, t);
}

/* One position of a sequence; 'keep': the dimension stays. */
static int select_position(struct onnx *x, const struct onnx_node *n,
                           const struct onnx_value *a, int d, int64_t at, int keep)
{
    struct topt_attrs attrs = {.offset = at};
    struct onnx_view v = a->view;
    int kept = 0;
    for (int i = 0; i < v.natoms; i++)
        if (v.atom[i].axis != 1) {
            v.atom[kept] = v.atom[i];
            v.atom[kept].dim = (int8_t)(v.atom[i].dim - (!keep && v.atom[i].dim > d));
            kept++;
        }
    v.natoms = kept;
    return topt_onnx_put(x, n, &v,
                         topt_onnx_emit(x, n, "select", "", a->view.tensor, -1, &attrs));
}

static int is_positions(const struct onnx *x, const struct onnx_value *a, int d)
{
    return tensor_of(x, &a->view)->ndim == 3 && topt_onnx_axis_of_dim(x, a, d) == 1;
}

/* Numbers [off, off + width) of the features. */
static int slice_features(struct onnx *x, const struct onnx_node *n,
                          const struct onnx_value *a, int d, int64_t off, int out_number)
{
    struct onnx_value *y = &x->value[n->out[out_number]];
    const struct topt_tensor *t = tensor_of(x, &a->view);
    if (t->ndim != 3 || topt_onnx_axis_of_dim(x, a, d) != 2)
        return topt_onnx_fail(x, n, "it cuts other dimensions than features");
    int whole = topt_onnx_regroup(x, n, a->view.tensor, 1, a->shape.dim[d]);
    struct topt_attrs attrs = {.offset = off, .features_unit = y->shape.dim[d]};
    char part[24] = "";
    if (out_number)
        snprintf(part, sizeof part, ".part%d", out_number);
    int cut = whole < 0 ? -1 : topt_onnx_emit(x, n, "slice", part, whole, -1, &attrs);
    y->view = a->view;
    int kept = 0;
    for (int i = 0; i < y->view.natoms; i++) {
        struct onnx_atom atom = y->view.atom[i];
        if (atom.axis == 2 && kept && y->view.atom[kept - 1].axis == 2)
            continue; /* its atoms are one again */
        if (atom.axis == 2) {
            atom.extent = y->shape.dim[d];
            atom.rank = 0;
        }
        y->view.atom[kept++] = atom;
    }
    y->view.natoms = kept;
    y->view.tensor = cut;
    return cut < 0 ? -1 : 0;
}

int topt_onnx_map_slice(struct onnx *x, const struct onnx_node *n)
{
    int64_t start[ONNX_MAX_RANK], step[ONNX_MAX_RANK];
    const struct onnx_value *a = topt_onnx_sample(x, n, 0);
    int cut = -1;
    if (!a)
        return -1;
    topt_onnx_slices(x, n, start, step);
    for (int d = 0; d < a->shape.ndim; d++) {
        if (onnx_out(x, n, 0)->shape.dim[d] == a->shape.dim[d] && step[d] == 1)
            continue;
        if (cut >= 0 || step[d] != 1)
            return topt_onnx_fail(x, n, "it cuts several dimensions, or takes steps");
        cut = d;
    }
    if (cut < 0)
        return topt_onnx_map_same(x, n);
    if (is_positions(x, a, cut) && onnx_out(x, n, 0)->shape.dim[cut] == 1)
        return select_position(x, n, a, cut, start[cut], 1);
    return slice_features(x, n, a, cut, start[cut], 0);
}

int topt_onnx_map_split(struct onnx *x, const struct onnx_node *n)
{
    const struct onnx_value *a = topt_onnx_sample(x, n, 0);
    int64_t off = 0;
    if (!a)
        return -1;
    int d = topt_onnx_axis(n, a->shape.ndim, 0);
    for (int i = 0; i < n->nout; i++) {
        if (n->out[i] < 0)
            return topt_onnx_fail(x, n, "an output is left out");
        if (x->value[n->out[i]].uses && slice_features(x, n, a, d, off, i))
            return -1;
        off += x->value[n->out[i]].shape.dim[d];
    }
    return 0;
}

/* Rows of a table for tokens, or one position of a sequence. */
int topt_onnx_map_gather(struct onnx *x, const struct onnx_node *n)
{
    static const int8_t axes[] = {0, 1, 2};
    struct onnx_value *a = topt_onnx_in(x, n, 0), *at = topt_onnx_in(x, n, 1);
    int d = topt_onnx_axis(n, a->shape.ndim, 0);
    if (!a->constant) {
        if (!topt_onnx_sample(x, n, 0))
            return -1;
        int64_t i = at->held && at->shape.ndim == 0 ? (int64_t)at->held[0] : -1;
        i += at->held && i < 0 ? a->shape.dim[d] : 0;
        return is_positions(x, a, d) && at->held && at->shape.ndim == 0
                   ? select_position(x, n, a, d, i, 0)
                   : topt_onnx_fail(x, n, "it takes other things than one position");
    }
    while (!at->input && at->node >= 0 && x->node[at->node].nin == 1 &&
           x->value[x->node[at->node].in[0]].integer) /* casts and the like */
        at = &x->value[x->node[at->node].in[0]];
    if (!at->input || !at->integer || a->shape.ndim != 2 || d != 0 || at->shape.ndim != 2)
        return topt_onnx_fail(x, n, "it is no table of rows for an input's tokens");
    struct topt_attrs attrs = {.vocab = a->shape.dim[0], .features = a->shape.dim[1]};
    int t = topt_onnx_emit(x, n, "embedding", "", -1, -1, &attrs);
    if (t < 0)
        return -1;
    topt_onnx_view_fresh(onnx_out(x, n, 0), t, axes);
    return 0;
}

int topt_onnx_map_reduce(struct onnx *x, const struct onnx_node *n)
{
    int64_t axes[ONNX_MAX_RANK];
    const struct onnx_value *a = topt_onnx_sample(x, n, 0);
    int count = topt_onnx_list(x, n, "axes", 1, axes), bits = 0, kept = 0;
    int keep = topt_onnx_int(n, "keepdims", 1) != 0;
    if (!a)
        return -1;
    for (int i = 0; i < count; i++)
        bits |= 1 << (axes[i] < 0 ? axes[i] + a->shape.ndim : axes[i]);
    if (topt_onnx_is_image(x, a) && a->shape.ndim == 4 && bits == 12 &&
        !strcmp(n->kind->name, "ReduceMean"))
        return topt_onnx_mean_of_image(x, n, a);
    int d = 0;
    while (d < a->shape.ndim && !(bits >> d & 1))
        d++;
    int axis = count == 1 ? topt_onnx_axis_of_dim(x, a, d) : -1;
    if (axis < 0 || tensor_of(x, &a->view)->ndim != 3)
        return topt_onnx_fail(x, n,
                              "it reduces other than all positions or all features");
    struct topt_attrs attrs = {.mean = !strcmp(n->kind->name, "ReduceMean")};
    struct onnx_view v = a->view;
    for (int i = 0; i < v.natoms; i++)
        if (v.atom[i].axis != axis) {
            v.atom[kept] = v.atom[i];
            v.atom[kept].dim = (int8_t)(v.atom[i].dim - (!keep && v.atom[i].dim > d));
            kept++;
        }
    v.natoms = kept;
    return topt_onnx_put(x, n, &v,
                         topt_onnx_emit(x, n,
                                        axis == 1 ? "reduce_sequence" : "reduce_features",
                                        "", a->view.tensor, -1, &attrs));
}

int topt_onnx_map_softmax(struct onnx *x, const struct onnx_node *n)
{
    const struct onnx_value *a = topt_onnx_sample(x, n, 0);
    struct onnx_view v;
    if (!a)
        return -1;
    int d = topt_onnx_axis(n, a->shape.ndim, x->opset < 13 ? 1 : -1);
    if (d < 0 || d != a->shape.ndim - 1 || topt_onnx_rows(x, n, a, d, &v))
        return topt_onnx_fail(x, n, "it is over other than the features of a position");
    return topt_onnx_put(x, n, &v,
                         topt_onnx_emit(x, n, "softmax", "", v.tensor, -1, NULL));
}
