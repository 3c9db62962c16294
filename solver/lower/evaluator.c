/* evaluator.c - the costs of many strategies of one model, and the peak memory of their
 * programs.
 *
 * Each strategy is costed and lowered as by topt_cost_strategy and topt_lower: the same sums
 * (strategy_total.c), the same dataflow of the same fragments (dataflow.c).  But fragments are
 * functions of little: an operator's of its row, its extents and its configuration, a move's of
 * the layouts at both ends.  So they are written once for all operators alike and all
 * strategies, and remembered as
 *
 *     what they cost, and by how many bytes the live bytes rise within them and after them,
 *
 * which is all that sums and peaks need.  Strategies that come one after the other
 * differ in few choices: what an operator was found to be for one is looked up again
 * only where it differs. */
#include "live_bytes.h"
#include "operator.h"
#include "dataflow.h"
#include "param.h"
#include "recompute.h"
#include "strategy_total.h"
#include "topt_array.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* ---- tables of numbered things ----------------------------------------------------- */

/* The head of every entry of a table. */
struct table_entry {
    uint64_t hash;
    int next; /* in its chain, -1: none */
};

struct table {
    size_t size; /* of one */
    char *at;
    int n, cap, *head; /* as many chains as there is room for */
};

static void *table_at(const struct table *t, int i)
{
    return t->at + (size_t)i * t->size;
}

static int table_first(const struct table *t, uint64_t hash)
{
    return t->cap ? t->head[hash & (uint64_t)(t->cap - 1)] : -1;
}

static void chain(struct table *t, int i)
{
    struct table_entry *x = table_at(t, i);
    int *head = &t->head[x->hash & (uint64_t)(t->cap - 1)];
    x->next = *head;
    *head = i;
}

static int table_grow(struct table *t)
{
    int cap = t->cap ? 2 * t->cap : 256;
    if (TOPT_RESIZE(t->at, (size_t)cap * t->size) || TOPT_RESIZE(t->head, cap))
        return -1;
    t->cap = cap;
    memset(t->head, 0xff, (size_t)cap * sizeof *t->head);
    for (int i = 0; i < t->n; i++)
        chain(t, i);
    return 0;
}

/* The number of a new one, all zero; -1 without memory. */
static int table_add(struct table *t, uint64_t hash)
{
    if (t->n == t->cap && table_grow(t))
        return -1;
    struct table_entry *x = table_at(t, t->n);
    memset(x, 0, t->size);
    x->hash = hash;
    chain(t, t->n);
    return t->n++;
}

static void table_fini(struct table *t)
{
    free(t->at);
    free(t->head);
}

/* FNV-1a, by bytes: keys are short. */
static uint64_t mix(uint64_t h, const void *data, size_t size)
{
    const unsigned char *c = data;
    while (size--)
        h = (h ^ *c++) * 0x100000001b3u;
    return h ^ h >> 32;
}

/* ---- what is remembered ------------------------------------------------------------ */

enum piece { INIT, FORWARD, AGAIN, BACKWARD, END, PIECES };

/* An operator, or a hub, in a configuration.  Numbers of bytes are places in
 * evaluator.bytes: what a piece rises by, then by what it changes what is alive. */
struct entry {
    struct table_entry link;
    int kind;
    struct topt_config config;
    int hub_keep;
    struct topt_fragment_cost cost;
    struct topt_edge_end from, to[TOPT_MAX_INPUTS];
    int64_t waiting;
    int piece[PIECES], out, grad[TOPT_MAX_INPUTS]; /* -1: none */
    int windows, partial;
};

/* A use of a tensor, from the entry where it waits to that of its consumer, or from
 * its producer into its hub. */
struct use {
    struct table_entry link;
    int from, to, input;
    struct topt_edge_cost cost;
    struct moved {
        int rise, bytes; /* -1: stays where it is */
    } there, back;       /* of the value, and of the gradient */
};

