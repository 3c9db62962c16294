/* reference_steps.c - the paper's steps by their names:
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
 * "ft-elimination" takes them in this order until nothing is left; an operator without edges
 * goes into the total.  "ft-plain" first marks the operators from the first on, while there is
 * a single successor, eliminates only the others, and then walks the marked chain. */
#include "reference.h"

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
            struct front *made = topt_plain_fronts(p, (int64_t)kf * kt);
            if (!made)
                return -1;
            for (int i = 0; i < kf; i++)
                for (int j = 0; j < kt; j++)
                    if (topt_plain_product(p, front_at(p, x, i, j),
                                           same ? front_at(p, y, i, j)
                                                : front_at(p, y, j, i),
                                           &made[(int64_t)i * kt + j]))
                        return -1;
            x->front = made;
            y->gone = 1;
            return 1;
        }
    return 0;
}

/* Multiply the operator into the edge before it, then unite the product with the edge after
 * it: K^3 products of frontiers. */
static int eliminate_node(struct plain *p, int j, int in, int out)
{
    struct link *a = &p->link[in], *b = &p->link[out];
    int ki = p->node[a->from].k, kj = p->node[j].k, kk = p->node[b->to].k;
    struct front *half = topt_plain_fronts(p, (int64_t)ki * kj);
    struct front *made = topt_plain_fronts(p, (int64_t)ki * kk);
    if (!half || !made)
        return -1;
    for (int i = 0; i < ki; i++)
        for (int c = 0; c < kj; c++)
            if (topt_plain_product(p, front_at(p, a, i, c), &p->node[j].front[c],
                                   &half[(int64_t)i * kj + c]))
                return -1;
    for (int i = 0; i < ki; i++)
        for (int k = 0; k < kk; k++) {
            for (int c = 0; c < kj; c++)
                if (topt_plain_add_product(p, &half[(int64_t)i * kj + c],
                                           front_at(p, b, c, k)))
                    return -1;
            if (topt_plain_finish(p, &made[(int64_t)i * kk + k]))
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

/* A single edge: unite the operator with it and multiply what comes out into the other end;
 * for a chain from its start this is the step of the linear dynamic program. */
static int fold(struct plain *p, int s, int edge)
{
    struct link *l = &p->link[edge];
    int other = l->from == s ? l->to : l->from;
    struct front *made = topt_plain_fronts(p, p->node[other].k);
    if (!made)
        return -1;
    for (int j = 0; j < p->node[other].k; j++) {
        struct front united;
        for (int i = 0; i < p->node[s].k; i++)
            if (topt_plain_add_product(p, &p->node[s].front[i],
                                       l->from == s ? front_at(p, l, i, j)
                                                    : front_at(p, l, j, i)))
                return -1;
        if (topt_plain_finish(p, &united) ||
            topt_plain_product(p, &united, &p->node[other].front[j], &made[j]))
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
            if (topt_plain_add_product(p, &p->node[s].front[i], &one))
                return -1;
        if (topt_plain_finish(p, &united) ||
            topt_plain_product(p, &united, &p->total, &total))
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
    struct front *made = topt_plain_fronts(p, (int64_t)ki * kk * ko);
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
    struct front *made = topt_plain_fronts(p, (int64_t)ki * kk);
    if (!made)
        return -1;
    for (int x = 0; x < ki; x++)
        for (int y = 0; y < kk; y++) {
            struct front part;
            if (topt_plain_product(p, &p->node[i].front[x], front_at(p, l, x, y),
                                   &part) ||
                topt_plain_product(p, &part, &p->node[k].front[y],
                                   &made[(int64_t)x * kk + y]))
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

/* ---- the last resort ---- */

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
    struct front *made = topt_plain_fronts(p, p->node[other].k);
    if (!made)
        return -1;
    for (int j = 0; j < p->node[other].k; j++)
        if (topt_plain_product(p, &p->node[other].front[j],
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
    if (topt_plain_product(p, &p->total, &p->node[op].front[config], &total))
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

/* Mark from the first operator on, while there is exactly one successor.  A circle is no chain: only the
 * first is marked then, so that all others can be eliminated. */
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

/* Linear dynamic programming: what is left are chains, each walked from its start, carrying
 * the frontier of all that is before an operator for each of its configurations. */
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

int topt_plain_eliminate(struct plain *p, int with_chain)
{
    static step_fn *const steps[] = {try_edge,   try_node,  try_sink,      try_source,
                                     try_branch, try_alone, try_heuristic, NULL};
    int rc = run(p, steps, with_chain ? mark : NULL);
    return rc || !with_chain ? rc : ldp(p);
}
