/* plot_compare.c - a comparison as bars: compute and exposed communication of a step, and memory per GPU
 * against the limit.
 *
 * Self-contained SVG, as in chart_svg.c.  Plans that do not fit are drawn faint, with their memory in the
 * colour of the limit. */
#include "chart_svg.h"
#include "topt_drawing.h"
#include "topt_json.h"
#include "topt_text.h"

#include <stdlib.h>
#include <string.h>

enum {
    WIDTH = 860,
    NAMES = 186,  /* where bars begin */
    VALUES = 134, /* beside the longest one */
    HEAD = 62,
    PANEL = 44, /* title and legend of a panel */
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
    struct topt_text *t;
    const json_t *rows;
    int n;
    int64_t limit;
    double y; /* y of the next element */
};

static void put_words(struct topt_text *t, double x, double y, const char *rest,
                      const char *text)
{
    topt_text_add(t, "<text x=\"%.2f\" y=\"%.2f\" %s>", x, y, rest);
    topt_svg_escape(t, text);
    topt_text_add(t, "</text>\n");
}

static double length(int64_t value, int64_t most)
{
    return most > 0 ? (double)value / (double)most * (WIDTH - NAMES - VALUES) : 0;
}

static void put_bar(struct drawing *d, double x, double w, const char *class)
{
    topt_text_add(d->t,
                  "<rect class=\"%s\" x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" "
                  "height=\"%d\"/>\n",
                  class, x, d->y, w, BAR);
}

static int64_t most_of(const json_t *rows, const char *key, int64_t least)
{
    for (size_t i = 0; i < json_array_size(rows); i++) {
        int64_t v = topt_json_whole_at(json_array_get(rows, i), key);
        least = v > least ? v : least;
    }
    return least;
}

/* Write the name of a row and, beside a bar that ends at x, its value. */
static void put_labels(struct drawing *d, const json_t *row, double x, const char *value)
{
    put_words(d->t, NAMES - 8, d->y + 11, "class=\"ink\" text-anchor=\"end\"",
              topt_json_words_at(row, "algorithm"));
    put_words(d->t, x + 6, d->y + 11, "class=\"soft\"", value);
}

static void put_times(struct drawing *d, int64_t most)
{
    for (int i = 0; i < d->n; i++, d->y += ROW) {
        const json_t *row = json_array_get(d->rows, (size_t)i);
        char value[48], buf[32];
        if (!has_plan(row)) {
            put_labels(d, row, NAMES, "no plan");
            continue;
        }
        double all = length(topt_json_whole_at(row, "time_ns"), most),
               compute = length(topt_json_whole_at(row, "compute_ns"), most);
        int fits = json_is_true(json_object_get(row, "feasible"));
        compute = compute < all ? compute : all;
        snprintf(value, sizeof value, "%s%s",
                 topt_show_ns(topt_json_whole_at(row, "time_ns"), buf, sizeof buf),
                 fits ? "" : ", does not fit");
        topt_text_add(d->t, "<g%s>", fits ? "" : " class=\"faint\"");
        topt_text_add(d->t, "<title>");
        topt_svg_escape(d->t, topt_json_words_at(row, "strategy"));
        topt_text_add(d->t, "</title>\n");
        put_bar(d, NAMES, compute, "compute");
        put_bar(d, NAMES + compute, all - compute, "network");
        topt_text_add(d->t, "</g>\n");
        put_labels(d, row, NAMES + all, value);
    }
}

static void put_memory(struct drawing *d, int64_t most)
{
    double top = d->y, at = NAMES + length(d->limit, most);
    char buf[32], text[48];
    for (int i = 0; i < d->n; i++, d->y += ROW) {
        const json_t *row = json_array_get(d->rows, (size_t)i);
        int64_t bytes = topt_json_whole_at(row, "memory_bytes");
        if (!has_plan(row)) {
            put_labels(d, row, NAMES, "no plan");
            continue;
        }
        double all = length(bytes, most);
        put_bar(d, NAMES, bytes > d->limit ? at - NAMES : all, "memory");
        if (bytes > d->limit)
            put_bar(d, at, NAMES + all - at, "over");
        put_labels(d, row, NAMES + all, topt_show_bytes(bytes, buf, sizeof buf));
    }
    topt_text_add(d->t, "<path class=\"rule\" d=\"M%.2f %.2fV%.2f\"/>\n", at, top - 6,
                  d->y);
    snprintf(text, sizeof text, "limit %s", topt_show_bytes(d->limit, buf, sizeof buf));
    put_words(d->t, at, top - 10, "class=\"bad\" text-anchor=\"middle\"", text);
}

static void put_title(struct drawing *d, const char *title)
{
    d->y += PANEL;
    put_words(d->t, NAMES, d->y - 26, "class=\"ink\" font-weight=\"600\"", title);
}

static void put_key(struct drawing *d, double x, const char *class, const char *name)
{
    topt_text_add(
        d->t, "<rect class=\"%s\" x=\"%.2f\" y=\"%.2f\" width=\"12\" height=\"12\"/>\n",
        class, x, d->y - 18);
    put_words(d->t, x + 17, d->y - 8, "class=\"soft\"", name);
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
    struct topt_text t = {0}, title = {0};
    struct drawing d = {.t = &t,
                        .rows = json_object_get(doc, "systems"),
                        .limit = topt_json_whole_at(doc, "memory_limit"),
                        .y = HEAD};
    d.n = (int)json_array_size(d.rows);
    int height = HEAD + 2 * (PANEL + d.n * ROW) + FOOT;
    topt_text_add(&title, "%s on %lld GPU%s of %s", topt_json_words_at(doc, "model"),
                  (long long)topt_json_whole_at(doc, "gpus"),
                  topt_json_whole_at(doc, "gpus") > 1 ? "s" : "",
                  topt_json_words_at(doc, "hw"));
    topt_text_add(&t,
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" "
                  "width=\"%d\" height=\"%d\" role=\"img\" aria-labelledby=\"t d\" "
                  "font-family=\"system-ui,sans-serif\" font-size=\"12\">\n<title "
                  "id=\"t\">",
                  WIDTH, height, WIDTH, height);
    topt_svg_escape(&t, title.s ? title.s : "");
    topt_text_add(&t, "</title>\n<desc id=\"d\">");
    topt_svg_escape(&t, topt_json_words_at(doc, "reading"));
    topt_text_add(&t,
                  "</desc>\n<style>%s</style>\n"
                  "<rect class=\"paper\" width=\"%d\" height=\"%d\"/>\n",
                  style, WIDTH, height);
    put_words(&t, 24, 28, "class=\"ink\" font-size=\"16\" font-weight=\"600\"",
              title.s ? title.s : "");
    put_words(&t, 24, 47, "class=\"soft\"",
              "what each system would choose, under one cost model");
    put_all(&d);
    topt_text_add(&t, "</svg>\n");
    topt_text_fini(&title);
    if (t.oom)
        topt_text_fini(&t);
    return t.s;
}
