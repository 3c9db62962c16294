/* timeline.c - a simulation drawn as SVG that stands alone: a lane for the device, one for
 * each level of links that moves something.
 *
 * A step has more tasks than a picture has columns.  So each column of a lane is as high as
 * the part of its time in which the lane was busy, in the colour of what took most of it;
 * columns alike are one rectangle.  Tasks that are wide enough say their names. */
#include "topt_simulate.h"
#include "topt_svg.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WIDTH = 1120,
    LEFT = 120,
    RIGHT = 20,
    COLUMNS = WIDTH - LEFT - RIGHT,
    LANE = 46,
    GAP = 16,
    FOOT = 44,
    LANES = 1 + TOPT_LINK_COUNT,
    NAMED = 64, /* columns of a task that says its name */
    TITLED = 3, /* ... that says it where it is pointed at */
    LETTER = 7, /* columns of a letter */
    SWATCH = 11,
    STEPS = 20, /* different heights of a column */
};

enum kind { FORWARD, BACKWARD, UPDATE, WAITED, GATHER, REDUCE, KINDS };

static const struct {
    const char *cls, *words;
} kinds[KINDS] = {
    [FORWARD] = {"f", "forward"},
    [BACKWARD] = {"b", "backward"},
    [UPDATE] = {"u", "begin and end of the step"},
    [WAITED] = {"w", "communication while nothing computes"},
    [GATHER] = {"g", "asynchronous gathers of parameters"},
    [REDUCE] = {"r", "asynchronous reductions of gradients"},
};

static const char style[] =
    ".paper{fill:#fff}.ink{fill:#1d2430}.soft{fill:#667085}.grid{stroke:#e3e7ee}"
    ".lane{fill:#f4f6f9}.f{fill:#2459c9}.b{fill:#0f8a7e}.u{fill:#8a94a6}.w{fill:#c2410c}"
    ".g{fill:#9353d3}.r{fill:#d9a400}.name{fill:#fff;font-size:11px;pointer-events:none}"
    ".hit{fill-opacity:0}"
    "@media(prefers-color-scheme:dark){.paper{fill:#171c25}.ink{fill:#e6e9ef}"
    ".soft{fill:#98a2b3}.grid{stroke:#2c3442}.lane{fill:#1f2632}.f{fill:#6f9bff}"
    ".b{fill:#3dbdb0}.u{fill:#8a94a6}.w{fill:#ff8f6b}.g{fill:#bd93f9}.r{fill:#e8c34a}"
    ".name{fill:#10141b}}";

struct drawing {
    const struct topt_simulation *s;
    struct topt_svg v;
    int64_t end_ns;                 /* of what was simulated */
    double (*busy)[COLUMNS][KINDS]; /* by lane: ns */
    int shown[LANES], nlanes;       /* the lane's row, -1: it has nothing */
    double top;                     /* of the lanes, below the legend */
};

static enum kind kind_of(const struct topt_simulation *s, int task)
{
    const struct topt_simulated *what = &s->task[task];
    if (!s->schedule.task[task].links)
        return what->part != TOPT_PART_MICRO             ? UPDATE
               : s->program->instr[what->instr].backward ? BACKWARD
                                                         : FORWARD;
    if (!s->schedule.task[task].async)
        return WAITED;
    return s->program->time[what->instr].async == TOPT_ASYNC_PARAM ? GATHER : REDUCE;
}

static int in_lane(const struct topt_task *x, int lane)
{
    return x->ns && (lane ? x->links >> (lane - 1) & 1 : !x->links);
}

static double at_x(const struct drawing *d, int64_t ns)
{
    return LEFT + (double)ns / (double)(d->end_ns ? d->end_ns : 1) * COLUMNS;
}

static double lane_top(const struct drawing *d, int lane)
{
    return d->top + d->shown[lane] * (LANE + GAP);
}

static double bottom(const struct drawing *d)
{
    return d->top + d->nlanes * (LANE + GAP) - GAP;
}

/* ---- columns ----------------------------------------------------------------------- */

static void fill_columns(struct drawing *d, int task, int lane)
{
    const struct topt_task *x = &d->s->schedule.task[task];
    double from = at_x(d, x->start_ns) - LEFT, to = at_x(d, x->end_ns) - LEFT;
    enum kind kind = kind_of(d->s, task);
    for (int c = (int)from; c < COLUMNS && c < to; c++) {
        double a = from > c ? from : c, b = to < c + 1 ? to : c + 1;
        d->busy[lane][c][kind] += b > a ? b - a : 0;
    }
}

/* How high a column is, in STEPS, and of which kind. */
static int column(const struct drawing *d, int lane, int c, enum kind *ret)
{
    double all = 0, most = 0;
    *ret = FORWARD;
    for (int k = 0; k < KINDS; k++) {
        all += d->busy[lane][c][k];
        if (d->busy[lane][c][k] > most) {
            most = d->busy[lane][c][k];
            *ret = (enum kind)k;
        }
    }
    return all <= 0 ? 0 : all >= 1 ? STEPS : 1 + (int)(all * (STEPS - 1));
}

static void put_columns(struct drawing *d, int lane)
{
    for (int c = 0, to; c < COLUMNS; c = to) {
        enum kind kind, next;
        int high = column(d, lane, c, &kind);
        for (to = c + 1; to < COLUMNS && column(d, lane, to, &next) == high; to++)
            if (high && next != kind)
                break;
        double h = (double)LANE * high / STEPS;
        if (high)
            topt_text_add(&d->v.t,
                          "<rect class=\"%s\" x=\"%d\" y=\"%.1f\" width=\"%d\" "
                          "height=\"%.1f\"/>\n",
                          kinds[kind].cls, LEFT + c, lane_top(d, lane) + LANE - h, to - c,
                          h);
    }
}

