/* plot.c - drawings of curves: speed and memory for each number of devices.
 *
 * On a terminal, each number of devices is a row with a bar as long as its speed.  As SVG, a curve is two
 * charts (chart.h): speed against devices with the line of perfect scaling, and memory below it. */
#include "plot.h"
#include "chart.h"
#include "chart_svg.h"
#include "topt_answer_text.h"
#include "topt_drawing.h"
#include "topt_json.h"
#include "topt_totals.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static const char TIGHT[] = ", tight";
enum { LABEL = 12, NOTE = 44, TRAINING = 32, ROWS = 32 /* that a screen holds */ };

/* ---- shared with plot_frontier.c --------------------------------------------------- */

void topt_plot_job(struct topt_text *t, const json_t *doc)
{
    topt_text_add(t, "batch %lld, sequence %lld, %s, %s",
                  (long long)topt_json_whole_at(doc, "batch"),
                  (long long)topt_json_whole_at(doc, "seq"),
                  topt_json_words_at(doc, "precision"),
                  topt_json_words_at(doc, "optimizer"));
}

void topt_plot_time_band(const json_t *point, double *ret_low, double *ret_high)
{
    const json_t *band = json_object_get(json_object_get(point, "band"), "time");
    *ret_low = topt_json_number_at(band ? band : point, band ? "low_ns" : "time_ns");
    *ret_high = topt_json_number_at(band ? band : point, band ? "high_ns" : "time_ns");
}

void topt_plot_band_words(struct topt_text *t, const json_t *point)
{
    const json_t *memory = json_object_get(json_object_get(point, "band"), "memory");
    double low, high, ns = topt_json_number_at(point, "time_ns");
    char a[32], b[32];
    topt_plot_time_band(point, &low, &high);
    if (ns > 0 && high > low)
        topt_text_add(t, "The fastest that fits: time %.0f %% less to %.0f %% more",
                      100 * (1 - low / ns), 100 * (high / ns - 1));
    if (t->len && memory)
        topt_text_add(
            t, ", memory %s to %s with context and libraries",
            topt_show_bytes(topt_json_whole_at(memory, "low_bytes"), a, sizeof a),
            topt_show_bytes(topt_json_whole_at(memory, "high_bytes"), b, sizeof b));
}

int topt_plot_near(double limit, double lo, double hi)
{
    double room = hi - lo > 0.2 * hi ? hi - lo : 0.2 * hi;
    return limit > 0 && limit > lo - room && limit < hi + room;
}

char *topt_plot_svg(struct topt_plot_texts *x, const struct topt_chart *c, int n)
{
    char *svg = NULL;
    if (!x->title.oom && !x->subtitle.oom && !x->footnote.oom && !x->description.oom)
        svg = topt_chart_svg(
            &(struct topt_caption){x->title.s, x->subtitle.s ? x->subtitle.s : "",
                                   x->footnote.s ? x->footnote.s : "",
                                   x->description.s ? x->description.s : ""},
            c, n);
    topt_text_fini(&x->title);
    topt_text_fini(&x->subtitle);
    topt_text_fini(&x->footnote);
    topt_text_fini(&x->description);
    return svg;
}

/* ---- what a curve says ------------------------------------------------------------- */

static int feasible(const json_t *point)
{
    return json_is_true(json_object_get(point, "feasible"));
}

/* Is it a number of GPUs that does not divide the batch? */
static int unshared(const json_t *point)
{
    return json_array_size(json_object_get(point, "batches")) > 0;
}

/* The note for a number of GPUs without a plan. */
static void put_no_plan(struct topt_text *t, const json_t *point)
{
    char limit[32];
    topt_text_add(
        t,
        json_is_null(json_object_get(point, "feasible"))
            ? "not found to fit in %s per GPU, with operators fixed by heuristic"
            : "does not fit in %s per GPU",
        topt_show_bytes(topt_json_whole_at(point, "limit"), limit, sizeof limit));
}

static double speed_at(const json_t *curve, double ns)
{
    return ns > 0 ? topt_json_number_at(curve, "batch") * 1e9 / ns : 0;
}

