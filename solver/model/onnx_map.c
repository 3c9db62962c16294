/* onnx_map.c - operators for the nodes of an ONNX graph.
 *
 * One function a way of mapping, one row a type of node.  Float constants that stand where
 * weights do are parameters: their numbers in the file do not matter, and neither does the
 * order of features between two products, since it is the weights' that follows. */
#include "onnx_map.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- helpers --------------------------------------------------------------------------- */

/* A name from a value's: printable ASCII, at most 180 bytes, not taken. */
static void name_op(const struct onnx *x, const char *value, const char *suffix,
                    char *ret, size_t size)
{
    size_t n = 0;
    for (; value[n] && n < 160; n++)
        ret[n] = value[n] > ' ' && value[n] < 127 ? value[n] : '_';
    if (!n)
        ret[n++] = '_';
    snprintf(ret + n, size - n, "%s", suffix);
    size_t end = strlen(ret);
    for (int i = 1; topt_model_find(x->model, ret) >= 0 && i < 1 << 20; i++)
        snprintf(ret + end, size - end, ".%d", i);
}

int topt_onnx_emit(struct onnx *x, const struct onnx_node *n, const char *kind,
                   const char *suffix, int a, int b, const struct topt_attrs *attrs)
{
    char name[200];
    int inputs[] = {a, b};
    const char *value =
        n && n->nout && n->out[0] >= 0 ? x->value[n->out[0]].name : "model";
    name_op(x, value, suffix, name, sizeof name);
    int t =
        topt_model_add(x->model, kind, name, (a >= 0) + (b >= 0), inputs, attrs, x->err);
    if (t < 0 && n)
        topt_wrap(x->err, "%.40s", n->proto->op_type);
    return t;
}

static struct onnx_value *out(const struct onnx *x, const struct onnx_node *n)
{
    return &x->value[n->out[0]];
}

static const struct topt_tensor *tensor_of(const struct onnx *x,
                                           const struct onnx_view *v)
{
    return &x->model->tensor[v->tensor];
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
static int put(struct onnx *x, const struct onnx_node *n, const struct onnx_view *like,
               int tensor)
{
    if (tensor < 0)
        return -1;
    out(x, n)->view = *like;
    out(x, n)->view.tensor = tensor;
    return 0;
}

/* Extents that lie on an axis within dimensions [from, to) of the value. */
static int64_t extent_on(const struct onnx_view *v, int axis, int from, int to)
{
    int64_t n = 1;
    for (int i = 0; i < v->natoms; i++)
        if (v->atom[i].axis == axis && v->atom[i].dim >= from && v->atom[i].dim < to)
            n *= v->atom[i].extent;
    return n;
}

static int64_t extent_of(const struct topt_tensor *t, int axis)
{
    return t->dim[axis].count * t->dim[axis].unit;
}

/* Move atoms to other axes: to[axis], those of several old axes in their order. */
static void move_axes(struct onnx_view *v, const int8_t *to)
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

/* ---- the layouts that operators need --------------------------------------------------- */

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
    int t = topt_onnx_regroup(x, n, v->tensor, extent_of(tensor_of(x, v), 2), 1);
    t = t < 0 ? -1 : topt_onnx_emit(x, n, "transpose", ".transpose", t, -1, NULL);
    move_axes(v, swapped);
    v->tensor = t;
    return t < 0 ? -1 : 0;
}

/* An image's pixels become features or positions. */
static int from_image(struct onnx *x, const struct onnx_node *n, struct onnx_view *v,
                      int first)
{
    static const int8_t flat[] = {0, 2, 2, 2}, rows[] = {0, 2, 1, 1};
    const struct topt_tensor *t = tensor_of(x, v);
    int64_t pixels = extent_of(t, 2) * extent_of(t, 3);
    int64_t in =
        extent_on(v, 2, first, ONNX_MAX_RANK) * extent_on(v, 3, first, ONNX_MAX_RANK);
    int64_t channels = extent_on(v, 1, first, ONNX_MAX_RANK);
    if (channels != extent_of(t, 1) || (in != pixels && in != 1))
        return topt_onnx_fail(x, n, "a product with rows or columns of an image");
    int whole = in == pixels;
    v->tensor = topt_onnx_emit(x, n, whole ? "flatten" : "tokens",
                               whole ? ".flatten" : ".tokens", v->tensor, -1, NULL);
    move_axes(v, whole ? flat : rows);
    return v->tensor < 0 ? -1 : 0;
}

