/* factors.h - a problem as factors: tables over operators, and the lists of factors by
 * operator. Internal to this part.  Thread safety: one owner; once planned, read by
 * many. */
#ifndef TOPT_SEARCH_FACTORS_H
#define TOPT_SEARCH_FACTORS_H

#include "table.h"
#include "elimination_order.h"
#include "value_classes.h"

/* A node of the elimination tree: how a table came about in the problem.  Shared tables
 * stand at several nodes. */
struct tree_node {
    int left, right; /* nodes; -1 none */
    int op, edge;    /* leaves; -1 no */
    const struct table *table;
};

/* Neighbours in the list of an operator's factors; -1: none. */
struct list_link {
    int before, after;
};

struct factor {
    struct table *table;
    int node, nops;
    int *op;                /* by dimension, outermost first */
    struct view *view;      /* by dimension; view.n is the dimension's size */
    struct list_link *link; /* by dimension */
    int of[2]; /* the factors that it was made of, which are gone; -1: none */
    int gone;
};

/* The factors that see an operator and are not gone, in the order in which they were
 * made. */
struct list {
    int first, last, n;
};

struct elimination_plan {
    const struct topt_search_problem *problem;
    const struct topt_search_options *options; /* while it is being made */
    struct topt_error *err;
    struct topt_arena *arena;
    struct tables tables;
    struct views views;
    struct point_store store; /* of the leaves */
    const struct point_store *shared;
    int *nvalues;            /* by operator */
    const int32_t **value;   /* by operator: value by configuration */
    struct list *factors_of; /* by operator */
    struct factor *factor;
    int nfactors, cap_factors;
    struct tree_node *node;
    int nnodes, cap_nodes;
    int *seen; /* scratch, by operator: a stamp */
    int *slot;
    int stamp;
    struct elimination_queue queue; /* of the operators that are still there */
    int64_t max_entries;            /* of a table */
    int entangled;                  /* a table would have been larger */
    int32_t *fixed; /* by operator: the configuration decided by heuristic, or -1 */
    int nfixed;
    int root; /* the node of the answer's table, which is over no operator */
};

/* The factor after 'i' of those that see the operator, or -1. */
static inline int topt_factor_after(const struct elimination_plan *p, int op, int i)
{
    const struct factor *f = &p->factor[i];
    int d = 0;
    while (f->op[d] != op)
        d++;
    return f->link[d].after;
}

/* Add a node, or a factor, which enters the lists of its operators; its number, or -1:
 * memory. */
int topt_elimination_node(struct elimination_plan *p, struct tree_node node);
int topt_elimination_factor(struct elimination_plan *p, struct factor f);
/* The factor is gone: it leaves the lists of its operators. */
void topt_elimination_leave_lists(struct elimination_plan *p, int factor);
/* Undo what was done since there were 'nfactors'; tables stay. */
void topt_elimination_take_back(struct elimination_plan *p, int nfactors);

#endif
