/* tensor_map.c - the rules of a framework's tensor parallelism applied to a model.
 *
 * Between a column and the next row features are split, and operators in between (activations,
 * rotations, attention, biases) follow what they read.  Everywhere else a tensor is whole, or split by
 * positions with sequence parallelism.  So a role is needed only of operators with matrices; a
 * model where one has none is refused. */
#include "topt_lower.h"
#include "topt_tensor.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct mapper {
    const struct topt_model *m;
    struct topt_tensor_map *map;
    uint8_t *split; /* by tensor: its features are */
    uint8_t *slots; /* ... or it holds tokens by expert */
    /* what its consumers want: a dimension of it or -1, or UNSEEN, MIXED */
    int8_t *wanted;
    uint8_t *whole; /* all of them want it whole */
};

static void refuse(struct mapper *x, const char *fmt, ...) TOPT_PRINTF(2, 3);

/* The first reason stays. */
static void refuse(struct mapper *x, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    if (!x->map->refused[0])
        vsnprintf(x->map->refused, sizeof x->map->refused, fmt, ap);
    va_end(ap);
}

/* ---- operators ------------------------------------------------------------------------- */

static int rank_of(const struct topt_op *op, int operand)
{
    return op->spec->operand[operand].ndim;
}

static int last_dim(const struct topt_op *op, int operand)
{
    return op->spec->operand[operand].dim[rank_of(op, operand) - 1];
}

static int has_dim(const struct topt_op *op, int operand, int d)
{
    for (int i = 0; i < rank_of(op, operand); i++)
        if (op->spec->operand[operand].dim[i] == d)
            return 1;
    return 0;
}

/* Is there a matrix of its own, which a role has to be known of? */
static int has_matrix(const struct topt_op *op)
{
    for (int o = 0; o < op->spec->noperands; o++) {
        const struct topt_operand_spec *spec = &op->spec->operand[o];
        if (spec->role == TOPT_PARAM && spec->ndim > 1 && op->operand[o].present)
            return 1;
    }
    return 0;
}

/* Positions of the output, where they may be split; -1: they are not, or it has none. */
static int positions_of(const struct mapper *x, const struct topt_op *op)
{
    for (int i = 0; x->map->positions && i < rank_of(op, op->output); i++) {
        int d = op->spec->operand[op->output].dim[i];
        if (topt_op_split(op, d) == TOPT_SPLIT_SEQUENCE)
            return d;
    }
    return -1;
}

/* Rows of a table: of an embedding's own, or of one that operators share. */
static int rows_of(const struct topt_op *op)
{
    for (int o = 0; o < op->spec->noperands; o++)
        if (op->spec->operand[o].rows_of)
            return op->spec->operand[o].dim[0];
    return op->spec->operand[op->output].dim[0];
}

/* The dimension inside of each expert, which parameters have and no input or output; -1: none. */
static int inner_of(const struct topt_op *op)
{
    for (int d = 0; d < op->spec->ndims; d++)
        if (!has_dim(op, op->input[0], d) && !has_dim(op, op->output, d))
            return d;
    return -1;
}

static int reads_split(const struct mapper *x, const struct topt_op *op)
{
    for (int k = 0; k < op->ninputs; k++)
        if (x->split[topt_input_tensor(op, k)])
            return op->input[k];
    return -1;
}

/* Operators without a matrix between a column and a row: their features are those they read, heads
 * in attention. */
static int follow(struct mapper *x, const struct topt_op *op, int operand)
{
    int out = op->output, d = last_dim(op, rank_of(op, out) > 2 ? out : operand);
    enum topt_split split = topt_op_split(op, d);
    if (split == TOPT_SPLIT_STAT && !op->spec->loss)
        refuse(
            x,
            "'%s' normalises over all features of a tensor whose features %s would split",
            op->name, x->map->rules->title);
    else if (split == TOPT_SPLIT_NEVER)
        refuse(x, "'%s' (%s) can't be split by the features it reads", op->name,
               op->spec->name);
    return d;
}

/* An embedding whose table the head has too is that of a 'variable'. */
static int is_tied(const struct mapper *x, const struct topt_op *op)
{
    for (int k = 0; k < op->ninputs; k++)
        if (!x->m->op[topt_input_producer(x->m, op, k)].ninputs &&
            op->spec->operand[op->input[k]].role == TOPT_PARAM)
            return 1;
    return op->ninputs == 0 && strcmp(op->spec->name, "variable") == 0;
}

