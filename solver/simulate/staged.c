/* staged.c - the schedule of pipeline stages, as figures and drawn as SVG that stands alone.
 *
 * A lane for each stage: passes forward and backward, lighter from chunk to chunk, over a ground that is
 * the bubble.  Passes of one kind that are too narrow to be told apart are one rectangle. */
#include "topt_staged.h"
#include "topt_minmax.h"
#include "topt_svg.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int topt_staged_step(const struct topt_costing *k, const struct topt_strategy *s,
                     struct topt_staged *ret, struct topt_error *err)
{
    *ret = (struct topt_staged){.settings = k->settings, .model = k->model->name};
    struct topt_evaluator *a = topt_evaluator_create(k, 0, err);
    if (!a)
        return -1;
    topt_evaluator_passes(a, &ret->passes);
    int rc = topt_evaluate_strategy(a, s, &ret->cost, NULL, err);
    topt_evaluator_destroy(a);
    if (rc)
        topt_staged_fini(ret);
    return rc;
}

void topt_staged_fini(struct topt_staged *s)
{
    free(s->passes.at);
    s->passes = (struct topt_passes){.n = 0};
}

json_t *topt_staged_json(const struct topt_staged *s)
{
    const struct topt_strategy_cost *c = &s->cost;
    json_t *stages = json_array();
    for (int i = 0; i < c->stage.stages; i++)
        json_array_append_new(stages,
                              json_pack("{s:I, s:I, s:I}", "memory_bytes",
                                        (json_int_t)c->stage.bytes[i], "busy_ns",
                                        (json_int_t)c->stage.busy_ns[i], "bubble_ns",
                                        (json_int_t)(c->time_ns - c->stage.busy_ns[i])));
    return json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:i, s:I, s:I, s:s, s:i, s:o}",
                     "format", "topt-simulation/1", "overlap",
                     topt_overlap_name(s->settings->overlap), "time_ns",
                     (json_int_t)c->time_ns, "compute_ns", (json_int_t)c->sum.compute_ns,
                     "network_ns", (json_int_t)c->sum.network_ns, "idle_ns",
                     (json_int_t)c->stage.idle_ns, "tasks", s->passes.n, "micro_batches",
                     (json_int_t)s->passes.micro_batches, "of_micro_batches",
                     (json_int_t)s->settings->micro_batches, "schedule",
                     topt_order_name(s->settings->order), "chunks",
                     (int)s->settings->stage_chunks, "stages", stages);
}

/* ---- the picture ------------------------------------------------------------------------- */

enum {
    WIDTH = 1120,
    LEFT = 120,
    RIGHT = 60,
    COLUMNS = WIDTH - LEFT - RIGHT,
    ALL_LANES = 520, /* pixels of all, and of one at most and at least */
    HIGH = 34,
    LOW = 12,
    GAP = 3,
    NUMBERED = 14, /* columns of a pass that says its micro-batch */
    APART = 3,     /* ... that is drawn by itself */
    SWATCH = 11,
    FOOT = 40
};

static const char style[] =
    ".paper{fill:#fff}.ink{fill:#1d2430}.soft{fill:#667085}.lane{fill:#e9edf3}"
    ".f{fill:#2459c9}.b{fill:#0f8a7e}.e{fill:#8a94a6}"
    ".name{fill:#fff;font-size:10px;pointer-events:none}"
    "@media(prefers-color-scheme:dark){.paper{fill:#171c25}.ink{fill:#e6e9ef}"
    ".soft{fill:#98a2b3}.lane{fill:#2a3240}.f{fill:#6f9bff}.b{fill:#3dbdb0}"
    ".name{fill:#10141b}}";

struct drawing {
    const struct topt_staged *s;
    struct topt_svg v;
    int64_t end_ns; /* of what is drawn */
    double top, high;
};

static double at_x(const struct drawing *d, int64_t ns)
{
    return LEFT + (double)ns / (double)topt_max(d->end_ns, (int64_t)1) * COLUMNS;
}

static double lane_top(const struct drawing *d, int stage)
{
    return d->top + stage * (d->high + GAP);
}

/* Chunks of a stage from its own colour to a lighter one. */
static double opacity_of(const struct drawing *d, int chunk)
{
    int64_t chunks = d->s->settings->stage_chunks;
    int64_t own = chunk / d->s->cost.stage.stages;
    return chunks > 1 ? 1 - 0.55 * (double)own / (double)(chunks - 1) : 1;
}

static const char *class_of(const struct topt_stage_pass *p)
{
    return p->chunk < 0 ? "e" : p->backward ? "b" : "f";
}

static void put_pass(struct drawing *d, const struct topt_stage_pass *p,
                     const char *words)
{
    double x = at_x(d, p->start_ns), wide = at_x(d, p->end_ns) - x;
    double y = lane_top(d, p->stage);
    char took[32], number[24];
    topt_text_add(&d->v.t,
                  "<rect class=\"%s\" opacity=\"%.2f\" x=\"%.2f\" y=\"%.1f\" "
                  "width=\"%.2f\" height=\"%.1f\"",
                  class_of(p), p->chunk < 0 ? 1.0 : opacity_of(d, p->chunk), x, y, wide,
                  d->high);
    if (!words) {
        topt_text_add(&d->v.t, "/>\n");
        return;
    }
    topt_text_add(&d->v.t, "><title>%s, %s</title></rect>\n", words,
                  topt_show_ns(p->end_ns - p->start_ns, took, sizeof took));
    snprintf(number, sizeof number, "%lld", (long long)p->micro_batch);
    if (p->chunk >= 0 && wide >= NUMBERED && d->high >= LOW)
        topt_svg_words(&d->v.t, x + wide / 2, y + d->high / 2 + 3.5,
                       "class=\"name\" text-anchor=\"middle\"", number);
}

