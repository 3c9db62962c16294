/* document.c - plans as documents: "topt-plan/1" written and read back.
 *
 * A document is all a rank needs: the model, the profile (so that every rank finds the
 * same routes), the devices, and per operator the dimension each axis splits.  Reading
 * checks it as if a stranger had written it, and lowers it. */
#include "document.h"
#include "free.h"
#include "strategy_words.h"
#include "topt_choices.h"
#include "topt_framework.h"
#include "topt_plan_doc.h"
#include "topt_question.h"
#include "topt_simulate.h"
#include "topt_json.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const size_t MAX_PLAN_BYTES = 64 << 20;
#define MAX_NUMBERS ((int64_t)1 << 50) /* of pools and buckets */

/* ---- writing ----------------------------------------------------------------------- */

/* Along an axis a hub has parts of gradients (TOPT_HUB_SUM): this instead of a dimension. */
static const char sum_word[] = "sum";

/* {"n0": "b", "g0": "n"}: axes that split nothing are left out. */
static json_t *axes_json(const struct topt_mesh *mesh, const struct topt_config *c,
                         const char *const *name)
{
    json_t *axes = json_object();
    char buf[8];
    for (int a = 0; a < mesh->naxes; a++)
        if (c->dim[a] >= 0 || c->dim[a] == TOPT_HUB_SUM)
            json_object_set_new(axes, topt_mesh_axis_name(mesh, a, buf),
                                json_string(c->dim[a] >= 0 ? name[c->dim[a]] : sum_word));
    return axes;
}

static void op_names(const struct topt_op *op, const char *ret[TOPT_MAX_OPDIMS])
{
    for (int d = 0; d < op->spec->ndims; d++)
        ret[d] = op->spec->dim[d].name;
}

/* A tensor's dimensions carry the names they have in its producer. */
static void tensor_names(const struct topt_model *m, int tensor,
                         const char *ret[TOPT_MAX_RANK])
{
    const struct topt_op *op = &m->op[m->tensor[tensor].producer];
    for (int i = 0; i < m->tensor[tensor].ndim; i++)
        ret[i] = op->spec->dim[op->spec->operand[op->output].dim[i]].name;
}

/* enum topt_again where it is not all of an operator. */
static const char *const recomputed[] = {
    [TOPT_AGAIN_SAVED] = "saved", [TOPT_AGAIN_KEPT] = "kept"};

static json_t *ops_json(const struct topt_plan_facts *f)
{
    const struct topt_model *m = f->k->model;
    json_t *ops = json_array();
    for (int i = 0; i < m->nops; i++) {
        const char *name[TOPT_MAX_OPDIMS];
        op_names(&m->op[i], name);
        json_t *o = json_pack("{s:s, s:o}", "name", m->op[i].name, "axes",
                              axes_json(f->k->mesh, &f->strategy->config[i], name));
        if (f->strategy->config[i].zero)
            json_object_set_new(o, "zero", json_integer(f->strategy->config[i].zero));
        if (f->strategy->config[i].whole_axes)
            json_object_set_new(o, "whole_axes",
                                json_integer(f->strategy->config[i].whole_axes));
        if (f->strategy->config[i].recompute)
            json_object_set_new(o, "recompute", json_true());
        if (f->strategy->config[i].recompute > TOPT_AGAIN_ALL)
            json_object_set_new(
                o, "recompute",
                json_string(recomputed[f->strategy->config[i].recompute]));
        json_t *again = json_array();
        for (int k = 0; k < m->op[i].ninputs; k++)
            if (f->strategy->keep[i * TOPT_MAX_INPUTS + k] == TOPT_KEEP_BEFORE)
                json_array_append_new(again, json_integer(k));
        if (json_array_size(again))
            json_object_set(o, "fetch_again", again);
        json_decref(again);
        json_array_append_new(ops, o);
    }
    return ops;
}

static json_t *hubs_json(const struct topt_plan_facts *f)
{
    const struct topt_model *m = f->k->model;
    json_t *hubs = json_array();
    for (int t = 0; t < m->ntensors; t++) {
        if (m->tensor[t].nconsumers < 2)
            continue;
        const char *name[TOPT_MAX_RANK];
        tensor_names(m, t, name);
        json_array_append_new(
            hubs, json_pack("{s:s, s:o, s:b}", "tensor", m->tensor[t].name, "axes",
                            axes_json(f->k->mesh, &f->strategy->hub[t].layout, name),
                            "keep", f->strategy->hub[t].keep != TOPT_HUB_DROP));
    }
    return hubs;
}

/* "simulated_ns": the time of the whole step's schedule, beside the searched sum, which knows only
 * what each operator's own computation hides; absent where the program is too long. */
