/* ops_moe.c - rows of the operator table: mixtures of experts.
 *
 * After Shazeer et al. 2017 and GShard (Lepikhin et al. 2020), with a sample as the
 * group that shares an expert's capacity: every expert has the same number of slots
 * for each sample, given out in order of position, so that what is dropped does not
 * depend on how anything is split.
 *
 *     x[b,s,d] --linear--> logits[b,s,e] --route--> g[b,s,e]      weights, 0: not sent there
 *     x, g --dispatch--> [b, e:slots, d] --experts--> [b, e:slots, d] --combine (with g)--> [b,s,d]
 *
 * A tensor of slots has the experts as its middle dimension, in units of the slots of
 * one.  With samples split before the experts and experts within, the moves between
 * are the all-to-alls of expert parallelism.  There is no loss that balances the
 * experts. */
#include "ops_extents.h"
#include "ops_rows.h"

#include <math.h>

/* No expert ever gets a token twice. */
int64_t topt_expert_slots(const struct topt_attrs *a, int64_t seq, int64_t experts)
{
    double share = (double)seq * (double)a->top_k / (double)experts;
    double slots = ceil(a->capacity * share - 1e-9);
    return slots < 1 ? 1 : slots < (double)seq ? (int64_t)slots : seq;
}

/* Slots are by expert in their middle dimension. */
int topt_op_experts(const struct topt_op *op)
{
    int e = -1, has = 0;
    for (int o = 0; o < op->spec->noperands; o++)
        if (op->spec->operand[o].slots)
            e = op->spec->operand[o].dim[1];
    for (int o = 0; o < op->spec->noperands; o++)
        has |= op->spec->operand[o].role == TOPT_PARAM && op->operand[o].present;
    return has ? e : -1;
}

void topt_operand_matrix(const struct topt_op *op, int operand, const int64_t *len,
                         int64_t *ret_rows, int64_t *ret_columns)
{
    const struct topt_operand_spec *x = &op->spec->operand[operand];
    *ret_rows = 0;
    *ret_columns = 1;
    for (int i = 0; i < x->ndim; i++) {
        int64_t size = len[x->dim[i]] * op->operand[operand].dim[i].unit;
        if (x->dim[i] == topt_op_experts(op))
            continue;
        *ret_columns *= *ret_rows ? size : 1;
        *ret_rows = *ret_rows ? *ret_rows : size;
    }
}

static const struct topt_op *producer_of(const struct topt_model *m,
                                         const struct topt_op *op, int input)
{
    return &m->op[topt_input_producer(m, op, input)];
}

/* The operator that gives a tensor its slots by expert; NULL: it has none, or what is asked about is no tensor of
 * the model (-1: an operand that stands in an operator alone). */
static const struct topt_op *dispatch_of(const struct topt_model *m, int tensor)
{
    if (tensor < 0)
        return NULL;
    const struct topt_op *op = &m->op[m->tensor[tensor].producer];
    if (topt_op_experts(op) >= 0)
        op = producer_of(m, op, 0);
    return op->ninputs < 2 || !op->attrs->top_k ||
                   topt_op_split(op, 1) != TOPT_SPLIT_FEATURE
               ? NULL
               : op;
}

int topt_op_gated(const struct topt_op *op)
{
    if (op->spec->forward[0].kernel != TOPT_K_GLU_FWD && !op->attrs->gated)
        return -1;
    for (int x = 0; x < op->spec->noperands; x++)
        if (op->operand[x].role == TOPT_SAVED)
            return x;
    return op->input[0];
}

int topt_is_of_slots(const struct topt_model *m, int tensor)
{
    return dispatch_of(m, tensor) != NULL;
}

double topt_tokens_sent(const struct topt_model *m, int tensor, int64_t places)
{
    const struct topt_op *op = dispatch_of(m, tensor);
    if (!op)
        return 1;
    const struct topt_attrs *route = producer_of(m, op, 1)->attrs;
    double k = (double)op->attrs->top_k, n = (double)places;
    double groups = (double)route->groups, chosen = (double)route->top_groups;
    if (groups > 0) /* places that a token may reach */
        n = n < groups ? fmin(n, chosen) : n * chosen / groups;
    return n * (1 - pow(1 - 1 / n, k)) / k;
}

int64_t topt_model_experts(const struct topt_model *m)
{
    int64_t all = 0;
    for (int i = 0; i < m->nops; i++) {
        int e = topt_op_experts(&m->op[i]);
        all = e < 0 ? all : topt_common_divisor(all, m->op[i].count[e]);
    }
    return all;
}

static int check_routing(struct topt_op *op, int64_t experts, struct topt_error *err)
{
    struct topt_attrs *a = op->attrs;
    a->capacity = a->capacity > 0 ? a->capacity : 1.25;
    if (experts > TOPT_MAX_EXPERTS)
        return topt_fail(err, TOPT_ERR_LIMIT, "%lld experts, more than %d",
                         (long long)experts, TOPT_MAX_EXPERTS);
    return a->top_k >= 1 && a->top_k <= experts
               ? 0
               : topt_fail(err, TOPT_ERR_INVAL, "top_k is %lld, there are %lld experts",
                           (long long)a->top_k, (long long)experts);
}

