/* condition.c - a problem searched once for every configuration of a few of its operators.
 *
 * One operator that both ends of a chain read (a shared embedding) makes every table of the
 * chain a table over that operator, too, and the whole frontier a union of frontiers that
 * have little to do with each other: what is light with one of its configurations is far from
 * every strategy with another, so that bounds over all of them tell nothing.
 *
 *      x ---.            x = 0:   o--o--o--o--o       a slice for each configuration (as far as
 *     / \    \           x = 1:   o--o--o--o--o       edges tell them apart): a chain with a
 *    o-o-o-o-o    -->    ...                          frontier and bounds of its own
 *
 * Slices differ in few tables.  What another one can do as well at these is taken out of a slice
 * (outdo.c), and most slices are nothing then; which goes first there, their cheapest entries
 * say.  The same is done again from some steps away: along the chains that begin at the tables
 * that differ (arm.c), as long as these are short of points.
 *
 * The others are searched in the order of what they promise (their lightest strategies by one
 * weighing), a few at a time, and what the earlier ones found is known to the later, which are
 * compared with the first once more, point by point (rival.c).  How many are searched at a time is
 * fixed, so that answers and counts do not depend on the number of threads. */
#include "condition.h"

#include "arm.h"
#include "outdo.h"
#include "topt_pool.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    AT_A_TIME = 8,
    MAX_ARMS = 8,  /* more ports are only compared as they are */
    ARM_PART = 32, /* a part of all pairs of configurations: sums for a step of an arm */
    ARM_WORK = 1 << 11,  /* ... and at least so many, in the first slice; */
    ARM_WORK_TIMES = 16, /* so many times more in any other */
};

struct slice {
    struct topt_arena *arena;
    struct topt_search_problem problem;
    const int32_t **config; /* by operator: numbers in the whole; NULL: all */
    struct port *port;      /* its own tables */
    int nports;
    struct port *reach; /* the same by its arms (arm.h); NULL: not known */
    char **gone;        /* by operator: configurations that nobody needs; NULL: none */
    struct plan plan;
    int planned;
    struct topt_frontier *frontier;
    struct topt_error err;
    int failed;
    /* What it promises. */
    int some; /* is there a strategy at all? */
    struct topt_cost light, fast;
    double weight;
    int64_t work;
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
    int *order, nleft;           /* the slices in which something is left, first */
    struct topt_frontier **part; /* what slices found, as far as it is not united yet */
    int nparts;
    struct topt_search_stats stats; /* of all slices */
    double epsilon;
    struct topt_cost *known; /* of the slices searched so far */
    int nknown;
    int64_t work;
    double balance[2]; /* what memory and time count in a promise */
    const char *cut;   /* by operator */
    struct arm *arm;
    signed char *grown; /* by arm: 1: it has just become longer; -1: it can't any more */
    int narms;
    /* Of the slices that were searched: their reaches, and what the first one leaves to compare
     * the others with. */
    const struct port **by;
    int nby;
    struct slice *first;
    struct kept kept;
    struct topt_pool *pool;
    /* The job at hand. */
    int (*job)(struct conditioning *c, struct slice *s);
    int from, to; /* in order */
    atomic_int next;
};

static int nomem(struct conditioning *c)
{
    return topt_search_nomem(c->err);
}

/* ---- slices ---- */

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
            return nomem(c);
        c->nvalues[k] = n > 0;
        for (int e = 0; e < p->nedges; e++) {
            const struct topt_search_edge *edge = &p->edge[e];
            if (edge->from != op && edge->to != op)
                continue;
            c->nvalues[k] = topt_refine(
                c->value[k], n, edge->from == op ? edge->from_class : edge->to_class);
            if (c->nvalues[k] < 0)
                return nomem(c);
        }
        c->nslices *= c->nvalues[k];
    }
    return 0;
}

static int add_port(struct conditioning *c, struct slice *s, int n, int32_t *first,
                    struct topt_cost *cost)
{
    char *gone = TOPT_NEW(s->arena, n, char);
    if (!gone)
        return nomem(c);
    s->port[s->nports++] = (struct port){n, first, cost, gone};
    return 0;
}

