/* eliminate.h - a problem as factors, and the plan of how to eliminate its operators.
 * Internal to this folder.  Thread safety: one owner; once planned, read by many. */
#ifndef TOPT_ELIMINATE_H
#define TOPT_ELIMINATE_H

#include "table.h"
#include "turns.h"
#include "views.h"

/* How a table came about in the problem: shared tables stand in several places. */
struct place {
    int left, right; /* places; -1 none */
    int op, edge;    /* leaves; -1 no */
    const struct table *table;
};

/* Neighbours in the list of an operator's factors; -1: none. */
struct listed {
    int before, after;
};

struct factor {
    struct table *table;
    int place, nops;
    int *op;             /* by dimension, outermost first */
    struct view *view;   /* by dimension; view.n is the dimension's size */
    struct listed *link; /* by dimension */
    int of[2];           /* the factors that it was made of, which are gone; -1: none */
    int gone;
};

/* The factors that see an operator and are not gone, in the order in which they were made. */
struct list {
    int first, last, n;
};

struct plan {
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
    struct place *place;
    int nplaces, cap_places;
    int *seen; /* scratch, by operator: a stamp */
    int *slot;
    int stamp;
    struct turns turns; /* of the operators that are still there */
    int *gather_at;     /* by operator: factors from which on alike ones are multiplied */
    int64_t max_entries; /* of a table */
    int entangled;       /* a table would have been larger */
    const char *relaxed; /* by edge: is it weighed end by end (relax.h)?  NULL: none is */
    int32_t *fixed;      /* by operator: the configuration decided by heuristic, or -1 */
    int nfixed;
    int root; /* the place of the answer's table, which is over no operator */
};

/* Plan the eliminations of a problem of at least one operator; 'shared' (NULL: none) has
 * points of its tables already.  Finish also what failed. */
int topt_plan_init(struct plan *p, const struct topt_search_problem *problem,
                   const struct point_store *shared,
                   const struct topt_search_options *options,
                   struct topt_error *err) TOPT_MUST_CHECK;
void topt_plan_fini(struct plan *p);
/* The same without a heuristic: LIMIT where a table would be too large.  Of 'relaxed' edges (by
 * number, borrowed; NULL: none) there are only halves, so that the plan is for weighings alone. */
int topt_plan_relaxed(struct plan *p, const struct topt_search_problem *problem,
                      const struct point_store *shared,
                      const struct topt_search_options *options, const char *relaxed,
                      struct topt_error *err) TOPT_MUST_CHECK;
int topt_plan_exactly(struct plan *p, const struct topt_search_problem *problem,
                      const struct topt_search_options *options,
                      struct topt_error *err) TOPT_MUST_CHECK;

/* The parts of that, for who wants to choose what is eliminated: only the leaves; then one
 * operator (the new factor, or -1), or only a product of two factors. */
int topt_plan_start(struct plan *p, const struct topt_search_problem *problem,
                    const struct topt_search_options *options,
                    struct topt_error *err) TOPT_MUST_CHECK;
int topt_plan_eliminate(struct plan *p, int op);
int topt_plan_multiply(struct plan *p, int a, int b);
/* The numbers of the operator's factors, those over the same operators side by side; else in the order
 * in which they were made.  How many, or -1; '*ret' is freed by the caller. */
int topt_plan_alike(struct plan *p, int op, int **ret);
int topt_plan_same_ops(const struct plan *p, int a, int b);
/* Undo what was done since there were 'nfactors'; tables stay. */
void topt_plan_take_back(struct plan *p, int nfactors);
/* How dear the operator's elimination looks: ranked by operators in the new table. */
struct turn topt_plan_rate(struct plan *p, int op);
enum { TOPT_RANKS = 4 };

/* The factor after 'i' of those that see the operator, or -1. */
static inline int topt_factor_after(const struct plan *p, int op, int i)
{
    const struct factor *f = &p->factor[i];
    int d = 0;
    while (f->op[d] != op)
        d++;
    return f->link[d].after;
}

/* The leaves of a problem as its first factors (leaves.c). */
int topt_plan_leaves(struct plan *p) TOPT_MUST_CHECK;

/* Operators in the order in which they are decided, each with its configuration (heuristic.c): those whose turn
 * has been asked for so far. */
struct decisions {
    const struct topt_search_problem *problem;
    int n;
    int *op;
    int32_t *config;
    int *
        degree; /* by operator: neighbours that are not decided, or -1 where it is itself */
};
int topt_decisions_init(struct decisions *d, const struct topt_search_problem *problem,
                        struct topt_error *err) TOPT_MUST_CHECK;
void topt_decisions_fini(struct decisions *d);
/* Take one more; one must be left. */
void topt_decide(struct decisions *d);

int topt_plan_place(struct plan *p, struct place place);
int topt_plan_factor(struct plan *p, struct factor f);

#endif
