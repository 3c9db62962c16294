/* ran.c - a published run, costed as the planner costs its plans: the degrees of its framework's row
 * that the source names, priced and scheduled with the planner's own settings of them.
 *
 * What the source says of its software (what overlaps, what is not fused) replaces the row's.  Where a
 * plan leaves something open, which dimension of an operator the tensor axes split, the strategy
 * that takes the least memory is taken. */
#include "ran.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "band.h"
#include "free.h"
#include "grid.h"
#include "hw_impl.h"
#include "planning.h"
#include "request.h"
#include "topt_framework.h"
#include "topt_lower.h"
#include "topt_model.h"
#include "topt_plan.h"
#include "topt_plan_doc.h"

#define GIB ((double)((int64_t)1 << 30))

__attribute__((noreturn)) static void give_up(const struct row *r, const char *why)
{
    fprintf(stderr, "%s on %d %s: %s\n", r->model, (int)r->gpus, r->device, why);
    exit(1);
}

/* ---- the model: gate and up as products of their own --------------------------------------- */

static int ends(const char *s, const char *with)
{
    size_t n = strlen(s), m = strlen(with);
    return n >= m && !strcmp(s + n - m, with);
}

static json_t *op_of(const char *name, const char *end, const char *kind)
{
    const char *dot = strrchr(name, '.');
    return json_pack("{s:s%+, s:s}", "name", name, dot ? (size_t)(dot - name) : (size_t)0,
                     end, "kind", kind);
}

static void read_from(json_t *op, const json_t *a, const char *b)
{
    json_t *inputs = json_array();
    json_array_append(inputs, json_object_get(a, "name"));
    if (b)
        json_array_append_new(inputs, json_string(b));
    json_object_set_new(op, "inputs", inputs);
}

/* A product of gate and up in one as two, and what is made of it as an activation and a product:
 * recomputation tells them apart. */
static void split_gate(json_t *into, const json_t *both, const json_t *made)
{
    const char *name = json_string_value(json_object_get(both, "name"));
    static const char *const half[] = {".gate", ".up"};
    json_t *product[2], *silu = op_of(name, ".silu", "unary"), *gated = json_object();
    for (int i = 0; i < 2; i++) {
        product[i] = json_copy((json_t *)both);
        json_t *named = op_of(name, half[i], "linear");
        json_object_set(product[i], "name", json_object_get(named, "name"));
        json_object_set_new(product[i], "features_unit", json_integer(1));
        json_array_append_new(into, product[i]);
        json_decref(named);
    }
    json_object_set(silu, "activation", json_object_get(made, "activation"));
    json_object_set(silu, "layer", json_object_get(made, "layer"));
    read_from(silu, product[0], NULL);
    json_array_append_new(into, silu);
    json_object_set(gated, "name", json_object_get(made, "name"));
    json_object_set_new(gated, "kind", json_string("mul"));
    json_object_set(gated, "layer", json_object_get(made, "layer"));
    read_from(gated, silu, json_string_value(json_object_get(product[1], "name")));
    json_array_append_new(into, gated);
}

/* The model of a changed document in place of the one that it was written from; takes both. */
static struct topt_model *made_again(struct topt_model *m, json_t *doc,
                                     const struct row *r)
{
    struct topt_error err = {0};
    topt_model_destroy(m);
    m = topt_model_from_json(doc, &err);
    json_decref(doc);
    if (!m)
        give_up(r, err.text);
    return m;
}

static struct topt_model *gates_apart(struct topt_model *m, const struct row *r)
{
    json_t *doc = topt_model_to_json(m), *ops = json_object_get(doc, "ops"),
           *apart = json_array(), *op;
    size_t i;
    json_array_foreach(ops, i, op)
    {
        const char *name = json_string_value(json_object_get(op, "name"));
        if (ends(name, ".gate_up"))
            split_gate(apart, op, json_array_get(ops, ++i));
        else
            json_array_append(apart, op);
    }
    json_object_set_new(doc, "ops", apart);
    return made_again(m, doc, r);
}

