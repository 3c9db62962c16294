/* papers_systems.c - AccPar, HyPar and Parallax: what their papers print, and what the searches
 * of solver/systems find.
 *
 * What is exact (tables, bytes, dynamic programs) is tested (tests/systems); here are the
 * speed-ups, which rest on rates that the papers do not all print. */
#include "papers_systems.h"
#include "papers_claim.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topt_accpar.h"
#include "topt_hw.h"
#include "topt_parallax.h"

/* ---- AccPar ----------------------------------------------------------------------------- */

enum { MOST_NETS = 16 };

/* Times as fast as data parallelism. */
enum { SYSTEMS = TOPT_ACCPAR_BY_FLOPS + 1 };
struct speedups {
    int n;
    const char *net[MOST_NETS];
    double of[MOST_NETS][SYSTEMS];
};

static void must(int rc, const struct topt_error *err)
{
    if (rc) {
        fprintf(stderr, "papers_figures: %s\n", err->text);
        exit(1);
    }
}

static struct speedups solve_speedups(const char *group, int one_link)
{
    struct speedups r = {0};
    struct topt_accpar_boards boards[TOPT_ACCPAR_KINDS];
    struct topt_error err = {0};
    struct topt_hw *hw = topt_hw_load("tpu-v2-v3", &err);
    int kinds = 0;
    double bytes;
    must(!hw || topt_accpar_boards(hw, group, boards, &kinds, &bytes, &err), &err);
    topt_hw_destroy(hw);
    for (int k = 0; k < kinds; k++)
        boards[k].one_link = one_link;
    for (const char *const *name = topt_accpar_nets(); *name; name++, r.n++) {
        struct topt_accpar_net net;
        double seconds[SYSTEMS];
        r.net[r.n] = *name;
        must(topt_accpar_net(*name, 512, &net, &err), &err);
        for (int s = 0; s < SYSTEMS; s++) {
            struct topt_accpar_answer a;
            must(topt_accpar_solve(&net, boards, kinds, bytes, (enum topt_accpar_system)s,
                                   &a, &err),
                 &err);
            seconds[s] = a.seconds;
            r.of[r.n][s] = seconds[0] / seconds[s];
        }
    }
    return r;
}

/* Several rows ask of the same. */
static const struct speedups *speedups(const char *group, int one_link)
{
    static struct speedups solved[2][2];
    struct speedups *r = &solved[group != NULL][one_link];
    if (!r->n)
        *r = solve_speedups(group, one_link);
    return r;
}

/* Geometric mean over networks whose name begins so. */
static double mean(const struct speedups *r, enum topt_accpar_system system,
                   const char *begins)
{
    double sum = 0;
    int n = 0;
    for (int i = 0; i < r->n; i++)
        if (!strncmp(r->net[i], begins, strlen(begins))) {
            sum += log(r->of[i][system]);
            n++;
        }
    return exp(sum / n);
}

static const struct array {
    const char *where, *group;
    double hypar, accpar; /* as printed, over data parallelism */
} arrays[] = {{"128 TPU v3", "tpu-v3", 3.51, 3.86},
              {"128 TPU v2 and 128 TPU v3", NULL, 3.78, 6.30}};

/* What its paper leaves open, and what each choice comes to: boards have links of their own, or a
 * group has one; and with one link AccPar's shares see the exchange, or computing alone. */
static const struct reading {
    const char *said;
    int one_link;
    enum topt_accpar_system accpar;
} readings[] = {
    {"", 0, TOPT_ACCPAR_ACCPAR},
    {", where a group has one link", 1, TOPT_ACCPAR_ACCPAR},
    {", where a group has one link and shares are by computing alone", 1,
     TOPT_ACCPAR_BY_FLOPS},
};
enum { READINGS = sizeof readings / sizeof *readings };

