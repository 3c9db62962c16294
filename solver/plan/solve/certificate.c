/* certificate.c - what is claimed of an answer that many searches gave together.
 *
 * An answer is exact where each of its searches was.  What it may lose is a bound on
 * times: of whole frontiers the largest of all searches; where only the fastest is
 * wanted, the ratio of the answer to the least bound, below which no search left anything
 * unexplored. */
#include "certificate.h"

#include <math.h>
#include <stdlib.h>

struct topt_certificate topt_certificate_exact(void)
{
    return (struct topt_certificate){
        .exact = 1, .bound_ns = INT64_MAX, .bound_bytes = INT64_MAX};
}

void topt_certificate_fini(struct topt_certificate *c)
{
    free(c->decided);
    c->decided = NULL;
}

void topt_certificate_of_least(struct topt_certificate *c)
{
    struct topt_certificate least = topt_certificate_exact();
    least.bound_bytes = c->bound_bytes;
    if (c->decided) {
        least.exact = 0;
        least.epsilon = INFINITY;
        least.decided = c->decided;
        least.nnodes = c->nnodes;
    }
    *c = least;
}

int topt_certificate_merge(struct topt_certificate *into,
                           const struct topt_certificate *from, struct topt_error *err)
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

double topt_certificate_epsilon(const struct topt_certificate *c, int64_t best_ns)
{
    return c->exact ? 0 : topt_search_excess(best_ns, c->bound_ns);
}
