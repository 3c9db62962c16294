/* problem.c - a model on a mesh as a combinatorial problem.
 *
 * Operators that are alike share a family: one list of configurations, one list of costs.
 * Edges between the same two families share a table, by class of configuration (layouts of
 * the tensor at that end).  So repeated blocks cost nothing extra here, and the search can
 * recognise them by pointer.
 *
 * Caps are applied afterwards: what needs more than a cap is left out of the lists. */
#include "problem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct edge_alt {
    struct topt_cost cost;
    int64_t transient;
    uint8_t keep;
};

/* Everything about configurations of alike nodes. */
struct family {
    int op, tensor; /* a representative; op -1: a hub of 'tensor' */
    int n;
    struct topt_config *config;
    uint8_t *hub_keep; /* hubs */
    struct topt_cost *cost;
    int64_t *transient; /* rounded */
    int64_t *waiting;   /* bytes of the output where it waits; 0 where no cap applies */
    int nfrom;          /* classes as a producer */
    int32_t *from_class;
    struct topt_edge_end *from_end; /* by class */
    int nto[TOPT_MAX_INPUTS];
    int32_t *to_class[TOPT_MAX_INPUTS];
    struct topt_edge_end *to_end[TOPT_MAX_INPUTS];
    /* under the current caps */
    int nkept;
    int32_t *kept; /* configuration numbers */
    struct topt_cost *kept_cost;
    int32_t *kept_from_class, *kept_to_class[TOPT_MAX_INPUTS];
};

struct edge_table {
    int from, to, input; /* families; input of an operator, 0 for a hub */
    int32_t *first;
    struct edge_alt *alt;
    /* under the current caps */
    struct topt_table table;
    int32_t *kept_first;
    struct topt_cost *kept_cost;
    int32_t *kept_alt; /* which alternative of the whole table */
};

struct node {
    int op, tensor; /* op -1: hub */
    int family;
    const char *name;
};

struct edge {
    int from, to;  /* nodes */
    int op, input; /* consumer, or op -1: into a hub */
    int table;
};

struct topt_problem {
    struct topt_costing k;
    struct topt_space_options options;
    struct topt_spans spans;
    int nnodes, nedges, nfamilies, ntables;
    struct node *node;
    struct edge *edge;
    struct family *family;
    struct edge_table *table;
    struct topt_search_op *search_op;
    struct topt_search_edge *search_edge;
    struct topt_search_problem search;
    struct topt_arena *names; /* of the hubs */
};

static int canceled(const struct topt_problem *p, struct topt_error *err)
{
    return p->k.cancel && atomic_load(p->k.cancel)
               ? topt_fail(err, TOPT_ERR_CANCELED, "the search was canceled")
               : 0;
}

/* ---- families ---------------------------------------------------------------------------- */

static int multi(const struct topt_model *m, int tensor)
{
    return m->tensor[tensor].nconsumers > 1;
}

static int same_operand(const struct topt_model *m, const struct topt_operand *a,
                        const struct topt_operand *b)
{
    if (a->role != b->role || a->present != b->present ||
        memcmp(a->dim, b->dim, sizeof a->dim))
        return 0;
    return a->role != TOPT_INPUT ||
           m->tensor[a->tensor].needs_gradient == m->tensor[b->tensor].needs_gradient;
}

static int op_waits(const struct topt_problem *p, int op)
{
    const struct topt_op *o = &p->k.model->op[op];
    int t = o->operand[o->output].tensor;
    return multi(p->k.model, t) ? TOPT_SPAN_NEXT : p->spans.span[t];
}

