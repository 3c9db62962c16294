/* papers_figures.c - docs/PAPERS.md: what papers print, and what comes out here.
 *
 * Each claim is asked of the same model of costs, with the profile of the paper's
 * cluster, whose links were calibrated on one of its tables, and its way to count memory.
 * Prints the whole document.  A claim is a line: what the paper says with its number, the band
 * in which ours counts as the same, what we get, and the verdict (papers_claim.h). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chart_svg.h"
#include "papers_claim.h"
#include "papers_flexflow.h"
#include "papers_index.h"
#include "papers_study.h"
#include "papers_systems.h"
#include "topt_text.h"

static const char V100[] = "v100-dgx1-2x8";
static const int64_t LIMIT = (int64_t)(14.5 * (1 << 30)); /* what TensorOpt plans with */
enum { POINTS = 12 };
/* Of everything below, so that comparisons are within one space. */
static enum topt_space space = TOPT_SPACE_CANONICAL;
static enum topt_block_choice blocks = TOPT_BLOCKS_FREE;
static int rows_split;

static double fall(const struct figure *from, const struct figure *to)
{
    return 100 * (1 - to->seconds / from->seconds);
}

static struct study_ask ask_of(const char *model, int nodes)
{
    return (struct study_ask){.model = model,
                              .hw = V100,
                              .nodes = nodes,
                              .per_node = 8,
                              .space = space,
                              .blocks = blocks,
                              .rows = rows_split};
}

/* The one plan of a system that has one; several figures ask of the same. */
static struct figure plan_of(const char *model, int nodes, const char *algorithm)
{
    enum { PLANS = 32 };
    static struct asked {
        const char *model, *algorithm;
        int nodes;
        struct figure plan;
    } asked[PLANS];
    static int n;
    for (int i = 0; i < n; i++)
        if (!strcmp(asked[i].model, model) && asked[i].nodes == nodes &&
            !strcmp(asked[i].algorithm, algorithm))
            return asked[i].plan;
    struct study s;
    struct study_ask a = ask_of(model, nodes);
    a.algorithm = algorithm;
    study_open(&s, &a);
    struct figure f = study_fastest(&s, 0);
    study_close(&s);
    if (n < PLANS)
        asked[n++] = (struct asked){model, algorithm, nodes, f};
    return f;
}

/* ---- curves ------------------------------------------------------------------------------ */

/* A frontier by its points at equal ratios of memory. */
struct curve {
    char name[64];
    int n, knee; /* -1: straight */
    struct figure at[POINTS];
    struct figure quarter; /* within a quarter more than the least memory */
};

static void find_knee(struct curve *c)
{
    double x[POINTS], y[POINTS];
    for (int i = 0; i < c->n; i++) {
        x[i] = c->at[i].gib;
        y[i] = c->at[i].seconds;
    }
    c->knee = topt_chart_knee(x, y, c->n);
}

static struct curve curve_of(const char *name, const struct study_ask *a)
{
    struct study s;
    struct curve c = {.n = 0};
    snprintf(c.name, sizeof c.name, "%s", name);
    study_open(&s, a);
    c.n = study_sample(&s, POINTS, c.at);
    if (c.n > 0)
        c.quarter = study_fastest(&s, c.at[0].bytes / 4 * 5);
    study_close(&s);
    find_knee(&c);
    return c;
}

static void print_curve(const struct curve *c)
{
    printf(
        "\n%s (memory of a GPU in GiB, seconds of a step = computing + network, and how "
        "many\nof these move inputs again in backward that are not kept):\n\n",
        c->name);
    for (int i = 0; i < c->n; i++)
        printf("    %6.2f  %6.3f = %6.3f + %6.3f  %6.3f%s\n", c->at[i].gib,
               c->at[i].seconds, c->at[i].compute, c->at[i].network, c->at[i].again,
               i == c->knee ? "   turning point" : "");
}

static const struct figure *knee(const struct curve *c)
{
    return &c->at[c->knee < 0 ? 0 : c->knee];
}

/* ---- table 1 ----------------------------------------------------------------------------- */

/* 'by_size': its published layers are not printed here, and were made so that these sizes come out. */
static void table1(void)
{
    static const struct {
        const char *model, *name;
        double parameters, memory; /* as printed */
        int by_size;
    } rows[] = {{"paper:rnn", "RNN", 108, 126, 1},
                {"paper:wideresnet", "WideResNet", 7.3, 83, 1},
                {"paper:transformer", "Transformer", 9.7, 74, 1},
                {"paper:vgg16", "VGG16", 0.52, 30, 0}};
    papers_head("TensorOpt, table 1: the models");
    papers_id("T6");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct study_ask a = ask_of(rows[i].model, 1);
        struct topt_model_stats stats;
        struct study s;
        char says[64];
        a.per_node = 1;
        study_open(&s, &a);
        struct figure f = study_fastest(&s, 0);
        topt_model_stats(s.model, &stats);
        study_close(&s);
        double gib = 4 * (double)stats.parameters / (1 << 30);
        struct papers_row row = {rows[i].by_size ? PAPERS_CALIBRATED : PAPERS_COUNTED,
                                 rows[i].name, says};
        snprintf(says, sizeof says, "parameters: %.3g GB", rows[i].parameters);
        papers_near(row, gib, rows[i].parameters, 0.02, "%.2f GiB", gib);
        /* What counts as memory was read from this table. */
        row.kind = PAPERS_CALIBRATED;
        snprintf(says, sizeof says, "memory on one GPU: %.3g GB", rows[i].memory);
        papers_near(row, f.gib, rows[i].memory, 0.02, "%.2f GiB", f.gib);
    }
    static const double gb = 109, seconds = 39; /* section 5.1 */
    struct figure f = plan_of("paper:rnn", 2, "data-parallel");
    char says[64];
    struct papers_row row = {PAPERS_CALIBRATED, "RNN, data parallel, 16 GPUs", says};
    snprintf(says, sizeof says, "%.0f GB (section 5.1)", gb);
    papers_near(row, f.gib, gb, 0.02, "%.2f GiB", f.gib);
    /* gradients of all its layers go over the links that were fitted */
    snprintf(says, sizeof says, "%.0f s a step (section 5.1)", seconds);
    papers_near(row, f.seconds, seconds, PAPERS_TIMES, "%.1f s, %+.0f %%", f.seconds,
                100 * (f.seconds / seconds - 1));
}

