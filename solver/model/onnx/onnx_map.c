/* onnx_map.c - what the makers of operators share: names, and the layouts that
 * operators need.
 *
 * Float constants that stand where weights do are parameters: their numbers in the
 * file do not matter, and neither does the order of features between two products,
 * since it is the weights' that follows. */
#include "onnx_map.h"
#include "onnx_node.h"
#include "onnx_view.h"

#include <stdio.h>
#include <string.h>

/* ---- helpers ----------------------------------------------------------------------- */

/* A name from a value's: printable ASCII, at most 180 bytes, not taken. */
void topt_onnx_name(struct onnx *x, const char *value, const char *suffix, char *ret,
                    size_t size)
{
    size_t n = 0;
    for (; value[n] && n < 160; n++)
        ret[n] = value[n] > ' ' && value[n] < 127 ? value[n] : '_';
    if (!n)
        ret[n++] = '_';
    snprintf(ret + n, size - n, "%s", suffix);
    size_t end = strlen(ret);
    for (int i = 1; topt_model_find(x->model, ret) >= 0;
         i = i < 8 ? i + 1 : 8 + x->clashes++)
        snprintf(ret + end, size - end, ".%d", i);
}

int topt_onnx_emit(struct onnx *x, const struct onnx_node *n, const char *kind,
                   const char *suffix, int a, int b, const struct topt_attrs *attrs)
{
    char name[200];
    int inputs[] = {a, b};
    const char *value =
        n && n->nout && n->out[0] >= 0 ? x->value[n->out[0]].name : "model";
    topt_onnx_name(x, value, suffix, name, sizeof name);
    int t =
        topt_model_add(x->model, kind, name, (a >= 0) + (b >= 0), inputs, attrs, x->err);
    if (t < 0 && n)
        topt_wrap(x->err, "%.40s", n->proto->op_type);
    return t;
}

/* The value that depends on samples, mapped already; NULL with an error. */
struct onnx_value *topt_onnx_sample(struct onnx *x, const struct onnx_node *n, int i)
{
    struct onnx_value *v = topt_onnx_in(x, n, i);
    if (v && !v->constant && v->view.tensor >= 0)
        return v;
    topt_onnx_fail(x, n, "input %d ('%.40s') is no tensor of samples", i,
                   v ? v->name : "left out");
    return NULL;
}

/* The output lies as 'like' does, in another tensor. */
int topt_onnx_put(struct onnx *x, const struct onnx_node *n, const struct onnx_view *like,
                  int tensor)
{
    if (tensor < 0)
        return -1;
    onnx_out(x, n, 0)->view = *like;
    onnx_out(x, n, 0)->view.tensor = tensor;
    return 0;
}

/* Extents that lie on an axis within dimensions [from, to) of the value. */
int64_t topt_onnx_extent_on(const struct onnx_view *v, int axis, int from, int to)
{
    int64_t n = 1;
    for (int i = 0; i < v->natoms; i++)
        if (v->atom[i].axis == axis && v->atom[i].dim >= from && v->atom[i].dim < to)
            n *= v->atom[i].extent;
    return n;
}

int64_t topt_onnx_extent_of(const struct topt_tensor *t, int axis)
{
    return t->dim[axis].count * t->dim[axis].unit;
}

void topt_onnx_move_axes(struct onnx_view *v, const int8_t *to)
{
    struct onnx_view old = *v;
    for (int i = 0; i < v->natoms; i++) {
        int rank = 0;
        for (int k = 0; k < v->natoms; k++) {
            const struct onnx_atom *a = &old.atom[i], *b = &old.atom[k];
            rank += to[b->axis] == to[a->axis] &&
                    (b->axis < a->axis || (b->axis == a->axis && b->rank < a->rank));
        }
        v->atom[i].axis = to[old.atom[i].axis];
        v->atom[i].rank = (int16_t)rank;
    }
}

/* ---- the layouts that operators need ----------------------------------------------- */

int topt_onnx_regroup(struct onnx *x, const struct onnx_node *n, int tensor,
                      int64_t count, int64_t unit)
{
    const struct topt_tensor *t = &x->model->tensor[tensor];
    const struct topt_dim *d = &t->dim[t->ndim == 4 ? 1 : 2];
    struct topt_attrs attrs = {.features = count, .features_unit = unit};
    return d->count == count && d->unit == unit
               ? tensor
               : topt_onnx_emit(x, n, "regroup", ".regroup", tensor, -1, &attrs);
}

