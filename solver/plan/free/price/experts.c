/* experts.c - what is least for a problem whose experts lie on other axes, without a problem for it.
 *
 * Degrees of expert parallelism change the configurations of operators with experts and the moves beside them, and
 * nothing else.  So the sum of what is least for each (topt_problem_lower_bound) is that of the problem at hand less
 * what these have there, and with what they have instead. */
#include "price.h"
#include "topt_minmax.h"

/* The families and tables of operators with experts on other axes come after the problem's own: the number of
 * a family's other one is 'nfamilies', that of its first, and so on. */
struct shared_out {
    struct topt_problem *p;
    int nfamilies, ntables;
    struct topt_cost least;
    struct topt_error *err;
};

static int has_experts(const struct topt_problem *p, int family)
{
    int op = p->family[family].op;
    return op >= 0 && topt_op_experts(&p->k.model->op[op]) >= 0;
}

/* The number of a family's other one; its own, where it has no experts. */
static int other(const struct shared_out *x, int family)
{
    int n = x->nfamilies;
    if (!has_experts(x->p, family))
        return family;
    for (int i = 0; i < family; i++)
        n += has_experts(x->p, i);
    return n;
}

static void add(struct shared_out *x, struct topt_cost c, int64_t times)
{
    x->least.memory += times * c.memory;
    x->least.time += times * c.time;
}

static struct topt_cost least_of(const struct family *f)
{
    struct topt_cost least = f->n ? f->at[0].cost : (struct topt_cost){0, 0};
    for (int i = 1; i < f->n; i++)
        least = (struct topt_cost){topt_min(least.memory, f->at[i].cost.memory),
                                   topt_min(least.time, f->at[i].cost.time)};
    return least;
}

/* 'some': has each operator a configuration? */
static int make_families(struct shared_out *x, int *some)
{
    struct topt_problem *p = x->p;
    for (int i = 0; i < x->nfamilies; i++) {
        int64_t times = 0;
        *some &= has_experts(p, i) || p->family[i].n > 0;
        if (!has_experts(p, i))
            continue;
        struct family *f = &p->family[p->nfamilies++];
        *f = (struct family){.op = p->family[i].op,
                             .tensor = p->family[i].tensor,
                             .next = -1,
                             .among = p->family[i].among};
        if (topt_make_family(p, f, x->err))
            return -1;
        for (int k = 0; k < p->nnodes; k++)
            times += p->node[k].family == i;
        add(x, least_of(&p->family[i]), -times);
        add(x, least_of(f), times);
        *some &= f->n > 0;
    }
    return 0;
}

static int price_tables(struct shared_out *x)
{
    struct topt_problem *p = x->p;
    for (int i = 0; i < x->ntables; i++) {
        const struct edge_table *t = &p->table[i];
        int from = other(x, t->from), to = other(x, t->to);
        int64_t times = 0;
        if (from == t->from && to == t->to)
            continue;
        struct edge_table *e = &p->table[p->ntables++];
        *e = (struct edge_table){.from = from, .to = to, .input = t->input};
        if (topt_table_price(p, e, x->err))
            return -1;
        for (int k = 0; k < p->nedges; k++)
            times += p->edge[k].table == i;
        add(x, t->least, -times);
        add(x, e->least, times);
    }
    return 0;
}

int topt_problem_least_shared_out(struct topt_problem *p, struct topt_expert_axes axes,
                                  struct topt_cost *ret, int *ret_some,
                                  struct topt_error *err)
{
    struct shared_out x = {p, p->nfamilies, p->ntables, topt_problem_lower_bound(p), err};
    struct topt_expert_axes own = p->options.expert;
    int nchoices = p->nchoices;
    p->options.expert = axes;
    *ret_some = 1;
    int rc = make_families(&x, ret_some) || (*ret_some && price_tables(&x)) ? -1 : 0;
    topt_moves_fini(p);
    while (p->nfamilies > x.nfamilies)
        topt_family_fini(&p->family[--p->nfamilies]);
    while (p->ntables > x.ntables)
        topt_table_fini(&p->table[--p->ntables]);
    p->options.expert = own;
    p->nchoices = nchoices;
    *ret = x.least;
    return rc;
}
