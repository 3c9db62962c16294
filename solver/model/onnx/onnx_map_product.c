/* onnx_map_product.c - operators of nodes with matrix products: linear maps, attention,
 * recurrences. */
#include "onnx_map_product.h"
#include "onnx_map.h"
#include "onnx_map_unary.h"
#include "onnx_node.h"
#include "onnx_view.h"

#include <math.h>
#include <string.h>

/* ---- products ---------------------------------------------------------------------- */

/* Features of dimension 'dim' of the output after a product, in place of those of
 * 'rows'. */
static void put_product(struct onnx_view *v, int first, int64_t features)
{
    int kept = 0;
    for (int i = 0; i < v->natoms; i++)
        if (v->atom[i].dim < first)
            v->atom[kept++] = v->atom[i];
    v->natoms = kept;
    if (features > 1 && kept < ONNX_MAX_ATOMS)
        v->atom[v->natoms++] =
            (struct onnx_atom){.extent = features, .axis = 2, .dim = (int8_t)first};
}

/* x W^T (+ bias) over the dimensions from 'first' on; the features are of dimension
 * 'first'. */
int topt_onnx_product(struct onnx *x, const struct onnx_node *n,
                      const struct onnx_value *a, int first, int64_t features, int bias,
                      double factor)
{
    struct onnx_view v;
    struct topt_attrs attrs = {.features = features}, scale = {.factor = factor};
    if (topt_onnx_rows(x, n, a, first, &v))
        return -1;
    int scaling = factor < 1 || factor > 1;
    int tied = x->head >= 0 && n == &x->node[x->head] ? x->table_tensor : -1;
    if (tied >= 0)
        v.tensor = topt_onnx_regroup(x, n, v.tensor,
                                     topt_onnx_extent_of(tensor_of(x, &v), 2), 1);
    if (v.tensor < 0)
        return -1;
    v.tensor = topt_onnx_emit(x, n, "linear", scaling || bias ? ".linear" : "", v.tensor,
                              tied, tied < 0 ? &attrs : NULL);
    if (v.tensor >= 0 && scaling)
        v.tensor =
            topt_onnx_emit(x, n, "scale", bias ? ".scale" : "", v.tensor, -1, &scale);
    if (v.tensor >= 0 && bias)
        v.tensor = topt_onnx_emit(x, n, "bias", "", v.tensor, -1, NULL);
    put_product(&v, first, features);
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
    if (w->shape.ndim == 1)
        return topt_onnx_product(x, n, a, a->shape.ndim - 1, 1, 0, 1);
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
    int bias = c && (beta < 0 || beta > 0);
    double shift = 0;
    if (bias && topt_onnx_elements(&c->shape) == 1 && features != 1) {
        if (!c->held)
            return topt_onnx_fail(x, n, "C is one number, which the file does not have");
        shift = beta * c->held[0];
        bias = 0;
    }
    if (bias && (topt_onnx_elements(&c->shape) != features ||
                 (c->shape.ndim && c->shape.dim[c->shape.ndim - 1] != features)))
        return topt_onnx_fail(x, n, "C is no bias of %lld features", (long long)features);
    if (topt_onnx_product(x, n, a, 1, features, bias, alpha))
        return -1;
    return shift < 0 || shift > 0
               ? topt_onnx_put_scaled(x, n, onnx_out(x, n, 0), 1, shift)
               : 0;
}

/* ---- recurrences ------------------------------------------------------------------- */

/* An initial state must be left out or zero. */
static int refuse_state(struct onnx *x, const struct onnx_node *n, int i)
{
    const struct onnx_value *v = topt_onnx_in(x, n, i);
    int64_t count = v ? topt_onnx_elements(&v->shape) : 0, zero = !v || v->held;
    for (int64_t k = 0; zero && k < count; k++)
        zero &= !(v->held[k] < 0 || v->held[k] > 0);
    return zero ? 0 : topt_onnx_fail(x, n, "input %d, an initial state, is not zero", i);
}

/* All of a node's activations; where it says none, the type's own. */
static int activations_are(const struct onnx_node *n, const char *const *names, int count)
{
    const Onnx__AttributeProto *a = topt_onnx_attr(n, "activations");
    int same = 1;
    for (size_t i = 0; a && i < a->n_strings; i++) {
        const char *want = names[i % (size_t)count];
        same &= a->strings[i].len == strlen(want) &&
                !memcmp(a->strings[i].data, want, a->strings[i].len);
    }
    return same;
}

