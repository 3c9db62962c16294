/* relaxation.c - weighings of graphs that are too entangled to be weighed as they are.
 *
 * An edge's table says what two configurations cost together.  Weighed end by end it says less:
 *
 *     a ---w(a, b)--- b      ->      a + r(a)     b + c(b)        r(a) = least over b of  w(a, b)
 *                                                                c(b) = least over a of  w(a, b) - r(a)
 *
 * r(a) + c(b) is never more than w(a, b), so what follows from such weighings bounds all strategies from
 * below as before; only need no strategy be as light.  (Lagrangian decomposition, Guignard and Kim,
 * 1987, with multipliers that are not searched for.)  And the edge is gone: what held several operators
 * together falls apart.
 *
 * Which edges?  What a bond (all edges between two operators) would lose is what its entries weigh
 * more than their halves, on average, memory and time counting alike relative to the largest of all
 * strategies'.  Bonds of one table, as alike blocks have them, are one kind.  The cheapest kinds are relaxed, as many
 * as it takes; so the dearest one is as cheap as can be.  Then what can be put back is, the dearest
 * first.  Whether it does is planned each time: a plan takes a small part of a weighing.
 *
 * What a bond loses on average need not be what the lightest strategies lose by it.  So the dearest that were
 * relaxed are tried to be kept, one after the other as long as that pays: what is relaxed instead stays so where the lightest
 * then weighs more, memory and time counting as above. */
#include "relaxation.h"
#include "scalarization.h"
#include "min_marginals.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    SAMPLE = 64, /* rows and columns of a table that are looked at */
    WIDER = 4,   /* so much larger, a whole graph's tables may be */
    LONGER = 16, /* ... and a weighing of it take: it tells more */
};
/* By so much more the lightest is to weigh where others are relaxed. */
static const double BETTER = 1 + 1.0 / 4096;

/* An edge, as one of those between two operators; then all of these. */
struct bond {
    int low, high, edge;
    int table; /* the first edge that has the same: of this one, then of the first of all */
    double loss;
};

struct relaxation {
    const struct topt_search_problem *problem;
    const struct topt_search_options *options;
    int64_t max_pairs;
    struct relaxed *ret;
    struct elimination_plan *plan;
    struct topt_error *err;
    struct bond *
        bond; /* by edge, parallel ones and those of a kind together; what loses least first */
    int *first; /* where each kind begins, and the end */
    char *kept; /* by kind: it is not to be relaxed */
    int nkinds;
    int fits;    /* is the plan, as it is, within the limits? */
    int planned; /* is it of the edges that are marked now? */
};

/* ---- what bonds lose ---------------------------------------------------------------------------- */

static double weight(struct topt_cost c, struct topt_cost most)
{
    return (double)c.memory / ((double)most.memory + 1) +
           (double)c.time / ((double)most.time + 1);
}

static double entry_weight(const struct topt_table *t, int64_t entry,
                           struct topt_cost most)
{
    double least = INFINITY;
    for (int32_t k = t->first[entry]; k < t->first[entry + 1]; k++)
        least = fmin(least, weight(t->alt[k], most));
    return least;
}

/* Some rows and columns of a table, evenly. */
struct sample {
    int nrows, ncolumns;
    double at[SAMPLE][SAMPLE], row[SAMPLE], column[SAMPLE];
};

static void take_sample(struct sample *s, const struct topt_table *t,
                        struct topt_cost most)
{
    s->nrows = t->from_classes < SAMPLE ? t->from_classes : SAMPLE;
    s->ncolumns = t->to_classes < SAMPLE ? t->to_classes : SAMPLE;
    for (int i = 0; i < s->nrows; i++) {
        int64_t row = (int64_t)i * t->from_classes / s->nrows;
        s->row[i] = INFINITY;
        for (int k = 0; k < s->ncolumns; k++) {
            int64_t column = (int64_t)k * t->to_classes / s->ncolumns;
            s->at[i][k] = entry_weight(t, row * t->to_classes + column, most);
            s->row[i] = fmin(s->row[i], s->at[i][k]);
        }
    }
}

/* How much more than both its halves an entry weighs, on average. */
static double loss_of(const struct topt_table *t, struct topt_cost most)
{
    struct sample s;
    double sum = 0;
    int n = 0;
    take_sample(&s, t, most);
    for (int k = 0; k < s.ncolumns; k++) {
        s.column[k] = INFINITY;
        for (int i = 0; i < s.nrows; i++)
            if (s.at[i][k] < INFINITY)
                s.column[k] = fmin(s.column[k], s.at[i][k] - s.row[i]);
        for (int i = 0; i < s.nrows; i++)
            if (s.at[i][k] < INFINITY) {
                sum += s.at[i][k] - s.row[i] - s.column[k];
                n++;
            }
    }
    return n ? sum / n : 0;
}

