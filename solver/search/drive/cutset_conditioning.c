/* cutset_conditioning.c - a problem searched once for every configuration of a few of its
 * operators.
 *
 * One operator that both ends of a chain read (a shared embedding) makes every table of
 * the chain a table over that operator, too, and the whole frontier a union of frontiers
 * that have little to do with each other: what is light with one of its configurations is
 * far from every strategy with another, so that bounds over all of them tell nothing.
 *
 *      x ---.            x = 0:   o--o--o--o--o       a slice for each configuration (as far as
 *     / \    \           x = 1:   o--o--o--o--o       edges tell them apart): a chain with a
 *    o-o-o-o-o    -->    ...                          frontier and bounds of its own
 *
 * Slices are searched in the order of their lower bounds (their best strategies
 * by one weighted sum), a few at a time, and what the earlier ones found is known to the
 * later.  How many are searched at a time is fixed, so that answers and counts do not
 * depend on the number of threads. */
#include "cutset_conditioning.h"

#include "drive_tuning.h"
#include "frontier.h"
#include "search_common.h"
#include "topt_pool.h"
#include "two_phase.h"
#include "topt_array.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct slice {
    struct topt_arena *arena;
    struct topt_search_problem problem;
    const int32_t **config; /* by operator: numbers in the whole; NULL: all */
    struct elimination_plan plan;
    int planned;
    struct topt_frontier *frontier;
    struct topt_error err;
    int failed;
    /* Its lower bounds. */
    int some; /* is there a strategy at all? */
    struct topt_cost light, fast;
    double weight;
};

struct conditioning {
    const struct topt_search_problem *p;
    const struct topt_search_options *options;
    struct conditioned *ret;
    struct topt_error *err;
    struct point_store store; /* of the tables that no slice changes */
    int *op, ncut;            /* the operators that slices differ in */
    int32_t **value;          /* of those, by configuration */
    int *nvalues;
    struct slice *slice;
    int nslices;
    int *order;                  /* in which slices are searched */
    struct topt_frontier **part; /* what slices found, as far as it is not united yet */
    int nparts;
    struct topt_search_stats stats; /* of all slices */
    double epsilon;
    struct topt_cost *known; /* of the slices searched so far */
    int nknown;
    int64_t work;
    double balance[2]; /* what memory and time count in a lower bound */
    struct topt_pool *pool;
    /* The job at hand. */
    int (*job)(struct conditioning *c, struct slice *s);
    int from, to; /* in order */
    atomic_int next;
};

/* ---- slices ------------------------------------------------------------------------ */

/* A slice is the problem with one value of each operator cut at (a value: configurations that
 * no edge tells apart).  Of an edge's table it has one row, or column; all else it shares
 * with the whole. */

/* The number of an operator among those cut at, or -1. */
static int cut_at(const struct conditioning *c, int op)
{
    for (int i = 0; i < c->ncut; i++)
        if (c->op[i] == op)
            return i;
    return -1;
}

/* Values of the operators cut at: configurations of one are alike on all edges. */
static int find_values(struct conditioning *c, const char *cutset)
{
    const struct topt_search_problem *p = c->p;
    for (int i = 0; i < p->nops; i++)
        if (cutset[i])
            c->op[c->ncut++] = i;
    c->nslices = 1;
    for (int k = 0; k < c->ncut; k++) {
        int op = c->op[k], n = p->op[op].nconfigs;
        c->value[k] = calloc((size_t)n + 1, sizeof *c->value[k]);
        if (!c->value[k])
            return topt_search_nomem(c->err);
        c->nvalues[k] = n > 0;
        for (int e = 0; e < p->nedges; e++) {
            const struct topt_search_edge *edge = &p->edge[e];
            if (edge->from != op && edge->to != op)
                continue;
            c->nvalues[k] = topt_refine(
                c->value[k], n, edge->from == op ? edge->from_class : edge->to_class);
            if (c->nvalues[k] < 0)
                return topt_search_nomem(c->err);
        }
        c->nslices *= c->nvalues[k];
    }
    return 0;
}