/* Experts that a token takes one after another are one of many groups of them. */
static struct topt_model *runs_of_experts(struct topt_model *m, const struct row *r)
{
    json_t *doc = topt_model_to_json(m), *op;
    size_t i;
    json_array_foreach(json_object_get(doc, "ops"), i, op)
    {
        const char *kind = json_string_value(json_object_get(op, "kind"));
        json_int_t k = json_integer_value(json_object_get(op, "top_k"));
        if (strcmp(kind, "route"))
            continue;
        json_object_set_new(op, "groups", json_integer(topt_model_experts(m) / k));
        json_object_set_new(op, "top_groups", json_integer(1));
    }
    return made_again(m, doc, r);
}

struct topt_model *ran_model(const struct row *r, int64_t batch)
{
    struct topt_model *m = row_model(r, batch);
    if (row_uses(r, "runs-of-experts"))
        m = runs_of_experts(m, r);
    return strcmp(r->recompute, "products") ? m : gates_apart(m, r);
}

/* ---- the plan ------------------------------------------------------------------------------ */

/* Words of a question; a list of the file's, which a space or '+' separates, has commas there. */
static void say(char *to, size_t size, const char *cell)
{
    snprintf(to, size, "%s", cell);
    for (; *to; to++)
        *to = *to == ' ' || *to == '+' ? ',' : *to;
}
#define SAY(words, field, cell) say((words).field, sizeof(words).field, cell)

/* Of modules by the names that Megatron-LM has, as the framework's own degree; 0: of none. */
static int modules_of(const struct row *r)
{
    int64_t modules;
    return topt_modules_parse(r->recompute, &modules, NULL) ? 0 : (int)modules;
}

static struct topt_request request_of(const struct row *r, const struct topt_model *m,
                                      const struct topt_hw *hw)
{
    static const char with[] = "+params"; /* weights in few bits, too */
    struct topt_query words = {.mode = "profiling",
                               .fp8_params = strstr(r->precision, with) != NULL,
                               .fp8_activation = row_uses(r, "fp8-activation")};
    SAY(words, framework, r->framework);
    if (row_is_narrow(r))
        snprintf(words.precision, sizeof words.precision, "%.*s",
                 (int)strcspn(r->precision, "+"), r->precision);
    else if (!strcmp(r->precision, "f32") || !strcmp(r->precision, "bf16"))
        SAY(words, precision, r->precision);
    else
        SAY(words, precision,
            topt_hw_has_dtype(hw, TOPT_BF16) ? "bf16-mixed" : "fp16-mixed");
    SAY(words, optimizer, r->optimizer);
    SAY(words, sequence_parallel, r->sequence_parallel);
    SAY(words, overlap, r->overlap);
    SAY(words, eager, r->eager);
    SAY(words, attention, r->attention);
    if (row_uses(r, "chunked-loss"))
        SAY(words, loss_kernel, "chunked-saved");
    char away[sizeof words.offload];
    row_says(r, "offload", away, sizeof away);
    if (row_uses(r, "offload"))
        SAY(words, offload, *away ? away : "activations");
    struct topt_error err = {0};
    struct topt_request q;
    topt_request_init(&q);
    if (topt_request_read(&words, &q, NULL, &err))
        give_up(r, err.text);
    q.software = row_is_narrow(r) ? r->year : 0; /* scalings come and go */
    q.model = m;
    q.hw = hw;
    q.threads = 1;
    q.micro_batches = (int)row_accumulation(r);
    if (row_uses(r, "dispatch"))
        q.settings.dispatch = TOPT_DISPATCH_DEEPEP;
    q.settings.tensor_overlap = row_uses(r, "async-tensor");
    q.settings.sends_wait = row_uses(r, "sends-wait");
    q.expert = r->expert > 1 ? r->expert : 1;
    q.context = r->context > 1 ? r->context : 0;
    if (modules_of(r))
        q.fixed.recompute = modules_of(r);
    q.fixed.even = row_uses(r, "even-stages");
    if (topt_request_complete(&q, &err))
        give_up(r, err.text);
    q.settings.gradient_f32 = q.settings.gradient_f32 && strcmp(r->gradients, "bf16");
    q.settings.tensor_async = q.settings.tensor_async && r->year >= 2024;
    return q;
}

