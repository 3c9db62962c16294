/* onnx_map_elementwise.c - operators of nodes that take numbers one by one: functions, sums,
 * products, norms. */
#include "onnx_table.h"

#include <math.h>
#include <string.h>

/* ---- elementwise ----------------------------------------------------------------------- */

int topt_onnx_map_activation(struct onnx *x, const struct onnx_node *n)
{
    static const struct {
        const char *type;
        enum topt_activation a;
        double alpha;
    } table[] = {{"Relu", TOPT_ACT_RELU, 0}, {"Sigmoid", TOPT_ACT_SIGMOID, 0},
                 {"Tanh", TOPT_ACT_TANH, 0}, {"LeakyRelu", TOPT_ACT_LEAKY_RELU, 0.01},
                 {"Elu", TOPT_ACT_ELU, 1},   {"Softplus", TOPT_ACT_SOFTPLUS, 0}};
    const struct onnx_value *a = topt_onnx_sample(x, n, 0);
    struct topt_attrs attrs = {0};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (!strcmp(table[i].type, n->kind->name))
            attrs =
                (struct topt_attrs){.activation = (int)table[i].a,
                                    .alpha = topt_onnx_real(n, "alpha", table[i].alpha)};
    if (attrs.alpha < 0)
        return topt_onnx_fail(x, n, "alpha is below 0");
    return !a ? -1
              : topt_onnx_put(
                    x, n, &a->view,
                    topt_onnx_emit(x, n, "unary", "", a->view.tensor, -1, &attrs));
}

int topt_onnx_put_activation(struct onnx *x, const struct onnx_node *n,
                             const struct onnx_value *a, enum topt_activation activation)
{
    struct topt_attrs attrs = {.activation = (int)activation};
    return topt_onnx_put(x, n, &a->view,
                         topt_onnx_emit(x, n, "unary", "", a->view.tensor, -1, &attrs));
}

static int scaled(struct onnx *x, const struct onnx_node *n, const struct onnx_value *a,
                  double factor, double shift)
{
    struct topt_attrs attrs = {.factor = factor, .shift = shift};
    if (!(fabs(factor) < 1e18 && fabs(shift) < 1e18))
        return topt_onnx_fail(x, n, "its constant is not a number below 1e18");
    if (tensor_of(x, &a->view)->ndim != 3)
        return topt_onnx_fail(x, n, "an image is scaled by a constant: no row does that");
    return topt_onnx_put(x, n, &a->view,
                         topt_onnx_emit(x, n, "scale", "", a->view.tensor, -1, &attrs));
}

int topt_onnx_map_neg(struct onnx *x, const struct onnx_node *n)
{
    const struct onnx_value *a = topt_onnx_sample(x, n, 0);
    return a ? scaled(x, n, a, -1, 0) : -1;
}

int topt_onnx_map_same(struct onnx *x, const struct onnx_node *n)
{
    const struct onnx_value *a = topt_onnx_sample(x, n, 0);
    return a ? topt_onnx_put(x, n, &a->view, a->view.tensor) : -1;
}

/* Dropped in training, which is what the graph is for. */
int topt_onnx_map_dropout(struct onnx *x, const struct onnx_node *n)
{
    const struct onnx_value *a = topt_onnx_sample(x, n, 0), *r = topt_onnx_in(x, n, 1);
    double rate = r && r->held ? r->held[0] : topt_onnx_real(n, "ratio", 0.5);
    struct topt_attrs attrs = {.rate = rate};
    if (!a || rate <= 0)
        return a ? topt_onnx_map_same(x, n) : -1;
    return topt_onnx_put(x, n, &a->view,
                         topt_onnx_emit(x, n, "dropout", "", a->view.tensor, -1, &attrs));
}

/* Which axes of the tensor a constant runs along, as bits; -1 where it runs along parts. */
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

