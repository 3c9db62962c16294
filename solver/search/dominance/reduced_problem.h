/* reduced_problem.h - a problem without configurations that another of their operator
 * always beats. Internal to this folder.  Thread safety: one owner. */
#ifndef TOPT_SEARCH_REDUCED_PROBLEM_H
#define TOPT_SEARCH_REDUCED_PROBLEM_H

#include "search_common.h"

struct reduced_problem {
    struct topt_search_problem problem; /* borrows the original's tables */
    const int32_t **config; /* by operator: its configurations' numbers in the original */
    int64_t work;           /* pairs of entries compared */
    struct topt_arena *arena;
};

/* The frontier of 'ret->problem' is that of 'p', and alternatives have the same
 * numbers. */
int topt_config_dominance(const struct topt_search_problem *p,
                          const struct topt_search_options *options,
                          struct reduced_problem *ret,
                          struct topt_error *err) TOPT_MUST_CHECK;
/* The problem without the configurations that 'keep' (by operator, by configuration) does
 * not mark; every edge has classes of its own. */
int topt_subproblem_of(const struct topt_search_problem *p, char *const *keep,
                       struct reduced_problem *ret,
                       struct topt_error *err) TOPT_MUST_CHECK;
/* Give such a problem tables of its own, of the classes that are left alone.  Edges that share a
 * table and have the same classes left share the new one. */
int topt_subproblem_tables(struct reduced_problem *n,
                           struct topt_error *err) TOPT_MUST_CHECK;
void topt_reduced_fini(struct reduced_problem *n);

#endif