/* Why AccPar's figure, or HyPar's, is outside its band by one reading. */
static const char *why_outside(const struct array *a, const struct reading *way,
                               int shares)
{
    if (way->one_link)
        return "shares that see the exchange leave TPU v2 little or nothing to do; in "
               "the next rows they do not see it";
    if (a->group || !shares)
        return "exchange is nearly all of a step, and each board has a link of its own; "
               "in the next rows a group has one";
    return "two causes at once: each board has a link of its own, and shares see the "
           "exchange; the next rows have the first switched off, those after them both";
}

/* The printed means, and their ratio, by one reading; boards that are alike share by halves in any. */
static void means(const struct array *a, const struct reading *way)
{
    const struct speedups *r = speedups(a->group, way->one_link);
    double hypar = mean(r, TOPT_ACCPAR_HYPAR, ""), accpar = mean(r, way->accpar, "");
    int again = way->accpar == TOPT_ACCPAR_BY_FLOPS; /* of HyPar as in the row above */
    const struct {
        const char *what;
        double printed, value;
        enum papers_kind kind;
    } rows[] = {
        {"HyPar", a->hypar, hypar, PAPERS_COUNTED},
        {"AccPar", a->accpar, accpar, PAPERS_COUNTED},
        {"AccPar over HyPar", a->accpar / a->hypar, accpar / hypar, PAPERS_REWRITTEN}};
    for (int i = again; i < 3; i++) {
        char says[160];
        snprintf(says, sizeof says, "%s %.2f (geometric means)%s", rows[i].what,
                 rows[i].printed, way->said);
        papers_why(why_outside(a, way, i > 0));
        papers_ratio((struct papers_row){way->one_link ? PAPERS_REWRITTEN : rows[i].kind,
                                         a->where, says},
                     rows[i].value, rows[i].printed, "%.2f", rows[i].value);
    }
}

/* AccPar of unequal boards over equal ones, a ratio of two printed figures. */
static void unequal_over_equal(void)
{
    double gain[READINGS][2];
    for (int i = 0; i < READINGS; i++)
        for (int k = 0; k < 2; k++) {
            const struct speedups *r = speedups(arrays[k].group, readings[i].one_link);
            gain[i][k] = mean(r, readings[i].accpar, "");
        }
    for (int i = 0; i < READINGS; i++) {
        static const char *const inside[] = {"neither is", "one is", "both are"};
        char says[160], why[96];
        int n = 0;
        for (int k = 0; k < 2; k++)
            n += fabs(gain[i][k] / arrays[k].accpar - 1) <= PAPERS_TIMES;
        snprintf(says, sizeof says,
                 "AccPar of unequal boards over equal ones: %.2f / %.2f%s",
                 arrays[1].accpar, arrays[0].accpar, readings[i].said);
        snprintf(why, sizeof why,
                 "with one link a group neither rule of shares is inside: %.2f, %.2f",
                 gain[1][1] / gain[1][0], gain[2][1] / gain[2][0]);
        papers_why(why);
        papers_ratio((struct papers_row){PAPERS_REWRITTEN, "both", says},
                     gain[i][1] / gain[i][0], arrays[1].accpar / arrays[0].accpar,
                     "%.2f / %.2f = %.2f, of which %s inside the band of its row",
                     gain[i][1], gain[i][0], gain[i][1] / gain[i][0], inside[n]);
    }
}

