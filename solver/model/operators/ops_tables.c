/* ops_tables.c - rows of the operator table that recommenders are made of: bags of
 * tables' rows, products of every two vectors, and the loss of a yes or no.
 *
 * DLRM (Naumov et al. 2019) is these and linear maps.  Of a large table a step reads few
 * rows, so its gradient has few rows that are not zero; how many follows from the number
 * of lookups and from how even the rows are asked for.
 *
 * Several tables of one width are one operator (FBGEMM's table-batched embedding, torchrec's
 * EmbeddingBagCollection), so that one exchange serves them all.  Which table is a dimension "t" of
 * it as any other: split, it deals whole tables to devices, in even runs of the list; "v" gives
 * each device a share of the rows of every table, "d" columns of all, and the batch leaves them
 * whole or, with owners, a share of every table's rows.  All of these compose: tables over nodes,
 * rows over the devices of one.  The parameter is ragged (struct topt_shape): [t, v, d] where a
 * table has its own number of rows, so that no block has padding, whatever is split. */
#include "ops_extents.h"
#include "ops_rows.h"
#include "tables.h"

/* ---- extents ----------------------------------------------------------------------- */

/* The largest table's rows are what a share of rows is counted in. */
static int shape_bag(struct topt_op *op, struct topt_error *err)
{
    enum { B, S, T, L, VOCAB, D };
    static const int64_t most_rows = INT32_MAX;
    op->count[B] = op->model->batch;
    op->count[S] = op->model->seq;
    op->count[T] = topt_tables_of(op);
    op->count[L] = op->attrs->lookups;
    op->count[D] = op->attrs->features;
    for (int64_t k = 0; k < op->count[T]; k++)
        if (op->attrs->tables[k] > op->count[VOCAB])
            op->count[VOCAB] = op->attrs->tables[k];
    if (op->count[L] < 1 || op->count[VOCAB] < 1 || op->count[D] < 1)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "needs lookups, tables and features of at least 1");
    if (topt_table_heights(op) > (double)most_rows)
        return topt_fail(err, TOPT_ERR_LIMIT, "%.0f rows of all tables, more than %lld",
                         topt_table_heights(op), (long long)most_rows);
    return topt_refuse_density(op, err);
}

static int shape_join_vectors(struct topt_op *op, struct topt_error *err)
{
    enum { D = 3 };
    (void)err;
    topt_counts_from_input(op, 0);
    topt_set_dim(op, 1, 2, op->operand[0].dim[2].unit * op->operand[0].dim[3].unit);
    op->operand[1].dim[2].unit *= op->count[D];
    return 0;
}

static int shape_interact(struct topt_op *op, struct topt_error *err)
{
    enum { N = 2, PAIRS = 6, MORE = 4, ALONE = 3 };
    int64_t vectors = 0;
    topt_counts_from_input(op, 0);
    for (int o = 0; o < MORE; o++) {
        const struct topt_operand *x = &op->operand[o];
        if (o != ALONE)
            op->count[N + o + (o > 0)] = x->present ? x->dim[2].count : 1;
        if (!x->present)
            continue;
        if (topt_refuse_units(op, o, 1, err))
            return -1;
        vectors += o == ALONE ? 1 : x->dim[2].count;
    }
    if (vectors < 2 || vectors > TOPT_MAX_VECTORS)
        return topt_fail(err, TOPT_ERR_INVAL, "takes 2 to %d vectors, not %lld",
                         TOPT_MAX_VECTORS, (long long)vectors);
    op->count[PAIRS] = vectors * (vectors - 1) / 2;
    return 0;
}

