/* test_stages.c - pipeline stages: a question's fastest plan is that of all stages, chunks and degrees
 * costed one by one by the plain code, without bounds, order or memo; and what stages hold adds up.
 *
 *     solver_stages [FROM [UNTIL]]    those questions instead of 60 */
#include "best.h"
#include "free.h"
#include "grid.h"
#include "planning.h"
#include "random_model.h"
#include "request.h"
#include "sizes.h"
#include "tap.h"
#include "topt_question.h"

#include <stdlib.h>
#include <string.h>

/* 'ENDS': a question whose model's parameters are most of them those of the embedding and the head. */
enum { ENDS = 76, FIRST = 130, QUESTIONS = TOPT_TEST_SIZE(60) };

/* Positions of samples: of which context ranks are searched, and of which they are not unless asked for. */
enum { LONG = 16384, SHORT = 256 };

/* 'experts': of each feed-forward half, of which a token takes two; 0: it has none.  'apart': queries, keys and values
 * are. */
static struct topt_model *decoder_of(int layers, int hidden, int vocab, int batch,
                                     int experts, int seq, int apart)
{
    char text[500], more[80] = "";
    struct topt_import_options o = {
        .batch = batch, .seq = seq, .apart = apart ? TOPT_APART_HEADS : 0};
    struct topt_error err = {0};
    if (experts)
        snprintf(more, sizeof more,
                 ", \"num_local_experts\": %d, \"num_experts_per_tok\": 2", experts);
    snprintf(text, sizeof text,
             "{\"model_type\": \"%s\", \"hidden_size\": %d, \"intermediate_size\": %d, "
             "\"num_hidden_layers\": %d, \"num_attention_heads\": 8, "
             "\"num_key_value_heads\": 8, \"vocab_size\": %d, "
             "\"max_position_embeddings\": %d%s}",
             experts ? "mixtral" : "llama", hidden, 4 * hidden, layers, vocab, seq, more);
    struct topt_model *m = topt_model_import(text, strlen(text), "config.json", &o, &err);
    if (!m)
        printf("# %s\n", err.text);
    return m;
}

static struct topt_model *decoder(int layers, int hidden, int vocab, int batch,
                                  int experts)
{
    return decoder_of(layers, hidden, vocab, batch, experts, SHORT, 0);
}

/* The fastest within a limit, over everything that is costed. */
struct seen {
    const struct topt_request *r;
    int64_t limit, time_ns, memory_bytes;
    int64_t first_ns; /* of what recomputes the first layers of chunks alone */
    int costed, bad, recomputes, searched; /* 'searched': context ranks are */
};

/* Those of a strategy that recomputes, where layers are cut as the cost cuts them. */
static void see_first(struct seen *x, const struct topt_costing *k,
                      const struct topt_strategy *plan, struct topt_stage_costs cut)
{
    for (int n = 1; n < 8; n++) /* of at most seven layers */
        for (int tries = 0; tries < 3; tries++) {
            struct topt_strategy *s = topt_strategy_copy(plan);
            struct topt_strategy_cost c = {.memory_bytes = 0};
            if (!s)
                abort(); /* no memory */
            topt_recompute_first(k->model, cut.layers, n, s);
            x->bad |= topt_cost_strategy(k, s, &c, NULL) != 0;
            topt_strategy_destroy(s);
            int same = !memcmp(c.stage.layers, cut.layers, sizeof cut.layers);
            cut = c.stage;
            if (!same)
                continue;
            if (c.memory_bytes <= x->limit && (!x->first_ns || c.time_ns < x->first_ns))
                x->first_ns = c.time_ns;
            break;
        }
}

/* Is nothing that fits refused before its operators are priced?  'grid': of one stage's devices. */
static int is_bounded(const struct topt_grid_search *grid, const struct topt_degrees *d,
                      int64_t memory_bytes)
{
    double kept = topt_planning_kept(grid->planning, d);
    return memory_bytes >=
           topt_grid_least_stage_bytes(
               grid, d, (int64_t)(kept / (double)d->micro_batches / grid->mesh.devices));
}

