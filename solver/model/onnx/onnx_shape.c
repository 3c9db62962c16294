/* onnx_shape.c - the shape of every value that the output needs: what the rules share,
 * elementwise nodes, matrix products, constants.
 *
 * One function a way of inferring.  Constants are folded on the way, since shapes are
 * computed from them.  The rules are those of the operators' documentation, sets 1 to
 * 19. */
#include "onnx_shape.h"
#include "onnx_node.h"
#include "onnx_numbers.h"

#include <string.h>

/* ---- helpers ----------------------------------------------------------------------- */

int topt_onnx_set(struct onnx *x, const struct onnx_node *n, const struct onnx_shape *s,
                  int integer)
{
    struct onnx_value *y = onnx_out(x, n, 0);
    double volume = 1;
    if (!y)
        return topt_onnx_fail(x, n, "it has no output");
    for (int d = 0; d < s->ndim; d++) {
        if (s->dim[d] < 0)
            return topt_onnx_fail(x, n, "dimension %d of its output would be negative",
                                  d);
        volume *= (double)s->dim[d];
    }
    if (volume >= 0x1p46)
        return topt_onnx_fail(x, n, "its output would have %.3g elements, over 2^46",
                              volume);
    y->shape = *s;
    y->known = 1;
    y->integer = integer;
    return 0;
}

int topt_onnx_axis(const struct onnx_node *n, int ndim, int64_t otherwise)
{
    int64_t axis = topt_onnx_int(n, "axis", otherwise);
    axis += axis < 0 ? ndim : 0;
    return axis < 0 || axis > ndim ? -1 : (int)axis;
}

int topt_onnx_list(const struct onnx *x, const struct onnx_node *n, const char *name,
                   int i, int64_t *ret)
{
    const struct onnx_value *v = topt_onnx_in(x, n, i);
    if (!v)
        return topt_onnx_ints(n, name, ret, ONNX_MAX_RANK);
    int64_t count = topt_onnx_elements(&v->shape);
    if (!v->held || count > ONNX_MAX_RANK)
        return -2;
    for (int64_t k = 0; k < count; k++)
        ret[k] = v->held[k] > 0x1p60    ? (int64_t)1 << 60
                 : v->held[k] < -0x1p60 ? -((int64_t)1 << 60)
                                        : (int64_t)v->held[k];
    return (int)count;
}

/* The first inputs must be there. */
int topt_onnx_need(const struct onnx *x, const struct onnx_node *n, int count)
{
    for (int i = 0; i < count; i++)
        if (!topt_onnx_in(x, n, i))
            return topt_onnx_fail(x, n, "input %d is missing", i);
    return 0;
}

/* ---- elementwise ------------------------------------------------------------------- */

int topt_onnx_infer_same(struct onnx *x, const struct onnx_node *n)
{
    if (topt_onnx_need(x, n, 1))
        return -1;
    const struct onnx_value *a = topt_onnx_in(x, n, 0);
    return topt_onnx_set(x, n, &a->shape, a->integer);
}

int topt_onnx_infer_cast(struct onnx *x, const struct onnx_node *n)
{
    const Onnx__AttributeProto *a = topt_onnx_attr(n, "to");
    int64_t to = topt_onnx_int(n, "to", ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT);
    if (topt_onnx_need(x, n, 1))
        return -1;
    if (a && a->has_s &&
        (a->s.len < 5 ||
         (memcmp(a->s.data, "FLOAT", 5) && memcmp(a->s.data, "DOUBL", 5))))
        to = ONNX__TENSOR_PROTO__DATA_TYPE__INT64; /* before set 6 types had names */
    return topt_onnx_set(x, n, &topt_onnx_in(x, n, 0)->shape,
                         to != ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT &&
                             to != ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE &&
                             to != ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16 &&
                             to != ONNX__TENSOR_PROTO__DATA_TYPE__BFLOAT16);
}