static int slice_op(struct conditioning *c, struct slice *s, int k, int32_t value,
                    struct topt_search_op *op)
{
    const struct topt_search_op *whole = &c->p->op[c->op[k]];
    int32_t *config = TOPT_NEW(s->arena, whole->nconfigs, int32_t);
    struct topt_cost *cost = TOPT_NEW(s->arena, whole->nconfigs, struct topt_cost);
    int32_t *first = TOPT_NEW(s->arena, 2, int32_t);
    int n = 0;
    if (!config || !cost || !first)
        return nomem(c);
    for (int i = 0; i < whole->nconfigs; i++)
        if (c->value[k][i] == value) {
            config[n] = i;
            cost[n++] = whole->cost[i];
        }
    *op = (struct topt_search_op){whole->name, n, cost};
    s->config[c->op[k]] = config;
    first[1] = n;
    return add_port(c, s, 1, first, cost);
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
        return nomem(c);
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
    return add_port(c, s, nfrom * nto, first, alt);
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
    return edge->from_class && edge->to_class ? 0 : nomem(c);
}

static int open_slice(struct conditioning *c, int number)
{
    struct slice *s = &c->slice[number];
    const struct topt_search_problem *p = c->p;
    s->arena = topt_arena_create(0);
    if (!s->arena)
        return nomem(c);
    struct topt_search_op *op = TOPT_NEW(s->arena, p->nops, struct topt_search_op);
    struct topt_search_edge *edge =
        TOPT_NEW(s->arena, p->nedges, struct topt_search_edge);
    s->config = TOPT_NEW(s->arena, p->nops, const int32_t *);
    s->port = TOPT_NEW(s->arena, c->ncut + p->nedges, struct port);
    if (!op || !edge || !s->config || !s->port)
        return nomem(c);
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
        topt_plan_fini(&s->plan);
    s->planned = 0;
}

static void close_slice(struct slice *s)
{
    close_plan(s);
    topt_arena_destroy(s->arena);
    s->arena = NULL;
}

/* ---- what is done with a slice ---- */

