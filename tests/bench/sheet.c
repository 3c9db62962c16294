/* sheet.c - public models whose runs are documented: does the documented plan fit here as it did
 * there, and how few GPUs would do?  Prints both as tables of docs/VALIDATION.md.
 *
 *     sheet [--rows] [--tracked] [--fewest] [--parts] [--only TEXT] [--wrong MOST]
 *
 * Each row of rows/documented.csv is a run that somebody documented with its outcome, each of
 * tracked.csv a peak of PyTorch's own memory tracker.  The same plan is costed here (ran.c);
 * nothing is tuned to a row.  Where a source leaves something open the row takes what claims less:
 * a run that fitted is said to have recomputed, a run that did not is said not to have, and the batch
 * is the least.  Fails where more outcomes than MOST are others than predicted. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ran.h"
#include "request.h"
#include "topt_framework.h"
#include "topt_model.h"
#include "topt_plan.h"

#define GIB ((double)((int64_t)1 << 30))

__attribute__((noreturn)) static void give_up(const char *what,
                                              const struct topt_error *err)
{
    fprintf(stderr, "sheet: %s: %s\n", what, err->text);
    exit(1);
}

static int ran_there(const struct row *r)
{
    return !strcmp(r->outcome, "ran");
}

/* ---- does it fit? -------------------------------------------------------------------------- */

static int row_fits(const struct ran *w)
{
    return (double)w->cost.memory_bytes <= w->limit;
}

/* ---- words --------------------------------------------------------------------------------- */

static const char *seen_words(const struct row *r)
{
    static const char *const words[][2] = {
        {"reserved", "reserved"}, {"allocated", "in tensors"}, {"process", "shown"}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcmp(words[i][0], r->memory_kind))
            return words[i][1];
    return "at failure";
}

/* ---- the tables ---------------------------------------------------------------------------- */

static const char *outcome_words(int fits)
{
    return fits ? "fits" : "does not";
}

static void print_row(const struct row *r, const struct ran *w)
{
    int fits = row_fits(w), seen = ran_there(r);
    printf("| %s | %d %s | ", r->model, (int)r->gpus, r->device);
    printf("%s, ", r->framework);
    row_print_plan(r);
    printf(" | %s", outcome_words(seen));
    if (*r->memory_kind)
        printf(", %.1f GiB %s", r->memory_gib, seen_words(r));
    const char *mark = fits == seen ? "" : "**";
    printf(" | %s%s, %.1f of %.1f GiB%s | ", mark, outcome_words(fits),
           (double)w->cost.memory_bytes / GIB, w->limit / GIB, mark);
    if (*r->note)
        printf("%s; ", r->note);
    if (*r->open)
        printf("the source does not say %s; ", r->open);
    row_print_source(r);
    printf(" |\n");
}

/* Where the bytes are, for who looks for those that are missing. */
static void print_parts(const struct ran *w)
{
    printf("   ");
    for (int c = 0; c < TOPT_CLASS_COUNT; c++)
        if (w->cost.sum.class_bytes[c])
            printf(" %s %.2f", topt_class_name((enum topt_class)c),
                   (double)w->cost.sum.class_bytes[c] / GIB);
    printf(" remade-at-once %.2f transient %.2f crossing %d x %.2f; program's peak %.2f "
           "GiB\n",
           (double)w->cost.recomputed_bytes / GIB, (double)w->cost.transient_cap / GIB,
           w->cost.crossing, (double)w->cost.crossing_cap / GIB,
           (double)w->program / GIB);
}

struct asked {
    int rows, tracked, fewest, parts, most_wrong;
    const char *only;
};

static int wanted(const struct asked *a, const struct row *r)
{
    return !a->only || strstr(r->model, a->only) || strstr(r->framework, a->only);
}

/* How many outcomes are others than predicted. */
static int print_rows(const struct asked *a, const struct rows *all)
{
    int n = 0, right = 0, fits = 0, right_fits = 0;
    printf(
        "## Public models: what fits\n\n"
        "The documented plan, costed by the row of its framework (`--framework`) as "
        "`topt plan` counts it: what is\n"
        "gathered, reduced and in flight, and the allocator's share. Of what the driver "
        "and libraries leave of the\n"
        "GPU; no figure was fitted to a row. Predictions that are not as documented are "
        "bold.\n\n"
        "| model | GPUs | plan | documented | predicted | source |\n"
        "|---|---|---|---|---|---|\n");
    for (int i = 0; i < all->n; i++) {
        const struct row *r = &all->row[i];
        if (row_is_left_out(r) || !wanted(a, r))
            continue;
        struct ran w = ran_of(r);
        int good = row_fits(&w) == ran_there(r);
        n++;
        right += good;
        fits += ran_there(r);
        right_fits += good && ran_there(r);
        print_row(r, &w);
        if (a->parts)
            print_parts(&w);
        fflush(stdout);
    }
    printf(
        "\nDocumented fits that fit: %d of %d. Documented out-of-memory that does not: "
        "%d of %d.\n\n",
        right_fits, fits, right - right_fits, n - fits);
    return n - right;
}