static int alike_ops(const struct topt_problem *p, int a, int b)
{
    const struct topt_model *m = p->k.model;
    const struct topt_op *x = &m->op[a], *y = &m->op[b];
    if (x->spec != y->spec || (a == m->loss) != (b == m->loss) ||
        op_waits(p, a) != op_waits(p, b) ||
        memcmp(&x->attrs, &y->attrs, sizeof x->attrs) ||
        memcmp(x->count, y->count, sizeof x->count))
        return 0;
    for (int o = 0; o < x->spec->noperands; o++)
        if (!same_operand(m, &x->operand[o], &y->operand[o]))
            return 0;
    return m->tensor[x->operand[x->output].tensor].needs_gradient ==
           m->tensor[y->operand[y->output].tensor].needs_gradient;
}

static int read_in_backward(const struct topt_model *m, int tensor)
{
    for (int i = 0; i < m->nops; i++)
        for (int k = 0; k < m->op[i].ninputs; k++) {
            int x = m->op[i].input[k];
            if (m->op[i].operand[x].tensor == tensor && m->op[i].spec->operand[x].needed)
                return 1;
        }
    return 0;
}

static int alike_hubs(const struct topt_problem *p, int a, int b)
{
    const struct topt_model *m = p->k.model;
    const struct topt_tensor *x = &m->tensor[a], *y = &m->tensor[b];
    struct topt_splits s = topt_splits_of_tensor(m, a), t = topt_splits_of_tensor(m, b);
    return x->ndim == y->ndim && !memcmp(x->dim, y->dim, sizeof x->dim) &&
           x->nconsumers == y->nconsumers && x->needs_gradient == y->needs_gradient &&
           p->spans.span[a] == p->spans.span[b] && !memcmp(&s, &t, sizeof s) &&
           read_in_backward(m, a) == read_in_backward(m, b);
}

static int family_alloc(struct family *f, int n)
{
    size_t z = (size_t)(n > 0 ? n : 1);
    f->n = n;
    f->cost = calloc(z, sizeof *f->cost);
    f->transient = calloc(z, sizeof *f->transient);
    f->waiting = calloc(z, sizeof *f->waiting);
    f->kept = calloc(z, sizeof *f->kept);
    f->kept_cost = calloc(z, sizeof *f->kept_cost);
    f->from_class = calloc(z, sizeof *f->from_class);
    f->kept_from_class = calloc(z, sizeof *f->kept_from_class);
    f->from_end = calloc(z, sizeof *f->from_end);
    int ok = f->cost && f->transient && f->waiting && f->kept && f->kept_cost &&
             f->from_class && f->kept_from_class && f->from_end;
    for (int i = 0; i < TOPT_MAX_INPUTS; i++) {
        f->to_class[i] = calloc(z, sizeof *f->to_class[i]);
        f->kept_to_class[i] = calloc(z, sizeof *f->kept_to_class[i]);
        f->to_end[i] = calloc(z, sizeof *f->to_end[i]);
        ok = ok && f->to_class[i] && f->kept_to_class[i] && f->to_end[i];
    }
    return ok ? 0 : -1;
}

static void family_fini(struct family *f)
{
    free(f->config);
    free(f->hub_keep);
    free(f->cost);
    free(f->transient);
    free(f->waiting);
    free(f->kept);
    free(f->kept_cost);
    free(f->from_class);
    free(f->kept_from_class);
    free(f->from_end);
    for (int i = 0; i < TOPT_MAX_INPUTS; i++) {
        free(f->to_class[i]);
        free(f->kept_to_class[i]);
        free(f->to_end[i]);
    }
}

static int same_end(const struct topt_edge_end *a, const struct topt_edge_end *b)
{
    return topt_layout_equal(&a->value, &b->value) &&
           topt_layout_equal(&a->grad, &b->grad) && a->hub == b->hub &&
           a->hub_keep == b->hub_keep && a->needed == b->needed &&
           a->others_bytes == b->others_bytes && a->op_bytes == b->op_bytes &&
           a->out_bytes == b->out_bytes;
}

/* Class of an end among those seen: a small number of layouts, so a plain search will do. */
static int32_t class_of(struct topt_edge_end *seen, int *n, const struct topt_edge_end *e)
{
    for (int i = *n - 1; i >= 0; i--)
        if (same_end(&seen[i], e))
            return i;
    seen[*n] = *e;
    return (*n)++;
}