static double samples_per_second(const json_t *curve, const json_t *point)
{
    return feasible(point) ? speed_at(curve, topt_json_number_at(point, "time_ns")) : 0;
}

/* The highest speed, and the highest speed per device (0: nothing fits). */
static double find_speeds(const json_t *curve, double *ret_max)
{
    size_t i;
    json_t *p;
    double each = 0;
    *ret_max = 0;
    json_array_foreach(json_object_get(curve, "points"), i, p)
    {
        double s = samples_per_second(curve, p);
        *ret_max = s > *ret_max ? s : *ret_max;
        if (s > each * topt_json_number_at(p, "gpus"))
            each = s / topt_json_number_at(p, "gpus");
    }
    return each;
}

/* ---- bars -------------------------------------------------------------------------- */

static void put_bar(struct topt_text *t, double value, double max, int width)
{
    /* Draw a bar in eighths of a column, with the block characters U+2588..U+258F. */
    static const char *const part[] = {"",       "\u258f", "\u258e", "\u258d",
                                       "\u258c", "\u258b", "\u258a", "\u2589"};
    int eighths = max > 0 ? (int)(value / max * width * 8 + 0.5) : 0;
    if (eighths < 1)
        eighths = 1;
    for (int i = 0; i < eighths / 8; i++)
        topt_text_add(t, "\u2588");
    topt_text_add(t, "%s", part[eighths % 8]);
    for (int i = (eighths + 7) / 8; i < width; i++)
        topt_text_add(t, " ");
}

static int is_tight(const json_t *point)
{
    return !strcmp(topt_json_words_at(point, "verdict"), "tight");
}

/* The width of the word beside the memory: 0 where no count is tight. */
static int tight_width(const json_t *curve)
{
    size_t i;
    json_t *p;
    json_array_foreach(json_object_get(curve, "points"), i, p)
    {
        if (is_tight(p))
            return (int)strlen(TIGHT);
    }
    return 0;
}

static int bar_width(int width)
{
    int w = width - LABEL - NOTE;
    return w < 10 ? 10 : w;
}

/* Choose the rows of a long curve: powers of two, counts where fitting begins or ends, both ends, and as
 * many others as a screen holds. */
static int shown(const json_t *points, size_t i)
{
    size_t n = json_array_size(points), stride = (n + ROWS - 1) / ROWS;
    const json_t *p = json_array_get(points, i);
    int64_t gpus = topt_json_whole_at(p, "gpus");
    if (n <= ROWS || i == 0 || i + 1 == n || i % stride == 0)
        return 1;
    return !(gpus & (gpus - 1)) || feasible(p) != feasible(json_array_get(points, i - 1));
}

static void put_count(struct topt_text *t, const json_t *curve, const json_t *p,
                      double max, int width)
{
    char a[32], b[32];
    double s = samples_per_second(curve, p);
    topt_text_add(t, "%*.0f  ", LABEL - 2, topt_json_number_at(p, "gpus"));
    if (!feasible(p)) {
        put_no_plan(t, p);
        topt_text_add(t, "\n");
        return;
    }
    put_bar(t, s, max, bar_width(width));
    topt_text_add(t, s < 1000 ? " %9.4g" : " %9.0f", s);
    int training = json_object_get(curve, "training") != NULL;
    topt_text_add(t, training ? " %4.0f%%  %10s%-*s  %8s" : " %4.0f%%  %10s%-*s  %s",
                  100 * topt_json_number_at(p, "efficiency"),
                  topt_show_bytes(topt_json_whole_at(p, "memory_bytes"), a, sizeof a),
                  tight_width(curve), is_tight(p) ? TIGHT : "",
                  topt_show_ns(topt_json_whole_at(p, "time_ns"), b, sizeof b));
    topt_totals_cells(t, p, json_object_get(curve, "points"),
                      json_object_get(curve, "training"));
    topt_text_add(t, "\n");
}

