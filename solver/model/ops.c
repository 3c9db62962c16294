/* ops.c - the table of operators.
 *
 * A row says everything the rest of the program may know about a kind: its dimensions and how
 * each may be split, its operands as projections onto them, and the kernels of forward and
 * backward with the all-reduces that belong between them where a dimension of statistics is
 * split.  Layouts, collectives, memory and time follow from that alone; the only code here
 * fills in extents and counts floating-point operations.
 *
 * To add a kind: a row, its kernels in the runtime, its tests. */
#include "topt_model.h"

#include <string.h>

#define V(o) (1u << (o))        /* a step touches the value of operand o */
#define G(o) (1u << (16 + (o))) /* ... its gradient */
#define KERNEL(k, r, w)                                                                  \
    {                                                                                    \
        .kind = TOPT_STEP_KERNEL, .kernel = TOPT_K_##k, .reads = (r), .writes = (w)      \
    }
#define SUM(o, d)                                                                        \
    {                                                                                    \
        .kind = TOPT_STEP_SUM, .operand = (o), .dim = (d)                                \
    }
#define MAX(o, d)                                                                        \
    {                                                                                    \
        .kind = TOPT_STEP_MAX, .operand = (o), .dim = (d)                                \
    }

const char *topt_kernel_name(enum topt_kernel k)
{
    static const char *const name[] = {
#define X(id, text) [TOPT_K_##id] = text,
        TOPT_KERNELS(X)
#undef X
    };
    return (unsigned)k < TOPT_KERNEL_COUNT ? name[k] : "unknown";
}

static int64_t unit_of(int64_t unit)
{
    return unit > 0 ? unit : 1;
}

/* Set the extent of tensor dimension 'i' of an operand. */
static void set_dim(struct topt_op *op, int operand, int i, int64_t unit)
{
    int d = op->spec->operand[operand].dim[i];
    op->operand[operand].dim[i] = (struct topt_dim){op->count[d], unit};
}

/* Extents of the first input become those of the operator's leading dimensions. */
static void counts_from_input(struct topt_op *op, int operand)
{
    const struct topt_operand_spec *spec = &op->spec->operand[operand];
    for (int i = 0; i < spec->ndim; i++)
        op->count[spec->dim[i]] = op->operand[operand].dim[i].count;
}

static int refuse_units(const struct topt_op *op, int operand, int64_t want,
                        struct topt_error *err)
{
    int last = op->spec->operand[operand].ndim - 1;
    int64_t have = op->operand[operand].dim[last].unit;
    return have == want
               ? 0
               : topt_fail(err, TOPT_ERR_INVAL,
                           "input '%s' has features in groups of %lld, groups of %lld "
                           "are needed",
                           op->spec->operand[operand].name, (long long)have,
                           (long long)want);
}

/* ---- embedding ------------------------------------------------------------------------- */

static int shape_embedding(struct topt_op *op, struct topt_error *err)
{
    enum { B, S, VOCAB, D };
    op->count[B] = op->model->batch;
    op->count[S] = op->model->seq;
    if (op->operand[1].role == TOPT_INPUT) {
        op->count[VOCAB] = op->operand[1].dim[0].count;
        op->count[D] = op->operand[1].dim[1].count;
    } else {
        op->count[VOCAB] = op->attrs.vocab;
        op->count[D] = op->attrs.features;
    }
    if (op->count[VOCAB] < 1 || op->count[D] < 1)
        return topt_fail(err, TOPT_ERR_INVAL, "needs a vocab and features of at least 1");
    op->operand[2].dim[2].unit = 1;
    return 0;
}

static int64_t flops_none(const struct topt_op *op, enum topt_kernel k,
                          const int64_t *len)
{
    (void)op, (void)k, (void)len;
    return 0;
}

/* ---- linear ---------------------------------------------------------------------------- */

static int shape_linear(struct topt_op *op, struct topt_error *err)
{
    enum { B, S, K, N };
    counts_from_input(op, 0);
    int64_t k_unit = op->operand[0].dim[2].unit,
            n_unit = unit_of(op->attrs.features_unit);
    if (op->operand[1].role == TOPT_INPUT) {
        const struct topt_dim *w = op->operand[1].dim;
        if (w[1].count != op->count[K] || w[1].unit != k_unit)
            return topt_fail(
                err, TOPT_ERR_INVAL, "weight tensor has %lld inputs, x has %lld features",
                (long long)(w[1].count * w[1].unit), (long long)(op->count[K] * k_unit));
        op->count[N] = w[0].count;
        n_unit = w[0].unit;
    } else {
        if (op->attrs.features < 1)
            return topt_fail(err, TOPT_ERR_INVAL, "needs features of at least 1");
        op->count[N] = op->attrs.features;
        set_dim(op, 1, 0, n_unit);
        set_dim(op, 1, 1, k_unit);
    }
    set_dim(op, 2, 2, n_unit);
    return 0;
}