static struct topt_search_options slice_options(const struct conditioning *c)
{
    struct topt_search_options o = *c->options;
    int left = c->nleft - c->from;
    if (c->nslices > 1)
        o.progress = NULL; /* told by the whole */
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

/* Do arms say what the slice has beside others?  Where only the fastest is wanted little is left to
 * compare. */
static int is_comparable(const struct conditioning *c, const struct slice *s)
{
    return c->narms && s->reach && !c->options->fastest;
}

static int plan_slice(struct conditioning *c, struct slice *s)
{
    s->planned = 1;
    return topt_plan_init(&s->plan, &s->problem, &c->store, c->options, &s->err);
}

/* The lightest and the fastest strategy. */
static int promise_ends(struct conditioning *c, struct slice *s)
{
    return plan_slice(c, s) ||
           topt_sweep_ends(&s->plan, c->options, &s->some, &s->light, &s->fast, &s->err);
}

/* The best by the balance of the whole. */
static int promise_balance(struct conditioning *c, struct slice *s)
{
    struct topt_cost cost;
    if (plan_slice(c, s) ||
        topt_sweep_lightest(&s->plan, c->options, c->balance, &s->some, &cost, &s->err))
        return -1;
    s->weight =
        s->some ? c->balance[0] * (double)cost.memory + c->balance[1] * (double)cost.time
                : INFINITY;
    return 0;
}

/* What the slices that were searched have as well; nothing where arms do not say. */
static int find_rivals(struct conditioning *c, struct slice *s, struct rivals *ret)
{
    *ret = (struct rivals){.cut = c->op,
                           .arm = c->arm,
                           .ncut = c->ncut,
                           .narms = c->narms,
                           .port = s->reach,
                           .config = s->config,
                           .by = c->by,
                           .nby = is_comparable(c, s) ? c->nby : 0};
    if (!ret->nby || !c->kept.n)
        return 0;
    ret->plan = &c->first->plan;
    ret->plan_config = c->first->config;
    ret->kept = &c->kept;
    return topt_rivals_match(ret, &s->plan, s->arena);
}

/* The search was stopped before the slice was planned. */
static int leave_slice(struct slice *s)
{
    s->frontier = topt_frontier_create(&s->problem, &s->err);
    if (s->frontier)
        s->frontier->epsilon = INFINITY;
    return s->frontier ? 0 : -1;
}

static int search_slice(struct conditioning *c, struct slice *s)
{
    struct topt_search_options o = slice_options(c);
    struct rivals rivals;
    struct known_costs known = {c->known, o.fastest ? 0 : c->nknown, &rivals};
    struct kept *keep =
        !c->nparts && c->nleft > 1 && is_comparable(c, s) ? &c->kept : NULL;
    if ((!s->planned && plan_slice(c, s)) || find_rivals(c, s, &rivals) ||
        topt_sweep(&s->plan, &o, known, keep, &s->frontier, &s->err))
        return topt_search_gave_up(&o, &s->err) ? leave_slice(s) : -1;
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

/* ---- the order ---- */

static int by_weight(const void *x, const void *y, void *ctx)
{
    const struct slice *s = ctx;
    double a = s[*(const int *)x].weight, b = s[*(const int *)y].weight;
    if (a < b || a > b)
        return a < b ? -1 : 1;
    return *(const int *)x - *(const int *)y;
}

/* The line from the lightest to the fastest of one slice says what memory and time count. */
static int find_balance(struct conditioning *c)
{
    int found = 0;
    for (int i = 0; i < c->nslices && !found; i++) {
        struct slice *s = &c->slice[i];
        if (do_slices(c, i, i + 1, promise_ends))
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

static double weight_of_port(const struct conditioning *c, const struct port *p)
{
    double least = INFINITY;
    for (int32_t i = 0; i < p->first[p->n]; i++)
        least = fmin(least, c->balance[0] * (double)p->cost[i].memory +
                                c->balance[1] * (double)p->cost[i].time);
    return least;
}

/* The slices that have something that no earlier one has; the others are closed. */
static void find_left(struct conditioning *c)
{
    for (int i = 0; i < c->nslices; i++) {
        struct slice *s = &c->slice[i];
        s->weight = 0;
        for (int k = 0; k < s->nports; k++)
            s->weight += weight_of_port(c, &s->port[k]);
    }
    qsort_r(c->order, (size_t)c->nslices, sizeof *c->order, by_weight, c->slice);
    c->nleft = 0;
    for (int i = 0; i < c->nslices; i++) {
        struct slice *s = &c->slice[c->order[i]];
        int left = 1;
        for (int k = 0; k < c->nleft && left; k++)
            left = topt_outdo(c->slice[c->order[k]].port, s->port, s->nports);
        if (!left) {
            close_slice(s);
            continue;
        }
        c->order[c->nleft++] = c->order[i];
    }
    for (int i = 0; i < c->nleft; i++)
        for (int k = 0; k < c->slice[c->order[i]].nports; k++)
            topt_outdo_drop(&c->slice[c->order[i]].port[k]);
}

/* ---- the same from some steps away ---- */

static int is_in_arms(const struct conditioning *c, int but, int op)
{
    for (int k = 0; k < c->narms; k++)
        for (int i = 1; k != but && i < c->arm[k].nops; i++)
            if (c->arm[k].op[i] == op)
                return 1;
    return 0;
}

/* An arm for each edge at an operator that is cut; none where that makes too many. */
static int find_arms(struct conditioning *c)
{
    int n = 0;
    c->arm = calloc(MAX_ARMS, sizeof *c->arm);
    c->grown = calloc(MAX_ARMS, 1);
    if (!c->arm || !c->grown)
        return nomem(c);
    for (int e = 0; e < c->p->nedges; e++) {
        const struct topt_search_edge *edge = &c->p->edge[e];
        int cuts = (c->cut[edge->from] != 0) + (c->cut[edge->to] != 0);
        if (cuts == 2 || (cuts && n == MAX_ARMS))
            return 0;
        if (cuts)
            c->arm[n++] = topt_arm_start(c->p, c->cut, e);
    }
    c->narms = n;
    return 0;
}

/* A slice's ports by its arms, which have no length yet, after those of what it costs itself. */
static int start_reach(struct conditioning *c, struct slice *s)
{
    int n = c->ncut + c->narms;
    s->reach = TOPT_NEW(s->arena, n, struct port);
    s->gone = TOPT_NEW(s->arena, c->p->nops, char *);
    if (!s->gone)
        return topt_search_nomem(&s->err);
    for (int k = 0; s->reach && k < n; k++) {
        if (k < c->ncut) {
            s->reach[k] = s->port[k];
            s->reach[k].gone = TOPT_NEW(s->arena, s->port[k].n, char);
        } else if (topt_arm_nothing(&s->problem, &c->arm[k - c->ncut], s->arena,
                                    &s->reach[k]) < 0) {
            return topt_search_nomem(&s->err);
        }
        if (!s->reach[k].gone)
            return topt_search_nomem(&s->err);
    }
    return s->reach ? 0 : topt_search_nomem(&s->err);
}

/* What is gone at the end of an arm will be left out of the slices. */
static void note_gone(struct conditioning *c, int k)
{
    const struct arm *arm = &c->arm[k];
    for (int i = 0; i < c->nleft && arm->nops > 1; i++) {
        struct slice *s = &c->slice[c->order[i]];
        char **gone = &s->gone[arm->op[arm->nops - 1]];
        if (!s->reach)
            continue;
        struct port *port = &s->reach[c->ncut + k];
        for (int x = 0; *gone && x < port->n; x++) /* another arm ends there */
            port->gone[x] |= (*gone)[x];
        *gone = port->gone;
    }
}

/* A slice's port by an arm that has just become longer. */
static int extend_port(struct conditioning *c, struct slice *s, int k, int64_t max_work)
{
    struct port *port = &s->reach[c->ncut + k], longer;
    int64_t work;
    topt_outdo_drop(port);
    int rc =
        topt_arm_port(&s->problem, &c->arm[k], port, max_work, s->arena, &longer, &work);
    s->work += work;
    if (rc > 0)
        *port = longer;
    return rc;
}

static int64_t arm_work(const struct slice *s)
{
    double part = topt_search_pairs(&s->problem) / ARM_PART;
    return part > ARM_WORK ? (int64_t)part : ARM_WORK;
}

/* Make an arm longer, if that takes few sums in the first slice.  1, 0 or -1. */
static int grow_arm(struct conditioning *c, int k)
{
    struct slice *first = &c->slice[c->order[0]];
    struct arm *arm = &c->arm[k];
    int rc = topt_arm_grow(c->p, c->cut, arm);
    if (!rc)
        return 0;
    /* Two may have their first operator in common, and end there. */
    if (arm->nops > 2 && is_in_arms(c, k, arm->op[arm->nops - 1]))
        rc = 0;
    else
        rc = extend_port(c, first, k, arm->nops > 2 ? arm_work(first) : INT64_MAX);
    if (!rc)
        arm->nops--;
    return rc;
}

/* All arms, as far as that goes.  Returns how many are longer, or -1. */
static int grow_arms(struct conditioning *c)
{
    int n = 0;
    for (int k = 0; k < c->narms; k++) {
        if (c->grown[k] < 0)
            continue;
        note_gone(c, k);
        int rc = grow_arm(c, k);
        if (rc < 0)
            return nomem(c);
        if (!rc && c->arm[k].nops == 1) {
            c->narms = 0; /* nothing is known of that edge */
            return 0;
        }
        c->grown[k] = rc ? 1 : -1;
        n += rc;
    }
    return n;
}

/* The same of any other slice; where that is too much it is not compared any more. */
static int extend_reach(struct conditioning *c, struct slice *s)
{
    int rc = s->reach ? 1 : 0;
    for (int k = 0; k < c->narms && rc > 0; k++)
        if (c->grown[k] > 0)
            rc = extend_port(c, s, k, ARM_WORK_TIMES * arm_work(s));
    if (!rc)
        s->reach = NULL;
    return rc < 0 ? topt_search_nomem(&s->err) : 0;
}

/* Leave out configurations of an operator that is not cut. */
static int drop_configs(struct conditioning *c, struct slice *s, int op, const char *gone)
{
    struct topt_search_op *o = (struct topt_search_op *)&s->problem.op[op];
    int n = 0, before = o->nconfigs;
    int32_t *kept = TOPT_NEW(s->arena, before, int32_t);
    int32_t *config = TOPT_NEW(s->arena, before, int32_t);
    struct topt_cost *cost = TOPT_NEW(s->arena, before, struct topt_cost);
    if (!kept || !config || !cost)
        return nomem(c);
    for (int i = 0; i < before; i++)
        if (!gone[i]) {
            config[n] = s->config[op] ? s->config[op][i] : i;
            cost[n] = o->cost[i];
            kept[n++] = i;
        }
    *o = (struct topt_search_op){o->name, n, cost};
    s->config[op] = config;
    for (int i = 0; i < s->problem.nedges; i++) {
        struct topt_search_edge *e = (struct topt_search_edge *)&s->problem.edge[i];
        if (e->from != op && e->to != op)
            continue;
        const int32_t **of = e->from == op ? &e->from_class : &e->to_class;
        int32_t *class_of = TOPT_NEW(s->arena, n, int32_t);
        if (!class_of)
            return nomem(c);
        for (int k = 0; k < n; k++)
            class_of[k] = (*of)[kept[k]];
        *of = class_of;
    }
    return 0;
}

/* What earlier slices have as well at the ends of the arms. */
static void compare_reach(struct conditioning *c)
{
    int n = c->nleft;
    c->nleft = 0;
    for (int i = 0; i < n; i++) {
        struct slice *s = &c->slice[c->order[i]];
        int left = 1;
        for (int k = 0; k < c->nleft && left && s->reach; k++) {
            const struct port *by = c->slice[c->order[k]].reach;
            left = !by || topt_outdo(by, s->reach, c->ncut + c->narms);
        }
        if (!left)
            close_slice(s);
        else
            c->order[c->nleft++] = c->order[i];
    }
}

static int drop_gone(struct conditioning *c)
{
    for (int k = 0; k < c->narms; k++)
        note_gone(c, k);
    for (int i = 0; i < c->nleft; i++)
        for (int k = 0; k < c->narms && c->slice[c->order[i]].reach; k++)
            topt_outdo_drop(&c->slice[c->order[i]].reach[c->ncut + k]);
    for (int i = 0; i < c->nleft && c->narms; i++) {
        struct slice *s = &c->slice[c->order[i]];
        for (int op = 0; op < c->p->nops; op++)
            if (s->gone[op] &&
                memchr(s->gone[op], 1, (size_t)s->problem.op[op].nconfigs) &&
                drop_configs(c, s, op, s->gone[op]))
                return -1;
    }
    return 0;
}

/* Slices compared by longer and longer arms, as long as several are left. */
static int find_left_by_arms(struct conditioning *c)
{
    int grown = 0;
    if (find_arms(c) || (c->narms && do_slices(c, 0, c->nleft, start_reach)))
        return -1;
    while (c->narms && c->nleft > 1 && (grown = grow_arms(c)) > 0) {
        if (do_slices(c, 1, c->nleft, extend_reach))
            return -1;
        compare_reach(c);
    }
    return grown < 0 ? -1 : drop_gone(c);
}

static int find_order(struct conditioning *c)
{
    if (find_balance(c))
        return -1;
    find_left(c);
    if (find_left_by_arms(c) || do_slices(c, 0, c->nleft, promise_balance))
        return -1;
    qsort_r(c->order, (size_t)c->nleft, sizeof *c->order, by_weight, c->slice);
    return 0;
}

/* ---- what slices found ---- */

static int know(struct conditioning *c, const struct slice *s)
{
    const struct topt_frontier *f = s->frontier;
    size_t n = (size_t)c->nknown + (size_t)f->npoints;
    struct topt_cost *known = realloc(c->known, (n + 1) * sizeof *known);
    if (!known)
        return nomem(c);
    if (f->npoints)
        memcpy(known + c->nknown, f->cost, (size_t)f->npoints * sizeof *known);
    c->known = known;
    c->nknown = (int)topt_reduce(known, n);
    return 0;
}

/* For who watches. */
static void tell_progress(const struct conditioning *c, int done)
{
    struct topt_progress *p = c->options->progress;
    if (c->nslices < 2)
        return;
    TOPT_PROGRESS(p, phase, TOPT_PHASE_SEARCHING);
    TOPT_PROGRESS(p, points, c->nknown);
    TOPT_PROGRESS(p, parts, c->nleft - done);
    TOPT_PROGRESS(p, gap, -1);
}

/* What a slice found is the whole's from here on. */
static int take(struct conditioning *c, int number)
{
    struct slice *s = &c->slice[number];
    struct topt_frontier *f = s->frontier;
    topt_strategies_rename(topt_frontier_strategies(f), s->config, (size_t)c->p->nops);
    for (int i = 0; i < c->p->nops; i++)
        c->ret->decided[i] |= s->plan.fixed[i] >= 0;
    f->stats.products += s->work;
    topt_search_stats_add(&c->stats, &f->stats);
    c->epsilon = fmax(c->epsilon, f->epsilon);
    c->work += f->stats.products;
    if (know(c, s))
        return -1;
    c->part[c->nparts++] = f;
    s->frontier = NULL;
    if (is_comparable(c, s))
        c->by[c->nby++] = s->reach;
    if (c->kept.n && !c->first)
        c->first = s;
    else
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
    for (int i = 0; i < c->kept.n; i++)
        c->stats.peak_bytes += topt_maker_bytes(&c->kept.band[i].maker);
    c->ret->frontier->stats = c->stats;
    c->ret->frontier->epsilon = c->epsilon;
    return 0;
}

/* ---- all of it ---- */

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
        return nomem(c);
    if (find_values(c, cutset))
        return -1;
    n = (size_t)c->nslices + 1;
    c->slice = calloc(n, sizeof *c->slice);
    c->order = calloc(n, sizeof *c->order);
    c->part = calloc(n, sizeof(*c->part));
    c->by = calloc(n, sizeof(*c->by));
    if (!c->slice || !c->order || !c->part || !c->by)
        return nomem(c);
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
    topt_kept_fini(&c->kept);
    for (int i = 0; c->slice && i < c->nslices; i++) {
        topt_frontier_destroy(c->slice[i].frontier);
        close_slice(&c->slice[i]);
    }
    for (int k = 0; c->value && k < c->ncut; k++)
        free(c->value[k]);
    for (int i = 0; i < c->nparts; i++)
        topt_frontier_destroy(c->part[i]);
    topt_points_fini(&c->store);
    free(c->part);
    free(c->arm);
    free(c->grown);
    free(c->by);
    free(c->op);
    free(c->value);
    free(c->nvalues);
    free(c->slice);
    free(c->order);
    free(c->known);
}

/* What the caller has. */
static int know_first(struct conditioning *c)
{
    int n = c->options->fastest ? 0 : c->options->nknown;
    c->known = malloc(((size_t)n + 1) * sizeof *c->known);
    if (!c->known)
        return nomem(c);
    if (n)
        memcpy(c->known, c->options->known, (size_t)n * sizeof *c->known);
    c->nknown = n;
    return 0;
}

static int search_all(struct conditioning *c)
{
    c->nleft = c->nslices;
    if (know_first(c) || (c->nslices > 1 && find_order(c)))
        return -1;
    for (int from = 0, to; from < c->nleft; from = to) {
        to = from + (from ? AT_A_TIME : 1); /* the first has most to tell the others */
        to = to < c->nleft ? to : c->nleft;
        tell_progress(c, from);
        if (do_slices(c, from, to, search_slice))
            return -1;
        for (int i = from; i < to; i++)
            if (take(c, c->order[i]))
                return -1;
    }
    return unite(c);
}

int topt_condition(const struct topt_search_problem *p, const char *cutset,
                   const struct topt_search_options *options, struct conditioned *ret,
                   struct topt_error *err)
{
    struct conditioning c = {
        .p = p, .options = options, .ret = ret, .cut = cutset, .err = err};
    *ret = (struct conditioned){0};
    int rc = init(&c, cutset) || search_all(&c) ? -1 : 0;
    fini(&c);
    return rc;
}

void topt_condition_fini(struct conditioned *c)
{
    topt_frontier_destroy(c->frontier);
    free(c->decided);
}
