/* onnx_map_product.c - operators of nodes with matrix products: linear maps, attention,
 * recurrences. */
#include "onnx_table.h"

#include <string.h>

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
int topt_onnx_product(struct onnx *x, const struct onnx_node *n,
                      const struct onnx_value *a, int first, int64_t features, int bias,
                      double factor)
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
    return topt_onnx_put(x, n, &v, v.tensor);
}

int topt_onnx_map_matmul(struct onnx *x, const struct onnx_node *n)
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
                        : topt_onnx_product(x, n, a, a->shape.ndim - 1,
                                            w->shape.dim[w->shape.ndim - 1], 0, 1);
}

int topt_onnx_map_gemm(struct onnx *x, const struct onnx_node *n)
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
    return topt_onnx_product(x, n, a, 1, features, c != NULL, alpha);
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

int topt_onnx_map_recurrent(struct onnx *x, const struct onnx_node *n)
{
    static const int8_t steps_first[] = {1, -1, 0, 2}, samples_first[] = {0, 1, -1, 2};
    const struct onnx_value *a = topt_onnx_sample(x, n, 0), *r = topt_onnx_in(x, n, 2);
    int lstm = !strcmp(n->kind->name, "LSTM"), first = topt_onnx_int(n, "layout", 0) != 0;
    struct onnx_view v;
    if (!a || check_recurrent(x, n) || topt_onnx_rows(x, n, a, 2, &v))
        return -1;
    if (!topt_onnx_in(x, n, 1)->constant || !r->constant || r->shape.dim[0] != 1)
        return topt_onnx_fail(x, n, "its weights depend on samples or have directions");
    if (topt_onnx_extent_on(&v, 1, first, first + 1) !=
        topt_onnx_extent_of(tensor_of(x, &v), 1))
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
        topt_onnx_view_fresh(onnx_out(x, n, 0), t, first ? samples_first : steps_first);
    return 0;
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
    return values != width && topt_onnx_extent_on(&y, 2, last, last + 1) != values
               ? topt_onnx_fail(x, n, "values of a head are wider than its keys in parts")
               : topt_onnx_put(x, n, &y, t);
}
