/* ops_tables.c - rows of the operator table that recommenders are made of: bags of a
 * table's rows, products of every two vectors, and the loss of a yes or no; and how many
 * different rows of a table a batch names.
 *
 * DLRM (Naumov et al. 2019) is these and linear maps.  Of a large table a step reads few
 * rows, so its gradient has few rows that are not zero; how many follows from the number
 * of lookups and from how even the rows are asked for. */
#include "ops_extents.h"
#include "ops_rows.h"
#include "ops_tables.h"

#include <math.h>

/* ---- how many rows ----------------------------------------------------------------- */

int topt_table_sparse(const struct topt_op *op)
{
    for (int o = 0; op->attrs.sparse && o < op->spec->noperands; o++)
        if (op->spec->operand[o].rows_of && topt_is_trained(op, o))
            return o;
    return -1;
}

int topt_table_ids(const struct topt_op *op)
{
    for (int o = 0; o < op->spec->noperands; o++)
        if (op->spec->operand[o].rows_of)
            return op->spec->operand[o].rows_of - 1;
    return -1;
}

int topt_model_has_tables(const struct topt_model *m)
{
    for (int i = 0; i < m->nops; i++)
        if (topt_table_sparse(&m->op[i]) >= 0)
            return 1;
    return 0;
}

static double numbers_of(const struct topt_op *op, int operand)
{
    double n = 1;
    for (int i = 0; i < op->spec->operand[operand].ndim; i++)
        n *= (double)op->operand[operand].dim[i].count;
    return n;
}

double topt_table_lookups(const struct topt_op *op)
{
    int ids = topt_table_ids(op);
    return ids < 0 ? 0 : numbers_of(op, ids);
}

/* Of 'rows' rows, each as likely, so many are named. */
static double named(double rows, double lookups)
{
    return rows > 1 ? -rows * expm1(lookups * log1p(-1 / rows)) : rows;
}

static double table_rows(const struct topt_op *op)
{
    for (int o = 0; o < op->spec->noperands; o++)
        if (op->spec->operand[o].rows_of)
            return (double)op->count[op->spec->operand[o].dim[0]];
    return 0;
}

/* Rows that give the density if each is as likely; the number rises with them. */
static double likely_rows(const struct topt_op *op)
{
    double all = table_rows(op), want = op->attrs.density * all;
    double lookups = (double)op->attrs.density_of, low = want, high = 1e15;
    if (!(op->attrs.density > 0))
        return all;
    for (int i = 0; i < 200 && high - low > 1e-9 * high; i++) {
        double middle = sqrt(low * high);
        if (named(middle, lookups) < want)
            low = middle;
        else
            high = middle;
    }
    return high;
}

double topt_table_rows(const struct topt_op *op, double lookups)
{
    double all = table_rows(op), n = named(likely_rows(op), lookups);
    n = n < all ? n : all;
    return n < lookups ? n : lookups;
}

int topt_refuse_density(const struct topt_op *op, struct topt_error *err)
{
    double d = op->attrs.density, rows = table_rows(op);
    if (!op->attrs.sparse && (d > 0 || op->attrs.density_of))
        return topt_fail(err, TOPT_ERR_INVAL,
                         "density is said of tables that are sparse");
    if (op->attrs.sparse && op->operand[1].role == TOPT_INPUT)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "a table that is another operator's tensor can't be sparse: its "
                         "other readers give every row a gradient");
    if ((d > 0) != (op->attrs.density_of > 0))
        return topt_fail(err, TOPT_ERR_INVAL,
                         "density and density_of, the lookups that have it, go together");
    if (d > 1 || d * rows > (double)op->attrs.density_of)
        return topt_fail(err, TOPT_ERR_INVAL, "%lld lookups can't name %g of %.0f rows",
                         (long long)op->attrs.density_of, d, rows);
    return 0;
}

/* ---- extents ----------------------------------------------------------------------- */

static int shape_bag(struct topt_op *op, struct topt_error *err)
{
    enum { B, S, L, VOCAB, D };
    op->count[B] = op->model->batch;
    op->count[S] = op->model->seq;
    op->count[L] = op->attrs.lookups;
    op->count[VOCAB] = op->attrs.vocab;
    op->count[D] = op->attrs.features;
    if (op->count[L] < 1 || op->count[VOCAB] < 1 || op->count[D] < 1)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "needs lookups, a vocab and features of at least 1");
    return topt_refuse_density(op, err);
}