/* Between the products of attention and of the feed-forward half every second one is kept. */
static int is_kept(const struct topt_op *op)
{
    static const char *const kept[] = {".qkv",    ".q",    ".kv",  ".attention",
                                       ".attend", ".gate", ".down"};
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        if (ends(op->name, kept[i]))
            return 1;
    return 0;
}

static int always(const struct topt_op *op)
{
    return op->layer >= 0;
}

static int of_second_layers(const struct topt_op *op)
{
    return op->layer % 2 == 0;
}

static int is_not_kept(const struct topt_op *op)
{
    return !is_kept(op);
}

static int is_attention(const struct topt_op *op)
{
    return !strcmp(op->spec->name, "attention");
}

/* Products from latents to heads. */
static int is_up(const struct topt_op *op)
{
    static const char *const up[] = {".q", ".kv", ".rotary"};
    int is = 0;
    for (size_t i = 0; i < sizeof up / sizeof *up; i++)
        is |= ends(op->name, up[i]);
    return is;
}

/* These, norms, and what the activation makes. */
static int is_projection(const struct topt_op *op)
{
    return is_up(op) || ends(op->name, ".glu") || !strcmp(op->spec->name, "norm");
}

/* Recomputation as the files name it. */
static const struct recompute {
    const char *name;
    int blocks; /* what the framework's own degree does */
    /* else, of single operators: */
    int (*again)(const struct topt_op *op);
    int unasked;      /* also what backward does not ask for */
    int keeps_linear; /* outputs of products that are kept stay, read by backward or not */
} recomputes[] = {
    {"none", 0, NULL, 0, 0},
    {"blocks", 1, NULL, 0, 0},
    {"whole", 0, always, 1, 0},
    {"second", 0, of_second_layers, 0, 0},
    {"products", 0, is_not_kept, 0, 1},
    {"attention", 0, is_attention, 0, 0},
    {"up", 0, is_up, 0, 0},
    {"projections", 0, is_projection, 0, 0},
};

static const struct recompute *recompute_of(const struct row *r)
{
    for (size_t i = 0; i < sizeof recomputes / sizeof *recomputes; i++)
        if (!strcmp(recomputes[i].name, r->recompute))
            return &recomputes[i];
    if (modules_of(r))
        return &recomputes[0];
    give_up(r, "this kind of recomputation is not known");
}

/* Recomputation of single operators, which no choice of degrees has. */
static void flag(const struct row *r, const struct topt_costing *k,
                 struct topt_strategy *s)
{
    const struct recompute *how = recompute_of(r);
    const struct topt_model *m = k->model;
    struct topt_error err = {0};
    uint8_t *may = NULL, *asked = calloc((size_t)m->nops + 1, 1);
    if (!asked || topt_recomputable(m, k->settings, &may, &err))
        give_up(r, err.text);
    for (int i = 0; i < m->nops; i++)
        s->config[i].recompute = (uint8_t)(may[i] && how->again(&m->op[i]));
    for (int t = 0; t < m->ntensors; t++)
        s->hub[t].keep = s->config[m->tensor[t].producer].recompute ? TOPT_HUB_RECOMPUTE
                                                                    : TOPT_HUB_KEEP;
    topt_recompute_demand(m, s, asked);
    for (int i = 0; i < m->nops && !how->unasked; i++)
        s->config[i].recompute = s->config[i].recompute && asked[i];
    for (int t = 0; t < m->ntensors; t++)
        if (!s->config[m->tensor[t].producer].recompute)
            s->hub[t].keep = TOPT_HUB_KEEP;
    free(may);
    free(asked);
}

