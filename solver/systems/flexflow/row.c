/* row.c - what FlexFlow finds, as a row of a comparison. */
#include "topt_flexflow_row.h"

#include "topt_flexflow.h"
#include "topt_text.h"

#include <stdlib.h>
#include <string.h>

enum { TASKS = 8000000, FEWEST = 200, MOST = 5000 };

/* As many proposals as run so many tasks, where nobody says how many. */
static int64_t budget(const struct topt_request *r, const struct topt_flexflow *f)
{
    struct topt_flexflow_facts facts;
    if (r->proposals)
        return r->proposals;
    topt_flexflow_facts(f, &facts);
    int64_t n = TASKS / (facts.tasks ? facts.tasks : 1);
    return n < FEWEST ? FEWEST : n > MOST ? MOST : n;
}

static int is_data_parallel(const struct topt_flexflow *f, int op)
{
    struct topt_soap d = topt_flexflow_data_parallel(f, op);
    return !memcmp(topt_flexflow_get(f, op)->degree, d.degree, sizeof d.degree);
}

static char *strategy_words(const struct topt_flexflow *f, int nops, int devices,
                            const struct topt_flexflow_facts *facts)
{
    struct topt_text t = {0};
    int data = 0;
    for (int i = 0; i < nops; i++)
        data += is_data_parallel(f, i);
    topt_text_add(&t, "data %d", devices);
    if (data < nops)
        topt_text_add(&t, "; %d of %d operators split otherwise", nops - data, nops);
    if (facts->placed)
        topt_text_add(&t, ", %d on part of the devices", facts->placed);
    return t.s;
}

static char *why_words(const struct topt_flexflow_walks *found,
                       const struct topt_flexflow_facts *facts)
{
    struct topt_text t = {0};
    char a[32], b[32];
    topt_text_add(&t, "walked %lld proposals from data parallel, which takes %s",
                  (long long)found->tried, topt_show_ns(found->data_ns, a, sizeof a));
    if (found->random_ns)
        topt_text_add(&t, ", and from a random strategy, which takes %s",
                      topt_show_ns(found->random_ns, b, sizeof b));
    if (facts->placed)
        topt_text_add(&t,
                      "; it has operators run on part of the devices while others run "
                      "elsewhere, which no plan of ours does");
    return t.s;
}

static int put_budget(const struct topt_request *r, const struct topt_flexflow_search *o,
                      const struct topt_flexflow_walks *found, json_t *row)
{
    uint64_t last = o->seed + (found->seeds ? found->seeds - 1 : 0);
    return r->seconds > 0
               ? 0
               : json_object_set_new(row, "budget",
                                     json_sprintf("%lld proposals of seeds %llu to %llu",
                                                  (long long)o->proposals,
                                                  (unsigned long long)o->seed,
                                                  (unsigned long long)last));
}

static int put_row(const struct topt_flexflow *f, const struct topt_costing *k,
                   const struct topt_flexflow_walks *found, int64_t limit, json_t **ret,
                   struct topt_error *err)
{
    struct topt_flexflow_facts facts;
    topt_flexflow_facts(f, &facts);
    char *strategy = strategy_words(f, k->model->nops, k->mesh->devices, &facts),
         *why = why_words(found, &facts);
    *ret = json_pack("{s:b, s:I, s:I, s:I, s:I, s:b, s:I, s:i, s:i, s:s, s:s}",
                     "feasible", facts.memory_bytes <= limit, "memory_bytes",
                     (json_int_t)facts.memory_bytes, "time_ns", (json_int_t)facts.time_ns,
                     "compute_ns", (json_int_t)facts.compute_ns, "network_ns",
                     (json_int_t)(facts.time_ns - facts.compute_ns), "overlaps", 1,
                     "overlapped_ns", (json_int_t)facts.time_ns, "nodes", k->mesh->nodes,
                     "gpus_per_node", k->mesh->per_node, "strategy",
                     strategy ? strategy : "", "why", why ? why : "");
    free(strategy);
    free(why);
    return *ret ? 0 : topt_nomem(err, "the comparison");
}

static int search_on(const struct topt_costing *k, const struct topt_request *r,
                     int64_t limit, json_t **ret, struct topt_error *err)
{
    struct topt_flexflow *f;
    struct topt_flexflow_walks found;
    struct topt_flexflow_search o = {.seed = r->seed ? r->seed : 1, .stop = r->stop};
    if (topt_flexflow_create(k, &topt_flexflow_links, &f, err))
        return -1;
    o.proposals = budget(r, f);
    int rc = topt_flexflow_walk(f, &o, &found, err) ||
             put_row(f, k, &found, limit, ret, err) || put_budget(r, &o, &found, *ret);
    topt_flexflow_destroy(f);
    return rc ? -1 : 0;
}

/* Whole nodes, or a part of one; more devices than it can name have no plan. */
static int answer(const struct topt_request *r, int64_t limit, json_t **ret,
                  struct topt_error *err)
{
    int64_t node = topt_hw_gpus_per_node(r->hw);
    int64_t per_node = r->gpus < node ? r->gpus : node;
    struct topt_settings settings = r->settings;
    struct topt_mesh mesh;
    *ret = NULL;
    if (r->gpus % per_node || r->gpus > TOPT_FLEXFLOW_DEVICES)
        return 0;
    settings.micro_batches = 1;
    if (topt_mesh_init(&mesh, (int)(r->gpus / per_node), (int)per_node, err))
        return -1;
    struct topt_router *router = topt_router_create(r->hw, &mesh);
    struct topt_costing k = {r->model, r->hw, &mesh, &settings, router, r->cancel};
    int rc =
        router ? search_on(&k, r, limit, ret, err) : topt_nomem(err, "the comparison");
    topt_router_destroy(router);
    return rc;
}

static int simulate(const struct topt_costing *k, const struct topt_strategy *s,
                    int64_t *ret_ns, struct topt_error *err)
{
    return topt_flexflow_plan(k, s, &topt_flexflow_links, ret_ns, err);
}

const struct topt_system topt_flexflow_row = {
    .name = "flexflow",
    .searches = "a random walk over splits and devices of single operators (FlexFlow), "
                "by a simulation in which what moves runs beside what computes",
    .leaves_out = "contraction splits, sharding, recomputation, micro-batches, memory",
    .answer = answer,
    .simulate = simulate};
