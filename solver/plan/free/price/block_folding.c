/* block_folding.c - blocks that choose alike, as one block.
 *
 * All nodes at one position of the blocks of a kind become one variable, which pays for them
 * all; all alike edges between two variables become one term.  The edge from a block to the
 * next becomes one that leads back: a term is written from the lower variable to the higher,
 * with its table transposed where that is against the flow, so that the search sees no
 * circle.  What is recomputed in backward is there for one block at a time and counts
 * once, or, where units recompute, for the nodes that stand in one of them.
 *
 * Boundaries are no special case: the first block's edges come from elsewhere and are
 * terms of their own. */
#include "price.h"
#include "topt_arena.h"
#include "topt_minmax.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- variables --------------------------------------------------------------------- */

/* The operator in the first block that a node stands at, or -1. */
static int position_of(const struct topt_problem *p, const struct node *n)
{
    const struct topt_blocks *b = p->options.alike ? p->options.blocks : NULL;
    int op = topt_node_operator(p, n), kind = b ? b->kind[op] : -1;
    return kind >= 0 ? b->of[kind].first + b->position[op] : -1;
}

/* Hubs at one position may differ at the last block, and then choose by themselves. */
static int same_list(const struct family *a, const struct family *b)
{
    if ((a->op >= 0) != (b->op >= 0) || a->n != b->n)
        return 0;
    for (int i = 0; i < a->n; i++)
        if (memcmp(&a->at[i].config, &b->at[i].config, sizeof a->at[i].config) ||
            a->at[i].hub_keep != b->at[i].hub_keep)
            return 0;
    return 1;
}

/* The first node of a variable, and another variable, from 1 on, that stands where it does; 0: none. */
struct first {
    int node, next;
};

/* The variable of a node that stands where 'i' does. */
static int variable_of(const struct topt_problem *p, const struct first *first, int i,
                       const struct node *n)
{
    for (; i; i = first[i - 1].next)
        if (same_list(&p->family[p->node[first[i - 1].node].family],
                      &p->family[n->family]))
            return i - 1;
    return p->nvariables;
}

/* A hub is named after its tensor, which has the name of its producer. */
static const char *name_node(struct topt_problem *p, const struct node *n,
                             const char *prefix)
{
    const char *name = p->k.model->tensor[n->tensor].name;
    if (!*prefix)
        return name;
    size_t size = strlen(name) + strlen(prefix) + 1;
    char *s = topt_arena_alloc(p->arena, size, 1);
    if (s)
        snprintf(s, size, "%s%s", prefix, name);
    return s;
}

/* A part has the variables of the whole, even where lists came to be the same. */
static void copy_variables(struct topt_problem *p)
{
    p->nvariables = p->of->nvariables - p->of->nmirrors;
    memcpy(p->variable, p->of->variable, (size_t)p->nvariables * sizeof *p->variable);
    for (int i = 0; i < p->nvariables; i++)
        p->variable[i].terms = 0;
    for (int i = 0; i < p->nnodes; i++)
        p->node[i].variable = p->of->node[i].variable;
}

static int make_variables(struct topt_problem *p, struct topt_error *err)
{
    struct first *first = malloc(((size_t)p->nnodes + 1) * sizeof *first);
    int *head = calloc((size_t)p->k.model->nops + 1, sizeof *head); /* by place */
    int rc = first && head ? 0 : topt_nomem(err, "the problem");
    for (int i = 0; i < p->nnodes && !rc; i++) {
        struct node *n = &p->node[i];
        int at = position_of(p, n), last = at >= 0 ? head[at] : 0;
        n->variable = variable_of(p, first, last, n);
        if (n->variable < p->nvariables)
            continue;
        const char *name = name_node(p, n, n->op >= 0 ? "" : "hub:");
        if (!name)
            rc = topt_nomem(err, "the problem");
        first[p->nvariables] = (struct first){i, last};
        if (at >= 0)
            head[at] = p->nvariables + 1;
        p->variable[p->nvariables++] = (struct variable){.name = name};
    }
    free(first);
    free(head);
    return rc;
}

/* ---- choices ----------------------------------------------------------------------- */

static int has_parts(const struct domain *c, const struct domain_part *part, int n)
{
    int i = 0;
    while (c->nparts == n && i < n && c->part[i].family == part[i].family &&
           c->part[i].times == part[i].times && c->part[i].paying == part[i].paying)
        i++;
    return i == n;
}

/* Add 'times' times 'by'; 1 where that overflows. */
static int charge(int64_t *sum, int64_t by, int64_t times)
{
    int64_t all = 0;
    return __builtin_mul_overflow(by, times, &all) ||
           __builtin_add_overflow(*sum, all, sum);
}

