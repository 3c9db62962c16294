/* onnx_const.c - constants of an ONNX graph: nodes whose inputs are small constants
 * are computed.
 *
 * Numbers are doubles, as onnx_numbers.c reads them. */
#include "onnx_const.h"
#include "onnx_node.h"
#include "onnx_shape.h"
#include "onnx_shape_order.h"

#include <math.h>
#include <string.h>

/* Copy by strides: element (i0, i1, ...) of 'to' is src[off + sum i_d stride_d]. */
static double *take(struct onnx *x, const double *src, const struct onnx_shape *to,
                    int64_t off, const int64_t *stride)
{
    int64_t n = topt_onnx_elements(to), at[ONNX_MAX_RANK] = {0};
    double *ret = n <= ONNX_MAX_FOLDED ? TOPT_NEW(x->arena, n, double) : NULL;
    for (int64_t i = 0; ret && i < n; i++) {
        int64_t from = off;
        for (int d = 0; d < to->ndim; d++)
            from += at[d] * stride[d];
        ret[i] = src[from];
        for (int d = to->ndim - 1; d >= 0 && ++at[d] == to->dim[d]; d--)
            at[d] = 0;
    }
    return ret;
}

/* Strides of 's', with 0 along dimensions that are broadcast to those of 'to'. */
static void strides(const struct onnx_shape *s, const struct onnx_shape *to, int64_t *ret)
{
    int64_t step = 1;
    for (int d = to->ndim - 1, k = s->ndim - 1; d >= 0; d--, k--) {
        int64_t extent = k >= 0 ? s->dim[k] : 1;
        ret[d] = extent == 1 ? 0 : step;
        step *= extent;
    }
}

/* The whole number; one that no place is where it is too large. */
static int64_t whole(double a)
{
    return fabs(a) < 0x1p60 ? (int64_t)a : -((int64_t)1 << 61);
}

static int same_number(double a, double b)
{
    return !(a < b) && !(a > b);
}

static int is_true(double a)
{
    return a < 0 || a > 0;
}

static double remainder_of(double a, double b)
{
    return is_true(b) ? a - floor(a / b) * b : 0;
}

static double binary(const char *type, int integer, double a, double b)
{
    return !strcmp(type, "Add")              ? a + b
           : !strcmp(type, "Sub")            ? a - b
           : !strcmp(type, "Mul")            ? a * b
           : !strcmp(type, "Div")            ? !integer     ? a / b
                                               : is_true(b) ? trunc(a / b)
                                                            : 0
           : !strcmp(type, "Pow")            ? pow(a, b)
           : !strcmp(type, "Max")            ? fmax(a, b)
           : !strcmp(type, "Min")            ? fmin(a, b)
           : !strcmp(type, "Mod")            ? remainder_of(a, b)
           : !strcmp(type, "Equal")          ? same_number(a, b)
           : !strcmp(type, "Less")           ? a < b
           : !strcmp(type, "LessOrEqual")    ? a <= b
           : !strcmp(type, "Greater")        ? a > b
           : !strcmp(type, "GreaterOrEqual") ? a >= b
           : !strcmp(type, "And")            ? is_true(a) && is_true(b)
           : !strcmp(type, "Or")             ? is_true(a) || is_true(b)
                                             : is_true(a) != is_true(b); /* Xor */
}

static double unary(const char *type, double a)
{
    return !strcmp(type, "Neg")          ? -a
           : !strcmp(type, "Sqrt")       ? sqrt(a)
           : !strcmp(type, "Floor")      ? floor(a)
           : !strcmp(type, "Ceil")       ? ceil(a)
           : !strcmp(type, "Round")      ? nearbyint(a)
           : !strcmp(type, "Abs")        ? fabs(a)
           : !strcmp(type, "Exp")        ? exp(a)
           : !strcmp(type, "Log")        ? log(a)
           : !strcmp(type, "Sin")        ? sin(a)
           : !strcmp(type, "Cos")        ? cos(a)
           : !strcmp(type, "Sign")       ? (a > 0) - (a < 0)
           : !strcmp(type, "Reciprocal") ? 1 / a
                                         : !is_true(a); /* Not */
}

