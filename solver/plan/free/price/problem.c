/* problem.c - a model on a mesh as a combinatorial problem.
 *
 * Operators that are alike share a family: one list of configurations, one list of costs.
 * Edges between the same two families share a table, by class of configuration (layouts
 * of the tensor at that end).  So repeated blocks cost nothing extra here, and the search
 * can recognise them by pointer. */
#include "price.h"
#include "topt_array.h"
#include "topt_minmax.h"

#include <stdlib.h>
#include <string.h>

static int add_node(struct topt_problem *p, int op, int tensor, struct topt_error *err)
{
    int f = topt_problem_family(p, op, tensor, err);
    if (f < 0)
        return -1;
    p->node[p->nnodes] = (struct node){.op = op, .tensor = tensor, .family = f};
    return p->nnodes++;
}

static void add_edge(struct topt_problem *p, int from, int to, int op, int input)
{
    int t = topt_edge_table_of(p, p->node[from].family, p->node[to].family, input);
    p->edge[p->nedges++] =
        (struct edge){.from = from, .to = to, .op = op, .input = input, .table = t};
}

/* 'source[tensor]': the node where it waits. */
static int add_all(struct topt_problem *p, int *source, struct topt_error *err)
{
    const struct topt_model *m = p->k.model;
    for (int i = 0; i < m->nops; i++) {
        const struct topt_op *o = &m->op[i];
        int t = topt_output_tensor(o), n = add_node(p, i, t, err);
        if (n < 0)
            return -1;
        for (int k = 0; k < o->ninputs; k++)
            add_edge(p, source[topt_input_tensor(o, k)], n, i, k);
        source[t] = n;
        if (m->tensor[t].nconsumers < 2)
            continue;
        int hub = add_node(p, -1, t, err);
        if (hub < 0)
            return -1;
        add_edge(p, n, hub, -1, 0);
        source[t] = hub;
    }
    return 0;
}

/* ---- what recomputes most ---------------------------------------------------------- */

/* The unit of most bytes; of equals one whose operators choose together with most others.
 * First blocks, which others come before, are not looked at 'first'. */
static int largest_unit(const struct topt_model *m, const int64_t *bytes, int first)
{
    int best = -1;
    for (int i = 0; i < m->nops; i++)
        if (m->unit[i] == i && (first || m->blocks->block[i]) &&
            (best < 0 || bytes[i] > bytes[best] ||
             (bytes[i] == bytes[best] && m->repeats[i] > m->repeats[best])))
            best = i;
    return best;
}

static void add_bytes(const struct topt_problem *p, int node, int64_t bytes, int64_t *sum)
{
    int unit = p->k.model->unit[topt_node_operator(p, &p->node[node])];
    if (unit >= 0)
        sum[unit] += bytes;
}

/* By what the dearest choices of all operators and edges recompute. */
static int find_paying(struct topt_problem *p, struct topt_error *err)
{
    size_t nops = (size_t)p->k.model->nops + 1, ntables = (size_t)p->ntables + 1;
    p->paying = -1;
    if (!p->may_recompute || !p->k.settings->by_unit)
        return 0;
    int64_t *sum = calloc(nops, sizeof *sum), *most = calloc(ntables, sizeof *most);
    int rc = sum && most ? 0 : topt_nomem(err, "the problem");
    for (int i = 0; i < p->ntables && !rc; i++)
        most[i] = topt_table_recomputed_most(p, &p->table[i]);
    for (int i = 0; i < p->nnodes && !rc; i++) {
        const struct family *f = &p->family[p->node[i].family];
        int64_t bytes = 0;
        for (int c = 0; c < f->n; c++)
            bytes = topt_max(bytes, f->at[c].recomputed);
        add_bytes(p, i, bytes, sum);
    }
    for (int i = 0; i < p->nedges && !rc; i++)
        add_bytes(p, p->edge[i].to, most[p->edge[i].table], sum);
    if (!rc && (p->paying = largest_unit(p->k.model, sum, 0)) < 0)
        p->paying = largest_unit(p->k.model, sum, 1);
    free(sum);
    free(most);
    return rc;
}

/* ---- the whole --------------------------------------------------------------------- */

/* Mark what may be recomputed, and tensors that backward reads, or may read to run an operator
 * again. */
