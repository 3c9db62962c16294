/* onnx_map_elementwise.c - operators of nodes on two or more tensors, number by
 * number: sums, products, the larger ones. */
#include "onnx_map_elementwise.h"
#include "onnx_map.h"
#include "onnx_map_unary.h"
#include "onnx_node.h"
#include "onnx_view.h"

#include <math.h>
#include <string.h>

/* ---- constants along dimensions ---------------------------------------------------- */

/* Which axes of the tensor a constant runs along, as bits; -1 where it runs along
 * parts. */
static int axes_along(const struct onnx *x, const struct onnx_value *a,
                      const struct onnx_value *c)
{
    int bits = 0, shift = a->shape.ndim - c->shape.ndim;
    const struct topt_tensor *t = tensor_of(x, &a->view);
    if (shift < 0)
        return -1;
    for (int i = 0; i < a->view.natoms; i++) {
        const struct onnx_atom *atom = &a->view.atom[i];
        if (atom->dim >= shift && c->shape.dim[atom->dim - shift] > 1)
            bits |= 1 << atom->axis;
    }
    for (int axis = 0; axis < t->ndim; axis++) {
        int64_t along = 1;
        for (int i = 0; i < a->view.natoms; i++) {
            const struct onnx_atom *atom = &a->view.atom[i];
            if (atom->axis == axis && atom->dim >= shift &&
                c->shape.dim[atom->dim - shift] > 1)
                along *= atom->extent;
        }
        if (bits >> axis & 1 && along != (axis ? topt_onnx_extent_of(t, axis) : along))
            return -1;
    }
    return bits;
}

/* The axis of features: channels of an image. */
static int feature_axis(const struct onnx *x, const struct onnx_value *a)
{
    return tensor_of(x, &a->view)->ndim == 4 ? 1 : 2;
}

/* A constant that is rows of a table of weights: how many rows that has, 0 where it is
 * none; '*ret_one': all are the same row. */
static int64_t table_of(const struct onnx *x, const struct onnx_value *c, int *ret_one)
{
    static const char *const copies[] = {"Cast",    "Identity", "Unsqueeze", "Squeeze",
                                         "Reshape", "Expand",   NULL};
    *ret_one = 0;
    while (c && c->node >= 0) {
        const struct onnx_node *n = &x->node[c->node];
        const struct onnx_value *a = topt_onnx_in(x, n, 0), *at = topt_onnx_in(x, n, 1);
        int copy = 0;
        if (a && a->shape.ndim == 2 && a->node < 0 && !a->integer) {
            int64_t count = at ? topt_onnx_elements(&at->shape) : 0;
            if (!strcmp(n->kind->name, "Slice"))
                return a->shape.dim[0];
            if (strcmp(n->kind->name, "Gather") || !at->held || !count)
                return 0;
            *ret_one = 1;
            for (int64_t i = 0; i < count; i++)
                *ret_one &= !(at->held[i] < at->held[0] || at->held[i] > at->held[0]);
            return a->shape.dim[0];
        }
        for (int i = 0; copies[i]; i++)
            copy |= !strcmp(copies[i], n->kind->name);
        c = copy ? a : NULL;
    }
    return 0;
}

/* Rows of a table: of positions, or of kinds of tokens, which all are the first. */
static int add_rows(struct onnx *x, const struct onnx_node *n, const struct onnx_value *a,
                    int64_t rows, int one)
{
    int64_t features = topt_onnx_extent_of(tensor_of(x, &a->view), 2);
    struct topt_attrs places = {.positions = rows};
    struct topt_attrs kinds = {.vocab = rows, .features = features};
    if (!one)
        return topt_onnx_put(
            x, n, &a->view,
            topt_onnx_emit(x, n, "position", "", a->view.tensor, -1, &places));
    int t = topt_onnx_emit(x, n, "embedding", ".kinds", -1, -1, &kinds);
    topt_onnx_note(x, "types of tokens are read as tokens are");
    return topt_onnx_put(
        x, n, &a->view,
        t < 0 ? -1 : topt_onnx_emit(x, n, "add", "", a->view.tensor, t, NULL));
}