/* The bytes that blocks of part 'k' recompute beyond those of the parts before: the largest
 * needs its room once, and a first block without gradients at its start recomputes less. */
static int64_t recomputed_beyond(const struct topt_problem *p,
                                 const struct domain_part *part, int k, int config)
{
    int64_t most = 0, own = 0;
    for (int j = 0; j <= k; j++) {
        const struct family *f = &p->family[part[j].family];
        most = topt_max(most, own);
        own = f->at[config].recomputed / f->among;
    }
    return topt_max(own - most, 0);
}

/* Add up the costs of the parts' nodes, by configuration: what is recomputed counts once, or,
 * by unit, for each node of the unit that pays, and of what is in flight the most. */
static int add_up(const struct topt_problem *p, struct domain *c, struct topt_error *err)
{
    int64_t once = topt_parts_once(p, c->part, c->nparts);
    int bad = 0;
    for (int k = 0; k < c->nparts; k++) {
        const struct family *f = &p->family[c->part[k].family];
        for (int i = 0; i < f->n; i++) {
            struct value *v = &c->at[i];
            const struct choice *x = &f->at[i];
            bad |= charge(&v->cost.memory, x->cost.memory, c->part[k].times) |
                   charge(&v->cost.time, x->cost.time, c->part[k].times) |
                   charge(&v->cost.memory, recomputed_beyond(p, c->part, k, i), once);
            v->transient = topt_max(v->transient, x->transient);
            v->waiting = topt_max(v->waiting, x->waiting);
        }
    }
    return bad ? topt_fail(err, TOPT_ERR_LIMIT, "the cost of repeated blocks overflows")
               : 0;
}

/* Do two configurations look the same from every edge? */
static int same_classes(const struct topt_problem *p, const struct domain *c, int a,
                        int b)
{
    for (int k = 0; k < c->nparts; k++) {
        const struct family *f = &p->family[c->part[k].family];
        for (int i = 0; i < AS_CONSUMER + f->ninputs; i++)
            if (f->at[a].class[i] != f->at[b].class[i])
                return 0;
    }
    return 1;
}

static int no_worse(const struct value *a, const struct value *b)
{
    return a->cost.memory <= b->cost.memory && a->cost.time <= b->cost.time &&
           a->transient <= b->transient && a->waiting <= b->waiting;
}

/* List the configurations that none in the same classes is at least as good as; of equals
 * the first stays.  'next' chains the configurations of a producer's class. */
static int drop_dominated(const struct topt_problem *p, struct domain *c,
                          struct topt_error *err)
{
    const struct family *f = &p->family[c->part[0].family];
    int *head = malloc(((size_t)f->side[AS_PRODUCER].n + 1) * sizeof *head);
    int *next = malloc(((size_t)f->n + 1) * sizeof *next);
    uint8_t *out = calloc((size_t)f->n + 1, 1);
    int rc = head && next && out ? 0 : topt_nomem(err, "the problem");
    for (int i = 0; i < f->side[AS_PRODUCER].n && !rc; i++)
        head[i] = -1;
    for (int i = 0; i < f->n && !rc; i++) {
        int *first = &head[f->at[i].class[AS_PRODUCER]];
        for (int j = *first; j >= 0; j = next[j]) {
            if (out[j] || !same_classes(p, c, i, j))
                continue;
            if (no_worse(&c->at[j], &c->at[i])) {
                out[i] = 1;
                break;
            }
            out[j] = (uint8_t)no_worse(&c->at[i], &c->at[j]);
        }
        next[i] = *first;
        *first = i;
    }
    for (int i = 0; i < f->n && !rc; i++)
        if (!out[i]) {
            c->at[c->n] = c->at[i];
            c->at[c->n++].config = i;
        }
    free(head);
    free(next);
    free(out);
    return rc;
}

static int alloc_domain(const struct topt_problem *p, struct domain *c, int n)
{
    c->at = TOPT_NEW(p->arena, n, struct value);
    c->kept = TOPT_NEW(p->arena, n, int32_t);
    c->kept_cost = TOPT_NEW(p->arena, n, struct topt_cost);
    int ok = c->at && c->kept && c->kept_cost;
    for (int k = 0; k < c->nparts; k++)
        for (int i = 0; i < AS_CONSUMER + p->family[c->part[k].family].ninputs; i++)
            ok = ok && (c->part[k].class[i] = TOPT_NEW(p->arena, n, int32_t));
    return ok ? 0 : -1;
}