/* ---- figure 6 ---------------------------------------------------------------------------- */

/* Is there a point of the whole space that is no slower within the same memory?  Both ascend in
 * memory. */
static int covered(const struct topt_cost *ours, int n, const struct topt_cost *theirs,
                   int ntheirs)
{
    for (int i = 0, k = -1; i < ntheirs; i++) {
        while (k + 1 < n && ours[k + 1].memory <= theirs[i].memory)
            k++;
        if (k < 0 || ours[k].time > theirs[i].time)
            return 0;
    }
    return 1;
}

static double steep(const struct curve *c)
{
    return fall(&c->at[0], &c->quarter);
}

/* Is there a fall that the paper's sentences could explain? */
static int falls(const struct curve *c)
{
    return steep(c) >= 40;
}

static void turning_point(const struct curve *c)
{
    double flat = fall(knee(c), &c->at[c->n - 1]);
    papers_id("T9");
    struct papers_row row = {PAPERS_ONE_SIDED, c->name,
                             "time drops rapidly up to a turning point"};
    papers_why("computing, which it does not change, is most of the time");
    papers_words(row, falls(c), "40 % or more within a quarter more memory",
                 "%.2f s with %.2f GiB, %.2f s with a quarter more: falls by %.0f %%",
                 c->at[0].seconds, c->at[0].gib, c->quarter.seconds, steep(c));
    row.says = "and is relatively stable beyond";
    papers_why("no rapid fall before it");
    papers_words(
        row, falls(c) && c->knee > 0 && flat <= 35,
        "40 % or more within a quarter more memory before, 35 % or less beyond",
        "falls by %.0f %% before; turns at %.2f GiB, %.2f s; falls by %.0f %% to "
        "the right end, %.2f s with %.2f GiB",
        steep(c), knee(c)->gib, knee(c)->seconds, flat, c->at[c->n - 1].seconds,
        c->at[c->n - 1].gib);
}

/* The paper's cause of the turning point: what is left of it has no room to keep inputs where
 * backward reads them, and moves them again. */
static void reuse(const struct curve *c)
{
    static const char band[] = "half of the fall or more";
    const struct figure *low = &c->at[0], *at = knee(c);
    double fall_s = low->seconds - at->seconds, again = low->again - at->again;
    papers_id("T10");
    struct papers_row row = {PAPERS_ONE_SIDED, c->name,
                             "it falls as tensors are kept instead of moved again"};
    if (!falls(c)) {
        papers_moot(row, band, "moving them again takes %.2f s at the left end of %.2f",
                    low->again, low->seconds);
        return;
    }
    papers_why("the rest is what layouts that store less move in forward");
    papers_words(row, again >= 0.5 * fall_s, band,
                 "moving them again takes %.2f s at the left end, %.2f at the turning "
                 "point: %.1f %% of the fall",
                 low->again, at->again, 100 * again / fall_s);
}

static void computing(const struct curve *c)
{
    double low = c->at[0].compute, high = low;
    for (int i = 0; i < c->n; i++) {
        low = fmin(low, c->at[i].compute);
        high = fmax(high, c->at[i].compute);
    }
    struct papers_row row = {PAPERS_ONE_SIDED, c->name,
                             "computing stays along the whole frontier"};
    papers_id("T10");
    papers_why("plans with more memory repeat the same work on both nodes, which spares "
               "the network more than it takes");
    papers_words(row, high <= 1.35 * low, "within 35 %", "%.2f to %.2f s: %+.0f %%", low,
                 high, 100 * (high / low - 1));
}

/* What the paper excepts of the one model. */
static void computing_rises(const struct curve *c)
{
    double left = c->at[0].compute, right = c->at[c->n - 1].compute;
    papers_id("T10");
    papers_words((struct papers_row){PAPERS_ONE_SIDED, c->name,
                                     "but it computes more where memory is short"},
                 left > right, "more at the left end than at the right end",
                 "%.2f s and %.2f s: %+.0f %%", left, right, 100 * (left / right - 1));
}