/* A vector that is added: a bias of features or channels, or a table of positions. */
static int add_weights(struct onnx *x, const struct onnx_node *n,
                       const struct onnx_value *a, const struct onnx_value *c)
{
    int axis = feature_axis(x, a), along = axes_along(x, a, c), one;
    int64_t rows = axis == 2 ? table_of(x, c, &one) : 0;
    if (rows > 0 && (along & ~1) == (1 << 1 | 1 << 2))
        return add_rows(x, n, a, rows, one);
    if (a->own_weights & 2 && along == 1 << axis)
        return topt_onnx_put(x, n, &a->view, a->view.tensor);
    int bias = along == 1 << axis ||
               (along == 0 && topt_onnx_elements(&c->shape) == 1 &&
                topt_onnx_extent_of(tensor_of(x, &a->view), axis == 1 ? 2 : 1) == 1);
    if (!bias && along != (1 << 1 | 1 << 2))
        return topt_onnx_fail(x, n, "'%.40s' is added along parts of dimensions",
                              c->name);
    if (!bias && axis == 1)
        return topt_onnx_fail(x, n, "a table of rows is added to an image");
    return topt_onnx_put(
        x, n, &a->view,
        topt_onnx_emit(x, n, bias ? "bias" : "position", "", a->view.tensor, -1, NULL));
}

/* A vector that multiplies: a gain of features or channels. */
static int multiply_weights(struct onnx *x, const struct onnx_node *n,
                            const struct onnx_value *a, const struct onnx_value *c)
{
    int own = axes_along(x, a, c) == 1 << feature_axis(x, a);
    if (!own)
        return topt_onnx_fail(
            x, n, "'%.40s' multiplies along other dimensions than features or channels",
            c->name);
    if (!(a->own_weights & 1))
        return topt_onnx_put(x, n, &a->view,
                             topt_onnx_emit(x, n, "gain", "", a->view.tensor, -1, NULL));
    onnx_out(x, n, 0)->own_weights = a->own_weights & 2;
    return topt_onnx_put(x, n, &a->view, a->view.tensor);
}

/* Slopes below 0 are broadcast as other weights are. */
int topt_onnx_map_prelu(struct onnx *x, const struct onnx_node *n)
{
    struct topt_attrs attrs = {.init_std = 0.25};
    const struct onnx_value *a = topt_onnx_sample(x, n, 0), *c = topt_onnx_in(x, n, 1);
    if (!a)
        return -1;
    if (!c || !c->constant)
        return topt_onnx_fail(x, n, "its slopes depend on samples");
    int shared = topt_onnx_elements(&c->shape) == 1;
    if (!shared && axes_along(x, a, c) != 1 << feature_axis(x, a))
        return topt_onnx_fail(x, n, "its slopes are no numbers of features or channels");
    return topt_onnx_put(x, n, &a->view,
                         topt_onnx_emit(x, n, shared ? "prelu_shared" : "prelu", "",
                                        a->view.tensor, -1, &attrs));
}

/* ---- two inputs -------------------------------------------------------------------- */

/* The inputs of a node on two: with dimensions of 1 before those they have, so that
 * both have as many as the output.  'constant' is the one that is none of samples, or
 * NULL; 'a' the first that is, and 'swapped' where that is not the node's first. */
struct pair {
    struct onnx_value a, b;
    const struct onnx_value *constant;
    int swapped;
};

static struct onnx_value lifted(const struct onnx_value *v, int ndim)
{
    struct onnx_value ret = *v;
    int more = ndim - v->shape.ndim;
    for (int d = 0; d < ndim; d++)
        ret.shape.dim[d] = d < more ? 1 : v->shape.dim[d - more];
    ret.shape.ndim = ndim;
    for (int i = 0; i < ret.view.natoms; i++)
        ret.view.atom[i].dim = (int8_t)(ret.view.atom[i].dim + more);
    return ret;
}

static int read_pair(struct onnx *x, const struct onnx_node *n, struct pair *ret)
{
    const struct onnx_value *a = topt_onnx_in(x, n, 0), *b = topt_onnx_in(x, n, 1);
    const struct onnx_shape *y = &onnx_out(x, n, 0)->shape;
    *ret = (struct pair){.swapped = a->constant,
                         .constant = a->constant   ? a
                                     : b->constant ? b
                                                   : NULL};
    if (!topt_onnx_sample(x, n, ret->swapped) ||
        (!ret->constant && !topt_onnx_sample(x, n, 1)))
        return -1;
    ret->a = lifted(ret->swapped ? b : a, y->ndim);
    ret->b = ret->constant ? ret->a : lifted(b, y->ndim);
    return ret->constant && topt_onnx_elements(&ret->a.shape) != topt_onnx_elements(y)
               ? topt_onnx_fail(x, n, "a constant repeats the samples along a dimension")
               : 0;
}

/* The only number of the constant: 1 where there is one. */
static int number_of_pair(const struct pair *p, double *ret)
{
    if (!p->constant->held || topt_onnx_elements(&p->constant->shape) != 1)
        return 0;
    *ret = p->constant->held[0];
    return 1;
}

