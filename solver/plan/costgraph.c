/* costgraph.c - a request's frontier as one bare problem, for programs that know no models.
 *
 * A frontier is a union: over shapes of N devices, over their variants and over pairs of caps.
 * Each member of the union is a block of configurations; every operator has them all, one
 * block after the other, and an extra operator "in-flight" charges the block's caps:
 *
 *     in-flight   [ block 0 | block 1 | ... ]   cost: T + W * U
 *     operator    [ c c c   | c c     | ... ]
 *
 * An edge joins configurations of one block only.  A pair that is not allowed costs more in
 * memory and in time than any allowed strategy, so it is never part of a frontier. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answer.h"

static const int64_t MAX_ENTRIES = 4000000;

/* A member of the union, copied out of its problem. */
struct block {
    int64_t in_flight;
    struct topt_search_problem p; /* everything owned by the arena */
};

struct union_builder {
    const struct topt_request *r;
    struct topt_arena *arena;
    struct block *block;
    int nblocks;
    struct topt_error *err;
};

static int no_memory(struct topt_error *err)
{
    return topt_fail(err, TOPT_ERR_NOMEM, "no memory for the cost graph");
}

static void *copy(struct topt_arena *a, const void *from, size_t n, size_t size)
{
    void *p = topt_arena_alloc(a, n, size);
    if (p && n * size > 0)
        memcpy(p, from, n * size);
    return p;
}

/* The caller's problem changes with the next caps. */
static int copy_problem(struct topt_arena *a, const struct topt_search_problem *p,
                        struct topt_search_problem *ret)
{
    struct topt_search_op *op = copy(a, p->op, (size_t)p->nops, sizeof *op);
    struct topt_search_edge *edge = copy(a, p->edge, (size_t)p->nedges, sizeof *edge);
    struct topt_table *table = topt_arena_alloc(a, (size_t)p->nedges, sizeof *table);
    if (!op || !edge || !table)
        return -1;
    for (int i = 0; i < p->nops; i++) {
        op[i].cost = copy(a, op[i].cost, (size_t)op[i].nconfigs, sizeof *op[i].cost);
        op[i].name = topt_arena_strdup(a, op[i].name);
        if (!op[i].cost || !op[i].name)
            return -1;
    }
    for (int i = 0; i < p->nedges; i++) {
        const struct topt_table *t = edge[i].table;
        size_t entries = (size_t)t->from_classes * (size_t)t->to_classes;
        table[i] = *t;
        table[i].first = copy(a, t->first, entries + 1, sizeof *t->first);
        table[i].alt = copy(a, t->alt, (size_t)t->first[entries], sizeof *t->alt);
        edge[i].table = &table[i];
        edge[i].from_class =
            copy(a, edge[i].from_class, (size_t)op[edge[i].from].nconfigs,
                 sizeof *edge[i].from_class);
        edge[i].to_class = copy(a, edge[i].to_class, (size_t)op[edge[i].to].nconfigs,
                                sizeof *edge[i].to_class);
        if (!table[i].first || !table[i].alt || !edge[i].from_class || !edge[i].to_class)
            return -1;
    }
    *ret = (struct topt_search_problem){p->nops, op, p->nedges, edge};
    return 0;
}

static int add_blocks(struct union_builder *u, struct topt_problem *p)
{
    struct topt_solutions s = {0};
    struct topt_search_options o = {.memory_limit = u->r->memory_limit, .threads = 1};
    if (topt_problem_frontier(p, &o, 0, &s, u->err))
        return -1;
    int rc = 0;
    for (int i = 0; i < s.ncaps && !rc; i++) {
        struct block *grown = realloc(u->block, ((size_t)u->nblocks + 1) * sizeof *grown);
        if (!grown) {
            rc = no_memory(u->err);
            break;
        }
        u->block = grown;
        struct block *b = &u->block[u->nblocks++];
        b->in_flight =
            s.caps[i].transient + topt_problem_crossing(p) * s.caps[i].crossing;
        if (copy_problem(u->arena,
                         topt_problem_under(p, s.caps[i].transient, s.caps[i].crossing),
                         &b->p))
            rc = no_memory(u->err);
    }
    topt_solutions_fini(&s);
    return rc;
}

static int add_shape(struct union_builder *u, struct topt_micros *m, int nodes,
                     int per_node)
{
    struct topt_shape_search s;
    int rc = topt_shape_open(&s, m, nodes, per_node, u->err);
    for (int i = 0; !rc && i < s.nvariants; i++) {
        struct topt_problem *p = NULL;
        rc = topt_shape_problem(&s, &s.variant[i], &p, u->err) || add_blocks(u, p);
        topt_problem_destroy(p);
    }
    topt_shape_close(&s);
    return rc;
}

static int add_shapes(struct union_builder *u)
{
    int nodes = 0, per_node = 0, rc = 0;
    struct topt_micros m;
    if (topt_micros_init(&m, u->r, u->err))
        return -1;
    while (!rc && topt_next_shape(u->r->hw, u->r->gpus, &nodes, &per_node))
        rc = add_shape(u, &m, nodes, per_node);
    topt_micros_fini(&m);
    return rc;
}

