/* config_dominance.c - leave out configurations that another of their operator always
 * beats.
 *
 * Configuration w of an operator beats v if, whatever the neighbours take, changing v to
 * w makes no strategy heavier or slower:
 *
 *     cost(w) - cost(v)  +  sum over edges of  max over y of  edge(w, y) - edge(v, y)  <=  0
 *
 * in memory and in time, y being what the other end may still be.  Where an edge has
 * several alternatives, each of v's needs one of w's.  An edge has few classes for many
 * configurations, so the maximum is found once for a pair of classes; operators that are
 * alike are looked at once.  What is left out makes the maxima smaller, so there are a
 * few rounds.
 *
 * In models that finds, without knowing it, configurations that do no better than another
 * and a conversion of its output (the triangle inequality of conversions): of 256 of a
 * matrix product on 16 devices about 100 stay.  Tables are of two or three operators, so
 * that counts twice or thrice. */
#include "config_dominance.h"

#include "dominance_tuning.h"
#include "substitution.h"
#include "table.h"
#include "topt_pool.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* One end of an edge of an operator. */
struct side {
    const struct topt_table *table;
    int is_from, nother;
    const int32_t *class_of;     /* by configuration */
    char *used;                  /* by class of the other end: may it be taken? */
    uint64_t used_as;            /* a hash of it */
    struct substitution_side of; /* of operators that are looked at */
};

struct narrowing {
    const struct topt_search_problem *p;
    const struct topt_search_options *options;
    struct reduced_problem *ret;
    struct topt_error *err;
    struct topt_arena *arena; /* of a round */
    char **alive;             /* by operator, by configuration */
    int **edges; /* by operator: its edges' numbers, twice where ends are both */
    int *nedges;
    struct topt_pool *pool; /* NULL: no threads */
    int64_t work, removed;
};

/* A thread's workspace for one operator. */
struct workspace {
    struct substitution *swap; /* room for those of its sides */
    int64_t work, removed;
};

/* ---- one operator ------------------------------------------------------------------ */

struct sum {
    topt_wide memory, time;
};

/* The most that one more substitution may cost where the others cost 'sum'. */
static int64_t room(topt_wide sum)
{
    return sum < -(topt_wide)TOPT_SUBSTITUTION_MOST  ? TOPT_SUBSTITUTION_MOST
           : sum > (topt_wide)TOPT_SUBSTITUTION_MOST ? -TOPT_SUBSTITUTION_MOST
                                                     : (int64_t)-sum;
}

/* Does w beat v?  A glance at every edge first, where v is at its best: most fail
 * there. */
static int beats(struct workspace *ws, const struct topt_search_op *op,
                 const struct side *side, int nsides, int w, int v)
{
    static const struct topt_cost glance = {-TOPT_SUBSTITUTION_MOST - 1,
                                            -TOPT_SUBSTITUTION_MOST - 1};
    topt_wide memory = (topt_wide)op->cost[w].memory - op->cost[v].memory;
    topt_wide time = (topt_wide)op->cost[w].time - op->cost[v].time;
    for (int i = 0; i < nsides; i++) {
        struct substitution *swap = &ws->swap[i];
        *swap = topt_substitution_start();
        ws->work += topt_substitution(&side[i].of, side[i].class_of[v],
                                      side[i].class_of[w], glance, swap);
        if (swap->seen == TOPT_SUBSTITUTION_NEVER)
            return 0;
        memory += swap->memory;
        time += swap->time;
    }
    for (int i = 0; i < nsides && memory <= 0 && time <= 0; i++) {
        struct substitution *swap = &ws->swap[i];
        memory -= swap->memory;
        time -= swap->time;
        ws->work +=
            topt_substitution(&side[i].of, side[i].class_of[v], side[i].class_of[w],
                              (struct topt_cost){room(memory), room(time)}, swap);
        if (swap->seen == TOPT_SUBSTITUTION_NEVER)
            return 0;
        memory += swap->memory;
        time += swap->time;
    }
    return memory <= 0 && time <= 0;
}

/* Last to first, so that of equal ones the first stays. */
static void narrow_op(const struct topt_search_op *op, char *alive,
                      const struct side *side, int nsides, struct workspace *ws)
{
    for (int v = op->nconfigs - 1; v >= 0; v--)
        for (int w = 0; w < op->nconfigs && alive[v]; w++)
            if (w != v && alive[w] && beats(ws, op, side, nsides, w, v)) {
                alive[v] = 0;
                ws->removed++;
            }
}

