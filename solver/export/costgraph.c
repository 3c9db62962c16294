/* costgraph.c - a request's frontier as one bare problem, for programs that know no
 * models.
 *
 * A frontier is a union: over device grids of N GPUs, over their variants and over pairs
 * of caps.  Each member of the union is a block of configurations; every operator has
 * them all, one block after the other, and an extra operator "in-flight" charges the
 * block's caps:
 *
 *     in-flight   [ block 0 | block 1 | ... ]   cost: T + W * U
 *     operator    [ c c c   | c c     | ... ]
 *
 * An edge joins configurations of one block only.  A pair that is not allowed costs more
 * in memory and in time than any allowed strategy, so it is never part of a frontier.
 *
 * Members need not have the same graph: where blocks of the model choose alike, what
 * recomputes may set other hubs and edges apart.  Operators are the same by name, edges
 * by their ends and which of several between these they are.  What a member lacks costs
 * it nothing: an operator has one configuration there, an edge one class at both ends.
 * Edges lead from the operator that was seen first to the other, so that there is no
 * circle. */
#include "free.h"
#include "grid.h"
#include "planning.h"
#include "request.h"
#include "topt_array.h"
#include "topt_export.h"
#include "topt_minmax.h"
#include "topt_question.h"
#include "topt_text.h"

#include <stdlib.h>
#include <string.h>

static const int64_t MAX_ENTRIES = 4000000;
static const char IN_FLIGHT[] = "in-flight"; /* the operator that charges caps */

/* A member of the union, copied out of its problem. */
struct block {
    int64_t in_flight;
    struct topt_search_problem p; /* everything owned by the arena */
    /* By operator and edge of the union: the block's, or -1. */
    int *op, *edge;
};

/* An edge of the union. */
struct joint {
    int from, to; /* operators of the union, from < to; but for in-flight's, the last */
    int which;    /* of those between them */
};

struct union_builder {
    const struct topt_request *r;
    struct topt_arena *arena;
    struct block *block;
    int nblocks;
    const char **name; /* of operators */
    struct joint *joint;
    int nops, njoints;
    struct topt_error *err;
};

/* A copy; '*bad' is set without memory. */
static void *copy(struct topt_arena *a, const void *from, size_t n, size_t size, int *bad)
{
    void *p = topt_arena_alloc(a, n, size);
    *bad |= !p;
    if (p && n * size > 0)
        memcpy(p, from, n * size);
    return p;
}

/* The caller's problem changes with the next caps. */
static int copy_problem(struct topt_arena *a, const struct topt_search_problem *p,
                        struct topt_search_problem *ret)
{
    int bad = 0;
    struct topt_search_op *op = copy(a, p->op, (size_t)p->nops, sizeof *op, &bad);
    struct topt_search_edge *edge =
        copy(a, p->edge, (size_t)p->nedges, sizeof *edge, &bad);
    for (int i = 0; !bad && i < p->nops; i++) {
        const struct topt_search_op *o = &p->op[i];
        op[i].cost = copy(a, o->cost, (size_t)o->nconfigs, sizeof *o->cost, &bad);
        op[i].name = copy(a, o->name, strlen(o->name) + 1, 1, &bad);
    }
    for (int i = 0; !bad && i < p->nedges; i++) {
        const struct topt_search_edge *e = &p->edge[i];
        const struct topt_table *t = e->table;
        size_t entries = (size_t)t->from_classes * (size_t)t->to_classes,
               from = (size_t)op[e->from].nconfigs, to = (size_t)op[e->to].nconfigs;
        struct topt_table own = *t;
        own.first = copy(a, t->first, entries + 1, sizeof *t->first, &bad);
        own.alt = copy(a, t->alt, (size_t)t->first[entries], sizeof *t->alt, &bad);
        edge[i].table = copy(a, &own, 1, sizeof own, &bad);
        edge[i].from_class = copy(a, e->from_class, from, sizeof *e->from_class, &bad);
        edge[i].to_class = copy(a, e->to_class, to, sizeof *e->to_class, &bad);
    }
    *ret = (struct topt_search_problem){p->nops, op, p->nedges, edge};
    return bad ? -1 : 0;
}

