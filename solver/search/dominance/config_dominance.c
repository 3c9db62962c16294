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
#include "reduced_problem.h"

#include "articulation.h"
#include "dominance_tuning.h"
#include "interning.h"
#include "substitution.h"
#include "table.h"

#include <stdlib.h>
#include <string.h>

/* One end of an edge of an operator. */
struct side {
    const struct topt_table *table;
    int is_from, nother;
    const int32_t *class_of;     /* by configuration */
    char *used;                  /* by class of the other end: may it be taken? */
    struct substitution_side of; /* of operators that are looked at */
};

struct narrowing {
    const struct topt_search_problem *p;
    const struct topt_search_options *options;
    struct reduced_problem *ret;
    struct topt_error *err;
    struct topt_arena *arena; /* of a round */
    char **alive;             /* by operator, by configuration */
    int *first, *edge;        /* edges by operator: edge[first[i]..first[i + 1]) */
    struct topt_interning marks,
        kinds;                 /* of a round: what operators have to choose from */
    struct substitution *swap; /* room for those of an operator's sides */
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
static int beats(struct narrowing *n, const struct topt_search_op *op,
                 const struct side *side, int nsides, int w, int v)
{
    static const struct topt_cost glance = {-TOPT_SUBSTITUTION_MOST - 1,
                                            -TOPT_SUBSTITUTION_MOST - 1};
    topt_wide memory = (topt_wide)op->cost[w].memory - op->cost[v].memory;
    topt_wide time = (topt_wide)op->cost[w].time - op->cost[v].time;
    for (int i = 0; i < nsides; i++) {
        struct substitution *swap = &n->swap[i];
        *swap = topt_substitution_start();
        n->work += topt_substitution(&side[i].of, side[i].class_of[v],
                                     side[i].class_of[w], glance, swap);
        if (swap->seen == TOPT_SUBSTITUTION_NEVER)
            return 0;
        memory += swap->memory;
        time += swap->time;
    }
    for (int i = 0; i < nsides && memory <= 0 && time <= 0; i++) {
        struct substitution *swap = &n->swap[i];
        memory -= swap->memory;
        time -= swap->time;
        n->work +=
            topt_substitution(&side[i].of, side[i].class_of[v], side[i].class_of[w],
                              (struct topt_cost){room(memory), room(time)}, swap);
        if (swap->seen == TOPT_SUBSTITUTION_NEVER)
            return 0;
        memory += swap->memory;
        time += swap->time;
    }
    return memory <= 0 && time <= 0;
}

/* Leave out what is beaten: last to first, so that of equal ones the first stays. */
static void narrow_op(struct narrowing *n, int i, const struct side *side, int nsides)
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
    return 0;
}

/* An operator that others may be like, and its ends of its edges. */
struct kind {
    int op, nsides;
    struct side *side;
};

static int find_kind(struct narrowing *n, int op, struct kind *ret)
{
    int nsides = n->first[op + 1] - n->first[op];
    *ret = (struct kind){op, nsides, TOPT_NEW(n->arena, nsides, struct side)};
    if (!ret->side)
        return topt_search_nomem(n->err);
    for (int k = 0; k < nsides; k++)
        if (find_side(n, op, &n->p->edge[n->edge[n->first[op] + k]], &ret->side[k]))
            return -1;
    return 0;
}

static int affordable(const struct narrowing *n, const struct kind *kind)
{
    int nconfigs = n->p->op[kind->op].nconfigs;
    double pairs = (double)nconfigs * nconfigs;
    for (int i = 0; i < kind->nsides; i++) {
        const struct side *s = &kind->side[i];
        double own = s->is_from ? s->table->from_classes : s->table->to_classes;
        pairs += own * own * s->nother;
    }
    return pairs <= MAX_PAIRS;
}

/* ---- operators that are alike ------------------------------------------------------ */

/* One number for operators that have the same to choose from, and the same around them; -1:
 * memory.  (Costs, tables and classes are told apart by pointers: who shares them says that
 * things are alike.) */
