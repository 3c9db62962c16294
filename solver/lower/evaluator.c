/* evaluator.c - the costs of many strategies of one model, and the peak memory of their
 * programs.
 *
 * Each strategy is costed and lowered as by topt_cost_strategy and topt_lower: the same sums
 * (strategy_total.c), the same dataflow of the same fragments (dataflow.c).  But fragments
 * depend on little: an operator's on its row, its extents and its configuration, a move's on the
 * layouts at both ends.  So each is written once for all alike operators and all strategies.  The
 * evaluator remembers its cost, and by how many bytes the live bytes rise within it and after it,
 * which is all that sums and peaks need.
 *
 * Strategies that come one after the other differ in few choices, so an operator is looked up
 * only where its configuration is not that of the strategy before. */
#include "dataflow.h"
#include "stages.h"
#include "strategy_total.h"
#include "tally.h"
#include "topt_arena.h"
#include "topt_array.h"
#include "topt_hash.h"
#include "topt_index.h"

#include <stdlib.h>
#include <string.h>

/* ---- what is remembered ------------------------------------------------------------ */

/* An operator, or a hub, in a configuration. */
struct entry {
    int kind;
    struct topt_config config;
    int hub_keep;
    struct topt_fragment_cost cost;
    struct topt_edge_end from, to[TOPT_MAX_INPUTS];
    int64_t waiting;
    int bytes; /* the first of TOPT_LIVE_NUMBERS in evaluator.bytes */
    int windows, partial;
};

/* A use of a tensor: a move from its hub or producer to a consumer, or from its producer into
 * its hub. */
struct use {
    int from, to, input;
    struct topt_edge_cost cost;
    /* The first of two numbers in evaluator.bytes, for the value's move and for the gradient's: the rise during the move,
     * and the bytes of its result.  -1: nothing moves. */
    int there, back;
};

/* The cost of an operator or a hub with the moves to its inputs. */
struct joined {
    struct joined_key {
        int entry, use[TOPT_MAX_INPUTS];
        uint8_t keep[TOPT_MAX_INPUTS];
    } key;
    struct topt_fragment_cost *cost; /* the arena's */
};

struct topt_evaluator {
    struct topt_emitter emitter; /* first: it is cast to this */
    struct topt_pieces pieces;   /* of the strategy at hand */
    struct topt_costing k;
    struct topt_totals totals;
    struct topt_dataflow dataflow;
    struct topt_live *alive;                /* NULL: peaks are not asked for */
    struct topt_index entries, uses, joins; /* of the next three, which are owned */
    struct entry *entry;
    struct use *used;
    struct joined *joined;
    int entry_cap, used_cap, joined_cap;
    struct topt_arena *arena;
    int64_t *bytes; /* by number and lane */
    int nbytes, bytes_cap;
    /* The entries and uses of the strategy at hand, -1: not known yet; 'nnumbers' in one block
     * from 'op' on. */
    int *op, *hub, *use, *into_hub;
    size_t nnumbers;
    int *kind_of_op, *kind_of_hub; /* by operator, by tensor: equal for alike ones */
    uint8_t *keep;                 /* as the strategy's */
    int windows;
    int64_t now[TOPT_LIVE_LANES], most[TOPT_LIVE_LANES];
    /* With stages on groups of unlike devices, else NULL: the next group's evaluator, and this group's router (owned). */
    struct topt_evaluator *next;
    struct topt_router *router;
    struct topt_error *err;
};

static struct entry *entry_at(const struct topt_evaluator *a, int i)
{
    return &a->entry[i];
}

static struct use *use_at(const struct topt_evaluator *a, int i)
{
    return &a->used[i];
}

static int no_memory(struct topt_evaluator *a)
{
    return topt_nomem(a->err, "checking strategies");
}

/* ---- what is alike ----------------------------------------------------------------- */

/* An operator's kind is the number of the first operator of that kind.  A hub's kind is that of the first tensor, behind all
 * operators.  In a model of layers the nearest alike operator is one layer back: 'before' has for each operator the alike
 * one before it, and for the first of these the last that was seen. */
