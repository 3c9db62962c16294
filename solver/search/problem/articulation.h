/* articulation.h - which edges an operator has, and where a problem's graph falls apart.
 * Internal to this folder.  Thread safety: reentrant. */
#ifndef TOPT_SEARCH_ARTICULATION_H
#define TOPT_SEARCH_ARTICULATION_H

#include "search_common.h"

/* Without the operators that 'removed' marks (NULL: none), the graph is blocks
 * (biconnected components) that hang together at cut operators. 'ret_cut' (by operator,
 * may be NULL) marks those; '*ret_largest' is how many operators the largest block has.
 * 0 or -1 (memory). */
int topt_graph_blocks(const struct topt_search_problem *p, const char *removed,
                      char *ret_cut, int *ret_largest,
                      struct topt_error *err) TOPT_MUST_CHECK;

/* Mark in 'ret_removed' (by operator, cleared by the caller) few operators without which
 * the largest block is much smaller, as long as they have at most 'max_values' values
 * together. Where there are none such, nothing is marked. */
int topt_graph_cutset(const struct topt_search_problem *p, int max_values,
                      char *ret_removed, struct topt_error *err) TOPT_MUST_CHECK;

/* The edges of operator i, in their order, one from it to itself twice:
 * ret_edge[ret_first[i]..ret_first[i + 1]).  Room for two numbers more than there are
 * operators, all 0, and for two an edge. */
void topt_graph_edges(const struct topt_search_problem *p, int *ret_first, int *ret_edge);

#endif