static int mark(struct topt_problem *p, struct topt_error *err)
{
    const struct topt_model *m = p->k.model;
    if (p->options.blocks && p->options.recompute != TOPT_RECOMPUTE_NONE) {
        int all = p->options.recompute == TOPT_RECOMPUTE_ALL;
        if (all ? topt_modules_again(m, p->k.settings, p->options.modules,
                                     &p->may_recompute, NULL, err)
                : topt_recomputable(m, p->k.settings, &p->may_recompute, err))
            return -1;
        topt_spans_recompute(&p->spans, m, p->k.settings);
    }
    for (int i = 0; i < m->nops; i++)
        for (int k = 0; k < m->op[i].ninputs; k++) {
            int x = m->op[i].input[k];
            p->reread[m->op[i].tensor[x]] |=
                (m->op[i].reads_back >> x & 1) ||
                topt_problem_may_recompute(p, i) % TOPT_AGAIN_KEPT;
        }
    return 0;
}

static int alloc_problem(struct topt_problem *p)
{
    const struct topt_model *m = p->k.model;
    size_t nodes = (size_t)m->nops + (size_t)m->ntensors;
    size_t edges = (size_t)m->nops * TOPT_MAX_INPUTS + (size_t)m->ntensors;
    /* Each is set as a whole when it is added; families and tables are few. */
    p->node = malloc(nodes * sizeof *p->node);
    p->edge = malloc(edges * sizeof *p->edge);
    p->family = malloc(nodes * sizeof *p->family);
    p->table = malloc(edges * sizeof *p->table);
    p->of_op = malloc(((size_t)m->nops + 1) * sizeof *p->of_op);
    p->of_hub = malloc(((size_t)m->nops + 1) * sizeof *p->of_hub);
    p->arena = topt_arena_create(0);
    p->reread = calloc((size_t)m->ntensors + 1, 1);
    if (!p->of_op || !p->of_hub || !p->reread || !p->node || !p->edge || !p->family ||
        !p->table || !p->arena)
        return -1;
    for (int i = 0; i < m->nops; i++)
        p->of_op[i] = p->of_hub[i] = -1;
    p->by_orbits = p->options.orbits;
    if (!p->options.lazy_entries)
        return 0;
    p->byte_bounds = topt_byte_bounds_create(p->k.hw, p->k.mesh);
    p->symmetry_bounds = topt_symmetry_bounds_create(p->k.hw, p->k.mesh);
    return p->byte_bounds && p->symmetry_bounds ? 0 : -1;
}

/* Shrink the arrays of a problem that is kept for its lower bounds, which add at most as many families and tables again
 * (floor.c). */
static int fit_room(struct topt_problem *p, struct topt_error *err)
{
    return TOPT_RESIZE(p->node, p->nnodes) || TOPT_RESIZE(p->edge, p->nedges) ||
                   TOPT_RESIZE(p->family, 2 * p->nfamilies) ||
                   TOPT_RESIZE(p->table, 2 * p->ntables)
               ? topt_nomem(err, "the problem")
               : 0;
}

int topt_problem_create(const struct topt_costing *k,
                        const struct topt_space_options *options,
                        struct topt_problem **ret, struct topt_error *err)
{
    struct topt_problem *p = calloc(1, sizeof *p);
    int *source = calloc((size_t)k->model->ntensors + 1, sizeof *source), rc = -1;
    if (p) {
        p->k = *k;
        p->options = *options;
    }
    if (!p || !source || alloc_problem(p))
        topt_nomem(err, "the problem");
    else
        rc = topt_spans_init(&p->spans, k->model, err) || mark(p, err) ||
             add_all(p, source, err) || topt_tables_price(p, err) ||
             (options->passes ? fit_room(p, err)
                              : find_paying(p, err) || topt_fold_blocks(p, err));
    free(source);
    if (rc) {
        topt_problem_destroy(p);
        return -1;
    }
    *ret = p;
    return 0;
}

void topt_problem_destroy(struct topt_problem *p)
{
    if (!p)
        return;
    topt_unfold_blocks(p);
    topt_moves_fini(p);
    for (int i = 0; p->family && i < p->nfamilies; i++)
        topt_family_fini(&p->family[i]);
    for (int i = 0; p->table && i < p->ntables; i++)
        topt_table_fini(&p->table[i]);
    if (!p->of) {
        topt_spans_fini(&p->spans);
        topt_byte_bounds_destroy(p->byte_bounds);
        topt_symmetry_bounds_destroy(p->symmetry_bounds);
        free(p->may_recompute);
        free(p->reread);
    }
    free(p->node);
    free(p->edge);
    free(p->family);
    free(p->table);
    free(p->of_op);
    free(p->of_hub);
    topt_arena_destroy(p->arena);
    free(p);
}