struct topt_evaluator {
    struct topt_emitter emitter; /* first: it is cast to this */
    struct topt_pieces pieces;
    struct topt_costing k;
    struct topt_totals totals;
    int peaks; /* are they asked for? */
    struct topt_dataflow dataflow;
    struct topt_live_bytes alive;
    int *kind_of_op, *kind_of_hub; /* by operator; by tensor; alike ones have the same */
    struct table entries, uses;
    int64_t *bytes; /* by number and lane */
    int nbytes, bytes_cap;
    /* The numbers of entries and uses of the strategy at hand. */
    int *op, *hub, *use, *into_hub;
    uint8_t *keep; /* as the strategy's */
    /* By operator, with its uses; by tensor, its hub with the move into it. */
    struct topt_fragment_cost *cost_of_op, *cost_of_hub;
    int windows;
    int64_t now[TOPT_LIVE_LANES], most[TOPT_LIVE_LANES];
    struct topt_error *err;
};

static struct entry *entry_at(const struct topt_evaluator *a, int i)
{
    return table_at(&a->entries, i);
}

static struct use *use_at(const struct topt_evaluator *a, int i)
{
    return table_at(&a->uses, i);
}

static int no_memory(struct topt_evaluator *a)
{
    return topt_nomem(a->err, "checking strategies");
}

/* ---- what is alike ----------------------------------------------------------------- */

static int same_hub(const struct topt_evaluator *a, int x, int y)
{
    const struct topt_tensor *t = a->k.model->tensor;
    return topt_same_tensor(a->k.model, x, y) && t[x].nconsumers == t[y].nconsumers &&
           a->kind_of_op[t[x].producer] == a->kind_of_op[t[y].producer];
}

/* A kind is the number of the first operator of it; of hubs, after all operators, that
 * of the first tensor.  In a model of layers the nearest one alike is a layer back. */
static void find_kinds(struct topt_evaluator *a)
{
    const struct topt_model *m = a->k.model;
    for (int i = 0; i < m->nops; i++) {
        a->kind_of_op[i] = i;
        for (int k = i - 1; k >= 0; k--)
            if (topt_same_op(m, k, i)) {
                a->kind_of_op[i] = a->kind_of_op[k];
                break;
            }
    }
    for (int t = 0; t < m->ntensors; t++) {
        a->kind_of_hub[t] = m->nops + t;
        for (int k = t - 1; k >= 0 && m->tensor[t].nconsumers > 1; k--)
            if (same_hub(a, k, t)) {
                a->kind_of_hub[t] = a->kind_of_hub[k];
                break;
            }
    }
}

/* ---- numbers of bytes -------------------------------------------------------------- */

/* Remember bytes of all lanes; -1 without memory. */
static int put_bytes(struct topt_evaluator *a, const int64_t *bytes)
{
    size_t lanes = (size_t)a->alive.lanes;
    if (a->nbytes == a->bytes_cap) {
        int cap = a->bytes_cap ? 2 * a->bytes_cap : 1024;
        if (TOPT_RESIZE(a->bytes, (size_t)cap * lanes))
            return no_memory(a);
        a->bytes_cap = cap;
    }
    memcpy(&a->bytes[(size_t)a->nbytes * lanes], bytes, lanes * sizeof *bytes);
    return a->nbytes++;
}

static int put_buffer(struct topt_evaluator *a, int buffer)
{
    return put_bytes(a, &a->alive.bytes[(size_t)buffer * (size_t)a->alive.lanes]);
}

/* A piece that ends here. */
static int put_piece(struct topt_evaluator *a)
{
    int rise = put_bytes(a, a->alive.most);
    return rise < 0 || put_bytes(a, a->alive.now) < 0 ? -1 : rise;
}

/* ---- an operator's fragments ------------------------------------------------------- */

static int alloc_inputs(const struct topt_fragments *f, int op,
                        const struct topt_config *c, int backward,
                        struct topt_op_buffers *b)
{
    for (int k = 0; k < f->model->op[op].ninputs; k++)
        if (topt_op_alloc_input(f, op, k, c, backward, b))
            return -1;
    return 0;
}

