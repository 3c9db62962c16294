/* plain_tracking.c - the paper's own search, plainly: no classes, no sharing, sorting for
 * each entry.
 *
 * A second, slow way to the exact frontier that shares no code with solver/search/drive,
 * and the one whose counted work has the growth that the paper proves.  An operator holds
 * a frontier for each of its configurations, an edge one for each pair; the steps by
 * their names:
 *
 *   node       one edge in, one out: F_ik = reduce(union over j of F_ij x F_j x F_jk)
 *   edge       parallel edges become one: product
 *   sink       an operator with one edge in and none out goes into its producer
 *   branch     an operator goes into its consumer, whose configuration becomes the pair; one
 *              with nothing but that edge is united out instead (source)
 *   heuristic  where a pair would have too many configurations, the operator with the most
 *              edges is decided: it takes the configuration of least memory
 *   ldp        what is left is a chain: linear dynamic programming from its start
 *
 * "ft-elimination" takes them in this order until nothing is left; an operator without
 * edges goes into the total.  "ft-plain" first marks the operators from the first on,
 * while there is a single successor, eliminates only the others, and then walks the
 * marked chain. */
#include "topt_tensoropt.h"

#include "check_problem.h"
#include "frontier.h"
#include "search_common.h"
#include "topt_array.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The parts of a point: a choice, or two other points. */
struct deriv {
    const struct deriv *a, *b;
    int op, edge; /* -1 none */
    int32_t choice;
};

struct point {
    struct topt_cost cost;
    const struct deriv *a, *b; /* not yet one deriv: that is made for points that stay */
    size_t number;             /* in the union being formed */
};

struct front {
    struct point *point;
    int n;
};

struct node {
    int k, gone, marked;
    struct front *front; /* by configuration */
};

struct link {
    int from, to, gone;
    struct front *front; /* from configuration * k of 'to' + to configuration */
};

struct plain {
    const struct topt_search_problem *problem;
    const struct topt_search_options *options;
    struct topt_error *err;
    struct topt_arena *arena;
    struct node *node;
    struct link *link;
    struct front total;
    int32_t *decided;   /* by operator: at least 0 where it was decided by heuristic */
    int *into;          /* by operator: the one it was merged into, or itself */
    struct point *work; /* the union being formed */
    size_t nwork, cap_work;
    int stopped; /* before there is anything to answer */
    struct topt_search_stats stats;
};

static int nomem(struct plain *p)
{
    if (topt_arena_bytes(p->arena) > (size_t)TOPT_SEARCH_MAX_BYTES / 2)
        return topt_fail(p->err, TOPT_ERR_LIMIT,
                         "the plain search needs too much memory");
    return topt_search_nomem(p->err);
}

/* ---- frontiers --------------------------------------------------------------------- */

/* The first of equal points stays, whatever order qsort leaves them in. */
static int by_cost(const void *x, const void *y)
{
    const struct point *a = x, *b = y;
    int by = topt_cost_order(a->cost, b->cost);
    return by ? by : (a->number > b->number) - (a->number < b->number);
}

static int plain_add(struct plain *p, struct point x)
{
    if (p->options->memory_limit && x.cost.memory > p->options->memory_limit)
        return 0;
    if (TOPT_ROOM(p->work, p->nwork, p->cap_work, 1024))
        return topt_search_nomem(p->err);
    x.number = p->nwork;
    p->work[p->nwork++] = x;
    return 0;
}

/* Reduce what was gathered into a front of its own. */
static int plain_finish(struct plain *p, struct front *ret)
{
    size_t kept = 0;
    if (p->nwork)
        qsort(p->work, p->nwork, sizeof *p->work, by_cost);
    for (size_t i = 0; i < p->nwork; i++)
        if (!kept || p->work[i].cost.time < p->work[kept - 1].cost.time)
            p->work[kept++] = p->work[i];
    p->nwork = 0;
    ret->n = (int)kept;
    ret->point = TOPT_NEW(p->arena, kept, struct point);
    struct deriv *d = TOPT_NEW(p->arena, kept, struct deriv);
    if (!ret->point || !d)
        return nomem(p);
    for (size_t i = 0; i < kept; i++) {
        d[i] = (struct deriv){p->work[i].a, p->work[i].b, -1, -1, 0};
        ret->point[i] = (struct point){p->work[i].cost, d + i, NULL, 0};
    }
    p->stats.points += ret->n;
    if (ret->n > p->stats.max_frontier)
        p->stats.max_frontier = ret->n;
    return 0;
}