static int slice_op(struct conditioning *c, struct slice *s, int k, int32_t value,
                    struct topt_search_op *op)
{
    const struct topt_search_op *whole = &c->p->op[c->op[k]];
    int32_t *config = TOPT_NEW(s->arena, whole->nconfigs, int32_t);
    struct topt_cost *cost = TOPT_NEW(s->arena, whole->nconfigs, struct topt_cost);
    int n = 0;
    if (!config || !cost)
        return topt_search_nomem(c->err);
    for (int i = 0; i < whole->nconfigs; i++)
        if (c->value[k][i] == value) {
            config[n] = i;
            cost[n++] = whole->cost[i];
        }
    *op = (struct topt_search_op){whole->name, n, cost};
    s->config[c->op[k]] = config;
    return 0;
}

/* Classes [from, from + nfrom) x [to, to + nto) of an edge's table become its table. */
static int cut_table(struct conditioning *c, struct slice *s,
                     struct topt_search_edge *edge, int from, int nfrom, int to, int nto)
{
    const struct topt_table *t = edge->table;
    struct topt_table *ret = TOPT_NEW(s->arena, 1, struct topt_table);
    int32_t *first = TOPT_NEW(s->arena, (size_t)nfrom * (size_t)nto + 1, int32_t);
    int64_t n = 0;
    for (int f = from; f < from + nfrom; f++) {
        const int32_t *row = t->first + (int64_t)f * t->to_classes + to;
        n += row[nto] - row[0];
    }
    struct topt_cost *alt = TOPT_NEW(s->arena, n, struct topt_cost);
    if (!ret || !first || !alt)
        return topt_search_nomem(c->err);
    int32_t *at = first;
    for (int f = from; f < from + nfrom; f++) {
        const int32_t *row = t->first + (int64_t)f * t->to_classes + to;
        if (row[nto] > row[0])
            memcpy(alt + *at, t->alt + row[0], (size_t)(row[nto] - row[0]) * sizeof *alt);
        for (int i = 0; i < nto; i++, at++)
            at[1] = at[0] + row[i + 1] - row[i];
    }
    *ret = (struct topt_table){nfrom, nto, first, alt};
    edge->table = ret;
    return 0;
}

static int slice_edge(struct conditioning *c, struct slice *s,
                      struct topt_search_edge *edge)
{
    const struct topt_table *t = edge->table;
    int cut_from = cut_at(c, edge->from) >= 0, cut_to = cut_at(c, edge->to) >= 0;
    if (!cut_from && !cut_to)
        return 0;
    const struct topt_search_op *from = &s->problem.op[edge->from];
    const struct topt_search_op *to = &s->problem.op[edge->to];
    if (!from->nconfigs || !to->nconfigs)
        return 0; /* nothing is possible, whatever the table says */
    int f = cut_from ? edge->from_class[s->config[edge->from][0]] : 0;
    int g = cut_to ? edge->to_class[s->config[edge->to][0]] : 0;
    if (cut_table(c, s, edge, f, cut_from ? 1 : t->from_classes, g,
                  cut_to ? 1 : t->to_classes))
        return -1;
    if (cut_from)
        edge->from_class = TOPT_NEW(s->arena, from->nconfigs, int32_t);
    if (cut_to)
        edge->to_class = TOPT_NEW(s->arena, to->nconfigs, int32_t);
    return edge->from_class && edge->to_class ? 0 : topt_search_nomem(c->err);
}

static int open_slice(struct conditioning *c, int number)
{
    struct slice *s = &c->slice[number];
    const struct topt_search_problem *p = c->p;
    s->arena = topt_arena_create(0);
    if (!s->arena)
        return topt_search_nomem(c->err);
    struct topt_search_op *op = TOPT_NEW(s->arena, p->nops, struct topt_search_op);
    struct topt_search_edge *edge =
        TOPT_NEW(s->arena, p->nedges, struct topt_search_edge);
    s->config = TOPT_NEW(s->arena, p->nops, const int32_t *);
    if (!op || !edge || !s->config)
        return topt_search_nomem(c->err);
    memcpy(op, p->op, (size_t)p->nops * sizeof *op);
    if (p->nedges)
        memcpy(edge, p->edge, (size_t)p->nedges * sizeof *edge);
    s->problem = (struct topt_search_problem){p->nops, op, p->nedges, edge};
    for (int k = 0, rest = number; k < c->ncut; rest /= c->nvalues[k++])
        if (slice_op(c, s, k, rest % c->nvalues[k], &op[c->op[k]]))
            return -1;
    for (int e = 0; e < p->nedges; e++)
        if (slice_edge(c, s, &edge[e]))
            return -1;
    return 0;
}

