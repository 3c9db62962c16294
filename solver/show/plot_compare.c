/* plot_compare.c - a comparison as bars: compute and exposed communication of a step, and memory per GPU
 * against the limit; as SVG (topt_svg.h).
 *
 * Plans that do not fit are drawn faint, with their memory in the colour of the limit. */
#include "topt_drawing.h"
#include "topt_json.h"
#include "topt_svg.h"

#include <stdlib.h>
#include <string.h>

enum {
    WIDTH = 860,
    NAMES = 186,  /* where bars begin */
    VALUES = 134, /* beside the longest one */
    PANEL = 44,   /* title and legend of a panel */
    ROW = 24,
    BAR = 14,
    FOOT = 18
};

static const char style[] =
    ".paper{fill:#fff}.ink{fill:#1d2430}.soft{fill:#667085}"
    ".compute{fill:#2459c9}.network{fill:#8db2f5}.memory{fill:#2459c9}"
    ".over{fill:#b3401f}.faint{opacity:.45}.axis{stroke:#98a2b3}"
    ".rule{stroke:#b3401f;stroke-width:1.5;stroke-dasharray:2 3}.bad{fill:#b3401f}"
    "@media(prefers-color-scheme:dark){"
    ".paper{fill:#171c25}.ink{fill:#e6e9ef}.soft{fill:#98a2b3}"
    ".compute,.memory{fill:#7aa5ff}.network{fill:#3c5f9f}.over{fill:#ff8f6b}"
    ".axis{stroke:#667085}.rule{stroke:#ff8f6b}.bad{fill:#ff8f6b}}";

static int has_plan(const json_t *row)
{
    return json_object_get(row, "time_ns") != NULL;
}

struct drawing {
    struct topt_svg v;
    const json_t *rows;
    int n;
    int64_t limit;
};

static double length(int64_t value, int64_t most)
{
    return most > 0 ? (double)value / (double)most * (WIDTH - NAMES - VALUES) : 0;
}

static void put_bar(struct drawing *d, double x, double w, const char *class)
{
    topt_text_add(&d->v.t,
                  "<rect class=\"%s\" x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" "
                  "height=\"%d\"/>\n",
                  class, x, d->v.y, w, BAR);
}

static int64_t most_of(const json_t *rows, const char *key, int64_t least)
{
    for (size_t i = 0; i < json_array_size(rows); i++) {
        int64_t v = topt_json_whole_at(json_array_get(rows, i), key);
        least = v > least ? v : least;
    }
    return least;
}

/* Write the name of a row and, beside a bar that ends at x, its value; beyond a line at 'rule' that
 * would run through it. */
static void put_labels(struct drawing *d, const json_t *row, double x, double rule,
                       const char *value)
{
    topt_svg_words(&d->v.t, NAMES - 8, d->v.y + 11, "class=\"ink\" text-anchor=\"end\"",
                   topt_json_words_at(row, "algorithm"));
    if (x <= rule && x + 12 + topt_svg_length(value) > rule)
        x = rule;
    topt_svg_words(&d->v.t, x + 6, d->v.y + 11, "class=\"soft\"", value);
}

static void put_times(struct drawing *d, int64_t most)
{
    for (int i = 0; i < d->n; i++, d->v.y += ROW) {
        const json_t *row = json_array_get(d->rows, (size_t)i);
        char value[48], buf[32];
        if (!has_plan(row)) {
            put_labels(d, row, NAMES, 2 * WIDTH, "no plan");
            continue;
        }
        double all = length(topt_json_whole_at(row, "time_ns"), most),
               compute = length(topt_json_whole_at(row, "compute_ns"), most);
        int fits = json_is_true(json_object_get(row, "feasible"));
        compute = compute < all ? compute : all;
        snprintf(value, sizeof value, "%s%s",
                 topt_show_ns(topt_json_whole_at(row, "time_ns"), buf, sizeof buf),
                 fits ? "" : ", does not fit");
        topt_text_add(&d->v.t, "<g%s>", fits ? "" : " class=\"faint\"");
        topt_text_add(&d->v.t, "<title>");
        topt_svg_escape(&d->v.t, topt_json_words_at(row, "strategy"));
        topt_text_add(&d->v.t, "</title>\n");
        put_bar(d, NAMES, compute, "compute");
        put_bar(d, NAMES + compute, all - compute, "network");
        topt_text_add(&d->v.t, "</g>\n");
        put_labels(d, row, NAMES + all, 2 * WIDTH, value);
    }
}

