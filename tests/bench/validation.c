/* validation.c - docs/VALIDATION.md: published measurements held against predictions.
 *
 * Each row of rows/steps.csv is a run that somebody published: the model, the cluster, the plan they
 * ran and the system that ran it.  The same plan is costed here (ran.c); nothing is tuned to a
 * row.  Prints the document's first half; with an argument, writes its picture there. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chart.h"
#include "chart_svg.h"
#include "hw_impl.h"
#include "ran.h"
#include "topt_digest.h"
#include "topt_text.h"

#define GIB ((double)((int64_t)1 << 30))

__attribute__((noreturn)) static void give_up(const char *what, const char *why)
{
    fprintf(stderr, "validation: %s: %s\n", what, why);
    exit(1);
}

/* Rows of one heading, which stand together in the file. */
struct group {
    const struct row *row;
    struct ran *ran; /* of each row */
    int n;
};

static double predicted(const struct ran *x)
{
    return (double)x->cost.time_ns / 1e9;
}

/* ---- errors -------------------------------------------------------------------------------- */

struct error {
    int n;
    double size, sign; /* sums */
};

static void count(struct error *e, double error)
{
    e->n++;
    e->size += fabs(error);
    e->sign += error;
}

static void count_all(struct error *e, const struct error *from)
{
    e->n += from->n;
    e->size += from->size;
    e->sign += from->sign;
}

static double predicted_a_sample(const struct group *g, int i)
{
    return predicted(&g->ran[i]) / (double)g->row[i].batch;
}

static double measured_a_sample(const struct group *g, int i)
{
    return row_seconds(&g->row[i]) / (double)g->row[i].batch;
}

/* Of each job that several plans were measured for: what choosing the plan predicted fastest
 * costs over the fastest, a sample. */
static void print_regret(const struct group *g)
{
    for (int i = 0; i < g->n; i++) {
        const char *job = g->row[i].job;
        int first = *job != '\0', plans = 0, picked = i, best = i;
        for (int k = 0; k < i && first; k++)
            first = strcmp(g->row[k].job, job) != 0;
        for (int k = i; k < g->n && first; k++) {
            if (strcmp(g->row[k].job, job))
                continue;
            plans++;
            if (predicted_a_sample(g, k) < predicted_a_sample(g, picked))
                picked = k;
            if (measured_a_sample(g, k) < measured_a_sample(g, best))
                best = k;
        }
        if (plans > 1)
            printf("%s: %d plans; the one predicted fastest was measured %.1f %% slower "
                   "than the fastest.\n",
                   job, plans,
                   100 * (measured_a_sample(g, picked) / measured_a_sample(g, best) - 1));
    }
}

/* ---- the document -------------------------------------------------------------------------- */

static const char head[] =
    "# Predictions held against published measurements\n"
    "\n"
    "Written by one command; nothing in it is typed by hand:\n"
    "\n"
    "    cmake --build --preset release --target validation sheet\n"
    "    cd build/release/tests && { ./validation ../../../docs/validation.svg && "
    "./sheet; } "
    "\\\n"
    "        >../../../docs/VALIDATION.md\n"
    "\n"
    "Each row is a run that others published (`tests/bench/rows/*.csv`, one set of "
    "columns\n"
    "with the source of each), and the same plan costed as the planner costs its own: "
    "their model\n"
    "(with exactly as many parameters, where they say how many), cluster, splits, "
    "sharding,\n"
    "recomputation, samples that a GPU takes at a time, and optimizer; and of the "
    "system that ran it\n"
    "which communication it hides (`--overlap`) and what it does not fuse (`--eager`).\n"
    "The profiles are those shipped, one for a cluster. Where errors showed that "
    "something was missing\n"
    "it was added, with a figure that others measured apart from these runs and that the "
    "profile names;\n"
    "no number was fitted to a row or to a group. The rows are therefore not unseen: "
    "they "
    "showed which\n"
    "mechanisms were missing, and runs that nobody looked at before may lie further "
    "off.\n"
    "Errors are (predicted - measured) / measured. Memory is what `memory_bytes` says "
    "for "
    "the framework\n"
    "that ran it (`--framework`): tensors and what its allocator can't use, without the "
    "driver's context.\n"
    "\n"
    "Further down: which documented runs of public models fit and which do not, peaks "
    "held "
    "against\n"
    "PyTorch's own memory tracker, and the fewest GPUs beside what people ran on.\n"
    "What sizing does to a queue of jobs was replayed on a private Slurm\n"
    "([SLURM](SLURM.md#a-queue-with-and-without)).\n"
    "\n"
    "![predicted against measured time of a step](validation.svg)\n"
    "\n";