static void put_simulated(const struct topt_plan_facts *f, json_t *predicted)
{
    const struct topt_settings *s = f->k->settings;
    struct topt_simulate_options o = {.overlap = s->overlap};
    struct topt_simulation sim;
    if (s->overlap == TOPT_OVERLAP_NONE || s->by_schedule ||
        topt_simulate(f->k, f->strategy, &o, &sim, NULL))
        return;
    json_object_set_new(predicted, "simulated_ns", json_integer(sim.time_ns));
    topt_simulation_fini(&sim);
}

/* Pipeline stages: what each holds and computes, of unlike ones also where it lies, and the mean time that one has
 * nothing to do. */
static void put_stages(const struct topt_costing *k, const struct topt_stage_costs *c,
                       json_t *predicted)
{
    json_t *stages = c->stages ? json_array() : NULL;
    for (int i = 0; i < c->stages; i++) {
        json_t *stage = json_pack("{s:I, s:I}", "memory_bytes", (json_int_t)c->bytes[i],
                                  "busy_ns", (json_int_t)c->busy_ns[i]);
        const struct topt_hw *hw =
            k->settings->unlike_stages ? topt_hw_group(k->hw, c->group[i]) : NULL;
        if (hw)
            json_object_update_new(
                stage, json_pack("{s:s, s:s, s:i, s:i, s:I}", "group", topt_hw_name(hw),
                                 "device", topt_hw_device(hw), "gpus", k->mesh->devices,
                                 "layers", (int)c->layers[i], "memory_limit",
                                 (json_int_t)topt_hw_memory_bytes(hw)));
        json_array_append_new(stages, stage);
    }
    if (!stages)
        return;
    json_object_set_new(predicted, "stages", stages);
    json_object_set_new(predicted, "idle_ns", json_integer(c->idle_ns));
}

/* What rests on a node's host, of how much, and what it costs. */
static void put_host(const struct topt_plan_facts *f, json_t *predicted)
{
    const struct topt_strategy_cost *c = f->cost;
    int64_t n = f->whole->per_node, away = f->k->settings->offload;
    json_t *list = json_array();
#define WORD_OF(name, word) word,
    static const char *const words[] = {"optimizer states", "gradients", "parameters",
                                        "activations",
                                        TOPT_OFFLOAD_MODULE_NAMES(WORD_OF)};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (away >> i & 1)
            json_array_append_new(list, json_string(words[i]));
    if (away)
        json_object_set_new(
            predicted, "host",
            json_pack("{s:I, s:I, s:I, s:I, s:O}", "bytes_per_node",
                      (json_int_t)(n * c->host_bytes), "limit_bytes_per_node",
                      (json_int_t)(n * topt_hw_host(f->k->hw)->memory_bytes), "wait_ns",
                      (json_int_t)c->host_wait_ns, "update_ns",
                      (json_int_t)c->host_update_ns, "what", list));
    json_decref(list);
}

static json_t *predicted_json(const struct topt_plan_facts *f)
{
    const struct topt_strategy_cost *c = f->cost;
    json_t *p = json_pack("{s:I, s:I, s:I, s:I, s:I}", "memory_bytes",
                          (json_int_t)c->memory_bytes, "peak_bytes",
                          (json_int_t)f->peak_bytes, "time_ns", (json_int_t)c->time_ns,
                          "compute_ns", (json_int_t)c->sum.compute_ns, "network_ns",
                          (json_int_t)c->sum.network_ns);
    put_stages(f->k, &c->stage, p);
    put_host(f, p);
    json_object_set_new(p, "memory_parts", topt_memory_parts(f->k->hw, c));
    json_object_set_new(p, "memory", topt_memory_numbers(f->k, c));
    json_object_set_new(p, "band",
                        topt_prediction_band(f->k->hw, f->k->settings, c, f->peak_bytes));
    topt_put_verdict(p, f->k->hw, f->memory_limit);
    put_simulated(f, p);
    return p;
}

/* The communication of attention over context ranks, by Megatron-LM's name. */
static const char *context_word(const struct topt_plan_facts *f)
{
    const struct topt_model *m = f->k->model;
    int axis = topt_degrees_data_axes(f->k->mesh, f->degrees), heads = 0;
    for (int i = 0; i < m->nops; i++)
        heads |=
            topt_kernel_work(m->op[i].spec->forward[0].kernel) == TOPT_WORK_ATTENTION &&
            f->strategy->config[i].dim[axis] >= 0 &&
            topt_op_split(&m->op[i], f->strategy->config[i].dim[axis]) ==
                TOPT_SPLIT_FEATURE;
    return heads ? "a2a" : f->k->settings->ring ? "p2p" : "all_gather";
}

/* One choice for the whole model, as scripts of other frameworks are told: devices over
 * the batch and over features, and samples that one of the former takes at once. */