/* What strategies may cost at most, about: of operators alone. */
static struct topt_cost most_of(const struct topt_search_problem *p)
{
    struct topt_cost sum = {0, 0};
    for (int i = 0; i < p->nops; i++) {
        struct topt_cost most = {0, 0};
        for (int c = 0; c < p->op[i].nconfigs; c++) {
            const struct topt_cost *x = &p->op[i].cost[c];
            most.memory = x->memory > most.memory ? x->memory : most.memory;
            most.time = x->time > most.time ? x->time : most.time;
        }
        if (add_overflows(sum.memory, most.memory, &sum.memory))
            sum.memory = INT64_MAX;
        if (add_overflows(sum.time, most.time, &sum.time))
            sum.time = INT64_MAX;
    }
    return sum;
}

/* ---- bonds -------------------------------------------------------------------------------------- */

static int compare(double a, double b)
{
    return a < b ? -1 : a > b;
}

static int by_ends(const void *x, const void *y)
{
    const struct bond *a = x, *b = y;
    return a->low != b->low     ? compare(a->low, b->low)
           : a->high != b->high ? compare(a->high, b->high)
                                : compare(a->edge, b->edge);
}

static int by_kind(const void *x, const void *y)
{
    const struct bond *a = x, *b = y;
    return a->loss < b->loss || a->loss > b->loss ? compare(a->loss, b->loss)
           : a->table != b->table                 ? compare(a->table, b->table)
                                                  : by_ends(x, y);
}

static int of_kind(const struct bond *a, const struct bond *b)
{
    return a->table == b->table && !(a->loss < b->loss) && !(a->loss > b->loss);
}

static int same_ends(const struct bond *a, const struct bond *b)
{
    return a->low == b->low && a->high == b->high;
}

struct use {
    const struct topt_table *table;
    int edge;
};

static int by_table(const void *x, const void *y)
{
    const struct use *a = x, *b = y;
    uintptr_t p = (uintptr_t)a->table, q = (uintptr_t)b->table;
    return p != q ? (p < q ? -1 : 1) : a->edge < b->edge ? -1 : a->edge > b->edge;
}

/* The bond of each edge by itself. */
static int find_edges(struct relaxation *r)
{
    const struct topt_search_problem *p = r->problem;
    struct topt_cost most = most_of(p);
    struct use *use = malloc(((size_t)p->nedges + 1) * sizeof *use);
    if (!use)
        return topt_search_nomem(r->err);
    for (int e = 0; e < p->nedges; e++)
        use[e] = (struct use){p->edge[e].table, e};
    qsort(use, (size_t)p->nedges, sizeof *use, by_table);
    for (int i = 0, first = 0; i < p->nedges; i++) {
        const struct topt_search_edge *x = &p->edge[use[i].edge];
        int low = x->from < x->to ? x->from : x->to, high = x->from + x->to - low;
        int known = i && use[i].table == use[i - 1].table;
        first = known ? first : use[i].edge;
        r->bond[use[i].edge] =
            (struct bond){low, high, use[i].edge, first,
                          known ? r->bond[first].loss : loss_of(x->table, most)};
    }
    free(use);
    return 0;
}

/* Those between the same operators stand together, each with what all of these lose. */
static void join_edges(struct bond *bond, int n)
{
    qsort(bond, (size_t)n, sizeof *bond, by_ends);
    for (int e = 1; e < n; e++)
        if (same_ends(&bond[e], &bond[e - 1])) {
            bond[e].loss += bond[e - 1].loss;
            bond[e].table = bond[e - 1].table;
        }
    for (int e = n - 2; e >= 0; e--)
        if (same_ends(&bond[e], &bond[e + 1]))
            bond[e].loss = bond[e + 1].loss;
}

static int find_bonds(struct relaxation *r)
{
    int n = r->problem->nedges;
    r->bond = malloc(((size_t)n + 1) * sizeof *r->bond);
    r->first = malloc(((size_t)n + 1) * sizeof *r->first);
    r->kept = calloc((size_t)n + 1, 1);
    if (!r->bond || !r->first || !r->kept)
        return topt_search_nomem(r->err);
    if (find_edges(r))
        return -1;
    join_edges(r->bond, n);
    qsort(r->bond, (size_t)n, sizeof *r->bond, by_kind);
    for (int e = 0; e < n; e++)
        if (!e || !of_kind(&r->bond[e], &r->bond[e - 1]))
            r->first[r->nkinds++] = e;
    r->first[r->nkinds] = n;
    return 0;
}

