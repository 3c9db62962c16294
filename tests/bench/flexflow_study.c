/* flexflow_study.c - FlexFlow's walk and our plan by the same simulation. */
#include "flexflow_study.h"

#include <stdio.h>
#include <stdlib.h>

const struct flexflow_cause flexflow_causes[FLEXFLOW_CAUSES] = {
    {"topt's links", {.shared_links = 1}},
    {"nothing placed", {.shared_links = 1, .all_devices = 1}},
    {"moves not beside computing", {.shared_links = 1, .moves_wait = 1}},
    {"the paper's links", {.shared_links = 0}},
};

static void must(int rc, const struct topt_error *err)
{
    if (rc) {
        fprintf(stderr, "flexflow: %s\n", err->text);
        exit(1);
    }
}

struct walked flexflow_walked(const struct study *s,
                              const struct topt_flexflow_rules *rules, int64_t proposals,
                              uint64_t seed)
{
    struct topt_error err = {0};
    struct topt_flexflow_facts facts;
    struct topt_flexflow_walks found;
    struct topt_flexflow *f = NULL;
    struct topt_flexflow_search o = {
        .seed = seed, .proposals = proposals, .never_stalls = 1};
    struct topt_settings settings = topt_request_settings(&s->r);
    struct topt_mesh mesh;
    int node = topt_hw_gpus_per_node(s->hw);
    must(topt_mesh_init(&mesh, (int)s->r.gpus / node, node, &err), &err);
    struct topt_router *router = topt_router_create(s->hw, &mesh);
    struct topt_costing k = {s->model, s->hw, &mesh, &settings, router, NULL};
    must(!router || topt_flexflow_create(&k, rules, &f, &err), &err);
    topt_flexflow_facts(f, &facts);
    struct walked w = {.data_ms = (double)facts.time_ns / 1e6,
                       .data_mib = (double)facts.moved_bytes / (1 << 20),
                       .compute_ms = (double)facts.compute_ns / 1e6};
    must(topt_flexflow_walk(f, &o, &found, &err), &err);
    topt_flexflow_facts(f, &facts);
    w.best_ms = (double)facts.time_ns / 1e6;
    w.best_mib = (double)facts.moved_bytes / (1 << 20);
    w.placed = facts.placed;
    w.proposals = found.tried;
    w.seeds = found.seeds;
    topt_flexflow_destroy(f);
    topt_router_destroy(router);
    return w;
}

struct priced {
    const struct topt_flexflow_rules *const *rules;
    int n;
    double *ms;
};

static int price(void *ctx, const struct topt_costing *k, const struct topt_strategy *at,
                 struct topt_error *err)
{
    const struct priced *p = ctx;
    for (int i = 0; i < p->n; i++) {
        int64_t ns;
        if (topt_flexflow_plan(k, at, p->rules[i], &ns, err))
            return -1;
        p->ms[i] = (double)ns / 1e6;
    }
    return 0;
}

void flexflow_ours(struct study *s, const struct topt_flexflow_rules *const *rules, int n,
                   double *ret_ms)
{
    study_fastest_told(s, price, &(struct priced){rules, n, ret_ms});
}