static json_t *uniform_json(const struct topt_plan_facts *f)
{
    const struct topt_degrees *v = f->degrees;
    json_t *u = json_pack("{s:i, s:i, s:i, s:b, s:I}", "dp", v->data, "tp", v->tensor,
                          "zero", v->level, "recompute", v->recompute, "micro_batch",
                          (json_int_t)((f->k->model->batch + v->data - 1) / v->data));
    if (v->stages > 1) {
        const struct topt_stage_costs *c = &f->cost->stage;
        json_t *layers = json_array();
        for (int i = 0; i < c->chunks; i++)
            json_array_append_new(layers, json_integer(c->layers[i]));
        json_object_update_new(u, json_pack("{s:i, s:i, s:s, s:o}", "pp", v->stages, "vp",
                                            v->virtual_stages, "schedule",
                                            topt_order_name(f->k->settings->order),
                                            "layers", layers));
    }
    if (v->recompute_layers)
        json_object_set_new(u, "recompute_layers", json_integer(v->recompute_layers));
    if (v->recompute & ~TOPT_MODULE_WHOLE) {
        char words[TOPT_MODULES_SIZE];
        json_object_set_new(u, "recompute_modules",
                            json_string(topt_modules_words(v->recompute, words)));
    }
    if (v->shard)
        json_object_set_new(u, "shard", json_integer(v->shard));
    if (v->context > 1)
        json_object_update_new(
            u, json_pack("{s:i, s:s}", "cp", v->context, "cp_comm", context_word(f)));
    if (v->expert > 1)
        json_object_update_new(
            u, json_pack("{s:i, s:i}", "ep", v->expert, "etp", v->expert_tensor));
    if (f->positions && v->tensor > 1)
        json_object_set_new(u, "sequence_parallel", json_true());
    return u;
}

static void put_shares(const struct topt_mesh *mesh, const int *share, const char *key,
                       json_t *doc)
{
    if (!share[0])
        return;
    json_t *shares = json_array();
    for (int i = 0; i < mesh->size[0]; i++)
        json_array_append_new(shares, json_integer(share[i]));
    json_object_set_new(doc, key, shares);
}

/* Axes are those of the devices that share all operators: of one of the stages. */
static json_t *mesh_json(const struct topt_mesh *whole, const struct topt_mesh *mesh,
                         int64_t stages)
{
    json_t *axes = json_array();
    char name[8], text[32];
    for (int a = 0; a < mesh->naxes; a++) {
        snprintf(text, sizeof text, "%s:%d", topt_mesh_axis_name(mesh, a, name),
                 mesh->size[a]);
        json_array_append_new(axes, json_string(text));
    }
    json_t *doc = json_pack("{s:i, s:i, s:o}", "nodes", whole->nodes, "gpus_per_node",
                            whole->per_node, "axes", axes);
    if (stages > 1)
        json_object_set_new(doc, "stages", json_integer(stages));
    put_shares(mesh, mesh->share, "shares", doc);
    put_shares(mesh, mesh->state_share, "state_shares", doc);
    return doc;
}

/* Names of the operators, and of the hubs of tensors, that were decided by heuristic. */
static json_t *decided_json(const struct topt_model *m, const struct topt_certificate *c)
{
    json_t *names = json_array();
    for (int i = 0; i < c->nnodes; i++) {
        int t = i - m->nops;
        if (c->decided[i])
            json_array_append_new(names, t < 0
                                             ? json_string(m->op[i].name)
                                             : json_sprintf("hub:%s", m->tensor[t].name));
    }
    return names;
}

void topt_certificate_write(json_t *doc, const struct topt_model *m,
                            const struct topt_certificate *c)
{
    double epsilon = c ? c->epsilon : INFINITY;
    json_object_set_new(doc, "exact", json_boolean(c && c->exact));
    json_object_set_new(doc, "epsilon",
                        isfinite(epsilon) ? json_real(epsilon) : json_null());
    if (c && c->decided)
        json_object_set_new(doc, "heuristic", decided_json(m, c));
}

json_t *topt_work_json(const struct topt_search_stats *s)
{
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:i}", "products",
                     (json_int_t)s->products, "points", (json_int_t)s->points, "tables",
                     (json_int_t)s->tables, "shared", (json_int_t)s->shared, "bands",
                     (json_int_t)s->bands, "peak_bytes", (json_int_t)s->peak_bytes,
                     "max_frontier", s->max_frontier);
}

json_t *topt_pricing_json(const struct topt_problem_stats *s)
{
    json_t *o =
        json_pack("{s:I, s:I, s:I}", "configs", (json_int_t)s->priced_configs, "entries",
                  (json_int_t)s->priced_entries, "moves", (json_int_t)s->priced_moves);
    if (s->routes >= 0)
        json_object_set_new(o, "routes", json_integer(s->routes));
    return o;
}

/* A member of a document's settings.  A value that equals 'unsaid' is left out. */
struct setting {
    const char *name;
    enum { NUMBER, FLAG, WORD, EAGER } kind; /* NUMBER: of 64 bits; else of an int */
    size_t at;                               /* in struct topt_settings */
    int64_t unsaid, least, most;             /* NUMBER: limits */
    const char *what;                        /* WORD: how a message calls it */
    const char *(*word)(unsigned value);
    unsigned words;
};

