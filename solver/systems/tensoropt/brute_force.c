/* brute_force.c - every strategy, one by one: the oracle that the other searches are held
 * against.
 *
 * Two odometers: over the configurations of all operators, and inside over the
 * alternatives of all edges.  Each strategy is costed by topt_search_cost, the plainest
 * code there is. The frontier is a sorted list; the first strategy found for a cost is
 * its witness. */
#include "frontier.h"
#include "search_common.h"
#include "topt_array.h"
#include "topt_tensoropt.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct found_point {
    struct topt_cost cost;
    int32_t *choice; /* configurations, then alternatives; owned */
};

struct brute {
    const struct topt_search_problem *problem;
    const struct topt_search_options *options;
    struct topt_error *err;
    int32_t *choice, *many; /* of the strategy at hand, and how many there are of each */
    struct found_point *found;
    size_t n, cap;
    int64_t visited, limit;
    int stopped;
};

/* Move on to the next choice of n digits; 0 when all were seen. */
static int advance(int32_t *digit, const int32_t *many, int n)
{
    for (int i = n - 1; i >= 0; i--) {
        if (++digit[i] < many[i])
            return 1;
        digit[i] = 0;
    }
    return 0;
}

/* Put the strategy at hand into the frontier, unless something there is as good. */
static int insert(struct brute *b, struct topt_cost cost)
{
    size_t at = 0, end, width = (size_t)b->problem->nops + (size_t)b->problem->nedges;
    while (at < b->n && b->found[at].cost.memory <= cost.memory)
        if (b->found[at++].cost.time <= cost.time)
            return 0;
    /* Everything before 'at' is no heavier; an equally heavy slower one is just
     * before. */
    if (at > 0 && b->found[at - 1].cost.memory == cost.memory)
        at--;
    int32_t *choice = malloc((width + 1) * sizeof *choice);
    if (!choice || TOPT_ROOM(b->found, b->n, b->cap, 64)) {
        (void)topt_search_nomem(b->err);
        free(choice);
        return topt_search_nomem(b->err);
    }
    memcpy(choice, b->choice, width * sizeof *choice);
    for (end = at; end < b->n && b->found[end].cost.time >= cost.time; end++)
        free(b->found[end].choice);
    memmove(b->found + at + 1, b->found + end, (b->n - end) * sizeof *b->found);
    b->n -= end - at;
    b->found[at] = (struct found_point){cost, choice};
    b->n++;
    return 0;
}

static int too_many(struct brute *b)
{
    return topt_fail(b->err, TOPT_ERR_LIMIT,
                     "brute force would visit more than %lld strategies; use ft",
                     (long long)b->limit);
}

/* Is there to be another strategy, or another choice that none is made of? */
static int go_on(struct brute *b)
{
    const struct topt_search_options *o = b->options;
    b->stopped = (o->max_work && b->visited >= o->max_work) ||
                 (b->visited % 4096 == 0 && topt_search_stopped(o));
    if (b->stopped)
        return -1;
    if (b->visited % 4096 == 0 && topt_search_canceled(b->options))
        return topt_fail(b->err, TOPT_ERR_CANCELED, "the search was canceled");
    return ++b->visited > b->limit ? too_many(b) : 0;
}

static int visit(struct brute *b)
{
    struct topt_cost cost;
    if (go_on(b))
        return -1;
    if (topt_search_cost(b->problem, b->choice, b->choice + b->problem->nops, &cost,
                         b->err))
        return -1;
    if (b->options->memory_limit && cost.memory > b->options->memory_limit)
        return 0;
    return insert(b, cost);
}

/* How many alternatives each edge has for the configurations at hand; 0: one has none. */
static int count_alternatives(struct brute *b)
{
    const struct topt_search_problem *p = b->problem;
    for (int i = 0; i < p->nedges; i++) {
        const struct topt_search_edge *e = &p->edge[i];
        int64_t entry =
            (int64_t)e->from_class[b->choice[e->from]] * e->table->to_classes +
            e->to_class[b->choice[e->to]];
        b->many[p->nops + i] = e->table->first[entry + 1] - e->table->first[entry];
        if (!b->many[p->nops + i])
            return 0;
    }
    return 1;
}

static int visit_alternatives(struct brute *b)
{
    int nops = b->problem->nops;
    if (!count_alternatives(b))
        return go_on(b);
    do
        if (visit(b))
            return -1;
    while (advance(b->choice + nops, b->many + nops, b->problem->nedges));
    return 0;
}

static int visit_all(struct brute *b)
{
    double least = 1; /* strategies, if each edge had one alternative */
    for (int i = 0; i < b->problem->nops; i++) {
        b->many[i] = b->problem->op[i].nconfigs;
        if (!b->many[i])
            return 0;
        least *= b->many[i];
    }
    if (least > (double)b->limit)
        return too_many(b);
    do
        if (visit_alternatives(b))
            return -1;
    while (advance(b->choice, b->many, b->problem->nops));
    return 0;
}

static struct topt_frontier *answer(const struct brute *b)
{
    size_t nops = (size_t)b->problem->nops, nedges = (size_t)b->problem->nedges;
    struct topt_frontier *f = topt_frontier_create(b->problem, b->err);
    for (size_t i = 0; f && i < b->n; i++)
        if (topt_frontier_add(f, b->found[i].cost, b->found[i].choice, b->err)) {
            topt_frontier_destroy(f);
            return NULL;
        }
    if (f) {
        f->exact = !b->stopped;
        f->epsilon = b->stopped ? INFINITY : 0;
        f->stats.products = b->visited;
        f->stats.points = (int64_t)b->n;
        f->stats.max_frontier = (int)b->n;
        f->stats.peak_bytes = (int64_t)(b->n * (sizeof *b->found + (nops + nedges) * 4));
    }
    return f;
}

int topt_search_brute(const struct topt_search_problem *problem,
                      const struct topt_search_options *options,
                      struct topt_frontier **ret, struct topt_error *err)
{
    struct brute b = {.problem = problem, .options = options, .err = err};
    size_t width = (size_t)problem->nops + (size_t)problem->nedges + 1;
    int rc = -1;
    b.limit = options->brute_force_limit ? options->brute_force_limit : 100000000;
    b.choice = calloc(width, sizeof *b.choice);
    b.many = calloc(width, sizeof *b.many);
    if (!b.choice || !b.many) {
        topt_search_nomem(err);
        goto out;
    }
    if (visit_all(&b) && !b.stopped)
        goto out;
    *ret = answer(&b);
    rc = *ret ? 0 : -1;
out:
    for (size_t i = 0; i < b.n; i++)
        free(b.found[i].choice);
    free(b.found);
    free(b.choice);
    free(b.many);
    return rc;
}