/* ---- joining ---------------------------------------------------------------------------------- */

static int raise(int64_t *sum, int64_t by)
{
    return __builtin_add_overflow(*sum, by, sum);
}

/* More than any allowed strategy costs, in each way. */
static int forbidding(const struct union_builder *u, struct topt_cost *ret)
{
    struct topt_cost big = {1, 1};
    int bad = 0;
    for (int b = 0; b < u->nblocks; b++) {
        const struct topt_search_problem *p = &u->block[b].p;
        struct topt_cost worst = {u->block[b].in_flight, 0};
        for (int i = 0; i < p->nops; i++) {
            struct topt_cost m = {0, 0};
            for (int c = 0; c < p->op[i].nconfigs; c++) {
                m.memory = p->op[i].cost[c].memory > m.memory ? p->op[i].cost[c].memory
                                                              : m.memory;
                m.time = p->op[i].cost[c].time > m.time ? p->op[i].cost[c].time : m.time;
            }
            bad |= raise(&worst.memory, m.memory) | raise(&worst.time, m.time);
        }
        for (int i = 0; i < p->nedges; i++) {
            const struct topt_table *t = p->edge[i].table;
            struct topt_cost m = {0, 0};
            for (int32_t a = 0; a < t->first[t->from_classes * t->to_classes]; a++) {
                m.memory = t->alt[a].memory > m.memory ? t->alt[a].memory : m.memory;
                m.time = t->alt[a].time > m.time ? t->alt[a].time : m.time;
            }
            bad |= raise(&worst.memory, m.memory) | raise(&worst.time, m.time);
        }
        big.memory = worst.memory >= big.memory ? worst.memory + 1 : big.memory;
        big.time = worst.time >= big.time ? worst.time + 1 : big.time;
    }
    *ret = big;
    return bad ? -1 : 0;
}

/* Configurations of an operator over all blocks. */
static int join_op(struct union_builder *u, int op, struct topt_search_op *ret)
{
    int n = 0;
    for (int b = 0; b < u->nblocks; b++)
        n += u->block[b].p.op[op].nconfigs;
    struct topt_cost *cost = topt_arena_alloc(u->arena, (size_t)n, sizeof *cost);
    if (!cost)
        return -1;
    *ret = (struct topt_search_op){u->block[0].p.op[op].name, n, cost};
    for (int b = 0; b < u->nblocks; b++) {
        const struct topt_search_op *o = &u->block[b].p.op[op];
        for (int c = 0; c < o->nconfigs; c++)
            *cost++ = o->cost[c];
    }
    return 0;
}

/* Class c of block b becomes base[b] + c. */
static int join_classes(struct union_builder *u, int edge, int is_from, int32_t *base,
                        const int32_t **ret)
{
    int32_t n = 0, total = 0;
    for (int b = 0; b < u->nblocks; b++) {
        const struct topt_search_edge *e = &u->block[b].p.edge[edge];
        base[b] = total;
        total += is_from ? e->table->from_classes : e->table->to_classes;
        n += u->block[b].p.op[is_from ? e->from : e->to].nconfigs;
    }
    base[u->nblocks] = total;
    int32_t *cls = topt_arena_alloc(u->arena, (size_t)n, sizeof *cls);
    *ret = cls;
    if (!cls)
        return -1;
    for (int b = 0; b < u->nblocks; b++) {
        const struct topt_search_edge *e = &u->block[b].p.edge[edge];
        int configs = u->block[b].p.op[is_from ? e->from : e->to].nconfigs;
        for (int c = 0; c < configs; c++)
            *cls++ = base[b] + (is_from ? e->from_class[c] : e->to_class[c]);
    }
    return 0;
}

static int join_edge(struct union_builder *u, int edge, struct topt_cost big,
                     struct topt_search_edge *ret)
{
    int32_t *from = topt_arena_alloc(u->arena, (size_t)u->nblocks + 1, sizeof *from);
    int32_t *to = topt_arena_alloc(u->arena, (size_t)u->nblocks + 1, sizeof *to);
    struct topt_table *t = topt_arena_alloc(u->arena, 1, sizeof *t);
    *ret = u->block[0].p.edge[edge];
    if (!from || !to || !t || join_classes(u, edge, 1, from, &ret->from_class) ||
        join_classes(u, edge, 0, to, &ret->to_class))
        return -1;
    int rows = from[u->nblocks], cols = to[u->nblocks];
    size_t entries = (size_t)rows * (size_t)cols;
    int32_t *first = topt_arena_alloc(u->arena, entries + 1, sizeof *first);
    struct topt_cost *alt = topt_arena_alloc(u->arena, 2 * entries, sizeof *alt);
    if (!first || !alt)
        return -1;
    int32_t n = 0;
    for (int i = 0, fb = 0; i < rows; i++) {
        while (i >= from[fb + 1])
            fb++;
        const struct topt_table *part = u->block[fb].p.edge[edge].table;
        for (int j = 0; j < cols; j++) {
            int inside = j >= to[fb] && j < to[fb + 1];
            int entry = inside ? (i - from[fb]) * part->to_classes + j - to[fb] : 0;
            int count = inside ? part->first[entry + 1] - part->first[entry] : 0;
            for (int a = 0; a < count; a++)
                alt[n++] = part->alt[part->first[entry] + a];
            if (!count)
                alt[n++] = big;
            first[(size_t)i * (size_t)cols + (size_t)j + 1] = n;
        }
    }
    *t = (struct topt_table){rows, cols, first, alt};
    ret->table = t;
    return 0;
}