#define AT(member) .at = offsetof(struct topt_settings, member)

enum { ALWAYS = -1 }; /* no value: the document has the member always */

/* Settings that equal our own runtime's are left out. */
static const struct setting setting[] = {
    {"dtype", WORD, AT(dtype), ALWAYS, .what = "dtype", .word = topt_dtype_name,
     .words = TOPT_DTYPE_STORED},
    {"optimizer", WORD, AT(optimizer), ALWAYS, .what = "optimizer",
     .word = topt_optimizer_name, .words = TOPT_OPTIMIZER_COUNT},
    {"granule_bytes", NUMBER, AT(granule_bytes), ALWAYS, 1, .most = 1 << 30},
    {"micro_batches", NUMBER, AT(micro_batches), 1, 1, .most = 1 << 24},
    {"gradient_f32", FLAG, AT(gradient_f32)},
    {"state_bf16", FLAG, AT(state_bf16)},
    {"shard_f32", FLAG, AT(shard_f32)},
    {"rest_f32", FLAG, AT(rest_f32)},
    {"accounting", WORD, AT(accounting), TOPT_ACCOUNTING_RUN, .what = "accounting",
     .word = topt_accounting_name, .words = TOPT_ACCOUNTING_COUNT},
    {"overlap", WORD, AT(overlap), TOPT_OVERLAP_NONE, .what = "overlap",
     .word = topt_overlap_name, .words = TOPT_OVERLAP_COUNT},
    {"gather", WORD, AT(gather), TOPT_GATHER_OPERATOR, .what = "way to gather",
     .word = topt_gather_name, .words = TOPT_GATHER_COUNT},
    {"by_unit", FLAG, AT(by_unit)},
    {"positions_first", FLAG, AT(positions_first)},
    {"pool_numbers", NUMBER, AT(pool_numbers), .most = MAX_NUMBERS},
    {"bucket_numbers", NUMBER, AT(bucket_numbers), .most = MAX_NUMBERS},
    {"allocator_permille", NUMBER, AT(allocator_permille), .most = 1000},
    {"workspace_bytes", NUMBER, AT(workspace_bytes), .most = (int64_t)1 << 40},
    {"tables", NUMBER, AT(tables), .most = TOPT_ZERO_PARAM},
    {"table_shards", NUMBER, AT(table_shards), .most = 1 << 24},
    {"vocab_multiple", NUMBER, AT(vocab_multiple), .most = 1 << 20},
    {"by_schedule", FLAG, AT(by_schedule)},
    {"attention", WORD, AT(attention), TOPT_ATTENTION_FLASH2, .what = "attention kernel",
     .word = topt_attention_name, .words = TOPT_ATTENTION_COUNT},
    {"stages", NUMBER, AT(stages), 1, 1, .most = TOPT_MAX_STAGES},
    {"stage_chunks", NUMBER, AT(stage_chunks), 1, 1, .most = TOPT_MAX_CHUNKS},
    {"schedule", WORD, AT(order), TOPT_ORDER_1F1B, .what = "schedule",
     .word = topt_order_name, .words = TOPT_ORDERS},
    {"even_stages", FLAG, AT(even_stages)},
    {"sends_wait", FLAG, AT(sends_wait)},
    {"operands_wait", FLAG, AT(operands_wait)},
    {"unsharded_sums", FLAG, AT(unsharded_sums)},
    {"unlike_stages", FLAG, AT(unlike_stages)},
    {"host_ns", NUMBER, AT(host_ns), .most = 1000000000},
    {"cuda_graphs", FLAG, AT(cuda_graphs)},
    {"loss_kernel", WORD, AT(loss), TOPT_LOSS_FUSED, .what = "loss kernel",
     .word = topt_loss_kernel_name, .words = TOPT_LOSS_COUNT},
    {"low", WORD, AT(low), TOPT_LOW_NONE, .what = "scaling", .word = topt_low_name,
     .words = TOPT_LOW_COUNT},
    {"low_apart", FLAG, AT(low_apart)},
    {"low_strided", FLAG, AT(low_strided)},
    {"experts_apart", FLAG, AT(experts_apart)},
    {"ring", FLAG, AT(ring)},
    {"merge", WORD, AT(merge), TOPT_MERGE_NONE, .what = "merging",
     .word = topt_merge_name, .words = TOPT_MERGE_COUNT},
    {"tensor_overlap", FLAG, AT(tensor_overlap)},
    {"tensor_async", FLAG, AT(tensor_async)},
    {"regather", NUMBER, AT(regather), .most = 7},
    {"low_attention", FLAG, AT(low_attention)},
    {"low_activation", FLAG, AT(low_activation)},
    {"muon", NUMBER, AT(muon), .most = TOPT_MUON_GRAM | TOPT_MUON_WHOLE},
    {"low_params", FLAG, AT(low_params)},
    {"dispatch", WORD, AT(dispatch), TOPT_DISPATCH_ALLTOALL, .what = "dispatch",
     .word = topt_dispatch_name, .words = TOPT_DISPATCH_COUNT},
    {"offload", NUMBER, AT(offload), .most = 2047},
    {"offload_permille", NUMBER, AT(offload_permille), .most = 1000},
    {"eager", EAGER, AT(eager)}};