static int check_entries(const struct union_builder *u, double entries)
{
    return entries <= (double)MAX_ENTRIES
               ? 0
               : topt_fail(
                     u->err, TOPT_ERR_LIMIT,
                     "the cost graph would have at least %.3g edge entries, more than "
                     "%lld: they grow with the square of the numbers of device grids, "
                     "variants and caps; take fewer GPUs or layers, --factors none or "
                     "--space uniform",
                     entries, (long long)MAX_ENTRIES);
}

/* One more block: a problem under caps.  'n' counts configurations by operator, over the
 * blocks of the problem. */
static int add_block(struct union_builder *u, struct topt_problem *p,
                     struct topt_caps caps, double *n)
{
    const struct topt_search_problem *under = topt_capped_problem(p, caps);
    double entries = 0;
    for (int i = 0; i < under->nops; i++)
        n[i] += under->op[i].nconfigs;
    for (int i = 0; i < under->nedges; i++)
        entries += n[under->edge[i].from] * n[under->edge[i].to];
    if (check_entries(u, entries))
        return -1;
    if (TOPT_RESIZE(u->block, u->nblocks + 1))
        return topt_nomem(u->err, "the cost graph");
    struct block *b = &u->block[u->nblocks++];
    b->in_flight = topt_capped_bytes(p, caps);
    return copy_problem(u->arena, under, &b->p) ? topt_nomem(u->err, "the cost graph")
                                                : 0;
}

static int add_blocks(struct union_builder *u, struct topt_problem *p)
{
    struct topt_solutions s = {0};
    struct topt_search_options o = {.memory_limit = u->r->memory_limit, .threads = 1};
    double *n = calloc(
        (size_t)topt_capped_problem(p, (struct topt_caps){-1, -1})->nops + 1, sizeof *n);
    int rc =
        n ? topt_solve_frontier(p, &o, &s, u->err) : topt_nomem(u->err, "the cost graph");
    for (int i = 0; !rc && i < s.ncaps; i++)
        rc = add_block(u, p, s.caps[i], n);
    topt_solutions_fini(&s);
    free(n);
    return rc;
}

static int add_grid(struct union_builder *u, struct topt_planning *m, int nodes,
                    int per_node)
{
    struct topt_grid_search s;
    int rc = topt_grid_open(&s, m, nodes, per_node, TOPT_GOAL_FRONTIER, u->err);
    for (int i = 0; !rc && i < s.ndegrees; i++) {
        struct topt_problem *p = NULL;
        rc = topt_grid_priced(&s, &s.degrees[i], &p, u->err) || add_blocks(u, p);
        topt_problem_destroy(p);
    }
    topt_grid_close(&s);
    return rc;
}

static int add_grids(struct union_builder *u)
{
    int nodes = 0, per_node = 0, rc = 0, grids = 0;
    struct topt_planning m;
    if (topt_planning_init(&m, u->r, u->err))
        return -1;
    for (; !rc && topt_request_grid(u->r, u->r->gpus, &nodes, &per_node); grids++)
        rc = add_grid(u, &m, nodes, per_node);
    topt_planning_fini(&m);
    return rc || grids ? rc : topt_no_grid(u->r, u->r->gpus, u->err);
}

/* ---- what members have in common --------------------------------------------------- */

/* An edge of a block in the union's terms; 'op': the block's operators there. */
static struct joint joint_of(const struct topt_search_problem *p, int edge, const int *op)
{
    const struct topt_search_edge *e = &p->edge[edge];
    int a = op[e->from], b = op[e->to];
    struct joint j = {a < b ? a : b, a < b ? b : a, 0};
    for (int i = 0; i < edge; i++) {
        int x = op[p->edge[i].from], y = op[p->edge[i].to];
        j.which += (x == a && y == b) || (x == b && y == a);
    }
    return j;
}

