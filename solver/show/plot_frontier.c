/* plot_frontier.c - drawings of frontiers: time against memory as a staircase, with both ends, the knee and
 * the fastest plan that fits marked. */
#include "chart.h"
#include "chart_text.h"
#include "plot.h"
#include "topt_answer_text.h"
#include "topt_drawing.h"
#include "topt_json.h"
#include "topt_totals.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static const char FASTEST[] = "fastest that fits";
enum { LABEL = 12, HEIGHT = 16, SHOWN = 10 };

static const json_t *point_at(const json_t *frontier, int i)
{
    return json_array_get(json_object_get(frontier, "points"), (size_t)i);
}

static int count(const json_t *frontier)
{
    return (int)json_array_size(json_object_get(frontier, "points"));
}

static int fits(const json_t *frontier, const json_t *p)
{
    int64_t limit = topt_json_whole_at(frontier, "memory_limit");
    return !limit || topt_json_whole_at(p, "memory_bytes") <= limit;
}

static int fastest_that_fits(const json_t *frontier)
{
    int at = -1;
    for (int i = 0; i < count(frontier); i++)
        if (fits(frontier, point_at(frontier, i)))
            at = i;
    return at;
}

static char *point_note(const json_t *p)
{
    struct topt_text t = {0};
    char a[32], b[32], c[32], d[32];
    double low, high;
    topt_plot_time_band(p, &low, &high);
    topt_text_add(&t,
                  "%s per GPU (%s at the peak), %s per step, of which communication %s",
                  topt_show_bytes(topt_json_whole_at(p, "memory_bytes"), a, sizeof a),
                  topt_show_bytes(topt_json_whole_at(p, "peak_bytes"), b, sizeof b),
                  topt_show_ns(topt_json_whole_at(p, "time_ns"), c, sizeof c),
                  topt_show_ns(topt_json_whole_at(p, "network_ns"), d, sizeof d));
    if (high > low)
        topt_text_add(&t, "; expected %s to %s", topt_show_ns((int64_t)low, a, sizeof a),
                      topt_show_ns((int64_t)high, b, sizeof b));
    return topt_text_take(&t);
}

/* ---- the chart --------------------------------------------------------------------- */

/* How many points are drawn, from the least memory on: points far above the limit are left out, so that
 * those below it can be told apart. */
static int drawn_points(const json_t *frontier)
{
    double limit = topt_json_number_at(frontier, "memory_limit");
    double lightest = topt_json_number_at(point_at(frontier, 0), "memory_bytes");
    double most = 1.6 * limit > 1.25 * lightest ? 1.6 * limit : 1.25 * lightest;
    int n = 0;
    while (n < count(frontier) &&
           (limit <= 0 ||
            topt_json_number_at(point_at(frontier, n), "memory_bytes") <= most))
        n++;
    return n;
}

/* Draw the error band of the times unless it hides the staircase, and widen '*lo' and '*hi'. */
static int add_band(struct topt_chart *c, const json_t *frontier, double *lo, double *hi)
{
    int n = drawn_points(frontier);
    double least = *lo, most = *hi;
    struct topt_series *s = topt_chart_add(c, TOPT_SERIES_AREA, TOPT_PLOT_MARGIN, n, 0);
    if (!s)
        return -1;
    s->steps = 1;
    for (int i = 0; i < n; i++) {
        s->x[i] = topt_json_number_at(point_at(frontier, i), "memory_bytes");
        topt_plot_time_band(point_at(frontier, i), &s->y[i], &s->y2[i]);
        least = s->y[i] < least ? s->y[i] : least;
        most = s->y2[i] > most ? s->y2[i] : most;
    }
    if (n < 2 || most - least > 6 * (*hi - *lo)) {
        s->n = 0;
        s->name = NULL;
        return 0;
    }
    *lo = least;
    *hi = most;
    return 0;
}

/* The points that are drawn; the knee is that of all. */
static int add_points(struct topt_chart *c, const json_t *frontier, int *ret_knee)
{
    int n = count(frontier);
    struct topt_series *s =
        topt_chart_add(c, TOPT_SERIES_STEPS, "fastest strategy", n, 1);
    for (int i = 0; s && i < n; i++) {
        s->x[i] = topt_json_number_at(point_at(frontier, i), "memory_bytes");
        s->y[i] = topt_json_number_at(point_at(frontier, i), "time_ns");
    }
    *ret_knee = s ? topt_chart_knee(s->x, s->y, n) : -1;
    if (s)
        s->n = drawn_points(frontier);
    for (int i = 0; s && i < s->n; i++)
        if (!(s->note[i] = point_note(point_at(frontier, i))))
            return -1;
    return s ? 0 : -1;
}