/* 'ret' becomes what both are broadcast to; -1 where they do not fit. */
static int broadcast(const struct onnx_shape *a, struct onnx_shape *ret)
{
    struct onnx_shape s = {.ndim = a->ndim > ret->ndim ? a->ndim : ret->ndim};
    for (int d = 1; d <= s.ndim; d++) {
        int64_t p = d <= a->ndim ? a->dim[a->ndim - d] : 1;
        int64_t q = d <= ret->ndim ? ret->dim[ret->ndim - d] : 1;
        if (p != q && p != 1 && q != 1)
            return -1;
        s.dim[s.ndim - d] = p == 1 ? q : p;
    }
    *ret = s;
    return 0;
}

/* Before set 7 the second input's dimensions may be those of the first from an axis on
 * (slopes of PRelu are those of channels): it gets dimensions of 1 behind them. */
static int align(struct onnx *x, const struct onnx_node *n)
{
    struct onnx_value *a = topt_onnx_in(x, n, 0), *b = topt_onnx_in(x, n, 1);
    int axis = topt_onnx_axis(n, a->shape.ndim, 1);
    if (topt_onnx_elements(&b->shape) == 1)
        return 0;
    if (axis < 0 || axis + b->shape.ndim > a->shape.ndim || !b->constant || b->uses != 1)
        return topt_onnx_fail(x, n, "it aligns its inputs by an axis");
    for (int d = axis + b->shape.ndim; d < a->shape.ndim; d++)
        b->shape.dim[b->shape.ndim++] = 1;
    return 0;
}

int topt_onnx_infer_broadcast(struct onnx *x, const struct onnx_node *n)
{
    struct onnx_shape s = {0};
    static const char *const any[] = {"Sum", "Max", "Min", NULL};
    int integer = 1, count = !strcmp(n->kind->name, "Where") ? 3 : 2;
    for (int i = 0; any[i]; i++)
        if (!strcmp(n->kind->name, any[i]))
            count = n->nin;
    if (topt_onnx_need(x, n, n->nin))
        return -1;
    if (n->nin != count || !count)
        return topt_onnx_fail(x, n, "it has %d inputs", n->nin);
    int prelu = !strcmp(n->kind->name, "PRelu");
    if ((topt_onnx_attr(n, "axis") || (prelu && x->opset < 7)) && align(x, n))
        return -1;
    for (int i = 0; i < n->nin; i++) {
        const struct onnx_value *a = topt_onnx_in(x, n, i);
        integer &= a->integer;
        if (broadcast(&a->shape, &s))
            return topt_onnx_fail(x, n, "the shapes of its inputs do not fit together");
    }
    return topt_onnx_set(x, n, &s, integer);
}

/* ---- products ---------------------------------------------------------------------- */

int topt_onnx_infer_matmul(struct onnx *x, const struct onnx_node *n)
{
    if (topt_onnx_need(x, n, 2))
        return -1;
    struct onnx_shape a = topt_onnx_in(x, n, 0)->shape, b = topt_onnx_in(x, n, 1)->shape;
    int vector = b.ndim == 1;
    if (vector) /* a column, whose dimension goes afterwards */
        b = (struct onnx_shape){2, {b.dim[0], 1}};
    if (a.ndim < 2 || b.ndim < 2)
        return topt_onnx_fail(x, n, "a factor has one dimension");
    int64_t rows = a.dim[a.ndim - 2], k = a.dim[a.ndim - 1], cols = b.dim[b.ndim - 1];
    if (k != b.dim[b.ndim - 2])
        return topt_onnx_fail(x, n, "%lld columns times %lld rows", (long long)k,
                              (long long)b.dim[b.ndim - 2]);
    a.ndim -= 2;
    b.ndim -= 2;
    if (broadcast(&a, &b) || b.ndim > ONNX_MAX_RANK - 2)
        return topt_onnx_fail(x, n, "the batches of its factors do not fit together");
    b.dim[b.ndim++] = rows;
    if (!vector)
        b.dim[b.ndim++] = cols;
    return topt_onnx_set(x, n, &b, 0);
}