int topt_onnx_rows(struct onnx *x, const struct onnx_node *n, const struct onnx_value *a,
                   int first, struct onnx_view *ret)
{
    *ret = a->view;
    if (tensor_of(x, ret)->ndim == 4)
        return from_image(x, n, ret, first);
    const struct topt_tensor *t = tensor_of(x, ret);
    int64_t s = extent_on(ret, 1, first, ONNX_MAX_RANK),
            d = extent_on(ret, 2, first, ONNX_MAX_RANK);
    if (extent_on(ret, 0, first, ONNX_MAX_RANK) > 1)
        return topt_onnx_fail(x, n, "a product over samples");
    if (d == extent_of(t, 2) && s == 1)
        return 0;
    if (s == extent_of(t, 1) && d == 1)
        return turn(x, n, ret);
    return topt_onnx_fail(x, n,
                          "a product with a part of the features, or with positions "
                          "and features at once");
}

/* Is the value an image as it is: samples, channels, rows, columns? */
static int is_image(const struct onnx *x, const struct onnx_value *a)
{
    static const int8_t two[] = {0, 1, 2, 3}, one[] = {0, 1, 3};
    struct onnx_value fresh = {.shape = a->shape};
    if (a->shape.ndim < 3 || a->shape.ndim > 4 || tensor_of(x, &a->view)->ndim != 4)
        return 0;
    topt_onnx_view_fresh(&fresh, a->view.tensor, a->shape.ndim == 4 ? two : one);
    return topt_onnx_view_same(&fresh.view, &a->view);
}

/* ---- elementwise ----------------------------------------------------------------------- */

static int map_activation(struct onnx *x, const struct onnx_node *n)
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
              : put(x, n, &a->view,
                    topt_onnx_emit(x, n, "unary", "", a->view.tensor, -1, &attrs));
}

int topt_onnx_put_activation(struct onnx *x, const struct onnx_node *n,
                             const struct onnx_value *a, enum topt_activation activation)
{
    struct topt_attrs attrs = {.activation = (int)activation};
    return put(x, n, &a->view,
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
    return put(x, n, &a->view,
               topt_onnx_emit(x, n, "scale", "", a->view.tensor, -1, &attrs));
}

static int map_neg(struct onnx *x, const struct onnx_node *n)
{
    const struct onnx_value *a = topt_onnx_sample(x, n, 0);
    return a ? scaled(x, n, a, -1, 0) : -1;
}

static int map_same(struct onnx *x, const struct onnx_node *n)
{
    const struct onnx_value *a = topt_onnx_sample(x, n, 0);
    return a ? put(x, n, &a->view, a->view.tensor) : -1;
}

/* Dropped in training, which is what the graph is for. */
static int map_dropout(struct onnx *x, const struct onnx_node *n)
{
    const struct onnx_value *a = topt_onnx_sample(x, n, 0), *r = topt_onnx_in(x, n, 1);
    double rate = r && r->held ? r->held[0] : topt_onnx_real(n, "ratio", 0.5);
    struct topt_attrs attrs = {.rate = rate};
    if (!a || rate <= 0)
        return a ? map_same(x, n) : -1;
    return put(x, n, &a->view,
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
        if (bits >> axis & 1 && along != (axis ? extent_of(t, axis) : along))
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
        return put(x, n, &a->view, a->view.tensor);
    int bias = along == features ||
               (along == 0 && topt_onnx_elements(&c->shape) == 1 &&
                extent_of(tensor_of(x, &a->view), features == 4 ? 2 : 1) == 1);
    if (!bias && along != (1 << 1 | 1 << 2))
        return topt_onnx_fail(x, n, "'%.40s' is added along parts of dimensions",
                              c->name);
    if (!bias && features == 1 << 1)
        return topt_onnx_fail(x, n, "a table of rows is added to an image");
    return put(
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

static int map_add(struct onnx *x, const struct onnx_node *n)
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
        return other.tensor < 0
                   ? -1
                   : put(x, n, &a->view, both(x, n, "add", "", &a->view, &other));
    }
    if (topt_onnx_elements(&c->shape) == 1 && c->held)
        return scaled(x, n, a, sub && swapped ? -1 : 1,
                      sub && !swapped ? -c->held[0] : c->held[0]);
    if (sub && swapped)
        return topt_onnx_fail(x, n, "it is taken from a constant vector");
    return add_weights(x, n, a, c);
}

static int map_sum(struct onnx *x, const struct onnx_node *n)
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
    return a ? put(x, n, &sum, sum.tensor) : -1;
}

/* Is 'g' one number for each channel of the image 'a', or for each position? */
static int weighs(const struct onnx *x, const struct onnx_value *a,
                  const struct onnx_value *g)
{
    const struct topt_tensor *t = tensor_of(x, &a->view), *u = tensor_of(x, &g->view);
    if (a->shape.ndim != g->shape.ndim || u->ndim != 3)
        return 0;
    if (t->ndim == 4)
        return is_image(x, a) && u->dim[1].count == 1 &&
               extent_on(&g->view, 2, 1, 2) == extent_of(t, 1) &&
               extent_of(u, 2) == extent_of(t, 1);
    return extent_of(u, 2) == 1 && extent_of(t, 2) > 1 &&
           extent_on(&g->view, 1, 1, 2) == extent_on(&a->view, 1, 1, 2) &&
           extent_on(&a->view, 1, 1, 2) == t->dim[1].count;
}

/* Of two tensors of samples. */
static int product_of(struct onnx *x, const struct onnx_node *n,
                      const struct onnx_value *a, const struct onnx_value *b)
{
    int swap = weighs(x, b, a);
    const struct onnx_value *v = swap ? b : a, *g = swap ? a : b;
    if (!swap && !weighs(x, a, b))
        return put(x, n, &a->view, both(x, n, "mul", "", &a->view, &b->view));
    const struct topt_tensor *t = tensor_of(x, &v->view);
    int image = t->ndim == 4;
    int u = topt_onnx_regroup(x, n, g->view.tensor, image ? t->dim[1].count : 1,
                              image ? t->dim[1].unit : 1);
    return u < 0 ? -1
                 : put(x, n, &v->view,
                       topt_onnx_emit(x, n, "weigh", "", v->view.tensor, u, NULL));
}

static int map_mul(struct onnx *x, const struct onnx_node *n)
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
        out(x, n)->own_weights = a->own_weights & 2;
        return put(x, n, &a->view, a->view.tensor);
    }
    return topt_onnx_fail(
        x, n, "'%.40s', a constant vector, multiplies: no row does that", c->name);
}