static int64_t flops_linear(const struct topt_op *op, enum topt_kernel k,
                            const int64_t *len)
{
    if (k == TOPT_K_LOAD)
        return 0;
    int64_t inner = op->operand[0].dim[2].unit, outer = op->operand[2].dim[2].unit;
    return 2 * len[0] * len[1] * len[2] * inner * len[3] * outer;
}

/* ---- elementwise ----------------------------------------------------------------------- */

static int shape_same(struct topt_op *op, struct topt_error *err)
{
    counts_from_input(op, 0);
    int64_t unit = op->operand[0].dim[2].unit;
    for (int i = 1; i < op->ninputs; i++)
        if (refuse_units(op, op->input[i], unit, err))
            return -1;
    for (int o = 0; o < op->spec->noperands; o++) {
        const struct topt_operand_spec *spec = &op->spec->operand[o];
        if (spec->role == TOPT_OUTPUT || spec->role == TOPT_PARAM)
            set_dim(op, o, spec->ndim - 1, unit);
    }
    return 0;
}

static int shape_unary(struct topt_op *op, struct topt_error *err)
{
    if (op->attrs.activation < TOPT_ACT_RELU || op->attrs.activation > TOPT_ACT_TANH)
        return topt_fail(err, TOPT_ERR_INVAL, "unknown activation %d",
                         op->attrs.activation);
    return shape_same(op, err);
}

static int shape_swiglu(struct topt_op *op, struct topt_error *err)
{
    counts_from_input(op, 0);
    if (refuse_units(op, 0, 2, err))
        return -1;
    set_dim(op, 1, 2, 1);
    return 0;
}

/* Operations an element of the widest operand; small beside what memory costs. */
static int64_t flops_elementwise(const struct topt_op *op, enum topt_kernel k,
                                 const int64_t *len)
{
    (void)k;
    return 8 * len[0] * len[1] * len[2] * op->operand[op->output].dim[2].unit;
}

/* ---- norm ------------------------------------------------------------------------------ */

static int shape_norm(struct topt_op *op, struct topt_error *err)
{
    op->operand[2].present = !op->attrs.rms;
    if (op->attrs.eps <= 0)
        op->attrs.eps = 1e-5;
    return shape_same(op, err);
}

/* ---- attention ------------------------------------------------------------------------- */

static int shape_attention(struct topt_op *op, struct topt_error *err)
{
    struct topt_attrs *a = &op->attrs;
    if (a->kv_heads == 0)
        a->kv_heads = a->heads;
    if (a->heads < 1 || a->kv_heads < 1 || a->head_dim < 1 || a->heads % a->kv_heads)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "heads %lld, kv_heads %lld, head_dim %lld do not fit together",
                         (long long)a->heads, (long long)a->kv_heads,
                         (long long)a->head_dim);
    if (a->rope_theta > 0 && a->head_dim % 2)
        return topt_fail(err, TOPT_ERR_INVAL, "rotary embedding needs an even head_dim");
    counts_from_input(op, 0);
    if (op->count[2] > 1 << 22)
        return topt_fail(err, TOPT_ERR_LIMIT, "attention over more than 2^22 positions");
    int64_t q = a->heads / a->kv_heads;
    if (op->count[1] != a->kv_heads)
        return topt_fail(err, TOPT_ERR_INVAL, "input has %lld key-value heads, not %lld",
                         (long long)op->count[1], (long long)a->kv_heads);
    if (refuse_units(op, 0, (q + 2) * a->head_dim, err))
        return -1;
    set_dim(op, 1, 2, q * a->head_dim);
    set_dim(op, 2, 2, q);
    return 0;
}

/* Scores and weighted sum forward; backward does both again and three more products. */
static int64_t flops_attention(const struct topt_op *op, enum topt_kernel k,
                               const int64_t *len)
{
    int64_t q = op->attrs.heads / op->attrs.kv_heads;
    int64_t product = 2 * len[0] * len[1] * q * len[2] * len[2] * op->attrs.head_dim;
    int64_t products = k == TOPT_K_ATTENTION_FWD ? 2 : 5;
    return op->attrs.causal ? products * product / 2 : products * product;
}