static void network(const struct curve *c)
{
    static const char band[] = "never rises along the whole frontier";
    double left = c->at[0].network, right = c->at[c->n - 1].network;
    int rises = 0;
    for (int i = 1; i < c->n; i++)
        rises |= c->at[i].network > c->at[i - 1].network;
    struct papers_row row = {
        PAPERS_ONE_SIDED, c->name,
        "the network's time falls with memory, and the time with it"};
    papers_id("T10");
    if (falls(c))
        papers_words(row, !rises, band, "from %.2f to %.2f s, %s", left, right,
                     rises ? "rises somewhere" : "never rises");
    else
        papers_moot(row, band, "from %.2f to %.2f s of %.2f", left, right,
                    c->at[0].seconds);
}

static double gib_of(struct topt_cost c)
{
    return (double)c.memory / (1 << 30);
}

static double seconds_of(struct topt_cost c)
{
    return (double)c.time / 1e9;
}

/* Mesh-TensorFlow as it is, and where names of dimensions may differ from layer to layer. */
static const struct mesh {
    const char *algorithm, *never, *least;
    enum papers_kind kind; /* of the last */
} meshes[] = {
    {"mesh-tensorflow", "TensorOpt is never above Mesh-TensorFlow",
     "Mesh-TensorFlow can't work with little memory", PAPERS_ONE_SIDED},
    {"mesh-tensorflow-reshape",
     "TensorOpt is never above Mesh-TensorFlow, even if that may rename tensors between "
     "layers",
     "Mesh-TensorFlow can't work with little memory, even if it may rename",
     PAPERS_REWRITTEN},
};

static void never_above(struct papers_row row, const struct topt_cost *own, int m,
                        const struct topt_cost *at, int n, int alike)
{
    char theirs[96];
    if (n == 1)
        snprintf(theirs, sizeof theirs, "its one point, %.2f GiB and %.2f s,",
                 gib_of(at[0]), seconds_of(at[0]));
    else
        snprintf(theirs, sizeof theirs,
                 "each of its %d points, from %.2f GiB and %.2f s to %.2f GiB and %.2f "
                 "s,",
                 n, gib_of(at[0]), seconds_of(at[0]), gib_of(at[n - 1]),
                 seconds_of(at[n - 1]));
    papers_words(row, covered(own, m, at, n), "all points",
                 "%s has one of our %d that is no worse in both ways%s", theirs, m,
                 alike ? " (blocks alike)" : "");
}

/* Asked of two studies, so that both are of the same space.  Frontiers of images have thousands
 * of points where every block chooses: there blocks choose alike. */
static void named_meshes(const char *model, const char *name, const struct mesh *mesh,
                         double apart)
{
    struct study ours, theirs;
    struct study_ask a = ask_of(model, 2);
    struct topt_cost *at, *own;
    int alike = !strcmp(model, "paper:wideresnet");
    a.blocks = alike ? TOPT_BLOCKS_ALIKE : a.blocks;
    study_open(&ours, &a);
    a.algorithm = mesh->algorithm;
    study_open(&theirs, &a);
    int m = study_costs(&ours, &own), n = study_costs(&theirs, &at);
    papers_id("T11");
    if (n > 0 && m > 0)
        never_above((struct papers_row){PAPERS_BUILT, name, mesh->never}, own, m, at, n,
                    alike);
    if (n > 0 && m > 0 && apart > 0) {
        char band[32];
        snprintf(band, sizeof band, "%.1f times or more", apart);
        papers_why("each layer may then be split along other dimensions than the next, "
                   "which is what saves memory");
        papers_words((struct papers_row){mesh->kind, name, mesh->least},
                     gib_of(at[0]) >= apart * gib_of(own[0]), band,
                     "%.2f GiB at least, ours %.2f: %.2f times as much", gib_of(at[0]),
                     gib_of(own[0]), gib_of(at[0]) / gib_of(own[0]));
    }
    free(at);
    free(own);
    study_close(&theirs);
    study_close(&ours);
}

static void one_name(void)
{
    struct study s;
    struct study_ask a = ask_of("paper:wideresnet", 2);
    struct figure *at, data = plan_of("paper:wideresnet", 2, "data-parallel");
    a.algorithm = "mesh-tensorflow-tied";
    study_open(&s, &a);
    int n = study_frontier(&s, &at);
    papers_id("T11");
    papers_words((struct papers_row){PAPERS_BUILT, "WideResNet",
                                     "Mesh-TensorFlow is one point, data parallel"},
                 n == 1 && at[0].bytes == data.bytes && at[0].time_ns == data.time_ns,
                 "the same point",
                 "with one name for all channels, which is our reading, points: %d, %.2f "
                 "GiB and %.2f s; data parallel %.2f GiB and %.2f s",
                 n, n ? at[0].gib : 0, n ? at[0].seconds : 0, data.gib, data.seconds);
    free(at);
    study_close(&s);
}

/* Why one that is not much slower is not. */
static void both_compute(const struct figure *fastest, const struct figure *plan)
{
    static char why[128];
    snprintf(why, sizeof why,
             "computing, which neither spares, takes %.2f s of it and %.2f of our "
             "fastest; the network %.2f and %.2f",
             plan->compute, fastest->compute, plan->network, fastest->network);
    papers_why(why);
}

