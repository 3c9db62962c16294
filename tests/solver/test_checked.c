/* test_checked.c - what the search says of a plan is what the checker finds, for every framework and
 * all factors.
 *
 * The checker costs a plan from scratch, and an answer that it does not confirm is refused
 * (TOPT_ERR_INTERNAL).  And what leaves a choice of degrees out of a framework's uniform space, before or
 * after it is priced, is a lower bound of what its schedules hold and take.
 *
 * Random small graphs are asked about in every way: chains whose
 * repeated blocks are a single operator, as an exported recurrence and a Linear, or an
 * embedding and bare Linears are, blocks of several, graphs without blocks, and models in layers that
 * differ. */
#include <stdlib.h>
#include <string.h>

#include "random_hw.h"
#include "random_model.h"
#include "sizes.h"
#include "grid.h"
#include "tap.h"
#include "topt_framework.h"
#include "topt_plan.h"

enum { MODELS = TOPT_TEST_SIZE_FROM(48, 12), FACTORS = 8 };

static const char *const frameworks[] = {"pytorch",    "deepspeed", "megatron",
                                         "torchtitan", "primus",    "topt"};
enum { FRAMEWORKS = sizeof frameworks / sizeof *frameworks };

/* ---- models ---------------------------------------------------------------------------- */

/* One or two recurrences, and one or more Linears of one width. */
static struct topt_model *chain_model(uint64_t seed)
{
    int width = 8 * (1 + random_below(&seed, 4)), recurrences = random_below(&seed, 3);
    struct topt_model *m = topt_model_create("chain", 16, 4, NULL);
    struct topt_attrs a = {.vocab = 32, .features = width};
    int x = topt_model_add(m, "embedding", "embedding", 0, NULL, &a, NULL);
    for (int i = 0; i < recurrences; i++) {
        a = (struct topt_attrs){.features = width, .features_unit = 4};
        x = topt_model_add(m, "linear", i ? "gates2" : "gates", 1, &x, &a, NULL);
        x = topt_model_add(m, "lstm", i ? "lstm2" : "lstm", 1, &x, NULL, NULL);
    }
    a = (struct topt_attrs){.features = width};
    for (int i = 1 + random_below(&seed, 3); i > 0; i--) {
        char name[16];
        snprintf(name, sizeof name, "linear%d", i);
        x = topt_model_add(m, "linear", name, 1, &x, &a, NULL);
    }
    a.features = 32;
    x = topt_model_add(m, "linear", "head", 1, &x, &a, NULL);
    return finished(m, x);
}

/* The same model in layers of one to six operators, alike or not, as importers tell them; the first
 * and the last operators stand outside. */
static struct topt_model *in_layers(struct topt_model *m, uint64_t seed)
{
    json_t *doc = m ? topt_model_to_json(m) : NULL, *ops = json_object_get(doc, "ops");
    size_t last = json_array_size(ops) - 2;
    int layer = 0, left = 1 + random_below(&seed, 6);
    for (size_t i = 1; i < last; i++) {
        json_object_set_new(json_array_get(ops, i), "layer", json_integer(layer));
        if (!--left) {
            layer++;
            left = 1 + random_below(&seed, 6);
        }
    }
    struct topt_model *ret = doc ? topt_model_from_json(doc, NULL) : NULL;
    json_decref(doc);
    topt_model_destroy(m);
    return ret;
}

static struct topt_model *make_model(uint64_t number)
{
    switch (number % 6) {
    case 0:
        return chain_model(number);
    case 1:
        return block_model(number, 2 + (int)(number / 4 % 3), 1);
    case 2:
        return block_model(number, 2 + (int)(number / 4 % 2), 2 + (int)(number / 8 % 3));
    case 3:
        return random_model(number, 1 + (int)(number / 4 % 5));
    case 4:
        return in_layers(block_model(number, 2 + (int)(number / 4 % 3), 2), number);
    default:
        return in_layers(random_model(number, 2 + (int)(number / 4 % 5)), number);
    }
}

/* ---- questions --------------------------------------------------------------------------- */

struct seen {
    int asked, plans, points, recomputing, bounds, failed;
};

/* Are there operators that a plan recomputes?  It may be said only then. */
static int recomputes(const json_t *plan)
{
    const json_t *op;
    size_t i;
    json_array_foreach(
        json_object_get(plan, "ops"), i,
        op) if (json_is_true(json_object_get(op, "recompute")) ||
                json_integer_value(json_object_get(op, "recompute"))) return 1;
    return 0;
}

static void complain(const struct topt_request *r, uint64_t number, const char *what,
                     const char *text)
{
    printf("# model %llu for %s, factors %d, %lld GPUs: %s: %s\n",
           (unsigned long long)number, r->framework->name, r->factors, (long long)r->gpus,
           what, text);
}

/* '*ret_bytes': what the plan takes, unchanged where there is none; may be NULL. */
static void ask_plan(const struct topt_request *r, uint64_t number, struct seen *seen,
                     int64_t *ret_bytes)
{
    struct topt_error err = {0};
    json_t *answer = NULL;
    if (topt_plan(r, &answer, &err)) {
        /* A batch that so many GPUs can't share is no failure: these models have no roles, so that no
         * framework has tensor parallelism of them. */
        if (err.code != TOPT_ERR_USAGE && err.code != TOPT_ERR_INVAL &&
            err.code != TOPT_ERR_INFEASIBLE) {
            complain(r, number, "plan", err.text);
            seen->failed++;
        }
        return;
    }
    const char *strategy = json_string_value(json_object_get(answer, "strategy"));
    int said = strategy && strstr(strategy, "checkpointing");
    int does = recomputes(json_object_get(answer, "plan"));
    if (said && !does) {
        complain(r, number, "nothing is recomputed", strategy);
        seen->failed++;
    }
    seen->plans += json_is_true(json_object_get(answer, "feasible"));
    seen->recomputing += does;
    if (ret_bytes)
        *ret_bytes = json_integer_value(json_object_get(answer, "memory_bytes"));
    json_decref(answer);
}

