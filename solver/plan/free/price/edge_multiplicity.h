/* edge_multiplicity.h - what terms pay.  Private to plan/. */
#ifndef TOPT_EDGE_MULTIPLICITY_H
#define TOPT_EDGE_MULTIPLICITY_H

#include "problem_data.h"

/* Charge the multiplicities once all are listed; charge one under a cap; exchange memory and
 * time, and back. */
int topt_multiplicities_charge(struct topt_problem *p,
                               struct topt_error *err) TOPT_MUST_CHECK;

void topt_multiplicity_cap(const struct topt_problem *p, struct multiplicity *t,
                           int64_t transient_cap);

void topt_multiplicities_exchange(struct topt_problem *p);

/* An alternative of an entry of of->at; its facts, and the bytes that it recomputes. */
struct taken_edge {
    const struct multiplicity *of;
    int from_class, to_class, alt;
};
struct edge_fact topt_taken_fact(const struct topt_problem *p, struct taken_edge x);
int64_t topt_taken_recomputed(const struct topt_problem *p, struct taken_edge x);

/* The most that an alternative of a table recomputes. */
int64_t topt_table_recomputed_most(const struct topt_problem *p,
                                   const struct edge_table *e);

#endif