/* Positions become features. */
static int turn(struct onnx *x, const struct onnx_node *n, struct onnx_view *v)
{
    static const int8_t swapped[] = {0, 2, 1};
    int t =
        topt_onnx_regroup(x, n, v->tensor, topt_onnx_extent_of(tensor_of(x, v), 2), 1);
    t = t < 0 ? -1 : topt_onnx_emit(x, n, "transpose", ".transpose", t, -1, NULL);
    topt_onnx_move_axes(v, swapped);
    v->tensor = t;
    return t < 0 ? -1 : 0;
}

/* An image's pixels become features or positions. */
static int from_image(struct onnx *x, const struct onnx_node *n, struct onnx_view *v,
                      int first)
{
    static const int8_t flat[] = {0, 2, 2, 2}, rows[] = {0, 2, 1, 1};
    const struct topt_tensor *t = tensor_of(x, v);
    int64_t pixels = topt_onnx_extent_of(t, 2) * topt_onnx_extent_of(t, 3);
    int64_t in = topt_onnx_extent_on(v, 2, first, ONNX_MAX_RANK) *
                 topt_onnx_extent_on(v, 3, first, ONNX_MAX_RANK);
    int64_t channels = topt_onnx_extent_on(v, 1, first, ONNX_MAX_RANK);
    if (channels != topt_onnx_extent_of(t, 1) || (in != pixels && in != 1))
        return topt_onnx_fail(x, n, "a product with rows or columns of an image");
    int whole = in == pixels;
    v->tensor = topt_onnx_emit(x, n, whole ? "flatten" : "tokens",
                               whole ? ".flatten" : ".tokens", v->tensor, -1, NULL);
    topt_onnx_move_axes(v, whole ? flat : rows);
    return v->tensor < 0 ? -1 : 0;
}

/* All positions of each feature become features, by way of an image of one row. */
static int flatten_rows(struct onnx *x, const struct onnx_node *n, struct onnx_view *v,
                        int64_t positions)
{
    struct topt_attrs line = {.height = 1, .width = positions};
    int features = 0;
    for (int i = 0; i < v->natoms; i++)
        features += v->atom[i].axis == 2;
    for (int i = 0; i < v->natoms; i++)
        if (v->atom[i].axis == 1) { /* inside of the features */
            v->atom[i].axis = 2;
            v->atom[i].rank = (int16_t)(v->atom[i].rank + features);
        }
    v->tensor = topt_onnx_emit(x, n, "untokens", ".line", v->tensor, -1, &line);
    if (v->tensor >= 0)
        v->tensor = topt_onnx_emit(x, n, "flatten", ".flatten", v->tensor, -1, NULL);
    return v->tensor < 0 ? -1 : 0;
}

/* Do features of dimensions before 'first' lie outside of the others? */
static int is_outside(const struct onnx_view *v, int first)
{
    int outside = 1;
    for (int i = 0; i < v->natoms; i++)
        for (int k = 0; k < v->natoms; k++)
            if (v->atom[i].axis == 2 && v->atom[k].axis == 2 && v->atom[i].dim < first &&
                v->atom[k].dim >= first)
                outside &= v->atom[i].rank < v->atom[k].rank;
    return outside;
}

/* Features of one position become several positions of 'width' features each, by way
 * of an image whose channels are the positions. */
static int split_rows(struct onnx *x, const struct onnx_node *n, struct onnx_view *v,
                      int first, int64_t width)
{
    int64_t positions = topt_onnx_extent_of(tensor_of(x, v), 2) / width;
    struct topt_attrs line = {.height = 1, .width = width};
    int outer = 0;
    for (int i = 0; i < v->natoms; i++)
        outer += v->atom[i].axis == 2 && v->atom[i].dim < first;
    for (int i = 0; i < v->natoms; i++)
        if (v->atom[i].axis == 2 && v->atom[i].dim < first)
            v->atom[i].axis = 1;
        else if (v->atom[i].axis == 2)
            v->atom[i].rank = (int16_t)(v->atom[i].rank - outer);
    int t = topt_onnx_regroup(x, n, v->tensor, positions, width);
    t = t < 0 ? -1 : topt_onnx_emit(x, n, "unflatten", ".line", t, -1, &line);
    t = t < 0 ? -1 : topt_onnx_emit(x, n, "tokens", ".columns", t, -1, NULL);
    v->tensor = t < 0 ? -1 : topt_onnx_emit(x, n, "transpose", ".rows", t, -1, NULL);
    return v->tensor < 0 ? -1 : 0;
}

