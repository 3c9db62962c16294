/* chart_svg.c - charts as SVG (topt_svg.h).
 *
 * Colours are classes, so that a dark theme applies.  A title and a description serve screen readers.
 * Coordinates have two decimals.  Points at the same place are drawn once. */
#include "chart_svg.h"
#include "chart.h"
#include "topt_svg.h"

#include <stdio.h>
#include <string.h>

enum {
    WIDTH = 760,
    PANEL = 340, /* of a chart, with its axis */
    LEFT = 76,
    RIGHT = 24,
    TOP = 18,
    BOTTOM = 46,
    SWATCH = 18,
    MANY = 80, /* points, from which on a line has no dots */
};

static const char style[] =
    ".paper{fill:#fff}.ink{fill:#1d2430}.soft{fill:#667085}"
    ".grid{stroke:#e3e7ee}.axis{stroke:#98a2b3}"
    ".line{stroke:#2459c9;stroke-width:2;fill:none;stroke-linejoin:round}"
    ".ideal{stroke:#667085;stroke-dasharray:5 4;fill:none}"
    ".area{fill:#2459c9;fill-opacity:.13}.dot{fill:#2459c9}"
    ".mark{fill:#fff;stroke:#2459c9;stroke-width:2.5}"
    ".rule{stroke:#b3401f;stroke-width:1.5;stroke-dasharray:2 3}"
    ".bad{fill:#b3401f}.cross{stroke:#b3401f;stroke-width:1.8;fill:none}"
    "@media(prefers-color-scheme:dark){"
    ".paper{fill:#171c25}.ink{fill:#e6e9ef}.soft{fill:#98a2b3}"
    ".grid{stroke:#2c3442}.axis{stroke:#667085}"
    ".line{stroke:#7aa5ff}.ideal{stroke:#98a2b3}"
    ".area{fill:#7aa5ff;fill-opacity:.18}.dot{fill:#7aa5ff}"
    ".mark{fill:#171c25;stroke:#7aa5ff}"
    ".rule,.cross{stroke:#ff8f6b}.bad{fill:#ff8f6b}}";

/* A chart and its position in the picture. */
struct place {
    const struct topt_chart *c;
    int index;
    double top; /* of the plot */
};

static double plot_height(void)
{
    return PANEL - TOP - BOTTOM;
}

static double at_x(const struct place *p, double x)
{
    return LEFT + topt_axis_at(&p->c->x, x) * (WIDTH - LEFT - RIGHT);
}

static double at_y(const struct place *p, double y)
{
    return p->top + (1 - topt_axis_at(&p->c->y, y)) * plot_height();
}

/* ---- axes -------------------------------------------------------------------------- */

static void put_axes(struct topt_text *t, const struct place *p)
{
    const struct topt_axis *x = &p->c->x, *y = &p->c->y;
    double bottom = p->top + plot_height();
    char buf[96];
    for (int i = 0; i < y->nticks; i++) {
        double at = at_y(p, y->tick[i]);
        topt_text_add(t, "<path class=\"grid\" d=\"M%d %.2fH%d\"/>\n", LEFT, at,
                      WIDTH - RIGHT);
        topt_svg_words(t, LEFT - 8, at + 4, "class=\"soft\" text-anchor=\"end\"",
                       topt_axis_tick(y, i, buf, sizeof buf));
    }
    for (int i = 0; i < x->nticks; i++) {
        double at = at_x(p, x->tick[i]);
        topt_text_add(t, "<path class=\"axis\" d=\"M%.2f %.2fv5\"/>\n", at, bottom);
        topt_svg_words(t, at, bottom + 19, "class=\"soft\" text-anchor=\"middle\"",
                       topt_axis_tick(x, i, buf, sizeof buf));
    }
    topt_text_add(t, "<path class=\"axis\" d=\"M%d %.2fH%d\"/>\n", LEFT, bottom,
                  WIDTH - RIGHT);
    topt_svg_words(t, LEFT, p->top - 6, "class=\"soft\"",
                   topt_axis_title(y, buf, sizeof buf));
    topt_svg_words(t, WIDTH - RIGHT, bottom + 37, "class=\"soft\" text-anchor=\"end\"",
                   topt_axis_title(x, buf, sizeof buf));
}