/* Groups of equally many experts, with enough of them to choose from. */
static int check_groups(struct topt_op *op, int64_t experts, struct topt_error *err)
{
    struct topt_attrs *a = op->attrs;
    if (a->groups == 0)
        a->groups = 1;
    if (a->top_groups == 0)
        a->top_groups = a->groups;
    return a->groups <= experts && experts % a->groups == 0 &&
                   a->top_groups <= a->groups &&
                   a->top_groups * (experts / a->groups) >= a->top_k
               ? 0
               : topt_fail(
                     err, TOPT_ERR_INVAL,
                     "%lld experts in %lld groups, of which %lld are chosen from, do "
                     "not give %lld a token",
                     (long long)experts, (long long)a->groups, (long long)a->top_groups,
                     (long long)a->top_k);
}

static int shape_route(struct topt_op *op, struct topt_error *err)
{
    enum { B, S, E, LOGITS = 0, G, CORRECTION };
    topt_counts_from_input(op, LOGITS);
    op->operand[CORRECTION].present = op->attrs->corrected;
    return topt_refuse_units(op, LOGITS, 1, err) ||
                   check_routing(op, op->count[E], err) ||
                   check_groups(op, op->count[E], err)
               ? -1
               : 0;
}

static int shape_dispatch(struct topt_op *op, struct topt_error *err)
{
    enum { B, E, S, D, X = 0, G, Y };
    topt_counts_from_input(op, X);
    op->count[E] = op->operand[G].dim[2].count;
    if (topt_refuse_units(op, G, 1, err) || check_routing(op, op->count[E], err))
        return -1;
    topt_set_dim(op, Y, 1, topt_expert_slots(op->attrs, op->count[S], op->count[E]));
    topt_set_dim(op, Y, 2, op->operand[X].dim[2].unit);
    return 0;
}

static int shape_combine(struct topt_op *op, struct topt_error *err)
{
    enum { B, E, S, D, Y = 0, G, Z };
    topt_counts_from_input(op, Y);
    op->count[S] = op->operand[G].dim[1].count;
    topt_set_dim(op, Z, 2, op->operand[Y].dim[2].unit);
    return topt_refuse_units(op, G, 1, err);
}

static int shape_experts(struct topt_op *op, struct topt_error *err)
{
    enum { B, E, K, F, N, X = 0, UP, DOWN, Y, H, A, DA, DH };
    const struct topt_attrs *a = op->attrs;
    int64_t slots = op->operand[X].dim[1].unit, pair = a->gated ? 2 : 1;
    if (a->features < 1)
        return topt_fail(err, TOPT_ERR_INVAL, "needs features of at least 1");
    if (a->activation < 0 || a->activation >= TOPT_ACT_COUNT)
        return topt_fail(err, TOPT_ERR_INVAL, "unknown activation %d", a->activation);
    topt_counts_from_input(op, X);
    op->count[F] = a->features;
    op->count[N] = op->count[K];
    int64_t unit = op->operand[X].dim[2].unit;
    topt_set_dim(op, UP, 1, pair);
    topt_set_dim(op, UP, 2, unit);
    topt_set_dim(op, DOWN, 1, unit);
    topt_set_dim(op, Y, 2, unit);
    topt_set_dim(op, H, 2, pair);
    topt_set_dim(op, DH, 2, pair);
    for (int o = Y; o <= DH; o++)
        topt_set_dim(op, o, 1, slots);
    return 0;
}

/* The widest of what is read and written. */
static int64_t flops_routing(const struct topt_op *op, enum topt_kernel k,
                             const int64_t *len)
{
    enum { B, E, S, D };
    (void)k;
    /* one is 1 */
    int64_t slots = op->operand[0].dim[1].unit * op->operand[2].dim[1].unit;
    int64_t unit = op->operand[0].dim[2].unit;
    return 2 * len[B] * (len[S] + len[E] * slots) * len[D] * unit;
}

static int64_t flops_experts(const struct topt_op *op, enum topt_kernel k,
                             const int64_t *len)
{
    enum { B, E, K, F, N, X = 0, H = 4 };
    int64_t rows = len[B] * len[E] * op->operand[X].dim[1].unit;
    int64_t unit = op->operand[X].dim[2].unit, pair = op->operand[H].dim[2].unit;
    switch (k) {
    case TOPT_K_EXPERTS_UP:
    case TOPT_K_EXPERTS_BWD_UP:
    case TOPT_K_EXPERTS_BWD_X:
        return 2 * rows * len[K] * unit * len[F] * pair;
    case TOPT_K_EXPERTS_DOWN:
    case TOPT_K_EXPERTS_BWD_DOWN:
    case TOPT_K_EXPERTS_BWD_A:
        return 2 * rows * len[F] * len[N] * unit;
    default:
        return 8 * rows * len[F] * pair;
    }
}

