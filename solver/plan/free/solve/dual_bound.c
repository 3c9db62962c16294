/* dual_bound.c - what scalarised passes from the strategy of least memory to the fastest say of
 * every configuration.
 *
 *     time |o                  each line is a weighted sum (search/topt_lower_bound.h): no
 *          | \                 strategy is below it.  Together they are the lower convex
 *          |  \  x             hull of what strategies cost, found from both ends by
 *          |   o               bisection.  A second pass of each gives the same lines for
 *          |     `-.     x     the strategies with one configuration (x: where these meet):
 *          |         `-o       none of those costs less than they say
 *          +------------------ memory
 *
 * Memory is a sum, and what is in flight beside.  Of that the variable that needs most at
 * least is charged with what it needs itself: as little as every strategy has in flight,
 * and of most the whole of it, so that lines are near what strategies cost in truth. */
#include "bounds.h"
#include "topt_minmax.h"

#include <math.h>
#include <stdlib.h>

/* ---- lines ------------------------------------------------------------------------- */

/* After topt_lower_bound_within. */
static int add_sheet(struct dual_bound *h, const struct topt_lower_bound *w,
                     struct topt_error *err)
{
    const struct topt_problem *p = h->p;
    struct line *x = &h->line[h->n];
    x->by = topt_lower_bound_weights(w);
    x->of = malloc(((size_t)p->nchoices + 1) * sizeof *x->of);
    if (!x->of)
        return topt_nomem(err, "the search");
    h->n++;
    for (int i = 0; i < p->nchoices; i++)
        x->of[i] = INT64_MAX;
    for (int i = 0; i < p->nvariables - p->nmirrors; i++) {
        const struct domain *c = topt_domain(p, i);
        int64_t *of = x->of + p->family[c->part[0].family].first;
        for (int k = 0; k < c->nkept; k++) {
            int64_t through = topt_lower_bound_min_marginal(w, i, k);
            int64_t *least = &of[c->at[c->kept[k]].config];
            *least = topt_min(*least, through);
        }
    }
    return 0;
}

void topt_dual_bound_fini(struct dual_bound *h)
{
    for (int i = 0; i < h->n; i++)
        free(h->line[i].of);
    h->n = 0;
}

/* ---- scalarised passes ------------------------------------------------------------- */

/* Two strategies between which the hull is looked for. */
struct segment {
    struct topt_cost small, fast;
};

struct hull_search {
    struct dual_bound *h;
    const struct dual_bound_options *o;
    struct topt_lower_bound *weigher;
    struct topt_error *err;
    struct segment next[2 * HULL_PASSES]; /* a queue */
    int done, n;
};

static struct topt_cost times(struct topt_cost c, double by)
{
    return (struct topt_cost){(int64_t)((double)c.memory * by),
                              (int64_t)((double)c.time * by)};
}

/* The lightest strategy by a weighted sum that is exact up to a corner.  '*ret_some': is
 * there one? */
static int weigh(struct hull_search *x, struct topt_scalarization by,
                 struct topt_cost corner, struct topt_cost *ret, int *ret_some)
{
    struct topt_lower_bound *w = x->weigher;
    int any;
    *ret_some = 0;
    if (topt_lower_bound_scalarize(w, by, corner, x->err) ||
        topt_lower_bound_lightest(w, ret_some, ret, x->err))
        return -1;
    return *ret_some && (topt_lower_bound_within(w, times(*ret, 1 + x->o->reach), &any,
                                                 x->err) ||
                         add_sheet(x->h, w, x->err))
               ? -1
               : 0;
}

/* Weigh by the line through both ends; what is below it parts the segment, where it is by
 * enough. */
static int part_segment(struct hull_search *x, struct segment s)
{
    struct topt_scalarization by = {s.small.time - s.fast.time,
                                    s.fast.memory - s.small.memory};
    struct topt_cost middle, ends = {s.fast.memory, s.small.time};
    int some;
    if (weigh(x, by, times(ends, 1 + x->o->reach), &middle, &some))
        return -1;
    topt_wide all = topt_weight(by.memory, by.time, s.small);
    topt_wide gain = all - topt_weight(by.memory, by.time, middle);
    if (some && gain > 0 && (double)gain > (double)all * x->o->fine) {
        x->next[x->n++] = (struct segment){s.small, middle};
        x->next[x->n++] = (struct segment){middle, s.fast};
    }
    return 0;
}