/* Of systems with one plan: where it stands beside the frontier. */
static void one_point(const struct curve *c, const char *model)
{
    struct figure fastest = plan_of(model, 2, "right-end"),
                  outputs = plan_of(model, 2, "optcnn"),
                  spread = plan_of(model, 2, "tofu"),
                  data = plan_of(model, 2, "data-parallel");
    const struct figure *low = &c->at[0], *right = &c->at[c->n - 1];
    struct study s;
    struct study_ask a = ask_of(model, 2);
    study_open(&s, &a);
    int faster = study_faster(&s, fastest.time_ns);
    study_close(&s);
    papers_id("T12");
    struct papers_row row = {
        PAPERS_BUILT, c->name,
        "who looks at time alone finds the right end of the frontier"};
    papers_words(row, fastest.time_ns == right->time_ns && !faster, "the same point",
                 "%.3f s with %.2f GiB; the frontier has %d faster points",
                 fastest.seconds, fastest.gib, faster);
    row.kind = PAPERS_ONE_SIDED;
    row.says = "OptCNN, which splits outputs alone, does";
    papers_why(
        "our fastest plan repeats the same work on both nodes, which spares the network; "
        "OptCNN's devices share the work");
    papers_words(row, outputs.seconds <= 1.05 * right->seconds, "at most 5 % slower",
                 "%.3f s with %.2f GiB, %+.0f %%", outputs.seconds, outputs.gib,
                 100 * (outputs.seconds / right->seconds - 1));
    papers_id("T15");
    row.says = "ToFu takes little memory and much time";
    both_compute(right, &spread);
    papers_words(row,
                 spread.gib < low->gib * 1.25 &&
                     spread.seconds >= (1 + PAPERS_TIMES) * right->seconds,
                 "at most a quarter more memory than ours at least, 25 % slower than our "
                 "fastest or more",
                 "%.2f GiB, ours from %.2f GiB; %.2f s, our fastest %.2f: %+.0f %%",
                 spread.gib, low->gib, spread.seconds, right->seconds,
                 100 * (spread.seconds / right->seconds - 1));
    papers_id("T9");
    row.says = "data parallel takes much memory and time";
    both_compute(right, &data);
    papers_words(
        row,
        data.gib > knee(c)->gib && data.seconds >= (1 + PAPERS_TIMES) * right->seconds,
        "more memory than at the turning point, 25 % slower than our fastest or more",
        "%.2f GiB; %.2f s, our fastest %.2f: %+.0f %%", data.gib, data.seconds,
        right->seconds, 100 * (data.seconds / right->seconds - 1));
}

static void figure6(void)
{
    static const struct {
        const char *model, *name;
        double apart; /* what the paper says of the least memory of two of them */
        int rises;    /* the one that it excepts of what computing does */
    } rows[] = {{"paper:transformer", "Transformer", 1.3, 0},
                {"paper:wideresnet", "WideResNet", 0, 1},
                {"paper:rnn", "RNN", 1.3, 0}};
    enum { ROWS = sizeof rows / sizeof *rows };
    struct curve c[ROWS];
    papers_head("TensorOpt, figure 6: frontiers on 16 GPUs");
    for (int i = 0; i < ROWS; i++) {
        struct study_ask a = ask_of(rows[i].model, 2);
        c[i] = curve_of(rows[i].name, &a);
        turning_point(&c[i]);
        reuse(&c[i]);
        computing(&c[i]);
        if (rows[i].rises)
            computing_rises(&c[i]);
        network(&c[i]);
        one_point(&c[i], rows[i].model);
        for (int k = 0; k < 2; k++)
            named_meshes(rows[i].model, rows[i].name, &meshes[k], rows[i].apart);
    }
    one_name();
    for (int i = 0; i < ROWS; i++)
        print_curve(&c[i]);
}

/* ---- figure 7 ---------------------------------------------------------------------------- */

static void model_sizes(void)
{
    static const int widths[] = {1536, 2048, 2560, 3072};
    struct curve c[4];
    char text[160] = "";
    int rises = 1;
    for (int i = 0; i < 4; i++) {
        struct study_ask a = ask_of("paper:transformer", 2);
        char name[32];
        a.width = widths[i];
        snprintf(name, sizeof name, "hidden size %d", widths[i]);
        c[i] = curve_of(name, &a);
        rises &= i == 0 || knee(&c[i])->gib > knee(&c[i - 1])->gib;
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%d: %.2f",
                 i ? ", " : "", widths[i], knee(&c[i])->gib);
    }
    papers_id("T18");
    papers_words((struct papers_row){PAPERS_ONE_SIDED, "7 (a), Transformer on 16 GPUs",
                                     "larger models turn at more memory"},
                 rises, "rises", "GiB by hidden size: %s", text);
}

static void networks(void)
{
    static const char *const hw[] = {"v100-dgx1-2x8-no-rdma", V100, "v100-dgx1-2x8-4x"};
    struct curve c[3];
    double low = 1e30, high = 0;
    for (int i = 0; i < 3; i++) {
        struct study_ask a = ask_of("paper:transformer", 2);
        a.hw = hw[i];
        c[i] = curve_of(hw[i], &a);
        low = fmin(low, knee(&c[i])->gib);
        high = fmax(high, knee(&c[i])->gib);
    }
    papers_id("T16");
    struct papers_row row = {PAPERS_ONE_SIDED, "7 (b), no RDMA, RDMA, 4x RDMA",
                             "memory at the turning point is almost identical"};
    papers_words(row, high <= 1.15 * low, "within 15 %", "%.2f, %.2f, %.2f GiB",
                 knee(&c[0])->gib, knee(&c[1])->gib, knee(&c[2])->gib);
    double ratio = knee(&c[2])->seconds / knee(&c[0])->seconds;
    row.kind =
        PAPERS_CALIBRATED; /* how much of both the network takes rests on the links */
    row.says = "4x RDMA takes half the time of no RDMA there";
    papers_ratio(row, ratio, 0.5, "%.2f and %.2f s: %.2f of it", knee(&c[2])->seconds,
                 knee(&c[0])->seconds, ratio);
}