/* ---- held against PyTorch's memory tracker -------------------------------------------------- */

/* How many are missed: tensors by more than 2.5 % from below, which would run out, or 4 % from above. */
static int print_tracked(const struct asked *a, const struct rows *all)
{
    int missed = 0;
    double size = 0, sign = 0, with_share = 0;
    int n = 0;
    printf(
        "## Held against PyTorch's own memory tracker\n\n"
        "FSDP2's peak of tensors, without an allocator, beside what is predicted for "
        "tensors alone, and `memory_bytes`,\n"
        "which has the allocator's share as well. An error above 0 says that more is "
        "predicted than there is.\n\n"
        "| model | GPUs | plan | tracker | tensors | error | `memory_bytes` | error |\n"
        "|---|---|---|---|---|---|---|---|\n");
    for (int i = 0; i < all->n; i++) {
        const struct row *r = &all->row[i];
        if (row_is_left_out(r) || !wanted(a, r))
            continue;
        struct ran w = ran_of(r);
        double gib = (double)w.cost.memory_bytes / GIB;
        double alone = (double)w.held.memory_bytes / GIB;
        double error = 100 * (alone / r->memory_gib - 1),
               whole = 100 * (gib / r->memory_gib - 1);
        printf("| %s | %d | ", r->model, (int)r->gpus);
        printf("%s, ", r->framework);
        row_print_plan(r);
        printf(" | %.2f GiB | %.2f GiB | %+.1f %% | %.2f GiB | %+.1f %% |\n",
               r->memory_gib, alone, error, gib, whole);
        if (a->parts)
            print_parts(&w);
        n++;
        size += fabs(error);
        sign += error;
        with_share += fabs(whole);
        missed += error < -2.5 || error > 4;
    }
    if (n)
        printf("\nTensors: mean error %.1f %%, with its sign %+.1f %%, of %d. With the "
               "allocator's share: %.1f %%.\n",
               size / n, sign / n, n, with_share / n);
    json_t *texts = rows_json("groups");
    printf("\nSource: %s.\n\n", json_string_value(json_object_get(
                                    json_object_get(texts, "tracked"), "source")));
    json_decref(texts);
    return missed;
}

/* ---- (b) the fewest GPUs ------------------------------------------------------------------- */

static const char *const clusters[] = {"a100-40-dgx", "a100-80-dgx", "h100-80-dgx"};
enum { CLUSTERS = sizeof clusters / sizeof *clusters };

/* The question as the command line asks it with the job and the framework alone. */
static struct topt_request question_of(const struct row *r, const struct topt_model *m,
                                       const struct topt_hw *hw)
{
    struct topt_query words = {.mode = "mini-parallelism", .counts = "whole"};
    strcpy(words.framework, r->framework);
    struct topt_error err = {0};
    struct topt_request q;
    topt_request_init(&q);
    q.model = m;
    q.hw = hw;
    q.threads = 1;
    if (topt_request_read(&words, &q, NULL, &err) || topt_request_complete(&q, &err))
        give_up(r->model, &err);
    return q;
}

static int64_t whole(const json_t *o, const char *key)
{
    return json_integer_value(json_object_get(o, key));
}

/* By which technique the answer's plan is another than theirs. */
static void print_differences(const struct row *r, const json_t *answer, int64_t batch)
{
    static const char *const level[] = {"copies", "ZeRO-1", "ZeRO-2", "FSDP"};
    const json_t *u = json_object_get(answer, "uniform");
    int64_t tp = whole(u, "tp"), dp = whole(u, "dp"), micro = whole(u, "micro_batch");
    int64_t times = dp && micro ? (batch + dp * micro - 1) / (dp * micro) : 0;
    int recompute = json_is_true(json_object_get(u, "recompute")), n = 0;
    int zero = dp > 1 ? (int)whole(u, "zero") : TOPT_ZERO_NONE;
    if (!u)
        return;
    if (tp != r->tensor)
        n += printf("%stensor %d", n ? ", " : " (", (int)tp);
    if (dp > 1 && zero != (int)r->zero)
        n += printf("%s%s", n ? ", " : " (", level[zero]);
    if (micro != r->micro || times != row_accumulation(r))
        n += printf("%smicro-batch %d x %d", n ? ", " : " (", (int)micro, (int)times);
    if (recompute != (strcmp(r->recompute, "none") != 0))
        n += printf("%s%s", n ? ", " : " (",
                    recompute ? "recomputed" : "nothing recomputed");
    printf("%s", n ? ")" : " (as they did)");
}