/* Cost, waiting bytes and classes of configuration 'i'. */
static int price_op(struct topt_problem *p, struct family *f, int i,
                    struct topt_error *err)
{
    const struct topt_op *o = &p->k.model->op[f->op];
    struct topt_fragment_cost c;
    if (topt_cost_op(&p->k, f->op, &f->config[i], &c, err))
        return -1;
    f->cost[i].time = c.compute_ns + c.network_ns;
    for (int k = 0; k < TOPT_CLASS_COUNT; k++)
        f->cost[i].memory += c.class_bytes[k];
    f->transient[i] = topt_round_transient(c.transient_bytes);
    struct topt_edge_end e = topt_edge_producer(&p->k, f->op, &f->config[i]);
    f->from_class[i] = class_of(f->from_end, &f->nfrom, &e);
    int t = o->operand[o->output].tensor, span = op_waits(p, f->op);
    int64_t bytes = span == TOPT_SPAN_NEXT ? 0 : topt_span_bytes(&p->k, t, &e.value);
    if (span == TOPT_SPAN_LONG)
        f->cost[i].memory += bytes;
    else
        f->waiting[i] = bytes;
    for (int k = 0; k < o->ninputs; k++) {
        e = topt_edge_consumer(&p->k, f->op, k, &f->config[i], c.transient_bytes);
        f->to_class[k][i] = class_of(f->to_end[k], &f->nto[k], &e);
    }
    return 0;
}

static int price_hub(struct topt_problem *p, struct family *f, int i,
                     struct topt_error *err)
{
    struct topt_hub h = {f->config[i], f->hub_keep[i]};
    struct topt_fragment_cost c;
    if (topt_cost_hub(&p->k, f->tensor, &h, &c, err))
        return -1;
    f->cost[i].time = c.compute_ns + c.network_ns;
    struct topt_edge_end e = topt_edge_hub(&p->k, &h);
    f->from_class[i] = class_of(f->from_end, &f->nfrom, &e);
    f->to_class[0][i] = class_of(f->to_end[0], &f->nto[0], &e);
    int span = p->spans.span[f->tensor];
    int64_t bytes =
        span == TOPT_SPAN_NEXT ? 0 : topt_span_bytes(&p->k, f->tensor, &e.value);
    if (span == TOPT_SPAN_LONG)
        f->cost[i].memory = bytes;
    else
        f->waiting[i] = bytes;
    return 0;
}

static int make_family(struct topt_problem *p, struct family *f, struct topt_error *err)
{
    struct topt_splits splits = f->op >= 0 ? topt_splits_of_op(&p->k.model->op[f->op])
                                           : topt_splits_of_tensor(p->k.model, f->tensor);
    struct topt_config_list list;
    if (topt_space_configs(p->k.mesh, &splits, &p->options, &list, err))
        return -1;
    int copies = f->op < 0 && read_in_backward(p->k.model, f->tensor) ? 2 : 1;
    f->config = calloc((size_t)(copies * list.n + 1), sizeof *f->config);
    f->hub_keep = calloc((size_t)(copies * list.n + 1), 1);
    int bad = !f->config || !f->hub_keep || family_alloc(f, copies * list.n);
    for (int i = 0; !bad && i < f->n; i++) {
        f->config[i] = list.config[i / copies];
        f->hub_keep[i] = copies == 2 && i % 2 == 0;
    }
    free(list.config);
    if (bad)
        return topt_fail(err, TOPT_ERR_NOMEM, "no memory for configurations");
    for (int i = 0; i < f->n; i++)
        if (canceled(p, err) ||
            (f->op >= 0 ? price_op(p, f, i, err) : price_hub(p, f, i, err)))
            return -1;
    return 0;
}

