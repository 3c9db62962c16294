/* validation.c - docs/VALIDATION.md: published measurements held against predictions.
 *
 *     validation [PICTURE PAGE]     prints the document's first half, and writes its picture and its page
 *     validation --json             prints all comparisons, one line each
 *     validation --sides            prints each group's name, SHA-256 and side
 *     validation --check FILE.csv   reads a file of rows, and says which line is wrong
 *
 * Each row of rows/steps.csv, later.csv and megatron_tests.csv is a run that somebody published: the model,
 * the cluster, the plan they ran and the system that ran it.  The same plan is costed here (ran.c); nothing
 * is tuned to a row. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chart.h"
#include "chart_svg.h"
#include "hw_impl.h"
#include "figures.h"
#include "validation_page.h"
#include "topt_digest.h"
#include "topt_plan_doc.h"
#include "topt_text.h"

#define GIB ((double)((int64_t)1 << 30))

__attribute__((noreturn)) static void give_up(const char *what, const char *why)
{
    fprintf(stderr, "validation: %s: %s\n", what, why);
    exit(1);
}

static double predicted(const struct ran *x)
{
    return (double)x->cost.time_ns / 1e9;
}

/* ---- the document -------------------------------------------------------------------------- */

static const char head[] =
    "# Predictions held against published measurements\n"
    "\n"
    "Written by one command; nothing in it is typed by hand:\n"
    "\n"
    "    cmake --build --preset release --target validation sheet\n"
    "    cd build/release/tests && { ./validation ../../../docs/validation.svg \\\n"
    "        ../../../docs/validation.html && ./sheet; } >../../../docs/VALIDATION.md\n"
    "\n"
    "(16 seconds on two cores that others used too, 29 November 2026.)\n"
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
    "no number was fitted to a row or to a group, but for the allocator's share "
    "(`solver/plan/request/framework.c`)\n"
    "and the widths of bands, which follow from the groups that are "
    "seen (`tests/bench/bands.py`). The rows are therefore not unseen: they showed "
    "which\n"
    "mechanisms were missing, and runs that nobody looked at before may lie further "
    "off.\n"
    "Errors are (predicted - measured) / measured; the band of a time and of a memory is "
    "what `topt plan` says beside\n"
    "them, its width (upper - lower) / predicted. Bytes that an allocator reserved are "
    "compared with\n"
    "`memory_bytes` for the framework that ran it (`--framework`): tensors, libraries' "
    "workspaces and what its\n"
    "allocator can't use; what a process held with that and the driver's context, where "
    "the source does not take it off;\n"
    "what PyTorch counts as allocated with tensors and workspaces alone. Where the whole "
    "device is shown, which an\n"
    "allocator fills whatever it needs, that it fits is compared, and not how much.\n"
    "\n"
    "[validation.html](validation.html) has every number in one table to filter and "
    "sort. "
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
    "The largest errors of time that are left: fine-tuning of all parameters by NeMo in "
    "few steps of long samples, and\n"
    "Megatron-LM's runs in bf16 on H100 GPUs, which are a tenth too fast; communication "
    "between experts on racks, which libraries of their own make; "
    "products of float8 by rows in torchtitan of 2025, which their source calls slow; "
    "and experts of recipes "
    "whose recomputation is not told. Of memory: the gaps "
    "of an\n"
    "allocator, which published figures include in full, and predictions with the share "
    "that is\n"
    "not given back when memory runs out; runs that are told \"does not fit\" are mostly "
    "recipes of 2025 and later, with\n"
    "experts or in few bits, whose pages do not say what is recomputed or offloaded.\n"
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

static const char columns[] = "| model | GPUs | plan |";
static const char time_columns[] = " step, measured | predicted | error |";
static const char memory_columns[] = " memory, measured | predicted | error |";

/* What the row says of its software beside the framework's row. */
static void print_software(const struct row *r)
{
    const struct {
        const char *name, *cell;
    } of[] = {{"overlap", r->overlap}, {"eager", r->eager}, {"attention", r->attention}};
    int n = 0;
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        if (!*of[i].cell)
            continue;
        printf("%s%s ", n++ ? ", " : "", of[i].name);
        for (const char *p = of[i].cell; *p; p++)
            putchar(*p == ' ' ? ',' : *p);
    }
    printf("%s", n ? "" : "as the framework's row");
}