enum { SETTINGS = sizeof setting / sizeof *setting };

static json_t *setting_json(const struct setting *x, int64_t value)
{
    if (x->kind == NUMBER)
        return json_integer(value);
    if (x->kind == FLAG)
        return json_true();
    if (x->kind == WORD)
        return json_string(x->word((unsigned)value));
    char *parts = topt_eager_words((int)value);
    json_t *o = json_string(parts ? parts : "");
    free(parts);
    return o;
}

static json_t *settings_json(const struct topt_settings *s)
{
    json_t *o = json_object();
    for (const struct setting *x = setting; x < setting + SETTINGS; x++) {
        const void *at = (const char *)s + x->at;
        int64_t value = x->kind == NUMBER ? *(const int64_t *)at : *(const int *)at;
        if (value != x->unsaid)
            json_object_set_new(o, x->name, setting_json(x, value));
    }
    return o;
}

json_t *topt_plan_write(const struct topt_plan_facts *f, struct topt_error *err)
{
    const struct topt_settings *s = f->k->settings;
    int uniform = f->framework && f->space == TOPT_SPACE_UNIFORM;
    char *words = topt_solution_words(uniform ? f->framework : NULL, f->model, f->k->mesh,
                                      f->strategy, f->degrees);
    json_t *model = topt_model_to_json(f->model), *hw = topt_hw_to_json(f->k->hw);
    json_t *doc = json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "format",
        "topt-plan/1", "mode", f->mode, "space", topt_space_name(f->space), "algorithm",
        f->algorithm ? f->algorithm : "ft", "strategy", words ? words : "", "mesh",
        mesh_json(f->whole, f->k->mesh, s->stages), "settings", settings_json(s),
        "predicted", predicted_json(f), "ops", ops_json(f), "hubs", hubs_json(f), "model",
        model, "hw", hw);
    char id[TOPT_ID];
    free(words);
    topt_certificate_write(doc, f->model, f->certificate);
    if (f->framework) {
        json_object_set_new(doc, "framework", json_string(f->framework->name));
        json_object_set_new(json_object_get(doc, "settings"), "precision",
                            json_string(topt_precision_of(s)->name));
    }
    if (f->alike)
        json_object_set_new(doc, "blocks",
                            json_string(topt_blocks_name(TOPT_BLOCKS_ALIKE)));
    if (f->space == TOPT_SPACE_UNIFORM)
        json_object_set_new(doc, "uniform", uniform_json(f));
    if (f->why)
        json_object_set_new(doc, "why", json_string(f->why));
    if (f->memory_limit)
        json_object_set_new(doc, "memory_limit", json_integer(f->memory_limit));
    json_object_set(doc, "pins", f->pins); /* none where there are none */
    if (!doc || topt_json_id(doc, 'p', id) < 0) {
        json_decref(doc);
        topt_nomem(err, "a plan document");
        return NULL;
    }
    json_object_set_new(doc, "id", json_string(id));
    return doc;
}

/* ---- reading ----------------------------------------------------------------------- */

static int read_axes(const json_t *axes, const struct topt_mesh *mesh,
                     const char *const *name, int n, int hub, struct topt_config *ret,
                     const char *path, struct topt_error *err)
{
    *ret = topt_config_none();
    if (!json_is_object(axes))
        return topt_fail(err, TOPT_ERR_INVAL, "%s.axes must be an object", path);
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)axes, key, value)
    {
        int a = topt_mesh_axis_find(mesh, key), d = 0;
        if (a < 0)
            return topt_fail(err, TOPT_ERR_INVAL,
                             "%s.axes: the devices have no axis '%.20s'", path, key);
        const char *dim = json_string_value(value);
        while (dim && d < n && strcmp(name[d], dim))
            d++;
        if (dim && d == n && hub && !strcmp(dim, sum_word))
            d = TOPT_HUB_SUM;
        if (!dim || d == n)
            return topt_fail(err, TOPT_ERR_INVAL, "%s.axes.%.20s: no dimension '%.20s'",
                             path, key, dim ? dim : "?");
        ret->dim[a] = (int8_t)d;
    }
    return 0;
}

static int read_recompute(const json_t *o, const char *path, int *ret,
                          struct topt_error *err)
{
    const char *word = json_string_value(json_object_get(o, "recompute"));
    for (int i = TOPT_AGAIN_SAVED; word && i <= TOPT_AGAIN_KEPT; i++)
        if (!strcmp(recomputed[i], word)) {
            *ret = i;
            return 0;
        }
    return topt_json_bool_or(o, path, "recompute", ret, err);
}