static void find_kinds(struct topt_evaluator *a, int *before)
{
    const struct topt_model *m = a->k.model;
    for (int i = 0; i < m->nops; i++) {
        int first = m->alike[i], k = first < i ? before[first] : i;
        a->kind_of_op[i] = i;
        while (k < i && !topt_same_op(m, k, i))
            k = k == first ? i : before[k];
        if (k < i)
            a->kind_of_op[i] = a->kind_of_op[k];
        before[i] = first < i ? before[first] : i;
        before[first] = i;
    }
    for (int t = 0; t < m->ntensors; t++) {
        a->kind_of_hub[t] = m->nops + t;
        for (int k = t - 1; k >= 0 && m->tensor[t].nconsumers > 1; k--)
            if (topt_same_tensor(m, k, t) &&
                m->tensor[k].nconsumers == m->tensor[t].nconsumers &&
                a->kind_of_op[m->tensor[k].producer] ==
                    a->kind_of_op[m->tensor[t].producer]) {
                a->kind_of_hub[t] = a->kind_of_hub[k];
                break;
            }
    }
}

/* ---- numbers of bytes -------------------------------------------------------------- */

/* Stores 'n' numbers of bytes, each in all lanes; returns the first's place, or -1 without memory. */
static int put_bytes(struct topt_evaluator *a, const int64_t (*bytes)[TOPT_LIVE_LANES],
                     int n)
{
    size_t lanes = (size_t)a->alive->lanes;
    if (a->nbytes + n > a->bytes_cap) {
        int cap = a->bytes_cap ? 2 * a->bytes_cap : 1024;
        if (TOPT_RESIZE(a->bytes, (size_t)cap * lanes))
            return no_memory(a);
        a->bytes_cap = cap;
    }
    for (int i = 0; i < n; i++)
        memcpy(&a->bytes[(size_t)(a->nbytes + i) * lanes], bytes[i],
               lanes * sizeof *a->bytes);
    a->nbytes += n;
    return a->nbytes - n;
}

/* ---- entries ----------------------------------------------------------------------- */

static int fill_op(struct topt_evaluator *a, int op, struct entry *e)
{
    const struct topt_costing *k = &a->k;
    const struct topt_op *o = &k->model->op[op];
    if (!topt_config_valid(o, &e->config, k->mesh))
        return topt_fail(a->err, TOPT_ERR_INVAL,
                         "operator '%.60s' can't be split that way", o->name);
    if (topt_cost_op_by(k, op, &e->config, a->alive, &e->cost, NULL, a->err))
        return -1;
    e->from = topt_edge_producer(k, op, &e->config);
    for (int i = 0; i < o->ninputs; i++)
        e->to[i] = topt_edge_consumer(k, op, i, &e->config, e->cost.transient_bytes);
    e->waiting = topt_span_bytes(k, topt_output_tensor(o), &e->from.value);
    if (!a->alive)
        return 0;
    e->windows = a->alive->windows;
    e->bytes = put_bytes(a, a->alive->number, TOPT_LIVE_NUMBERS);
    return e->bytes < 0 ? -1 : 0;
}

static int fill_hub(struct topt_evaluator *a, int tensor, struct entry *e)
{
    const struct topt_costing *k = &a->k;
    const struct topt_tensor *t = &k->model->tensor[tensor];
    struct topt_hub h = {e->config, e->hub_keep};
    for (int i = 0; i < k->mesh->naxes; i++)
        if (h.layout.dim[i] < TOPT_HUB_SUM || h.layout.dim[i] >= t->ndim)
            return topt_fail(a->err, TOPT_ERR_INVAL, "tensor '%.60s' has no dimension %d",
                             t->name, h.layout.dim[i]);
    if (topt_cost_hub(k, tensor, &h, &e->cost, a->err))
        return -1;
    e->from = e->to[0] = topt_edge_hub(k, &h);
    e->waiting = topt_span_bytes(k, tensor, &e->from.value);
    return 0;
}

