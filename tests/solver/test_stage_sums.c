/* test_stage_sums.c - ranks of torch's pipeline stages that shard gradients: they accumulate whole ones in f32 and reduce
 * them once a step, and of more than three chunks gather parameters as often as PyTorch's policy does, which is run here
 * pass by pass. */
#include "free.h"
#include "grid.h"
#include "planning.h"
#include "request.h"
#include "tap.h"
#include "topt_question.h"

#include <math.h>
#include <string.h>

enum { GPUS = 8, STAGES = 4, DATA = GPUS / STAGES, LAYERS = 32, BATCH = 64 };

struct asked {
    struct topt_request r;
    struct topt_model *model;
    struct topt_planning m;
    struct topt_grid_search s;
};

static int open_question(struct asked *a, const struct topt_hw *hw,
                         struct topt_error *err)
{
    static const char text[] =
        "{\"model_type\": \"llama\", \"hidden_size\": 256, \"intermediate_size\": 1024, "
        "\"num_hidden_layers\": 32, \"num_attention_heads\": 8, "
        "\"num_key_value_heads\": 8, \"vocab_size\": 1000, "
        "\"max_position_embeddings\": 256}";
    struct topt_import_options o = {.batch = BATCH, .seq = 256};
    topt_request_init(&a->r);
    a->model = topt_model_import(text, strlen(text), "config.json", &o, err);
    a->r.model = a->model;
    a->r.hw = hw;
    return !a->model || topt_framework_find("torchtitan", &a->r.framework, err) ||
           topt_request_complete(&a->r, err) || topt_planning_init(&a->m, &a->r, err) ||
           topt_grid_open(&a->s, &a->m, 1, GPUS, TOPT_GOAL_FASTEST, err);
}

/* The first product of a layer on two data ranks that shard gradients, in stages of so many chunks. */
static int cost_product(struct asked *a, int64_t micro_batches, int chunks, int whole,
                        struct topt_fragment_cost *ret, struct topt_error *err)
{
    struct topt_grid_search *grid;
    struct topt_problem *p = NULL;
    struct topt_solutions all = {0};
    struct topt_search_options o = {.threads = 1};
    struct topt_costing k;
    if (topt_grid_stage(&a->s, STAGES, &grid, err))
        return -1;
    int i = 0, op = 0, rc = -1;
    while (i < grid->ndegrees &&
           (grid->degrees[i].level != TOPT_ZERO_GRADIENT ||
            grid->degrees[i].data != DATA || grid->degrees[i].recompute ||
            grid->degrees[i].micro_batches != micro_batches))
        i++;
    if (i == grid->ndegrees)
        return topt_fail(err, TOPT_ERR_INTERNAL, "no such degrees");
    struct topt_degrees d = grid->degrees[i];
    d.stages = STAGES;
    d.virtual_stages = chunks;
    d.order = chunks > 1 ? TOPT_ORDER_INTERLEAVED : TOPT_ORDER_1F1B;
    while (a->model->unit[op] < 0 || strcmp(a->model->op[op].spec->name, "linear"))
        op++;
    if (!topt_grid_priced(grid, &grid->degrees[i], &p, err) &&
        !topt_solve_frontier(p, &o, &all, err) &&
        !topt_grid_costing(&a->s, &d, &k, err)) {
        struct topt_settings settings = *k.settings;
        struct topt_config c = all.at[0].strategy->config[op];
        settings.unsharded_sums = whole;
        if (!whole)
            c.zero = TOPT_ZERO_PARAM; /* which gathers in each pass */
        k.settings = &settings;
        rc = topt_cost_op(&k, op, &c, ret, err);
    }
    topt_solutions_fini(&all);
    topt_problem_destroy(p);
    return rc;
}

/* How often a stage gathers its chunks in a step: before each pass those that it keeps are the next three that have one. */
static int64_t count_gathers(int64_t micro_batches, int chunks)
{
    struct topt_order_shape shape = {STAGES, chunks, micro_batches};
    struct topt_order_plan plan;
    uint64_t there = 0;
    int64_t gathers = 0;
    topt_order_plan(&topt_orders[TOPT_ORDER_INTERLEAVED], &shape, 0, &plan);
    for (int64_t i = 0; i < plan.turns; i++) {
        uint64_t next = 0;
        for (int64_t k = i; k < plan.turns && __builtin_popcountll(next) < 3; k++)
            next |= 1ULL << topt_order_turn(&plan, k).chunk;
        gathers += __builtin_popcountll(next & ~there);
        there = next;
    }
    return gathers;
}

static void check_memory(struct asked *a)
{
    struct topt_fragment_cost sharded, whole, many;
    struct topt_error err = {0};
    if (cost_product(a, 16, 1, 0, &sharded, &err) ||
        cost_product(a, 16, 1, 1, &whole, &err) ||
        cost_product(a, 16, 8, 1, &many, &err)) {
        ok(0, "a costing: %s", err.text);
        return;
    }
    is_int(whole.class_bytes[TOPT_CLASS_GRAD],
           DATA * sharded.class_bytes[TOPT_CLASS_GRAD], "gradients are whole");
    is_int(whole.class_bytes[TOPT_CLASS_STATE], sharded.class_bytes[TOPT_CLASS_STATE],
           "... and states are shared out");
    /* In f32, and parameters in bf16; the latter as an allocator has them. */
    int64_t values = whole.class_bytes[TOPT_CLASS_GRAD] / 2 / 1000 * 1080;
    ok(llabs(whole.whole_bytes - values) < values / 500,
       "parameters stay gathered: %lld of %lld bytes", (long long)whole.whole_bytes,
       (long long)values);
    is_int(many.whole_bytes, whole.whole_bytes, "... whatever the number of chunks");
    ok(sharded.spent.at[TOPT_DURING_BACKWARD].reduce_ns > 0 &&
           !whole.spent.at[TOPT_DURING_BACKWARD].reduce_ns &&
           whole.spent.at[TOPT_DURING_END].reduce_ns > 0,
       "gradients are reduced when the last micro-batch is over");
}

static void check_gathers(int64_t micro_batches, int chunks)
{
    struct topt_settings s = {
        .micro_batches = micro_batches, .stages = STAGES, .stage_chunks = chunks};
    double said = topt_chunk_gathers(&s);
    double counted = (double)count_gathers(micro_batches, chunks) / chunks;
    ok(fabs(said - counted) <= 0.1 * counted,
       "%lld micro-batches through %d chunks: %.2f gathers of each, by the policy %.2f",
       (long long)micro_batches, chunks, said, counted);
}

int main(void)
{
    struct topt_hw *hw = topt_hw_load("a100-40-dgx", NULL);
    struct asked a;
    struct topt_error err = {0};
    if (open_question(&a, hw, &err)) {
        ok(0, "a question: %s", err.text);
        return done_testing();
    }
    check_memory(&a);
    check_gathers(16, 3);
    check_gathers(4, 8);
    check_gathers(8, 4);
    check_gathers(8, 8);
    check_gathers(32, 4);
    check_gathers(32, 8);
    topt_grid_close(&a.s);
    topt_planning_fini(&a.m);
    topt_model_destroy(a.model);
    topt_hw_destroy(hw);
    return done_testing();
}
