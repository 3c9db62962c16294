/* graph.h - where a problem's graph falls apart.
 * Internal to this folder.  Thread safety: reentrant. */
#ifndef TOPT_SEARCH_GRAPH_H
#define TOPT_SEARCH_GRAPH_H

#include "search_impl.h"

/* Without the operators that 'removed' marks (NULL: none), the graph is blocks (biconnected
 * components) that hang together at cut operators.
 * 'ret_cut' (by operator, may be NULL) marks those; '*ret_largest' is how many operators the
 * largest block has.  0 or -1 (memory). */
int topt_graph_blocks(const struct topt_search_problem *p, const char *removed,
                      char *ret_cut, int *ret_largest,
                      struct topt_error *err) TOPT_MUST_CHECK;

/* Mark in 'ret_removed' (by operator, cleared by the caller) few operators without which the
 * largest block is much smaller, as long as they have at most 'max_values' values together.
 * Where there are none such, nothing is marked. */
int topt_graph_cutset(const struct topt_search_problem *p, int max_values,
                      char *ret_removed, struct topt_error *err) TOPT_MUST_CHECK;

#endif