static int map_pow(struct onnx *x, const struct onnx_node *n)
{
    const struct onnx_value *a = topt_onnx_sample(x, n, 0), *p = topt_onnx_in(x, n, 1);
    if (!a)
        return -1;
    if (!p->held || topt_onnx_elements(&p->shape) != 1 || fabs(p->held[0] - 2) > 0)
        return topt_onnx_fail(x, n, "only squares are done");
    return put(x, n, &a->view, both(x, n, "mul", "", &a->view, &a->view));
}

/* ---- products -------------------------------------------------------------------------- */

/* Features of dimension 'dim' of the output after a product, in place of those of 'rows'. */
static void put_product(struct onnx_view *v, int first, int64_t features, int dim,
                        int axis)
{
    int kept = 0;
    for (int i = 0; i < v->natoms; i++)
        if (v->atom[i].dim < first)
            v->atom[kept++] = v->atom[i];
    v->natoms = kept;
    if (features > 1 && kept < ONNX_MAX_ATOMS)
        v->atom[v->natoms++] = (struct onnx_atom){
            .extent = features, .axis = (int8_t)axis, .dim = (int8_t)dim};
}

/* x W^T (+ bias) over the dimensions from 'first' on; the features are of dimension 'first'. */
static int product(struct onnx *x, const struct onnx_node *n, const struct onnx_value *a,
                   int first, int64_t features, int bias, double factor)
{
    struct onnx_view v;
    struct topt_attrs attrs = {.features = features}, scale = {.factor = factor};
    if (topt_onnx_rows(x, n, a, first, &v))
        return -1;
    int scaling = factor < 1 || factor > 1;
    v.tensor = topt_onnx_emit(x, n, "linear", scaling || bias ? ".linear" : "", v.tensor,
                              -1, &attrs);
    if (v.tensor >= 0 && scaling)
        v.tensor =
            topt_onnx_emit(x, n, "scale", bias ? ".scale" : "", v.tensor, -1, &scale);
    if (v.tensor >= 0 && bias)
        v.tensor = topt_onnx_emit(x, n, "bias", "", v.tensor, -1, NULL);
    put_product(&v, first, features, first, 2);
    return put(x, n, &v, v.tensor);
}

static int map_matmul(struct onnx *x, const struct onnx_node *n)
{
    const struct onnx_value *w = topt_onnx_in(x, n, 1), *a = topt_onnx_sample(x, n, 0);
    if (!a)
        return -1;
    if (!w->constant)
        return topt_onnx_fail(x, n,
                              "a product of two tensors of samples that is no "
                              "attention");
    int64_t batches = topt_onnx_elements(&w->shape) / w->shape.dim[w->shape.ndim - 1] /
                      w->shape.dim[w->shape.ndim - 2];
    return batches != 1 ? topt_onnx_fail(x, n, "its weights are several matrices")
                        : product(x, n, a, a->shape.ndim - 1,
                                  w->shape.dim[w->shape.ndim - 1], 0, 1);
}

static int map_gemm(struct onnx *x, const struct onnx_node *n)
{
    const struct onnx_value *a = topt_onnx_sample(x, n, 0), *w = topt_onnx_in(x, n, 1),
                            *c = topt_onnx_in(x, n, 2);
    double alpha = topt_onnx_real(n, "alpha", 1), beta = topt_onnx_real(n, "beta", 1);
    if (!a)
        return -1;
    int64_t features = w->shape.dim[!topt_onnx_int(n, "transB", 0)];
    if (!w->constant || (c && !c->constant))
        return topt_onnx_fail(x, n, "its weights depend on samples");
    if (topt_onnx_int(n, "transA", 0))
        return topt_onnx_fail(x, n, "transA: samples would be features");
    if (c && (topt_onnx_elements(&c->shape) != features || beta < 1 || beta > 1 ||
              (c->shape.ndim && c->shape.dim[c->shape.ndim - 1] != features)))
        return topt_onnx_fail(x, n, "C is no bias of %lld features with beta 1",
                              (long long)features);
    return product(x, n, a, 1, features, c != NULL, alpha);
}

