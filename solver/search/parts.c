/* parts.c - a large problem's frontier as parts, each searched on what it needs of the problem.
 *
 *     time |o                     the corners of the frontier's hull part it.  Strategies between two of them
 *          | ` .  +               that matter are above the line through both, and below what is known: the
 *          |  x   .               cost of strategies that begin as one corner and go on as the other (x; crossover.c).
 *          |    x   .             By the weighing of that line, what every pair of configurations weighs at
 *          |      x  .            least is compared with the heaviest step (+) of what is known: in most parts
 *          |         x o          one pair in a hundred is left.
 *          +----------------- memory
 *
 * For a whole frontier hardly anything would be left out: each pair is part of something.  Where time hardly
 * counts much stays, and where memory does little; so neighbours that leave about as much are searched together, the others by
 * themselves.  What is left of the problem is a problem of its own (excerpt.c) and takes the usual way
 * (ft.c).  What is faster than all that is known, by whatever memory, is a part by time alone.
 *
 * Nothing is lost: what is left out of a part is in all its strategies heavier or slower than one that
 * exists, and each of these is found where it is on the frontier.  That holds where the graph is
 * too entangled to be weighed whole, too (relax.c); there a little more is left. */
#include "parts.h"

#include "bits.h"
#include "crossover.h"
#include "excerpt.h"
#include "strategies.h"
#include "weigher.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

__extension__ typedef __int128 wide;

enum {
    MIN_PAIRS = 1 << 27, /* in a search of minutes some tens of weighings are little */
    DEEPEST = 16,        /* a hull's corners are halved so many times at most */
    ALIKE = 2,           /* parts that leave up to so many times as much are one group, */
    SMALL_PART = 64,     /* as are those that leave less than a part of the problem */
};
/* Corners that the line between others is no farther below are of no use. */
static const double FINE = 1.0 / 1024;

/* What a group of neighbouring parts is searched in. */
struct group {
    char **config;  /* by operator, by configuration: is it left? */
    uint64_t *pair; /* the same of pairs: a set of marks (bits.h) */
    int64_t npairs;
    struct topt_cost box; /* nothing that is wanted is heavier or slower */
};

/* A corner of the hull.  (In a relaxed graph it is a cost that bounds strategies; the one that was found there
 * may cost more.) */
struct corner {
    struct topt_cost bound, real;
    int32_t *choice; /* NULL: none was found */
};

struct parts {
    const struct topt_search_problem *p; /* narrowed */
    const struct topt_search_options *options;
    struct topt_error *err;
    struct narrowed narrowed;
    struct topt_weigher *weigher;
    struct crosser crosser;
    struct crossover *crossover; /* room for those of two corners */
    struct topt_cost *known;     /* strategies exist that cost this; a frontier */
    int nknown;
    struct topt_cost least; /* nothing is lighter, or faster */
    int64_t
        untaken; /* what is as fast was left to who takes what is faster than all that is known */
    int64_t *at; /* by edge: its marks, or -1 */
    int64_t nmarks;
    struct group part, *group;
    int ngroups;
    struct topt_frontier **found; /* by group */
    char *decided;                /* by operator: was it decided by heuristic in one? */
    int64_t work;
    int nfound; /* groups that were searched: where a stop came, not all */
};

static int nomem(struct parts *s)
{
    return topt_search_nomem(s->err);
}

int topt_parts_pay(const struct topt_search_problem *p,
                   const struct topt_search_options *options)
{
    return !options->fastest && !options->time_limit && !options->max_work &&
           topt_search_pairs(p) >= MIN_PAIRS;
}

/* ---- what is known ------------------------------------------------------------------------------- */

static int know(struct parts *s, const struct topt_cost *cost, size_t n)
{
    size_t all = (size_t)s->nknown + n;
    struct topt_cost *known = realloc(s->known, (all + 1) * sizeof *known);
    if (!known)
        return nomem(s);
    if (n)
        memcpy(known + s->nknown, cost, n * sizeof *cost);
    s->known = known;
    s->nknown = (int)topt_reduce(known, all);
    return 0;
}

