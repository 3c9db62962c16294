/* sample.c - random valid strategies as plans, so that anybody can check what plans promise;
 * and the bare combinatorial problem, so that outside programs can search it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answer.h"
#include "document.h"

static json_t *document_of(const struct topt_shape_search *s,
                           const struct topt_strategy *st, struct topt_error *err)
{
    struct topt_strategy_cost cost;
    struct topt_plan_facts f = {.k = &s->costing,
                                .strategy = st,
                                .cost = &cost,
                                .space = s->space,
                                .mode = "sample",
                                .algorithm = "random"};
    if (topt_cost_strategy(&s->costing, st, &cost, err) ||
        topt_plan_check(&s->costing, st, cost.memory_bytes, cost.time_ns, &cost,
                        &f.peak_bytes, err))
        return NULL;
    return topt_plan_write(&f, err);
}

static int sample_shape(const struct topt_request *r, int nodes, int per_node, int count,
                        uint64_t seed, json_t *into, struct topt_error *err)
{
    struct topt_shape_search s;
    struct topt_problem *p = NULL;
    int rc = -1;
    if (topt_shape_open(&s, r, nodes, per_node, err))
        return -1;
    int cuts = topt_shape_cuts(&s);
    for (int i = 0; i < count; i++) {
        if (!p || cuts > 1) {
            topt_problem_destroy(p);
            p = NULL;
            if (topt_shape_problem(&s, (int)(((uint64_t)i + seed) % (uint64_t)cuts), &p,
                                   err))
                goto out;
        }
        struct topt_strategy *st = topt_problem_random(p, &seed);
        json_t *doc = st ? document_of(&s, st, err) : NULL;
        topt_strategy_destroy(st);
        if (!doc)
            goto out;
        json_array_append_new(into, doc);
    }
    rc = 0;
out:
    topt_problem_destroy(p);
    topt_shape_close(&s);
    return rc;
}

int topt_plan_sample(const struct topt_request *r, int count, uint64_t seed, json_t **ret,
                     struct topt_error *err)
{
    int nodes = 0, per_node = 0, shapes = 0;
    while (topt_next_shape(r->hw, r->gpus, &nodes, &per_node))
        shapes++;
    if (!shapes)
        return topt_fail(err, TOPT_ERR_INVAL, "%lld GPUs can't be had on '%s'",
                         (long long)r->gpus, topt_hw_name(r->hw));
    json_t *all = json_array();
    nodes = 0;
    for (int i = 0; topt_next_shape(r->hw, r->gpus, &nodes, &per_node); i++) {
        int share = count / shapes + (i < count % shapes);
        if (sample_shape(r, nodes, per_node, share, seed + (uint64_t)i, all, err)) {
            json_decref(all);
            return -1;
        }
    }
    *ret = all;
    return 0;
}