/* List the counts that do not divide the batch in one line. */
static void put_unshared(struct topt_text *t, const json_t *curve)
{
    enum { NAMED = 12 };
    const json_t *points = json_object_get(curve, "points"), *first = NULL;
    size_t i, n = 0;
    json_t *p;
    json_array_foreach(points, i, p)
    {
        if (!unshared(p))
            continue;
        first = first ? first : p;
        if (n++ < NAMED)
            topt_text_add(t, "%s%lld", n == 1 ? "Not shown: " : ", ",
                          (long long)topt_json_whole_at(p, "gpus"));
    }
    if (!n)
        return;
    if (n > NAMED)
        topt_text_add(t, " and %zu more", n - NAMED);
    topt_text_add(t, " GPU counts, which do not divide a batch of %lld; %lld divides",
                  (long long)topt_json_whole_at(curve, "batch"),
                  (long long)topt_json_whole_at(first, "gpus"));
    json_array_foreach(json_object_get(first, "batches"), i, p)
        topt_text_add(t, "%s %lld", i ? " or" : "", (long long)json_integer_value(p));
    topt_text_add(t, ".\n");
}

char *topt_plot_curve(const json_t *curve, int width)
{
    struct topt_text t = {0};
    const json_t *points = json_object_get(curve, "points"),
                 *training = json_object_get(curve, "training");
    size_t i, hidden = 0;
    json_t *p;
    double max, each = find_speeds(curve, &max);
    int tight = tight_width(curve);
    width -= tight + (training ? TRAINING : 0);
    topt_text_add(&t, "%s on %s: ", topt_json_words_at(curve, "model"),
                  topt_json_words_at(curve, "hw"));
    topt_plot_job(&t, curve);
    topt_text_add(&t,
                  "\nquestion  speed and memory of every number of GPUs (profiling)\n%*s",
                  LABEL - 2, "GPUs");
    if (each > 0)
        topt_text_add(&t, "  %*s %9s  eff.  %10s%*s  %*s", bar_width(width), "",
                      "samples/s", "memory", tight, "", training ? 8 : 1, "step");
    topt_totals_heads(&t, each > 0 ? points : NULL, each > 0 ? training : NULL);
    topt_text_add(&t, "\n");
    json_array_foreach(points, i, p)
    {
        if (unshared(p))
            continue;
        if (shown(points, i))
            put_count(&t, curve, p, max, width);
        else
            hidden++;
    }
    if (hidden)
        topt_text_add(&t, "%zu number%s between %s not shown; --json has all.\n", hidden,
                      hidden == 1 ? "" : "s", hidden == 1 ? "is" : "are");
    put_unshared(&t, curve);
    if (each > 0)
        topt_text_add(&t,
                      "eff.: scaling efficiency, speed per GPU against the best row\n");
    if (tight)
        topt_text_add(&t, "tight: with context and libraries a run may take more than "
                          "the limit\n");
    if (json_object_get(curve, "knee"))
        topt_text_add(&t,
                      "knee: %.0f GPUs; beyond it each GPU adds less than half of the "
                      "best speed per GPU\n",
                      topt_json_number_at(curve, "knee"));
    topt_text_of_lacks(&t, curve);
    return topt_text_take(&t);
}

/* ---- as SVG ------------------------------------------------------------------------ */

/* Add a series of the counts that fit, or of those that do not; the caller sets its values. */
static struct topt_series *add_counts(struct topt_chart *c, const json_t *curve, int fit,
                                      enum topt_series_kind kind, const char *name)
{
    const json_t *points = json_object_get(curve, "points");
    size_t i;
    json_t *p;
    struct topt_series *s =
        topt_chart_add(c, kind, name, (int)json_array_size(points), 1);
    if (!s)
        return NULL;
    s->n = 0;
    json_array_foreach(points, i, p)
    {
        if (feasible(p) == fit && !unshared(p))
            s->x[s->n++] = topt_json_number_at(p, "gpus");
    }
    return s;
}

static char *count_note(const json_t *curve, const json_t *p)
{
    struct topt_text t = {0};
    char a[32], b[32];
    topt_text_add(&t, "%lld GPUs: ", (long long)topt_json_whole_at(p, "gpus"));
    if (!feasible(p))
        put_no_plan(&t, p);
    else
        topt_text_add(&t, "%.5g samples/s, %s per step, %s per GPU; %s",
                      samples_per_second(curve, p),
                      topt_show_ns(topt_json_whole_at(p, "time_ns"), a, sizeof a),
                      topt_show_bytes(topt_json_whole_at(p, "memory_bytes"), b, sizeof b),
                      topt_json_words_at(p, "strategy"));
    return topt_text_take(&t);
}

