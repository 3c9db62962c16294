/* onnx_fuse.c - groups of nodes that exporters write for what is one operator here.
 *
 * A pattern is looked for backwards from its last node.  All its inner values must be
 * used by the pattern alone, else the nodes stay as they are.  Found are layer and RMS
 * norms, GELU by erf, x times its sigmoid, and attention. */
#include "onnx_fuse.h"
#include "onnx_map_product.h"
#include "onnx_map_unary.h"
#include "onnx_node.h"
#include "onnx_shape.h"

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
    struct onnx_node *inner[4];
    if (n->nin != 2 || strcmp(n->kind->name, "Mul"))
        return 0;
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

/* Nodes between the scores and their softmax: the product of their factors, and
 * whether a mask among them hides what is ahead. */
struct scores {
    struct onnx_node *inner[8];
    int ninner, causal;
    double factor;
};

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

/* One node back, where it scales by a constant or adds a mask; 0 elsewhere. */
static int step_back(const struct onnx *x, int *value, struct scores *s)
{
    static const char *const types[] = {"Mul", "Div", "Add"};
    for (int t = 0; t < 3 && s->ninner < 7; t++) {
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
            s->inner[s->ninner++] = n;
            *value = n->in[i];
            return 1;
        }
    }
    return 0;
}

/* softmax(f q k + mask) v, where 'n' is the last product. */
static int fuse_attention(struct onnx *x, struct onnx_node *n)
{
    static const int one[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    struct scores s = {.factor = 1};
    int value = n->nin == 2 ? n->in[0] : -1;
    struct onnx_node *dropout = made_by(x, value, "Dropout");
    if (strcmp(n->kind->name, "MatMul") || dropout)
        return 0;
    struct onnx_node *softmax = made_by(x, value, "Softmax");
    if (!softmax)
        return 0;
    int ndim = topt_onnx_in(x, softmax, 0)->shape.ndim;
    if (topt_onnx_axis(softmax, ndim, x->opset < 13 ? 1 : -1) != ndim - 1)
        return 0;
    s.inner[s.ninner++] = softmax;
    value = softmax->in[0];
    while (step_back(x, &value, &s))
        ;
    struct onnx_node *product = made_by(x, value, "MatMul");
    if (!product || s.ninner > 7)
        return 0;
    s.inner[s.ninner++] = product;
    if (!used_only(x, s.inner, one, s.ninner))
        return 0;
    absorb(s.inner, s.ninner);
    n->base[0] = product->in[0];
    n->base[1] = product->in[1];
    n->base[2] = n->in[1];
    n->flag = s.causal;
    n->number = s.factor;
    n->map = topt_onnx_map_attention;
    return 1;
}

/* ---- all --------------------------------------------------------------------------- */

/* Patterns are looked for at their last nodes, from the first on: so that an inner
 * node of a later pattern is never the last of an earlier one that was not found. */
void topt_onnx_fuse(struct onnx *x)
{
    for (int i = 0; i < x->nnodes; i++) {
        struct onnx_node *n = &x->node[i];
        if (!n->needed || n->fused || n->nout < 1 || n->out[0] < 0 ||
            x->value[n->out[0]].constant)
            continue;
        if (fuse_attention(x, n) || fuse_norm(x, n) || fuse_activation(x, n))
            continue;
    }
}