static int weigh_all(struct hull_search *x, int *ret_some)
{
    static const int64_t most = (int64_t)1 << 50; /* as corner where nothing is known */
    struct topt_cost small, fast, any = {most, most};
    int some;
    if (weigh(x, (struct topt_scalarization){0, 1}, any, &fast, ret_some))
        return -1;
    if (!*ret_some)
        return 0;
    if (weigh(x, (struct topt_scalarization){1, 0}, any, &small, &some))
        return -1;
    *ret_some = small.memory <= x->o->limit.memory && fast.time <= x->o->limit.time;
    x->next[x->n++] = (struct segment){small, fast};
    while (*ret_some && x->done < x->n && x->h->n < HULL_PASSES) {
        struct segment s = x->next[x->done++];
        int wanted = s.small.memory < s.fast.memory && s.fast.time < s.small.time &&
                     s.small.memory <= x->o->limit.memory &&
                     s.fast.time <= x->o->limit.time;
        if (wanted && part_segment(x, s))
            return -1;
    }
    return 0;
}

int topt_dual_bound_init(struct dual_bound *h, struct topt_problem *p,
                         const struct dual_bound_options *o, int *ret_some,
                         struct topt_error *err)
{
    struct hull_search x = {.h = h, .o = o, .err = err};
    *h = (struct dual_bound){.p = p};
    topt_capped_count_in_flight(p, 1);
    int rc = topt_lower_bound_create(topt_capped_problem(p, (struct topt_caps){-1, -1}),
                                     o->search, &x.weigher, err);
    if (!rc) {
        rc = weigh_all(&x, ret_some);
        h->work = topt_lower_bound_work(x.weigher);
    }
    topt_lower_bound_destroy(x.weigher);
    topt_capped_count_in_flight(p, 0);
    if (rc)
        topt_dual_bound_fini(h);
    return rc;
}

/* ---- what they say ----------------------------------------------------------------- */

/* Does a weighted sum say that no strategy with a configuration costs so little? */
static int is_above(const struct line *x, int config, struct topt_cost c)
{
    int64_t through = x->of[config];
    return (through < INT64_MAX ? through : (topt_wide)x->by.allowance + 1) >
           topt_weight(x->by.memory, x->by.time, c);
}

int topt_dual_bound_reaches(const struct dual_bound *h, int config,
                            const struct topt_cost *corner, int ncorners)
{
    int last = 0; /* what leaves out one corner most often does the next, too */
    for (int k = 0; k < ncorners; k++) {
        int i = 0;
        while (i < h->n && !is_above(&h->line[(i + last) % h->n], config, corner[k]))
            i++;
        if (i == h->n)
            return 1;
        last = (i + last) % h->n;
    }
    return 0;
}

double topt_dual_bound_at(const struct dual_bound *h, int config)
{
    double best = INFINITY;
    for (int i = 0; i < h->n; i++) {
        const struct line *x = &h->line[i];
        int64_t through = x->of[config];
        double beyond = (double)(through - x->by.least);
        double reach = (double)(x->by.allowance - x->by.least);
        /* Much is lightest where time does not count at all. */
        if (through < INT64_MAX && x->by.time)
            best = fmin(best, beyond > 0 ? beyond / reach : 0);
    }
    return best;
}

double topt_dual_bound_beyond(const struct dual_bound *h, struct topt_cost c)
{
    double least = INFINITY;
    for (int i = 0; i < h->n; i++) {
        const struct topt_weights *by = &h->line[i].by;
        double weight = (double)topt_weight(by->memory, by->time, c);
        least = fmin(least, weight / (double)by->least - 1);
    }
    return least;
}

int64_t topt_dual_bound_fastest(const struct dual_bound *h, int64_t memory)
{
    int64_t time = 0;
    for (int i = 0; i < h->n; i++) {
        const struct topt_weights *by = &h->line[i].by;
        topt_wide left = (topt_wide)by->least - (topt_wide)by->memory * memory;
        topt_wide at = by->time && left > 0 ? (left + by->time - 1) / by->time : 0;
        time = topt_max(time, (int64_t)at);
    }
    return time;
}
