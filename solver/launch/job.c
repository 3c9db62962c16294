/* job.c - reading a plan document for a framework.
 *
 * Only the document is read, by the fields that a launch needs, so that a plan need not be
 * lowered again to be started.  The shape of a decoder is recognised from its operators: an
 * embedding, attention in every block, and the linear operator that feeds an activation. */
#include "job.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "topt_digest.h"
#include "topt_json.h"
#include "topt_model.h"

enum { MAX_RANKS = 1 << 20, MAX_SIZE = 1 << 30 };

/* ---- the model --------------------------------------------------------------------------- */

static const char *word(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));
    return s ? s : "";
}

static int64_t whole(const json_t *o, const char *key, int64_t absent)
{
    const json_t *v = json_object_get(o, key);
    return json_is_integer(v) ? json_integer_value(v) : absent;
}

static double number(const json_t *o, const char *key, double absent)
{
    const json_t *v = json_object_get(o, key);
    return json_is_number(v) ? json_number_value(v) : absent;
}

static const json_t *named(const json_t *ops, const char *name)
{
    size_t i;
    json_t *o;
    json_array_foreach(ops, i, o)
    {
        if (!strcmp(word(o, "name"), name))
            return o;
    }
    return NULL;
}

/* The sum of a linear operator and the adapter beside it. */
static int is_adapted(const json_t *o)
{
    const char *name = word(o, "name");
    size_t n = strlen(name), end = strlen(".lora");
    return !strcmp(word(o, "kind"), "add") && n > end && !strcmp(name + n - end, ".lora");
}

/* The linear operator before 'o', past a bias and an adapter. */
static const json_t *linear_before(const json_t *ops, const json_t *o)
{
    for (int step = 0; o && step < 3; step++) {
        const char *from =
            json_string_value(json_array_get(json_object_get(o, "inputs"), 0));
        o = from ? named(ops, from) : NULL;
        if (o && !strcmp(word(o, "kind"), "linear"))
            return o;
        if (o && strcmp(word(o, "kind"), "bias") && !is_adapted(o))
            return NULL;
    }
    return NULL;
}

/* Rotary positions: plain, or scaled as Llama 3.1 does; anything else is another form. */
static void read_rotary(struct job_model *m, const json_t *o)
{
    m->theta = number(o, "rope_theta", 0);
    m->rotary = m->theta > 0;
    m->rope_factor = number(o, "rope_factor", 0);
    if (whole(o, "rope_dim", 0) != whole(o, "head_dim", 0) && whole(o, "rope_dim", 0))
        m->other = "rotary positions of a part of each head";
    if (m->rope_factor > 0 &&
        (json_is_true(json_object_get(o, "rope_by_pair")) ||
         number(o, "rope_slow", 0) != 1 || number(o, "rope_fast", 0) != 4 ||
         number(o, "rope_context", 0) != 8192))
        m->other = "rotary positions scaled in a way of their own";
}

static void read_attention(struct job_model *m, const json_t *o)
{
    static const char *const forms[] = {"window", "chunk", "cap", "distance"};
    m->layers++;
    m->heads = whole(o, "heads", 0);
    m->kv_heads = whole(o, "kv_heads", m->heads);
    m->head_dim = whole(o, "head_dim", 0);
    m->causal = m->causal || json_is_true(json_object_get(o, "causal"));
    m->distance =
        m->distance || number(o, "factor", 0) > 0 || json_object_get(o, "distance");
    if (json_object_get(o, "rope_theta"))
        read_rotary(m, o);
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (json_object_get(o, forms[i]))
            m->other = "attention with a mask or scores of another form";
    if (whole(o, "v_head_dim", m->head_dim) != m->head_dim ||
        json_array_size(json_object_get(o, "inputs")) > 2 || number(o, "scale", 0) > 0)
        m->other = "attention of another form";
}