static void accpar(void)
{
    double vgg[2], resnet[2];
    papers_head(
        "AccPar and HyPar: speed-up over data parallelism, 8 networks, 512 images");
    for (int i = 0; i < 2; i++) {
        const struct speedups *r = speedups(arrays[i].group, 0);
        double owt = mean(r, TOPT_ACCPAR_OWT, ""), hypar = mean(r, TOPT_ACCPAR_HYPAR, "");
        double gain = mean(r, TOPT_ACCPAR_ACCPAR, "");
        vgg[i] = mean(r, TOPT_ACCPAR_ACCPAR, "vgg");
        resnet[i] = mean(r, TOPT_ACCPAR_ACCPAR, "resnet");
        papers_id("A5");
        for (int k = 0; k < (arrays[i].group ? READINGS - 1 : READINGS); k++)
            means(&arrays[i], &readings[k]);
        papers_id("A4");
        papers_words((struct papers_row){PAPERS_ONE_SIDED, arrays[i].where,
                                         "data parallelism, one weird trick, HyPar, "
                                         "AccPar: each faster"},
                     1 <= owt && owt <= hypar && hypar <= gain, "the order",
                     "1, %.2f, %.2f, %.2f", owt, hypar, gain);
    }
    papers_id("A6");
    papers_words(
        (struct papers_row){PAPERS_ONE_SIDED, "both", "VGG gains more than ResNet"},
        vgg[0] > resnet[0] && vgg[1] > resnet[1], "more",
        "VGG %.1f and ResNet %.1f of equal boards, VGG %.1f and ResNet %.1f of unequal "
        "ones",
        vgg[0], resnet[0], vgg[1], resnet[1]);
    unequal_over_equal();
}

/* ---- Parallax --------------------------------------------------------------------------- */

struct printed {
    double ar, naive, opt, hybrid; /* tables 1 and 4 */
};

static double speed(const struct topt_parallax_model *m, enum topt_parallax_system s)
{
    return topt_parallax_throughput(m, topt_parallax_titanxp(), s, NULL);
}

/* Computing is what figure 9 and table 1 imply, servers what table 2 does. */
static void ratio(const char *where, const char *what, double value, double printed,
                  const char *why)
{
    char says[160];
    snprintf(says, sizeof says, "%s: %.2f times as fast", what, printed);
    papers_why(why);
    papers_ratio((struct papers_row){PAPERS_CALIBRATED, where, says}, value, printed,
                 "%.2f", value);
}

/* Seconds of a step that are not computing. */
static double exchange(const struct topt_parallax_model *m, enum topt_parallax_system s)
{
    const struct topt_parallax_cluster *c = topt_parallax_titanxp();
    return m->samples * c->machines * c->workers / speed(m, s) - m->compute;
}

/* All images go by rings, and by servers: the two ends of how much goes beside computing. */
static void images(const struct topt_parallax_model *m, const struct printed *p)
{
    char why[160];
    double ar = speed(m, TOPT_PARALLAX_AR), naive = speed(m, TOPT_PARALLAX_NAIVE);
    snprintf(why, sizeof why,
             "nothing overlaps here; were all of it beside computing, %.2f",
             fmax(exchange(m, TOPT_PARALLAX_NAIVE), m->compute) /
                 fmax(exchange(m, TOPT_PARALLAX_AR), m->compute));
    papers_id("P3");
    ratio(m->name, "all-reduce over servers (table 1)", ar / naive, p->ar / p->naive,
          why);
}

/* Which of both sides is off, and which way; their rates stand beside those that are printed. */
static void rates_said(char *why, size_t size, const double value[2],
                       const double printed[2], const char *cause)
{
    snprintf(why, size,
             "%.0fk words a second over %.0fk, in the paper %.0fk over %.0fk: %s",
             value[0] / 1e3, value[1] / 1e3, printed[0] / 1e3, printed[1] / 1e3, cause);
}

