/* compare_words.c - a comparison for people: why each system is where it is, and the table.
 *
 * Why follows from the numbers: what a row takes longer, computing or waiting for the network,
 * or needs more memory, beside what its search leaves out. */
#include "topt_compare_words.h"
#include "topt_answer_text.h"
#include "topt_drawing.h"
#include "topt_json.h"
#include "topt_text.h"
#include "topt_totals.h"

#include <stdlib.h>
#include <string.h>

static int is_true(const json_t *o, const char *key)
{
    return json_is_true(json_object_get(o, key));
}

int topt_compare_has_plan(const json_t *row)
{
    return json_object_get(row, "time_ns") != NULL;
}

static int fits(const json_t *row)
{
    return is_true(row, "feasible");
}

static int undecided(const json_t *row)
{
    return json_is_null(json_object_get(row, "feasible"));
}

static int does_not_fit(const json_t *row)
{
    return json_is_false(json_object_get(row, "feasible")) && topt_compare_has_plan(row);
}

static int has_none(const json_t *row)
{
    return json_is_false(json_object_get(row, "feasible")) && !topt_compare_has_plan(row);
}

/* A member in bytes or nanoseconds, for people; returns 'buf'. */
static const char *show_bytes(const json_t *o, const char *key, char buf[32])
{
    return topt_show_bytes(topt_json_whole_at(o, key), buf, 32);
}

static const char *show_ns(const json_t *o, const char *key, char buf[32])
{
    return topt_show_ns(topt_json_whole_at(o, key), buf, 32);
}

/* Like with like: where gradients travel behind backward, ours do; where a system has a simulation
 * of its own, ours has been put through it. */
static int64_t ours_takes(const json_t *row, const json_t *ours)
{
    if (json_object_get(row, "ours_ns"))
        return topt_json_whole_at(row, "ours_ns");
    return topt_json_whole_at(ours,
                              is_true(row, "overlaps") ? "overlapped_ns" : "time_ns");
}

static double ratio(const json_t *row, const json_t *ours)
{
    int64_t takes = ours_takes(row, ours);
    return takes > 0 ? (double)topt_json_whole_at(row, "time_ns") / (double)takes : 1;
}

/* ---- why --------------------------------------------------------------------------- */

static void add_left_out(struct topt_text *t, const json_t *row)
{
    if (*topt_json_words_at(row, "leaves_out"))
        topt_text_add(t, "; does not consider %s", topt_json_words_at(row, "leaves_out"));
}

static void say_unfit(struct topt_text *t, const json_t *row)
{
    char buf[32];
    int knows = json_object_get(row, "least_bytes") != NULL;
    if (knows && !is_true(row, "time_only"))
        topt_text_add(t, "needs %s at least", show_bytes(row, "least_bytes", buf));
    else
        topt_text_add(t,
                      knows ? "its fastest plan needs %s, and it considers no other"
                            : "its plan needs %s",
                      show_bytes(row, "memory_bytes", buf));
    add_left_out(t, row);
}

/* "90.3 ms more on the network and 12 ms more computing"; what is less than a fiftieth of the
 * difference is not mentioned. */
static void say_slower(struct topt_text *t, const json_t *row, const json_t *ours)
{
    int64_t more = topt_json_whole_at(row, "time_ns") - ours_takes(row, ours);
    int64_t compute =
        topt_json_whole_at(row, "compute_ns") - topt_json_whole_at(ours, "compute_ns");
    int64_t network = more - compute;
    char buf[32];
    int said = 0;
    if (network > more / 50) {
        topt_text_add(t, "%s more communication", topt_show_ns(network, buf, sizeof buf));
        said = 1;
    }
    if (compute > more / 50)
        topt_text_add(t, "%s%s more compute", said ? ", " : "",
                      topt_show_ns(compute, buf, sizeof buf));
    add_left_out(t, row);
}

