/* show_plan.c - an answer as a person reads it: what was asked and assumed, the choices side by side, why, where memory
 * and time go, and what to do next.  Every figure is a field of the JSON answer. */
#include "topt_show_plan.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ask.h"
#include "topt_plan.h"
#include "topt_text.h"

enum { COLUMNS = 100, INDENT = 10 };

/* ---- lines ----------------------------------------------------------------------------------- */

/* A line of words under a heading of the answer, folded. */
static void show_words(const char *heading, const char *text)
{
    struct topt_text t = {0};
    topt_text_fold(&t, text, strlen(text), INDENT, COLUMNS);
    printf("%-9s %s\n", heading, t.s ? t.s : "");
    topt_text_fini(&t);
}

/* 12345678 as "12,345,678". */
static const char *grouped(int64_t n, char buf[32])
{
    char digits[24];
    int len = snprintf(digits, sizeof digits, "%lld", (long long)n), at = 0;
    for (int i = 0; i < len && at < 30; i++) {
        if (i && (len - i) % 3 == 0)
            buf[at++] = ',';
        buf[at++] = digits[i];
    }
    buf[at] = '\0';
    return buf;
}

/* Three significant digits, thousands apart. */
static const char *rounded(double x, char buf[32])
{
    double unit = x >= 1000 ? pow(10, floor(log10(x)) - 2) : 1;
    if (x >= 1000)
        return grouped((int64_t)(floor(x / unit + 0.5) * unit), buf);
    snprintf(buf, 32, "%.3g", x);
    return buf;
}

/* 8.03e9 as "8.03 B". */
static const char *parameters(int64_t n, char buf[32])
{
    snprintf(buf, 32,
             n >= 1000000000 ? "%.3g B"
             : n >= 1000000  ? "%.3g M"
                             : "%.3g",
             (double)n / (n >= 1000000000 ? 1e9
                          : n >= 1000000  ? 1e6
                                          : 1));
    return buf;
}

static double real_of(const json_t *o, const char *key)
{
    return json_number_value(json_object_get(o, key));
}

/* ---- the question ------------------------------------------------------------------------------ */

static void add_assumed(struct topt_text *t, const json_t *assumed, const char *key)
{
    size_t i;
    json_t *x;
    json_array_foreach(assumed, i, x)
    {
        const json_t *value = json_object_get(x, key);
        topt_text_add(t, "%s", i ? ", " : "");
        if (strcmp(key, "value"))
            topt_text_add(t, "%s", json_string_value(value));
        else if (json_is_integer(value))
            topt_text_add(t, "%s %lld", topt_cli_words(x, "what"),
                          (long long)json_integer_value(value));
        else
            topt_text_add(t, "%s %s", topt_cli_words(x, "what"),
                          json_string_value(value));
    }
}

void topt_show_question(const json_t *answer)
{
    const json_t *job = json_object_get(answer, "job"),
                 *assumed = json_object_get(answer, "assumed");
    char n[32], batch[32], seq[32];
    int64_t positions = topt_cli_whole(job, "seq");
    printf("%s (%s parameters), %s", topt_cli_words(job, "model"),
           parameters(topt_cli_whole(job, "parameters"), n),
           grouped(topt_cli_whole(job, "batch"), batch));
    if (positions > 1)
        printf(" x %s tokens a step", grouped(positions, seq));
    else
        printf(" samples a step");
    if (json_object_get(job, "train"))
        printf(", training %s", topt_cli_words(job, "train"));
    printf(", %s, for %s on %s\n", topt_cli_words(job, "precision"),
           topt_cli_words(job, "framework_title"), topt_cli_words(job, "hw"));
    if (!json_array_size(assumed))
        return;
    struct topt_text t = {0};
    add_assumed(&t, assumed, "value");
    topt_text_add(&t, " (");
    add_assumed(&t, assumed, "option");
    topt_text_add(&t, ")");
    show_words("assumed", t.s ? t.s : "");
    topt_text_fini(&t);
}

/* ---- rows ---------------------------------------------------------------------------------------- */

static void add_names(char *buf, size_t size, const json_t *row)
{
    size_t i, at = 0;
    json_t *x;
    buf[0] = '\0';
    json_array_foreach(json_object_get(row, "names"), i, x) at += (size_t)snprintf(
        buf + at, size - at, "%s%s", i ? ", " : "", json_string_value(x));
}