/* The name of a rule stands above the plot, where no line runs: at a vertical one but beside the title of
 * the axis, and else at the right. */
static void put_rule_name(struct topt_text *t, const struct place *p,
                          const struct topt_rule *r)
{
    char title[96];
    double length = topt_svg_length(r->name), x = WIDTH - RIGHT;
    if (r->vertical && at_x(p, r->at) + length / 2 < x)
        x = at_x(p, r->at) + length / 2;
    double least = LEFT + 12 + length +
                   topt_svg_length(topt_axis_title(&p->c->y, title, sizeof title));
    topt_svg_words(t, x > least ? x : least, p->top - 6,
                   "class=\"bad\" text-anchor=\"end\"", r->name);
}

static void put_rules(struct topt_text *t, const struct place *p)
{
    for (int i = 0; i < p->c->nrules; i++) {
        const struct topt_rule *r = &p->c->rule[i];
        if (r->vertical)
            topt_text_add(t, "<path class=\"rule\" d=\"M%.2f %.2fv%.2f\"/>\n",
                          at_x(p, r->at), p->top, plot_height());
        else
            topt_text_add(t, "<path class=\"rule\" d=\"M%d %.2fH%d\"/>\n", LEFT,
                          at_y(p, r->at), WIDTH - RIGHT);
        put_rule_name(t, p, r);
    }
}

/* ---- series ------------------------------------------------------------------------ */

/* Has the pen moved since the last point that was drawn? */
static int moved(double x, double y, double last[2])
{
    double dx = x - last[0], dy = y - last[1];
    if (dx * dx + dy * dy < 0.25)
        return 0;
    last[0] = x;
    last[1] = y;
    return 1;
}

/* Draw along the points of a series, at 'y', forward or back; 'start' begins the path. */
static void put_path(struct topt_text *t, const struct place *p,
                     const struct topt_series *s, const double *y, int back,
                     const char *start)
{
    double last[2] = {-9, -9};
    int first = 1;
    for (int k = 0; k < s->n; k++) {
        int i = back ? s->n - 1 - k : k;
        double px = at_x(p, s->x[i]), py = at_y(p, y[i]);
        if (!moved(px, py, last) && k + 1 < s->n)
            continue;
        if (first)
            topt_text_add(t, "%s%.2f %.2f", start, px, py);
        else if (s->steps || s->kind == TOPT_SERIES_STEPS)
            topt_text_add(t, back ? "V%.2fH%.2f" : "H%.2fV%.2f", back ? py : px,
                          back ? px : py);
        else
            topt_text_add(t, "L%.2f %.2f", px, py);
        first = 0;
    }
    if (s->kind == TOPT_SERIES_STEPS)
        topt_text_add(t, "H%d", WIDTH - RIGHT);
}

static void put_note(struct topt_text *t, const struct topt_series *s, int i)
{
    if (s->note && s->note[i]) {
        topt_text_add(t, "<title>");
        topt_svg_escape(t, s->note[i]);
        topt_text_add(t, "</title>");
    }
}

static void put_dots(struct topt_text *t, const struct place *p,
                     const struct topt_series *s, const char *class, double radius)
{
    for (int i = 0; i < s->n; i++) {
        topt_text_add(t, "<circle class=\"%s\" cx=\"%.2f\" cy=\"%.2f\" r=\"%g\">", class,
                      at_x(p, s->x[i]), at_y(p, s->y[i]), radius);
        put_note(t, s, i);
        topt_text_add(t, "</circle>\n");
    }
}

static void put_crosses(struct topt_text *t, const struct place *p,
                        const struct topt_series *s)
{
    for (int i = 0; i < s->n; i++) {
        topt_text_add(t, "<path class=\"cross\" d=\"M%.2f %.2fm-4 -4l8 8m0 -8l-8 8\">",
                      at_x(p, s->x[i]), at_y(p, s->y[i]));
        put_note(t, s, i);
        topt_text_add(t, "</path>\n");
    }
}

