/* path_bound.h - a lower bound on the cost of a path.  Private to layout/. */
#ifndef TOPT_PATH_BOUND_H
#define TOPT_PATH_BOUND_H

#include "move_costs.h"

/* Groups are taken apart into so many parts at most. */
enum { TOPT_PATH_BOUND_PARTS = 4 };

/* Where a layout is in each part. */
struct topt_path_bound_place {
    uint16_t at[TOPT_PATH_BOUND_PARTS];
};

struct topt_path_bound;
struct topt_path_bound *topt_path_bound_create(void);
void topt_path_bound_destroy(struct topt_path_bound *b);
/* From now on under a source's costs, which stays with the caller. */
int topt_path_bound_begin(struct topt_path_bound *b, struct topt_move_costs *t,
                          const struct topt_path_source *source) TOPT_MUST_CHECK;
int topt_path_bound_place(struct topt_path_bound *b, uint64_t state,
                          struct topt_path_bound_place *ret) TOPT_MUST_CHECK;
/* From now on to these targets; then without the i-th, whose number the last one
 * takes. */
int topt_path_bound_aim(struct topt_path_bound *b,
                        const struct topt_path_bound_place *target,
                        int n) TOPT_MUST_CHECK;
void topt_path_bound_drop(struct topt_path_bound *b, int i);
/* The key of no path from there to any of them is smaller; negative where memory is
 * short.  '*ret_target': which one that is of. */
int64_t topt_path_bound_of(struct topt_path_bound *b,
                           const struct topt_path_bound_place *from, int *ret_target);

#endif