/* Gather the product of two fronts. */
static int plain_add_product(struct plain *p, const struct front *a,
                             const struct front *b)
{
    p->stats.products += (int64_t)a->n * b->n;
    if (topt_search_canceled(p->options))
        return topt_fail(p->err, TOPT_ERR_CANCELED, "the search was canceled");
    p->stopped = topt_search_stopped(p->options) ||
                 (p->options->max_work && p->stats.products > p->options->max_work);
    if (p->stopped)
        return -1;
    for (int i = 0; i < a->n; i++)
        for (int j = 0; j < b->n; j++) {
            struct point x = {.a = a->point[i].a, .b = b->point[j].a};
            if (add_overflows(a->point[i].cost.memory, b->point[j].cost.memory,
                              &x.cost.memory) ||
                add_overflows(a->point[i].cost.time, b->point[j].cost.time, &x.cost.time))
                return topt_search_overflow(p->err);
            if (plain_add(p, x))
                return -1;
        }
    return 0;
}

static int plain_product(struct plain *p, const struct front *a, const struct front *b,
                         struct front *ret)
{
    return plain_add_product(p, a, b) || plain_finish(p, ret) ? -1 : 0;
}

static struct front *plain_fronts(struct plain *p, int64_t n)
{
    struct front *f = TOPT_NEW(p->arena, n, struct front);
    p->stats.tables++;
    if (!f)
        nomem(p);
    return f;
}

/* ---- setting up and answering ------------------------------------------------------ */

static int leaf(struct plain *p, struct topt_cost cost, int op, int edge, int32_t choice)
{
    struct deriv *d = TOPT_NEW(p->arena, 1, struct deriv);
    if (!d)
        return nomem(p);
    *d = (struct deriv){NULL, NULL, op, edge, choice};
    return plain_add(p, (struct point){cost, d, NULL, 0});
}

static int init_node(struct plain *p, int i)
{
    const struct topt_search_op *op = &p->problem->op[i];
    p->node[i].k = op->nconfigs;
    p->node[i].front = plain_fronts(p, op->nconfigs);
    if (!p->node[i].front)
        return -1;
    for (int c = 0; c < op->nconfigs; c++)
        if (leaf(p, op->cost[c], i, -1, c) || plain_finish(p, &p->node[i].front[c]))
            return -1;
    return 0;
}

static int init_link(struct plain *p, int i)
{
    const struct topt_search_edge *e = &p->problem->edge[i];
    int kf = p->problem->op[e->from].nconfigs, kt = p->problem->op[e->to].nconfigs;
    p->link[i] = (struct link){e->from, e->to, 0, plain_fronts(p, (int64_t)kf * kt)};
    if (!p->link[i].front)
        return -1;
    for (int x = 0; x < kf; x++)
        for (int y = 0; y < kt; y++) {
            int64_t at =
                (int64_t)e->from_class[x] * e->table->to_classes + e->to_class[y];
            int32_t first = e->table->first[at];
            for (int32_t k = first; k < e->table->first[at + 1]; k++)
                if (leaf(p, e->table->alt[k], -1, i, k - first))
                    return -1;
            if (plain_finish(p, &p->link[i].front[(int64_t)x * kt + y]))
                return -1;
        }
    return 0;
}

static int init(struct plain *p)
{
    const struct topt_search_problem *problem = p->problem;
    int64_t limit = p->options->max_bytes ? p->options->max_bytes : TOPT_SEARCH_MAX_BYTES;
    static const struct point zero;
    p->arena = topt_arena_create((size_t)limit);
    if (!p->arena)
        return topt_search_nomem(p->err);
    p->node = TOPT_NEW(p->arena, problem->nops, struct node);
    p->link = TOPT_NEW(p->arena, problem->nedges, struct link);
    p->decided = TOPT_NEW(p->arena, problem->nops, int32_t);
    p->into = TOPT_NEW(p->arena, problem->nops, int);
    if (!p->node || !p->link || !p->decided || !p->into || plain_add(p, zero) ||
        plain_finish(p, &p->total))
        return nomem(p);
    for (int i = 0; i < problem->nops; i++) {
        p->decided[i] = -1;
        p->into[i] = i;
    }
    for (int i = 0; i < problem->nops; i++)
        if (init_node(p, i))
            return -1;
    for (int i = 0; i < problem->nedges; i++)
        if (init_link(p, i))
            return -1;
    return 0;
}