int topt_onnx_infer_gemm(struct onnx *x, const struct onnx_node *n)
{
    if (topt_onnx_need(x, n, 2))
        return -1;
    const struct onnx_shape *a = &topt_onnx_in(x, n, 0)->shape,
                            *b = &topt_onnx_in(x, n, 1)->shape;
    int ta = topt_onnx_int(n, "transA", 0) != 0, tb = topt_onnx_int(n, "transB", 0) != 0;
    if (a->ndim != 2 || b->ndim != 2 || a->dim[!ta] != b->dim[tb])
        return topt_onnx_fail(x, n, "its factors do not fit together");
    struct onnx_shape s = {2, {a->dim[ta], b->dim[!tb]}};
    return topt_onnx_set(x, n, &s, 0);
}

/* x is [steps, samples, features], or samples first; y has directions behind the
 * steps. */
int topt_onnx_infer_recurrent(struct onnx *x, const struct onnx_node *n)
{
    if (topt_onnx_need(x, n, 3))
        return -1;
    const struct onnx_shape *a = &topt_onnx_in(x, n, 0)->shape,
                            *r = &topt_onnx_in(x, n, 2)->shape;
    int first = topt_onnx_int(n, "layout", 0) != 0;
    if (a->ndim != 3 || r->ndim != 3)
        return topt_onnx_fail(x, n, "its inputs must have 3 dimensions");
    struct onnx_shape s = {4, {a->dim[0], r->dim[0], a->dim[1], r->dim[2]}};
    struct onnx_shape last = {3, {r->dim[0], a->dim[1], r->dim[2]}};
    if (first) {
        s = (struct onnx_shape){4, {a->dim[0], a->dim[1], r->dim[0], r->dim[2]}};
        last = (struct onnx_shape){3, {a->dim[0], r->dim[0], r->dim[2]}};
    }
    for (int i = 1; i < 3; i++)
        if (onnx_out(x, n, i)) {
            onnx_out(x, n, i)->shape = last;
            onnx_out(x, n, i)->known = 1;
        }
    return onnx_out(x, n, 0) ? topt_onnx_set(x, n, &s, 0) : 0;
}

/* ---- shapes and constants ---------------------------------------------------------- */

int topt_onnx_infer_shape(struct onnx *x, const struct onnx_node *n)
{
    if (topt_onnx_need(x, n, 1))
        return -1;
    struct onnx_shape s = {1, {topt_onnx_in(x, n, 0)->shape.ndim}};
    return topt_onnx_set(x, n, &s, 1);
}

/* Only one whose condition is not known is still there. */
int topt_onnx_infer_if(struct onnx *x, const struct onnx_node *n)
{
    return topt_onnx_fail(x, n, "its condition is not constant: export one branch");
}

/* The number of elements. */
int topt_onnx_infer_size(struct onnx *x, const struct onnx_node *n)
{
    struct onnx_shape s = {0};
    return topt_onnx_need(x, n, 1) ? -1 : topt_onnx_set(x, n, &s, 1);
}

int topt_onnx_infer_cast_like(struct onnx *x, const struct onnx_node *n)
{
    return topt_onnx_need(x, n, 2) ? -1
                                   : topt_onnx_set(x, n, &topt_onnx_in(x, n, 0)->shape,
                                                   topt_onnx_in(x, n, 1)->integer);
}

/* Rows of the first table for the tokens of input 0; output 2 is the sum before the
 * norm. */
int topt_onnx_infer_embed_norm(struct onnx *x, const struct onnx_node *n)
{
    const struct onnx_value *at = topt_onnx_in(x, n, 0), *w = topt_onnx_in(x, n, 2),
                            *p = topt_onnx_in(x, n, 3);
    if (!at || !w || !p || at->shape.ndim != 2 || w->shape.ndim != 2 ||
        p->shape.ndim != 2)
        return topt_onnx_fail(x, n, "its tokens and tables must have 2 dimensions");
    struct onnx_shape s = {3, {at->shape.dim[0], at->shape.dim[1], w->shape.dim[1]}};
    if (onnx_out(x, n, 2)) {
        onnx_out(x, n, 2)->shape = s;
        onnx_out(x, n, 2)->known = 1;
    }
    return topt_onnx_set(x, n, &s, 0);
}