/* What begins as one corner and goes on as the other. */
static int cross(struct parts *s, const struct corner *a, const struct corner *b,
                 struct topt_weighing by)
{
    if (!a->choice || !b->choice)
        return 0;
    struct parents parents = {
        {a->choice, b->choice}, {a->real, b->real}, by.time, by.memory};
    int n = topt_crossovers(&s->crosser, &parents, s->crossover);
    struct topt_cost *cost = malloc(((size_t)n + 1) * sizeof *cost);
    if (!cost)
        return nomem(s);
    for (int i = 0; i < n; i++)
        cost[i] = s->crossover[i].cost;
    int rc = know(s, cost, (size_t)n);
    free(cost);
    return rc;
}

/* ---- steps of what is known ---------------------------------------------------------------------- */

/* A range of memory, and how slow what is wanted in it may be. */
struct known_step {
    int64_t from, to, time;
};

/* The i-th step (-1..nknown-1): as slow as the i-th known cost, up to the memory of the next.  (The last has no end, and
 * none of it is wanted here: see take_faster.) */
static struct known_step step_at(const struct parts *s, int i)
{
    struct known_step step = {0, INT64_MAX, INT64_MAX};
    if (i >= 0) {
        step.from = s->known[i].memory;
        step.time = s->known[i].time;
    }
    if (i + 1 < s->nknown)
        step.to = s->known[i + 1].memory;
    else if (i >= 0)
        step.to = step.from;
    return step;
}

static int64_t min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static wide weight(struct topt_weighing by, struct topt_cost c)
{
    return (wide)by.memory * c.memory + (wide)by.time * c.time;
}

/* Of the steps between two memories: what is the heaviest that is wanted, and the box of all.  0 where
 * there is none. */
static int find_steps(const struct parts *s, int64_t from, int64_t to,
                      struct topt_weighing by, struct topt_cost *ret_heaviest,
                      struct topt_cost *ret_box)
{
    int any = 0;
    *ret_box = *ret_heaviest = (struct topt_cost){0, 0};
    /* What is lighter than all that is known, there is only where it may be. */
    for (int i = s->nknown && s->known[0].memory <= s->least.memory ? 0 : -1;
         i < s->nknown; i++) {
        struct known_step step = step_at(s, i);
        if (step.to < from || step.from > to)
            continue;
        struct topt_cost c = {min(step.to, to), step.time};
        if (!any++ || weight(by, c) > weight(by, *ret_heaviest))
            *ret_heaviest = c;
        ret_box->memory = max(ret_box->memory, c.memory);
        ret_box->time = max(ret_box->time, c.time);
    }
    return any;
}

/* ---- groups -------------------------------------------------------------------------------------- */

static size_t words(const struct parts *s)
{
    return topt_bits_words((size_t)s->nmarks);
}

static int group_init(const struct parts *s, struct group *g)
{
    int n = s->p->nops;
    *g = (struct group){.config = calloc((size_t)n + 1, sizeof(*g->config)),
                        .pair = calloc(words(s), sizeof *g->pair)};
    for (int i = 0; g->config && i < n; i++)
        if (!(g->config[i] = calloc((size_t)s->p->op[i].nconfigs + 1, 1)))
            return topt_search_nomem(s->err);
    return g->config && g->pair ? 0 : topt_search_nomem(s->err);
}

static void group_fini(const struct parts *s, struct group *g)
{
    for (int i = 0; g->config && i < s->p->nops; i++)
        free(g->config[i]);
    free(g->config);
    free(g->pair);
    *g = (struct group){0};
}

/* What is left of the problem where nothing is wanted that weighs more than a corner. */
static int find_part(struct parts *s, struct topt_cost heaviest, int *ret)
{
    struct group *g = &s->part;
    if (topt_weigher_within(s->weigher, heaviest, ret, s->err))
        return -1;
    memset(g->pair, 0, words(s) * sizeof *g->pair);
    g->npairs = *ret ? topt_weigher_mark(s->weigher, g->pair) : 0;
    for (int i = 0; i < s->p->nops && *ret; i++)
        for (int c = 0; c < s->p->op[i].nconfigs; c++)
            g->config[i][c] = topt_weigher_through(s->weigher, i, c) < INT64_MAX;
    return 0;
}

static void unite(const struct parts *s, struct group *g, const struct group *part)
{
    g->npairs = 0;
    for (size_t i = 0; i < words(s); i++) {
        g->pair[i] |= part->pair[i];
        g->npairs += topt_bits_count(g->pair[i]);
    }
    for (int i = 0; i < s->p->nops; i++)
        for (int c = 0; c < s->p->op[i].nconfigs; c++)
            g->config[i][c] |= part->config[i][c];
    g->box.memory = max(g->box.memory, part->box.memory);
    g->box.time = max(g->box.time, part->box.time);
}