/* The domain of the given parts, which are copied where it is new. */
static int domain_of(struct topt_problem *p, const struct domain_part *part, int nparts,
                     struct topt_error *err)
{
    for (int i = 0; i < p->ndomains; i++)
        if (has_parts(&p->domain[i], part, nparts))
            return i;
    struct domain *c = &p->domain[p->ndomains];
    *c = (struct domain){.nparts = nparts,
                         .part = TOPT_NEW(p->arena, nparts, struct domain_part)};
    if (!c->part)
        return topt_nomem(err, "the problem");
    memcpy(c->part, part, (size_t)nparts * sizeof *part);
    if (alloc_domain(p, c, p->family[part[0].family].n))
        return topt_nomem(err, "the problem");
    p->ndomains++;
    return add_up(p, c, err) || drop_dominated(p, c, err) ? -1 : p->ndomains - 1;
}

/* Families of a variable's nodes, in the order of the nodes: from 'i' on, to the node that 'next'
 * has for each, -1 at the end. */
static int parts_of(const struct topt_problem *p, const int *next, int i,
                    struct domain_part *ret)
{
    int nparts = 0;
    for (; i >= 0; i = next[i]) {
        const struct node *n = &p->node[i];
        int k = 0;
        while (k < nparts && ret[k].family != n->family)
            k++;
        if (k == nparts)
            ret[nparts++] = (struct domain_part){.family = n->family};
        ret[k].times++;
        ret[k].paying += topt_node_pays(p, n);
    }
    return nparts;
}

static int make_choices(struct topt_problem *p, struct topt_error *err)
{
    size_t n = (size_t)p->nnodes + 1;
    struct domain_part *part = malloc(n * sizeof *part);
    int *next = malloc(n * sizeof *next), *head = malloc(n * sizeof *head);
    int rc = part && next && head ? 0 : topt_nomem(err, "the problem");
    for (int i = 0; i < p->nvariables && !rc; i++)
        head[i] = -1;
    for (int i = p->nnodes - 1; i >= 0 && !rc; i--) {
        next[i] = head[p->node[i].variable];
        head[p->node[i].variable] = i;
    }
    for (int i = 0; i < p->nvariables && !rc; i++) {
        p->variable[i].domain = domain_of(p, part, parts_of(p, next, head[i], part), err);
        rc = p->variable[i].domain < 0 ? -1 : 0;
    }
    free(part);
    free(next);
    free(head);
    return rc;
}

/* ---- terms ------------------------------------------------------------------------- */

static int part_number(const struct topt_problem *p, const struct node *n)
{
    const struct domain *c = topt_domain(p, n->variable);
    int k = 0;
    while (c->part[k].family != n->family)
        k++;
    return k;
}

/* The variable that takes what the node's takes. */
static int mirror_of(struct topt_problem *p, const struct node *n, struct topt_error *err)
{
    for (int i = 0; i < p->nmirrors; i++)
        if (p->mirror[i].of == n->variable)
            return p->mirror[i].variable;
    const char *name = name_node(p, n, n->op >= 0 ? "next:" : "next:hub:");
    if (!name)
        return topt_nomem(err, "the problem");
    p->variable[p->nvariables] =
        (struct variable){.domain = p->variable[n->variable].domain, .name = name};
    p->mirror[p->nmirrors++] =
        (struct mirror){.variable = p->nvariables, .of = n->variable};
    return p->nvariables++;
}

/* A block uses a tensor once at an input of a variable; a second table there is what the
 * first or last block pays instead. */
static int term_of(struct topt_problem *p, const struct edge *e, struct topt_error *err)
{
    const struct node *a = &p->node[e->from], *b = &p->node[e->to];
    int alone = 1, to = b->variable;
    if (a->variable == b->variable && (to = mirror_of(p, b, err)) < 0)
        return -1;
    struct variable *v = &p->variable[to];
    for (int i = v->terms; i; i = p->term[i - 1].next) {
        struct term *l = &p->term[i - 1];
        if (l->from != a->variable || l->input != e->input)
            continue;
        alone = 0;
        if (l->multiplicity == e->table)
            return i - 1;
        if (l->once && p->table[e->table].trained && !p->table[l->multiplicity].trained) {
            l->once = 0;
            alone = 1;
        }
    }
    p->term[p->nterms] = (struct term){.from = a->variable,
                                       .to = to,
                                       .from_part = part_number(p, a),
                                       .to_part = part_number(p, b),
                                       .input = e->op >= 0 ? e->input : 0,
                                       .multiplicity = e->table,
                                       .once = alone};
    *(v->terms ? &p->term[v->last_term - 1].next : &v->terms) = p->nterms + 1;
    return (v->last_term = ++p->nterms) - 1;
}