static void close_plan(struct slice *s)
{
    if (s->planned)
        topt_elimination_fini(&s->plan);
    s->planned = 0;
}

/* ---- what is done with a slice ----------------------------------------------------- */

static struct topt_search_options slice_options(const struct conditioning *c)
{
    struct topt_search_options o = *c->options;
    int left = c->nslices - c->from;
    if (c->nslices > 1)
        o.progress = NULL; /* reported by the whole */
    if (c->to - c->from > 1)
        o.threads = 1;
    if (o.max_work) {
        int64_t rest = o.max_work - c->work;
        o.max_work = rest > left ? rest / left : 1;
    }
    if (o.fastest && c->nknown) {
        int64_t best = c->known[c->nknown - 1].time;
        if (best && (!o.time_limit || best < o.time_limit))
            o.time_limit = best;
    }
    return o;
}

static int plan_slice(struct conditioning *c, struct slice *s)
{
    s->planned = 1;
    return topt_elimination_init(&s->plan, &s->problem, &c->store, c->options, &s->err);
}

/* The lightest and the fastest strategy. */
static int bound_ends(struct conditioning *c, struct slice *s)
{
    return plan_slice(c, s) || topt_two_phase_ends(&s->plan, c->options, &s->some,
                                                   &s->light, &s->fast, &s->err);
}

/* The best by the balance of the whole. */
static int bound_balance(struct conditioning *c, struct slice *s)
{
    struct topt_cost cost;
    if (plan_slice(c, s) || topt_two_phase_lightest(&s->plan, c->options, c->balance,
                                                    &s->some, &cost, &s->err))
        return -1;
    s->weight =
        s->some ? c->balance[0] * (double)cost.memory + c->balance[1] * (double)cost.time
                : INFINITY;
    return 0;
}

/* The search was stopped before the slice was planned. */
static int leave_unsearched(struct slice *s)
{
    s->frontier = topt_frontier_create(&s->problem, &s->err);
    if (s->frontier)
        s->frontier->epsilon = INFINITY;
    return s->frontier ? 0 : -1;
}

static int search_slice(struct conditioning *c, struct slice *s)
{
    struct topt_search_options o = slice_options(c);
    struct incumbent_costs known = {c->known, o.fastest ? 0 : c->nknown};
    if ((!s->planned && plan_slice(c, s)) ||
        topt_two_phase(&s->plan, &o, known, &s->frontier, &s->err))
        return topt_search_gave_up(&o, &s->err) ? leave_unsearched(s) : -1;
    return 0;
}

static void work_on(void *ctx, int worker)
{
    struct conditioning *c = ctx;
    (void)worker;
    for (;;) {
        int i = atomic_fetch_add(&c->next, 1);
        if (i >= c->to)
            return;
        struct slice *s = &c->slice[c->order[i]];
        s->failed = c->job(c, s) != 0;
    }
}

/* Slices [from, to) of the order; the first that fails says why. */
static int do_slices(struct conditioning *c, int from, int to,
                     int (*job)(struct conditioning *c, struct slice *s))
{
    c->job = job;
    c->from = from;
    c->to = to;
    atomic_store(&c->next, from);
    if (c->pool && to - from > 1)
        topt_pool_run(c->pool, work_on, c);
    else
        work_on(c, 0);
    for (int i = from; i < to; i++) {
        struct slice *s = &c->slice[c->order[i]];
        if (!s->failed)
            continue;
        if (c->err)
            *c->err = s->err;
        return -1;
    }
    return 0;
}

/* ---- the order --------------------------------------------------------------------- */

