/* factors.c - a problem as factors: tables over operators, and the lists of factors by
 * which operator. */
#include "factors.h"

#include "search_common.h"
#include "topt_array.h"

#include <stdlib.h>

int topt_elimination_node(struct elimination_plan *p, struct tree_node node)
{
    if (TOPT_ROOM(p->node, p->nnodes, p->cap_nodes, 64))
        return topt_search_nomem(p->err);
    p->node[p->nnodes] = node;
    return p->nnodes++;
}

static struct list_link *link_of(struct elimination_plan *p, int factor, int op)
{
    const struct factor *f = &p->factor[factor];
    int d = 0;
    while (f->op[d] != op)
        d++;
    return &f->link[d];
}

/* In the operator's list 'after' follows 'before'; -1 is beyond its ends. */
static void join(struct elimination_plan *p, int op, int before, int after)
{
    if (before < 0)
        p->factors_of[op].first = after;
    else
        link_of(p, before, op)->after = after;
    if (after < 0)
        p->factors_of[op].last = before;
    else
        link_of(p, after, op)->before = before;
}

/* Into the lists of its operators, where its links say. */
static void enter_lists(struct elimination_plan *p, int factor)
{
    struct factor *f = &p->factor[factor];
    for (int d = 0; d < f->nops; d++) {
        join(p, f->op[d], f->link[d].before, factor);
        join(p, f->op[d], factor, f->link[d].after);
        p->factors_of[f->op[d]].n++;
    }
    f->gone = 0;
}

/* It keeps its links: the last one that left can come back first. */
void topt_elimination_leave_lists(struct elimination_plan *p, int factor)
{
    struct factor *f = &p->factor[factor];
    for (int d = 0; d < f->nops; d++) {
        join(p, f->op[d], f->link[d].before, f->link[d].after);
        p->factors_of[f->op[d]].n--;
    }
    f->gone = 1;
}

int topt_elimination_factor(struct elimination_plan *p, struct factor f)
{
    f.link = TOPT_NEW(p->arena, f.nops, struct list_link);
    if (f.node < 0 || !f.link || TOPT_ROOM(p->factor, p->nfactors, p->cap_factors, 64))
        return f.node < 0 ? -1 : topt_search_nomem(p->err);
    for (int d = 0; d < f.nops; d++)
        f.link[d] = (struct list_link){p->factors_of[f.op[d]].last, -1};
    p->factor[p->nfactors] = f;
    enter_lists(p, p->nfactors);
    return p->nfactors++;
}

void topt_elimination_take_back(struct elimination_plan *p, int nfactors)
{
    while (p->nfactors > nfactors) {
        int made = --p->nfactors;
        topt_elimination_leave_lists(p, made);
        for (int i = 2; i-- > 0;)
            if (p->factor[made].of[i] >= 0)
                enter_lists(p, p->factor[made].of[i]);
    }
    p->entangled = 0;
}
