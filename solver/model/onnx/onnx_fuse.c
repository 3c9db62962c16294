/* onnx_fuse.c - groups of nodes that exporters write for what is one operator here.
 *
 * A pattern is looked for backwards from its last node.  All its inner values must be
 * used by the pattern alone, else the nodes stay as they are.  Found are layer and RMS
 * norms, GELU by erf or tanh, x times its sigmoid, attention, and rotary positions. */
#include "onnx_fuse.h"
#include "onnx_map_product.h"
#include "onnx_map_unary.h"
#include "onnx_node.h"
#include "onnx_read.h"
#include "onnx_shape.h"
#include "onnx_shape_order.h"

#include <math.h>
#include <string.h>

/* The node that makes a value, where it is of a type; NULL elsewhere. */
static struct onnx_node *made_by(const struct onnx *x, int value, const char *type)
{
    int i = value < 0 ? -1 : x->value[value].node;
    return i >= 0 && !strcmp(x->node[i].kind->name, type) ? &x->node[i] : NULL;
}

/* The number of a constant of one element; NAN elsewhere. */
static double number_of(const struct onnx *x, int value)
{
    const struct onnx_value *v = value < 0 ? NULL : &x->value[value];
    return v && v->held && topt_onnx_elements(&v->shape) == 1 ? v->held[0] : NAN;
}

static int near(double a, double b)
{
    return fabs(a - b) <= 1e-3 * fabs(b);
}

static void absorb(struct onnx_node **inner, int n)
{
    for (int i = 0; i < n; i++)
        inner[i]->fused = 1;
}

/* Are the outputs of the inner nodes used so often, and no more? */
static int used_only(const struct onnx *x, struct onnx_node *const *inner,
                     const int *uses, int n)
{
    for (int i = 0; i < n; i++)
        if (!inner[i] || inner[i]->fused || x->value[inner[i]->out[0]].uses != uses[i])
            return 0;
    return 1;
}

/* Is the node the mean over the last dimension? */
static int is_last_mean(const struct onnx *x, const struct onnx_node *n)
{
    int64_t axes[ONNX_MAX_RANK];
    int ndim = topt_onnx_in(x, n, 0)->shape.ndim;
    return topt_onnx_list(x, n, "axes", 1, axes) == 1 &&
           (axes[0] == -1 || axes[0] == ndim - 1) && topt_onnx_int(n, "keepdims", 1);
}

/* ---- norms ------------------------------------------------------------------------- */

/* The square of a value: the value, or -1. */
static int square_of(const struct onnx *x, int value, struct onnx_node **ret)
{
    struct onnx_node *n = made_by(x, value, "Pow");
    *ret = n;
    if (n && near(number_of(x, n->in[1]), 2))
        return n->in[0];
    *ret = n = made_by(x, value, "Mul");
    return n && n->in[0] == n->in[1] ? n->in[0] : -1;
}

/* sqrt(mean of v^2 + eps): v, or -1.  Inner nodes from the root to the square. */
static int root_mean_square(const struct onnx *x, int value, struct onnx_node *inner[4],
                            double *ret_eps)
{
    inner[0] = made_by(x, value, "Sqrt");
    inner[1] = inner[0] ? made_by(x, inner[0]->in[0], "Add") : NULL;
    if (!inner[1])
        return -1;
    int side = isnan(number_of(x, inner[1]->in[1])) ? 1 : 0;
    *ret_eps = number_of(x, inner[1]->in[!side]);
    inner[2] = made_by(x, inner[1]->in[side], "ReduceMean");
    if (!inner[2] || !(*ret_eps > 0) || !is_last_mean(x, inner[2]))
        return -1;
    return square_of(x, inner[2]->in[0], &inner[3]);
}

/* What a norm's last node divides by, as the root's value: v / root, v * (1 / root). */
static int divisor_of(const struct onnx *x, const struct onnx_node *n, int *ret_v,
                      struct onnx_node **ret_inverse)
{
    *ret_inverse = NULL;
    *ret_v = n->in[0];
    if (!strcmp(n->kind->name, "Div"))
        return n->in[1];
    for (int i = 0; i < 2; i++) {
        struct onnx_node *r = made_by(x, n->in[i], "Reciprocal"),
                         *d = made_by(x, n->in[i], "Div");
        *ret_v = n->in[!i];
        *ret_inverse = r ? r : d;
        if (r)
            return r->in[0];
        if (d && near(number_of(x, d->in[0]), 1))
            return d->in[1];
    }
    return -1;
}

