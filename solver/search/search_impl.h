/* search_impl.h - what the searches of this folder share; nobody else includes it. */
#ifndef TOPT_SEARCH_IMPL_H
#define TOPT_SEARCH_IMPL_H

#include "topt_arena.h"
#include "topt_search.h"

/* Sum of two costs of at least 0; 1 where it does not fit 63 bits. */
static inline int add_overflows(int64_t a, int64_t b, int64_t *ret)
{
    return __builtin_add_overflow(a, b, ret);
}

struct strategies;

/* A row of the table of searches: fills '*ret' for a problem that was found well formed. */
typedef int topt_search_fn(const struct topt_search_problem *problem,
                           const struct topt_search_options *options,
                           struct topt_frontier **ret, struct topt_error *err);

topt_search_fn topt_search_ft, topt_search_plain, topt_search_elimination,
    topt_search_brute;
/* What topt_search_ft does with large problems (ft.c); for tests, of any size. */
topt_search_fn topt_search_smaller;

/* A frontier without points; then point after point, in its order ('choice', of operators and
 * then of edges, is copied). */
struct topt_frontier *topt_frontier_create(const struct topt_search_problem *problem,
                                           struct topt_error *err);
int topt_frontier_add(struct topt_frontier *f, struct topt_cost cost,
                      const int32_t *choice, struct topt_error *err) TOPT_MUST_CHECK;
/* Say which operators were decided by heuristic: those that 'fixed' gives at least 0. */
int topt_frontier_decided(struct topt_frontier *f, const int32_t *fixed, int nops,
                          struct topt_error *err) TOPT_MUST_CHECK;
/* Searches may find more than what was asked for. */
void topt_frontier_keep_wanted(struct topt_frontier *f,
                               const struct topt_search_options *o);
/* Its strategies, borrowed; as they were added. */
struct strategies *topt_frontier_strategies(struct topt_frontier *f);

/* Is the problem well formed?  INVAL or LIMIT names the place. */
int topt_search_check(const struct topt_search_problem *p,
                      struct topt_error *err) TOPT_MUST_CHECK;

/* Pairs of configurations of all edges. */
double topt_search_pairs(const struct topt_search_problem *p);

/* "a sum of memories or times comes to 2^63 - 1 or more". */
int topt_search_overflow(struct topt_error *err);
int topt_search_nomem(struct topt_error *err);
int topt_search_canceled(const struct topt_search_options *options);
int topt_search_stopped(const struct topt_search_options *options);

/* What has no use unless it is finished looks at both: CANCELED where it is to end, which whoever has an answer
 * without it takes for a stop ("gave up"), if it was one. */
int topt_search_interrupted(const struct topt_search_options *options);
int topt_search_poll(const struct topt_search_options *options,
                     struct topt_error *err) TOPT_MUST_CHECK;
int topt_search_gave_up(const struct topt_search_options *options,
                        const struct topt_error *err);
/* What is had where a search gave up before it found anything: strategies that are looked for operator by operator
 * (heuristic.c), of which nothing is proven.  There may be none. */
int topt_search_greedily(const struct topt_search_problem *problem,
                         const struct topt_search_options *options,
                         struct topt_frontier **ret,
                         struct topt_error *err) TOPT_MUST_CHECK;

/* Entries an edge's table may have; entries of a new table up to which operators are
 * eliminated exactly, and bytes a search may hold, where no limit was given. */
#define TOPT_SEARCH_MAX_ENTRIES   (1 << 26)
#define TOPT_SEARCH_EXACT_ENTRIES ((int64_t)1 << 23)
#define TOPT_SEARCH_MAX_BYTES     ((int64_t)16 << 30)

#endif