static int *none_yet(struct topt_arena *a, size_t n)
{
    int *p = topt_arena_alloc(a, n, sizeof *p);
    if (p)
        memset(p, -1, n * sizeof *p);
    return p;
}

static int add_to_union(struct union_builder *u, struct block *b)
{
    /* by operator: its number in the union */
    int *op = topt_arena_alloc(u->arena, (size_t)b->p.nops, sizeof *op);
    if (!op)
        return -1;
    for (int i = 0; i < b->p.nops; i++) {
        op[i] = 0;
        while (op[i] < u->nops && strcmp(u->name[op[i]], b->p.op[i].name))
            op[i]++;
        if (op[i] == u->nops)
            u->name[u->nops++] = b->p.op[i].name;
        b->op[op[i]] = i;
    }
    for (int e = 0; e < b->p.nedges; e++) {
        struct joint j = joint_of(&b->p, e, op);
        int n = 0;
        while (n < u->njoints && memcmp(&u->joint[n], &j, sizeof j))
            n++;
        if (n == u->njoints)
            u->joint[u->njoints++] = j;
        b->edge[n] = e;
    }
    return 0;
}

static int make_union(struct union_builder *u)
{
    size_t nops = 1, nedges = 1; /* at most, with in-flight's */
    for (int b = 0; b < u->nblocks; b++) {
        nops += (size_t)u->block[b].p.nops;
        nedges += (size_t)u->block[b].p.nedges;
    }
    u->name = topt_arena_alloc(u->arena, nops, sizeof *u->name);
    u->joint = topt_arena_alloc(u->arena, nedges, sizeof *u->joint);
    if (!u->name || !u->joint)
        return -1;
    for (int b = 0; b < u->nblocks; b++) {
        struct block *x = &u->block[b];
        x->op = none_yet(u->arena, nops);
        x->edge = none_yet(u->arena, nedges);
        if (!x->op || !x->edge || add_to_union(u, x))
            return -1;
    }
    return 0;
}

static int configs_of(const struct block *b, int op)
{
    return b->op[op] < 0 ? 1 : b->p.op[b->op[op]].nconfigs;
}

/* Does the block's edge lead the other way? */
static int turned(const struct union_builder *u, const struct block *b, int joint)
{
    return b->p.edge[b->edge[joint]].from != b->op[u->joint[joint].from];
}

/* ---- joining ----------------------------------------------------------------------- */

/* Add the worst of 'n' costs, in each way; nonzero where that overflows. */
static int add_worst(struct topt_cost *sum, const struct topt_cost *cost, int n)
{
    struct topt_cost worst = {0, 0};
    for (int i = 0; i < n; i++) {
        worst.memory = topt_max(worst.memory, cost[i].memory);
        worst.time = topt_max(worst.time, cost[i].time);
    }
    return __builtin_add_overflow(sum->memory, worst.memory, &sum->memory) ||
           __builtin_add_overflow(sum->time, worst.time, &sum->time);
}

/* More than any allowed strategy costs, in each way. */
static int forbidding(const struct union_builder *u, struct topt_cost *ret)
{
    struct topt_cost most = {0, 0};
    int bad = 0;
    for (int b = 0; b < u->nblocks; b++) {
        const struct topt_search_problem *p = &u->block[b].p;
        struct topt_cost worst = {u->block[b].in_flight, 0};
        for (int i = 0; i < p->nops; i++)
            bad |= add_worst(&worst, p->op[i].cost, p->op[i].nconfigs);
        for (int i = 0; i < p->nedges; i++) {
            const struct topt_table *t = p->edge[i].table;
            bad |= add_worst(&worst, t->alt, t->first[t->from_classes * t->to_classes]);
        }
        most.memory = topt_max(most.memory, worst.memory);
        most.time = topt_max(most.time, worst.time);
    }
    return bad || __builtin_add_overflow(most.memory, 1, &ret->memory) ||
                   __builtin_add_overflow(most.time, 1, &ret->time)
               ? -1
               : 0;
}

