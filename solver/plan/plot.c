/* plot.c - curves drawn with characters, for a terminal.
 *
 * A chart is a list of rows: a label, a bar as long as its value on a common scale, and a note.
 * Bars need no axes to be read and no more than one column a step to be exact. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topt_plan.h"
#include "topt_text.h"

enum { LABEL = 12, NOTE = 44 };

static void put_bar(struct topt_text *t, double value, double max, int width)
{
    /* Eighths of a column, as the block characters U+2588..U+258F allow. */
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

static double number(const json_t *o, const char *key)
{
    return json_number_value(json_object_get(o, key));
}

static double samples_per_second(const json_t *curve, const json_t *point)
{
    double ns = number(point, "time_ns");
    return ns > 0 ? number(curve, "batch") * 1e9 / ns : 0;
}

static int bar_width(int width)
{
    int w = width - LABEL - NOTE;
    return w < 10 ? 10 : w;
}

static char *done(struct topt_text *t)
{
    if (t->oom)
        topt_text_fini(t);
    return t->s;
}

char *topt_plot_curve(const json_t *curve, int width)
{
    struct topt_text t = {0};
    const json_t *points = json_object_get(curve, "points");
    size_t i;
    json_t *p;
    double max = 0, first = 0;
    char a[32], b[32];
    json_array_foreach(points, i, p)
    {
        double s = samples_per_second(curve, p);
        max = s > max ? s : max;
        if (first <= 0 && s > 0)
            first = s / number(p, "gpus");
    }
    topt_text_add(&t, "%s on %s: batch %.0f, sequence %.0f, %s, %s\n",
                  json_string_value(json_object_get(curve, "model")),
                  json_string_value(json_object_get(curve, "hw")), number(curve, "batch"),
                  number(curve, "seq"),
                  json_string_value(json_object_get(curve, "dtype")),
                  json_string_value(json_object_get(curve, "optimizer")));
    topt_text_add(&t, "%*s  samples a second\n", LABEL - 2, "GPUs");
    json_array_foreach(points, i, p)
    {
        topt_text_add(&t, "%*.0f  ", LABEL - 2, number(p, "gpus"));
        if (!json_is_true(json_object_get(p, "feasible"))) {
            topt_text_add(&t, "does not fit in %s a GPU\n",
                          topt_show_bytes((int64_t)number(p, "limit"), a, sizeof a));
            continue;
        }
        double s = samples_per_second(curve, p);
        put_bar(&t, s, max, bar_width(width));
        topt_text_add(&t, " %8.2f %4.0f%%  %s  %s\n", s,
                      first > 0 ? 100 * s / (first * number(p, "gpus")) : 0,
                      topt_show_bytes((int64_t)number(p, "memory_bytes"), a, sizeof a),
                      topt_show_ns((int64_t)number(p, "time_ns"), b, sizeof b));
    }
    topt_text_add(&t, "%% is of what the first row's speed a GPU would give.\n");
    return done(&t);
}

char *topt_plot_frontier(const json_t *frontier, int width)
{
    struct topt_text t = {0};
    const json_t *points = json_object_get(frontier, "points");
    size_t i, n = json_array_size(points);
    json_t *p;
    double max = 0;
    char a[32], b[32], c[32];
    json_array_foreach(points, i, p) max =
        number(p, "time_ns") > max ? number(p, "time_ns") : max;
    topt_text_add(&t, "%*s  time a step\n", LABEL - 2, "memory");
    json_array_foreach(points, i, p)
    {
        /* A long frontier is thinned to what a screen holds; both ends stay. */
        if (n > 40 && i % ((n + 39) / 40) != 0 && i + 1 != n)
            continue;
        topt_text_add(&t, "%*s  ", LABEL - 2,
                      topt_show_bytes((int64_t)number(p, "memory_bytes"), a, sizeof a));
        put_bar(&t, number(p, "time_ns"), max, bar_width(width));
        topt_text_add(&t, " %s (network %s)\n",
                      topt_show_ns((int64_t)number(p, "time_ns"), b, sizeof b),
                      topt_show_ns((int64_t)number(p, "network_ns"), c, sizeof c));
    }
    return done(&t);
}