static int number_of_kind(struct narrowing *n, const struct kind *k)
{
    const struct topt_search_op *op = &n->p->op[k->op];
    int64_t *key = TOPT_NEW(n->arena, 3 + 4 * k->nsides, int64_t), *at = key;
    int marks = topt_intern(&n->marks, n->alive[k->op], (size_t)op->nconfigs, NULL);
    if (!key || marks < 0)
        return -1;
    *at++ = (intptr_t)op->cost;
    *at++ = op->nconfigs;
    *at++ = marks;
    for (const struct side *s = k->side; s < k->side + k->nsides; s++) {
        marks = topt_intern(&n->marks, s->used, (size_t)s->nother, NULL);
        if (marks < 0)
            return -1;
        *at++ = (intptr_t)s->table;
        *at++ = (intptr_t)s->class_of;
        *at++ = s->is_from;
        *at++ = marks;
    }
    return topt_intern(&n->kinds, key, (size_t)(at - key) * sizeof *key, NULL);
}

/* Look at one operator of a kind. */
static int narrow_kind(struct narrowing *n, struct kind *k)
{
    struct topt_arena *a = topt_arena_create(0);
    int rc = a && (n->swap = TOPT_NEW(a, k->nsides, struct substitution)) ? 0 : -1;
    for (int i = 0; i < k->nsides && !rc; i++) {
        struct side *s = &k->side[i];
        const struct topt_table *t = s->table;
        struct substitution_lists lists = {(const uint32_t *)t->first, t->alt,
                                           t->from_classes, t->to_classes};
        rc = topt_substitution_side(&s->of, lists, s->is_from, s->used, a);
    }
    if (!rc)
        narrow_op(n, k->op, k->side, k->nsides);
    topt_arena_destroy(a);
    return rc ? topt_search_nomem(n->err) : 0;
}

/* One round over all operators, by what may be taken at its beginning. */
static int narrow_round(struct narrowing *n)
{
    int nops = n->p->nops, *number = TOPT_NEW(n->arena, nops, int), nkinds = 0;
    struct kind *kind = TOPT_NEW(n->arena, nops + 1, struct kind);
    n->marks = n->kinds = (struct topt_interning){.arena = n->arena};
    if (!number || !kind)
        return topt_search_nomem(n->err);
    for (int i = 0; i < nops; i++) {
        if (find_kind(n, i, &kind[nkinds]))
            return -1;
        number[i] = number_of_kind(n, &kind[nkinds]);
        if (number[i] < 0)
            return topt_search_nomem(n->err);
        nkinds = n->kinds.n;
    }
    for (int k = 0; k < nkinds && !topt_search_interrupted(n->options); k++)
        if (affordable(n, &kind[k]) && narrow_kind(n, &kind[k]))
            return -1;
    for (int i = 0; i < nops; i++) {
        int like = kind[number[i]].op;
        if (like != i)
            memcpy(n->alive[i], n->alive[like], (size_t)n->p->op[i].nconfigs);
    }
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
    n->first = TOPT_NEW(a, p->nops + 2, int);
    n->edge = TOPT_NEW(a, 2 * (size_t)p->nedges, int);
    if (!n->alive || !n->first || !n->edge)
        return topt_search_nomem(n->err);
    topt_graph_edges(p, n->first, n->edge);
    for (int i = 0; i < p->nops; i++) {
        n->alive[i] = TOPT_NEW(a, p->op[i].nconfigs, char);
        if (!n->alive[i])
            return topt_search_nomem(n->err);
        memset(n->alive[i], 1, (size_t)p->op[i].nconfigs);
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
    for (int i = 0; i < ROUNDS && !rc; i++) {
        int64_t before = n.removed;
        n.arena = topt_arena_create(0);
        rc = n.arena ? narrow_round(&n) : topt_search_nomem(err);
        topt_arena_destroy(n.arena);
        rc = rc || topt_search_poll(options, err);
        if (n.removed == before)
            break;
    }
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