static const char standing[] =
    "\n"
    "The largest errors of time that are left: on H100 GPUs the clock under a power "
    "limit, for\n"
    "which no public measurement was found that is not one of these runs; on A100 GPUs,\n"
    "less of the network was hidden than is assumed here; and small models, whose host "
    "can't start\n"
    "kernels fast enough and whose loggers' metrics are not priced. Of memory: the gaps "
    "of an\n"
    "allocator, which published figures include in full, and predictions with the share "
    "that is\n"
    "not given back when memory runs out.\n"
    "\n";

static const char tail[] =
    "## What can't be expressed\n"
    "\n"
    "- Stages of a pipeline: Megatron-LM's rows from 39.1B on, Korthikanti et al.'s "
    "530B,\n"
    "  Alpa's GPT 2.6B.\n"
    "- Aceso's rows (GPT 350M to 13B on V100 GPUs of 32 GB) are of its own plans, which "
    "were\n"
    "  not published with them, that on one GPU included.\n"
    "- Numbers of 8 bits: torchtitan's float8, llm-foundry's fp8.\n"
    "- The optimizer of Megatron-LM is one kernel, PyTorch's own is a dozen: `--eager` "
    "says\n"
    "  which, but not how often the host is too slow to start them.\n"
    "- What an allocator loses in gaps, run by run.\n"
    "\n";

static const char columns[] =
    "| model | GPUs | plan | step, measured | predicted | error |";
static const char memory_columns[] = " memory, measured | predicted | error |";

static void print_software(const struct row *r)
{
    printf("overlap %s, eager ", r->overlap);
    for (const char *p = r->eager; *p; p++)
        putchar(*p == ' ' ? ',' : *p);
    if (*r->attention)
        printf(", attention %s", r->attention);
}

static void print_row(const struct group *g, int i, struct error *time,
                      struct error *memory)
{
    const struct row *r = &g->row[i];
    double seen = row_seconds(r), e = predicted(&g->ran[i]) / seen - 1;
    printf("| %s | %d | ", r->model, (int)r->gpus);
    row_print_plan(r);
    if (strcmp(r->overlap, g->row->overlap) != 0 ||
        strcmp(r->eager, g->row->eager) != 0) {
        printf("; ");
        print_software(r);
    }
    printf(" | %.3g s | %.3g s | %+.0f %% |", seen, predicted(&g->ran[i]), 100 * e);
    count(time, e);
    if (r->memory_gib > 0) {
        double held = r->memory_gib - r->beside_gib;
        double gib = g->ran[i].as_seen / GIB;
        printf(" %.1f GiB | %.1f GiB | %+.0f %% |", held, gib, 100 * (gib / held - 1));
        count(memory, gib / held - 1);
    }
    printf("\n");
}

static void print_error(const char *what, const struct error *e)
{
    if (e->n)
        printf("%s: mean error %.1f %%, with its sign %+.1f %%, of %d.\n", what,
               100 * e->size / e->n, 100 * e->sign / e->n, e->n);
}

static const char *text_of(const json_t *groups, const char *name, const char *key)
{
    const char *text =
        json_string_value(json_object_get(json_object_get(groups, name), key));
    return text ? text : (give_up(name, "groups.json does not have it"), "");
}

static void print_group(const struct group *g, const json_t *texts, struct error *time,
                        struct error *memory)
{
    struct error t = {0}, m = {0};
    int nfit = 0, ninside = 0, memories = g->row->memory_gib > 0;
    printf("## %s\n\nSystem: ", g->row->group);
    print_software(g->row);
    printf(".\n\n%s%s\n|---|---|---|---|---|---|%s\n", columns,
           memories ? memory_columns : "", memories ? "---|---|---|" : "");
    for (int i = 0; i < g->n; i++) {
        nfit += (double)g->ran[i].cost.memory_bytes <= g->ran[i].limit;
        ninside += g->ran[i].inside;
        print_row(g, i, &t, &m);
    }
    printf("\n");
    print_error("Time", &t);
    print_error("Memory", &m);
    printf("Measured within the prediction's band: %d of %d. Fit by prediction, as they "
           "did: %d of %d.\n",
           ninside, g->n, nfit, g->n);
    print_regret(g);
    printf("\nSource: %s.\n\nWhat explains the errors, as far as can be told: %s.\n\n",
           text_of(texts, g->row->group, "source"),
           text_of(texts, g->row->group, "residual"));
    count_all(time, &t);
    count_all(memory, &m);
}