double *topt_onnx_fold_same(struct onnx *x, const struct onnx_node *n,
                            const struct onnx_value *y)
{
    (void)y;
    return topt_onnx_in(x, n, 0)->held;
}

double *topt_onnx_fold_unary(struct onnx *x, const struct onnx_node *n,
                             const struct onnx_value *y)
{
    const double *a = topt_onnx_in(x, n, 0)->held;
    int64_t count = topt_onnx_elements(&y->shape);
    double *ret = TOPT_NEW(x->arena, count, double);
    for (int64_t i = 0; ret && i < count; i++)
        ret[i] = unary(n->kind->name, a[i]);
    return ret;
}

double *topt_onnx_fold_expand(struct onnx *x, const struct onnx_node *n,
                              const struct onnx_value *y)
{
    const struct onnx_value *a = topt_onnx_in(x, n, 0);
    int64_t step[ONNX_MAX_RANK];
    strides(&a->shape, &y->shape, step);
    return take(x, a->held, &y->shape, 0, step);
}

double *topt_onnx_fold_cast(struct onnx *x, const struct onnx_node *n,
                            const struct onnx_value *y)
{
    double *ret = topt_onnx_fold_expand(x, n, y);
    for (int64_t i = 0; ret && y->integer && i < topt_onnx_elements(&y->shape); i++)
        ret[i] = trunc(ret[i]);
    return ret;
}

double *topt_onnx_fold_binary(struct onnx *x, const struct onnx_node *n,
                              const struct onnx_value *y)
{
    const struct onnx_value *a = topt_onnx_in(x, n, 0), *b = topt_onnx_in(x, n, 1);
    int64_t step[ONNX_MAX_RANK];
    strides(&a->shape, &y->shape, step);
    double *p = take(x, a->held, &y->shape, 0, step);
    strides(&b->shape, &y->shape, step);
    double *q = take(x, b->held, &y->shape, 0, step);
    int64_t count = topt_onnx_elements(&y->shape);
    for (int64_t i = 0; p && q && i < count; i++)
        p[i] = binary(n->kind->name, a->integer && b->integer, p[i], q[i]);
    return q ? p : NULL;
}

double *topt_onnx_fold_slice(struct onnx *x, const struct onnx_node *n,
                             const struct onnx_value *y)
{
    const struct onnx_value *a = topt_onnx_in(x, n, 0);
    int64_t start[ONNX_MAX_RANK], jump[ONNX_MAX_RANK], step[ONNX_MAX_RANK], off = 0;
    topt_onnx_slices(x, n, start, jump);
    strides(&a->shape, &a->shape, step);
    for (int d = 0; d < a->shape.ndim; d++) {
        off += start[d] * step[d];
        step[d] *= jump[d];
    }
    return take(x, a->held, &y->shape, off, step);
}

/* Blocks of 'inner' numbers at places along one dimension. */
double *topt_onnx_fold_gather(struct onnx *x, const struct onnx_node *n,
                              const struct onnx_value *y)
{
    const struct onnx_value *a = topt_onnx_in(x, n, 0), *at = topt_onnx_in(x, n, 1);
    int axis = (int)topt_onnx_int(n, "axis", 0);
    axis += axis < 0 ? a->shape.ndim : 0;
    int64_t inner = 1, outer = 1, places = topt_onnx_elements(&at->shape);
    for (int d = 0; d < a->shape.ndim; d++)
        *(d < axis ? &outer : &inner) *= d == axis ? 1 : a->shape.dim[d];
    int64_t extent = a->shape.dim[axis];
    double *ret = TOPT_NEW(x->arena, topt_onnx_elements(&y->shape), double);
    for (int64_t o = 0; ret && o < outer; o++)
        for (int64_t p = 0; p < places; p++) {
            int64_t from = whole(at->held[p]);
            from += from < 0 ? extent : 0;
            if (from < 0 || from >= extent)
                return NULL;
            memcpy(ret + (o * places + p) * inner, a->held + (o * extent + from) * inner,
                   (size_t)inner * sizeof *ret);
        }
    return ret;
}

