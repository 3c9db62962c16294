/* papers_tables.c - recommenders and a language model, whose tables a step reads few rows of:
 * "paper:dlrm", "paper:dlrm-terabyte", "paper:words". */
#include "papers_tables.h"

#include <stdio.h>
#include <string.h>

/* ---- recommenders ------------------------------------------------------------------ */

enum { DLRM_TABLES = 26, DLRM_MLP = 6 };

/* DLRM (Naumov et al. 2019; github.com/facebookresearch/dlrm): numbers through the bottom MLP,
 * a row of each table, products of every two of these, the top MLP.  A width of 0 ends a list. */
struct dlrm {
    int64_t features;
    int64_t bottom[DLRM_MLP], top[DLRM_MLP];
    int64_t rows[DLRM_TABLES];
};

static int mlp(struct paper *p, int x, const int64_t *width, const char *name)
{
    for (int i = 0; i < DLRM_MLP && width[i]; i++) {
        snprintf(p->prefix, sizeof p->prefix, "%s%d.", name, i);
        x = topt_paper_project(p, FUSED, x, width[i], 1, "linear");
        if (i + 1 < DLRM_MLP && width[i + 1])
            x = topt_paper_relu(p, x, "out");
        else if (name[0] == 'b')
            x = topt_paper_relu(p, x, "out");
    }
    p->prefix[0] = '\0';
    return x;
}

/* One tensor of several, four at a time. */
static int join(struct paper *p, int *x, int n)
{
    for (int level = 0; n > 1; level++) {
        int made = 0;
        for (int i = 0; i < n; i += 4) {
            int in[4], k = n - i < 4 ? n - i : 4;
            char name[32];
            struct topt_attrs none = {.fused = 1};
            memcpy(in, x + i, (size_t)k * sizeof *in);
            snprintf(name, sizeof name, "join%d.%d", level, i / 4);
            x[made] = in[0];
            if (k > 1 && !p->failed)
                x[made] =
                    topt_model_add(p->m, "concat_counts", name, k, in, &none, p->err);
            p->failed |= x[made++] < 0;
        }
        n = made;
    }
    return x[0];
}

static void make_dlrm_of(struct paper *p, const struct dlrm *d)
{
    int vector[1 + DLRM_TABLES];
    int x = topt_paper_add(p, FUSED, "input", -1, -1, ATTRS(.features = 13), "numbers");
    int bottom = vector[0] = mlp(p, x, d->bottom, "bottom");
    for (int t = 0; t < DLRM_TABLES; t++)
        vector[1 + t] = topt_paper_add(
            p, COUNTED, "embedding", -1, -1,
            ATTRS(.vocab = d->rows[t], .features = d->features, .sparse = 1), "table%d",
            t);
    x = join(p, vector, 1 + DLRM_TABLES);
    x = topt_paper_add(p, COUNTED, "interact", x, -1, ATTRS(.features = d->features),
                       "products");
    x = topt_paper_add(p, FUSED, "concat_counts", bottom, x, ATTRS(0), "joined");
    x = mlp(p, x, d->top, "top");
    topt_paper_add(p, COUNTED, "logistic", x, -1, ATTRS(0), "loss");
}

/* Criteo's Kaggle data: rows as its published preprocessing counts them. */
void topt_paper_dlrm(struct paper *p)
{
    static const struct dlrm kaggle = {
        16,
        {512, 256, 64, 16},
        {512, 256, 1},
        {1460,  583,  10131227, 2202608, 305, 24,     12517,   633,   3,
         93145, 5683, 8351593,  3194,    27,  14992,  5461306, 10,    5652,
         2173,  4,    7046547,  18,      15,  286181, 105,     142572}};
    make_dlrm_of(p, &kaggle);
}

/* MLPerf's: Criteo's terabyte, no more than 40 million rows a table. */
void topt_paper_dlrm_terabyte(struct paper *p)
{
    static const struct dlrm terabyte = {
        128,
        {512, 256, 128},
        {1024, 1024, 512, 256, 1},
        {39884406, 39043,    17289,    7420,     20263,  3,     7120, 1543, 63,
         38532951, 2953546,  403346,   10,       2208,   11938, 155,  4,    976,
         14,       39979771, 25641295, 39664984, 585935, 12972, 108,  36}};
    make_dlrm_of(p, &terabyte);
}

/* The language model of one billion words that Parallax measures (Jozefowicz et al. 2016): a
 * sparse table, an LSTM of 2048 and a projection to 512.  Here the projection comes after the
 * recurrence, and the softmax is over all words. */
void topt_paper_words(struct paper *p)
{
    enum { WORDS = 793471, WIDTH = 512, HIDDEN = 2048, GATES = 4 };
    int x =
        topt_paper_add(p, COUNTED, "embedding", -1, -1,
                       ATTRS(.vocab = WORDS, .features = WIDTH, .sparse = 1), "words");
    x = topt_paper_project(p, FUSED, x, HIDDEN, GATES, "gates");
    x = topt_paper_add(p, COUNTED, "lstm", x, -1, ATTRS(0), "lstm");
    x = topt_paper_add(p, COUNTED, "linear", x, -1, ATTRS(.features = WIDTH),
                       "projection");
    x = topt_paper_project(p, FUSED, x, WORDS, 1, "logits");
    topt_paper_add(p, COUNTED, "cross_entropy", x, -1, ATTRS(0), "loss");
}