/* Depth is at most the number of steps on one way down, far below the stack's reach. */
static void unroll(const struct deriv *d, int32_t *config, int32_t *alt)
{
    for (; d; d = d->a) {
        if (d->op >= 0)
            config[d->op] = d->choice;
        else if (d->edge >= 0)
            alt[d->edge] = d->choice;
        unroll(d->b, config, alt);
    }
}

static int put_points(struct plain *p, struct topt_frontier *f)
{
    size_t width = (size_t)p->problem->nops + (size_t)p->problem->nedges;
    int32_t *choice = TOPT_NEW(p->arena, width, int32_t);
    if (!choice)
        return topt_search_nomem(p->err);
    for (int i = 0; i < p->total.n; i++) {
        unroll(p->total.point[i].a, choice, choice + p->problem->nops);
        if (topt_frontier_add(f, p->total.point[i].cost, choice, p->err))
            return -1;
    }
    return 0;
}

static int answer(struct plain *p, struct topt_frontier **ret)
{
    struct topt_frontier *f = topt_frontier_create(p->problem, p->err);
    if (!f)
        return -1;
    if (put_points(p, f) ||
        topt_frontier_decided(f, p->decided, p->problem->nops, p->err)) {
        topt_frontier_destroy(f);
        return -1;
    }
    f->exact = !f->nheuristic && !p->stopped;
    f->epsilon = p->stopped ? INFINITY : 0;
    f->stats = p->stats;
    f->stats.peak_bytes = (int64_t)topt_arena_peak_bytes(p->arena);
    *ret = f;
    return 0;
}

/* ---- the steps --------------------------------------------------------------------- */

enum { MAX_PAIRS = 1 << 20 };

static int degree(const struct plain *p, int node, int *ret_in, int *ret_out)
{
    int in = 0, out = 0;
    *ret_in = *ret_out = -1;
    for (int e = 0; e < p->problem->nedges; e++) {
        if (p->link[e].gone)
            continue;
        if (p->link[e].to == node) {
            *ret_in = e;
            in++;
        }
        if (p->link[e].from == node) {
            *ret_out = e;
            out++;
        }
    }
    return in < 2 && out < 2 ? in + out : 3;
}

static const struct front *front_at(const struct plain *p, const struct link *l, int from,
                                    int to)
{
    return &l->front[(int64_t)from * p->node[l->to].k + to];
}

/* Parallel edges (in either direction) become one.  1 done, 0 none, -1. */
static int try_edge(struct plain *p)
{
    for (int e = 0; e < p->problem->nedges; e++)
        for (int f = e + 1; f < p->problem->nedges && !p->link[e].gone; f++) {
            struct link *x = &p->link[e], *y = &p->link[f];
            int same = x->from == y->from && x->to == y->to;
            int across = x->from == y->to && x->to == y->from;
            if (y->gone || !(same || across))
                continue;
            int kf = p->node[x->from].k, kt = p->node[x->to].k;
            struct front *made = plain_fronts(p, (int64_t)kf * kt);
            if (!made)
                return -1;
            for (int i = 0; i < kf; i++)
                for (int j = 0; j < kt; j++)
                    if (plain_product(p, front_at(p, x, i, j),
                                      same ? front_at(p, y, i, j) : front_at(p, y, j, i),
                                      &made[(int64_t)i * kt + j]))
                        return -1;
            x->front = made;
            y->gone = 1;
            return 1;
        }
    return 0;
}

/* Multiply the operator into the edge before it, then unite the product with the edge
 * after it: K^3 products of frontiers. */
