/* ops.c - the table of operators.
 *
 * A row says everything the rest of the program may know about a kind: its dimensions
 * and how each may be split, its operands as projections onto them, and the kernels of
 * forward and backward with the exchanges that belong between them where a dimension
 * is split.  Layouts, collectives, memory and time follow from that alone; the only
 * code beside the rows fills in extents and counts floating-point operations.
 *
 * The rows stand in one file a family: ops_dense.c, ops_attention.c, ops_conv.c,
 * ops_channel.c, ops_resample.c, ops_recurrent.c, ops_moe.c, ops_shape.c, ops_scan.c,
 * ops_mixers.c, ops_tables.c.  What their functions share is in ops_extents.c.  To add a
 * kind: a row, its kernels in the runtime, its tests. */
#include "ops_rows.h"

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

enum topt_kernel topt_kernel_named(const char *name)
{
    int k = 0;
    while (k < TOPT_KERNEL_COUNT &&
           (!name || strcmp(topt_kernel_name((enum topt_kernel)k), name) != 0))
        k++;
    return (enum topt_kernel)k;
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

int64_t topt_touched_numbers(const struct topt_op *op, uint32_t operands,
                             const int64_t *len)
{
    int64_t sum = 0;
    for (int o = 0; o < op->spec->noperands; o++) {
        const struct topt_operand_spec *spec = &op->spec->operand[o];
        int64_t n = (operands >> o & 1) + (operands >> (16 + o) & 1);
        for (int i = 0; n && i < spec->ndim; i++)
            n *= len[spec->dim[i]] * op->operand[o].dim[i].unit;
        sum += n;
    }
    return sum;
}

int64_t topt_written_numbers(const struct topt_op *op, enum topt_kernel k,
                             const int64_t *len)
{
    const struct topt_step *passes[] = {op->spec->forward, op->spec->backward};
    for (int p = 0; p < 2; p++)
        for (const struct topt_step *s = passes[p]; s->kind != TOPT_STEP_END; s++)
            if (s->kind == TOPT_STEP_KERNEL && s->kernel == k)
                return topt_touched_numbers(op, s->writes, len);
    return 0;
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

static const struct topt_op_spec *const files[] = {
    topt_ops_dense, topt_ops_attention, topt_ops_conv,    topt_ops_recurrent,
    topt_ops_moe,   topt_ops_shape,     topt_ops_channel, topt_ops_resample,
    topt_ops_scan,  topt_ops_mixers,    topt_ops_tables};

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