/* A kind of recurrence: gates of a cell, and the row. */
struct recurrence {
    const char *kind;
    int gates;
    struct topt_attrs attrs;
};

static int find_recurrence(struct onnx *x, const struct onnx_node *n,
                           struct recurrence *ret)
{
    static const char *const lstm[] = {"Sigmoid", "Tanh", "Tanh"},
                             *const relu[] = {"Relu"}, *const tanh_too[] = {"Tanh"};
    int known;
    if (!strcmp(n->kind->name, "LSTM")) {
        *ret = (struct recurrence){.kind = "lstm", .gates = 4};
        known = activations_are(n, lstm, 3);
    } else if (!strcmp(n->kind->name, "GRU")) {
        *ret = (struct recurrence){.kind = "gru", .gates = 3};
        known = activations_are(n, lstm, 2);
    } else {
        *ret = (struct recurrence){"rnn", 1, {.activation = TOPT_ACT_TANH}};
        known = activations_are(n, tanh_too, 1);
        if (!known) {
            ret->attrs.activation = TOPT_ACT_RELU;
            known = activations_are(n, relu, 1);
        }
    }
    if (!known || topt_onnx_attr(n, "clip"))
        return topt_onnx_fail(x, n, "it has activations or a clip of its own");
    if (ret->gates == 3 && !topt_onnx_int(n, "linear_before_reset", 0))
        return topt_onnx_fail(x, n, "linear_before_reset is 0: the row resets after");
    return 0;
}

/* Sequences must be as long as the model's. */
static int check_lengths(const struct onnx *x, const struct onnx_node *n, int64_t steps)
{
    const struct onnx_value *v = topt_onnx_in(x, n, 4);
    int64_t count = v ? topt_onnx_elements(&v->shape) : 0;
    int same = !v || v->held;
    for (int64_t i = 0; same && i < count; i++)
        same &= fabs(v->held[i]) < 0x1p60 && (int64_t)v->held[i] == steps;
    return same ? 0 : topt_onnx_fail(x, n, "it has sequences of different lengths");
}

static int check_recurrent(struct onnx *x, const struct onnx_node *n)
{
    if (topt_onnx_in(x, n, 7))
        return topt_onnx_fail(x, n, "it has peepholes");
    if (!topt_onnx_in(x, n, 1)->constant || !topt_onnx_in(x, n, 2)->constant)
        return topt_onnx_fail(x, n, "its weights depend on samples");
    if (onnx_out(x, n, 2) && onnx_out(x, n, 2)->uses)
        return topt_onnx_fail(x, n, "the last cell state is used");
    return refuse_state(x, n, 5) || refuse_state(x, n, 6) ? -1 : 0;
}

/* A GRU's second biases of its first two gates, which are added to the first ones; that of the third
 * is the operator's own. */
static int second_biases(struct onnx *x, const struct onnx_node *n, int t)
{
    struct topt_attrs two = {.features_unit = 2},
                      third = {.offset = 2, .features_unit = 1};
    int gates = topt_onnx_emit(x, n, "slice", ".gates", t, -1, &two);
    int rest = topt_onnx_emit(x, n, "slice", ".third", t, -1, &third);
    if (gates < 0 || rest < 0)
        return -1;
    gates = topt_onnx_emit(x, n, "bias", ".state_bias", gates, -1, NULL);
    return gates < 0 ? -1 : topt_onnx_emit(x, n, "concat", ".pre", gates, rest, NULL);
}

/* One direction: products of all inputs, then the steps; backward ones on reversed
 * positions.  Its outputs at all positions as a tensor, and that of its last step. */
