/* frontier.h - a frontier as it is built, point after point.
 * Internal to this part.  Thread safety: one owner. */
#ifndef TOPT_SEARCH_FRONTIER_H
#define TOPT_SEARCH_FRONTIER_H

#include "strategies.h"

/* A frontier without points; then point after point, in its order ('choice', of operators
 * and then of edges, is copied). */
struct topt_frontier *topt_frontier_create(const struct topt_search_problem *problem,
                                           struct topt_error *err);
int topt_frontier_add(struct topt_frontier *f, struct topt_cost cost,
                      const int32_t *choice, struct topt_error *err) TOPT_MUST_CHECK;
/* Say which operators were decided by heuristic: those that 'fixed' gives at least 0. */
int topt_frontier_decided(struct topt_frontier *f, const int32_t *fixed, int nops,
                          struct topt_error *err) TOPT_MUST_CHECK;
/* Searches may find more than what was asked for. */
void topt_frontier_keep_wanted(struct topt_frontier *f,
                               const struct topt_search_options *o);
/* Its strategies, borrowed; as they were added. */
struct strategies *topt_frontier_strategies(struct topt_frontier *f);

/* One more point of a frontier that has one already, by what differs from its last. */
int topt_frontier_add_changes(struct topt_frontier *f, struct topt_cost cost,
                              const struct change *change, size_t n,
                              struct topt_error *err) TOPT_MUST_CHECK;

/* A point that has the strategy 'at' of the list with a number. */
struct pick {
    struct topt_cost cost;
    uint32_t list, at;
};

/* The picks that nothing dominates (they are reduced in place; of equal costs the first list's
 * stays) become points of an empty frontier. */
int topt_frontier_collect(struct topt_frontier *f, const struct strategies *const *list,
                          size_t nlists, struct pick *pick, size_t n,
                          struct topt_error *err) TOPT_MUST_CHECK;

#endif