/* Until now a term's multiplicity was the number of its table. */
static int multiplicity_of(struct topt_problem *p, const struct term *l)
{
    int transposed = l->from > l->to;
    for (int i = 0; i < p->nmultiplicities; i++) {
        const struct multiplicity *t = &p->multiplicity[i];
        if (t->table == l->multiplicity && t->times == l->times && t->once == l->once &&
            t->transposed == transposed)
            return i;
    }
    p->multiplicity[p->nmultiplicities] = (struct multiplicity){.table = l->multiplicity,
                                                                .times = l->times,
                                                                .once = l->once,
                                                                .transposed = transposed};
    return p->nmultiplicities++;
}

/* How often a term pays for what its edges recompute: as often as they lead into the unit that
 * pays, and those of other units into its variables as blocks have it, if none of the same
 * place does. */
static int64_t once_by_unit(const struct topt_problem *p, const struct term *l)
{
    const struct domain *c = topt_domain(p, l->to);
    if (l->paying || !l->once || !topt_parts_once(p, c->part, c->nparts))
        return l->paying;
    for (int i = 0; i < p->nterms; i++) {
        const struct term *o = &p->term[i];
        if (o->paying && o->from == l->from && o->to == l->to && o->input == l->input)
            return 0;
    }
    return 1;
}

static int make_links(struct topt_problem *p, struct topt_error *err)
{
    for (int i = 0; i < p->nedges; i++) {
        int l = p->edge[i].term = term_of(p, &p->edge[i], err);
        if (l < 0)
            return -1;
        p->term[l].times++;
        p->term[l].paying += topt_node_pays(p, &p->node[p->edge[i].to]);
    }
    for (int i = 0; p->paying >= 0 && i < p->nterms; i++)
        p->term[i].once = once_by_unit(p, &p->term[i]);
    for (int i = 0; i < p->nterms; i++)
        p->term[i].multiplicity = multiplicity_of(p, &p->term[i]);
    return topt_multiplicities_charge(p, err);
}

/* Equal numbers only. */
static int fill_mirror(const struct topt_problem *p, struct mirror *m)
{
    int n = topt_domain(p, m->of)->n;
    size_t z = (size_t)n;
    m->nothing = TOPT_NEW(p->arena, z, struct topt_cost);
    m->number = TOPT_NEW(p->arena, z, int32_t);
    m->first = TOPT_NEW(p->arena, z * z + 1, int32_t);
    if (!m->nothing || !m->number || !m->first)
        return -1;
    for (int i = 0; i < n; i++)
        m->number[i] = i;
    return 0;
}

int topt_fold_blocks(struct topt_problem *p, struct topt_error *err)
{
    size_t nodes = (size_t)p->nnodes + 1, edges = (size_t)p->nedges + 1;
    /* Room for as many as there can be, most of it never touched; each is set as a
     * whole. */
    p->variable = malloc(2 * nodes * sizeof *p->variable); /* each may have a mirror */
    p->domain = malloc(nodes * sizeof *p->domain);
    p->mirror = malloc(nodes * sizeof *p->mirror);
    p->term = malloc(edges * sizeof *p->term);
    p->multiplicity = malloc(edges * sizeof *p->multiplicity);
    p->search_op = malloc(2 * nodes * sizeof *p->search_op);
    p->search_edge = malloc((edges + nodes) * sizeof *p->search_edge);
    if (!p->variable || !p->domain || !p->mirror || !p->term || !p->multiplicity ||
        !p->search_op || !p->search_edge)
        return topt_nomem(err, "the problem");
    if (p->of)
        copy_variables(p);
    else if (make_variables(p, err))
        return -1;
    if (make_choices(p, err) || make_links(p, err))
        return -1;
    for (int i = 0; i < p->nmirrors; i++)
        if (fill_mirror(p, &p->mirror[i]))
            return topt_nomem(err, "the problem");
    return 0;
}

/* ---- freeing ----------------------------------------------------------------------- */

void topt_unfold_blocks(struct topt_problem *p)
{
    for (int i = 0; p->multiplicity && i < p->nmultiplicities; i++) {
        free(p->multiplicity[i].own_first);
        free(p->multiplicity[i].own_cost);
        free(p->multiplicity[i].kept_first);
        free(p->multiplicity[i].kept_cost);
    }
    free(p->variable);
    free(p->domain);
    free(p->mirror);
    free(p->term);
    free(p->multiplicity);
    free(p->search_op);
    free(p->search_edge);
}
