/* solutions.c - solutions of problems: kept in order, reduced to a frontier, put
 * together; and what is claimed of an answer that many searches gave together.
 *
 * An answer is exact where each of its searches was.  What it may lose is a bound on
 * times: of whole frontiers the largest of all searches; where only the fastest is
 * wanted, the ratio of the answer to the least bound, below which no search left anything
 * unexplored. */
#include "free.h"
#include "topt_array.h"
#include "topt_minmax.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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

int topt_certificate_merge(struct topt_certificate *into,
                           const struct topt_certificate *from, struct topt_error *err)
{
    into->exact = into->exact && from->exact;
    into->epsilon = fmax(into->epsilon, from->epsilon);
    into->bound_ns = topt_min(into->bound_ns, from->bound_ns);
    into->bound_bytes = topt_min(into->bound_bytes, from->bound_bytes);
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

void topt_certificate_withdraw(struct topt_certificate *c)
{
    c->exact = 0;
    c->epsilon = INFINITY;
}

/* ---- solutions --------------------------------------------------------------------- */

void topt_solutions_fini(struct topt_solutions *s)
{
    for (int i = 0; i < s->n; i++)
        topt_strategy_destroy(s->at[i].strategy);
    free(s->at);
    free(s->caps);
    topt_certificate_fini(&s->certificate);
    memset(s, 0, sizeof *s);
}

/* Ascending; among equal costs, in the order in which they were found. */
static int by_cost(const void *x, const void *y)
{
    const struct topt_solution *a = *(const struct topt_solution *const *)x,
                               *b = *(const struct topt_solution *const *)y;
    if (a->memory_bytes != b->memory_bytes)
        return a->memory_bytes < b->memory_bytes ? -1 : 1;
    if (a->time_ns != b->time_ns)
        return a->time_ns < b->time_ns ? -1 : 1;
    return a < b ? -1 : a > b;
}

int topt_solutions_reduce(struct topt_solutions *s, struct topt_error *err)
{
    size_t room = (size_t)s->n + 1;
    struct topt_solution *from = malloc(room * sizeof *from),
                         **order = malloc(room * sizeof *order);
    int n = 0;
    if (!from || !order) {
        free(from);
        free(order);
        return topt_nomem(err, "the frontier");
    }
    for (int i = 0; i < s->n; i++) {
        from[i] = s->at[i];
        order[i] = &from[i];
    }
    qsort(order, (size_t)s->n, sizeof *order, by_cost);
    for (int i = 0; i < s->n; i++) {
        if (order[i]->memory_bytes == INT64_MAX || /* never fits */
            (n > 0 && order[i]->time_ns >= s->at[n - 1].time_ns))
            topt_strategy_destroy(order[i]->strategy);
        else
            s->at[n++] = *order[i];
    }
    s->n = n;
    free(from);
    free(order);
    return 0;
}

int topt_solutions_append(struct topt_solutions *s, const struct topt_solution *more,
                          int n, struct topt_error *err)
{
    if (TOPT_RESIZE(s->at, s->n + n + 1))
        return topt_nomem(err, "the frontier");
    if (n > 0)
        memcpy(s->at + s->n, more, (size_t)n * sizeof *s->at);
    s->n += n;
    return 0;
}

int topt_solutions_merge(struct topt_solutions *into, struct topt_solutions *from,
                         struct topt_error *err)
{
    if (topt_solutions_append(into, from->at, from->n, err))
        return -1;
    from->n = 0;
    into->ncaps += from->ncaps;
    into->stopped |= from->stopped;
    return topt_certificate_merge(&into->certificate, &from->certificate, err) ||
                   topt_solutions_reduce(into, err)
               ? -1
               : 0;
}

void topt_solutions_keep(struct topt_solutions *s, int i)
{
    for (int k = 0; k < s->n; k++)
        if (k != i)
            topt_strategy_destroy(s->at[k].strategy);
    if (i >= 0 && i < s->n)
        s->at[0] = s->at[i];
    s->n = i >= 0 && i < s->n;
}

int64_t topt_solutions_best(const struct topt_solutions *s)
{
    return s->n > 0 ? s->at[s->n - 1].time_ns : INT64_MAX;
}