static void put_memory(struct drawing *d, int64_t most)
{
    double top = d->v.y, at = NAMES + length(d->limit, most);
    char buf[32], text[48];
    for (int i = 0; i < d->n; i++, d->v.y += ROW) {
        const json_t *row = json_array_get(d->rows, (size_t)i);
        int64_t bytes = topt_json_whole_at(row, "memory_bytes");
        if (!has_plan(row)) {
            put_labels(d, row, NAMES, at, "no plan");
            continue;
        }
        double all = length(bytes, most);
        put_bar(d, NAMES, bytes > d->limit ? at - NAMES : all, "memory");
        if (bytes > d->limit)
            put_bar(d, at, NAMES + all - at, "over");
        put_labels(d, row, NAMES + all, at, topt_show_bytes(bytes, buf, sizeof buf));
    }
    topt_text_add(&d->v.t, "<path class=\"rule\" d=\"M%.2f %.2fV%.2f\"/>\n", at, top - 6,
                  d->v.y);
    snprintf(text, sizeof text, "limit %s", topt_show_bytes(d->limit, buf, sizeof buf));
    topt_svg_words(&d->v.t, at, top - 10, "class=\"bad\" text-anchor=\"middle\"", text);
}

static void put_title(struct drawing *d, const char *title)
{
    d->v.y += PANEL;
    topt_svg_words(&d->v.t, NAMES, d->v.y - 26, "class=\"ink\" font-weight=\"600\"",
                   title);
}

static void put_key(struct drawing *d, double x, const char *class, const char *name)
{
    topt_text_add(
        &d->v.t,
        "<rect class=\"%s\" x=\"%.2f\" y=\"%.2f\" width=\"12\" height=\"12\"/>\n", class,
        x, d->v.y - 18);
    topt_svg_words(&d->v.t, x + 17, d->v.y - 8, "class=\"soft\"", name);
}

static void put_all(struct drawing *d)
{
    int64_t most_ns = most_of(d->rows, "time_ns", 0);
    int64_t most_bytes = most_of(d->rows, "memory_bytes", d->limit);
    put_title(d, "time per step");
    put_key(d, NAMES, "compute", "compute");
    put_key(d, NAMES + 100, "network", "exposed communication");
    put_times(d, most_ns);
    put_title(d, "memory per GPU");
    put_memory(d, most_bytes);
}

char *topt_svg_compare(const json_t *doc)
{
    struct topt_text title = {0};
    struct drawing d = {.v = {.width = WIDTH, .left = 24, .right = WIDTH - 24},
                        .rows = json_object_get(doc, "systems"),
                        .limit = topt_json_whole_at(doc, "memory_limit")};
    d.n = (int)json_array_size(d.rows);
    topt_text_add(&title, "%s on %lld GPU%s of %s", topt_json_words_at(doc, "model"),
                  (long long)topt_json_whole_at(doc, "gpus"),
                  topt_json_whole_at(doc, "gpus") > 1 ? "s" : "",
                  topt_json_words_at(doc, "hw"));
    topt_svg_head(&d.v, title.s ? title.s : "",
                  "what each system would choose, under one cost model");
    put_all(&d);
    d.v.y += FOOT;
    char *svg = topt_svg_done(&d.v, title.s ? title.s : "",
                              topt_json_words_at(doc, "reading"), style);
    topt_text_fini(&title);
    return svg;
}
