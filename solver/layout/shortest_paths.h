/* shortest_paths.h - shortest paths between layouts without names.  Private to
 * layout/. */
#ifndef TOPT_SHORTEST_PATHS_H
#define TOPT_SHORTEST_PATHS_H

#include "layout_state.h"

/* Finds paths; answers are borrowed from it.  One owner at a time. */
struct topt_paths;
struct topt_paths *topt_paths_create(const struct topt_hw *hw,
                                     const struct topt_mesh *mesh);
void topt_paths_destroy(struct topt_paths *w);
struct topt_time topt_paths_time(struct topt_paths *w, enum topt_collective c, int nodes,
                                 int per_node, int64_t bytes);
/* Questions whose sources are alike but for 'from', those of one source being
 * neighbours.  The cheapest paths, of those the ones with the fewest moves, of those
 * the ones whose last stop is the cheapest to reach (then the first in the order of
 * states), and so on: each follows from source and target alone, whatever is asked
 * beside it.  -1 without memory. */
int topt_paths_answer(struct topt_paths *w, struct topt_path_question *const *question,
                      int n) TOPT_MUST_CHECK;
/* Bytes of the largest block. */
int64_t topt_state_bytes(const struct topt_path_source *w, uint64_t state);

#endif