/* Set the notes of a series of counts. */
static int add_notes(struct topt_series *s, const json_t *curve, int fit)
{
    size_t i;
    int n = 0;
    json_t *p;
    json_array_foreach(json_object_get(curve, "points"), i, p)
    {
        if (feasible(p) == fit && !unshared(p) && !(s->note[n++] = count_note(curve, p)))
            return -1;
    }
    return 0;
}

/* Use a log axis where the last count is many times the first. */
static enum topt_scale count_scale(const json_t *curve)
{
    const json_t *points = json_object_get(curve, "points");
    double first = topt_json_number_at(json_array_get(points, 0), "gpus");
    double last =
        topt_json_number_at(json_array_get(points, json_array_size(points) - 1), "gpus");
    return last >= 8 * first ? TOPT_POWERS_OF_TWO : TOPT_LINEAR;
}

static void fit_counts(struct topt_axis *x, const json_t *curve)
{
    size_t i;
    json_t *p;
    double lo = 1e18, hi = 0;
    json_array_foreach(json_object_get(curve, "points"), i, p)
    {
        double gpus = topt_json_number_at(p, "gpus");
        lo = gpus < lo ? gpus : lo;
        hi = gpus > hi ? gpus : hi;
    }
    *x = (struct topt_axis){.label = "GPUs", .scale = count_scale(curve), .whole = 1};
    topt_axis_fit(x, lo, hi, 12, 0);
}

/* Draw the error bands of the speeds, and widen '*lo' and '*hi' to hold them. */
static int add_speeds(struct topt_chart *c, const json_t *curve, double *lo, double *hi)
{
    size_t i;
    int n = 0;
    json_t *p;
    struct topt_series *band =
        add_counts(c, curve, 1, TOPT_SERIES_AREA, TOPT_PLOT_MARGIN);
    struct topt_series *s =
        band ? add_counts(c, curve, 1, TOPT_SERIES_LINE, "fastest that fits") : NULL;
    if (!s || add_notes(s, curve, 1))
        return -1;
    json_array_foreach(json_object_get(curve, "points"), i, p)
    {
        double low, high;
        if (!feasible(p))
            continue;
        topt_plot_time_band(p, &low, &high);
        s->y[n] = samples_per_second(curve, p);
        band->y[n] = speed_at(curve, high);
        band->y2[n] = speed_at(curve, low);
        *lo = band->y[n] < *lo ? band->y[n] : *lo;
        *hi = band->y2[n] > *hi ? band->y2[n] : *hi;
        n++;
    }
    return 0;
}

static int add_ideal(struct topt_chart *c, double each, double *lo, double *hi)
{
    const struct topt_series *speeds = &c->series[1];
    struct topt_series *s =
        topt_chart_add(c, TOPT_SERIES_IDEAL, "perfect scaling", speeds->n, 0);
    for (int i = 0; s && i < s->n; i++) {
        s->x[i] = speeds->x[i];
        s->y[i] = each * speeds->x[i];
        *hi = s->y[i] > *hi ? s->y[i] : *hi;
        *lo = s->y[i] < *lo ? s->y[i] : *lo;
    }
    return s ? 0 : -1;
}

static int add_knee(struct topt_chart *c, const json_t *curve)
{
    const struct topt_series *speeds = &c->series[1];
    int knee = 0;
    if (!json_object_get(curve, "knee"))
        return 0;
    while (knee < speeds->n && speeds->x[knee] < topt_json_number_at(curve, "knee"))
        knee++;
    if (knee == speeds->n)
        return 0;
    double x = speeds->x[knee], y = speeds->y[knee];
    struct topt_series *s = topt_chart_add(c, TOPT_SERIES_MARK, "knee", 1, 0);
    if (s)
        s->x[0] = x, s->y[0] = y;
    return s ? 0 : -1;
}

