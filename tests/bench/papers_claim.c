/* papers_claim.c - rows of docs/PAPERS.md, and how many of them hold. */
#include "papers_claim.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 64 };

static struct row {
    const char *id;
    int held[PAPERS_KINDS], all[PAPERS_KINDS];
} row_of[ROWS], *at;
static const char *because; /* of the next claim */
static int unexplained;

static const struct {
    const char *name, *means;
} kinds[PAPERS_KINDS] = {
    [PAPERS_COUNTED] = {"counted",
                        "the paper prints the number, and nothing here was fitted to it"},
    [PAPERS_ONE_SIDED] =
        {"one-sided", "the paper prints words or a bound; the band is our reading of it"},
    [PAPERS_REWRITTEN] =
        {"rewritten", "it follows from what the paper prints, and the sentence is ours; "
                      "so does a ratio of two printed figures"},
    [PAPERS_BUILT] = {"by construction", "it can't come out otherwise"},
    [PAPERS_CALIBRATED] = {"calibrated",
                           "numbers that it rests on were fitted to the paper's figures"},
    [PAPERS_MOOT] = {"nothing to explain", "what it explains does not come out here"},
};

void papers_head(const char *title)
{
    printf("\n## %s\n\n| row | where | the paper | band | here | as it says |\n"
           "|---|---|---|---|---|---|\n",
           title);
}

void papers_id(const char *id)
{
    int i = 0;
    while (i < ROWS && row_of[i].id && strcmp(row_of[i].id, id) != 0)
        i++;
    if (i == ROWS)
        abort();
    at = &row_of[i];
    at->id = id;
}

void papers_why(const char *why)
{
    because = why;
}

TOPT_PRINTF(3, 0)
static void begin(struct papers_row row, const char *band, const char *fmt, va_list ap)
{
    printf("| %s | %s | %s | %s | ", at->id, row.where, row.says, band);
    vprintf(fmt, ap);
}

static void end(struct papers_row row, int holds)
{
    if (!holds && !because) {
        fprintf(stderr, "papers_figures: %s of %s does not hold, and nothing says why\n",
                at->id, row.where);
        because = "not known";
        unexplained++;
    }
    if (row.kind == PAPERS_COUNTED)
        printf(" | %s", holds ? "yes" : "**no**");
    else
        printf(" | (%s) %s", holds ? "yes" : "no", kinds[row.kind].name);
    printf("%s%s |\n", holds ? "" : ": ", holds ? "" : because);
    because = NULL;
    at->all[row.kind]++;
    at->held[row.kind] += holds;
}

TOPT_PRINTF(5, 0)
static void number(struct papers_row row, double value, double low, double high,
                   const char *fmt, va_list ap)
{
    char band[64];
    snprintf(band, sizeof band, "%.3g to %.3g", low, high);
    begin(row, band, fmt, ap);
    end(row, value >= low && value <= high);
}

void papers_number(struct papers_row row, double value, double low, double high,
                   const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    number(row, value, low, high, fmt, ap);
    va_end(ap);
}

void papers_near(struct papers_row row, double value, double printed, double share,
                 const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    number(row, value, (1 - share) * printed, (1 + share) * printed, fmt, ap);
    va_end(ap);
}

void papers_ratio(struct papers_row row, double value, double printed, const char *fmt,
                  ...)
{
    double low = (1 - PAPERS_TIMES) * printed, high = (1 + PAPERS_TIMES) * printed;
    va_list ap;
    va_start(ap, fmt);
    number(row, value, printed > 1 && low < 1 ? 1 : low,
           printed < 1 && high > 1 ? 1 : high, fmt, ap);
    va_end(ap);
}

void papers_words(struct papers_row row, int holds, const char *band, const char *fmt,
                  ...)
{
    va_list ap;
    if (row.kind == PAPERS_COUNTED) /* words have no band that is the paper's */
        abort();
    va_start(ap, fmt);
    begin(row, band, fmt, ap);
    va_end(ap);
    end(row, holds);
}

void papers_moot(struct papers_row row, const char *band, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    begin(row, band, fmt, ap);
    va_end(ap);
    printf(" | %s |\n", kinds[PAPERS_MOOT].name);
    because = NULL;
    at->all[PAPERS_MOOT]++;
}

int papers_unexplained(void)
{
    return unexplained;
}

void papers_counts(const char *id)
{
    int others = 0, held = 0;
    papers_id(id);
    for (int k = PAPERS_COUNTED + 1; k < PAPERS_MOOT; k++) {
        others += at->all[k];
        held += at->held[k];
    }
    if (at->all[PAPERS_COUNTED])
        printf("%d of %d counted hold%s", at->held[PAPERS_COUNTED],
               at->all[PAPERS_COUNTED], others ? ", " : "");
    if (others)
        printf("%d of %d not counted hold", held, others);
    if (!others && !at->all[PAPERS_COUNTED])
        abort(); /* a row without a claim */
}

void papers_kinds_said(void)
{
    printf("\n## The verdicts\n\n| kind | which claims | of them as the paper says |\n"
           "|---|---|---|\n");
    for (int k = 0; k < PAPERS_KINDS; k++) {
        int held = 0, all = 0;
        for (int i = 0; i < ROWS; i++) {
            held += row_of[i].held[k];
            all += row_of[i].all[k];
        }
        printf("| %s | %s | ", kinds[k].name, kinds[k].means);
        if (k == PAPERS_MOOT)
            printf("%d without a verdict |\n", all);
        else
            printf("%d of %d |\n", held, all);
    }
}