static int read_op(const json_t *o, int i, struct topt_plan_doc *p,
                   struct topt_error *err)
{
    static const char *const allowed[] = {
        "name", "axes", "zero", "recompute", "whole_axes", "fetch_again", NULL};
    const struct topt_op *op = &p->model->op[i];
    char path[32];
    const char *have, *name[TOPT_MAX_OPDIMS];
    int64_t zero = 0, whole = 0;
    int recompute = 0;
    snprintf(path, sizeof path, "ops[%d]", i);
    if (topt_json_only(o, path, allowed, err) ||
        topt_json_string(o, path, "name", &have, err))
        return -1;
    if (strcmp(have, op->name))
        return topt_fail(err, TOPT_ERR_INVAL,
                         "%s is '%.60s', the model has '%.60s' there", path, have,
                         op->name);
    op_names(op, name);
    if (read_axes(json_object_get(o, "axes"), &p->mesh, name, op->spec->ndims, 0,
                  &p->strategy->config[i], path, err) ||
        topt_json_int_or(o, path, "zero", 0, TOPT_ZERO_COUNT - 1, &zero, err) ||
        topt_json_int_or(o, path, "whole_axes", 0, p->mesh.naxes, &whole, err) ||
        read_recompute(o, path, &recompute, err))
        return -1;
    p->strategy->config[i].zero = (uint8_t)zero;
    p->strategy->config[i].whole_axes = (uint8_t)whole;
    p->strategy->config[i].recompute = (uint8_t)recompute;
    size_t at;
    json_t *v;
    json_array_foreach(json_object_get(o, "fetch_again"), at, v)
    {
        json_int_t k = json_is_integer(v) ? json_integer_value(v) : -1;
        if (k < 0 || k >= op->ninputs)
            return topt_fail(err, TOPT_ERR_INVAL, "%s.fetch_again[%zu] is no input", path,
                             at);
        p->strategy->keep[i * TOPT_MAX_INPUTS + k] = TOPT_KEEP_BEFORE;
    }
    return 0;
}

static int read_hubs(const json_t *hubs, struct topt_plan_doc *p, struct topt_error *err)
{
    static const char *const allowed[] = {"tensor", "axes", "keep", NULL};
    const struct topt_model *m = p->model;
    size_t i = 0;
    char path[32];
    for (int t = 0; t < m->ntensors; t++) {
        if (m->tensor[t].nconsumers < 2)
            continue;
        const json_t *h = json_array_get(hubs, i);
        const char *have, *name[TOPT_MAX_RANK];
        snprintf(path, sizeof path, "hubs[%zu]", i++);
        if (topt_json_only(h, path, allowed, err) ||
            topt_json_string(h, path, "tensor", &have, err))
            return -1;
        if (strcmp(have, m->tensor[t].name))
            return topt_fail(err, TOPT_ERR_INVAL,
                             "%s is '%.60s', '%.60s' is needed there", path, have,
                             m->tensor[t].name);
        tensor_names(m, t, name);
        if (topt_json_bool_or(h, path, "keep", &p->strategy->hub[t].keep, err) ||
            read_axes(json_object_get(h, "axes"), &p->mesh, name, m->tensor[t].ndim, 1,
                      &p->strategy->hub[t].layout, path, err))
            return -1;
        /* what is kept of a producer that recomputes is what it recomputes */
        if (p->strategy->hub[t].keep &&
            p->strategy->config[m->tensor[t].producer].recompute == TOPT_AGAIN_ALL)
            p->strategy->hub[t].keep = TOPT_HUB_RECOMPUTE;
    }
    return json_array_size(hubs) == i
               ? 0
               : topt_fail(err, TOPT_ERR_INVAL, "hubs: %zu entries, the model has %zu",
                           json_array_size(hubs), i);
}

static int read_setting(const json_t *s, const struct setting *x,
                        struct topt_settings *ret, struct topt_error *err)
{
    void *at = (char *)ret + x->at;
    const char *word;
    if (x->unsaid != ALWAYS && !json_object_get(s, x->name))
        return 0;
    if (x->kind == NUMBER)
        return topt_json_int(s, "settings", x->name, x->least, x->most, at, err);
    if (x->kind == FLAG)
        return topt_json_bool_or(s, "settings", x->name, at, err);
    if (topt_json_string(s, "settings", x->name, &word, err))
        return -1;
    return x->kind == WORD ? topt_name_find(x->what, word, x->word, x->words, at, err)
                           : topt_eager_parse(word, at, err);
}