/* The parts of a norm that ends in 'n'. */
struct norm {
    struct onnx_node *inner[7];
    int uses[7], ninner;
    int input, rms;
    double eps;
};

static int find_norm(const struct onnx *x, const struct onnx_node *n, struct norm *ret)
{
    struct onnx_node *inverse;
    int v, root = divisor_of(x, n, &v, &inverse);
    *ret = (struct norm){.uses = {1, 1, 1, 1}, .ninner = 4, .rms = 1, .input = v};
    if (root < 0 || root_mean_square(x, root, ret->inner, &ret->eps) != v)
        return 0;
    struct onnx_node *centered = made_by(x, v, "Sub");
    struct onnx_node *mean = centered ? made_by(x, centered->in[1], "ReduceMean") : NULL;
    if (mean && mean->in[0] == centered->in[0] && is_last_mean(x, mean)) {
        ret->rms = 0;
        ret->input = centered->in[0];
        ret->inner[4] = centered;
        ret->uses[4] = strcmp(ret->inner[3]->kind->name, "Mul") ? 2 : 3;
        ret->inner[5] = mean;
        ret->uses[5] = 1;
        ret->ninner = 6;
    }
    if (inverse) {
        ret->inner[ret->ninner] = inverse;
        ret->uses[ret->ninner++] = 1;
    }
    return used_only(x, ret->inner, ret->uses, ret->ninner);
}

static int map_norm(struct onnx *x, const struct onnx_node *n)
{
    const struct onnx_value *a = &x->value[n->base[0]];
    return a->view.tensor < 0
               ? topt_onnx_fail(x, n, "the norm of no tensor of samples")
               : topt_onnx_put_norm(x, n, a, a->shape.ndim - 1, n->flag, n->number);
}

static int fuse_norm(struct onnx *x, struct onnx_node *n)
{
    struct norm f;
    if (n->nin != 2 || !find_norm(x, n, &f))
        return 0;
    absorb(f.inner, f.ninner);
    n->map = map_norm;
    n->base[0] = f.input;
    n->flag = f.rms;
    n->number = f.eps;
    return 1;
}

/* ---- activations ------------------------------------------------------------------- */

/* 1 + erf(v / sqrt 2): v, or -1. */
static int erf_of(const struct onnx *x, int value, struct onnx_node *inner[3])
{
    inner[0] = made_by(x, value, "Add");
    if (!inner[0])
        return -1;
    int side = near(number_of(x, inner[0]->in[1]), 1) ? 0 : 1;
    inner[1] = near(number_of(x, inner[0]->in[!side]), 1)
                   ? made_by(x, inner[0]->in[side], "Erf")
                   : NULL;
    inner[2] = inner[1] ? made_by(x, inner[1]->in[0], "Div") : NULL;
    if (inner[2])
        return near(number_of(x, inner[2]->in[1]), sqrt(2)) ? inner[2]->in[0] : -1;
    inner[2] = inner[1] ? made_by(x, inner[1]->in[0], "Mul") : NULL;
    return inner[2] && near(number_of(x, inner[2]->in[1]), sqrt(0.5)) ? inner[2]->in[0]
                                                                      : -1;
}

/* v (1 + erf(v / sqrt 2)) / 2, multiplied in any order by two nodes of which 'n' is
 * the last: v, or -1. */
