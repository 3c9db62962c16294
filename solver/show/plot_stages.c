/* plot_stages.c - the schedule of pipeline stages, drawn as SVG that stands alone and as a trace.
 *
 * A lane for each stage: passes forward and backward, lighter from chunk to chunk, over a ground that is
 * the bubble.  Passes of one kind that are too narrow to be told apart are one rectangle.  Where a pass forward runs as
 * one with a pass backward, the former takes the upper half of the lane. */
#include "topt_drawing.h"
#include "topt_json.h"
#include "topt_svg.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    ".f{fill:#2459c9}.b{fill:#0f8a7e}.w{fill:#b4690e}.e{fill:#8a94a6}"
    ".name{fill:#fff;font-size:10px;pointer-events:none}"
    "@media(prefers-color-scheme:dark){.paper{fill:#171c25}.ink{fill:#e6e9ef}"
    ".soft{fill:#98a2b3}.lane{fill:#2a3240}.f{fill:#6f9bff}.b{fill:#3dbdb0}.w{fill:#"
    "e0a04a}"
    ".name{fill:#10141b}}";

/* A pass as the document has it. */
struct pass {
    int stage, chunk, backward;
    int64_t micro_batch, start_ns, end_ns;
};

struct drawing {
    const json_t *doc, *stages, *passes;
    struct topt_svg v;
    int nstages;
    int64_t end_ns; /* of what is drawn */
    int apart;      /* gradients of parameters have passes of their own */
    int pairs;      /* passes of two micro-batches run as one */
    double top, high;
};

static struct pass pass_at(const json_t *passes, size_t i)
{
    const json_t *p = json_array_get(passes, i);
    int64_t n[6];
    for (size_t k = 0; k < 6; k++)
        n[k] = json_integer_value(json_array_get(p, k));
    return (struct pass){(int)n[0], (int)n[1], (int)n[3], n[2], n[4], n[5]};
}

static double at_x(const struct drawing *d, int64_t ns)
{
    return LEFT + (double)ns / (double)(d->end_ns ? d->end_ns : 1) * COLUMNS;
}

static double lane_top(const struct drawing *d, int stage)
{
    return d->top + stage * (d->high + GAP);
}

/* Chunks of a stage from its own colour to a lighter one. */
static double opacity_of(const struct drawing *d, int chunk)
{
    int64_t chunks = topt_json_whole_at(d->doc, "chunks");
    int own = chunk / d->nstages;
    return chunks > 1 ? 1 - 0.55 * (double)own / (double)(chunks - 1) : 1;
}

static const char *class_of(const struct pass *p)
{
    static const char *const classes[] = {"f", "b", "w"};
    return p->chunk < 0 ? "e" : classes[p->backward];
}

static void put_pass(struct drawing *d, const struct pass *p, const char *words)
{
    double x = at_x(d, p->start_ns), wide = at_x(d, p->end_ns) - x;
    int half = d->pairs && p->chunk >= 0;
    double high = half ? d->high / 2 : d->high;
    double y = lane_top(d, p->stage) + (half && p->backward ? high : 0);
    char took[32], number[24];
    topt_text_add(&d->v.t,
                  "<rect class=\"%s\" opacity=\"%.2f\" x=\"%.2f\" y=\"%.1f\" "
                  "width=\"%.2f\" height=\"%.1f\"",
                  class_of(p), p->chunk < 0 ? 1.0 : opacity_of(d, p->chunk), x, y, wide,
                  high);
    if (!words) {
        topt_text_add(&d->v.t, "/>\n");
        return;
    }
    topt_text_add(&d->v.t, "><title>%s, %s</title></rect>\n", words,
                  topt_show_ns(p->end_ns - p->start_ns, took, sizeof took));
    snprintf(number, sizeof number, "%lld", (long long)p->micro_batch);
    if (p->chunk >= 0 && wide >= NUMBERED && high >= LOW)
        topt_svg_words(&d->v.t, x + wide / 2, y + high / 2 + 3.5,
                       "class=\"name\" text-anchor=\"middle\"", number);
}