/* An activation: what comes before it has the inner features of a block. */
static void read_activation(struct job_model *m, const json_t *ops, const json_t *o)
{
    const json_t *linear = linear_before(ops, o);
    if (!linear)
        return;
    if (m->experts)
        m->other = "blocks with dense layers and experts";
    m->dense = 1;
    m->gated = !strcmp(word(o, "kind"), "glu");
    m->ffn =
        whole(linear, "features", 0) * (m->gated ? 1 : whole(linear, "features_unit", 1));
    m->activation = word(o, "activation");
}

/* Some families have biases of queries, keys and values alone. */
static void read_bias(struct job_model *m, const char *name)
{
    static const char *const own[] = {"qkv.bias", ".q.bias", ".k.bias", ".v.bias"};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (strstr(name, own[i])) {
            m->qkv_bias = 1;
            return;
        }
    m->bias = 1;
}

static void read_op(struct job_model *m, const json_t *ops, const json_t *o)
{
    static const char *const plain[] = {"add",           "concat",  "linear",  "dispatch",
                                        "cross_entropy", "combine", "dropout", NULL};
    const char *kind = word(o, "kind");
    int i = 0;
    if (!strcmp(kind, "embedding") || !strcmp(kind, "variable")) {
        m->tied += !strcmp(kind, "variable");
        m->hidden = whole(o, "features", m->hidden);
        if (whole(o, "vocab", 0) > m->vocab) /* kinds of tokens have a table, too */
            m->vocab = whole(o, "vocab", 0);
    } else if (!strcmp(kind, "position")) {
        m->positions = whole(o, "positions", 0);
    } else if (!strcmp(kind, "norm")) {
        m->rms = json_is_true(json_object_get(o, "rms"));
        m->eps = number(o, "eps", 1e-5);
    } else if (!strcmp(kind, "bias")) {
        read_bias(m, word(o, "name"));
    } else if (!strcmp(kind, "attention")) {
        read_attention(m, o);
    } else if (!strcmp(kind, "rotary")) {
        read_rotary(m, o);
    } else if (!strcmp(kind, "head_norm")) {
        m->head_norm = 1;
    } else if (!strcmp(kind, "unary") || !strcmp(kind, "glu")) {
        read_activation(m, ops, o);
    } else if (!strcmp(kind, "mul") && linear_before(ops, o)) {
        m->gated = 1; /* of two products apart */
    } else if (!strcmp(kind, "route")) {
        const json_t *router = linear_before(ops, o);
        m->experts = router ? whole(router, "features", 0) : 0;
        m->top_k = whole(o, "top_k", 0);
    } else if (!strcmp(kind, "experts")) {
        if (m->ffn && m->dense)
            m->other = "blocks with dense layers and experts";
        m->ffn = whole(o, "features", 0);
        m->gated = json_is_true(json_object_get(o, "gated"));
        m->activation = word(o, "activation");
    } else {
        while (plain[i] && strcmp(plain[i], kind))
            i++;
        if (!plain[i])
            m->other = kind;
    }
}

static void read_model(struct job_model *m, const json_t *ops)
{
    size_t i;
    json_t *o;
    int64_t losses = 0;
    json_array_foreach(ops, i, o)
    {
        read_op(m, ops, o);
        losses += !strcmp(word(o, "kind"), "cross_entropy");
    }
    m->mtp = losses > 1 ? losses - 1 : 0;
    m->layers -= m->mtp;
    /* an own head of theirs is shared, too */
    m->tied = m->mtp ? m->tied == 1 : m->tied > 0;
    if (!m->layers && !m->other)
        m->other = "no attention";
}

/* ---- the plan ---------------------------------------------------------------------------- */