/* The sum is output 3, the mean and deviation before it are for nobody. */
int topt_onnx_infer_skip_norm(struct onnx *x, const struct onnx_node *n)
{
    if (topt_onnx_need(x, n, 2))
        return -1;
    const struct onnx_shape *s = &topt_onnx_in(x, n, 0)->shape;
    if (onnx_out(x, n, 3)) {
        onnx_out(x, n, 3)->shape = *s;
        onnx_out(x, n, 3)->known = 1;
    }
    return topt_onnx_set(x, n, s, 0);
}

int topt_onnx_infer_whole_attention(struct onnx *x, const struct onnx_node *n)
{
    if (topt_onnx_need(x, n, 2))
        return -1;
    struct onnx_shape s = topt_onnx_in(x, n, 0)->shape;
    const struct onnx_shape *w = &topt_onnx_in(x, n, 1)->shape;
    if (s.ndim != 3 || w->ndim != 2 || w->dim[0] != s.dim[2])
        return topt_onnx_fail(x, n, "its weights do not fit its input");
    s.dim[2] = w->dim[1] / 3;
    return topt_onnx_set(x, n, &s, 0);
}

/* [samples, heads, positions, numbers], or [samples, positions, heads times numbers]. */
int topt_onnx_infer_attention_node(struct onnx *x, const struct onnx_node *n)
{
    if (topt_onnx_need(x, n, 3))
        return -1;
    struct onnx_shape s = topt_onnx_in(x, n, 0)->shape;
    const struct onnx_shape *v = &topt_onnx_in(x, n, 2)->shape;
    int64_t heads = topt_onnx_int(n, "q_num_heads", 0),
            of = topt_onnx_int(n, "kv_num_heads", 0);
    if ((s.ndim != 3 && s.ndim != 4) || v->ndim != s.ndim)
        return topt_onnx_fail(x, n, "its inputs have %d dimensions, 3 or 4 are done",
                              s.ndim);
    if (s.ndim == 3 && (heads < 1 || of < 1 || heads > 1 << 20 || of > 1 << 20))
        return topt_onnx_fail(x, n, "q_num_heads or kv_num_heads is missing");
    s.dim[s.ndim - 1] = s.ndim == 4 ? v->dim[3] : v->dim[2] / of * heads;
    return topt_onnx_set(x, n, &s, 0);
}

int topt_onnx_infer_gather_elements(struct onnx *x, const struct onnx_node *n)
{
    if (topt_onnx_need(x, n, 2))
        return -1;
    const struct onnx_value *a = topt_onnx_in(x, n, 0), *at = topt_onnx_in(x, n, 1);
    int axis = topt_onnx_axis(n, a->shape.ndim, 0),
        fits = a->shape.ndim == at->shape.ndim;
    for (int d = 0; fits && d < a->shape.ndim; d++)
        fits = d == axis || at->shape.dim[d] <= a->shape.dim[d];
    return !fits || axis < 0 || axis >= a->shape.ndim
               ? topt_onnx_fail(x, n, "its places do not fit its input")
               : topt_onnx_set(x, n, &at->shape, a->integer);
}

int topt_onnx_infer_truth(struct onnx *x, const struct onnx_node *n)
{
    return topt_onnx_need(x, n, 1)
               ? -1
               : topt_onnx_set(x, n, &topt_onnx_in(x, n, 0)->shape, 1);
}

int topt_onnx_infer_tile(struct onnx *x, const struct onnx_node *n)
{
    int64_t times[ONNX_MAX_RANK];
    if (topt_onnx_need(x, n, 2))
        return -1;
    const struct onnx_value *a = topt_onnx_in(x, n, 0);
    struct onnx_shape s = a->shape;
    int count = topt_onnx_list(x, n, "repeats", 1, times);
    if (count != s.ndim)
        return topt_onnx_fail(x, n, "its repeats are not constant or do not fit");
    for (int d = 0; d < s.ndim; d++) {
        if (times[d] < 0 || times[d] > (int64_t)1 << 30 || s.dim[d] > (int64_t)1 << 30)
            return topt_onnx_fail(x, n, "it repeats more than 2^30 times");
        s.dim[d] *= times[d];
    }
    return topt_onnx_set(x, n, &s, a->integer);
}

