/* table.c - what edges between the configurations of two families cost, by class.
 *
 * An entry has one alternative or two: the consumer's copy is kept for backward, or the
 * producer's, which is moved again.  One that another is as good as in everything is left out, and
 * what stays is written by memory ascending, which is how the search wants it: it then
 * reads the table as it is. */
#include "algorithm.h"
#include "problem_impl.h"

#include <stdlib.h>
#include <string.h>

/* An edge table while it is priced: numbers of the layouts at both ends. */
struct pricing {
    struct topt_problem *p;
    struct edge_table *e;
    const struct topt_edge_end *from, *to;
    int nfrom, nto;
    struct topt_moves *moves;
    int trained; /* gradients come back */
    int32_t
        *number; /* value, gradient of each class of the producer, then the consumer */
    int32_t nalts;
};

static const int32_t *number_of(const struct pricing *x, int from, int to)
{
    return &x->number[2 * (from >= 0 ? from : x->nfrom + to)];
}

static int number_ends(struct pricing *x)
{
    for (int i = 0; i < x->nfrom + x->nto; i++) {
        const struct topt_edge_end *end =
            i < x->nfrom ? &x->from[i] : &x->to[i - x->nfrom];
        x->number[2 * i] = topt_moves_number(x->p, x->moves, &end->value);
        x->number[2 * i + 1] = topt_moves_number(x->p, x->moves, &end->grad);
        if (x->number[2 * i] < 0 || x->number[2 * i + 1] < 0)
            return -1;
    }
    return 0;
}

/* All moves of values, and of gradients. */
static int price_moves(struct pricing *x, struct topt_error *err)
{
    for (int i = 0; i < x->nfrom; i++) {
        if (topt_problem_canceled(x->p, err))
            return -1;
        for (int j = 0; j < x->nto; j++)
            if (topt_moves_ask(x->p, x->moves, number_of(x, i, 0)[0],
                               number_of(x, -1, j)[0], err))
                return -1;
    }
    for (int j = 0; x->trained && j < x->nto; j++) {
        if (topt_problem_canceled(x->p, err))
            return -1;
        for (int i = 0; i < x->nfrom; i++)
            if (topt_moves_ask(x->p, x->moves, number_of(x, -1, j)[1],
                               number_of(x, i, 0)[1], err))
                return -1;
    }
    return topt_moves_answer(x->p, x->moves, err);
}

static int64_t round_up(const struct topt_fragment_cost *c)
{
    return topt_round_transient(c->transient_bytes);
}

/* Is an alternative no worse than another, whatever the caps and however often it is paid? */
static int no_worse(const struct topt_fragment_cost *a,
                    const struct topt_fragment_cost *b)
{
    return a->class_bytes[TOPT_CLASS_KEPT] <= b->class_bytes[TOPT_CLASS_KEPT] &&
           a->class_bytes[TOPT_CLASS_REMADE] <= b->class_bytes[TOPT_CLASS_REMADE] &&
           a->compute_ns + a->network_ns <= b->compute_ns + b->network_ns &&
           round_up(a) <= round_up(b);
}

/* Which ends' bytes add up to what is made again: there is nothing else to make. */
static int which_remade(int64_t remade, int64_t from, int64_t to)
{
    int which = 0;
    while (which < 4 &&
           remade != (which & REMADE_FROM ? from : 0) + (which & REMADE_TO ? to : 0))
        which++;
    return which;
}

static int add_alternative(struct pricing *x, const struct topt_fragment_cost *c,
                           const struct topt_move_cost *there, enum topt_keep keep,
                           struct topt_error *err)
{
    struct edge_table *e = x->e;
    struct topt_cost cost = {c->class_bytes[TOPT_CLASS_KEPT],
                             c->compute_ns + c->network_ns};
    int which = which_remade(c->class_bytes[TOPT_CLASS_REMADE], there->from_bytes,
                             there->to_bytes);
    int transient = topt_transient_code(round_up(c));
    if (which > (REMADE_FROM | REMADE_TO))
        return topt_fail(err, TOPT_ERR_INTERNAL, "an edge makes again what is no copy");
    if (!x->nalts || cost.memory < e->least.memory)
        e->least.memory = cost.memory;
    if (!x->nalts || cost.time < e->least.time)
        e->least.time = cost.time;
    e->occurs[transient / 64] |= (uint64_t)1 << transient % 64;
    e->remakes |= which;
    e->cost[x->nalts] = cost;
    e->fact[x->nalts++] = (struct edge_fact){.transient = (unsigned)transient & 0x3ff,
                                             .remade = (unsigned)which & 3,
                                             .keep = (unsigned)keep & 1};
    return 0;
}

/* What a restriction allows of what an edge may keep, as bits. */
static int allowed_of(const struct pricing *x, const struct topt_edge_end *from,
                      const struct topt_edge_end *to)
{
    const struct topt_problem *p = x->p;
    int allowed = 0;
    for (int k = TOPT_KEEP_AFTER; k <= TOPT_KEEP_BEFORE; k++)
        allowed |= topt_allows_edge(&p->options, p->k.mesh, from, to, (enum topt_keep)k)
                   << k;
    return allowed;
}

