/* narrow.c - leave out configurations that another of their operator always beats.
 *
 * Configuration w of an operator beats v if, whatever the neighbours take, changing v to w
 * makes no strategy heavier or slower:
 *
 *     cost(w) - cost(v)  +  sum over edges of  max over y of  edge(w, y) - edge(v, y)  <=  0
 *
 * in memory and in time, y being what the other end may still be.  Where an edge has several
 * alternatives, each of v's needs one of w's.  An edge has few classes for many
 * configurations, so the maximum is found once for a pair of classes; operators that are
 * alike are looked at once.  What is left out makes the maxima smaller, so there are a few
 * rounds.
 *
 * In models that finds, without knowing it, configurations that do no better than another
 * and a conversion of its output (the triangle inequality of conversions): of 256 of a
 * matrix product on 16 devices about 100 stay.  Tables are of two or three operators, so
 * that counts twice or thrice. */
#include "narrow.h"

#include "table.h"

#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 3 };
/* Pairs of entries that may be compared for one operator; it stays as it is where there
 * would be more. */
static const double MAX_PAIRS = 1 << 28;

/* One end of an edge, as its operator sees it. */
struct side {
    const struct topt_table *table;
    const int32_t *class_of; /* by configuration */
    int nclasses, nother;    /* of this end and of the other */
    int is_from;
    char *used;       /* by class of the other end: may it still be taken? */
    uint64_t used_as; /* a hash of it */
    int *best;        /* by class: where it costs least; -1: nowhere */
    struct change *change;
};

/* What changing class v to w costs at most on an edge; by v * nclasses + w. */
struct change {
    int64_t memory, time;
    int8_t known, possible;
};

struct narrowing {
    const struct topt_search_problem *p;
    struct narrowed *ret;
    struct topt_error *err;
    struct topt_arena *arena; /* of a round */
    char **alive;             /* by operator, by configuration */
    int **edges; /* by operator: its edges' numbers, twice where ends are both */
    int *nedges;
    int64_t work, removed;
};

static int nomem(struct narrowing *n)
{
    return topt_search_nomem(n->err);
}

/* ---- what a change of class costs on one edge ---- */

static int64_t entry_of(const struct side *s, int own, int other)
{
    return s->is_from ? (int64_t)own * s->table->to_classes + other
                      : (int64_t)other * s->table->to_classes + own;
}

/* The alternative of entry w that stands best for one of v: the fastest of those that are no
 * heavier, or else the lightest. */
static const struct topt_cost *stand_in(const struct topt_table *t, int64_t w,
                                        struct topt_cost v)
{
    const struct topt_cost *best = NULL;
    for (int32_t k = t->first[w]; k < t->first[w + 1]; k++) {
        const struct topt_cost *c = &t->alt[k];
        int fits = c->memory <= v.memory, fit = best && best->memory <= v.memory;
        if (!best || (fits && (!fit || c->time < best->time)) ||
            (!fits && !fit && c->memory < best->memory))
            best = c;
    }
    return best;
}

static struct change find_change(struct narrowing *n, const struct side *s, int v, int w)
{
    struct change c = {INT64_MIN, INT64_MIN, 1, 1};
    const struct topt_table *t = s->table;
    for (int y = 0; y < s->nother; y++) {
        int64_t from = entry_of(s, v, y), to = entry_of(s, w, y);
        for (int32_t k = t->first[from]; s->used[y] && k < t->first[from + 1]; k++) {
            const struct topt_cost *in = stand_in(t, to, t->alt[k]);
            if (!in)
                return (struct change){0, 0, 1, 0};
            int64_t memory = in->memory - t->alt[k].memory;
            int64_t time = in->time - t->alt[k].time;
            c.memory = memory > c.memory ? memory : c.memory;
            c.time = time > c.time ? time : c.time;
        }
    }
    n->work += s->nother;
    if (c.memory == INT64_MIN) /* v is impossible there: anything is as good */
        c.memory = c.time = 0;
    return c;
}

/* What v costs at best on an edge; where the other end is then, w is likely to cost more. */
static int best_place(const struct side *s, int v)
{
    const struct topt_table *t = s->table;
    const struct topt_cost *best = NULL;
    int at = -1;
    for (int y = 0; y < s->nother; y++) {
        int64_t e = entry_of(s, v, y);
        for (int32_t k = t->first[e]; s->used[y] && k < t->first[e + 1]; k++)
            if (!best || t->alt[k].time < best->time ||
                (t->alt[k].time == best->time && t->alt[k].memory < best->memory)) {
                best = &t->alt[k];
                at = y;
            }
    }
    return at;
}

