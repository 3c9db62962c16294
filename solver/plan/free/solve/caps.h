/* caps.h - a problem under caps on what is in flight, and what a point of its search
 * means.  Private to plan/. */
#ifndef TOPT_CAPS_H
#define TOPT_CAPS_H

#include "free.h"

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
     * is charged (problem_data.h). */
    int64_t excess;
    /* Bytes that a point of blocks or units that choose alike is charged too much: the edge from
     * outside into the first block of a kind and the edges between later blocks are both charged
     * for what they recompute, though no block has both. */
    int64_t surplus;
};
int topt_capped_need(const struct topt_problem *p, const struct topt_search_point *point,
                     struct topt_need *ret, struct topt_error *err) TOPT_MUST_CHECK;

/* Bytes of caps: T + W * U. */
int64_t topt_capped_bytes(const struct topt_problem *p, struct topt_caps caps);

/* Operators of the search are nodes of the model: mark those of one, in 'mark' by
 * operator, then by tensor (its hub). */
void topt_capped_mark(const struct topt_problem *p, int search_op, uint8_t *mark);

int topt_capped_nodes(const struct topt_problem *p); /* operators and tensors */

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

#endif