static void buses(void)
{
    struct study s;
    struct study_ask a = ask_of("paper:transformer", 1);
    const int64_t bytes = (int64_t)12 << 30;
    study_open(&s, &a);
    struct figure nvlink = study_fastest(&s, bytes);
    study_close(&s);
    a.hw = "v100-pcie-1x8";
    study_open(&s, &a);
    struct figure pcie = study_fastest(&s, bytes);
    study_close(&s);
    double ratio = pcie.seconds / nvlink.seconds;
    papers_id("T17");
    papers_words(
        (struct papers_row){PAPERS_ONE_SIDED, "7 (c), 8 GPUs, PCIe a twentieth of NVLink",
                            "NVLink reduces the time significantly at the same memory"},
        ratio >= 1.5, "1.5 times as long or more",
        "with 12 GiB %.2f s instead of %.2f: %.1f times as long", pcie.seconds,
        nvlink.seconds, ratio);
}

static void figure7(void)
{
    papers_head("TensorOpt, figure 7: what the frontier depends on");
    model_sizes();
    networks();
    buses();
}

/* ---- table 3 ----------------------------------------------------------------------------- */

/* Pairs of points that the paper's search adds up for a frontier; 0: it did not finish. */
static double pairs(const char *model, const char *algorithm)
{
    struct topt_error err = {0};
    struct topt_request r;
    json_t *doc = NULL;
    struct study s;
    struct study_ask a = ask_of(model, 2);
    a.rows = 1;
    study_open(&s, &a);
    r = s.r;
    r.algorithm = algorithm;
    r.factors = 0;
    double n =
        topt_plan_frontier(&r, &doc, &err) || !json_is_true(json_object_get(doc, "exact"))
            ? 0
            : json_number_value(
                  json_object_get(json_object_get(doc, "stats"), "products"));
    json_decref(doc);
    study_close(&s);
    return n;
}

/* Seconds of theirs, pairs of ours, so that the sentence is ours; search_tables.sh has the other models. */
static void table3(void)
{
    static const double ldp = 0.28,
                        elimination = 1.78; /* seconds of the RNN, as printed */
    char says[128];
    double plain = pairs("paper:rnn", "ft-plain"),
           all = pairs("paper:rnn", "ft-elimination"), ours = pairs("paper:rnn", "ft");
    papers_head("TensorOpt, table 3: the search of 16 GPUs");
    papers_id("T8");
    snprintf(says, sizeof says,
             "FT-Elimination %.2f s, FT-LDP %.2f s: %.1f times, as pairs of points that "
             "are added up",
             elimination, ldp, elimination / ldp);
    papers_why(
        "it prints seconds, which hold more than pairs; how much more is not known");
    papers_ratio((struct papers_row){PAPERS_REWRITTEN, "RNN", says}, all / plain,
                 elimination / ldp,
                 "%.0f and %.0f pairs: %.1f times; `ft`, our search, %.0f", all, plain,
                 all / plain, ours);
    papers_words((struct papers_row){PAPERS_REWRITTEN, "RNN",
                                     "FT-LDP has significantly shorter running time, "
                                     "as pairs of points"},
                 all >= 5 * plain, "a fifth of the pairs or fewer", "%.1f times fewer",
                 all / plain);
}

/* ---- figure 8 ---------------------------------------------------------------------------- */

static void parallelism(const char *model, const char *name)
{
    struct study s;
    struct study_ask a = ask_of(model, 1);
    struct figure data = plan_of(model, 1, "data-parallel"),
                  optcnn = plan_of(model, 1, "optcnn");
    study_open(&s, &a);
    struct figure eight = study_fastest(&s, LIMIT), least = study_least(&s);
    study_close(&s);
    a = ask_of(model, 2);
    study_open(&s, &a);
    struct figure sixteen = study_fastest(&s, LIMIT);
    study_close(&s);
    struct figure data16 = plan_of(model, 2, "data-parallel"),
                  optcnn16 = plan_of(model, 2, "optcnn"),
                  tofu8 = plan_of(model, 1, "tofu"), tofu = plan_of(model, 2, "tofu");
    papers_id("T13");
    struct papers_row row = {PAPERS_ONE_SIDED, name,
                             "8 GPUs of 16 GB can't run data parallel"};
    papers_words(row, data.bytes > LIMIT,
                 "more than the 14.5 GiB that TensorOpt plans with", "%.2f GiB",
                 data.gib);
    row.says = "nor OptCNN";
    papers_words(row, optcnn.bytes > LIMIT, "more than 14.5 GiB", "%.2f GiB", optcnn.gib);
    row.says = "but TensorOpt";
    papers_words(row, eight.found, "14.5 GiB or less", "from %.2f GiB", least.gib);
    row.says = "16 GPUs run all of them";
    papers_words(row, data16.bytes <= LIMIT && optcnn16.bytes <= LIMIT && sixteen.found,
                 "14.5 GiB or less", "data parallel %.2f GiB, OptCNN %.2f GiB",
                 data16.gib, optcnn16.gib);
    double ratio = eight.found ? sixteen.seconds / eight.seconds : 0;
    papers_id("T14");
    row.says = "16 GPUs are only marginally faster than 8";
    char why[160];
    snprintf(
        why, sizeof why,
        "computing takes %.2f s instead of %.2f, and the network %.2f instead of %.2f",
        sixteen.compute, eight.compute, sixteen.network, eight.network);
    papers_why(why);
    papers_words(row, ratio >= 0.8 && ratio < 1, "0.8 to 1 of the time",
                 "%.3f s instead of %.3f: %.3f of it", sixteen.seconds, eight.seconds,
                 ratio);
    papers_id("T15");
    row.says = "ToFu is slower with 16 GPUs than with 8";
    papers_why(
        "what 16 gather over the network takes less than the computing that they are "
        "spared");
    papers_words(row, tofu.seconds > tofu8.seconds, "slower", "%.2f s, and %.2f s with 8",
                 tofu.seconds, tofu8.seconds);
}