/* Do two leave about as much? */
static int alike(const struct parts *s, const struct group *a, const struct group *b)
{
    int64_t small = s->nmarks / SMALL_PART;
    int64_t x = max(a->npairs, small), y = max(b->npairs, small);
    return x <= ALIKE * y && y <= ALIKE * x;
}

/* The part at hand joins the group before it, or becomes one. */
static int add_part(struct parts *s)
{
    struct group *last = s->ngroups ? &s->group[s->ngroups - 1] : NULL;
    if (last && alike(s, last, &s->part)) {
        unite(s, last, &s->part);
        return 0;
    }
    struct group *group = realloc(s->group, ((size_t)s->ngroups + 1) * sizeof *s->group);
    if (!group)
        return nomem(s);
    s->group = group;
    group[s->ngroups++] = s->part;
    return group_init(s, &s->part);
}

/* Beyond the last that is known now nothing is taken by steps; more may be known later. */
static void note_untaken(struct parts *s, int64_t to)
{
    if (s->nknown && to > s->known[s->nknown - 1].memory)
        s->untaken = max(s->untaken, s->known[s->nknown - 1].time - 1);
}

/* What is wanted between two memories, by the weighing that was made last. */
static int take_part(struct parts *s, int64_t from, int64_t to, struct topt_weighing by)
{
    struct topt_cost heaviest;
    int any;
    int64_t limit = s->options->memory_limit ? s->options->memory_limit : INT64_MAX;
    note_untaken(s, min(to, limit));
    if (from > limit || !find_steps(s, from, min(to, limit), by, &heaviest, &s->part.box))
        return 0;
    if (find_part(s, heaviest, &any))
        return -1;
    return any ? add_part(s) : 0;
}

/* ---- the hull ------------------------------------------------------------------------------------ */

/* The lightest strategy by a weighing that is exact up to a cost; its choices are the caller's, where it does not fail.
 * '*ret_some': is there one? */
static int find_corner(struct parts *s, struct topt_weighing by, struct topt_cost up_to,
                       struct corner *ret, int *ret_some)
{
    struct topt_weigher *w = s->weigher;
    *ret = (struct corner){.choice = NULL};
    if (topt_weigher_weigh(w, by, up_to, s->err) ||
        topt_weigher_lightest(w, ret_some, &ret->bound, s->err) ||
        topt_weigher_strategy(w, &ret->choice, &ret->real, s->err))
        return -1;
    if (!ret->choice || !know(s, &ret->real, 1))
        return 0;
    free(ret->choice);
    ret->choice = NULL;
    return -1;
}

/* Between two corners of the hull; 'from' and 'to' are memories. */
struct segment {
    const struct corner *light, *fast;
    int64_t from, to;
    int depth;
};

/* Weighings are to be exact up to whatever is wanted. */
static struct topt_cost up_to(const struct parts *s, const struct segment *x,
                              struct topt_weighing by)
{
    struct topt_cost heaviest, box;
    find_steps(s, x->from, x->to, by, &heaviest, &box);
    return (struct topt_cost){max(box.memory, x->fast->bound.memory),
                              max(box.time, x->light->bound.time)};
}

static int is_between(const struct segment *x, struct topt_cost c)
{
    return c.memory > x->light->bound.memory && c.memory < x->fast->bound.memory;
}

/* Corners in between part it, as far as they are below the line by enough. */
static int part_segment(struct parts *s, struct segment x)
{
    struct topt_cost light = x.light->bound, fast = x.fast->bound;
    struct topt_weighing by = {max(light.time - fast.time, 1),
                               max(fast.memory - light.memory, 1)};
    struct corner c;
    int some, rc;
    if (cross(s, x.light, x.fast, by) || find_corner(s, by, up_to(s, &x, by), &c, &some))
        return -1;
    wide all = weight(by, light), gain = all - weight(by, c.bound);
    if (some && x.depth < DEEPEST && (double)gain > (double)all * FINE &&
        is_between(&x, c.bound))
        rc = part_segment(
                 s, (struct segment){x.light, &c, x.from, c.bound.memory, x.depth + 1}) ||
             part_segment(
                 s, (struct segment){&c, x.fast, c.bound.memory, x.to, x.depth + 1});
    else
        rc = take_part(s, x.from, x.to, by);
    free(c.choice);
    return rc ? -1 : 0;
}