/* The entry of an operator, or (op -1) of a tensor's hub; -1 on failure. */
static int entry_of(struct topt_evaluator *a, int op, int tensor,
                    const struct topt_config *config, int hub_keep)
{
    int kind = op >= 0 ? a->kind_of_op[op] : a->kind_of_hub[tensor];
    uint64_t hash =
        topt_hash(config, sizeof *config, (uint64_t)kind * 4 + (uint64_t)hub_keep);
    for (int i = topt_index_first(&a->entries, hash); i >= 0;
         i = topt_index_next(&a->entries, i)) {
        const struct entry *e = entry_at(a, i);
        if (e->kind == kind && e->hub_keep == hub_keep &&
            !memcmp(&e->config, config, sizeof *config))
            return i;
    }
    struct entry e = {.kind = kind, .config = *config, .hub_keep = hub_keep};
    if (op >= 0 ? fill_op(a, op, &e) : fill_hub(a, tensor, &e))
        return -1;
    e.partial = topt_layout_partial_mask(&e.from.value) != 0;
    if (TOPT_ROOM(a->entry, a->entries.n, a->entry_cap, 64))
        return no_memory(a);
    a->entry[a->entries.n] = e;
    int n = topt_index_add(&a->entries, hash);
    return n < 0 ? no_memory(a) : n;
}

/* ---- a tensor's moves -------------------------------------------------------------- */

/* Writes the fragment of a move for its live bytes.  They must equal those of its cost, unless devices have shares, as
 * routes are those of equal parts. */
static int follow_move(struct topt_evaluator *a, int tensor,
                       const struct topt_layout *from, const struct topt_layout *to,
                       const struct topt_move_cost *cost, int *ret)
{
    const struct topt_tensor *x = &a->k.model->tensor[tensor];
    int y = a->k.model->op[x->producer].output, made;
    struct topt_tally t;
    *ret = -1;
    if (!a->alive)
        return 0;
    topt_tally_init(&t, &a->k);
    struct topt_fragments f = topt_tally_fragments(&t, a->err);
    t.alive = a->alive;
    t.alive->config = NULL;
    int src = topt_fragment_operand(&f, x->producer, y, from, TOPT_CLASS_TRANSIENT);
    topt_live_begin(t.alive);
    if (src < 0 || topt_fragment_move(&f, x->producer, 0, src, to, &made))
        return -1;
    int64_t bytes =
        topt_held_bytes(&a->k, tensor, t.alive->most[0] + t.alive->bytes[src][0]);
    if (bytes != cost->transient_bytes && !a->k.mesh->share[0])
        return topt_fail(a->err, TOPT_ERR_INTERNAL,
                         "a move of '%.60s' needs %lld bytes, its cost says %lld",
                         x->name, (long long)bytes, (long long)cost->transient_bytes);
    if (made == src)
        return 0;
    topt_live_end(t.alive, TOPT_LIVE_INIT);
    *ret = put_bytes(a, t.alive->number, 2);
    return *ret < 0 ? -1 : 0;
}

static int fill_use(struct topt_evaluator *a, int tensor, struct use *u)
{
    struct topt_edge_end from = entry_at(a, u->from)->from;
    struct topt_edge_end to = entry_at(a, u->to)->to[u->input];
    int trained = a->k.model->tensor[tensor].needs_gradient;
    struct topt_move_cost there, back;
    u->back = -1;
    if (topt_cost_move(&a->k, tensor, &from.value, &to.value, &there, a->err) ||
        follow_move(a, tensor, &from.value, &to.value, &there, &u->there))
        return -1;
    if (trained && (topt_cost_move(&a->k, tensor, &to.grad, &from.grad, &back, a->err) ||
                    follow_move(a, tensor, &to.grad, &from.grad, &back, &u->back)))
        return -1;
    topt_cost_edge_by(&a->k, tensor, &from, &to, &there, trained ? &back : NULL,
                      &u->cost);
    return 0;
}

/* The use of a tensor between two entries; -1 on failure. */
static int use_of(struct topt_evaluator *a, int tensor, int from, int to, int input)
{
    struct use u = {.from = from, .to = to, .input = input};
    int ends[] = {from, to};
    uint64_t hash = topt_hash(ends, sizeof ends, (uint64_t)input);
    for (int i = topt_index_first(&a->uses, hash); i >= 0;
         i = topt_index_next(&a->uses, i)) {
        const struct use *x = use_at(a, i);
        if (x->from == from && x->to == to && x->input == input)
            return i;
    }
    if (fill_use(a, tensor, &u))
        return -1;
    if (TOPT_ROOM(a->used, a->uses.n, a->used_cap, 64))
        return no_memory(a);
    a->used[a->uses.n] = u;
    int n = topt_index_add(&a->uses, hash);
    return n < 0 ? no_memory(a) : n;
}