static int add_knee(struct topt_chart *c, const json_t *p)
{
    struct topt_series *s = topt_chart_add(c, TOPT_SERIES_MARK, "knee", 1, 1);
    if (!s)
        return -1;
    s->x[0] = topt_json_number_at(p, "memory_bytes");
    s->y[0] = topt_json_number_at(p, "time_ns");
    s->note[0] = point_note(p);
    return s->note[0] ? 0 : -1;
}

/* Make the chart of at least one point; '*ret_knee' is -1 without a knee. */
static int frontier_chart(const json_t *frontier, int bands, const char *limit,
                          struct topt_chart *c, int *ret_knee)
{
    const json_t *first = point_at(frontier, 0);
    const json_t *last = point_at(frontier, drawn_points(frontier) - 1);
    double lo = topt_json_number_at(first, "memory_bytes");
    double hi = topt_json_number_at(last, "memory_bytes");
    double fast = topt_json_number_at(last, "time_ns");
    double slow = topt_json_number_at(first, "time_ns");
    double at = topt_json_number_at(frontier, "memory_limit");
    c->x = (struct topt_axis){.label = "memory per GPU", .unit = TOPT_UNIT_BYTES};
    c->y = (struct topt_axis){.label = "time per step", .unit = TOPT_UNIT_NS};
    if ((bands && add_band(c, frontier, &fast, &slow)) ||
        add_points(c, frontier, ret_knee) ||
        (*ret_knee >= 0 && *ret_knee < drawn_points(frontier) &&
         add_knee(c, point_at(frontier, *ret_knee))))
        return -1;
    if (topt_plot_near(at, lo, hi)) {
        c->rule[c->nrules++] = (struct topt_rule){1, at, limit};
        lo = at < lo ? at : lo;
        hi = at > hi ? at : hi;
    }
    topt_axis_fit(&c->x, lo, hi, 8, 0);
    topt_axis_fit(&c->y, fast, slow, 6, 0);
    return 0;
}

/* ---- for a terminal ---------------------------------------------------------------- */

/* The word beside a point: its name, or the verdict on its memory. */
static const char *mark_of(const json_t *frontier, const json_t *p, const char *what)
{
    const char *verdict = topt_json_words_at(p, "verdict");
    if (!fits(frontier, p))
        return "above the limit";
    if (!strcmp(verdict, "tight"))
        return strcmp(what, FASTEST) ? verdict : "fastest, tight";
    return what;
}

static void list_point(struct topt_text *t, const json_t *frontier, const json_t *p,
                       const char *what)
{
    char a[32], b[32], c[32], d[32], grid[48];
    const char *strategy = topt_json_words_at(p, "strategy");
    const char *mark = mark_of(frontier, p, what);
    snprintf(grid, sizeof grid, "%lldx%lld", (long long)topt_json_whole_at(p, "nodes"),
             (long long)topt_json_whole_at(p, "gpus_per_node"));
    topt_text_add(t, "%*s  %10s  %10s  %10s", LABEL,
                  topt_show_bytes(topt_json_whole_at(p, "memory_bytes"), a, sizeof a),
                  topt_show_ns(topt_json_whole_at(p, "time_ns"), b, sizeof b),
                  topt_show_ns(topt_json_whole_at(p, "compute_ns"), c, sizeof c),
                  topt_show_ns(topt_json_whole_at(p, "network_ns"), d, sizeof d));
    topt_totals_cells(t, p, json_object_get(frontier, "points"),
                      json_object_get(frontier, "training"));
    topt_text_add(t, "  %-6s", grid);
    if (*strategy)
        topt_text_add(t, "  %-17s  %s", mark, strategy);
    else if (*mark)
        topt_text_add(t, "  %s", mark);
    topt_text_add(t, "\n");
}

static void list_points(struct topt_text *t, const json_t *frontier, int knee)
{
    int n = count(frontier), fastest = fastest_that_fits(frontier);
    int stride = n > SHOWN ? (n + SHOWN - 1) / SHOWN : 1;
    topt_text_add(t, "%*s  %10s  %10s  %10s", LABEL, "memory", "step", "compute",
                  "comm.");
    topt_totals_heads(t, json_object_get(frontier, "points"),
                      json_object_get(frontier, "training"));
    topt_text_add(t, "  nodes%s\n",
                  n && *topt_json_words_at(point_at(frontier, 0), "strategy")
                      ? "                      strategy"
                      : "");
    for (int i = 0; i < n; i++)
        if (i % stride == 0 || i == n - 1 || i == knee || i == fastest)
            list_point(t, frontier, point_at(frontier, i),
                       i == fastest ? FASTEST
                       : i == knee  ? "knee"
                       : i == 0     ? "least memory"
                                    : "");
    if (n > SHOWN)
        topt_text_add(t, "%*s  a selection of the points; --json lists all\n", LABEL, "");
    if (knee >= 0 && knee != fastest && fits(frontier, point_at(frontier, knee)))
        topt_text_add(t,
                      "%*s  knee: with less memory, time rises faster than beyond it\n",
                      LABEL, "");
}

