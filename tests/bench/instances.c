/* instances.c - generated problems; the shapes are rows of a table: the edges inside a block,
 * where operator 'n' of a block of n is the first of the next, and FIRST and LAST are of all. */
#include "instances.h"
#include "../search/random_problem.h"

#include <stdio.h>

enum { FIRST = -1, LAST = -2 };

struct arc {
    int from, to;
};

static const struct shape_row {
    const char *name;
    int nops, narcs;
    struct arc arc[8];
} shapes[] = {
    {"chain", 1, 1, {{0, 1}}},
    {"forkjoin", 5, 7, {{0, 1}, {0, 2}, {0, 3}, {1, 4}, {2, 4}, {3, 4}, {4, 5}}},
    {"comb", 2, 2, {{0, 1}, {0, 2}}},
    {"star", 1, 1, {{FIRST, 0}}},
    {"isolated", 1, 0, {{0, 0}}},
    {"branches", 1, 2, {{FIRST, 0}, {0, LAST}}},
    {"parallel", 1, 1, {{FIRST, LAST}}},
    {"residual", 7, 8, {{0, 1}, {1, 2}, {2, 3}, {0, 3}, {3, 4}, {4, 5}, {5, 6}, {3, 6}}},
};

struct instance {
    struct topt_search_problem p;
    struct topt_arena *a;
    struct rng rng;
    struct instance_spec spec;
    int32_t *self; /* every configuration its own class */
};

static int64_t up_to(struct instance *in, int64_t n)
{
    return (int64_t)(rng_next(&in->rng) % (uint64_t)(n + 1));
}

/* Memory and time of something that is split 'way' ways of 'ways'. */
static struct topt_cost split_cost(struct instance *in, int way, int ways)
{
    int64_t m = in->spec.range / (1 + way), t = in->spec.range / (1 + ways - way);
    return (struct topt_cost){m / 2 + up_to(in, m / 2), t / 2 + up_to(in, t / 2)};
}

static struct topt_cost cost(struct instance *in, int way)
{
    if (in->spec.costs && !strcmp(in->spec.costs, "split"))
        return split_cost(in, way, in->spec.configs);
    int64_t m = up_to(in, in->spec.range), t = up_to(in, in->spec.range);
    return (struct topt_cost){m, t};
}

static const struct topt_cost *op_costs(struct instance *in)
{
    struct topt_cost *c = TOPT_NEW(in->a, in->spec.configs, struct topt_cost);
    for (int i = 0; c && i < in->spec.configs; i++)
        c[i] = cost(in, i);
    return c;
}

/* Moving between configurations far apart takes longer; to stay costs nothing. */
static const struct topt_table *edge_table(struct instance *in)
{
    int k = in->spec.configs, n = k * k;
    int split = in->spec.costs && !strcmp(in->spec.costs, "split");
    struct topt_table *t = TOPT_NEW(in->a, 1, struct topt_table);
    int32_t *first = TOPT_NEW(in->a, n + 1, int32_t);
    struct topt_cost *alt = TOPT_NEW(in->a, n, struct topt_cost);
    if (!t || !first || !alt)
        return NULL;
    for (int e = 0; e < n; e++) {
        first[e + 1] = e + 1;
        alt[e] = split && e % k == e / k ? (struct topt_cost){0, 0} : cost(in, k / 2);
        if (split)
            alt[e].memory = 0;
    }
    *t = (struct topt_table){k, k, first, alt};
    return t;
}

static int operator_at(const struct instance *in, const struct shape_row *s, int block,
                       int at)
{
    if (at == FIRST)
        return 0;
    return at == LAST ? in->spec.size * s->nops - 1 : block * s->nops + at;
}

static int fill(struct instance *in, const struct shape_row *s)
{
    int nops = in->spec.size * s->nops, nedges = 0;
    struct topt_search_op *op = TOPT_NEW(in->a, nops, struct topt_search_op);
    struct topt_search_edge *edge =
        TOPT_NEW(in->a, in->spec.size * s->narcs, struct topt_search_edge);
    char(*name)[16] = topt_arena_alloc(in->a, (size_t)nops, sizeof *name);
    if (!op || !edge || !name)
        return -1;
    for (int i = 0; i < nops; i++) {
        int first = !in->spec.alike || i < s->nops;
        snprintf(name[i], sizeof name[i], "op%d", i);
        op[i] = (struct topt_search_op){name[i], in->spec.configs,
                                        first ? op_costs(in) : op[i - s->nops].cost};
    }
    for (int b = 0; b < in->spec.size; b++)
        for (int k = 0; k < s->narcs; k++) {
            int from = operator_at(in, s, b, s->arc[k].from);
            int to = operator_at(in, s, b, s->arc[k].to);
            if (to >= nops || from >= to)
                continue;
            int again = nedges >= s->narcs && in->spec.alike;
            edge[nedges] = (struct topt_search_edge){
                from, to, again ? edge[k].table : edge_table(in), in->self, in->self};
            if (!edge[nedges++].table)
                return -1;
        }
    in->p = (struct topt_search_problem){nops, op, nedges, edge};
    return 0;
}

struct instance *instance_make(const struct instance_spec *spec)
{
    const struct shape_row *s = NULL;
    struct instance *in = calloc(1, sizeof *in);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        if (!strcmp(shapes[i].name, spec->shape))
            s = &shapes[i];
    if (!in || !s)
        goto fail;
    in->spec = *spec;
    in->spec.range = spec->range ? spec->range : 1000000;
    in->rng.s = spec->seed;
    in->a = topt_arena_create(0);
    if (!in->a || !(in->self = TOPT_NEW(in->a, spec->configs, int32_t)))
        goto fail;
    for (int i = 0; i < spec->configs; i++)
        in->self[i] = i;
    if (!fill(in, s))
        return in;
fail:
    instance_free(in);
    return NULL;
}

const struct topt_search_problem *instance_problem(const struct instance *i)
{
    return &i->p;
}

void instance_free(struct instance *i)
{
    if (i)
        topt_arena_destroy(i->a);
    free(i);
}