static int one_direction(struct onnx *x, const struct onnx_node *n,
                         const struct recurrence *r, int rows, int backward, int last,
                         int ret[2])
{
    struct topt_attrs pre = {.features = topt_onnx_in(x, n, 2)->shape.dim[2],
                             .features_unit = r->gates};
    int t = topt_onnx_emit(x, n, "linear", ".inputs", rows, -1, &pre);
    if (t >= 0 && topt_onnx_in(x, n, 3))
        t = topt_onnx_emit(x, n, "bias", ".bias", t, -1, NULL);
    if (t >= 0 && topt_onnx_in(x, n, 3)) /* of the state's product */
        t = r->gates == 3 ? second_biases(x, n, t)
                          : topt_onnx_emit(x, n, "bias", ".state_bias", t, -1, NULL);
    if (t >= 0 && backward)
        t = topt_onnx_emit(x, n, "reverse", ".turned", t, -1, NULL);
    t = t < 0 ? -1 : topt_onnx_emit(x, n, r->kind, ".steps", t, -1, &r->attrs);
    if (t < 0)
        return -1;
    struct topt_attrs at = {.offset = x->model->tensor[t].dim[1].count - 1};
    ret[1] = last ? topt_onnx_emit(x, n, "select", ".last", t, -1, &at) : 0;
    ret[0] = backward && onnx_out(x, n, 0) && onnx_out(x, n, 0)->uses
                 ? topt_onnx_emit(x, n, "reverse", ".back", t, -1, NULL)
                 : t;
    return ret[0] < 0 || ret[1] < 0 ? -1 : 0;
}

/* What directions make, side by side. */
static int join(struct onnx *x, const struct onnx_node *n, const char *suffix,
                const int of[2][2], int which, int directions)
{
    return directions == 1 ? of[0][which]
                           : topt_onnx_emit(x, n, "concat_counts", suffix, of[0][which],
                                            of[1][which], NULL);
}

int topt_onnx_map_recurrent(struct onnx *x, const struct onnx_node *n)
{
    static const int8_t all[2][4] = {{1, 2, 0, 2}, {0, 1, 2, 2}},
                        ends[2][3] = {{2, 0, 2}, {0, 2, 2}};
    const struct onnx_value *a = topt_onnx_sample(x, n, 0);
    const Onnx__AttributeProto *dir = topt_onnx_attr(n, "direction");
    int first = topt_onnx_int(n, "layout", 0) != 0, of[2][2] = {{0}};
    int directions = (int)topt_onnx_in(x, n, 2)->shape.dim[0];
    int reverse =
        dir && dir->has_s && dir->s.len == 7 && !memcmp(dir->s.data, "reverse", 7);
    int last = onnx_out(x, n, 1) && onnx_out(x, n, 1)->uses;
    struct recurrence r;
    struct onnx_view v;
    if (!a || find_recurrence(x, n, &r) || check_recurrent(x, n) ||
        topt_onnx_rows(x, n, a, 2, &v))
        return -1;
    if (directions < 1 || directions > 2 || (directions == 2 && reverse))
        return topt_onnx_fail(x, n, "it has %d directions", directions);
    if (topt_onnx_extent_on(&v, 1, first, first + 1) !=
            topt_onnx_extent_of(tensor_of(x, &v), 1) ||
        check_lengths(x, n, a->shape.dim[first]))
        return topt_onnx_fail(x, n, "its steps are not the model's positions");
    for (int d = 0; d < directions; d++)
        if (one_direction(x, n, &r, v.tensor, reverse || d, last, of[d]))
            return -1;
    if (onnx_out(x, n, 0) && onnx_out(x, n, 0)->uses) {
        int t = join(x, n, "", of, 0, directions);
        if (t < 0)
            return -1;
        topt_onnx_view_fresh(onnx_out(x, n, 0), t, all[first]);
    }
    if (last) {
        int t = join(x, n, ".ends", of, 1, directions);
        if (t < 0)
            return -1;
        topt_onnx_view_fresh(onnx_out(x, n, 1), t, ends[first]);
    }
    return 0;
}

/* ---- attention --------------------------------------------------------------------- */

/* A value of heads: positions in dimension 'pos', the numbers of a head in 'num',
 * heads in what is left beside the samples.  The number of heads, 0 where it lies
 * otherwise. */
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

/* Queries, keys and values of heads; the output lies as the queries do, with the width of
 * the values, which is in dimension 'num'. */
struct heads {
    const struct onnx_value *q, *k, *v;
    int64_t heads, kv_heads, width, values;
    int causal;
    double scale, cap;
};