/* The features of 'b' in the units of 'a'. */
static int same_units(struct onnx *x, const struct onnx_node *n,
                      const struct onnx_view *a, const struct onnx_view *b)
{
    const struct topt_tensor *t = tensor_of(x, a);
    const struct topt_dim *d = &t->dim[t->ndim == 4 ? 1 : 2];
    return topt_onnx_regroup(x, n, b->tensor, d->count, d->unit);
}

static int both(struct onnx *x, const struct onnx_node *n, const char *kind,
                const char *suffix, const struct onnx_view *a, const struct onnx_view *b)
{
    if (tensor_of(x, a)->ndim != tensor_of(x, b)->ndim || !topt_onnx_view_same(a, b))
        return topt_onnx_fail(x, n,
                              "its inputs lie in memory in different orders, or one is "
                              "repeated along a dimension");
    int t = same_units(x, n, a, b);
    return t < 0 ? -1 : topt_onnx_emit(x, n, kind, suffix, a->tensor, t, NULL);
}

/* The same numbers through one operator of one input. */
static int through(struct onnx *x, const struct onnx_node *n, struct onnx_value *v,
                   const char *kind, const char *suffix, const struct topt_attrs *attrs)
{
    v->view.tensor = topt_onnx_emit(x, n, kind, suffix, v->view.tensor, -1, attrs);
    return v->view.tensor < 0 ? -1 : 0;
}

/* Is the number, with a dimension, the bias of a product with one feature?  A number that
 * is meant as one has no dimensions, or stands elsewhere. */
static int is_only_bias(const struct onnx *x, const struct pair *p)
{
    static const char *const products[] = {"linear", "conv", "conv_grouped",
                                           "conv_transpose", NULL};
    const struct topt_tensor *t = tensor_of(x, &p->a.view);
    const char *made = x->model->op[t->producer].spec->name;
    int product = 0;
    for (int i = 0; products[i]; i++)
        product |= !strcmp(products[i], made);
    return product && p->constant->shape.ndim > 0 && p->constant->node < 0 &&
           topt_onnx_extent_of(t, feature_axis(x, &p->a)) == 1;
}

int topt_onnx_map_add(struct onnx *x, const struct onnx_node *n)
{
    static const struct topt_attrs minus = {.factor = -1};
    int sub = !strcmp(n->kind->name, "Sub");
    struct pair p;
    double c;
    if (read_pair(x, n, &p))
        return -1;
    if (!p.constant)
        return sub && through(x, n, &p.b, "scale", ".minus", &minus)
                   ? -1
                   : topt_onnx_put(x, n, &p.a.view,
                                   both(x, n, "add", "", &p.a.view, &p.b.view));
    if (!sub && topt_onnx_elements(&p.constant->shape) == 1 && is_only_bias(x, &p))
        return topt_onnx_put(x, n, &p.a.view,
                             topt_onnx_emit(x, n, "bias", "", p.a.view.tensor, -1, NULL));
    if (number_of_pair(&p, &c))
        return topt_onnx_put_scaled(x, n, &p.a, sub && p.swapped ? -1 : 1,
                                    sub && !p.swapped ? -c : c);
    if (sub && p.swapped && through(x, n, &p.a, "scale", ".minus", &minus))
        return -1;
    return add_weights(x, n, &p.a, p.constant);
}

/* a + f(b - a) is the larger one where f is relu, and a - f(a - b) the smaller one. */
static int larger_of(struct onnx *x, const struct onnx_node *n, const struct onnx_view *a,
                     const struct onnx_view *b)
{
    static const struct topt_attrs relu = {.activation = TOPT_ACT_RELU},
                                   minus = {.factor = -1};
    int least = !strcmp(n->kind->name, "Min");
    struct onnx_value gap = {.view = least ? *a : *b};
    struct onnx_value less = {.view = least ? *b : *a};
    if (through(x, n, &less, "scale", ".minus", &minus))
        return -1;
    gap.view.tensor = both(x, n, "add", ".gap", &gap.view, &less.view);
    if (gap.view.tensor < 0 || through(x, n, &gap, "unary", ".relu", &relu) ||
        (least && through(x, n, &gap, "scale", ".minus", &minus)))
        return -1;
    return both(x, n, "add", "", a, &gap.view);
}