/* ---- images ---------------------------------------------------------------------------- */

static struct topt_attrs slide(const struct onnx_window *w)
{
    return (struct topt_attrs){.kernel_h = w->kernel[0],
                               .kernel_w = w->kernel[1],
                               .stride_h = w->stride[0],
                               .stride_w = w->stride[1],
                               .dilation_h = w->dilation[0],
                               .dilation_w = w->dilation[1],
                               .pad_top = w->before[0],
                               .pad_left = w->before[1],
                               .pad_bottom = w->after[0],
                               .pad_right = w->after[1],
                               .ceil = w->ceil};
}

/* The output is an image of its own. */
static int put_image(struct onnx *x, const struct onnx_node *n, int tensor)
{
    static const int8_t two[] = {0, 1, 2, 3}, one[] = {0, 1, 3};
    if (tensor < 0)
        return -1;
    topt_onnx_view_fresh(out(x, n), tensor, out(x, n)->shape.ndim == 4 ? two : one);
    return 0;
}

/* Groups of channels are the units of the image's.  The tensor that is convolved, or -1. */
static int group_channels(struct onnx *x, const struct onnx_node *n,
                          const struct onnx_value *a, struct topt_attrs *attrs)
{
    int64_t groups = topt_onnx_int(n, "group", 1);
    int64_t features = topt_onnx_in(x, n, 1)->shape.dim[0];
    if (groups == 1) {
        attrs->features = features;
        return a->view.tensor;
    }
    attrs->groups = groups;
    attrs->features_unit = features / groups;
    return topt_onnx_regroup(x, n, a->view.tensor, groups, a->shape.dim[1] / groups);
}

static int map_conv(struct onnx *x, const struct onnx_node *n)
{
    const struct onnx_value *a = topt_onnx_sample(x, n, 0), *w = topt_onnx_in(x, n, 1);
    int bias = topt_onnx_in(x, n, 2) != NULL;
    struct onnx_window win;
    if (!a || topt_onnx_window(x, n, &win))
        return -1;
    if (!w->constant)
        return topt_onnx_fail(x, n, "its weights depend on samples");
    struct topt_attrs attrs = slide(&win);
    if (!is_image(x, a)) {
        int64_t pixels =
            topt_onnx_elements(&a->shape) / a->shape.dim[0] / a->shape.dim[1];
        return pixels == 1 && topt_onnx_int(n, "group", 1) == 1 &&
                       topt_onnx_elements(&out(x, n)->shape) ==
                           out(x, n)->shape.dim[0] * w->shape.dim[0] &&
                       win.kernel[0] * win.kernel[1] == 1
                   ? product(x, n, a, 1, w->shape.dim[0], bias, 1)
                   : topt_onnx_fail(x, n, "a convolution over a sequence, not an image");
    }
    int t = group_channels(x, n, a, &attrs);
    if (t >= 0)
        t = topt_onnx_emit(x, n, attrs.groups ? "conv_grouped" : "conv",
                           bias ? ".conv" : "", t, -1, &attrs);
    if (t >= 0 && bias)
        t = topt_onnx_emit(x, n, "bias", "", t, -1, NULL);
    return put_image(x, n, t);
}

static int mean_of_image(struct onnx *x, const struct onnx_node *n,
                         const struct onnx_value *a)
{
    static const int8_t axes[] = {0, 2, -1, -1};
    int t = topt_onnx_emit(x, n, "global_pool", "", a->view.tensor, -1, NULL);
    if (t < 0)
        return -1;
    topt_onnx_view_fresh(out(x, n), t, axes);
    return 0;
}

static int map_pool(struct onnx *x, const struct onnx_node *n)
{
    const struct onnx_value *a = topt_onnx_sample(x, n, 0);
    int average = !strcmp(n->kind->name, "AveragePool");
    struct onnx_window w;
    if (!a || topt_onnx_window(x, n, &w))
        return -1;
    if (!is_image(x, a))
        return topt_onnx_fail(x, n, "it pools no image");
    if (n->nout > 1 && n->out[1] >= 0 && x->value[n->out[1]].uses)
        return topt_onnx_fail(x, n, "the places of the largest are used");
    if (topt_onnx_int(n, "storage_order", 0))
        return topt_onnx_fail(x, n, "storage_order is not 0");
    const struct topt_tensor *t = tensor_of(x, &a->view);
    if (average && w.kernel[0] == extent_of(t, 2) && w.kernel[1] == extent_of(t, 3) &&
        w.before[0] + w.before[1] + w.after[0] + w.after[1] == 0)
        return mean_of_image(x, n, a);
    struct topt_attrs attrs = slide(&w);
    attrs.average = average;
    attrs.count_pad = topt_onnx_int(n, "count_include_pad", 0) != 0;
    return put_image(x, n, topt_onnx_emit(x, n, "pool", "", a->view.tensor, -1, &attrs));
}

