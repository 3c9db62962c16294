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

/* Half of the tables from 'from' on have about half of the rows, and so on in each half: so that
 * whole tables are dealt evenly to 2, 4, 8... devices.  The largest goes where fewer rows are. */
static void deal(int64_t *rows, int n)
{
    int64_t half[2][DLRM_TABLES], sum[2] = {0, 0};
    int room[2] = {(n + 1) / 2, n / 2}, m[2] = {0, 0};
    for (int i = 1; i < n; i++) /* the largest first */
        for (int j = i; j > 0 && rows[j] > rows[j - 1]; j--) {
            int64_t keep = rows[j];
            rows[j] = rows[j - 1];
            rows[j - 1] = keep;
        }
    for (int i = 0; i < n; i++) {
        int to = m[1] < room[1] && (m[0] == room[0] || sum[1] < sum[0]);
        half[to][m[to]++] = rows[i];
        sum[to] += rows[i];
    }
    memcpy(rows, half[0], (size_t)m[0] * sizeof *rows);
    memcpy(rows + m[0], half[1], (size_t)m[1] * sizeof *rows);
    if (n > 2) {
        deal(rows, m[0]);
        deal(rows + m[0], m[1]);
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