static int all_configs(const struct union_builder *u, int op)
{
    int n = 0;
    for (int b = 0; b < u->nblocks; b++)
        n += configs_of(&u->block[b], op);
    return n;
}

/* Configurations of an operator over all blocks: what a block lacks costs it nothing, but for
 * "in-flight", the last operator, which costs it what its caps do. */
static int join_op(struct union_builder *u, int op, struct topt_search_op *ret)
{
    int n = all_configs(u, op);
    struct topt_cost *cost = topt_arena_alloc(u->arena, (size_t)n, sizeof *cost);
    if (!cost)
        return -1;
    *ret = (struct topt_search_op){u->name[op], n, cost};
    for (int b = 0; b < u->nblocks; b++) {
        const struct block *x = &u->block[b];
        struct topt_cost lacks = {op == u->nops - 1 ? x->in_flight : 0, 0};
        for (int c = 0; c < configs_of(x, op); c++)
            *cost++ = x->op[op] < 0 ? lacks : x->p.op[x->op[op]].cost[c];
    }
    return 0;
}

/* Class c of block b becomes base[b] + c; what a block lacks is of one class. */
static int join_classes(struct union_builder *u, int joint, int is_from, int32_t *base,
                        const int32_t **ret)
{
    int op = is_from ? u->joint[joint].from : u->joint[joint].to;
    int32_t *cls = topt_arena_alloc(u->arena, (size_t)all_configs(u, op), sizeof *cls);
    *ret = cls;
    if (!cls)
        return -1;
    base[0] = 0;
    for (int b = 0; b < u->nblocks; b++) {
        const struct block *x = &u->block[b];
        const struct topt_search_edge *e =
            x->edge[joint] < 0 ? NULL : &x->p.edge[x->edge[joint]];
        /* Is this the end from which the edge comes? */
        int first = e && is_from != turned(u, x, joint);
        const int32_t *of = !e ? NULL : first ? e->from_class : e->to_class;
        for (int c = 0; c < configs_of(x, op); c++)
            *cls++ = base[b] + (of ? of[c] : 0);
        base[b + 1] = base[b] + (!e      ? 1
                                 : first ? e->table->from_classes
                                         : e->table->to_classes);
    }
    return 0;
}

/* Costs of a block between its classes 'i' and 'j'; returns how many. */
static int entry_of(const struct union_builder *u, const struct block *b, int joint,
                    int i, int j, const struct topt_cost **ret)
{
    static const struct topt_cost nothing = {0, 0};
    *ret = &nothing;
    if (b->edge[joint] < 0)
        return 1;
    const struct topt_table *t = b->p.edge[b->edge[joint]].table;
    int entry = turned(u, b, joint) ? j * t->to_classes + i : i * t->to_classes + j;
    *ret = &t->alt[t->first[entry]];
    return t->first[entry + 1] - t->first[entry];
}

static int join_table(struct union_builder *u, int joint, struct topt_cost big,
                      const int32_t *from, const int32_t *to, struct topt_table *ret)
{
    int rows = from[u->nblocks], cols = to[u->nblocks];
    size_t entries = (size_t)rows * (size_t)cols;
    int32_t *first = topt_arena_alloc(u->arena, entries + 1, sizeof *first);
    struct topt_cost *alt = topt_arena_alloc(u->arena, 2 * entries, sizeof *alt);
    if (!first || !alt)
        return -1;
    int32_t n = 0;
    for (int i = 0, b = 0; i < rows; i++) {
        while (i >= from[b + 1])
            b++;
        for (int j = 0; j < cols; j++) {
            const struct topt_cost *at = NULL;
            int inside = j >= to[b] && j < to[b + 1];
            int count =
                inside ? entry_of(u, &u->block[b], joint, i - from[b], j - to[b], &at)
                       : 0;
            for (int a = 0; a < count; a++)
                alt[n++] = at[a];
            if (!count)
                alt[n++] = big;
            first[(size_t)i * (size_t)cols + (size_t)j + 1] = n;
        }
    }
    *ret = (struct topt_table){rows, cols, first, alt};
    return 0;
}