const struct topt_op_spec topt_ops_moe[] = {
    /* Weights are of a softmax, or sigmoids of the logits.  Chosen are those with the
     * largest logit, or sigmoid plus the correction, within the groups whose two best
     * add up to the most (DeepSeek-AI 2024).  The correction is trained by counting
     * tokens, which nobody does here: its gradient is 0. */
    {.name = "route",
     .attrs = A(TOP_K) | A(CAPACITY) | A(UNNORMALIZED) | A(SIGMOID) | A(CORRECTED) |
              A(GROUPS) | A(TOP_GROUPS) | A(FACTOR),
     .ndims = 3,
     .dim = {BATCH, {"s", TOPT_SPLIT_NEVER}, {"e", TOPT_SPLIT_NEVER}},
     .noperands = 3,
     .operand = {OPERAND("logits", INPUT, OVER(0, 1, 2)),
                 OPERAND("g", OUTPUT, OVER(0, 1, 2)),
                 OPERAND("correction", PARAM, OVER(2), .optional = 1,
                         .start = TOPT_START_ZERO)},
     .forward = {KERNEL(ROUTE_FWD, V(0) | V(2), V(1))},
     .backward = {KERNEL(ROUTE_BWD, V(0) | V(2) | G(1), G(0) | G(2))},
     .shape = shape_route,
     .flops = topt_flops_elementwise},
    {.name = "dispatch",
     .attrs = A(TOP_K) | A(CAPACITY),
     .ndims = 4,
     .dim = {BATCH, {"e", TOPT_SPLIT_FEATURE}, {"s", TOPT_SPLIT_NEVER}, FEATURES},
     .noperands = 3,
     .operand = {OPERAND("x", INPUT, OVER(0, 2, 3)), OPERAND("g", INPUT, OVER(0, 2, 1)),
                 OPERAND("y", OUTPUT, OVER(0, 1, 3))},
     .forward = {KERNEL(DISPATCH_FWD, V(0) | V(1), V(2))},
     .backward = {KERNEL(DISPATCH_BWD, V(1) | G(2), G(0) | G(1))},
     .shape = shape_dispatch,
     .flops = flops_routing},
    {.name = "experts",
     .low = 1,
     .attrs = A(FEATURES) | A(ACT) | A(GATED) | A(INIT_STD),
     .ndims = 5,
     .dim = {BATCH,
             {"e", TOPT_SPLIT_FEATURE},
             {"k", TOPT_SPLIT_STAT},
             {"f", TOPT_SPLIT_FEATURE},
             {"n", TOPT_SPLIT_FEATURE}},
     .noperands = 8,
     .operand = {OPERAND("x", INPUT, OVER(0, 1, 2), .slots = 1),
                 OPERAND("up", PARAM, OVER(1, 3, 2), .start = TOPT_START_FAN_LAST),
                 OPERAND("down", PARAM, OVER(1, 4, 3), .start = TOPT_START_FAN_LAST),
                 OPERAND("y", OUTPUT, OVER(0, 1, 4)), OPERAND("h", SAVED, OVER(0, 1, 3)),
                 OPERAND("a", WORK_FWD, OVER(0, 1, 3)),
                 OPERAND("da", WORK_BWD, OVER(0, 1, 3)),
                 OPERAND("dh", WORK_BWD, OVER(0, 1, 3))},
     .forward = {KERNEL(EXPERTS_UP, V(0) | V(1), V(4)), SUM(4, D(2)),
                 KERNEL(EXPERTS_ACT, V(4), V(5)),
                 KERNEL(EXPERTS_DOWN, V(2) | V(5), V(3))},
     /* 'da' holds the activations first, which the second weights' gradient needs */
     .backward = {KERNEL(EXPERTS_BWD_REMAKE, V(4), V(6)),
                  KERNEL(EXPERTS_BWD_DOWN, V(6) | G(3), G(2)),
                  KERNEL(EXPERTS_BWD_A, V(2) | G(3), V(6)),
                  KERNEL(EXPERTS_BWD_ACT, V(4) | V(6), V(7)),
                  KERNEL(EXPERTS_BWD_UP, V(0) | V(7), G(1)),
                  KERNEL(EXPERTS_BWD_X, V(1) | V(7), G(0))},
     .shape = shape_experts,
     .flops = flops_experts},
    {.name = "combine",
     .ndims = 4,
     .dim = {BATCH, {"e", TOPT_SPLIT_FEATURE}, {"s", TOPT_SPLIT_NEVER}, FEATURES},
     .noperands = 3,
     .operand = {OPERAND("y", INPUT, OVER(0, 1, 3), .slots = 1),
                 OPERAND("g", INPUT, OVER(0, 2, 1)), OPERAND("z", OUTPUT, OVER(0, 2, 3))},
     .forward = {KERNEL(COMBINE_FWD, V(0) | V(1), V(2))},
     .backward = {KERNEL(COMBINE_BWD, V(0) | V(1) | G(2), G(0) | G(1))},
     .shape = shape_combine,
     .flops = flops_routing},
    {.name = NULL},
};
