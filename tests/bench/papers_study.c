/* papers_study.c - the questions of the papers' figures, put to problems that are made once. */
#include "algorithm.h"
#include "free.h"
#include "grid.h"
#include "planning.h"
#include "configs.h"
#include "topt_choices.h"
#include "topt_plan.h"
#include "topt_simulate.h"
#include "papers_study.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__attribute__((noreturn)) static void give_up(const char *what,
                                              const struct topt_error *err)
{
    fprintf(stderr, "papers_figures: %s: %s\n", what, err->text);
    exit(1);
}

/* ---- models ------------------------------------------------------------------------------ */

enum { WIDTH = 2560, HEAD = 128 };

static int64_t widened(int64_t n, int64_t width)
{
    switch (n) {
    case WIDTH:
        return width;
    case 4 * WIDTH:
        return 4 * width;
    case WIDTH / HEAD:
        return width / HEAD;
    default:
        return n;
    }
}

/* A transformer's document with another width: the numbers of its operators that follow. */
static void widen(json_t *ops, int64_t width)
{
    static const char *const key[] = {"features", "heads", "kv_heads"};
    size_t i;
    json_t *op;
    json_array_foreach(ops, i, op)
    {
        for (int k = 0; k < 3; k++) {
            const json_t *v = json_object_get(op, key[k]);
            if (v)
                json_object_set_new(op, key[k],
                                    json_integer(widened(json_integer_value(v), width)));
        }
    }
}

/* A norm of the batch is one of each sample: the same kernels, and no sums over devices. */
static void set_norms_apart(json_t *ops)
{
    size_t i;
    json_t *op;
    json_array_foreach(
        ops, i,
        op) if (!strcmp(json_string_value(json_object_get(op, "kind")), "batch_norm"))
        json_object_set_new(op, "kind", json_string("group_norm"));
}

static struct topt_model *load_model(const struct study_ask *ask)
{
    struct topt_error err = {0};
    struct topt_model *m = topt_model_load(
        ask->model, &(struct topt_import_options){.batch = ask->batch}, &err);
    if (m && (ask->width || ask->norms_apart)) {
        json_t *doc = topt_model_to_json(m);
        topt_model_destroy(m);
        if (ask->width)
            widen(json_object_get(doc, "ops"), ask->width);
        else
            set_norms_apart(json_object_get(doc, "ops"));
        m = topt_model_from_json(doc, &err);
        json_decref(doc);
    }
    if (!m)
        give_up(ask->model, &err);
    return m;
}

/* ---- images by samples and channels ------------------------------------------------------- */

static int splits_rows(const struct topt_splits *s, const struct topt_mesh *mesh,
                       const struct topt_config *c)
{
    for (int a = 0; a < mesh->naxes; a++)
        if (c->dim[a] >= 0 && s->split[c->dim[a]] == TOPT_SPLIT_SPATIAL)
            return 1;
    return 0;
}

static int splits_allowed(const struct topt_space_options *o,
                          const struct topt_mesh *mesh, const struct topt_splits *s,
                          const struct topt_config *c)
{
    const struct study_restriction *r = (const struct study_restriction *)o->restriction;
    return !splits_rows(s, mesh, c) &&
           (!r->system || !r->system->splits || r->system->splits(o, mesh, s, c));
}

static void leave_out_rows(struct study *s)
{
    const struct topt_algorithm *row = s->shape.algorithm;
    if (row)
        s->algorithm = *row;
    else
        s->algorithm.factors = TOPT_FACTORS_ALL;
    s->restriction.system = s->algorithm.restriction;
    if (s->restriction.system)
        s->restriction.all = *s->restriction.system;
    else
        s->restriction.all.levels = -1;
    s->restriction.all.splits = splits_allowed;
    s->algorithm.restriction = &s->restriction.all;
    s->shape.algorithm = &s->algorithm;
}

/* ---- studies ----------------------------------------------------------------------------- */

