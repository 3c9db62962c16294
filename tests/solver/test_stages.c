/* test_stages.c - pipeline stages: a question's fastest plan is that of all stages, chunks and degrees
 * costed one by one by the plain code, without bounds, order or memo; and what stages hold adds up.  Of groups of
 * unlike devices also: how good cuts are beside all others.
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

/* 'experts': of each feed-forward half, of which a token takes two; 0: it has none.  'mtp': modules that predict
 * further tokens.  'apart': queries, keys and values are. */
static struct topt_model *decoder_of(int layers, int hidden, int vocab, int batch,
                                     int experts, int mtp, int seq, int apart)
{
    char text[500], more[80] = "";
    struct topt_import_options o = {
        .batch = batch, .seq = seq, .mtp = mtp, .apart = apart ? TOPT_APART_HEADS : 0};
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
                                  int experts, int mtp)
{
    return decoder_of(layers, hidden, vocab, batch, experts, mtp, SHORT, 0);
}

/* ---- groups of unlike devices --------------------------------------------------------- */

/* Two groups of eight, in this or the other order, the second of which has so much of its memory; NULL: failed. */
static struct topt_hw *two_groups(int reverse, double share)
{
    struct topt_hw *hw = topt_hw_load("a100-v100", NULL);
    json_t *doc = topt_hw_to_json(hw), *groups = json_object_get(doc, "groups");
    json_t *first = json_incref(json_array_get(groups, 0));
    json_t *device = json_object_get(json_array_get(groups, 1), "device");
    json_int_t bytes = json_integer_value(json_object_get(device, "memory_bytes"));
    json_int_t kept = json_integer_value(json_object_get(device, "reserve_bytes"));
    json_object_set_new(
        device, "memory_bytes",
        json_integer(kept + (json_int_t)(share * (double)(bytes - kept))));
    json_array_remove(groups, 0);
    json_array_insert_new(groups, reverse ? 1 : 0, first);
    topt_hw_destroy(hw);
    hw = topt_hw_from_json(doc, NULL);
    json_decref(doc);
    return hw;
}

static int stages_fit(const struct topt_hw *hw, const struct topt_stage_costs *c)
{
    int fit = 1;
    for (int i = 0; i < c->stages; i++)
        fit &= c->bytes[i] <= topt_hw_memory_bytes(topt_hw_group(hw, c->group[i]));
    return fit;
}

/* ---- everything, one by one ----------------------------------------------------------- */

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
            const struct topt_hw *groups = x->r->unlike.groups;
            if (c.memory_bytes <= x->limit && (!groups || stages_fit(groups, &c.stage)) &&
                (!x->first_ns || c.time_ns < x->first_ns))
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
               grid, d, topt_grid_stays_bytes(grid, d),
               (int64_t)(kept / (double)d->micro_batches / grid->mesh.devices),
               INT64_MAX);
}

/* Is no bound by units above the cost, where layers are cut so; and are any beyond a limit of 1 ns? */
static int units_bound(const struct topt_grid_search *s, const struct topt_costing *k,
                       const struct topt_strategy *plan,
                       const struct topt_strategy_cost *c)
{
    const struct topt_stage_units *u = &s->planning->units;
    struct topt_unit_sums *unit = calloc((size_t)u->n + 1, sizeof *unit);
    struct topt_evaluator *a = topt_evaluator_create(k, 0, NULL);
    struct topt_strategy_cost least, none;
    int ret = unit && a && !topt_evaluate_units(a, plan, unit, NULL) &&
              topt_stages_exceed(k, u, unit, 0, 0, &least, NULL) == 0 &&
              topt_stages_exceed(k, u, unit, 0, 1, &none, NULL) == 1 &&
              least.time_ns > 1 &&
              (memcmp(least.stage.layers, c->stage.layers, sizeof c->stage.layers) ||
               (least.memory_bytes <= c->memory_bytes && least.time_ns <= c->time_ns));
    topt_evaluator_destroy(a);
    free(unit);
    return ret;
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
    const struct topt_hw *groups = x->r->unlike.groups;
    if (d->stages > 1 && !groups &&
        (most != c.memory_bytes || layers != s->planning->layers ||
         c.stage.stages != d->stages || !is_bounded(grid, d, c.memory_bytes) ||
         !units_bound(s, &k, plan, &c)))
        x->bad = 1;
    if (c.memory_bytes <= x->limit && (!groups || stages_fit(groups, &c.stage)) &&
        (!x->time_ns || c.time_ns < x->time_ns)) {
        x->time_ns = c.time_ns;
        x->memory_bytes = c.memory_bytes;
        x->recomputes = d->recompute;
    }
    if (first && d->recompute && x->r->framework->recompute_first &&
        (x->limit < INT64_MAX || groups))
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
                               : (stages == 1 && !x->r->unlike.groups) ||
                                     topt_planning_stages(m, stages))
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
        if (r.context == 1 || own.apart) /* else the model can't be split so */
            see_all(x, &own, gpus);
        topt_planning_fini(&own);
    }
    x->r = m->request;
}

