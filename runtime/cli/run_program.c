/* run_program.c - the program that a run executes: the plan's, under the settings that our
 * runtime obeys, and counted again. */
#include "run_program.h"
#include "topt_text.h"

#include <stdlib.h>
#include <string.h>

/* What a plan for another framework counts with and our runtime does not do.  Returns
 * words for it, or NULL. */
static const char *keep_what_runs(struct topt_settings *s)
{
    const struct topt_settings before = *s;
    s->overlap = TOPT_OVERLAP_NONE;
    s->eager = 0;
    s->gather = TOPT_GATHER_OPERATOR;
    s->accounting = TOPT_ACCOUNTING_RUN;
    s->pool_numbers = s->bucket_numbers = s->vocab_multiple = 0;
    s->allocator_permille = s->by_schedule = 0;
    if (before.overlap != s->overlap)
        return "communication that overlaps with computation";
    if (before.eager)
        return "PyTorch's unfused kernels";
    if (before.accounting != s->accounting)
        return "the memory that papers count";
    return memcmp(&before, s, sizeof before) ? "what another framework holds beside it"
                                             : NULL;
}

static int cost_again(struct topt_run *r, const struct topt_settings *s,
                      struct topt_error *err)
{
    const struct topt_plan_doc *p = r->plan;
    struct topt_strategy_cost cost;
    struct topt_costing k = {.model = p->micro,
                             .hw = p->hw,
                             .mesh = &p->mesh,
                             .settings = s,
                             .router = p->router};
    struct topt_group_costs groups;
    int unlike = topt_hw_groups(p->hw) && (p->mesh.share[0] || p->mesh.state_share[0]);
    if (topt_cost_strategy(&k, p->strategy, &cost, err) ||
        (unlike && topt_cost_groups(&k, p->strategy, &groups, err)))
        return -1;
    r->report.predicted_time_ns =
        unlike ? groups.of[groups.slowest].time_ns : cost.time_ns;
    r->report.predicted_memory_bytes = cost.memory_bytes;
    return 0;
}

/* The copy that checkpoints are written from, and gradients that wait for their norm, are
 * part of what a device's rank holds. */
static int64_t beside_the_plan(const struct topt_run *r)
{
    int64_t saver = 0;
    for (int rank = 0; rank < r->program->mesh.devices && r->args.checkpoint; rank++) {
        int64_t bytes = topt_saver_bytes(r->program, rank);
        saver = bytes > saver ? bytes : saver;
    }
    return saver + r->clip_bytes;
}

/* Into the program; its time is part of what a step is predicted to take. */
static int clip(struct topt_run *r, struct topt_error *err)
{
    int64_t before = r->own->peak_bytes;
    if (topt_program_clip(r->own, err))
        return -1;
    r->clip_bytes = r->own->peak_bytes > before ? r->own->peak_bytes - before : 0;
    r->report.predicted_time_ns += topt_clip_ns(r->own, r->plan->hw, r->plan->router);
    return 0;
}

/* Kernels write where they read, and biases with the products before them: what our own do. */
static int in_place(struct topt_run *r, struct topt_error *err)
{
    int joins = !r->args.device || !strcmp(r->args.device, "host");
    if (topt_program_dropout(r->own, &r->args.dropout, err) ||
        topt_program_running(r->own, err) || topt_program_in_place(r->own, joins, err))
        return -1;
    r->report.predicted_time_ns -= topt_in_place_saves_ns(r->own, r->plan->hw);
    return 0;
}

/* Small gradients are reduced together: so much sooner a step ends. */
static int bucket(struct topt_run *r, struct topt_error *err)
{
    if (topt_program_bucket(r->own, r->args.bucket, err))
        return -1;
    r->report.predicted_time_ns -= topt_bucket_saves_ns(r->own, r->plan->router);
    return 0;
}