/* ---- which --------------------------------------------------------------------------------------- */

/* Plan with the edges that are marked now.  0, or -1; 'err' says also why it can't be planned. */
static int try(struct relaxation *r)
{
    if (topt_search_poll(r->options, r->err))
        return -1;
    topt_elimination_fini(r->plan);
    int rc = topt_elimination_relaxed(r->plan, r->problem, &r->ret->store, r->options,
                                      r->ret->edge, r->err);
    r->fits = !rc && (!r->max_pairs || r->plan->tables.npairs <= r->max_pairs);
    r->planned = 1;
    return rc && !r->plan->entangled ? -1 : 0;
}

/* Some kinds are relaxed, but for those that are kept, or put back. */
static void mark(struct relaxation *r, int from, int to, char how)
{
    for (int k = from; k < to; k++)
        for (int i = r->first[k]; i < r->first[k + 1]; i++)
            r->ret->edge[r->bond[i].edge] = how && !r->kept[k];
    r->planned = 0;
}

static int is_relaxed(const struct relaxation *r, int kind)
{
    return r->ret->edge[r->bond[r->first[kind]].edge];
}

static int plan_with(struct relaxation *r, int from, int to, char how)
{
    mark(r, from, to, how);
    return try(r);
}

/* Relax as few as it takes, or all; those that lose least.  '*ret': how many. */
static int relax_cheapest(struct relaxation *r, int *ret)
{
    int low = 0, high = 0; /* 'low' are too few */
    while (!r->fits && high < r->nkinds) {
        low = high;
        high = high < r->nkinds / 2 ? 2 * high + 1 : r->nkinds;
        if (plan_with(r, low, high, 1))
            return -1;
    }
    int enough = r->fits;
    while (enough && low + 1 < high) {
        int middle = (low + high) / 2;
        if (plan_with(r, middle, high, 0))
            return -1;
        if (!r->fits)
            mark(r, middle, high, 1);
        *(r->fits ? &high : &low) = middle;
    }
    *ret = enough ? high : 0;
    return 0;
}

/* Put back what can be of some relaxed kinds, the dearest first. */
static int put_back(struct relaxation *r, int from, int to)
{
    if (from >= to)
        return 0;
    if (plan_with(r, from, to, 0) || r->fits)
        return r->fits ? 0 : -1;
    int middle = (from + to) / 2;
    mark(r, from, to, 1);
    if (to - from == 1)
        return 0;
    return put_back(r, middle, to) || put_back(r, from, middle) ? -1 : 0;
}

/* As few, and as cheap ones, as it takes; planned, whether that fits or not. */
static int relax_few(struct relaxation *r)
{
    int n;
    mark(r, 0, r->nkinds, 0);
    r->fits = 0;
    if (relax_cheapest(r, &n) || put_back(r, 0, n - 1) || (!r->planned && try(r)))
        return -1;
    return 0;
}

/* ---- what the lightest loses ---------------------------------------------------------------------- */

/* What the lightest weighs by what is planned. */
static int weigh(struct relaxation *r, double *ret)
{
    struct weighting b;
    struct topt_cost most;
    const struct elimination_plan *p = r->plan;
    *ret = 0;
    if (topt_scalarizer_most(p, &most, r->err))
        return -1;
    if (most.time >= TOPT_HEAVY / 4 || most.memory >= TOPT_HEAVY / 4)
        return 0; /* too large to be weighed */
    int rc = topt_weighting_init(&b, &p->tables, r->err);
    b.light = 1;
    b.time = TOPT_LIGHT / 2 / (most.time + 1) + 1;
    b.memory = TOPT_LIGHT / 2 / (most.memory + 1) + 1;
    rc = rc || topt_least_weights(&p->tables, r->options, &b, r->err) ? -1 : 0;
    if (!rc)
        *ret = (double)b.least[p->place[p->root].table->first_entry];
    topt_weighting_fini(&b);
    return rc;
}

/* Relax others than a kind.  Is that better than 'best', which it then is?  1, 0 or -1. */
static int keep(struct relaxation *r, int kind, double *best)
{
    double now;
    r->kept[kind] = 1;
    if (relax_few(r) || (r->fits && weigh(r, &now)))
        return -1;
    if (!r->fits || now <= *best * BETTER)
        return 0;
    *best = now;
    return 1;
}

