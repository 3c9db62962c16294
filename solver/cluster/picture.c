/* picture.c - GPUs of a cluster over time as SVG that stands alone: a lane for each policy,
 * with the GPUs that are in use, and above the lane's line those that waiting jobs asked for.
 *
 * A column of a lane is the mean over its time. */
#include <stdio.h>
#include <stdlib.h>

#include "topt_cluster.h"
#include "topt_minmax.h"
#include "topt_svg.h"

enum { WIDTH = 960, LEFT = 110, RIGHT = 24, COLUMNS = WIDTH - LEFT - RIGHT };
enum { LANE = 90, GAP = 26, FOOT = 34, SWATCH = 11 };

static const char style[] =
    ".paper{fill:#fff}.ink{fill:#1d2430}.soft{fill:#667085}.grid{stroke:#e3e7ee}"
    ".lane{fill:#f4f6f9}.u{fill:#2459c9}.w{fill:#c2410c}"
    "@media(prefers-color-scheme:dark){.paper{fill:#171c25}.ink{fill:#e6e9ef}"
    ".soft{fill:#98a2b3}.grid{stroke:#2c3442}.lane{fill:#1f2632}.u{fill:#6f9bff}"
    ".w{fill:#ff8f6b}}";

/* GPU-seconds of each column. */
static void sum_up(const struct topt_cluster_result *r, int64_t end_s, double *used,
                   double *waiting)
{
    double width = (double)end_s / COLUMNS;
    for (size_t i = 0; i + 1 < r->nmoments; i++) {
        const struct topt_cluster_moment *m = &r->moment[i];
        double from = (double)m->at_s, to = (double)r->moment[i + 1].at_s;
        for (int c = (int)(from / width); c < COLUMNS && (double)c * width < to; c++) {
            double a = (double)c * width, b = a + width;
            double covers = (to < b ? to : b) - (from > a ? from : a);
            used[c] += covers * (double)m->used;
            waiting[c] += covers * (double)m->waiting;
        }
    }
}

/* Columns of a height as an area that stands on 'base'. */
static void add_area(struct topt_text *t, const char *cls, const double *v, double unit,
                     double most, double base)
{
    topt_text_add(t, "<path class='%s' d='M%d,%.1f", cls, LEFT, base);
    for (int c = 0; c < COLUMNS; c++) {
        double high = v[c] / unit < most ? v[c] / unit : most;
        topt_text_add(t, "V%.1fh1", base - high);
    }
    topt_text_add(t, "V%.1fZ'/>\n", base);
}

static void add_lane(struct topt_svg *v, const struct topt_cluster_result *r,
                     int64_t end_s, int64_t gpus)
{
    double used[COLUMNS] = {0}, waiting[COLUMNS] = {0};
    double unit = (double)end_s / COLUMNS * (double)gpus / (LANE / 2.0);
    double base = v->y + LANE;
    sum_up(r, end_s, used, waiting);
    topt_text_add(&v->t, "<rect class='lane' x='%d' y='%.1f' width='%d' height='%d'/>\n",
                  LEFT, base - LANE / 2.0, COLUMNS, LANE / 2);
    add_area(&v->t, "u", used, unit, LANE / 2.0, base);
    add_area(&v->t, "w", waiting, unit, LANE / 2.0, base - LANE / 2.0);
    topt_svg_words(&v->t, LEFT - 8, base - 4, "class='ink' text-anchor='end'", r->policy);
    v->y = base + GAP;
}

static void add_hours(struct topt_svg *v, int64_t end_s)
{
    for (int i = 0; i <= 4; i++) {
        char words[40];
        snprintf(words, sizeof words, "%.1f h", (double)end_s * i / 4 / 3600);
        topt_svg_words(&v->t, LEFT + COLUMNS * i / 4.0, v->y,
                       i == 4   ? "class='soft' text-anchor='end'"
                       : i == 0 ? "class='soft'"
                                : "class='soft' text-anchor='middle'",
                       words);
    }
    v->y += FOOT;
}

char *topt_cluster_svg(const struct topt_cluster_result *r, size_t n, int64_t gpus)
{
    static const char *const keys[][2] = {
        {"u", "GPUs in use, of the cluster's"},
        {"w", "GPUs that waiting jobs asked for, up to as many again"}};
    struct topt_svg v = {.width = WIDTH, .left = LEFT, .right = WIDTH - RIGHT};
    char words[80];
    double at = 0, x;
    int64_t end_s = 1;
    for (size_t i = 0; i < n; i++)
        if (r[i].nmoments)
            end_s = topt_max(end_s, r[i].moment[r[i].nmoments - 1].at_s);
    snprintf(words, sizeof words, "%lld GPUs, by policy", (long long)gpus);
    topt_svg_head(&v, "A cluster over time", words);
    for (size_t i = 0; i < 2; i++) {
        topt_svg_key(&v, SWATCH, keys[i][1], &at, &x);
        topt_text_add(&v.t,
                      "<rect class='%s' x='%.1f' y='%.1f' width='%d' height='%d'/>\n",
                      keys[i][0], x, v.y - SWATCH / 2.0, SWATCH, SWATCH);
    }
    v.y += GAP;
    for (size_t i = 0; i < n; i++)
        add_lane(&v, &r[i], end_s, gpus);
    add_hours(&v, end_s);
    return topt_svg_done(&v, "A cluster over time", words, style);
}