/* What is faster than all that was known, whatever it takes: time alone is weighed. */
static int take_faster(struct parts *s)
{
    struct topt_cost faster = {INT64_MAX, INT64_MAX};
    struct corner c;
    int some;
    if (s->options->memory_limit)
        faster.memory = s->options->memory_limit;
    if (s->nknown)
        faster.time = max(s->untaken, s->known[s->nknown - 1].time - 1);
    if (faster.time < s->least.time)
        return 0;
    if (find_corner(s, (struct topt_weighing){0, 1}, faster, &c, &some))
        return -1;
    free(c.choice);
    if (!some)
        return 0;
    s->part.box = faster;
    if (find_part(s, faster, &some))
        return -1;
    return some ? add_part(s) : 0;
}

static int find_groups(struct parts *s)
{
    static const struct topt_cost any = {INT64_MAX, INT64_MAX};
    struct corner light = {.choice = NULL}, fast = {.choice = NULL};
    int some;
    int rc = find_corner(s, (struct topt_weighing){1, 0}, any, &light, &some);
    if (!rc && some) {
        s->least.memory = light.bound.memory;
        rc = find_corner(s, (struct topt_weighing){0, 1}, any, &fast, &some);
    }
    if (!rc && some) {
        s->least.time = fast.bound.time;
        rc = part_segment(s, (struct segment){&light, &fast, 0, INT64_MAX, 0}) ||
             take_faster(s);
    }
    free(light.choice);
    free(fast.choice);
    return rc;
}

/* ---- searches ------------------------------------------------------------------------------------ */

static void note_decided(struct parts *s, const struct topt_frontier *f)
{
    for (int i = 0; i < f->nheuristic; i++)
        s->decided[f->heuristic[i]] = 1;
}

/* What is left of a group is a problem by itself. */
static int search_group(struct parts *s, const struct group *g,
                        struct topt_frontier **ret)
{
    struct topt_search_options o = *s->options;
    struct narrowed n = {.arena = NULL};
    o.memory_limit = g->box.memory;
    o.time_limit = g->box.time;
    int rc = topt_narrow_to(s->p, g->config, &n, s->err) ||
                     topt_excerpt(&n, g->pair, s->at, s->err) ||
                     topt_search_smaller(&n.problem, &o, ret, s->err)
                 ? -1
                 : 0;
    if (!rc) {
        topt_strategies_rename(topt_frontier_strategies(*ret), n.config,
                               (size_t)s->p->nops);
        note_decided(s, *ret);
    }
    topt_narrow_fini(&n);
    return rc;
}

/* A stop leaves those that were not searched yet; without any there is no answer. */
static int search_groups(struct parts *s)
{
    s->found = calloc((size_t)s->ngroups + 1, sizeof(*s->found));
    s->decided = calloc((size_t)s->p->nops + 1, 1);
    if (!s->found || !s->decided)
        return nomem(s);
    for (int i = 0; i < s->ngroups; i++, s->nfound++) {
        if (search_group(s, &s->group[i], &s->found[i]))
            return i && topt_search_gave_up(s->options, s->err) ? 0 : -1;
        group_fini(s, &s->group[i]);
    }
    return 0;
}

/* ---- the answer ---------------------------------------------------------------------------------- */

static int collect(struct parts *s, struct topt_frontier *f)
{
    size_t n = 0, k = 0;
    for (int i = 0; i < s->nfound; i++)
        n += (size_t)s->found[i]->npoints;
    struct pick *pick = malloc((n + 1) * sizeof *pick);
    const struct strategies **list = calloc((size_t)s->nfound + 1, sizeof(*list));
    for (int i = 0; pick && list && i < s->nfound; i++) {
        list[i] = topt_frontier_strategies(s->found[i]);
        for (int j = 0; j < s->found[i]->npoints; j++)
            pick[k++] = (struct pick){s->found[i]->cost[j], (uint32_t)i, (uint32_t)j};
    }
    int rc = pick && list
                 ? topt_frontier_collect(f, list, (size_t)s->nfound, pick, n, s->err)
                 : nomem(s);
    free(pick);
    free(list);
    return rc;
}