/* ---- the picture --------------------------------------------------------------------------- */

static char *note_of(const struct row *r, double seen, double predicted)
{
    struct topt_text t = {0};
    topt_text_add(&t, "%s on %d GPU%s: %.3g s, predicted %.3g s", r->model, (int)r->gpus,
                  r->gpus == 1 ? "" : "s", seen, predicted);
    return t.s;
}

/* Rows on A100 GPUs, or the others. */
static void plot_rows(struct topt_series *s, const struct group *all, int a100,
                      double *lo, double *hi)
{
    s->n = 0;
    for (int i = 0; i < all->n; i++) {
        const struct row *r = &all->row[i];
        double x = row_seconds(r) * 1e9, y = predicted(&all->ran[i]) * 1e9;
        if ((strncmp(r->hw, "a100", 4) == 0) != a100)
            continue;
        s->x[s->n] = x;
        s->y[s->n] = y;
        s->note[s->n++] = note_of(r, x / 1e9, y / 1e9);
        *lo = fmin(*lo, fmin(x, y));
        *hi = fmax(*hi, fmax(x, y));
    }
}

static void write_picture(const char *path, const struct group *all)
{
    static const struct topt_caption caption = {
        .title = "Predicted and measured time of a step",
        .subtitle = "published runs; on the line a prediction is right",
        .footnote = "VALIDATION.md has each row and its source",
        .description =
            "Time of a step, predicted against measured, of each published run"};
    struct topt_chart c = {
        .x = {.label = "measured", .unit = TOPT_UNIT_NS, .scale = TOPT_LOG},
        .y = {.label = "predicted", .unit = TOPT_UNIT_NS, .scale = TOPT_LOG}};
    double lo = INFINITY, hi = 0;
    struct topt_series *ideal =
        topt_chart_add(&c, TOPT_SERIES_IDEAL, "as measured", 2, 0);
    struct topt_series *a100 =
        topt_chart_add(&c, TOPT_SERIES_MARK, "on A100 GPUs", all->n, 1);
    struct topt_series *other =
        topt_chart_add(&c, TOPT_SERIES_CROSS, "on H100 and V100 GPUs", all->n, 1);
    if (!ideal || !a100 || !other)
        give_up(path, "no memory");
    plot_rows(a100, all, 1, &lo, &hi);
    plot_rows(other, all, 0, &lo, &hi);
    ideal->x[0] = ideal->y[0] = lo;
    ideal->x[1] = ideal->y[1] = hi;
    topt_axis_fit(&c.x, lo, hi, 8, 0);
    topt_axis_fit(&c.y, lo, hi, 6, 0);
    char *svg = topt_chart_svg(&caption, &c, 1);
    FILE *f = fopen(path, "w");
    if (!svg || !f || fputs(svg, f) < 0 || fclose(f))
        give_up(path, "can't be written");
    free(svg);
    topt_chart_fini(&c);
}

/* What curves say of a point that is left out, and what rates say of small messages. */
static void print_collectives(void)
{
    printf("## Collectives\n\n| profile | curves | a point from its neighbours | below 1 "
           "MiB, "
           "bytes over rates |\n|---|---|---|---|\n");
    for (const char *const *name = topt_hw_shipped(); *name; name++) {
        struct topt_error err = {0};
        struct topt_hw *hw = topt_hw_load(*name, &err);
        struct topt_hw_curve_check c;
        double left_out = 0, rates = 0;
        int n = 0;
        if (!hw)
            give_up(*name, err.text);
        for (; topt_hw_curve_check(hw, n, &c); n++) {
            left_out += c.mean_error;
            rates += c.rate_error;
        }
        if (n)
            printf("| %s | %d | %.1f %% | %.0f %% |\n", *name, n, 100 * left_out / n,
                   100 * rates / n);
        topt_hw_destroy(hw);
    }
    printf("\nMean errors of times: what is interpolated between sizes twice as far "
           "apart as "
           "those\nmeasured, and what bytes over the links' bandwidths would say "
           "instead.\n\n");
}