/* ---- loss and variable ----------------------------------------------------------------- */

static int shape_cross_entropy(struct topt_op *op, struct topt_error *err)
{
    counts_from_input(op, 0);
    return refuse_units(op, 0, 1, err);
}

static int64_t flops_cross_entropy(const struct topt_op *op, enum topt_kernel k,
                                   const int64_t *len)
{
    (void)op, (void)k;
    return 4 * len[0] * len[1] * len[2];
}

static int shape_variable(struct topt_op *op, struct topt_error *err)
{
    if (op->attrs.vocab < 1 || op->attrs.features < 1)
        return topt_fail(err, TOPT_ERR_INVAL, "needs vocab and features of at least 1");
    op->count[0] = op->attrs.vocab;
    op->count[1] = op->attrs.features;
    return 0;
}

static int64_t flops_variable(const struct topt_op *op, enum topt_kernel k,
                              const int64_t *len)
{
    (void)op, (void)k;
    return len[0] * len[1];
}

/* ---- the table ------------------------------------------------------------------------- */

#define BATCH                                                                            \
    {                                                                                    \
        "b", TOPT_SPLIT_BATCH                                                            \
    }
#define SEQ                                                                              \
    {                                                                                    \
        "s", TOPT_SPLIT_SEQUENCE                                                         \
    }