static int follow_forward(struct topt_evaluator *a, const struct topt_fragments *f,
                          int op, enum topt_pass pass, struct entry *e,
                          struct topt_op_buffers *b)
{
    int y = f->model->op[op].output, again = pass == TOPT_PASS_RECOMPUTE;
    if (alloc_inputs(f, op, &e->config, 0, b))
        return -1;
    topt_live_bytes_mark(&a->alive);
    if (topt_op_forward(f, op, &e->config, pass, b))
        return -1;
    e->piece[again ? AGAIN : FORWARD] = put_piece(a);
    if (!again)
        e->out = put_buffer(a, b->value[y]);
    b->value[y] = -1;
    return e->piece[again ? AGAIN : FORWARD] < 0 || e->out < 0 ? -1 : 0;
}

static int follow_backward(struct topt_evaluator *a, const struct topt_fragments *f,
                           int op, struct entry *e, struct topt_op_buffers *b)
{
    const struct topt_op *o = &f->model->op[op];
    if (topt_op_alloc_grad(f, op, &e->config, b) || alloc_inputs(f, op, &e->config, 1, b))
        return -1;
    topt_live_bytes_mark(&a->alive);
    if (topt_op_backward(f, op, &e->config, b))
        return -1;
    e->piece[BACKWARD] = put_piece(a);
    for (int k = 0; k < o->ninputs; k++) {
        int grad = b->grad[o->input[k]];
        if (grad >= 0 && (e->grad[k] = put_buffer(a, grad)) < 0)
            return -1;
    }
    return e->piece[BACKWARD] < 0 ? -1 : 0;
}

static int follow_op(struct topt_evaluator *a, int op, struct entry *e)
{
    struct topt_fragments f = topt_live_bytes_fragments(&a->alive, a->err);
    struct topt_op_buffers b;
    int again = e->config.recompute;
    topt_op_buffers_clear(&b);
    topt_live_bytes_start(&a->alive, &e->config);
    if (topt_op_init(&f, op, &e->config, &b) || topt_params_zero(&f, op, &b) ||
        (e->piece[INIT] = put_piece(a)) < 0)
        return -1;
    if (follow_forward(a, &f, op, again ? TOPT_PASS_DROP : TOPT_PASS_KEEP, e, &b) ||
        (again && follow_forward(a, &f, op, TOPT_PASS_RECOMPUTE, e, &b)) ||
        (topt_has_backward(f.model, op) && follow_backward(a, &f, op, e, &b)))
        return -1;
    topt_live_bytes_mark(&a->alive);
    if (topt_params_update(&f, op, &e->config, &b) || (e->piece[END] = put_piece(a)) < 0)
        return -1;
    e->windows = a->alive.windows;
    return 0;
}

static int fill_op(struct topt_evaluator *a, int op, struct entry *e)
{
    const struct topt_costing *k = &a->k;
    const struct topt_op *o = &k->model->op[op];
    if (!topt_config_valid(o, &e->config, k->mesh))
        return topt_fail(a->err, TOPT_ERR_INVAL,
                         "operator '%.60s' can't be split that way", o->name);
    if (topt_cost_op(k, op, &e->config, &e->cost, a->err))
        return -1;
    e->from = topt_edge_producer(k, op, &e->config);
    for (int i = 0; i < o->ninputs; i++)
        e->to[i] = topt_edge_consumer(k, op, i, &e->config, e->cost.transient_bytes);
    e->waiting = topt_span_bytes(k, o->operand[o->output].tensor, &e->from.value);
    return a->peaks ? follow_op(a, op, e) : 0;
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
        mix(mix((uint64_t)kind, config, sizeof *config), &hub_keep, sizeof hub_keep);
    for (int i = table_first(&a->entries, hash); i >= 0; i = entry_at(a, i)->link.next) {
        const struct entry *e = entry_at(a, i);
        if (e->kind == kind && e->hub_keep == hub_keep &&
            !memcmp(&e->config, config, sizeof *config))
            return i;
    }
    struct entry e = {.kind = kind, .config = *config, .hub_keep = hub_keep};
    memset(e.piece, -1, sizeof e.piece);
    memset(e.grad, -1, sizeof e.grad);
    if (op >= 0 ? fill_op(a, op, &e) : fill_hub(a, tensor, &e))
        return -1;
    e.partial = topt_layout_partial_mask(&e.from.value) != 0;
    int n = table_add(&a->entries, hash);
    if (n < 0)
        return no_memory(a);
    e.link = entry_at(a, n)->link;
    *entry_at(a, n) = e;
    return n;
}