static void figure8(void)
{
    papers_head("TensorOpt, figure 8: parallelism");
    parallelism("paper:wideresnet", "WideResNet");
    parallelism("paper:transformer", "Transformer");
}

/* ---- table 4 ----------------------------------------------------------------------------- */

static const char CONVOLUTIONS[] =
    "convolutions are priced as products of short sums; cuDNN has other algorithms for "
    "them";

/* The profile's links were set by its data parallel and mini-time rows. */
enum { FITTED = 3 };
static const struct fitted {
    const char *model, *name;
    double ours, data, horovod;      /* seconds, as printed */
    const char *why_ours, *why_data; /* where they do not come out */
} fitted[FITTED] = {
    {"paper:vgg16", "VGG16", 0.10, 0.16, 0.15, CONVOLUTIONS, CONVOLUTIONS},
    {"paper:wideresnet", "WideResNet", 1.99, 2.89, 2.80,
     "most of both is computing at the profile's rates, which no plan spares", NULL},
    {"paper:transformer-s", "Transformer-S", 1.16, 1.18, 1.04,
     "our fastest plan repeats the same work on both nodes, which spares the network "
     "more "
     "than it costs in computing",
     NULL}};
static struct {
    struct figure ours, data;
} of_table4[FITTED];

static void solve_table4(void)
{
    for (int i = 0; i < FITTED; i++) {
        struct study s;
        struct study_ask a = ask_of(fitted[i].model, 2);
        study_open(&s, &a);
        of_table4[i].ours = study_fastest(&s, LIMIT);
        study_close(&s);
        of_table4[i].data = plan_of(fitted[i].model, 2, "data-parallel");
    }
}

/* One time of table 4: within the band?  Beside it how far it is off, in percent. */
static int fits(double seconds, double printed, double *ret_off)
{
    *ret_off = 100 * (seconds / printed - 1);
    return fabs(seconds / printed - 1) <= PAPERS_TIMES;
}

/* A time of the table that was calibrated, beside ours. */
static void printed_time(const struct fitted *f, const char *what, double printed,
                         double seconds)
{
    char says[96];
    double off;
    fits(seconds, printed, &off);
    snprintf(says, sizeof says, "%s %.2f s", what, printed);
    papers_near((struct papers_row){PAPERS_CALIBRATED, f->name, says}, seconds, printed,
                PAPERS_TIMES, "%.2f s, %+.0f %%", seconds, off);
}

static void mini_time(const struct fitted *f, const struct figure *ours,
                      const struct figure *data)
{
    char says[96], why[256];
    double ratio = ours->seconds / data->seconds;
    struct papers_row row = {PAPERS_CALIBRATED, f->name, says};
    papers_id("T19");
    snprintf(why, sizeof why, "computing alone takes %.2f s of the %.2f: %s",
             ours->compute, ours->seconds, f->why_ours);
    papers_why(why);
    printed_time(f, "mini-time", f->ours, ours->seconds);
    snprintf(why, sizeof why,
             "computing takes %.2f s of mini-time and %.2f of data parallel: %s",
             ours->compute, data->compute, f->why_ours);
    papers_why(why);
    snprintf(says, sizeof says, "mini-time %.2f s, data parallel %.2f s: %.2f of it",
             f->ours, f->data, f->ours / f->data);
    papers_ratio(row, ratio, f->ours / f->data, "%.2f s, %.2f s: %.2f of it",
                 ours->seconds, data->seconds, ratio);
    if (f->why_data) {
        snprintf(why, sizeof why, "computing alone takes %.2f s of the %.2f: %s",
                 data->compute, data->seconds, f->why_data);
        papers_why(why);
    }
    printed_time(f, "data parallel", f->data, data->seconds);
}

static void horovod(const struct fitted *f, const struct figure *data)
{
    char says[96];
    double printed = f->horovod / f->data;
    struct papers_row row = {PAPERS_REWRITTEN, f->name, says};
    papers_id("T20");
    papers_why("buckets go behind backward, and what they are compared with does not; in "
               "the next row both do");
    snprintf(says, sizeof says, "Horovod %.2f s, data parallel %.2f s: %.2f of it",
             f->horovod, f->data, printed);
    papers_ratio(row, data->fused / data->seconds, printed, "%.3f s, %.3f s: %.3f of it",
                 data->fused, data->seconds, data->fused / data->seconds);
    papers_why("a bucket waits for its last gradient, which takes longer here than fewer "
               "collectives save");
    snprintf(says, sizeof says,
             "the same, of data parallel whose gradients go one by one behind backward");
    papers_ratio(row, data->fused / data->apart, printed, "%.3f s, %.3f s: %.3f of it",
                 data->fused, data->apart, data->fused / data->apart);
}

