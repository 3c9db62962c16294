/* ops_extents.c - what the rows' functions share: extents that follow from the first
 * input's, and operations that follow from the output's. */
#include "ops_extents.h"

void topt_set_dim(struct topt_op *op, int operand, int i, int64_t unit)
{
    int d = op->spec->operand[operand].dim[i];
    op->operand[operand].dim[i] = (struct topt_dim){op->count[d], unit};
}

void topt_counts_from_input(struct topt_op *op, int operand)
{
    const struct topt_operand_spec *spec = &op->spec->operand[operand];
    for (int i = 0; i < spec->ndim; i++)
        op->count[spec->dim[i]] = op->operand[operand].dim[i].count;
}

static int refuse_unit(const struct topt_op *op, int operand, int i, int64_t want,
                       struct topt_error *err)
{
    int64_t have = op->operand[operand].dim[i].unit;
    return have == want
               ? 0
               : topt_fail(err, TOPT_ERR_INVAL,
                           "input '%s' has features in groups of %lld, groups of %lld "
                           "are needed",
                           op->spec->operand[operand].name, (long long)have,
                           (long long)want);
}

int topt_refuse_units(const struct topt_op *op, int operand, int64_t want,
                      struct topt_error *err)
{
    return refuse_unit(op, operand, op->spec->operand[operand].ndim - 1, want, err);
}

/* Numbers of one count of an operator's dimension in the first input. */
static int64_t unit_of(const struct topt_op *op, int d)
{
    const struct topt_operand_spec *x = &op->spec->operand[0];
    for (int i = 0; i < x->ndim; i++)
        if (x->dim[i] == d)
            return op->operand[0].dim[i].unit;
    return 1;
}

int topt_shape_same(struct topt_op *op, struct topt_error *err)
{
    topt_counts_from_input(op, 0);
    for (int o = 1; o < op->spec->noperands; o++) {
        const struct topt_operand_spec *spec = &op->spec->operand[o];
        for (int i = 0; i < spec->ndim; i++) {
            int64_t unit = unit_of(op, spec->dim[i]);
            if (op->operand[o].role != TOPT_INPUT)
                topt_set_dim(op, o, i, unit);
            else if (refuse_unit(op, o, i, unit, err))
                return -1;
        }
    }
    return 0;
}

int topt_shape_normed(struct topt_op *op, struct topt_error *err)
{
    if (op->attrs->eps <= 0)
        op->attrs->eps = 1e-5;
    return topt_shape_same(op, err);
}

int64_t topt_flops_none(const struct topt_op *op, enum topt_kernel k, const int64_t *len)
{
    (void)op, (void)k, (void)len;
    return 0;
}

int64_t topt_output_numbers(const struct topt_op *op, const int64_t *len)
{
    const struct topt_operand_spec *y = &op->spec->operand[op->output];
    int64_t n = 1;
    for (int i = 0; i < y->ndim; i++)
        n *= len[y->dim[i]] * op->operand[op->output].dim[i].unit;
    return n;
}

int64_t topt_flops_elementwise(const struct topt_op *op, enum topt_kernel k,
                               const int64_t *len)
{
    (void)k;
    return 8 * topt_output_numbers(op, len);
}

int topt_refuse_activation(const struct topt_op *op, struct topt_error *err)
{
    int a = op->attrs->activation;
    return a >= 0 && a < TOPT_ACT_COUNT
               ? 0
               : topt_fail(err, TOPT_ERR_INVAL, "unknown activation %d", a);
}

int topt_shape_unary(struct topt_op *op, struct topt_error *err)
{
    return topt_refuse_activation(op, err) ? -1 : topt_shape_same(op, err);
}

/* The last dimension of the operator is the one that the weights have in place of
 * others. */
int topt_shape_weigh(struct topt_op *op, struct topt_error *err)
{
    op->count[op->spec->ndims - 1] = 1;
    return topt_shape_same(op, err);
}