/* The rows of a file with what is predicted of each; those that no plan says stand at the end. */
struct measured {
    struct rows rows;
    struct group all; /* without these */
};

static void measure(const char *stem, struct measured *m)
{
    rows_read(stem, &m->rows);
    struct row *row = m->rows.row, *rest = calloc((size_t)m->rows.n + 1, sizeof *rest);
    struct ran *ran = calloc((size_t)m->rows.n + 1, sizeof *ran);
    int n = 0, out = 0;
    if (!rest || !ran)
        give_up(stem, "no memory");
    for (int i = 0; i < m->rows.n; i++)
        if (row_is_left_out(&row[i]))
            rest[out++] = row[i];
        else
            row[n++] = row[i];
    memcpy(row + n, rest, (size_t)out * sizeof *rest);
    free(rest);
    for (int i = 0; i < n; i++)
        ran[i] = ran_of(&row[i], 0);
    m->all = (struct group){row, ran, n};
}

static void forget(struct measured *m)
{
    free(m->all.ran);
    rows_fini(&m->rows);
}

static void print_groups(const struct group *all, const json_t *texts, struct error *time,
                         struct error *memory)
{
    for (int i = 0, n; i < all->n; i += n) {
        const char *name = all->row[i].group;
        for (n = 1; i + n < all->n && !strcmp(name, all->row[i + n].group);)
            n++;
        print_group(&(struct group){all->row + i, all->ran + i, n}, texts, time, memory);
    }
}

static const char later[] =
    "## Runs that came later\n\n"
    "The predictions were there before these rows. Which groups may decide a constant "
    "(seen) and which\njudge it (judged) is not chosen: the last bit of the SHA-256 of a "
    "group's name says it, and a run\nthat stands in two groups is seen if either "
    "is.\n\n";

/* Each group once: its name, what that says, and its side. */
static void print_sides(const struct group *all)
{
    char name[512], hex[TOPT_DIGEST_HEX], before[512] = "";
    printf("| group | SHA-256 | side |\n|---|---|---|\n");
    for (int i = 0; i < all->n; i++) {
        const struct row *r = &all->row[i];
        row_group_name(r, r->source, name, sizeof name);
        if (!strcmp(name, before))
            continue;
        strcpy(before, name);
        topt_sha256_hex(name, strlen(name), hex);
        for (char *bar = name; (bar = strchr(bar, '|'));)
            *bar = '/';
        printf("| %s | %s | %s |\n", name, hex, row_is_judged(r) ? "judged" : "seen");
    }
    printf("\n");
}

static void print_later(const json_t *texts)
{
    struct error side[2] = {{0}, {0}}, time = {0}, memory = {0};
    struct measured m;
    measure("later", &m);
    fputs(later, stdout);
    print_groups(&m.all, texts, &time, &memory);
    print_sides(&m.all);
    for (int i = 0; i < m.all.n; i++)
        count(&side[row_is_judged(&m.all.row[i])],
              predicted(&m.all.ran[i]) / row_seconds(&m.all.row[i]) - 1);
    print_error("Time, groups that are seen", &side[0]);
    print_error("Time, groups that judge", &side[1]);
    printf("\nNot costed yet:\n\n");
    for (int i = m.all.n; i < m.rows.n; i++)
        printf("- %s on %d %s: %s.\n", m.rows.row[i].model, (int)m.rows.row[i].gpus,
               m.rows.row[i].device, m.rows.row[i].note);
    printf("\n");
    forget(&m);
}

int main(int argc, char **argv)
{
    struct error time = {0}, memory = {0};
    struct measured m;
    json_t *texts = rows_json("groups");
    measure("steps", &m);
    fputs(head, stdout);
    print_groups(&m.all, texts, &time, &memory);
    printf("## All\n\n");
    print_error("Time", &time);
    print_error("Memory", &memory);
    fputs(standing, stdout);
    print_later(texts);
    print_collectives();
    fputs(tail, stdout);
    if (argc > 1)
        write_picture(argv[1], &m.all);
    json_decref(texts);
    forget(&m);
    return 0;
}