static const char *kind_of(const struct pass *p)
{
    static const char *const kinds[] = {"forward", "backward", "gradients of parameters"};
    return p->chunk < 0 ? "end" : kinds[p->backward];
}

static const char *words_of(const struct pass *p, char buf[96])
{
    if (p->chunk < 0)
        snprintf(buf, 96, "stage %d: end of the step", p->stage);
    else
        snprintf(buf, 96, "stage %d, chunk %d: micro-batch %lld %s", p->stage, p->chunk,
                 (long long)p->micro_batch, kind_of(p));
    return buf;
}

enum { FORWARD = 1, BACKWARD = 2 };

/* Passes of the stage in order, of these kinds; those too narrow by themselves go with the next of their kind. */
static void put_passes(struct drawing *d, int stage, int kinds)
{
    struct pass run = {.stage = -1};
    char words[96];
    for (size_t i = 0; i < json_array_size(d->passes); i++) {
        struct pass one = pass_at(d->passes, i), *p = &one;
        double wide = at_x(d, p->end_ns) - at_x(d, p->start_ns);
        if (p->stage != stage || !(kinds & (p->backward ? BACKWARD : FORWARD)))
            continue;
        int joins = run.stage >= 0 && wide < APART && run.chunk == p->chunk &&
                    run.backward == p->backward &&
                    at_x(d, p->start_ns) - at_x(d, run.end_ns) < 0.2;
        if (run.stage >= 0 && !joins)
            put_pass(d, &run, NULL);
        if (joins)
            run.end_ns = p->end_ns;
        else
            run = *p;
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
    const json_t *x = json_array_get(d->stages, (size_t)stage);
    double busy = topt_json_number_at(x, "busy_ns");
    double y = lane_top(d, stage);
    char bytes[32], words[64];
    topt_text_add(&d->v.t,
                  "<rect class=\"lane\" x=\"%d\" y=\"%.1f\" width=\"%d\" "
                  "height=\"%.1f\"/>\n",
                  LEFT, y, COLUMNS, d->high);
    snprintf(words, sizeof words, "%d: %s", stage,
             topt_show_bytes(topt_json_whole_at(x, "memory_bytes"), bytes, sizeof bytes));
    topt_svg_words(&d->v.t, LEFT - 8, y + d->high / 2 + 4,
                   "class=\"ink\" text-anchor=\"end\"", words);
    snprintf(words, sizeof words, "%.0f %%",
             100 * busy / (busy + topt_json_number_at(x, "bubble_ns")));
    topt_svg_words(&d->v.t, LEFT + COLUMNS + 8, y + d->high / 2 + 4, "class=\"soft\"",
                   words);
    put_passes(d, stage, d->pairs ? FORWARD : FORWARD | BACKWARD);
    if (d->pairs)
        put_passes(d, stage, BACKWARD);
}

static void put_head(struct drawing *d, const char *title)
{
    static const char *const keys[][2] = {{"f", "forward (the micro-batch's number)"},
                                          {"b", "backward"},
                                          {"w", "gradients of parameters"},
                                          {"e", "end of the step"},
                                          {"lane", "bubble, and waiting"}};
    enum { KEYS = sizeof keys / sizeof *keys };
    int64_t all = topt_json_whole_at(d->doc, "of_micro_batches"),
            drawn = topt_json_whole_at(d->doc, "micro_batches");
    char a[32], b[32], some[80] = "", words[256];
    double x, at = 0;
    if (drawn < all)
        snprintf(some, sizeof some, " %lld of %lld micro-batches are drawn.",
                 (long long)drawn, (long long)all);
    snprintf(words, sizeof words,
             "%s per step; a stage has nothing to do for %s of it on the mean. Schedule "
             "%s%s.%s Left: a stage's memory; right: how busy it is.",
             topt_show_ns(topt_json_whole_at(d->doc, "time_ns"), a, sizeof a),
             topt_show_ns(topt_json_whole_at(d->doc, "idle_ns"), b, sizeof b),
             topt_json_words_at(d->doc, "schedule"),
             d->pairs ? ", forward above and backward below" : "", some);
    topt_svg_head(&d->v, title, words);
    d->v.y += 6;
    for (int i = 0; i < KEYS; i++) {
        if (*keys[i][0] == 'w' && !d->apart)
            continue;
        topt_svg_key(&d->v, SWATCH, keys[i][1], &at, &x);
        topt_text_add(&d->v.t,
                      "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%d\" "
                      "height=\"%d\"/>\n",
                      keys[i][0], x, d->v.y - 6, SWATCH, SWATCH);
    }
    d->top = d->v.y + 22;
}

char *topt_svg_stages(const json_t *simulation, const char *title)
{
    struct drawing d = {.doc = simulation,
                        .stages = json_object_get(simulation, "stages"),
                        .passes = json_object_get(simulation, "passes"),
                        .v = {.width = WIDTH, .left = LEFT, .right = WIDTH - RIGHT}};
    char end[32];
    d.nstages = (int)json_array_size(d.stages);
    if (!d.nstages)
        return NULL;
    d.pairs = !strncmp(topt_json_words_at(simulation, "schedule"), "combined", 8);
    int high = ALL_LANES / d.nstages - GAP;
    d.high = high > HIGH ? HIGH : high < LOW ? LOW : high;
    for (size_t i = 0; i < json_array_size(d.passes); i++) {
        struct pass p = pass_at(d.passes, i);
        d.end_ns = p.end_ns > d.end_ns ? p.end_ns : d.end_ns;
        d.apart |= p.backward > 1;
    }
    put_head(&d, title);
    for (int i = 0; i < d.nstages; i++)
        put_lane(&d, i);
    topt_svg_words(&d.v.t, LEFT, lane_top(&d, d.nstages) + 16, "class=\"soft\"", "0");
    topt_svg_words(&d.v.t, LEFT + COLUMNS, lane_top(&d, d.nstages) + 16,
                   "class=\"soft\" text-anchor=\"end\"",
                   topt_show_ns(d.end_ns, end, sizeof end));
    d.v.y = lane_top(&d, d.nstages) + FOOT;
    return topt_svg_done(&d.v, title, "", style);
}

/* ---- the trace --------------------------------------------------------------------------- */

static json_t *event(const struct pass *p, const char *kind, int64_t from, int64_t to)
{
    return json_pack("{s:s, s:i, s:i, s:f, s:f, s:s, s:s, s:{s:I, s:i}}", "ph", "X",
                     "pid", 0, "tid", p->stage, "ts", (double)from / 1e3, "dur",
                     (double)(to - from) / 1e3, "cat", kind, "name", kind, "args",
                     "micro_batch", (json_int_t)p->micro_batch, "chunk", p->chunk);
}

static json_t *named(const char *what, int stage, const char *name)
{
    return json_pack("{s:s, s:s, s:i, s:i, s:{s:s}}", "ph", "M", "name", what, "pid", 0,
                     "tid", stage, "args", "name", name);
}

char *topt_trace_stages(const json_t *simulation)
{
    const json_t *passes = json_object_get(simulation, "passes");
    int stages = (int)json_array_size(json_object_get(simulation, "stages"));
    int64_t *before = calloc((size_t)stages + 1, sizeof *before);
    char name[32];
    if (!before)
        return NULL;
    json_t *events = json_array();
    json_array_append_new(
        events, named("process_name", 0, topt_json_words_at(simulation, "model")));
    for (int i = 0; i < stages; i++) {
        snprintf(name, sizeof name, "stage %d", i);
        json_array_append_new(events, named("thread_name", i, name));
    }
    for (size_t i = 0; i < json_array_size(passes); i++) {
        struct pass p = pass_at(passes, i);
        int64_t *to = &before[p.stage];
        if (p.start_ns > *to)
            json_array_append_new(events, event(&p, "bubble", *to, p.start_ns));
        if (p.end_ns > p.start_ns)
            json_array_append_new(events, event(&p, kind_of(&p), p.start_ns, p.end_ns));
        *to = p.end_ns;
    }
    free(before);
    json_t *doc = json_pack("{s:s, s:o}", "displayTimeUnit", "ms", "traceEvents", events);
    char *text = doc ? topt_json_text(doc, 0) : NULL;
    json_decref(doc);
    return text;
}
