/* grid.h - a request on a grid of nodes x devices, and each of its variants as a
 * problem.  Private to plan/. */
#ifndef TOPT_GRID_H
#define TOPT_GRID_H

#include "grid_data.h"

int topt_grid_open(struct topt_grid_search *s, struct topt_planning *m, int nodes,
                   int per_node, enum topt_goal goal,
                   struct topt_error *err) TOPT_MUST_CHECK;

void topt_grid_close(struct topt_grid_search *s);

/* The context in which a variant is costed; borrows from the shape. */
int topt_grid_costing(struct topt_grid_search *s, const struct topt_degrees *v,
                      struct topt_costing *ret, struct topt_error *err) TOPT_MUST_CHECK;

/* Is a strategy, of whatever space, one of this shape's? */
int topt_grid_holds(const struct topt_grid_search *s, const struct topt_strategy *st);

/* A lower bound, in bytes a device, of every strategy of a variant, without looking at
 * operators. */
int64_t topt_grid_least_bytes(struct topt_grid_search *s, const struct topt_degrees *v);

/* Tell whoever watches that a variant of the shape is priced next. */
void topt_grid_tell_progress(const struct topt_grid_search *s,
                             const struct topt_degrees *v);

/* A variant as a problem: whose frontier, fastest or least may be asked for. */
int topt_grid_problem(struct topt_grid_search *s, const struct topt_degrees *v,
                      struct topt_problem **ret, struct topt_error *err) TOPT_MUST_CHECK;

/* A variant as a problem with exact prices of everything, for callers that read them. */
int topt_grid_priced(struct topt_grid_search *s, const struct topt_degrees *v,
                     struct topt_problem **ret, struct topt_error *err) TOPT_MUST_CHECK;

#endif