/* Returns what the hybrid gains over servers that aggregate. */
static double words(const struct topt_parallax_model *m, const struct printed *p)
{
    char why[320];
    double ar = speed(m, TOPT_PARALLAX_AR), naive = speed(m, TOPT_PARALLAX_NAIVE),
           opt = speed(m, TOPT_PARALLAX_OPT), hybrid = speed(m, TOPT_PARALLAX_HYBRID),
           rates = speed(m, TOPT_PARALLAX_RATES);
    int fast = naive > p->naive;
    papers_id("P3");
    rates_said(why, sizeof why, (double[]){naive, ar}, (double[]){p->naive, p->ar},
               "servers take nothing but bytes and the adding up of rows here");
    ratio(m->name, "servers over all-reduce (table 4)", naive / ar, p->naive / p->ar,
          why);
    papers_id("P4");
    rates_said(why, sizeof why, (double[]){opt, naive}, (double[]){p->opt, p->naive},
               fast
                   ? "servers that do not aggregate are too fast here, which leaves "
                     "aggregating little to gain; what else the paper's take is not known"
                   : "servers that do not aggregate move what is dense once for each "
                     "worker here, so that aggregating gains nearly all of it; what else "
                     "bounds the paper's is not known");
    ratio(m->name, "aggregating servers over servers (table 4)", opt / naive,
          p->opt / p->naive, why);
    ratio(m->name, "the hybrid over aggregating servers (table 4)", hybrid / opt,
          p->hybrid / p->opt,
          "sparse variables stay on servers; in the next row bytes decide");
    ratio(m->name,
          "the same, where bytes over rates choose servers or rings for sparse variables",
          rates / opt, p->hybrid / p->opt, NULL);
    papers_words((struct papers_row){PAPERS_CALIBRATED, m->name,
                                     "all-reduce, servers, aggregating servers, "
                                     "hybrid: each faster"},
                 ar < naive && naive < opt && opt < hybrid, "the order",
                 "%.1fk, %.1fk, %.0fk, %.0fk words a second", ar / 1e3, naive / 1e3,
                 opt / 1e3, hybrid / 1e3);
    return hybrid / opt;
}

/* Where nothing is sparse the hybrid is all-reduce. */
static void no_slower(const struct topt_parallax_model *m)
{
    double best = fmax(speed(m, TOPT_PARALLAX_AR), speed(m, TOPT_PARALLAX_NAIVE)),
           hybrid = speed(m, TOPT_PARALLAX_HYBRID);
    papers_id("P8");
    papers_words((struct papers_row){PAPERS_CALIBRATED, m->name,
                                     "Parallax is no slower than either on 48 GPUs"},
                 hybrid >= 0.97 * best, "0.97 or more", "%.2f times the faster one",
                 hybrid / best);
}

/* Table 6: a language model with a smaller vocabulary; how small is not printed: as many sparse
 * elements as dense ones. */
static void table6(const struct topt_parallax_model *lm)
{
    static const struct {
        int length;
        double alpha, speedup;
    } rows[] = {{120, 1.0, 2.04}, {60, 0.52, 2.33}, {30, 0.28, 2.43}, {15, 0.16, 2.89},
                {8, 0.1, 3.02},   {4, 0.07, 3.03},  {1, 0.04, 3.42}};
    enum { ROWS = sizeof rows / sizeof *rows };
    double before = 0;
    char all[96] = "";
    int rises = 1;
    papers_id("P7");
    for (int i = 0; i < ROWS; i++) {
        struct topt_parallax_model m = *lm;
        char what[64], why[96];
        m.sparse = m.dense;
        m.alpha = rows[i].alpha;
        m.samples = 128. * rows[i].length;
        m.compute = lm->compute * m.samples / lm->samples;
        snprintf(what, sizeof what, "alpha %.2f, the hybrid over servers (table 6)",
                 m.alpha);
        double naive = speed(&m, TOPT_PARALLAX_NAIVE),
               gain = speed(&m, TOPT_PARALLAX_HYBRID) / naive;
        snprintf(why, sizeof why,
                 "what is sparse stays on servers below alpha 1; where bytes decide %.2f",
                 speed(&m, TOPT_PARALLAX_RATES) / naive);
        ratio("LM, fewer words", what, gain, rows[i].speedup, why);
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%.2f", i ? ", " : "",
                 gain);
        rises &= gain > before;
        before = gain;
    }
    papers_why("at alpha 1 alone what is sparse goes by rings, which here are faster");
    papers_words((struct papers_row){PAPERS_CALIBRATED, "LM, fewer words",
                                     "the fewer words, the more the hybrid gains, the "
                                     "most of all where alpha is least"},
                 rises, "rises from row to row", "%s", all);
}

