/* floor.c - what a problem's passes of micro-batches take at least, also where experts lie on other axes.
 *
 * The sums of what is least for each operator and each use of a tensor, without what a device holds or does beside
 * passes.  Degrees of expert parallelism change the configurations of operators with experts and the moves beside
 * them, and nothing else, so that these alone are priced anew. */
#include "price.h"
#include "topt_minmax.h"

#include <stdlib.h>

/* The families and tables of operators with experts on other axes come after the problem's own; 'family' and 'table'
 * have what stands for each of these. */
struct floor {
    struct topt_problem *p;
    int nfamilies, ntables, *family, *table;
    int64_t *unit_ns;
    struct topt_floor *ret;
    struct topt_error *err;
};

static int make_families(struct floor *x, int anew)
{
    struct topt_problem *p = x->p;
    for (int i = 0; i < x->nfamilies; i++) {
        x->family[i] = i;
        int op = p->family[i].op;
        if (anew && op >= 0 && topt_op_experts(&p->k.model->op[op]) >= 0) {
            struct family *f = &p->family[x->family[i] = p->nfamilies++];
            *f = (struct family){.op = p->family[i].op,
                                 .tensor = p->family[i].tensor,
                                 .next = -1,
                                 .among = p->family[i].among};
            if (topt_make_family(p, f, x->err))
                return -1;
        }
        x->ret->some &= p->family[x->family[i]].n > 0;
    }
    return 0;
}

static int price_tables(struct floor *x)
{
    struct topt_problem *p = x->p;
    for (int i = 0; i < x->ntables && x->ret->some; i++) {
        const struct edge_table *t = &p->table[i];
        int from = x->family[t->from], to = x->family[t->to];
        x->table[i] = i;
        if (from == t->from && to == t->to)
            continue;
        struct edge_table *e = &p->table[x->table[i] = p->ntables++];
        *e = (struct edge_table){.from = from, .to = to, .input = t->input};
        if (topt_table_price(p, e, x->err))
            return -1;
    }
    return 0;
}

static struct topt_cost least_of(const struct family *f)
{
    struct topt_cost least = {INT64_MAX, INT64_MAX};
    for (int i = 0; i < f->n; i++) {
        const struct choice *c = &f->at[i];
        least =
            (struct topt_cost){topt_min(least.memory, c->cost.memory - c->ends.memory),
                               topt_min(least.time, c->cost.time - c->ends.time)};
    }
    return least;
}

static void add(struct floor *x, int unit, struct topt_cost c)
{
    x->ret->kept_bytes += c.memory;
    x->ret->ns += c.time;
    x->unit_ns[unit] += c.time;
}

static void add_all(struct floor *x, const struct topt_stage_units *units,
                    struct topt_cost *least, int *unit)
{
    const struct topt_problem *p = x->p;
    for (int u = 0; u < units->n; u++)
        for (int i = units->at[u].op; i < units->at[u + 1].op; i++)
            unit[i] = u;
    for (int i = 0; i < x->nfamilies; i++)
        least[i] = least_of(&p->family[x->family[i]]);
    for (int i = 0; i < p->nnodes; i++)
        add(x, unit[topt_node_operator(p, &p->node[i])], least[p->node[i].family]);
    for (int i = 0; i < p->nedges; i++)
        add(x, unit[topt_node_operator(p, &p->node[p->edge[i].to])],
            p->table[x->table[p->edge[i].table]].least);
    x->ret->layer_ns = x->unit_ns[units->first];
    x->ret->last_ns = x->unit_ns[topt_max(units->n - 1, 0)];
    for (int i = 1; i < units->layers; i++)
        x->ret->layer_ns = topt_min(x->ret->layer_ns, x->unit_ns[units->first + i]);
}

static int find(struct floor *x, int anew)
{
    size_t n = (size_t)x->p->k.model->nops + 1;
    struct topt_cost *least = calloc((size_t)x->nfamilies + 1, sizeof *least);
    int *unit = calloc(n, sizeof *unit), rc = -1;
    struct topt_stage_units units;
    x->family = calloc((size_t)x->nfamilies + 1, sizeof *x->family);
    x->table = calloc((size_t)x->ntables + 1, sizeof *x->table);
    x->unit_ns = calloc(n, sizeof *x->unit_ns);
    if (topt_stage_units_find(x->p->k.model, &units, x->err) || !least || !unit ||
        !x->family || !x->table || !x->unit_ns)
        topt_nomem(x->err, "the problem");
    else
        rc = make_families(x, anew) || price_tables(x);
    if (!rc && x->ret->some)
        add_all(x, &units, least, unit);
    free(least);
    topt_stage_units_fini(&units);
    free(unit);
    free(x->family);
    free(x->table);
    free(x->unit_ns);
    return rc ? -1 : 0;
}

int topt_problem_floor(struct topt_problem *p, struct topt_expert_axes axes,
                       struct topt_floor *ret, struct topt_error *err)
{
    struct topt_expert_axes own = p->options.expert;
    int nchoices = p->nchoices;
    struct floor x = {
        .p = p, .nfamilies = p->nfamilies, .ntables = p->ntables, .ret = ret, .err = err};
    *ret = (struct topt_floor){.some = 1};
    p->options.expert = axes;
    int rc = find(&x, axes.data != own.data || axes.tensor != own.tensor);
    topt_moves_fini(p);
    while (p->nfamilies > x.nfamilies)
        topt_family_fini(&p->family[--p->nfamilies]);
    while (p->ntables > x.ntables)
        topt_table_fini(&p->table[--p->ntables]);
    p->options.expert = own;
    p->nchoices = nchoices;
    return rc;
}