/* ---- the strategy at hand ---------------------------------------------------------- */

/* Finds the entry of an operator or hub, unless it is that of the strategy before.  Consumers find 'tensor' there; -1: none. */
static int find_entry(struct topt_evaluator *a, int op, int tensor,
                      const struct topt_config *config, int hub_keep, int *entry)
{
    const struct entry *e = *entry >= 0 ? entry_at(a, *entry) : NULL;
    if (e && e->hub_keep == hub_keep && !memcmp(&e->config, config, sizeof *config))
        return 0;
    *entry = entry_of(a, op, tensor, config, hub_keep);
    if (*entry < 0)
        return -1;
    if (tensor >= 0)
        a->pieces.waiting[tensor] = entry_at(a, *entry)->waiting;
    return 0;
}

/* Finds the use between two entries; 1 where it is not that of the strategy before, -1: failed. */
static int find_use(struct topt_evaluator *a, int tensor, int from, int to, int input,
                    int *use)
{
    if (*use >= 0 && use_at(a, *use)->from == from && use_at(a, *use)->to == to)
        return 0;
    *use = use_of(a, tensor, from, to, input);
    return *use < 0 ? -1 : 1;
}

static int find_entries(struct topt_evaluator *a, const struct topt_strategy *s)
{
    const struct topt_model *m = a->k.model;
    a->windows = 0;
    for (int i = 0; i < m->nops; i++) {
        int t = topt_output_tensor(&m->op[i]);
        if (find_entry(a, i, m->tensor[t].nconsumers > 1 ? -1 : t, &s->config[i], 0,
                       &a->op[i]))
            return -1;
        a->windows |= entry_at(a, a->op[i])->windows;
    }
    for (int t = 0; t < m->ntensors; t++)
        if (m->tensor[t].nconsumers > 1 &&
            find_entry(a, -1, t, &s->hub[t].layout, s->hub[t].keep, &a->hub[t]))
            return -1;
    return 0;
}

/* The entry at which consumers find a tensor: its hub, or its producer. */
static int place_of(const struct topt_evaluator *a, int tensor)
{
    const struct topt_tensor *t = &a->k.model->tensor[tensor];
    return t->nconsumers > 1 ? a->hub[tensor] : a->op[t->producer];
}

/* The cost of an entry with 'n' uses; NULL on failure. */
static const struct topt_fragment_cost *join(struct topt_evaluator *a, int entry,
                                             const int *use, const uint8_t *keep, int n)
{
    struct joined_key key = {.entry = entry};
    memcpy(key.use, use, (size_t)n * sizeof *use);
    memcpy(key.keep, keep, (size_t)n);
    uint64_t hash = topt_hash(&key, sizeof key, 1);
    for (int i = topt_index_first(&a->joins, hash); i >= 0;
         i = topt_index_next(&a->joins, i))
        if (!memcmp(&a->joined[i].key, &key, sizeof key))
            return a->joined[i].cost;
    struct topt_fragment_cost *cost = TOPT_NEW(a->arena, 1, struct topt_fragment_cost);
    if (!cost || TOPT_ROOM(a->joined, a->joins.n, a->joined_cap, 64)) {
        (void)no_memory(a);
        return NULL;
    }
    *cost = entry_at(a, entry)->cost;
    for (int k = 0; k < n; k++)
        if (topt_cost_join(
                cost, topt_edge_choice(&use_at(a, use[k])->cost, (enum topt_keep)keep[k]),
                a->err))
            return NULL;
    a->joined[a->joins.n] = (struct joined){key, cost};
    return topt_index_add(&a->joins, hash) < 0 && no_memory(a) ? NULL : cost;
}

/* A use belongs to the entries at its ends.  So an operator's cost with its uses changes only if a use does, or the copy that
 * it keeps. */