static void say_as_fast(struct topt_text *t, const json_t *row, const json_t *ours)
{
    int64_t more = topt_json_whole_at(row, "memory_bytes") -
                   topt_json_whole_at(ours, "memory_bytes");
    char buf[32];
    topt_text_add(t, "as fast as %s", topt_json_words_at(ours, "algorithm"));
    if (more > 0)
        topt_text_add(t, ", with %s more memory", topt_show_bytes(more, buf, sizeof buf));
    else if (more < 0)
        topt_text_add(t, ", with %s less memory",
                      topt_show_bytes(-more, buf, sizeof buf));
    int64_t least =
        topt_json_whole_at(row, "least_bytes") - topt_json_whole_at(ours, "least_bytes");
    if (least > topt_json_whole_at(ours, "least_bytes") / 50)
        topt_text_add(t, "; needs at least %s", show_bytes(row, "least_bytes", buf));
}

static char *why(const json_t *row, const json_t *ours)
{
    struct topt_text t = {0};
    char buf[32];
    if (undecided(row)) {
        topt_text_add(&t, "no plan was found that fits; one may exist");
    } else if (!topt_compare_has_plan(row)) {
        topt_text_add(&t, "has no plan for this question");
        add_left_out(&t, row);
    } else if (!fits(row)) {
        say_unfit(&t, row);
    } else if (!fits(ours)) {
        topt_text_add(&t, "fits");
    } else if (ratio(row, ours) > 1.0005) {
        say_slower(&t, row, ours);
    } else if (ratio(row, ours) >= 0.9995) {
        say_as_fast(&t, row, ours);
    } else {
        if (is_true(row, "overlaps")) /* which our search does not look at */
            topt_text_add(
                &t, "%s less, as communication overlaps",
                topt_show_ns(ours_takes(row, ours) - topt_json_whole_at(row, "time_ns"),
                             buf, sizeof buf));
        else
            topt_text_add(&t, "faster");
        if (!is_true(row, "overlaps") && !is_true(ours, "exact"))
            topt_text_add(&t, ": %s's answer is not exact",
                          topt_json_words_at(ours, "algorithm"));
    }
    if (*topt_json_words_at(row, "why")) /* what it says of itself */
        topt_text_add(&t, "; %s", topt_json_words_at(row, "why"));
    return t.s;
}

/* ---- order ------------------------------------------------------------------------- */

static int rank_of(const json_t *row)
{
    return fits(row) ? 0 : undecided(row) ? 1 : topt_compare_has_plan(row) ? 2 : 3;
}

static int before(const json_t *a, const json_t *b)
{
    double x = json_real_value(json_object_get(a, "ratio")),
           y = json_real_value(json_object_get(b, "ratio"));
    return rank_of(a) != rank_of(b) ? rank_of(a) < rank_of(b) : x <= y;
}

/* Equal ones stay in the order of the table. */
static void sort_rows(json_t *rows)
{
    size_t n = json_array_size(rows);
    for (size_t i = 1; i < n; i++)
        for (size_t k = i; k > 0; k--) {
            json_t *a = json_array_get(rows, k - 1), *b = json_array_get(rows, k);
            if (before(a, b))
                break;
            json_incref(a);
            json_array_set(rows, k - 1, b);
            json_array_set_new(rows, k, a);
        }
}

/* ---- the sentence ------------------------------------------------------------------ */

static void add_names(struct topt_text *t, const json_t *rows, const char *what,
                      int (*of)(const json_t *row))
{
    int n = 0;
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        if (!of(row))
            continue;
        topt_text_add(t, n++ ? ", " : "; %s: ", what);
        topt_text_add(t, "%s", topt_json_words_at(row, "algorithm"));
    }
}

/* "ft takes 1.2 s a step; horovod takes 1.10 times as long, tofu 1.31; do not fit:
 * optcnn". */
