/* test_recurrent.c - what a recurrence costs: each step reads the weights and its own part of
 * the sequence, so time grows with the steps, not with their square, and never falls below
 * what reading the weights takes. */
#include <stdlib.h>

#include "tap.h"
#include "topt_lower.h"

enum { LAYER = 2 };

static struct topt_model *build(const char *kind, int64_t seq, int64_t gates)
{
    struct topt_error err = {0};
    struct topt_attrs table = {.vocab = 5, .features = 8};
    struct topt_attrs widen = {.features = 256, .features_unit = gates};
    struct topt_attrs classes = {.features = 5};
    struct topt_model *m = topt_model_create("test", 4, seq, &err);
    int e = topt_model_add(m, "embedding", "e", 0, NULL, &table, &err);
    int pre = topt_model_add(m, "linear", "pre", 1, &e, &widen, &err);
    int layer = topt_model_add(m, kind, "layer", 1, &pre, NULL, &err);
    int head = topt_model_add(m, "linear", "head", 1, &layer, &classes, &err);
    if (topt_model_add(m, "cross_entropy", "loss", 1, &head, NULL, &err) < 0 ||
        topt_model_finish(m, &err)) {
        printf("Bail out! %s\n", err.text);
        abort();
    }
    return m;
}

/* Nanoseconds of the layer's kernels on one device, without its weights' update. */
static int64_t layer_ns(const struct topt_hw *hw, const struct topt_model *m)
{
    struct topt_error err = {0};
    struct topt_settings settings = topt_settings_default();
    struct topt_config none = topt_config_none();
    struct topt_fragment_cost cost;
    struct topt_mesh one;
    settings.optimizer = TOPT_SGD;
    if (topt_mesh_init(&one, 1, 1, &err))
        abort();
    struct topt_costing k = {m, hw, &one, &settings, topt_router_create(hw, &one), NULL};
    if (!k.router || topt_cost_op(&k, LAYER, &none, &cost, &err)) {
        printf("Bail out! %s\n", err.text);
        abort();
    }
    topt_router_destroy(k.router);
    return cost.compute_ns;
}

static void check(const struct topt_hw *hw, const char *kind, int64_t gates)
{
    enum { STEPS = 64, MORE = 8 };
    struct topt_model *few = build(kind, STEPS, gates);
    struct topt_model *many = build(kind, MORE * STEPS, gates);
    int64_t a = layer_ns(hw, few), b = layer_ns(hw, many);
    int64_t weights = 256 * gates * 256 * 4;
    int64_t once = topt_hw_compute_ns(hw, TOPT_F32, TOPT_WORK_MATMUL, 0, weights, 1);
    ok(b < (MORE + 1) * a, "%s: %d times the steps take %.1f times as long", kind, MORE,
       (double)b / (double)a);
    ok(b >= 2 * MORE * STEPS * once,
       "%s: each step reads the weights, forward and backward", kind);
    topt_model_destroy(few);
    topt_model_destroy(many);
}

static void check_flops(void)
{
    struct topt_model *m = build("lstm", 10, 4);
    const struct topt_op *op = &m->op[LAYER];
    int64_t step = op->spec->flops(op, TOPT_K_RECURRENT_FWD, op->count);
    struct topt_model_stats with, without;
    ok(step == 2 * 4 * 256 * 4 * 256, "a step's kernel is that of one step");
    int all_ops = m->nops;
    m->nops = LAYER + 1;
    topt_model_stats(m, &with);
    m->nops = LAYER;
    topt_model_stats(m, &without);
    m->nops = all_ops;
    int64_t products = 3 * 10 * step,
            all = 4 * (with.flops_per_sample - without.flops_per_sample);
    ok(all >= products && all < products + products / 10,
       "the model's are those of all steps");
    topt_model_destroy(m);
}

int main(void)
{
    struct topt_hw *hw = topt_hw_load("lab-cpu", NULL);
    if (!hw)
        return 1;
    check(hw, "lstm", 4);
    check(hw, "gru", 3);
    check_flops();
    topt_hw_destroy(hw);
    return done_testing();
}
