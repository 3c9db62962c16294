/* frontiers.h - what tests of the search ask of frontiers. */
#ifndef TOPT_TEST_FRONTIERS_H
#define TOPT_TEST_FRONTIERS_H

#include <math.h>

#include "topt_search.h"

/* Are both there, with the same points? */
static inline int same_costs(const struct topt_frontier *a, const struct topt_frontier *b)
{
    int good = a && b && a->npoints == b->npoints;
    for (int i = 0; good && i < a->npoints; i++)
        good =
            a->cost[i].memory == b->cost[i].memory && a->cost[i].time == b->cost[i].time;
    return good;
}

/* Do the strategies cost what the points say, by the plainest code, and are these in order? */
static inline int witnesses_hold(const struct topt_search_problem *p,
                                 const struct topt_frontier *f)
{
    struct topt_frontier_reader *r = topt_frontier_reader(f, NULL);
    int good = r != NULL;
    for (int i = 0; i < f->npoints && good; i++) {
        const struct topt_search_point *x = topt_frontier_read(r, i);
        struct topt_cost c;
        good = !topt_search_cost(p, x->config, x->alt, &c, NULL) &&
               c.memory == f->cost[i].memory && c.time == f->cost[i].time &&
               x->cost.memory == c.memory && x->cost.time == c.time;
        if (i && (c.memory <= f->cost[i - 1].memory || c.time >= f->cost[i - 1].time))
            good = 0;
    }
    topt_frontier_reader_destroy(r);
    return good;
}

/* Is 'found' at most (1 + epsilon) times as slow as 'time', to the last digit? */
static inline int within_tolerance(int64_t found, int64_t time, double epsilon)
{
    return found <= time || fmal(epsilon, time, -(long double)(found - time)) >= 0;
}

/* Is every true point from 'first' on stood for as the frontier claims? */
static inline int covers(const struct topt_frontier *f, const struct topt_frontier *all,
                         int first)
{
    int n = 0, good = 1; /* the last of the first n is the fastest that is no heavier */
    for (int i = first; i < all->npoints && good; i++) {
        while (n < f->npoints && f->cost[n].memory <= all->cost[i].memory)
            n++;
        good = n && within_tolerance(f->cost[n - 1].time, all->cost[i].time, f->epsilon);
    }
    return good;
}

#endif
