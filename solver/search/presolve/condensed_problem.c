/* condensed_problem.c - the problem that is left when blocks have become edges.
 *
 * What operators that stay cost is a list of points, one for each way to have what has
 * gone and saw no other operator; so a configuration is a value and a point.  What two of
 * them have between them is a table whose alternatives are the points of an entry.
 * Tables lend their points, which stay where they are: nothing is made any more. Which
 * factor an operator or an edge was is noted for the way back (lift.c). */
#include "condensed.h"

const struct factor *topt_own_factor(const struct elimination_plan *p, int op, int *ret)
{
    int i = p->factors_of[op].first;
    while (p->factor[i].nops > 1) /* every operator has its own costs */
        i = topt_factor_after(p, op, i);
    *ret = i;
    return &p->factor[i];
}

static struct run entry_of(const struct condensed *c, const struct table *t, int64_t e)
{
    return topt_entry_points(&c->maker, t, t->first_entry + e);
}

/* Configurations are pairs of a value and a point of its frontier; both by
 * configuration. */
static int keep_op(struct condensed *c, int op, struct topt_search_op *ret,
                   int32_t **ret_value, const uint32_t **ret_point, int *ret_factor)
{
    const struct elimination_plan *p = &c->plan;
    const struct factor *f = topt_own_factor(p, op, ret_factor);
    int64_t n = 0;
    for (int v = 0; v < p->nvalues[op]; v++)
        n += entry_of(c, f->table, f->view[0].of[v]).n;
    struct topt_cost *cost = TOPT_NEW(c->arena, n, struct topt_cost);
    int32_t *value = TOPT_NEW(c->arena, n, int32_t);
    uint32_t *point = TOPT_NEW(c->arena, n, uint32_t);
    if (n > INT32_MAX || !cost || !value || !point)
        return -1;
    n = 0;
    for (int v = 0; v < p->nvalues[op]; v++) {
        struct run r = entry_of(c, f->table, f->view[0].of[v]);
        for (uint32_t i = 0; i < r.n; i++) {
            cost[n] = r.cost[i];
            point[n] = r.base + i;
            value[n++] = v;
        }
    }
    *ret = (struct topt_search_op){p->problem->op[op].name, (int)n, cost};
    *ret_value = value;
    *ret_point = point;
    return 0;
}

/* An edge's table of a factor's; one for all factors that share theirs. */
static const struct topt_table *keep_table(struct condensed *c, const struct factor *f,
                                           const struct topt_table **by_id)
{
    const struct table *t = f->table;
    if (by_id[t->id])
        return by_id[t->id];
    struct topt_table *ret = TOPT_NEW(c->arena, 1, struct topt_table);
    int32_t *first = TOPT_NEW(c->arena, t->nentries + 1, int32_t);
    if (!ret || !first)
        return NULL;
    for (int64_t e = 0; e < t->nentries; e++)
        first[e + 1] = first[e] + (int32_t)entry_of(c, t, e).n;
    *ret = (struct topt_table){f->view[0].n, f->view[1].n, first,
                               t->nentries ? entry_of(c, t, 0).cost : NULL};
    return by_id[t->id] = ret;
}

static int32_t *classes(const struct condensed *c, const struct topt_search_op *op,
                        const int32_t *value, const struct view *view)
{
    int32_t *ret = TOPT_NEW(c->arena, op->nconfigs, int32_t);
    for (int i = 0; ret && i < op->nconfigs; i++)
        ret[i] = view->of[value[i]];
    return ret;
}

struct left {
    int *number; /* by operator of the original: its new number */
    int32_t **value;
    const struct topt_table **table; /* by number of a factor's table */
};

static int keep_edges(struct condensed *c, const struct left *left,
                      struct topt_search_edge *edge)
{
    int n = 0;
    for (int i = 0; i < c->plan.nfactors; i++) {
        const struct factor *f = &c->plan.factor[i];
        if (f->gone || f->nops != 2)
            continue;
        int from = left->number[f->op[0]], to = left->number[f->op[1]];
        edge[n] = (struct topt_search_edge){
            from, to, keep_table(c, f, left->table),
            classes(c, &c->problem.op[from], left->value[from], &f->view[0]),
            classes(c, &c->problem.op[to], left->value[to], &f->view[1])};
        if (!edge[n].table || !edge[n].from_class || !edge[n].to_class)
            return -1;
        c->edge_factor[n++] = i;
    }
    c->problem.edge = edge;
    c->problem.nedges = n;
    return 0;
}

static int build(struct condensed *c, const char *gone)
{
    struct topt_arena *a = c->arena;
    int most = c->plan.problem->nops, n = 0;
    struct topt_search_op *op = TOPT_NEW(a, most, struct topt_search_op);
    struct topt_search_edge *edge =
        TOPT_NEW(a, c->plan.nfactors, struct topt_search_edge);
    struct left left = {TOPT_NEW(a, most, int), TOPT_NEW(a, most, int32_t *),
                        TOPT_NEW(a, c->plan.tables.nall, const struct topt_table *)};
    c->op = TOPT_NEW(a, most, int);
    c->op_factor = TOPT_NEW(a, most, int);
    c->point = TOPT_NEW(a, most, const uint32_t *);
    c->edge_factor = TOPT_NEW(a, c->plan.nfactors, int);
    if (!op || !edge || !left.number || !left.value || !left.table || !c->op ||
        !c->op_factor || !c->edge_factor || !c->point)
        return -1;
    for (int i = 0; i < most; i++) {
        if (gone[i])
            continue;
        if (keep_op(c, i, &op[n], &left.value[n], &c->point[n], &c->op_factor[n]))
            return -1;
        left.number[i] = n;
        c->op[n++] = i;
    }
    c->problem.op = op;
    c->problem.nops = n;
    return keep_edges(c, &left, edge);
}

int topt_condensed_problem(struct condensed *c, const char *gone, struct topt_error *err)
{
    return build(c, gone) ? topt_search_nomem(err) : 0;
}