static const char *words_of(const struct topt_stage_pass *p, char buf[96])
{
    if (p->chunk < 0)
        snprintf(buf, 96, "stage %d: end of the step", p->stage);
    else
        snprintf(buf, 96, "stage %d, chunk %d: micro-batch %lld %s", p->stage, p->chunk,
                 (long long)p->micro_batch, p->backward ? "backward" : "forward");
    return buf;
}

/* Passes of the stage in order; those too narrow by themselves go with the next of their kind. */
static void put_stage(struct drawing *d, int stage)
{
    const struct topt_passes *all = &d->s->passes;
    struct topt_stage_pass run = {.stage = -1};
    char words[96];
    for (int i = 0; i < all->n; i++) {
        const struct topt_stage_pass *p = &all->at[i];
        double wide = at_x(d, p->end_ns) - at_x(d, p->start_ns);
        if (p->stage != stage)
            continue;
        int joins = run.stage >= 0 && wide < APART && run.chunk == p->chunk &&
                    run.backward == p->backward &&
                    at_x(d, p->start_ns) - at_x(d, run.end_ns) < 0.2;
        if (run.stage >= 0 && !joins)
            put_pass(d, &run, NULL);
        run = joins
                  ? (struct topt_stage_pass){run.task,     run.stage,       run.chunk,
                                             run.backward, run.micro_batch, run.start_ns,
                                             p->end_ns}
                  : *p;
        if (wide >= APART) {
            put_pass(d, p, words_of(p, words));
            run.stage = -1;
        }
    }
    if (run.stage >= 0)
        put_pass(d, &run, NULL);
}

static void put_lane(struct drawing *d, int stage)
{
    const struct topt_stage_costs *c = &d->s->cost.stage;
    double y = lane_top(d, stage);
    char bytes[32], words[64];
    topt_text_add(&d->v.t,
                  "<rect class=\"lane\" x=\"%d\" y=\"%.1f\" width=\"%d\" "
                  "height=\"%.1f\"/>\n",
                  LEFT, y, COLUMNS, d->high);
    snprintf(words, sizeof words, "%d: %s", stage,
             topt_show_bytes(c->bytes[stage], bytes, sizeof bytes));
    topt_svg_words(&d->v.t, LEFT - 8, y + d->high / 2 + 4,
                   "class=\"ink\" text-anchor=\"end\"", words);
    snprintf(words, sizeof words, "%.0f %%",
             100 * (double)c->busy_ns[stage] /
                 (double)topt_max(d->s->cost.time_ns, (int64_t)1));
    topt_svg_words(&d->v.t, LEFT + COLUMNS + 8, y + d->high / 2 + 4, "class=\"soft\"",
                   words);
    put_stage(d, stage);
}

static void put_head(struct drawing *d, const char *title)
{
    static const char *const keys[][2] = {{"f", "forward (the micro-batch's number)"},
                                          {"b", "backward"},
                                          {"e", "end of the step"},
                                          {"lane", "bubble, and waiting"}};
    const struct topt_staged *s = d->s;
    int64_t all = s->settings->micro_batches, drawn = s->passes.micro_batches;
    char a[32], b[32], some[80] = "", words[256];
    double x, at = 0;
    if (drawn < all)
        snprintf(some, sizeof some, " %lld of %lld micro-batches are drawn.",
                 (long long)drawn, (long long)all);
    snprintf(words, sizeof words,
             "%s per step; a stage has nothing to do for %s of it on the mean. Schedule "
             "%s.%s Left: a stage's memory; right: how busy it is.",
             topt_show_ns(s->cost.time_ns, a, sizeof a),
             topt_show_ns(s->cost.stage.idle_ns, b, sizeof b),
             topt_order_name(s->settings->order), some);
    topt_svg_head(&d->v, title, words);
    d->v.y += 6;
    for (int i = 0; i < 4; i++) {
        topt_svg_key(&d->v, SWATCH, keys[i][1], &at, &x);
        topt_text_add(&d->v.t,
                      "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%d\" "
                      "height=\"%d\"/>\n",
                      keys[i][0], x, d->v.y - 6, SWATCH, SWATCH);
    }
    d->top = d->v.y + 22;
}

char *topt_staged_svg(const struct topt_staged *s, const char *title)
{
    int stages = s->cost.stage.stages;
    struct drawing d = {
        .s = s,
        .v = {.width = WIDTH, .left = LEFT, .right = WIDTH - RIGHT},
        .high = (double)topt_min(HIGH, topt_max(LOW, ALL_LANES / stages - GAP))};
    char end[32];
    for (int i = 0; i < s->passes.n; i++)
        d.end_ns = topt_max(d.end_ns, s->passes.at[i].end_ns);
    put_head(&d, title);
    for (int i = 0; i < stages; i++)
        put_lane(&d, i);
    topt_svg_words(&d.v.t, LEFT, lane_top(&d, stages) + 16, "class=\"soft\"", "0");
    topt_svg_words(&d.v.t, LEFT + COLUMNS, lane_top(&d, stages) + 16,
                   "class=\"soft\" text-anchor=\"end\"",
                   topt_show_ns(d.end_ns, end, sizeof end));
    d.v.y = lane_top(&d, stages) + FOOT;
    return topt_svg_done(&d.v, title, "", style);
}