static void ask_frontier(const struct topt_request *r, uint64_t number, struct seen *seen)
{
    struct topt_error err = {0};
    json_t *answer = NULL;
    if (topt_plan_frontier(r, &answer, &err)) {
        if (err.code != TOPT_ERR_USAGE && err.code != TOPT_ERR_INVAL &&
            err.code != TOPT_ERR_INFEASIBLE) {
            complain(r, number, "frontier", err.text);
            seen->failed++;
        }
        return;
    }
    const json_t *point;
    size_t i;
    json_array_foreach(json_object_get(answer, "points"), i, point)
    {
        const char *words = json_string_value(json_object_get(point, "strategy"));
        seen->points++;
        seen->recomputing +=
            words && (strstr(words, "checkpointing") || strstr(words, "recomputed"));
    }
    json_decref(answer);
}

/* A random strategy of these degrees costs no less than is bounded. */
static int is_bounded(struct topt_grid_search *s, const struct topt_degrees *v,
                      uint64_t *seed)
{
    struct topt_strategy_cost cost = {.memory_bytes = -1};
    struct topt_problem *p = NULL;
    struct topt_costing k;
    if (topt_grid_problem(s, v, &p, NULL) || topt_grid_costing(s, v, &k, NULL))
        return 0;
    int good = !topt_problem_has_choices(p);
    if (!good) {
        struct topt_strategy *st = topt_problem_random(p, seed);
        struct topt_cost least = topt_problem_lower_bound(p);
        good = st && !topt_cost_strategy(&k, st, &cost, NULL) &&
               cost.memory_bytes >= least.memory && cost.time_ns >= least.time &&
               cost.memory_bytes >= topt_grid_least_bytes(s, v);
        topt_strategy_destroy(st);
    }
    topt_problem_destroy(p);
    return good;
}

static void try_bounds(const struct topt_request *r, uint64_t number, struct seen *seen)
{
    struct topt_planning planning;
    struct topt_grid_search s;
    uint64_t seed = number;
    if (topt_planning_init(&planning, r, NULL)) {
        seen->failed++;
        return;
    }
    int rc = topt_grid_open(&s, &planning, 1, (int)r->gpus, TOPT_GOAL_FASTEST, NULL),
        bad = 0;
    for (int i = 0; i < s.ndegrees && !rc; i++) {
        bad += !is_bounded(&s, &s.degrees[i], &seed);
        seen->bounds++;
    }
    if (rc || bad)
        complain(r, number, "degrees cost less than their bounds say", "");
    seen->failed += rc || bad;
    topt_grid_close(&s);
    topt_planning_fini(&planning);
}

static int ask(uint64_t number, const struct topt_hw *hw, const char *framework,
               int factors, struct seen *seen)
{
    struct topt_query w = {.mode = "mini-time"};
    struct topt_request r;
    struct topt_error err = {0};
    struct topt_model *m = make_model(number);
    const char *field;
    w.tensor_parallel = number % 3 == 0;
    strcpy(w.framework, framework);
    topt_request_init(&r);
    r.model = m;
    r.hw = hw;
    int rc = !m || topt_request_read(&w, &r, &field, &err);
    r.factors = factors;
    r.gpus = number / 4 % 2 ? 4 : 2;
    r.settings.granule_bytes = 1 + 511 * (int)(number % 2);
    rc = rc || topt_request_complete(&r, &err);
    if (!rc && r.framework->rules) /* which ask for roles */
        r.tensor_parallel = 0;
    if (rc)
        printf("# model %llu: %s\n", (unsigned long long)number, err.text);
    if (!rc) {
        seen->asked++;
        int64_t bytes = 0;
        ask_plan(&r, number, seen, &bytes);
        r.memory_limit = bytes * 3 / 4;
        if (bytes)
            ask_plan(&r, number, seen, NULL);
        r.memory_limit = 0;
        if (factors & TOPT_FACTOR_RECOMPUTE)
            ask_frontier(&r, number, seen);
        if (r.framework->uniform_only)
            try_bounds(&r, number, seen);
    }
    topt_model_destroy(m);
    return rc;
}

/* Returns how many plans and points recompute. */
static int test_framework(const struct topt_hw *hw, const char *framework)
{
    struct seen seen = {0};
    int bad = 0;
    for (uint64_t number = 0; number < MODELS; number++)
        for (int factors = 0; factors < FACTORS; factors++)
            bad += ask(number, hw, framework, factors, &seen) != 0;
    ok(!bad && !seen.failed, "%s: the checker finds what the search says", framework);
    ok(!strcmp(framework, "topt") || seen.bounds > seen.asked,
       "%d choices of degrees cost no less than their bounds", seen.bounds);
    ok(seen.plans > seen.asked / 4 && seen.points > seen.plans / 4,
       "%d questions, %d plans, %d points; %d recompute", seen.asked, seen.plans,
       seen.points, seen.recomputing);
    return seen.recomputing;
}

int main(void)
{
    struct topt_hw *hw = made_up_cluster(&(struct made_up){
        1, 4, .node_mb = 1000, .node_ns = 500, .cluster_mb = 1000, .cluster_ns = 500});
    ok(hw != NULL, "a cluster");
    int recomputing = 0;
    for (int i = 0; i < FRAMEWORKS && hw; i++)
        recomputing += test_framework(hw, frameworks[i]);
    ok(recomputing > MODELS, "some recompute: %d", recomputing);
    topt_hw_destroy(hw);
    return done_testing();
}
