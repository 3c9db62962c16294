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

static struct speedups speedups(const char *group, int one_link)
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

/* Geometric mean over networks whose name begins so. */
static double mean(const struct speedups *r, int system, const char *begins)
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

static const double TIMES = 0.25; /* as of all times */

static const struct array {
    const char *where, *group;
    double hypar, accpar; /* as printed, over data parallelism */
} arrays[] = {{"128 TPU v3", "tpu-v3", 3.51, 3.86},
              {"128 TPU v2 and 128 TPU v3", NULL, 3.78, 6.30}};

/* The printed means; with one link a group AccPar's shares are those of computing alone. */
static void means(const struct array *a, int one_link)
{
    struct speedups r = speedups(a->group, one_link);
    double hypar = mean(&r, TOPT_ACCPAR_HYPAR, ""),
           accpar = mean(&r, one_link ? TOPT_ACCPAR_BY_FLOPS : TOPT_ACCPAR_ACCPAR, "");
    const struct {
        const char *what;
        double printed, value;
    } rows[] = {{"HyPar", a->hypar, hypar},
                {"AccPar", a->accpar, accpar},
                {"AccPar over HyPar", a->accpar / a->hypar, accpar / hypar}};
    for (int i = 0; i < 3; i++) {
        char says[128];
        snprintf(says, sizeof says, "%s %.2f (geometric means)%s%s", rows[i].what,
                 rows[i].printed, one_link ? ", where a group has one link" : "",
                 one_link && i && !a->group ? ", shares by computing alone" : "");
        papers_why(
            "exchange is nearly all of a step, and each board has a link of its own; "
            "below a group has one");
        papers_near((struct papers_row){one_link ? PAPERS_REWRITTEN : PAPERS_COUNTED,
                                        a->where, says},
                    rows[i].value, rows[i].printed, TIMES, "%.2f", rows[i].value);
    }
}

/* AccPar of unequal boards over equal ones; with one link a group shares are by computing alone, and by
 * both in the reason. */
static void unequal_over_equal(int one_link)
{
    double gain[2][SYSTEMS];
    char says[128], why[96];
    for (int i = 0; i < 2; i++) {
        struct speedups r = speedups(arrays[i].group, one_link);
        for (int s = 0; s < SYSTEMS; s++)
            gain[i][s] = mean(&r, s, "");
    }
    int system = one_link ? TOPT_ACCPAR_BY_FLOPS : TOPT_ACCPAR_ACCPAR;
    double ratio = gain[1][system] / gain[0][system];
    snprintf(says, sizeof says, "AccPar of unequal boards over equal ones: %.2f / %.2f%s",
             arrays[1].accpar, arrays[0].accpar,
             one_link ? ", where a group has one link, shares by computing alone" : "");
    snprintf(why, sizeof why, "with shares that also see the exchange %.2f",
             gain[1][TOPT_ACCPAR_ACCPAR] / gain[0][TOPT_ACCPAR_ACCPAR]);
    papers_why(why);
    papers_near(
        (struct papers_row){one_link ? PAPERS_REWRITTEN : PAPERS_COUNTED, "both", says},
        ratio, arrays[1].accpar / arrays[0].accpar, TIMES, "%.2f", ratio);
}

static void accpar(void)
{
    double vgg[2], resnet[2];
    papers_head(
        "AccPar and HyPar: speed-up over data parallelism, 8 networks, 512 images");
    for (int i = 0; i < 2; i++) {
        struct speedups r = speedups(arrays[i].group, 0);
        double owt = mean(&r, TOPT_ACCPAR_OWT, ""),
               hypar = mean(&r, TOPT_ACCPAR_HYPAR, "");
        double gain = mean(&r, TOPT_ACCPAR_ACCPAR, "");
        vgg[i] = mean(&r, TOPT_ACCPAR_ACCPAR, "vgg");
        resnet[i] = mean(&r, TOPT_ACCPAR_ACCPAR, "resnet");
        papers_id("A5");
        for (int one_link = 0; one_link < 2; one_link++)
            means(&arrays[i], one_link);
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
        vgg[0] > resnet[0] && vgg[1] > resnet[1], "more", "%.1f and %.1f, %.1f and %.1f",
        vgg[0], resnet[0], vgg[1], resnet[1]);
    for (int one_link = 0; one_link < 2; one_link++)
        unequal_over_equal(one_link);
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
    papers_near((struct papers_row){PAPERS_CALIBRATED, where, says}, value, printed,
                TIMES, "%.2f", value);
}

/* Returns what the hybrid gains over servers that aggregate; 0 where nothing is sparse. */
static double parallax_model(const struct topt_parallax_model *m, const struct printed *p)
{
    static const char servers[] = "nothing overlaps, and servers take nothing but bytes "
                                  "over an assumed rate and the "
                                  "adding up of rows";
    double gain = 0;
    double ar = speed(m, TOPT_PARALLAX_AR), naive = speed(m, TOPT_PARALLAX_NAIVE),
           opt = speed(m, TOPT_PARALLAX_OPT), hybrid = speed(m, TOPT_PARALLAX_HYBRID);
    if (m->sparse > 0) {
        papers_id("P3");
        ratio(m->name, "servers over all-reduce (table 4)", naive / ar, p->naive / p->ar,
              servers);
        papers_id("P4");
        ratio(m->name, "aggregating servers over servers (table 4)", opt / naive,
              p->opt / p->naive, servers);
        ratio(m->name, "the hybrid over aggregating servers (table 4)", hybrid / opt,
              p->hybrid / p->opt,
              "sparse variables stay on servers; in the next row bytes decide");
        double rates = speed(m, TOPT_PARALLAX_RATES);
        gain = hybrid / opt;
        papers_near((struct papers_row){PAPERS_REWRITTEN, m->name,
                                        "the same, where bytes over rates choose servers "
                                        "or rings for sparse variables"},
                    rates / opt, p->hybrid / p->opt, TIMES, "%.2f", rates / opt);
        papers_words((struct papers_row){PAPERS_ONE_SIDED, m->name,
                                         "all-reduce, servers, aggregating servers, "
                                         "hybrid: each faster"},
                     ar < naive && naive < opt && opt < hybrid, "the order",
                     "%.1fk, %.1fk, %.0fk, %.0fk words a second", ar / 1e3, naive / 1e3,
                     opt / 1e3, hybrid / 1e3);
    } else {
        papers_id("P3");
        ratio(m->name, "all-reduce over servers (table 1)", ar / naive, p->ar / p->naive,
              servers);
    }
    double best = ar > naive ? ar : naive;
    papers_id("P8");
    papers_words((struct papers_row){PAPERS_ONE_SIDED, m->name,
                                     "Parallax is no slower than either on 48 GPUs"},
                 hybrid >= 0.97 * best, "0.97 or more", "%.2f times the faster one",
                 hybrid / best);
    return gain;
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
    double first = 0, before = 0;
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
        first = i ? first : gain;
        rises &= gain > before;
        before = gain;
    }
    papers_why("at alpha 1 alone what is sparse goes by rings, which here are faster");
    papers_words((struct papers_row){PAPERS_ONE_SIDED, "LM, fewer words",
                                     "the fewer words, the more the hybrid gains, the "
                                     "most of all where alpha is least"},
                 rises, "rises from row to row", "from %.2f to %.2f, %s", first, before,
                 rises ? "rising" : "falling somewhere between");
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
    for (int i = 0; i < n && i < 4; i++)
        gain[i] = parallax_model(&m[i], &printed[i]);
    papers_id("P4");
    papers_words(
        (struct papers_row){PAPERS_ONE_SIDED, "LM and NMT",
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