static int eliminate_node(struct plain *p, int j, int in, int out)
{
    struct link *a = &p->link[in], *b = &p->link[out];
    int ki = p->node[a->from].k, kj = p->node[j].k, kk = p->node[b->to].k;
    struct front *half = plain_fronts(p, (int64_t)ki * kj);
    struct front *made = plain_fronts(p, (int64_t)ki * kk);
    if (!half || !made)
        return -1;
    for (int i = 0; i < ki; i++)
        for (int c = 0; c < kj; c++)
            if (plain_product(p, front_at(p, a, i, c), &p->node[j].front[c],
                              &half[(int64_t)i * kj + c]))
                return -1;
    for (int i = 0; i < ki; i++)
        for (int k = 0; k < kk; k++) {
            for (int c = 0; c < kj; c++)
                if (plain_add_product(p, &half[(int64_t)i * kj + c],
                                      front_at(p, b, c, k)))
                    return -1;
            if (plain_finish(p, &made[(int64_t)i * kk + k]))
                return -1;
        }
    p->node[j].gone = 1;
    a->gone = 1;
    b->from = a->from;
    b->front = made;
    return 0;
}

static int try_node(struct plain *p)
{
    for (int j = 0; j < p->problem->nops; j++) {
        int in, out;
        if (p->node[j].gone || p->node[j].marked || degree(p, j, &in, &out) != 2 ||
            in < 0 || out < 0 || p->link[in].from == p->link[out].to)
            continue;
        return eliminate_node(p, j, in, out) ? -1 : 1;
    }
    return 0;
}

/* A single edge: unite the operator with it and multiply what comes out into the other
 * end; for a chain from its start this is the step of the linear dynamic program. */
static int fold(struct plain *p, int s, int edge)
{
    struct link *l = &p->link[edge];
    int other = l->from == s ? l->to : l->from;
    struct front *made = plain_fronts(p, p->node[other].k);
    if (!made)
        return -1;
    for (int j = 0; j < p->node[other].k; j++) {
        struct front united;
        for (int i = 0; i < p->node[s].k; i++)
            if (plain_add_product(p, &p->node[s].front[i],
                                  l->from == s ? front_at(p, l, i, j)
                                               : front_at(p, l, j, i)))
                return -1;
        if (plain_finish(p, &united) ||
            plain_product(p, &united, &p->node[other].front[j], &made[j]))
            return -1;
    }
    p->node[other].front = made;
    p->node[s].gone = 1;
    l->gone = 1;
    return 0;
}

/* An operator with a single edge, in or out of it as asked for, is folded. */
static int try_single(struct plain *p, int want_in)
{
    for (int s = 0; s < p->problem->nops; s++) {
        int in, out;
        if (p->node[s].gone || p->node[s].marked || degree(p, s, &in, &out) != 1)
            continue;
        if ((in >= 0) == want_in)
            return fold(p, s, want_in ? in : out) ? -1 : 1;
    }
    return 0;
}

static int try_sink(struct plain *p)
{
    return try_single(p, 1);
}

static int try_source(struct plain *p)
{
    return try_single(p, 0);
}

/* An operator without edges: unite it and multiply it into the total. */
static int try_alone(struct plain *p)
{
    static const struct point zero;
    const struct front one = {(struct point *)&zero, 1};
    for (int s = 0; s < p->problem->nops; s++) {
        int in, out;
        struct front united, total;
        if (p->node[s].gone || degree(p, s, &in, &out) != 0)
            continue;
        for (int i = 0; i < p->node[s].k; i++)
            if (plain_add_product(p, &p->node[s].front[i], &one))
                return -1;
        if (plain_finish(p, &united) || plain_product(p, &united, &p->total, &total))
            return -1;
        p->total = total;
        p->node[s].gone = 1;
        return 1;
    }
    return 0;
}

/* The end 'old' of edge 'e' becomes the pair (i, k); 'first': old was i. */
static int widen(struct plain *p, int e, int old, int into, int ki, int kk)
{
    struct link *l = &p->link[e];
    int from_end = l->from == old, other = from_end ? l->to : l->from;
    int ko = p->node[other].k;
    if ((int64_t)ki * kk * ko > TOPT_SEARCH_MAX_ENTRIES)
        return topt_fail(p->err, TOPT_ERR_LIMIT,
                         "the plain search would need a table of %lld entries; use ft",
                         (long long)ki * kk * ko);
    struct front *made = plain_fronts(p, (int64_t)ki * kk * ko);
    if (!made)
        return -1;
    for (int i = 0; i < ki; i++)
        for (int k = 0; k < kk; k++)
            for (int o = 0; o < ko; o++) {
                int64_t pair = (int64_t)i * kk + k;
                int c = old == into ? k : i;
                if (from_end)
                    made[pair * ko + o] = l->front[(int64_t)c * ko + o];
                else
                    made[o * ((int64_t)ki * kk) + pair] =
                        l->front[(int64_t)o * (old == into ? kk : ki) + c];
            }
    l->front = made;
    if (from_end)
        l->from = into;
    else
        l->to = into;
    return 0;
}

