/* exact.h - problems whose prices are exact: searched under caps on what is in flight.  Private to
 * plan/free/solve. */
#ifndef TOPT_EXACT_H
#define TOPT_EXACT_H

#include "price.h"
#include "solve_tuning.h"

/* ---- caps.c: a problem under caps, and what a point of its search means ------------ */

/* From now on the two objectives are swapped, so that the fastest point is the one of least memory;
 * or not. */
void topt_capped_swap_objectives(struct topt_problem *p, int swapped);

/* A point of a search under the current caps as a strategy (owned). */
struct topt_strategy *topt_capped_strategy(const struct topt_problem *p,
                                           const struct topt_search_point *point);

/* The bytes that a point takes beside its memory. */
struct topt_need {
    struct topt_caps caps;
    /* Bytes beyond memory and caps.  Free blocks: how much more the largest block of a kind
     * recomputes than the mean.  Units: how much more another unit recomputes than the one that
     * is charged (price.h). */
    int64_t excess;
    /* Bytes that a point of blocks or units that choose alike is charged too much: the edge from
     * outside into the first block of a kind and the edges between later blocks are both charged
     * for what they recompute, though no block has both. */
    int64_t surplus;
};
int topt_capped_need(const struct topt_problem *p, const struct topt_search_point *point,
                     struct topt_need *ret, struct topt_error *err) TOPT_MUST_CHECK;

/* Operators of the search are nodes of the model: mark those of one, in 'mark' by
 * operator, then by tensor (its hub). */
void topt_capped_mark(const struct topt_problem *p, int search_op, uint8_t *mark);

/* Caps that every strategy needs. */
struct topt_caps topt_capped_least(const struct topt_problem *p);

/* The largest that change anything; -1 where none does. */
struct topt_caps topt_capped_most(const struct topt_problem *p);

/* The nearest cap to one, below or above it, that changes anything; -1, or INT64_MAX above. */
enum topt_side { TOPT_BELOW, TOPT_ABOVE };
int64_t topt_nearest_transient(const struct topt_problem *p, enum topt_side side,
                               int64_t from);
int64_t topt_nearest_crossing(const struct topt_problem *p, enum topt_side side,
                              int64_t from);

/* The largest caps up to 'high' that leave no more than so many bytes beyond 'low'; where that is
 * negative, less than low. */
struct topt_caps topt_caps_within(const struct topt_problem *p, struct topt_caps low,
                                  struct topt_caps high, int64_t bytes);

/* From now on what is in flight counts as memory, or not: of the operators that need most
 * at least, what they need themselves.  Every strategy needs that much beside its sum,
 * and most no more. */
void topt_capped_count_in_flight(struct topt_problem *p, int on);

/* ---- solve_context.c: searches, the solutions that they find and what they prove --- */

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

/* ---- cap_search.c: the fastest strategy that fits, and that of least memory -------- */

/* topt_solve_fastest and topt_solve_least where prices are exact. */
int topt_cap_search_fastest(struct topt_problem *p,
                            const struct topt_search_options *options,
                            struct topt_solutions *ret,
                            struct topt_error *err) TOPT_MUST_CHECK;

int topt_cap_search_least(struct topt_problem *p,
                          const struct topt_search_options *options, int64_t below,
                          struct topt_solutions *ret,
                          struct topt_error *err) TOPT_MUST_CHECK;

/* ---- caps_frontier.c: the exact frontier ------------------------------------------- */

/* topt_solve_frontier where prices are exact; lazy_frontier.c: where they are
 * bounds. */
int topt_caps_frontier(struct topt_problem *p, const struct topt_search_options *options,
                       struct topt_solutions *ret,
                       struct topt_error *err) TOPT_MUST_CHECK;

#endif