int topt_onnx_rows(struct onnx *x, const struct onnx_node *n, const struct onnx_value *a,
                   int first, struct onnx_view *ret)
{
    *ret = a->view;
    if (tensor_of(x, ret)->ndim == 4)
        return from_image(x, n, ret, first);
    const struct topt_tensor *t = tensor_of(x, ret);
    int64_t s = topt_onnx_extent_on(ret, 1, first, ONNX_MAX_RANK),
            d = topt_onnx_extent_on(ret, 2, first, ONNX_MAX_RANK);
    if (topt_onnx_extent_on(ret, 0, first, ONNX_MAX_RANK) > 1)
        return topt_onnx_fail(x, n, "a product over samples");
    if (d == topt_onnx_extent_of(t, 2) && s == 1)
        return 0;
    if (s == topt_onnx_extent_of(t, 1) && d == 1)
        return turn(x, n, ret);
    if (s == topt_onnx_extent_of(t, 1) && d == topt_onnx_extent_of(t, 2))
        return flatten_rows(x, n, ret, s);
    if (topt_onnx_extent_of(t, 1) == 1 && s == 1 && d > 1 && is_outside(ret, first))
        return split_rows(x, n, ret, first, d);
    return topt_onnx_fail(x, n, "a product with a part of the features or positions");
}

/* Is the value an image as it is: samples, channels, rows, columns? */
int topt_onnx_is_image(const struct onnx *x, const struct onnx_value *a)
{
    struct onnx_value fresh = {.shape = a->shape};
    if (a->shape.ndim < 3 || a->shape.ndim > 5 || tensor_of(x, &a->view)->ndim != 4)
        return 0;
    topt_onnx_image_view(&fresh, a->view.tensor);
    return topt_onnx_view_same(&fresh.view, &a->view);
}

/* The axis of the tensor that dimension 'd' is all of; -1 where it is none. */
int topt_onnx_axis_of_dim(const struct onnx *x, const struct onnx_value *a, int d)
{
    const struct topt_tensor *t = tensor_of(x, &a->view);
    for (int axis = 1; axis < t->ndim; axis++)
        if (topt_onnx_extent_on(&a->view, axis, d, d + 1) ==
                topt_onnx_extent_of(t, axis) &&
            a->shape.dim[d] == topt_onnx_extent_of(t, axis) && a->shape.dim[d] > 1)
            return axis;
    return -1;
}

/* Do the atoms of dimensions [from, to) make up an axis in their order, and is it all
 * of it? */
static int fills_axis(const struct onnx *x, const struct onnx_value *a, int axis,
                      int from, int to)
{
    int last = -1;
    for (int i = 0; i < a->view.natoms; i++) {
        const struct onnx_atom *atom = &a->view.atom[i];
        int here = atom->dim >= from && atom->dim < to && atom->extent > 1;
        if (here && (atom->axis != axis || atom->rank < last))
            return 0;
        last = here ? atom->rank : last;
    }
    return topt_onnx_extent_on(&a->view, axis, from, to) ==
           topt_onnx_extent_of(tensor_of(x, &a->view), axis);
}

/* Channels that lie as [groups][channels of a group] the other way round: how many
 * groups the tensor has; 0 where they lie otherwise. */
static int64_t shuffled(const struct onnx *x, const struct onnx_value *a)
{
    const struct onnx_atom *outer = NULL, *inner = NULL;
    struct onnx_value plain = *a;
    for (int i = 0; i < a->view.natoms; i++)
        if (a->view.atom[i].dim == 1 && a->view.atom[i].extent > 1) {
            if (inner)
                return 0;
            *(outer ? &inner : &outer) = &a->view.atom[i];
        }
    if (!inner || outer->axis != 1 || inner->axis != 1 || outer->rank < inner->rank)
        return 0;
    plain.view.natoms = 0;
    for (int i = 0; i < a->view.natoms; i++)
        if (&a->view.atom[i] != outer) {
            struct onnx_atom *to = &plain.view.atom[plain.view.natoms++];
            *to = a->view.atom[i];
            if (&a->view.atom[i] == inner)
                *to = (struct onnx_atom){
                    .extent = inner->extent * outer->extent, .axis = 1, .dim = 1};
        }
    return topt_onnx_is_image(x, &plain) ? inner->extent : 0;
}