static int by_weight(const void *x, const void *y, void *ctx)
{
    const struct slice *s = ctx;
    double a = s[*(const int *)x].weight, b = s[*(const int *)y].weight;
    if (a < b || a > b)
        return a < b ? -1 : 1;
    return *(const int *)x - *(const int *)y;
}

/* The line from the lightest to the fastest of one slice says what memory and time
 * count. */
static int find_balance(struct conditioning *c)
{
    int found = 0;
    for (int i = 0; i < c->nslices && !found; i++) {
        struct slice *s = &c->slice[i];
        if (do_slices(c, i, i + 1, bound_ends))
            return -1;
        found = s->some;
        c->balance[0] =
            s->light.time > s->fast.time ? (double)(s->light.time - s->fast.time) : 1;
        c->balance[1] = s->fast.memory > s->light.memory
                            ? (double)(s->fast.memory - s->light.memory)
                            : 1;
        close_plan(s);
    }
    return 0;
}

static int find_order(struct conditioning *c)
{
    if (find_balance(c) || do_slices(c, 0, c->nslices, bound_balance))
        return -1;
    qsort_r(c->order, (size_t)c->nslices, sizeof *c->order, by_weight, c->slice);
    return 0;
}

/* ---- what slices found ------------------------------------------------------------- */

static int add_known(struct conditioning *c, const struct slice *s)
{
    const struct topt_frontier *f = s->frontier;
    size_t n = (size_t)c->nknown + (size_t)f->npoints;
    if (TOPT_RESIZE(c->known, n + 1))
        return topt_search_nomem(c->err);
    if (f->npoints)
        memcpy(c->known + c->nknown, f->cost, (size_t)f->npoints * sizeof *c->known);
    c->nknown = (int)topt_reduce(c->known, n);
    return 0;
}

/* For progress reports. */
static void tell_progress(const struct conditioning *c, int done)
{
    struct topt_progress *p = c->options->progress;
    if (c->nslices < 2)
        return;
    TOPT_PROGRESS(p, phase, TOPT_PHASE_SEARCHING);
    TOPT_PROGRESS(p, points, c->nknown);
    TOPT_PROGRESS(p, parts, c->nslices - done);
    TOPT_PROGRESS(p, gap, -1);
}

/* Move a slice's points to the whole. */
static int collect_slice(struct conditioning *c, int number)
{
    struct slice *s = &c->slice[number];
    struct topt_frontier *f = s->frontier;
    topt_strategies_rename(topt_frontier_strategies(f), s->config, (size_t)c->p->nops);
    for (int i = 0; i < c->p->nops; i++)
        c->ret->decided[i] |= s->plan.fixed[i] >= 0;
    topt_search_stats_add(&c->stats, &f->stats);
    c->epsilon = fmax(c->epsilon, f->epsilon);
    c->work += f->stats.products;
    if (add_known(c, s))
        return -1;
    c->part[c->nparts++] = f;
    s->frontier = NULL;
    close_plan(s);
    return 0;
}

static int collect(struct conditioning *c, size_t n)
{
    struct pick *all = malloc((n + 1) * sizeof *all);
    const struct strategies **list = calloc((size_t)c->nparts + 1, sizeof(*list));
    int rc = all && list ? 0 : topt_search_nomem(c->err);
    n = 0;
    for (int i = 0; i < c->nparts && !rc; i++) {
        list[i] = topt_frontier_strategies(c->part[i]);
        for (int k = 0; k < c->part[i]->npoints; k++)
            all[n++] = (struct pick){c->part[i]->cost[k], (uint32_t)i, (uint32_t)k};
    }
    if (!rc)
        rc = topt_frontier_collect(c->ret->frontier, list, (size_t)c->nparts, all, n,
                                   c->err);
    free(all);
    free(list);
    return rc;
}

/* The parts' points as one frontier; of equal costs the first found. */
static int unite(struct conditioning *c)
{
    size_t n = 0;
    for (int i = 0; i < c->nparts; i++)
        n += (size_t)c->part[i]->npoints;
    if (c->nparts == 1)
        c->ret->frontier = c->part[--c->nparts];
    else if (!(c->ret->frontier = topt_frontier_create(c->p, c->err)) || collect(c, n))
        return -1;
    c->ret->nslices = c->nslices;
    c->ret->frontier->stats = c->stats;
    c->ret->frontier->epsilon = c->epsilon;
    return 0;
}