static int name_decided(struct parts *s, struct topt_frontier *f)
{
    int n = s->p->nops;
    int32_t *fixed = malloc(((size_t)n + 1) * sizeof *fixed);
    if (!fixed)
        return nomem(s);
    for (int i = 0; i < n; i++)
        fixed[i] = s->decided[i] ? 0 : -1;
    int rc = topt_frontier_decided(f, fixed, n, s->err);
    free(fixed);
    return rc;
}

static void sum_up(const struct parts *s, struct topt_frontier *f)
{
    f->stats.products = s->work;
    for (int i = 0; i < s->nfound; i++) {
        topt_search_stats_add(&f->stats, &s->found[i]->stats);
        f->epsilon =
            s->found[i]->epsilon > f->epsilon ? s->found[i]->epsilon : f->epsilon;
    }
    if (s->nfound < s->ngroups)
        f->epsilon = INFINITY;
    f->exact = f->epsilon <= 0 && !f->nheuristic;
}

static int answer(struct parts *s, const struct topt_search_problem *problem,
                  struct topt_frontier **ret)
{
    struct topt_frontier *f = topt_frontier_create(problem, s->err);
    if (!f)
        return -1;
    if (collect(s, f) || name_decided(s, f)) {
        topt_frontier_destroy(f);
        return -1;
    }
    topt_strategies_rename(topt_frontier_strategies(f), s->narrowed.config,
                           (size_t)problem->nops);
    sum_up(s, f);
    *ret = f;
    return 0;
}

/* ---- all of it ----------------------------------------------------------------------------------- */

static int init(struct parts *s)
{
    const struct topt_search_options *o = s->options;
    struct topt_search_options weighing = *o;
    if (!o->max_entries) /* of single numbers there is room for more than of points */
        weighing.max_entries = TOPT_SEARCH_MAX_ENTRIES;
    if (topt_weigher_create(s->p, &weighing, &s->weigher, s->err) ||
        topt_crosser_init(&s->crosser, s->p, s->err))
        return -1;
    if (!topt_weigher_light(s->weigher))
        return topt_fail(s->err, TOPT_ERR_LIMIT, "costs are too large to be weighed");
    s->nmarks = topt_weigher_pairs(s->weigher, &s->at, s->err);
    s->crossover = malloc((2 * (size_t)s->p->nops + 1) * sizeof *s->crossover);
    if (s->nmarks < 0 || !s->crossover)
        return nomem(s);
    return group_init(s, &s->part) || know(s, o->known, (size_t)o->nknown);
}

static void free_weighings(struct parts *s)
{
    s->work += topt_weigher_work(s->weigher);
    topt_weigher_destroy(s->weigher);
    topt_crosser_fini(&s->crosser);
    free(s->crossover);
    group_fini(s, &s->part);
    s->weigher = NULL;
    s->crosser = (struct crosser){0};
    s->crossover = NULL;
}

static void fini(struct parts *s)
{
    if (s->weigher)
        free_weighings(s);
    for (int i = 0; i < s->ngroups; i++) {
        group_fini(s, &s->group[i]);
        topt_frontier_destroy(s->found ? s->found[i] : NULL);
    }
    free(s->group);
    free(s->found);
    free(s->decided);
    free(s->known);
    free(s->at);
    topt_narrow_fini(&s->narrowed);
}

/* Weigh, and search what that leaves.  1 where the problem can't be weighed; 0, -1. */
static int search(struct parts *s, const struct topt_search_problem *problem,
                  struct topt_frontier **ret)
{
    if (topt_narrow(problem, s->options, &s->narrowed, s->err))
        return -1;
    s->p = &s->narrowed.problem;
    s->work = s->narrowed.work;
    if (init(s))
        return s->err->code == TOPT_ERR_LIMIT ? 1 : -1;
    if (find_groups(s))
        return -1;
    free_weighings(s);
    return search_groups(s) || answer(s, problem, ret) ? -1 : 0;
}

int topt_search_parts(const struct topt_search_problem *problem,
                      const struct topt_search_options *options,
                      struct topt_frontier **ret, struct topt_error *err)
{
    struct topt_error why = {0};
    struct parts s = {.options = options, .err = &why};
    int rc = search(&s, problem, ret);
    fini(&s);
    if (rc > 0)
        return topt_search_smaller(problem, options, ret, err);
    if (rc && err)
        *err = why;
    return rc;
}