/* ---- how large it is ----------------------------------------------------------------- */

/* Orders of some axes of which so many of each kind do the same: each is the next of its
 * kind or another. */
static int64_t orders(const int *what, int n)
{
    int64_t all = 1;
    for (int i = 0; i < n; i++) {
        int same = 0;
        for (int k = 0; k <= i; k++)
            same += what[k] == what[i];
        all = all * (i + 1) / same;
    }
    return all;
}

/* In how many ways alike axes can do what they do together. */
static int64_t renamings(const struct topt_mesh *m, const int what[TOPT_MAX_AXES])
{
    int64_t all = 1;
    for (int end, first = 0; first < m->naxes; first = end) {
        end = first + 1;
        while (end < m->naxes && topt_mesh_alike(m, end - 1, end))
            end++;
        all *= orders(what + first, end - first);
    }
    return all;
}

/* How large the space is that a problem with orbits stands for:
 *
 *     full          b n0    b n1    b n0,n1  ...     thousands of an operator
 *                     |       |        |
 *     with orbits     `- b n -'     b n,n    ...     hundreds: which of alike axes they
 *                                                    take is left open
 *
 * A problem with orbits has for each strategy of the full space one that costs no more,
 * so that what it says of the fastest strategy holds there.  Mirrors, the last variables, are none
 * of that space's. */
static int64_t configs_of(const struct topt_problem *p, int variable)
{
    const struct domain *c = topt_domain(p, variable);
    const struct family *f = &p->family[c->part[0].family];
    int64_t n = 0;
    if (!p->options.orbits)
        return c->n;
    for (int i = 0; variable < p->nvariables - p->nmirrors && i < f->n; i++) {
        int what[TOPT_MAX_AXES] = {0};
        for (int a = 0; a < p->k.mesh->naxes; a++)
            what[a] = f->at[i].config.dim[a];
        n += renamings(p->k.mesh, what);
    }
    return n;
}

static int64_t classes_of(const struct topt_problem *p, const struct side *side)
{
    int64_t n = 0;
    if (!p->options.orbits)
        return side->n;
    for (int i = 0; i < side->n; i++) {
        int what[TOPT_MAX_AXES] = {0};
        for (int a = 0; a < p->k.mesh->naxes; a++)
            what[a] =
                side->end[i].value.at[a] * (TOPT_MAX_RANK + 2) + side->end[i].grad.at[a];
        n += renamings(p->k.mesh, what);
    }
    return n;
}

void topt_problem_stats(const struct topt_problem *p, struct topt_problem_stats *ret)
{
    *ret = (struct topt_problem_stats){.nodes = p->nvariables,
                                       .priced_moves = p->moves_priced};
    for (int i = 0; i < p->nvariables; i++)
        ret->configs += configs_of(p, i);
    for (int i = 0; i < p->nfamilies; i++) {
        int64_t layouts = classes_of(p, &p->family[i].side[AS_PRODUCER]);
        ret->priced_configs += p->family[i].n;
        ret->layouts = topt_max(ret->layouts, layouts);
    }
    for (int i = 0; i < p->nterms; i++) {
        const struct edge_table *t =
            &p->table[p->multiplicity[p->term[i].multiplicity].table];
        ret->edge_entries +=
            classes_of(p, topt_rows(p, t)) * classes_of(p, topt_cols(p, t));
    }
    for (int i = 0; i < p->ntables; i++)
        ret->priced_entries += topt_table_entries(p, &p->table[i]);
}

void topt_problem_stats_add(struct topt_problem_stats *into,
                            const struct topt_problem_stats *from)
{
    into->nodes = from->nodes;
    into->configs += from->configs;
    into->edge_entries += from->edge_entries;
    into->layouts = topt_max(into->layouts, from->layouts);
    into->priced_configs += from->priced_configs;
    into->priced_entries += from->priced_entries;
    into->priced_moves += from->priced_moves;
    into->routes += from->routes;
}

/* ---- random strategies ------------------------------------------------------------- */