/* Between tokens and slots of experts each rank has a part: of the slots of its own positions in
 * Megatron-LM, which gathers and scatters slots around the experts; here of all slots' features,
 * which is as many bytes. */
static int beside_experts(const struct mapper *x, const struct topt_op *op)
{
    for (int k = 0; k < op->ninputs; k++)
        if (op->spec->operand[op->input[k]].slots)
            return 1;
    return x->slots[topt_output_tensor(op)];
}

static void map_experts(struct mapper *x, const struct topt_op *op, int i)
{
    const struct topt_tensor_rules *rules = x->map->rules;
    if (!rules->experts)
        refuse(x, "%s has no tensor parallelism for experts ('%s')", rules->title,
               op->name);
    else if (rules->experts_need_positions && !x->map->positions)
        refuse(x,
               "%s splits experts ('%s') only with sequence parallelism; leave out "
               "--sequence-parallel off",
               rules->title, op->name);
    x->map->op[i] = (int8_t)inner_of(op);
}

static int has_samples(const struct topt_op *op)
{
    int has = 0;
    for (int d = 0; d < op->spec->ndims; d++)
        has |= op->spec->dim[d].split == TOPT_SPLIT_BATCH;
    return has;
}

/* Does the operator do without positions: a table, one that has no dimension to split but samples (a router's choice),
 * or experts, whose tokens are anybody's? */
static int has_no_positions(const struct topt_op *op)
{
    int free = 0;
    for (int d = 0; d < op->spec->ndims; d++)
        free |= topt_op_split(op, d) != TOPT_SPLIT_NEVER &&
                op->spec->dim[d].split != TOPT_SPLIT_BATCH;
    return !has_samples(op) || !free || topt_op_experts(op) >= 0;
}

static void map_context(struct mapper *x, const struct topt_op *op, int8_t *ret)
{
    int attends = topt_kernel_work(op->spec->forward[0].kernel) == TOPT_WORK_ATTENTION;
    *ret = (int8_t)positions_of(x, op);
    if (*ret >= 0 || has_no_positions(op))
        return;
    if (beside_experts(x, op) || attends)
        *ret = (int8_t)last_dim(op, op->output);
    else
        refuse(x, "'%s' (%s) can't be split by positions", op->name, op->spec->name);
}

static void map_op(struct mapper *x, int i)
{
    const struct topt_op *op = &x->m->op[i];
    const struct topt_tensor_rules *rules = x->map->rules;
    int8_t *ret = &x->map->op[i];
    if (rules->context) {
        map_context(x, op, ret);
        return;
    }
    int from = reads_split(x, op), y = topt_output_tensor(op);
    int ends_whole = !rules->tied_ends && is_tied(x, op);
    *ret = (int8_t)positions_of(x, op);
    switch (topt_role_split(op->role)) {
    case TOPT_BY_COLUMN:
        *ret = (int8_t)last_dim(op, op->output);
        x->split[y] = 1;
        break;
    case TOPT_BY_HEAD:
        *ret = (int8_t)(ends_whole ? -1 : last_dim(op, op->output));
        x->split[y] = !ends_whole && rules->split_loss;
        break;
    case TOPT_BY_ROW:
        *ret = (int8_t)last_dim(op, op->input[0]);
        return;
    case TOPT_BY_TABLE:
        *ret = (int8_t)(ends_whole ? -1 : rows_of(op));
        break;
    case TOPT_BY_EXPERT:
        map_experts(x, op, i);
        break;
    case TOPT_BY_WHOLE:
        break;
    default:
        if (has_matrix(op))
            refuse(
                x,
                "%s splits operators by their roles, and '%s' (%s) has none; roles come "
                "with a Hugging Face config.json, with Megatron-LM's arguments, or as "
                "\"role\" of operators of a native model",
                rules->title, op->name, op->spec->name);
        else if (beside_experts(x, op))
            *ret = (int8_t)last_dim(op, op->output);
        else if (from >= 0) {
            *ret = (int8_t)follow(x, op, from);
            x->split[y] = 1;
        }
        return;
    }
    if (from >= 0 && !is_tied(x, op))
        refuse(x, "'%s' (%s) reads features that an operator before it has split",
               op->name, topt_role_name(op->role));
}

/* ---- tensors that several read --------------------------------------------------------- */

enum { UNSEEN = -4, MIXED = -3 };

