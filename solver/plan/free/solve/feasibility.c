/* feasibility.c - how much can be in flight of what fits.
 *
 *     memory(S) = sum(S) + T(S) + W * U(S) <= limit
 *
 * Beside the least sum so much of the limit is left for what is in flight; what has
 * more there does not fit.  Under caps that are lowered to that the least sum is
 * heavier, and leaves less:
 *
 *     caps  ->  least sum under them  ->  limit - sum: the next caps  ->  ...
 *
 * until they stay, or nothing is left.  Each step is one lower bound of the scalarised
 * problem (search/topt_lower_bound.h).  Searches under caps beside which nothing fits
 * would tell the same (cap_search.c parts what they find), but where the limit is close
 * to the least memory each of them takes hundreds of such bounds. */
#include "feasibility.h"
#include "caps.h"
#include "solve_context.h"
#include "solve_tuning.h"
#include "topt_lower_bound.h"

/* The least that adds up under some caps; 0 where that can't be weighed.  1, 0 where
 * there is no strategy, or -1. */
static int least_sum(struct solve_context *r, struct topt_caps caps, int64_t *ret)
{
    const struct topt_search_problem *under =
        topt_capped_problem(r->p, caps.transient, caps.crossing);
    struct topt_cost least = {0, 0}, corner = {r->options->memory_limit, 0};
    struct topt_lower_bound *w;
    struct topt_error why = {0};
    int some = 1;
    *ret = 0;
    if (topt_lower_bound_create(under, r->options, &w, &why)) {
        if (why.code != TOPT_ERR_LIMIT && r->err)
            *r->err = why;
        return why.code == TOPT_ERR_LIMIT ? 1 : -1;
    }
    int rc = topt_lower_bound_scalarize(w, (struct topt_scalarization){1, 0}, corner,
                                        r->err) ||
             topt_lower_bound_lightest(w, &some, &least, r->err);
    r->ret->certificate.stats.products += topt_lower_bound_work(w);
    topt_lower_bound_destroy(w);
    *ret = least.memory;
    return rc ? -1 : some;
}

/* The largest caps up to 'high' beside so much that adds up. */
static struct topt_caps caps_beside(const struct solve_context *r, int64_t sum,
                                    struct topt_caps low, struct topt_caps high)
{
    int64_t left = r->options->memory_limit - sum, w = topt_capped_crossing(r->p);
    int64_t transient = left - w * low.crossing, crossing = left - low.transient;
    if (transient < high.transient)
        high.transient = topt_nearest_transient(r->p, TOPT_BELOW, transient + 1);
    if (w && crossing / w < high.crossing)
        high.crossing = topt_nearest_crossing(r->p, TOPT_BELOW, crossing / w + 1);
    return high;
}

int topt_feasible_caps(struct solve_context *r, struct topt_caps low,
                       struct topt_caps *high)
{
    for (int i = 0; i < FEASIBLE_STEPS && r->options->memory_limit; i++) {
        struct topt_caps before = *high;
        int64_t sum;
        int some = least_sum(r, before, &sum);
        if (some <= 0)
            return some;
        *high = caps_beside(r, sum, low, before);
        if (high->transient < low.transient || high->crossing < low.crossing)
            return 0;
        if (high->transient == before.transient && high->crossing == before.crossing)
            break;
    }
    return 1;
}

int topt_feasible(struct solve_context *r)
{
    struct topt_caps high = topt_capped_most(r->p);
    return topt_feasible_caps(r, topt_capped_least(r->p), &high);
}