static int find_side(struct narrowing *n, int op, const struct topt_search_edge *e,
                     struct side *ret)
{
    int is_from = e->from == op, other = is_from ? e->to : e->from;
    const int32_t *other_class = is_from ? e->to_class : e->from_class;
    *ret =
        (struct side){.table = e->table,
                      .is_from = is_from,
                      .nother = is_from ? e->table->to_classes : e->table->from_classes,
                      .class_of = is_from ? e->from_class : e->to_class};
    ret->used = TOPT_NEW(n->arena, ret->nother, char);
    if (!ret->used)
        return topt_search_nomem(n->err);
    for (int c = 0; c < n->p->op[other].nconfigs; c++)
        if (n->alive[other][c])
            ret->used[other_class[c]] = 1;
    ret->used_as = topt_hash(ret->used, (size_t)ret->nother, 1);
    return 0;
}

/* The operator's ends of its edges.  Returns how many, or -1. */
static int find_sides(struct narrowing *n, int op, struct side **ret)
{
    struct side *side = *ret = TOPT_NEW(n->arena, n->nedges[op] + 1, struct side);
    if (!side)
        return topt_search_nomem(n->err);
    for (int k = 0; k < n->nedges[op]; k++)
        if (find_side(n, op, &n->p->edge[n->edges[op][k]], &side[k]))
            return -1;
    return n->nedges[op];
}

static int affordable(const struct topt_search_op *op, const struct side *side, int n)
{
    double pairs = (double)op->nconfigs * op->nconfigs;
    for (int i = 0; i < n; i++) {
        const struct topt_table *t = side[i].table;
        double own = side[i].is_from ? t->from_classes : t->to_classes;
        pairs += own * own * side[i].nother;
    }
    return pairs <= MAX_PAIRS;
}

/* ---- operators that are alike ------------------------------------------------------ */

struct alike_ops {
    uint64_t hash;
    int op;
    struct side *side;
    int nsides;
    struct alike_ops *next;
};

/* Have both the same to choose from, and the same around them?  (By pointers: who shares
 * them says that things are alike.) */
static int same_kind(const struct narrowing *n, const struct alike_ops *a,
                     const struct alike_ops *b)
{
    const struct topt_search_op *x = &n->p->op[a->op], *y = &n->p->op[b->op];
    if (a->hash != b->hash || a->nsides != b->nsides || x->cost != y->cost ||
        x->nconfigs != y->nconfigs ||
        memcmp(n->alive[a->op], n->alive[b->op], (size_t)x->nconfigs))
        return 0;
    for (int i = 0; i < a->nsides; i++) {
        const struct side *s = &a->side[i], *t = &b->side[i];
        if (s->class_of != t->class_of || s->table != t->table ||
            s->is_from != t->is_from || s->used_as != t->used_as ||
            memcmp(s->used, t->used, (size_t)s->nother) != 0)
            return 0;
    }
    return 1;
}

static uint64_t hash_kind(const struct narrowing *n, const struct alike_ops *k)
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

/* Look at one operator of a kind. */
static int narrow_kind(struct narrowing *n, struct alike_ops *k, struct workspace *ws)
{
    struct topt_arena *a = topt_arena_create(0);
    int rc = a ? 0 : -1;
    for (int i = 0; i < k->nsides && !rc; i++) {
        struct side *s = &k->side[i];
        const struct topt_table *t = s->table;
        struct substitution_lists lists = {(const uint32_t *)t->first, t->alt,
                                           t->from_classes, t->to_classes};
        rc = topt_substitution_side(&s->of, lists, s->is_from, s->used, a);
    }
    ws->swap = a ? TOPT_NEW(a, k->nsides, struct substitution) : NULL;
    rc = rc || !ws->swap;
    if (!rc)
        narrow_op(&n->p->op[k->op], n->alive[k->op], k->side, k->nsides, ws);
    topt_arena_destroy(a);
    return rc ? -1 : 0;
}

/* Operators of different kinds are looked at by threads: none reads what another
 * changes, since what other ends may take is as it was at the beginning of the round. */
struct round_of_kinds {
    struct narrowing *n;
    struct alike_ops **kind;
    int nkinds;
    atomic_int next, failed;
    atomic_llong work, removed;
};

static void compare_kinds(void *ctx, int worker)
{
    struct round_of_kinds *l = ctx;
    (void)worker;
    for (int i; !l->failed && (i = l->next++) < l->nkinds &&
                !topt_search_interrupted(l->n->options);) {
        struct workspace own = {.swap = NULL};
        if (narrow_kind(l->n, l->kind[i], &own))
            l->failed = 1;
        l->work += own.work;
        l->removed += own.removed;
    }
}