static int family_of(struct topt_problem *p, int op, int tensor, struct topt_error *err)
{
    for (int i = 0; i < p->nfamilies; i++) {
        const struct family *f = &p->family[i];
        if ((op >= 0) == (f->op >= 0) &&
            (op >= 0 ? alike_ops(p, f->op, op) : alike_hubs(p, f->tensor, tensor)))
            return i;
    }
    struct family *f = &p->family[p->nfamilies];
    *f = (struct family){.op = op, .tensor = tensor};
    p->nfamilies++;
    return make_family(p, f, err) ? -1 : p->nfamilies - 1;
}

/* ---- edges --------------------------------------------------------------------------------- */

static int price_edges(struct topt_problem *p, struct edge_table *e,
                       struct topt_error *err)
{
    const struct family *a = &p->family[e->from], *b = &p->family[e->to];
    size_t entries = (size_t)a->nfrom * (size_t)b->nto[e->input];
    e->first = calloc(entries + 1, sizeof *e->first);
    e->kept_first = calloc(entries + 1, sizeof *e->kept_first);
    e->alt = calloc(2 * entries + 1, sizeof *e->alt);
    e->kept_cost = calloc(2 * entries + 1, sizeof *e->kept_cost);
    e->kept_alt = calloc(2 * entries + 1, sizeof *e->kept_alt);
    if (!e->first || !e->alt || !e->kept_first || !e->kept_cost || !e->kept_alt)
        return topt_fail(err, TOPT_ERR_NOMEM, "no memory for edges");
    int tensor = a->op >= 0
                     ? p->k.model->op[a->op].operand[p->k.model->op[a->op].output].tensor
                     : a->tensor;
    int32_t n = 0;
    for (int i = 0; i < a->nfrom; i++) {
        if (canceled(p, err))
            return -1;
        for (int j = 0; j < b->nto[e->input]; j++) {
            struct topt_edge_cost c;
            if (topt_cost_edge(&p->k, tensor, &a->from_end[i], &b->to_end[e->input][j],
                               &c, err))
                return -1;
            for (int k = 0; k < c.nalts; k++)
                e->alt[n++] = (struct edge_alt){
                    .cost = {c.alt[k].class_bytes[TOPT_CLASS_KEPT],
                             c.alt[k].compute_ns + c.alt[k].network_ns},
                    .transient = topt_round_transient(c.alt[k].transient_bytes),
                    .keep = (uint8_t)c.keep[k]};
            e->first[i * b->nto[e->input] + j + 1] = n;
        }
    }
    return 0;
}

static int table_of(struct topt_problem *p, int from, int to, int input,
                    struct topt_error *err)
{
    for (int i = 0; i < p->ntables; i++)
        if (p->table[i].from == from && p->table[i].to == to &&
            p->table[i].input == input)
            return i;
    struct edge_table *e = &p->table[p->ntables++];
    *e = (struct edge_table){.from = from, .to = to, .input = input};
    return price_edges(p, e, err) ? -1 : p->ntables - 1;
}

/* ---- building ------------------------------------------------------------------------------- */

/* A hub is named after its tensor, which has the name of its producer. */
static const char *name_node(struct topt_problem *p, int op, int tensor)
{
    const char *name = p->k.model->tensor[tensor].name;
    if (op >= 0)
        return name;
    size_t size = strlen(name) + sizeof "hub:";
    char *hub = topt_arena_alloc(p->names, size, 1);
    if (hub)
        snprintf(hub, size, "hub:%s", name);
    return hub;
}

static int add_node(struct topt_problem *p, int op, int tensor, struct topt_error *err)
{
    int f = family_of(p, op, tensor, err);
    if (f < 0)
        return -1;
    const char *name = name_node(p, op, tensor);
    if (!name)
        return topt_fail(err, TOPT_ERR_NOMEM, "no memory for the problem");
    p->node[p->nnodes] = (struct node){op, tensor, f, name};
    return p->nnodes++;
}