/* Numbers of the alternatives to list, in their order. */
static int list_alternatives(const struct pricing *x, const struct topt_edge_cost *c,
                             int allowed, int ret[2])
{
    int n = 0;
    for (int k = 0; k < c->nalts; k++)
        if (allowed >> c->keep[k] & 1)
            ret[n++] = k;
    if (n < 2)
        return n;
    const struct topt_fragment_cost *a = &c->alt[0], *b = &c->alt[1];
    int all = x->p->options.keep_dominated;
    if (!all && no_worse(a, b))
        return 1;
    if (b->class_bytes[TOPT_CLASS_KEPT] < a->class_bytes[TOPT_CLASS_KEPT] ||
        (!all && no_worse(b, a))) {
        ret[0] = 1;
        ret[1] = 0;
    }
    return !all && no_worse(b, a) ? 1 : n;
}

static int price_entry(struct pricing *x, int i, int j, struct topt_error *err)
{
    const struct topt_edge_end *from = &x->from[i], *to = &x->to[j];
    const int32_t *a = number_of(x, i, 0), *b = number_of(x, -1, j);
    const struct topt_move_cost *there;
    struct topt_edge_cost c;
    int list[2], allowed = allowed_of(x, from, to), rc = 0;
    if (!allowed)
        return 0;
    there = topt_moves_at(x->moves, a[0], b[0]);
    topt_cost_edge_by(&x->p->k, from, to, there,
                      x->trained ? topt_moves_at(x->moves, b[1], a[1]) : NULL, &c);
    int n = list_alternatives(x, &c, allowed, list);
    for (int k = 0; k < n && !rc; k++)
        rc = add_alternative(x, &c.alt[list[k]], there, c.keep[list[k]], err);
    if (x->e->end_bytes) {
        x->e->end_bytes[i] = there->from_bytes;
        x->e->end_bytes[x->nfrom + j] = there->to_bytes;
    }
    return rc;
}

static int alloc_table(struct pricing *x)
{
    struct edge_table *e = x->e;
    size_t ends = (size_t)x->nfrom + (size_t)x->nto;
    size_t entries = (size_t)x->nfrom * (size_t)x->nto;
    x->number = malloc((2 * ends + 1) * sizeof *x->number);
    e->first = malloc((entries + 1) * sizeof *e->first);
    e->cost = malloc((2 * entries + 1) * sizeof *e->cost);
    e->fact = malloc((2 * entries + 1) * sizeof *e->fact);
    if (x->p->may_remake)
        e->end_bytes = calloc(ends + 1, sizeof *e->end_bytes);
    return x->number && e->first && e->cost && e->fact &&
                   (!x->p->may_remake || e->end_bytes)
               ? 0
               : -1;
}

/* Give back what a table of fewer alternatives does not need. */
static void trim(struct pricing *x)
{
    struct edge_table *e = x->e;
    size_t n = (size_t)x->nalts + 1;
    struct topt_cost *cost = realloc(e->cost, n * sizeof *cost);
    struct edge_fact *fact = realloc(e->fact, n * sizeof *fact);
    e->cost = cost ? cost : e->cost;
    e->fact = fact ? fact : e->fact;
}

static int price_entries(struct pricing *x, struct topt_error *err)
{
    if (alloc_table(x) || number_ends(x))
        return topt_fail(err, TOPT_ERR_NOMEM, "no memory for edges");
    if (price_moves(x, err))
        return -1;
    int32_t *first = x->e->first;
    *first++ = 0;
    for (int i = 0; i < x->nfrom; i++) {
        if (topt_problem_canceled(x->p, err))
            return -1;
        for (int j = 0; j < x->nto; j++) {
            if (price_entry(x, i, j, err))
                return -1;
            *first++ = x->nalts;
        }
    }
    trim(x);
    return 0;
}

void topt_table_fini(struct edge_table *e)
{
    free(e->first);
    free(e->cost);
    free(e->fact);
    free(e->end_bytes);
}

int64_t topt_table_entries(const struct topt_problem *p, const struct edge_table *e)
{
    return (int64_t)p->family[e->from].nfrom * p->family[e->to].nto[e->input];
}

int topt_table_price(struct topt_problem *p, struct edge_table *e, struct topt_error *err)
{
    const struct family *a = &p->family[e->from], *b = &p->family[e->to];
    const struct topt_op *o = a->op >= 0 ? &p->k.model->op[a->op] : NULL;
    int tensor = o ? o->operand[o->output].tensor : a->tensor;
    struct pricing x = {.p = p,
                        .e = e,
                        .from = a->from_end,
                        .to = b->to_end[e->input],
                        .nfrom = a->nfrom,
                        .nto = b->nto[e->input],
                        .moves = topt_moves_of(p, tensor, err),
                        .trained = p->k.model->tensor[tensor].needs_gradient};
    int rc = x.moves ? price_entries(&x, err) : -1;
    free(x.number);
    return rc;
}

int topt_problem_table(struct topt_problem *p, int from, int to, int input)
{
    for (int i = 0; i < p->ntables; i++)
        if (p->table[i].from == from && p->table[i].to == to &&
            p->table[i].input == input)
            return i;
    p->table[p->ntables] = (struct edge_table){.from = from, .to = to, .input = input};
    return p->ntables++;
}