static int read_precision(const json_t *settings, struct job *j, struct topt_error *err)
{
    static const char *const names[] = {[JOB_F32] = "f32",
                                        [JOB_BF16_MIXED] = "bf16-mixed",
                                        [JOB_BF16] = "bf16",
                                        [JOB_F64] = "f64",
                                        [JOB_F16_MIXED] = "fp16-mixed"};
    const char *dtype, *precision = NULL;
    if (topt_json_string(settings, "settings", "dtype", &dtype, err) ||
        topt_json_string_or(settings, "settings", "precision", &precision, err))
        return -1;
    if (!precision) /* f32 master weights and optimizer state go with bf16 */
        precision = !strcmp(dtype, "bf16")  ? "bf16-mixed"
                    : !strcmp(dtype, "f16") ? "fp16-mixed"
                                            : dtype;
    if (topt_json_string_or(settings, "settings", "low", &j->low, err) ||
        topt_json_bool_or(settings, "settings", "low_params", &j->low_params, err) ||
        topt_json_bool_or(settings, "settings", "cuda_graphs", &j->cuda_graphs, err) ||
        topt_json_bool_or(settings, "settings", "gradient_f32", &j->gradient_f32, err) ||
        topt_json_bool_or(settings, "settings", "tensor_overlap", &j->tensor_overlap,
                          err) ||
        topt_json_bool_or(settings, "settings", "low_attention", &j->low_attention,
                          err) ||
        topt_json_bool_or(settings, "settings", "low_activation", &j->low_activation,
                          err) ||
        topt_json_int_or(settings, "settings", "offload", 0, 2047, &j->offload, err) ||
        topt_json_int_or(settings, "settings", "offload_permille", 0, 1000,
                         &j->offload_permille, err))
        return -1;
    if (j->low)
        precision = "bf16-mixed";
    for (int i = 0; i < (int)(sizeof names / sizeof *names); i++)
        if (!strcmp(names[i], precision)) {
            j->precision = (enum job_precision)i;
            return 0;
        }
    return topt_fail(err, TOPT_ERR_INVAL, "settings.precision: no such '%.40s'",
                     precision);
}

const char *topt_job_precision(enum job_precision p)
{
    static const char *const names[] = {"f32", "bf16-mixed", "bf16", "f64", "fp16-mixed"};
    return names[p];
}

int64_t topt_job_zero(const struct job *j)
{
    int64_t least = j->offload & JOB_HOST_PARAMETERS  ? 3
                    : j->offload & JOB_HOST_GRADIENTS ? 2
                                                      : 0;
    return j->dp > 1 || j->zero > least ? j->zero : least;
}

int64_t topt_job_sharers(const struct job *j)
{
    return j->dp * j->cp;
}

int topt_job_even_stages(const struct job *j)
{
    for (size_t i = 1; i < json_array_size(j->layers); i++)
        if (!json_equal(json_array_get(j->layers, i), json_array_get(j->layers, 0)))
            return 0;
    return 1;
}

int topt_job_is_mixed(const struct job *j)
{
    return j->precision == JOB_BF16_MIXED || j->precision == JOB_F16_MIXED;
}

static int are_unequal(const json_t *shares)
{
    for (size_t i = 1; i < json_array_size(shares); i++)
        if (!json_equal(json_array_get(shares, i), json_array_get(shares, 0)))
            return 1;
    return 0;
}

static int read_component(const json_t *group, struct topt_component *ret,
                          struct topt_error *err)
{
    int64_t nodes, each, gpus;
    const char *name;
    if (topt_json_string(group, "group", "name", &name, err) ||
        topt_json_int(group, "group", "nodes", 1, MAX_RANKS, &nodes, err) ||
        topt_json_int(group, "group", "gpus_per_node", 1, MAX_RANKS, &each, err))
        return -1;
    gpus = nodes * each;
    if (topt_json_int_or(group, "group", "gpus", 1, gpus, &gpus, err))
        return -1;
    *ret = topt_component_of(group, gpus);
    return 0;
}

/* The mesh divides GPUs into nodes as small as the smallest of any group; launchers are started on the nodes that
 * there are. */
