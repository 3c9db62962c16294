/* sample.c - random valid strategies as plans, so that anybody can check what plans
 * promise. */
#include "plan_check.h"
#include "document.h"
#include "grid.h"
#include "planning.h"
#include "free.h"
#include "request.h"
#include "topt_export.h"
#include "topt_question.h"

static json_t *document_of(struct topt_grid_search *s, const struct topt_degrees *v,
                           const struct topt_strategy *st, struct topt_error *err)
{
    struct topt_strategy_cost cost;
    struct topt_costing k;
    struct topt_plan_facts f = {.k = &k,
                                .model = topt_planning_model(s->planning, v),
                                .strategy = st,
                                .cost = &cost,
                                .space = s->space,
                                .alike = s->alike,
                                .degrees = v,
                                .mode = "sample",
                                .algorithm = "random"};
    f.whole = &s->mesh;
    if (topt_grid_costing(s, v, &k, err) || topt_cost_strategy(&k, st, &cost, err) ||
        topt_plan_check(&k, st, cost.memory_bytes, cost.time_ns, &cost, &f.peak_bytes,
                        err))
        return NULL;
    return topt_plan_write(&f, err);
}

/* The problem of a variant, or of the next one that has any strategy. */
static int open_variant(struct topt_grid_search *s, int *at, struct topt_problem **p,
                        struct topt_error *err)
{
    for (int tried = 0; tried < s->ndegrees; tried++) {
        if (!*p || s->ndegrees > 1) {
            topt_problem_destroy(*p);
            *p = NULL;
            if (topt_grid_priced(s, &s->degrees[*at], p, err))
                return -1;
        }
        if (topt_problem_has_choices(*p))
            return 0;
        *at = (*at + 1) % s->ndegrees;
    }
    return topt_fail(err, TOPT_ERR_INFEASIBLE,
                     "no strategy of space %s is on %d nodes of %d GPUs; take another "
                     "--space",
                     topt_space_name(s->space), s->mesh.nodes, s->mesh.per_node);
}

/* Variants take turns; one problem after the other is made for them. */
static int sample_grid(struct topt_planning *m, int nodes, int per_node, int count,
                       uint64_t seed, json_t *into, struct topt_error *err)
{
    struct topt_grid_search s;
    struct topt_problem *p = NULL;
    int rc = -1;
    if (topt_grid_open(&s, m, nodes, per_node, TOPT_GOAL_FRONTIER, err))
        goto out;
    for (int i = 0; i < count; i++) {
        int at = (int)(((uint64_t)i + seed) % (uint64_t)s.ndegrees);
        if (open_variant(&s, &at, &p, err))
            goto out;
        const struct topt_degrees *v = &s.degrees[at];
        struct topt_strategy *st = topt_problem_random(p, &seed);
        json_t *doc = st ? document_of(&s, v, st, err) : NULL;
        topt_strategy_destroy(st);
        if (!doc)
            goto out;
        json_array_append_new(into, doc);
    }
    rc = 0;
out:
    topt_problem_destroy(p);
    topt_grid_close(&s);
    return rc;
}

int topt_plan_sample(const struct topt_request *r, int count, uint64_t seed, json_t **ret,
                     struct topt_error *err)
{
    int nodes = 0, per_node = 0, grids = 0, rc = 0;
    struct topt_planning m;
    struct topt_request any = *r;
    any.algorithm = NULL; /* of the whole space */
    while (topt_next_grid(r->hw, r->gpus, &nodes, &per_node))
        grids++;
    if (!grids)
        return topt_no_grid(r, r->gpus, err);
    if (topt_planning_init(&m, &any, err))
        return -1;
    json_t *all = json_array();
    nodes = per_node = 0;
    for (int i = 0; !rc && topt_next_grid(r->hw, r->gpus, &nodes, &per_node); i++)
        rc = sample_grid(&m, nodes, per_node, count / grids + (i < count % grids),
                         seed + (uint64_t)i, all, err);
    topt_planning_fini(&m);
    if (rc)
        json_decref(all);
    else
        *ret = all;
    return rc;
}