void study_open(struct study *s, const struct study_ask *ask)
{
    struct topt_error err = {0};
    *s = (struct study){.model = load_model(ask), .hw = topt_hw_load(ask->hw, &err)};
    if (!s->hw)
        give_up(ask->hw, &err);
    topt_request_init(&s->r);
    s->r.model = s->model;
    s->r.hw = s->hw;
    s->r.gpus = ask->nodes * ask->per_node;
    s->r.space = ask->space;
    s->r.blocks = ask->blocks;
    s->r.algorithm = ask->algorithm;
    s->r.settings.accounting = TOPT_ACCOUNTING_PAPER_REUSE;
    if (topt_planning_init(&s->micros, &s->r, &err) ||
        topt_grid_open(&s->shape, &s->micros, ask->nodes, ask->per_node,
                       TOPT_GOAL_FRONTIER, &err))
        give_up(ask->model, &err);
    if (!ask->rows)
        leave_out_rows(s);
    s->problem = calloc((size_t)s->shape.ndegrees + 1, sizeof(struct topt_problem *));
    if (!s->problem)
        give_up("problems", &(struct topt_error){.text = "no memory"});
}

void study_close(struct study *s)
{
    for (int i = 0; i < s->shape.ndegrees; i++)
        topt_problem_destroy(s->problem[i]);
    free(s->problem);
    topt_grid_close(&s->shape);
    topt_planning_fini(&s->micros);
    topt_model_destroy(s->model);
    topt_hw_destroy(s->hw);
}

static struct topt_problem *problem_of(struct study *s, int variant)
{
    struct topt_error err = {0};
    if (!s->problem[variant] && topt_grid_problem(&s->shape, &s->shape.degrees[variant],
                                                  &s->problem[variant], &err))
        give_up(s->model->name, &err);
    return s->problem[variant];
}

/* What it costs to move inputs again in backward instead of keeping them: beside the same
 * strategy that keeps all. */
static double moving_again(struct study *s, const struct topt_costing *k,
                           const struct topt_strategy *of, int64_t time_ns)
{
    struct topt_strategy kept = *of;
    struct topt_strategy_cost c;
    struct topt_error err = {0};
    kept.keep = calloc((size_t)of->nops + 1, TOPT_MAX_INPUTS); /* TOPT_KEEP_AFTER */
    if (!kept.keep || topt_cost_strategy(k, &kept, &c, &err))
        give_up(s->model->name, &err);
    free(kept.keep);
    return (double)(time_ns - c.time_ns) / 1e9;
}

/* What a strategy costs, from scratch. */
static struct figure figure_of(struct study *s, const struct topt_solution *at)
{
    struct topt_costing k;
    struct topt_strategy_cost c;
    static const struct topt_simulate_options each = {.overlap = TOPT_OVERLAP_DDP,
                                                      .bucket_bytes = 1};
    struct topt_simulation fused, apart;
    struct topt_error err = {0};
    if (topt_grid_costing(&s->shape, &at->degrees, &k, &err) ||
        topt_cost_strategy(&k, at->strategy, &c, &err) ||
        topt_simulate(&k, at->strategy, &topt_simulate_horovod, &fused, &err) ||
        topt_simulate(&k, at->strategy, &each, &apart, &err))
        give_up(s->model->name, &err);
    if (c.memory_bytes != at->memory_bytes || c.time_ns != at->time_ns)
        give_up(s->model->name,
                &(struct topt_error){.text = "a strategy costs other than was claimed"});
    int64_t fused_ns = fused.time_ns, apart_ns = apart.time_ns;
    topt_simulation_fini(&fused);
    topt_simulation_fini(&apart);
    return (struct figure){.found = 1,
                           .gib = (double)c.memory_bytes / (1 << 30),
                           .seconds = (double)c.time_ns / 1e9,
                           .compute = (double)c.sum.compute_ns / 1e9,
                           .network = (double)c.sum.network_ns / 1e9,
                           .fused = (double)fused_ns / 1e9,
                           .apart = (double)apart_ns / 1e9,
                           .again = moving_again(s, &k, at->strategy, c.time_ns),
                           .bytes = c.memory_bytes,
                           .time_ns = c.time_ns};
}