static const char *limit_words(const json_t *frontier, char *buf, size_t size)
{
    char a[32];
    snprintf(buf, size, "limit %s",
             topt_show_bytes(topt_json_whole_at(frontier, "memory_limit"), a, sizeof a));
    return buf;
}

static void put_title(struct topt_text *t, const json_t *frontier)
{
    int64_t gpus = topt_json_whole_at(frontier, "gpus");
    topt_text_add(t, "%s on %lld GPU%s of %s", topt_json_words_at(frontier, "model"),
                  (long long)gpus, gpus == 1 ? "" : "s",
                  topt_json_words_at(frontier, "hw"));
}

static void put_answer(struct topt_text *t, const json_t *frontier)
{
    int n = count(frontier);
    topt_text_add(t, "%d point%s (space: %s), %s", n, n == 1 ? "" : "s",
                  topt_json_words_at(frontier, "space"),
                  json_is_true(json_object_get(frontier, "exact")) ? "exact"
                                                                   : "not exact");
    const json_t *ends = json_object_get(frontier, "ends");
    int both = json_is_true(json_object_get(ends, "least")) &&
               json_is_true(json_object_get(ends, "fastest"));
    if (ends)
        topt_text_add(t, "; ends (space: %s), %s", topt_json_words_at(ends, "space"),
                      both ? "exact" : "not exact");
}

static void put_terms(struct topt_text *t, const json_t *frontier)
{
    char limit[48];
    topt_plot_job(t, frontier);
    topt_text_add(t, "; %s per GPU", limit_words(frontier, limit, sizeof limit));
}

char *topt_plot_frontier(const json_t *frontier, int width)
{
    struct topt_text t = {0};
    struct topt_chart c = {0};
    char limit[48], *drawn = NULL;
    int knee = -1;
    put_title(&t, frontier);
    topt_text_add(&t, ": ");
    put_answer(&t, frontier);
    topt_text_add(&t, "\n");
    put_terms(&t, frontier);
    topt_text_add(&t, "\n");
    if (count(frontier) > 2 &&
        !frontier_chart(frontier, 0, limit_words(frontier, limit, sizeof limit), &c,
                        &knee))
        drawn = topt_chart_text(&c, width < 120 ? width : 120, HEIGHT);
    if (drawn)
        topt_text_add(&t, "%s", drawn);
    if (count(frontier))
        list_points(&t, frontier, knee);
    if (json_object_get(frontier, "left_out"))
        topt_text_of_words(&t, "left out", topt_json_words_at(frontier, "left_out"));
    topt_text_of_lacks(&t, frontier);
    topt_text_of_claim(&t, frontier);
    free(drawn);
    topt_chart_fini(&c);
    return topt_text_take(&t);
}

/* ---- as SVG ------------------------------------------------------------------------ */

static void put_footnote(struct topt_text *t, const json_t *frontier)
{
    int left = count(frontier) - drawn_points(frontier);
    topt_plot_band_words(t, point_at(frontier, fastest_that_fits(frontier)));
    if (left)
        topt_text_add(t, "%s%d point%s of more memory %s not drawn", t->len ? ". " : "",
                      left, left == 1 ? "" : "s", left == 1 ? "is" : "are");
}

static void describe(struct topt_text *t, const json_t *frontier, int knee)
{
    int n = count(frontier);
    const struct {
        const char *what;
        int at;
    } told[] = {{"Least memory", 0}, {"Knee", knee}, {"Fastest", n - 1}};
    for (int i = 0; i < 3 && n > 0; i++) {
        char *note = told[i].at >= 0 ? point_note(point_at(frontier, told[i].at)) : NULL;
        if (note)
            topt_text_add(t, "%s%s: %s.", i ? " " : "", told[i].what, note);
        free(note);
    }
}

char *topt_svg_frontier(const json_t *frontier)
{
    struct topt_plot_texts texts = {0};
    struct topt_chart c = {0};
    char limit[48];
    int knee = -1, n = count(frontier) > 0;
    put_title(&texts.title, frontier);
    topt_text_add(&texts.title, ": memory against time");
    put_terms(&texts.subtitle, frontier);
    topt_text_add(&texts.subtitle, "; ");
    put_answer(&texts.subtitle, frontier);
    if (n && frontier_chart(frontier, 1, limit_words(frontier, limit, sizeof limit), &c,
                            &knee))
        texts.title.oom = 1;
    put_footnote(&texts.footnote, frontier);
    describe(&texts.description, frontier, knee);
    char *svg = topt_plot_svg(&texts, &c, n);
    topt_chart_fini(&c);
    return svg;
}