static int find_op_uses(struct topt_evaluator *a, const struct topt_strategy *s, int op)
{
    const struct topt_op *o = &a->k.model->op[op];
    int at = op * TOPT_MAX_INPUTS, changed = !o->ninputs;
    for (int k = 0; k < o->ninputs; k++) {
        int t = topt_input_tensor(o, k);
        int other = find_use(a, t, place_of(a, t), a->op[op], k, &a->use[at + k]);
        if (other < 0)
            return -1;
        changed |= other || a->keep[at + k] != s->keep[at + k];
        a->keep[at + k] = s->keep[at + k];
    }
    if (!changed)
        return 0;
    a->pieces.op[op] = join(a, a->op[op], &a->use[at], &a->keep[at], o->ninputs);
    return a->pieces.op[op] ? 0 : -1;
}

static int find_into_hub(struct topt_evaluator *a, int tensor)
{
    int from = a->op[a->k.model->tensor[tensor].producer];
    int other = find_use(a, tensor, from, a->hub[tensor], 0, &a->into_hub[tensor]);
    if (other <= 0)
        return other;
    const uint8_t keep = TOPT_KEEP_AFTER;
    a->pieces.hub[tensor] = join(a, a->hub[tensor], &a->into_hub[tensor], &keep, 1);
    return a->pieces.hub[tensor] ? 0 : -1;
}

static int find_uses(struct topt_evaluator *a, const struct topt_strategy *s)
{
    const struct topt_model *m = a->k.model;
    for (int t = 0; t < m->ntensors; t++)
        if (m->tensor[t].nconsumers > 1 && find_into_hub(a, t))
            return -1;
    for (int i = 0; i < m->nops; i++)
        if (find_op_uses(a, s, i))
            return -1;
    return 0;
}

/* ---- its peak ---------------------------------------------------------------------- */

static const int64_t *bytes_at(const struct topt_evaluator *a, int number)
{
    return &a->bytes[(size_t)number * (size_t)a->alive->lanes];
}

/* Follows a fragment: live bytes rise by those at 'number', and have then changed by those behind it. */
static void pass(struct topt_evaluator *a, int number)
{
    const int64_t *up = bytes_at(a, number), *after = bytes_at(a, number + 1);
    for (int i = 0; i < a->alive->lanes; i++) {
        int64_t most = a->now[i] + up[i];
        a->most[i] = most > a->most[i] ? most : a->most[i];
        a->now[i] += after[i];
    }
}

static void pass_piece(struct topt_evaluator *a, int op, enum topt_live_piece piece)
{
    pass(a, entry_at(a, a->op[op])->bytes + 2 * (int)piece);
}

/* The result of a move, or its source where nothing moves. */
static int bring(struct topt_evaluator *a, int moved, int src)
{
    if (moved < 0)
        return src;
    pass(a, moved);
    return moved + 1;
}

static const struct use *use_by(const struct topt_evaluator *a, int op, int k)
{
    const struct topt_op *o = &a->k.model->op[op];
    return use_at(a, k == TOPT_FLOW_HUB ? a->into_hub[topt_output_tensor(o)]
                                        : a->use[op * TOPT_MAX_INPUTS + k]);
}

static int emit_in_place(struct topt_emitter *c, int op, int k)
{
    return use_by((const struct topt_evaluator *)c, op, k)->there < 0;
}

static int emit_partial(struct topt_emitter *c, int tensor)
{
    const struct topt_evaluator *a = (const struct topt_evaluator *)c;
    return entry_at(a, place_of(a, tensor))->partial;
}

static int emit_fetch(struct topt_emitter *c, int op, int k, int backward, int value)
{
    struct topt_evaluator *a = (struct topt_evaluator *)c;
    (void)backward;
    return bring(a, use_by(a, op, k)->there, value);
}

static int emit_give_grad(struct topt_emitter *c, int op, int k, int grad)
{
    struct topt_evaluator *a = (struct topt_evaluator *)c;
    return bring(a, use_by(a, op, k)->back, grad);
}

static int emit_forward(struct topt_emitter *c, int op, enum topt_pass pass,
                        const int *input)
{
    struct topt_evaluator *a = (struct topt_evaluator *)c;
    (void)input;
    pass_piece(a, op, pass == TOPT_PASS_RECOMPUTE ? TOPT_LIVE_AGAIN : TOPT_LIVE_FORWARD);
    return entry_at(a, a->op[op])->bytes + TOPT_LIVE_OUT;
}