static void print_seconds(double seen, double predicted)
{
    printf(" %.3g s | %.3g s | %+.0f %% |", seen, predicted,
           100 * (predicted / seen - 1));
}

static void print_gib(double seen, double predicted)
{
    printf(" %.*f GiB | %.*f GiB | %+.0f %% |", seen < 10 ? 2 : 1, seen,
           seen < 10 ? 2 : 1, predicted, 100 * (predicted / seen - 1));
}

/* Which of the two kinds of numbers rows of a heading have. */
struct shown {
    int time, memory;
};

static void print_row(const struct group *g, int i, struct shown shown,
                      struct figures *by_kind)
{
    const struct row *r = &g->row[i];
    struct comparison c[2];
    int n = comparisons_of(r, &g->ran[i], c), time = 0, memory = 0;
    printf("| %s | %d | ", r->model, (int)r->gpus);
    row_print_plan(r);
    if (strcmp(r->overlap, g->row->overlap) != 0 ||
        strcmp(r->eager, g->row->eager) != 0) {
        printf("; ");
        print_software(r);
    }
    printf(" |");
    for (int k = 0; k < n; k++) {
        if (c[k].kind == KIND_MEMORY)
            memory = 1;
        else
            time = 1;
        if (c[k].kind == KIND_MEMORY && shown.time && !time)
            printf(" | | |");
        (c[k].kind == KIND_MEMORY ? print_gib : print_seconds)(c[k].measured,
                                                               c[k].predicted);
        figures_count(&by_kind[c[k].kind], &c[k]);
    }
    if (shown.memory && !memory)
        printf(" | | |");
    printf("\n");
}

static void print_figures(const char *what, struct figures *f)
{
    if (f->n)
        printf(
            "%s: mean error %.1f %%, with its sign %+.1f %%, of %d; %d within the band, "
            "whose median width is %.0f %%.\n",
            what, 100 * f->size / f->n, 100 * f->sign / f->n, f->n, f->inside,
            100 * figures_median_width(f));
}

static void print_regret(const struct group *g)
{
    double regret;
    for (int i = 0, plans; i < g->n; i++)
        if ((plans = regret_of(g, i, &regret)) > 1)
            printf("%s: %d plans; the one predicted fastest was measured %.1f %% slower "
                   "than the fastest.\n",
                   g->row[i].job, plans, 100 * regret);
}

static const char *text_of(const json_t *groups, const char *name, const char *key)
{
    const char *text =
        json_string_value(json_object_get(json_object_get(groups, name), key));
    return text ? text : (give_up(name, "groups.json does not have it"), "");
}

static struct shown shown_of(const struct group *g)
{
    struct shown ret = {0, 0};
    struct comparison c[2];
    for (int i = 0; i < g->n; i++)
        for (int k = comparisons_of(&g->row[i], &g->ran[i], c) - 1; k >= 0; k--)
            *(c[k].kind == KIND_MEMORY ? &ret.memory : &ret.time) = 1;
    return ret;
}