int topt_onnx_map_extreme(struct onnx *x, const struct onnx_node *n)
{
    int least = !strcmp(n->kind->name, "Min");
    struct pair p;
    double c;
    if (n->nin == 1)
        return topt_onnx_map_same(x, n);
    if (n->nin > 2)
        return topt_onnx_fail(x, n, "it is of more than two inputs");
    if (read_pair(x, n, &p))
        return -1;
    if (!p.constant)
        return topt_onnx_put(x, n, &p.a.view, larger_of(x, n, &p.a.view, &p.b.view));
    if (!number_of_pair(&p, &c))
        return topt_onnx_fail(x, n, "it is of samples and a constant vector");
    return least ? topt_onnx_put_clipped(x, n, &p.a, -ONNX_MAX_NUMBER, c)
                 : topt_onnx_put_clipped(x, n, &p.a, c, ONNX_MAX_NUMBER);
}

/* Sum or Mean of any number of inputs. */
int topt_onnx_map_sum(struct onnx *x, const struct onnx_node *n)
{
    const struct onnx_value *a = topt_onnx_sample(x, n, 0);
    int mean = !strcmp(n->kind->name, "Mean");
    if (!a)
        return -1;
    struct onnx_value sum = lifted(a, onnx_out(x, n, 0)->shape.ndim);
    for (int i = 1; i < n->nin; i++) {
        const struct onnx_value *b = topt_onnx_sample(x, n, i);
        if (!b)
            return -1;
        struct onnx_value one = lifted(b, sum.shape.ndim);
        sum.view.tensor =
            both(x, n, "add", i + 1 < n->nin || mean ? ".sum" : "", &sum.view, &one.view);
        if (sum.view.tensor < 0)
            return -1;
    }
    return mean ? topt_onnx_put_scaled(x, n, &sum, 1 / (double)n->nin, 0)
                : topt_onnx_put(x, n, &sum.view, sum.view.tensor);
}

/* Is 'g' one number for each channel of the image 'a', or for each position? */
static int weighs(const struct onnx *x, const struct onnx_value *a,
                  const struct onnx_value *g)
{
    const struct topt_tensor *t = tensor_of(x, &a->view), *u = tensor_of(x, &g->view);
    if (a->shape.ndim != g->shape.ndim || u->ndim != 3)
        return 0;
    if (t->ndim == 4)
        return topt_onnx_is_image(x, a) && u->dim[1].count == 1 &&
               topt_onnx_extent_on(&g->view, 2, 1, 2) == topt_onnx_extent_of(t, 1) &&
               topt_onnx_extent_of(u, 2) == topt_onnx_extent_of(t, 1);
    return topt_onnx_extent_of(u, 2) == 1 && topt_onnx_extent_of(t, 2) > 1 &&
           topt_onnx_extent_on(&g->view, 1, 1, 2) ==
               topt_onnx_extent_on(&a->view, 1, 1, 2) &&
           topt_onnx_extent_on(&a->view, 1, 1, 2) == t->dim[1].count;
}

/* Of two tensors of samples. */
static int product_of(struct onnx *x, const struct onnx_node *n,
                      const struct onnx_value *a, const struct onnx_value *b)
{
    int swap = weighs(x, b, a);
    const struct onnx_value *v = swap ? b : a, *g = swap ? a : b;
    if (!swap && !weighs(x, a, b))
        return topt_onnx_put(x, n, &a->view, both(x, n, "mul", "", &a->view, &b->view));
    const struct topt_tensor *t = tensor_of(x, &v->view);
    int image = t->ndim == 4;
    int u = topt_onnx_regroup(x, n, g->view.tensor, image ? t->dim[1].count : 1,
                              image ? t->dim[1].unit : 1);
    return u < 0 ? -1
                 : topt_onnx_put(
                       x, n, &v->view,
                       topt_onnx_emit(x, n, "weigh", "", v->view.tensor, u, NULL));
}

int topt_onnx_map_mul(struct onnx *x, const struct onnx_node *n)
{
    static const struct topt_attrs inverse = {.activation = TOPT_ACT_RECIPROCAL};
    int div = !strcmp(n->kind->name, "Div");
    struct pair p;
    double c;
    if (read_pair(x, n, &p))
        return -1;
    if (div && !p.constant && through(x, n, &p.b, "unary", ".inverse", &inverse))
        return -1;
    if (!p.constant)
        return product_of(x, n, &p.a, &p.b);
    if (div && p.swapped && through(x, n, &p.a, "unary", ".inverse", &inverse))
        return -1;
    if (number_of_pair(&p, &c))
        return topt_onnx_put_scaled(x, n, &p.a, div && !p.swapped ? 1 / c : c, 0);
    return multiply_weights(x, n, &p.a, p.constant);
}