static int map_global_pool(struct onnx *x, const struct onnx_node *n)
{
    const struct onnx_value *a = topt_onnx_sample(x, n, 0);
    if (!a)
        return -1;
    return is_image(x, a) ? mean_of_image(x, n, a)
                          : topt_onnx_fail(x, n, "it pools no image");
}

static int map_batch_norm(struct onnx *x, const struct onnx_node *n)
{
    const struct onnx_value *a = topt_onnx_sample(x, n, 0);
    struct topt_attrs attrs = {.eps = topt_onnx_real(n, "epsilon", 1e-5)};
    if (!a)
        return -1;
    out(x, n)->own_weights = out(x, n)->uses == 1 ? 3 : 0;
    return is_image(x, a)
               ? put(x, n, &a->view,
                     topt_onnx_emit(x, n, "batch_norm", "", a->view.tensor, -1, &attrs))
               : topt_onnx_fail(x, n, "it normalises no image");
}

static int map_lrn(struct onnx *x, const struct onnx_node *n)
{
    const struct onnx_value *a = topt_onnx_sample(x, n, 0);
    struct topt_attrs attrs = {.size = topt_onnx_int(n, "size", 0),
                               .alpha = topt_onnx_real(n, "alpha", 1e-4),
                               .beta = topt_onnx_real(n, "beta", 0.75),
                               .bias = topt_onnx_real(n, "bias", 1)};
    if (!a)
        return -1;
    if (!is_image(x, a))
        return topt_onnx_fail(x, n, "it normalises no image");
    int t = topt_onnx_regroup(x, n, a->view.tensor, a->shape.dim[1], 1);
    t = t < 0 ? -1 : topt_onnx_emit(x, n, "lrn", "", t, -1, &attrs);
    return put(x, n, &a->view, t);
}

/* ---- recurrences ----------------------------------------------------------------------- */

/* An initial state must be left out or zero. */
static int refuse_state(struct onnx *x, const struct onnx_node *n, int i)
{
    const struct onnx_value *v = topt_onnx_in(x, n, i);
    int64_t count = v ? topt_onnx_elements(&v->shape) : 0, zero = !v || v->held;
    for (int64_t k = 0; zero && k < count; k++)
        zero &= !(v->held[k] < 0 || v->held[k] > 0);
    return zero ? 0 : topt_onnx_fail(x, n, "input %d, an initial state, is not zero", i);
}

static int check_recurrent(struct onnx *x, const struct onnx_node *n)
{
    const Onnx__AttributeProto *dir = topt_onnx_attr(n, "direction");
    if (dir && dir->has_s && (dir->s.len != 7 || memcmp(dir->s.data, "forward", 7)))
        return topt_onnx_fail(x, n, "its direction is not forward");
    if (topt_onnx_attr(n, "activations") || topt_onnx_attr(n, "clip"))
        return topt_onnx_fail(x, n, "it has activations or a clip of its own");
    if (topt_onnx_in(x, n, 4))
        return topt_onnx_fail(x, n, "it has sequences of different lengths");
    if (topt_onnx_in(x, n, 7))
        return topt_onnx_fail(x, n, "it has peepholes");
    if (!strcmp(n->kind->name, "GRU") && !topt_onnx_int(n, "linear_before_reset", 0))
        return topt_onnx_fail(x, n, "linear_before_reset is 0: the row resets after");
    return refuse_state(x, n, 5) || refuse_state(x, n, 6) ? -1 : 0;
}

/* The last step's output, as the second output. */
static int put_last(struct onnx *x, const struct onnx_node *n, int tensor, int first)
{
    static const int8_t steps_first[] = {-1, 0, 2}, samples_first[] = {0, -1, 2};
    if (n->nout < 2 || n->out[1] < 0 || !x->value[n->out[1]].uses)
        return 0;
    struct topt_attrs attrs = {.offset = x->model->tensor[tensor].dim[1].count - 1};
    int t = topt_onnx_emit(x, n, "select", ".last", tensor, -1, &attrs);
    if (t >= 0)
        topt_onnx_view_fresh(&x->value[n->out[1]], t,
                             first ? samples_first : steps_first);
    return t < 0 ? -1 : 0;
}