static void print_fewest(const struct row *r, const struct topt_model *m,
                         const char *cluster)
{
    struct topt_error err = {0};
    struct topt_hw *hw = topt_hw_load(cluster, &err);
    json_t *answer = NULL;
    clock_t from = clock();
    if (!hw)
        give_up(cluster, &err);
    struct topt_request q = question_of(r, m, hw);
    if (topt_plan(&q, &answer, &err))
        give_up(r->model, &err);
    fprintf(stderr, "%s on %s: %.1f s\n", r->model, cluster,
            (double)(clock() - from) / CLOCKS_PER_SEC);
    if (json_is_true(json_object_get(answer, "feasible"))) {
        printf(" %d", (int)whole(answer, "gpus"));
        print_differences(r, answer, m->batch);
        printf(" |");
    } else {
        printf(" none |");
    }
    json_decref(answer);
    topt_hw_destroy(hw);
}

static void print_all_fewest(const struct asked *a, const struct rows *all)
{
    printf(
        "## Public models: the fewest GPUs\n\n"
        "`topt plan --framework ...` for the same batch and length, with no other "
        "option; what is done\notherwise than there stands in parentheses. Where it is "
        "fewer GPUs than they had, they wanted\nto be done sooner: the fewest is a "
        "question of memory alone.\n\n"
        "| model | batch, positions | they ran on |");
    for (int c = 0; c < CLUSTERS; c++)
        printf(" fewest on %s |", clusters[c]);
    printf(" source |\n|---|---|---|---|");
    for (int c = 0; c < CLUSTERS; c++)
        printf("---|");
    printf("\n");
    for (int i = 0; i < all->n; i++) {
        const struct row *r = &all->row[i];
        if (!*r->ask || !wanted(a, r))
            continue;
        struct topt_model *m = ran_model(r, r->batch);
        printf("| %s | %lld, %d | %d %s: ", r->model, (long long)r->batch, (int)r->seq,
               (int)r->gpus, r->device);
        printf("%s, ", r->framework);
        row_print_plan(r);
        printf(" |");
        for (int c = 0; c < CLUSTERS; c++)
            print_fewest(r, m, clusters[c]);
        printf(" ");
        row_print_source(r);
        printf(" |\n");
        fflush(stdout);
        topt_model_destroy(m);
    }
    printf("\n");
}

static void print_left_out(const struct rows *all)
{
    printf("Left out, since no plan here says them:\n\n");
    for (int i = 0; i < all->n; i++) {
        const struct row *r = &all->row[i];
        if (!row_is_left_out(r))
            continue;
        printf("- %s on %s: %s (", r->model, r->device, r->note);
        row_print_source(r);
        printf(").\n");
    }
}

int main(int argc, char **argv)
{
    struct rows documented, tracked;
    rows_read("documented", &documented);
    rows_read("tracked", &tracked);
    struct asked a = {.most_wrong = documented.n};
    int wrong = 0;
    for (int i = 1; i < argc; i++) {
        a.rows |= !strcmp(argv[i], "--rows");
        a.fewest |= !strcmp(argv[i], "--fewest");
        a.tracked |= !strcmp(argv[i], "--tracked");
        a.parts |= !strcmp(argv[i], "--parts");
        if (!strcmp(argv[i], "--only") && i + 1 < argc)
            a.only = argv[++i];
        else if (!strcmp(argv[i], "--wrong") && i + 1 < argc)
            a.most_wrong = atoi(argv[++i]);
    }
    int all = !a.rows && !a.tracked && !a.fewest;
    if (a.rows || all)
        wrong += print_rows(&a, &documented);
    if (a.tracked || all)
        wrong += print_tracked(&a, &tracked);
    if (a.fewest || all)
        print_all_fewest(&a, &documented);
    print_left_out(&documented);
    rows_fini(&documented);
    rows_fini(&tracked);
    return wrong > a.most_wrong;
}