static void show_row(const json_t *row, int by_batch)
{
    char label[48], a[32], b[32], c[32], e[32], gpus[48];
    int64_t nodes = topt_cli_whole(row, "nodes");
    double tokens = real_of(row, "tokens_per_second");
    if (by_batch)
        grouped(topt_cli_whole(row, "batch"), label);
    else
        add_names(label, sizeof label, row);
    if (!json_is_true(json_object_get(row, "feasible")) && by_batch) {
        printf("%-14s %s\n", label, topt_cli_words(row, "why"));
        return;
    }
    snprintf(gpus, sizeof gpus, "%lld (%lld node%s)",
             (long long)topt_cli_whole(row, "gpus"), (long long)nodes,
             nodes == 1 ? "" : "s");
    printf("%-14s %-14s %8s %10s %8s %10s  %s\n", label, gpus,
           topt_show_ns(topt_cli_whole(row, "time_ns"), a, sizeof a),
           rounded(tokens > 0 ? tokens : real_of(row, "samples_per_second"), b),
           rounded(real_of(row, "gpu_hours_per_million_samples"), c),
           topt_show_bytes(topt_cli_whole(row, "memory_bytes"), e, sizeof e),
           topt_cli_words(row, "strategy"));
}

void topt_show_rows(const json_t *rows, int by_batch)
{
    size_t i;
    json_t *row;
    int tokens = json_object_get(json_array_get(rows, 0), "tokens_per_second") != NULL;
    printf("\n%-14s %-14s %8s %10s %8s %10s  strategy\n", by_batch ? "batch" : "", "GPUs",
           "step", tokens ? "tokens/s" : "samples/s", "GPU-h/1M", "memory");
    json_array_foreach(rows, i, row) show_row(row, by_batch);
    printf("%-14s (GPU-h/1M: GPU-hours for a million samples)\n\n", "");
}

/* ---- the choice ------------------------------------------------------------------------------------ */

/* What memory consists of, without what there is none of. */
static void show_parts(const json_t *parts)
{
    char x[32];
    const char *key;
    json_t *value;
    struct topt_text t = {0};
    json_object_foreach((json_t *)parts, key, value)
    {
        if (json_integer_value(value) >> 20)
            topt_text_add(&t, "%s%s %s", t.len ? ", " : "", topt_part_words(key),
                          topt_show_bytes(json_integer_value(value), x, sizeof x));
    }
    if (t.s)
        show_words("", t.s);
    topt_text_fini(&t);
}

static void show_memory(const json_t *a)
{
    char x[32], y[32];
    printf("memory    %s a GPU of %s that plans may use\n",
           topt_show_bytes(topt_cli_whole(a, "memory_bytes"), x, sizeof x),
           topt_show_bytes(topt_cli_whole(a, "memory_limit"), y, sizeof y));
    show_parts(json_object_get(a, "memory_parts"));
}

/* "+-29 %: 96 % estimated from data sheets". */
static void show_time(const json_t *a)
{
    char x[32], y[32], z[32];
    const json_t *band = json_object_get(json_object_get(a, "band"), "time"),
                 *rests = json_object_get(band, "rests_on_ns");
    double all = real_of(a, "time_ns") > 0 ? real_of(a, "time_ns") : 1;
    double wide = (real_of(band, "high_ns") - real_of(band, "low_ns")) / 2 / all;
    double sheets = real_of(rests, "analytic") / all,
           measured = real_of(rests, "measured") / all;
    printf("time      %s a step: %s computing, %s waiting for the network\n",
           topt_show_ns(topt_cli_whole(a, "time_ns"), x, sizeof x),
           topt_show_ns(topt_cli_whole(a, "compute_ns"), y, sizeof y),
           topt_show_ns(topt_cli_whole(a, "network_ns"), z, sizeof z));
    printf("          \u00b1%.0f %%: %.0f %% estimated from data sheets, %.0f %% between "
           "measured "
           "sizes, %.0f %% measured\n",
           100 * wide, 100 * sheets, 100 * (1 - sheets - measured), 100 * measured);
    if (sheets > 0.5)
        printf("          `topt profile` on the cluster narrows that\n");
}

static void show_search(const json_t *a)
{
    if (!strcmp(topt_cli_words(a, "space"), "uniform"))
        return;
    printf("space     %s, %s; %lld configurations, %lld layouts, %lld edge entries\n",
           topt_cli_words(a, "space"),
           json_is_true(json_object_get(a, "exact")) ? "exact" : "not exact",
           (long long)topt_cli_whole(a, "configs"),
           (long long)topt_cli_whole(a, "layouts"),
           (long long)topt_cli_whole(a, "edge_entries"));
}