/* A change's cost is at least what it is in the best place of v. */
static struct change glance(const struct side *s, int v, int w)
{
    const struct topt_table *t = s->table;
    if (s->best[v] < 0)
        return (struct change){INT64_MIN / 4, INT64_MIN / 4, 1, 1};
    const struct topt_cost *from = &t->alt[t->first[entry_of(s, v, s->best[v])]];
    const struct topt_cost *in = stand_in(t, entry_of(s, w, s->best[v]), *from);
    if (!in)
        return (struct change){0, 0, 1, 0};
    return (struct change){in->memory - from->memory, in->time - from->time, 1, 1};
}

static const struct change *change_on(struct narrowing *n, struct side *s, int v, int w)
{
    struct change *c = &s->change[(size_t)v * (size_t)s->nclasses + (size_t)w];
    if (!c->known)
        *c = find_change(n, s, v, w);
    return c;
}

/* ---- one operator ---- */

__extension__ typedef __int128 wide;

/* Does w fail to beat v already where v is at its best on every edge? */
static int fails_at_once(const struct topt_search_op *op, const struct side *side,
                         int nsides, int w, int v)
{
    wide memory = (wide)op->cost[w].memory - op->cost[v].memory;
    wide time = (wide)op->cost[w].time - op->cost[v].time;
    for (int i = 0; i < nsides; i++) {
        struct change c = glance(&side[i], side[i].class_of[v], side[i].class_of[w]);
        if (!c.possible)
            return 1;
        memory += c.memory;
        time += c.time;
    }
    return memory > 0 || time > 0;
}

static int beats(struct narrowing *n, const struct topt_search_op *op, struct side *side,
                 int nsides, int w, int v)
{
    if (fails_at_once(op, side, nsides, w, v))
        return 0;
    wide memory = (wide)op->cost[w].memory - op->cost[v].memory;
    wide time = (wide)op->cost[w].time - op->cost[v].time;
    for (int i = 0; i < nsides; i++) {
        const struct change *c =
            change_on(n, &side[i], side[i].class_of[v], side[i].class_of[w]);
        if (!c->possible)
            return 0;
        memory += c->memory;
        time += c->time;
    }
    return memory <= 0 && time <= 0;
}

/* Last to first, so that of equal ones the first stays. */
static void narrow_op(struct narrowing *n, int i, struct side *side, int nsides)
{
    const struct topt_search_op *op = &n->p->op[i];
    char *alive = n->alive[i];
    for (int v = op->nconfigs - 1; v >= 0; v--)
        for (int w = 0; w < op->nconfigs && alive[v]; w++)
            if (w != v && alive[w] && beats(n, op, side, nsides, w, v)) {
                alive[v] = 0;
                n->removed++;
            }
}

static int find_used(struct narrowing *n, struct side *s, int other,
                     const int32_t *other_class)
{
    s->used = TOPT_NEW(n->arena, s->nother, char);
    if (!s->used)
        return nomem(n);
    for (int c = 0; c < n->p->op[other].nconfigs; c++)
        if (n->alive[other][c])
            s->used[other_class[c]] = 1;
    s->used_as = topt_hash(s->used, (size_t)s->nother, 1);
    return 0;
}

/* The operator's ends of its edges.  Returns how many, or -1. */
static int find_sides(struct narrowing *n, int op, struct side **ret)
{
    struct side *side = *ret = TOPT_NEW(n->arena, n->nedges[op] + 1, struct side);
    if (!side)
        return nomem(n);
    for (int k = 0; k < n->nedges[op]; k++) {
        const struct topt_search_edge *e = &n->p->edge[n->edges[op][k]];
        const struct topt_table *t = e->table;
        int is_from = e->from == op;
        side[k] = (struct side){.table = t,
                                .class_of = is_from ? e->from_class : e->to_class,
                                .nclasses = is_from ? t->from_classes : t->to_classes,
                                .nother = is_from ? t->to_classes : t->from_classes,
                                .is_from = is_from};
        if (find_used(n, &side[k], is_from ? e->to : e->from,
                      is_from ? e->to_class : e->from_class))
            return -1;
    }
    return n->nedges[op];
}

static int affordable(const struct topt_search_op *op, const struct side *side, int n)
{
    double pairs = (double)op->nconfigs * op->nconfigs;
    for (int i = 0; i < n; i++)
        pairs += (double)side[i].nclasses * side[i].nclasses * side[i].nother;
    return pairs <= MAX_PAIRS;
}

/* ---- operators that are alike ---- */

struct kind {
    uint64_t hash;
    int op;
    struct side *side;
    int nsides;
    struct kind *next;
};