/* ---- all of it --------------------------------------------------------------------- */

static int init(struct conditioning *c, const char *cutset)
{
    size_t n = (size_t)c->p->nops + 1;
    c->op = calloc(n, sizeof *c->op);
    c->value = calloc(n, sizeof(*c->value));
    c->nvalues = calloc(n, sizeof *c->nvalues);
    c->ret->decided = calloc(n, 1);
    if (topt_points_init(&c->store, NULL, c->err))
        return -1;
    if (!c->op || !c->value || !c->nvalues || !c->ret->decided)
        return topt_search_nomem(c->err);
    if (find_values(c, cutset))
        return -1;
    n = (size_t)c->nslices + 1;
    c->slice = calloc(n, sizeof *c->slice);
    c->order = calloc(n, sizeof *c->order);
    c->part = calloc(n, sizeof(*c->part));
    if (!c->slice || !c->order || !c->part)
        return topt_search_nomem(c->err);
    for (int i = 0; i < c->nslices; i++) {
        c->order[i] = i;
        if (open_slice(c, i))
            return -1;
    }
    for (int e = 0; e < c->p->nedges && c->nslices > 1; e++)
        if (cut_at(c, c->p->edge[e].from) < 0 && cut_at(c, c->p->edge[e].to) < 0 &&
            !topt_points_of_table(&c->store, c->p->edge[e].table, c->err))
            return -1;
    if (c->nslices > 1 && c->options->threads > 1) {
        int most = c->nslices < AT_A_TIME ? c->nslices : AT_A_TIME;
        c->pool = topt_pool_create(
            c->options->threads < most ? c->options->threads : most, c->err);
        if (!c->pool)
            return -1;
    }
    return 0;
}

static void fini(struct conditioning *c)
{
    topt_pool_destroy(c->pool);
    for (int i = 0; c->slice && i < c->nslices; i++) {
        topt_frontier_destroy(c->slice[i].frontier);
        close_plan(&c->slice[i]);
        topt_arena_destroy(c->slice[i].arena);
    }
    for (int k = 0; c->value && k < c->ncut; k++)
        free(c->value[k]);
    for (int i = 0; i < c->nparts; i++)
        topt_frontier_destroy(c->part[i]);
    topt_points_fini(&c->store);
    free(c->part);
    free(c->op);
    free(c->value);
    free(c->nvalues);
    free(c->slice);
    free(c->order);
    free(c->known);
}

/* The caller's incumbents. */
static int copy_known(struct conditioning *c)
{
    int n = c->options->fastest ? 0 : c->options->nknown;
    c->known = malloc(((size_t)n + 1) * sizeof *c->known);
    if (!c->known)
        return topt_search_nomem(c->err);
    if (n)
        memcpy(c->known, c->options->known, (size_t)n * sizeof *c->known);
    c->nknown = n;
    return 0;
}

static int search_all(struct conditioning *c)
{
    if (copy_known(c) || (c->nslices > 1 && find_order(c)))
        return -1;
    for (int from = 0, to; from < c->nslices; from = to) {
        to = from + (from ? AT_A_TIME : 1); /* the first has most to tell the others */
        to = to < c->nslices ? to : c->nslices;
        tell_progress(c, from);
        if (do_slices(c, from, to, search_slice))
            return -1;
        for (int i = from; i < to; i++)
            if (collect_slice(c, c->order[i]))
                return -1;
    }
    return unite(c);
}

int topt_condition_on_cutset(const struct topt_search_problem *p, const char *cutset,
                             const struct topt_search_options *options,
                             struct conditioned *ret, struct topt_error *err)
{
    struct conditioning c = {.p = p, .options = options, .ret = ret, .err = err};
    *ret = (struct conditioned){0};
    int rc = init(&c, cutset) || search_all(&c) ? -1 : 0;
    fini(&c);
    return rc;
}

void topt_conditioned_fini(struct conditioned *c)
{
    topt_frontier_destroy(c->frontier);
    free(c->decided);
}
