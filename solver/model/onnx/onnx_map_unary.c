/* onnx_map_unary.c - operators of nodes on one tensor, number by number: functions,
 * scaling, dropout; and norms. */
#include "onnx_map_unary.h"
#include "onnx_map.h"
#include "onnx_node.h"
#include "onnx_shape.h"
#include "onnx_view.h"

#include <math.h>
#include <string.h>

/* ---- functions --------------------------------------------------------------------- */

/* A type, its function, what alpha and beta are called and where they are not given;
 * and a factor after it. */
static const struct function {
    const char *type;
    enum topt_activation f;
    const char *alpha, *beta, *factor;
    double alpha_else, beta_else, factor_else;
} functions[] = {
    {"Abs", TOPT_ACT_ABS, NULL, NULL, NULL, 0, 0, 1},
    {"Cos", TOPT_ACT_COS, NULL, NULL, NULL, 0, 0, 1},
    {"Elu", TOPT_ACT_ELU, "alpha", NULL, NULL, 1, 0, 1},
    {"Erf", TOPT_ACT_ERF, NULL, NULL, NULL, 0, 0, 1},
    {"Exp", TOPT_ACT_EXP, NULL, NULL, NULL, 0, 0, 1},
    {"HardSigmoid", TOPT_ACT_HARD_SIGMOID, "alpha", "beta", NULL, 0.2, 0.5, 1},
    {"HardSwish", TOPT_ACT_HARD_SWISH, NULL, NULL, NULL, 0, 0, 1},
    {"LeakyRelu", TOPT_ACT_LEAKY_RELU, "alpha", NULL, NULL, 0.01, 0, 1},
    {"Log", TOPT_ACT_LOG, NULL, NULL, NULL, 0, 0, 1},
    {"Reciprocal", TOPT_ACT_RECIPROCAL, NULL, NULL, NULL, 0, 0, 1},
    {"Relu", TOPT_ACT_RELU, NULL, NULL, NULL, 0, 0, 1},
    {"Selu", TOPT_ACT_ELU, "alpha", NULL, "gamma", 1.67326319217681884765625, 0,
     1.05070102214813232421875},
    {"Sigmoid", TOPT_ACT_SIGMOID, NULL, NULL, NULL, 0, 0, 1},
    {"Sin", TOPT_ACT_SIN, NULL, NULL, NULL, 0, 0, 1},
    {"Softplus", TOPT_ACT_SOFTPLUS, NULL, NULL, NULL, 0, 0, 1},
    {"Softsign", TOPT_ACT_SOFTSIGN, NULL, NULL, NULL, 0, 0, 1},
    {"Sqrt", TOPT_ACT_SQRT, NULL, NULL, NULL, 0, 0, 1},
    {"Tanh", TOPT_ACT_TANH, NULL, NULL, NULL, 0, 0, 1},
    {"com.microsoft::BiasGelu", TOPT_ACT_GELU_ERF, NULL, NULL, NULL, 0, 0, 1},
    {"com.microsoft::FastGelu", TOPT_ACT_GELU, NULL, NULL, NULL, 0, 0, 1},
    {"com.microsoft::Gelu", TOPT_ACT_GELU_ERF, NULL, NULL, NULL, 0, 0, 1},
};

static const struct function *function_of(const struct onnx_node *n)
{
    size_t i = 0;
    while (strcmp(functions[i].type, n->kind->name))
        i++;
    return &functions[i];
}

static int put_function(struct onnx *x, const struct onnx_node *n,
                        const struct onnx_value *a)
{
    const struct function *f = function_of(n);
    struct topt_attrs attrs = {.activation = (int)f->f};
    struct onnx_value y = *a;
    if (f->alpha)
        attrs.alpha = topt_onnx_real(n, f->alpha, f->alpha_else);
    if (f->beta)
        attrs.beta = topt_onnx_real(n, f->beta, f->beta_else);
    double factor = f->factor ? topt_onnx_real(n, f->factor, f->factor_else) : 1;
    int more = factor < 1 || factor > 1;
    if (!(fabs(attrs.alpha) < ONNX_MAX_NUMBER && fabs(attrs.beta) < ONNX_MAX_NUMBER))
        return topt_onnx_fail(x, n, "an attribute is not a number below 1e18");
    y.view.tensor = topt_onnx_emit(x, n, "unary", more ? ".function" : "", a->view.tensor,
                                   -1, &attrs);
    return y.view.tensor < 0 ? -1
           : more            ? topt_onnx_put_scaled(x, n, &y, factor, 0)
                             : topt_onnx_put(x, n, &y.view, y.view.tensor);
}

