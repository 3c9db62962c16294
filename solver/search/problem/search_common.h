/* search_common.h - what every part of the search uses: how it ends early, what it says,
 * and plain sums. Internal to this part.  Thread safety: reentrant. */
#ifndef TOPT_SEARCH_SEARCH_COMMON_H
#define TOPT_SEARCH_SEARCH_COMMON_H

#include "topt_arena.h"
#include "topt_search.h"

/* Sum of two costs of at least 0; 1 where it does not fit 63 bits. */
static inline int add_overflows(int64_t a, int64_t b, int64_t *ret)
{
    return __builtin_add_overflow(a, b, ret);
}

/* Pairs of configurations of all edges. */
double topt_search_pairs(const struct topt_search_problem *p);

/* "a sum of memories or times comes to 2^63 - 1 or more". */
int topt_search_overflow(struct topt_error *err);
int topt_search_nomem(struct topt_error *err);
int topt_search_canceled(const struct topt_search_options *options);
int topt_search_stopped(const struct topt_search_options *options);
/* By memory, then by time: negative, 0, positive. */
int topt_cost_order(struct topt_cost a, struct topt_cost b);

/* Work that is of no use unless it is finished polls both flags: CANCELED where it is to
 * end, which callers that have an answer without it take for a stop ("gave up"), if it was
 * one. */
int topt_search_interrupted(const struct topt_search_options *options);
int topt_search_poll(const struct topt_search_options *options,
                     struct topt_error *err) TOPT_MUST_CHECK;
int topt_search_gave_up(const struct topt_search_options *options,
                        const struct topt_error *err);
/* Entries of a new table up to which operators are
 * eliminated exactly, and bytes a search may hold, where no limit was given. */
#define TOPT_SEARCH_EXACT_ENTRIES ((int64_t)1 << 23)
#define TOPT_SEARCH_MAX_BYTES     ((int64_t)16 << 30)

#endif