static int join_edge(struct union_builder *u, int joint, struct topt_cost big,
                     struct topt_search_edge *ret)
{
    int32_t *from = topt_arena_alloc(u->arena, (size_t)u->nblocks + 1, sizeof *from);
    int32_t *to = topt_arena_alloc(u->arena, (size_t)u->nblocks + 1, sizeof *to);
    struct topt_table *t = topt_arena_alloc(u->arena, 1, sizeof *t);
    *ret = (struct topt_search_edge){u->joint[joint].from, u->joint[joint].to, t, NULL,
                                     NULL};
    return !from || !to || !t || join_classes(u, joint, 1, from, &ret->from_class) ||
                   join_classes(u, joint, 0, to, &ret->to_class) ||
                   join_table(u, joint, big, from, to, t)
               ? -1
               : 0;
}

static int check_size(const struct union_builder *u)
{
    double entries = 0;
    for (int e = 0; e < u->njoints; e++)
        entries += (double)all_configs(u, u->joint[e].from) *
                   (double)all_configs(u, u->joint[e].to);
    return check_entries(u, entries);
}

static int join(struct union_builder *u, char **ret)
{
    char limit[32];
    if (u->nblocks == 0)
        return topt_fail(
            u->err, TOPT_ERR_INFEASIBLE,
            "no strategy on %lld GPUs fits in %s; give more --memory or --gpus",
            (long long)u->r->gpus,
            topt_show_bytes(u->r->memory_limit, limit, sizeof limit));
    if (make_union(u))
        return topt_nomem(u->err, "the cost graph");
    struct topt_cost big;
    if (check_size(u))
        return -1;
    if (forbidding(u, &big))
        return topt_fail(u->err, TOPT_ERR_LIMIT, "the costs overflow");
    /* An operator and an edge that no block has: one configuration a block, tied to the first
     * operator's of the same block. */
    u->joint[u->njoints++] = (struct joint){u->nops, 0, 0};
    u->name[u->nops++] = IN_FLIGHT;
    struct topt_search_op *op = topt_arena_alloc(u->arena, (size_t)u->nops, sizeof *op);
    struct topt_search_edge *edge =
        topt_arena_alloc(u->arena, (size_t)u->njoints, sizeof *edge);
    int bad = !op || !edge;
    for (int i = 0; i < u->nops && !bad; i++)
        bad = join_op(u, i, &op[i]);
    for (int e = 0; e < u->njoints && !bad; e++)
        bad = join_edge(u, e, big, &edge[e]);
    if (bad)
        return topt_nomem(u->err, "the cost graph");
    struct topt_search_problem all = {u->nops, op, u->njoints, edge};
    return topt_costs_write(&all, ret, u->err);
}

/* Operators of the union are the same by name, so the model's must differ from those made
 * here and in block_folding.c. */
static int check_names(const struct topt_model *m, struct topt_error *err)
{
    for (int i = 0; i < m->nops; i++) {
        const char *name = m->op[i].name;
        if (!strncmp(name, "hub:", 4) || !strncmp(name, "next:", 5) ||
            !strcmp(name, IN_FLIGHT))
            return topt_fail(err, TOPT_ERR_INVAL,
                             "operator '%.60s' has a name that cost graphs give to their "
                             "own ('hub:...', 'next:...', '%s'); rename it",
                             name, IN_FLIGHT);
    }
    return 0;
}

int topt_plan_costgraph(const struct topt_request *r, char **ret_text,
                        struct topt_error *err)
{
    struct union_builder u = {.r = r, .arena = topt_arena_create(0), .err = err};
    int rc = -1;
    if (!u.arena)
        topt_nomem(err, "the cost graph");
    else if (r->gpus < 1)
        topt_fail(err, TOPT_ERR_INVAL,
                  "a cost graph needs a number of GPUs (at least 1)");
    else if (!check_names(r->model, err) && !add_grids(&u))
        rc = join(&u, ret_text);
    free(u.block);
    topt_arena_destroy(u.arena);
    return rc;
}