static void table4(void)
{
    papers_head("TensorOpt, table 4: 16 GPUs against Horovod");
    for (int i = 0; i < FITTED; i++) {
        mini_time(&fitted[i], &of_table4[i].ours, &of_table4[i].data);
        horovod(&fitted[i], &of_table4[i].data);
    }
}

/* Which of the times that links were set by come out, and which do not. */
static void misfits_said(void)
{
    char not [256] = "";
    int n = 0;
    for (int i = 0; i < FITTED; i++) {
        const struct {
            const char *what;
            double seconds, printed;
        } rows[] = {{"mini-time", of_table4[i].ours.seconds, fitted[i].ours},
                    {"data parallel", of_table4[i].data.seconds, fitted[i].data}};
        for (int k = 0; k < 2; k++) {
            double off;
            if (!fits(rows[k].seconds, rows[k].printed, &off))
                snprintf(not +strlen(not ), sizeof not -strlen(not ),
                         "%s %s's %s (%+.0f %%)", n++ ? "," : "", fitted[i].name,
                         rows[k].what, off);
        }
    }
    printf("%d of these %d\ntimes are within 25 %% of the printed ones", 2 * FITTED - n,
           2 * FITTED);
    if (n)
        printf(", %d are not:%s", n, not );
    printf(".\n");
}

/* ---- the fewest GPUs --------------------------------------------------------------------- */

/* Powers of two, in the paper's shapes: full nodes where there are several. */
static int fewest(const char *model, double *ret_fewer)
{
    *ret_fewer = 0;
    for (int gpus = 1; gpus <= 16; gpus *= 2) {
        struct study s;
        struct study_ask a = ask_of(model, gpus > 8 ? gpus / 8 : 1);
        a.per_node = gpus > 8 ? 8 : gpus;
        study_open(&s, &a);
        struct figure least = study_least(&s);
        study_close(&s);
        if (least.found && least.bytes <= LIMIT)
            return gpus;
        *ret_fewer = least.gib;
    }
    return 0;
}

static void mini_parallelism(void)
{
    static const struct {
        const char *model, *name;
        int gpus;
    } rows[] = {{"paper:rnn", "RNN", 16},
                {"paper:transformer", "Transformer", 8},
                {"paper:vgg16", "VGG16", 4}};
    papers_head("The fewest GPUs of 16 GB, of 1, 2, 4, 8 and 16");
    papers_id("T24");
    for (int i = 0; i < 3; i++) {
        char says[64];
        double fewer;
        int gpus = fewest(rows[i].model, &fewer);
        snprintf(says, sizeof says, "%d, by the sizes of its table 1", rows[i].gpus);
        papers_words((struct papers_row){PAPERS_REWRITTEN, rows[i].name, says},
                     gpus == rows[i].gpus, "the same number",
                     "%d: %d GPUs would need %.2f GiB; %.1f are allowed", gpus, gpus / 2,
                     fewer, (double)LIMIT / (1 << 30));
    }
}

/* ---- the document ------------------------------------------------------------------------- */

static const char opening[] =
    "# The papers' figures, and what comes out here\n"
    "\n"
    "Written by one command; what only tests show is named, not run, by it:\n"
    "\n"
    "    cmake --build --preset release --target papers_figures\n"
    "    build/release/tests/papers_figures >papers.md && mv papers.md docs/PAPERS.md\n"
    "\n"
    "TensorOpt is Cai et al., \"TensorOpt: Exploring the Tradeoffs in Distributed DNN\n"
    "Training with Auto-Parallelism\", 2020. Its models are made by name\n"
    "(`paper:transformer`), its cluster is the profile `v100-dgx1-2x8` and those made "
    "from\n"
    "it, memory is counted as it does (`--accounting paper-reuse`: parameters, outputs "
    "twice,\n"
    "and copies of them that are kept in another layout). What other systems choose is\n"
    "searched in the same space under the same costs (`--algorithm`, `topt compare`;\n"
    "FlexFlow's walk alone has costs of its own simulation;\n"
    "[FORMATS](FORMATS.md) says what each leaves out).\n"
    "\n"
    "**One rule for all verdicts.** A claim stands with the number that the paper "
    "prints, the "
    "band\n"
    "stands beside it, and the verdict is yes only inside the band. Bands of printed "
    "numbers "
    "are the\n"
    "same everywhere: 2 % of sizes, 25 % of times and of their ratios, or the range "
    "itself "
    "where the\n"
    "paper prints a range. A ratio also has to be on the same side of 1 as the paper's. "
    "The band of a\n"
    "claim in words is our reading of them. Only claims whose number the paper "
    "prints are\n"
    "counted, and only where nothing here was fitted to them; all others say in brackets "
    "what they are\n"
    "(see The verdicts). Behind a no stands why, as far as it is known; some have a row "
    "below with the\n"
    "cause switched off.\n";

