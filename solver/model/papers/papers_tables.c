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

/* Rows of the largest of 2^levels runs of a list: each level cuts runs of at most 'most' tables
 * into two, as plans split the list over devices. */
static int64_t largest_run(const int64_t *rows, int n, int most, int levels)
{
    int half = (most + 1) / 2, first = n < half ? n : half;
    int64_t sum = 0;
    for (int i = 0; i < n && !levels; i++)
        sum += rows[i];
    if (!levels)
        return sum;
    int64_t x = largest_run(rows, first, half, levels - 1);
    int64_t y = largest_run(rows + first, n - first, half, levels - 1);
    return x > y ? x : y;
}

static int64_t unevenness(const int64_t *rows, int n)
{
    enum { LEVELS = 4 };
    int64_t sum = 0;
    for (int l = 1; l <= LEVELS; l++)
        sum += largest_run(rows, n, n, l);
    return sum;
}

static void swap(int64_t *a, int64_t *b)
{
    int64_t keep = *a;
    *a = *b;
    *b = keep;
}

/* An order in which 2, 4, 8 and 16 devices get about as many rows each: two tables change places
 * for as long as that helps. */
static void deal(int64_t *rows, int n)
{
    for (int better = 1; better;) {
        better = 0;
        for (int i = 0; i < n; i++)
            for (int j = 0; j < i; j++) {
                int64_t before = unevenness(rows, n);
                swap(&rows[i], &rows[j]);
                if (unevenness(rows, n) < before)
                    better = 1;
                else
                    swap(&rows[i], &rows[j]);
            }
    }
}

/* Tables of which a step reads few rows and those of which it reads nearly all: an operator for
 * each, so that plans may treat them differently. */
static int tables(struct paper *p, const struct dlrm *d, int small, const char *name)
{
    enum { SMALL = 10000 };
    struct topt_attrs a = {.features = d->features, .lookups = 1, .sparse = 1};
    int n = 0;
    for (int t = 0; t < DLRM_TABLES; t++)
        if ((d->rows[t] <= SMALL) == small)
            a.tables[n++] = d->rows[t];
    deal(a.tables, n);
    return topt_paper_add(p, COUNTED, "embedding_bag", -1, -1, a, "%s", name);
}

static void make_dlrm_of(struct paper *p, const struct dlrm *d)
{
    int x = topt_paper_add(p, FUSED, "input", -1, -1, ATTRS(.features = 13), "numbers");
    int bottom = mlp(p, x, d->bottom, "bottom");
    int in[] = {tables(p, d, 0, "tables"), tables(p, d, 1, "small"), bottom};
    x = p->failed ? -1
                  : topt_model_add(p->m, "interact", "products", 3, in, NULL, p->err);
    p->failed |= x < 0;
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