static char *sentence(const json_t *rows, const json_t *ours, int64_t limit)
{
    struct topt_text t = {0};
    char buf[32];
    int n = 0;
    if (!fits(ours)) {
        topt_text_add(&t, "nothing %s in %s per GPU",
                      undecided(ours) ? "was found that fits" : "fits",
                      topt_show_bytes(limit, buf, sizeof buf));
        return t.s;
    }
    topt_text_add(&t, "%s takes %s per step", topt_json_words_at(ours, "algorithm"),
                  show_ns(ours, "time_ns", buf));
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        if (row == ours || !fits(row))
            continue;
        topt_text_add(&t, n ? ", %s %.2f" : "; %s takes %.2f times as long",
                      topt_json_words_at(row, "algorithm"), ratio(row, ours));
        n++;
    }
    add_names(&t, rows, "do not fit", does_not_fit);
    add_names(&t, rows, "have no plan", has_none);
    add_names(&t, rows, "were not found to fit", undecided);
    return t.s;
}

char *topt_compare_read(json_t *rows, int64_t limit)
{
    const json_t *ours = json_array_get(rows, 0);
    for (size_t i = 0; i < json_array_size(rows); i++) {
        json_t *row = json_array_get(rows, i);
        if (topt_compare_has_plan(row) && topt_compare_has_plan(ours))
            json_object_set_new(row, "ratio", json_real(ratio(row, ours)));
        if (row == ours)
            continue;
        char *clause = why(row, ours);
        json_object_set_new(row, "why", json_string(clause ? clause : ""));
        free(clause);
    }
    sort_rows(rows);
    return sentence(rows, ours, limit);
}

/* ---- the table --------------------------------------------------------------------- */

static void show_row(struct topt_text *t, const json_t *row, const json_t *doc)
{
    char a[32], b[32], c[32], d[32], e[32] = "-", f[32], ratio_text[16] = "-";
    const json_t *x = json_object_get(row, "ratio");
    show_ns(row, "search_ns", f);
    if (!topt_compare_has_plan(row)) {
        topt_text_add(t, "%-24s no plan %-67s %9s\n",
                      topt_json_words_at(row, "algorithm"),
                      undecided(row) ? "was found" : "for this question", f);
        return;
    }
    if (x)
        snprintf(ratio_text, sizeof ratio_text, "%.2f", json_real_value(x));
    if (json_object_get(row, "least_bytes"))
        show_bytes(row, "least_bytes", e);
    topt_text_add(t, "%-24s %-4s %10s%s %10s %10s %6s %11s %11s %9s",
                  topt_json_words_at(row, "algorithm"),
                  fits(row)        ? "yes"
                  : undecided(row) ? "?"
                                   : "no",
                  show_ns(row, "time_ns", a), is_true(row, "overlaps") ? "*" : " ",
                  show_ns(row, "compute_ns", b), show_ns(row, "network_ns", c),
                  ratio_text, show_bytes(row, "memory_bytes", d), e, f);
    topt_totals_cells(t, row, json_object_get(doc, "systems"),
                      json_object_get(doc, "training"));
    topt_text_add(t, "\n");
}

static void show_overlap(struct topt_text *t, const json_t *rows)
{
    char a[32];
    const json_t *ours = NULL;
    for (size_t i = 0; i < json_array_size(rows) && !ours; i++)
        if (!json_object_get(json_array_get(rows, i), "why"))
            ours = json_array_get(rows, i);
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        if (!is_true(row, "overlaps") || !topt_compare_has_plan(row) || !ours)
            continue;
        topt_text_add(
            t, "* communication of %s overlaps with compute; %s's plan %s: %s\n",
            topt_json_words_at(row, "algorithm"), topt_json_words_at(ours, "algorithm"),
            json_object_get(row, "ours_ns")
                ? "by the same simulation"
                : "with gradient buckets overlapped with backward",
            topt_show_ns(ours_takes(row, ours), a, sizeof a));
    }
}

static void show_why(struct topt_text *t, const json_t *rows)
{
    enum { NAME = 24, WIDTH = 108 };
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        const char *s = topt_json_words_at(row, "why");
        if (!*s)
            continue;
        topt_text_add(t, "%-*s ", NAME, topt_json_words_at(row, "algorithm"));
        topt_text_fold(t, s, strlen(s), NAME + 1, WIDTH);
        topt_text_add(t, "\n");
    }
}