static int read_settings(const json_t *s, struct topt_settings *ret,
                         struct topt_error *err)
{
    const char *precision = "f32", *allowed[SETTINGS + 2] = {"precision"};
    const struct topt_precision *known; /* dtype and state_bf16 say the same */
    for (int i = 0; i < SETTINGS; i++)
        allowed[1 + i] = setting[i].name;
    *ret = (struct topt_settings){
        .micro_batches = 1, .stages = 1, .stage_chunks = 1, .loss = TOPT_LOSS_FUSED};
    int rc = topt_json_only(s, "settings", allowed, err);
    for (int i = 0; i < SETTINGS && !rc; i++)
        rc = read_setting(s, &setting[i], ret, err);
    if (ret->eager & TOPT_EAGER_LOSS) /* before settings had the kernel */
        ret->loss = TOPT_LOSS_WRITTEN;
    return rc || topt_json_string_or(s, "settings", "precision", &precision, err) ||
           topt_precision_find(precision, &known, err);
}

/* Shares of the first axis, of all that it splits or of the state. */
static int read_shares(const json_t *m, const char *key, struct topt_mesh *ret,
                       struct topt_error *err)
{
    const json_t *shares = json_object_get(m, key);
    int64_t share[TOPT_MAX_SHARES];
    size_t n = json_array_size(shares);
    int state = !strcmp(key, "state_shares");
    if (!shares)
        return 0;
    if (!json_is_array(shares) || n > TOPT_MAX_SHARES)
        return topt_fail(err, TOPT_ERR_INVAL, "mesh.%s must be an array of at most %d",
                         key, TOPT_MAX_SHARES);
    for (size_t i = 0; i < n; i++)
        share[i] = json_integer_value(json_array_get(shares, i));
    int rc = state ? topt_mesh_state_shares(ret, share, (int)n, err)
                   : topt_mesh_shares(ret, share, (int)n, err);
    return rc ? topt_wrap(err, "mesh.%s", key) : 0;
}

static int read_mesh(const json_t *m, struct topt_plan_doc *p, struct topt_error *err)
{
    struct topt_mesh *ret = &p->mesh;
    static const char *const allowed[] = {
        "nodes", "gpus_per_node", "axes", "shares", "state_shares", "stages", NULL};
    int64_t nodes, per_node, stages = 1;
    size_t parts = json_array_size(json_object_get(m, "shares"));
    if (!parts)
        parts = json_array_size(json_object_get(m, "state_shares"));
    if (topt_json_only(m, "mesh", allowed, err) ||
        topt_json_int(m, "mesh", "nodes", 1, 1 << 14, &nodes, err) ||
        topt_json_int(m, "mesh", "gpus_per_node", 1, 1 << 14, &per_node, err) ||
        topt_json_int_or(m, "mesh", "stages", 1, TOPT_MAX_STAGES, &stages, err))
        return -1;
    int of_nodes = (int)nodes, of_each = (int)per_node;
    p->nodes = of_nodes;
    p->per_node = of_each;
    p->gpus = of_nodes * of_each;
    if (!topt_stage_grid((int)stages, &of_nodes, &of_each))
        return topt_fail(err, TOPT_ERR_INVAL,
                         "mesh.stages: %lld nodes of %lld are not cut into %lld",
                         (long long)nodes, (long long)per_node, (long long)stages);
    nodes = of_nodes;
    per_node = of_each;
    /* A first axis with shares has as many parts, prime or not. */
    int by_parts =
        parts && parts <= TOPT_MAX_SHARES &&
        !topt_mesh_init_parts(ret, (int)parts, (int)nodes, (int)per_node, NULL);
    return (!by_parts && topt_mesh_init(ret, (int)nodes, (int)per_node, err)) ||
           read_shares(m, "shares", ret, err) || read_shares(m, "state_shares", ret, err);
}

static int read_strategy(const json_t *doc, struct topt_plan_doc *p,
                         struct topt_error *err)
{
    const json_t *ops, *hubs;
    if (topt_json_array(doc, "", "ops", &ops, err) ||
        topt_json_array(doc, "", "hubs", &hubs, err))
        return -1;
    if (json_array_size(ops) != (size_t)p->model->nops)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "ops: %zu entries, the model has %d operators",
                         json_array_size(ops), p->model->nops);
    p->strategy = topt_strategy_create(p->model);
    if (!p->strategy)
        return topt_nomem(err, "a plan");
    for (int i = 0; i < p->model->nops; i++)
        if (read_op(json_array_get(ops, (size_t)i), i, p, err))
            return -1;
    return read_hubs(hubs, p, err);
}

static int read_model(const json_t *doc, struct topt_plan_doc *p, struct topt_error *err)
{
    int64_t n = p->settings.micro_batches;
    p->model = p->micro = topt_model_from_json(json_object_get(doc, "model"), err);
    if (!p->model || n == 1)
        return p->model ? 0 : -1;
    if (p->model->batch % n)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "settings.micro_batches: %lld does not divide the batch of %lld",
                         (long long)n, (long long)p->model->batch);
    p->micro = topt_model_rebatch(p->model, p->model->batch / n, err);
    return p->micro ? 0 : -1;
}

