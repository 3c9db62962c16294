/* test_plot.c - pictures of curves and frontiers: whole, finite, the same each time, and in a
 * terminal no wider than it is, for documents with no point, few and very many. */
#include <stdlib.h>
#include <string.h>

#include "chart.h"
#include "tap.h"
#include "topt_plan.h"

static json_t *band(double ns)
{
    return json_pack("{s:{s:I, s:I}, s:{s:I, s:I}}", "memory", "low_bytes", (json_int_t)1,
                     "high_bytes", (json_int_t)2, "time", "low_ns",
                     (json_int_t)(0.7 * ns), "high_ns", (json_int_t)(1.3 * ns));
}

/* Memory rises by 'step' a point, time falls as 1/(i+1). */
static json_t *frontier(int n, int64_t limit)
{
    json_t *points = json_array();
    for (int i = 0; i < n; i++) {
        double ns = 3e9 / (i + 1);
        json_array_append_new(
            points,
            json_pack("{s:I, s:I, s:I, s:I, s:I, s:i, s:i, s:o}", "memory_bytes",
                      (json_int_t)((8LL << 30) + i * (64LL << 20)), "peak_bytes",
                      (json_int_t)(8LL << 30), "time_ns", (json_int_t)ns, "compute_ns",
                      (json_int_t)(ns / 2), "network_ns", (json_int_t)(ns / 2), "nodes",
                      16, "gpus_per_node", 8, "band", band(ns)));
    }
    return json_pack("{s:s, s:s, s:i, s:i, s:i, s:s, s:s, s:s, s:b, s:I, s:o}", "model",
                     "a<b>&\"c\"", "hw", "cluster", "gpus", 128, "batch", 64, "seq", 32,
                     "precision", "f32", "optimizer", "adam", "space", "full", "exact", 1,
                     "memory_limit", (json_int_t)limit, "points", points);
}

/* Counts 1..n; those below 'fits' do not. */
static json_t *curve(int n, int fits)
{
    json_t *points = json_array();
    for (int i = 1; i <= n; i++) {
        double ns = 1e9 / i + 1e6;
        json_t *p = json_pack("{s:i, s:b, s:I}", "gpus", i, "feasible", i >= fits,
                              "limit", (json_int_t)(16LL << 30));
        if (i >= fits)
            json_object_update_new(
                p, json_pack("{s:i, s:I, s:I, s:s, s:o}", "nodes", 1, "memory_bytes",
                             (json_int_t)((12LL << 30) / i), "time_ns", (json_int_t)ns,
                             "strategy", "data 2 & tensor 4", "band", band(ns)));
        json_array_append_new(points, p);
    }
    return json_pack("{s:s, s:s, s:i, s:i, s:s, s:s, s:s, s:I, s:o}", "model", "m", "hw",
                     "h", "batch", 64, "seq", 32, "precision", "f32", "optimizer", "adam",
                     "space", "auto", "memory_limit", (json_int_t)(16LL << 30), "points",
                     points);
}

/* Every element is closed, in order, and nothing stands outside the one at the top. */
static int well_formed(const char *s)
{
    const char *open[32];
    int depth = 0, tops = 0;
    for (; *s; s++) {
        if (*s == '&' && strncmp(s, "&lt;", 4) && strncmp(s, "&gt;", 4) &&
            strncmp(s, "&amp;", 5) && strncmp(s, "&quot;", 6))
            return 0;
        if (*s != '<')
            continue;
        const char *name = s + 1 + (s[1] == '/'), *end = strchr(s, '>');
        size_t len = strcspn(name, " />");
        if (!end || len == 0)
            return 0;
        if (s[1] == '/') {
            if (depth == 0 || strncmp(open[--depth], name, len))
                return 0;
        } else {
            tops += depth == 0;
            if (end[-1] != '/' && depth < 32)
                open[depth++] = name;
        }
        s = end;
    }
    return depth == 0 && tops == 1;
}

/* Columns of the widest line. */
static int widest(const char *s)
{
    int most = 0, now = 0;
    for (; *s; s++) {
        now = *s == '\n' ? 0 : now + (((unsigned char)*s & 0xc0) != 0x80);
        most = now > most ? now : most;
    }
    return most;
}

static int lines(const char *s)
{
    int n = 0;
    while ((s = strchr(s, '\n')))
        n++, s++;
    return n;
}

static void picture(json_t *doc, char *(*draw)(const json_t *), const char *what)
{
    char *svg = draw(doc), *again = draw(doc);
    ok(svg && well_formed(svg), "%s: SVG is well formed", what);
    ok(svg && !strstr(svg, "nan") && !strstr(svg, "inf\""), "%s: numbers are finite",
       what);
    ok(svg && !strstr(svg, "<script") && !strstr(svg, "href"),
       "%s: it stands alone, without scripts", what);
    ok(svg && again && !strcmp(svg, again), "%s: the same bytes each time", what);
    free(svg);
    free(again);
}