/* "ft: 1e+11 pairs of points; data-parallel, horovod: ...", equal neighbors together. */
static void show_budgets(struct topt_text *t, const json_t *rows)
{
    struct topt_text words = {0};
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i), *next = json_array_get(rows, i + 1);
        const char *budget = topt_json_words_at(row, "budget");
        topt_text_add(&words, "%s", topt_json_words_at(row, "algorithm"));
        if (next && !strcmp(budget, topt_json_words_at(next, "budget")))
            topt_text_add(&words, ", ");
        else
            topt_text_add(&words, ": %s%s", budget, next ? "; " : "");
    }
    topt_text_of_words(t, "budgets", words.s ? words.s : "");
    topt_text_fini(&words);
}

/* The unproven claims, in words. */
static void show_exact(struct topt_text *t, const json_t *rows)
{
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i),
                     *epsilon = json_object_get(row, "epsilon"),
                     *decided = json_object_get(row, "heuristic");
        if (!json_is_false(json_object_get(row, "exact")) || !topt_compare_has_plan(row))
            continue;
        topt_text_add(t, "not exact: %s", topt_json_words_at(row, "algorithm"));
        if (json_object_get(row, "found_by"))
            topt_text_add(t, ", whose plan the search of %s found",
                          topt_json_words_at(row, "found_by"));
        if (decided)
            topt_text_add(
                t,
                ", of which %zu operators and tensors were decided by heuristic (%s%s)",
                json_array_size(decided), json_string_value(json_array_get(decided, 0)),
                json_array_size(decided) > 1 ? ", ..." : "");
        if (json_is_number(epsilon) && json_number_value(epsilon) > 0)
            topt_text_add(t, "; within %.3g %% of the fastest",
                          100 * json_number_value(epsilon));
        else
            topt_text_add(t, "; its distance from the fastest is not known");
        topt_text_add(t, "\n");
    }
}

char *topt_compare_text(const json_t *doc)
{
    const json_t *rows = json_object_get(doc, "systems");
    struct topt_text t = {0};
    char limit[32];
    topt_text_of_question(&t, doc);
    if (json_object_get(doc, "question"))
        topt_text_of_words(&t, "question", topt_json_words_at(doc, "question"));
    topt_text_add(&t, "\n%s on %lld GPU%s of %s, at most %s each\n\n",
                  topt_json_words_at(doc, "model"),
                  (long long)topt_json_whole_at(doc, "gpus"),
                  topt_json_whole_at(doc, "gpus") > 1 ? "s" : "",
                  topt_json_words_at(doc, "hw"), show_bytes(doc, "memory_limit", limit));
    topt_text_add(&t, "%-24s %-4s %10s  %10s %10s %6s %11s %11s %9s", "system", "fits",
                  "step", "compute", "comm.", "vs. ft", "memory", "min. mem.", "search");
    topt_totals_heads(&t, rows, json_object_get(doc, "training"));
    topt_text_add(&t, "\n");
    for (size_t i = 0; i < json_array_size(rows); i++)
        show_row(&t, json_array_get(rows, i), doc);
    topt_text_add(&t, "\n");
    if (!is_true(doc, "feasible"))
        topt_text_add(&t, "%s\n", topt_json_words_at(doc, "reading"));
    show_overlap(&t, rows);
    show_exact(&t, rows);
    show_why(&t, rows);
    show_budgets(&t, rows);
    if (json_object_get(doc, "left_out"))
        topt_text_of_words(&t, "left out", topt_json_words_at(doc, "left_out"));
    topt_text_of_lacks(&t, doc);
    char *stopped = topt_stopped_words(doc);
    if (stopped)
        topt_text_add(&t, "stopped %s: plans may be missing or not the fastest\n",
                      stopped);
    free(stopped);
    return t.s;
}