/* ---- a tensor's moves -------------------------------------------------------------- */

/* The fragment of a move, which must need what its cost says. */
static int follow_move(struct topt_evaluator *a, int tensor,
                       const struct topt_layout *from, const struct topt_layout *to,
                       const struct topt_move_cost *cost, struct moved *ret)
{
    struct topt_fragments f = topt_live_bytes_fragments(&a->alive, a->err);
    const struct topt_tensor *t = &a->k.model->tensor[tensor];
    struct topt_shape shape = topt_tensor_shape(t);
    int y = a->k.model->op[t->producer].output, made;
    *ret = (struct moved){-1, -1};
    if (!a->peaks)
        return 0;
    topt_live_bytes_start(&a->alive, NULL);
    int src = topt_fragment_operand(&f, t->producer, y, from, TOPT_CLASS_TRANSIENT);
    topt_live_bytes_mark(&a->alive);
    if (src < 0 || topt_fragment_move(&f, t->producer, 0, src, &shape, from, to, &made))
        return -1;
    if (a->alive.most[0] + a->alive.bytes[0] != cost->transient_bytes)
        return topt_fail(a->err, TOPT_ERR_INTERNAL,
                         "a move of '%.60s' needs %lld bytes, its cost says %lld",
                         t->name, (long long)(a->alive.most[0] + a->alive.bytes[0]),
                         (long long)cost->transient_bytes);
    if (made == src)
        return 0;
    ret->rise = put_bytes(a, a->alive.most);
    ret->bytes = put_buffer(a, made);
    return ret->rise < 0 || ret->bytes < 0 ? -1 : 0;
}

static int fill_use(struct topt_evaluator *a, int tensor, struct use *u)
{
    struct topt_edge_end from = entry_at(a, u->from)->from;
    struct topt_edge_end to = entry_at(a, u->to)->to[u->input];
    int trained = a->k.model->tensor[tensor].needs_gradient;
    struct topt_move_cost there, back;
    u->back = (struct moved){-1, -1};
    if (topt_cost_move(&a->k, tensor, &from.value, &to.value, &there, a->err) ||
        follow_move(a, tensor, &from.value, &to.value, &there, &u->there))
        return -1;
    if (trained && (topt_cost_move(&a->k, tensor, &to.grad, &from.grad, &back, a->err) ||
                    follow_move(a, tensor, &to.grad, &from.grad, &back, &u->back)))
        return -1;
    topt_cost_edge_by(&a->k, &from, &to, &there, trained ? &back : NULL, &u->cost);
    return 0;
}

/* The use of a tensor between two entries; -1 on failure. */
static int use_of(struct topt_evaluator *a, int tensor, int from, int to, int input)
{
    struct use u = {.from = from, .to = to, .input = input};
    uint64_t hash = mix(mix((uint64_t)input, &from, sizeof from), &to, sizeof to);
    for (int i = table_first(&a->uses, hash); i >= 0; i = use_at(a, i)->link.next) {
        const struct use *x = use_at(a, i);
        if (x->from == from && x->to == to && x->input == input)
            return i;
    }
    if (fill_use(a, tensor, &u))
        return -1;
    int n = table_add(&a->uses, hash);
    if (n < 0)
        return no_memory(a);
    u.link = use_at(a, n)->link;
    *use_at(a, n) = u;
    return n;
}

/* ---- the strategy at hand ---------------------------------------------------------- */

static int find_entry(struct topt_evaluator *a, int op, int tensor,
                      const struct topt_config *config, int hub_keep, int *entry)
{
    const struct entry *e = *entry >= 0 ? entry_at(a, *entry) : NULL;
    if (e && e->hub_keep == hub_keep && !memcmp(&e->config, config, sizeof *config))
        return 0;
    *entry = entry_of(a, op, tensor, config, hub_keep);
    return *entry < 0 ? -1 : 0;
}

