/* onnx_map_order.c - operators of nodes that rearrange, cut, join and reduce. */
#include "onnx_map_order.h"
#include "onnx_map.h"
#include "onnx_map_unary.h"
#include "onnx_node.h"
#include "onnx_shape.h"
#include "onnx_shape_order.h"
#include "onnx_view.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- arrangement ------------------------------------------------------------------- */

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

/* A trained position before those of the samples. */
static int prepend(struct onnx *x, const struct onnx_node *n)
{
    static const int8_t axes[] = {0, 1, 2};
    const struct onnx_value *b = topt_onnx_sample(x, n, 1), *c = topt_onnx_in(x, n, 0);
    struct onnx_view v;
    if (!b || topt_onnx_rows(x, n, b, 2, &v))
        return -1;
    int t = topt_onnx_regroup(x, n, v.tensor, b->shape.dim[2], 1);
    if (t < 0 || topt_onnx_elements(&c->shape) % b->shape.dim[2])
        return -1;
    t = topt_onnx_emit(x, n, "prepend", "", t, -1, NULL);
    if (t >= 0)
        topt_onnx_view_fresh(onnx_out(x, n, 0), t, axes);
    return t < 0 ? -1 : 0;
}

/* Does the node put a constant row before the positions of samples? */
static int is_prepending(const struct onnx *x, const struct onnx_node *n)
{
    const struct onnx_value *c = topt_onnx_in(x, n, 0), *b = topt_onnx_in(x, n, 1);
    return n->nin == 2 && c && b && c->constant && !b->constant && c->shape.ndim == 3 &&
           c->shape.dim[1] == 1 && topt_onnx_axis(n, 3, 1) == 1;
}