static int read_components(const json_t *plan, struct job *j, struct topt_error *err)
{
    const json_t *groups = json_object_get(json_object_get(plan, "hw"), "groups");
    int64_t nodes = 0, gpus = 0;
    size_t i, n = json_array_size(groups);
    json_t *group;
    if (n > JOB_COMPONENTS)
        return topt_fail(err, TOPT_ERR_INVAL, "hw.groups: %zu groups, not at most %d", n,
                         JOB_COMPONENTS);
    json_array_foreach(groups, i, group)
    {
        struct topt_component *c = &j->component[i];
        if (read_component(group, c, err))
            return -1;
        nodes += c->nodes;
        gpus += c->nodes * c->per_node;
    }
    if (!n) {
        j->component[0] = (struct topt_component){"", j->nodes, j->per_node};
        j->components = 1;
        return 0;
    }
    if (gpus != j->gpus)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "hw.groups: %lld GPUs in nodes of equally many of a group, and "
                         "the mesh has %lld",
                         (long long)gpus, (long long)j->gpus);
    j->components = (int)n;
    j->nodes = nodes;
    j->per_node = j->component[0].per_node;
    for (i = 1; i < n; i++)
        if (j->component[i].per_node != j->per_node)
            j->per_node = 0;
    return 0;
}

static int read_mesh(const json_t *plan, struct job *j, struct topt_error *err)
{
    const json_t *mesh = json_object_get(plan, "mesh");
    if (topt_json_int(mesh, "mesh", "nodes", 1, MAX_RANKS, &j->nodes, err) ||
        topt_json_int(mesh, "mesh", "gpus_per_node", 1, MAX_RANKS, &j->per_node, err))
        return -1;
    j->gpus = j->nodes * j->per_node;
    j->unequal_shares = are_unequal(json_object_get(mesh, "shares")) ||
                        are_unequal(json_object_get(mesh, "state_shares"));
    return read_components(plan, j, err);
}

static int read_order(const json_t *u, struct job *j, struct topt_error *err)
{
    const char *name;
    struct topt_order_shape shape = {(int)j->pp, (int)j->vp, j->steps};
    if (topt_json_string(u, "uniform", "schedule", &name, err))
        return -1;
    for (int i = 0; i < TOPT_ORDERS; i++) {
        j->order = (enum topt_order_row)i;
        if (!strcmp(topt_order_name(j->order), name))
            return topt_order_takes(&topt_orders[i], &shape)
                       ? 0
                       : topt_fail(err, TOPT_ERR_INVAL,
                                   "uniform.schedule: %s takes no %lld stages of %lld "
                                   "chunks with %lld micro-batches",
                                   name, (long long)j->pp, (long long)j->vp,
                                   (long long)j->steps);
    }
    return topt_fail(err, TOPT_ERR_INVAL, "uniform.schedule: no schedule '%.40s'", name);
}