/* 1 where it is another than before; -1: failed. */
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
        if (find_entry(a, i, -1, &s->config[i], 0, &a->op[i]))
            return -1;
        a->windows |= entry_at(a, a->op[i])->windows;
    }
    for (int t = 0; t < m->ntensors; t++)
        if (m->tensor[t].nconsumers > 1 &&
            find_entry(a, -1, t, &s->hub[t].layout, s->hub[t].keep, &a->hub[t]))
            return -1;
    return 0;
}

/* The entry where a tensor waits. */
static int place_of(const struct topt_evaluator *a, int tensor)
{
    const struct topt_tensor *t = &a->k.model->tensor[tensor];
    return t->nconsumers > 1 ? a->hub[tensor] : a->op[t->producer];
}

/* Uses belong to the entries at their ends, so that what an operator costs with them
 * changes where one of them does, or what it keeps. */
static int find_op_uses(struct topt_evaluator *a, const struct topt_strategy *s, int op)
{
    const struct topt_op *o = &a->k.model->op[op];
    struct topt_fragment_cost *cost = &a->cost_of_op[op];
    int at = op * TOPT_MAX_INPUTS, changed = !o->ninputs;
    for (int k = 0; k < o->ninputs; k++) {
        int t = o->operand[o->input[k]].tensor;
        int other = find_use(a, t, place_of(a, t), a->op[op], k, &a->use[at + k]);
        if (other < 0)
            return -1;
        changed |= other || a->keep[at + k] != s->keep[at + k];
        a->keep[at + k] = s->keep[at + k];
    }
    if (!changed)
        return 0;
    *cost = entry_at(a, a->op[op])->cost;
    for (int k = 0; k < o->ninputs; k++)
        if (topt_cost_join(cost,
                           topt_edge_choice(&use_at(a, a->use[at + k])->cost,
                                            (enum topt_keep)a->keep[at + k]),
                           a->err))
            return -1;
    return 0;
}