/* Words or images a second; 0: not there. */
static const struct printed printed[] = {
    {7600, 5800, 0, 0},
    {5900, 3800, 0, 0},
    {45500, 98900, 250000, 274000},
    {68300, 102000, 116000, 204000},
};

static void parallax(void)
{
    int n;
    const struct topt_parallax_model *m = topt_parallax_models(&n);
    papers_head("Parallax: 8 machines of 6 TITAN Xp");
    double gain[4];
    for (int i = 0; i < n && i < 4; i++) {
        gain[i] = 0;
        if (m[i].sparse > 0)
            gain[i] = words(&m[i], &printed[i]);
        else
            images(&m[i], &printed[i]);
        no_slower(&m[i]);
    }
    papers_id("P4");
    papers_words(
        (struct papers_row){PAPERS_CALIBRATED, "LM and NMT",
                            "the hybrid gains more for NMT than for LM (table 4)"},
        gain[3] > gain[2], "more", "%.2f and %.2f", gain[3], gain[2]);
    table6(&m[2]);
}

void papers_systems(void)
{
    accpar();
    parallax();
}

/* What they say beside the tables, for the end of the document. */
void papers_systems_why(void)
{
    int n;
    const struct topt_parallax_model *lm = &topt_parallax_models(&n)[2];
    double words = lm->samples * topt_parallax_titanxp()->machines *
                   topt_parallax_titanxp()->workers;
    struct topt_accpar_boards b[TOPT_ACCPAR_KINDS];
    struct topt_error err = {0};
    struct topt_hw *hw = topt_hw_load("tpu-v2-v3", &err);
    int kinds;
    double bytes;
    must(!hw || topt_accpar_boards(hw, NULL, b, &kinds, &bytes, &err), &err);
    topt_hw_destroy(hw);
    printf("- **AccPar.** By links of %.0f and %.0f Gb/s exchange is nearly all of a "
           "step, so that speed-ups "
           "are\n"
           "  ratios of what is exchanged, whatever boards compute or read from memory. "
           "How the "
           "boards of a\n"
           "  group share its link is not printed. Here each has its own, so that the "
           "last cuts, of two "
           "boards,\n"
           "  weigh most; with one link a group all cuts weigh alike. A gradient takes "
           "TPU v2 "
           "boards longer to\n"
           "  exchange than TPU v3 boards need for the whole step, so the share that "
           "AccPar's "
           "equation gives\n"
           "  TPU v2 is 0 for such layers (`topt study accpar vgg16` prints each): they "
           "are as "
           "fast as on the\n"
           "  equal array, while data parallelism waits for the slower links. The paper "
           "does not "
           "print its\n"
           "  shares. By computing alone TPU v2 has 0.3 of each layer. HyPar sees what "
           "consecutive layers\n"
           "  exchange, as in its paper, and pays for shortcuts all the same.\n",
           8e-9 * fmin(b[0].bytes_per_second, b[1].bytes_per_second),
           8e-9 * fmax(b[0].bytes_per_second, b[1].bytes_per_second));
    printf(
        "- **Parallax.** Rates of servers are assumed, nothing overlaps, and what adding "
        "up rows\n"
        "  takes is that of LM's table 2, computing that of figure 9: so none of its "
        "rows is counted. Of\n"
        "  LM's %.2f s a step on servers %.2f s follow; the rest is TensorFlow's own. "
        "How "
        "large table 6's\n"
        "  vocabulary is is not printed; with as many sparse elements as dense ones what "
        "partitions\n"
        "  cost weighs most where alpha is least. In `topt compare` the hybrid is a row "
        "where a model\n"
        "  has sparse tables (`paper:words` is LM's table): its servers are there the "
        "devices\n"
        "  themselves, in our terms and at our prices.\n",
        words / printed[2].naive, words / speed(lm, TOPT_PARALLAX_NAIVE));
}