/* What buffers take where they lie, or what was counted for them: the larger one. */
static int count_bytes(const struct topt_run *r, int64_t *ret, struct topt_error *err)
{
    int64_t *offset = calloc((size_t)r->program->nbuffers + 1, sizeof *offset), arena = 0;
    int rc = offset ? topt_program_offsets(r->program, 64, offset, &arena, err)
                    : topt_nomem(err, NULL);
    int64_t counted = r->report.predicted_memory_bytes;
    arena -= r->clip_bytes; /* counted beside */
    *ret = arena > counted ? arena : counted;
    free(offset);
    return rc;
}

static int check_memory(struct topt_run *r, struct topt_error *err)
{
    char have[32], need[32], more[32];
    int64_t bytes, beside = beside_the_plan(r);
    r->report.beside_bytes = beside;
    if (!r->args.memory)
        return 0;
    if (count_bytes(r, &bytes, err))
        return -1;
    if (bytes + beside <= r->args.memory)
        return 0;
    topt_show_bytes(bytes + beside, need, sizeof need);
    topt_show_bytes(r->args.memory, have, sizeof have);
    if (beside)
        return topt_fail(err, TOPT_ERR_INFEASIBLE,
                         "the plan needs %s on a device, %s of it for --checkpoint and "
                         "--clip; --memory gives %s",
                         need, topt_show_bytes(beside, more, sizeof more), have);
    return topt_fail(
        err, TOPT_ERR_INFEASIBLE,
        "the plan needs %s on a device, --memory gives %s; ask for a plan that "
        "fits",
        need, have);
}

/* A search prices each kernel and each reduction by itself. */
static void say_what_is_saved(const struct topt_run *r)
{
    static const double LITTLE = 0.02;
    char said[32], time[32];
    double before = (double)r->plan->time_ns, now = (double)r->report.predicted_time_ns;
    if (r->args.clip > 0 || now >= (1 - LITTLE) * before)
        return;
    topt_run_note(r, "the plan predicts %s per step; fused kernels%s make it %s",
                  topt_show_ns(r->plan->time_ns, said, sizeof said),
                  r->plan->mesh.devices > 1 ? " and bucketed small gradients" : "",
                  topt_show_ns(r->report.predicted_time_ns, time, sizeof time));
}

static void say_what_differs(const struct topt_run *r, const char *foreign, int same)
{
    const struct topt_plan_doc *p = r->plan;
    char time[32], memory[32], said[32];
    if (foreign)
        topt_run_warn(
            r,
            "the plan assumes %s, which topt run does not do; without it: %s per step, "
            "%s per device",
            foreign, topt_show_ns(r->report.predicted_time_ns, time, sizeof time),
            topt_show_bytes(r->report.predicted_memory_bytes, memory, sizeof memory));
    else if (same && p->memory_bytes != r->report.predicted_memory_bytes)
        topt_run_note(
            r, "the plan states %s per device; recomputed it is %s",
            topt_show_bytes(p->memory_bytes, said, sizeof said),
            topt_show_bytes(r->report.predicted_memory_bytes, memory, sizeof memory));
    else if (same)
        say_what_is_saved(r);
}

/* The document's figures are not believed; and other numbers or another optimizer are
 * other bytes. */
int topt_run_choose(struct topt_run *r, struct topt_error *err)
{
    struct topt_plan_doc *p = r->plan;
    struct topt_settings s = p->settings;
    const char *foreign = keep_what_runs(&s);
    if ((r->args.dtype && topt_dtype_parse(r->args.dtype, &s.dtype, err)) ||
        (r->args.optimizer && topt_optimizer_parse(r->args.optimizer, &s.optimizer, err)))
        return -1;
    int same = s.dtype == p->settings.dtype && s.optimizer == p->settings.optimizer;
    int buckets = (r->args.bucket > 1 || r->args.overlap) && p->mesh.devices > 1;
    if (topt_lower(p->micro, &p->mesh, &s, p->strategy, p->router, 0, &r->own, err))
        return -1;
    r->program = r->own;
    if (cost_again(r, &s, err) || in_place(r, err) ||
        (r->args.clip > 0 && clip(r, err)) || (buckets && bucket(r, err)))
        return -1;
    say_what_differs(r, foreign, same);
    return check_memory(r, err);
}