static int merge_ends(struct plain *p, int edge)
{
    struct link *l = &p->link[edge];
    int i = l->from, k = l->to, ki = p->node[i].k, kk = p->node[k].k;
    struct front *made = plain_fronts(p, (int64_t)ki * kk);
    if (!made)
        return -1;
    for (int x = 0; x < ki; x++)
        for (int y = 0; y < kk; y++) {
            struct front part;
            if (plain_product(p, &p->node[i].front[x], front_at(p, l, x, y), &part) ||
                plain_product(p, &part, &p->node[k].front[y], &made[(int64_t)x * kk + y]))
                return -1;
        }
    l->gone = 1;
    for (int e = 0; e < p->problem->nedges; e++) {
        const struct link *m = &p->link[e];
        int old = m->from == i || m->to == i ? i : k;
        if (!m->gone && (m->from == old || m->to == old) && widen(p, e, old, k, ki, kk))
            return -1;
    }
    p->node[i].gone = 1;
    p->into[i] = k;
    p->node[k].k = ki * kk;
    p->node[k].front = made;
    return 0;
}

/* Entries of the largest table after the ends of an edge are one operator. */
static int64_t merged_entries(const struct plain *p, int edge)
{
    int i = p->link[edge].from, k = p->link[edge].to;
    int64_t pairs = (int64_t)p->node[i].k * p->node[k].k, most = pairs;
    for (int e = 0; e < p->problem->nedges; e++) {
        const struct link *m = &p->link[e];
        int from = m->from == i || m->from == k, to = m->to == i || m->to == k;
        int64_t n = pairs * p->node[from ? m->to : m->from].k;
        if (!m->gone && from != to && n > most)
            most = n;
    }
    return most;
}

/* The edge whose ends make the fewest pairs; not between two marked operators. */
static int try_branch(struct plain *p)
{
    int64_t most = p->options->max_entries ? p->options->max_entries : MAX_PAIRS;
    int best = -1;
    int64_t pairs = 0;
    for (int e = 0; e < p->problem->nedges; e++) {
        const struct link *l = &p->link[e];
        int64_t n = (int64_t)p->node[l->from].k * p->node[l->to].k;
        if (l->gone || (p->node[l->from].marked && p->node[l->to].marked))
            continue;
        if (best < 0 || n < pairs) {
            best = e;
            pairs = n;
        }
    }
    if (best < 0 || merged_entries(p, best) > most)
        return 0;
    return merge_ends(p, best) ? -1 : 1;
}

/* ---- the last resort --------------------------------------------------------------- */

static int busiest(const struct plain *p)
{
    int best = -1, most = 0;
    for (int i = 0; i < p->problem->nops; i++) {
        int n = 0;
        for (int e = 0; e < p->problem->nedges; e++)
            n += !p->link[e].gone && (p->link[e].from == i || p->link[e].to == i);
        if (!p->node[i].gone && !p->node[i].marked && n > most) {
            most = n;
            best = i;
        }
    }
    return best;
}

static int lightest_config(const struct plain *p, int op)
{
    int best = 0;
    for (int c = 1; c < p->node[op].k; c++) {
        const struct front *f = &p->node[op].front[c], *b = &p->node[op].front[best];
        if (f->n && (!b->n || f->point[0].cost.memory < b->point[0].cost.memory))
            best = c;
    }
    return best;
}

/* An edge of a decided operator becomes part of the other end. */
static int absorb(struct plain *p, int edge, int op, int config)
{
    struct link *l = &p->link[edge];
    int other = l->from == op ? l->to : l->from;
    struct front *made = plain_fronts(p, p->node[other].k);
    if (!made)
        return -1;
    for (int j = 0; j < p->node[other].k; j++)
        if (plain_product(p, &p->node[other].front[j],
                          l->from == op ? front_at(p, l, config, j)
                                        : front_at(p, l, j, config),
                          &made[j]))
            return -1;
    p->node[other].front = made;
    l->gone = 1;
    return 0;
}