/* What is found of random questions. */
struct found {
    int same, staged, shared_out, first, lean, further, context;
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

/* 'groups': two of eight devices, with stages on them; NULL: devices are alike. */
static void ask(uint64_t number, const struct topt_hw *hw, const struct topt_hw *groups,
                struct found *ret)
{
    static const char *const frameworks[] = {"megatron", "torchtitan", "primus"};
    static const int gpus[] = {2, 4, 8, 16};
    uint64_t seed = number * 7919 + 1;
    struct topt_request r;
    struct topt_planning m;
    struct topt_best b = {.found = 0};
    struct topt_error err = {0};
    int experts = number % 2 ? 2 << random_below(&seed, 4) : 0;
    /* Some have ends that weigh little, and devices that can't hold the fastest cut. */
    int deep = number % 4 == 2 && !groups;
    int mtp = number % 4 < 2 && number % 3 == 0 && !groups;
    int seq = number % 5 || deep || groups ? SHORT : LONG;
    struct topt_model *model, *apart = NULL;
    if (deep)
        model = decoder(5 + random_below(&seed, 7), 64 << random_below(&seed, 2), 256,
                        32 << random_below(&seed, 2), 0, 0);
    else {
        int layers = 2 + random_below(&seed, 6), hidden = 64 << random_below(&seed, 4);
        int vocab = 1000 << random_below(&seed, 6), batch = 4 << random_below(&seed, 3);
        model = decoder_of(layers, hidden, vocab, batch, experts, mtp, seq, 0);
        if (number % 5 < 2) /* context ranks are searched, or asked for */
            apart = decoder_of(layers, hidden, vocab, batch, experts, mtp, seq, 1);
    }
    topt_request_init(&r);
    r.model = model;
    r.apart = apart;
    r.hw = hw;
    r.threads = 1;
    r.pipeline = deep ? 4 : random_below(&seed, 4) ? 0 : 2; /* asked for, or searched */
    r.context = number % 5 != 1 || deep ? 0 : 2;
    r.unlike.groups = groups;
    r.counts = groups ? TOPT_COUNTS_WHOLE : r.counts;
    r.fixed.micro_batch = deep; /* of one sample: many are in flight */
    r.fixed.any |= deep;
    if (!model ||
        topt_framework_find(frameworks[mtp ? 0 : random_below(&seed, 3)], &r.framework,
                            &err) ||
        topt_request_complete(&r, &err) || topt_planning_init(&m, &r, &err)) {
        printf("# %s\n", err.text);
        topt_model_destroy(model);
        topt_model_destroy(apart);
        return;
    }
    int64_t n =
        deep ? r.pipeline << random_below(&seed, 2) : gpus[random_below(&seed, 4)];
    n = groups ? 16 : n;
    struct topt_hw *small = NULL;
    struct seen x = {.r = &r, .limit = INT64_MAX};
    see_contexts(&x, &m, n);
    if (!groups &&
        (deep || random_below(&seed, 3))) { /* a limit that the fastest may not keep */
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
    int64_t limit = groups                 ? topt_hw_memory_bytes(hw)
                    : x.limit == INT64_MAX ? 0
                                           : x.limit;
    int rc = topt_count_solve(&m, n, limit, 0, TOPT_GOAL_FASTEST, &b, &err);
    int same = !rc && !x.bad &&
               (b.found ? b.tight_ns ? b.tight_ns : b.solution.time_ns : 0) == x.time_ns;
    ret->same += same;
    ret->staged += b.found && b.solution.degrees.stages > 1;
    ret->further += b.found && b.solution.degrees.stages > 1 && mtp;
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
    struct topt_model *model = decoder(3, 64, 32000, 16, 0, 0);
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

/* Ranks sum what a table's readers accumulated once a step, and of activations in each micro-batch. */
static void check_table(const struct topt_hw *hw)
{
    struct topt_request r;
    struct topt_planning m;
    struct topt_grid_search s;
    struct topt_costing k;
    struct topt_error err = {0};
    struct topt_model *model = decoder(2, 64, 1000, 16, 0, 1);
    struct topt_layout whole = topt_layout_replicated(), sum = whole;
    int64_t ns[2][2] = {{0}};
    topt_request_init(&r);
    r.model = model;
    r.hw = hw;
    if (topt_framework_find("megatron", &r.framework, &err) ||
        topt_request_complete(&r, &err) || topt_planning_init(&m, &r, &err) ||
        topt_grid_open(&s, &m, 1, 4, TOPT_GOAL_FASTEST, &err) ||
        topt_grid_costing(&s, &s.degrees[0], &k, &err)) {
        ok(0, "a costing: %s", err.text);
        return;
    }
    struct topt_settings settings = *k.settings;
    k.settings = &settings;
    for (int a = 0; a < k.mesh->naxes; a++)
        sum.at[a] = TOPT_PARTIAL;
    for (int i = 0; i < 2; i++)
        for (int op = 0; op < 2;
             op++) { /* the table, and the embedding, which reads it */
            struct topt_move_cost c = {.network_ns = 0};
            settings.micro_batches = i ? 8 : 1;
            int t = topt_output_tensor(&model->op[op]);
            if (!topt_cost_move(&k, t, &sum, &whole, &c, &err))
                ns[op][i] = c.network_ns;
        }
    ok(ns[0][0] > 0 && ns[0][1] == ns[0][0] && ns[1][1] == 8 * ns[1][0],
       "a table's gradient is summed once a step: %lld ns, of activations %lld and %lld",
       (long long)ns[0][1], (long long)ns[1][0], (long long)ns[1][1]);
    topt_grid_close(&s);
    topt_planning_fini(&m);
    topt_model_destroy(model);
}

/* ---- cuts for unlike devices ----------------------------------------------------------- */

/* All ways to cut. */
struct cuts {
    struct topt_evaluator *e;
    const struct topt_hw *hw;
    const struct topt_strategy *s;
    int stages, layers, tried, bad;
    int16_t at[TOPT_MAX_CHUNKS];
    int64_t best_ns; /* of those that fit; 0: none does */
};

static void cut_all(struct cuts *x, int chunk, int left)
{
    int ends = chunk == 0 || chunk == x->stages - 1;
    struct topt_strategy_cost c;
    for (int n = ends ? 0 : 1; n <= left && chunk < x->stages - 1; n++) {
        x->at[chunk] = (int16_t)n;
        cut_all(x, chunk + 1, left - n);
    }
    if (chunk < x->stages - 1)
        return;
    x->at[chunk] = (int16_t)left;
    x->tried++;
    x->bad |= topt_evaluate_stages(x->e, x->s, &c, NULL) ||
              memcmp(c.stage.layers, x->at, (size_t)x->stages * sizeof *x->at);
    if (stages_fit(x->hw, &c.stage) && (!x->best_ns || c.time_ns < x->best_ns))
        x->best_ns = c.time_ns;
}

/* Cuts of random strategies beside the best ones: wrong ones, and such that miss what fits; all that fit, and those of
 * them that are best; the time of the worst, in that of the best cut. */
struct judged {
    int bad, all, best;
    double worst;
};

static void cut_unlike(uint64_t number, struct judged *ret)
{
    uint64_t seed = number * 7919 + 1;
    struct topt_request r;
    struct topt_planning m;
    struct topt_grid_search s, *grid = NULL;
    int reverse = random_below(&seed, 2), stages = 2 << random_below(&seed, 2);
    struct topt_model *model =
        decoder(5 + random_below(&seed, 6), 1024 << random_below(&seed, 3),
                1000 << random_below(&seed, 6), 64, 0, 0);
    struct topt_hw *hw = two_groups(reverse, 1. / (1 << random_below(&seed, 8)));
    topt_request_init(&r);
    r.model = model;
    r.hw = hw;
    r.threads = 1;
    r.unlike.groups = hw;
    r.pipeline = stages;
    if (!model || !hw || topt_framework_find("megatron", &r.framework, NULL) ||
        topt_request_complete(&r, NULL) || topt_planning_init(&m, &r, NULL))
        abort(); /* no memory */
    if (topt_grid_open(&s, &m, 2, 8, TOPT_GOAL_FASTEST, NULL) ||
        topt_grid_stage(&s, stages, &grid, NULL))
        abort();
    for (int i = 0; i < grid->ndegrees; i += 1 + random_below(&seed, 40)) {
        struct topt_search_options o = {.threads = 1};
        struct topt_solutions all = {0};
        struct topt_problem *p = NULL;
        struct topt_degrees d = grid->degrees[i];
        struct topt_costing k;
        struct topt_strategy_cost c, plain;
        if (d.micro_batches < 2)
            continue;
        d.stages = stages;
        if (topt_grid_priced(grid, &grid->degrees[i], &p, NULL) ||
            !topt_problem_has_choices(p) || topt_solve_frontier(p, &o, &all, NULL) ||
            !all.n || topt_grid_costing(&s, &d, &k, NULL))
            continue;
        struct cuts x = {.e = topt_evaluator_create(&k, 0, NULL),
                         .hw = hw,
                         .s = all.at[0].strategy,
                         .stages = stages};
        if (topt_evaluate_strategy(x.e, x.s, &c, NULL, NULL) ||
            topt_cost_strategy(&k, x.s, &plain, NULL) || plain.time_ns != c.time_ns ||
            plain.memory_bytes != c.memory_bytes)
            x.bad = 1;
        topt_evaluator_cut(x.e, x.at);
        cut_all(&x, 0, m.layers);
        int fits = stages_fit(hw, &c.stage);
        double over = fits && x.best_ns ? (double)c.time_ns / (double)x.best_ns : 1;
        ret->bad += x.bad || fits != (x.best_ns > 0);
        ret->all += x.best_ns > 0;
        ret->best += x.best_ns > 0 && over <= 1;
        ret->worst = over > ret->worst ? over : ret->worst;
        topt_evaluator_destroy(x.e);
        topt_solutions_fini(&all);
        topt_problem_destroy(p);
    }
    topt_grid_close(&s);
    topt_planning_fini(&m);
    topt_hw_destroy(hw);
    topt_model_destroy(model);
}

/* Questions about pipelines over two groups, and cuts. */
static void check_unlike(const struct topt_hw *hw)
{
    enum { UNLIKE = TOPT_TEST_SIZE(12), CUTS = TOPT_TEST_SIZE(60) };
    struct found n = {0};
    struct judged j = {.worst = 1};
    for (int i = 0; i < UNLIKE; i++) {
        struct topt_hw *groups = two_groups(i % 2, 1. / (8 << i / 2 % 5));
        ask((uint64_t)i, hw, groups, &n);
        topt_hw_destroy(groups);
    }
    is_int(n.same, UNLIKE,
           "pipelines over unlike devices that are the fastest one by one");
    ok(n.staged >= UNLIKE / 2, "%d of %d fit", n.staged, (int)UNLIKE);
    for (int i = 0; i < CUTS; i++)
        cut_unlike((uint64_t)i, &j);
    ok(!j.bad && j.all >= CUTS,
       "%d cuts that fit where any does, as the plain code has them", j.all);
    ok(j.best >= j.all * 9 / 10 && j.worst <= 1.1,
       "%d of them take no longer than any other, none more than %.2f times that", j.best,
       j.worst);
}

int main(int argc, char **argv)
{
    struct topt_hw *hw = topt_hw_load("a100-40-dgx", NULL);
    struct found n = {0};
    int from = argc > 1 ? atoi(argv[1]) : FIRST;
    int until = argc > 2 ? atoi(argv[2]) : from + QUESTIONS;
    int all = until - from;
    for (int i = from; i < until; i++)
        ask((uint64_t)i, hw, NULL, &n);
    if (argc == 1)
        ask(ENDS, hw, NULL, &n);
    all += argc == 1;
    is_int(n.same, all, "questions whose fastest plan is the fastest one by one");
    ok(n.staged >= all / 10, "%d of them have pipeline stages", n.staged);
    ok(all < 60 || n.further > 0, "... %d beside modules that predict further tokens",
       n.further);
    ok(all < 60 || n.first > 0, "%d recompute the first layers of each chunk alone",
       n.first);
    ok(all < 60 || n.lean > 0, "%d are cut for devices that can't hold the fastest cut",
       n.lean);
    ok(all < 60 || n.context > 0, "%d have context ranks unasked", n.context);
    ok(n.shared_out >= all / 20, "%d share experts out", n.shared_out);
    check_ends(hw);
    check_table(hw);
    if (argc == 1)
        check_unlike(hw);
    topt_hw_destroy(hw);
    return done_testing();
}