/* "in-flight": one configuration a block, tied to the first operator's. */
static int join_in_flight(struct union_builder *u, struct topt_cost big, int node,
                          struct topt_search_op *op, struct topt_search_edge *edge)
{
    int n = 0, blocks = u->nblocks;
    for (int b = 0; b < blocks; b++)
        n += u->block[b].p.op[0].nconfigs;
    struct topt_cost *cost = topt_arena_alloc(u->arena, (size_t)blocks, sizeof *cost);
    struct topt_cost *alt =
        topt_arena_alloc(u->arena, (size_t)(blocks * blocks), sizeof *alt);
    int32_t *first =
        topt_arena_alloc(u->arena, (size_t)(blocks * blocks) + 1, sizeof *first);
    int32_t *from = topt_arena_alloc(u->arena, (size_t)blocks, sizeof *from);
    int32_t *to = topt_arena_alloc(u->arena, (size_t)n, sizeof *to);
    struct topt_table *t = topt_arena_alloc(u->arena, 1, sizeof *t);
    if (!cost || !alt || !first || !from || !to || !t)
        return -1;
    for (int b = 0, k = 0; b < blocks; b++) {
        cost[b] = (struct topt_cost){u->block[b].in_flight, 0};
        from[b] = b;
        for (int c = 0; c < u->block[b].p.op[0].nconfigs; c++)
            to[k++] = b;
        for (int c = 0; c < blocks; c++) {
            alt[b * blocks + c] = b == c ? (struct topt_cost){0, 0} : big;
            first[b * blocks + c + 1] = b * blocks + c + 1;
        }
    }
    *t = (struct topt_table){blocks, blocks, first, alt};
    *op = (struct topt_search_op){"in-flight", blocks, cost};
    *edge = (struct topt_search_edge){node, 0, t, from, to};
    return 0;
}

static int check_size(const struct union_builder *u)
{
    const struct topt_search_problem *p = &u->block[0].p;
    double entries = 0;
    for (int e = 0; e < p->nedges; e++) {
        double from = 0, to = 0;
        for (int b = 0; b < u->nblocks; b++) {
            from += u->block[b].p.op[p->edge[e].from].nconfigs;
            to += u->block[b].p.op[p->edge[e].to].nconfigs;
        }
        entries += from * to;
    }
    return entries <= (double)MAX_ENTRIES
               ? 0
               : topt_fail(
                     u->err, TOPT_ERR_LIMIT,
                     "the cost graph would have %.3g edge entries, more than %lld; take "
                     "fewer GPUs, fewer layers or the uniform space",
                     entries, (long long)MAX_ENTRIES);
}

static int join(struct union_builder *u, char **ret)
{
    if (u->nblocks == 0)
        return topt_fail(u->err, TOPT_ERR_INFEASIBLE, "no strategy fits");
    const struct topt_search_problem *p = &u->block[0].p;
    struct topt_search_op *op =
        topt_arena_alloc(u->arena, (size_t)p->nops + 1, sizeof *op);
    struct topt_search_edge *edge =
        topt_arena_alloc(u->arena, (size_t)p->nedges + 1, sizeof *edge);
    struct topt_cost big;
    if (check_size(u))
        return -1;
    if (forbidding(u, &big))
        return topt_fail(u->err, TOPT_ERR_LIMIT, "the costs overflow");
    int bad = !op || !edge;
    for (int i = 0; i < p->nops && !bad; i++)
        bad = join_op(u, i, &op[i]);
    for (int e = 0; e < p->nedges && !bad; e++)
        bad = join_edge(u, e, big, &edge[e]);
    if (bad || join_in_flight(u, big, p->nops, &op[p->nops], &edge[p->nedges]))
        return no_memory(u->err);
    struct topt_search_problem all = {p->nops + 1, op, p->nedges + 1, edge};
    return topt_costs_write(&all, ret, u->err);
}

int topt_plan_costgraph(const struct topt_request *r, char **ret_text,
                        struct topt_error *err)
{
    struct union_builder u = {.r = r, .arena = topt_arena_create(0), .err = err};
    int rc = -1;
    if (!u.arena)
        no_memory(err);
    else if (r->gpus < 1)
        topt_fail(err, TOPT_ERR_INVAL,
                  "a cost graph needs a number of GPUs (at least 1)");
    else if (!add_shapes(&u))
        rc = join(&u, ret_text);
    free(u.block);
    topt_arena_destroy(u.arena);
    return rc;
}