static int read_uniform(const json_t *plan, struct job *j, struct topt_error *err)
{
    const json_t *u = json_object_get(plan, "uniform");
    if (!u)
        return 0;
    if (topt_json_int(u, "uniform", "dp", 1, MAX_RANKS, &j->dp, err) ||
        topt_json_int(u, "uniform", "tp", 1, MAX_RANKS, &j->tp, err) ||
        topt_json_int(u, "uniform", "zero", 0, 3, &j->zero, err) ||
        topt_json_int(u, "uniform", "micro_batch", 1, MAX_SIZE, &j->micro, err) ||
        topt_json_bool_or(u, "uniform", "recompute", &j->recompute, err) ||
        topt_json_bool_or(u, "uniform", "sequence_parallel", &j->sequence_parallel,
                          err) ||
        topt_json_int_or(u, "uniform", "pp", 1, MAX_RANKS, &j->pp, err) ||
        topt_json_int_or(u, "uniform", "vp", 1, MAX_RANKS, &j->vp, err) ||
        topt_json_int_or(u, "uniform", "cp", 1, MAX_RANKS, &j->cp, err) ||
        topt_json_string_or(u, "uniform", "cp_comm", &j->cp_comm, err) ||
        topt_json_string_or(u, "uniform", "recompute_modules", &j->modules, err) ||
        topt_json_int_or(u, "uniform", "ep", 1, MAX_RANKS, &j->ep, err) ||
        topt_json_int_or(u, "uniform", "etp", 1, MAX_RANKS, &j->etp, err))
        return -1;
    int64_t ranks = j->dp * j->cp * j->tp;
    if (ranks * j->pp != j->gpus)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "uniform: %lld x %lld x %lld ranks are not %lld",
                         (long long)(j->dp * j->cp), (long long)j->tp, (long long)j->pp,
                         (long long)j->gpus);
    if (j->ep > 1 && ranks % (j->ep * j->etp))
        return topt_fail(err, TOPT_ERR_INVAL,
                         "uniform: experts over %lld x %lld ranks of %lld",
                         (long long)j->ep, (long long)j->etp, (long long)ranks);
    if (j->cp > 1 && strcmp(j->cp_comm, "a2a") && strcmp(j->cp_comm, "all_gather") &&
        strcmp(j->cp_comm, "p2p"))
        return topt_fail(err, TOPT_ERR_INVAL, "uniform.cp_comm: no such '%.20s'",
                         j->cp_comm);
    j->layers = json_object_get(u, "layers");
    if (j->pp > 1 && json_array_size(j->layers) != (size_t)(j->pp * j->vp))
        return topt_fail(err, TOPT_ERR_INVAL,
                         "uniform.layers: not the layers of %lld stages of %lld chunks",
                         (long long)j->pp, (long long)j->vp);
    j->shard = j->dp;
    if ((j->pp > 1 && read_order(u, j, err)) ||
        topt_json_int_or(u, "uniform", "shard", 1, MAX_RANKS, &j->shard, err) ||
        topt_json_int_or(u, "uniform", "recompute_layers", 0, MAX_SIZE,
                         &j->recompute_layers, err))
        return -1;
    if (j->dp % j->shard)
        return topt_fail(err, TOPT_ERR_INVAL, "uniform.shard: %lld do not divide dp %lld",
                         (long long)j->shard, (long long)j->dp);
    if (j->batch % (j->dp * j->micro) || j->batch / (j->dp * j->micro) != j->steps)
        return topt_job_refuse(j, "pytorch", err,
                               "batch %lld is not %lld ranks x micro-batch %lld x %lld",
                               (long long)j->batch, (long long)j->dp, (long long)j->micro,
                               (long long)j->steps);
    return 0;
}

/* What is written into scripts is of a few letters: nothing that a shell would read. */
static int read_names(const json_t *plan, struct job *j, struct topt_error *err)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
    if (topt_json_string_or(plan, "plan", "framework", &j->framework, err) ||
        topt_json_string_or(plan, "plan", "id", &j->id, err))
        return -1;
    if (!topt_is_id(j->id))
        return topt_fail(err, TOPT_ERR_INVAL, "id is no plan's: '%.40s'", j->id);
    if (j->framework[strspn(j->framework, letters)] || strlen(j->framework) > 32)
        return topt_fail(err, TOPT_ERR_INVAL, "framework: no such '%.40s'", j->framework);
    return 0;
}

/* Adapters and frozen parameters are counted by the model itself. */
static int read_train(const json_t *model, struct job *j, struct topt_error *err)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789-_.,:*?[]!+";
    struct topt_model_stats stats;
    if (topt_json_string_or(model, "model", "train", &j->train, err))
        return -1;
    if (!*j->train || j->train[strspn(j->train, letters)])
        return topt_fail(err, TOPT_ERR_INVAL, "model.train: no such '%.40s'", j->train);
    if (!strcmp(j->train, "all"))
        return 0;
    struct topt_model *m = topt_model_from_json(model, err);
    if (!m)
        return -1;
    topt_model_stats(m, &stats);
    topt_model_destroy(m);
    j->trained = stats.trained;
    return 0;
}