double *topt_onnx_fold_concat(struct onnx *x, const struct onnx_node *n,
                              const struct onnx_value *y)
{
    int axis = (int)topt_onnx_int(n, "axis", 0);
    axis += axis < 0 ? y->shape.ndim : 0;
    int64_t outer = 1, at = 0, row = 1;
    for (int d = 0; d < y->shape.ndim; d++)
        *(d < axis ? &outer : &row) *= y->shape.dim[d];
    double *ret = TOPT_NEW(x->arena, topt_onnx_elements(&y->shape), double);
    for (int k = 0; ret && k < n->nin; k++) {
        const struct onnx_value *a = topt_onnx_in(x, n, k);
        int64_t part = outer ? topt_onnx_elements(&a->shape) / outer : 0;
        for (int64_t o = 0; o < outer; o++)
            memcpy(ret + o * row + at, a->held + o * part, (size_t)part * sizeof *ret);
        at += part;
    }
    return ret;
}

double *topt_onnx_fold_where(struct onnx *x, const struct onnx_node *n,
                             const struct onnx_value *y)
{
    double *part[3];
    int64_t step[ONNX_MAX_RANK], count = topt_onnx_elements(&y->shape);
    for (int k = 0; k < 3; k++) {
        const struct onnx_value *a = topt_onnx_in(x, n, k);
        strides(&a->shape, &y->shape, step);
        part[k] = take(x, a->held, &y->shape, 0, step);
        if (!part[k])
            return NULL;
    }
    for (int64_t i = 0; i < count; i++)
        part[1][i] = part[0][i] < 0 || part[0][i] > 0 ? part[1][i] : part[2][i];
    return part[1];
}

double *topt_onnx_fold_transpose(struct onnx *x, const struct onnx_node *n,
                                 const struct onnx_value *y)
{
    const struct onnx_value *a = topt_onnx_in(x, n, 0);
    int64_t perm[ONNX_MAX_RANK], plain[ONNX_MAX_RANK], step[ONNX_MAX_RANK];
    topt_onnx_perm(x, n, perm);
    int64_t at = 1;
    for (int d = a->shape.ndim - 1; d >= 0; d--) {
        plain[d] = at;
        at *= a->shape.dim[d];
    }
    for (int d = 0; d < a->shape.ndim; d++)
        step[d] = plain[perm[d]];
    return take(x, a->held, &y->shape, 0, step);
}

double *topt_onnx_fold_shape(struct onnx *x, const struct onnx_node *n,
                             const struct onnx_value *y)
{
    (void)y;
    const struct onnx_value *a = topt_onnx_in(x, n, 0);
    double *ret = TOPT_NEW(x->arena, ONNX_MAX_RANK, double);
    for (int d = 0; ret && d < a->shape.ndim; d++)
        ret[d] = (double)a->shape.dim[d];
    return ret;
}

double *topt_onnx_fold_size(struct onnx *x, const struct onnx_node *n,
                            const struct onnx_value *y)
{
    double *ret = TOPT_NEW(x->arena, 1, double);
    (void)y;
    if (ret)
        *ret = (double)topt_onnx_elements(&topt_onnx_in(x, n, 0)->shape);
    return ret;
}

/* Along a dimension the numbers at the places that another tensor of that many dimensions
 * says. */