/* splitmix64 */
static uint64_t next_random(uint64_t *seed)
{
    uint64_t z = (*seed += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* A hub keeps what its producer keeps, and recomputes what that recomputes: the two
 * stand side by side in a list that has both. */
static int fitting_keep(const struct family *f, int c, const struct topt_strategy *s,
                        const struct topt_model *m)
{
    int again = s->config[m->tensor[f->tensor].producer].recompute == TOPT_AGAIN_ALL;
    if (f->at[c].hub_keep == TOPT_HUB_KEEP && again)
        return c + 1;
    return f->at[c].hub_keep == TOPT_HUB_RECOMPUTE && !again ? c - 1 : c;
}

int topt_problem_has_choices(const struct topt_problem *p)
{
    for (int i = 0; i < p->nnodes; i++)
        if (p->family[p->node[i].family].n == 0)
            return 0;
    return 1;
}

/* The entry of an edge's table under such choices of variables. */
static int32_t entry_under(const struct topt_problem *p, const struct edge *e,
                           const int *config)
{
    const struct node *from = &p->node[e->from], *to = &p->node[e->to];
    const struct edge_table *t = &p->table[e->table];
    const struct choice *a = &p->family[from->family].at[config[from->variable]],
                        *b = &p->family[to->family].at[config[to->variable]];
    return a->class[AS_PRODUCER] * topt_cols(p, t)->n + b->class[AS_CONSUMER + t->input];
}

/* Give a hub another choice where its own leaves the edge no alternative. */
static void settle(const struct topt_problem *p, const struct edge *e, int *config)
{
    const struct node *from = &p->node[e->from];
    const int32_t *first = p->table[e->table].first;
    int *c = &config[from->variable], n = p->family[from->family].n;
    for (int i = 0; from->op < 0 && i < n; i++) {
        int32_t entry = entry_under(p, e, config);
        if (first[entry] < first[entry + 1])
            return;
        *c = (*c + 1) % n;
    }
}

/* The first node of a variable chooses for all, as the first edge of a term does. */
static void roll(const struct topt_problem *p, uint64_t *seed, int *config, int *alt,
                 struct topt_strategy *s)
{
    for (int i = 0; i < p->nnodes; i++) {
        const struct node *n = &p->node[i];
        const struct family *f = &p->family[n->family];
        int *c = &config[n->variable];
        if (*c < 0)
            *c = (int)(next_random(seed) % (uint64_t)f->n);
        if (n->op < 0)
            *c = fitting_keep(f, *c, s, p->k.model);
        if (n->op >= 0)
            s->config[n->op] = f->at[*c].config;
    }
    for (int i = 0; i < p->nedges; i++)
        settle(p, &p->edge[i], config);
    for (int i = 0; i < p->nnodes; i++) {
        const struct node *n = &p->node[i];
        const struct choice *c = &p->family[n->family].at[config[n->variable]];
        if (n->op < 0)
            s->hub[n->tensor] = (struct topt_hub){c->config, c->hub_keep};
    }
    for (int i = 0; i < p->nedges; i++) {
        const struct edge *e = &p->edge[i];
        const struct edge_table *t = &p->table[e->table];
        int32_t entry = entry_under(p, e, config);
        int n = t->first[entry + 1] - t->first[entry];
        if (alt[e->term] < 0)
            alt[e->term] = (int)(next_random(seed) % (uint64_t)n);
        if (e->op >= 0)
            s->keep[e->op * TOPT_MAX_INPUTS + e->input] =
                t->fact[t->first[entry] + alt[e->term]].keep;
    }
}

struct topt_strategy *topt_problem_random(const struct topt_problem *p, uint64_t *seed)
{
    size_t nconfigs = (size_t)p->nvariables + 1, nalts = (size_t)p->nterms + 1;
    struct topt_strategy *s = topt_strategy_create(p->k.model);
    int *config = malloc(nconfigs * sizeof *config), *alt = malloc(nalts * sizeof *alt);
    if (s && config && alt) {
        memset(config, 0xff, nconfigs * sizeof *config); /* -1: none yet */
        memset(alt, 0xff, nalts * sizeof *alt);
        roll(p, seed, config, alt, s);
    } else {
        topt_strategy_destroy(s);
        s = NULL;
    }
    free(config);
    free(alt);
    return s;
}
