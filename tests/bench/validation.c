/* validation.c - docs/VALIDATION.md: published measurements held against predictions.
 *
 * Each row (validation_rows.c) is a run that somebody published: the model, the cluster, the
 * plan they ran and the system that ran it.  The same plan is costed here; nothing is tuned to
 * a row.  Prints the whole document. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chart.h"
#include "grid.h"
#include "planning.h"
#include "free.h"
#include "chart_svg.h"
#include "hw_impl.h"
#include "peak.h"
#include "topt_lower.h"
#include "topt_model.h"
#include "topt_plan.h"
#include "topt_tensor.h"
#include "topt_text.h"
#include "validation_rows.h"

__attribute__((noreturn)) static void give_up(const char *what,
                                              const struct topt_error *err)
{
    fprintf(stderr, "validation: %s: %s\n", what, err->text);
    exit(1);
}

/* ---- models -------------------------------------------------------------------------------- */

struct builder {
    struct topt_model *m;
    const struct sizes *of;
    char prefix[16];
    struct topt_error err;
};

static enum topt_op_role role_of(const char *name)
{
    static const struct {
        const char *name;
        enum topt_op_role role;
    } of[] = {{"qkv", TOPT_ROLE_QKV},          {"out", TOPT_ROLE_OUT},
              {"gate", TOPT_ROLE_GATE},        {"up", TOPT_ROLE_UP},
              {"down", TOPT_ROLE_DOWN},        {"embedding", TOPT_ROLE_EMBEDDING},
              {"wte", TOPT_ROLE_EMBEDDING},    {"head", TOPT_ROLE_HEAD},
              {"types", TOPT_ROLE_WHOLE},      {"position", TOPT_ROLE_WHOLE},
              {"classifier", TOPT_ROLE_WHOLE}, {"pooler", TOPT_ROLE_WHOLE}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        if (!strcmp(of[i].name, name))
            return of[i].role;
    return TOPT_ROLE_NONE;
}

static int add(struct builder *b, const char *kind, const char *name,
               const struct topt_attrs *a, int ninputs, int x, int y)
{
    char full[64];
    int inputs[] = {x, y};
    snprintf(full, sizeof full, "%s%s", b->prefix, name);
    int t = topt_model_add(b->m, kind, full, ninputs, inputs, a, &b->err);
    if (t < 0)
        give_up(b->of->name, &b->err);
    topt_model_say_role(b->m, role_of(name));
    return t;
}

static int one(struct builder *b, const char *kind, const char *name, int x)
{
    return add(b, kind, name, NULL, 1, x, -1);
}

static int linear(struct builder *b, int x, int64_t count, int64_t unit, int bias,
                  const char *name)
{
    struct topt_attrs a = {.features = count, .features_unit = unit};
    char full[32];
    x = add(b, "linear", name, &a, 1, x, -1);
    snprintf(full, sizeof full, "%s.bias", name);
    return bias ? one(b, "bias", full, x) : x;
}

static int norm(struct builder *b, int x, const char *name)
{
    struct topt_attrs a = {.rms = b->of->shape == LLAMA};
    return add(b, "norm", name, &a, 1, x, -1);
}

static int drop(struct builder *b, int x, const char *name)
{
    struct topt_attrs a = {.rate = 0.1};
    return b->of->dropout ? add(b, "dropout", name, &a, 1, x, -1) : x;
}

static int activate(struct builder *b, int x, int activation, const char *name)
{
    struct topt_attrs a = {.activation = activation};
    return add(b, "unary", name, &a, 1, x, -1);
}

static int attention(struct builder *b, int x)
{
    const struct sizes *of = b->of;
    int64_t head = of->width / of->heads, q = of->heads / of->kv_heads;
    struct topt_attrs a = {.heads = of->heads,
                           .kv_heads = of->kv_heads,
                           .head_dim = head,
                           .causal = of->shape != BERT,
                           .rope_theta = of->shape == LLAMA ? 500000 : 0};
    int bias = of->shape != LLAMA;
    x = linear(b, x, of->kv_heads, (q + 2) * head, bias, "qkv");
    x = add(b, "attention", "attention", &a, 1, x, -1);
    return drop(b, linear(b, x, of->width, 1, bias, "out"), "drop1");
}

/* A gate as an operator of its own, since recomputation tells its products apart. */
static int feed_forward(struct builder *b, int x)
{
    const struct sizes *of = b->of;
    int bias = of->shape != LLAMA, up;
    if (of->shape == LLAMA) {
        int gate = linear(b, x, of->inner, 1, 0, "gate");
        up = linear(b, x, of->inner, 1, 0, "up");
        gate = activate(b, gate, TOPT_ACT_SILU, "silu");
        up = add(b, "mul", "gated", NULL, 2, gate, up);
    } else {
        up = activate(b, linear(b, x, of->inner, 1, bias, "up"), TOPT_ACT_GELU, "gelu");
    }
    return drop(b, linear(b, up, of->width, 1, bias, "down"), "drop2");
}

static int block(struct builder *b, int x, int i)
{
    int post = b->of->shape == BERT;
    snprintf(b->prefix, sizeof b->prefix, "h%d.", i);
    int y = attention(b, post ? x : norm(b, x, "norm1"));
    x = add(b, "add", "add1", NULL, 2, x, y);
    x = post ? norm(b, x, "norm1") : x;
    y = feed_forward(b, post ? x : norm(b, x, "norm2"));
    x = add(b, "add", "add2", NULL, 2, x, y);
    return post ? norm(b, x, "norm2") : x;
}

/* A class for each sample, from its first position. */
static int classify(struct builder *b, int x)
{
    struct topt_attrs first = {.offset = 0};
    x = add(b, "select", "first", &first, 1, x, -1);
    x = linear(b, x, b->of->width, 1, 1, "pooler");
    x = drop(b, activate(b, x, TOPT_ACT_TANH, "tanh"), "pooler.drop");
    return linear(b, x, 2, 1, 1, "classifier");
}

static void build_ops(struct builder *b, int64_t seq)
{
    const struct sizes *of = b->of;
    struct topt_attrs table = {.vocab = of->vocab, .features = of->width};
    struct topt_attrs types = {.vocab = 2, .features = of->width};
    struct topt_attrs places = {.positions = of->shape == BERT ? 512 : seq};
    int tied = of->shape == GPT ? add(b, "variable", "wte", &table, 0, -1, -1) : -1;
    int x = tied < 0 ? add(b, "embedding", "embedding", &table, 0, -1, -1)
                     : one(b, "embedding", "embedding", tied);
    if (of->shape == BERT)
        x = add(b, "add", "typed", NULL, 2, x,
                add(b, "embedding", "types", &types, 0, -1, -1));
    if (of->shape != LLAMA)
        x = add(b, "position", "position", &places, 1, x, -1);
    if (of->shape == BERT)
        x = norm(b, x, "embedding.norm");
    x = drop(b, x, "embedding.drop");
    for (int i = 0; i < of->layers; i++)
        x = block(b, x, i);
    b->prefix[0] = '\0';
    if (of->shape != BERT)
        x = norm(b, x, "norm");
    x = of->shape == BERT ? classify(b, x)
        : tied < 0        ? linear(b, x, of->vocab, 1, 0, "head")
                          : add(b, "linear", "head", NULL, 2, x, tied);
    one(b, "cross_entropy", "loss", x);
}

static void check_parameters(const struct sizes *of, const struct topt_model *m)
{
    struct topt_error err = {0};
    int64_t sum = 0;
    for (int i = 0; i < m->nops; i++)
        for (int x = 0; x < m->op[i].spec->noperands; x++) {
            int64_t n = 1;
            if (m->op[i].operand[x].role != TOPT_PARAM || !m->op[i].operand[x].present)
                continue;
            for (int d = 0; d < topt_operand_rank(&m->op[i], x); d++)
                n *= m->op[i].operand[x].dim[d].count * m->op[i].operand[x].dim[d].unit;
            sum += n;
        }
    topt_fail(&err, TOPT_ERR_INVAL, "has %lld parameters, published are %lld",
              (long long)sum, (long long)of->parameters);
    if (of->parameters && sum != of->parameters)
        give_up(of->name, &err);
}

static struct topt_model *build(const struct run *r, int64_t batch)
{
    struct builder b = {.of = r->model};
    b.m = topt_model_create(r->model->name, batch, r->seq, &b.err);
    if (!b.m)
        give_up(r->model->name, &b.err);
    build_ops(&b, r->seq);
    if (topt_model_finish(b.m, &b.err))
        give_up(r->model->name, &b.err);
    check_parameters(r->model, b.m);
    return b.m;
}

/* ---- their plan ---------------------------------------------------------------------------- */

static int ends(const char *s, const char *with)
{
    size_t n = strlen(s), m = strlen(with);
    return n >= m && !strcmp(s + n - m, with);
}

static int dim_of(const struct topt_op *op, const char *name)
{
    for (int d = 0; d < op->spec->ndims; d++)
        if (!strcmp(op->spec->dim[d].name, name))
            return d;
    return -1;
}

static struct topt_config config_of(const struct run *r, const struct topt_op *op,
                                    const struct topt_mesh *mesh, int cut, int tensor_dim)
{
    struct topt_config c = topt_config_none();
    int batch = dim_of(op, "b");
    if (batch < 0 && r->zero == TOPT_ZERO_PARAM)
        batch = dim_of(op, "v"); /* a shared table is stored split, as parameters are */
    for (int a = 0; a < mesh->naxes; a++)
        c.dim[a] = (int8_t)(a < cut ? batch : tensor_dim);
    c.zero = (uint8_t)r->zero;
    if (!topt_config_valid(op, &c, mesh))
        c.zero = 0;
    return c;
}

static int block_of(const struct topt_op *op)
{
    return op->name[0] == 'h' ? atoi(op->name + 1) : 0;
}

static int runs_again(enum again again, const struct topt_op *op)
{
    static const char *const kept[] = {".qkv", ".attention", ".gate", ".down"};
    switch (again) {
    case AGAIN_WHOLE:
    case AGAIN_ASKED:
        return 1;
    case AGAIN_SECOND:
        return block_of(op) % 2 == 0;
    case AGAIN_PRODUCTS:
        for (int i = 0; i < 4; i++)
            if (ends(op->name, kept[i]))
                return 0;
        return 1;
    case AGAIN_ATTENTION:
        return !strcmp(op->spec->name, "attention");
    default:
        return 0;
    }
}

/* A hub holds a table as it is stored, samples by the data axes, else what the framework does. */
static struct topt_hub hub_of(const struct topt_model *m, int tensor,
                              const struct topt_mesh *mesh, int cut, int tensor_dim,
                              const struct topt_config *made)
{
    const struct topt_op *op = &m->op[m->tensor[tensor].producer];
    int table = !strcmp(op->spec->name, "variable");
    struct topt_hub h = {topt_config_none(),
                         made->recompute ? TOPT_HUB_RECOMPUTE : TOPT_HUB_KEEP};
    for (int a = 0; a < mesh->naxes; a++)
        h.layout.dim[a] = (int8_t)(a >= cut ? tensor_dim : table ? made->dim[a] : 0);
    return h;
}

/* Recomputation as flagged, less what nobody asks for where the system stops then. */
static void flag(const struct run *r, const struct topt_model *m, struct topt_strategy *s)
{
    struct topt_error err = {0};
    struct topt_settings ours = topt_settings_default();
    uint8_t *may = NULL, *asked = calloc((size_t)m->nops + 1, 1);
    if (!asked || topt_recomputable(m, &ours, &may, &err))
        give_up(r->model->name, &err);
    for (int i = 0; i < m->nops; i++)
        s->config[i].recompute = (uint8_t)(may[i] && runs_again(r->again, &m->op[i]));
    for (int t = 0; t < m->ntensors; t++)
        s->hub[t].keep = s->config[m->tensor[t].producer].recompute ? TOPT_HUB_RECOMPUTE
                                                                    : TOPT_HUB_KEEP;
    topt_recompute_demand(m, s, asked);
    for (int i = 0; i < m->nops && r->again != AGAIN_WHOLE; i++)
        s->config[i].recompute = s->config[i].recompute && asked[i];
    free(may);
    free(asked);
}

static struct topt_strategy *plan_of(const struct run *r, const struct topt_model *m,
                                     const struct topt_mesh *mesh)
{
    struct topt_strategy *s = topt_strategy_create(m);
    struct topt_error err = {0};
    struct topt_tensor_map map;
    int cut = mesh->naxes;
    for (int parts = r->tensor; parts > 1; parts /= mesh->size[cut])
        cut--;
    if (!s || topt_tensor_map_init(&map, m, &topt_tensor_megatron, r->positions, &err))
        give_up(r->model->name, &err);
    for (int i = 0; i < m->nops; i++)
        s->config[i] = config_of(r, &m->op[i], mesh, cut, map.op[i]);
    flag(r, m, s);
    for (int t = 0; t < m->ntensors; t++)
        if (m->tensor[t].nconsumers > 1)
            s->hub[t] =
                hub_of(m, t, mesh, cut, map.hub[t], &s->config[m->tensor[t].producer]);
    topt_tensor_map_fini(&map);
    return s;
}

/* Seconds of a step.  TFLOP/s are by the authors' own count (Narayanan et al. 2021). */
static double measured(const struct run *r)
{
    double tokens = (double)r->batch * r->seq;
    double h = r->model->width, l = r->model->layers;
    if (r->seconds > 0)
        return r->seconds;
    if (r->tokens > 0)
        return tokens / (r->tokens * r->gpus);
    double flops =
        96 * tokens * l * h * h * (1 + r->seq / (6 * h) + r->model->vocab / (16 * l * h));
    return flops / (r->gpus * r->tflops * 1e12);
}

/* What was predicted and measured of a row. */
struct outcome {
    double seconds, seen, mib;
    int fits;   /* so is predicted, and so it was */
    int inside; /* measured within the band around what is predicted */
};

/* The band is that of plan documents: shares by what each part of the time rests on. */
static int inside_band(const struct topt_hw *hw, const struct topt_strategy_cost *c,
                       double ns)
{
    double low = 0, high = 0;
    for (int b = 0; b < TOPT_BASIS_COUNT; b++) {
        double part = (double)c->sum.basis_ns[b];
        low += part * (1 - topt_hw_band(hw, (enum topt_basis)b));
        high += part * (1 + topt_hw_band(hw, (enum topt_basis)b));
    }
    return ns >= low && ns <= high;
}

/* The run as a request: the framework's row, with what the source says was otherwise. */
static struct topt_request run_of(const struct run *r, const struct topt_model *whole,
                                  const struct topt_hw *hw)
{
    struct topt_query words = {.mode = "profiling"};
    strcpy(words.framework, r->framework);
    strcpy(words.precision, r->dtype == TOPT_F32 ? "f32" : "bf16-mixed");
    strcpy(words.optimizer, topt_optimizer_name(r->optimizer));
    struct topt_error err = {0};
    struct topt_request q;
    topt_request_init(&q);
    if (topt_request_read(&words, &q, NULL, &err))
        give_up(r->model->name, &err);
    q.model = whole;
    q.hw = hw;
    q.micro_batches = r->micro_batches;
    q.settings.eager = r->eager;
    q.given |= TOPT_GIVEN_EAGER;
    if (topt_request_complete(&q, &err))
        give_up(r->model->name, &err);
    return q;
}

static enum peak_again again_of(const struct run *r)
{
    switch (r->again) {
    case AGAIN_SECOND:
    case AGAIN_ATTENTION:
        return PEAK_OPERATORS;
    case AGAIN_PRODUCTS:
        return PEAK_PRODUCTS;
    default:
        return r->staying ? PEAK_STAYING : PEAK_AS_VARIANT;
    }
}

/* Memory as the planner counts it for the framework that ran it. */
static double memory_of(const struct run *r, const struct topt_hw *hw,
                        const struct topt_strategy *s)
{
    struct topt_error err = {0};
    struct topt_grid_search shape;
    struct topt_planning micros;
    struct peak at;
    struct topt_model *whole = build(r, r->batch);
    struct topt_request q = run_of(r, whole, hw);
    if (topt_planning_init(&micros, &q, &err) ||
        topt_grid_open(&shape, &micros, r->gpus / r->per_node, r->per_node,
                       TOPT_GOAL_LEAST, &err))
        give_up(r->model->name, &err);
    struct topt_degrees v = topt_degrees_none();
    v.micro_batches = r->micro_batches;
    v.data = shape.mesh.devices;
    v.level = (int)r->zero;
    v.by_schedule = 1;
    v.recompute = r->again == AGAIN_WHOLE || r->again == AGAIN_ASKED;
    peak_of(r->model->name, &shape, &v, s, again_of(r), &at);
    topt_grid_close(&shape);
    topt_planning_fini(&micros);
    topt_model_destroy(whole);
    return (double)at.cost.memory_bytes;
}

static struct outcome predict(const struct run *r)
{
    struct topt_error err = {0};
    struct topt_mesh mesh;
    struct topt_settings settings = topt_settings_default();
    struct topt_strategy_cost cost;
    settings.dtype = r->dtype;
    settings.optimizer = r->optimizer;
    settings.micro_batches = r->micro_batches;
    settings.overlap = r->overlap;
    settings.by_schedule = r->overlap != TOPT_OVERLAP_NONE; /* as of any uniform plan */
    settings.eager = r->eager;
    settings.granule_bytes = 512;
    struct topt_hw *hw = topt_hw_load(r->hw, &err);
    if (!hw || topt_mesh_init(&mesh, r->gpus / r->per_node, r->per_node, &err))
        give_up(r->model->name, &err);
    struct topt_model *m = build(r, r->batch / r->micro_batches);
    struct topt_router *router = topt_router_create(hw, &mesh);
    struct topt_strategy *s = plan_of(r, m, &mesh);
    struct topt_costing k = {
        .model = m, .hw = hw, .mesh = &mesh, .settings = &settings, .router = router};
    if (!router)
        give_up(r->model->name, &err);
    if (topt_cost_strategy(&k, s, &cost, &err))
        give_up(r->model->name, &err);
    double seen = measured(r);
    double bytes = r->framework ? memory_of(r, hw, s) : (double)cost.memory_bytes;
    struct outcome o = {.seconds = (double)cost.time_ns / 1e9,
                        .seen = seen,
                        .mib = bytes / (1 << 20),
                        .fits = bytes <= (double)topt_hw_memory_bytes(hw),
                        .inside = inside_band(hw, &cost, seen * 1e9)};
    topt_strategy_destroy(s);
    topt_router_destroy(router);
    topt_model_destroy(m);
    topt_hw_destroy(hw);
    return o;
}

/* ---- errors -------------------------------------------------------------------------------- */

struct error {
    int n;
    double size, sign; /* sums */
};

static void count(struct error *e, double error)
{
    e->n++;
    e->size += fabs(error);
    e->sign += error;
}

static void count_all(struct error *e, const struct error *from)
{
    e->n += from->n;
    e->size += from->size;
    e->sign += from->sign;
}

/* Of each job that several plans were measured for: what choosing the plan predicted fastest
 * costs over the fastest, a sample. */
static void print_regret(const struct group *g, const struct outcome *o)
{
    for (int i = 0; i < g->n; i++) {
        int first = g->run[i].job != NULL, plans = 0, picked = i, best = i;
        for (int k = 0; k < i && first; k++)
            first = !g->run[k].job || strcmp(g->run[k].job, g->run[i].job) != 0;
        for (int k = i; k < g->n && first; k++) {
            if (!g->run[k].job || strcmp(g->run[k].job, g->run[i].job))
                continue;
            plans++;
            if (o[k].seconds / g->run[k].batch < o[picked].seconds / g->run[picked].batch)
                picked = k;
            if (o[k].seen / g->run[k].batch < o[best].seen / g->run[best].batch)
                best = k;
        }
        if (plans > 1)
            printf("%s: %d plans; the one predicted fastest was measured %.1f %% slower "
                   "than the fastest.\n",
                   g->run[i].job, plans,
                   100 * (o[picked].seen / g->run[picked].batch /
                              (o[best].seen / g->run[best].batch) -
                          1));
    }
}

/* ---- the document -------------------------------------------------------------------------- */

static const char head[] =
    "# Predictions held against published measurements\n"
    "\n"
    "Written by one command; nothing in it is typed by hand:\n"
    "\n"
    "    cmake --build --preset release --target validation sheet\n"
    "    cd build/release/tests && { ./validation ../../../docs/validation.svg && "
    "./sheet; } "
    "\\\n"
    "        >../../../docs/VALIDATION.md\n"
    "\n"
    "Each row is a run that others published, and the same plan costed by topt: their\n"
    "model (with exactly as many parameters, where they say how many), cluster, splits,\n"
    "sharding, recomputation, samples that a GPU takes at a time, and optimizer; and of "
    "the\n"
    "system that ran it\n"
    "which communication it hides (`--overlap`) and what it does not fuse (`--eager`).\n"
    "The profiles are those shipped, one for a cluster. Where errors showed that "
    "something was\n"
    "missing it was added, with a figure that others measured apart from these runs and "
    "that\n"
    "the profile names; no number was fitted to a row or to a group. The rows are "
    "therefore not unseen:\n"
    "they showed which mechanisms were missing, and runs that nobody looked at before "
    "may lie further off.\n"
    "In runs with tensor parallelism each operator is split by its role, as the planner "
    "splits it for that\n"
    "framework (solver/plan/space/tensor_rules.c). The rows had these layouts before the "
    "planner had the rules,\n"
    "so that no figure changed with them.\n"
    "Errors are (predicted -\n"
    "measured) / measured. Memory is what `memory_bytes` says for the framework that ran "
    "it (`--framework`):\n"
    "tensors and what its allocator can't use, without the driver's context.\n"
    "\n"
    "Further down: which documented runs of public models fit and which do not, peaks "
    "held "
    "against\n"
    "PyTorch's own memory tracker, and the fewest GPUs beside what people ran on.\n"
    "What sizing does to a queue of jobs was replayed on a private Slurm\n"
    "([SLURM](SLURM.md#a-queue-with-and-without)).\n"
    "\n"
    "![predicted against measured time of a step](validation.svg)\n"
    "\n";

static const char standing[] =
    "\n"
    "What stands in the way of less than 10 % of all times: of H100 GPUs, the software "
    "of\n"
    "2023, and the clock under a power limit, for which no public measurement was found "
    "that\n"
    "is not one of these runs; of A100 GPUs, that less of the network was hidden than "
    "is\n"
    "thought here. A profile measured on the cluster itself (`topt profile`) and\n"
    "`--overlap none` have neither question. What stands in the way of less than 5 % of "
    "all\n"
    "memory: what an allocator loses in gaps, which published figures include in full, "
    "and "
    "predictions\n"
    "with the twentieth that is not given back when memory runs out.\n"
    "\n";

static const char tail[] =
    "## What can't be expressed\n"
    "\n"
    "- Stages of a pipeline: Megatron-LM's rows from 39.1B on, Korthikanti et al.'s "
    "530B,\n"
    "  Alpa's GPT 2.6B.\n"
    "- Aceso's rows (GPT 350M to 13B on V100 GPUs of 32 GB) are of its own plans, which "
    "were\n"
    "  not published with them, that on one GPU included.\n"
    "- Numbers of 8 bits: torchtitan's float8, llm-foundry's fp8.\n"
    "- The optimizer of Megatron-LM is one kernel, PyTorch's own is a dozen: `--eager` "
    "says\n"
    "  which, but not how often the host is too slow to start them.\n"
    "- What an allocator loses in gaps, run by run.\n"
    "\n";

static const char columns[] =
    "| model | GPUs | plan | step, measured | predicted | error |";
static const char memory_columns[] = " memory, measured | predicted | error |";

static const char *again_words(enum again again)
{
    static const char *const words[AGAIN_COUNT] = {
        [AGAIN_NOTHING] = "",
        [AGAIN_WHOLE] = ", recomputed",
        [AGAIN_ASKED] = ", recomputed",
        [AGAIN_SECOND] = ", every second block recomputed",
        [AGAIN_PRODUCTS] = ", all but every second product recomputed",
        [AGAIN_ATTENTION] = ", attention recomputed",
    };
    return words[again];
}

static void print_plan(const struct run *r)
{
    printf("data %d", r->gpus / r->tensor);
    if (r->tensor > 1)
        printf(" x tensor %d%s", r->tensor, r->positions ? ", norms by positions" : "");
    if (r->zero == TOPT_ZERO_PARAM)
        printf(", FSDP");
    printf("%s", again_words(r->again));
    int data = r->gpus / r->tensor;
    printf(", micro-batch %d", (r->batch / r->micro_batches + data - 1) / data);
    if (r->micro_batches > 1)
        printf(", %d times", r->micro_batches);
    if (r->optimizer != TOPT_ADAM && r->optimizer != TOPT_ADAMW)
        printf(", %s", topt_optimizer_name(r->optimizer));
}

static void print_system(const struct run *r)
{
    char *eager = topt_eager_words(r->eager);
    printf("overlap %s, eager %s", topt_overlap_name(r->overlap), eager ? eager : "");
    free(eager);
}

static void print_row(const struct group *g, const struct run *r, const struct outcome *o,
                      struct error *time, struct error *memory)
{
    double e = o->seconds / o->seen - 1;
    printf("| %s | %d | ", r->model->name, r->gpus);
    print_plan(r);
    if (r->overlap != g->run[0].overlap || r->eager != g->run[0].eager) {
        printf("; ");
        print_system(r);
    }
    printf(" | %.3g s | %.3g s | %+.0f %% |", o->seen, o->seconds, 100 * e);
    count(time, e);
    if (r->mib > 0) {
        double seen = r->mib - g->beside_mib;
        printf(" %.1f GiB | %.1f GiB | %+.0f %% |", seen / 1024, o->mib / 1024,
               100 * (o->mib / seen - 1));
        count(memory, o->mib / seen - 1);
    }
    printf("\n");
}

static void print_error(const char *what, const struct error *e)
{
    if (e->n)
        printf("%s: mean error %.1f %%, with its sign %+.1f %%, of %d.\n", what,
               100 * e->size / e->n, 100 * e->sign / e->n, e->n);
}

static void print_group(const struct group *g, struct error *time, struct error *memory)
{
    struct outcome *o = calloc((size_t)g->n, sizeof *o);
    struct topt_error err = {0};
    struct error t = {0}, m = {0};
    int nfit = 0, ninside = 0;
    if (!o)
        give_up(g->name, &err);
    printf("## %s\n\nSystem: ", g->name);
    print_system(&g->run[0]);
    printf(".\n\n%s%s\n|---|---|---|---|---|---|%s\n", columns,
           g->run[0].mib > 0 ? memory_columns : "",
           g->run[0].mib > 0 ? "---|---|---|" : "");
    for (int i = 0; i < g->n; i++) {
        o[i] = predict(&g->run[i]);
        nfit += o[i].fits;
        ninside += o[i].inside;
        print_row(g, &g->run[i], &o[i], &t, &m);
    }
    printf("\n");
    print_error("Time", &t);
    print_error("Memory", &m);
    printf("Measured within the prediction's band: %d of %d. Fit by prediction, as they "
           "did: %d of %d.\n",
           ninside, g->n, nfit, g->n);
    print_regret(g, o);
    printf("\nSource: %s.\n\nWhat explains the errors, as far as can be told: %s.\n\n",
           g->source, g->residual);
    count_all(time, &t);
    count_all(memory, &m);
    free(o);
}

/* ---- the picture --------------------------------------------------------------------------- */

static int is_a100(const struct run *r)
{
    return !strncmp(r->hw, "a100", 4);
}

static char *note_of(const struct run *r, double seen, double predicted)
{
    struct topt_text t = {0};
    topt_text_add(&t, "%s on %d GPU%s: %.3g s, predicted %.3g s", r->model->name, r->gpus,
                  r->gpus == 1 ? "" : "s", seen, predicted);
    return t.s;
}

/* Rows on A100 GPUs, or the others. */
static void plot_rows(struct topt_series *s, int a100, double *lo, double *hi)
{
    s->n = 0;
    for (int g = 0; g < validation_ngroups; g++)
        for (int i = 0; i < validation_groups[g].n; i++) {
            const struct run *r = &validation_groups[g].run[i];
            if (is_a100(r) != a100)
                continue;
            double y = predict(r).seconds * 1e9, x = measured(r) * 1e9;
            s->x[s->n] = x;
            s->y[s->n] = y;
            s->note[s->n++] = note_of(r, x / 1e9, y / 1e9);
            *lo = fmin(*lo, fmin(x, y));
            *hi = fmax(*hi, fmax(x, y));
        }
}

static int all_rows(void)
{
    int n = 0;
    for (int g = 0; g < validation_ngroups; g++)
        n += validation_groups[g].n;
    return n;
}

static void write_picture(const char *path)
{
    static const struct topt_caption caption = {
        .title = "Predicted and measured time of a step",
        .subtitle = "published runs; on the line a prediction is right",
        .footnote = "VALIDATION.md has each row and its source",
        .description =
            "Time of a step, predicted against measured, of each published run"};
    struct topt_chart c = {
        .x = {.label = "measured", .unit = TOPT_UNIT_NS, .scale = TOPT_LOG},
        .y = {.label = "predicted", .unit = TOPT_UNIT_NS, .scale = TOPT_LOG}};
    struct topt_error err = {0};
    double lo = INFINITY, hi = 0;
    struct topt_series *ideal =
        topt_chart_add(&c, TOPT_SERIES_IDEAL, "as measured", 2, 0);
    struct topt_series *a100 =
        topt_chart_add(&c, TOPT_SERIES_MARK, "on A100 GPUs", all_rows(), 1);
    struct topt_series *other =
        topt_chart_add(&c, TOPT_SERIES_CROSS, "on H100 and V100 GPUs", all_rows(), 1);
    if (!ideal || !a100 || !other)
        give_up(path, &err);
    plot_rows(a100, 1, &lo, &hi);
    plot_rows(other, 0, &lo, &hi);
    ideal->x[0] = ideal->y[0] = lo;
    ideal->x[1] = ideal->y[1] = hi;
    topt_axis_fit(&c.x, lo, hi, 8, 0);
    topt_axis_fit(&c.y, lo, hi, 6, 0);
    char *svg = topt_chart_svg(&caption, &c, 1);
    FILE *f = fopen(path, "w");
    topt_fail(&err, TOPT_ERR_IO, "can't be written");
    if (!svg || !f || fputs(svg, f) < 0 || fclose(f))
        give_up(path, &err);
    free(svg);
    topt_chart_fini(&c);
}

/* The nine rows that this document began with. */
static void print_first(void)
{
    static const struct {
        int group, row;
    } first[] = {{0, 0}, {0, 1}, {1, 0}, {2, 4}, {2, 2}, {3, 9}, {5, 10}, {5, 0}, {6, 0}};
    struct error time = {0};
    for (size_t i = 0; i < sizeof first / sizeof *first; i++) {
        const struct run *r = &validation_groups[first[i].group].run[first[i].row];
        struct outcome o = predict(r);
        count(&time, o.seconds / o.seen - 1);
    }
    print_error("Time of the nine rows that this document began with, one of each kind",
                &time);
}

/* What curves say of a point that is left out, and what rates say of small messages. */
static void print_collectives(void)
{
    printf("## Collectives\n\n| profile | curves | a point from its neighbours | below 1 "
           "MiB, "
           "bytes over rates |\n|---|---|---|---|\n");
    for (const char *const *name = topt_hw_shipped(); *name; name++) {
        struct topt_error err = {0};
        struct topt_hw *hw = topt_hw_load(*name, &err);
        struct topt_hw_curve_check c;
        double left_out = 0, rates = 0;
        int n = 0;
        if (!hw)
            give_up(*name, &err);
        for (; topt_hw_curve_check(hw, n, &c); n++) {
            left_out += c.mean_error;
            rates += c.rate_error;
        }
        if (n)
            printf("| %s | %d | %.1f %% | %.0f %% |\n", *name, n, 100 * left_out / n,
                   100 * rates / n);
        topt_hw_destroy(hw);
    }
    printf("\nMean errors of times: what is interpolated between sizes twice as far "
           "apart as "
           "those\nmeasured, and what bytes over the links' bandwidths would say "
           "instead.\n\n");
}

/* Prints the document; writes its picture where a file is named. */
int main(int argc, char **argv)
{
    struct error time = {0}, memory = {0};
    fputs(head, stdout);
    for (int i = 0; i < validation_ngroups; i++)
        print_group(&validation_groups[i], &time, &memory);
    printf("## All\n\n");
    print_error("Time", &time);
    print_error("Memory", &memory);
    print_first();
    fputs(standing, stdout);
    print_collectives();
    fputs(tail, stdout);
    if (argc > 1)
        write_picture(argv[1]);
    return 0;
}
