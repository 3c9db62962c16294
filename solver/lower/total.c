/* total.c - the cost of a strategy: a plain sum, and caps on what is in flight.
 *
 *     memory = what stays + R + T + W * U
 *         R  what backward makes again: of each kind of blocks the largest
 *         T  most transient bytes of any fragment
 *         W  tensors that wait past other operators, at once, at most
 *         U  bytes of the largest of them
 *
 * What is made again is alive in forward too, for a while and for one block at a time: R has
 * room for it then as well. */
#include "tally.h"

#include <stdlib.h>
#include <string.h>

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

int topt_spans_init(struct topt_spans *s, const struct topt_model *m,
                    struct topt_error *err)
{
    int *last = calloc((size_t)m->ntensors + 1, sizeof *last);
    int *open = calloc((size_t)m->nops + 2, sizeof *open);
    *s = (struct topt_spans){.span = calloc((size_t)m->ntensors + 1, 1)};
    if (!last || !open || !s->span) {
        free(last);
        free(open);
        topt_spans_fini(s);
        return topt_fail(err, TOPT_ERR_NOMEM, "no memory for the model's spans");
    }
    for (int i = 0; i < m->nops; i++)
        for (int k = 0; k < m->op[i].ninputs; k++)
            last[m->op[i].operand[m->op[i].input[k]].tensor] = i;
    for (int t = 0; t < m->ntensors; t++) {
        int length = last[t] - m->tensor[t].producer;
        if (m->tensor[t].nconsumers == 0 || length <= 1)
            continue;
        /* A residual crosses a block, a tied weight the whole model. */
        int is_long = length > 16 && 2 * length > m->nops;
        s->span[t] = is_long ? TOPT_SPAN_LONG : TOPT_SPAN_CROSSING;
        if (is_long)
            continue;
        open[m->tensor[t].producer + 1]++;
        open[last[t] + 1]--;
    }
    for (int i = 0, now = 0; i <= m->nops; i++) {
        now += open[i];
        if (now > s->crossing)
            s->crossing = now;
    }
    free(last);
    free(open);
    return 0;
}

void topt_spans_recompute(struct topt_spans *s, const struct topt_model *m,
                          const struct topt_blocks *blocks)
{
    for (int t = 0; t < m->ntensors; t++)
        if (s->span[t] == TOPT_SPAN_NEXT && blocks->kind[m->tensor[t].producer] >= 0)
            s->span[t] = TOPT_SPAN_CROSSING;
    s->crossing++;
}

void topt_spans_fini(struct topt_spans *s)
{
    free(s->span);
    s->span = NULL;
}

int64_t topt_span_bytes(const struct topt_costing *k, int tensor,
                        const struct topt_layout *where)
{
    struct topt_shape shape = topt_tensor_shape(&k->model->tensor[tensor]);
    return topt_in_flight(
        k, topt_block_bytes(k->mesh, k->settings, &shape, where, TOPT_ELEM_REAL));
}

int64_t topt_round_transient(int64_t bytes)
{
    int64_t step = 1;
    while (bytes / step >= 16)
        step *= 2;
    return (bytes + step - 1) / step * step;
}

/* Sums of a strategy, and the largest caps seen. */
struct total {
    const struct topt_costing *k;
    const struct topt_strategy *st;
    struct topt_strategy_cost *cost;
    struct topt_spans spans;
    struct topt_blocks blocks; /* empty where nobody recomputes */
    int64_t *remade;           /* by first operator of a block */
    struct topt_error *err;
};

/* Add the cost of a fragment of operator 'op'. */
static int add(struct total *s, int op, const struct topt_fragment_cost *c)
{
    struct topt_fragment_cost *sum = &s->cost->sum;
    int bad = __builtin_add_overflow(sum->compute_ns, c->compute_ns, &sum->compute_ns);
    bad |= __builtin_add_overflow(sum->network_ns, c->network_ns, &sum->network_ns);
    for (int i = 0; i < TOPT_BASIS_COUNT; i++)
        sum->basis_ns[i] += c->basis_ns[i]; /* parts of the two above */
    for (int i = 0; i < TOPT_CLASS_COUNT; i++)
        bad |= __builtin_add_overflow(sum->class_bytes[i], c->class_bytes[i],
                                      &sum->class_bytes[i]);
    int64_t rounded = topt_round_transient(c->transient_bytes);
    s->cost->transient_cap = larger(s->cost->transient_cap, rounded);
    if (s->blocks.kind && s->blocks.kind[op] >= 0)
        s->remade[op - s->blocks.position[op]] += c->class_bytes[TOPT_CLASS_REMADE];
    return bad ? topt_fail(s->err, TOPT_ERR_LIMIT, "the cost of the strategy overflows")
               : 0;
}