static void see(struct seen *x, struct topt_grid_search *s,
                const struct topt_grid_search *grid, const struct topt_degrees *d,
                const struct topt_strategy *plan, int first)
{
    struct topt_costing k;
    struct topt_strategy_cost c;
    if (topt_grid_costing(s, d, &k, NULL) || topt_cost_strategy(&k, plan, &c, NULL)) {
        x->bad = 1;
        return;
    }
    x->costed++;
    int64_t most = 0, layers = 0;
    for (int i = 0; i < c.stage.stages; i++)
        most = c.stage.bytes[i] > most ? c.stage.bytes[i] : most;
    for (int i = 0; i < c.stage.chunks; i++)
        layers += c.stage.layers[i];
    if (d->stages > 1 &&
        (most != c.memory_bytes || layers != s->planning->layers ||
         c.stage.stages != d->stages || !is_bounded(grid, d, c.memory_bytes)))
        x->bad = 1;
    if (c.memory_bytes <= x->limit && (!x->time_ns || c.time_ns < x->time_ns)) {
        x->time_ns = c.time_ns;
        x->memory_bytes = c.memory_bytes;
        x->recomputes = d->recompute;
    }
    if (first && d->recompute && x->r->framework->recompute_first && x->limit < INT64_MAX)
        see_first(x, &k, plan, c.stage);
}

/* The strategies of one choice of degrees on a grid: all of its frontier where it has no stages, else the
 * fastest and the one that needs least. */
static void see_degrees(struct seen *x, struct topt_grid_search *s,
                        struct topt_grid_search *grid, const struct topt_degrees *of,
                        const struct topt_degrees *staged)
{
    struct topt_search_options o = {.threads = 1};
    struct topt_solutions all = {0};
    struct topt_problem *p = NULL;
    struct topt_degrees d = *of;
    int stages = staged->stages;
    if (x->searched && d.context > 1 &&
        d.data * d.micro_batches < x->r->model->batch) /* more than one sample */
        return;
    d.stages = stages;
    d.virtual_stages = staged->virtual_stages;
    d.order = staged->order;
    if (topt_grid_priced(grid, of, &p, NULL))
        x->bad = 1;
    if (p && topt_problem_has_choices(p)) {
        x->bad |= topt_solve_frontier(p, &o, &all, NULL) != 0;
        for (int i = 0; i < all.n; i++)
            if (stages == 1 || i == 0 || i == all.n - 1)
                see(x, s, grid, &d, all.at[i].strategy, stages > 1 && i == all.n - 1);
    }
    topt_solutions_fini(&all);
    topt_problem_destroy(p);
}

/* With each number of chunks and each schedule that the framework has of it. */
static void see_schedules(struct seen *x, struct topt_grid_search *s,
                          struct topt_grid_search *grid, const struct topt_degrees *of,
                          int stages)
{
    struct topt_degrees d = *of;
    d.stages = stages;
    for (d.virtual_stages = 1; d.stages * d.virtual_stages <= s->planning->most_chunks;
         d.virtual_stages++) {
        int orders = topt_planning_orders(s->planning, &d);
        for (int row = 0; orders > 0 && row < TOPT_ORDERS; row++) {
            d.order = (enum topt_order_row)row;
            if (orders >> row & 1)
                see_degrees(x, s, grid, of, &d);
        }
    }
}

static void see_stages(struct seen *x, struct topt_grid_search *s, int stages)
{
    int levels = x->r->framework->pipeline_levels;
    struct topt_grid_search *grid = s;
    if (stages > 1 && (topt_grid_stage(s, stages, &grid, NULL) || !grid))
        return;
    for (int i = 0; i < grid->ndegrees; i++) {
        const struct topt_degrees *d = &grid->degrees[i];
        if (stages == 1)
            see_degrees(x, s, grid, d, d);
        else if (d->micro_batches >= 2 && levels >> d->level & 1 &&
                 d->recompute <= TOPT_MODULE_WHOLE) /* modules are asked for there */
            see_schedules(x, s, grid, d, stages);
    }
}

static void see_all(struct seen *x, struct topt_planning *m, int64_t gpus)
{
    int nodes = 0, per_node = 0;
    while (topt_request_grid(x->r, gpus, &nodes, &per_node)) {
        struct topt_grid_search s;
        if (topt_grid_open(&s, m, nodes, per_node, TOPT_GOAL_FASTEST, NULL))
            x->bad = 1;
        for (int stages = 1; stages <= m->most_chunks && stages <= gpus; stages++)
            if (x->r->pipeline ? stages == x->r->pipeline
                               : stages == 1 || topt_planning_stages(m, stages))
                see_stages(x, &s, stages);
        topt_grid_close(&s);
    }
}

/* Each number of context ranks that is searched, as one that is asked for, with one sample at a time. */
static void see_contexts(struct seen *x, struct topt_planning *m, int64_t gpus)
{
    struct topt_request r = *m->request;
    if (r.context || r.model->seq == SHORT) {
        see_all(x, m, gpus);
        return;
    }
    x->r = &r;
    x->searched = 1;
    for (r.context = 1; r.context <= 4; r.context *= 2) {
        struct topt_planning own;
        x->bad |= topt_planning_init(&own, &r, NULL) != 0;
        see_all(x, &own, gpus);
        topt_planning_fini(&own);
    }
    x->r = m->request;
}