double *topt_onnx_fold_gather_elements(struct onnx *x, const struct onnx_node *n,
                                       const struct onnx_value *y)
{
    const struct onnx_value *a = topt_onnx_in(x, n, 0), *at = topt_onnx_in(x, n, 1);
    int axis = topt_onnx_axis(n, a->shape.ndim, 0);
    int64_t count = topt_onnx_elements(&y->shape), step[ONNX_MAX_RANK],
            k[ONNX_MAX_RANK] = {0};
    double *ret = TOPT_NEW(x->arena, count, double);
    strides(&a->shape, &a->shape, step);
    for (int64_t i = 0; ret && i < count; i++) {
        int64_t from = 0, place = whole(at->held[i]);
        place += place < 0 ? a->shape.dim[axis] : 0;
        for (int d = 0; d < y->shape.ndim; d++)
            from += (d == axis ? place : k[d]) * step[d];
        if (place < 0 || place >= a->shape.dim[axis])
            return NULL;
        ret[i] = a->held[from];
        for (int d = y->shape.ndim - 1; d >= 0 && ++k[d] == y->shape.dim[d]; d--)
            k[d] = 0;
    }
    return ret;
}

/* Sums of all numbers up to each, along the dimension of input 1. */
double *topt_onnx_fold_cumsum(struct onnx *x, const struct onnx_node *n,
                              const struct onnx_value *y)
{
    const struct onnx_value *a = topt_onnx_in(x, n, 0), *d = topt_onnx_in(x, n, 1);
    int ndim = y->shape.ndim,
        axis = d && fabs(d->held[0]) <= ONNX_MAX_RANK ? (int)d->held[0] : 0;
    int64_t count = topt_onnx_elements(&y->shape), inner = 1;
    axis += axis < 0 ? ndim : 0;
    if (axis < 0 || axis >= ndim || topt_onnx_int(n, "exclusive", 0) ||
        topt_onnx_int(n, "reverse", 0))
        return NULL;
    for (int k = axis + 1; k < ndim; k++)
        inner *= y->shape.dim[k];
    double *ret = TOPT_NEW(x->arena, count, double);
    for (int64_t i = 0; ret && i < count; i++)
        ret[i] = a->held[i] + (i / inner % y->shape.dim[axis] ? ret[i - inner] : 0);
    return ret;
}

/* The upper or lower triangle of the last two dimensions, from diagonal 'k' on. */
double *topt_onnx_fold_trilu(struct onnx *x, const struct onnx_node *n,
                             const struct onnx_value *y)
{
    const struct onnx_value *a = topt_onnx_in(x, n, 0), *k = topt_onnx_in(x, n, 1);
    int64_t count = topt_onnx_elements(&y->shape), shift = k ? whole(k->held[0]) : 0;
    int upper = topt_onnx_int(n, "upper", 1) != 0, last = y->shape.ndim - 1;
    double *ret = last > 0 ? TOPT_NEW(x->arena, count, double) : NULL;
    for (int64_t i = 0; ret && i < count; i++) {
        int64_t col = i % y->shape.dim[last],
                row = i / y->shape.dim[last] % y->shape.dim[last - 1];
        ret[i] = (upper ? col - row >= shift : col - row <= shift) ? a->held[i] : 0;
    }
    return ret;
}

double *topt_onnx_fold_range(struct onnx *x, const struct onnx_node *n,
                             const struct onnx_value *y)
{
    double from = topt_onnx_in(x, n, 0)->held[0], step = topt_onnx_in(x, n, 2)->held[0];
    int64_t count = topt_onnx_elements(&y->shape);
    double *ret = TOPT_NEW(x->arena, count, double);
    for (int64_t i = 0; ret && i < count; i++)
        ret[i] = from + (double)i * step;
    return ret;
}

int topt_onnx_fold(struct onnx *x, const struct onnx_node *n)
{
    struct onnx_value *y = onnx_out(x, n, 0);
    int64_t count = y ? topt_onnx_elements(&y->shape) : 0;
    if (!y || !n->kind->fold || !y->constant || y->held || count > ONNX_MAX_FOLDED ||
        x->folded + count > ONNX_MAX_ALL_FOLDED)
        return 0;
    for (int k = 0; k < n->nin && !n->kind->of_shape; k++)
        if (topt_onnx_in(x, n, k) && !topt_onnx_in(x, n, k)->held)
            return 0; /* weights: only the shape is known */
    x->folded += count;
    y->held = n->kind->fold(x, n, y);
    return 0;
}