int topt_onnx_infer_expand(struct onnx *x, const struct onnx_node *n)
{
    int64_t want[ONNX_MAX_RANK];
    if (topt_onnx_need(x, n, 2))
        return -1;
    const struct onnx_value *a = topt_onnx_in(x, n, 0);
    int count = topt_onnx_list(x, n, "shape", 1, want);
    struct onnx_shape s = {.ndim = count};
    if (count < 0)
        return topt_onnx_fail(x, n, "its shape is not constant");
    memcpy(s.dim, want, sizeof s.dim[0] * (size_t)count);
    return broadcast(&a->shape, &s) ? topt_onnx_fail(x, n, "its shape does not fit")
                                    : topt_onnx_set(x, n, &s, a->integer);
}

int topt_onnx_infer_range(struct onnx *x, const struct onnx_node *n)
{
    double v[3];
    for (int i = 0; i < 3; i++) {
        const struct onnx_value *a = topt_onnx_in(x, n, i);
        if (!a || !a->held || topt_onnx_elements(&a->shape) < 1)
            return topt_onnx_fail(x, n, "its ends are not constant");
        v[i] = a->held[0];
    }
    double count = (v[1] - v[0]) / v[2];
    if (!(count < 0x1p40))
        return topt_onnx_fail(x, n, "it never ends");
    struct onnx_shape s = {
        1, {count > 0 ? (int64_t)count + (count > (double)(int64_t)count) : 0}};
    return topt_onnx_set(x, n, &s, topt_onnx_in(x, n, 0)->integer);
}

int topt_onnx_infer_constant(struct onnx *x, const struct onnx_node *n)
{
    const Onnx__AttributeProto *t = topt_onnx_attr(n, "value"),
                               *f = topt_onnx_attr(n, "value_float"),
                               *i = topt_onnx_attr(n, "value_int"),
                               *list = topt_onnx_attr(n, "value_ints");
    struct onnx_shape s = {0};
    double *held = NULL;
    int integer = i || list;
    if (t && t->t && t->t->n_dims <= ONNX_MAX_RANK) {
        s.ndim = (int)t->t->n_dims;
        for (int d = 0; d < s.ndim; d++)
            s.dim[d] = t->t->dims[d];
        held = topt_onnx_numbers(x, t->t);
        integer = t->t->data_type != ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT &&
                  t->t->data_type != ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE &&
                  t->t->data_type != ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16;
    } else if ((f && f->has_f) || (i && i->has_i)) {
        held = TOPT_NEW(x->arena, 1, double);
        if (held)
            *held = f ? (double)f->f : (double)i->i;
    } else if (list && list->n_ints <= ONNX_MAX_HELD) {
        s = (struct onnx_shape){1, {(int64_t)list->n_ints}};
        held = TOPT_NEW(x->arena, list->n_ints, double);
        for (size_t k = 0; held && k < list->n_ints; k++)
            held[k] = (double)list->ints[k];
    } else {
        return topt_onnx_fail(x, n, "its value is of a type that is not read");
    }
    if (topt_onnx_set(x, n, &s, integer))
        return -1;
    onnx_out(x, n, 0)->held = held;
    return 0;
}

int topt_onnx_infer_constant_of_shape(struct onnx *x, const struct onnx_node *n)
{
    int64_t want[ONNX_MAX_RANK];
    const Onnx__AttributeProto *a = topt_onnx_attr(n, "value");
    int count = topt_onnx_list(x, n, "shape", 0, want);
    struct onnx_shape s = {.ndim = count};
    double *value = a && a->t ? topt_onnx_numbers(x, a->t) : NULL;
    if (count < 0)
        return topt_onnx_fail(x, n, "its shape is not constant");
    memcpy(s.dim, want, sizeof s.dim[0] * (size_t)count);
    if (topt_onnx_set(x, n, &s,
                      a && a->t &&
                          a->t->data_type == ONNX__TENSOR_PROTO__DATA_TYPE__INT64))
        return -1;
    int64_t total = topt_onnx_elements(&s);
    double *held = total <= ONNX_MAX_HELD ? TOPT_NEW(x->arena, total, double) : NULL;
    for (int64_t i = 0; held && i < total; i++)
        held[i] = value ? value[0] : 0;
    onnx_out(x, n, 0)->held = held;
    return 0;
}