/* What is found of random questions. */
struct found {
    int same, staged, shared_out, first, lean, context;
};

/* The devices of a cluster, with so many usable bytes; NULL: failed. */
static struct topt_hw *with_memory(const struct topt_hw *hw, int64_t bytes)
{
    json_t *doc = topt_hw_to_json(hw);
    int64_t reserve = topt_hw_capacity_bytes(hw) - topt_hw_memory_bytes(hw);
    json_object_set_new(json_object_get(doc, "device"), "memory_bytes",
                        json_integer(bytes + reserve));
    struct topt_hw *ret = topt_hw_from_json(doc, NULL);
    json_decref(doc);
    return ret;
}

/* Are an answer's layers cut otherwise than where devices have more memory? */
static int is_lean(struct topt_planning *m, const struct topt_best *b,
                   const struct topt_hw *hw)
{
    struct topt_grid_search s;
    struct topt_costing k;
    struct topt_strategy_cost small, large;
    int ret = 0;
    if (!b->found ||
        topt_grid_open(&s, m, b->mesh.nodes, b->mesh.per_node, TOPT_GOAL_FASTEST, NULL))
        return 0;
    if (!topt_grid_costing(&s, &b->solution.degrees, &k, NULL) &&
        !topt_cost_strategy(&k, b->solution.strategy, &small, NULL)) {
        k.hw = hw;
        ret = !topt_cost_strategy(&k, b->solution.strategy, &large, NULL) &&
              memcmp(small.stage.layers, large.stage.layers, sizeof small.stage.layers);
    }
    topt_grid_close(&s);
    return ret;
}

static void ask(uint64_t number, const struct topt_hw *hw, struct found *ret)
{
    static const char *const frameworks[] = {"megatron", "torchtitan"};
    static const int gpus[] = {2, 4, 8, 16};
    uint64_t seed = number * 7919 + 1;
    struct topt_request r;
    struct topt_planning m;
    struct topt_best b = {.found = 0};
    struct topt_error err = {0};
    int experts = number % 2 ? 2 << random_below(&seed, 4) : 0;
    /* Some have ends that weigh little, and devices that can't hold the fastest cut. */
    int deep = number % 4 == 2, seq = number % 5 || deep ? SHORT : LONG;
    struct topt_model *model, *apart = NULL;
    if (deep)
        model = decoder(5 + random_below(&seed, 7), 64 << random_below(&seed, 2), 256,
                        32 << random_below(&seed, 2), 0);
    else {
        int layers = 2 + random_below(&seed, 6), hidden = 64 << random_below(&seed, 4);
        int vocab = 1000 << random_below(&seed, 6), batch = 4 << random_below(&seed, 3);
        model = decoder_of(layers, hidden, vocab, batch, experts, seq, 0);
        if (seq == LONG)
            apart = decoder_of(layers, hidden, vocab, batch, experts, seq, 1);
    }
    topt_request_init(&r);
    r.model = model;
    r.apart = apart;
    r.hw = hw;
    r.threads = 1;
    r.pipeline = deep ? 4 : random_below(&seed, 4) ? 0 : 2; /* asked for, or searched */
    r.context = number % 5 != 1 || deep ? 0 : 2;
    r.fixed.micro_batch = deep; /* of one sample: many are in flight */
    r.fixed.any |= deep;
    if (!model ||
        topt_framework_find(frameworks[random_below(&seed, 2)], &r.framework, &err) ||
        topt_request_complete(&r, &err) || topt_planning_init(&m, &r, &err)) {
        printf("# %s\n", err.text);
        topt_model_destroy(model);
        topt_model_destroy(apart);
        return;
    }
    int64_t n =
        deep ? r.pipeline << random_below(&seed, 2) : gpus[random_below(&seed, 4)];
    struct topt_hw *small = NULL;
    struct seen x = {.r = &r, .limit = INT64_MAX};
    see_contexts(&x, &m, n);
    if (deep || random_below(&seed, 3)) { /* a limit that the fastest may not keep */
        x.limit = x.memory_bytes - x.memory_bytes / (2 + random_below(&seed, 20));
        x.time_ns = 0;
        if (deep && x.memory_bytes) {
            x.limit = x.memory_bytes - x.memory_bytes / (8 << random_below(&seed, 5));
            small = with_memory(hw, x.limit);
            r.hw = small ? small : hw;
            x.bad |= !small;
            topt_planning_fini(&m);
            x.bad |= topt_planning_init(&m, &r, &err) != 0;
        }
        see_contexts(&x, &m, n);
    }
    if (x.recomputes && x.first_ns && x.first_ns < x.time_ns) {
        x.time_ns = x.first_ns;
        ret->first++;
    }
    int rc = topt_count_solve(&m, n, x.limit == INT64_MAX ? 0 : x.limit, 0,
                              TOPT_GOAL_FASTEST, &b, &err);
    int same = !rc && !x.bad &&
               (b.found ? b.tight_ns ? b.tight_ns : b.solution.time_ns : 0) == x.time_ns;
    ret->same += same;
    ret->staged += b.found && b.solution.degrees.stages > 1;
    ret->lean += small && is_lean(&m, &b, hw);
    ret->shared_out += b.found && b.solution.degrees.expert > 1;
    ret->context += b.found && b.solution.degrees.context > 1 && !r.context;
    if (!same)
        printf(
            "# question %d, %s, %lld GPUs: %lld ns, %lld one by one (%d costed)%s %s\n",
            (int)number, r.framework->name, (long long)n,
            (long long)(b.found ? b.solution.time_ns : 0), (long long)x.time_ns, x.costed,
            x.bad ? ", bad" : "", err.text);
    topt_best_fini(&b);
    topt_planning_fini(&m);
    topt_hw_destroy(small);
    topt_model_destroy(model);
    topt_model_destroy(apart);
}

