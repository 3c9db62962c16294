/* gpu_count.h - a number of devices.  Private to plan/. */
#ifndef TOPT_GPU_COUNT_H
#define TOPT_GPU_COUNT_H

#include <jansson.h>

#include "grid.h"

/* Can so many devices take equal shares of the batch, where the framework wants that?  If
 * not, the batches nearest to it that they can share are in 'ret_nearest' (the smaller
 * one 0 where there is none; may be NULL). */
int topt_count_divides_batch(const struct topt_planning *m, int64_t gpus,
                             int64_t ret_nearest[2]);

/* A lower bound, in bytes a device, of every plan on so many devices. */
int64_t topt_count_least_bytes(const struct topt_planning *m, int64_t gpus);

/* The best answer for one count. */
struct topt_best {
    int found;
    struct topt_mesh mesh;
    enum topt_space space;
    int alike;
    struct topt_solution solution;       /* strategy owned */
    struct topt_certificate certificate; /* of all shapes; epsilon that of the fastest */
    int stopped,
        uniform; /* 'uniform': it is of that space, whatever was to be searched */
    int factors; /* that were searched */
    struct topt_problem_stats stats; /* of the best one's shape */
};

/* The fastest within 'limit' (0: none) or the one with the least memory, over all
 * shapes. */
int topt_count_solve(struct topt_planning *m, int64_t gpus, int64_t limit,
                     enum topt_goal goal, struct topt_best *ret,
                     struct topt_error *err) TOPT_MUST_CHECK;

void topt_best_fini(struct topt_best *b);

/* Does anything fit, as far as is known?  Where nothing was found but that is not proven
 * (the search was stopped, operators were decided by heuristic), something may.  Written
 * as true, false and null. */
enum topt_fits { TOPT_FITS_NOT, TOPT_FITS, TOPT_FITS_UNKNOWN };

enum topt_fits topt_best_fits(const struct topt_best *b);

/* A lower bound in bytes of every plan, from the answer with the least memory. */
int64_t topt_best_bound(const struct topt_best *b);

json_t *topt_fits_json(enum topt_fits fits);

#endif