static int put_attention(struct onnx *x, const struct onnx_node *n, const struct heads *h,
                         int num)
{
    struct topt_attrs attrs = {.heads = h->heads,
                               .kv_heads = h->kv_heads,
                               .head_dim = h->width,
                               .v_head_dim = h->values,
                               .causal = h->causal,
                               .cap = h->cap,
                               .scale = h->scale};
    int64_t each = h->heads / h->kv_heads * h->width;
    int tq = topt_onnx_regroup(x, n, h->q->view.tensor, h->kv_heads, each);
    int tk =
        tq < 0 ? -1 : topt_onnx_regroup(x, n, h->k->view.tensor, h->kv_heads, h->width);
    int tv =
        tk < 0 ? -1 : topt_onnx_regroup(x, n, h->v->view.tensor, h->kv_heads, h->values);
    int kv = tv < 0 ? -1 : topt_onnx_emit(x, n, "concat", ".kv", tk, tv, NULL);
    int t = kv < 0 ? -1 : topt_onnx_emit(x, n, "attention", "", tq, kv, &attrs);
    struct onnx_view y = h->q->view;
    for (int i = 0; i < y.natoms; i++)
        if (y.atom[i].axis == 2 && y.atom[i].dim == num)
            y.atom[i].extent =
                y.atom[i].extent == h->width ? h->values : y.atom[i].extent;
    return h->values != h->width && topt_onnx_extent_on(&y, 2, num, num + 1) != h->values
               ? topt_onnx_fail(x, n, "values of a head are wider than its keys in parts")
               : topt_onnx_put(x, n, &y, t);
}

/* Bit 0 of the node's flag: causal; bit 1: keys lie as queries do, and are fewer. */
int topt_onnx_map_attention(struct onnx *x, const struct onnx_node *n)
{
    struct heads h = {.q = &x->value[n->base[0]],
                      .k = &x->value[n->base[1]],
                      .v = &x->value[n->base[2]],
                      .causal = n->flag & 1,
                      .scale = n->number};
    int last = h.q->shape.ndim - 1, alike = n->flag >> 1 & 1;
    h.heads = heads_of(x, h.q, last - 1, last);
    h.width = h.q->shape.dim[last];
    if (!h.heads || h.k->shape.ndim != last + 1 || h.v->shape.ndim != last + 1)
        return topt_onnx_fail(x, n,
                              "queries, keys and values lie otherwise than by heads");
    h.kv_heads = heads_of(x, h.k, alike ? last - 1 : last, alike ? last : last - 1);
    h.values = h.v->shape.dim[last];
    if (!h.kv_heads || h.heads % h.kv_heads || (!alike && h.kv_heads != h.heads) ||
        heads_of(x, h.v, last - 1, last) != h.kv_heads)
        return topt_onnx_fail(x, n,
                              "queries, keys and values lie otherwise than by heads");
    return put_attention(x, n, &h, last);
}

/* Positions turned into angles of pairs of each head's numbers. */
static int put_turned(struct onnx *x, const struct onnx_node *n,
                      const struct onnx_value *a, int64_t heads, int64_t turned)
{
    int64_t all = topt_onnx_extent_of(tensor_of(x, &a->view), 2);
    struct topt_attrs attrs = {
        .head_dim = all / heads, .rope_dim = turned, .rope_theta = 10000};
    int t = topt_onnx_regroup(x, n, a->view.tensor, heads, all / heads);
    topt_onnx_note(x, "rotary angles are those of base 10000");
    return topt_onnx_put(x, n, &a->view,
                         t < 0 ? -1 : topt_onnx_emit(x, n, "rotary", "", t, -1, &attrs));
}

int topt_onnx_map_turned(struct onnx *x, const struct onnx_node *n)
{
    const struct onnx_value *a = &x->value[n->base[0]];
    int last = a->shape.ndim - 1;
    int64_t heads = last > 1 ? heads_of(x, a, last - 1, last) : 0;
    if (!heads && last > 1)
        heads = heads_of(x, a, 1, last);
    return heads ? put_turned(x, n, a, heads, a->shape.dim[last])
                 : topt_onnx_fail(x, n,
                                  "what is turned by position lies otherwise than by "
                                  "heads");
}

/* ---- types of sets 23 and on ------------------------------------------------------- */

/* Heads of a value [n, heads, s, d], or [n, s, heads d] where the node says how many. */
static int64_t heads_by(const struct onnx *x, const struct onnx_node *n,
                        const struct onnx_value *v, const char *name)
{
    if (v->view.tensor < 0 || tensor_of(x, &v->view)->ndim != 3)
        return 0;
    int64_t said = topt_onnx_int(n, name, 0);
    int whole = v->shape.ndim == 3 && topt_onnx_axis_of_dim(x, v, 2) == 2;
    return v->shape.ndim == 4                                 ? heads_of(x, v, 2, 3)
           : whole && said > 0 && v->shape.dim[2] % said == 0 ? said
                                                              : 0;
}