static int add_edge(struct topt_problem *p, int from, int to, int op, int input,
                    struct topt_error *err)
{
    int t = table_of(p, p->node[from].family, p->node[to].family, input, err);
    if (t < 0)
        return -1;
    p->edge[p->nedges++] = (struct edge){from, to, op, input, t};
    return 0;
}

/* 'source[tensor]': the node where it waits. */
static int add_all(struct topt_problem *p, int *source, struct topt_error *err)
{
    const struct topt_model *m = p->k.model;
    for (int i = 0; i < m->nops; i++) {
        const struct topt_op *o = &m->op[i];
        int t = o->operand[o->output].tensor, n = add_node(p, i, t, err);
        if (n < 0)
            return -1;
        for (int k = 0; k < o->ninputs; k++)
            if (add_edge(p, source[o->operand[o->input[k]].tensor], n, i, k, err))
                return -1;
        source[t] = n;
        if (!multi(m, t))
            continue;
        int hub = add_node(p, -1, t, err);
        if (hub < 0 || add_edge(p, n, hub, -1, 0, err))
            return -1;
        source[t] = hub;
    }
    return 0;
}

int topt_problem_create(const struct topt_costing *k,
                        const struct topt_space_options *options,
                        struct topt_problem **ret, struct topt_error *err)
{
    const struct topt_model *m = k->model;
    size_t nodes = (size_t)m->nops + (size_t)m->ntensors;
    size_t edges = (size_t)m->nops * TOPT_MAX_INPUTS + (size_t)m->ntensors;
    struct topt_problem *p = calloc(1, sizeof *p);
    int *source = calloc((size_t)m->ntensors + 1, sizeof *source);
    int rc = -1;
    if (!p || !source) {
        topt_fail(err, TOPT_ERR_NOMEM, "no memory for the problem");
        goto out;
    }
    p->k = *k;
    p->options = *options;
    p->node = calloc(nodes, sizeof *p->node);
    p->edge = calloc(edges, sizeof *p->edge);
    p->family = calloc(nodes, sizeof *p->family);
    p->table = calloc(edges, sizeof *p->table);
    p->search_op = calloc(nodes, sizeof *p->search_op);
    p->search_edge = calloc(edges, sizeof *p->search_edge);
    p->names = topt_arena_create(0);
    if (!p->node || !p->edge || !p->family || !p->table || !p->search_op ||
        !p->search_edge || !p->names) {
        topt_fail(err, TOPT_ERR_NOMEM, "no memory for the problem");
        goto out;
    }
    if (topt_spans_init(&p->spans, m, err) || add_all(p, source, err))
        goto out;
    *ret = p;
    p = NULL;
    rc = 0;
out:
    topt_problem_destroy(p);
    free(source);
    return rc;
}

void topt_problem_destroy(struct topt_problem *p)
{
    if (!p)
        return;
    for (int i = 0; p->family && i < p->nfamilies; i++)
        family_fini(&p->family[i]);
    for (int i = 0; p->table && i < p->ntables; i++) {
        free(p->table[i].first);
        free(p->table[i].alt);
        free(p->table[i].kept_first);
        free(p->table[i].kept_cost);
        free(p->table[i].kept_alt);
    }
    topt_spans_fini(&p->spans);
    free(p->node);
    free(p->edge);
    free(p->family);
    free(p->table);
    free(p->search_op);
    free(p->search_edge);
    topt_arena_destroy(p->names);
    free(p);
}

void topt_problem_stats(const struct topt_problem *p, struct topt_problem_stats *ret)
{
    *ret = (struct topt_problem_stats){.nodes = p->nnodes};
    for (int i = 0; i < p->nnodes; i++)
        ret->configs += p->family[p->node[i].family].n;
    for (int i = 0; i < p->nfamilies; i++)
        if (p->family[i].nfrom > ret->layouts)
            ret->layouts = p->family[i].nfrom;
    for (int i = 0; i < p->nedges; i++) {
        const struct edge_table *e = &p->table[p->edge[i].table];
        ret->edge_entries +=
            (int64_t)p->family[e->from].nfrom * p->family[e->to].nto[e->input];
    }
}