static int find_into_hub(struct topt_evaluator *a, int tensor)
{
    int from = a->op[a->k.model->tensor[tensor].producer];
    int other = find_use(a, tensor, from, a->hub[tensor], 0, &a->into_hub[tensor]);
    if (other <= 0)
        return other;
    a->cost_of_hub[tensor] = entry_at(a, a->hub[tensor])->cost;
    return topt_cost_join(
        &a->cost_of_hub[tensor],
        topt_edge_choice(&use_at(a, a->into_hub[tensor])->cost, TOPT_KEEP_AFTER), a->err);
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

/* ---- its cost ---------------------------------------------------------------------- */

static const struct topt_evaluator *evaluator_of(const struct topt_pieces *p)
{
    return (const struct topt_evaluator *)((const char *)p -
                                           offsetof(struct topt_evaluator, pieces));
}

static const struct topt_fragment_cost *cost_of_op(struct topt_pieces *p, int op)
{
    return &evaluator_of(p)->cost_of_op[op];
}

static const struct topt_fragment_cost *cost_of_hub(struct topt_pieces *p, int tensor)
{
    return &evaluator_of(p)->cost_of_hub[tensor];
}

static int64_t waiting_bytes(struct topt_pieces *p, int tensor)
{
    const struct topt_evaluator *a = evaluator_of(p);
    return entry_at(a, place_of(a, tensor))->waiting;
}

static const struct topt_pieces pieces = {cost_of_op, cost_of_hub, waiting_bytes};

/* ---- its peak ---------------------------------------------------------------------- */

static const int64_t *bytes_at(const struct topt_evaluator *a, int number)
{
    return &a->bytes[(size_t)number * (size_t)a->alive.lanes];
}

static void pass(struct topt_evaluator *a, int rise, int change)
{
    const int64_t *up = bytes_at(a, rise), *after = bytes_at(a, change);
    for (int i = 0; i < a->alive.lanes; i++) {
        int64_t most = a->now[i] + up[i];
        a->most[i] = most > a->most[i] ? most : a->most[i];
        a->now[i] += after[i];
    }
}

static void pass_piece(struct topt_evaluator *a, int op, enum piece piece)
{
    int rise = entry_at(a, a->op[op])->piece[piece];
    pass(a, rise, rise + 1);
}

/* The buffer that is brought, or its source where that stays. */
static int bring(struct topt_evaluator *a, const struct moved *m, int src)
{
    if (m->rise < 0)
        return src;
    pass(a, m->rise, m->bytes);
    return m->bytes;
}

static int emit_in_place(struct topt_emitter *c, int op, int k)
{
    const struct topt_evaluator *a = (const struct topt_evaluator *)c;
    return use_at(a, a->use[op * TOPT_MAX_INPUTS + k])->there.rise < 0;
}

static int emit_partial(struct topt_emitter *c, int tensor)
{
    const struct topt_evaluator *a = (const struct topt_evaluator *)c;
    return entry_at(a, place_of(a, tensor))->partial;
}

static int emit_into_hub(struct topt_emitter *c, int tensor, int backward, int value)
{
    struct topt_evaluator *a = (struct topt_evaluator *)c;
    (void)backward;
    return bring(a, &use_at(a, a->into_hub[tensor])->there, value);
}

static int emit_fetch(struct topt_emitter *c, int op, int k, int backward, int value)
{
    struct topt_evaluator *a = (struct topt_evaluator *)c;
    (void)backward;
    return bring(a, &use_at(a, a->use[op * TOPT_MAX_INPUTS + k])->there, value);
}

static int emit_take_grad(struct topt_emitter *c, int tensor, int grad)
{
    struct topt_evaluator *a = (struct topt_evaluator *)c;
    if (a->k.model->tensor[tensor].nconsumers < 2)
        return grad;
    return bring(a, &use_at(a, a->into_hub[tensor])->back, grad);
}

static int emit_give_grad(struct topt_emitter *c, int op, int k, int grad)
{
    struct topt_evaluator *a = (struct topt_evaluator *)c;
    return bring(a, &use_at(a, a->use[op * TOPT_MAX_INPUTS + k])->back, grad);
}

static int emit_add(struct topt_emitter *c, int op, int grad, int into)
{
    (void)c;
    (void)op;
    (void)grad;
    (void)into;
    return 0;
}

static int emit_forward(struct topt_emitter *c, int op, enum topt_pass pass,
                        const int *input)
{
    struct topt_evaluator *a = (struct topt_evaluator *)c;
    (void)input;
    pass_piece(a, op, pass == TOPT_PASS_RECOMPUTE ? AGAIN : FORWARD);
    return entry_at(a, a->op[op])->out;
}

static int emit_backward(struct topt_emitter *c, int op, int grad, const int *input,
                         int *ret_input_grad)
{
    struct topt_evaluator *a = (struct topt_evaluator *)c;
    (void)grad;
    (void)input;
    pass_piece(a, op, BACKWARD);
    memcpy(ret_input_grad, entry_at(a, a->op[op])->grad,
           (size_t)a->k.model->op[op].ninputs * sizeof *ret_input_grad);
    return 0;
}

static void emit_release(struct topt_emitter *c, int what)
{
    struct topt_evaluator *a = (struct topt_evaluator *)c;
    const int64_t *bytes = bytes_at(a, what);
    for (int i = 0; i < a->alive.lanes; i++)
        a->now[i] -= bytes[i];
}

static void emit_keep(struct topt_emitter *c, int value, enum topt_class cls)
{
    (void)c;
    (void)value;
    (void)cls;
}

static const struct topt_emitter emitter = {emit_in_place, emit_partial,   emit_into_hub,
                                            emit_fetch,    emit_take_grad, emit_give_grad,
                                            emit_add,      emit_forward,   emit_backward,
                                            emit_release,  emit_keep};

static int find_peak(struct topt_evaluator *a, const struct topt_strategy *s,
                     int64_t *ret_peak)
{
    int nops = a->k.model->nops, lanes = a->alive.lanes, first = a->windows && lanes > 1;
    memset(a->now, 0, sizeof a->now);
    memset(a->most, 0, sizeof a->most);
    for (int i = 0; i < nops; i++)
        pass_piece(a, i, INIT);
    if (topt_dataflow_run(&a->dataflow, s, &a->emitter, a->err))
        return -1;
    for (int i = 0; i < nops; i++)
        pass_piece(a, i, END);
    *ret_peak = a->most[first];
    for (int i = first + 1; first && i < lanes; i++)
        *ret_peak = a->most[i] > *ret_peak ? a->most[i] : *ret_peak;
    return 0;
}

/* ---- the whole --------------------------------------------------------------------- */

/* After a failure what is known of the strategy at hand is of no use to the next. */
static void forget(struct topt_evaluator *a)
{
    size_t nops = (size_t)a->k.model->nops, ntensors = (size_t)a->k.model->ntensors;
    memset(a->op, 0xff, nops * sizeof *a->op);
    memset(a->hub, 0xff, ntensors * sizeof *a->hub);
    memset(a->use, 0xff, nops * TOPT_MAX_INPUTS * sizeof *a->use);
    memset(a->into_hub, 0xff, ntensors * sizeof *a->into_hub);
}

int topt_evaluate_strategy(struct topt_evaluator *a, const struct topt_strategy *s,
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

static int *numbers(size_t n)
{
    int *x = malloc((n + 1) * sizeof *x);
    if (x)
        memset(x, 0xff, (n + 1) * sizeof *x);
    return x;
}

static int init(struct topt_evaluator *a, const struct topt_costing *k)
{
    size_t nops = (size_t)k->model->nops, ntensors = (size_t)k->model->ntensors;
    a->emitter = emitter;
    a->pieces = pieces;
    a->k = *k;
    a->alive = topt_live_bytes(&a->k);
    a->entries.size = sizeof(struct entry);
    a->uses.size = sizeof(struct use);
    a->kind_of_op = numbers(nops);
    a->kind_of_hub = numbers(ntensors);
    a->op = numbers(nops);
    a->hub = numbers(ntensors);
    a->use = numbers(nops * TOPT_MAX_INPUTS);
    a->into_hub = numbers(ntensors);
    a->keep = calloc(nops * TOPT_MAX_INPUTS + 1, 1);
    a->cost_of_op = calloc(nops + 1, sizeof *a->cost_of_op);
    a->cost_of_hub = calloc(ntensors + 1, sizeof *a->cost_of_hub);
    if (!a->keep || !a->cost_of_op || !a->cost_of_hub || !a->kind_of_op ||
        !a->kind_of_hub || !a->op || !a->hub || !a->use || !a->into_hub)
        return no_memory(a);
    find_kinds(a);
    return topt_settings_fit(k->model, k->settings, a->err) ||
                   topt_totals_init(&a->totals, k, a->err) ||
                   topt_dataflow_init(&a->dataflow, k->model, a->err)
               ? -1
               : 0;
}

struct topt_evaluator *topt_evaluator_create(const struct topt_costing *k, int peaks,
                                             struct topt_error *err)
{
    struct topt_evaluator *a = calloc(1, sizeof *a);
    if (!a) {
        topt_nomem(err, "checking strategies");
        return NULL;
    }
    a->err = err;
    a->peaks = peaks;
    if (init(a, k)) {
        topt_evaluator_destroy(a);
        return NULL;
    }
    return a;
}

void topt_evaluator_destroy(struct topt_evaluator *a)
{
    if (!a)
        return;
    topt_live_bytes_fini(&a->alive);
    topt_totals_fini(&a->totals);
    topt_dataflow_fini(&a->dataflow);
    table_fini(&a->entries);
    table_fini(&a->uses);
    free(a->bytes);
    free(a->kind_of_op);
    free(a->kind_of_hub);
    free(a->op);
    free(a->hub);
    free(a->use);
    free(a->into_hub);
    free(a->keep);
    free(a->cost_of_op);
    free(a->cost_of_hub);
    free(a);
}