static int emit_backward(struct topt_emitter *c, int op, int grad, const int *input,
                         int *ret_input_grad)
{
    struct topt_evaluator *a = (struct topt_evaluator *)c;
    (void)grad;
    (void)input;
    const struct topt_model *m = a->k.model;
    const struct topt_op *o = &m->op[op];
    pass_piece(a, op, TOPT_LIVE_BACKWARD);
    for (int k = 0; k < o->ninputs; k++)
        ret_input_grad[k] = m->tensor[topt_input_tensor(o, k)].needs_gradient
                                ? entry_at(a, a->op[op])->bytes + TOPT_LIVE_GRADS + k
                                : -1;
    return 0;
}

static void emit_release(struct topt_emitter *c, int what)
{
    struct topt_evaluator *a = (struct topt_evaluator *)c;
    const int64_t *bytes = bytes_at(a, what);
    for (int i = 0; i < a->alive->lanes; i++)
        a->now[i] -= bytes[i];
}

static const struct topt_emitter emitter = {.in_place = emit_in_place,
                                            .partial = emit_partial,
                                            .fetch = emit_fetch,
                                            .give_grad = emit_give_grad,
                                            .forward = emit_forward,
                                            .backward = emit_backward,
                                            .release = emit_release};

static int find_peak(struct topt_evaluator *a, const struct topt_strategy *s,
                     int64_t *ret_peak)
{
    int nops = a->k.model->nops, lanes = a->alive->lanes, first = a->windows && lanes > 1;
    memset(a->now, 0, sizeof a->now);
    memset(a->most, 0, sizeof a->most);
    for (int i = 0; i < nops; i++)
        pass_piece(a, i, TOPT_LIVE_INIT);
    if (topt_dataflow_run(&a->dataflow, s, &a->emitter, a->err))
        return -1;
    for (int i = 0; i < nops; i++)
        pass_piece(a, i, TOPT_LIVE_END);
    *ret_peak = a->most[first];
    for (int i = first + 1; first && i < lanes; i++)
        *ret_peak = a->most[i] > *ret_peak ? a->most[i] : *ret_peak;
    return 0;
}

/* ---- the whole --------------------------------------------------------------------- */

/* After a failure the next strategy must look everything up. */
static void forget(struct topt_evaluator *a)
{
    memset(a->op, 0xff, a->nnumbers * sizeof *a->op);
}

static int evaluate(struct topt_evaluator *a, const struct topt_strategy *s,
                    struct topt_strategy_cost *ret_cost, int64_t *ret_peak,
                    struct topt_error *err)
{
    const struct topt_model *m = a->k.model;
    a->err = err;
    if (s->nops != m->nops || s->ntensors != m->ntensors)
        return topt_fail(err, TOPT_ERR_INVAL, "the strategy is for another model");
    if (find_entries(a, s) || find_uses(a, s) ||
        topt_totals_sum(&a->totals, s, &a->pieces, ret_cost, err) ||
        (ret_peak && find_peak(a, s, ret_peak))) {
        forget(a);
        return -1;
    }
    return 0;
}

int topt_evaluate_strategy(struct topt_evaluator *a, const struct topt_strategy *s,
                           struct topt_strategy_cost *ret_cost, int64_t *ret_peak,
                           struct topt_error *err)
{
    if (evaluate(a, s, ret_cost, ret_peak, err))
        return -1;
    for (struct topt_evaluator *b = a->next; b; b = b->next)
        if (evaluate(b, s, ret_cost, NULL, err))
            return -1;
    return a->next ? topt_evaluate_stages(a, s, ret_cost, err) : 0;
}