/* ---- caps ------------------------------------------------------------------------------------ */

static int within(int64_t value, int64_t cap)
{
    return cap < 0 || value <= cap;
}

static void cap_family(struct family *f, int64_t transient_cap, int64_t crossing_cap)
{
    f->nkept = 0;
    for (int i = 0; i < f->n; i++) {
        if (!within(f->transient[i], transient_cap) ||
            !within(f->waiting[i], crossing_cap))
            continue;
        int n = f->nkept++;
        f->kept[n] = i;
        f->kept_cost[n] = f->cost[i];
        f->kept_from_class[n] = f->from_class[i];
        for (int k = 0; k < TOPT_MAX_INPUTS; k++)
            f->kept_to_class[k][n] = f->to_class[k][i];
    }
}

static void cap_table(const struct topt_problem *p, struct edge_table *e, int64_t cap)
{
    int entries = p->family[e->from].nfrom * p->family[e->to].nto[e->input];
    int32_t n = 0;
    for (int i = 0; i < entries; i++) {
        for (int32_t a = e->first[i]; a < e->first[i + 1]; a++) {
            if (!within(e->alt[a].transient, cap))
                continue;
            e->kept_cost[n] = e->alt[a].cost;
            e->kept_alt[n++] = a;
        }
        e->kept_first[i + 1] = n;
    }
    e->table =
        (struct topt_table){p->family[e->from].nfrom, p->family[e->to].nto[e->input],
                            e->kept_first, e->kept_cost};
}

const struct topt_search_problem *
topt_problem_under(struct topt_problem *p, int64_t transient_cap, int64_t crossing_cap)
{
    for (int i = 0; i < p->nfamilies; i++)
        cap_family(&p->family[i], transient_cap, crossing_cap);
    for (int i = 0; i < p->ntables; i++)
        cap_table(p, &p->table[i], transient_cap);
    for (int i = 0; i < p->nnodes; i++) {
        const struct family *f = &p->family[p->node[i].family];
        p->search_op[i] =
            (struct topt_search_op){p->node[i].name, f->nkept, f->kept_cost};
    }
    for (int i = 0; i < p->nedges; i++) {
        const struct edge *e = &p->edge[i];
        const struct edge_table *t = &p->table[e->table];
        p->search_edge[i] = (struct topt_search_edge){
            e->from, e->to, &t->table, p->family[t->from].kept_from_class,
            p->family[t->to].kept_to_class[t->input]};
    }
    p->search =
        (struct topt_search_problem){p->nnodes, p->search_op, p->nedges, p->search_edge};
    return &p->search;
}

int topt_problem_crossing(const struct topt_problem *p)
{
    return p->spans.crossing;
}

static void lower_to(int64_t *best, int64_t value, int64_t below)
{
    if (value < below && value > *best)
        *best = value;
}

int64_t topt_problem_next_transient(const struct topt_problem *p, int64_t below)
{
    int64_t best = -1;
    for (int i = 0; i < p->nfamilies; i++)
        for (int c = 0; c < p->family[i].n; c++)
            lower_to(&best, p->family[i].transient[c], below);
    for (int i = 0; i < p->ntables; i++) {
        const struct edge_table *e = &p->table[i];
        int entries = p->family[e->from].nfrom * p->family[e->to].nto[e->input];
        for (int32_t a = 0; a < e->first[entries]; a++)
            lower_to(&best, e->alt[a].transient, below);
    }
    return best;
}

int64_t topt_problem_next_crossing(const struct topt_problem *p, int64_t below)
{
    int64_t best = -1;
    for (int i = 0; i < p->nfamilies; i++)
        for (int c = 0; c < p->family[i].n; c++)
            lower_to(&best, p->family[i].waiting[c], below);
    return best;
}