static int map_recurrent(struct onnx *x, const struct onnx_node *n)
{
    static const int8_t steps_first[] = {1, -1, 0, 2}, samples_first[] = {0, 1, -1, 2};
    const struct onnx_value *a = topt_onnx_sample(x, n, 0), *r = topt_onnx_in(x, n, 2);
    int lstm = !strcmp(n->kind->name, "LSTM"), first = topt_onnx_int(n, "layout", 0) != 0;
    struct onnx_view v;
    if (!a || check_recurrent(x, n) || topt_onnx_rows(x, n, a, 2, &v))
        return -1;
    if (!topt_onnx_in(x, n, 1)->constant || !r->constant || r->shape.dim[0] != 1)
        return topt_onnx_fail(x, n, "its weights depend on samples or have directions");
    if (extent_on(&v, 1, first, first + 1) != extent_of(tensor_of(x, &v), 1))
        return topt_onnx_fail(x, n, "its steps are not the model's positions");
    if (lstm && n->nout > 2 && n->out[2] >= 0 && x->value[n->out[2]].uses)
        return topt_onnx_fail(x, n, "the last cell state is used");
    struct topt_attrs pre = {.features = r->shape.dim[2], .features_unit = lstm ? 4 : 3};
    int t = topt_onnx_emit(x, n, "linear", ".inputs", v.tensor, -1, &pre);
    if (t >= 0 && topt_onnx_in(x, n, 3))
        t = topt_onnx_emit(x, n, "bias", ".bias", t, -1, NULL);
    t = t < 0 ? -1 : topt_onnx_emit(x, n, lstm ? "lstm" : "gru", "", t, -1, NULL);
    if (t < 0 || put_last(x, n, t, first))
        return -1;
    if (n->out[0] >= 0)
        topt_onnx_view_fresh(out(x, n), t, first ? samples_first : steps_first);
    return 0;
}

/* ---- arrangement ----------------------------------------------------------------------- */

static int map_reshape(struct onnx *x, const struct onnx_node *n)
{
    const struct onnx_value *a = topt_onnx_sample(x, n, 0);
    if (!a)
        return -1;
    return topt_onnx_view_reshape(&a->view, &out(x, n)->shape, &out(x, n)->view)
               ? topt_onnx_fail(x, n,
                                "it cuts dimensions in ways that do not divide them")
               : 0;
}

static int map_transpose(struct onnx *x, const struct onnx_node *n)
{
    const struct onnx_value *a = topt_onnx_sample(x, n, 0);
    int64_t perm[ONNX_MAX_RANK];
    if (!a)
        return -1;
    topt_onnx_perm(x, n, perm);
    topt_onnx_view_transpose(&a->view, perm, a->shape.ndim, &out(x, n)->view);
    return 0;
}

/* The axis of the tensor that dimension 'd' is all of; -1 where it is none. */
static int axis_of_dim(const struct onnx *x, const struct onnx_value *a, int d)
{
    const struct topt_tensor *t = tensor_of(x, &a->view);
    for (int axis = 1; axis < t->ndim; axis++)
        if (extent_on(&a->view, axis, d, d + 1) == extent_of(t, axis) &&
            a->shape.dim[d] == extent_of(t, axis) && a->shape.dim[d] > 1)
            return axis;
    return -1;
}

/* Tensors side by side along features or channels, four at a time. */
static int map_concat(struct onnx *x, const struct onnx_node *n)
{
    const struct onnx_value *a = topt_onnx_sample(x, n, 0);
    int inputs[TOPT_MAX_INPUTS], k = 0, t = -1;
    char name[200];
    if (!a)
        return -1;
    int d = topt_onnx_axis(n, a->shape.ndim, 1);
    int axis = axis_of_dim(x, a, d), features = tensor_of(x, &a->view)->ndim == 4 ? 1 : 2;
    struct onnx_view view = a->view;
    for (int i = 0; i < n->nin; i++) {
        const struct onnx_value *b = topt_onnx_sample(x, n, i);
        if (!b)
            return -1;
        if (axis_of_dim(x, b, d) != features || axis != features ||
            tensor_of(x, &b->view)->ndim != tensor_of(x, &a->view)->ndim)
            return topt_onnx_fail(x, n,
                                  "it joins other dimensions than features or channels");
        int u = topt_onnx_regroup(x, n, b->view.tensor, b->shape.dim[d], 1);
        if (u < 0)
            return -1;
        inputs[k++] = u;
        if (k == TOPT_MAX_INPUTS || (i + 1 == n->nin && k > 1)) {
            name_op(x, out(x, n)->name, i + 1 < n->nin ? ".part" : "", name, sizeof name);
            t = topt_model_add(x->model, "concat_counts", name, k, inputs, NULL, x->err);
            if (t < 0)
                return topt_wrap(x->err, "Concat");
            inputs[0] = t;
            k = 1;
        }
    }
    if (n->nin == 1)
        return map_same(x, n);
    for (int i = 0; i < view.natoms; i++)
        if (view.atom[i].dim == d)
            view.atom[i].extent = out(x, n)->shape.dim[d];
    return put(x, n, &view, t);
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
    return put(x, n, &v, topt_onnx_emit(x, n, "select", "", a->view.tensor, -1, &attrs));
}