/* The documented numbers, as one of the degrees that the framework has: tensor parallelism splits experts that are shared
 * out too, as Megatron-LM has it by default, where there are ranks for that. */
static const struct topt_degrees *degrees_of(const struct row *r,
                                             const struct topt_grid_search *s)
{
    int level = r->tensor < s->mesh.devices ? (int)r->zero : TOPT_ZERO_NONE;
    const struct topt_degrees *found = NULL;
    for (int i = 0; i < s->ndegrees; i++) {
        const struct topt_degrees *d = &s->degrees[i];
        if (d->tensor == r->tensor && d->context == (r->context > 1 ? r->context : 1) &&
            d->level == level &&
            d->recompute == (modules_of(r) ? modules_of(r) : recompute_of(r)->blocks) &&
            (!found || d->expert_tensor > found->expert_tensor))
            found = d;
    }
    if (!found)
        give_up(r, "the framework does not have this plan");
    return found;
}

/* Of these the strategy with the least memory. */
static struct topt_strategy *strategy_of(const struct row *r, struct topt_grid_search *s,
                                         const struct topt_degrees *d)
{
    struct topt_error err = {0};
    struct topt_problem *p;
    struct topt_solutions all = {0};
    struct topt_search_options search = {.threads = 1};
    if (topt_grid_priced(s, d, &p, &err) || topt_solve_least(p, &search, 0, &all, &err))
        give_up(r, err.text);
    if (!all.n)
        give_up(r, "no strategy has these numbers");
    struct topt_strategy *ret = all.at[0].strategy;
    all.at[0].strategy = NULL;
    topt_solutions_fini(&all);
    topt_problem_destroy(p);
    return ret;
}

/* ---- its cost ------------------------------------------------------------------------------ */

static void evaluate(const struct row *r, const struct topt_costing *k,
                     const struct topt_strategy *s, struct ran *ret)
{
    struct topt_error err = {0};
    struct topt_evaluator *evaluator = topt_evaluator_create(k, 1, &err);
    if (!evaluator ||
        topt_evaluate_strategy(evaluator, s, &ret->cost, &ret->program, &err))
        give_up(r, err.text);
    topt_evaluator_destroy(evaluator);
}

static int read_in_backward(const struct topt_model *m, int tensor)
{
    for (int i = 0; i < m->nops; i++)
        for (int k = 0; k < m->op[i].ninputs; k++) {
            int x = m->op[i].input[k];
            if (m->op[i].tensor[x] == tensor && m->op[i].reads_back >> x & 1)
                return 1;
        }
    return 0;
}

/* PyTorch's selective checkpointing keeps the output of an operator that is not to run again, also
 * where no gradient needs it: that of a block's last product, which is only added. */
static int64_t unread(const struct topt_costing *k, const struct topt_strategy *s)
{
    const struct topt_model *m = k->model;
    int64_t bytes = 0;
    for (int i = 0; i < m->nops; i++) {
        const struct topt_op *op = &m->op[i];
        int tensor = topt_output_tensor(op);
        if (m->unit[i] < 0 || s->config[i].recompute ||
            strcmp(op->spec->name, "linear") || read_in_backward(m, tensor))
            continue;
        struct topt_layout l = topt_value_layout(op, op->output, &s->config[i], k->mesh);
        bytes += topt_cost_block(k, tensor, &l);
    }
    return bytes;
}

/* Gradients that are not there yet at the peak of the schedule. */
static int64_t not_yet(const struct row *r, struct topt_costing k,
                       const struct topt_strategy *s, const struct ran *at)
{
    struct topt_settings sums = *k.settings;
    struct ran all;
    sums.by_schedule = 0;
    k.settings = &sums;
    evaluate(r, &k, s, &all);
    return all.cost.sum.class_bytes[TOPT_CLASS_GRAD] -
           at->cost.sum.class_bytes[TOPT_CLASS_GRAD];
}