int topt_job_read(const json_t *plan, struct job *ret, struct topt_error *err)
{
    struct job j = {.plan = plan,
                    .framework = "topt",
                    .mode = "",
                    .id = "",
                    .hw = "HW",
                    .steps = 1,
                    .pp = 1,
                    .vp = 1,
                    .ep = 1,
                    .cp = 1,
                    .cp_comm = "",
                    .modules = "",
                    .etp = 1,
                    .train = "all"};
    const json_t *settings = json_object_get(plan, "settings");
    const json_t *model = json_object_get(plan, "model"), *ops;
    if (topt_json_format(plan, "plan", err))
        return -1;
    if (!json_is_object(settings) || !json_is_object(model) ||
        !json_is_object(json_object_get(plan, "mesh")))
        return topt_fail(err, TOPT_ERR_INVAL,
                         "the plan lacks its mesh, settings or model");
    if (read_names(plan, &j, err) ||
        topt_json_string(settings, "settings", "optimizer", &j.optimizer, err) ||
        topt_json_int_or(settings, "settings", "micro_batches", 1, MAX_SIZE, &j.steps,
                         err) ||
        topt_json_string(model, "model", "name", &j.name, err) ||
        topt_json_int(model, "model", "batch", 1, MAX_SIZE, &j.batch, err) ||
        topt_json_int(model, "model", "seq", 1, MAX_SIZE, &j.seq, err) ||
        topt_json_array(model, "model", "ops", &ops, err) ||
        read_precision(settings, &j, err) || read_mesh(plan, &j, err))
        return -1;
    const char *overlap = word(settings, "overlap");
    j.overlap = *overlap && strcmp(overlap, "none");
    j.loss = word(settings, "loss_kernel");
    j.loss = *j.loss ? j.loss : "fused";
    j.dispatch = word(settings, "dispatch");
    if (json_is_string(json_object_get(json_object_get(plan, "hw"), "name")))
        j.hw = word(json_object_get(plan, "hw"), "name");
    if (read_uniform(plan, &j, err) || read_train(model, &j, err))
        return -1;
    read_model(&j.model, ops);
    *ret = j;
    return 0;
}

/* ---- refusals ---------------------------------------------------------------------------- */

int topt_job_refuse(const struct job *j, const char *framework, struct topt_error *err,
                    const char *reason, ...)
{
    char why[160];
    va_list ap;
    va_start(ap, reason);
    vsnprintf(why, sizeof why, reason, ap);
    va_end(ap);
    return topt_fail(err, TOPT_ERR_INFEASIBLE,
                     "%s; run: topt plan MODEL --hw %.40s --batch %lld --seq %lld --mode "
                     "mini-time --gpus %lld --framework %s%s%.80s",
                     why, j->hw, (long long)j->batch, (long long)j->seq,
                     (long long)j->gpus, framework,
                     strcmp(j->train, "all") ? " --train " : "",
                     strcmp(j->train, "all") ? j->train : "");
}

int topt_job_trains_all(const struct job *j, const char *framework,
                        struct topt_error *err)
{
    return strcmp(j->train, "all")
               ? topt_job_refuse(j, "pytorch", err,
                                 "%s trains all parameters, and this plan %.60s",
                                 framework, j->train)
               : 0;
}

int topt_job_splits(const struct job *j, const char *framework, int replicate,
                    struct topt_error *err)
{
    const struct job_model *m = &j->model;
    if (j->tp == 1)
        return 0;
    if (!m->layers)
        return topt_job_refuse(j, framework, err,
                               "tensor parallelism needs attention blocks to split");
    if (m->heads % j->tp)
        return topt_job_refuse(j, framework, err,
                               "tensor parallelism %lld does not divide %lld query heads",
                               (long long)j->tp, (long long)m->heads);
    if (m->kv_heads % j->tp && !(replicate && j->tp % m->kv_heads == 0))
        return topt_job_refuse(
            j, framework, err,
            "tensor parallelism %lld does not fit %lld key-value heads", (long long)j->tp,
            (long long)m->kv_heads);
    if (m->ffn % j->tp)
        return topt_job_refuse(
            j, framework, err,
            "tensor parallelism %lld does not divide %lld inner features",
            (long long)j->tp, (long long)m->ffn);
    return 0;
}