enum wish { LEAST, FASTEST, ALL };

/* All variants' answers together. */
static struct topt_solutions solve(struct study *s, enum wish wish, int64_t bytes,
                                   int64_t ns)
{
    struct topt_solutions all = {.certificate = topt_certificate_exact()};
    struct topt_error err = {0};
    for (int i = 0; i < s->shape.ndegrees; i++) {
        struct topt_solutions part = {0};
        struct topt_search_options o = {
            .memory_limit = bytes, .time_limit = ns, .threads = 1};
        struct topt_problem *p = problem_of(s, i);
        if (wish == LEAST     ? topt_solve_least(p, &o, 0, &part, &err)
            : wish == FASTEST ? topt_solve_fastest(p, &o, &part, &err)
                              : topt_solve_frontier(p, &o, &part, &err))
            give_up(s->model->name, &err);
        for (int k = 0; k < part.n; k++)
            part.at[k].degrees = s->shape.degrees[i];
        if (topt_solutions_merge(&all, &part, &err))
            give_up(s->model->name, &err);
        topt_solutions_fini(&part);
    }
    return all;
}

static struct figure one(struct study *s, enum wish wish, int64_t bytes)
{
    struct topt_solutions all = solve(s, wish, bytes, 0);
    struct figure f = {0};
    if (all.n > 0)
        f = figure_of(s, &all.at[wish == LEAST ? 0 : all.n - 1]);
    topt_solutions_fini(&all);
    return f;
}

struct figure study_least(struct study *s)
{
    struct figure f = one(s, LEAST, 0);
    /* of those with as little, the fastest */
    return f.found ? one(s, FASTEST, f.bytes) : f;
}

struct figure study_fastest(struct study *s, int64_t bytes)
{
    return one(s, FASTEST, bytes);
}

void study_fastest_told(struct study *s, study_told *told, void *ctx)
{
    struct topt_solutions all = solve(s, FASTEST, 0, 0);
    struct topt_costing k;
    struct topt_error err = {0};
    if (!all.n || topt_grid_costing(&s->shape, &all.at[all.n - 1].degrees, &k, &err) ||
        told(ctx, &k, all.at[all.n - 1].strategy, &err))
        give_up(s->model->name, &err);
    topt_solutions_fini(&all);
}

int study_frontier(struct study *s, struct figure **ret)
{
    struct topt_solutions all = solve(s, ALL, 0, 0);
    int n = all.n;
    *ret = calloc((size_t)n + 1, sizeof **ret);
    for (int i = 0; i < n && *ret; i++)
        (*ret)[i] = figure_of(s, &all.at[i]);
    topt_solutions_fini(&all);
    return *ret ? n : 0;
}

int study_costs(struct study *s, struct topt_cost **ret)
{
    struct topt_solutions all = solve(s, ALL, 0, 0);
    int n = all.n;
    *ret = calloc((size_t)n + 1, sizeof **ret);
    for (int i = 0; i < n && *ret; i++)
        (*ret)[i] = (struct topt_cost){all.at[i].memory_bytes, all.at[i].time_ns};
    topt_solutions_fini(&all);
    return *ret ? n : 0;
}

int study_faster(struct study *s, int64_t ns)
{
    struct topt_solutions all = solve(s, ALL, 0, ns - 1);
    int n = all.n;
    topt_solutions_fini(&all);
    return n;
}

int study_sample(struct study *s, int n, struct figure *ret)
{
    struct figure low = study_least(s), high = study_fastest(s, 0);
    int kept = 0;
    for (int i = 0; i < n && low.found; i++) {
        double ratio = pow(high.gib / low.gib, (double)i / (n - 1));
        struct figure f = i == 0 ? low
                          : i == n - 1
                              ? high
                              : study_fastest(s, (int64_t)((double)low.bytes * ratio));
        if (f.found && (kept == 0 || f.time_ns < ret[kept - 1].time_ns))
            ret[kept++] = f;
    }
    return kept;
}
