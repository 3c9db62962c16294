/* ops.c - the table of operators.
 *
 * A row says everything the rest of the program may know about a kind: its dimensions and how
 * each may be split, its operands as projections onto them, and the kernels of forward and
 * backward with the exchanges that belong between them where a dimension is split.  Layouts,
 * collectives, memory and time follow from that alone; the only code beside the rows fills in
 * extents and counts floating-point operations.
 *
 * The rows stand in one file a family: ops_dense.c, ops_attention.c, ops_conv.c,
 * ops_channel.c, ops_resample.c, ops_recurrent.c, ops_moe.c, ops_shape.c.  To add a kind: a row, its kernels in the runtime,
 * its tests. */
#include "ops.h"

#include <string.h>

const char *topt_kernel_name(enum topt_kernel k)
{
    static const char *const name[] = {
#define X(id, text, work) [TOPT_K_##id] = text,
        TOPT_KERNELS(X)
#undef X
    };
    return (unsigned)k < TOPT_KERNEL_COUNT ? name[k] : "unknown";
}

enum topt_work topt_kernel_work(enum topt_kernel k)
{
    static const enum topt_work class_of[] = {
#define X(id, text, work) [TOPT_K_##id] = TOPT_WORK_##work,
        TOPT_KERNELS(X)
#undef X
    };
    return class_of[k];
}

const char *topt_activation_name(enum topt_activation a)
{
    static const char *const name[TOPT_ACT_COUNT] = {
#define X(id, text) [TOPT_ACT_##id] = text,
        TOPT_ACTIVATIONS(X)
#undef X
    };
    return name[a];
}

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
    if (op->attrs.eps <= 0)
        op->attrs.eps = 1e-5;
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

static const struct topt_op_spec *const files[] = {
    topt_ops_dense, topt_ops_attention, topt_ops_conv,    topt_ops_recurrent,
    topt_ops_moe,   topt_ops_shape,     topt_ops_channel, topt_ops_resample};

const struct topt_op_spec *topt_op_spec_at(int i)
{
    for (size_t f = 0; f < sizeof files / sizeof *files; f++)
        for (const struct topt_op_spec *row = files[f]; row->name; row++)
            if (i-- == 0)
                return row;
    return NULL;
}

static int rank_of_first_input(const struct topt_op_spec *row)
{
    for (int o = 0; o < row->noperands; o++)
        if (row->operand[o].role == TOPT_INPUT)
            return row->operand[o].ndim;
    return 0;
}

const struct topt_op_spec *topt_op_spec_find(const char *name, int rank)
{
    const struct topt_op_spec *row, *found = NULL;
    for (int i = 0; (row = topt_op_spec_at(i)); i++) {
        if (strcmp(row->name, name))
            continue;
        if (!rank || rank_of_first_input(row) == rank)
            return row;
        found = found ? found : row;
    }
    return found;
}