static int shape_interact(struct topt_op *op, struct topt_error *err)
{
    enum { PAIRS = 3 };
    int64_t width = op->attrs.features, numbers;
    topt_counts_from_input(op, 0);
    if (topt_refuse_units(op, 0, 1, err))
        return -1;
    numbers = op->operand[0].dim[2].count;
    if (width < 1 || numbers % width || numbers / width < 2)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "%lld numbers are no two or more vectors of %lld",
                         (long long)numbers, (long long)width);
    op->count[PAIRS] = numbers / width * (numbers / width - 1) / 2;
    return 0;
}

static int64_t flops_interact(const struct topt_op *op, enum topt_kernel k,
                              const int64_t *len)
{
    int64_t once = 2 * len[0] * len[1] * op->count[3] * op->attrs.features;
    return k == TOPT_K_INTERACT_BWD ? 2 * once : once;
}

static int shape_logistic(struct topt_op *op, struct topt_error *err)
{
    topt_counts_from_input(op, 0);
    const struct topt_dim *x = &op->operand[0].dim[2];
    return x->count * x->unit == 1
               ? 0
               : topt_fail(err, TOPT_ERR_INVAL, "takes one number a position, not %lld",
                           (long long)(x->count * x->unit));
}

/* ---- rows -------------------------------------------------------------------------- */

const struct topt_op_spec topt_ops_tables[] = {
    /* The sum of 'lookups' rows, each named by a number of the sample. */
    {.name = "embedding_bag",
     .attrs = A(LOOKUPS) | A(VOCAB) | A(FEATURES) | A(INIT_STD) | A(SPARSE) | A(DENSITY) |
              A(DENSITY_OF),
     .ndims = 5,
     .dim = {BATCH,
             SEQ,
             {"l", TOPT_SPLIT_NEVER},
             {"v", TOPT_SPLIT_FEATURE},
             {"d", TOPT_SPLIT_FEATURE}},
     .noperands = 3,
     .operand =
         {{.name = "ids", .role = TOPT_DATA, .ndim = 3, .dim = {0, 1, 2}},
          {.name = "w", .role = TOPT_PARAM, .ndim = 2, .dim = {3, 4}, .rows_of = 1},
          {.name = "y", .role = TOPT_OUTPUT, .ndim = 3, .dim = {0, 1, 4}}},
     .forward = {KERNEL(LOAD, 0, V(0)), KERNEL(EMBEDDING_BAG_FWD, V(0) | V(1), V(2))},
     .backward = {KERNEL(EMBEDDING_BAG_BWD, V(0) | G(2), G(1))},
     .shape = shape_bag,
     .flops = topt_flops_none},
    /* x is vectors of 'features' numbers, one after the other; y the product of every
     * two, the second before the first: (1,0), (2,0), (2,1), ... */
    {.name = "interact",
     .attrs = A(FEATURES),
     .ndims = 4,
     .dim = {BATCH, SEQ, {"d", TOPT_SPLIT_NEVER}, {"p", TOPT_SPLIT_NEVER}},
     .noperands = 2,
     .operand = {{.name = "x", .role = TOPT_INPUT, .ndim = 3, .dim = {0, 1, 2}},
                 {.name = "y", .role = TOPT_OUTPUT, .ndim = 3, .dim = {0, 1, 3}}},
     .forward = {KERNEL(INTERACT_FWD, V(0), V(1))},
     .backward = {KERNEL(INTERACT_BWD, V(0) | G(1), G(0))},
     .shape = shape_interact,
     .flops = flops_interact},
    /* Cross-entropy of a yes (1) or no (0) whose log odds x is. */
    {.name = "logistic",
     .loss = 1,
     .ndims = 3,
     .dim = {BATCH, SEQ, {"d", TOPT_SPLIT_NEVER}},
     .noperands = 3,
     .operand = {{.name = "x", .role = TOPT_INPUT, .ndim = 3, .dim = {0, 1, 2}},
                 {.name = "labels", .role = TOPT_DATA, .ndim = 2, .dim = {0, 1}},
                 {.name = "loss", .role = TOPT_OUTPUT, .ndim = 2, .dim = {0, 1}}},
     .forward = {KERNEL(LOAD, 0, V(1)), KERNEL(LOGISTIC_FWD, V(0) | V(1), V(2))},
     .backward = {KERNEL(LOGISTIC_BWD, V(0) | V(1), G(0))},
     .shape = shape_logistic,
     .flops = topt_flops_elementwise},
    {.name = NULL},
};