static int speed_chart(const json_t *curve, struct topt_chart *c)
{
    double max, lo = 1e300, hi = 0, each = find_speeds(curve, &max);
    fit_counts(&c->x, curve);
    c->y =
        (struct topt_axis){.label = "samples/s",
                           .scale = c->x.scale == TOPT_LINEAR ? TOPT_LINEAR : TOPT_LOG};
    if (each > 0 && (add_speeds(c, curve, &lo, &hi) || add_ideal(c, each, &lo, &hi) ||
                     add_knee(c, curve)))
        return -1;
    topt_axis_fit(&c->y, each > 0 ? lo : 1, each > 0 ? hi : 10, 6, 1);
    struct topt_series *none = add_counts(c, curve, 0, TOPT_SERIES_CROSS, "does not fit");
    if (!none || add_notes(none, curve, 0))
        return -1;
    for (int i = 0; i < none->n; i++)
        none->y[i] = c->y.lo;
    none->name = none->n ? none->name : NULL;
    return 0;
}

/* Draw memory of the counts that fit, from the peak of the computation to the sum that must fit. */
static int memory_chart(const json_t *curve, const char *limit, struct topt_chart *c)
{
    size_t i;
    int n = 0;
    json_t *p;
    double hi = 0, at = topt_json_number_at(curve, "memory_limit");
    fit_counts(&c->x, curve);
    c->y = (struct topt_axis){.label = "memory per GPU", .unit = TOPT_UNIT_BYTES};
    struct topt_series *band =
        add_counts(c, curve, 1, TOPT_SERIES_AREA, "memory from peak in use to reserved");
    struct topt_series *s =
        band ? add_counts(c, curve, 1, TOPT_SERIES_LINE, "fastest that fits") : NULL;
    if (!s || add_notes(s, curve, 1))
        return -1;
    json_array_foreach(json_object_get(curve, "points"), i, p)
    {
        if (!feasible(p))
            continue;
        s->y[n] = band->y2[n] = topt_json_number_at(p, "memory_bytes");
        band->y[n] = topt_json_number_at(
            p, json_object_get(p, "peak_bytes") ? "peak_bytes" : "memory_bytes");
        hi = s->y[n] > hi ? s->y[n] : hi;
        n++;
    }
    if (at > 0)
        c->rule[c->nrules++] = (struct topt_rule){0, at, limit};
    topt_axis_fit(&c->y, 0, at > hi ? at : hi, 6, 1);
    return 0;
}

static void describe(struct topt_plot_texts *x, const json_t *curve)
{
    size_t i;
    json_t *p;
    topt_text_add(&x->title, "%s on %s: speed by number of GPUs",
                  topt_json_words_at(curve, "model"), topt_json_words_at(curve, "hw"));
    topt_plot_job(&x->subtitle, curve);
    topt_text_add(&x->subtitle, "; space %s", topt_json_words_at(curve, "space"));
    json_array_foreach(json_object_get(curve, "points"), i, p)
    {
        char *note = count_note(curve, p);
        topt_text_add(&x->description, "%s%s", i ? ". " : "", note ? note : "");
        free(note);
        if (i == 40) /* who hears this has heard enough */
            break;
    }
}

char *topt_svg_curve(const json_t *curve)
{
    struct topt_plot_texts texts = {0};
    struct topt_chart c[2] = {0};
    char limit[48], a[32];
    int n = (int)json_array_size(json_object_get(curve, "points"));
    snprintf(limit, sizeof limit, "limit %s",
             topt_show_bytes(topt_json_whole_at(curve, "memory_limit"), a, sizeof a));
    describe(&texts, curve);
    if (json_object_get(curve, "knee"))
        topt_text_add(&texts.footnote, "Knee: beyond it each GPU adds less than half of "
                                       "the best speed per GPU.");
    int rc = n > 0 && (speed_chart(curve, &c[0]) || memory_chart(curve, limit, &c[1]));
    if (rc)
        texts.title.oom = 1;
    char *svg = topt_plot_svg(&texts, c, n > 0 ? 2 : 0);
    topt_chart_fini(&c[0]);
    topt_chart_fini(&c[1]);
    return svg;
}