/* Tensors side by side along features or channels, four at a time. */
int topt_onnx_map_concat(struct onnx *x, const struct onnx_node *n)
{
    if (is_prepending(x, n))
        return prepend(x, n);
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

/* Cuts of features, or of an image's channels: their atoms become one of 'extent'. */
static void cut_atoms(struct onnx_view *v, int axis, int64_t extent)
{
    int kept = 0;
    for (int i = 0; i < v->natoms; i++) {
        struct onnx_atom atom = v->atom[i];
        if (atom.axis == axis && kept && v->atom[kept - 1].axis == axis)
            continue; /* its atoms are one again */
        if (atom.axis == axis) {
            atom.extent = extent;
            atom.rank = 0;
        }
        v->atom[kept++] = atom;
    }
    v->natoms = kept;
}

/* Numbers [off, off + width) of the features or channels. */
static int slice_features(struct onnx *x, const struct onnx_node *n,
                          const struct onnx_value *a, int d, int64_t off, int out_number)
{
    struct onnx_value *y = &x->value[n->out[out_number]], whole = *a;
    int axis = tensor_of(x, &a->view)->ndim == 4 ? 1 : 2;
    if (axis == 1 && d == 1 && a->shape.ndim > 2) {
        whole.view.tensor = topt_onnx_image(x, n, a);
        if (whole.view.tensor < 0)
            return -1;
        topt_onnx_image_view(&whole, whole.view.tensor);
    }
    if (topt_onnx_axis_of_dim(x, &whole, d) != axis)
        return topt_onnx_fail(x, n, "it cuts other dimensions than features or channels");
    int t = topt_onnx_regroup(x, n, whole.view.tensor, 1, a->shape.dim[d]);
    struct topt_attrs attrs = {.offset = off, .features_unit = y->shape.dim[d]};
    char part[24] = "";
    if (out_number)
        snprintf(part, sizeof part, ".part%d", out_number);
    t = t < 0 ? -1 : topt_onnx_emit(x, n, "slice", part, t, -1, &attrs);
    t = t < 0 ? -1 : topt_onnx_regroup(x, n, t, attrs.features_unit, 1);
    y->view = whole.view;
    cut_atoms(&y->view, axis, y->shape.dim[d]);
    y->view.tensor = t;
    return t < 0 ? -1 : 0;
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

static int same_shape(const struct onnx_shape *a, const struct onnx_shape *b)
{
    int same = a->ndim == b->ndim;
    for (int d = 0; same && d < a->ndim; d++)
        same = a->dim[d] == b->dim[d];
    return same;
}

/* Is the value the tokens of an input, or those in another type or the same shape? */
static int tokens_of(const struct onnx *x, const struct onnx_value *at)
{
    while (!at->input && at->node >= 0 && x->node[at->node].nin > 0 &&
           x->node[at->node].in[0] >= 0 && x->value[x->node[at->node].in[0]].integer &&
           same_shape(&at->shape, &x->value[x->node[at->node].in[0]].shape))
        at = &x->value[x->node[at->node].in[0]];
    return at->input && at->integer && at->shape.ndim == 2;
}

/* Rows of a table [tokens, features], or -1. */
static int embed(struct onnx *x, const struct onnx_node *n,
                 const struct onnx_value *table, const char *suffix)
{
    struct topt_attrs attrs = {.vocab = table->shape.dim[0],
                               .features = table->shape.dim[1]};
    if (x->table >= 0 && table == &x->value[x->table]) {
        if (x->table_tensor < 0)
            x->table_tensor = topt_onnx_emit(x, n, "variable", ".table", -1, -1, &attrs);
        return x->table_tensor < 0
                   ? -1
                   : topt_onnx_emit(x, n, "embedding", suffix, x->table_tensor, -1, NULL);
    }
    return table->shape.ndim == 2
               ? topt_onnx_emit(x, n, "embedding", suffix, -1, -1, &attrs)
               : topt_onnx_fail(x, n, "its table has other than 2 dimensions");
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
        int64_t i = at->held && at->shape.ndim == 0 && fabs(at->held[0]) < 0x1p60
                        ? (int64_t)at->held[0]
                        : -1;
        i += at->held && i < 0 ? a->shape.dim[d] : 0;
        return is_positions(x, a, d) && at->held && at->shape.ndim == 0
                   ? select_position(x, n, a, d, i, 0)
                   : topt_onnx_fail(x, n, "it takes other things than one position");
    }
    if (!tokens_of(x, at) || d != 0)
        return topt_onnx_fail(x, n, "it is no table of rows for an input's tokens");
    int t = embed(x, n, a, "");
    if (t < 0)
        return -1;
    topt_onnx_view_fresh(onnx_out(x, n, 0), t, axes);
    return 0;
}

/* Tokens and positions, and the norm of their sum. */
int topt_onnx_map_embed_norm(struct onnx *x, const struct onnx_node *n)
{
    static const int8_t axes[] = {0, 1, 2};
    const struct onnx_value *w = topt_onnx_in(x, n, 2), *p = topt_onnx_in(x, n, 3);
    struct onnx_value sum = {.shape = onnx_out(x, n, 0)->shape};
    if (topt_onnx_in(x, n, 1) || topt_onnx_in(x, n, 4))
        return topt_onnx_fail(x, n, "it has segments: no row adds those");
    if (!tokens_of(x, topt_onnx_in(x, n, 0)) || !w->constant || !p->constant)
        return topt_onnx_fail(x, n, "it is no table of rows for an input's tokens");
    int t = embed(x, n, w, ".tokens");
    struct topt_attrs attrs = {.positions = p->shape.dim[0]};
    t = t < 0 ? -1 : topt_onnx_emit(x, n, "position", ".positions", t, -1, &attrs);
    if (t < 0)
        return -1;
    topt_onnx_view_fresh(&sum, t, axes);
    if (onnx_out(x, n, 2))
        onnx_out(x, n, 2)->view = sum.view;
    return topt_onnx_put_norm(x, n, &sum, 2, 0, topt_onnx_real(n, "epsilon", 1e-12));
}

/* Copies: only where there is one of each. */
int topt_onnx_map_repeat(struct onnx *x, const struct onnx_node *n)
{
    const struct onnx_value *a = topt_onnx_sample(x, n, 0);
    if (!a)
        return -1;
    return a->shape.ndim == onnx_out(x, n, 0)->shape.ndim &&
                   topt_onnx_elements(&a->shape) ==
                       topt_onnx_elements(&onnx_out(x, n, 0)->shape)
               ? topt_onnx_map_same(x, n)
               : topt_onnx_fail(x, n, "it repeats samples' numbers: no row does that");
}

/* ---- reductions -------------------------------------------------------------------- */

/* What is done before and after a sum or mean to get the node's reduction. */
static const struct reduction {
    const char *type;
    int mean, square;
    const char *before, *after; /* "abs", "exp"; "sqrt", "log" */
    enum topt_activation f, g;
} reductions[] = {
    {"ReduceL1", 0, 0, ".abs", NULL, TOPT_ACT_ABS, 0},
    {"ReduceL2", 0, 1, NULL, ".sqrt", 0, TOPT_ACT_SQRT},
    {"ReduceLogSum", 0, 0, NULL, ".log", 0, TOPT_ACT_LOG},
    {"ReduceLogSumExp", 0, 0, ".exp", ".log", TOPT_ACT_EXP, TOPT_ACT_LOG},
    {"ReduceMean", 1, 0, NULL, NULL, 0, 0},
    {"ReduceSum", 0, 0, NULL, NULL, 0, 0},
    {"ReduceSumSquare", 0, 1, NULL, NULL, 0, 0},
};

static const struct reduction *reduction_of(const struct onnx_node *n)
{
    size_t i = 0;
    while (strcmp(reductions[i].type, n->kind->name))
        i++;
    return &reductions[i];
}

/* Axes of the tensor (bits) that lie in the dimensions (bits) and nowhere else; -1
 * where one lies in others too. */
static int axes_within(const struct onnx_value *a, int dims)
{
    int in = 0, out = 0;
    for (int i = 0; i < a->view.natoms; i++) {
        const struct onnx_atom *atom = &a->view.atom[i];
        if (atom->extent > 1 || atom->axis == 0)
            *(dims >> atom->dim & 1 ? &in : &out) |= 1 << atom->axis;
    }
    return in & out ? -1 : in;
}

/* Without the atoms in some dimensions, and without these unless they are kept. */
static void drop_dims(struct onnx_view *v, int dims, int keep)
{
    int kept = 0;
    for (int i = 0; i < v->natoms; i++) {
        int before = 0;
        if (dims >> v->atom[i].dim & 1)
            continue;
        for (int d = 0; d < v->atom[i].dim && !keep; d++)
            before += dims >> d & 1;
        v->atom[kept] = v->atom[i];
        v->atom[kept].dim = (int8_t)(v->atom[kept].dim - before);
        kept++;
    }
    v->natoms = kept;
}

/* Sum or mean over axes of a tensor; axes are those of rows of features afterwards. */
static int reduce_axes(struct onnx *x, const struct onnx_node *n, struct onnx_view *v,
                       int axes, int mean)
{
    static const int8_t as_rows[] = {0, 2, 1, 1};
    struct topt_attrs how = {.mean = mean};
    const struct topt_tensor *t = tensor_of(x, v);
    if (!axes)
        return 0;
    if (t->ndim == 4 && (axes & 12) == 12) {
        int64_t pixels = topt_onnx_extent_of(t, 2) * topt_onnx_extent_of(t, 3);
        struct topt_attrs times = {.factor = (double)pixels};
        v->tensor = topt_onnx_emit(x, n, "global_pool", ".pixels", v->tensor, -1, NULL);
        topt_onnx_move_axes(v, as_rows);
        if (v->tensor >= 0 && !mean)
            v->tensor = topt_onnx_emit(x, n, "scale", ".sum", v->tensor, -1, &times);
        axes = axes & 2 ? 4 : 0;
    } else if (t->ndim == 4) {
        if (axes & 12)
            return topt_onnx_fail(x, n, "it reduces rows or columns of an image alone");
        v->tensor = topt_onnx_emit(x, n, "tokens", ".tokens", v->tensor, -1, NULL);
        topt_onnx_move_axes(v, as_rows);
        axes = axes & 2 ? 4 : 0;
    }
    if (v->tensor >= 0 && axes & 2)
        v->tensor =
            topt_onnx_emit(x, n, "reduce_sequence", ".positions", v->tensor, -1, &how);
    if (v->tensor >= 0 && axes & 4)
        v->tensor =
            topt_onnx_emit(x, n, "reduce_features", ".features", v->tensor, -1, &how);
    return v->tensor < 0 ? -1 : 0;
}

static int apply(struct onnx *x, const struct onnx_node *n, struct onnx_view *v,
                 const char *suffix, enum topt_activation f)
{
    struct topt_attrs attrs = {.activation = (int)f};
    if (suffix)
        v->tensor = topt_onnx_emit(x, n, "unary", suffix, v->tensor, -1, &attrs);
    return v->tensor < 0 ? -1 : 0;
}

int topt_onnx_map_reduce(struct onnx *x, const struct onnx_node *n)
{
    const struct reduction *r = reduction_of(n);
    const struct onnx_value *a = topt_onnx_sample(x, n, 0);
    if (!a)
        return -1;
    int dims = topt_onnx_reduced(x, n), axes = axes_within(a, dims);
    if (!dims)
        return r->before || r->after || r->square
                   ? topt_onnx_fail(x, n, "it is of no dimensions")
                   : topt_onnx_map_same(x, n);
    if (axes < 0 || axes & 1)
        return topt_onnx_fail(x, n,
                              axes < 0 ? "it reduces parts of features or positions"
                                       : "it reduces over the samples");
    struct onnx_view v = a->view;
    if (r->square)
        v.tensor = topt_onnx_emit(x, n, "mul", ".square", v.tensor, v.tensor, NULL);
    if (v.tensor < 0 || apply(x, n, &v, r->before, r->f) ||
        reduce_axes(x, n, &v, axes, r->mean) || apply(x, n, &v, r->after, r->g))
        return -1;
    drop_dims(&v, dims, topt_onnx_int(n, "keepdims", 1) != 0);
    return topt_onnx_put(x, n, &v, v.tensor);
}

/* Its logarithm as well.  Before set 13 it is over all dimensions from the axis on. */
int topt_onnx_map_softmax(struct onnx *x, const struct onnx_node *n)
{
    const struct onnx_value *a = topt_onnx_sample(x, n, 0);
    struct topt_attrs attrs = {.log = !strcmp(n->kind->name, "LogSoftmax")};
    struct onnx_view v;
    if (!a)
        return -1;
    int ndim = a->shape.ndim, d = topt_onnx_axis(n, ndim, x->opset < 13 ? 1 : -1);
    if (d < 0 || d >= ndim)
        return topt_onnx_fail(x, n, "its axis is not there");
    for (int k = d + 1; k < ndim && x->opset < 13; k++)
        if (a->shape.dim[k] > 1 && a->shape.dim[d] > 1)
            return topt_onnx_fail(x, n, "it is over several dimensions");
    for (int k = d; k < ndim && x->opset < 13; k++)
        d = a->shape.dim[k] > 1 ? k : d;
    if (topt_onnx_features(x, n, a, d, &v))
        return -1;
    return topt_onnx_put(x, n, &v,
                         topt_onnx_emit(x, n, "softmax", "", v.tensor, -1, &attrs));
}