/* The members of "uniform". */
#define OF_UNIFORM                                                                       \
    "dp", "tp", "zero", "recompute", "micro_batch", "sequence_parallel", "pp", "vp",     \
        "schedule", "layers", "shard", "ep", "etp", "recompute_layers", "cp", "cp_comm", \
        "recompute_modules"

/* The other words about the search are only checked to be possible. */
static int read_choices(const json_t *doc, struct topt_error *err)
{
    static const char *const fields[] = {OF_UNIFORM, NULL};
    enum topt_block_choice choice;
    const char *blocks = topt_blocks_name(TOPT_BLOCKS_FREE);
    const json_t *uniform = json_object_get(doc, "uniform");
    if (topt_json_string_or(doc, "", "blocks", &blocks, err) ||
        topt_blocks_parse(blocks, &choice, err))
        return -1;
    const struct topt_framework *framework;
    const char *name = "topt";
    if (topt_json_string_or(doc, "", "framework", &name, err) ||
        topt_framework_find(name, &framework, err))
        return -1;
    return uniform ? topt_json_only(uniform, "uniform", fields, err) : 0;
}

static int read_all(const json_t *doc, struct topt_plan_doc *p, struct topt_error *err)
{
    static const char *const allowed[] = {
        "format",    "id",           "mode",     "space",   "exact",
        "epsilon",   "heuristic",    "strategy", "mesh",    "settings",
        "predicted", "ops",          "hubs",     "model",   "hw",
        "why",       "memory_limit", "blocks",   "uniform", "algorithm",
        "framework", "pins",         NULL};
    const char *id = "", *at = "predicted";
    const json_t *q = json_object_get(doc, at);
    if (topt_json_format(doc, "plan", err) || topt_json_only(doc, "", allowed, err) ||
        topt_json_string_or(doc, "", "id", &id, err) ||
        read_mesh(json_object_get(doc, "mesh"), p, err) ||
        read_settings(json_object_get(doc, "settings"), &p->settings, err) ||
        topt_json_int(q, at, "memory_bytes", 0, INT64_MAX, &p->memory_bytes, err) ||
        topt_json_int(q, at, "peak_bytes", 0, INT64_MAX, &p->peak_bytes, err) ||
        topt_json_int(q, at, "time_ns", 0, INT64_MAX, &p->time_ns, err))
        return -1;
    snprintf(p->id, sizeof p->id, "%s", id);
    if (read_choices(doc, err) || read_model(doc, p, err))
        return -1;
    p->hw = topt_hw_from_json(json_object_get(doc, "hw"), err);
    if (!p->hw || read_strategy(doc, p, err))
        return -1;
    p->router = topt_router_create(p->hw, &p->mesh);
    if (!p->router)
        return topt_nomem(err, "a plan");
    return topt_lower(p->micro, &p->mesh, &p->settings, p->strategy, p->router, 0,
                      &p->program, err);
}

int topt_plan_read(const json_t *doc, struct topt_plan_doc **ret, struct topt_error *err)
{
    struct topt_plan_doc *p = calloc(1, sizeof *p);
    if (!p)
        return topt_nomem(err, "a plan");
    if (read_all(doc, p, err)) {
        topt_plan_doc_destroy(p);
        return topt_wrap(err, "plan");
    }
    *ret = p;
    return 0;
}

int topt_plan_without_stages(const struct topt_plan_doc *p, const char *who,
                             struct topt_error *err)
{
    return p->settings.stages < 2
               ? 0
               : topt_fail(
                     err, TOPT_ERR_INVAL,
                     "%s has no pipeline stages, and this plan has %lld; topt launch "
                     "writes it for its framework",
                     who, (long long)p->settings.stages);
}

const json_t *topt_plan_in(const json_t *doc)
{
    const json_t *inner = json_object_get(doc, "plan");
    return inner ? inner : doc;
}

int topt_plan_load(const char *path, struct topt_plan_doc **ret, struct topt_error *err)
{
    json_t *doc = topt_json_load(path, MAX_PLAN_BYTES, err);
    int rc = doc ? topt_plan_read(topt_plan_in(doc), ret, err) : -1;
    json_decref(doc);
    return rc;
}

void topt_plan_doc_destroy(struct topt_plan_doc *p)
{
    if (!p)
        return;
    topt_program_destroy(p->program);
    topt_router_destroy(p->router);
    topt_strategy_destroy(p->strategy);
    topt_hw_destroy(p->hw);
    if (p->micro != p->model)
        topt_model_destroy(p->micro);
    topt_model_destroy(p->model);
    free(p);
}

char *topt_plan_strategy_words(const struct topt_plan_doc *p)
{
    return topt_strategy_words(p->model, &p->mesh, p->strategy,
                               p->settings.micro_batches);
}