static int is_positions(const struct onnx *x, const struct onnx_value *a, int d)
{
    return tensor_of(x, &a->view)->ndim == 3 && axis_of_dim(x, a, d) == 1;
}

/* Numbers [off, off + width) of the features. */
static int slice_features(struct onnx *x, const struct onnx_node *n,
                          const struct onnx_value *a, int d, int64_t off, int out_number)
{
    struct onnx_value *y = &x->value[n->out[out_number]];
    const struct topt_tensor *t = tensor_of(x, &a->view);
    if (t->ndim != 3 || axis_of_dim(x, a, d) != 2)
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

static int map_slice(struct onnx *x, const struct onnx_node *n)
{
    int64_t start[ONNX_MAX_RANK], step[ONNX_MAX_RANK];
    const struct onnx_value *a = topt_onnx_sample(x, n, 0);
    int cut = -1;
    if (!a)
        return -1;
    topt_onnx_slices(x, n, start, step);
    for (int d = 0; d < a->shape.ndim; d++) {
        if (out(x, n)->shape.dim[d] == a->shape.dim[d] && step[d] == 1)
            continue;
        if (cut >= 0 || step[d] != 1)
            return topt_onnx_fail(x, n, "it cuts several dimensions, or takes steps");
        cut = d;
    }
    if (cut < 0)
        return map_same(x, n);
    if (is_positions(x, a, cut) && out(x, n)->shape.dim[cut] == 1)
        return select_position(x, n, a, cut, start[cut], 1);
    return slice_features(x, n, a, cut, start[cut], 0);
}

static int map_split(struct onnx *x, const struct onnx_node *n)
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
static int map_gather(struct onnx *x, const struct onnx_node *n)
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
    topt_onnx_view_fresh(out(x, n), t, axes);
    return 0;
}

static int map_reduce(struct onnx *x, const struct onnx_node *n)
{
    int64_t axes[ONNX_MAX_RANK];
    const struct onnx_value *a = topt_onnx_sample(x, n, 0);
    int count = topt_onnx_list(x, n, "axes", 1, axes), bits = 0, kept = 0;
    int keep = topt_onnx_int(n, "keepdims", 1) != 0;
    if (!a)
        return -1;
    for (int i = 0; i < count; i++)
        bits |= 1 << (axes[i] < 0 ? axes[i] + a->shape.ndim : axes[i]);
    if (is_image(x, a) && a->shape.ndim == 4 && bits == 12 &&
        !strcmp(n->kind->name, "ReduceMean"))
        return mean_of_image(x, n, a);
    int d = 0;
    while (d < a->shape.ndim && !(bits >> d & 1))
        d++;
    int axis = count == 1 ? axis_of_dim(x, a, d) : -1;
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
    return put(x, n, &v,
               topt_onnx_emit(x, n, axis == 1 ? "reduce_sequence" : "reduce_features", "",
                              a->view.tensor, -1, &attrs));
}

static int map_softmax(struct onnx *x, const struct onnx_node *n)
{
    const struct onnx_value *a = topt_onnx_sample(x, n, 0);
    struct onnx_view v;
    if (!a)
        return -1;
    int d = topt_onnx_axis(n, a->shape.ndim, x->opset < 13 ? 1 : -1);
    if (d < 0 || d != a->shape.ndim - 1 || topt_onnx_rows(x, n, a, d, &v))
        return topt_onnx_fail(x, n, "it is over other than the features of a position");
    return put(x, n, &v, topt_onnx_emit(x, n, "softmax", "", v.tensor, -1, NULL));
}

/* ---- norms ----------------------------------------------------------------------------- */

int topt_onnx_put_norm(struct onnx *x, const struct onnx_node *n,
                       const struct onnx_value *a, int rms, double eps)
{
    struct topt_attrs attrs = {.rms = rms, .eps = eps};
    struct onnx_view v;
    if (topt_onnx_rows(x, n, a, a->shape.ndim - 1, &v))
        return -1;
    out(x, n)->own_weights = out(x, n)->uses == 1 ? (rms ? 1 : 3) : 0;
    return put(x, n, &v, topt_onnx_emit(x, n, "norm", "", v.tensor, -1, &attrs));
}

static int map_layer_norm(struct onnx *x, const struct onnx_node *n)
{
    const struct onnx_value *a = topt_onnx_sample(x, n, 0);
    if (!a)
        return -1;
    return topt_onnx_axis(n, a->shape.ndim, -1) == a->shape.ndim - 1
               ? topt_onnx_put_norm(x, n, a, 0, topt_onnx_real(n, "epsilon", 1e-5))
               : topt_onnx_fail(x, n, "it is over several dimensions");
}

/* ---- attention ------------------------------------------------------------------------- */