static int same_side(const struct side *a, const struct side *b)
{
    return a->table == b->table && a->class_of == b->class_of &&
           a->is_from == b->is_from && a->used_as == b->used_as &&
           !memcmp(a->used, b->used, (size_t)a->nother);
}

/* Have both the same to choose from, and the same around them?  (By pointers: who shares
 * them says that things are alike.) */
static int same_kind(const struct narrowing *n, const struct kind *a,
                     const struct kind *b)
{
    const struct topt_search_op *x = &n->p->op[a->op], *y = &n->p->op[b->op];
    if (a->hash != b->hash || a->nsides != b->nsides || x->cost != y->cost ||
        x->nconfigs != y->nconfigs ||
        memcmp(n->alive[a->op], n->alive[b->op], (size_t)x->nconfigs))
        return 0;
    for (int i = 0; i < a->nsides; i++)
        if (!same_side(&a->side[i], &b->side[i]))
            return 0;
    return 1;
}

static uint64_t hash_kind(const struct narrowing *n, const struct kind *k)
{
    const struct topt_search_op *op = &n->p->op[k->op];
    uint64_t h = topt_hash(&op->cost, sizeof op->cost, (uint64_t)op->nconfigs);
    h = topt_hash(n->alive[k->op], (size_t)op->nconfigs, h);
    for (int i = 0; i < k->nsides; i++) {
        const void *at[2] = {k->side[i].table, k->side[i].class_of};
        h = topt_hash(at, sizeof at, h ^ k->side[i].used_as);
    }
    return h;
}

static int prepare(struct narrowing *n, struct kind *k)
{
    for (int i = 0; i < k->nsides; i++) {
        struct side *s = &k->side[i];
        size_t c = (size_t)s->nclasses;
        s->change = TOPT_NEW(n->arena, c * c, struct change);
        s->best = TOPT_NEW(n->arena, c, int);
        if (!s->change || !s->best)
            return nomem(n);
        for (int v = 0; v < s->nclasses; v++)
            s->best[v] = best_place(s, v);
    }
    return 0;
}

/* One round over all operators, by what may be taken at its beginning. */
static int narrow_round(struct narrowing *n)
{
    enum { NBUCKETS = 1024 };
    int nops = n->p->nops;
    struct kind *kind = TOPT_NEW(n->arena, nops, struct kind);
    struct kind **bucket = TOPT_NEW(n->arena, NBUCKETS, struct kind *);
    int *like = TOPT_NEW(n->arena, nops, int); /* the first of the kind */
    if (!kind || !bucket || !like)
        return nomem(n);
    for (int i = 0; i < nops; i++) {
        struct kind *k = &kind[i];
        k->op = like[i] = i;
        if ((k->nsides = find_sides(n, i, &k->side)) < 0)
            return -1;
        k->hash = hash_kind(n, k);
        struct kind **b = &bucket[k->hash % NBUCKETS];
        for (struct kind *o = *b; o && like[i] == i; o = o->next)
            if (same_kind(n, o, k))
                like[i] = o->op;
        k->next = *b;
        if (like[i] == i)
            *b = k;
    }
    for (int i = 0; i < nops; i++) {
        struct kind *k = &kind[i];
        if (like[i] != i || !affordable(&n->p->op[i], k->side, k->nsides))
            continue;
        if (prepare(n, k))
            return -1;
        narrow_op(n, i, k->side, k->nsides);
    }
    for (int i = 0; i < nops; i++)
        if (like[i] != i)
            memcpy(n->alive[i], n->alive[like[i]], (size_t)n->p->op[i].nconfigs);
    return 0;
}

/* ---- the problem that is left ---- */

/* The first operator whose configurations are the same and stay the same. */
static int first_like(const struct narrowing *n, int i)
{
    size_t size = (size_t)n->p->op[i].nconfigs;
    for (int k = i - 1; k >= 0 && k >= i - 64; k--)
        if (n->p->op[k].cost == n->p->op[i].cost &&
            n->p->op[k].nconfigs == n->p->op[i].nconfigs &&
            !memcmp(n->alive[k], n->alive[i], size))
            return k;
    return i;
}

static int32_t *kept_classes(struct narrowing *n, int op, const int32_t *class_of)
{
    int kept = n->ret->problem.op[op].nconfigs;
    int32_t *to = TOPT_NEW(n->ret->arena, kept, int32_t);
    for (int c = 0; to && c < kept; c++)
        to[c] = class_of[n->ret->config[op][c]];
    return to;
}