/* A vector that is added: a bias of features or channels, or a table of positions. */
static int add_weights(struct onnx *x, const struct onnx_node *n,
                       const struct onnx_value *a, const struct onnx_value *c)
{
    int features = tensor_of(x, &a->view)->ndim == 4 ? 1 << 1 : 1 << 2;
    int along = axes_along(x, a, c);
    if (a->own_weights & 2 && along == features)
        return topt_onnx_put(x, n, &a->view, a->view.tensor);
    int bias = along == features ||
               (along == 0 && topt_onnx_elements(&c->shape) == 1 &&
                topt_onnx_extent_of(tensor_of(x, &a->view), features == 4 ? 2 : 1) == 1);
    if (!bias && along != (1 << 1 | 1 << 2))
        return topt_onnx_fail(x, n, "'%.40s' is added along parts of dimensions",
                              c->name);
    if (!bias && features == 1 << 1)
        return topt_onnx_fail(x, n, "a table of rows is added to an image");
    return topt_onnx_put(
        x, n, &a->view,
        topt_onnx_emit(x, n, bias ? "bias" : "position", "", a->view.tensor, -1, NULL));
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

int topt_onnx_map_add(struct onnx *x, const struct onnx_node *n)
{
    struct onnx_value *a = topt_onnx_in(x, n, 0), *b = topt_onnx_in(x, n, 1);
    int sub = !strcmp(n->kind->name, "Sub"), swapped = a->constant;
    struct onnx_value *c = swapped ? a : b;
    a = topt_onnx_sample(x, n, swapped);
    if (!a)
        return -1;
    if (!c->constant) {
        struct onnx_view other = b->view;
        if (other.tensor < 0)
            return topt_onnx_sample(x, n, 1) ? 0 : -1;
        struct topt_attrs minus = {.factor = -1};
        if (sub)
            other.tensor =
                topt_onnx_emit(x, n, "scale", ".minus", b->view.tensor, -1, &minus);
        return other.tensor < 0 ? -1
                                : topt_onnx_put(x, n, &a->view,
                                                both(x, n, "add", "", &a->view, &other));
    }
    if (topt_onnx_elements(&c->shape) == 1 && c->held)
        return scaled(x, n, a, sub && swapped ? -1 : 1,
                      sub && !swapped ? -c->held[0] : c->held[0]);
    if (sub && swapped)
        return topt_onnx_fail(x, n, "it is taken from a constant vector");
    return add_weights(x, n, a, c);
}

int topt_onnx_map_sum(struct onnx *x, const struct onnx_node *n)
{
    const struct onnx_value *a = topt_onnx_sample(x, n, 0);
    struct onnx_view sum = a ? a->view : (struct onnx_view){0};
    for (int i = 1; a && i < n->nin; i++) {
        const struct onnx_value *b = topt_onnx_sample(x, n, i);
        sum.tensor =
            b ? both(x, n, "add", i + 1 < n->nin ? ".sum" : "", &sum, &b->view) : -1;
        if (sum.tensor < 0)
            return -1;
    }
    return a ? topt_onnx_put(x, n, &sum, sum.tensor) : -1;
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
    struct onnx_value *a = topt_onnx_in(x, n, 0), *b = topt_onnx_in(x, n, 1);
    int swapped = a->constant, div = !strcmp(n->kind->name, "Div");
    struct onnx_value *c = swapped ? a : b;
    a = topt_onnx_sample(x, n, swapped);
    if (!a)
        return -1;
    if (!c->constant && !div)
        return topt_onnx_sample(x, n, 1) ? product_of(x, n, a, b) : -1;
    if (div && (swapped || !c->constant))
        return topt_onnx_fail(x, n, "it divides by what depends on samples");
    if (topt_onnx_elements(&c->shape) == 1 && c->held)
        return scaled(x, n, a, div ? 1 / c->held[0] : c->held[0], 0);
    if (a->own_weights & 1 && !div &&
        axes_along(x, a, c) == (tensor_of(x, &a->view)->ndim == 4 ? 1 << 1 : 1 << 2)) {
        onnx_out(x, n, 0)->own_weights = a->own_weights & 2;
        return topt_onnx_put(x, n, &a->view, a->view.tensor);
    }
    return topt_onnx_fail(
        x, n, "'%.40s', a constant vector, multiplies: no row does that", c->name);
}

int topt_onnx_map_pow(struct onnx *x, const struct onnx_node *n)
{
    const struct onnx_value *a = topt_onnx_sample(x, n, 0), *p = topt_onnx_in(x, n, 1);
    if (!a)
        return -1;
    if (!p->held || topt_onnx_elements(&p->shape) != 1 || fabs(p->held[0] - 2) > 0)
        return topt_onnx_fail(x, n, "only squares are done");
    return topt_onnx_put(x, n, &a->view, both(x, n, "mul", "", &a->view, &a->view));
}

/* ---- norms ----------------------------------------------------------------------------- */

int topt_onnx_put_norm(struct onnx *x, const struct onnx_node *n,
                       const struct onnx_value *a, int rms, double eps)
{
    struct topt_attrs attrs = {.rms = rms, .eps = eps};
    struct onnx_view v;
    if (topt_onnx_rows(x, n, a, a->shape.ndim - 1, &v))
        return -1;
    onnx_out(x, n, 0)->own_weights = onnx_out(x, n, 0)->uses == 1 ? (rms ? 1 : 3) : 0;
    return topt_onnx_put(x, n, &v,
                         topt_onnx_emit(x, n, "norm", "", v.tensor, -1, &attrs));
}

int topt_onnx_map_layer_norm(struct onnx *x, const struct onnx_node *n)
{
    const struct onnx_value *a = topt_onnx_sample(x, n, 0);
    if (!a)
        return -1;
    return topt_onnx_axis(n, a->shape.ndim, -1) == a->shape.ndim - 1
               ? topt_onnx_put_norm(x, n, a, 0, topt_onnx_real(n, "epsilon", 1e-5))
               : topt_onnx_fail(x, n, "it is over several dimensions");
}