static int narrow_kinds(struct narrowing *n, struct alike_ops **kind, int nkinds)
{
    struct round_of_kinds l = {.n = n, .kind = kind, .nkinds = nkinds};
    if (n->pool)
        topt_pool_run(n->pool, compare_kinds, &l);
    else
        compare_kinds(&l, 0);
    n->work += l.work;
    n->removed += l.removed;
    return l.failed ? topt_search_nomem(n->err) : 0;
}

/* One round over all operators, by what may be taken at its beginning. */
static int narrow_round(struct narrowing *n)
{
    enum { NBUCKETS = 1024 };
    int nops = n->p->nops;
    struct alike_ops *kind = TOPT_NEW(n->arena, nops, struct alike_ops);
    struct alike_ops **bucket = TOPT_NEW(n->arena, NBUCKETS, struct alike_ops *);
    int *like = TOPT_NEW(n->arena, nops, int); /* the first of the kind */
    struct alike_ops **first = TOPT_NEW(n->arena, nops, struct alike_ops *);
    int nfirst = 0;
    if (!kind || !bucket || !like || !first)
        return topt_search_nomem(n->err);
    for (int i = 0; i < nops; i++) {
        struct alike_ops *k = &kind[i];
        k->op = like[i] = i;
        if ((k->nsides = find_sides(n, i, &k->side)) < 0)
            return -1;
        k->hash = hash_kind(n, k);
        struct alike_ops **b = &bucket[k->hash % NBUCKETS];
        for (struct alike_ops *o = *b; o && like[i] == i; o = o->next)
            if (same_kind(n, o, k))
                like[i] = o->op;
        k->next = *b;
        if (like[i] == i)
            *b = k;
    }
    for (int i = 0; i < nops; i++)
        if (like[i] == i && affordable(&n->p->op[i], kind[i].side, kind[i].nsides))
            first[nfirst++] = &kind[i];
    if (narrow_kinds(n, first, nfirst))
        return -1;
    for (int i = 0; i < nops; i++)
        if (like[i] != i)
            memcpy(n->alive[i], n->alive[like[i]], (size_t)n->p->op[i].nconfigs);
    return 0;
}

/* ---- the problem that is left ------------------------------------------------------ */

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
        return topt_search_nomem(n->err);
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
        return topt_search_nomem(n->err);
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
            return topt_search_nomem(n->err);
    }
    return 0;
}

static int init(struct narrowing *n)
{
    const struct topt_search_problem *p = n->p;
    struct topt_arena *a = n->ret->arena = topt_arena_create(0);
    if (!a)
        return topt_search_nomem(n->err);
    n->alive = TOPT_NEW(a, p->nops, char *);
    n->edges = TOPT_NEW(a, p->nops, int *);
    n->nedges = TOPT_NEW(a, p->nops, int);
    if (!n->alive || !n->edges || !n->nedges)
        return topt_search_nomem(n->err);
    for (int e = 0; e < p->nedges; e++) {
        n->nedges[p->edge[e].from]++;
        n->nedges[p->edge[e].to]++;
    }
    for (int i = 0; i < p->nops; i++) {
        n->alive[i] = TOPT_NEW(a, p->op[i].nconfigs, char);
        n->edges[i] = TOPT_NEW(a, n->nedges[i], int);
        if (!n->alive[i] || !n->edges[i])
            return topt_search_nomem(n->err);
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

int topt_config_dominance(const struct topt_search_problem *p,
                          const struct topt_search_options *options,
                          struct reduced_problem *ret, struct topt_error *err)
{
    struct narrowing n = {.p = p, .options = options, .ret = ret, .err = err};
    *ret = (struct reduced_problem){0};
    int rc = init(&n);
    if (!rc && options->threads > 1 &&
        !(n.pool = topt_pool_create(options->threads, err)))
        rc = -1;
    for (int i = 0; i < ROUNDS && !rc; i++) {
        int64_t before = n.removed;
        n.arena = topt_arena_create(0);
        rc = n.arena ? narrow_round(&n) : topt_search_nomem(err);
        topt_arena_destroy(n.arena);
        rc = rc || topt_search_poll(options, err);
        if (n.removed == before)
            break;
    }
    topt_pool_destroy(n.pool);
    ret->work = n.work;
    return rc ? -1 : build(&n);
}

int topt_subproblem_of(const struct topt_search_problem *p, char *const *keep,
                       struct reduced_problem *ret, struct topt_error *err)
{
    struct narrowing n = {.p = p, .ret = ret, .err = err};
    *ret = (struct reduced_problem){0};
    if (init(&n))
        return -1;
    for (int i = 0; i < p->nops; i++)
        if (p->op[i].nconfigs)
            memcpy(n.alive[i], keep[i], (size_t)p->op[i].nconfigs);
    return build(&n);
}

void topt_reduced_fini(struct reduced_problem *n)
{
    topt_arena_destroy(n->arena);
}
