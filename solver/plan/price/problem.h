/* problem.h - a model on a mesh as a combinatorial problem.  Private to plan/. */
#ifndef TOPT_PROBLEM_H
#define TOPT_PROBLEM_H

#include "problem_stats.h"
#include "space.h"

/* Sums, and the larger number of layouts. */
void topt_problem_stats_add(struct topt_problem_stats *into,
                            const struct topt_problem_stats *from);

/* Price a model on a mesh.  LIMIT, before anything large is made, where its tables would
 * take more than the options allow: the line says which operators' choices they are, and
 * what to do. */
int topt_problem_create(const struct topt_costing *k,
                        const struct topt_space_options *options,
                        struct topt_problem **ret,
                        struct topt_error *err) TOPT_MUST_CHECK;

void topt_problem_destroy(struct topt_problem *p);

void topt_problem_stats(const struct topt_problem *p, struct topt_problem_stats *ret);

/* Has every operator something to choose?  (One choice for a whole model may fit some
 * operator nowhere, and then there is no strategy.) */
int topt_problem_has_choices(const struct topt_problem *p);

/* A random strategy of a space that has some (seeded state advanced). */
struct topt_strategy *topt_problem_random(const struct topt_problem *p, uint64_t *seed);

#endif