/* What would fit on fewer GPUs if it had been asked for. */
static void show_with(const json_t *a)
{
    size_t i;
    json_t *x;
    json_array_foreach(json_object_get(a, "with"), i, x)
    {
        long long n = topt_cli_whole(x, "gpus");
        char need[32];
        printf("%-9s %s: %lld GPU%s would do, with %s each\n", i ? "" : "but with",
               topt_cli_words(x, "ask"), n, n == 1 ? "" : "s",
               topt_show_bytes(topt_cli_whole(x, "memory_bytes"), need, sizeof need));
    }
}

static void show_next(const json_t *a, const char *path)
{
    const char *id = topt_cli_words(a, "plan_id");
    printf("plan      %s", id);
    if (path)
        printf(", written to %s; next: topt explain %s", path, path);
    else
        printf("; with -o plan.json it is written: then topt explain plan.json, topt "
               "launch plan.json");
    printf("\n");
}

static void show_pins(const json_t *a)
{
    const json_t *pins = json_object_get(a, "pins");
    char *words = pins ? topt_pins_words(pins, topt_cli_whole(a, "time_ns"),
                                         topt_cli_whole(a, "memory_bytes"))
                       : NULL;
    if (words)
        show_words("pinned", words);
    free(words);
}

static void show_left_out(const json_t *a)
{
    if (json_object_get(a, "left_out"))
        show_words("left out", topt_cli_words(a, "left_out"));
}

static void show_infeasible(const json_t *a)
{
    const json_t *near = json_object_get(a, "nearest");
    char x[32];
    printf("\n%s: %s\n",
           json_is_null(json_object_get(a, "feasible")) ? "undecided" : "infeasible",
           topt_cli_words(a, "why"));
    if (near)
        printf("nearest   %lld GPUs, which need %s each\n",
               (long long)topt_cli_whole(near, "gpus"),
               topt_show_bytes(topt_cli_whole(near, "memory_bytes"), x, sizeof x));
    show_with(a);
    show_left_out(a);
    const json_t *job = json_object_get(a, "job");
    if (json_object_get(job, "not_searched"))
        show_words("not tried", topt_cli_words(job, "not_searched"));
}

void topt_show_plan(const json_t *a, const char *path)
{
    const json_t *rows = json_object_get(a, "alternatives");
    topt_show_question(a);
    if (!json_is_true(json_object_get(a, "feasible"))) {
        show_infeasible(a);
        return;
    }
    if (json_array_size(rows))
        topt_show_rows(rows, 0);
    long long gpus = topt_cli_whole(a, "gpus"), nodes = topt_cli_whole(a, "nodes");
    if (!json_array_size(rows))
        printf("\n");
    printf("%lld GPU%s (%lld node%s of %lld): %s\n", gpus, gpus > 1 ? "s" : "", nodes,
           nodes > 1 ? "s" : "", (long long)topt_cli_whole(a, "gpus_per_node"),
           topt_cli_words(a, "strategy"));
    show_words("why", topt_cli_words(a, "why"));
    show_with(a);
    if (json_object_get(a, "needs"))
        show_words("needs", topt_cli_words(a, "needs"));
    show_memory(a);
    show_time(a);
    show_pins(a);
    show_search(a);
    show_left_out(a);
    topt_show_claim(a);
    show_next(a, path);
}

/* ---- claims and notes ------------------------------------------------------------------------------ */

void topt_show_claim(const json_t *a)
{
    enum { SHOWN = 6 };
    const json_t *epsilon = json_object_get(a, "epsilon"),
                 *decided = json_object_get(a, "heuristic");
    if (json_is_true(json_object_get(a, "stopped")))
        printf("  stopped  before the search was finished: this is the best so far\n");
    if (json_is_null(epsilon))
        printf("  proven   nothing: faster ones may be anywhere\n");
    else if (json_number_value(epsilon) > 0)
        printf("  proven   times at most %.3g %% above the best\n",
               100 * json_number_value(epsilon));
    else if (json_is_true(json_object_get(a, "stopped")))
        printf("  proven   none is faster%s\n", decided ? ", with what was decided" : "");
    size_t n = json_array_size(decided);
    for (size_t i = 0; i < n && i < SHOWN; i++)
        printf("%s%s", i ? ", " : "  decided  by heuristic: ",
               json_string_value(json_array_get(decided, i)));
    if (n > SHOWN)
        printf(" and %zu more", n - SHOWN);
    if (n > 0)
        printf("\n");
}

void topt_show_notes(const struct topt_model *m)
{
    if (m->note)
        show_words("note", m->note);
    if (m->plan_only) {
        struct topt_text t = {0};
        topt_text_add(&t, "not possible: no operator computes %s", m->plan_only);
        show_words("run", t.s ? t.s : "");
        topt_text_fini(&t);
    }
}