/* ---- strategies ------------------------------------------------------------------------------- */

/* The alternative of the whole table that a point takes on an edge. */
static const struct edge_alt *taken(const struct topt_problem *p, int edge,
                                    const struct topt_search_point *point)
{
    const struct edge *e = &p->edge[edge];
    const struct edge_table *t = &p->table[e->table];
    const struct family *a = &p->family[t->from], *b = &p->family[t->to];
    int32_t f = a->kept_from_class[point->config[e->from]];
    int32_t c = b->kept_to_class[t->input][point->config[e->to]];
    return &t->alt[t->kept_alt[t->kept_first[f * b->nto[t->input] + c] +
                               point->alt[edge]]];
}

struct topt_strategy *topt_problem_strategy(const struct topt_problem *p,
                                            const struct topt_search_point *point)
{
    struct topt_strategy *s = topt_strategy_create(p->k.model);
    if (!s)
        return NULL;
    for (int i = 0; i < p->nnodes; i++) {
        const struct family *f = &p->family[p->node[i].family];
        int c = f->kept[point->config[i]];
        if (p->node[i].op >= 0)
            s->config[p->node[i].op] = f->config[c];
        else
            s->hub[p->node[i].tensor] = (struct topt_hub){f->config[c], f->hub_keep[c]};
    }
    for (int i = 0; i < p->nedges; i++)
        if (p->edge[i].op >= 0)
            s->keep[p->edge[i].op * TOPT_MAX_INPUTS + p->edge[i].input] =
                taken(p, i, point)->keep;
    return s;
}

void topt_problem_caps(const struct topt_problem *p,
                       const struct topt_search_point *point, int64_t *ret_transient,
                       int64_t *ret_crossing)
{
    int64_t transient = 0, crossing = 0;
    for (int i = 0; i < p->nnodes; i++) {
        const struct family *f = &p->family[p->node[i].family];
        int c = f->kept[point->config[i]];
        if (f->transient[c] > transient)
            transient = f->transient[c];
        if (f->waiting[c] > crossing)
            crossing = f->waiting[c];
    }
    for (int i = 0; i < p->nedges; i++) {
        int64_t t = taken(p, i, point)->transient;
        if (t > transient)
            transient = t;
    }
    *ret_transient = transient;
    *ret_crossing = crossing;
}

/* ---- random strategies --------------------------------------------------------------------------- */

/* splitmix64 */
static uint64_t next_random(uint64_t *seed)
{
    uint64_t z = (*seed += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

struct topt_strategy *topt_problem_random(const struct topt_problem *p, uint64_t *seed)
{
    struct topt_strategy *s = topt_strategy_create(p->k.model);
    int *config = calloc((size_t)p->nnodes + 1, sizeof *config);
    if (!s || !config) {
        topt_strategy_destroy(s);
        free(config);
        return NULL;
    }
    for (int i = 0; i < p->nnodes; i++) {
        const struct family *f = &p->family[p->node[i].family];
        int c = config[i] = (int)(next_random(seed) % (uint64_t)f->n);
        if (p->node[i].op >= 0)
            s->config[p->node[i].op] = f->config[c];
        else
            s->hub[p->node[i].tensor] = (struct topt_hub){f->config[c], f->hub_keep[c]};
    }
    for (int i = 0; i < p->nedges; i++) {
        const struct edge *e = &p->edge[i];
        const struct edge_table *t = &p->table[e->table];
        const struct family *a = &p->family[t->from], *b = &p->family[t->to];
        int entry = a->from_class[config[e->from]] * b->nto[t->input] +
                    b->to_class[t->input][config[e->to]];
        int n = t->first[entry + 1] - t->first[entry];
        if (e->op >= 0)
            s->keep[e->op * TOPT_MAX_INPUTS + e->input] =
                t->alt[t->first[entry] + (int)(next_random(seed) % (uint64_t)n)].keep;
    }
    free(config);
    return s;
}