static int keep_dearest(struct relaxation *r)
{
    size_t n = (size_t)r->problem->nedges;
    char *had = malloc(n + 1), *first = malloc(n + 1);
    double best;
    int rc = !had || !first ? topt_search_nomem(r->err) : weigh(r, &best), better = 1;
    if (!rc)
        memcpy(first, r->ret->edge, n);
    for (int k = r->nkinds - 1; !rc && better > 0 && k >= 0; k--) {
        if (!first[r->bond[r->first[k]].edge] || !is_relaxed(r, k))
            continue;
        memcpy(had, r->ret->edge, n);
        better = keep(r, k, &best);
        rc = better < 0 ? -1 : 0;
        if (better == 0) {
            r->kept[k] = 0;
            memcpy(r->ret->edge, had, n);
            r->planned = 0;
        }
    }
    free(had);
    free(first);
    return rc || (!r->planned && try(r)) ? -1 : 0;
}

/* ---- all of it ----------------------------------------------------------------------------------- */

/* What was relaxed of a problem like this may be more than it takes here. */
static int relax_like(struct relaxation *r, const char *like)
{
    memcpy(r->ret->edge, like, (size_t)r->problem->nedges);
    if (try(r))
        return -1;
    for (int k = r->nkinds - 1; r->fits && k >= 0; k--)
        if (is_relaxed(r, k)) {
            if (plan_with(r, k, k + 1, 0))
                return -1;
            if (!r->fits)
                mark(r, k, k + 1, 1);
            r->fits = 1;
        }
    return !r->planned && try(r) ? -1 : 0;
}

static int relax(struct relaxation *r, const char *like)
{
    if (find_bonds(r) || (like && relax_like(r, like)))
        return -1;
    if (!r->fits && (relax_few(r) || (r->fits && keep_dearest(r))))
        return -1;
    for (int e = 0; e < r->problem->nedges; e++)
        r->ret->nedges += r->ret->edge[e];
    return 0;
}

/* Tables' points are the same for all plans. */
static int init(struct relaxation *r)
{
    const struct topt_search_problem *p = r->problem;
    r->ret->edge = calloc((size_t)p->nedges + 1, 1);
    if (topt_points_init(&r->ret->store, NULL, r->err))
        return -1;
    for (int e = 0; e < p->nedges; e++)
        if (!topt_points_of_table(&r->ret->store, p->edge[e].table, r->err))
            return -1;
    return r->ret->edge ? 0 : topt_search_nomem(r->err);
}

static int plan_all(struct relaxation *r, const struct topt_search_options *options)
{
    return topt_elimination_relaxed(r->plan, r->problem, &r->ret->store, options, NULL,
                                    r->err);
}

/* All edges: as the options allow it, or with tables that are somewhat larger, if that takes not much longer than what is
 * relaxed.  0; 1 where some are to be relaxed; or -1. */
static int plan_whole(struct relaxation *r)
{
    struct topt_search_options wide = *r->options;
    int rc = plan_all(r, r->options);
    if (!rc || !r->plan->entangled)
        return rc;
    if (r->options->max_entries || !r->max_pairs)
        return 1;
    wide.max_entries = TOPT_SEARCH_EXACT_ENTRIES * WIDER;
    topt_elimination_fini(r->plan);
    rc = plan_all(r, &wide);
    if (rc)
        return r->plan->entangled ? 1 : -1;
    return r->plan->tables.npairs > r->max_pairs * LONGER;
}

int topt_relaxation_plan(struct elimination_plan *plan,
                         const struct topt_search_problem *problem,
                         const struct topt_search_options *options, int64_t max_pairs,
                         const char *like, struct relaxed *ret, struct topt_error *err)
{
    struct relaxation r = {.problem = problem,
                           .options = options,
                           .max_pairs = max_pairs,
                           .ret = ret,
                           .plan = plan,
                           .err = err};
    *ret = (struct relaxed){0};
    *plan = (struct elimination_plan){0};
    int rc = init(&r) ? -1 : plan_whole(&r);
    if (rc > 0)
        rc = relax(&r, like) || plan->entangled;
    free(r.bond);
    free(r.first);
    free(r.kept);
    return rc ? -1 : 0;
}

void topt_relaxation_fini(struct relaxed *r)
{
    topt_points_fini(&r->store);
    free(r->edge);
}