static int keep_op(struct narrowing *n, int i, int like)
{
    struct topt_search_op *op = (struct topt_search_op *)&n->ret->problem.op[i];
    int kept = 0;
    if (like != i) {
        const char *name = op->name;
        *op = n->ret->problem.op[like];
        op->name = name;
        n->ret->config[i] = n->ret->config[like];
        return 0;
    }
    for (int c = 0; c < n->p->op[i].nconfigs; c++)
        kept += n->alive[i][c];
    int32_t *config = TOPT_NEW(n->ret->arena, kept, int32_t);
    struct topt_cost *cost = TOPT_NEW(n->ret->arena, kept, struct topt_cost);
    if (!config || !cost)
        return nomem(n);
    kept = 0;
    for (int c = 0; c < n->p->op[i].nconfigs; c++)
        if (n->alive[i][c]) {
            cost[kept] = op->cost[c];
            config[kept++] = c;
        }
    op->nconfigs = kept;
    op->cost = cost;
    n->ret->config[i] = config;
    return 0;
}

static int build(struct narrowing *n)
{
    struct topt_arena *a = n->ret->arena;
    const struct topt_search_problem *p = n->p;
    struct topt_search_op *op = TOPT_NEW(a, p->nops, struct topt_search_op);
    struct topt_search_edge *edge = TOPT_NEW(a, p->nedges, struct topt_search_edge);
    n->ret->config = TOPT_NEW(a, p->nops, const int32_t *);
    if (!op || !edge || !n->ret->config)
        return nomem(n);
    memcpy(op, p->op, (size_t)p->nops * sizeof *op);
    if (p->nedges)
        memcpy(edge, p->edge, (size_t)p->nedges * sizeof *edge);
    n->ret->problem = (struct topt_search_problem){p->nops, op, p->nedges, edge};
    for (int i = 0; i < p->nops; i++)
        if (keep_op(n, i, first_like(n, i)))
            return -1;
    for (int e = 0; e < p->nedges; e++) {
        edge[e].from_class = kept_classes(n, edge[e].from, p->edge[e].from_class);
        edge[e].to_class = kept_classes(n, edge[e].to, p->edge[e].to_class);
        if (!edge[e].from_class || !edge[e].to_class)
            return nomem(n);
    }
    return 0;
}

static int init(struct narrowing *n)
{
    const struct topt_search_problem *p = n->p;
    struct topt_arena *a = n->ret->arena = topt_arena_create(0);
    if (!a)
        return nomem(n);
    n->alive = TOPT_NEW(a, p->nops, char *);
    n->edges = TOPT_NEW(a, p->nops, int *);
    n->nedges = TOPT_NEW(a, p->nops, int);
    if (!n->alive || !n->edges || !n->nedges)
        return nomem(n);
    for (int e = 0; e < p->nedges; e++) {
        n->nedges[p->edge[e].from]++;
        n->nedges[p->edge[e].to]++;
    }
    for (int i = 0; i < p->nops; i++) {
        n->alive[i] = TOPT_NEW(a, p->op[i].nconfigs, char);
        n->edges[i] = TOPT_NEW(a, n->nedges[i], int);
        if (!n->alive[i] || !n->edges[i])
            return nomem(n);
        memset(n->alive[i], 1, (size_t)p->op[i].nconfigs);
        n->nedges[i] = 0;
    }
    for (int e = 0; e < p->nedges; e++) {
        int from = p->edge[e].from, to = p->edge[e].to;
        n->edges[from][n->nedges[from]++] = e;
        n->edges[to][n->nedges[to]++] = e;
    }
    return 0;
}

int topt_narrow(const struct topt_search_problem *p,
                const struct topt_search_options *options, struct narrowed *ret,
                struct topt_error *err)
{
    struct narrowing n = {.p = p, .ret = ret, .err = err};
    *ret = (struct narrowed){0};
    int rc = init(&n);
    for (int i = 0; i < ROUNDS && !rc; i++) {
        int64_t before = n.removed;
        n.arena = topt_arena_create(0);
        rc = n.arena ? narrow_round(&n) : nomem(&n);
        topt_arena_destroy(n.arena);
        if (topt_search_canceled(options))
            rc = topt_fail(err, TOPT_ERR_CANCELED, "the search was canceled");
        if (n.removed == before)
            break;
    }
    ret->work = n.work;
    return rc ? -1 : build(&n);
}

int topt_narrow_to(const struct topt_search_problem *p, char *const *keep,
                   struct narrowed *ret, struct topt_error *err)
{
    struct narrowing n = {.p = p, .ret = ret, .err = err};
    *ret = (struct narrowed){0};
    if (init(&n))
        return -1;
    for (int i = 0; i < p->nops; i++)
        if (p->op[i].nconfigs)
            memcpy(n.alive[i], keep[i], (size_t)p->op[i].nconfigs);
    return build(&n);
}

void topt_narrow_fini(struct narrowed *n)
{
    topt_arena_destroy(n->arena);
}