/* The numbers of the profile that this paper gave it. */
static void calibration_said(void)
{
    struct topt_error err = {0};
    struct topt_hw *hw = topt_hw_load(V100, &err);
    json_t *doc = hw ? topt_hw_to_json(hw) : NULL;
    const json_t *links = json_object_get(doc, "links"), *pair;
    size_t i;
    printf("\n**What was calibrated.** The paper does not print the speed of its links. "
           "Those "
           "of\n`%s` were set by the times of data parallel and mini-time in its table "
           "4:\n",
           V100);
    json_array_foreach(json_object_get(json_array_get(links, 0), "by_group"), i, pair)
        printf("%s%.0f", i ? ", " : "", json_number_value(json_array_get(pair, 1)) / 1e9);
    printf(" GB/s for");
    json_array_foreach(json_object_get(json_array_get(links, 0), "by_group"), i, pair)
        printf("%s %d", i ? "," : "", (int)json_number_value(json_array_get(pair, 0)));
    printf(
        " GPUs of a node (the last as measured), %.1f GB/s between nodes. Rates of\n"
        "products came after, by shape, from measurements of others. ",
        json_number_value(json_object_get(json_array_get(links, 1), "bytes_per_second")) /
            1e9);
    misfits_said();
    printf("`v100-dgx1-2x8-no-rdma` has half of what goes between nodes, "
           "`v100-dgx1-2x8-4x` four times,\nas the paper says; `v100-pcie-1x8` was "
           "measured. So table 4 is no test of these times, and no\nother time on this "
           "cluster is quite independent of it: none is counted. The layers of three of "
           "its\nmodels were made so that table 1's sizes come out, and what counts as "
           "memory was read from that table.\n");
    json_decref(doc);
    topt_hw_destroy(hw);
}

static const char closing[] =
    "\n"
    "## Why what differs does\n"
    "\n"
    "- **Horovod.** Here data parallel waits for each collective, as our runtime does;\n"
    "  TensorFlow, on which the paper's rows ran, reduces gradients while backward goes\n"
    "  on. So what buckets behind backward save here both had there, which is what the "
    "row "
    "below it\n"
    "  compares.\n"
    "- **All devices may do the same.** Strategies that do the same work on both nodes "
    "and\n"
    "  split it within each are part of the space, and the fastest where the network is\n"
    "  slow: computing rises along the frontier where they come in. The paper saw that "
    "of\n"
    "  WideResNet only, and there where memory is short. They make mini-time faster "
    "against\n"
    "  data parallel than printed (Transformer-S), 16 GPUs no faster than 8 "
    "(Transformer),\n"
    "  and OptCNN, whose devices share the work, slower than the right end there.\n"
    "- **Tensor reuse.** An output that its consumer reads in another layout is moved. "
    "What\n"
    "  backward reads of it is kept in that layout, beside the producer's copy, or "
    "moved\n"
    "  again: memory for time, as in the paper. The last column of the frontiers is "
    "what\n"
    "  moving again takes. The rest of the fall are layouts that store less and move "
    "more "
    "in\n"
    "  forward, too.\n"
    "- **ToFu** is simulated as the paper says, without replication, but the paper does "
    "not\n"
    "  say which such strategy is taken; here it is the fastest. A sum that is due "
    "counts as\n"
    "  stored, and whole, in the paper's memory, so that no contraction is split here; "
    "with\n"
    "  memory as a run needs it, partial sums are reduced on their way. Parameters are\n"
    "  gathered before use, which `ft` leaves out with this accounting (`--factors "
    "zero`\n"
    "  lets it), so that ToFu may need less. With images the batch is split on both "
    "nodes,\n"
    "  and what is gathered over the network is less than what is computed in half the "
    "time.\n"
    "- **Unlike devices.** No paper claims anything on shares of unlike GPUs; our tests "
    "of them are the\n"
    "  last two rows below.\n"
    "- **RNN.** What is computed, weights read again at each of 64 steps, is most of "
    "its\n"
    "  time, and splitting everything 16 ways is nearly the fastest: the frontier is "
    "flat.\n"
    "- **The space.** `papers_figures full` takes longer, with what the canonical space\n"
    "  leaves out; `--alike` lets repeated blocks choose alike, with fewer points.\n";

static void space_said(void)
{
    printf("\nEverything below is of the space `%s`%s%s.\n", topt_space_name(space),
           blocks == TOPT_BLOCKS_ALIKE ? ", repeated blocks choosing alike"
                                       : ", every block choosing freely",
           rows_split ? "" : "; images are split by samples and channels, not by rows");
}

int main(int argc, char **argv)
{
    struct topt_error err = {0};
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--systems")) { /* their part alone */
            papers_flexflow();
            papers_systems();
            papers_flexflow_why();
            papers_systems_why();
            return papers_unexplained() > 0;
        }
        if (!strcmp(argv[i], "--alike")) {
            blocks = TOPT_BLOCKS_ALIKE;
        } else if (!strcmp(argv[i], "--rows")) {
            rows_split = 1;
        } else if (topt_space_parse(argv[i], &space, &err)) {
            fprintf(stderr, "usage: papers_figures [full|canonical] [--alike] [--rows] | "
                            "--systems\n");
            return 2;
        }
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    fputs(opening, stdout);
    solve_table4();
    calibration_said();
    space_said();
    table1();
    figure6();
    figure7();
    figure8();
    table3();
    table4();
    mini_parallelism();
    papers_flexflow();
    papers_systems();
    papers_kinds_said();
    fputs(closing, stdout);
    papers_flexflow_why();
    papers_systems_why();
    papers_index();
    return papers_unexplained() > 0;
}