/* An image of rows of features: all pixels are in its features, or its pixels are
 * positions. */
static int image_of_rows(struct onnx *x, const struct onnx_node *n,
                         const struct onnx_value *a)
{
    int signal = a->shape.ndim == 3;
    struct topt_attrs attrs = {.height = signal ? 1 : a->shape.dim[2],
                               .width = a->shape.dim[signal ? 2 : 3]};
    const struct topt_tensor *t = tensor_of(x, &a->view);
    int64_t channels = a->shape.dim[1];
    if (topt_onnx_extent_on(&a->view, 0, 1, ONNX_MAX_RANK) > 1)
        return -2; /* samples elsewhere than in the first dimension */
    struct onnx_value turned = *a;
    if (fills_axis(x, a, 1, 1, 2) && fills_axis(x, a, 2, 2, 4) && channels > 1 &&
        turn(x, n, &turned.view))
        return -1;
    if (fills_axis(x, &turned, 1, 2, 4) && fills_axis(x, &turned, 2, 1, 2))
        return topt_onnx_emit(x, n, "untokens", ".image", turned.view.tensor, -1, &attrs);
    if (topt_onnx_extent_of(t, 1) != 1 || !fills_axis(x, a, 2, 1, 4))
        return -2;
    int u = topt_onnx_regroup(x, n, a->view.tensor, channels, attrs.height * attrs.width);
    return u < 0 ? -1 : topt_onnx_emit(x, n, "unflatten", ".image", u, -1, &attrs);
}

int topt_onnx_image(struct onnx *x, const struct onnx_node *n, const struct onnx_value *a)
{
    if (a->shape.ndim < 3 || a->shape.ndim > 5)
        return topt_onnx_fail(x, n, "%d dimensions are no image", a->shape.ndim);
    if (topt_onnx_is_image(x, a))
        return a->view.tensor;
    int images = tensor_of(x, &a->view)->ndim == 4;
    struct topt_attrs attrs = {.groups = images ? shuffled(x, a) : 0};
    int t = attrs.groups ? topt_onnx_regroup(x, n, a->view.tensor, a->shape.dim[1], 1)
            : images || a->shape.ndim == 5 ? -2
                                           : image_of_rows(x, n, a);
    if (attrs.groups && t >= 0)
        t = topt_onnx_emit(x, n, "shuffle", ".shuffle", t, -1, &attrs);
    return t != -2 ? t
                   : topt_onnx_fail(x, n,
                                    "its input lies otherwise than as channels, rows and "
                                    "columns");
}

int topt_onnx_features(struct onnx *x, const struct onnx_node *n,
                       const struct onnx_value *a, int d, struct onnx_view *ret)
{
    static const int8_t rows[] = {0, 2, 1, 1};
    *ret = a->view;
    int axis = topt_onnx_axis_of_dim(x, a, d);
    if (a->shape.dim[d] == 1)
        return topt_onnx_fail(x, n, "dimension %d is 1", d);
    if (tensor_of(x, ret)->ndim == 4 && axis == 1) {
        ret->tensor = topt_onnx_emit(x, n, "tokens", ".tokens", ret->tensor, -1, NULL);
        topt_onnx_move_axes(ret, rows);
        return ret->tensor < 0 ? -1 : 0;
    }
    if (tensor_of(x, ret)->ndim != 3 || axis < 1)
        return topt_onnx_fail(
            x, n, "it is over other than all features, channels or positions");
    return axis == 2 ? 0 : turn(x, n, ret);
}

void topt_onnx_image_view(struct onnx_value *v, int tensor)
{
    static const int8_t three[] = {0, 1, 2, 3, 3}, one[] = {0, 1, 3};
    topt_onnx_view_fresh(v, tensor, v->shape.ndim == 3 ? one : three);
}

int topt_onnx_put_image(struct onnx *x, const struct onnx_node *n, int tensor)
{
    if (tensor >= 0)
        topt_onnx_image_view(onnx_out(x, n, 0), tensor);
    return tensor < 0 ? -1 : 0;
}