static int find_gelu(const struct onnx *x, const struct onnx_node *n,
                     struct onnx_node *inner[4])
{
    static const int order[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                    {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    static const int one[4] = {1, 1, 1, 1};
    for (int i = 0; i < 2; i++) {
        inner[3] = made_by(x, n->in[i], "Mul");
        if (!inner[3])
            continue;
        int part[3] = {n->in[!i], inner[3]->in[0], inner[3]->in[1]};
        for (int k = 0; k < 6; k++) {
            int v = part[order[k][0]];
            if (near(number_of(x, part[order[k][1]]), 0.5) &&
                erf_of(x, part[order[k][2]], inner) == v && used_only(x, inner, one, 4))
                return v;
        }
    }
    return -1;
}

/* 1 + tanh(c (v + c' v^3)): v, or -1. */
static int tanh_of(const struct onnx *x, int value, struct onnx_node *inner[6])
{
    inner[0] = made_by(x, value, "Add");
    inner[1] = inner[0] && near(number_of(x, inner[0]->in[1]), 1)
                   ? made_by(x, inner[0]->in[0], "Tanh")
                   : NULL;
    inner[2] = inner[1] ? made_by(x, inner[1]->in[0], "Mul") : NULL;
    inner[3] = inner[2] && near(number_of(x, inner[2]->in[1]), sqrt(2 / M_PI))
                   ? made_by(x, inner[2]->in[0], "Add")
                   : NULL;
    inner[4] = inner[3] ? made_by(x, inner[3]->in[1], "Mul") : NULL;
    inner[5] = inner[4] && near(number_of(x, inner[4]->in[1]), 0.044715)
                   ? made_by(x, inner[4]->in[0], "Pow")
                   : NULL;
    return inner[5] && near(number_of(x, inner[5]->in[1]), 3) &&
                   inner[5]->in[0] == inner[3]->in[0]
               ? inner[5]->in[0]
               : -1;
}

/* (v / 2) (1 + tanh(...)): v, or -1. */
static int find_tanh_gelu(const struct onnx *x, const struct onnx_node *n,
                          struct onnx_node *inner[7])
{
    static const int one[7] = {1, 1, 1, 1, 1, 1, 1};
    inner[6] = made_by(x, n->in[0], "Mul");
    int v = tanh_of(x, n->in[1], inner);
    return v >= 0 && inner[6] && inner[6]->in[0] == v &&
                   near(number_of(x, inner[6]->in[1]), 0.5) && used_only(x, inner, one, 7)
               ? v
               : -1;
}

static int map_activation(struct onnx *x, const struct onnx_node *n)
{
    const struct onnx_value *a = &x->value[n->base[0]];
    return a->view.tensor < 0
               ? topt_onnx_fail(x, n, "an activation of no tensor of samples")
               : topt_onnx_put_activation(x, n, a, (enum topt_activation)n->flag);
}

static int fuse_activation(struct onnx *x, struct onnx_node *n)
{
    static const int one[] = {1};
    struct onnx_node *inner[7];
    if (n->nin != 2 || strcmp(n->kind->name, "Mul"))
        return 0;
    n->base[0] = find_tanh_gelu(x, n, inner);
    if (n->base[0] >= 0) {
        absorb(inner, 7);
        n->flag = TOPT_ACT_GELU;
        n->map = map_activation;
        return 1;
    }
    n->base[0] = find_gelu(x, n, inner);
    if (n->base[0] >= 0) {
        absorb(inner, 4);
        n->flag = TOPT_ACT_GELU_ERF;
        n->map = map_activation;
        return 1;
    }
    for (int i = 0; i < 2; i++) {
        inner[0] = made_by(x, n->in[i], "Sigmoid");
        if (inner[0] && inner[0]->in[0] == n->in[!i] && used_only(x, inner, one, 1)) {
            absorb(inner, 1);
            n->base[0] = n->in[!i];
            n->flag = TOPT_ACT_SILU;
            n->map = map_activation;
            return 1;
        }
    }
    return 0;
}

/* ---- attention --------------------------------------------------------------------- */

/* Nodes between the scores and the product with the values, with how often their outputs
 * are used: the product of their factors, and whether a mask among them hides what is
 * ahead. */
enum { MAX_SCORES = 14 };
struct scores {
    struct onnx_node *inner[MAX_SCORES];
    int uses[MAX_SCORES], ninner, causal;
    double factor;
};

static int is_full(const struct scores *s)
{
    return s->ninner > MAX_SCORES - 4;
}

static void take_in(struct scores *s, struct onnx_node *n, int uses)
{
    s->inner[s->ninner] = n;
    s->uses[s->ninner++] = uses;
}

/* Does a mask of large negative numbers hide just the positions ahead? -1: some other
 * mask. */
static int is_causal(const struct onnx_value *m)
{
    int64_t cols = m->shape.ndim ? m->shape.dim[m->shape.ndim - 1] : 0, any = 0;
    int64_t rows = m->shape.ndim > 1 ? m->shape.dim[m->shape.ndim - 2] : 1;
    int64_t n = topt_onnx_elements(&m->shape);
    if (!m->held)
        return -1;
    for (int64_t i = 0; i < n; i++)
        any |= m->held[i] < 0 || m->held[i] > 0;
    for (int64_t i = 0; any && i < n; i++) {
        int ahead = i % cols > i / cols % rows + (cols - rows);
        if (ahead ? !(m->held[i] < -1e3) : m->held[i] < 0 || m->held[i] > 0)
            return -1;
    }
    return any != 0;
}

/* Which scores a Where keeps, as the mask that it would be if it were added: 0 where it
 * keeps them, and a large negative number elsewhere. */
static int is_causal_choice(const struct onnx_value *c, int kept_where)
{
    int64_t n = topt_onnx_elements(&c->shape);
    int64_t cols = c->shape.ndim ? c->shape.dim[c->shape.ndim - 1] : 1;
    int64_t rows = c->shape.ndim > 1 ? c->shape.dim[c->shape.ndim - 2] : 1;
    if (!c->held || !cols || !rows)
        return -1;
    int any = 0, ahead_only = 1;
    for (int64_t i = 0; i < n; i++) {
        int kept = (c->held[i] < 0 || c->held[i] > 0) == kept_where;
        int ahead = i % cols > i / cols % rows + (cols - rows);
        any |= !kept;
        ahead_only &= kept == !ahead;
    }
    return !any ? 0 : ahead_only ? 1 : -1;
}

/* Where(keep, scores, -inf) or Where(drop, -inf, scores). */
static int step_over_choice(const struct onnx *x, int *value, struct scores *s)
{
    struct onnx_node *n = made_by(x, *value, "Where");
    for (int i = 1; n && n->nin == 3 && i < 3; i++) {
        const struct onnx_value *c = topt_onnx_in(x, n, 0);
        double low = number_of(x, n->in[3 - i]);
        int causal = c && c->constant && low < -1e3 ? is_causal_choice(c, i == 1) : -1;
        if (causal < 0)
            continue;
        s->causal |= causal;
        take_in(s, n, 1);
        *value = n->in[i];
        return 1;
    }
    return 0;
}

/* One node back, where it scales by a constant or adds a mask; 0 elsewhere. */
static int step_back(const struct onnx *x, int *value, struct scores *s)
{
    static const char *const types[] = {"Mul", "Div", "Add"};
    if (!is_full(s) && step_over_choice(x, value, s))
        return 1;
    for (int t = 0; t < 3 && !is_full(s); t++) {
        struct onnx_node *n = made_by(x, *value, types[t]);
        for (int i = 0; n && i < 2; i++) {
            const struct onnx_value *c = topt_onnx_in(x, n, !i);
            double f = number_of(x, n->in[!i]);
            int mask = t == 2 && c && c->constant ? is_causal(c) : -1;
            if (!c || !c->constant || (t < 2 && isnan(f)) || (t == 1 && i) ||
                (t == 2 && mask < 0))
                continue;
            s->factor *= t == 0 ? f : t == 1 ? 1 / f : 1;
            s->causal |= t == 2 && mask;
            take_in(s, n, 1);
            *value = n->in[i];
            return 1;
        }
    }
    return 0;
}

/* Rows that are hidden altogether are no numbers after a softmax, for which exporters
 * write zeros: Where(IsNaN(p), 0, p). */
static int before_zeros(const struct onnx *x, int value, struct scores *s)
{
    struct onnx_node *n = made_by(x, value, "Where");
    struct onnx_node *nan = n && n->nin == 3 ? made_by(x, n->in[0], "IsNaN") : NULL;
    if (!nan || nan->in[0] != n->in[2])
        return value;
    take_in(s, n, 1);
    take_in(s, nan, 1);
    return n->in[2];
}

/* A factor of queries or keys by themselves. */
static int before_factor(const struct onnx *x, int value, struct scores *s)
{
    struct onnx_node *n = made_by(x, value, "Mul");
    double f = n && n->nin == 2 ? number_of(x, n->in[1]) : NAN;
    if (isnan(f) || is_full(s))
        return value;
    s->factor *= f;
    take_in(s, n, 1);
    return n->in[0];
}

/* Heads that are written several times for queries that share them: [n, heads, s, d] by
 * way of [n, heads, times, s, d].  The value before that, or the same. */
static int before_copies(const struct onnx *x, int value, struct scores *s)
{
    struct onnx_node *flat = made_by(x, value, "Reshape");
    struct onnx_node *copy = flat ? made_by(x, flat->in[0], "Expand") : NULL;
    struct onnx_node *wide = copy ? made_by(x, copy->in[0], "Unsqueeze") : NULL;
    const struct onnx_value *a = wide ? topt_onnx_in(x, wide, 0) : NULL;
    if (!a || a->shape.ndim != 4 || s->ninner > MAX_SCORES - 3)
        return value;
    const struct onnx_shape *w = &x->value[copy->out[0]].shape,
                            *to = &x->value[value].shape;
    if (w->ndim != 5 || w->dim[1] != a->shape.dim[1] || w->dim[3] != a->shape.dim[2] ||
        to->ndim != 4 || to->dim[1] != w->dim[1] * w->dim[2] || to->dim[2] != w->dim[3])
        return value;
    take_in(s, flat, 1);
    take_in(s, copy, 1);
    take_in(s, wide, 1);
    return wide->in[0];
}

/* Keys as they are before they were copied and turned; 1 where that is so. */
static int find_keys(const struct onnx *x, struct onnx_node *n, int keys,
                     struct scores *s)
{
    struct onnx_node *turn = made_by(x, keys, "Transpose");
    struct scores more = *s;
    int64_t perm[ONNX_MAX_RANK];
    n->base[1] = keys;
    n->base[2] = n->in[1];
    if (!turn || topt_onnx_in(x, turn, 0)->shape.ndim != 4)
        return 0;
    topt_onnx_perm(x, turn, perm);
    take_in(&more, turn, 1);
    int k = before_copies(x, turn->in[0], &more);
    if (k == turn->in[0] || perm[1] != 1 || perm[2] != 3)
        return 0;
    int v = before_copies(x, n->in[1], &more);
    if (v == n->in[1])
        return 0;
    *s = more;
    n->base[1] = k;
    n->base[2] = v;
    return 1;
}

/* softmax(f q k + mask) v, where 'n' is the last product. */
static int fuse_attention(struct onnx *x, struct onnx_node *n)
{
    struct scores s = {.factor = 1};
    int value = n->nin == 2 ? n->in[0] : -1;
    if (strcmp(n->kind->name, "MatMul") || made_by(x, value, "Dropout"))
        return 0;
    value = before_zeros(x, value, &s);
    struct onnx_node *softmax = made_by(x, value, "Softmax");
    if (!softmax)
        return 0;
    int ndim = topt_onnx_in(x, softmax, 0)->shape.ndim;
    if (topt_onnx_axis(softmax, ndim, x->opset < 13 ? 1 : -1) != ndim - 1)
        return 0;
    take_in(&s, softmax, s.ninner ? 2 : 1);
    value = softmax->in[0];
    while (step_back(x, &value, &s))
        ;
    struct onnx_node *product = made_by(x, value, "MatMul");
    if (!product || is_full(&s))
        return 0;
    take_in(&s, product, 1);
    n->base[0] = before_factor(x, product->in[0], &s);
    int copied = find_keys(x, n, before_factor(x, product->in[1], &s), &s);
    if (!used_only(x, s.inner, s.uses, s.ninner))
        return 0;
    absorb(s.inner, s.ninner);
    n->flag = s.causal | copied << 1;
    n->number = s.factor;
    n->map = topt_onnx_map_attention;
    return 1;
}

/* ---- rotary positions -------------------------------------------------------------- */

/* A cut of the last dimension from 'from' on: of which value; -1 elsewhere. */
static int half_of(const struct onnx *x, int value, int second, struct onnx_node **ret)
{
    struct onnx_node *n = *ret = made_by(x, value, "Slice");
    int64_t start[ONNX_MAX_RANK], step[ONNX_MAX_RANK];
    if (!n)
        return -1;
    const struct onnx_shape *a = &topt_onnx_in(x, n, 0)->shape,
                            *y = &x->value[value].shape;
    int last = a->ndim - 1;
    topt_onnx_slices(x, n, start, step);
    for (int d = 0; d < last; d++)
        if (a->dim[d] != y->dim[d])
            return -1;
    return step[last] == 1 && 2 * y->dim[last] == a->dim[last] &&
                   start[last] == (second ? y->dim[last] : 0)
               ? n->in[0]
               : -1;
}

/* The second half, with its sign turned, and the first: of which value; -1 elsewhere. */
static int halves_of(const struct onnx *x, int value, struct onnx_node *inner[4])
{
    inner[0] = made_by(x, value, "Concat");
    inner[1] = inner[0] && inner[0]->nin == 2 ? made_by(x, inner[0]->in[0], "Neg") : NULL;
    if (!inner[1])
        return -1;
    int a = half_of(x, inner[1]->in[0], 1, &inner[2]);
    int b = half_of(x, inner[0]->in[1], 0, &inner[3]);
    return a == b ? a : -1;
}

/* v cos + (-v2, v1) sin, the angles constant. */
static int fuse_rotary(struct onnx *x, struct onnx_node *n)
{
    static const int one[6] = {1, 1, 1, 1, 1, 1};
    struct onnx_node *inner[6];
    if (n->nin != 2 || strcmp(n->kind->name, "Add"))
        return 0;
    inner[0] = made_by(x, n->in[0], "Mul");
    inner[1] = made_by(x, n->in[1], "Mul");
    const struct onnx_value *cos = inner[0] ? topt_onnx_in(x, inner[0], 1) : NULL;
    const struct onnx_value *sin = inner[1] ? topt_onnx_in(x, inner[1], 1) : NULL;
    int v = sin ? halves_of(x, inner[1]->in[0], inner + 2) : -1;
    if (!cos || v < 0 || !cos->constant || !sin->constant || v != inner[0]->in[0] ||
        !used_only(x, inner, one, 6))
        return 0;
    absorb(inner, 6);
    n->base[0] = v;
    n->map = topt_onnx_map_turned;
    return 1;
}

/* ---- copies ------------------------------------------------------------------------ */

/* Does the node hand its input on as it is?  A cast from whole numbers does not. */
static int is_copy(const struct onnx *x, const struct onnx_node *n)
{
    const struct onnx_value *a = topt_onnx_in(x, n, 0), *y = onnx_out(x, n, 0);
    int type = !strcmp(n->kind->name, "Identity") || !strcmp(n->kind->name, "Cast");
    return type && a && y && !y->constant && !a->integer && !y->integer;
}

/* Who reads a copy reads what it is of, so that patterns need not look through it. */
static void drop_copies(struct onnx *x)
{
    for (int i = 0; i < x->nnodes; i++)
        for (int k = 0; x->node[i].needed && k < x->node[i].nin; k++) {
            int *in = &x->node[i].in[k];
            while (*in >= 0 && x->value[*in].node >= 0 &&
                   is_copy(x, &x->node[x->value[*in].node]))
                *in = x->node[x->value[*in].node].in[0];
        }
    topt_onnx_count_uses(x);
}

/* ---- all --------------------------------------------------------------------------- */

/* Patterns are looked for at their last nodes, from the first on: so that an inner
 * node of a later pattern is never the last of an earlier one that was not found. */
void topt_onnx_fuse(struct onnx *x)
{
    drop_copies(x);
    for (int i = 0; i < x->nnodes; i++) {
        struct onnx_node *n = &x->node[i];
        if (!n->needed || n->fused || n->nout < 1 || n->out[0] < 0 ||
            x->value[n->out[0]].constant)
            continue;
        if (fuse_attention(x, n) || fuse_norm(x, n) || fuse_activation(x, n) ||
            fuse_rotary(x, n))
            continue;
    }
}