static void drawing(json_t *doc, char *(*draw)(const json_t *, int), const char *what)
{
    char *text = draw(doc, 80);
    ok(text && widest(text) <= 80, "%s: at most 80 columns (%d)", what,
       text ? widest(text) : -1);
    ok(text && lines(text) <= 48, "%s: fits a screen (%d lines)", what,
       text ? lines(text) : -1);
    free(text);
}

static void sizes(void)
{
    static const int n[] = {0, 1, 2, 5, 2000};
    for (int i = 0; i < 5; i++) {
        char what[64];
        json_t *f = frontier(n[i], 20LL << 30), *c = curve(n[i], 3);
        snprintf(what, sizeof what, "frontier of %d", n[i]);
        picture(f, topt_svg_frontier, what);
        drawing(f, topt_plot_frontier, what);
        snprintf(what, sizeof what, "curve of %d", n[i]);
        picture(c, topt_svg_curve, what);
        drawing(c, topt_plot_curve, what);
        json_decref(f);
        json_decref(c);
    }
}

static int times(const char *s, const char *word)
{
    int n = 0;
    for (; (s = strstr(s, word)); s += strlen(word))
        n++;
    return n;
}

static void contents(void)
{
    json_t *f = frontier(5, (8LL << 30) + (100LL << 20)), *far = frontier(5, 1LL << 40);
    char *svg = topt_svg_frontier(f), *wide = topt_svg_frontier(far);
    char *text = topt_plot_frontier(f, 80);
    is_int(times(svg, "<circle class=\"dot\""), 5, "a dot a point");
    is_int(times(svg, "class=\"rule\""), 1, "the limit is a line");
    is_int(times(wide, "class=\"rule\""), 0, "but not where it is far away");
    is_int(times(svg, "class=\"mark\""), 2, "the knee is marked, and in the legend");
    ok(strstr(svg, "a&lt;b&gt;&amp;&quot;c&quot;"), "a name is escaped");
    is_int(times(text, "above the limit"), 3, "points above the limit are said to be");
    is_int(times(text, "fastest that fits"), 1, "one is the fastest that fits");
    json_t *c = curve(16, 4);
    char *curved = topt_svg_curve(c);
    is_int(times(curved, "does not fit in"), 6, "what does not fit, seen and heard");
    is_int(times(curved, "class=\"cross\""), 4, "has a cross, and one in the legend");
    free(svg);
    free(wide);
    free(text);
    free(curved);
    json_decref(f);
    json_decref(far);
    json_decref(c);
}

static void axes(void)
{
    static const struct {
        double lo, hi;
        enum topt_unit unit;
        enum topt_scale scale;
    } at[] = {{0, 1, TOPT_UNIT_NUMBER, TOPT_LINEAR},
              {5, 5, TOPT_UNIT_BYTES, TOPT_LINEAR},
              {1e9, 1.0001e9, TOPT_UNIT_NS, TOPT_LINEAR},
              {1, 1e12, TOPT_UNIT_BYTES, TOPT_LOG},
              {3, 1024, TOPT_UNIT_NUMBER, TOPT_POWERS_OF_TWO},
              {7, 7, TOPT_UNIT_NUMBER, TOPT_LOG},
              {1, 1, TOPT_UNIT_NUMBER, TOPT_POWERS_OF_TWO}};
    for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
        struct topt_axis a = {.unit = at[i].unit, .scale = at[i].scale};
        topt_axis_fit(&a, at[i].lo, at[i].hi, 6, 0);
        int inside = a.lo <= at[i].lo && a.hi >= at[i].hi, rising = 1;
        for (int k = 0; k < a.nticks; k++) {
            double x = topt_axis_at(&a, a.tick[k]);
            inside &= x >= -1e-9 && x <= 1 + 1e-9;
            rising &= !k || a.tick[k] > a.tick[k - 1];
        }
        ok(inside && rising && a.nticks >= 1 && a.nticks <= TOPT_CHART_TICKS,
           "axis %zu: %d ticks within its range", i, a.nticks);
    }
    double x[] = {0, 1, 2, 3, 4}, y[] = {10, 4, 3, 2, 1}, line[] = {4, 3, 2, 1, 0};
    is_int(topt_chart_knee(x, y, 5), 1, "the knee is where the fall ends");
    is_int(topt_chart_knee(x, line, 5), -1, "a line has none");
    is_int(topt_chart_knee(x, y, 2), -1, "nor have two points");
}

int main(void)
{
    axes();
    sizes();
    contents();
    return done_testing();
}