static void add_bytes(struct ran *ret, enum topt_class class, int64_t bytes)
{
    ret->cost.sum.class_bytes[class] += bytes;
    ret->cost.memory_bytes += bytes;
}

static void cost_on(const struct row *r, struct topt_grid_search *s, struct ran *ret)
{
    struct topt_error err = {0};
    struct topt_costing k;
    struct topt_grid_search *stage = s;
    if (r->pipeline > 1 && topt_grid_stage(s, (int)r->pipeline, &stage, &err))
        give_up(r, err.text);
    if (!stage)
        give_up(r, "the devices are not cut into so many stages");
    struct topt_degrees d = *degrees_of(r, stage);
    struct topt_strategy *plan = strategy_of(r, stage, &d);
    d.stages = r->pipeline > 1 ? (int)r->pipeline : 1;
    d.virtual_stages = r->virtual > 1 ? (int)r->virtual : 1;
    d.order = row_uses(r, "dualpipe")         ? TOPT_ORDER_COMBINED_V
              : row_uses(r, "expert-overlap") ? TOPT_ORDER_COMBINED
              : row_uses(r, "zb-h1")          ? TOPT_ORDER_ZB_H1
              : row_uses(r, "zbv")            ? TOPT_ORDER_ZBV
              : r->virtual > 1                ? TOPT_ORDER_INTERLEAVED
                                              : TOPT_ORDER_1F1B;
    if (topt_grid_costing(s, &d, &k, &err))
        give_up(r, err.text);
    if (recompute_of(r)->again)
        flag(r, &k, plan);
    evaluate(r, &k, plan, ret);
    if (recompute_of(r)->keeps_linear)
        add_bytes(ret, TOPT_CLASS_KEPT, unread(&k, plan));
    if (!strcmp(r->gradients, "throughout"))
        add_bytes(ret, TOPT_CLASS_GRAD, not_yet(r, k, plan, ret));
    topt_strategy_destroy(plan);
}

/* The GPUs that share one copy of the states: all, where the source does not say otherwise. */
static int gpus_of(const struct row *r)
{
    return (int)(r->shards ? r->shards : r->gpus);
}

/* As profiles have it: a twentieth of the device, and at least 1.5 GiB, is the driver's. */
static double limit_of(const struct row *r, const struct topt_request *q)
{
    double gib = r->device_gib;
    return gib > 0 ? (gib - fmax(gib / 20, 1.5)) * GIB : (double)topt_request_limit(q);
}

/* The row's plan on a profile: with 'tensors', these alone, with no share of an allocator. */
static void cost_by(const struct row *r, const struct topt_model *m,
                    const struct topt_hw *hw, int tensors, struct ran *ret)
{
    struct topt_error err = {0};
    struct topt_grid_search s;
    struct topt_planning micros;
    int gpus = gpus_of(r), node = gpus < r->per_node ? gpus : (int)r->per_node;
    struct topt_request q = request_of(r, m, hw);
    if (tensors)
        q.settings.allocator_permille = 0;
    if (!strcmp(r->memory_kind, "tensors"))
        q.settings.workspace_bytes = 0;
    if (topt_planning_init(&micros, &q, &err))
        give_up(r, err.text);
    micros.tensor = TOPT_TENSOR_ANYWHERE;
    if (topt_grid_open(&s, &micros, gpus / node, node, TOPT_GOAL_LEAST, &err))
        give_up(r, err.text);
    cost_on(r, &s, ret);
    ret->share = topt_memory_share(&q.settings, &ret->cost);
    ret->limit = limit_of(r, &q);
    topt_grid_close(&s);
    topt_planning_fini(&micros);
}

/* What the last rank holds, of a pipeline its last stage, in place of the stage that holds most; of each class as
 * much of it as there. */