/* A tensor that waits: bounded by the crossing cap, or charged by itself. */
static void add_waiting(struct total *s, int tensor, const struct topt_layout *where)
{
    if (s->spans.span[tensor] == TOPT_SPAN_NEXT)
        return;
    int64_t bytes = topt_span_bytes(s->k, tensor, where);
    if (s->spans.span[tensor] == TOPT_SPAN_LONG)
        s->cost->sum.class_bytes[TOPT_CLASS_KEPT] += bytes;
    else
        s->cost->crossing_cap = larger(s->cost->crossing_cap, bytes);
}

static int add_edge(struct total *s, int op, int tensor, const struct topt_edge_end *from,
                    const struct topt_edge_end *to, enum topt_keep keep)
{
    struct topt_edge_cost e;
    if (topt_cost_edge(s->k, tensor, from, to, &e, s->err))
        return -1;
    return add(s, op, &e.alt[keep == TOPT_KEEP_BEFORE && e.nalts == 2]);
}

static int add_tensor(struct total *s, int tensor)
{
    const struct topt_tensor *t = &s->k->model->tensor[tensor];
    struct topt_edge_end from =
        topt_edge_producer(s->k, t->producer, &s->st->config[t->producer]);
    if (t->nconsumers > 1) {
        struct topt_edge_end hub = topt_edge_hub(s->k, &s->st->hub[tensor]);
        struct topt_fragment_cost c;
        if (add_edge(s, t->producer, tensor, &from, &hub, TOPT_KEEP_AFTER) ||
            topt_cost_hub(s->k, tensor, &s->st->hub[tensor], &c, s->err) ||
            add(s, t->producer, &c))
            return -1;
        from = hub;
    }
    add_waiting(s, tensor, &from.value);
    return 0;
}

static int add_inputs(struct total *s, int op, int64_t op_transient)
{
    const struct topt_op *o = &s->k->model->op[op];
    const struct topt_strategy *st = s->st;
    for (int i = 0; i < o->ninputs; i++) {
        int tensor = o->operand[o->input[i]].tensor;
        int p = s->k->model->tensor[tensor].producer;
        struct topt_edge_end from = s->k->model->tensor[tensor].nconsumers > 1
                                        ? topt_edge_hub(s->k, &st->hub[tensor])
                                        : topt_edge_producer(s->k, p, &st->config[p]);
        struct topt_edge_end to =
            topt_edge_consumer(s->k, op, i, &st->config[op], op_transient);
        if (add_edge(s, op, tensor, &from, &to,
                     (enum topt_keep)st->keep[op * TOPT_MAX_INPUTS + i]))
            return -1;
    }
    return 0;
}

/* Blocks of a kind have their backward one after the other. */
static int64_t largest_blocks(const struct total *s)
{
    int64_t sum = 0;
    for (int i = 0; i < s->blocks.nkinds; i++) {
        const struct topt_block_kind *b = &s->blocks.of[i];
        int64_t most = 0;
        for (int n = 0; n < b->count; n++)
            most = larger(most, s->remade[b->first + n * b->length]);
        sum += most;
    }
    return sum;
}

static int total_init(struct total *s)
{
    const struct topt_model *m = s->k->model;
    s->remade = calloc((size_t)m->nops + 1, sizeof *s->remade);
    if (!s->remade)
        return topt_fail(s->err, TOPT_ERR_NOMEM, "no memory for a strategy's cost");
    if (topt_settings_fit(m, s->k->settings, s->err) ||
        topt_remake_check(m, s->st, &s->blocks, s->err) ||
        topt_spans_init(&s->spans, m, s->err))
        return -1;
    if (s->blocks.kind)
        topt_spans_recompute(&s->spans, m, &s->blocks);
    return 0;
}

static void total_fini(struct total *s)
{
    free(s->remade);
    topt_blocks_fini(&s->blocks);
    topt_spans_fini(&s->spans);
}

static int add_all(struct total *s)
{
    const struct topt_model *m = s->k->model;
    for (int i = 0; i < m->nops; i++) {
        struct topt_fragment_cost c;
        if (topt_cost_op(s->k, i, &s->st->config[i], &c, s->err) || add(s, i, &c) ||
            add_inputs(s, i, c.transient_bytes))
            return -1;
    }
    for (int t = 0; t < m->ntensors; t++)
        if (add_tensor(s, t))
            return -1;
    return 0;
}

int topt_cost_strategy(const struct topt_costing *k, const struct topt_strategy *st,
                       struct topt_strategy_cost *ret, struct topt_error *err)
{
    struct topt_strategy_cost cost = {.time_ns = 0};
    struct total s = {.k = k, .st = st, .cost = &cost, .err = err};
    int rc = total_init(&s) || add_all(&s) ? -1 : 0;
    if (!rc) {
        cost.crossing = s.spans.crossing;
        cost.remade_bytes = largest_blocks(&s);
        cost.time_ns = cost.sum.compute_ns + cost.sum.network_ns;
        cost.memory_bytes =
            cost.remade_bytes + cost.transient_cap + cost.crossing * cost.crossing_cap;
        for (int i = 0; i <= TOPT_CLASS_KEPT; i++)
            cost.memory_bytes += cost.sum.class_bytes[i];
        *ret = cost;
    }
    total_fini(&s);
    return rc;
}