/* A value of heads: positions in dimension 'pos', the numbers of a head in 'num', heads in what
 * is left beside the samples.  The number of heads, 0 where it lies otherwise. */
static int64_t heads_of(const struct onnx *x, const struct onnx_value *v, int pos,
                        int num)
{
    int64_t heads = 1, width = 1, s = 1;
    if (v->view.tensor < 0 || tensor_of(x, &v->view)->ndim != 3)
        return 0;
    for (int i = 0; i < v->view.natoms; i++) {
        const struct onnx_atom *a = &v->view.atom[i];
        if (a->axis == 2 && a->dim == num)
            width *= a->extent;
        else if (a->axis == 2 && a->dim != pos)
            heads *= a->extent;
        else if (a->axis == 1 && a->dim == pos)
            s *= a->extent;
        else if (a->axis != 0 || a->dim == num)
            return 0;
        for (int k = 0; k < v->view.natoms; k++) /* heads lie outside of their numbers */
            if (a->axis == 2 && a->dim == num && v->view.atom[k].axis == 2 &&
                v->view.atom[k].dim != num && v->view.atom[k].rank > a->rank)
                return 0;
    }
    return width == v->shape.dim[num] && s == v->shape.dim[pos] ? heads : 0;
}

int topt_onnx_map_attention(struct onnx *x, const struct onnx_node *n)
{
    const struct onnx_value *q = &x->value[n->base[0]], *k = &x->value[n->base[1]],
                            *v = &x->value[n->base[2]];
    int last = q->shape.ndim - 1;
    int64_t heads = heads_of(x, q, last - 1, last), width = q->shape.dim[last];
    if (!heads || k->shape.ndim != last + 1 || v->shape.ndim != last + 1 ||
        heads_of(x, k, last, last - 1) != heads ||
        heads_of(x, v, last - 1, last) != heads)
        return topt_onnx_fail(x, n,
                              "queries, keys and values lie otherwise than by heads");
    int64_t values = v->shape.dim[last];
    struct topt_attrs attrs = {.heads = heads,
                               .kv_heads = heads,
                               .head_dim = width,
                               .v_head_dim = values,
                               .causal = n->flag,
                               .scale = n->number};
    int tq = topt_onnx_regroup(x, n, q->view.tensor, heads, width);
    int tk = tq < 0 ? -1 : topt_onnx_regroup(x, n, k->view.tensor, heads, width);
    int tv = tk < 0 ? -1 : topt_onnx_regroup(x, n, v->view.tensor, heads, values);
    int kv = tv < 0 ? -1 : topt_onnx_emit(x, n, "concat", ".kv", tk, tv, NULL);
    int t = kv < 0 ? -1 : topt_onnx_emit(x, n, "attend", "", tq, kv, &attrs);
    struct onnx_view y = q->view;
    for (int i = 0; i < y.natoms; i++)
        if (y.atom[i].axis == 2 && y.atom[i].dim == last)
            y.atom[i].extent = y.atom[i].extent == width ? values : y.atom[i].extent;
    return values != width && extent_on(&y, 2, last, last + 1) != values
               ? topt_onnx_fail(x, n, "values of a head are wider than its keys in parts")
               : put(x, n, &y, t);
}

/* ---- all ------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    topt_onnx_map *map;
} maps[] = {
    {"Add", map_add},
    {"AveragePool", map_pool},
    {"BatchNormalization", map_batch_norm},
    {"Cast", map_same},
    {"Concat", map_concat},
    {"Conv", map_conv},
    {"Div", map_mul},
    {"Dropout", map_dropout},
    {"Elu", map_activation},
    {"Flatten", map_reshape},
    {"GRU", map_recurrent},
    {"Gather", map_gather},
    {"Gemm", map_gemm},
    {"GlobalAveragePool", map_global_pool},
    {"Identity", map_same},
    {"LRN", map_lrn},
    {"LSTM", map_recurrent},
    {"LayerNormalization", map_layer_norm},
    {"LeakyRelu", map_activation},
    {"MatMul", map_matmul},
    {"MaxPool", map_pool},
    {"Mul", map_mul},
    {"Neg", map_neg},
    {"Pow", map_pow},
    {"ReduceMean", map_reduce},
    {"ReduceSum", map_reduce},
    {"Relu", map_activation},
    {"Reshape", map_reshape},
    {"Sigmoid", map_activation},
    {"Slice", map_slice},
    {"Softmax", map_softmax},
    {"Softplus", map_activation},
    {"Split", map_split},
    {"Squeeze", map_reshape},
    {"Sub", map_add},
    {"Sum", map_sum},
    {"Tanh", map_activation},
    {"Transpose", map_transpose},
    {"Unsqueeze", map_reshape},
};

topt_onnx_map *topt_onnx_find_map(const char *name)
{
    for (size_t i = 0; i < sizeof maps / sizeof *maps; i++)
        if (!strcmp(maps[i].name, name))
            return maps[i].map;
    return NULL;
}