int topt_onnx_map_attention_node(struct onnx *x, const struct onnx_node *n)
{
    const struct onnx_value *mask = topt_onnx_in(x, n, 3);
    struct heads h = {.q = topt_onnx_sample(x, n, 0),
                      .k = topt_onnx_sample(x, n, 1),
                      .v = topt_onnx_sample(x, n, 2),
                      .causal = topt_onnx_int(n, "is_causal", 0) != 0,
                      .scale = topt_onnx_real(n, "scale", 0),
                      .cap = topt_onnx_real(n, "softcap", 0)};
    if (!h.q || !h.k || !h.v)
        return -1;
    if ((mask && !mask->constant) || topt_onnx_in(x, n, 4) || topt_onnx_in(x, n, 5))
        return topt_onnx_fail(x, n, "it has a past, or a mask that depends on samples");
    h.heads = heads_by(x, n, h.q, "q_num_heads");
    h.kv_heads = heads_by(x, n, h.k, "kv_num_heads");
    if (!h.heads || !h.kv_heads || h.heads % h.kv_heads ||
        heads_by(x, n, h.v, "kv_num_heads") != h.kv_heads)
        return topt_onnx_fail(x, n,
                              "queries, keys and values lie otherwise than by heads");
    int last = h.q->shape.ndim - 1;
    h.width = topt_onnx_extent_of(tensor_of(x, &h.q->view), 2) / h.heads;
    h.values = topt_onnx_extent_of(tensor_of(x, &h.v->view), 2) / h.kv_heads;
    if (h.values != h.width && last == 2)
        return topt_onnx_fail(x, n, "values of a head are wider than its keys");
    return put_attention(x, n, &h, last);
}

int topt_onnx_map_rotary_node(struct onnx *x, const struct onnx_node *n)
{
    const struct onnx_value *a = topt_onnx_sample(x, n, 0);
    int64_t heads = a ? heads_by(x, n, a, "num_heads") : 0;
    if (!a)
        return -1;
    if (!heads)
        return topt_onnx_fail(x, n,
                              "what is turned by position lies otherwise than by "
                              "heads");
    int64_t all = topt_onnx_extent_of(tensor_of(x, &a->view), 2) / heads;
    int64_t part = topt_onnx_int(n, "rotary_embedding_dim", 0);
    return put_turned(x, n, a, heads, part > 0 && part < all ? part : all);
}

/* ---- types of another domain ------------------------------------------------------- */

/* Queries, keys and values by one product, then attention.  Masks are of padding,
 * which there is none of in training, nor is there a past. */
int topt_onnx_map_whole_attention(struct onnx *x, const struct onnx_node *n)
{
    const struct onnx_value *a = topt_onnx_sample(x, n, 0), *w = topt_onnx_in(x, n, 1);
    int64_t heads = topt_onnx_int(n, "num_heads", 0);
    struct onnx_view v;
    if (!a)
        return -1;
    if (!w->constant || heads < 1 || w->shape.dim[1] % (3 * heads))
        return topt_onnx_fail(x, n,
                              "its weights are no queries, keys and values of heads");
    if (topt_onnx_in(x, n, 5) || topt_onnx_attr(n, "qkv_hidden_sizes") ||
        topt_onnx_int(n, "do_rotary", 0))
        return topt_onnx_fail(x, n,
                              "it has a bias of scores, sizes of its own, or rotary");
    int64_t width = w->shape.dim[1] / 3 / heads;
    struct topt_attrs qkv = {.features = heads, .features_unit = 3 * width};
    struct topt_attrs attrs = {.heads = heads,
                               .kv_heads = heads,
                               .head_dim = width,
                               .causal = topt_onnx_int(n, "unidirectional", 0) != 0};
    if (topt_onnx_rows(x, n, a, a->shape.ndim - 1, &v))
        return -1;
    int t = topt_onnx_emit(x, n, "linear", ".qkv", v.tensor, -1, &qkv);
    if (t >= 0 && topt_onnx_in(x, n, 2))
        t = topt_onnx_emit(x, n, "bias", ".bias", t, -1, NULL);
    t = t < 0 ? -1 : topt_onnx_emit(x, n, "attention", "", t, -1, &attrs);
    put_product(&v, a->shape.ndim - 1, heads * width);
    return topt_onnx_put(x, n, &v, t);
}
