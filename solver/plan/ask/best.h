/* best.h - what answers of all modes are made of: the variants of a grid solved, the best of a
 * number of GPUs, answers beside it, whole trade-offs, and how each is written down.  Private to
 * plan/.
 *
 * Thread safety: reentrant, but for the planning, which one thread has. */
#ifndef TOPT_BEST_H
#define TOPT_BEST_H

#include <jansson.h>

#include "grid.h"

/* ---- a grid (grid_solve.c) ---------------------------------------------------------- */

/* Points of all variants within 'limit' (0: none) and no slower than 'time_limit' (0:
 * none). */
int topt_grid_solve(struct topt_grid_search *s, enum topt_goal goal, int64_t limit,
                    int64_t time_limit, struct topt_solutions *ret,
                    struct topt_error *err) TOPT_MUST_CHECK;

/* Solve another request, of a smaller space, on the same grid, and keep what lies in the shape's own
 * space.  The certificate is the other's.  'ret' starts empty. */
int topt_grid_solve_other(struct topt_grid_search *s, struct topt_planning *other,
                          enum topt_goal goal, int64_t limit, struct topt_solutions *ret,
                          struct topt_error *err) TOPT_MUST_CHECK;

/* ---- a number of GPUs (gpu_count.c) ------------------------------------------------- */

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
    /* 'uniform': it is of that space, whatever was to be searched */
    int stopped, uniform;
    int factors; /* that were searched */
    /* of a faster one, which leaves nothing of the device's memory; 0: it is the fastest */
    int64_t tight_ns;
    struct topt_problem_stats stats; /* of the best one's shape */
};

/* The fastest within 'limit' (0: none) or the one with the least memory, over all
 * shapes; 'slowest_ns': nothing slower is of interest; 0: whatever its time.  For a
 * framework, without a limit of the question's own, one that leaves a twentieth free
 * where that costs less than 3 % of the time. */
int topt_count_solve(struct topt_planning *m, int64_t gpus, int64_t limit,
                     int64_t slowest_ns, enum topt_goal goal, struct topt_best *ret,
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

/* ---- written down (answer.c) -------------------------------------------------------- */

/* The checked plan, and why it is the one. */
int topt_answer_write(struct topt_planning *m, const struct topt_best *b, const char *why,
                      json_t **ret, struct topt_error *err) TOPT_MUST_CHECK;

/* The search was ended before all was looked at, and where a part of it was too large, why. */
void topt_answer_put_stopped(json_t *answer, const struct topt_planning *m);

/* Nothing was found on so many before the search was stopped. */
int topt_answer_unfinished(const struct topt_planning *m, int64_t gpus, json_t **ret,
                           struct topt_error *err) TOPT_MUST_CHECK;

/* Nothing fits on so many: the lightest that there is; 'doubt': of fewer it is not
 * known. */
int topt_answer_infeasible(struct topt_planning *m, int64_t gpus, int doubt, json_t **ret,
                           struct topt_error *err) TOPT_MUST_CHECK;

/* Why no plan for so many has the degrees that the request fixes: 1 with an error that names it, 0 where no single
 * degree is at fault (no_degrees.c). */
int topt_no_degrees(const struct topt_planning *m, int64_t gpus, struct topt_error *err);

/* So many can't share the batch (topt_count_divides_batch). */
int topt_answer_indivisible(const struct topt_planning *m, int64_t gpus,
                            const int64_t nearest[2], json_t **ret,
                            struct topt_error *err) TOPT_MUST_CHECK;

/* ---- curves (curve.c) ---------------------------------------------------------------- */

/* The fastest on so many, no slower than 'slowest_ns' (0: whatever its time), as a point of a curve; NULL where a
 * search was stopped before it knew. */
int topt_count_point(struct topt_planning *m, int64_t gpus, int64_t slowest_ns,
                     json_t **ret, struct topt_error *err) TOPT_MUST_CHECK;

/* The best of a count, or that nothing fits, as a point of a curve. */
int topt_best_point(struct topt_planning *m, const struct topt_best *b, int64_t gpus,
                    json_t **ret, struct topt_error *err) TOPT_MUST_CHECK;

/* A curve, from the memo of the request's problem. */
int topt_answer_curve(const struct topt_request *r, struct topt_memo *memo, json_t **ret,
                      struct topt_error *err) TOPT_MUST_CHECK;

/* ---- one answer beside others (alternatives.c) -------------------------------------- */

struct topt_alternatives {
    /* those of a curve, of counts that fit and may matter for what is named */
    json_t *points;
    /* the fewest, one node, the cheapest, the knee, the fastest; one that is several once */
    json_t *named;
};

/* Solve those of the counts (ascending) that may have one of the names that people book them by.  'fewest': the point of
 * the fewest GPUs, of fewer than those (its reference is taken).  Why these are the fewest, and why none is faster than the fastest.  Always followed by
 * topt_alternatives_fini. */
int topt_alternatives_find(struct topt_planning *m, json_t *fewest, const int64_t *count,
                           int n, const char *why_fewest, const char *why_fastest,
                           struct topt_alternatives *ret,
                           struct topt_error *err) TOPT_MUST_CHECK;

void topt_alternatives_fini(struct topt_alternatives *a);

/* ---- mini-parallelism (fewest.c) ---------------------------------------------------- */

/* A request of mode mini-parallelism. */
int topt_answer_fewest(struct topt_planning *m, json_t **ret,
                       struct topt_error *err) TOPT_MUST_CHECK;

/* Put "with" into an answer that nothing fits on 'gpus': the smallest larger number that something fits on,
 * and options with which something fits on as many.  Of a number that no person asked for nothing is put. */
int topt_answer_put_ways(struct topt_planning *m, int64_t gpus, json_t *answer,
                         struct topt_error *err) TOPT_MUST_CHECK;

#endif
