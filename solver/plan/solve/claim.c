/* claim.c - what is claimed of an answer that many searches gave together.
 *
 * An answer is exact where each of its searches was.  What it may lose is a bound on
 * times: of whole frontiers the largest of all searches; where only the fastest is
 * wanted, the ratio of the answer to the least bound, below which no search left anything
 * unexplored. */
#include "claim.h"

#include <math.h>
#include <stdlib.h>

struct topt_claim topt_claim_exact(void)
{
    return (struct topt_claim){
        .exact = 1, .bound_ns = INT64_MAX, .bound_bytes = INT64_MAX};
}

void topt_claim_fini(struct topt_claim *c)
{
    free(c->decided);
    c->decided = NULL;
}

void topt_claim_of_least(struct topt_claim *c)
{
    struct topt_claim least = topt_claim_exact();
    least.bound_bytes = c->bound_bytes;
    if (c->decided) {
        least.exact = 0;
        least.epsilon = INFINITY;
        least.decided = c->decided;
        least.nnodes = c->nnodes;
    }
    *c = least;
}

int topt_claim_merge(struct topt_claim *into, const struct topt_claim *from,
                     struct topt_error *err)
{
    into->exact = into->exact && from->exact;
    into->epsilon = fmax(into->epsilon, from->epsilon);
    into->bound_ns = into->bound_ns < from->bound_ns ? into->bound_ns : from->bound_ns;
    if (from->bound_bytes < into->bound_bytes)
        into->bound_bytes = from->bound_bytes;
    topt_search_stats_add(&into->stats, &from->stats);
    if (!from->decided)
        return 0;
    if (!into->decided) {
        into->nnodes = from->nnodes;
        into->decided = calloc((size_t)from->nnodes + 1, 1);
        if (!into->decided)
            return topt_nomem(err, "what was decided");
    }
    for (int i = 0; i < from->nnodes; i++)
        into->decided[i] |= from->decided[i];
    return 0;
}

double topt_claim_epsilon(const struct topt_claim *c, int64_t best_ns)
{
    return c->exact ? 0 : topt_search_excess(best_ns, c->bound_ns);
}
