/* sheet.c - public models whose runs are documented: does the documented plan fit here as it did
 * there, and how few GPUs would do?  Prints both as tables of docs/VALIDATION.md.
 *
 *     sheet [--rows] [--tracked] [--fewest] [--parts] [--only TEXT] [--wrong MOST]
 *
 * Each row (sheet_rows.c) is a run that somebody documented with its outcome.  The same plan is
 * costed here: model, data and tensor parallelism, sharding, micro-batch, length, recomputation,
 * precision and optimizer; nothing is tuned to a row.  Where a plan leaves something open, which
 * dimension of an operator the tensor axes split, the lightest choice is taken.  Fails where
 * more outcomes than MOST are others than predicted. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "grid.h"
#include "planning.h"
#include "free.h"
#include "request.h"
#include "topt_framework.h"
#include "hw_impl.h"
#include "peak.h"
#include "sheet_rows.h"
#include "topt_lower.h"
#include "topt_model.h"
#include "topt_plan.h"

#define GIB ((double)((int64_t)1 << 30))

__attribute__((noreturn)) static void give_up(const char *what,
                                              const struct topt_error *err)
{
    fprintf(stderr, "sheet: %s: %s\n", what, err->text);
    exit(1);
}

/* ---- models -------------------------------------------------------------------------------- */

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

static struct topt_model *gates_apart(struct topt_model *m, const char *what)
{
    struct topt_error err = {0};
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
    topt_model_destroy(m);
    m = topt_model_from_json(doc, &err);
    json_decref(doc);
    if (!m)
        give_up(what, &err);
    return m;
}

static void check_parameters(const struct sheet_model *of, const struct topt_model *m)
{
    struct topt_error err = {0};
    struct topt_model_stats stats;
    topt_model_stats(m, &stats);
    topt_fail(&err, TOPT_ERR_INVAL, "has %lld parameters, published are %lld",
              (long long)stats.parameters, (long long)of->parameters);
    if (of->parameters && stats.parameters != of->parameters)
        give_up(of->name, &err);
}

static struct topt_model *load(const struct sheet_row *r, int64_t batch)
{
    struct topt_error err = {0};
    struct topt_import_options o = {.batch = batch, .seq = r->seq};
    struct topt_model *m = topt_model_import(r->model->config, strlen(r->model->config),
                                             r->model->name, &o, &err);
    if (!m)
        give_up(r->model->name, &err);
    check_parameters(r->model, m);
    return r->again == SHEET_PRODUCTS ? gates_apart(m, r->model->name) : m;
}

/* ---- their plan ---------------------------------------------------------------------------- */

