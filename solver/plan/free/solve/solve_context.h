/* solve_context.h - searches of a problem under caps, the solutions that they find and what they
 * prove.  Private to plan/. */
#ifndef TOPT_SOLVE_CONTEXT_H
#define TOPT_SOLVE_CONTEXT_H

#include "free.h"

struct solve_context {
    struct topt_problem *p;
    const struct topt_search_options *options;
    struct topt_solutions *ret;
    struct topt_error *err;
    int searched, stopped; /* searches made; the last one that is due was not */
    int before;            /* solutions that there were when the last search began */
    int proves;            /* the search itself says how good the answer is */
};

/* One search, with what is left of the work allowed; its certificate is added to the answer's.
 * The frontier is the caller's.  Solutions are reduced before. */
int topt_solve_search(struct solve_context *r, const struct topt_search_problem *problem,
                      const struct topt_search_options *options,
                      struct topt_frontier **ret) TOPT_MUST_CHECK;

/* Work that is left of what the caller allows (0: all): at least a little, which finds
 * that of least memory. */
int64_t topt_solve_work_left(const struct solve_context *r);

/* Is it to stop, or out of work? */
int topt_solve_is_over(const struct solve_context *r);

/* Did something fail only because it is to answer with what it has? */
int topt_solve_was_stopped(const struct solve_context *r, const struct topt_error *why);

/* Note that a search under such caps was made. */
int topt_solve_note_caps(struct solve_context *r, struct topt_caps caps) TOPT_MUST_CHECK;

/* A lower bound of all times, where 'time' is within 'epsilon' of the fastest. */
int64_t topt_bound_under(int64_t time, double epsilon);

/* The same by the fastest point of a search: 0 where nothing is proven, INT64_MAX where
 * there is none. */
int64_t topt_bound_of(const struct topt_frontier *f);

/* How far the fastest may be from the truth, by the certificate's bound.  Bounds are whole
 * nanoseconds, and so say a little more than the tolerance that led to them, unless the
 * search was stopped or left something 'open'. */
double topt_solve_epsilon(const struct solve_context *r, int open);

/* The options of a search for the least memory, which is exact and of all strategies.  A
 * bound on it is of no use: where the search is to stop, it gives up. */
struct topt_search_options topt_solve_options_for_least(struct topt_search_options o);

/* Keep a point as a solution that takes so much memory, where none is as good.  Solutions are
 * to be reduced before anybody reads them. */
int topt_solve_keep(struct solve_context *r, const struct topt_search_point *point,
                    int64_t memory) TOPT_MUST_CHECK;

/* Lower caps to what can be in flight of what fits, 'low' at least.  1, 0 where nothing
 * fits, or -1. */
int topt_feasible_caps(struct solve_context *r, struct topt_caps low,
                       struct topt_caps *high) TOPT_MUST_CHECK;

/* Can anything fit, as far as caps that are lowered to what fits beside the least sum
 * tell?  1, 0 or -1. */
int topt_feasible(struct solve_context *r) TOPT_MUST_CHECK;

#endif