/* ---- words ------------------------------------------------------------------------- */

static void put_name(struct drawing *d, int task, int lane)
{
    const struct topt_task *x = &d->s->schedule.task[task];
    double from = at_x(d, x->start_ns), wide = at_x(d, x->end_ns) - from;
    char name[128], shown[128], took[32];
    if (wide < TITLED)
        return;
    topt_task_words(d->s, task, name, sizeof name);
    if (wide >= NAMED) {
        snprintf(shown, sizeof shown, "%.*s", (int)((wide - 6) / LETTER), name);
        topt_svg_words(&d->v.t, from + 4, lane_top(d, lane) + LANE / 2.0 + 4,
                       "class=\"name\"", shown);
    }
    topt_text_add(&d->v.t,
                  "<rect class=\"hit\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
                  "height=\"%d\"><title>",
                  from, lane_top(d, lane), wide, LANE);
    topt_svg_escape(&d->v.t, name);
    topt_text_add(&d->v.t, ", %s</title></rect>\n",
                  topt_show_ns(x->end_ns - x->start_ns, took, sizeof took));
}

static void put_lane(struct drawing *d, int lane)
{
    static const char *const name[LANES] = {"computing", "inside nodes", "between nodes"};
    char took[32], words[64];
    if (d->shown[lane] < 0)
        return;
    double y = lane_top(d, lane);
    int64_t ns = lane ? d->s->link_ns[lane - 1] : d->s->compute_ns;
    topt_text_add(
        &d->v.t,
        "<rect class=\"lane\" x=\"%d\" y=\"%.1f\" width=\"%d\" height=\"%d\"/>\n", LEFT,
        y, COLUMNS, LANE);
    topt_svg_words(&d->v.t, LEFT - 10, y + 20, "class=\"ink\" text-anchor=\"end\"",
                   name[lane]);
    snprintf(words, sizeof words, "%s", topt_show_ns(ns, took, sizeof took));
    topt_svg_words(&d->v.t, LEFT - 10, y + 36, "class=\"soft\" text-anchor=\"end\"",
                   words);
    put_columns(d, lane);
    for (int i = 0; i < d->s->schedule.n; i++)
        if (in_lane(&d->s->schedule.task[i], lane))
            put_name(d, i, lane);
}

/* A step of 1, 2 or 5 of a power of ten that makes four to ten ticks. */
static double tick_of(double end)
{
    double step = pow(10, floor(log10(end > 0 ? end : 1)));
    return end / step >= 4 ? step : end / step >= 2 ? step / 2 : step / 5;
}

static void put_axis(struct drawing *d)
{
    double step = tick_of((double)d->end_ns);
    char buf[32];
    for (double at = 0; at <= (double)d->end_ns; at += step) {
        double x = at_x(d, (int64_t)at);
        topt_text_add(&d->v.t, "<path class=\"grid\" d=\"M%.1f %.1fV%.1f\"/>\n", x,
                      d->top - 6, bottom(d) + 6);
        topt_svg_words(&d->v.t, x, bottom(d) + 22,
                       "class=\"soft\" text-anchor=\"middle\"",
                       at > 0 ? topt_show_ns((int64_t)at, buf, sizeof buf) : "0");
    }
}

static void put_head(struct drawing *d, const char *title)
{
    const struct topt_simulation *s = d->s;
    char a[32], b[32], c[64] = "", words[192];
    double x, at = 0;
    if (s->program->settings.micro_batches > s->micros)
        snprintf(c, sizeof c, "; the first %d of %lld micro-batches are drawn", s->micros,
                 (long long)s->program->settings.micro_batches);
    snprintf(words, sizeof words, "%s per step; in %s of it nothing computes%s",
             topt_show_ns(s->time_ns, a, sizeof a), topt_show_ns(s->idle_ns, b, sizeof b),
             c);
    topt_svg_head(&d->v, title, words);
    d->v.y += 6;
    for (int k = 0; k < KINDS; k++) {
        topt_svg_key(&d->v, SWATCH, kinds[k].words, &at, &x);
        topt_text_add(&d->v.t,
                      "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%d\" "
                      "height=\"%d\"/>\n",
                      kinds[k].cls, x, d->v.y - 6, SWATCH, SWATCH);
    }
    d->top = d->v.y + 22;
    d->v.y = bottom(d) + FOOT;
}

char *topt_simulation_svg(const struct topt_simulation *s, const char *title)
{
    struct drawing d = {.s = s,
                        .v = {.width = WIDTH, .left = LEFT, .right = WIDTH - RIGHT}};
    d.busy = calloc(LANES, sizeof *d.busy);
    if (!d.busy)
        return NULL;
    for (int i = 0; i < s->schedule.n; i++)
        if (s->schedule.task[i].end_ns > d.end_ns)
            d.end_ns = s->schedule.task[i].end_ns;
    for (int lane = 0; lane < LANES; lane++) {
        int any = lane == 0;
        for (int i = 0; i < s->schedule.n; i++)
            if (in_lane(&s->schedule.task[i], lane)) {
                any = 1;
                fill_columns(&d, i, lane);
            }
        d.shown[lane] = any ? d.nlanes++ : -1;
    }
    put_head(&d, title);
    put_axis(&d);
    for (int lane = 0; lane < LANES; lane++)
        put_lane(&d, lane);
    free(d.busy);
    return topt_svg_done(&d.v, title, "", style);
}