/* The run as a request: the framework's row, with what the source says was otherwise. */
static struct topt_request run_of(const struct sheet_row *r, const struct topt_model *m,
                                  const struct topt_hw *hw)
{
    static const char *const precision[] = {
        [SHEET_F32] = "f32",
        [SHEET_MIXED] = "bf16-mixed",
        [SHEET_AUTOCAST] = "bf16-mixed",
        [SHEET_MAIN_F32] = "bf16-mixed",
        [SHEET_PURE_BF16] = "bf16",
    };
    struct topt_query words = {.mode = "profiling", .optimizer = "adamw"};
    strcpy(words.framework, r->framework);
    strcpy(words.precision, precision[r->precision]);
    strcpy(words.sequence_parallel, r->whole_norms ? "off" : "");
    struct topt_error err = {0};
    struct topt_request q;
    topt_request_init(&q);
    if (topt_request_read(&words, &q, NULL, &err))
        give_up(r->model->name, &err);
    q.model = m;
    q.hw = hw;
    q.threads = 1;
    q.micro_batches = r->accumulation;
    q.settings.eager = r->eager;
    q.given |= TOPT_GIVEN_EAGER;
    if (topt_request_complete(&q, &err))
        give_up(r->model->name, &err);
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

static int runs_again(const struct sheet_row *r, const struct topt_op *op)
{
    switch (r->again) {
    case SHEET_BLOCKS:
        return 1;
    case SHEET_HALF:
        return op->layer % 2 == 0;
    case SHEET_PRODUCTS:
        return !is_kept(op);
    case SHEET_SCORES:
        return !strcmp(op->spec->name, "attention");
    default:
        return 0;
    }
}

/* Recomputation of single operators, which no variant of the uniform space has. */
static void flag(const struct sheet_row *r, const struct topt_costing *k,
                 struct topt_strategy *s)
{
    const struct topt_model *m = k->model;
    struct topt_error err = {0};
    uint8_t *may = NULL, *asked = calloc((size_t)m->nops + 1, 1);
    if (!asked || topt_recomputable(m, k->settings, &may, &err))
        give_up(r->model->name, &err);
    for (int i = 0; i < m->nops; i++)
        s->config[i].recompute = (uint8_t)(may[i] && runs_again(r, &m->op[i]));
    for (int t = 0; t < m->ntensors; t++)
        s->hub[t].keep = s->config[m->tensor[t].producer].recompute ? TOPT_HUB_RECOMPUTE
                                                                    : TOPT_HUB_KEEP;
    topt_recompute_demand(m, s, asked);
    for (int i = 0; i < m->nops; i++)
        s->config[i].recompute = s->config[i].recompute && asked[i];
    for (int t = 0; t < m->ntensors; t++)
        if (!s->config[m->tensor[t].producer].recompute)
            s->hub[t].keep = TOPT_HUB_KEEP;
    free(may);
    free(asked);
}

static int by_operator(const struct sheet_row *r)
{
    return r->again == SHEET_HALF || r->again == SHEET_PRODUCTS ||
           r->again == SHEET_SCORES;
}

/* The documented numbers, as one of what the framework can obey: data axes, level of sharding, all
 * blocks recomputed or none. */
static const struct topt_degrees *variant_of(const struct sheet_row *r,
                                             const struct topt_grid_search *s)
{
    struct topt_error err = {0};
    int tensor = r->tensor > 1 ? r->tensor : 1, i = 0;
    int level = tensor < s->mesh.devices ? (int)r->zero : TOPT_ZERO_NONE,
        again = r->again == SHEET_BLOCKS;
    while (i < s->ndegrees &&
           (s->degrees[i].tensor != tensor || s->degrees[i].level != level ||
            s->degrees[i].recompute != again))
        i++;
    topt_fail(&err, TOPT_ERR_NOTFOUND, "%s does not have this plan", r->framework);
    if (i == s->ndegrees)
        give_up(r->model->name, &err);
    return &s->degrees[i];
}

/* Of these the lightest strategy. */
static struct topt_strategy *plan_of(const struct sheet_row *r,
                                     struct topt_grid_search *s,
                                     const struct topt_degrees *v)
{
    struct topt_error err = {0};
    struct topt_problem *p;
    struct topt_solutions all = {0};
    struct topt_search_options search = {.threads = 1};
    if (topt_grid_priced(s, v, &p, &err) || topt_solve_least(p, &search, 0, &all, &err))
        give_up(r->model->name, &err);
    topt_fail(&err, TOPT_ERR_NOTFOUND, "no strategy has these numbers");
    if (!all.n)
        give_up(r->model->name, &err);
    struct topt_strategy *ret = all.at[0].strategy;
    all.at[0].strategy = NULL;
    topt_solutions_fini(&all);
    topt_problem_destroy(p);
    return ret;
}

/* ---- (a) does it fit? ---------------------------------------------------------------------- */

struct weighed {
    struct peak at;
    double limit; /* bytes of a GPU that tensors may take */
};

/* As profiles have it: a twentieth of the device, and at least 1.5 GiB, is the driver's. */
static double limit_of(const struct sheet_row *r, const struct topt_request *q)
{
    double gib = r->gpu_gib;
    return gib > 0 ? (gib - fmax(gib / 20, 1.5)) * GIB : (double)topt_request_limit(q);
}

static void weigh_shape(const struct sheet_row *r, struct topt_grid_search *s,
                        struct weighed *w)
{
    struct topt_error err = {0};
    struct topt_costing k;
    struct topt_degrees v = *variant_of(r, s);
    struct topt_strategy *plan = plan_of(r, s, &v);
    if (topt_grid_costing(s, &v, &k, &err))
        give_up(r->model->name, &err);
    if (by_operator(r))
        flag(r, &k, plan);
    peak_of(r->model->name, s, &v, plan,
            !by_operator(r)              ? PEAK_AS_VARIANT
            : r->again == SHEET_PRODUCTS ? PEAK_PRODUCTS
                                         : PEAK_OPERATORS,
            &w->at);
    topt_strategy_destroy(plan);
}

/* With 'tensors', of these alone: nothing is lost in an allocator. */
static struct weighed weigh(const struct sheet_row *r, int tensors)
{
    struct topt_error err = {0};
    struct topt_grid_search s;
    struct topt_planning micros;
    struct weighed w;
    int gpus = r->shards ? r->shards : r->gpus;
    int node = gpus < r->per_node ? gpus : r->per_node;
    struct topt_hw *hw = topt_hw_load(r->hw, &err);
    if (!hw)
        give_up(r->hw, &err);
    struct topt_model *m =
        load(r, (int64_t)(gpus / r->tensor) * r->micro * r->accumulation);
    struct topt_request q = run_of(r, m, hw);
    if (tensors)
        q.settings.allocator_permille = 0;
    if (topt_planning_init(&micros, &q, &err))
        give_up(r->model->name, &err);
    micros.tensor = TOPT_TENSOR_ANYWHERE;
    if (topt_grid_open(&s, &micros, gpus / node, node, TOPT_GOAL_LEAST, &err))
        give_up(r->model->name, &err);
    weigh_shape(r, &s, &w);
    w.limit = limit_of(r, &q);
    topt_grid_close(&s);
    topt_planning_fini(&micros);
    topt_model_destroy(m);
    topt_hw_destroy(hw);
    return w;
}

static int row_fits(const struct weighed *w)
{
    return (double)w->at.cost.memory_bytes <= w->limit;
}

/* ---- words --------------------------------------------------------------------------------- */

static const char *again_words(enum sheet_again again)
{
    static const char *const words[] = {
        [SHEET_NOTHING] = "",
        [SHEET_BLOCKS] = ", blocks recomputed",
        [SHEET_PRODUCTS] = ", all but every second product recomputed",
        [SHEET_HALF] = ", every second block recomputed",
        [SHEET_SCORES] = ", attention recomputed",
    };
    return words[again];
}

static const char *precision_words(enum sheet_precision p)
{
    static const char *const words[] = {
        [SHEET_F32] = "f32",
        [SHEET_MIXED] = "bf16 mixed",
        [SHEET_AUTOCAST] = "autocast",
        [SHEET_MAIN_F32] = "bf16, f32 gradients",
        [SHEET_PURE_BF16] = "bf16 alone",
    };
    return words[p];
}

static const char *seen_words(enum sheet_seen seen)
{
    static const char *const words[] = {
        [SHEET_NO_FIGURE] = "",
        [SHEET_RESERVED] = " reserved",
        [SHEET_ACTIVE] = " in tensors",
        [SHEET_SMI] = " shown",
        [SHEET_AT_FAILURE] = " at failure",
    };
    return words[seen];
}

static void print_plan(const struct sheet_row *r)
{
    static const char *const level[] = {"", ", ZeRO-1", ", ZeRO-2", ", ZeRO-3"};
    printf("%s, data %d", r->framework, r->gpus / r->tensor);
    if (r->tensor > 1)
        printf(" x tensor %d", r->tensor);
    printf("%s", r->zero == TOPT_ZERO_PARAM && strcmp(r->framework, "deepspeed") != 0
                     ? ", FSDP"
                     : level[r->zero]);
    printf(", micro-batch %d", r->micro);
    if (r->accumulation > 1)
        printf(" x %d", r->accumulation);
    if (r->seq > 1)
        printf(", %d positions", r->seq);
    printf("%s, %s", again_words(r->again), precision_words(r->precision));
}

/* ---- the tables ---------------------------------------------------------------------------- */

static const char *outcome_words(int fits)
{
    return fits ? "fits" : "does not";
}

static void print_row(const struct sheet_row *r, const struct weighed *w)
{
    int fits = row_fits(w), seen = r->outcome == SHEET_FITS;
    printf("| %s | %d %s | ", r->model->name, r->gpus, r->gpu);
    print_plan(r);
    printf(" | %s", outcome_words(seen));
    if (r->seen != SHEET_NO_FIGURE)
        printf(", %.1f GiB%s", r->gib, seen_words(r->seen));
    const char *mark = fits == seen ? "" : "**";
    printf(" | %s%s, %.1f of %.1f GiB%s | ", mark, outcome_words(fits),
           (double)w->at.cost.memory_bytes / GIB, w->limit / GIB, mark);
    if (r->technique)
        printf("%s; ", r->technique);
    if (r->open)
        printf("the source does not say %s; ", r->open);
    printf("%s |\n", r->source);
}

/* Where the bytes are, for who looks for those that are missing. */
static void print_parts(const struct weighed *w)
{
    printf("   ");
    for (int c = 0; c < TOPT_CLASS_COUNT; c++)
        if (w->at.cost.sum.class_bytes[c])
            printf(" %s %.2f", topt_class_name((enum topt_class)c),
                   (double)w->at.cost.sum.class_bytes[c] / GIB);
    printf(" remade-at-once %.2f transient %.2f crossing %d x %.2f; program's peak %.2f "
           "GiB\n",
           (double)w->at.cost.recomputed_bytes / GIB,
           (double)w->at.cost.transient_cap / GIB, w->at.cost.crossing,
           (double)w->at.cost.crossing_cap / GIB, (double)w->at.program / GIB);
}

struct asked {
    int rows, tracked, fewest, parts, most_wrong;
    const char *only;
};

static int wanted(const struct asked *a, const struct sheet_row *r)
{
    return !a->only || strstr(r->model->name, a->only) || strstr(r->framework, a->only);
}

/* How many outcomes are others than predicted. */
static int print_rows(const struct asked *a)
{
    int n = 0, right = 0, fits = 0, right_fits = 0;
    printf(
        "## Public models: what fits\n\n"
        "The documented plan, costed by the row of its framework (`--framework`) as "
        "`topt plan` counts it: what is\n"
        "gathered, reduced and in flight, and the allocator's share. Of what the driver "
        "and libraries leave of the\n"
        "GPU; no figure was fitted to a row. Predictions that are not as documented are "
        "bold.\n\n"
        "| model | GPUs | plan | documented | predicted | source |\n"
        "|---|---|---|---|---|---|\n");
    for (int i = 0; i < sheet_nrows; i++) {
        const struct sheet_row *r = &sheet_rows[i];
        if (!wanted(a, r))
            continue;
        struct weighed w = weigh(r, 0);
        int good = row_fits(&w) == (r->outcome == SHEET_FITS);
        n++;
        right += good;
        fits += r->outcome == SHEET_FITS;
        right_fits += good && r->outcome == SHEET_FITS;
        print_row(r, &w);
        if (a->parts)
            print_parts(&w);
        fflush(stdout);
    }
    printf(
        "\nDocumented fits that fit: %d of %d. Documented out-of-memory that does not: "
        "%d of %d.\n\n",
        right_fits, fits, right - right_fits, n - fits);
    return n - right;
}

/* ---- held against PyTorch's memory tracker -------------------------------------------------- */

/* How many are missed: by more than 2 % from below, which would run out, or a fifth from above. */
static int print_tracked(const struct asked *a)
{
    int missed = 0;
    double size = 0, sign = 0, with_share = 0;
    int n = 0;
    printf(
        "## Held against PyTorch's own memory tracker\n\n"
        "FSDP2's peak of tensors, without an allocator, beside what is predicted for "
        "tensors alone, and `memory_bytes`,\n"
        "which has the allocator's share as well. An error above 0 says that more is "
        "predicted than there is.\n\n"
        "| model | GPUs | plan | tracker | tensors | error | `memory_bytes` | error |\n"
        "|---|---|---|---|---|---|---|---|\n");
    for (int i = 0; i < sheet_ntracked; i++) {
        const struct sheet_row *r = &sheet_tracked[i];
        if (!wanted(a, r))
            continue;
        struct weighed w = weigh(r, 0), tensors = weigh(r, 1);
        double gib = (double)w.at.cost.memory_bytes / GIB;
        double alone = (double)tensors.at.cost.memory_bytes / GIB;
        double error = 100 * (alone / r->gib - 1), whole = 100 * (gib / r->gib - 1);
        printf("| %s | %d | ", r->model->name, r->gpus);
        print_plan(r);
        printf(" | %.2f GiB | %.2f GiB | %+.1f %% | %.2f GiB | %+.1f %% |\n", r->gib,
               alone, error, gib, whole);
        if (a->parts)
            print_parts(&w);
        n++;
        size += fabs(error);
        sign += error;
        with_share += fabs(whole);
        missed += gib < 0.98 * r->gib || gib > 1.2 * r->gib;
    }
    if (n)
        printf("\nTensors: mean error %.1f %%, with its sign %+.1f %%, of %d. With the "
               "allocator's share: %.1f %%.\n",
               size / n, sign / n, n, with_share / n);
    printf("\nSource: %s.\n\n", sheet_tracker);
    return missed;
}

/* ---- (b) the fewest GPUs ------------------------------------------------------------------- */

static const char *const clusters[] = {"a100-40-dgx", "a100-80-dgx", "h100-80-dgx"};
enum { CLUSTERS = sizeof clusters / sizeof *clusters };

/* The question as the command line asks it with the job and the framework alone. */
static struct topt_request question_of(const struct sheet_row *r,
                                       const struct topt_model *m,
                                       const struct topt_hw *hw)
{
    struct topt_query words = {.mode = "mini-parallelism", .counts = "whole"};
    strcpy(words.framework, r->framework);
    struct topt_error err = {0};
    struct topt_request q;
    topt_request_init(&q);
    q.model = m;
    q.hw = hw;
    q.threads = 1;
    if (topt_request_read(&words, &q, NULL, &err) || topt_request_complete(&q, &err))
        give_up(r->model->name, &err);
    return q;
}

static int64_t whole(const json_t *o, const char *key)
{
    return json_integer_value(json_object_get(o, key));
}

/* By which technique the answer's plan is another than theirs. */
static void print_differences(const struct sheet_row *r, const json_t *answer,
                              int64_t batch)
{
    static const char *const level[] = {"copies", "ZeRO-1", "ZeRO-2", "FSDP"};
    const json_t *u = json_object_get(answer, "uniform");
    int64_t tp = whole(u, "tp"), dp = whole(u, "dp"), micro = whole(u, "micro_batch");
    int64_t times = dp && micro ? (batch + dp * micro - 1) / (dp * micro) : 0;
    int recompute = json_is_true(json_object_get(u, "recompute")), n = 0;
    int zero = dp > 1 ? (int)whole(u, "zero") : TOPT_ZERO_NONE;
    if (!u)
        return;
    if (tp != r->tensor)
        n += printf("%stensor %d", n ? ", " : " (", (int)tp);
    if (dp > 1 && zero != (int)r->zero)
        n += printf("%s%s", n ? ", " : " (", level[zero]);
    if (micro != r->micro || times != r->accumulation)
        n += printf("%smicro-batch %d x %d", n ? ", " : " (", (int)micro, (int)times);
    if (recompute != (r->again != SHEET_NOTHING))
        n += printf("%s%s", n ? ", " : " (",
                    recompute ? "recomputed" : "nothing recomputed");
    printf("%s", n ? ")" : " (as they did)");
}

static void print_fewest(const struct sheet_row *r, const struct topt_model *m,
                         const char *cluster)
{
    struct topt_error err = {0};
    struct topt_hw *hw = topt_hw_load(cluster, &err);
    json_t *answer = NULL;
    clock_t from = clock();
    if (!hw)
        give_up(cluster, &err);
    struct topt_request q = question_of(r, m, hw);
    if (topt_plan(&q, &answer, &err))
        give_up(r->model->name, &err);
    fprintf(stderr, "%s on %s: %.1f s\n", r->model->name, cluster,
            (double)(clock() - from) / CLOCKS_PER_SEC);
    if (json_is_true(json_object_get(answer, "feasible"))) {
        printf(" %d", (int)whole(answer, "gpus"));
        print_differences(r, answer, m->batch);
        printf(" |");
    } else {
        printf(" none |");
    }
    json_decref(answer);
    topt_hw_destroy(hw);
}

static void print_all_fewest(const struct asked *a)
{
    printf(
        "## Public models: the fewest GPUs\n\n"
        "`topt plan --framework ...` for the same batch and length, with no other "
        "option; what is done\notherwise than there stands in parentheses. Where it is "
        "fewer GPUs than they had, they wanted\nto be done sooner: the fewest is a "
        "question of memory alone.\n\n"
        "| model | batch, positions | they ran on |");
    for (int c = 0; c < CLUSTERS; c++)
        printf(" fewest on %s |", clusters[c]);
    printf(" source |\n|---|---|---|---|");
    for (int c = 0; c < CLUSTERS; c++)
        printf("---|");
    printf("\n");
    for (int i = 0; i < sheet_nrows; i++) {
        const struct sheet_row *r = &sheet_rows[i];
        int64_t batch = (int64_t)(r->gpus / r->tensor) * r->micro * r->accumulation;
        if (!r->ask || !wanted(a, r))
            continue;
        struct topt_model *m = load(r, batch);
        printf("| %s | %lld, %d | %d %s: ", r->model->name, (long long)batch, r->seq,
               r->gpus, r->gpu);
        print_plan(r);
        printf(" |");
        for (int c = 0; c < CLUSTERS; c++)
            print_fewest(r, m, clusters[c]);
        printf(" %s |\n", r->source);
        fflush(stdout);
        topt_model_destroy(m);
    }
    printf("\n");
}

static void print_left_out(void)
{
    printf("Left out, since no plan here says them:\n\n");
    for (int i = 0; i < sheet_nleft_out; i++)
        printf("- %s: %s (%s).\n", sheet_left_out[i].what, sheet_left_out[i].why,
               sheet_left_out[i].source);
}

int main(int argc, char **argv)
{
    struct asked a = {.most_wrong = sheet_nrows};
    int wrong = 0;
    for (int i = 1; i < argc; i++) {
        a.rows |= !strcmp(argv[i], "--rows");
        a.fewest |= !strcmp(argv[i], "--fewest");
        a.tracked |= !strcmp(argv[i], "--tracked");
        a.parts |= !strcmp(argv[i], "--parts");
        if (!strcmp(argv[i], "--only") && i + 1 < argc)
            a.only = argv[++i];
        else if (!strcmp(argv[i], "--wrong") && i + 1 < argc)
            a.most_wrong = atoi(argv[++i]);
    }
    int all = !a.rows && !a.tracked && !a.fewest;
    if (a.rows || all)
        wrong += print_rows(&a);
    if (a.tracked || all)
        wrong += print_tracked(&a);
    if (a.fewest || all)
        print_all_fewest(&a);
    print_left_out();
    return wrong > a.most_wrong;
}