int topt_onnx_map_activation(struct onnx *x, const struct onnx_node *n)
{
    const struct onnx_value *a = topt_onnx_sample(x, n, 0);
    return a ? put_function(x, n, a) : -1;
}

/* With the bias of features that types of another domain have as their second input. */
int topt_onnx_map_biased(struct onnx *x, const struct onnx_node *n)
{
    const struct onnx_value *a = topt_onnx_sample(x, n, 0);
    struct onnx_value biased;
    if (!a || !topt_onnx_in(x, n, 1))
        return a ? put_function(x, n, a) : -1;
    biased = *a;
    if (topt_onnx_rows(x, n, a, a->shape.ndim - 1, &biased.view))
        return -1;
    biased.view.tensor =
        topt_onnx_emit(x, n, "bias", ".bias", biased.view.tensor, -1, NULL);
    return biased.view.tensor < 0 ? -1 : put_function(x, n, &biased);
}

int topt_onnx_put_activation(struct onnx *x, const struct onnx_node *n,
                             const struct onnx_value *a, enum topt_activation activation)
{
    struct topt_attrs attrs = {.activation = (int)activation};
    return topt_onnx_put(x, n, &a->view,
                         topt_onnx_emit(x, n, "unary", "", a->view.tensor, -1, &attrs));
}

int topt_onnx_put_scaled(struct onnx *x, const struct onnx_node *n,
                         const struct onnx_value *a, double factor, double shift)
{
    struct topt_attrs attrs = {.factor = factor, .shift = shift};
    if (!(fabs(factor) < ONNX_MAX_NUMBER && fabs(shift) < ONNX_MAX_NUMBER))
        return topt_onnx_fail(x, n, "its constant is not a number below 1e18");
    return topt_onnx_put(x, n, &a->view,
                         topt_onnx_emit(x, n, "scale", "", a->view.tensor, -1, &attrs));
}

int topt_onnx_put_clipped(struct onnx *x, const struct onnx_node *n,
                          const struct onnx_value *a, double low, double high)
{
    struct topt_attrs attrs = {.activation = TOPT_ACT_CLIP,
                               .alpha = fmax(low, -ONNX_MAX_NUMBER),
                               .beta = fmin(high, ONNX_MAX_NUMBER)};
    return topt_onnx_put(x, n, &a->view,
                         topt_onnx_emit(x, n, "unary", "", a->view.tensor, -1, &attrs));
}

/* Bounds are inputs since set 11, attributes before. */
int topt_onnx_map_clip(struct onnx *x, const struct onnx_node *n)
{
    static const char *const names[] = {"min", "max"};
    const struct onnx_value *a = topt_onnx_sample(x, n, 0);
    double bound[2] = {-ONNX_MAX_NUMBER, ONNX_MAX_NUMBER};
    for (int i = 0; a && i < 2; i++) {
        const struct onnx_value *v = topt_onnx_in(x, n, 1 + i);
        if (v && (!v->held || topt_onnx_elements(&v->shape) != 1))
            return topt_onnx_fail(x, n, "its bounds are not constant numbers");
        bound[i] = v ? v->held[0] : topt_onnx_real(n, names[i], bound[i]);
    }
    return a ? topt_onnx_put_clipped(x, n, a, bound[0], bound[1]) : -1;
}

int topt_onnx_map_pow(struct onnx *x, const struct onnx_node *n)
{
    const struct onnx_value *a = topt_onnx_sample(x, n, 0), *p = topt_onnx_in(x, n, 1);
    if (!a)
        return -1;
    if (!p->held || topt_onnx_elements(&p->shape) != 1 || p->shape.ndim > a->shape.ndim ||
        !(fabs(p->held[0]) < ONNX_MAX_NUMBER))
        return topt_onnx_fail(x, n, "its exponent is not a constant number");
    struct topt_attrs attrs = {.activation = TOPT_ACT_POWER, .alpha = p->held[0]};
    int square = !(fabs(p->held[0] - 2) > 0), same = !(fabs(p->held[0] - 1) > 0);
    int t = a->view.tensor;
    return topt_onnx_put(x, n, &a->view,
                         same     ? t
                         : square ? topt_onnx_emit(x, n, "mul", "", t, t, NULL)
                                  : topt_onnx_emit(x, n, "unary", "", t, -1, &attrs));
}

