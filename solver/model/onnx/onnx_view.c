/* onnx_view.c - how the numbers of an ONNX value lie in a tensor.
 *
 * Dimensions of values are products of atoms, factors of the tensor's dimensions.  A
 * reshape regroups atoms, splitting some; a transpose permutes them: neither moves a
 * number.  What an operator needs of its input's order is then a question about atoms. */
#include "onnx_view.h"

#include <string.h>

void topt_onnx_view_fresh(struct onnx_value *v, int tensor, const int8_t *axis_of_dim)
{
    v->view = (struct onnx_view){.tensor = tensor};
    for (int d = 0; d < v->shape.ndim; d++)
        if (axis_of_dim[d] >= 0 && (v->shape.dim[d] > 1 || axis_of_dim[d] == 0))
            v->view.atom[v->view.natoms++] = (struct onnx_atom){
                .extent = v->shape.dim[d], .axis = axis_of_dim[d], .dim = (int8_t)d};
    for (int i = 0; i < v->view.natoms;
         i++) /* several dimensions of one axis, in order */
        for (int k = 0; k < i; k++)
            v->view.atom[i].rank =
                (int16_t)(v->view.atom[i].rank +
                          (v->view.atom[k].axis == v->view.atom[i].axis));
}

/* Split atom 'i' into an outer part and an inner one of 'inner'. */
static int split_atom(struct onnx_view *v, int i, int64_t inner)
{
    struct onnx_atom a = v->atom[i];
    if (v->natoms == ONNX_MAX_ATOMS || a.extent % inner)
        return -1;
    for (int k = 0; k < v->natoms; k++)
        if (v->atom[k].axis == a.axis && v->atom[k].rank > a.rank)
            v->atom[k].rank++;
    memmove(&v->atom[i + 1], &v->atom[i], (size_t)(v->natoms - i) * sizeof v->atom[0]);
    v->natoms++;
    v->atom[i].extent = a.extent / inner;
    v->atom[i + 1].extent = inner;
    v->atom[i + 1].rank++;
    return 0;
}

int topt_onnx_view_reshape(const struct onnx_view *from, const struct onnx_shape *to,
                           struct onnx_view *ret)
{
    struct onnx_view v = *from;
    int next = 0;
    for (int d = 0; d < to->ndim; d++) {
        int64_t rest = to->dim[d];
        while (next < v.natoms && (rest > 1 || v.atom[next].extent == 1)) {
            int64_t extent = v.atom[next].extent;
            if (extent > rest && split_atom(&v, next, extent / rest))
                return -1;
            if (rest % v.atom[next].extent)
                return -1;
            rest /= v.atom[next].extent;
            v.atom[next++].dim = (int8_t)d;
            if (extent == 1 && to->dim[d] == 1)
                break; /* a batch of one takes one dimension */
        }
        if (rest != 1)
            return -1;
    }
    if (next < v.natoms)
        return -1;
    *ret = v;
    return 0;
}

void topt_onnx_view_transpose(const struct onnx_view *from, const int64_t *perm, int ndim,
                              struct onnx_view *ret)
{
    *ret = (struct onnx_view){.tensor = from->tensor};
    for (int d = 0; d < ndim; d++)
        for (int i = 0; i < from->natoms; i++)
            if (from->atom[i].dim == perm[d]) {
                ret->atom[ret->natoms] = from->atom[i];
                ret->atom[ret->natoms++].dim = (int8_t)d;
            }
}

/* Cut the atoms of both into equal ones. */
static int refine(struct onnx_view *a, struct onnx_view *b)
{
    for (int i = 0; i < a->natoms && i < b->natoms; i++) {
        int64_t p = a->atom[i].extent, q = b->atom[i].extent;
        if (p > q && (p % q || split_atom(a, i, p / q)))
            return -1;
        if (q > p && (q % p || split_atom(b, i, q / p)))
            return -1;
    }
    return a->natoms == b->natoms ? 0 : -1;
}

int topt_onnx_view_same(const struct onnx_view *one, const struct onnx_view *other)
{
    struct onnx_view a = *one, b = *other;
    if (refine(&a, &b))
        return 0;
    for (int i = 0; i < a.natoms; i++)
        if (a.atom[i].axis != b.atom[i].axis || a.atom[i].rank != b.atom[i].rank)
            return 0;
    return 1;
}