static void put_series(struct topt_text *t, const struct place *p,
                       const struct topt_series *s)
{
    switch (s->kind) {
    case TOPT_SERIES_MARK:
        put_dots(t, p, s, "mark", 5);
        return;
    case TOPT_SERIES_CROSS:
        put_crosses(t, p, s);
        return;
    case TOPT_SERIES_AREA:
        topt_text_add(t, "<path class=\"area\" d=\"");
        put_path(t, p, s, s->y, 0, "M");
        put_path(t, p, s, s->y2, 1, "L");
        topt_text_add(t, "Z\"/>\n");
        return;
    case TOPT_SERIES_LINE:
    case TOPT_SERIES_STEPS:
    case TOPT_SERIES_IDEAL:
        topt_text_add(t, "<path class=\"%s\" d=\"",
                      s->kind == TOPT_SERIES_IDEAL ? "ideal" : "line");
        put_path(t, p, s, s->y, 0, "M");
        topt_text_add(t, "\"/>\n");
    }
    if (s->kind != TOPT_SERIES_IDEAL && s->n <= MANY)
        put_dots(t, p, s, "dot", s->n > MANY / 2 ? 2.5 : 3.5);
}

/* ---- the whole --------------------------------------------------------------------- */

/* Draw the legend entry of a series. */
static void put_key(struct topt_svg *v, const struct topt_series *s, double *at)
{
    double x;
    topt_svg_key(v, SWATCH, s->name, at, &x);
    double mid = x + SWATCH / 2.0;
    if (s->kind == TOPT_SERIES_AREA)
        topt_text_add(&v->t, "<path class=\"area\" d=\"M%.2f %.2fh%dv12h-%dz\"/>\n", x,
                      v->y - 6, SWATCH, SWATCH);
    else if (s->kind == TOPT_SERIES_MARK)
        topt_text_add(&v->t, "<circle class=\"mark\" cx=\"%.2f\" cy=\"%.2f\" r=\"5\"/>\n",
                      mid, v->y);
    else if (s->kind == TOPT_SERIES_CROSS)
        topt_text_add(&v->t,
                      "<path class=\"cross\" d=\"M%.2f %.2fm-4 -4l8 8m0 -8l-8 8\"/>\n",
                      mid, v->y);
    else
        topt_text_add(&v->t, "<path class=\"%s\" d=\"M%.2f %.2fh%d\"/>\n",
                      s->kind == TOPT_SERIES_IDEAL ? "ideal" : "line", x, v->y, SWATCH);
}

/* Draw one legend for all charts, each name once. */
static void put_legend(struct topt_svg *v, const struct topt_chart *c, int n)
{
    double at = 0;
    v->y += 8;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < c[i].nseries; k++) {
            const char *name = c[i].series[k].name;
            int seen = !name || !c[i].series[k].n;
            for (int a = 0; a <= i && !seen; a++)
                for (int b = 0; b < (a < i ? c[a].nseries : k) && !seen; b++)
                    seen = c[a].series[b].name && !strcmp(c[a].series[b].name, name);
            if (!seen)
                put_key(v, &c[i].series[k], &at);
        }
    v->y += 18;
}

static void put_chart(struct topt_text *t, const struct place *p)
{
    put_axes(t, p);
    topt_text_add(t,
                  "<clipPath id=\"c%d\"><rect x=\"%d\" y=\"%.2f\" width=\"%d\" "
                  "height=\"%.2f\"/></clipPath>\n<g clip-path=\"url(#c%d)\">\n",
                  p->index, LEFT - 6, p->top - 6, WIDTH - LEFT - RIGHT + 12,
                  plot_height() + 12, p->index);
    for (int k = 0; k < p->c->nseries; k++)
        if (p->c->series[k].n > 0)
            put_series(t, p, &p->c->series[k]);
    topt_text_add(t, "</g>\n");
    put_rules(t, p);
}

char *topt_chart_svg(const struct topt_caption *caption, const struct topt_chart *c,
                     int n)
{
    struct topt_svg v = {.width = WIDTH, .left = LEFT, .right = WIDTH - RIGHT};
    topt_svg_head(&v, caption->title, caption->subtitle);
    if (n)
        put_legend(&v, c, n);
    for (int i = 0; i < n; i++, v.y += PANEL) {
        struct place p = {&c[i], i, v.y + TOP};
        put_chart(&v.t, &p);
    }
    topt_svg_lines(&v, 11, "class=\"soft\" font-size=\"11\"", caption->footnote);
    v.y += *caption->footnote ? 6 : 0;
    return topt_svg_done(&v, caption->title, caption->description, style);
}