/* How an operator with this dimension has one of its operands: its place, -1 where it is whole,
 * or whole with a part of the gradient on each rank. */
static int held(const struct topt_op *op, int operand, int d)
{
    const struct topt_operand_spec *spec = &op->spec->operand[operand];
    for (int i = 0; i < spec->ndim; i++)
        if (d >= 0 && spec->dim[i] == d)
            return i;
    return d >= 0 && op->spec->dim[d].split != TOPT_SPLIT_STAT ? TOPT_HUB_SUM : -1;
}

/* The layout of a tensor with several consumers: the consumers' where they all agree, else the
 * producer's, whose partial sum is scattered or all-reduced as between two operators. */
static void map_hub(struct mapper *x, int tensor)
{
    const struct topt_op *op = &x->m->op[x->m->tensor[tensor].producer];
    int d = x->map->op[op - x->m->op], own = held(op, op->output, d);
    int8_t *ret = &x->map->hub[tensor];
    if (x->map->rules->context && !has_samples(op)) {
        *ret = TOPT_AS_DATA;
        return;
    }
    if (own == TOPT_HUB_SUM) {
        d = positions_of(x, op);
        own = d >= 0 ? held(op, op->output, d) : -1;
    }
    *ret = x->wanted[tensor] != MIXED ? x->wanted[tensor]
                                      : (int8_t)(x->whole[tensor] ? -1 : own);
}

static void map_hubs(struct mapper *x)
{
    const struct topt_model *m = x->m;
    for (int t = 0; t < m->ntensors; t++) {
        x->wanted[t] = UNSEEN;
        x->whole[t] = 1;
    }
    for (int i = 0; i < m->nops; i++)
        for (int k = 0; k < m->op[i].ninputs; k++) {
            int o = m->op[i].input[k], t = m->op[i].tensor[o];
            int want = held(&m->op[i], o, x->map->op[i]);
            int8_t *all = &x->wanted[t];
            x->whole[t] &= want < 0;
            *all = (int8_t)(*all == UNSEEN || *all == want ? want : MIXED);
        }
    for (int t = 0; t < m->ntensors; t++)
        if (m->tensor[t].nconsumers > 1)
            map_hub(x, t);
}

/* ---- the whole --------------------------------------------------------------------------- */

int topt_tensor_map_init(struct topt_tensor_map *map, const struct topt_model *m,
                         const struct topt_tensor_rules *rules, int positions,
                         struct topt_error *err)
{
    *map = (struct topt_tensor_map){.rules = rules};
    if (!rules)
        return 0;
    map->positions = positions && rules->positions;
    map->op = malloc((size_t)m->nops + 1);
    map->hub = malloc((size_t)m->ntensors + 1);
    size_t n = (size_t)m->ntensors + 1;
    struct mapper x = {m, map, calloc(n, 1), calloc(n, 1), calloc(n, 1), calloc(n, 1)};
    int rc = map->op && map->hub && x.split && x.slots && x.wanted && x.whole ? 0 : -1;
    for (int i = 0; !rc && i < m->nops; i++)
        for (int k = 0; k < m->op[i].ninputs; k++)
            if (m->op[i].spec->operand[m->op[i].input[k]].slots)
                x.slots[topt_input_tensor(&m->op[i], k)] = 1;
    for (int i = 0; !rc && i < m->nops; i++)
        map_op(&x, i);
    if (!rc)
        map_hubs(&x);
    free(x.split);
    free(x.slots);
    free(x.wanted);
    free(x.whole);
    if (!rc)
        return 0;
    topt_tensor_map_fini(map);
    return topt_nomem(err, "tensor parallelism");
}

void topt_tensor_map_fini(struct topt_tensor_map *map)
{
    free(map->op);
    free(map->hub);
    *map = (struct topt_tensor_map){0};
}

int topt_tensor_uneven(const struct topt_tensor_map *map, const struct topt_model *m,
                       int64_t parts, int *ret_dim)
{
    for (int i = 0; i < m->nops; i++) {
        const struct topt_op *op = &m->op[i];
        int d = map->op[i];
        enum topt_role_split split = topt_role_split(op->role);
        int padded = split == TOPT_BY_TABLE || split == TOPT_BY_HEAD ||
                     (d >= 0 && op->count[d] == m->vocab);
        if (d >= 0 && !padded && topt_fewest_counts(op, d) % parts) {
            *ret_dim = d;
            return i;
        }
    }
    return -1;
}