static int init(struct topt_evaluator *a, const struct topt_costing *k, int peaks)
{
    size_t nops = (size_t)k->model->nops, ntensors = (size_t)k->model->ntensors;
    a->emitter = emitter;
    a->k = *k;
    if (peaks && !(a->alive = calloc(1, sizeof *a->alive)))
        return no_memory(a);
    if (peaks)
        topt_live_init(a->alive, k);
    a->arena = topt_arena_create(0);
    a->nnumbers = 2 * ntensors + nops * (1 + TOPT_MAX_INPUTS);
    a->op = malloc((a->nnumbers + nops + ntensors + 1) * sizeof *a->op);
    a->keep = calloc(nops * TOPT_MAX_INPUTS + 1, 1);
    if (topt_pieces_init(&a->pieces, k->model) || !a->op || !a->keep || !a->arena)
        return no_memory(a);
    a->hub = a->op + nops;
    a->use = a->hub + ntensors;
    a->into_hub = a->use + nops * TOPT_MAX_INPUTS;
    a->kind_of_op = a->into_hub + ntensors;
    a->kind_of_hub = a->kind_of_op + nops;
    find_kinds(a, a->op);
    forget(a);
    return topt_settings_fit(k->model, k->settings, a->err) ||
                   topt_totals_init(&a->totals, k, a->err) ||
                   topt_dataflow_init(&a->dataflow, k->model, a->err)
               ? -1
               : 0;
}

static struct topt_evaluator *create(const struct topt_costing *k, int peaks,
                                     struct topt_error *err)
{
    struct topt_evaluator *a = calloc(1, sizeof *a);
    if (!a) {
        topt_nomem(err, "checking strategies");
        return NULL;
    }
    a->err = err;
    if (init(a, k, peaks)) {
        topt_evaluator_destroy(a);
        return NULL;
    }
    return a;
}

struct topt_evaluator *topt_evaluator_create(const struct topt_costing *k, int peaks,
                                             struct topt_error *err)
{
    struct topt_group_costings g;
    struct topt_evaluator *a = NULL, *next = NULL;
    if (topt_group_costings_init(&g, k, err))
        return NULL;
    for (int i = g.n - 1; i >= 0 && (i == g.n - 1 || a); i--, next = a) {
        if (!(a = create(&g.of[i], peaks && i == 0, err)) || g.n == 1)
            continue;
        a->next = next;
        a->router = g.of[i].router;
        g.of[i].router = NULL; /* it is the evaluator's now */
        topt_layers_join(&a->totals.layers, k->hw, next ? &next->totals.layers : NULL);
    }
    topt_group_costings_fini(&g);
    if (!a)
        topt_evaluator_destroy(next);
    return a;
}

int topt_evaluate_stages(struct topt_evaluator *a, const struct topt_strategy *s,
                         struct topt_strategy_cost *ret_cost, struct topt_error *err)
{
    a->err = err;
    return topt_stages_cost(&a->totals.layers, s, ret_cost, err);
}

int topt_evaluate_units(struct topt_evaluator *a, const struct topt_strategy *s,
                        struct topt_unit_sums *ret, struct topt_error *err)
{
    struct topt_layers *t = &a->totals.layers;
    struct topt_strategy_cost cost;
    t->units_only = 1;
    int rc = topt_evaluate_strategy(a, s, &cost, NULL, err);
    t->units_only = 0;
    if (!rc)
        memcpy(ret, t->unit, ((size_t)t->units.n + 1) * sizeof *ret);
    return rc;
}

void topt_evaluator_limit(struct topt_evaluator *a, int64_t memory, int64_t time)
{
    a->totals.layers.memory_limit = memory;
    a->totals.layers.time_limit = time;
}

void topt_evaluator_passes(struct topt_evaluator *a, struct topt_passes *ret)
{
    a->totals.layers.passes = ret;
}

void topt_evaluator_cut(struct topt_evaluator *a, const int16_t *layers)
{
    a->totals.layers.given = layers;
}

void topt_evaluator_destroy(struct topt_evaluator *a)
{
    if (!a)
        return;
    topt_evaluator_destroy(a->next);
    topt_router_destroy(a->router);
    free(a->alive);
    topt_totals_fini(&a->totals);
    topt_dataflow_fini(&a->dataflow);
    topt_index_fini(&a->entries);
    topt_index_fini(&a->uses);
    topt_index_fini(&a->joins);
    free(a->entry);
    free(a->used);
    free(a->joined);
    topt_arena_destroy(a->arena);
    free(a->bytes);
    free(a->op);
    free(a->keep);
    topt_pieces_fini(&a->pieces);
    free(a);
}