static int try_heuristic(struct plain *p)
{
    int op = busiest(p), config;
    struct front total;
    if (op < 0 || !p->node[op].k)
        return 0;
    config = lightest_config(p, op);
    for (int e = 0; e < p->problem->nedges; e++) {
        const struct link *l = &p->link[e];
        if (!l->gone && (l->from == op || l->to == op) && absorb(p, e, op, config))
            return -1;
    }
    if (plain_product(p, &p->total, &p->node[op].front[config], &total))
        return -1;
    p->total = total;
    p->node[op].gone = 1;
    for (int i = 0; i < p->problem->nops; i++) {
        int at = i;
        while (p->into[at] != at)
            at = p->into[at];
        if (at == op)
            p->decided[i] = config;
    }
    return 1;
}

typedef int step_fn(struct plain *p);

/* Take the first step that applies, from the top each time, until none does. */
static int run(struct plain *p, step_fn *const *steps, void (*before)(struct plain *p))
{
    int rc;
    do {
        if (before)
            before(p);
        rc = 0;
        for (int i = 0; steps[i] && !rc; i++)
            rc = steps[i](p);
    } while (rc > 0);
    return rc;
}

static void unmark(struct plain *p)
{
    for (int i = 0; i < p->problem->nops; i++)
        p->node[i].marked = 0;
}

/* The only successor of an operator, or -1. */
static int only_successor(const struct plain *p, int at)
{
    int next = -1;
    for (int e = 0; e < p->problem->nedges; e++) {
        const struct link *l = &p->link[e];
        if (l->gone || l->from != at || l->to == next)
            continue;
        if (next >= 0)
            return -1;
        next = l->to;
    }
    return next;
}

/* Does an edge lead from an operator to a marked one?  Merging has made a circle then. */
static int leads_back(const struct plain *p, int at)
{
    for (int e = 0; e < p->problem->nedges; e++) {
        const struct link *l = &p->link[e];
        if (!l->gone && l->from == at && p->node[l->to].marked)
            return 1;
    }
    return 0;
}

/* Mark from the first operator on, while there is exactly one successor.  A circle is no
 * chain: only the first is marked then, so that all others can be eliminated. */
static void mark(struct plain *p)
{
    int first = -1, in, out;
    unmark(p);
    for (int i = 0; i < p->problem->nops && first < 0; i++) {
        degree(p, i, &in, &out);
        if (!p->node[i].gone && in < 0)
            first = i;
    }
    for (int at = first; at >= 0; at = only_successor(p, at)) {
        p->node[at].marked = 1;
        if (leads_back(p, at)) {
            unmark(p);
            p->node[first].marked = 1;
            return;
        }
    }
}

/* Linear dynamic programming: what is left are chains, each walked from its start,
 * carrying the frontier of all that is before an operator for each of its
 * configurations. */
static int ldp(struct plain *p)
{
    int rc;
    unmark(p);
    do {
        rc = try_source(p);
        if (!rc)
            rc = try_alone(p);
    } while (rc > 0);
    return rc;
}

static int plain_eliminate(struct plain *p, int with_chain)
{
    static step_fn *const steps[] = {try_edge,   try_node,  try_sink,      try_source,
                                     try_branch, try_alone, try_heuristic, NULL};
    int rc = run(p, steps, with_chain ? mark : NULL);
    return rc || !with_chain ? rc : ldp(p);
}

/* ---- the search -------------------------------------------------------------------- */

static int search(const struct topt_search_problem *problem,
                  const struct topt_search_options *options, int with_chain,
                  struct topt_frontier **ret, struct topt_error *err)
{
    struct plain p = {.problem = problem, .options = options, .err = err};
    int rc = init(&p);
    if (!rc)
        rc = plain_eliminate(&p, with_chain);
    if (p.stopped)
        p.total.n = 0; /* of some operators only */
    if (!rc || p.stopped)
        rc = answer(&p, ret);
    free(p.work);
    topt_arena_destroy(p.arena);
    return rc;
}

int topt_search_plain(const struct topt_search_problem *problem,
                      const struct topt_search_options *options,
                      struct topt_frontier **ret, struct topt_error *err)
{
    return search(problem, options, 1, ret, err);
}

int topt_search_elimination(const struct topt_search_problem *problem,
                            const struct topt_search_options *options,
                            struct topt_frontier **ret, struct topt_error *err)
{
    return search(problem, options, 0, ret, err);
}