int topt_onnx_map_gelu(struct onnx *x, const struct onnx_node *n)
{
    const struct onnx_value *a = topt_onnx_sample(x, n, 0);
    const Onnx__AttributeProto *how = topt_onnx_attr(n, "approximate");
    int tanh_form = how && how->has_s && how->s.len == 4;
    return a ? topt_onnx_put_activation(x, n, a,
                                        tanh_form ? TOPT_ACT_GELU : TOPT_ACT_GELU_ERF)
             : -1;
}

/* x tanh(softplus(x)) */
int topt_onnx_map_mish(struct onnx *x, const struct onnx_node *n)
{
    static const struct topt_attrs plus = {.activation = TOPT_ACT_SOFTPLUS},
                                   tanh_of = {.activation = TOPT_ACT_TANH};
    const struct onnx_value *a = topt_onnx_sample(x, n, 0);
    int t =
        a ? topt_onnx_emit(x, n, "unary", ".softplus", a->view.tensor, -1, &plus) : -1;
    t = t < 0 ? -1 : topt_onnx_emit(x, n, "unary", ".tanh", t, -1, &tanh_of);
    return t < 0
               ? -1
               : topt_onnx_put(x, n, &a->view,
                               topt_onnx_emit(x, n, "mul", "", a->view.tensor, t, NULL));
}

int topt_onnx_map_neg(struct onnx *x, const struct onnx_node *n)
{
    const struct onnx_value *a = topt_onnx_sample(x, n, 0);
    return a ? topt_onnx_put_scaled(x, n, a, -1, 0) : -1;
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

/* ---- norms ------------------------------------------------------------------------- */

int topt_onnx_put_norm(struct onnx *x, const struct onnx_node *n,
                       const struct onnx_value *a, int first, int rms, double eps)
{
    struct topt_attrs attrs = {.rms = rms, .eps = eps};
    struct onnx_view v;
    if (topt_onnx_rows(x, n, a, first, &v))
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
    int first = topt_onnx_axis(n, a->shape.ndim, -1);
    return first < 0 || first >= a->shape.ndim
               ? topt_onnx_fail(x, n, "its axis is not there")
               : topt_onnx_put_norm(x, n, a, first, 0,
                                    topt_onnx_real(n, "epsilon", 1e-5));
}

/* The root mean square alone. */
int topt_onnx_map_rms_norm(struct onnx *x, const struct onnx_node *n)
{
    const struct onnx_value *a = topt_onnx_sample(x, n, 0);
    int first = a ? topt_onnx_axis(n, a->shape.ndim, -1) : -1;
    if (!a)
        return -1;
    return first < 0 || first >= a->shape.ndim
               ? topt_onnx_fail(x, n, "its axis is not there")
               : topt_onnx_put_norm(x, n, a, first, 1,
                                    topt_onnx_real(n, "epsilon", 1e-5));
}

/* The norm of the sum of two tensors and a bias; the sum is output 3. */
int topt_onnx_map_skip_norm(struct onnx *x, const struct onnx_node *n)
{
    const struct onnx_value *a = topt_onnx_sample(x, n, 0),
                            *b = topt_onnx_sample(x, n, 1);
    int rms = !strcmp(n->kind->name, "com.microsoft::SkipSimplifiedLayerNormalization");
    struct onnx_view v, w;
    if (!a || !b || topt_onnx_rows(x, n, a, a->shape.ndim - 1, &v) ||
        topt_onnx_rows(x, n, b, b->shape.ndim - 1, &w))
        return -1;
    if (!topt_onnx_view_same(&v, &w))
        return topt_onnx_fail(x, n, "its inputs lie in memory in different orders");
    const struct topt_dim *d = &tensor_of(x, &v)->dim[2];
    int t = topt_onnx_regroup(x, n, w.tensor, d->count, d->unit);
    t = t < 0 ? -1 : topt_onnx_emit(x, n, "add", ".sum", v.tensor, t, NULL);
    if (t >= 0 && topt_onnx_in(x, n, rms ? 3 : 4))
        t = topt_onnx_emit(x, n, "bias", ".bias", t, -1, NULL);
    if (t < 0)
        return -1;
    struct onnx_value sum = *a;
    sum.view = v;
    sum.view.tensor = t;
    if (onnx_out(x, n, 3))
        onnx_out(x, n, 3)->view = sum.view;
    return topt_onnx_put_norm(x, n, &sum, a->shape.ndim - 1, rms,
                              topt_onnx_real(n, "epsilon", 1e-12));
}