/* The layers of each chunk where as many stages are asked for: 0 for what has none. */
static void cut_into(const struct topt_hw *hw, const char *framework, int stages,
                     const char *want)
{
    struct topt_request r;
    struct topt_planning m;
    struct topt_best b = {.found = 0};
    struct topt_error err = {0};
    struct topt_model *model = decoder(3, 64, 32000, 16, 0);
    struct topt_costing k;
    struct topt_grid_search s;
    struct topt_strategy_cost c = {.memory_bytes = 0};
    char got[80] = "";
    topt_request_init(&r);
    r.model = model;
    r.hw = hw;
    r.threads = 1;
    r.pipeline = stages;
    if (topt_framework_find(framework, &r.framework, &err) ||
        topt_request_complete(&r, &err) || topt_planning_init(&m, &r, &err)) {
        snprintf(got, sizeof got, "%.70s", err.text);
        ok(!strcmp(got, want), "%s: 3 layers over %d stages: %s", framework, stages, got);
        topt_model_destroy(model);
        return;
    }
    if (topt_count_solve(&m, stages, 0, 0, TOPT_GOAL_FASTEST, &b, &err) || !b.found ||
        topt_grid_open(&s, &m, 1, stages, TOPT_GOAL_FASTEST, &err) ||
        topt_grid_costing(&s, &b.solution.degrees, &k, &err) ||
        topt_cost_strategy(&k, b.solution.strategy, &c, &err))
        snprintf(got, sizeof got, "%.70s", err.text);
    for (int i = 0; i < c.stage.chunks; i++)
        snprintf(got + strlen(got), sizeof got - strlen(got), "%d ", c.stage.layers[i]);
    ok(!strcmp(got, want), "%s: 3 layers over %d stages: %s", framework, stages, got);
    topt_grid_close(&s);
    topt_best_fini(&b);
    topt_planning_fini(&m);
    topt_model_destroy(model);
}

/* Embedding and head may have stages of their own, and Megatron-LM takes one with nothing. */
static void check_ends(const struct topt_hw *hw)
{
    cut_into(hw, "torchtitan", 4, "1 1 1 0 ");
    cut_into(hw, "torchtitan", 5, "0 1 1 1 0 ");
    cut_into(hw, "megatron", 5, "0 1 1 1 0 ");
    cut_into(hw, "megatron", 6, "0 1 1 1 0 0 ");
    cut_into(hw, "torchtitan", 6, "");
    cut_into(hw, "deepspeed", 4, "");
}

int main(int argc, char **argv)
{
    struct topt_hw *hw = topt_hw_load("a100-40-dgx", NULL);
    struct found n = {0};
    int from = argc > 1 ? atoi(argv[1]) : FIRST;
    int until = argc > 2 ? atoi(argv[2]) : from + QUESTIONS;
    int all = until - from;
    for (int i = from; i < until; i++)
        ask((uint64_t)i, hw, &n);
    if (argc == 1)
        ask(ENDS, hw, &n);
    all += argc == 1;
    is_int(n.same, all, "questions whose fastest plan is the fastest one by one");
    ok(n.staged >= all / 10, "%d of them have pipeline stages", n.staged);
    ok(all < 60 || n.first > 0, "%d recompute the first layers of each chunk alone",
       n.first);
    ok(all < 60 || n.lean > 0, "%d are cut for devices that can't hold the fastest cut",
       n.lean);
    ok(all < 60 || n.context > 0, "%d have context ranks unasked", n.context);
    ok(n.shared_out >= all / 20, "%d share experts out", n.shared_out);
    check_ends(hw);
    topt_hw_destroy(hw);
    return done_testing();
}