static int64_t flops_interact(const struct topt_op *op, enum topt_kernel k,
                              const int64_t *len)
{
    int64_t once = 2 * len[0] * len[1] * op->count[6] * len[3];
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
    /* Of each table the sum of 'lookups' rows, each named by a number of the sample. */
    {.name = "embedding_bag",
     .attrs = A(LOOKUPS) | A(TABLES) | A(FEATURES) | A(INIT_STD) | A(SPARSE) |
              A(DENSITY) | A(DENSITY_OF),
     .ndims = 6,
     .dim = {BATCH,
             SEQ,
             {"t", TOPT_SPLIT_FEATURE},
             {"l", TOPT_SPLIT_NEVER},
             {"v", TOPT_SPLIT_FEATURE},
             FEATURES},
     .noperands = 3,
     .operand = {OPERAND("ids", DATA, IMAGE),
                 OPERAND("w", PARAM, OVER(2, 4, 5), .rows_of = 1, .ragged = 1),
                 OPERAND("y", OUTPUT, OVER(0, 1, 2, 5))},
     .forward = {KERNEL(LOAD, 0, V(0)), KERNEL(EMBEDDING_BAG_FWD, V(0) | V(1), V(2))},
     .backward = {KERNEL(EMBEDDING_BAG_BWD, V(0) | G(2), G(1))},
     .shape = shape_bag,
     .flops = topt_flops_none},
    /* Vectors side by side become features, a count of which is a vector. */
    {.name = "join_vectors",
     .ndims = 4,
     .dim = {BATCH, SEQ, {"t", TOPT_SPLIT_FEATURE}, {"d", TOPT_SPLIT_NEVER}},
     .noperands = 2,
     .operand = {OPERAND("x", INPUT, IMAGE), OPERAND("y", OUTPUT, OVER(0, 1, 2))},
     .forward = {KERNEL(COPY_FWD, V(0), V(1))},
     .backward = {KERNEL(COPY_BWD, G(1), G(0))},
     .shape = shape_join_vectors,
     .flops = topt_flops_none},
    /* Of all vectors, x and then those of x0 to x2, the product of every two, the second before
     * the first: (1,0), (2,0), (2,1), ...  Split in d it is a partial sum. */
    {.name = "interact",
     .ndims = 7,
     .dim = {BATCH,
             SEQ,
             {"n0", TOPT_SPLIT_NEVER},
             FEATURES,
             {"n1", TOPT_SPLIT_NEVER},
             {"n2", TOPT_SPLIT_NEVER},
             {"p", TOPT_SPLIT_NEVER}},
     .noperands = 5,
     .operand = {OPERAND("x0", INPUT, IMAGE),
                 OPERAND("x1", INPUT, OVER(0, 1, 4, 3), .optional = 1),
                 OPERAND("x2", INPUT, OVER(0, 1, 5, 3), .optional = 1),
                 OPERAND("x", INPUT, OVER(0, 1, 3), .optional = 1),
                 OPERAND("y", OUTPUT, OVER(0, 1, 6))},
     .forward = {KERNEL(INTERACT_FWD, V(0) | V(1) | V(2) | V(3), V(4))},
     .backward = {KERNEL(INTERACT_BWD, V(0) | V(1) | V(2) | V(3) | G(4),
                         G(0) | G(1) | G(2) | G(3))},
     .shape = shape_interact,
     .flops = flops_interact},
    /* Cross-entropy of a yes (1) or no (0) whose log odds x is. */
    {.name = "logistic",
     .loss = 1,
     .ndims = 3,
     .dim = {BATCH, SEQ, {"d", TOPT_SPLIT_NEVER}},
     .noperands = 3,
     .operand = {OPERAND("x", INPUT, OVER(0, 1, 2)), OPERAND("labels", DATA, OVER(0, 1)),
                 OPERAND("loss", OUTPUT, OVER(0, 1), .wide = 1)},
     .forward = {KERNEL(LOAD, 0, V(1)), KERNEL(LOGISTIC_FWD, V(0) | V(1), V(2))},
     .backward = {KERNEL(LOGISTIC_BWD, V(0) | V(1), G(0))},
     .shape = shape_logistic,
     .flops = topt_flops_elementwise},
    {.name = NULL},
};