static void print_group(const struct group *g, const json_t *texts)
{
    static const char *const short_names[KINDS] = {"Time", "Time", "Memory"};
    struct figures by_kind[KINDS] = {{0}};
    struct shown shown = shown_of(g);
    int nfit = 0, nran = 0;
    printf("## %s\n\nSystem: ", g->row->group);
    print_software(g->row);
    printf(".\n\n%s%s%s\n|---|---|---|%s%s\n", columns, shown.time ? time_columns : "",
           shown.memory ? memory_columns : "", shown.time ? "---|---|---|" : "",
           shown.memory ? "---|---|---|" : "");
    for (int i = 0; i < g->n; i++) {
        nran += !strcmp(g->row[i].outcome, "ran");
        nfit += !strcmp(g->row[i].outcome, "ran") &&
                (double)g->ran[i].cost.memory_bytes <= g->ran[i].limit;
        print_row(g, i, shown, by_kind);
    }
    printf("\n");
    for (int k = 0; k < KINDS; k++) {
        print_figures(short_names[k], &by_kind[k]);
        figures_fini(&by_kind[k]);
    }
    printf("Fit by prediction, as they did: %d of %d.\n", nfit, nran);
    print_regret(g);
    printf("\nSource: %s.\n\nThe errors come, as far as can be told, from this: %s.\n\n",
           text_of(texts, g->row->group, "source"),
           text_of(texts, g->row->group, "residual"));
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

/* ---- files of rows ------------------------------------------------------------------------- */

/* A file's rows with what is predicted of each; those that are not costed stand at the end. */
struct measured {
    const char *stem;
    int seen; /* of before there were sides */
    struct rows rows;
    struct group all; /* those that are costed */
};

static struct measured files[] = {
    {.stem = "steps", .seen = 1},
    {.stem = "documented", .seen = 1},
    {.stem = "later"},
    {.stem = "megatron_tests"},
};
enum { STEPS, DOCUMENTED, LATER, TESTS, FILES };

static int is_judged(const struct measured *m, const struct row *r)
{
    return !m->seen && row_is_judged(r);
}

/* The same figure of the same job: one run, told once more, by another page of a source or by a later version of
 * the page, which may tell more of its layout. */
static int is_same_run(const struct row *a, const struct row *b)
{
    return a->value > 0 && !(a->value < b->value) && !(a->value > b->value) &&
           !strcmp(a->model, b->model) && !strcmp(a->train, b->train) &&
           !strcmp(a->hw, b->hw) && a->gpus == b->gpus && a->batch == b->batch &&
           a->seq == b->seq;
}

/* Is the run told by an earlier file, or once more by this one?  It counts once: in a group that is seen, where it
 * stands in one, and else as it is told last. */
static int is_repeated(const struct measured *m, int i)
{
    const struct row *r = &m->rows.row[i];
    for (int k = 0; k < m->rows.n; k++)
        if (k != i && !row_is_left_out(&m->rows.row[k]) &&
            is_same_run(r, &m->rows.row[k])) {
            int more = is_judged(m, r) - is_judged(m, &m->rows.row[k]);
            if (more > 0 || (!more && k > i))
                return 1;
        }
    for (const struct measured *of = files; of < m; of++)
        for (int k = 0; k < of->all.n; k++) {
            const struct row *o = &of->all.row[k];
            if (!strcmp(o->source, r->source) && !strcmp(o->model, r->model) &&
                o->gpus == r->gpus && !(o->memory_gib < r->memory_gib) &&
                !(o->memory_gib > r->memory_gib) && !(o->value < r->value))
                return 1;
        }
    return 0;
}

/* Reads the rows of a file, and costs them if 'costs' is set. */
static void measure(struct measured *m, int costs)
{
    rows_read(m->stem, &m->rows);
    struct row *row = m->rows.row, *rest = calloc((size_t)m->rows.n + 1, sizeof *rest);
    struct ran *ran = calloc((size_t)m->rows.n + 1, sizeof *ran);
    char *again = calloc((size_t)m->rows.n + 1, 1);
    int n = 0, out = 0;
    if (!rest || !ran || !again)
        give_up(m->stem, "no memory");
    for (int i = 0; i < m->rows.n; i++)
        again[i] = (char)is_repeated(m, i);
    for (int i = 0; i < m->rows.n; i++)
        if (row_is_costed(&row[i]) && !again[i])
            row[n++] = row[i];
        else if (!row_is_costed(&row[i]))
            rest[out++] = row[i];
    free(again);
    memcpy(row + n, rest, (size_t)out * sizeof *rest);
    m->rows.n = n + out;
    free(rest);
    for (int i = 0; i < n && costs; i++)
        ran[i] = ran_of(&row[i]);
    m->all = (struct group){row, ran, n};
}

static void forget(struct measured *m)
{
    free(m->all.ran);
    rows_fini(&m->rows);
}

static void print_groups(const struct group *all, const json_t *texts)
{
    for (int i = 0, n; i < all->n; i += n) {
        const char *name = all->row[i].group;
        for (n = 1; i + n < all->n && !strcmp(name, all->row[i + n].group);)
            n++;
        print_group(&(struct group){all->row + i, all->ran + i, n}, texts);
    }
}

/* ---- figures over all files ---------------------------------------------------------------- */

static void print_cells(struct figures *f)
{
    if (f->n)
        printf(" %d | %.1f %% | %+.1f %% | %.0f %% | %.0f %% |\n", f->n,
               100 * f->size / f->n, 100 * f->sign / f->n, 100.0 * f->inside / f->n,
               100 * figures_median_width(f));
    else
        printf(" 0 | | | | |\n");
}

static void print_all_regret(void)
{
    double regret, sum = 0, most = 0;
    int jobs = 0;
    for (int f = 0; f < FILES; f++)
        for (int i = 0; i < files[f].all.n; i++)
            if (regret_of(&files[f].all, i, &regret) > 1) {
                jobs++;
                sum += regret;
                most = fmax(most, regret);
            }
    if (jobs)
        printf(
            "Regret, what choosing by prediction would have cost: %.1f %% mean, %.1f %% "
            "at most, of %d jobs that were run by several plans.\n\n",
            100 * sum / jobs, 100 * most, jobs);
}

/* Did the run die, where topt plan says that it fits? */
static int died_but_fits(const struct row *r, const struct ran *x)
{
    return strcmp(r->outcome, "ran") && (double)x->cost.memory_bytes <= x->limit &&
           !x->tight;
}

static void print_died_but_fit(void)
{
    printf("The runs that ran out of memory and are told \"fits\":\n\n| model | GPUs | "
           "plan | side | predicted | of | source; what it says, or what is not known "
           "|\n|---|---|---|---|---|---|---|\n");
    for (int f = 0; f < FILES; f++)
        for (int i = 0; i < files[f].all.n; i++) {
            const struct row *r = &files[f].all.row[i];
            const struct ran *x = &files[f].all.ran[i];
            if (row_uses(r, "recipe-memory") || !died_but_fits(r, x))
                continue;
            printf("| %s | %d %s | ", r->model, (int)r->gpus, r->device);
            row_print_plan(r);
            printf(" | %s | %.1f GiB | %.1f GiB | ",
                   is_judged(&files[f], r) ? "judged" : "seen",
                   (double)x->cost.memory_bytes / GIB, x->limit / GIB);
            row_print_source(r);
            printf("; %s |\n", *r->note ? r->note : r->open);
        }
    printf("\n");
}

/* What topt plan says of runs that were costed, beside what became of them; 'side': 0 seen, 1 judged. */
static json_t *verdicts(int side)
{
    int ran = 0, refused = 0, roomy = 0, tight = 0, died = 0, wrong = 0;
    for (int f = 0; f < FILES; f++)
        for (int i = 0; i < files[f].all.n; i++) {
            const struct row *r = &files[f].all.row[i];
            const struct ran *x = &files[f].all.ran[i];
            int fits = (double)x->cost.memory_bytes <= x->limit;
            int room = strcmp(r->memory_kind, "at-failure") && r->memory_gib > 0 &&
                       r->memory_gib * (double)((int64_t)1 << 30) < 0.85 * x->device;
            if (row_uses(r, "recipe-memory") || is_judged(&files[f], r) != side)
                continue;
            if (!strcmp(r->outcome, "ran")) {
                ran++;
                refused += !fits;
                roomy += room;
                tight += room && x->tight;
            } else {
                died++;
                wrong += died_but_fits(r, x);
            }
        }
    return json_pack("{s:i, s:i, s:i, s:i, s:i, s:i}", "ran", ran, "refused", refused,
                     "roomy", roomy, "tight", tight, "died", died, "fits", wrong);
}

static void print_verdicts(void)
{
    int wrong = 0;
    printf(
        "Verdicts on runs; \"roomy\": the measured peak is under 85 %% of the device's "
        "memory:\n\n| side | ran | told \"does not fit\" | roomy | told \"tight\" | ran "
        "out of memory | told \"fits\" |\n|---|---|---|---|---|---|---|\n");
    for (int side = 0; side < 2; side++) {
        json_t *v = verdicts(side);
        int ran, refused, roomy, tight, died, fits;
        json_unpack(v, "{s:i, s:i, s:i, s:i, s:i, s:i}", "ran", &ran, "refused", &refused,
                    "roomy", &roomy, "tight", &tight, "died", &died, "fits", &fits);
        printf("| %s | %d | %d | %d | %d | %d | %d |\n", side ? "judged" : "seen", ran,
               refused, roomy, tight, died, fits);
        wrong += fits;
        json_decref(v);
    }
    printf("\n");
    if (wrong)
        print_died_but_fit();
}

/* Memory of a file's rows on one side, with stages (1) or without (0); -1: on both, all. */
static struct figures memory_of(const struct measured *m, int side, int staged)
{
    struct figures ret = {0};
    for (int i = 0; i < m->all.n; i++) {
        struct comparison c[2];
        const struct row *r = &m->all.row[i];
        int n = comparisons_of(r, &m->all.ran[i], c);
        for (int j = 0; j < n; j++)
            if (c[j].kind == KIND_MEMORY && (side < 0 || is_judged(m, r) == side) &&
                (staged < 0 || (r->pipeline > 1) == staged))
                figures_count(&ret, &c[j]);
    }
    return ret;
}

static void print_mean(const char *what, struct figures of)
{
    if (of.n)
        printf("%s %.1f %% (%d)", what, 100 * of.size / of.n, of.n);
    figures_fini(&of);
}

/* Megatron-LM's own tests are many, alike and small: what memory's errors are without them, and with stages of theirs. */
static void print_memory_apart(void)
{
    printf("Mean error of memory in Megatron-LM's own tests, of small models: ");
    print_mean("without stages", memory_of(&files[TESTS], -1, 0));
    print_mean(", with", memory_of(&files[TESTS], -1, 1));
    printf(". Without these tests: ");
    print_mean("of runs before there were sides", memory_of(&files[STEPS], -1, -1));
    print_mean(", of documented ones", memory_of(&files[DOCUMENTED], -1, -1));
    print_mean(", of later ones, seen", memory_of(&files[LATER], 0, -1));
    print_mean(", judged", memory_of(&files[LATER], 1, -1));
    printf(".\n\n");
}

/* What products of layers are computed in. */
static const char *const few_bits[] = {"bf16", "fp8", "mxfp8", "nvfp4"};
enum { FEW_BITS = sizeof few_bits / sizeof *few_bits };

static int is_of_bits(const struct row *r, int bits)
{
    return bits < 0 || !strncmp(r->precision, few_bits[bits], strlen(few_bits[bits]));
}

/* The figures of one kind and side, of one precision or (bits -1) of all. */
static void print_pooled(int kind, int side, int bits)
{
    struct figures all = {0};
    for (int f = 0; f < FILES; f++)
        for (int i = 0; i < files[f].all.n; i++) {
            struct comparison c[2];
            const struct row *r = &files[f].all.row[i];
            int n = comparisons_of(r, &files[f].all.ran[i], c);
            for (int j = 0; j < n; j++)
                if ((int)c[j].kind == kind && is_judged(&files[f], r) == side &&
                    is_of_bits(r, bits))
                    figures_count(&all, &c[j]);
        }
    print_cells(&all);
    figures_fini(&all);
}

static void print_by_kind(void)
{
    static const char *const side[] = {"seen", "judged"};
    static const char cells[] = "numbers | mean error | bias | within the band | median "
                                "width |\n|---|---|---|---|---";
    printf("## All\n\n| kind | side | %s|---|---|\n", cells);
    for (int k = 0; k < KINDS; k++)
        for (int s = 0; s < 2; s++) {
            printf("| %s | %s |", kind_name((enum kind)k), side[s]);
            print_pooled(k, s, -1);
        }
    printf("\nThe newer times by precision:\n\n| precision | side | %s|---|---|\n",
           cells);
    for (int b = 0; b < FEW_BITS; b++)
        for (int s = 0; s < 2; s++) {
            printf("| %s | %s |", few_bits[b], side[s]);
            print_pooled(KIND_NEWER, s, b);
        }
    printf("\n");
    print_memory_apart();
    print_all_regret();
    print_verdicts();
}

/* The group that a row's run is counted in: "repository:path|model|device". */
static int is_first_of_group(const struct group *g, int i)
{
    char name[512], other[512];
    row_group_name(&g->row[i], g->row[i].source, name, sizeof name);
    for (int k = 0; k < i; k++) {
        row_group_name(&g->row[k], g->row[k].source, other, sizeof other);
        if (!strcmp(name, other))
            return 0;
    }
    return 1;
}

static void print_one_group(const struct measured *m, int i)
{
    char name[512], other[512], hex[TOPT_DIGEST_HEX];
    const struct group *g = &m->all;
    struct figures by_kind[KINDS] = {{0}};
    double worst = 0;
    int jobs = 0;
    row_group_name(&g->row[i], g->row[i].source, name, sizeof name);
    topt_sha256_hex(name, strlen(name), hex);
    for (int k = i; k < g->n; k++) {
        struct comparison c[2];
        double regret;
        row_group_name(&g->row[k], g->row[k].source, other, sizeof other);
        if (strcmp(name, other))
            continue;
        for (int j = comparisons_of(&g->row[k], &g->ran[k], c) - 1; j >= 0; j--)
            figures_count(&by_kind[c[j].kind], &c[j]);
        if (regret_of(g, k, &regret) > 1) {
            jobs++;
            worst = fmax(worst, regret);
        }
    }
    for (char *bar = name; (bar = strchr(bar, '|'));)
        *bar = '/';
    for (int k = 0; k < KINDS; k++) {
        if (!by_kind[k].n)
            continue;
        printf("| %s | ...%s | %s | %s | ", name, hex + strlen(hex) - 8,
               is_judged(m, &g->row[i]) ? "judged" : "seen",
               k == KIND_MEMORY ? "memory" : "time");
        if (jobs && k != KIND_MEMORY)
            printf("%.1f %% |", 100 * worst);
        else
            printf("|");
        print_cells(&by_kind[k]);
        figures_fini(&by_kind[k]);
    }
}

static const char groups_head[] =
    "## Groups\n\n"
    "Runs of one source, model and device are a group. Groups that stood here before "
    "there were sides are seen\n"
    "and may decide constants. For the others the last bit of the SHA-256 of the group's "
    "name decides: where it is 1 the group judges and\n"
    "decides none (`printf '%s' 'repository:path|model|device' | sha256sum`, in lower "
    "case); a run that stands in two\n"
    "groups is seen if either is, and so is one whose prediction was held against it "
    "while it was made (`met`: DeepSeek-V3's\n"
    "report). A house test fails where a constant's source is a group that judges.\n"
    "[validation.html](validation.html) has all rows in one table that can be "
    "filtered.\n\n"
    "| group (name/model/device) | SHA-256 | side | what | largest regret | numbers | "
    "mean error | bias | within the band | median width |\n"
    "|---|---|---|---|---|---|---|---|---|---|\n";

static void print_group_table(void)
{
    fputs(groups_head, stdout);
    for (int f = 0; f < FILES; f++)
        for (int i = 0; i < files[f].all.n; i++)
            if (is_first_of_group(&files[f].all, i))
                print_one_group(&files[f], i);
    printf("\n");
}

static void print_uncosted(void)
{
    int rows = 0;
    printf("## Runs that no plan here says yet\n\n| mechanism | rows that need it | that "
           "need nothing else |\n|---|---|---|\n");
    for (int i = 0; row_mechanism(i); i++) {
        int all = 0, alone = 0;
        for (int f = 0; f < FILES; f++)
            for (int k = files[f].all.n; k < files[f].rows.n; k++) {
                int others = 0;
                const struct row *r = &files[f].rows.row[k];
                for (int j = 0; row_mechanism(j); j++)
                    others += j != i && row_needs(r, j);
                all += row_needs(r, i);
                alone += row_needs(r, i) && !others;
            }
        if (all)
            printf("| %s | %d | %d |\n", row_mechanism(i), all, alone);
    }
    for (int f = 0; f < FILES; f++)
        for (int k = files[f].all.n; k < files[f].rows.n; k++)
            rows += !row_is_left_out(&files[f].rows.row[k]);
    printf(
        "\n%d rows of `tests/bench/rows` wait for these. Once plans have a "
        "mechanism, its row in `tests/bench/rows.c`\nis switched on, and these runs are "
        "costed.\n\n",
        rows);
}

/* Is the row one whose time is compared with others of its job alone, since only the device's rates are not known? */
static int is_beside(const struct row *r)
{
    return row_uses(r, "assumed-rates") && row_lacks_only(r, "assumed-rates") &&
           row_seconds(r) > 0;
}

/* The next row of the same job whose times are held beside the first's alone; m->rows.n: there is none. */
static int next_beside(const struct measured *m, int first, int i)
{
    const struct row *row = m->rows.row;
    for (; i < m->rows.n; i++)
        if (is_beside(&row[i]) && !strcmp(row[i].job, row[first].job))
            break;
    return i;
}

static void print_job_beside(const struct measured *m, int first)
{
    const struct row *row = m->rows.row;
    double seen = row_seconds(&row[first]), of_first = 0;
    for (int i = first; i < m->rows.n; i = next_beside(m, first, i + 1)) {
        struct ran x = ran_of(&row[i]);
        of_first = i == first ? predicted(&x) : of_first;
        printf("| %s | ", row[i].model);
        row_print_plan(&row[i]);
        printf(" | %.3f | %.3f | %.2f |\n", row_seconds(&row[i]) / seen,
               predicted(&x) / of_first, row_seconds(&row[i]) / predicted(&x));
    }
}

/* Runs on devices of which no rate was measured: how long plans of one job take beside each other. */
static void print_beside(const json_t *texts)
{
    const struct measured *m = &files[LATER];
    printf("## Plans beside each other\n\n"
           "Runs on devices whose rates are all from data sheets or assumed. Their times "
           "are in no figure above; those of one job are\nset beside its first plan's, "
           "and the last column says how many times as long a step took as these rates "
           "say.\n\n"
           "| model | plan | time beside the first, measured | predicted | measured / "
           "predicted |\n|---|---|---|---|---|\n");
    for (int i = m->all.n; i < m->rows.n; i++)
        if (is_beside(&m->rows.row[i]) && next_beside(m, i, 0) == i) {
            print_job_beside(m, i);
            printf("\n%s.\n\n", text_of(texts, m->rows.row[i].group, "source"));
        }
}

static const char send[] =
    "## How to send a row in\n\n"
    "A run of your own is one line of `tests/bench/rows/later.csv`. The first line of "
    "the file names the columns, and\n"
    "`tests/bench/rows.h` explains them; cells that do not apply stay empty. What a "
    "line needs at least: `source` (a\n"
    "page that anybody can open, as `repository:path`), `year` of the software, "
    "`group` (a heading, with a text in\n"
    "`groups.json`), `model` (a name in `models.json`, which holds its config.json), "
    "`device` and the shipped profile `hw`,\n"
    "`gpus`, `per_node`, the degrees, `zero`, `recompute`, `seq`, `batch`, `micro`, "
    "`precision`, `optimizer`, `framework`,\n"
    "and the number: `measure` with `value` (`s`, `tokens/s/gpu`), or `memory_gib` "
    "with `memory_kind`.\n\n"
    "In PyTorch these lines print the numbers of a run (after warm-up, on every "
    "rank):\n\n"
    "    torch.cuda.synchronize(); start = time.time()\n"
    "    for _ in range(20): step()\n"
    "    torch.cuda.synchronize()\n"
    "    print(\"s,%.4f\" % ((time.time() - start) / 20), \"memory_gib,%.3f\" % "
    "(torch.cuda.max_memory_allocated() / 2**30))\n\n"
    "`measure` is then `s` and `memory_kind` is `allocated`. "
    "`build/release/tests/validation --check tests/bench/rows/later.csv`\n"
    "says which line is wrong, and `validation_document` fails until this page has "
    "the row.\n\n";

static const char later[] = "## Runs that came later\n\n"
                            "The predictions were there before these rows.\n\n";

static void print_document(const json_t *texts)
{
    fputs(head, stdout);
    print_by_kind();
    fputs(standing, stdout);
    print_groups(&files[STEPS].all, texts);
    fputs(later, stdout);
    print_groups(&files[LATER].all, texts);
    print_groups(&files[TESTS].all, texts);
    print_group_table();
    print_beside(texts);
    print_uncosted();
    fputs(send, stdout);
    print_collectives();
    fputs(tail, stdout);
}

static void print_sides(void)
{
    char name[512], hex[TOPT_DIGEST_HEX];
    for (int f = 0; f < FILES; f++)
        for (int i = 0; i < files[f].rows.n; i++) {
            struct group rows = {.row = files[f].rows.row, .n = files[f].rows.n};
            const struct row *r = &rows.row[i];
            if (!is_first_of_group(&rows, i))
                continue;
            row_group_name(r, r->source, name, sizeof name);
            topt_sha256_hex(name, strlen(name), hex);
            printf("%s %s %s\n", hex, is_judged(&files[f], r) ? "judged" : "seen", name);
        }
}

static void write_all(const char *picture, const char *page)
{
    write_picture(picture, &files[STEPS].all);
    json_t *rows = json_array();
    for (int f = 0; f < FILES; f++)
        for (int i = 0; i < files[f].all.n; i++)
            page_add(rows, &files[f].all, i, is_judged(&files[f], &files[f].all.row[i]));
    if (page_write(page, rows))
        give_up(page, "can't be written");
    json_decref(rows);
}

/* The parts of what is predicted that band.c tells apart, as shares of it. */
static json_t *parts_of(const struct ran *x, int memory)
{
    json_t *parts = json_object();
    double all = (double)(x->held.memory_bytes + x->beside);
    double share = (double)x->share / all, context = (double)x->beside / all;
    double states = (double)topt_memory_states(&x->held) / all;
    for (int b = 0; b < TOPT_BASIS_COUNT && !memory; b++)
        json_object_set_new(
            parts, topt_basis_name((enum topt_basis)b),
            json_real((double)x->cost.sum.basis_ns[b] / (double)x->cost.time_ns));
    if (memory) {
        json_object_set_new(parts, "states", json_real(states));
        json_object_set_new(parts, "rest", json_real(1 - states - share - context));
        json_object_set_new(parts, "context", json_real(context));
        json_object_set_new(parts, "allocator", json_real(share));
    }
    return parts;
}

static void print_json(void)
{
    for (int f = 0; f < FILES; f++)
        for (int i = 0; i < files[f].all.n; i++) {
            const struct group *g = &files[f].all;
            json_t *rows = json_array(), *row;
            size_t k;
            page_add(rows, g, i, is_judged(&files[f], &g->row[i]));
            json_array_foreach(rows, k, row)
            {
                int memory =
                    !strcmp(json_string_value(json_object_get(row, "kind")), "memory");
                json_object_set_new(row, "parts", parts_of(&g->ran[i], memory));
                json_dumpf(row, stdout, JSON_COMPACT | JSON_REAL_PRECISION(6));
                printf("\n");
            }
            json_decref(rows);
        }
    json_t *last = json_pack("{s:{s:o, s:o}}", "verdicts", "seen", verdicts(0), "judged",
                             verdicts(1));
    json_dumpf(last, stdout, JSON_COMPACT);
    printf("\n");
    json_decref(last);
}

static int check_file(const char *file)
{
    struct rows rows;
    char path[4096];
    size_t n = strlen(file);
    if (n < 4 || strcmp(file + n - 4, ".csv") || !realpath(file, path))
        give_up(file, "no such file of rows (NAME.csv)");
    path[strlen(path) - 4] = '\0';
    rows_read(path, &rows);
    printf("%s: %d rows\n", file, rows.n);
    rows_fini(&rows);
    return 0;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    if (!strcmp(what, "--check") && argc == 3)
        return check_file(argv[2]);
    json_t *texts = rows_json("groups");
    for (int f = 0; f < FILES; f++)
        measure(&files[f], strcmp(what, "--sides") != 0); /* names alone decide */
    if (!strcmp(what, "--json"))
        print_json();
    else if (!strcmp(what, "--sides"))
        print_sides();
    else
        print_document(texts);
    if (argc == 3)
        write_all(argv[1], argv[2]);
    for (int f = 0; f < FILES; f++)
        forget(&files[f]);
    json_decref(texts);
    return 0;
}