static void take_last_rank(struct topt_strategy_cost *cost)
{
    if (!cost->stage.stages)
        return;
    int64_t last = cost->stage.bytes[cost->stage.stages - 1];
    for (int i = 0; i < TOPT_CLASS_COUNT; i++)
        cost->sum.class_bytes[i] = (int64_t)((double)cost->sum.class_bytes[i] *
                                             (double)last / (double)cost->memory_bytes);
    cost->memory_bytes = last;
}

/* What a process holds beside its allocator, where the source does not say: half way between the
 * profile's ends, which the band takes. */
static void add_context(const struct row *r, const struct topt_hw *hw, struct ran *ret)
{
    int64_t low, high;
    topt_hw_runtime_bytes(hw, &low, &high);
    if (strcmp(r->memory_kind, "process") || r->beside_gib > 0)
        return;
    ret->beside = (low + high) / 2;
    ret->low_bytes += low;
    ret->high_bytes += high;
}

/* An allocator takes what there is: where a whole device is shown that is no need. */
static int shows_device(const struct row *r, const struct ran *x)
{
    return (!strcmp(r->memory_kind, "process") || !strcmp(r->memory_kind, "reserved")) &&
           r->memory_gib * GIB >= x->device;
}

/* As topt_put_verdict says it of a plan. */
static int is_tight(const struct ran *x)
{
    int64_t low, high;
    topt_band_memory_ends(topt_memory_states(&x->cost), x->share, x->cost.memory_bytes,
                          &low, &high);
    return (double)high > x->limit;
}

/* A step that fills and empties its pipeline several times, each with its part of the batch: its stages wait in each as
 * they do in one. */
static void fill_again(const struct row *r, const struct topt_hw *hw,
                       struct topt_strategy_cost *c)
{
    struct row part = *r;
    struct ran one;
    part.batch /= row_pipelines(r);
    struct topt_model *m = ran_model(&part, part.batch / (part.gpus / gpus_of(&part)));
    cost_by(&part, m, hw, 0, &one);
    double more = (double)(row_pipelines(r) * one.cost.stage.idle_ns - c->stage.idle_ns);
    for (int b = 0; b < TOPT_BASIS_COUNT; b++)
        c->sum.basis_ns[b] +=
            (int64_t)(more * (double)c->sum.basis_ns[b] / (double)c->time_ns);
    c->time_ns += (int64_t)more;
    topt_model_destroy(m);
}

struct ran ran_of(const struct row *r)
{
    struct topt_error err = {0};
    struct ran ret = {.program = 0}, tensors = {.program = 0};
    struct topt_hw *hw = topt_hw_load(r->hw, &err);
    if (!hw)
        give_up(r, err.text);
    struct topt_model *m = ran_model(r, r->batch / (r->gpus / gpus_of(r)));
    cost_by(r, m, hw, 0, &ret);
    if (row_pipelines(r) > 1)
        fill_again(r, hw, &ret.cost);
    if (!strcmp(r->memory_kind, "allocated") || !strcmp(r->memory_kind, "tensors"))
        cost_by(r, m, hw, 1, &tensors);
    else
        tensors = ret;
    if (row_uses(r, "last-rank"))
        take_last_rank(&tensors.cost);
    ret.held = tensors.cost;
    if (strcmp(r->memory_kind, "process")) /* userbuffers are no tensors of PyTorch */
        ret.held.memory_bytes -= ret.held.sum.beside_bytes;
    ret.device =
        r->device_gib > 0 ? r->device_gib * GIB : (double)topt_hw_capacity_bytes(hw);
    ret.full = shows_device(r, &ret);
    ret.tight = is_tight(&ret);
    topt_band_time_ends(topt_hw_bands(hw), ret.cost.sum.basis_ns, &ret.low_ns,
                        &ret.high_ns);
    ret.share = tensors.share;
    topt_band_memory_ends(topt_memory_states(&ret.held), ret.share, ret.held.memory_bytes,
                          &ret.low_bytes, &ret.high_bytes);
    add_context(r, hw, &ret);
    topt_model_destroy(m);
    topt_hw_destroy(hw);
    return ret;
}