static const struct topt_op_spec table[] = {
    {.name = "embedding",
     .ndims = 4,
     .dim = {BATCH, SEQ, {"v", TOPT_SPLIT_FEATURE}, {"d", TOPT_SPLIT_FEATURE}},
     .noperands = 3,
     .operand =
         {{.name = "ids", .role = TOPT_DATA, .ndim = 2, .dim = {0, 1}},
          {.name = "w", .role = TOPT_PARAM, .ndim = 2, .dim = {2, 3}, .tensor_ok = 1},
          {.name = "y", .role = TOPT_OUTPUT, .ndim = 3, .dim = {0, 1, 3}}},
     .forward = {KERNEL(LOAD, 0, V(0)), KERNEL(EMBEDDING_FWD, V(0) | V(1), V(2))},
     .backward = {KERNEL(EMBEDDING_BWD, V(0) | G(2), G(1))},
     .shape = shape_embedding,
     .flops = flops_none},
    {.name = "linear",
     .ndims = 4,
     .dim = {BATCH, SEQ, {"k", TOPT_SPLIT_FEATURE}, {"n", TOPT_SPLIT_FEATURE}},
     .noperands = 3,
     .operand =
         {{.name = "x", .role = TOPT_INPUT, .ndim = 3, .dim = {0, 1, 2}, .needed = 1},
          {.name = "w",
           .role = TOPT_PARAM,
           .ndim = 2,
           .dim = {3, 2},
           .needed = 1,
           .tensor_ok = 1},
          {.name = "y", .role = TOPT_OUTPUT, .ndim = 3, .dim = {0, 1, 3}}},
     .forward = {KERNEL(LINEAR_FWD, V(0) | V(1), V(2))},
     .backward = {KERNEL(LINEAR_BWD_W, V(0) | G(2), G(1)),
                  KERNEL(LINEAR_BWD_X, V(1) | G(2), G(0))},
     .shape = shape_linear,
     .flops = flops_linear},
    {.name = "bias",
     .ndims = 3,
     .dim = {BATCH, SEQ, {"n", TOPT_SPLIT_FEATURE}},
     .noperands = 3,
     .operand = {{.name = "x", .role = TOPT_INPUT, .ndim = 3, .dim = {0, 1, 2}},
                 {.name = "b", .role = TOPT_PARAM, .ndim = 1, .dim = {2}},
                 {.name = "y", .role = TOPT_OUTPUT, .ndim = 3, .dim = {0, 1, 2}}},
     .forward = {KERNEL(BIAS_FWD, V(0) | V(1), V(2))},
     .backward = {KERNEL(BIAS_BWD, G(2), G(0) | G(1))},
     .shape = shape_same,
     .flops = flops_elementwise},
    {.name = "position",
     .ndims = 3,
     .dim = {BATCH, SEQ, {"d", TOPT_SPLIT_FEATURE}},
     .noperands = 3,
     .operand = {{.name = "x", .role = TOPT_INPUT, .ndim = 3, .dim = {0, 1, 2}},
                 {.name = "p", .role = TOPT_PARAM, .ndim = 2, .dim = {1, 2}},
                 {.name = "y", .role = TOPT_OUTPUT, .ndim = 3, .dim = {0, 1, 2}}},
     .forward = {KERNEL(POSITION_FWD, V(0) | V(1), V(2))},
     .backward = {KERNEL(POSITION_BWD, G(2), G(0) | G(1))},
     .shape = shape_same,
     .flops = flops_elementwise},
    {.name = "unary",
     .ndims = 3,
     .dim = {BATCH, SEQ, {"d", TOPT_SPLIT_FEATURE}},
     .noperands = 2,
     .operand =
         {{.name = "x", .role = TOPT_INPUT, .ndim = 3, .dim = {0, 1, 2}, .needed = 1},
          {.name = "y", .role = TOPT_OUTPUT, .ndim = 3, .dim = {0, 1, 2}}},
     .forward = {KERNEL(UNARY_FWD, V(0), V(1))},
     .backward = {KERNEL(UNARY_BWD, V(0) | G(1), G(0))},
     .shape = shape_unary,
     .flops = flops_elementwise},
    {.name = "swiglu",
     .ndims = 3,
     .dim = {BATCH, SEQ, {"f", TOPT_SPLIT_FEATURE}},
     .noperands = 2,
     .operand =
         {{.name = "x", .role = TOPT_INPUT, .ndim = 3, .dim = {0, 1, 2}, .needed = 1},
          {.name = "y", .role = TOPT_OUTPUT, .ndim = 3, .dim = {0, 1, 2}}},
     .forward = {KERNEL(SWIGLU_FWD, V(0), V(1))},
     .backward = {KERNEL(SWIGLU_BWD, V(0) | G(1), G(0))},
     .shape = shape_swiglu,
     .flops = flops_elementwise},
    {.name = "add",
     .ndims = 3,
     .dim = {BATCH, SEQ, {"d", TOPT_SPLIT_FEATURE}},
     .noperands = 3,
     .operand = {{.name = "a", .role = TOPT_INPUT, .ndim = 3, .dim = {0, 1, 2}},
                 {.name = "b", .role = TOPT_INPUT, .ndim = 3, .dim = {0, 1, 2}},
                 {.name = "y", .role = TOPT_OUTPUT, .ndim = 3, .dim = {0, 1, 2}}},
     .forward = {KERNEL(ADD_FWD, V(0) | V(1), V(2))},
     .backward = {KERNEL(ADD_BWD, G(2), G(0) | G(1))},
     .shape = shape_same,
     .flops = flops_elementwise},
    {.name = "mul",
     .ndims = 3,
     .dim = {BATCH, SEQ, {"d", TOPT_SPLIT_FEATURE}},
     .noperands = 3,
     .operand =
         {{.name = "a", .role = TOPT_INPUT, .ndim = 3, .dim = {0, 1, 2}, .needed = 1},
          {.name = "b", .role = TOPT_INPUT, .ndim = 3, .dim = {0, 1, 2}, .needed = 1},
          {.name = "y", .role = TOPT_OUTPUT, .ndim = 3, .dim = {0, 1, 2}}},
     .forward = {KERNEL(MUL_FWD, V(0) | V(1), V(2))},
     .backward = {KERNEL(MUL_BWD, V(0) | V(1) | G(2), G(0) | G(1))},
     .shape = shape_same,
     .flops = flops_elementwise},
    {.name = "norm",
     .ndims = 3,
     .dim = {BATCH, SEQ, {"d", TOPT_SPLIT_STAT}},
     .noperands = 8,
     .operand =
         {{.name = "x", .role = TOPT_INPUT, .ndim = 3, .dim = {0, 1, 2}, .needed = 1},
          {.name = "g", .role = TOPT_PARAM, .ndim = 1, .dim = {2}},
          {.name = "bias", .role = TOPT_PARAM, .ndim = 1, .dim = {2}, .optional = 1},
          {.name = "y", .role = TOPT_OUTPUT, .ndim = 3, .dim = {0, 1, 2}},
          {.name = "mean", .role = TOPT_SAVED, .ndim = 2, .dim = {0, 1}},
          {.name = "var", .role = TOPT_SAVED, .ndim = 2, .dim = {0, 1}},
          {.name = "s1", .role = TOPT_WORK_BWD, .ndim = 2, .dim = {0, 1}},
          {.name = "s2", .role = TOPT_WORK_BWD, .ndim = 2, .dim = {0, 1}}},
     .forward = {KERNEL(NORM_MEAN, V(0), V(4)), SUM(4, 2),
                 KERNEL(NORM_VAR, V(0) | V(4), V(5)), SUM(5, 2),
                 KERNEL(NORM_APPLY, V(0) | V(1) | V(2) | V(4) | V(5), V(3))},
     .backward = {KERNEL(NORM_BWD_SUM, V(0) | V(1) | V(4) | V(5) | G(3),
                         G(1) | G(2) | V(6) | V(7)),
                  SUM(6, 2), SUM(7, 2),
                  KERNEL(NORM_BWD_APPLY, V(0) | V(1) | V(4) | V(5) | V(6) | V(7) | G(3),
                         G(0))},
     .shape = shape_norm,
     .flops = flops_elementwise},
    {.name = "attention",
     .ndims = 3,
     .dim = {BATCH, {"h", TOPT_SPLIT_FEATURE}, {"s", TOPT_SPLIT_NEVER}},
     .noperands = 6,
     .operand =
         {{.name = "qkv", .role = TOPT_INPUT, .ndim = 3, .dim = {0, 2, 1}, .needed = 1},
          {.name = "y", .role = TOPT_OUTPUT, .ndim = 3, .dim = {0, 2, 1}},
          {.name = "lse", .role = TOPT_SAVED, .ndim = 3, .dim = {0, 2, 1}},
          {.name = "scores", .role = TOPT_WORK_FWD, .ndim = 2, .dim = {2, 2}},
          {.name = "p", .role = TOPT_WORK_BWD, .ndim = 2, .dim = {2, 2}},
          {.name = "dp", .role = TOPT_WORK_BWD, .ndim = 2, .dim = {2, 2}}},
     .forward = {KERNEL(ATTENTION_FWD, V(0) | V(3), V(1) | V(2))},
     .backward = {KERNEL(ATTENTION_BWD, V(0) | V(2) | V(4) | V(5) | G(1), G(0))},
     .shape = shape_attention,
     .flops = flops_attention},
    {.name = "cross_entropy",
     .ndims = 3,
     .dim = {BATCH, SEQ, {"v", TOPT_SPLIT_STAT}},
     .noperands = 6,
     .operand = {{.name = "logits",
                  .role = TOPT_INPUT,
                  .ndim = 3,
                  .dim = {0, 1, 2},
                  .needed = 1},
                 {.name = "labels", .role = TOPT_DATA, .ndim = 2, .dim = {0, 1}},
                 {.name = "loss", .role = TOPT_OUTPUT, .ndim = 2, .dim = {0, 1}},
                 {.name = "max", .role = TOPT_SAVED, .ndim = 2, .dim = {0, 1}},
                 {.name = "sum", .role = TOPT_SAVED, .ndim = 2, .dim = {0, 1}},
                 {.name = "target", .role = TOPT_WORK_FWD, .ndim = 2, .dim = {0, 1}}},
     .forward = {KERNEL(LOAD, 0, V(1)), KERNEL(XENT_MAX, V(0), V(3)), MAX(3, 2),
                 KERNEL(XENT_SUM, V(0) | V(1) | V(3), V(4) | V(5)), SUM(4, 2), SUM(5, 2),
                 KERNEL(XENT_LOSS, V(3) | V(4) | V(5), V(2))},
     .backward = {KERNEL(XENT_BWD, V(0) | V(1) | V(3) | V(4), G(0))},
     .shape = shape_cross_entropy,
     .flops = flops_cross_entropy},
    {.name = "variable",
     .ndims = 2,
     .dim = {{"v", TOPT_SPLIT_FEATURE}, {"d", TOPT_SPLIT_FEATURE}},
     .noperands = 2,
     .operand = {{.name = "w", .role = TOPT_PARAM, .ndim = 2, .dim = {0, 1}},
                 {.name = "y", .role = TOPT_OUTPUT, .ndim = 2, .dim = {0, 1}}},
     .forward = {KERNEL(VARIABLE_FWD, V(0), V(1))},
     .backward = {KERNEL(VARIABLE_BWD, G(1), G(0))},
     .shape = shape_variable,
     .flops = flops_variable},
};

const struct topt_op_spec *topt_op_spec_at(int i)
{
    return i >= 0 && i < (int)(sizeof table / sizeof *table) ? &table[i] : NULL;
}

const struct topt_op_spec *topt_op_spec_find(const char *name)
{
    for (int i = 0; topt_op_spec_at(i); i++)
        if (!strcmp(table[i].name, name))
            return &table[i];
    return NULL;
}
