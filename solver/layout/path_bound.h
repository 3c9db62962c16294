/* path_bound.h - a lower bound on the cost of a path.  Private to layout/. */
#ifndef TOPT_PATH_BOUND_H
#define TOPT_PATH_BOUND_H

#include "move_costs.h"

/* The largest number of parts that groups are split into. */
enum { TOPT_PATH_BOUND_PARTS = 4 };

/* A layout projected onto each part: numbers of vertices. */
struct topt_path_projection {
    uint16_t at[TOPT_PATH_BOUND_PARTS];
};

struct topt_path_bound;
struct topt_path_bound *topt_path_bound_create(void);
void topt_path_bound_destroy(struct topt_path_bound *b);
/* Begin bounds under the costs of a source; the caller keeps the costs. */
int topt_path_bound_begin(struct topt_path_bound *b, struct topt_move_costs *t,
                          const struct topt_path_source *source) TOPT_MUST_CHECK;
int topt_path_bound_project(struct topt_path_bound *b, uint64_t state,
                            struct topt_path_projection *ret) TOPT_MUST_CHECK;
/* Bounds are to the nearest of these targets; the second removes the i-th, whose
 * number the last one takes. */
int topt_path_bound_set_targets(struct topt_path_bound *b,
                                const struct topt_path_projection *target,
                                int n) TOPT_MUST_CHECK;
void topt_path_bound_remove_target(struct topt_path_bound *b, int i);
/* The lower bound on the key of a path from there to any target; negative where memory
 * is short.  '*ret_target': the nearest target. */
int64_t topt_path_bound_of(struct topt_path_bound *b,
                           const struct topt_path_projection *from, int *ret_target);

#endif