/* ---- what targets write into ------------------------------------------------------------- */

static void TOPT_PRINTF(2, 0) remark(json_t *list, const char *fmt, va_list ap)
{
    char text[400];
    vsnprintf(text, sizeof text, fmt, ap);
    json_array_append_new(list, json_string(text));
}

void topt_sheet_differs(struct sheet *s, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    remark(s->differs, fmt, ap);
    va_end(ap);
}

void topt_sheet_script(struct sheet *s, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    remark(s->script, fmt, ap);
    va_end(ap);
}

int topt_sheet_file(struct sheet *s, const char *name, struct topt_text *text,
                    struct topt_error *err)
{
    int rc = text->oom
                 ? -1
                 : json_array_append_new(
                       s->files, json_pack("{s:s, s:s}", "name", name, "text", text->s));
    topt_text_fini(text);
    return rc ? topt_fail(err, TOPT_ERR_NOMEM, "no memory for the file %s", name) : 0;
}

void topt_job_put_name(const char *name, struct topt_text *t)
{
    for (const char *p = name; *p && p - name < 60; p++)
        topt_text_add(t, "%c",
                      isalnum((unsigned char)*p) || strchr("._-", *p) ? *p : '-');
}

void topt_job_here(struct topt_text *t)
{
    topt_text_add(t, "here=$(cd \"$(dirname \"$0\")\" && pwd)\n");
}

void topt_job_import_here(struct topt_text *t)
{
    topt_job_here(t);
    topt_text_add(t, "export PYTHONPATH=\"$here${PYTHONPATH:+:$PYTHONPATH}\"\n");
}

void topt_job_put_node(const struct job *j, struct topt_text *t)
{
    if (j->components > 1)
        topt_text_add(t, "node=${NODE_RANK:-${SLURM_NODEID:?set NODE_RANK to the number "
                         "of this node}}\n");
}

/* $gpus, of a node of this component. */
static void put_gpus_of_node(const struct job *j, struct topt_text *t)
{
    int64_t first = 0;
    for (int i = 0; i < j->components; i++) {
        const struct topt_component *c = &j->component[i];
        if (i)
            topt_text_add(t, "[ \"$node\" -lt %lld ] || ", (long long)first);
        topt_text_add(t, "gpus=%lld\n", (long long)c->per_node);
        first += c->nodes;
    }
}

void topt_job_start_torchrun(const struct job *j, const char *command,
                             struct topt_text *t)
{
    topt_job_put_node(j, t);
    if (!j->per_node)
        put_gpus_of_node(j, t);
    topt_text_add(t, "%s --nnodes=%lld --nproc-per-node=", command, (long long)j->nodes);
    if (j->per_node)
        topt_text_add(t, "%lld", (long long)j->per_node);
    else
        topt_text_add(t, "\"$gpus\"");
    if (j->nodes == 1)
        topt_text_add(t, " --standalone");
    else if (j->components > 1) /* each node has its own place */
        topt_text_add(t, " --node-rank=\"$node\" \\\n"
                         "    --master-addr=\"$MASTER_ADDR\" "
                         "--master-port=\"${MASTER_PORT:-29500}\"");
    else
        topt_text_add(t, " --rdzv-backend=c10d --rdzv-id=\"${SLURM_JOB_ID:-0}\" \\\n"
                         "    --rdzv-endpoint=\"$MASTER_ADDR:${MASTER_PORT:-29500}\"");
}
